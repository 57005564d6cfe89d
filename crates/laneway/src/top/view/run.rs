//! One run: what it is about, its graph or the list of its tasks, and why the chosen one is as it is.

use std::time::Duration;

use laneway_core::state::TaskStatus;
use laneway_server::wire::{Run, Task};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::super::look::Look;
use super::super::model::{Model, Opened, Pane, Screen};
use super::runs::running;
use super::table::{self, Width};
use super::{Areas, graph};
use crate::progress::why;
use crate::text;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, areas: &Areas) {
    let Some(opened) = &model.run else { return };
    let Some(run) = &opened.run else {
        table::empty(frame.buffer_mut(), areas.main, &["reading…"], model.look.dim());
        return;
    };
    head(model, opened, run, frame, areas.head);
    match opened.pane {
        Pane::Graph => graph::draw(model, opened, run, frame, areas.main),
        Pane::Tasks => tasks(model, opened, run, frame, areas.main),
    }
    detail(model, opened, frame, areas.side);
}

/// Beside the list of runs.
pub(super) fn preview(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let Some((opened, run)) = model.run.as_ref().and_then(|opened| Some((opened, opened.run.as_ref()?)))
    else {
        return;
    };
    let block = pane(model.look, Borders::LEFT, "");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let first = Rect { height: 2, ..inner }.intersection(inner);
    head(model, opened, run, frame, first);
    let rest = Rect { y: inner.y + 3, height: inner.height.saturating_sub(3), ..inner }.intersection(inner);
    tasks(model, opened, run, frame, rest);
}

fn pane(look: Look, borders: Borders, title: &str) -> Block<'static> {
    let block = Block::new().borders(borders).border_set(look.border()).border_style(look.dim());
    if title.is_empty() { block } else { block.title(format!(" {title} ")) }
}

/// Two lines: which run it is, and how far.
fn head(model: &Model, opened: &Opened, run: &Run, frame: &mut Frame<'_>, area: Rect) {
    let look = model.look;
    let word = if run.set_aside.is_some() {
        "set aside"
    } else if run.interrupted {
        "interrupted"
    } else if run.is_canceling() {
        "canceling"
    } else {
        run.status.as_str()
    };
    let took = match (run.first_task_at.or(run.started_at), run.finished_at) {
        (Some(started), Some(finished)) => format!("in {}", text::duration(finished.0.since(started.0))),
        (Some(started), None) if !run.interrupted && run.cause.is_none() => {
            format!("for {}", running(model, started.0))
        }
        (Some(_) | None, _) => String::new(),
    };
    let mut first = vec![
        Span::styled(format!(" {} {word}", look.run_mark(run.status)), look.run(run.status)),
        Span::raw(" "),
        Span::styled(run.workflow.as_str(), look.bold()),
        Span::raw(format!(" {} {took}", run.run.short())),
    ];
    if !run.paused.is_empty() {
        first.push(Span::styled(format!("  paused ({})", run.paused.join(", ")), look.warning()));
    }
    if run.interrupted {
        let told = format!("  laneway resume {} goes on with it", run.run.short());
        first.push(Span::styled(told, look.warning()));
    } else if let Some(until) = run.clean_up_until {
        let told = format!("  cleaning up, until {}; c ends it", text::clock(until.0));
        first.push(Span::styled(told, look.warning()));
    } else if let Some(cause) = &run.cause {
        first.push(Span::styled(format!("  {cause}"), look.warning()));
    } else if let Some(reason) = &run.reason {
        first.push(Span::styled(format!("  {reason}"), look.dim()));
    }
    let (total, done) = progress(run);
    let (full, rest) = look.bar(done as f64 / total.max(1) as f64, 20);
    let mut second = vec![
        Span::styled(format!(" {full}"), look.run(run.status)),
        Span::styled(rest, look.dim()),
        Span::raw(format!(" {done}/{total}")),
    ];
    for (status, count) in counts(run) {
        if status != TaskStatus::Succeeded {
            second.push(Span::styled(
                format!("  {} {count} {status}", look.task_mark(status)),
                look.task(status),
            ));
        }
    }
    if !opened.filter.is_empty() {
        second.push(Span::styled(format!("  only {}", opened.filter), look.warning()));
    }
    frame.render_widget(Text::from(vec![Line::from(first), Line::from(second)]), area);
}

/// How many tasks there are, items to come included, and how many have ended.
fn progress(run: &Run) -> (u64, u64) {
    let to_come = |task: &Task| task.items.as_ref().map_or(0, |items| u64::from(items.total - items.added));
    let total = run.tasks.len() as u64 + run.tasks.iter().map(to_come).sum::<u64>();
    (total, run.tasks.iter().filter(|task| task.status.is_final()).count() as u64)
}

