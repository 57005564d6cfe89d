//! A list of which only what is in sight is made: columns with widths, a chosen row, and a mark where a cell was cut.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::super::look::Look;

/// How wide a column is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Width {
    Fixed(u16),
    /// A share of what is left.
    Share(u16),
}

pub(super) type Column = (&'static str, Width);

/// Between two columns.
const GAP: u16 = 2;

/// The first row in sight: the chosen one is kept in the middle, as far as the ends allow.
pub(in super::super) fn scroll(chosen: usize, count: usize, height: usize) -> usize {
    chosen.saturating_sub(height / 2).min(count.saturating_sub(height))
}

/// Draws the head and the rows in sight.
pub(super) fn draw<'a>(
    buffer: &mut Buffer,
    area: Rect,
    look: Look,
    columns: &[Column],
    (chosen, count): (Option<usize>, usize),
    row: impl Fn(usize) -> Vec<Span<'a>>,
) {
    if area.is_empty() {
        return;
    }
    let widths = widths(columns, area.width);
    let mut x = area.x;
    for ((head, _), width) in columns.iter().zip(&widths) {
        cell(buffer, look, (x, area.y, *width), &Span::styled(*head, look.dim()));
        x += width + GAP;
    }
    let height = usize::from(area.height - 1);
    let top = scroll(chosen.unwrap_or(0), count, height);
    for (y, index) in (area.y + 1..area.bottom()).zip(top..count) {
        let mut x = area.x;
        for (span, width) in row(index).iter().zip(&widths) {
            cell(buffer, look, (x, y, *width), span);
            x += width + GAP;
        }
        if chosen == Some(index) {
            buffer.set_style(Rect { x: area.x, y, width: area.width, height: 1 }, look.chosen());
        }
    }
}

/// One text in its cell.
pub(super) fn cell(buffer: &mut Buffer, look: Look, (x, y, width): (u16, u16, u16), span: &Span<'_>) {
    if width == 0 {
        return;
    }
    let (end, _) = buffer.set_stringn(x, y, &span.content, width.into(), span.style);
    if span.width() > width.into() {
        let at = x + width - 1;
        buffer.set_stringn(at.min(end), y, look.more(), 1, span.style);
    }
}

fn widths(columns: &[Column], all: u16) -> Vec<u16> {
    let gaps = GAP * u16::try_from(columns.len().saturating_sub(1)).unwrap_or(0);
    let (fixed, shares) = columns.iter().fold((0, 0), |(fixed, shares), (_, width)| match width {
        Width::Fixed(width) => (fixed + width, shares),
        Width::Share(share) => (fixed, shares + share),
    });
    let rest = all.saturating_sub(fixed + gaps);
    let mut x = 0;
    let mut widths = Vec::with_capacity(columns.len());
    for (_, width) in columns {
        let wanted = match width {
            Width::Fixed(width) => *width,
            Width::Share(share) => rest * share / shares.max(1),
        };
        // Nothing is drawn beyond the edge.
        let width = wanted.min(all.saturating_sub(x));
        widths.push(width);
        x += width + GAP;
    }
    widths
}

/// Text in place of an empty list: what to do next.
pub(super) fn empty(buffer: &mut Buffer, area: Rect, lines: &[&str], style: Style) {
    for (y, line) in (area.y + 1..area.bottom()).zip(lines) {
        buffer.set_stringn(area.x + 2, y, line, usize::from(area.width.saturating_sub(2)), style);
    }
}
