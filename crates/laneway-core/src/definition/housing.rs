//! Where a script or program runs if not on the node itself: in a container of its own, or in a warm one of a pool.
//! Owns the types; `containers.rs` reads them, and what becomes of them is the container engine's business.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::words::words;

/// What a run's directory is called inside.
pub const WORKSPACE: &str = "/workspace";
/// Where the engine's own files of an attempt are: its script, and what it hands on.
pub const ATTEMPT_DIR: &str = "/run/laneway";
/// Where `secrets` of a container are files, by name.
pub const SECRETS_DIR: &str = "/run/secrets";

/// The `image` or the `pool` of a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Housing {
    /// A container for this attempt alone.
    Own(Container),
    /// A warm one of the pool of this name.
    Pool(String),
}

/// An image, and how a container of it is made. What is not said is Docker's default, but for what is always so: no new
/// privileges, no capabilities, an init.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Container {
    pub image: String,
    pub mounts: Vec<Mount>,
    /// `UID`, `UID:GID` or names that the image knows.
    pub user: Option<String>,
    /// `none`, `bridge`, `host`, or one that exists.
    pub network: Option<String>,
    /// In thousandths of a processor.
    pub cpus_milli: Option<NonZeroU32>,
    /// In bytes.
    pub memory: Option<u64>,
    pub pids: Option<NonZeroU32>,
    pub is_read_only: bool,
    pub pull: Pull,
    /// Secrets of the workflow that are files below [`SECRETS_DIR`].
    pub secrets: Vec<String>,
}

/// One entry of `mounts`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mount {
    /// Absolute, or below the run's directory (`./data`); never with `..`.
    pub source: String,
    /// Absolute, never with `..`.
    pub target: String,
    pub is_read_only: bool,
}

impl Mount {
    /// Whether it names a place of the host, and not one of the run's directory.
    pub fn is_of_host(&self) -> bool {
        self.source.starts_with('/')
    }
}

words! {
    /// When the image is fetched.
    #[derive(Default)]
    pub enum Pull {
        /// If the node does not have it.
        #[default]
        Missing = "missing",
        /// Before each start, so that a tag that has moved is followed.
        Always = "always",
        /// Not at all: one that the node does not have is an error.
        Never = "never",
    }
}

/// An entry of `pools`: warm containers, kept for each image and its settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pool {
    pub name: String,
    pub container: Container,
    /// How many there may be on a node.
    pub max: NonZeroU32,
    pub mode: PoolMode,
    /// How long an unused one stays paused before it is removed.
    pub dormancy: Duration,
    /// How long a task waits for one; `None` is without end.
    pub acquire_timeout: Option<Duration>,
    /// What a container runs while it is there; empty is one that only waits, for a pool without endpoint, and the
    /// image's own for one with.
    pub command: Vec<String>,
    /// What it serves, for steps with `call`.
    pub endpoint: Option<Endpoint>,
    /// A program inside whose exit code 0 is health. Without: the endpoint's path, or that it runs at all.
    pub health: Option<Vec<String>>,
    pub health_interval: Duration,
    pub health_timeout: Duration,
}

impl Pool {
    pub const MAX: NonZeroU32 = NonZeroU32::new(4).expect("it is not zero");
    pub const DORMANCY: Duration = Duration::from_secs(300);
    pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(60);
    pub const HEALTH_INTERVAL: Duration = Duration::from_millis(500);
    pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(30);

    /// Whether each container needs a port of its host. One with the network of the host does not:
    /// its endpoint is there already.
    pub fn needs_ports(&self) -> bool {
        self.endpoint.is_some() && self.container.network.as_deref() != Some("host")
    }
}

words! {
    /// Who shares a container of a pool.
    #[derive(Default)]
    pub enum PoolMode {
        /// Nobody: each task has one for itself.
        #[default]
        Multi = "multi",
        /// All tasks share one.
        Single = "single",
    }
}

/// What a container of a pool serves over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Inside of it.
    pub port: u16,
    /// What answers with success once it is ready.
    pub health: String,
}

impl Endpoint {
    pub const HEALTH: &'static str = "/health";
}

words! {
    /// How a `call` asks.
    #[derive(Default)]
    pub enum Method {
        Get = "GET",
        #[default]
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}
