//! Columns of a drawing: which steps stand in which, and bends where an edge passes a column.
//! Owns the graph that sweeps and placing work on; knows nothing of pixels but a node's height.

use std::ops::Range;

use super::place::{ABOVE_GROUP, AROUND_GROUP, NODE_HEIGHT};
use crate::plan::{Lane, Plan, Position};

/// Items are steps, numbered by position, and after them bends.
pub(super) struct Layers {
    pub(super) steps: usize,
    pub(super) layer_of: Vec<u32>,
    /// By item: its group's lane, for steps that have one.
    pub(super) group_of: Vec<Option<u32>>,
    /// Neighbours by item: one column to the left and to the right; any column in a coarse layout.
    pub(super) up: Vec<Vec<u32>>,
    pub(super) down: Vec<Vec<u32>>,
    /// Items of each column from top to bottom. Sweeps permute it.
    pub(super) order: Vec<Vec<u32>>,
    pub(super) edges: Vec<Route>,
    /// Without bends, to be swept once.
    pub(super) is_coarse: bool,
}

/// An edge of steps and the bends on its way, in order.
pub(super) struct Route {
    pub(super) from: Position,
    pub(super) to: Position,
    pub(super) bends: Range<u32>,
}

impl Layers {
    /// A step's column is its level, but the steps of a group share one, at which all of them can stand,
    /// so that a group is one box. The order of lanes makes that possible: a lane comes after its needs.
    pub(super) fn new(plan: &Plan, fine: usize) -> Self {
        let steps = plan.workflow.steps.len();
        let mut layer_of = vec![0; steps];
        let mut group_of = vec![None; steps];
        for (number, lane) in (0..).zip(&plan.lanes) {
            let (members, group) = match lane {
                Lane::Step(position) => (std::slice::from_ref(position), None),
                Lane::Group { steps, .. } => (steps.as_slice(), Some(number)),
            };
            let needs = members.iter().flat_map(|step| &plan.needs[*step as usize]);
            let layer = needs.map(|need| layer_of[*need as usize] + 1).max();
            for member in members {
                layer_of[*member as usize] = layer.unwrap_or(0);
                group_of[*member as usize] = group;
            }
        }

        let edges =
            (0_u32..).zip(&plan.needs).flat_map(|(to, needs)| needs.iter().map(move |from| (*from, to)));
        let passed = |(from, to): (u32, u32)| (layer_of[to as usize] - layer_of[from as usize] - 1) as usize;
        let size = steps + edges.clone().map(|edge| 1 + passed(edge)).sum::<usize>();
        let is_coarse = size > fine;

        let mut layers = Self {
            steps,
            up: vec![Vec::new(); steps],
            down: vec![Vec::new(); steps],
            order: Vec::new(),
            edges: Vec::new(),
            is_coarse,
            layer_of,
            group_of,
        };
        for (from, to) in edges {
            layers.route(from, to);
        }
        layers.arrange();
        layers
    }

    pub(super) fn is_bend(&self, item: u32) -> bool {
        item as usize >= self.steps
    }

    pub(super) fn height(&self, item: u32) -> i32 {
        if self.is_bend(item) { 0 } else { NODE_HEIGHT }
    }

    /// Room that a group's box takes above and below an item at its border; any member is taken for one.
    pub(super) fn above(&self, item: u32) -> i32 {
        self.group_of[item as usize].map_or(0, |_| ABOVE_GROUP)
    }

    pub(super) fn below(&self, item: u32) -> i32 {
        self.group_of[item as usize].map_or(0, |_| AROUND_GROUP)
    }

    fn route(&mut self, from: u32, to: u32) {
        let first = self.next_item();
        let mut last = from;
        if !self.is_coarse {
            for layer in self.layer_of[from as usize] + 1..self.layer_of[to as usize] {
                let bend = self.next_item();
                self.layer_of.push(layer);
                self.group_of.push(None);
                self.up.push(vec![last]);
                self.down.push(Vec::new());
                self.down[last as usize].push(bend);
                last = bend;
            }
        }
        self.down[last as usize].push(to);
        self.up[to as usize].push(last);
        self.edges.push(Route { from, to, bends: first..self.next_item() });
    }

    fn next_item(&self) -> u32 {
        u32::try_from(self.layer_of.len()).expect("bends are bounded by the fine layout")
    }

    /// The first order: as in the document, groups together at their first step, bends at the end.
    fn arrange(&mut self) {
        let count = self.layer_of.iter().max().map_or(0, |last| *last as usize + 1);
        self.order = vec![Vec::new(); count];
        for (item, layer) in (0..).zip(&self.layer_of) {
            self.order[*layer as usize].push(item);
        }
        let mut first_of = std::collections::HashMap::new();
        for (item, group) in (0_u32..).zip(&self.group_of) {
            if let Some(group) = group {
                first_of.entry(*group).or_insert(item);
            }
        }
        if first_of.is_empty() {
            return;
        }
        for column in &mut self.order {
            column.sort_by_key(|item| {
                let group = self.group_of[*item as usize];
                (group.map_or(*item, |group| first_of[&group]), *item)
            });
        }
    }
}
