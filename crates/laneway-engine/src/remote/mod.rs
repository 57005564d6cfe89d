//! Workers that are elsewhere and take work over HTTP: what they are given (`task`), when they are to stop (`judge`, pure), and
//! what is done in their place when they do not (`tend`). How they speak is the server's matter; whether they live is
//! the store's. See `docs/design/remote.md`.

mod judge;
mod task;
mod tend;

use std::time::Duration;

use laneway_store::model::Lease;

pub use judge::stops;
pub use task::{Task, Unready, task};
pub use tend::Tending;

/// On which terms they work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub lease: Lease,
    /// How long one may take to stop what it is asked to stop.
    pub kill_grace: Duration,
    /// Nobody else in this process promotes and reaps.
    pub is_alone: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { lease: Lease::default(), kill_grace: Duration::from_secs(5), is_alone: false }
    }
}
