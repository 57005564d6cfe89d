//! What is known and what is looked at. Changed by `update.rs` alone, drawn by `view/`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use laneway_core::growth::parse_name;
use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_server::wire;

use super::action::Action;
use super::logs::Log;
use super::look::Look;
use super::picture::Picture;
use super::rows::{self, Row};

/// From how many columns on there are two panes side by side.
pub(super) const WIDE: u16 = 110;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Screen {
    Runs,
    Run,
    Log,
    Nodes,
    Pools,
    Limits,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) look: Look,
    pub(super) size: (u16, u16),
    /// The store or the server, for people.
    pub(super) place: String,
    /// It is a server: what runs there does not go on in this terminal.
    pub(super) is_remote: bool,
    pub(super) now: Millis,
    pub(super) screen: Screen,
    pub(super) runs: Listed<wire::RunSummary>,
    /// The run that is looked at, on its own screen or beside the list.
    pub(super) run: Option<Opened>,
    pub(super) log: Option<Log>,
    pub(super) nodes: Listed<wire::Node>,
    pub(super) pools: Listed<wire::Pool>,
    pub(super) limits: Listed<wire::Limit>,
    /// A filter or a search that is being typed.
    pub(super) typed: Option<String>,
    /// What is about to be done, if the person agrees.
    pub(super) asked: Option<Asked>,
    pub(super) notice: Option<Notice>,
    /// Why what is shown may be old.
    pub(super) stale: Option<String>,
    pub(super) has_help: bool,
    /// Whether the screen differs from what was drawn.
    pub(super) is_dirty: bool,
}

/// An act that waits for a yes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) action: Action,
    /// Why, in the person's words, where that is kept.
    pub(super) reason: Option<String>,
}

/// The last thing that was said to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_bad: bool,
}

impl Model {
    pub(super) fn new(look: Look, place: String, now: Millis) -> Self {
        Self {
            look,
            size: (80, 24),
            place,
            is_remote: false,
            now,
            screen: Screen::Runs,
            runs: Listed::default(),
            run: None,
            log: None,
            nodes: Listed::default(),
            pools: Listed::default(),
            limits: Listed::default(),
            typed: None,
            asked: None,
            notice: None,
            stale: None,
            has_help: false,
            is_dirty: true,
        }
    }

    pub(super) fn is_wide(&self) -> bool {
        self.size.0 >= WIDE
    }

    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_bad: false });
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_bad: true });
    }

    /// How often the clock is to be told: not at all when nothing on the screen moves with it.
    pub(super) fn pace(&self) -> Pace {
        let is_running = |run: &wire::RunSummary| run.status.is_some_and(|status| !status.is_final());
        let lives = match self.screen {
            Screen::Log => self.log.as_ref().is_some_and(|log| !log.is_over),
            Screen::Run => self.run.as_ref().is_some_and(Opened::is_going_on),
            Screen::Runs => self.runs.all.iter().flatten().any(is_running),
            Screen::Nodes | Screen::Pools | Screen::Limits => false,
        };
        match (self.screen, lives) {
            (Screen::Log, true) => Pace::Log,
            (_, true) => Pace::Seconds,
            (_, false) => Pace::Still,
        }
    }
}

/// How often the clock is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Still,
    Seconds,
    /// A log grows without anybody telling.
    Log,
}

/// Something that stands in a list.
pub(super) trait Entry {
    /// By which it is found again when the list was read anew.
    fn key(&self) -> String;
    /// The words by which it is filtered.
    fn words(&self) -> String;
}

/// A list, and the entry of it that is chosen.
#[derive(Debug)]
pub(super) struct Listed<T> {
    /// `None` before the first answer.
    pub(super) all: Option<Vec<T>>,
    pub(super) filter: String,
    /// Among those that are shown.
    pub(super) chosen: usize,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { all: None, filter: String::new(), chosen: 0 }
    }
}

impl<T: Entry> Listed<T> {
    pub(super) fn shown(&self) -> Vec<&T> {
        self.all.iter().flatten().filter(|entry| is_match(&entry.words(), &self.filter)).collect()
    }

    pub(super) fn chosen(&self) -> Option<&T> {
        self.shown().get(self.chosen).copied()
    }

    /// Takes a list that was read anew; what was chosen stays so.
    pub(super) fn take(&mut self, all: Vec<T>) {
        let key = self.chosen().map(Entry::key);
        self.all = Some(all);
        self.choose_key(key);
    }

    pub(super) fn set_filter(&mut self, filter: &str) {
        let key = self.chosen().map(Entry::key);
        filter.clone_into(&mut self.filter);
        self.choose_key(key);
    }

    fn choose_key(&mut self, key: Option<String>) {
        let shown = self.shown();
        let found = key.and_then(|key| shown.iter().position(|entry| entry.key() == key));
        self.chosen = found.unwrap_or_else(|| self.chosen.min(shown.len().saturating_sub(1)));
    }

    pub(super) fn go(&mut self, by: Go) {
        self.chosen = by.from(self.chosen, self.shown().len());
    }
}

/// Whether all words of a filter are in a text, whatever their case.
pub(super) fn is_match(text: &str, filter: &str) -> bool {
    if filter.is_empty() {
        return true;
    }
    let text = text.to_lowercase();
    filter.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
}

/// A movement in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Go {
    By(isize),
    First,
    Last,
    To(usize),
}

