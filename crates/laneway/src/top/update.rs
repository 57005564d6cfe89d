//! What becomes of the model when something happens, and what is to be done about it. The only place that decides; pure.

use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_store::model::LogName;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::action::{self, Action};
use super::keys::{self, Key};
use super::logs::Log;
use super::message::{Answer, Effect, Load, Message};
use super::model::{Go, Model, Opened, Pane, Screen, is_match, key};
use super::{mouse, view};

pub(super) fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Key(event) if event.kind == KeyEventKind::Release => Vec::new(),
        Message::Key(event) => {
            model.is_dirty = true;
            pressed(model, event)
        }
        Message::Paste(text) => {
            model.is_dirty = true;
            pasted(model, &text)
        }
        Message::Mouse(event) => mouse::update(model, event),
        Message::Resize(width, height) => {
            let was_wide = model.is_wide();
            (model.size, model.is_dirty) = ((width, height), true);
            if model.is_wide() == was_wide { Vec::new() } else { looks(model) }
        }
        Message::Hint => looks(model),
        Message::Lost(why) => {
            model.is_dirty |= model.stale.as_ref() != Some(&why);
            model.stale = Some(why);
            Vec::new()
        }
        Message::Clock(now) => {
            (model.now, model.is_dirty) = (now, true);
            match (model.screen, &model.log) {
                (Screen::Log, Some(log)) if !log.is_over => look_at_log(model),
                (_, _) => Vec::new(),
            }
        }
        Message::Answer(answer) => {
            model.is_dirty = true;
            answered(model, answer)
        }
    }
}

/// What the screen shows, to be read again.
pub(super) fn looks(model: &Model) -> Vec<Effect> {
    let load = |load: Load| vec![Effect::Load(load)];
    match model.screen {
        Screen::Runs => {
            let mut effects = load(Load::Runs);
            effects.extend(model.run.as_ref().map(|opened| Effect::Load(Load::Run(opened.id))));
            effects
        }
        Screen::Run => model.run.as_ref().map_or_else(Vec::new, |opened| load(Load::Run(opened.id))),
        Screen::Log => {
            let mut effects = look_at_log(model);
            effects.extend(model.run.as_ref().map(|opened| Effect::Load(Load::Run(opened.id))));
            effects
        }
        Screen::Nodes => load(Load::Nodes),
        Screen::Pools => load(Load::Pools),
        Screen::Limits => load(Load::Limits),
    }
}

fn answered(model: &mut Model, answer: Answer) -> Vec<Effect> {
    if !matches!(answer, Answer::Failed(_) | Answer::Refused(_)) {
        model.stale = None;
    }
    match answer {
        Answer::Runs(runs) => {
            model.runs.take(runs);
            return preview(model);
        }
        Answer::Run(run) => {
            let Some(opened) = model.run.as_mut().filter(|opened| opened.id == run.run) else {
                return Vec::new();
            };
            let mut effects = vec![Effect::LookAt(Some((run.run, run.last_event)))];
            opened.take(run);
            if opened.picture.is_none() {
                effects.push(Effect::Load(Load::Picture(opened.id)));
            }
            effects.extend(explain(model));
            return effects;
        }
        Answer::Picture { run, picture } => {
            if let Some(opened) = model.run.as_mut().filter(|opened| opened.id == run) {
                opened.picture = Some(picture);
                opened.arrange();
            }
        }
        Answer::Explained { run, task, text } => {
            if let Some(opened) = model.run.as_mut().filter(|opened| opened.id == run) {
                opened.explained = Some((task, text));
            }
        }
        Answer::Log(part) => {
            let has_more = part.has_more;
            if let Some(log) = model.log.as_mut().filter(|log| log.of == part.of) {
                log.take(part);
                if has_more {
                    return look_at_log(model);
                }
            }
        }
        Answer::Nodes(nodes) => model.nodes.take(nodes),
        Answer::Pools(pools) => model.pools.take(pools),
        Answer::Limits(limits) => model.limits.take(limits),
        Answer::Failed(why) => model.stale = Some(why),
        Answer::Done(what) => {
            model.say(what);
            return looks(model);
        }
        Answer::Refused(why) => model.warn(why),
    }
    Vec::new()
}

