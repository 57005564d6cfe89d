//! `laneway show`: a run and its tasks. The shape of `--json` is DESIGN's; fields are only ever added.

use std::time::Duration;

use comfy_table::Cell;
use laneway_core::cause::Cause;
use laneway_core::reason::Reason;
use laneway_core::run_state::TaskState;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_store::model::{RunView, SetAside};
use serde::Serialize;
use serde_json::{Map, Value};

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
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let (store, run) = context.find(&args.run).await?;
    let view = store.run(run).await?;
    let printer = &context.printer;
    if args.json {
        printer.json(&Wire::from(&view))?;
    } else {
        let palette = printer.out_palette();
        printer.text(&header(&view, palette))?;
        printer.text(&table(&view, palette, printer.width()))?;
        match &view.set_aside {
            Some(found) => printer.text(&set_aside(found, palette))?,
            None if view.is_interrupted => printer.text(&interrupted(&view, palette))?,
            None => {}
        }
    }
    Ok(Exit::Succeeded)
}

fn set_aside(found: &SetAside, palette: Palette) -> String {
    format!(
        "\n{} since {}: a stored {} could not be read: {}; {} says more\n",
        palette.red("set aside:"),
        text::date(found.since),
        found.what,
        found.why,
        palette.cyan("laneway doctor")
    )
}

pub(super) fn set_aside_wire(found: &SetAside) -> Value {
    serde_json::json!({ "what": found.what, "why": found.why, "since": found.since.to_string() })
}

/// What is said of a run that nobody drives any more.
pub(super) fn interrupted(view: &RunView, palette: Palette) -> String {
    let command = format!("laneway run --resume {}", view.state.run.short());
    format!(
        "\n{} the process that ran it is gone; {} goes on with it\n",
        palette.yellow("interrupted:"),
        palette.cyan(&command)
    )
}

fn header(view: &RunView, palette: Palette) -> String {
    let state = &view.state;
    let mut out = format!(
        "{} {} {} {}\n",
        palette.run(state.status, text::run_mark(state.status)),
        palette.bold(&state.workflow),
        state.run,
        palette.run(state.status, state.status.as_str()),
    );
    let mut field = |name: &str, value: String| out.push_str(&format!("  {name:<10}{value}\n"));
    if let Some(reason) = &state.reason {
        field("reason", reason.clone());
    }
    field("submitted", format!("{} by {}", text::date(state.submitted_at), view.submitted_by));
    if let (Some(started), Some(finished)) = (state.started_at, state.finished_at) {
        let took = text::duration(finished.since(started));
        field("finished", format!("{}, after {took}", text::date(finished)));
    }
    if let Some(owner) = &view.owner
        && !state.status.is_final()
    {
        field("runs on", owner.clone());
    }
    field("directory", view.dir.clone());
    for (index, (name, value)) in state.params.iter().enumerate() {
        field(if index == 0 { "params" } else { "" }, format!("{name} = {value}"));
    }
    out.push('\n');
    out
}

fn table(view: &RunView, palette: Palette, width: Option<u16>) -> String {
    let mut table = text::table(&["STEP", "STATUS", "ATTEMPT", "TOOK", "WHY"], width);
    text::color(&mut table, palette);
    for (task, cause) in view.state.tasks.iter().zip(&view.causes) {
        let mut status = Cell::new(format!("{} {}", text::task_mark(task.status), task.status));
        if palette.is_on() {
            status = text::task_color(status, task.status);
        }
        let attempt = if task.attempt == 0 { String::new() } else { task.attempt.to_string() };
        table.add_row(vec![
            Cell::new(&task.step),
            status,
            Cell::new(attempt),
            Cell::new(took(task)),
            Cell::new(reason(task, cause.as_ref())),
        ]);
    }
    text::lines(&table)
}

fn took(task: &TaskState) -> String {
    match (task.started_at, task.took_ms) {
        (_, Some(ms)) => text::duration(Duration::from_millis(ms)),
        (Some(started), None) if task.status == TaskStatus::Running => {
            format!("since {}", text::clock(started))
        }
        (Some(_) | None, None) => String::new(),
    }
}

/// Why it waits, or why it ended so.
fn reason(task: &TaskState, cause: Option<&Cause>) -> String {
    match (cause, task.reason) {
        (Some(cause), _) => cause.text.clone(),
        (None, Some(reason)) => why(reason, task.detail.as_deref()),
        (None, None) => String::new(),
    }
}

#[derive(Debug, Serialize)]
struct Wire<'a> {
    run: String,
    workflow: &'a str,
    status: &'static str,
    reason: Option<&'a str>,
    tasks: Vec<WireTask<'a>>,
    params: &'a Map<String, Value>,
    max_parallel: u32,
    submitted_by: &'a str,
    submitted_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    directory: &'a str,
    version: &'a str,
    owner: Option<&'a str>,
    interrupted: bool,
    set_aside: Option<Value>,
}

#[derive(Debug, Serialize)]
struct WireTask<'a> {
    step: &'a str,
    /// An item of `for_each`; a plain step has none.
    item: Option<&'a Value>,
    status: &'static str,
    attempt: u32,
    node: Option<&'a str>,
    reason: Option<Reason>,
    cause: Option<&'a Cause>,
    exit_code: Option<i32>,
    output: &'a Map<String, Value>,
    started_at: Option<String>,
    finished_at: Option<String>,
    detail: Option<&'a str>,
    took_ms: Option<u64>,
    run_at: Option<String>,
}

impl<'a> From<&'a RunView> for Wire<'a> {
    fn from(view: &'a RunView) -> Self {
        let state = &view.state;
        let time = |at: Option<Millis>| at.map(|at| at.to_string());
        let tasks = state.tasks.iter().zip(&view.causes).map(|(task, cause)| WireTask {
            step: &task.step,
            item: None,
            status: task.status.as_str(),
            attempt: task.attempt,
            node: task.node.as_deref(),
            reason: task.reason,
            cause: cause.as_ref(),
            exit_code: task.exit_code,
            output: &task.output,
            started_at: time(task.started_at),
            finished_at: time(task.finished_at),
            detail: task.detail.as_deref(),
            took_ms: task.took_ms,
            run_at: time(task.run_at),
        });
        Self {
            run: state.run.to_string(),
            workflow: &state.workflow,
            status: state.status.as_str(),
            reason: state.reason.as_deref(),
            tasks: tasks.collect(),
            params: &state.params,
            max_parallel: state.max_parallel,
            submitted_by: &view.submitted_by,
            submitted_at: state.submitted_at.to_string(),
            started_at: time(state.started_at),
            finished_at: time(state.finished_at),
            directory: &view.dir,
            version: state.version.as_str(),
            owner: view.owner.as_deref(),
            interrupted: view.is_interrupted,
            set_aside: view.set_aside.as_ref().map(set_aside_wire),
        }
    }
}
