//! `needs`: from names to positions, and back into shared sets.
//! Owns what can be wrong with a single entry; cycles are found in `cycle.rs`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Fault, NeedsSet, Place, Position};
use crate::definition::{Step, Workflow, shown};
use crate::nearest::Nearest;

/// Where each step of the document stands.
pub(super) type Names<'a> = HashMap<&'a str, Position>;

pub(super) struct Resolved<'a> {
    pub(super) names: Names<'a>,
    /// By position; sorted, without repeats. Faulty entries are left out.
    pub(super) needs: Vec<Vec<Position>>,
}

/// Distinct needs lists, and who stands in which.
pub(super) struct Shared {
    pub(super) sets: Vec<NeedsSet>,
    pub(super) of: Vec<Option<u32>>,
    pub(super) counted_in: Vec<Vec<u32>>,
}

/// Turns names into positions and reports names that are defined twice, unknown, or one's own.
pub(super) fn resolve<'a>(workflow: &'a Workflow, faults: &mut Vec<Fault>) -> Resolved<'a> {
    let mut names = Names::with_capacity(workflow.steps.len());
    let of_document = |(_, step): &(Position, &Step)| step.merges().is_none();
    for (position, step) in (0..).zip(&workflow.steps).filter(of_document) {
        match names.entry(step.name.as_str()) {
            Entry::Vacant(free) => {
                free.insert(position);
            }
            Entry::Occupied(_) => faults.push(Fault {
                message: format!("step `{}` is defined twice", step.name),
                at: Place::Step(position),
                hint: Some("give one of them another name".to_owned()),
            }),
        }
    }

    // Who needs a group needs its merge. A group with the name of a step is refused elsewhere.
    let merges = (0..).zip(&workflow.steps).filter_map(|(position, step)| {
        let group = &workflow.groups[step.merges()? as usize];
        Some((group.name.as_str(), position))
    });
    let merges: Names<'_> = merges.collect();
    let mut nearest = Nearest::default();
    let mut needs = Vec::with_capacity(workflow.steps.len());
    for (position, step) in (0..).zip(&workflow.steps) {
        let mut found = Vec::with_capacity(step.needs.len());
        for (index, need) in step.needs.iter().enumerate() {
            let is_merge = step.merges().is_some();
            let merge = || if is_merge { None } else { merges.get(need.as_str()) };
            let (message, hint) = match names.get(need.as_str()).or_else(merge) {
                // What is no member is told where the group lists it.
                None if is_merge => continue,
                Some(other) if *other != position => {
                    found.push(*other);
                    continue;
                }
                Some(_) => (
                    format!("step `{need}` needs itself"),
                    Some(format!("remove `{need}` from its own `needs`")),
                ),
                None => (
                    format!("step `{}` needs {}, which is not a step", step.name, shown(need)),
                    nearest.hint(need, steps_and_groups(workflow)),
                ),
            };
            let at = Place::Need { step: position, index };
            faults.push(Fault { message, at, hint });
        }
        found.sort_unstable();
        found.dedup();
        needs.push(found);
    }
    Resolved { names, needs }
}

/// What a step can need.
fn steps_and_groups(workflow: &Workflow) -> impl Iterator<Item = &str> {
    let steps = workflow.steps.iter().filter(|step| step.merges().is_none());
    let groups = workflow.groups.iter().map(|group| group.name.as_str());
    steps.map(|step| step.name.as_str()).chain(groups)
}

/// Who needs whom, from who is needed by whom. The result is sorted because positions are visited in order.
pub(super) fn invert(needs: &[Vec<Position>]) -> Vec<Vec<Position>> {
    let mut counts = vec![0_usize; needs.len()];
    for need in needs.iter().flatten() {
        counts[*need as usize] += 1;
    }
    let mut successors: Vec<Vec<Position>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (position, list) in (0..).zip(needs) {
        for need in list {
            successors[*need as usize].push(position);
        }
    }
    successors
}

/// Gives steps with equal needs one set, numbered in the order in which they first appear.
pub(super) fn share(needs: &[Vec<Position>]) -> Shared {
    // With room for all: growing would hash every list again.
    let mut known: HashMap<&[Position], u32> = HashMap::with_capacity(needs.len());
    let mut sets: Vec<NeedsSet> = Vec::new();
    let mut of = Vec::with_capacity(needs.len());
    let mut counted_in = vec![Vec::new(); needs.len()];
    for (position, list) in (0..).zip(needs) {
        if list.is_empty() {
            of.push(None);
            continue;
        }
        let next = u32::try_from(sets.len()).expect("there are no more sets than positions");
        let set = *known.entry(list.as_slice()).or_insert(next);
        if set == next {
            sets.push(NeedsSet { needs: list.clone(), waiters: Vec::new() });
            for need in list {
                counted_in[*need as usize].push(set);
            }
        }
        sets[set as usize].waiters.push(position);
        of.push(Some(set));
    }
    Shared { sets, of, counted_in }
}
