//! `laneway show`: a run and its tasks. The shape of `--json` is DESIGN's; fields are only ever added.

use std::time::Duration;

use comfy_table::Cell;
use laneway_core::effect::EffectStatus;
use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_server::wire::{Run, SetAside, Task, Wait};

use super::Context;
use crate::exit::Exit;
use crate::progress::why;
use crate::text::{self, Palette};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway show last --json | jq '.tasks[] | select(.status == \"failed\")'"
)]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Print the run as one JSON object
    #[arg(long)]
    json: bool,
    /// Show each item of steps with `for_each`, not only how many are in which state
    #[arg(long)]
    items: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let run = context.face()?.run(&args.run).await?;
    print(context, &run, args.json, args.items)
}

/// `has_items`: each item of a step has a line of its own.
pub(super) fn print(context: &Context, run: &Run, is_json: bool, has_items: bool) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    if is_json {
        printer.json(run)?;
    } else {
        let palette = printer.out_palette();
        printer.text(&header(run, palette))?;
        printer.text(&table(run, palette, printer.width(), has_items))?;
        printer.text(&effects(run, palette))?;
        match &run.set_aside {
            Some(found) => printer.text(&set_aside(found, palette))?,
            None if run.interrupted => printer.text(&interrupted(run.run, palette))?,
            None => {}
        }
    }
    Ok(Exit::Succeeded)
}

/// What its steps did to the world, in one line; nothing for most runs.
fn effects(run: &Run, palette: Palette) -> String {
    let mut counts = [("done", 0), ("running", 0), ("to be tried again", 0), ("unknown", 0)];
    for task in &run.tasks {
        for effect in &task.effects {
            let is_held = task.status == TaskStatus::Running && task.attempt == effect.attempt;
            counts[match (effect.status, is_held) {
                (EffectStatus::Done, _) => 0,
                (EffectStatus::Started, true) => 1,
                (EffectStatus::Failed, _) => 2,
                (EffectStatus::Started, false) => 3,
            }]
            .1 += 1;
        }
    }
    let told: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if told.is_empty() {
        return String::new();
    }
    let command = format!("laneway effects {}", run.run.short());
    format!("\neffects: {}; {} lists them\n", told.join(", "), palette.cyan(&command))
}

fn set_aside(found: &SetAside, palette: Palette) -> String {
    format!(
        "\n{} since {}: a stored {} could not be read: {}; {} says more\n",
        palette.red("set aside:"),
        text::date(found.since.0),
        found.what,
        found.why,
        palette.cyan("laneway doctor")
    )
}

/// What is said of a run that nobody drives any more.
pub(super) fn interrupted(run: RunId, palette: Palette) -> String {
    let command = format!("laneway resume {}", run.short());
    format!(
        "\n{} the process that ran it is gone; {} goes on with it\n",
        palette.yellow("interrupted:"),
        palette.cyan(&command)
    )
}

fn header(run: &Run, palette: Palette) -> String {
    let mut out = format!(
        "{} {} {} {}\n",
        palette.run(run.status, text::run_mark(run.status)),
        palette.bold(&run.workflow),
        run.run,
        palette.run(run.status, word(run)),
    );
    if let Some(until) = run.clean_up_until {
        out.truncate(out.trim_end().len());
        out.push_str(&format!(": {}\n", text::cleaning_up(run.run, until.0)));
    }
    let mut field = |name: &str, value: String| out.push_str(&format!("  {name:<10}{value}\n"));
    if let Some(reason) = &run.reason {
        field("reason", reason.clone());
    }
    field("submitted", format!("{} by {}", text::date(run.submitted_at.0), run.submitted_by));
    if let Some(parent) = &run.parent {
        field("child of", format!("{} of run {}", parent.step, parent.run.short()));
    }
    if run.no_cache {
        field("cache", "not asked: every step is executed".to_owned());
    }
    if let Some(cause) = &run.cause {
        field("queued", text::told(cause));
    }
    if let Some(first) = run.first_task_at.filter(|_| !run.local) {
        field("waited", format!("{} for its first task", text::duration(first.0.since(run.submitted_at.0))));
    }
    if let (Some(started), Some(finished)) = (run.first_task_at.or(run.started_at), run.finished_at) {
        let took = text::duration(finished.0.since(started.0));
        field("finished", format!("{}, after {took}", text::date(finished.0)));
    }
    if let Some(owner) = &run.owner
        && !run.status.is_final()
    {
        field("runs on", owner.clone());
    }
    field("directory", run.directory.clone());
    for (index, (name, value)) in run.params.iter().enumerate() {
        field(if index == 0 { "params" } else { "" }, format!("{name} = {value}"));
    }
    out.push('\n');
    out
}