impl Go {
    pub(super) fn from(self, at: usize, len: usize) -> usize {
        let last = len.saturating_sub(1);
        match self {
            Self::By(by) => at.saturating_add_signed(by).min(last),
            Self::First => 0,
            Self::Last => last,
            Self::To(to) => to.min(last),
        }
    }
}

impl Entry for wire::RunSummary {
    fn key(&self) -> String {
        self.run.to_string()
    }

    fn words(&self) -> String {
        let status = self.status.map_or("unreadable", |status| status.as_str());
        let more = if self.interrupted { "interrupted" } else { "" };
        format!("{} {} {status} {more} {}", self.run, self.workflow, self.submitted_by)
    }
}

impl Entry for wire::Node {
    fn key(&self) -> String {
        self.session.to_string()
    }

    fn words(&self) -> String {
        format!("{} {} {}", self.node, self.state, wire::labels(self))
    }
}

impl Entry for wire::Pool {
    fn key(&self) -> String {
        format!("{} {}", self.node, self.pool)
    }

    fn words(&self) -> String {
        self.key()
    }
}

impl Entry for wire::Limit {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn words(&self) -> String {
        format!("{} {}", self.name, self.set_by)
    }
}

/// Which way the tasks of a run are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Graph,
    Tasks,
}

/// A task by its step and the item that it is.
pub(super) type TaskKey = (String, Option<u32>);

/// A run that is looked at.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) id: RunId,
    pub(super) run: Option<Box<wire::Run>>,
    /// `None` until it has come.
    pub(super) picture: Option<Arc<Picture>>,
    pub(super) pane: Pane,
    pub(super) rows: Vec<Row>,
    pub(super) expanded: BTreeSet<String>,
    pub(super) filter: String,
    pub(super) chosen: Option<TaskKey>,
    /// Why a task is as it is, as `laneway explain` says it.
    pub(super) explained: Option<(String, String)>,
    /// Where the task of each step stands.
    pub(super) of_step: HashMap<String, usize>,
}

impl Opened {
    pub(super) fn new(id: RunId) -> Self {
        Self {
            id,
            run: None,
            picture: None,
            pane: Pane::Graph,
            rows: Vec::new(),
            expanded: BTreeSet::new(),
            filter: String::new(),
            chosen: None,
            explained: None,
            of_step: HashMap::new(),
        }
    }

    pub(super) fn is_going_on(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.status.is_final())
    }

    pub(super) fn take(&mut self, run: Box<wire::Run>) {
        let steps = run.tasks.iter().enumerate().filter(|(_, task)| task.index.is_none());
        self.of_step = steps.map(|(at, task)| (task.step.clone(), at)).collect();
        self.run = Some(run);
        if self.chosen.is_none() {
            self.choose_first();
        }
        self.arrange();
    }

    pub(super) fn choose_first(&mut self) {
        if let Some(task) = self.run.as_ref().and_then(|run| first(run)) {
            self.chosen = Some(key(task));
        }
    }

    /// Makes the rows anew: after an answer, a filter, or a step that was opened.
    pub(super) fn arrange(&mut self) {
        let Some(run) = &self.run else { return };
        self.rows = rows::rows(run, &self.expanded, &self.filter);
        // Items that are folded again leave their step.
        if let Some((step, Some(_))) = &self.chosen
            && self.row().is_none()
        {
            self.chosen = Some((step.clone(), None));
        }
        if self.row().is_none() && self.pane == Pane::Tasks {
            self.chosen = self.rows.first().map(|row| key(&run.tasks[row.task]));
        }
    }

    /// Which row is chosen.
    pub(super) fn row(&self) -> Option<usize> {
        let (run, (step, index)) = (self.run.as_ref()?, self.chosen.as_ref()?);
        let is_it = |task: &wire::Task| task.step == *step && task.index == *index;
        self.rows.iter().position(|row| is_it(&run.tasks[row.task]))
    }

    /// The task that is chosen.
    pub(super) fn task(&self) -> Option<&wire::Task> {
        let (step, index) = self.chosen.as_ref()?;
        self.at(step, *index)
    }

    /// A task by its name.
    pub(super) fn find(&self, name: &str) -> Option<&wire::Task> {
        let (step, index) = parse_name(name);
        self.at(step, index)
    }

    fn at(&self, step: &str, index: Option<u32>) -> Option<&wire::Task> {
        let run = self.run.as_ref()?;
        match index {
            None => self.of_step.get(step).and_then(|at| run.tasks.get(*at)),
            Some(_) => run.tasks.iter().find(|task| task.step == step && task.index == index),
        }
    }

    pub(super) fn picture(&self) -> Option<&Arc<Picture>> {
        self.picture.as_ref()
    }

    pub(super) fn go(&mut self, go: Go) {
        let Some(run) = &self.run else { return };
        let at = go.from(self.row().unwrap_or(0), self.rows.len());
        self.chosen = self.rows.get(at).map(|row| key(&run.tasks[row.task])).or(self.chosen.take());
    }
}

pub(super) fn key(task: &wire::Task) -> TaskKey {
    (task.step.clone(), task.index)
}

/// What a person wants to see first: what went wrong, then what runs, then what waits for them.
fn first(run: &wire::Run) -> Option<&wire::Task> {
    let wanted = [TaskStatus::Failed, TaskStatus::Running, TaskStatus::Parked];
    let steps = || run.tasks.iter().filter(|task| task.index.is_none());
    wanted
        .into_iter()
        .find_map(|status| steps().find(|task| task.status == status))
        .or_else(|| steps().next())
}
