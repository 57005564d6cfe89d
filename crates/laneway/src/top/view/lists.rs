//! Nodes, pools and limits: a list each, and what stands behind the chosen entry.

use laneway_server::wire::{self, Node, Pool};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::super::model::Model;
use super::Areas;
use super::runs::running;
use super::table::{self, Width};
use crate::text;

pub(super) fn nodes(model: &Model, frame: &mut Frame<'_>, areas: &Areas) {
    let look = model.look;
    let nodes = model.nodes.shown();
    let columns = [
        ("NODE", Width::Share(2)),
        ("STATE", Width::Fixed(12)),
        ("BUSY", Width::Fixed(7)),
        ("DONE", Width::Fixed(7)),
        ("FAILED", Width::Fixed(6)),
        ("SINCE", Width::Fixed(11)),
        ("LABELS", Width::Share(1)),
    ];
    let row = |index: usize| {
        let node: &Node = nodes[index];
        let color = match node.state.as_str() {
            "takes work" => look.color(Color::Green),
            "draining" => look.warning(),
            _ => look.dim(),
        };
        let mark = if node.running_claims > 0 { look.task_mark(RUNNING) } else { look.task_mark(PENDING) };
        vec![
            Span::styled(node.node.as_str(), look.bold()),
            Span::styled(node.state.as_str(), color),
            Span::raw(format!("{mark} {}/{}", node.running_claims, node.slots)),
            Span::raw(node.claimed.succeeded.to_string()),
            Span::raw(node.claimed.failed.to_string()),
            Span::raw(text::day_and_time(node.registered_at.0)),
            Span::raw(wire::labels(node)),
        ]
    };
    let buffer = frame.buffer_mut();
    table::draw(buffer, areas.main, look, &columns, (Some(model.nodes.chosen), nodes.len()), row);
    if nodes.is_empty() {
        let nothing =
            ["No node is alive.", "", "laneway worker   starts one that takes tasks of submitted runs"];
        table::empty(
            buffer,
            areas.main,
            words(model.nodes.all.is_some(), &model.nodes.filter, &nothing),
            look.dim(),
        );
    }
    let Some(node) = model.nodes.chosen() else { return };
    let mut lines = vec![Line::styled(node.node.clone(), look.bold())];
    let asked = text::count(node.claim_attempts, "time");
    let expired = text::count(node.expired_leases, "lease");
    lines.push(Line::styled(format!("asked for work {asked}; {expired} of it expired"), look.dim()));
    if node.active_claims.is_empty() {
        lines.push(Line::styled("runs nothing now", look.dim()));
    }
    for claim in &node.active_claims {
        let since = claim.started_at.map(|at| running(model, at.0)).unwrap_or_default();
        lines.push(Line::from(vec![
            Span::styled(format!("{} ", look.task_mark(RUNNING)), look.task(RUNNING)),
            Span::raw(format!("{} {} ", claim.run.short(), claim.step)),
            Span::styled(since, look.dim()),
        ]));
    }
    let more = (node.running_claims as usize).saturating_sub(node.active_claims.len());
    if more > 0 {
        lines.push(Line::styled(format!("and {more} more"), look.dim()));
    }
    side(model, frame, areas.side, lines);
}

const RUNNING: laneway_core::state::TaskStatus = laneway_core::state::TaskStatus::Running;
const PENDING: laneway_core::state::TaskStatus = laneway_core::state::TaskStatus::Pending;

pub(super) fn pools(model: &Model, frame: &mut Frame<'_>, areas: &Areas) {
    let look = model.look;
    let pools = model.pools.shown();
    let columns = [
        ("POOL", Width::Share(1)),
        ("NODE", Width::Share(1)),
        ("STARTING", Width::Fixed(8)),
        ("IDLE", Width::Fixed(5)),
        ("RUNNING", Width::Fixed(7)),
        ("DORMANT", Width::Fixed(7)),
    ];
    let row = |index: usize| {
        let pool: &Pool = pools[index];
        vec![
            Span::styled(pool.pool.as_str(), look.bold()),
            Span::raw(pool.node.as_str()),
            Span::raw(pool.starting.to_string()),
            Span::raw(pool.idle.to_string()),
            Span::raw(pool.running.to_string()),
            Span::raw(pool.dormant.to_string()),
        ]
    };
    let buffer = frame.buffer_mut();
    table::draw(buffer, areas.main, look, &columns, (Some(model.pools.chosen), pools.len()), row);
    if pools.is_empty() {
        let nothing = [
            "There are no warm containers.",
            "",
            "A workflow with `pools` has them while it runs; see laneway pool --help",
        ];
        table::empty(
            buffer,
            areas.main,
            words(model.pools.all.is_some(), &model.pools.filter, &nothing),
            look.dim(),
        );
    }
    let Some(pool) = model.pools.chosen() else { return };
    let mut lines = vec![Line::styled(format!("{} on {}", pool.pool, pool.node), look.bold())];
    for container in &pool.containers {
        lines.push(Line::from(vec![
            Span::raw(format!("{:<10}", container.state)),
            Span::raw(format!("{} ", container.container)),
            Span::styled(format!("since {}", text::clock(container.since.0)), look.dim()),
        ]));
    }
    side(model, frame, areas.side, lines);
}

pub(super) fn limits(model: &Model, frame: &mut Frame<'_>, areas: &Areas) {
    let look = model.look;
    let limits = model.limits.shown();
    let columns = [
        ("LIMIT", Width::Share(1)),
        ("VALUE", Width::Fixed(10)),
        ("HELD", Width::Fixed(6)),
        ("WAITING", Width::Fixed(7)),
        ("SET BY", Width::Fixed(16)),
        ("SET", Width::Fixed(11)),
    ];
    let row = |index: usize| {
        let limit: &wire::Limit = limits[index];
        let waits = if limit.waiting > 0 { look.warning() } else { look.dim() };
        vec![
            Span::styled(limit.name.as_str(), look.bold()),
            Span::raw(limit.value.as_str()),
            Span::raw(limit.held.to_string()),
            Span::styled(limit.waiting.to_string(), waits),
            Span::raw(limit.set_by.as_str()),
            Span::raw(text::day_and_time(limit.set_at.0)),
        ]
    };
    let buffer = frame.buffer_mut();
    table::draw(buffer, areas.main, look, &columns, (Some(model.limits.chosen), limits.len()), row);
    if limits.is_empty() {
        let nothing =
            ["There are no limits.", "", "laneway limit set warehouse 3   makes one that all runs share"];
        table::empty(
            buffer,
            areas.main,
            words(model.limits.all.is_some(), &model.limits.filter, &nothing),
            look.dim(),
        );
    }
}

fn words<'a>(is_read: bool, filter: &str, nothing: &'a [&'a str]) -> &'a [&'a str] {
    match (is_read, filter.is_empty()) {
        (false, _) => &["reading…"],
        (true, true) => nothing,
        (true, false) => &["nothing is like that"],
    }
}

fn side(model: &Model, frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'_>>) {
    if area.is_empty() {
        return;
    }
    let borders = if model.is_wide() { Borders::LEFT } else { Borders::TOP };
    let look = model.look;
    let block = Block::new().borders(borders).border_set(look.border()).border_style(look.dim());
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }).block(block), area);
}
