//! What a parked task waits for, since when, until when, and how it is signaled; or which run it has started.

use super::Cause;
use crate::gate::Gate;
use crate::id::RunId;
use crate::run_state::TaskState;
use crate::wait::{Awaited, Wait};

pub(super) fn cause(wait: &Wait, run: RunId, task: &TaskState) -> Option<Cause> {
    let since = task.started_at?;
    let waiting = task.wait.as_deref()?;
    let until = waiting.until.map(|at| at.to_string()).unwrap_or_default();
    let at = waiting.timeout_at;
    let base = Cause { since: Some(since.to_string()), ..Cause::at(Gate::RunAt) };
    Some(match &wait.on {
        Awaited::Signal(name) => {
            let command = format!("laneway signal {} {} {name}", run.short(), task.step);
            let (opens, fails) = match at {
                Some(at) => (format!(", until {at}"), format!(", and fails without it at {at}")),
                None => (String::new(), String::new()),
            };
            Cause {
                gate: "signal",
                key: Some(name.clone()),
                opens: format!("when somebody sends it: `{command}`{opens}"),
                text: format!("waits for the signal `{name}` since {since}{fails}; `{command}` sends it"),
                ..base
            }
        }
        Awaited::Until(_) | Awaited::For(_) => {
            let fails = at.filter(|at| waiting.until.is_some_and(|until| until > *at));
            let fails = fails.map(|at| format!(", and fails before that at {at}")).unwrap_or_default();
            Cause {
                gate: "timer",
                opens: format!("at {until}"),
                opens_at: waiting.until,
                text: format!("waits until {until}, since {since}{fails}"),
                ..base
            }
        }
        Awaited::Run(child) => {
            let fails = at.map(|at| format!(", and ends it at {at}")).unwrap_or_default();
            let (opens, text) = match waiting.child {
                Some(child_run) => {
                    let short = child_run.short();
                    (
                        format!(
                            "when run {short} has ended: `laneway explain {short}` says what that waits for"
                        ),
                        format!("waits for run {short} of `{}` since {since}{fails}", child.workflow),
                    )
                }
                None => (
                    "when a node has started it".to_owned(),
                    format!("is about to start a run of `{}`, since {since}{fails}", child.workflow),
                ),
            };
            Cause { gate: "child", key: Some(child.workflow.clone()), opens, text, ..base }
        }
    })
}
