//! A log from its end upwards: the last line in sight stands at the bottom, and lines are wrapped until the screen is full.

use laneway_core::time::Millis;
use laneway_engine::log::Stream;
use ratatui::Frame;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use super::super::logs::LogLine;
use super::super::look::Look;
use super::super::model::Model;
use super::Areas;
use super::table::cell;
use crate::text;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, areas: &Areas) {
    let Some(log) = &model.log else { return };
    let look = model.look;
    let mut head = vec![
        Span::styled(format!(" {}", log.of.step), look.bold()),
        Span::raw(format!(" of {}, attempt {}", log.of.run.short(), log.of.attempt)),
        Span::styled(format!("  {}", text::count(log.lines.len() as u64, "line")), look.dim()),
    ];
    let follows = match (log.is_over, log.is_following) {
        (true, _) => "ended",
        (false, true) => "following",
        (false, false) => "f follows",
    };
    head.push(Span::styled(
        format!("  {follows}"),
        if log.is_over { look.dim() } else { look.color(Color::Cyan) },
    ));
    if log.dropped > 0 {
        head.push(Span::styled(format!("  {} earlier: laneway logs has them", log.dropped), look.dim()));
    }
    if log.may_lack_end {
        head.push(Span::styled("  its node was lost: the end may be missing", look.warning()));
    }
    frame.render_widget(Line::from(head), areas.head);

    let area = areas.main;
    let width = usize::from(area.width);
    let mut rows: Vec<Vec<(String, Style)>> = Vec::new();
    let mut at = log.bottom();
    // From the bottom up, and no further than the screen.
    while rows.len() < usize::from(area.height)
        && let Some(line) = log.lines.get(at)
    {
        let mut wrapped = wrap(&pieces(model, line, &log.search, log.found == Some(at)), width, log.wraps);
        wrapped.reverse();
        rows.extend(wrapped);
        match at.checked_sub(1) {
            Some(above) => at = above,
            None => break,
        }
    }
    rows.truncate(area.height.into());
    let buffer = frame.buffer_mut();
    // A log that does not fill the screen begins at its top.
    let top = area.y;
    for (y, row) in (top..).zip(rows.iter().rev()) {
        let mut x = area.x;
        for (piece, style) in row {
            let room = area.right().saturating_sub(x);
            let span = Span::styled(piece.as_str(), *style);
            cell(buffer, look, (x, y, room), &span);
            x = x.saturating_add(u16::try_from(span.width()).unwrap_or(room)).min(area.right());
        }
    }
    if log.lines.is_empty() {
        let told = if log.is_over { "it printed nothing" } else { "nothing yet" };
        buffer.set_stringn(area.x + 1, area.y, told, width, look.dim());
    }
}

fn pieces(model: &Model, line: &LogLine, search: &str, is_found: bool) -> Vec<(String, Style)> {
    let look = model.look;
    let mut pieces = Vec::new();
    if model.log.as_ref().is_some_and(|log| log.has_times) {
        let at = Millis(i64::try_from(line.unix_ms).unwrap_or(0));
        pieces.push((format!("{} ", text::clock(at)), look.dim()));
    }
    let base = match line.stream {
        Stream::Stdout => Style::new(),
        // Told apart by its mark, and by its colour where there are any.
        Stream::Stderr => look.color(Color::Yellow),
        Stream::Note => look.dim(),
    };
    let mark = match line.stream {
        Stream::Stdout => "",
        Stream::Stderr => "! ",
        Stream::Note => "# ",
    };
    if !mark.is_empty() {
        pieces.push((mark.to_owned(), look.dim()));
    }
    for (text, style) in line.text.pieces() {
        let style = if look.has_color() { base.patch(style) } else { plain(style) };
        highlight(look, text, style, search, is_found, &mut pieces);
    }
    pieces
}

/// Without its colours.
fn plain(style: Style) -> Style {
    Style { fg: None, bg: None, ..style }
}

/// What is searched for stands out; more so in the line that was found.
fn highlight(
    look: Look,
    text: &str,
    style: Style,
    search: &str,
    is_found: bool,
    pieces: &mut Vec<(String, Style)>,
) {
    let (lower, needle) = (text.to_lowercase(), search.to_lowercase());
    // Where case changes the length of a text, places in it cannot be told.
    if needle.is_empty() || lower.len() != text.len() {
        pieces.push((text.to_owned(), style));
        return;
    }
    let marked = if is_found { look.chosen() } else { look.warning() };
    let mut at = 0;
    while let Some(found) = lower[at..].find(&needle).map(|found| found + at) {
        let end = found + needle.len();
        let (Some(before), Some(hit)) = (text.get(at..found), text.get(found..end)) else { break };
        pieces.push((before.to_owned(), style));
        pieces.push((hit.to_owned(), style.patch(marked)));
        at = end;
    }
    pieces.push((text.get(at..).unwrap_or_default().to_owned(), style));
}

/// Rows of at most `width` cells.
fn wrap(pieces: &[(String, Style)], width: usize, wraps: bool) -> Vec<Vec<(String, Style)>> {
    if !wraps || width == 0 {
        return vec![pieces.to_vec()];
    }
    let mut rows = vec![Vec::new()];
    let mut used = 0;
    for (text, style) in pieces {
        let mut part = String::new();
        for char in text.chars() {
            let wide = Span::raw(char.to_string()).width();
            if used + wide > width {
                rows.last_mut().expect("there is one").push((std::mem::take(&mut part), *style));
                rows.push(Vec::new());
                used = 0;
            }
            part.push(char);
            used += wide;
        }
        if !part.is_empty() {
            rows.last_mut().expect("there is one").push((part, *style));
        }
    }
    rows
}
