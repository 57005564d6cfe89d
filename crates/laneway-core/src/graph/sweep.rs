//! Barycentre sweeps: each item moves to the mean height of its neighbours in the column before, from
//! left to right and back, while that lowers the number of crossings. The steps of a group stay together.

use std::collections::HashMap;

use super::layers::Layers;

/// Sweeps in all, each in one direction. More hardly ever find a better order.
const SWEEPS: usize = 12;
/// Sweeps in a row that may fail to find a better one.
const PATIENCE: usize = 3;

/// Reorders the columns. The best order seen is kept, and the first one is never made worse.
pub(super) fn order(layers: &mut Layers) {
    if layers.is_coarse {
        // Crossings of edges that jump over columns cannot be counted cheaply; once is mostly better than never.
        sweep(layers, Direction::Right);
        return;
    }
    let mut best = layers.order.clone();
    let mut fewest = crossings(layers);
    let mut failed = 0;
    for number in 0..SWEEPS {
        if fewest == 0 || failed == PATIENCE {
            break;
        }
        let direction = if number % 2 == 0 { Direction::Right } else { Direction::Left };
        sweep(layers, direction);
        let found = crossings(layers);
        if found < fewest {
            fewest = found;
            best.clone_from(&layers.order);
            failed = 0;
        } else {
            failed += 1;
        }
    }
    layers.order = best;
}

/// How many pairs of edges between neighbouring columns cross, in O(edges x log(items)).
pub(super) fn crossings(layers: &Layers) -> u64 {
    let mut rank = vec![0_usize; layers.layer_of.len()];
    let mut total = 0;
    let mut ends = Vec::new();
    for columns in layers.order.windows(2) {
        for (index, item) in columns[1].iter().enumerate() {
            rank[*item as usize] = index;
        }
        // Edges by where they start; those that end above an earlier one's end cross it.
        let mut passed = Fenwick::new(columns[1].len());
        let mut count = 0;
        for item in &columns[0] {
            ends.clear();
            ends.extend(layers.down[*item as usize].iter().map(|next| rank[*next as usize]));
            ends.sort_unstable();
            // Edges from one item do not cross each other, so they are counted before they are added.
            total += ends.iter().map(|end| count - passed.up_to(*end)).sum::<u64>();
            for end in &ends {
                passed.add(*end);
                count += 1;
            }
        }
    }
    total
}

#[derive(Clone, Copy)]
enum Direction {
    Left,
    Right,
}

fn sweep(layers: &mut Layers, direction: Direction) {
    // Heights within a column run from 0 to 1, so that columns of unlike length can be compared.
    let mut height = vec![0.0_f64; layers.layer_of.len()];
    let columns: Vec<usize> = match direction {
        Direction::Right => (0..layers.order.len()).collect(),
        Direction::Left => (0..layers.order.len()).rev().collect(),
    };
    for column in columns {
        let mut items = std::mem::take(&mut layers.order[column]);
        spread(&items, &mut height);
        for item in &items {
            let neighbours = match direction {
                Direction::Right => &layers.up[*item as usize],
                Direction::Left => &layers.down[*item as usize],
            };
            if !neighbours.is_empty() {
                let sum: f64 = neighbours.iter().map(|other| height[*other as usize]).sum();
                height[*item as usize] = sum / neighbours.len() as f64;
            }
        }
        sort(&mut items, &height, &layers.group_of);
        spread(&items, &mut height);
        layers.order[column] = items;
    }
}

fn spread(items: &[u32], height: &mut [f64]) {
    for (index, item) in items.iter().enumerate() {
        height[*item as usize] = (index as f64 + 0.5) / items.len() as f64;
    }
}

/// By height; a group stands at the mean of its steps. The sort is stable, so ties keep their order.
fn sort(items: &mut [u32], height: &[f64], group_of: &[Option<u32>]) {
    let mut groups: HashMap<u32, (f64, f64)> = HashMap::new();
    for item in items.iter() {
        if let Some(group) = group_of[*item as usize] {
            let (sum, count) = groups.entry(group).or_default();
            *sum += height[*item as usize];
            *count += 1.0;
        }
    }
    let block = |item: u32| match group_of[item as usize] {
        Some(group) => (groups[&group].0 / groups[&group].1, group),
        // Any number does: without a group an item is its own block, and of equal height with others.
        None => (height[item as usize], u32::MAX),
    };
    items.sort_by(|a, b| {
        let ((a_block, a_group), (b_block, b_group)) = (block(*a), block(*b));
        a_block
            .total_cmp(&b_block)
            .then(a_group.cmp(&b_group))
            .then(height[*a as usize].total_cmp(&height[*b as usize]))
    });
}

/// Counts of a prefix in O(log n).
struct Fenwick(Vec<u64>);

impl Fenwick {
    fn new(len: usize) -> Self {
        Self(vec![0; len + 1])
    }

    fn add(&mut self, index: usize) {
        let mut node = index + 1;
        while node < self.0.len() {
            self.0[node] += 1;
            node += node & node.wrapping_neg();
        }
    }

    /// How many were added at `index` or below it.
    fn up_to(&self, index: usize) -> u64 {
        let mut node = index + 1;
        let mut sum = 0;
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::sample::{acyclic, build, numbered, workflow};

    /// Every pair of edges, one by one.
    fn counted_crossings(layers: &Layers) -> u64 {
        let mut rank = vec![0; layers.layer_of.len()];
        for column in &layers.order {
            for (index, item) in column.iter().enumerate() {
                rank[*item as usize] = index;
            }
        }
        let edges: Vec<(u32, usize, usize)> = (0..layers.layer_of.len())
            .flat_map(|from| layers.down[from].iter().map(move |to| (from, *to as usize)))
            .map(|(from, to)| (layers.layer_of[from], rank[from], rank[to]))
            .collect();
        let mut count = 0;
        for (index, a) in edges.iter().enumerate() {
            for b in &edges[index + 1..] {
                let crosses = (a.1 < b.1 && a.2 > b.2) || (a.1 > b.1 && a.2 < b.2);
                count += u64::from(a.0 == b.0 && crosses);
            }
        }
        count
    }

    #[test]
    fn a_crossing_that_can_be_avoided_is() {
        let steps: [(&str, &[&str]); 4] = [("a", &[]), ("b", &[]), ("x", &["b"]), ("y", &["a"])];
        let mut layers = Layers::new(&build(workflow(&steps)).expect("a plan"), 100);
        assert_eq!(crossings(&layers), 1);
        order(&mut layers);
        assert_eq!(crossings(&layers), 0);
    }

    proptest! {
        #[test]
        fn crossings_are_counted_right_and_never_grow(needs in acyclic(16)) {
            let mut layers = Layers::new(&build(numbered(&needs)).expect("no cycle"), 10_000);
            let before = crossings(&layers);
            prop_assert_eq!(before, counted_crossings(&layers));
            order(&mut layers);
            prop_assert_eq!(crossings(&layers), counted_crossings(&layers));
            prop_assert!(crossings(&layers) <= before);
        }
    }
}