fn pressed(model: &mut Model, event: KeyEvent) -> Vec<Effect> {
    if event.modifiers.contains(KeyModifiers::CONTROL) && event.code == KeyCode::Char('c') {
        return vec![Effect::Quit];
    }
    if model.has_help {
        model.has_help = false;
        return Vec::new();
    }
    if model.asked.is_some() {
        return agreed(model, event);
    }
    if model.typed.is_some() {
        return typed(model, event);
    }
    model.notice = None;
    keys::key(model.screen, event).map_or_else(Vec::new, |key| done(model, key))
}

/// A yes, a no, or the words that go with a yes.
fn agreed(model: &mut Model, event: KeyEvent) -> Vec<Effect> {
    let Some(asked) = &mut model.asked else { return Vec::new() };
    match (event.code, &mut asked.reason) {
        (KeyCode::Esc, _) => model.asked = None,
        // Words are typed: only Enter is a yes.
        (KeyCode::Enter, Some(reason)) => {
            let (action, words) = (asked.action.clone(), reason.trim().to_owned());
            model.asked = None;
            return act(model, with_reason(action, words));
        }
        (KeyCode::Backspace, Some(reason)) => drop(reason.pop()),
        (KeyCode::Char(char), Some(reason)) => reason.push(char),
        (KeyCode::Char('y' | 'Y'), None) => {
            let action = asked.action.clone();
            model.asked = None;
            return act(model, action);
        }
        // Whatever else is pressed: nothing is done by accident.
        (KeyCode::Char('n' | 'N' | 'q'), None) => model.asked = None,
        (_, _) => {}
    }
    Vec::new()
}

fn with_reason(action: Action, words: String) -> Action {
    match action {
        Action::Signal { run, step, signal, reason: _ } => {
            Action::Signal { run, step, signal, reason: Some(words).filter(|words| !words.is_empty()) }
        }
        Action::Cancel { .. }
        | Action::Retry { .. }
        | Action::Skip { .. }
        | Action::Pause { .. }
        | Action::Drain { .. }
        | Action::DrainPool { .. } => action,
    }
}

fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    model.say("…");
    vec![Effect::Act(action)]
}

/// A filter takes hold with every letter; a search with Enter.
fn typed(model: &mut Model, event: KeyEvent) -> Vec<Effect> {
    let Some(text) = &mut model.typed else { return Vec::new() };
    match event.code {
        KeyCode::Char(char) if !event.modifiers.contains(KeyModifiers::CONTROL) => text.push(char),
        KeyCode::Char('u') => text.clear(),
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Enter => {
            model.typed = None;
            return match model.screen {
                Screen::Log => find(model, true),
                Screen::Run => step_found(model, 0),
                Screen::Runs | Screen::Nodes | Screen::Pools | Screen::Limits => Vec::new(),
            };
        }
        KeyCode::Esc => {
            model.typed = None;
            return set_filter(model, "");
        }
        _ => return Vec::new(),
    }
    filter_by_typed(model)
}

fn filter_by_typed(model: &mut Model) -> Vec<Effect> {
    let text = model.typed.clone().unwrap_or_default();
    set_filter(model, &text)
}

/// Goes where words are typed, and only there: it is no key, and agrees to nothing. Ends of lines become blanks.
fn pasted(model: &mut Model, text: &str) -> Vec<Effect> {
    let words: String = text
        .trim_end_matches(char::is_control)
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    match (&mut model.asked, &mut model.typed) {
        (Some(asked), _) => asked.reason.iter_mut().for_each(|reason| reason.push_str(&words)),
        (None, Some(typed)) if !model.has_help => {
            typed.push_str(&words);
            return filter_by_typed(model);
        }
        (None, Some(_) | None) => {}
    }
    Vec::new()
}

/// Another entry may be the chosen one with it.
fn set_filter(model: &mut Model, filter: &str) -> Vec<Effect> {
    match model.screen {
        Screen::Runs => model.runs.set_filter(filter),
        Screen::Nodes => model.nodes.set_filter(filter),
        Screen::Pools => model.pools.set_filter(filter),
        Screen::Limits => model.limits.set_filter(filter),
        Screen::Run => {
            if let Some(opened) = &mut model.run {
                filter.clone_into(&mut opened.filter);
                opened.arrange();
            }
        }
        Screen::Log => {
            if let Some(log) = &mut model.log {
                filter.clone_into(&mut log.search);
                log.found = None;
            }
        }
    }
    [preview(model), explain(model)].concat()
}

