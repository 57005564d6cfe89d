//! What lies over the screen for a while: the help, and the question before an act.

use laneway_core::state::TaskStatus;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Wrap};

use super::super::action::consequence;
use super::super::keys::HELP;
use super::super::model::{Asked, Model};

pub(super) fn help(model: &Model, frame: &mut Frame<'_>) {
    let look = model.look;
    let mut lines = Vec::new();
    for (title, keys) in HELP {
        lines.push(Line::styled(*title, look.bold()));
        for (key, what) in *keys {
            lines.push(Line::from(vec![Span::styled(format!("  {key:<11}"), look.bold()), Span::raw(*what)]));
        }
    }
    let mut marks = vec![Span::styled("Marks  ", look.bold())];
    for status in TaskStatus::ALL.iter().copied() {
        marks.push(Span::styled(format!("{} {status}  ", look.task_mark(status)), look.task(status)));
    }
    lines.push(Line::from(marks));
    over(model, frame, " keys ", lines, 80);
}

pub(super) fn question(model: &Model, frame: &mut Frame<'_>, asked: &Asked) {
    let look = model.look;
    let (question, comes) = consequence(model, &asked.action);
    let mut lines = vec![Line::styled(question, look.bold()), Line::raw(""), Line::raw(comes), Line::raw("")];
    match &asked.reason {
        None => lines.push(Line::from(vec![
            Span::styled("y", look.bold()),
            Span::raw(" yes   "),
            Span::styled("n", look.bold()),
            Span::raw(" no"),
        ])),
        Some(reason) => {
            lines.push(Line::from(vec![
                Span::styled("reason: ", look.bold()),
                Span::raw(reason.clone()),
                Span::raw(look.cursor()),
            ]));
            lines.push(Line::from(vec![
                Span::styled("Enter", look.bold()),
                Span::raw(" yes   "),
                Span::styled("Esc", look.bold()),
                Span::raw(" no"),
            ]));
        }
    }
    over(model, frame, "", lines, 64);
}

/// In the middle, as large as it must be.
fn over(model: &Model, frame: &mut Frame<'_>, title: &'static str, lines: Vec<Line<'_>>, width: u16) {
    let look = model.look;
    let all = frame.area();
    let width = width.min(all.width);
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    let inner = usize::from(width.saturating_sub(4)).max(1);
    let rows = rows(&text, inner);
    let height = (rows + 2).min(all.height);
    let area =
        Rect { x: all.x + (all.width - width) / 2, y: all.y + (all.height - height) / 2, width, height };
    let block = Block::new().borders(Borders::ALL).border_set(look.border()).title(title);
    let within = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    let within = Rect { x: within.x + 1, width: within.width.saturating_sub(2), ..within };
    frame.render_widget(text, within);
}

/// How many rows a text takes, by drawing it aside.
fn rows(text: &Paragraph<'_>, width: usize) -> u16 {
    use ratatui::buffer::Buffer;
    use ratatui::widgets::Widget as _;
    let area = Rect::new(0, 0, u16::try_from(width).unwrap_or(u16::MAX), 60);
    let mut buffer = Buffer::empty(area);
    text.render(area, &mut buffer);
    let is_used = |y: &u16| (0..area.width).any(|x| buffer[(x, *y)].symbol() != " ");
    (0..area.height).filter(is_used).max().map_or(0, |last| last + 1)
}
