//! `laneway explain`: why a task waits, in the gate keeper's own words, or why it ended as it did.

use std::time::Duration;

use laneway_core::event::Closing;
use laneway_core::growth::parse_name;
use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_server::wire::{
    Attempt, ExplainedRun, ExplainedStep, ExplainedTask, Link, StepFiles, StepLayer, TaskContainer,
};

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
    let face = context.face()?;
    let Some(step) = &args.step else {
        let run = face.explain_run(&args.run).await?;
        if args.json {
            printer.json(&run)?;
        } else {
            printer.text(&run_text(&run, palette))?;
        }
        return Ok(Exit::Succeeded);
    };
    let explained = face.explain_step(&args.run, step).await?;
    if args.json {
        printer.json(&explained)?;
        return Ok(Exit::Succeeded);
    }
    printer.text(&step_text(&explained, palette))?;
    Ok(Exit::Succeeded)
}

/// A step, with what stands behind it.
pub(crate) fn step_text(explained: &ExplainedStep, palette: Palette) -> String {
    let mut out = task_text(&task(explained), palette);
    for link in explained.chain.iter().skip(1) {
        out.push_str(&link_text(explained.run, link));
    }
    if let Some(miss) = &explained.cache {
        out.push_str(&palette.dim(&format!("    not from cache: {}\n", miss.text)));
    }
    for attempt in &explained.attempts {
        out.push_str(&attempt_text(attempt));
    }
    if let Some(files) = &explained.files {
        out.push_str(&palette.dim(&files_text(files)));
    }
    if explained.interrupted {
        out.push_str(&super::show::interrupted(explained.run, palette));
    }
    out
}

/// The task of a step, without what stands behind it.
fn task(step: &ExplainedStep) -> ExplainedTask {
    ExplainedTask {
        step: step.step.clone(),
        status: step.status,
        attempt: step.attempt,
        reason: step.reason,
        detail: step.detail.clone(),
        cause: step.cause.clone(),
        node: step.node.clone(),
        started_at: step.started_at,
    }
}

/// Layers on one line.
const MAX_LAYERS_SHOWN: usize = 8;

/// What a step saw of the steps before it, and what it left for those behind it.
fn files_text(files: &StepFiles) -> String {
    let size = |layer: &StepLayer| {
        let node = layer.node.as_ref().map(|node| format!(", only on node {node}")).unwrap_or_default();
        format!("{}, {}{node}", text::count(layer.paths, "path"), text::bytes(layer.bytes))
    };
    let mut out = String::new();
    if !files.saw.is_empty() {
        let shown =
            files.saw.iter().take(MAX_LAYERS_SHOWN).map(|layer| format!("{} ({})", layer.step, size(layer)));
        let shown: Vec<String> = shown.collect();
        let more = match files.saw.len().saturating_sub(MAX_LAYERS_SHOWN) {
            0 => String::new(),
            more => format!(" … and {more} more"),
        };
        out.push_str(&format!("    saw the changes of {}{more}\n", shown.join("; ")));
    }
    if let Some(left) = &files.left {
        out.push_str(&format!("    left {}\n", size(left)));
    }
    out
}

fn link_text(run: RunId, link: &Link) -> String {
    let place = if link.run == run { String::new() } else { format!(" of run {}", link.run.short()) };
    format!("    and {}{place} {}\n", link.step, text::told(&link.cause.text))
}

/// Items of a step that are told of one by one.
const ITEMS: u64 = 5;

