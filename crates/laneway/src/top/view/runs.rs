//! The list of runs, and beside it, where there is room, the run that is chosen.

use laneway_core::state::TaskStatus;
use laneway_server::wire::RunSummary;
use ratatui::Frame;
use ratatui::text::Span;

use super::super::model::Model;
use super::table::{self, Width};
use super::{Areas, run};
use crate::text;

const NOTHING: &[&str] = &[
    "There are no runs yet.",
    "",
    "laneway init             writes a first workflow",
    "laneway run hello.yaml   runs it, and it appears here",
];

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, areas: &Areas) {
    let look = model.look;
    let runs = model.runs.shown();
    let columns = [
        ("RUN", Width::Fixed(8)),
        ("WORKFLOW", Width::Share(1)),
        ("STATUS", Width::Fixed(13)),
        ("SUBMITTED", Width::Fixed(11)),
        ("TOOK", Width::Fixed(8)),
        ("TASKS", Width::Fixed(15)),
    ];
    let buffer = frame.buffer_mut();
    let row = |index: usize| row(model, runs[index]);
    table::draw(buffer, areas.main, look, &columns, (Some(model.runs.chosen), runs.len()), row);
    if runs.is_empty() {
        let lines: &[&str] = match (&model.runs.all, model.runs.filter.is_empty()) {
            (None, _) => &["reading…"],
            (Some(_), true) => NOTHING,
            (Some(_), false) => &["no run is like that"],
        };
        table::empty(buffer, areas.main, lines, look.dim());
    }
    if !areas.side.is_empty() && !runs.is_empty() {
        run::preview(model, frame, areas.side);
    }
}

fn row<'a>(model: &Model, run: &'a RunSummary) -> Vec<Span<'a>> {
    let look = model.look;
    let (word, status) = text::run_word(run);
    let took = match (run.first_task_at.or(run.started_at), run.finished_at) {
        (Some(started), Some(finished)) => text::duration(finished.0.since(started.0)),
        (Some(started), None) if !run.interrupted && run.cause.is_none() => running(model, started.0),
        (Some(_) | None, _) => String::new(),
    };
    vec![
        Span::raw(run.run.short()),
        Span::styled(run.workflow.as_str(), look.bold()),
        Span::styled(format!("{} {word}", look.run_mark(status)), look.run(status)),
        Span::raw(text::day_and_time(run.submitted_at.0)),
        Span::raw(took),
        Span::raw(tasks(run)),
    ]
}

/// Whole seconds: tenths would flicker.
pub(super) fn running(model: &Model, since: laneway_core::time::Millis) -> String {
    let seconds = model.now.since(since).as_secs();
    if seconds < 60 { format!("{seconds}s") } else { text::duration(std::time::Duration::from_secs(seconds)) }
}

/// `12/40  2 failed`.
fn tasks(run: &RunSummary) -> String {
    let count = |status: TaskStatus| run.tasks.get(status.as_str()).and_then(serde_json::Value::as_u64);
    let total: u64 = run.tasks.values().filter_map(serde_json::Value::as_u64).sum();
    let done: u64 =
        TaskStatus::ALL.iter().copied().filter(|status| status.is_final()).filter_map(count).sum();
    let failed = count(TaskStatus::Failed).map(|failed| format!(" {failed} failed")).unwrap_or_default();
    format!("{done}/{total}{failed}")
}
