//! Which key means what, on which screen. The words for them, in the last line and in the help, stand here too, so that they
//! cannot part. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Wish, offer};
use super::model::{Go, Model, Pane, Screen};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Go(Go),
    /// By screenfuls.
    Page(isize),
    /// To the left or right in a graph; closes or opens in a list.
    Across(isize),
    Open,
    Back,
    Filter,
    Next,
    Previous,
    Wish(Wish),
    Screen(Screen),
    Pane,
    Log,
    Follow,
    Wrap,
    Times,
    Attempt(isize),
    Help,
    Quit,
    Redraw,
    Suspend,
}

pub(super) fn key(screen: Screen, event: KeyEvent) -> Option<Key> {
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return match event.code {
            KeyCode::Char('c') => Some(Key::Quit),
            KeyCode::Char('l') => Some(Key::Redraw),
            KeyCode::Char('z') => Some(Key::Suspend),
            KeyCode::Char('d') => Some(Key::Page(1)),
            KeyCode::Char('u') => Some(Key::Page(-1)),
            _ => None,
        };
    }
    let of_log = screen == Screen::Log;
    Some(match event.code {
        KeyCode::Char('q') => Key::Quit,
        KeyCode::Char('?') | KeyCode::F(1) => Key::Help,
        KeyCode::Char('/') => Key::Filter,
        KeyCode::Char('n') => Key::Next,
        KeyCode::Char('N') => Key::Previous,
        KeyCode::Char('1') => Key::Screen(Screen::Runs),
        KeyCode::Char('2') => Key::Screen(Screen::Nodes),
        KeyCode::Char('3') => Key::Screen(Screen::Pools),
        KeyCode::Char('4') => Key::Screen(Screen::Limits),
        KeyCode::Down | KeyCode::Char('j') => Key::Go(Go::By(1)),
        KeyCode::Up | KeyCode::Char('k') => Key::Go(Go::By(-1)),
        KeyCode::Left | KeyCode::Char('h') => Key::Across(-1),
        KeyCode::Right => Key::Across(1),
        KeyCode::PageDown => Key::Page(1),
        KeyCode::PageUp => Key::Page(-1),
        KeyCode::Char(' ') if of_log => Key::Page(1),
        KeyCode::Home | KeyCode::Char('g') => Key::Go(Go::First),
        KeyCode::End | KeyCode::Char('G') => Key::Go(Go::Last),
        KeyCode::Enter | KeyCode::Char(' ') => Key::Open,
        KeyCode::Esc | KeyCode::Backspace => Key::Back,
        KeyCode::Tab | KeyCode::BackTab => Key::Pane,
        KeyCode::Char('l') => Key::Log,
        KeyCode::Char('f') if of_log => Key::Follow,
        KeyCode::Char('w') if of_log => Key::Wrap,
        KeyCode::Char('t') if of_log => Key::Times,
        KeyCode::Char('[') => Key::Attempt(-1),
        KeyCode::Char(']') => Key::Attempt(1),
        KeyCode::Char('c') => Key::Wish(Wish::Cancel),
        KeyCode::Char('r') => Key::Wish(Wish::Retry),
        KeyCode::Char('R') => Key::Wish(Wish::RetryFrom),
        KeyCode::Char('s') => Key::Wish(Wish::Skip),
        KeyCode::Char('a') => Key::Wish(Wish::Signal),
        KeyCode::Char('p') => Key::Wish(Wish::Pause),
        KeyCode::Char('d') => Key::Wish(Wish::Drain),
        _ => return None,
    })
}

/// Keys as somebody writes them: letters, and `enter`, `esc`, `tab`, `up`, `down`, `left`, `right` and the like, divided by
/// blanks.
pub(crate) fn typed(text: &str) -> Result<Vec<KeyEvent>, String> {
    let code = |word: &str| {
        let mut letters = word.chars();
        Ok(match (word, letters.next(), letters.next()) {
            ("enter", _, _) => KeyCode::Enter,
            ("esc", _, _) => KeyCode::Esc,
            ("tab", _, _) => KeyCode::Tab,
            ("up", _, _) => KeyCode::Up,
            ("down", _, _) => KeyCode::Down,
            ("left", _, _) => KeyCode::Left,
            ("right", _, _) => KeyCode::Right,
            ("space", _, _) => KeyCode::Char(' '),
            (_, Some(letter), None) => KeyCode::Char(letter),
            (_, _, _) => return Err(format!("`{word}` is no key")),
        })
    };
    let event = |word: &str| Ok(KeyEvent::new(code(word)?, KeyModifiers::NONE));
    text.split_whitespace().map(event).collect()
}

