//! The merge of each group, as a step of its own that the planner adds behind all steps of the document: so positions of
//! those stay what they are in the document. Its name has a `/`, which no name in a document can have.

use super::{Plan, Position};
use crate::definition::{Action, Group, OnLost, Retry, Step, When, Workflow};

/// The name of the step that merges a group.
pub fn merge_name(group: &str) -> String {
    format!("{group}/merge")
}

/// Adds them to a workflow as it was read, in the order of the groups.
pub(super) fn add(workflow: &mut Workflow) {
    let merges = (0..).zip(&workflow.groups).map(|(number, group)| merge(number, group));
    let merges: Vec<Step> = merges.collect();
    workflow.steps.extend(merges);
}

fn merge(number: u32, group: &Group) -> Step {
    Step {
        name: merge_name(&group.name),
        action: Action::Merge { group: number },
        needs: group.steps.clone(),
        // Whether there is something to merge is asked when all of them have ended (`group.rs`).
        when: When::AllDone,
        condition: None,
        env: Vec::new(),
        workdir: None,
        timeout: None,
        retry: Retry::default(),
        on_lost: OnLost::Retry,
        demands: None,
        files: None,
        housing: None,
        cache: None,
        for_each: None,
    }
}

impl Plan {
    /// The group in which a step is a member, by its number.
    pub fn group_of(&self, position: Position) -> Option<u32> {
        self.group_of.get(position as usize).copied().flatten()
    }

    pub fn group(&self, number: u32) -> &Group {
        &self.workflow.groups[number as usize]
    }

    /// The step that merges a group. Those of all groups stand behind the steps of the document, in their order.
    pub fn merge_of(&self, group: u32) -> Position {
        let first = self.workflow.steps.len() - self.workflow.groups.len();
        first as Position + group
    }

    /// The members of a group, in the order in which it lists them.
    pub fn members(&self, group: u32) -> &[Position] {
        &self.members[group as usize]
    }

    /// The group of a member that may have to wait for a place in it.
    pub fn bounded_group_of(&self, position: Position) -> Option<u32> {
        self.group_of(position).filter(|group| self.group(*group).max_parallel.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::merge_name;
    use crate::definition::{Action, When};
    use crate::plan::sample::{build, grouped};

    #[test]
    fn each_group_has_a_merge_behind_the_steps_of_the_document() {
        let steps: &[(&str, &[&str])] = &[("after", &["g"]), ("a", &[]), ("b", &[]), ("c", &["a"])];
        let plan = build(grouped(steps, &[("g", &["b", "a"]), ("h", &["c"])])).expect("a plan");
        let names: Vec<&str> = plan.workflow.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["after", "a", "b", "c", "g/merge", "h/merge"]);
        assert_eq!((plan.merge_of(0), plan.merge_of(1)), (4, 5));
        assert_eq!(plan.members(0), [2, 1], "as they are listed");
        assert_eq!(plan.needs[4], [1, 2]);
        assert_eq!(plan.step(4).action, Action::Merge { group: 0 });
        assert_eq!((plan.step(4).when, plan.step(4).is_clean_up()), (When::AllDone, false));
        // Who needs a group needs its merge; who needs a member needs that member.
        assert_eq!((plan.needs[0].clone(), plan.needs[3].clone()), (vec![4], vec![1]));
        assert_eq!(plan.position(&merge_name("g")), Some(4));
        assert_eq!((plan.group_of(1), plan.group_of(3), plan.group_of(0)), (Some(0), Some(1), None));
    }

    #[test]
    fn whoever_waits_for_a_group_that_waits_for_it_is_a_cycle() {
        let steps: &[(&str, &[&str])] = &[("a", &["x"]), ("b", &[]), ("x", &["g"])];
        let faults = build(grouped(steps, &[("g", &["a", "b"])])).expect_err("a cycle");
        assert_eq!(faults[0].message, "steps wait for each other in a cycle: a -> g/merge -> x -> a");
    }
}
