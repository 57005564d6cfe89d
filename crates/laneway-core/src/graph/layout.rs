//! Where everything stands: a layered layout, left to right, in the manner of Sugiyama.
//! `layers.rs` gives each step a column and breaks long edges, `sweep.rs` orders the columns so that few
//! edges cross, `place.rs` turns order into heights. The same plan always gives the same layout.
//!
//! Cost is bounded: a graph with more than [`FINE`] nodes, edges and bends in sum is laid out coarsely,
//! with straight edges without bends and one sweep, in O(edges + steps x log(steps)).

use serde::Serialize;

use super::layers::Layers;
use super::{place, sweep};
use crate::plan::{Lane, Plan, Position};

/// Nodes, edges and bends up to which the layout is fine. Twelve sweeps over that many stay well below a
/// second; what is larger cannot be looked at as a whole anyway.
pub(super) const FINE: usize = 100_000;

/// Pixels around the whole.
const MARGIN: i32 = 24;
/// Of a node's label: a monospaced letter at 13 px, and the space around the text.
const LETTER: i32 = 8;
const AROUND_LABEL: i32 = 24;
const NARROWEST: i32 = 64;
/// More letters do not make a node wider: nothing readable has them.
const MOST_LETTERS: usize = 200;
/// Between a column and the next, more where many edges share the space.
const COLUMN_GAP: i32 = 56;
const WIDEST_COLUMN_GAP: i32 = 200;

/// A drawing in pixels; x grows to the right with time, y downwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layout {
    pub width: i32,
    pub height: i32,
    /// By position.
    pub nodes: Vec<Node>,
    /// By the position they lead to, then by the one they come from.
    pub edges: Vec<Edge>,
    /// Around the steps of each group, in the order of lanes.
    pub groups: Vec<Frame>,
}

/// A step's box; `x` and `y` are its upper left corner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    pub position: Position,
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
    pub layer: u32,
}

/// A line from the right side of `from` to the left side of `to`, which needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: Position,
    pub to: Position,
    pub points: Vec<(i32, i32)>,
}

/// A group's box, with room for its name above the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Frame {
    pub name: String,
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

/// Lays out a plan.
pub fn layout(plan: &Plan) -> Layout {
    within(plan, FINE)
}

/// [`layout`] with the bound as a parameter, so that tests see both kinds on small graphs.
fn within(plan: &Plan, fine: usize) -> Layout {
    let mut layers = Layers::new(plan, fine);
    sweep::order(&mut layers);
    let centres = place::centres(&layers);
    let columns = columns(plan, &layers);

    let top = (0_u32..)
        .zip(&centres)
        .map(|(item, centre)| centre - layers.height(item) / 2 - layers.above(item))
        .min()
        .unwrap_or(0);
    let bottom = (0_u32..)
        .zip(&centres)
        .map(|(item, centre)| centre + layers.height(item) / 2 + layers.below(item))
        .max()
        .unwrap_or(0);
    let y = |item: u32| centres[item as usize] - top + MARGIN;

    let nodes: Vec<Node> = (0..)
        .take(layers.steps)
        .map(|position| {
            let layer = layers.layer_of[position as usize];
            let (x, width) = columns[layer as usize];
            let height = layers.height(position);
            Node { position, x, y: y(position) - height / 2, width, height, layer }
        })
        .collect();
    let edges = layers.edges.iter().map(|edge| {
        let (from_x, from_width) = columns[layers.layer_of[edge.from as usize] as usize];
        let (to_x, _) = columns[layers.layer_of[edge.to as usize] as usize];
        let mut points = vec![(from_x + from_width, y(edge.from))];
        for bend in edge.bends.clone() {
            let (x, width) = columns[layers.layer_of[bend as usize] as usize];
            // Level across the column, so that the line slants only between columns and meets no box.
            points.extend([(x, y(bend)), (x + width, y(bend))]);
        }
        points.push((to_x, y(edge.to)));
        Edge { from: edge.from, to: edge.to, points }
    });
    Layout {
        width: columns.last().map_or(0, |(x, width)| x + width) + MARGIN,
        height: bottom - top + 2 * MARGIN,
        edges: edges.collect(),
        groups: frames(plan, &nodes),
        nodes,
    }
}

/// x and width of each column: as wide as its longest label, with a gap that grows with its edges.
fn columns(plan: &Plan, layers: &Layers) -> Vec<(i32, i32)> {
    let letters = |name: &str| {
        let count = name.chars().count().min(MOST_LETTERS);
        i32::try_from(count).expect("at most MOST_LETTERS") * LETTER
    };
    let mut widths = vec![NARROWEST; layers.order.len()];
    let mut grow = |position: Position, wanted: i32| {
        let width = &mut widths[layers.layer_of[position as usize] as usize];
        *width = wanted.max(*width);
    };
    for (position, step) in (0..).zip(&plan.workflow.steps) {
        grow(position, letters(&step.name) + AROUND_LABEL);
    }
    for lane in &plan.lanes {
        match lane {
            Lane::Step(_) => {}
            Lane::Group { name, steps } => {
                steps.iter().take(1).for_each(|step| grow(*step, letters(name)));
            }
        }
    }
    let mut x = MARGIN;
    let mut columns = Vec::with_capacity(widths.len());
    for (layer, width) in widths.into_iter().enumerate() {
        columns.push((x, width));
        let leaving: usize = layers.order[layer].iter().map(|item| layers.down[*item as usize].len()).sum();
        let room = i32::try_from(leaving).unwrap_or(i32::MAX).saturating_mul(2);
        x += width + COLUMN_GAP.saturating_add(room).min(WIDEST_COLUMN_GAP);
    }
    columns
}

fn frames(plan: &Plan, nodes: &[Node]) -> Vec<Frame> {
    let frame = |lane: &Lane| match lane {
        Lane::Step(_) => None,
        Lane::Group { name, steps } => {
            let nodes = || steps.iter().map(|step| &nodes[*step as usize]);
            let first = nodes().min_by_key(|node| node.y)?;
            let bottom = nodes().map(|node| node.y + node.height).max()?;
            let y = first.y - place::ABOVE_GROUP;
            Some(Frame {
                name: name.clone(),
                x: first.x - place::AROUND_GROUP,
                y,
                width: first.width + 2 * place::AROUND_GROUP,
                height: bottom + place::AROUND_GROUP - y,
            })
        }
    };
    plan.lanes.iter().filter_map(frame).collect()
}

#[cfg(test)]
mod tests;
