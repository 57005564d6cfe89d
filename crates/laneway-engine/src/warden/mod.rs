//! The warden: a small process beside each node that starts all steps and outlives the node by a moment.
//!
//! ```text
//! node ── Warden (client.rs) ═══ socket: spawn, term, kill ═══▶ warden (server.rs), one thread, subreaper
//!           ▲  │ pipes                 ◀═══ failed, exited, gone ═══     │ posix_spawn
//!           │  └────────────── stdout, stderr ◀── step ◀────────────────┘ └─ cgroup.rs: a leaf for each task
//!        process::execute                          └─ children, daemons      leftovers.rs: whoever slipped out
//! ```
//! The node's death is the end of the socket: the warden kills everything and ends. The warden's death is
//! the end of the socket too: the node kills what it can find, says so, and starts another one.
//! Where that is not enough the warden has a parent of its own, which outlives it by a moment (guardian.rs).
//! Containers are not its children: of those it is told the names, and it asks their engine to remove them (containers.rs).
//! What it guarantees and what it cannot catch stands in docs/design/warden.md.

mod cgroup;
mod client;
mod containers;
mod guardian;
mod hearing;
mod leftovers;
mod protocol;
mod record;
mod server;
mod stuck;

pub use client::{Warden, WardenCommand};
pub use server::{Options, Refused, serve};

pub(crate) use client::{Ended, Group};
pub(crate) use protocol::{Exit, Limits};
pub(crate) use stuck::end_stuck;

/// The variable by which a step's processes are known wherever they went: `<warden>.<task>`.
pub const MARK: &str = "LANEWAY_MARK";

/// An argument of a warden: its node starts steps without cgroups.
const NO_CGROUPS: &str = "--no-cgroups";
/// A database judges the node by a lease. Standard error is what the node tells of it (`record.rs`).
const LEASED: &str = "--leased";
/// The parent of this warden is its guardian.
const GUARDED: &str = "--guarded";

/// A clock that goes on while the machine sleeps, as the store's does, and that all processes of a machine share.
pub(crate) fn boot_time() -> std::time::Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    std::time::Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}
