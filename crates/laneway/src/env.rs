//! Every environment variable that the program itself reads, with its meaning. What steps get is the
//! engine's matter. `LANEWAY_STORE` and the like are defaults: a flag on the command line wins.

use std::io::{self, IsTerminal as _};
use std::num::NonZeroU32;
use std::time::Duration;

use laneway_store::model::Lease;
use laneway_torture::Arms;

use crate::exit::Refusal;

/// The store, as `--store` takes it.
pub(crate) const STORE: &str = "LANEWAY_STORE";

/// How many tasks of a run may run at once, where neither `--max-parallel` nor the document says so.
const MAX_PARALLEL: &str = "LANEWAY_MAX_PARALLEL";

/// How long a step may take to end after it was asked to, before it is killed, as `--kill-grace` takes it.
pub(crate) const KILL_GRACE: &str = "LANEWAY_KILL_GRACE";

/// How many tasks a worker runs at once, as `--slots` takes it.
pub(crate) const SLOTS: &str = "LANEWAY_SLOTS";

/// The name of a worker on screens, as `--node-address` takes it.
pub(crate) const NODE_ADDRESS: &str = "LANEWAY_NODE_ADDRESS";

/// How long what runs may go on after a worker was told to stop, as `--shutdown-grace` takes it.
pub(crate) const SHUTDOWN_GRACE: &str = "LANEWAY_SHUTDOWN_GRACE";

/// How long a node of a store for many nodes counts as alive after its last word.
const LEASE_TTL: &str = "LANEWAY_LEASE_TTL";

/// How often a node says that it is alive.
const HEARTBEAT_INTERVAL: &str = "LANEWAY_HEARTBEAT_INTERVAL";

/// `off` holds steps without cgroups, as where there are none.
const CGROUPS: &str = "LANEWAY_CGROUPS";

/// What the program tells of its own doing on stderr: `info`, `laneway_engine=debug`, … Default: `warn`.
const LOG: &str = "LANEWAY_LOG";

/// Any value but the empty one turns colours off.
const NO_COLOR: &str = "NO_COLOR";

/// `dumb` is a terminal that understands neither colours nor moving lines.
const TERM: &str = "TERM";

/// Who a run is submitted, canceled or retried by.
const USER: &str = "USER";

/// Only in a test build (docs/design/torture.md). `POINT:N`: die at the N-th passing of a point.
const CRASH: &str = "LANEWAY_CRASH";

/// Only in a test build. The seeded bug to have.
const BUG: &str = "LANEWAY_BUG";

/// Only in a test build. `N:MS`: say the N-th finish a second time, so many milliseconds later.
const ECHO: &str = "LANEWAY_ECHO";

/// Only in a test build. A file that is told of every point that is passed.
const PASSED: &str = "LANEWAY_PASSED";

/// Tells the hooks of a test build what to do. There are none in any other.
pub(crate) fn arm_hooks() -> anyhow::Result<()> {
    if !laneway_torture::ARMED {
        return Ok(());
    }
    let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let arms =
        Arms { crash: text(CRASH), bug: text(BUG), echo: text(ECHO), passed: text(PASSED).map(Into::into) };
    laneway_torture::arm(&arms)
        .map_err(|error| Refusal::new(error.to_string()).hint("see docs/design/torture.md").into())
}

/// Leases as this deployment wants them.
pub(crate) fn lease() -> Result<Option<Lease>, Refusal> {
    let read = |name: &str, usual: Duration| match std::env::var(name) {
        Ok(text) if !text.is_empty() => match crate::drive::duration(&text) {
            Ok(duration) if !duration.is_zero() => Ok(duration),
            Ok(_) | Err(_) => Err(Refusal::new(format!("{name} is `{text}`"))
                .hint("set it to a duration such as 500ms, 5s or 1m, or leave it out")),
        },
        Ok(_) | Err(_) => Ok(usual),
    };
    let usual = Lease { ttl: Duration::from_secs(60), every: Duration::from_secs(5) };
    let lease = Lease { ttl: read(LEASE_TTL, usual.ttl)?, every: read(HEARTBEAT_INTERVAL, usual.every)? };
    if lease.every * 3 > lease.ttl {
        return Err(Refusal::new(format!("{HEARTBEAT_INTERVAL} is too long for {LEASE_TTL}"))
            .hint("a lease is three heartbeats or longer"));
    }
    Ok((lease != usual).then_some(lease))
}

pub(crate) fn wants_color() -> bool {
    std::env::var_os(NO_COLOR).is_none_or(|value| value.is_empty())
}

pub(crate) fn is_dumb_terminal() -> bool {
    std::env::var_os(TERM).is_some_and(|term| term == "dumb")
}

pub(crate) fn max_parallel() -> Result<Option<NonZeroU32>, Refusal> {
    match std::env::var(MAX_PARALLEL) {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Refusal::new(format!("{MAX_PARALLEL} is `{text}`"))
                .hint("set it to a whole number of at least 1, or leave it out")),
        },
        Ok(_) | Err(_) => Ok(None),
    }
}

pub(crate) fn use_cgroups() -> Result<bool, Refusal> {
    match std::env::var(CGROUPS).as_deref() {
        Ok("off") => Ok(false),
        Ok("on" | "") | Err(_) => Ok(true),
        Ok(other) => {
            Err(Refusal::new(format!("{CGROUPS} is `{other}`")).hint("set it to on or off, or leave it out"))
        }
    }
}

/// The person at the keyboard, for the record.
pub(crate) fn person() -> String {
    match std::env::var(USER) {
        Ok(user) if !user.is_empty() => user,
        Ok(_) | Err(_) => format!("uid {}", rustix::process::getuid().as_raw()),
    }
}

/// The address of this process as a node: no listener, so host name and pid.
pub(crate) fn node() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}:{}", std::process::id())
}

pub(crate) fn init_tracing() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_env_var(LOG)
        .with_default_directive(tracing_subscriber::filter::LevelFilter::WARN.into())
        .from_env_lossy();
    let has_color = io::stderr().is_terminal() && wants_color() && !is_dumb_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(has_color)
        .with_target(false)
        .init();
}