fn counts(run: &Run) -> Vec<(TaskStatus, u64)> {
    let of = |status: TaskStatus| run.tasks.iter().filter(|task| task.status == status).count() as u64;
    TaskStatus::ALL
        .iter()
        .copied()
        .map(|status| (status, of(status)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

fn tasks(model: &Model, opened: &Opened, run: &Run, frame: &mut Frame<'_>, area: Rect) {
    let node = if area.width >= 100 { 22 } else { 12 };
    let columns = [
        ("STEP", Width::Share(3)),
        ("STATUS", Width::Fixed(12)),
        ("TOOK", Width::Fixed(7)),
        ("TRY", Width::Fixed(3)),
        ("NODE", Width::Fixed(node)),
        ("WHY", Width::Share(4)),
    ];
    // Beside the list of runs there is no room for all of it.
    let columns = if model.screen == Screen::Run { &columns[..] } else { &columns[..4] };
    let row = |index: usize| row(model, opened, &run.tasks[opened.rows[index].task]);
    let chosen = if model.screen == Screen::Run { opened.row() } else { None };
    table::draw(frame.buffer_mut(), area, model.look, columns, (chosen, opened.rows.len()), row);
    if opened.rows.is_empty() {
        table::empty(frame.buffer_mut(), area, &["no step is like that"], model.look.dim());
    }
}

fn row<'a>(model: &Model, opened: &Opened, task: &Task) -> Vec<Span<'a>> {
    let look = model.look;
    let name = match (task.index, &task.items) {
        (Some(_), _) => format!("  {}", task.name()),
        (None, Some(_)) if opened.expanded.contains(&task.step) => format!("{} {}", look.open(), task.step),
        (None, Some(_)) => format!("{} {}", look.arrow(), task.step),
        (None, None) => task.step.clone(),
    };
    let tried = if task.attempt == 0 { String::new() } else { task.attempt.to_string() };
    vec![
        Span::raw(name),
        Span::styled(format!("{} {}", look.task_mark(task.status), task.status), look.task(task.status)),
        Span::raw(took(model, task)),
        Span::raw(tried),
        Span::styled(task.node.clone().unwrap_or_default(), look.dim()),
        Span::raw(reason(task)),
    ]
}

fn took(model: &Model, task: &Task) -> String {
    match (task.started_at, task.took_ms) {
        (_, Some(ms)) => text::duration(Duration::from_millis(ms)),
        (Some(started), None) if matches!(task.status, TaskStatus::Running | TaskStatus::Parked) => {
            running(model, started.0)
        }
        (Some(_) | None, None) => String::new(),
    }
}

/// Why it waits, or ended so; of a step with items how they are.
fn reason(task: &Task) -> String {
    if let (Some(items), None) = (&task.items, task.reason) {
        let states: Vec<String> =
            items.states.iter().map(|(status, count)| format!("{count} {status}")).collect();
        return format!("{}: {}", text::count(items.total.into(), "item"), states.join(", "));
    }
    match (&task.cause, task.reason) {
        (Some(cause), _) => text::told(&cause.text),
        (None, Some(reason)) => why(reason, task.detail.as_deref()),
        (None, None) => String::new(),
    }
}

/// Why the chosen task is as it is, and what is around it.
fn detail(model: &Model, opened: &Opened, frame: &mut Frame<'_>, area: Rect) {
    let look = model.look;
    let borders = if model.is_wide() { Borders::LEFT } else { Borders::TOP };
    let Some(task) = opened.task() else { return };
    let name = task.name();
    let block = pane(look, borders, if model.is_wide() { "" } else { &name });
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let mut lines: Vec<Line<'_>> = Vec::new();
    if model.is_wide() {
        lines.push(Line::styled(name.clone(), look.bold()));
    }
    match &opened.explained {
        Some((of, text)) if *of == name => lines.extend(text.lines().map(|line| Line::raw(text::tame(line)))),
        Some(_) | None => lines.push(Line::styled(look.more(), look.dim())),
    }
    if let Some(around) = around(opened, &task.step) {
        lines.push(Line::styled(around, look.dim()));
    }
    if let Some(items) = &task.items {
        lines.push(Line::styled(
            format!("{}; Enter lists them", text::count(items.total.into(), "item")),
            look.dim(),
        ));
    }
    if let Some(item) = &task.item {
        lines.push(Line::raw(format!("item: {}", text::tame(&text::cut(&item.to_string(), 300)))));
    }
    for (name, value) in task.output.iter().take(20) {
        let value = text::tame(&text::cut(&value.to_string(), 300));
        lines.push(Line::raw(format!("output {name}: {value}")));
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), inner);
}

/// `needs a, b; then c`.
fn around(opened: &Opened, step: &str) -> Option<String> {
    let picture = opened.picture()?;
    let node = &picture.nodes[picture.find(step)?];
    let names = |list: &[usize]| {
        let names: Vec<String> = list.iter().map(|at| picture.nodes[*at].step.clone()).collect();
        crate::progress::listed(&names)
    };
    match (node.needs.is_empty(), node.successors.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("needs {}", names(&node.needs))),
        (true, false) => Some(format!("then {}", names(&node.successors))),
        (false, false) => Some(format!("needs {}; then {}", names(&node.needs), names(&node.successors))),
    }
}
