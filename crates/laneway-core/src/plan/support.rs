//! What a plan asks for that cannot be done. A submit refuses it, so that no key is silently ignored.

use super::Plan;
use crate::class::Class;
use crate::definition::Placement;

impl Plan {
    /// The first thing that this version can plan and not run, in words.
    pub fn unsupported(&self) -> Option<String> {
        let workflow = &self.workflow;
        match workflow.placement {
            Placement::Spread | Placement::Local => None,
            Placement::Pinned => {
                let divided = Class::of_all(&workflow.steps).err()?;
                Some(format!("`placement: pinned` keeps the run on one node, but {divided}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::{Source, compile};

    #[test]
    fn a_plan_names_the_first_thing_that_cannot_be_done() {
        for (expected, text) in [
            (None, "steps: {a: {run: make}}"),
            (None, "{placement: local, steps: {a: {run: make, priority: 0, limits: [], runs_on: {}}}}"),
            (None, "{steps: {a: {run: make}}, groups: {g: {steps: [a]}}}"),
            (None, "{steps: {a: {run: make, image: busybox}}, pools: {p: {image: busybox}}}"),
            (None, "{steps: {a: {run: make, pool: p}}, pools: {p: {image: busybox}}}"),
            (None, "{placement: pinned, steps: {a: {run: make, prefers: {zone: eu}}}}"),
            (
                Some("`placement: pinned` keeps the run on one node, but steps `a` and `b`"),
                "{placement: pinned, steps: {a: {run: x, runs_on: {z: eu}}, b: {run: x, runs_on: {z: us}}}}",
            ),
        ] {
            let source = Source { file: "f.yaml".into(), default_name: "f".into(), text: text.into() };
            let plan = compile(&source).map_err(|refusal| refusal.render(false)).expect(text);
            let found = plan.unsupported();
            match expected {
                None => assert_eq!(found, None, "{text}"),
                Some(key) => {
                    let found = found.unwrap_or_else(|| panic!("{text} is silently accepted"));
                    assert!(found.starts_with(key), "{text}: {found}");
                }
            }
        }
    }
}
