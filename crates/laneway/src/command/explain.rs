//! `laneway explain`: why a task waits, in the gate keeper's own words, or why it ended as it did.

use std::collections::HashMap;
use std::time::Duration;

use laneway_core::cause::{self, Cause, Link};
use laneway_core::id::RunId;
use laneway_core::run_state::TaskState;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_store::Store;
use laneway_store::model::{Attempt, RunView};
use serde_json::{Value, json};

use super::Context;
use crate::exit::Exit;
use crate::progress::why;
use crate::text::{self, Palette};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway explain last package")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// One step, with all of its attempts
    step: Option<String>,
    /// Print it as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    let palette = printer.out_palette();
    let (store, run) = context.find(&args.run).await?;
    let Some(step) = &args.step else {
        let view = store.run(run).await?;
        if args.json {
            printer.json(&run_json(&view))?;
        } else {
            printer.text(&run_text(&view, palette))?;
        }
        return Ok(Exit::Succeeded);
    };
    // Asked first: it refuses a step that the run does not have.
    let attempts = store.attempts(run, step).await?;
    let view = store.run(run).await?;
    let Some((task, cause)) = tasks(&view).find(|(task, _)| task.step == *step) else {
        return Err(laneway_store::Error::NoSuchStep { run, step: step.clone(), nearest: None }.into());
    };
    let chain = chain(store.as_ref(), &view, step).await?;
    if args.json {
        let mut value = task_json(task, cause);
        value["chain"] = json!(chain);
        value["attempts"] = attempts.iter().map(attempt_json).collect();
        printer.json(&value)?;
    } else {
        let mut out = task_text(task, cause, palette);
        for link in chain.iter().skip(1) {
            out.push_str(&link_text(run, link));
        }
        for attempt in &attempts {
            out.push_str(&attempt_text(attempt));
        }
        if view.is_interrupted {
            out.push_str(&super::show::interrupted(&view, palette));
        }
        printer.text(&out)?;
    }
    Ok(Exit::Succeeded)
}

/// What the step waits for, what that waits for, and so on, through whatever runs.
async fn chain(store: &dyn Store, view: &RunView, step: &str) -> anyhow::Result<Vec<Link>> {
    let run = view.state.run;
    let mut others: HashMap<RunId, RunView> = HashMap::new();
    loop {
        let mut unknown = None;
        let chain = cause::chain(run, step, |at, step| {
            let view = if at == run { Some(view) } else { others.get(&at) };
            if view.is_none() {
                unknown.get_or_insert(at);
            }
            let view = view?;
            let position = view.plan.position(step)?;
            view.causes.get(position as usize).cloned().flatten()
        });
        match unknown {
            None => return Ok(chain),
            Some(other) => {
                others.insert(other, store.run(other).await?);
            }
        }
    }
}

fn link_text(run: RunId, link: &Link) -> String {
    let place = if link.run == run { String::new() } else { format!(" of run {}", link.run.short()) };
    format!("    and {}{place} {}\n", link.step, link.cause.text)
}

fn tasks(view: &RunView) -> impl Iterator<Item = (&TaskState, Option<&Cause>)> {
    view.state.tasks.iter().zip(view.causes.iter().map(Option::as_ref))
}

/// Successes need no explanation and are only counted.
fn run_text(view: &RunView, palette: Palette) -> String {
    let state = &view.state;
    let reason = state.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let mut out = format!(
        "{} {} {} {}{reason}\n",
        palette.run(state.status, text::run_mark(state.status)),
        palette.bold(&state.workflow),
        state.run.short(),
        palette.run(state.status, state.status.as_str()),
    );
    let mut succeeded = 0;
    for (task, cause) in tasks(view) {
        if task.status == TaskStatus::Succeeded {
            succeeded += 1;
        } else {
            out.push_str(&task_text(task, cause, palette));
        }
    }
    if succeeded > 0 {
        out.push_str(&palette.dim(&format!("{} succeeded\n", text::count(succeeded, "step"))));
    }
    if view.is_interrupted {
        out.push_str(&super::show::interrupted(view, palette));
    }
    out
}

fn task_text(task: &TaskState, cause: Option<&Cause>, palette: Palette) -> String {
    let mark = palette.task(task.status, text::task_mark(task.status));
    let mut out = format!("{mark} {} is {}", task.step, task.status);
    match (cause, task.reason) {
        (Some(cause), _) => {
            out.push_str(&format!(": {}", cause.text));
            // The text is one sentence; what it may leave out stands below it.
            if let Some(since) = &cause.since
                && !cause.text.contains(since.as_str())
            {
                out.push_str(&palette.dim(&format!("\n    since {}", local(since))));
            }
            if !cause.text.contains(&cause.opens) {
                out.push_str(&palette.dim(&format!("\n    opens {}", cause.opens)));
            }
        }
        (None, Some(reason)) => out.push_str(&format!(": {}", why(reason, task.detail.as_deref()))),
        (None, None) => {
            if let (TaskStatus::Running, Some(started)) = (task.status, task.started_at) {
                let node = task.node.as_deref().unwrap_or("a node");
                out.push_str(&format!(" since {} on {node}", text::clock(started)));
            }
        }
    }
    out.push('\n');
    out
}

/// The time of day where the person is.
fn local(moment: &str) -> String {
    match moment.parse::<jiff::Timestamp>() {
        Ok(at) => text::clock(Millis(at.as_millisecond())),
        Err(_) => moment.to_owned(),
    }
}

fn attempt_text(attempt: &Attempt) -> String {
    let mut out = format!("    attempt {} {}", attempt.attempt, attempt.outcome);
    if let Some(reason) = attempt.reason {
        out.push_str(&format!(": {}", why(reason, attempt.detail.as_deref())));
    }
    match (attempt.started_at, attempt.took_ms) {
        (Some(started), Some(ms)) => {
            let took = text::duration(Duration::from_millis(ms));
            out.push_str(&format!(", {took} at {}", text::clock(started)));
        }
        (Some(started), None) => out.push_str(&format!(" since {}", text::clock(started))),
        (None, _) => {}
    }
    if let Some(node) = &attempt.node {
        out.push_str(&format!(" on {node}"));
    }
    out.push('\n');
    out
}

fn run_json(view: &RunView) -> Value {
    let state = &view.state;
    json!({
        "run": state.run,
        "workflow": state.workflow,
        "status": state.status,
        "reason": state.reason,
        "interrupted": view.is_interrupted,
        "tasks": tasks(view).map(|(task, cause)| task_json(task, cause)).collect::<Vec<_>>(),
    })
}

fn task_json(task: &TaskState, cause: Option<&Cause>) -> Value {
    json!({
        "step": task.step,
        "status": task.status,
        "attempt": task.attempt,
        "reason": task.reason,
        "detail": task.detail,
        "cause": cause,
    })
}

fn attempt_json(attempt: &Attempt) -> Value {
    json!({
        "attempt": attempt.attempt,
        "node": attempt.node,
        "outcome": attempt.outcome,
        "reason": attempt.reason,
        "detail": attempt.detail,
        "exit_code": attempt.exit_code,
        "started_at": attempt.started_at.map(|at| at.to_string()),
        "took_ms": attempt.took_ms,
        "finished_at": attempt.finished_at.map(|at| at.to_string()),
    })
}