/// The filter of the screen, or what is searched for.
pub(super) fn filter(model: &Model) -> &str {
    match model.screen {
        Screen::Runs => &model.runs.filter,
        Screen::Nodes => &model.nodes.filter,
        Screen::Pools => &model.pools.filter,
        Screen::Limits => &model.limits.filter,
        Screen::Run => model.run.as_ref().map_or("", |opened| &opened.filter),
        Screen::Log => model.log.as_ref().map_or("", |log| &log.search),
    }
}

fn done(model: &mut Model, key: Key) -> Vec<Effect> {
    match key {
        Key::Quit => return vec![Effect::Quit],
        Key::Suspend => return vec![Effect::Suspend],
        Key::Help => model.has_help = true,
        Key::Redraw => return [vec![Effect::Redraw], looks(model)].concat(),
        Key::Screen(screen) => return turn_to(model, screen),
        Key::Filter => model.typed = Some(String::new()),
        Key::Go(by) => return go(model, by),
        Key::Page(by) => return go(model, Go::By(by * view::page(model) as isize)),
        Key::Across(by) => return across(model, by),
        Key::Open => return open(model),
        Key::Back => return back(model),
        Key::Pane => {
            if let Some(opened) = model.run.as_mut().filter(|_| model.screen == Screen::Run) {
                opened.pane = if opened.pane == Pane::Graph { Pane::Tasks } else { Pane::Graph };
                opened.arrange();
            }
            return explain(model);
        }
        Key::Log => return open_log(model),
        Key::Follow => {
            if let Some(log) = &mut model.log {
                log.bottom = log.bottom();
                log.is_following = !log.is_following;
            }
        }
        Key::Wrap => model.log.iter_mut().for_each(|log| log.wraps = !log.wraps),
        Key::Times => model.log.iter_mut().for_each(|log| log.has_times = !log.has_times),
        Key::Attempt(by) => return attempt(model, by),
        Key::Next | Key::Previous => {
            let by = if key == Key::Next { 1 } else { -1 };
            return match model.screen {
                Screen::Log => find(model, key == Key::Next),
                Screen::Run => step_found(model, by),
                Screen::Runs | Screen::Nodes | Screen::Pools | Screen::Limits => go(model, Go::By(by)),
            };
        }
        Key::Wish(wish) => match action::offer(model, wish) {
            Ok(asked) => model.asked = Some(asked),
            Err(why) => model.warn(why),
        },
    }
    Vec::new()
}

fn turn_to(model: &mut Model, screen: Screen) -> Vec<Effect> {
    model.screen = screen;
    model.log = None;
    looks(model)
}

pub(super) fn go(model: &mut Model, by: Go) -> Vec<Effect> {
    let page = view::page(model);
    match model.screen {
        Screen::Runs => {
            model.runs.go(by);
            return preview(model);
        }
        Screen::Nodes => model.nodes.go(by),
        Screen::Pools => model.pools.go(by),
        Screen::Limits => model.limits.go(by),
        Screen::Log => model.log.iter_mut().for_each(|log| log.go(by, page)),
        Screen::Run => {
            let Some(opened) = &mut model.run else { return Vec::new() };
            match (opened.pane, opened.picture().cloned(), by) {
                (Pane::Graph, Some(picture), Go::By(by)) => {
                    let at = opened.chosen.as_ref().and_then(|(step, _)| picture.find(step)).unwrap_or(0);
                    choose_step(opened, picture.beside(at, (0, by)));
                }
                (Pane::Graph, Some(_), Go::First) => choose_step(opened, 0),
                (Pane::Graph, Some(picture), Go::Last) => {
                    choose_step(opened, picture.nodes.len().saturating_sub(1));
                }
                (Pane::Graph | Pane::Tasks, _, by) => opened.go(by),
            }
            return explain(model);
        }
    }
    Vec::new()
}