/// How it is. One that is being canceled runs until the last of its tasks has stopped.
fn word(run: &Run) -> &'static str {
    if run.is_canceling() { "canceling" } else { run.status.as_str() }
}

fn table(run: &Run, palette: Palette, width: Option<u16>, has_items: bool) -> String {
    let has_nodes = ran_on_several_nodes(run);
    let head: &[&str] = match has_nodes {
        true => &["STEP", "STATUS", "ATTEMPT", "TOOK", "NODE", "WHY"],
        false => &["STEP", "STATUS", "ATTEMPT", "TOOK", "WHY"],
    };
    let mut table = text::table(head, width);
    text::color(&mut table, palette);
    for task in in_order(run, has_items) {
        let mut status = Cell::new(format!("{} {}", text::task_mark(task.status), task.status));
        if palette.is_on() {
            status = text::task_color(status, task.status);
        }
        let attempt = if task.attempt == 0 { String::new() } else { task.attempt.to_string() };
        let mut row = vec![Cell::new(task.name()), status, Cell::new(attempt), Cell::new(took(task))];
        if has_nodes {
            row.push(Cell::new(task.node.as_deref().unwrap_or_default()));
        }
        row.push(Cell::new(reason(task)));
        table.add_row(row);
    }
    text::lines(&table)
}

/// Whether it says something to name the node of each task: not of a `laneway run` that one process drove.
fn ran_on_several_nodes(run: &Run) -> bool {
    let mut nodes = run.tasks.iter().filter_map(|task| task.node.as_deref());
    nodes.next().is_some_and(|first| !run.local || nodes.any(|other| other != first))
}

/// Each step, and below it its items, if they are to be shown.
fn in_order(run: &Run, has_items: bool) -> Vec<&Task> {
    let (steps, items): (Vec<&Task>, Vec<&Task>) = run.tasks.iter().partition(|task| task.index.is_none());
    let mut items = items.into_iter().filter(|_| has_items).peekable();
    let mut all = Vec::with_capacity(run.tasks.len());
    for step in steps {
        all.push(step);
        // They come step by step, in the order of the steps.
        while let Some(item) = items.next_if(|item| item.step == step.step) {
            all.push(item);
        }
    }
    all
}

/// `5 items: 3 succeeded, 1 failed, 1 to come`.
fn items(task: &Task) -> Option<String> {
    let items = task.items.as_ref()?;
    let mut counts: Vec<String> =
        items.states.iter().map(|(status, count)| format!("{count} {status}")).collect();
    if items.total > items.added {
        counts.push(format!("{} to come", items.total - items.added));
    }
    let all = text::count(items.total.into(), "item");
    Some(if counts.is_empty() { all } else { format!("{all}: {}", counts.join(", ")) })
}

fn took(task: &Task) -> String {
    match (task.started_at, task.took_ms) {
        // Nothing is executed while a step waits.
        (_, Some(ms)) if task.wait.is_some() => {
            format!("waited {}", text::duration(Duration::from_millis(ms)))
        }
        (_, Some(ms)) => text::duration(Duration::from_millis(ms)),
        (Some(started), None) if matches!(task.status, TaskStatus::Running | TaskStatus::Parked) => {
            format!("since {}", text::moment(started.0))
        }
        (Some(_) | None, None) => String::new(),
    }
}

/// Why it waits, or why it ended so.
fn reason(task: &Task) -> String {
    if let (Some(items), None) = (items(task), task.reason) {
        return items;
    }
    match (&task.cause, task.reason) {
        (Some(cause), _) => text::told(&cause.text),
        (None, Some(reason)) => why(reason, task.detail.as_deref()),
        (None, None) => task.wait.as_ref().map(signaled).unwrap_or_default(),
    }
}

/// Who let it go on, and why; or the run that it started.
fn signaled(wait: &Wait) -> String {
    if let Some(child) = wait.child {
        return format!("run {}", child.short());
    }
    let Some(by) = &wait.signaled_by else { return String::new() };
    let why = wait.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("signaled by {by}{why}")
}