/// Successes need no explanation and are only counted.
fn run_text(run: &ExplainedRun, palette: Palette) -> String {
    let reason = match (&run.reason, run.clean_up_until) {
        (_, Some(until)) => format!(": {}", text::cleaning_up(run.run, until.0)),
        (Some(reason), None) => format!(": {reason}"),
        (None, None) => String::new(),
    };
    let is_canceling = run.closing.is_some_and(Closing::is_canceling);
    let word = if is_canceling { "canceling" } else { run.status.as_str() };
    let mut out = format!(
        "{} {} {} {}{reason}\n",
        palette.run(run.status, text::run_mark(run.status)),
        palette.bold(&run.workflow),
        run.run.short(),
        palette.run(run.status, word),
    );
    let (mut steps, mut succeeded_items) = (0, 0);
    let mut items: Vec<(String, u64)> = Vec::new();
    for task in &run.tasks {
        let (step, index) = parse_name(&task.step);
        if task.status == TaskStatus::Succeeded {
            *(if index.is_some() { &mut succeeded_items } else { &mut steps }) += 1;
        } else if index.is_some() {
            // There may be many: some are told of, and the others counted.
            match items.last_mut() {
                Some((known, count)) if known == step => *count += 1,
                _ => items.push((step.to_owned(), 1)),
            }
            if items.last().is_some_and(|(_, count)| *count <= ITEMS) {
                out.push_str(&task_text(task, palette));
            }
        } else {
            out.push_str(&task_text(task, palette));
        }
    }
    for (step, count) in items.into_iter().filter(|(_, count)| *count > ITEMS) {
        let more = text::count(count - ITEMS, "more item");
        out.push_str(&palette.dim(&format!("{more} of {step} did not succeed, or not yet\n")));
    }
    let succeeded: Vec<String> = [(steps, "step"), (succeeded_items, "item")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, one)| text::count(count, one))
        .collect();
    if !succeeded.is_empty() {
        out.push_str(&palette.dim(&format!("{} succeeded\n", succeeded.join(" and "))));
    }
    if run.interrupted {
        out.push_str(&super::show::interrupted(run.run, palette));
    }
    out
}

fn task_text(task: &ExplainedTask, palette: Palette) -> String {
    let mark = palette.task(task.status, text::task_mark(task.status));
    let mut out = format!("{mark} {} is {}", task.step, task.status);
    match (&task.cause, task.reason) {
        (Some(cause), _) => {
            out.push_str(&format!(": {}", text::told(&cause.text)));
            // The text is one sentence; what it may leave out stands below it.
            if let Some(since) = &cause.since
                && !cause.text.contains(since.as_str())
            {
                out.push_str(&palette.dim(&format!("\n    since {}", text::told(since))));
            }
            if !cause.text.contains(&cause.opens) {
                out.push_str(&palette.dim(&format!("\n    opens {}", text::told(&cause.opens))));
            }
        }
        (None, Some(reason)) => out.push_str(&format!(": {}", why(reason, task.detail.as_deref()))),
        (None, None) => {
            if let (TaskStatus::Running, Some(started)) = (task.status, task.started_at) {
                let node = task.node.as_deref().unwrap_or("a node");
                out.push_str(&format!(" since {} on {node}", text::moment(started.0)));
            }
        }
    }
    out.push('\n');
    out
}

fn attempt_text(attempt: &Attempt) -> String {
    let mut out = format!("    attempt {} {}", attempt.attempt, attempt.outcome);
    if let Some(reason) = attempt.reason {
        out.push_str(&format!(": {}", why(reason, attempt.detail.as_deref())));
    }
    match (attempt.started_at, attempt.took_ms) {
        (Some(started), Some(ms)) => {
            let took = text::duration(Duration::from_millis(ms));
            out.push_str(&format!(", {took} at {}", text::moment(started.0)));
        }
        (Some(started), None) => out.push_str(&format!(" since {}", text::moment(started.0))),
        (None, _) => {}
    }
    if let Some(node) = &attempt.node {
        out.push_str(&format!(" on {node}"));
    }
    if let Some(container) = &attempt.container {
        out.push_str(&format!("\n        in {}", container_text(container)));
    }
    out.push('\n');
    out
}

/// Which container, of which image, and of which pool, if it is a warm one.
fn container_text(container: &TaskContainer) -> String {
    let TaskContainer { image, pool, container } = container;
    let name = container.as_deref().unwrap_or("a container");
    let pool = pool.as_ref().map(|pool| format!(", pool {pool}")).unwrap_or_default();
    format!("{name} ({image}{pool})")
}
