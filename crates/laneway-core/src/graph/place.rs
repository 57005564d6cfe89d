//! From order to heights: every item as near as can be to its neighbours, none nearer to the next one in
//! its column than allowed. Each column is solved exactly, by pooling adjacent violators, in linear time.

use super::layers::Layers;

pub(super) const NODE_HEIGHT: i32 = 32;
/// Room of a group's box around its steps, and above them for its name.
pub(super) const AROUND_GROUP: i32 = 10;
pub(super) const ABOVE_GROUP: i32 = 28;

const NODE_GAP: i32 = 16;
const BEND_GAP: i32 = 12;

/// Passes, alternately to the right and to the left. The last ones look both ways, so that both sides
/// share what is left.
const PASSES: usize = 10;
const PASSES_BOTH_WAYS: usize = 4;

/// How much more a bend pulls than a step: long edges should be straight first.
const BEND_WEIGHT: f64 = 4.0;

/// The drawing may be higher than its tallest column by a quarter of that and by this. Without a bound a
/// graph in which each column hangs on the top of the one before would climb without end.
const SLACK: i32 = 64;
const SLACK_SHARE: i32 = 8;

/// The middle of every item, in pixels from an arbitrary origin.
pub(super) fn centres(layers: &Layers) -> Vec<i32> {
    let offsets: Vec<Vec<i32>> = layers.order.iter().map(|items| stack(layers, items)).collect();
    let mut centres = vec![0; layers.layer_of.len()];
    for (items, offsets) in layers.order.iter().zip(&offsets) {
        let half = offsets.last().map_or(0, |last| last / 2);
        for (item, offset) in items.iter().zip(offsets) {
            centres[*item as usize] = offset - half;
        }
    }
    let tallest = offsets.iter().filter_map(|stack| stack.last()).max();
    let half = tallest.map_or(0, |tallest| tallest / 2 + tallest / SLACK_SHARE + SLACK);
    let passes = if layers.is_coarse { 1 } else { PASSES };
    for pass in 0..passes {
        let mut columns: Vec<usize> = (0..layers.order.len()).collect();
        if pass % 2 == 1 {
            columns.reverse();
        }
        for column in columns {
            let pull = |item: u32| {
                let up = layers.up[item as usize].iter();
                let down = layers.down[item as usize].iter();
                if pass + PASSES_BOTH_WAYS >= PASSES {
                    mean(layers, &centres, item, up.chain(down))
                } else if pass % 2 == 0 {
                    mean(layers, &centres, item, up)
                } else {
                    mean(layers, &centres, item, down)
                }
            };
            let items = &layers.order[column];
            let solved = settle(layers, items, &offsets[column], half, |item| {
                pull(item).unwrap_or(f64::from(centres[item as usize]))
            });
            for (item, centre) in items.iter().zip(solved) {
                centres[*item as usize] = centre;
            }
        }
    }
    centres
}

/// Where an item is pulled to. A piece of an edge between two bends counts more than its ends do.
fn mean<'a>(
    layers: &Layers,
    centres: &[i32],
    item: u32,
    neighbours: impl Iterator<Item = &'a u32>,
) -> Option<f64> {
    let (sum, weight) = neighbours.fold((0.0, 0.0), |(sum, weight), other| {
        let is_inner = layers.is_bend(item) && layers.is_bend(*other);
        let pull = if is_inner { BEND_WEIGHT } else { 1.0 };
        let centre = f64::from(centres[*other as usize]);
        (sum + pull * centre, weight + pull)
    });
    (weight > 0.0).then(|| sum / weight)
}

/// The middles of a column's items when they are stacked as densely as allowed.
fn stack(layers: &Layers, items: &[u32]) -> Vec<i32> {
    let mut at = 0;
    let mut offsets = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if let Some(before) = index.checked_sub(1).map(|index| items[index]) {
            at += distance(layers, before, *item);
        }
        offsets.push(at);
    }
    offsets
}

fn distance(layers: &Layers, upper: u32, lower: u32) -> i32 {
    let gap = if layers.is_bend(upper) || layers.is_bend(lower) { BEND_GAP } else { NODE_GAP };
    let boxes = (layers.height(upper) + layers.height(lower)) / 2;
    if layers.group_of[upper as usize] == layers.group_of[lower as usize] {
        boxes + gap
    } else {
        boxes + gap + layers.below(upper) + layers.above(lower)
    }
}

/// The least sum of squared distances from the wanted heights that keeps order and distances.
///
/// Without its offset an item may stand at any height not above its predecessor's, so this is an isotonic
/// regression: neighbours that want to pass each other are pooled at their mean. Heights are rounded
/// before the whole offsets are added back, which keeps the distances exact. Cutting the solution off at
/// `half` above and below the middle keeps it the best one within these bounds.
fn settle(
    layers: &Layers,
    items: &[u32],
    offsets: &[i32],
    half: i32,
    wanted: impl Fn(u32) -> f64,
) -> Vec<i32> {
    struct Pool {
        sum: f64,
        weight: f64,
        len: usize,
    }
    let mut pools: Vec<Pool> = Vec::with_capacity(items.len());
    for (item, offset) in items.iter().zip(offsets) {
        let weight = if layers.is_bend(*item) { BEND_WEIGHT } else { 1.0 };
        let mut pool = Pool { sum: weight * (wanted(*item) - f64::from(*offset)), weight, len: 1 };
        while let Some(before) = pools.pop_if(|before| before.sum / before.weight >= pool.sum / pool.weight) {
            pool.sum += before.sum;
            pool.weight += before.weight;
            pool.len += before.len;
        }
        pools.push(pool);
    }
    let stacked = offsets.last().copied().unwrap_or(0);
    let heights = pools.into_iter().flat_map(|pool| {
        let height = (pool.sum / pool.weight).round() as i32;
        std::iter::repeat_n(height.clamp(-half, half - stacked), pool.len)
    });
    heights.zip(offsets).map(|(height, offset)| height + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::sample::{build, numbered};

    #[test]
    fn a_drawing_does_not_climb_with_every_column() {
        // Forty columns of twenty; all steps need the first of the column before.
        let needs = |n: usize| (n / 20).checked_sub(1).map(|column| column * 20);
        let needs: Vec<Vec<usize>> = (0..800).map(|n| needs(n).into_iter().collect()).collect();
        let layers = Layers::new(&build(numbered(&needs)).expect("no cycle"), usize::MAX);
        let centres = centres(&layers);
        let (top, bottom) = (centres.iter().min(), centres.iter().max());
        let height = bottom.expect("some") - top.expect("some");
        let column = 19 * (NODE_HEIGHT + NODE_GAP);
        assert!(height <= column + column / 4 + 2 * SLACK, "{height}");
    }

    #[test]
    fn a_chain_is_straight() {
        let chain = (0..20_usize).map(|n| n.checked_sub(1).into_iter().collect());
        let plan = build(numbered(&chain.collect::<Vec<_>>())).expect("no cycle");
        let centres = centres(&Layers::new(&plan, usize::MAX));
        assert!(centres.iter().all(|centre| *centre == centres[0]));
    }
}
