//! The first line and the last: where one is, whether what is shown is fresh, and which keys help.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::super::keys;
use super::super::model::{Model, Screen};
use super::super::update::filter;

const TABS: [(&str, Screen); 4] = [
    ("1 runs", Screen::Runs),
    ("2 nodes", Screen::Nodes),
    ("3 pools", Screen::Pools),
    ("4 limits", Screen::Limits),
];

const NAME: &str = " laneway ";

fn tab(screen: Screen) -> Screen {
    match screen {
        Screen::Runs | Screen::Run | Screen::Log => Screen::Runs,
        Screen::Nodes | Screen::Pools | Screen::Limits => screen,
    }
}

/// The screen whose name stands at a column of the first line.
pub(in super::super) fn tab_at(x: u16) -> Option<Screen> {
    let mut at = NAME.len();
    for (name, screen) in TABS {
        let end = at + name.len() + 2;
        if (at..end).contains(&usize::from(x)) {
            return Some(screen);
        }
        at = end;
    }
    None
}

pub(super) fn header(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let look = model.look;
    let mut spans = vec![Span::styled(NAME, look.bold())];
    for (name, screen) in TABS {
        let style = if tab(model.screen) == screen { look.chosen() } else { look.dim() };
        spans.push(Span::styled(format!(" {name} "), style));
    }
    let line = Line::from(spans);
    let left = u16::try_from(line.width()).unwrap_or(area.width);
    frame.render_widget(line, area);
    let (word, style) = match &model.stale {
        None => ("live", look.color(Color::Green)),
        Some(_) => ("stale", look.warning()),
    };
    let room = usize::from(area.width.saturating_sub(left + 12));
    let place = tail(&model.place, room, look.more());
    let right = Line::from(vec![
        Span::styled(place, look.dim()),
        Span::styled(format!("  {} {word} ", look.dot()), style),
    ]);
    let width = u16::try_from(right.width()).unwrap_or(0).min(area.width);
    frame.render_widget(right, Rect { x: area.right() - width, width, ..area });
}

/// The end of a text says more of a path than its beginning.
fn tail(text: &str, room: usize, more: &str) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count - room.saturating_sub(1).min(count)).collect();
    if room == 0 { String::new() } else { format!("{more}{kept}") }
}

pub(super) fn footer(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let look = model.look;
    let line = if let Some(typed) = &model.typed {
        let word = match model.screen {
            Screen::Log => "search",
            Screen::Runs | Screen::Run | Screen::Nodes | Screen::Pools | Screen::Limits => "filter",
        };
        Line::from(vec![
            Span::styled(format!(" {word}: "), look.bold()),
            Span::raw(typed.clone()),
            Span::raw(look.cursor()),
            Span::styled("  Enter keeps it, Esc takes it away", look.dim()),
        ])
    } else if let Some(notice) = &model.notice {
        let style = if notice.is_bad { look.warning() } else { look.bold() };
        Line::from(Span::styled(format!(" {}", notice.text), style))
    } else if let Some(why) = &model.stale {
        Line::from(Span::styled(format!(" what is shown may be old: {why}; trying again"), look.warning()))
    } else {
        let mut spans = Vec::new();
        if !filter(model).is_empty() {
            spans.push(Span::styled(format!(" /{} ", filter(model)), look.chosen()));
        }
        let mut room = usize::from(area.width).saturating_sub(spans.iter().map(Span::width).sum());
        for (key, what) in keys::hints(model) {
            // Half of a word helps nobody.
            let width = key.len() + what.len() + 3;
            if width > room {
                break;
            }
            room -= width;
            spans.push(Span::styled(format!(" {key}"), look.bold()));
            spans.push(Span::styled(format!(" {what} "), look.dim()));
        }
        Line::from(spans)
    };
    frame.render_widget(line, area);
}
