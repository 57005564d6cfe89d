//! Pools: the shapes of `laneway pool --json` and of their routes.

use laneway_core::pool::{ContainerState, PoolEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Moment;

/// Warm containers of one pool on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    pub node: String,
    pub pool: String,
    pub starting: u32,
    pub idle: u32,
    pub running: u32,
    pub dormant: u32,
    /// By name.
    pub containers: Vec<WarmContainer>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WarmContainer {
    pub container: String,
    /// `starting`, `idle`, `running` or `dormant`.
    pub state: String,
    pub since: Moment,
}

/// Pools of nodes that are alive, by node and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    pub pools: Vec<Pool>,
}

/// A page of what warm containers did, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolEventList {
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Value>,
    pub next_after: u64,
}

impl PoolList {
    /// From the newest event of each container.
    pub fn of(containers: &[PoolEvent]) -> Self {
        let mut pools: Vec<Pool> = Vec::new();
        for event in containers {
            let (name, container) = event.fact.names();
            let at = pools.iter().position(|pool| pool.node == event.node && pool.pool == name);
            let at = at.unwrap_or_else(|| {
                pools.push(Pool {
                    node: event.node.clone(),
                    pool: name.to_owned(),
                    starting: 0,
                    idle: 0,
                    running: 0,
                    dormant: 0,
                    containers: Vec::new(),
                });
                pools.len() - 1
            });
            let pool = &mut pools[at];
            let state = event.fact.state();
            match state {
                ContainerState::Starting => pool.starting += 1,
                ContainerState::Idle => pool.idle += 1,
                ContainerState::Running => pool.running += 1,
                ContainerState::Dormant => pool.dormant += 1,
                // What is gone is not among these.
                ContainerState::Terminated => continue,
            }
            pool.containers.push(WarmContainer {
                container: container.to_owned(),
                state: state.to_string(),
                since: event.at.into(),
            });
        }
        pools.sort_by(|one, other| (&one.node, &one.pool).cmp(&(&other.node, &other.pool)));
        Self { pools }
    }
}
