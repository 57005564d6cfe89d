//! Whose files a step sees: the steps that it transitively needs, in plan order. docs/design/files.md.

use super::{Plan, Position};
use crate::definition::{Merge, Workspace};

/// Steps whose files are part of the view of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileSources {
    /// By position: the place of the step in plan order, if it is one of them.
    places: Vec<Option<u32>>,
}

impl FileSources {
    /// Returns the place of a step in plan order, if its files are part of the view.
    pub fn place(&self, step: Position) -> Option<u32> {
        self.places.get(step as usize).copied().flatten()
    }

    /// Returns the steps in plan order.
    pub fn steps(&self) -> Vec<Position> {
        let places = (0..).zip(&self.places);
        let mut steps: Vec<(u32, Position)> =
            places.filter_map(|(step, place)| Some(((*place)?, step))).collect();
        steps.sort_unstable();
        steps.into_iter().map(|(_, step)| step).collect()
    }
}

impl Plan {
    /// Returns the steps whose files a step sees. Linear in the size of the plan.
    ///
    /// Members of an isolated group count only through the merge of the group, and only if that
    /// merges their files. Steps with `isolate: true` never count, and a merge that only lists
    /// outputs has no use for files: conflicts between them are for the step behind it.
    pub fn file_sources(&self, position: Position) -> FileSources {
        let mut places = vec![None; self.workflow.steps.len()];
        let step = match self.base(position) {
            Some(step) if !self.lists_outputs(step) => step,
            Some(_) | None => return FileSources { places },
        };
        let mut needed = vec![false; self.workflow.steps.len()];
        let mut open: Vec<Position> = self.needs[step as usize].clone();
        while let Some(position) = open.pop() {
            if !std::mem::replace(&mut needed[position as usize], true) {
                open.extend(&self.needs[position as usize]);
            }
        }
        for (place, position) in (0..).zip(&self.order) {
            if needed[*position as usize] && self.hands_files_on(*position, &needed, step) {
                places[*position as usize] = Some(place);
            }
        }
        FileSources { places }
    }

    /// Returns the steps in whose views there can be changes of others, in plan order.
    pub fn steps_that_see_files(&self) -> impl Iterator<Item = Position> + '_ {
        let is_followed = self.workflow.workspace == Workspace::Follow;
        let has_needs = |step: &Position| !self.needs[*step as usize].is_empty();
        self.order.iter().copied().filter(move |step| is_followed && has_needs(step))
    }

    /// Whether the files of a needed step reach the step `to`.
    fn hands_files_on(&self, position: Position, needed: &[bool], to: Position) -> bool {
        if !self.hands_on_changes(position) || self.lists_outputs(position) {
            return false;
        }
        let Some(number) = self.group_of(position) else { return true };
        let group = self.group(number);
        if !group.isolate {
            return true;
        }
        let merges_files = matches!(group.merge, Merge::Workspace { .. });
        let merge = self.merge_of(number);
        merges_files && (merge == to || needed[merge as usize])
    }

    /// Whether a step is a merge that starts no program and merges no files.
    fn lists_outputs(&self, step: Position) -> bool {
        self.step(step).merges().is_some_and(|group| match &self.group(group).merge {
            Merge::Concatenate => true,
            Merge::Custom { command } => command.is_empty(),
            Merge::Workspace { .. } => false,
        })
    }

    /// Whether what a step changed in its view counts for other steps. A step with `isolate: true`
    /// hands on its artifacts alone. The merge of its group takes the changes of a member all the
    /// same.
    pub fn hands_on_changes(&self, position: Position) -> bool {
        self.is_isolated_member(position) || !self.step(position).files().isolate
    }

    /// Whether a step is a member of a group with `isolate: true`.
    pub fn is_isolated_member(&self, position: Position) -> bool {
        self.group_of(position).is_some_and(|number| self.group(number).isolate)
    }

    /// Whether a step starts after this one also when this one failed: then the files that it left
    /// count. Those of a failed member of an isolated group do not: no merge takes them.
    pub fn is_followed_after_failure(&self, position: Position) -> bool {
        let Some(step) = self.base(position) else { return false };
        if self.is_isolated_member(step) || !self.hands_on_changes(step) {
            return false;
        }
        self.successors[step as usize].iter().any(|follower| self.step(*follower).when.accepts_failure())
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::{Source, compile};

    fn sources(document: &str, step: &str) -> Vec<String> {
        let plan =
            compile(&Source { file: "f.yaml".into(), default_name: "f".into(), text: document.into() });
        let plan = plan.expect("a plan");
        let sources = plan.file_sources(plan.position(step).expect("a step"));
        let mut found: Vec<(u32, String)> = (0..)
            .zip(&plan.workflow.steps)
            .filter_map(|(position, step)| Some((sources.place(position)?, step.name.clone())))
            .collect();
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }

    const DIAMOND: &str = "
        name: flow
        steps:
          d: {needs: [b, c], run: x}
          b: {needs: a, run: x}
          c: {needs: a, run: x}
          a: {run: x}
          other: {run: x}
          after: {needs: d, run: x}
    ";

    #[test]
    fn a_step_sees_the_files_of_all_that_it_needs_in_plan_order() {
        assert_eq!(sources(DIAMOND, "a"), [""; 0]);
        assert_eq!(sources(DIAMOND, "d"), ["a", "b", "c"]);
        assert_eq!(sources(DIAMOND, "after"), ["a", "b", "c", "d"]);
        assert_eq!(sources(DIAMOND, "other"), [""; 0]);
    }

    fn grouped(merge: &str) -> String {
        format!(
            "
            name: flow
            steps:
              a: {{run: x}}
              b: {{run: x}}
              whole: {{needs: [team], run: x}}
              part: {{needs: [a], run: x}}
            groups:
              team: {{steps: [a, b], isolate: true, merge: {merge}}}
            "
        )
    }

    #[test]
    fn members_of_an_isolated_group_count_through_a_merge_of_their_files() {
        assert_eq!(sources(&grouped("workspace"), "whole"), ["a", "b", "team/merge"]);
        assert_eq!(sources(&grouped("workspace"), "team/merge"), ["a", "b"]);
        assert_eq!(sources(&grouped("workspace"), "part"), [""; 0]);
        assert_eq!(sources(&grouped("{custom: [join]}"), "whole"), ["team/merge"]);
        assert_eq!(sources(&grouped("concatenate"), "whole"), [""; 0]);
    }

    #[test]
    fn a_merge_that_lists_outputs_sees_no_files_and_an_isolated_step_hands_none_on() {
        let text = "
            name: flow
            steps:
              a: {run: x}
              b: {run: x, isolate: true}
              whole: {needs: [team], run: x}
            groups:
              team: {steps: [a, b]}
            ";
        assert_eq!(sources(text, "team/merge"), [""; 0]);
        assert_eq!(sources(text, "whole"), ["a"]);
    }
}
