//! The keys `execution` and `max_parallel_steps`, and what else a document may say whose runs go level by level: what is
//! for single steps means nothing where a level is taken, done and recorded as one. docs/design/levels.md.

use std::num::NonZeroU32;

use super::finding::{Finding, Span};
use super::model::{Action, Execution, OnFailure, Placement, Step, Workflow};
use super::read::Spans;
use super::reader::{Field, Reader};

/// How many steps of a level run at once, where nobody says otherwise.
const AT_ONCE: NonZeroU32 = NonZeroU32::new(4).expect("it is four");

/// Keys of a workflow that have to do with levels, as they were found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keys<'t> {
    pub(super) execution: Option<Field<'t>>,
    pub(super) max_parallel_steps: Option<Field<'t>>,
    pub(super) max_parallel: Option<Span>,
    pub(super) on_failure: Option<Span>,
    pub(super) groups: Option<Span>,
    pub(super) placement: Option<Span>,
}

pub(super) fn read(reader: &mut Reader<'_>, workflow: &mut Workflow, spans: &Spans, keys: Keys<'_>) {
    let at_once = keys.max_parallel_steps.and_then(|field| reader.at_once(field));
    let is_leveled = keys.execution.and_then(|field| {
        let is_leveled = reader.choice(field, &[("dataflow", false), ("levels", true)])?;
        is_leveled.then(|| reader.place(field))
    });
    let Some(because) = is_leveled else {
        if let Some(field) = keys.max_parallel_steps {
            let span = reader.tree.node(field.key).span;
            let hint = "write `execution: levels`, or `max_parallel` for a run that has none";
            reader.findings.push(Finding::new("`max_parallel_steps` is for levels", span).hint(hint));
        }
        return;
    };
    let mut refuse = |span: Span, message: &str, hint: &str| {
        let finding = Finding::new(message, span).hint(hint);
        reader.findings.push(finding.note("it goes level by level", because));
    };
    if let Some(span) = keys.max_parallel {
        refuse(span, "`max_parallel` is not for levels", "write `max_parallel_steps`");
    }
    if let (Some(span), OnFailure::Halt | OnFailure::Continue) = (keys.on_failure, workflow.on_failure) {
        let message = "in levels a failure cancels the rest of its level, and the run fails";
        refuse(span, message, "write `abort`, which says the same, or leave it out");
    }
    if let Some(span) = keys.groups {
        let message = "a run that goes level by level has no groups";
        refuse(
            span,
            message,
            "its steps without `needs` between them run together already; leave `groups` out",
        );
    }
    match (workflow.placement, keys.placement) {
        (Placement::Spread, Some(span)) => {
            let message = "a level is taken as a whole, by one node";
            refuse(span, message, "write `placement: pinned`, or leave it out: levels imply it");
        }
        (Placement::Spread, None) => workflow.placement = Placement::Pinned,
        (Placement::Pinned | Placement::Local, _) => {}
    }
    for (step, spans) in workflow.steps.iter().zip(&spans.step) {
        if let Some(key) = key_of_its_own(step) {
            let message = format!("step `{}` has `{key}`, and its level is taken as a whole", step.name);
            let hint = match key {
                "queue" => {
                    "remote workers take single tasks: leave `execution` out, or start it from another workflow"
                }
                "not_before" => {
                    "put it on a step of a run without levels, or submit the run for later: `laneway submit --at`"
                }
                _ => "take it off, leave `execution` out, or use `max_runs` for the run as a whole",
            };
            refuse(spans.name, &message, hint);
        }
    }
    workflow.on_failure = OnFailure::Abort;
    workflow.max_parallel = Some(at_once.unwrap_or(AT_ONCE));
    workflow.execution = Execution::Levels;
}

/// What a single step would have to wait for, or who would take it alone.
fn key_of_its_own(step: &Step) -> Option<&'static str> {
    let demands = step.demands();
    if demands.lock.is_some() {
        Some("lock")
    } else if demands.order.is_some() {
        Some("order")
    } else if !demands.limits.is_empty() {
        Some("limits")
    } else if demands.not_before.is_some() {
        Some("not_before")
    } else if step.for_each.is_some() {
        Some("for_each")
    } else if matches!(step.action, Action::Queue { .. }) {
        Some("queue")
    } else {
        None
    }
}

impl Reader<'_> {
    /// A bound of which none is one after the other.
    fn at_once(&mut self, field: Field<'_>) -> Option<NonZeroU32> {
        let must_be = "a whole number, where 0 is one after the other";
        let number = self.number(field, must_be)?;
        let value = number.as_u64().and_then(|value| u32::try_from(value).ok());
        if value.is_none() {
            let finding = self.wrong(field, must_be);
            self.findings.push(finding);
        }
        value.map(|value| NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN))
    }
}
