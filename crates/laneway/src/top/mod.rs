//! `laneway top`: runs, a run with its graph, logs, nodes, pools and limits on one screen that follows along.
//!
//! ```text
//!   keys, mouse, signals ──┐                       ┌──▶ view(model, frame), at most 20 times a second, only when
//!   hints.rs, the clock ───┼──▶ update(model, message)      something changed
//!   answers of loads ──────┘                       └──▶ effects: loads and acts ──▶ face.rs ──▶ answers
//! ```
//! `model` is what is known and looked at, `update` decides, `view` draws: all three are pure. `session` is the loop,
//! `load` and `act` ask the face, `screen` owns the terminal. docs/design/terminal.md says why it is so.

mod act;
mod action;
mod ansi;
mod keys;
mod load;
mod logs;
mod look;
mod message;
mod model;
mod mouse;
mod picture;
mod rows;
mod screen;
mod session;
#[cfg(test)]
mod tests;
mod update;
mod view;

pub(crate) use keys::typed;
pub(crate) use look::Look;
pub(crate) use session::{Options, once, run};
