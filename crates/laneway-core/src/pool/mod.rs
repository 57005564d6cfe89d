//! Warm containers, the pure part: which state may follow which, who gets which container, which port is next.
//!
//! ```text
//! acquire, release, …  ─▶ Pool::on ─▶ [Start, Wake, Hand, Clean, Pause, Terminate, Refuse]
//!        ▲                                        │
//!        └── started, woke, cleaned, gone, … ◀── whoever acts on them
//! ```
//! Nothing here knows of Docker, of a clock or of tasks. Why it is so: docs/design/pools.md.

mod event;
mod line;
mod manager;
mod ports;
mod state;

pub use event::{
    ContainerDormant, ContainerIdle, ContainerRunning, ContainerStarting, ContainerTaken,
    ContainerTerminated, ImagePullProgress, PoolEvent, PoolFact,
};
pub use line::{Ticket, Waiter};
pub use manager::{Action, ContainerNumber, Counts, Event, Fault, Found, Mode, Pool};
pub use ports::{Exhausted, Ports};
pub use state::{ContainerState, EndReason};