pub(super) fn choose_step(opened: &mut Opened, at: usize) {
    let step = opened.picture().and_then(|picture| picture.nodes.get(at)).map(|node| node.step.clone());
    if let Some(step) = step {
        opened.chosen = Some((step, None));
    }
}

fn across(model: &mut Model, by: isize) -> Vec<Effect> {
    let Some(opened) = model.run.as_mut().filter(|_| model.screen == Screen::Run) else { return Vec::new() };
    match (opened.pane, opened.picture().cloned()) {
        (Pane::Graph, Some(picture)) => {
            let at = opened.chosen.as_ref().and_then(|(step, _)| picture.find(step)).unwrap_or(0);
            choose_step(opened, picture.beside(at, (by, 0)));
        }
        (Pane::Graph, None) => {}
        (Pane::Tasks, _) => {
            if let Some((step, _)) = opened.chosen.clone() {
                if by > 0 {
                    opened.expanded.insert(step);
                } else {
                    opened.expanded.remove(&step);
                }
                opened.arrange();
            }
        }
    }
    explain(model)
}

pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    match model.screen {
        Screen::Runs => match model.runs.chosen().map(|run| run.run) {
            Some(run) => open_run(model, run),
            None => Vec::new(),
        },
        Screen::Run => {
            let Some(opened) = &mut model.run else { return Vec::new() };
            let has_items = opened.task().is_some_and(|task| task.items.is_some());
            if !has_items {
                return open_log(model);
            }
            // Its items are its logs.
            if let Some((step, _)) = opened.chosen.clone() {
                let is_list = opened.pane == Pane::Tasks;
                opened.pane = Pane::Tasks;
                if !(is_list && opened.expanded.remove(&step)) {
                    opened.expanded.insert(step);
                }
                opened.arrange();
            }
            Vec::new()
        }
        Screen::Nodes => {
            let run = model.nodes.chosen().and_then(|node| node.active_claims.first()).map(|claim| claim.run);
            match run {
                Some(run) => open_run(model, run),
                None => {
                    model.say("it runs nothing now");
                    Vec::new()
                }
            }
        }
        Screen::Log | Screen::Pools | Screen::Limits => Vec::new(),
    }
}

pub(super) fn open_run(model: &mut Model, run: RunId) -> Vec<Effect> {
    match model.run.as_mut().filter(|opened| opened.id == run) {
        // What went wrong or runs now, and not when it was first seen beside the list.
        Some(opened) => opened.choose_first(),
        None => model.run = Some(Opened::new(run)),
    }
    model.screen = Screen::Run;
    looks(model)
}

fn open_log(model: &mut Model) -> Vec<Effect> {
    if model.screen == Screen::Runs {
        return open(model);
    }
    let Some(opened) = model.run.as_ref().filter(|_| model.screen == Screen::Run) else { return Vec::new() };
    let Some(task) = opened.task() else { return Vec::new() };
    if task.items.is_some() {
        model.say("its items have logs: Enter shows them");
        return Vec::new();
    }
    if task.attempt == 0 {
        let name = task.name();
        model.say(format!("{name} has printed nothing: it has not started"));
        return Vec::new();
    }
    let of = LogName { run: opened.id, step: task.name(), attempt: task.attempt };
    model.log = Some(Log::new(of));
    model.screen = Screen::Log;
    look_at_log(model)
}

fn attempt(model: &mut Model, by: isize) -> Vec<Effect> {
    let Some(log) = model.log.as_ref().filter(|_| model.screen == Screen::Log) else { return Vec::new() };
    let tried =
        model.run.as_ref().and_then(|opened| opened.find(&log.of.step)).map_or(0, |task| task.attempt);
    let wanted = (i64::from(log.of.attempt) + by as i64).clamp(1, i64::from(tried.max(1)));
    let attempt = u32::try_from(wanted).unwrap_or(1);
    if attempt == log.of.attempt {
        model.say(if tried == 1 {
            "it had one attempt".to_owned()
        } else {
            format!("there are {tried} attempts")
        });
        return Vec::new();
    }
    model.log = Some(log.of_attempt(attempt));
    look_at_log(model)
}

