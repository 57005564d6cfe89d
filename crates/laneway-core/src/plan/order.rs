//! Order, levels and critical path of a graph without cycles. Works on positions only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Position;

/// Kahn's order; among those that are ready the smallest position comes first.
/// Shorter than the graph if that has a cycle.
///
/// Costs O(edges + steps x log(ready steps)): the heap holds each step once and edges only count down.
pub(super) fn kahn(successors: &[Vec<Position>]) -> Vec<Position> {
    let mut open = vec![0_u32; successors.len()];
    for successor in successors.iter().flatten() {
        open[*successor as usize] += 1;
    }
    let mut ready: BinaryHeap<Reverse<Position>> =
        (0..).zip(&open).filter(|(_, open)| **open == 0).map(|(position, _)| Reverse(position)).collect();
    let mut order = Vec::with_capacity(successors.len());
    while let Some(Reverse(position)) = ready.pop() {
        order.push(position);
        for successor in &successors[position as usize] {
            let open = &mut open[*successor as usize];
            *open -= 1;
            if *open == 0 {
                ready.push(Reverse(*successor));
            }
        }
    }
    order
}

/// By position: the length of the longest path from a root.
pub(super) fn levels(order: &[Position], needs: &[Vec<Position>]) -> Vec<u32> {
    let mut level_of = vec![0; needs.len()];
    for position in order {
        level_of[*position as usize] =
            needs[*position as usize].iter().map(|need| level_of[*need as usize] + 1).max().unwrap_or(0);
    }
    level_of
}

/// Positions of each level, in definition order.
pub(super) fn by_level(level_of: &[u32]) -> Vec<Vec<Position>> {
    let count = level_of.iter().max().map_or(0, |last| *last as usize + 1);
    let mut levels = vec![Vec::new(); count];
    for (position, level) in (0..).zip(level_of) {
        levels[*level as usize].push(position);
    }
    levels
}

/// One longest path by number of steps. Among equals each of its steps is the earliest in the document.
pub(super) fn critical_path(order: &[Position], successors: &[Vec<Position>]) -> Vec<Position> {
    // How many steps the longest path from here on has, this one included.
    let mut length = vec![1_u32; successors.len()];
    for position in order.iter().rev() {
        for successor in &successors[*position as usize] {
            let through = length[*successor as usize] + 1;
            let length = &mut length[*position as usize];
            *length = through.max(*length);
        }
    }
    // `min_by_key` keeps the first of equals. A longest path starts at a root: a step before would lengthen it.
    let mut next =
        (0..).zip(&length).min_by_key(|(_, length)| Reverse(**length)).map(|(position, _)| position);
    let mut path = Vec::new();
    while let Some(position) = next {
        path.push(position);
        next = successors[position as usize]
            .iter()
            .copied()
            .find(|successor| length[*successor as usize] + 1 == length[position as usize]);
    }
    path
}
