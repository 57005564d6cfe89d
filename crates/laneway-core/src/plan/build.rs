//! From a workflow to its plan, or to all that is wrong with its graph.
//! Owns the sequence of checks; each check and each part of the plan has its own file beside this one.
//! Every part is linear in steps + edges, but for the heap of Kahn's order, which adds a factor
//! log(steps) on the steps alone.

use super::{
    Fault, Lane, Place, Plan, Position, Prewarm, cycle, groups, lanes, merges, needs, order, ordering,
};
use crate::definition::Workflow;
use crate::hash::Version;

impl Plan {
    /// Orders the workflow, or refuses it with every fault that could be found.
    ///
    /// Names are checked first. Wrong ones are left out of the graph, so that one run of the check also
    /// shows its cycles; groups are collapsed only when the steps themselves have an order.
    pub fn build(mut workflow: Workflow, version: Version) -> Result<Self, Vec<Fault>> {
        if workflow.steps.is_empty() {
            return Err(vec![Fault {
                message: "the workflow has no steps".to_owned(),
                at: Place::Steps,
                hint: Some("give it at least one step under `steps`".to_owned()),
            }]);
        }

        merges::add(&mut workflow);
        let mut faults = Vec::new();
        let resolved = needs::resolve(&workflow, &mut faults);
        let grouping = groups::resolve(&workflow, &resolved.names, &mut faults);
        drop(resolved.names);
        let needs = resolved.needs;
        let successors = needs::invert(&needs);

        let order = order::kahn(&successors);
        if order.len() < workflow.steps.len() {
            cycle::report(&workflow, &successors, &mut faults);
            return Err(faults);
        }
        ordering::report(&workflow, &successors, &mut faults);
        let lanes = lanes::arrange(&workflow, &grouping, &order, &successors, &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }

        let level_of = order::levels(&order, &needs);
        let sets = needs::share(&needs);
        Ok(Self {
            version,
            after: None,
            levels: order::by_level(&level_of),
            level_of,
            critical_path: order::critical_path(&order, &successors),
            prewarm: prewarm(&lanes),
            lanes,
            needs_set_of: sets.of,
            counted_in: sets.counted_in,
            needs_sets: sets.sets,
            by_name: by_name(&workflow),
            growing: growing(&workflow),
            group_of: grouping.of,
            members: grouping.members,
            order,
            needs,
            successors,
            workflow,
        })
    }
}

/// Pre-warming starts at the lane before the first parallel one, with that one's width.
fn prewarm(lanes: &[Lane]) -> Prewarm {
    let first = lanes.iter().enumerate().find_map(|(index, lane)| match lane {
        Lane::Group { steps, .. } if steps.len() > 1 => Some((index, steps.len())),
        Lane::Group { .. } | Lane::Step(_) => None,
    });
    match first {
        Some((index, width)) => Prewarm { lane: index.checked_sub(1), width },
        None => Prewarm { lane: None, width: 0 },
    }
}

fn growing(workflow: &Workflow) -> Vec<Position> {
    let steps = (0..).zip(&workflow.steps);
    steps.filter(|(_, step)| step.for_each.is_some()).map(|(position, _)| position).collect()
}

fn by_name(workflow: &Workflow) -> Vec<Position> {
    let steps = &workflow.steps;
    let mut positions: Vec<Position> = (0..).take(steps.len()).collect();
    positions.sort_unstable_by(|a, b| steps[*a as usize].name.cmp(&steps[*b as usize].name));
    positions
}

#[cfg(test)]
mod tests;
