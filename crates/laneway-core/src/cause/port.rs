//! Why a task waits for a port of the host: the range, and the containers that hold its ports.

use super::{Cause, Holder, NAMED, Place};
use crate::gate::Gate;
use crate::pool::PortUse;
use crate::state::TaskStatus;

/// A task of a pool whose containers need ports, while the ports of a node are used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortWait {
    pub pool: String,
    pub node: String,
    pub ports: PortUse,
    /// Of a task that the node has taken: its place in the line for ports. `None`: no node takes it
    /// yet.
    pub place: Option<Place>,
}

impl PortWait {
    pub(super) fn cause(&self) -> Cause {
        let Self { pool, node, ports, place } = self;
        let text = match place {
            Some(place) => format!(
                "waits for a host port for the pool `{pool}` on {node}: {ports}; it is number {} of {} \
                 in line",
                place.at, place.of
            ),
            None => format!(
                "ready, waits for a free slot and for room in the pool `{pool}`, whose containers need \
                 host ports; on {node} {ports}"
            ),
        };
        let drain = ports.drain_command().map(|command| format!(", or with `{command}`"));
        let tasks = ports.holders.iter().filter_map(|holder| holder.task.as_ref());
        let holder = |(run, step): &(crate::id::RunId, String)| Holder {
            run: *run,
            step: step.clone(),
            status: TaskStatus::Running,
            node: Some(node.clone()),
            since: None,
        };
        Cause {
            gate: "port",
            key: Some(ports.range()),
            holders: ports.holders.iter().take(NAMED).map(ToString::to_string).collect(),
            held_by: tasks.take(NAMED).map(holder).collect(),
            place: *place,
            opens: format!("when a container with a port is dormant or removed{}", drain.unwrap_or_default()),
            text,
            ..Cause::at(Gate::MaxParallel)
        }
    }
}