fn look_at_log(model: &Model) -> Vec<Effect> {
    let Some(log) = &model.log else { return Vec::new() };
    if log.is_over {
        return Vec::new();
    }
    let task = model.run.as_ref().and_then(|opened| opened.find(&log.of.step));
    let is_ended =
        task.is_none_or(|task| task.attempt != log.of.attempt || task.status != TaskStatus::Running);
    vec![Effect::Load(Load::Log { of: log.of.clone(), offset: log.offset, is_ended })]
}

fn back(model: &mut Model) -> Vec<Effect> {
    if !filter(model).is_empty() {
        return set_filter(model, "");
    }
    match model.screen {
        Screen::Log => {
            model.log = None;
            model.screen = Screen::Run;
            looks(model)
        }
        Screen::Run => turn_to(model, Screen::Runs),
        Screen::Nodes | Screen::Pools | Screen::Limits => turn_to(model, Screen::Runs),
        Screen::Runs => Vec::new(),
    }
}

/// The chosen run of the list is read: it is shown beside it where there is room, and keys ask how it is.
pub(super) fn preview(model: &mut Model) -> Vec<Effect> {
    if model.screen != Screen::Runs {
        return Vec::new();
    }
    let Some(run) = model.runs.chosen().map(|run| run.run) else { return Vec::new() };
    if model.run.as_ref().is_some_and(|opened| opened.id == run) {
        return Vec::new();
    }
    model.run = Some(Opened::new(run));
    vec![Effect::Load(Load::Run(run))]
}

/// Why the chosen task is as it is.
pub(super) fn explain(model: &Model) -> Vec<Effect> {
    let Some(opened) = model.run.as_ref().filter(|_| model.screen == Screen::Run) else { return Vec::new() };
    let Some(task) = opened.task() else { return Vec::new() };
    vec![Effect::Load(Load::Explain { run: opened.id, task: task.name() })]
}

fn find(model: &mut Model, is_forward: bool) -> Vec<Effect> {
    let page = view::page(model);
    let Some(log) = &mut model.log else { return Vec::new() };
    if !log.search.is_empty() && !log.find(is_forward, page) {
        let text = format!("`{}` is not in what was read of it", log.search);
        model.warn(text);
    }
    Vec::new()
}

/// The next step of a graph that the filter finds; with 0 the chosen one itself, if it is one.
fn step_found(model: &mut Model, by: isize) -> Vec<Effect> {
    let Some(opened) = &mut model.run else { return Vec::new() };
    if opened.pane == Pane::Tasks || opened.filter.is_empty() {
        return if by == 0 { explain(model) } else { go(model, Go::By(by)) };
    }
    let (Some(picture), Some(run)) = (opened.picture().cloned(), &opened.run) else { return Vec::new() };
    let is_found = |at: usize| {
        let node = &picture.nodes[at];
        let task = opened.of_step.get(&node.step).and_then(|at| run.tasks.get(*at));
        let status = task.map(|task| task.status.as_str()).unwrap_or_default();
        is_match(&format!("{} {status}", node.step), &opened.filter)
    };
    let count = picture.nodes.len() as isize;
    let at = opened.chosen.as_ref().and_then(|(step, _)| picture.find(step)).unwrap_or(0) as isize;
    let first = if by == 0 { 0 } else { 1 };
    let step = if by == 0 { 1 } else { by };
    let order = (first..=count).map(|n| (at + n * step).rem_euclid(count.max(1)) as usize);
    match order.into_iter().find(|at| is_found(*at)) {
        Some(at) => choose_step(opened, at),
        None => {
            let text = format!("no step matches `{}`", opened.filter);
            model.warn(text);
        }
    }
    explain(model)
}

/// The row of a list under the mouse.
pub(super) fn choose(model: &mut Model, row: usize) -> Vec<Effect> {
    match model.screen {
        Screen::Log => Vec::new(),
        Screen::Run => {
            if let Some(opened) = &mut model.run
                && let Some(run) = &opened.run
                && let Some(row) = opened.rows.get(row)
            {
                opened.chosen = Some(key(&run.tasks[row.task]));
            }
            explain(model)
        }
        Screen::Runs | Screen::Nodes | Screen::Pools | Screen::Limits => go(model, Go::To(row)),
    }
}
