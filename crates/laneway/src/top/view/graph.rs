//! The graph of a run: a chip for each step with its state, its items and its node; lines from what comes first. The chosen
//! step is kept in sight, and only what is in sight is looked up.

use laneway_core::state::TaskStatus;
use laneway_server::wire::{Run, Task};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Span;

use super::super::model::{Model, Opened, is_match};
use super::super::picture::{LEFT, Picture, RIGHT};
use super::table::{self, cell};

/// Letters of a name; longer ones are cut.
const NAME: usize = 24;
/// Letters of a node's name.
const NODE: usize = 14;
const NODE_WIDE: usize = 22;

pub(super) fn draw(model: &Model, opened: &Opened, run: &Run, frame: &mut Frame<'_>, area: Rect) {
    let look = model.look;
    let Some(picture) = opened.picture() else {
        table::empty(frame.buffer_mut(), area, &["drawing…"], look.dim());
        return;
    };
    let places = Places::new(model, opened, run, picture, area);
    let chosen = opened.chosen.as_ref().and_then(|(step, _)| picture.find(step));
    let near = chosen.map(|at| &picture.nodes[at]);
    let is_near =
        |at: usize| near.is_some_and(|node| node.needs.contains(&at) || node.successors.contains(&at));
    let buffer = frame.buffer_mut();
    for y in 0..area.height {
        let row = places.top + usize::from(y);
        if row >= picture.height {
            break;
        }
        for (column, (start, width)) in places.columns.iter().enumerate() {
            let gutter = start + width;
            let put = |x: usize| -> Option<u16> {
                let x = x.checked_sub(places.left)?;
                (x < usize::from(area.width)).then(|| area.x + u16::try_from(x).unwrap_or(0))
            };
            let at_y = area.y + y;
            if let Some(at) = picture.node_at(column, row) {
                let node = &picture.nodes[at];
                let task = opened.of_step.get(&node.step).and_then(|at| run.tasks.get(*at));
                let mut spans = chip(model, &node.step, task);
                let mut is_found = true;
                if !opened.filter.is_empty() {
                    let status = task.map(|task| task.status.as_str()).unwrap_or_default();
                    is_found = is_match(&format!("{} {status}", node.step), &opened.filter);
                }
                for span in &mut spans {
                    if !is_found {
                        span.style = look.dim();
                    }
                    if chosen == Some(at) {
                        span.style = span.style.add_modifier(Modifier::REVERSED);
                    } else if is_near(at) {
                        span.style = span.style.add_modifier(Modifier::UNDERLINED);
                    }
                }
                let mut x = *start;
                for span in spans {
                    let wide = span.width();
                    // What begins left of the edge is not drawn: the chosen one never does.
                    if let Some(at_x) = put(x) {
                        let room = area.right() - at_x;
                        cell(
                            buffer,
                            look,
                            (at_x, at_y, room.min(u16::try_from(wide).unwrap_or(room))),
                            &span,
                        );
                    }
                    x += wide;
                }
                // To its gutter, so that lines meet it.
                if picture.line_at(column, 0, row) & LEFT != 0 {
                    for x in x + 1..gutter {
                        if let Some(at_x) = put(x) {
                            buffer[(at_x, at_y)].set_char(look.line(LEFT | RIGHT)).set_style(look.dim());
                        }
                    }
                }
            } else if picture.is_passed(column, row) {
                for x in *start..gutter {
                    if let Some(at_x) = put(x) {
                        buffer[(at_x, at_y)].set_char(look.line(LEFT | RIGHT)).set_style(look.dim());
                    }
                }
            } else if let Some(group) = picture.groups.get(&(column, row))
                && let Some(at_x) = put(*start)
            {
                let span = Span::styled(format!("{group}:"), look.dim().add_modifier(Modifier::ITALIC));
                cell(
                    buffer,
                    look,
                    (at_x, at_y, (area.right() - at_x).min(u16::try_from(*width).unwrap_or(0))),
                    &span,
                );
            }
            let cells = picture.columns[column].gutter;
            for step in 0..cells {
                let goes = picture.line_at(column, step, row);
                if goes == 0 {
                    continue;
                }
                if let Some(at_x) = put(gutter + step) {
                    let is_head = step + 1 == cells && picture.node_at(column + 1, row).is_some();
                    let char = if is_head { look.arrow_head() } else { look.line(goes) };
                    buffer[(at_x, at_y)].set_char(char).set_style(look.dim());
                }
            }
        }
    }
}

