//! The container engine: executes one attempt in a container of its own, through Docker's API.
//!
//! ```text
//! Job ─mounts, stage─▶ Spec ─docker─▶ container ── output ─▶ log::Writer
//!                                        │ held: somebody sees to its end, also if this node dies (warden)
//!                                        └ end: what its end means
//! ```
//! `docker.rs` has the verbs, `error.rs` what can go wrong, `labels.rs` by what containers are known, `orphans.rs` removes those of
//! dead nodes, `watch.rs` sees whether there is an engine. Why it is so: `docs/design/containers.md`.

mod docker;
mod end;
mod error;
mod execute;
mod held;
pub mod labels;
mod mounts;
pub mod orphans;
pub mod pool;
mod pull;
mod spec;
mod stage;
mod watch;

pub use docker::{DOCKER_HOST, Docker, Exec, ExecState, Execution, Found, Output, Progress};
pub use error::Error;
pub use execute::{Job, execute};
pub use held::Held;
pub use mounts::HostMounts;
pub use spec::{Bind, Spec};
pub use watch::answers;
pub(crate) use watch::keep_told;

/// What a node has for steps in containers.
#[derive(Debug, Clone)]
pub struct Containers {
    pub docker: Docker,
    /// Places of the host that the documents of others may mount.
    pub allow_mounts: Vec<std::path::PathBuf>,
    /// Of this host, for the endpoints of warm containers.
    pub ports: std::ops::RangeInclusive<u16>,
    /// How many warm containers start at once.
    pub start_concurrency: usize,
}

impl Containers {
    /// How many ports the range has.
    pub fn port_count(&self) -> u32 {
        u32::try_from(self.ports.len()).unwrap_or(u32::MAX)
    }
}

impl Default for Containers {
    /// The engine of this host, and nothing of the host's.
    fn default() -> Self {
        Self {
            docker: Docker::at(DOCKER_HOST),
            allow_mounts: Vec::new(),
            ports: 49200..=49300,
            start_concurrency: 10,
        }
    }
}
