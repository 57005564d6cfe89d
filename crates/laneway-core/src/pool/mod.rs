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
mod port_line;
mod port_use;
mod ports;
mod state;

pub use event::{
    ContainerDormant, ContainerIdle, ContainerRunning, ContainerStarting, ContainerTaken,
    ContainerTerminated, HeldPort, ImagePullProgress, PoolEvent, PoolFact, PortWaiter, PortsFree,
    PortsUsedUp,
};
pub use line::{Ticket, Waiter};
pub use manager::{Action, ContainerNumber, Counts, Event, Fault, Found, Mode, Pool};
pub use port_line::{PoolNumber, PortAction, PortDemand, PortLine};
pub use port_use::{PortHolder, PortUse};
pub use ports::Ports;
pub use state::{ContainerState, EndReason};
