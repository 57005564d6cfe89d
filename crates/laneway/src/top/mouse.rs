//! What the mouse means, for those who asked for it: a click chooses, one on what is chosen opens, the wheel moves. Pure.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::message::Effect;
use super::model::{Go, Model, Pane, Screen};
use super::update::{choose, choose_step, explain, go, looks, open};
use super::view::{self, Areas};

/// Rows for each notch of the wheel.
const NOTCH: isize = 3;

pub(super) fn update(model: &mut Model, event: MouseEvent) -> Vec<Effect> {
    if model.has_help || model.asked.is_some() || model.typed.is_some() {
        return Vec::new();
    }
    let by = match event.kind {
        MouseEventKind::ScrollDown => Some(NOTCH),
        MouseEventKind::ScrollUp => Some(-NOTCH),
        _ => None,
    };
    if let Some(by) = by {
        model.is_dirty = true;
        let is_graph = model.run.as_ref().is_some_and(|opened| opened.pane == Pane::Graph);
        let by = if model.screen == Screen::Run && is_graph { by.signum() } else { by };
        return go(model, Go::By(by));
    }
    if event.kind != MouseEventKind::Down(MouseButton::Left) {
        return Vec::new();
    }
    (model.is_dirty, model.notice) = (true, None);
    let at = Position::new(event.column, event.row);
    if event.row == 0 {
        let Some(screen) = view::tab_at(event.column) else { return Vec::new() };
        model.screen = screen;
        return looks(model);
    }
    let areas = Areas::new(model, Rect::new(0, 0, model.size.0, model.size.1));
    if !areas.main.contains(at) {
        return Vec::new();
    }
    if model.screen == Screen::Run
        && let Some(opened) = &mut model.run
        && opened.pane == Pane::Graph
    {
        let before = opened.chosen.clone();
        let Some(step) = view::step_at(model, areas.main, (event.column, event.row)) else {
            return Vec::new();
        };
        let Some(opened) = &mut model.run else { return Vec::new() };
        choose_step(opened, step);
        return if opened.chosen == before { open(model) } else { explain(model) };
    }
    let rows = areas.rows();
    if !rows.contains(at) {
        return Vec::new();
    }
    let (chosen, count) = place(model);
    let row = view::scroll(chosen, count, rows.height.into()) + usize::from(event.row - rows.y);
    if row >= count {
        return Vec::new();
    }
    if row == chosen { open(model) } else { choose(model, row) }
}

fn place(model: &Model) -> (usize, usize) {
    match model.screen {
        Screen::Runs => (model.runs.chosen, model.runs.shown().len()),
        Screen::Nodes => (model.nodes.chosen, model.nodes.shown().len()),
        Screen::Pools => (model.pools.chosen, model.pools.shown().len()),
        Screen::Limits => (model.limits.chosen, model.limits.shown().len()),
        Screen::Run => {
            model.run.as_ref().map_or((0, 0), |opened| (opened.row().unwrap_or(0), opened.rows.len()))
        }
        Screen::Log => (0, 0),
    }
}
