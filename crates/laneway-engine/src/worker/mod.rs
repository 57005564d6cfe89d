//! The worker: claim, execute, finish. One loop decides; processes and the store are at its edge.
//!
//! ```text
//!                 ┌──────────── Message ◀──────────────┐
//!                 ▼                                    │
//!   store ◀─verb─ loop ─begin─▶ attempt (one future each: prepare, process::execute)
//!                 ▲
//!                 └── hint: the store changed · the clock · Control (Ctrl-C)
//! ```
//! At most one `finish` is under way; what ends meanwhile goes with the next, so that a busy worker batches by
//! itself. A claim is durable before its task starts, always; `lineup.rs` holds a few ahead, so that short tasks do
//! not wait for that.

mod artifacts;
mod attempt;
mod begin;
mod cache;
mod control;
mod counts;
mod drive;
mod heartbeat;
mod kept_dirs;
mod late_claims;
mod levels;
mod lineup;
mod merge;
mod poll;
mod prepare;
mod rooms;
mod run_files;
mod wishes;
mod workspace;
mod written;

use std::path::PathBuf;

pub use begin::return_what_is_left;
pub use control::Control;
pub use counts::Counts;
pub use drive::{Cut, DEAD_NODE_CHECK_INTERVAL, Drive, Means, Worker};
pub use heartbeat::{Heartbeat, Pulse};
pub use prepare::Ground;

/// Why a worker stopped before its run had ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
    /// The session may be taken for dead by others, so nothing may run under it any more.
    #[error("the node gave up its session: {why}")]
    Fenced { why: String },
    #[error("{}: {source}", path.display())]
    Files { path: PathBuf, source: std::io::Error },
}
