//! The shape of `laneway plan --json`: the plan by names. Other programs read it, so it only grows.

use serde::Serialize;

use super::Position;
use crate::definition::Step;

#[derive(Debug, Clone, Serialize)]
pub struct Plan<'a> {
    pub order: Vec<&'a str>,
    pub levels: Vec<Vec<&'a str>>,
    pub lanes: Vec<Lane<'a>>,
    /// The size of the widest level.
    pub width: usize,
    pub critical_path: Vec<&'a str>,
    pub prewarm: Prewarm,
    /// Steps that wait for a signal or a moment, and for what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait<'a>>,
    /// Of a submitted run: the steps whose changes a step sees, in plan order. Steps that see none
    /// are left out, and so are the lists of a plan with more than 1,000 steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Sees<'a>>,
    /// Variables that scripts read and a worker would not give them, and those that hold secrets of a node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variables<'a>>,
}

/// A step, and the steps whose files are part of its view.
#[derive(Debug, Clone, Serialize)]
pub struct Sees<'a> {
    pub step: &'a str,
    pub sees: Vec<&'a str>,
}

/// The lists grow with the square of the plan.
const MAX_STEPS_WITH_FILES: usize = 1_000;

/// By step, or by secret.
#[derive(Debug, Clone, Serialize)]
pub struct Variables<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<&'a str>,
    pub names: &'a [String],
}

pub fn variables<'a>(reads: &'a [super::variables::Reads<'a>]) -> Vec<Variables<'a>> {
    let variables = |reads: &'a super::variables::Reads<'a>| Variables {
        step: (!reads.is_secret).then_some(reads.of),
        secret: reads.is_secret.then_some(reads.of),
        names: &reads.names,
    };
    reads.iter().map(variables).collect()
}

/// With a `signal`, or in words what else it waits for.
#[derive(Debug, Clone, Serialize)]
pub struct Wait<'a> {
    pub step: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<&'a str>,
    pub text: String,
}

/// `{"step": …}` or `{"group": …, "steps": […]}`. Untagged is safe here: this is never read, only written.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Lane<'a> {
    Step { step: &'a str },
    Group { group: &'a str, steps: Vec<&'a str> },
}

/// `lane` is an index into `lanes`; null with a width above zero is "at once", with zero "never".
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Prewarm {
    pub lane: Option<usize>,
    pub width: usize,
}

impl<'a> From<&'a super::Plan> for Plan<'a> {
    fn from(plan: &'a super::Plan) -> Self {
        let name = |position: &Position| plan.step(*position).name.as_str();
        let names = |positions: &[Position]| positions.iter().map(name).collect::<Vec<_>>();
        let lane = |lane: &'a super::Lane| match lane {
            super::Lane::Step(position) => Lane::Step { step: name(position) },
            super::Lane::Group { name, steps } => Lane::Group { group: name, steps: names(steps) },
        };
        let wait = |step: &'a Step| {
            let wait = step.wait()?;
            Some(Wait { step: &step.name, signal: wait.signal(), text: wait.to_string() })
        };
        let sees = |step: Position| {
            let sees = names(&plan.file_sources(step).steps());
            (!sees.is_empty()).then_some(Sees { step: name(&step), sees })
        };
        let is_small = plan.workflow.steps.len() <= MAX_STEPS_WITH_FILES;
        Self {
            order: names(&plan.order),
            levels: plan.levels.iter().map(|level| names(level)).collect(),
            lanes: plan.lanes.iter().map(lane).collect(),
            width: plan.width(),
            critical_path: names(&plan.critical_path),
            prewarm: Prewarm { lane: plan.prewarm.lane, width: plan.prewarm.width },
            waits: plan.workflow.steps.iter().filter_map(wait).collect(),
            files: plan.steps_that_see_files().filter(|_| is_small).filter_map(sees).collect(),
            variables: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::sample::{build, grouped};

    #[test]
    fn a_plan_is_written_by_names() {
        let plan =
            build(grouped(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &[])], &[("g", &["b", "c"])]))
                .expect("a plan");
        let json = serde_json::to_string(&super::Plan::from(&plan)).expect("plain data");
        assert_eq!(
            json,
            r#"{"order":["a","b","c","d","g/merge"],"levels":[["a","d"],["b","c"],["g/merge"]],"lanes":[{"step":"a"},{"group":"g","steps":["b","c"]},{"step":"d"},{"step":"g/merge"}],"width":2,"critical_path":["a","b","g/merge"],"prewarm":{"lane":0,"width":2},"files":[{"step":"b","sees":["a"]},{"step":"c","sees":["a"]}]}"#
        );
    }

    #[test]
    fn at_once_is_null_with_a_width() {
        let plan = build(grouped(&[("a", &[]), ("b", &[])], &[("g", &["a", "b"])])).expect("ok");
        let json = serde_json::to_value(super::Plan::from(&plan)).expect("plain data");
        assert_eq!(json["prewarm"], serde_json::json!({"lane": null, "width": 2}));
    }
}
