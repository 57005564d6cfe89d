//! 100,000 steps. What a plan holds must grow with steps + edges, whatever the shape, because everything
//! that works through a plan grows with what it holds. Only tests.

use super::Plan;
use super::sample::{build, numbered};

const MANY: usize = 100_000;

/// Entries of all lists of a plan that could grow faster than the graph.
fn entries(plan: &Plan) -> usize {
    let lists = [&plan.needs, &plan.successors, &plan.levels, &plan.counted_in];
    lists.iter().map(|list| list.iter().map(Vec::len).sum::<usize>()).sum::<usize>()
        + plan.needs_sets.iter().map(|set| set.needs.len() + set.waiters.len()).sum::<usize>()
        + [plan.order.len(), plan.lanes.len(), plan.critical_path.len()].iter().sum::<usize>()
}

fn check(needs: &[Vec<usize>]) -> Plan {
    let edges: usize = needs.iter().map(Vec::len).sum();
    let plan = build(numbered(needs)).expect("no cycle");
    assert!(entries(&plan) <= 6 * needs.len() + 4 * edges);
    plan
}

fn chain(count: usize) -> Vec<Vec<usize>> {
    (0..count).map(|n| n.checked_sub(1).into_iter().collect()).collect()
}

/// Stages of `width` steps, each needing ten of the stage before.
fn layered(count: usize, width: usize) -> Vec<Vec<usize>> {
    let before = |n: usize| (n / width - 1) * width;
    let needs = |n: usize| (0..10).map(|k| before(n) + (n * 7 + k * 13) % width).collect();
    (0..count).map(|n| if n < width { Vec::new() } else { needs(n) }).collect()
}

/// Up to ten needs anywhere before, from a fixed generator so that a failure comes back.
fn random(count: usize) -> Vec<Vec<usize>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("below a usize")
    };
    let needs = |n: usize| match n {
        0 => Vec::new(),
        n => (0..next(11)).map(|_| next(n)).collect(),
    };
    (0..count).map(needs).collect()
}

#[test]
fn a_chain_of_100_000_steps_is_planned() {
    let plan = check(&chain(MANY));
    assert_eq!(plan.critical_path.len(), MANY);
    assert_eq!(plan.width(), 1);
}

#[test]
fn a_flat_workflow_of_100_000_steps_is_planned() {
    let plan = check(&vec![Vec::new(); MANY]);
    assert_eq!(plan.width(), MANY);
}

#[test]
fn stages_of_100_000_steps_with_ten_needs_each_are_planned() {
    let plan = check(&layered(MANY, 1_000));
    assert_eq!(plan.levels.len(), 100);
}

#[test]
fn a_random_graph_of_100_000_steps_is_planned() {
    let plan = check(&random(MANY));
    assert_eq!(plan.order.len(), MANY);
}

#[test]
fn a_stage_behind_a_stage_costs_one_countdown_for_each_step() {
    let stage = |n: usize| {
        if n < 300 { Vec::new() } else { (0..300).collect() }
    };
    let plan = build(numbered(&(0..600).map(stage).collect::<Vec<_>>())).expect("no cycle");
    assert_eq!(plan.needs_sets.len(), 1);
    assert_eq!(plan.counted_in.iter().map(Vec::len).sum::<usize>(), 300);
}

#[test]
fn a_ring_of_100_000_steps_is_refused() {
    let mut ring = chain(MANY);
    ring[0].push(MANY - 1);
    assert_eq!(build(numbered(&ring)).expect_err("a cycle").len(), 1);
}

#[test]
fn wrong_names_everywhere_are_all_reported_and_hints_stay_bounded() {
    let mut workflow = numbered(&chain(MANY));
    for step in &mut workflow.steps {
        step.needs = vec![format!("{}x", step.name)];
    }
    let faults = build(workflow).expect_err("no such steps");
    assert_eq!(faults.len(), MANY);
    assert!(faults[0].hint.is_some());
    assert!(faults[MANY - 1].hint.is_none());
}
