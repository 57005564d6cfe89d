//! Why a task waits for a container of a pool: the containers that there are with their tasks, and an
//! image that is being pulled.

use std::fmt;

use super::{Cause, Holder, NAMED};
use crate::gate::Gate;
use crate::id::RunId;
use crate::pool::ContainerState;
use crate::state::TaskStatus;

/// A task whose step runs in a container of a pool, and has none yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolWait {
    pub pool: String,
    /// Whether a node has claimed it.
    pub is_taken: bool,
    /// The containers of the pool, on all nodes.
    pub holders: Vec<PoolHolder>,
    pub pull: Option<ImagePull>,
}

/// A container of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolHolder {
    pub container: String,
    pub node: String,
    pub state: ContainerState,
    /// The task that has it: its run and its name.
    pub task: Option<(RunId, String)>,
}

/// An image on its way to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePull {
    pub node: String,
    pub image: String,
    /// Of its layers, as far as their sizes are known.
    pub bytes: u64,
    pub of: u64,
}

impl PoolWait {
    pub(super) fn cause(&self) -> Cause {
        let Self { pool, is_taken, holders, pull } = self;
        let pull = pull.as_ref().map(ToString::to_string);
        let (opens, text) = if let (true, Some(pull)) = (is_taken, &pull) {
            (
                "when the image is there".to_owned(),
                format!("waits for a container of the pool `{pool}`: {pull}"),
            )
        } else {
            let named: Vec<String> = holders.iter().take(NAMED).map(ToString::to_string).collect();
            let more = match holders.len() - named.len() {
                0 => None,
                more => Some(format!("{more} more")),
            };
            let facts: Vec<String> = named.into_iter().chain(more).chain(pull).collect();
            let facts = if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
            (
                format!("when a node has a slot free, and room in its pool `{pool}`"),
                format!("ready, waits for a free slot and for room in the pool `{pool}`{facts}"),
            )
        };
        let held_by = holders.iter().filter_map(|holder| {
            let (run, step) = holder.task.clone()?;
            Some(Holder {
                run,
                step,
                status: TaskStatus::Running,
                node: Some(holder.node.clone()),
                since: None,
            })
        });
        Cause {
            gate: "pool",
            key: Some(pool.clone()),
            holders: holders.iter().take(NAMED).map(ToString::to_string).collect(),
            held_by: held_by.take(NAMED).collect(),
            opens,
            text,
            ..Cause::at(Gate::MaxParallel)
        }
    }
}

/// "laneway-1a2b-warm-1 on host:1 (runs build of run 1a2b3c4d)".
impl fmt::Display for PoolHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { container, node, state, task } = self;
        match task {
            Some((run, step)) => write!(f, "{container} on {node} (runs {step} of run {})", run.short()),
            None => write!(f, "{container} on {node} ({state})"),
        }
    }
}

/// "host:1 pulls busybox:1, 42 % of 24 MiB".
impl fmt::Display for ImagePull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, image, bytes, of } = self;
        write!(f, "{node} pulls {image}")?;
        if let Some(percent) = bytes.saturating_mul(100).checked_div(*of) {
            write!(f, ", {percent} % of {} MiB", of.div_ceil(1 << 20))?;
        }
        Ok(())
    }
}
