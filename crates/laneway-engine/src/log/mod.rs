//! The log of one attempt: time and stream of everything a step printed, in a file or with the store.
//!
//! `format` is the layout, `writer` appends under a cap, `courier` carries logs to a store that has no files of its own,
//! `add` appends for workers that are elsewhere,
//! `decoder` and `reader` read, tail and follow, `part` reads wherever the bytes lie, `lines` joins the pieces of a stream into lines. Nothing here knows of
//! processes.

mod add;
mod clock;
mod courier;
mod decoder;
mod format;
mod lines;
mod part;
mod reader;
mod writer;

pub use add::{Added, NotAdded, add};
pub use courier::{Courier, Sending};
pub use decoder::Decoder;
pub use format::{Error, Frame, HEADER, Stream};
pub use lines::{Line, Lines, MAX_LINE};
pub use part::{Part, Unread, read_part};
pub use reader::{Follower, Frames, Tail, read};
pub use writer::{Summary, Target, Writer};

pub(crate) use add::{LOG_CAP, SHARED_LOG_CAP};
pub(crate) use clock::unix_ms;
