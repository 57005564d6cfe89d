//! Pools: the shapes of `laneway pool --json` and of their routes.

use laneway_core::pool::{ContainerState, PoolEvent};
use laneway_store::model::PoolView;
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

/// So many containers are to be warm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmPool {
    /// On each node, counting those that are there; its `max` caps it.
    #[schema(minimum = 1)]
    #[serde(deserialize_with = "super::integer::integer")]
    pub count: u32,
    /// Only on this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The pool of its newest version, also on nodes that do not know it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
}

/// The containers of a pool are to go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainPool {
    /// Only on this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Which nodes are told what is wanted of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskedPool {
    pub pool: String,
    /// One for each pool of that name: those of different images, or with another `max`, are pools of their own.
    pub nodes: Vec<AskedNode>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskedNode {
    pub node: String,
    pub image: String,
    /// How many containers it may have at once.
    pub max: u32,
    /// How many it will have, as far as they start; null if they are to go.
    pub count: Option<u32>,
}

/// A page of what warm containers did, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolEventList {
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Value>,
    /// Go on behind this number.
    pub next_after: u64,
    /// Events in front of `next_after` that cannot be read, and why.
    pub unreadable: Vec<String>,
}

impl PoolList {
    /// From the newest event of each container, and the pools that nodes keep: they are known also while they are empty.
    pub fn of(containers: &[PoolEvent], kept: &[PoolView]) -> Self {
        let empty = |node: &str, pool: &str| Pool {
            node: node.to_owned(),
            pool: pool.to_owned(),
            starting: 0,
            idle: 0,
            running: 0,
            dormant: 0,
            containers: Vec::new(),
        };
        let mut pools: Vec<Pool> = kept.iter().map(|view| empty(&view.node, &view.pool.name)).collect();
        pools.dedup();
        for event in containers {
            let (name, Some(container)) = event.fact.names() else { continue };
            let at = pools.iter().position(|pool| pool.node == event.node && pool.pool == name);
            let at = at.unwrap_or_else(|| {
                pools.push(empty(&event.node, name));
                pools.len() - 1
            });
            let pool = &mut pools[at];
            let Some(state) = event.fact.state() else { continue };
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
