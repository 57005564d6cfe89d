//! What a plan asks for that nothing acts on yet. A submit refuses it, so that no key is silently ignored.

use super::Plan;
use crate::definition::Placement;

impl Plan {
    /// The first thing that this version can plan and not run, in words.
    pub fn unsupported(&self) -> Option<String> {
        let workflow = &self.workflow;
        if let Some(group) = workflow.groups.first() {
            return Some(format!("`groups` can be planned but not run yet (group `{}`)", group.name));
        }
        match workflow.placement {
            // Every run belongs to the process that submitted it, so these two are what happens.
            Placement::Spread | Placement::Local => {}
            Placement::Pinned => return Some(not_yet("placement: pinned", None)),
        }
        workflow.steps.iter().find_map(|step| {
            let demands = step.demands();
            let asked = [("prefers", !demands.prefers.is_empty())];
            let (key, _) = asked.into_iter().find(|(_, is_asked)| *is_asked)?;
            Some(not_yet(key, Some(&step.name)))
        })
    }
}

fn not_yet(key: &str, step: Option<&str>) -> String {
    let place = step.map(|step| format!(" of step `{step}`")).unwrap_or_default();
    format!(
        "`{key}`{place} can be checked but not run yet; remove it, because this version would not act on it"
    )
}

#[cfg(test)]
mod tests {
    use crate::definition::{Source, compile};

    #[test]
    fn a_plan_names_the_first_key_that_nothing_acts_on() {
        for (expected, text) in [
            (None, "steps: {a: {run: make}}"),
            (None, "{placement: local, steps: {a: {run: make, priority: 0, limits: [], runs_on: {}}}}"),
            (Some("`groups`"), "{steps: {a: {run: make}}, groups: {g: {steps: [a]}}}"),
            (Some("`placement: pinned`"), "{placement: pinned, steps: {a: {run: make}}}"),
            (Some("`prefers` of step `a`"), "steps: {a: {run: make, prefers: {zone: eu}}}"),
        ] {
            let source = Source { file: "f.yaml".into(), default_name: "f".into(), text: text.into() };
            let plan = compile(&source).map_err(|refusal| refusal.render(false)).expect(text);
            let found = plan.unsupported();
            match expected {
                None => assert_eq!(found, None, "{text}"),
                Some(key) => {
                    let found = found.unwrap_or_else(|| panic!("{text} is silently accepted"));
                    assert!(found.starts_with(key) && found.contains("yet"), "{text}: {found}");
                }
            }
        }
    }
}
