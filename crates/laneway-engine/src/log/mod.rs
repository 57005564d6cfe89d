//! The log of one attempt: one file with time and stream of everything a step printed.
//!
//! `format` is the layout on disk, `writer` appends under a cap, `reader` reads, tails and follows,
//! `lines` joins the pieces of a stream into lines. Nothing here knows of processes or of the store.

mod clock;
mod format;
mod lines;
mod reader;
mod writer;

pub use format::{Error, Frame, HEADER, Stream};
pub use lines::{Line, Lines, MAX_LINE};
pub use reader::{Follower, Frames, Tail, read};
pub use writer::{Summary, Writer};

pub(crate) use clock::unix_ms;
