//! The graph of a plan as the page draws it: where each step stands, by the layout of core. Items of a `for_each` are not in it: their
//! step stands for them.

use laneway_core::definition::{Action, Step};
use laneway_core::graph::{self, Frame, layout};
use laneway_core::plan::{Plan, Position};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A drawing in pixels; x grows to the right with time, y downwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    pub width: i32,
    pub height: i32,
    /// In definition order, behind them the merges of groups.
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
    pub groups: Vec<GraphGroup>,
    /// The steps of one longest path, from its root on.
    pub critical_path: Vec<String>,
}

/// A step's box; `x` and `y` are its upper left corner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphNode {
    pub step: String,
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
    /// Its column, from 0 on.
    pub layer: u32,
    /// The group in which it is a member.
    pub group: Option<String>,
    /// process, container, call, function, queue, wait, workflow, merge or callback.
    pub kind: String,
    /// One task for each item of a list.
    pub for_each: bool,
    /// The signal that it waits for, of one that waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// A line from the right side of a box to the left side of one that needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphEdge {
    /// Index of a node.
    pub from: u32,
    pub to: u32,
    /// Each `[x, y]`.
    #[schema(value_type = Vec<Vec<i32>>)]
    pub points: Vec<(i32, i32)>,
}

/// A group's box, with room for its name above the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphGroup {
    pub name: String,
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

impl Graph {
    pub fn of(plan: &Plan) -> Self {
        let drawn = layout(plan);
        let node = |node: &graph::Node| {
            let step = plan.step(node.position);
            GraphNode {
                step: step.name.clone(),
                x: node.x,
                y: node.y,
                width: node.width,
                height: node.height,
                layer: node.layer,
                group: plan.group_of(node.position).map(|group| plan.group(group).name.clone()),
                kind: kind(step).to_owned(),
                for_each: step.for_each.is_some(),
                signal: step.wait().and_then(|wait| wait.signal()).map(str::to_owned),
            }
        };
        let edge = |edge: graph::Edge| GraphEdge { from: edge.from, to: edge.to, points: edge.points };
        let group = |frame: Frame| {
            let Frame { name, x, y, width, height } = frame;
            GraphGroup { name, x, y, width, height }
        };
        let name = |position: &Position| plan.step(*position).name.clone();
        Self {
            width: drawn.width,
            height: drawn.height,
            nodes: drawn.nodes.iter().map(node).collect(),
            edges: drawn.edges.into_iter().map(edge).collect(),
            groups: drawn.groups.into_iter().map(group).collect(),
            critical_path: plan.critical_path.iter().map(name).collect(),
        }
    }
}

fn kind(step: &Step) -> &'static str {
    match &step.action {
        Action::Run { .. } | Action::Command { .. } if step.housing().is_some() => "container",
        Action::Run { .. } | Action::Command { .. } => "process",
        Action::Function { .. } => "function",
        Action::Queue { .. } => "queue",
        Action::Call { .. } => "call",
        Action::Wait(wait) if wait.child().is_some() => "workflow",
        Action::Wait(_) => "wait",
        Action::Merge { .. } => "merge",
        Action::Post { .. } => "callback",
    }
}
