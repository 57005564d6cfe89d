//! Pools: the shapes of `laneway pool --json` and of their routes.

use laneway_core::id::RunId;
use laneway_core::pool::{ContainerState, ImagePullProgress, PoolEvent, PoolFact};
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
    /// An image that the node pulls for the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulling: Option<PulledImage>,
}

/// An image on its way to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PulledImage {
    pub image: String,
    /// Of its layers, as far as their sizes are known.
    pub bytes: u64,
    pub of: u64,
    /// Null while no size is known.
    pub percent: Option<u64>,
}

/// The task that took a container last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolTask {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WarmContainer {
    pub container: String,
    /// `starting`, `idle`, `running` or `dormant`.
    pub state: String,
    pub since: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Its port on the host, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// While it runs: the task that has it. If several share it, the one that took it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<PoolTask>,
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
            pulling: None,
        };
        let mut pools: Vec<Pool> = kept.iter().map(|view| empty(&view.node, &view.pool.name)).collect();
        pools.dedup();
        for event in containers.iter().filter(|event| !event.fact.is_about_ports()) {
            let (name, container) = event.fact.names();
            let at = pools.iter().position(|pool| pool.node == event.node && pool.pool == name);
            let at = at.unwrap_or_else(|| {
                pools.push(empty(&event.node, name));
                pools.len() - 1
            });
            let pool = &mut pools[at];
            if let PoolFact::ImagePullProgress(pull) = &event.fact {
                pool.pulling = pool.pulling.take().or_else(|| PulledImage::of(pull));
            }
            let (Some(container), Some(state)) = (container, event.fact.state()) else { continue };
            match state {
                ContainerState::Starting => pool.starting += 1,
                ContainerState::Idle => pool.idle += 1,
                ContainerState::Running => pool.running += 1,
                ContainerState::Dormant => pool.dormant += 1,
                // What is gone is not among these.
                ContainerState::Terminated => continue,
            }
            let (image, port) = event.fact.image_and_port();
            pool.containers.push(WarmContainer {
                container: container.to_owned(),
                state: state.to_string(),
                since: event.at.into(),
                image: image.map(str::to_owned),
                port,
                task: event.fact.task().map(|(run, step)| PoolTask { run, step: step.to_owned() }),
            });
        }
        pools.sort_by(|one, other| (&one.node, &one.pool).cmp(&(&other.node, &other.pool)));
        Self { pools }
    }
}

impl PulledImage {
    /// `None` if it is there.
    fn of(pull: &ImagePullProgress) -> Option<Self> {
        let ImagePullProgress { image, bytes, of, is_done, .. } = pull;
        let percent = bytes.saturating_mul(100).checked_div(*of);
        (!is_done).then(|| Self { image: image.clone(), bytes: *bytes, of: *of, percent })
    }
}