/// The keys that matter most here, for the last line: those in front are shown where there is little room. Of acts only those that
/// the state allows.
pub(super) fn hints(model: &Model) -> Vec<(&'static str, &'static str)> {
    const AROUND: [(&str, &str); 2] = [("?", "help"), ("q", "quit")];
    let pane = model.run.as_ref().map_or(Pane::Graph, |opened| opened.pane);
    let (before, wishes, behind): (&[_], &[Wish], &[_]) = match (model.screen, pane) {
        (Screen::Runs, _) => {
            (&[("Enter", "open"), ("/", "filter")], &[Wish::Cancel, Wish::Retry, Wish::Pause], &AROUND)
        }
        (Screen::Run, Pane::Graph) => (
            &[("Enter", "log"), ("Tab", "list"), ("/", "find")],
            &[Wish::Signal, Wish::Cancel, Wish::Retry, Wish::Skip],
            &[("Esc", "back"), AROUND[0], AROUND[1]],
        ),
        (Screen::Run, Pane::Tasks) => (
            &[("Enter", "log"), ("Tab", "graph"), ("/", "filter")],
            &[Wish::Signal, Wish::Cancel, Wish::Retry, Wish::Skip],
            &[("Esc", "back"), AROUND[0], AROUND[1]],
        ),
        (Screen::Log, _) => (
            &[("/", "search"), ("n N", "next"), ("f", "follow"), ("w", "wrap"), ("[ ]", "attempt")],
            &[],
            &[("Esc", "back"), AROUND[0]],
        ),
        (Screen::Nodes | Screen::Pools, _) => {
            (&[], &[Wish::Drain], &[("/", "filter"), ("1", "runs"), AROUND[0], AROUND[1]])
        }
        (Screen::Limits, _) => (&[("/", "filter"), ("1", "runs")], &[], &AROUND),
    };
    let acts = wishes.iter().filter_map(|wish| Some(hint(&offer(model, *wish).ok()?.action)));
    before.iter().copied().chain(acts).chain(behind.iter().copied()).collect()
}

fn hint(action: &Action) -> (&'static str, &'static str) {
    match action {
        Action::Cancel { .. } => ("c", "cancel"),
        Action::Retry { from: None, .. } => ("r", "retry"),
        Action::Retry { from: Some(_), .. } => ("R", "retry from"),
        Action::Skip { .. } => ("s", "skip"),
        Action::Signal { .. } => ("a", "answer"),
        Action::Pause { is_paused: true, .. } => ("p", "pause"),
        Action::Pause { is_paused: false, .. } => ("p", "go on"),
        Action::Drain { .. } | Action::DrainPool { .. } => ("d", "drain"),
    }
}

/// All of them.
pub(super) const HELP: &[(&str, &[(&str, &str)])] = &[
    (
        "Everywhere",
        &[
            ("1 2 3 4", "runs, nodes, pools, limits"),
            ("arrows j k", "move; PgUp PgDn by screens, g G to the ends"),
            ("Enter  Esc", "open, go back"),
            ("/", "filter a list, search a log; Esc takes it away"),
            ("?  q", "this help, quit"),
        ],
    ),
    (
        "A run",
        &[
            ("Tab", "graph or list"),
            ("Enter  l", "the log of a step; of a step with items, its items"),
            ("n N", "the next step that was found"),
        ],
    ),
    (
        "A log",
        &[
            ("f w t", "follow its end, wrap lines, show times"),
            ("n N  [ ]", "next or previous find; attempt before or after"),
        ],
    ),
    (
        "To act (each asks first)",
        &[
            ("c  p", "cancel a run; pause it or let it go on"),
            ("r  R", "retry what failed; retry from the chosen step"),
            ("s  a", "skip a failed step; answer a step that waits"),
            ("d", "drain a node or a pool"),
        ],
    ),
];
