//! Groups: from names to positions. Whether a group can be one lane is decided in `lanes.rs`.

use std::collections::HashSet;

use super::needs::Names;
use super::{Fault, Place, Position};
use crate::definition::{Workflow, shown};
use crate::nearest::Nearest;

pub(super) struct Grouping {
    /// By position: the index of its group.
    pub(super) of: Vec<Option<u32>>,
    /// By group: its steps, as listed.
    pub(super) members: Vec<Vec<Position>>,
}

/// Reports groups that are empty or take a name that is taken, and members that are unknown or taken.
pub(super) fn resolve(workflow: &Workflow, names: &Names, faults: &mut Vec<Fault>) -> Grouping {
    let mut grouping =
        Grouping { of: vec![None; workflow.steps.len()], members: Vec::with_capacity(workflow.groups.len()) };
    let mut nearest = Nearest::default();
    let all: HashSet<&str> = workflow.groups.iter().map(|g| g.name.as_str()).collect();
    let mut taken = HashSet::new();
    for (number, group) in (0_u32..).zip(&workflow.groups) {
        let mut refuse = |message: String, hint: &str| {
            faults.push(Fault { message, at: Place::Group(number as usize), hint: Some(hint.to_owned()) });
        };
        let name = &group.name;
        if group.steps.is_empty() {
            refuse(format!("group `{name}` has no steps"), "list the steps that belong to it, or remove it");
        }
        if names.contains_key(name.as_str()) {
            refuse(
                format!("group `{name}` has the name of a step"),
                "steps and groups share their names: choose another one",
            );
        } else if !taken.insert(name.as_str()) {
            refuse(format!("group `{name}` is defined twice"), "give one of them another name");
        }

        let mut members = Vec::with_capacity(group.steps.len());
        for (index, member) in group.steps.iter().enumerate() {
            let (message, hint) = match names.get(member.as_str()) {
                Some(position) => match grouping.of[*position as usize] {
                    None => {
                        grouping.of[*position as usize] = Some(number);
                        members.push(*position);
                        continue;
                    }
                    Some(other) if other == number => (
                        format!("step `{member}` stands twice in group `{name}`"),
                        Some("remove one of them".to_owned()),
                    ),
                    Some(other) => (
                        format!(
                            "step `{member}` is in two groups, `{}` and `{name}`",
                            workflow.groups[other as usize].name
                        ),
                        Some("a step belongs to one group at most".to_owned()),
                    ),
                },
                None if all.contains(member.as_str()) => (
                    format!("group `{name}` lists the group `{member}`"),
                    Some("a group is made of steps: list those of the other one".to_owned()),
                ),
                None => (
                    format!("group `{name}` lists {}, which is not a step", shown(member)),
                    nearest.hint(member, names_of_steps(workflow)),
                ),
            };
            let at = Place::Member { group: number as usize, index };
            faults.push(Fault { message, at, hint });
        }
        grouping.members.push(members);
    }
    grouping
}

fn names_of_steps(workflow: &Workflow) -> impl Iterator<Item = &str> {
    let steps = workflow.steps.iter().filter(|step| step.merges().is_none());
    steps.map(|step| step.name.as_str())
}