/// Where columns begin and how wide they are, and what is in sight of them.
struct Places {
    columns: Vec<(usize, usize)>,
    left: usize,
    top: usize,
}

impl Places {
    fn new(model: &Model, opened: &Opened, run: &Run, picture: &Picture, area: Rect) -> Self {
        // As wide as what stands in it now: a name grows by its node when it starts.
        let mut widths: Vec<usize> = picture.columns.iter().map(|column| column.name.min(NAME) + 2).collect();
        for node in &picture.nodes {
            let task = opened.of_step.get(&node.step).and_then(|at| run.tasks.get(*at));
            let width = 2 + node.step.chars().count().min(NAME) + more_width(model, task);
            widths[node.column] = widths[node.column].max(width);
        }
        let mut x = 1;
        let mut columns = Vec::with_capacity(picture.columns.len());
        for (column, width) in picture.columns.iter().zip(widths) {
            columns.push((x, width + 1));
            x += width + 1 + column.gutter;
        }
        let chosen = opened.chosen.as_ref().and_then(|(step, _)| picture.find(step));
        let (left, top) = chosen.map_or((0, 0), |at| {
            let node = &picture.nodes[at];
            let (start, width) = columns[node.column];
            let middle = start + width / 2;
            let left = middle.saturating_sub(usize::from(area.width) / 2);
            // A chip that is wider than the screen is seen from its beginning.
            let left = left.min(x.saturating_sub(usize::from(area.width))).min(start.saturating_sub(1));
            (left, table::scroll(node.row, picture.height, area.height.into()))
        });
        Self { columns, left, top }
    }
}

/// `▶ name 3/5 @node`.
fn chip<'a>(model: &Model, step: &str, task: Option<&Task>) -> Vec<Span<'a>> {
    let look = model.look;
    let status = task.map_or(TaskStatus::Pending, |task| task.status);
    let style = look.task(status);
    let name = cut(step, NAME, look.more());
    let mut spans =
        vec![Span::styled(format!("{} ", look.task_mark(status)), style), Span::styled(name, style)];
    if let Some(items) = task.and_then(items) {
        spans.push(Span::styled(items, look.bold()));
    }
    if let Some(node) = task.and_then(|task| task.node.as_ref()) {
        spans.push(Span::styled(format!(" @{}", cut(node, most(model), look.more())), look.dim()));
    }
    spans
}

/// Letters of a node's name.
fn most(model: &Model) -> usize {
    if model.is_wide() { NODE_WIDE } else { NODE }
}

/// ` 3/5`: how many of the items have ended.
fn items(task: &Task) -> Option<String> {
    let items = task.items.as_ref()?;
    let is_done = |status: &str| TaskStatus::parse(status).is_some_and(TaskStatus::is_final);
    let ended = items.states.iter().filter(|(status, _)| is_done(status));
    let done: u64 = ended.filter_map(|(_, count)| count.as_u64()).sum();
    Some(format!(" {done}/{}", items.total))
}

/// Cells of what stands behind the name.
fn more_width(model: &Model, task: Option<&Task>) -> usize {
    let Some(task) = task else { return 0 };
    let node = task.node.as_ref().map_or(0, |node| node.chars().count().min(most(model)) + 2);
    node + items(task).map_or(0, |items| items.len())
}

fn cut(text: &str, most: usize, more: &str) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{kept}{more}")
}

/// The step under the mouse.
pub(in super::super) fn step_at(model: &Model, area: Rect, (x, y): (u16, u16)) -> Option<usize> {
    let opened = model.run.as_ref()?;
    let (picture, run) = (opened.picture()?, opened.run.as_ref()?);
    let places = Places::new(model, opened, run, picture, area);
    let row = places.top + usize::from(y.checked_sub(area.y)?);
    let x = places.left + usize::from(x.checked_sub(area.x)?);
    let column = places.columns.iter().position(|(start, width)| (*start..start + width).contains(&x))?;
    picture.node_at(column, row)
}
