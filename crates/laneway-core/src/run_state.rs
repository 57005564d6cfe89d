//! A run as its events tell it: the fold that `laneway replay` compares with the store, byte for byte.
//! It decides nothing: every change goes through the transition functions of `state.rs`, and a history that
//! they do not allow is refused with the number of the event.

use serde::Serialize;
use serde_json::{Map, Value};

use std::collections::{BTreeSet, HashMap};

use crate::child::Parent;
use crate::effect::{EffectState, EffectStatus};
use crate::event::{
    Closing, EffectCommitted, EffectStarted, Event, Fact, LevelCommitted, PauseScope, TasksAdded,
};
use crate::growth::{Item, ItemName, Items};
use crate::hash::Version;
use crate::id::RunId;
use crate::level::{self, Cursor};
use crate::plan::merge_name;
use crate::reason::Reason;
use crate::state::{Illegal, RunMove, RunStatus, TaskMove, TaskStatus};
use crate::time::Millis;
use crate::wait::{Signal, Waiting};

/// Everything about a run that is a consequence of its events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunState {
    pub run: RunId,
    pub workflow: String,
    pub version: Version,
    pub params: Map<String, Value>,
    pub max_parallel: u32,
    pub status: RunStatus,
    pub reason: Option<String>,
    pub closing: Option<Closing>,
    /// Until when steps with `when: always` and hooks may run, of a run that is being canceled or
    /// was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clean_up_until: Option<Millis>,
    /// What keeps it paused, sorted; empty for a run that is not.
    pub paused: Vec<PauseScope>,
    pub submitted_at: Millis,
    /// Until when it waits, of one that was submitted for later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Millis>,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    /// Number of the last event.
    pub last_event: u64,
    /// How far it has come, of a run that goes level by level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Committed>,
    /// The step that started it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Its steps are executed also where a result of before would do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// In definition order; behind all of them the items of those that have some, step by step.
    pub tasks: Vec<TaskState>,
}

/// The levels of a run that are committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Committed {
    /// How many.
    pub count: u32,
    /// Address of what they have put out.
    pub checkpoint: String,
}

impl Committed {
    /// `None` before the first.
    pub fn of(cursor: Cursor) -> Option<Self> {
        Some(Self { count: cursor.level, checkpoint: cursor.checkpoint? })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskState {
    pub step: String,
    pub status: TaskStatus,
    /// The last attempt of which the events know; 0 before the first.
    pub attempt: u32,
    pub node: Option<String>,
    pub reason: Option<Reason>,
    pub detail: Option<String>,
    pub exit_code: Option<i32>,
    pub output: Map<String, Value>,
    pub run_at: Option<Millis>,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    /// How long the last attempt took, as its holder measured it.
    pub took_ms: Option<u64>,
    /// Retries spent since the run was last opened.
    pub retries: u32,
    /// How often it was lost with its node since the run was last opened.
    pub lost: u32,
    /// Of a step that waits, since it is parked or somebody has signaled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<Waiting>>,
    /// By name and key. They outlive attempts, and a retry of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectState>,
    /// Of a task that is an item of a step: which one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Box<Item>>,
    /// Of a step with `for_each`, since its list is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
}

impl TaskState {
    pub(crate) fn new(step: String) -> Self {
        Self {
            step,
            status: TaskStatus::Pending,
            attempt: 0,
            node: None,
            reason: None,
            detail: None,
            exit_code: None,
            output: Map::new(),
            run_at: None,
            started_at: None,
            finished_at: None,
            took_ms: None,
            retries: 0,
            lost: 0,
            wait: None,
            effects: Vec::new(),
            item: None,
            items: None,
        }
    }

    /// Pending again, as if new but for its attempt number, which never goes back, its items, and what it has done to the world.
    fn reopened(&self) -> Self {
        let (item, items, effects) = (self.item.clone(), self.items, self.effects.clone());
        Self { attempt: self.attempt, item, items, effects, ..Self::new(self.step.clone()) }
    }
}

/// A history that cannot have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("the history is empty")]
    Empty,
    #[error("event {seq} is missing: {found} follows {}", seq - 1)]
    Gap { seq: u64, found: u64 },
    #[error("event {seq}: the first event of a run is run_submitted, not {found}")]
    NotSubmitted { seq: u64, found: &'static str },
    #[error("event {seq}: {illegal}")]
    Illegal { seq: u64, illegal: Illegal },
    #[error("event {seq} speaks of step `{step}`, which the workflow does not have")]
    UnknownStep { seq: u64, step: String },
    #[error("event {seq} is of attempt {found} of `{step}`, whose attempt is {expected}")]
    WrongAttempt { seq: u64, step: String, found: u32, expected: u32 },
    #[error("event {seq} is older than the one before it")]
    Older { seq: u64 },
    #[error("event {seq}: {found} in a run that is {status}")]
    NotRunning { seq: u64, found: &'static str, status: RunStatus },
    #[error("event {seq}: {found} cannot end a {entity}")]
    NotFinal { seq: u64, found: &'static str, entity: &'static str },
    #[error("event {seq} commits level {found}, and level {expected} is next")]
    WrongLevel { seq: u64, found: u32, expected: u32 },
    #[error("event {seq} commits a level in which `{step}` is {status}")]
    OpenLevel { seq: u64, step: String, status: TaskStatus },
    #[error("event {seq}: the checkpoint of level {level} is not that of its results")]
    WrongCheckpoint { seq: u64, level: u32 },
}

/// Rebuilds a run. `steps` are the names of its workflow's steps in definition order.
pub fn replay<'a>(steps: impl IntoIterator<Item = &'a str>, events: &[Event]) -> Result<RunState, Broken> {
    let mut replay = Replay::new(steps);
    replay.go_on(events)?;
    replay.end()
}

/// The same, page by page: of a long history no more is held than the run itself.
#[derive(Debug)]
pub struct Replay {
    /// Until the first event.
    tasks: Vec<TaskState>,
    fold: Option<Fold>,
}

impl Replay {
    pub fn new<'a>(steps: impl IntoIterator<Item = &'a str>) -> Self {
        let tasks = steps.into_iter().map(|step| TaskState::new(step.to_owned())).collect();
        Self { tasks, fold: None }
    }

    pub fn go_on(&mut self, events: &[Event]) -> Result<(), Broken> {
        for event in events {
            match &mut self.fold {
                Some(fold) => fold.apply(event)?,
                None => self.fold = Some(Fold::begin(event, std::mem::take(&mut self.tasks))?),
            }
        }
        Ok(())
    }

    pub fn end(self) -> Result<RunState, Broken> {
        let Fold { mut state, places, .. } = self.fold.ok_or(Broken::Empty)?;
        // They came in batches, those of one step between those of others.
        state.tasks.sort_by_key(|task| {
            task.item.as_ref().map(|item| (places.get(&item.of).copied().unwrap_or(usize::MAX), item.index))
        });
        Ok(state)
    }
}

#[derive(Debug)]
struct Fold {
    state: RunState,
    /// Name of a step to its place: histories are long, so that a scan for each event would be quadratic.
    places: HashMap<String, usize>,
    /// Of the levels that are committed.
    checkpoints: Vec<String>,
    /// Effects of items whose list is made anew: by step, value, and which of equal ones it was. An item of the same value takes them up.
    laid_by: HashMap<(String, String, usize), Vec<EffectState>>,
    /// When the last event happened.
    at: Millis,
}

impl Fold {
    fn begin(first: &Event, tasks: Vec<TaskState>) -> Result<Self, Broken> {
        if first.seq != 1 {
            return Err(Broken::Gap { seq: 1, found: first.seq });
        }
        let Fact::RunSubmitted(submitted) = &first.fact else {
            return Err(Broken::NotSubmitted { seq: first.seq, found: first.fact.name() });
        };
        let places = tasks.iter().enumerate().map(|(place, task)| (task.step.clone(), place)).collect();
        let state = RunState {
            run: first.run,
            workflow: submitted.workflow.clone(),
            version: submitted.version.clone(),
            params: submitted.params.clone(),
            max_parallel: submitted.max_parallel,
            status: RunStatus::Queued,
            reason: None,
            closing: None,
            clean_up_until: None,
            paused: Vec::new(),
            submitted_at: first.at,
            not_before: submitted.not_before,
            started_at: None,
            finished_at: None,
            last_event: 1,
            levels: None,
            parent: submitted.parent.clone(),
            no_cache: submitted.no_cache,
            tasks,
        };
        Ok(Self { state, places, checkpoints: Vec::new(), laid_by: HashMap::new(), at: first.at })
    }

    fn apply(&mut self, event: &Event) -> Result<(), Broken> {
        let (seq, at) = (event.seq, event.at);
        if seq != self.state.last_event + 1 {
            return Err(Broken::Gap { seq: self.state.last_event + 1, found: seq });
        }
        if at < self.at {
            return Err(Broken::Older { seq });
        }
        self.state.last_event = seq;
        self.at = at;
        self.is_possible(event)?;
        match &event.fact {
            Fact::RunSubmitted(_) => {
                return Err(Broken::Illegal {
                    seq,
                    illegal: Illegal { entity: "run", from: self.state.status.as_str(), to: "submit" },
                });
            }
            Fact::RunDue(_) => {
                if self.state.status != RunStatus::Queued || self.state.not_before.is_none() {
                    let illegal = Illegal { entity: "run", from: self.state.status.as_str(), to: "due" };
                    return Err(Broken::Illegal { seq, illegal });
                }
                self.state.not_before = None;
            }
            Fact::RunStarted(_) => {
                self.run_moves(seq, RunMove::Start)?;
                self.state.not_before = None;
                self.state.started_at = Some(at);
            }
            Fact::RunAdopted(_) | Fact::RunBound(_) => {}
            Fact::RunReleased(f) => self.withdraw(seq, &f.tasks)?,
            Fact::RunHalted(f) => self.state.closing = Some(f.closing),
            Fact::RunCanceling(f) => {
                self.state.closing = Some(f.closing);
                self.state.clean_up_until = f.clean_up_until;
            }
            Fact::RunPaused(f) => {
                self.pauses(seq, f.scope)?;
                self.withdraw(seq, &f.tasks)?;
            }
            Fact::RunResumed(f) => self.resumes(seq, f.scope)?,
            Fact::RunReopened(f) => {
                self.run_moves(seq, RunMove::Reopen)?;
                self.state.reason = None;
                self.state.closing = None;
                self.state.clean_up_until = None;
                self.state.finished_at = None;
                // One that ended before its first start, in the queue, starts with this.
                self.state.started_at = self.state.started_at.or(Some(at));
                let children: BTreeSet<&String> = f.children.iter().collect();
                for step in &f.tasks {
                    let task = self.task(seq, step)?;
                    let status = moved(seq, task, TaskMove::Reopen)?;
                    let child = task.wait.as_ref().and_then(|wait| wait.child.or(wait.again));
                    let child = child.filter(|_| children.contains(step));
                    let wait = child.map(Waiting::again);
                    *task = TaskState { status, wait, ..task.reopened() };
                }
                if let Some(level) = f.level {
                    self.checkpoints.truncate(level as usize);
                    self.note_levels();
                }
            }
            Fact::RunFinished(f) => {
                let step = match f.status {
                    RunStatus::Succeeded => RunMove::Succeed,
                    RunStatus::Failed => RunMove::Fail,
                    RunStatus::Canceled => RunMove::Cancel,
                    RunStatus::Queued | RunStatus::Running => {
                        return Err(Broken::NotFinal { seq, found: f.status.as_str(), entity: "run" });
                    }
                };
                self.run_moves(seq, step)?;
                self.state.reason.clone_from(&f.reason);
                self.state.finished_at = Some(at);
                self.state.not_before = None;
                // What has ended is held up by nobody.
                self.state.paused.clear();
            }
            Fact::TaskAvailable(f) => {
                let task = self.task(seq, &f.step)?;
                task.status = moved(seq, task, TaskMove::Promote)?;
                task.run_at = None;
                forget_last_attempt(task);
            }
            Fact::TaskStarted(f) => {
                let task = self.task(seq, &f.step)?;
                claim(seq, task, f.attempt)?;
                task.node = Some(f.node.clone());
                task.started_at = Some(at);
            }
            Fact::TaskReturned(f) => {
                // A run that is being canceled does its clean-up also while it is paused.
                let is_canceling = self.state.closing.is_some_and(Closing::is_canceling);
                let is_paused = !self.state.paused.is_empty() && !is_canceling;
                let task = self.task(seq, &f.step)?;
                // One that was claimed ahead of its place waits for that as before.
                let is_ahead = task.status == TaskStatus::Pending;
                match f.attempt {
                    Some(attempt) if is_ahead => next_attempt(seq, task, attempt)?,
                    Some(attempt) => {
                        claim(seq, task, attempt)?;
                        task.status = moved(seq, task, TaskMove::GiveBack)?;
                    }
                    None => {}
                }
                // It waits if the run is paused, and always without an attempt.
                if (is_paused || f.attempt.is_none()) && !is_ahead {
                    task.status = moved(seq, task, TaskMove::Withdraw)?;
                }
            }
            Fact::TaskRetrying(f) => {
                let task = self.task(seq, &f.step)?;
                claim_if_unseen(seq, task, f.attempt)?;
                task.status = moved(seq, task, TaskMove::Requeue)?;
                task.reason = Some(f.reason);
                task.detail.clone_from(&f.detail);
                task.exit_code = f.exit_code;
                task.took_ms = Some(f.took_ms);
                task.run_at = Some(f.run_at);
                task.retries += 1;
            }
            Fact::TaskLost(f) => {
                let task = self.task(seq, &f.step)?;
                claim_if_unseen(seq, task, f.attempt)?;
                task.status = moved(seq, task, TaskMove::Requeue)?;
                task.node = Some(f.node.clone());
                task.reason = Some(Reason::Lost);
                task.detail = None;
                task.exit_code = None;
                task.took_ms = None;
                task.lost += 1;
            }
            Fact::TaskParked(f) => {
                let task = self.task(seq, &f.step)?;
                task.status = moved(seq, task, TaskMove::Park)?;
                task.run_at = None;
                forget_last_attempt(task);
                task.started_at = Some(at);
                match f.items {
                    None => {
                        let wait = task.wait.get_or_insert_default();
                        (wait.until, wait.timeout_at) = (f.until, f.timeout_at);
                        wait.life = f.workflow.as_ref().map(|_| seq);
                    }
                    // It waits for its items, and for nothing else.
                    Some(total) => {
                        let added = task.items.map_or(0, |items| items.added);
                        task.items = Some(Items { total, added });
                    }
                }
            }
            Fact::ChildRunStarted(f) => {
                let task = self.task(seq, &f.step)?;
                if task.status != TaskStatus::Parked {
                    let illegal = Illegal { entity: "task", from: task.status.as_str(), to: "child" };
                    return Err(Broken::Illegal { seq, illegal });
                }
                let wait = task.wait.get_or_insert_default();
                (wait.child, wait.again) = (Some(f.child), None);
            }
            Fact::TaskSignaled(f) => {
                let task = self.task(seq, &f.step)?;
                let is_first = task.wait.as_ref().is_none_or(|wait| wait.signal.is_none());
                if !is_first || !matches!(task.status, TaskStatus::Pending | TaskStatus::Parked) {
                    let from = if is_first { task.status.as_str() } else { "signaled" };
                    let illegal = Illegal { entity: "task", from, to: "signal" };
                    return Err(Broken::Illegal { seq, illegal });
                }
                let (by, reason, payload) = (f.by.clone(), f.reason.clone(), f.payload.clone());
                task.wait.get_or_insert_default().signal = Some(Signal { by, reason, at, payload });
            }
            Fact::TaskCached(f) => {
                let task = self.task(seq, &f.step)?;
                claim_if_unseen(seq, task, f.attempt)?;
                // What it takes stands in its end, which comes next.
                moved(seq, task, TaskMove::Succeed)?;
            }
            Fact::TasksAdded(f) => self.adds(seq, f)?,
            Fact::TasksRemoved(f) => {
                self.task(seq, &f.step)?.items = None;
                self.lay_by(&f.step);
                let is_of = |task: &TaskState| task.item.as_ref().is_some_and(|item| item.of == f.step);
                self.state.tasks.retain(|task| !is_of(task));
                let named = self.state.tasks.iter().enumerate();
                self.places = named.map(|(place, task)| (task.step.clone(), place)).collect();
            }
            Fact::TaskSkipped(f) => {
                let task = self.task(seq, &f.step)?;
                let step = if f.why == Reason::SkippedByPerson { TaskMove::Pardon } else { TaskMove::Skip };
                task.status = moved(seq, task, step)?;
                task.reason = Some(f.why);
                task.detail.clone_from(&f.detail);
                task.run_at = None;
                task.finished_at = Some(at);
                task.wait.iter_mut().for_each(|wait| wait.end());
            }
            Fact::TaskFinished(f) => {
                let task = self.task(seq, &f.step)?;
                let step = match f.status {
                    TaskStatus::Succeeded => TaskMove::Succeed,
                    TaskStatus::Failed => TaskMove::Fail,
                    TaskStatus::Canceled => TaskMove::Cancel,
                    TaskStatus::Pending
                    | TaskStatus::Available
                    | TaskStatus::Running
                    | TaskStatus::Parked
                    | TaskStatus::Skipped => {
                        return Err(Broken::NotFinal { seq, found: f.status.as_str(), entity: "task" });
                    }
                };
                claim_if_unseen(seq, task, f.attempt)?;
                task.status = moved(seq, task, step)?;
                task.reason = f.reason;
                task.detail.clone_from(&f.detail);
                task.exit_code = f.exit_code;
                task.took_ms = f.took_ms;
                task.output.clone_from(&f.output);
                task.run_at = None;
                task.finished_at = Some(at);
                task.wait.iter_mut().for_each(|wait| wait.end());
            }
            Fact::EffectStarted(f) => begin_effect(seq, self.task(seq, &f.step)?, f)?,
            Fact::EffectCommitted(f) => end_effect(seq, self.task(seq, &f.step)?, f)?,
            // What they tell follows from the tasks; only that they speak of this run can be looked at.
            Fact::LaneStarted(f) => {
                for step in &f.steps {
                    self.task(seq, step)?;
                }
            }
            Fact::LaneFinished(f) => {
                for result in &f.results {
                    self.task(seq, &result.step)?;
                }
            }
            Fact::MergeFinished(f) => {
                self.task(seq, &merge_name(&f.group))?;
            }
            Fact::LevelCommitted(f) => self.commits(seq, f)?,
        }
        Ok(())
    }

    /// Nothing is let through, or begins, in a run that does not run.
    fn is_possible(&self, event: &Event) -> Result<(), Broken> {
        let begins = matches!(
            event.fact,
            Fact::TaskAvailable(_) | Fact::TaskStarted(_) | Fact::TaskParked(_) | Fact::TasksAdded(_)
        );
        if begins && self.state.status != RunStatus::Running {
            let (seq, found, status) = (event.seq, event.fact.name(), self.state.status);
            return Err(Broken::NotRunning { seq, found, status });
        }
        Ok(())
    }

    fn run_moves(&mut self, seq: u64, step: RunMove) -> Result<(), Broken> {
        self.state.status =
            self.state.status.next(step).map_err(|illegal| Broken::Illegal { seq, illegal })?;
        Ok(())
    }

    /// A run that has ended, or is paused in that way already, cannot be paused.
    /// What was available waits again.
    fn withdraw(&mut self, seq: u64, steps: &[String]) -> Result<(), Broken> {
        for step in steps {
            let task = self.task(seq, step)?;
            task.status = moved(seq, task, TaskMove::Withdraw)?;
        }
        Ok(())
    }

    /// Items come in their order, behind those that are there, and only as long as their step is parked.
    fn adds(&mut self, seq: u64, added: &TasksAdded) -> Result<(), Broken> {
        let step = self.task(seq, &added.step)?;
        let before = step.items.map_or(0, |items| items.added);
        let more = u32::try_from(added.items.len()).unwrap_or(u32::MAX);
        let is_next = step.items.is_some_and(|items| items.total == added.total)
            && before == added.first
            && before.checked_add(more).is_some_and(|sum| sum <= added.total);
        if step.status != TaskStatus::Parked || !is_next {
            let from = if is_next { step.status.as_str() } else { "elsewhere in its list" };
            return Err(Broken::Illegal { seq, illegal: Illegal { entity: "task", from, to: "grow" } });
        }
        step.items = Some(Items { total: added.total, added: before + more });
        // Lists are long, and few are made anew.
        let mut equals = if self.laid_by.is_empty() { None } else { Some(self.values_of(&added.step)) };
        for (index, value) in (added.first..).zip(&added.items) {
            let name = ItemName(&added.step, index).to_string();
            let item = Item { of: added.step.clone(), index, value: value.clone() };
            let effects = equals.as_mut().and_then(|equals| {
                let nth = count(equals, value);
                self.laid_by.remove(&(added.step.clone(), value.to_string(), nth))
            });
            self.places.insert(name.clone(), self.state.tasks.len());
            self.state.tasks.push(TaskState {
                attempt: added.attempts,
                item: Some(Box::new(item)),
                effects: effects.unwrap_or_default(),
                ..TaskState::new(name)
            });
        }
        Ok(())
    }

    /// What the items of a step did to the world, as they go.
    fn lay_by(&mut self, step: &str) {
        let mut equals = HashMap::new();
        for task in &mut self.state.tasks {
            if let Some(item) = task.item.as_ref().filter(|item| item.of == step) {
                let nth = count(&mut equals, &item.value);
                if !task.effects.is_empty() {
                    let key = (step.to_owned(), item.value.to_string(), nth);
                    self.laid_by.insert(key, std::mem::take(&mut task.effects));
                }
            }
        }
    }

    /// How many items of a step have each value.
    fn values_of(&self, step: &str) -> HashMap<String, usize> {
        let mut equals = HashMap::new();
        let items = self.state.tasks.iter().filter_map(|task| task.item.as_ref());
        for item in items.filter(|item| item.of == step) {
            count(&mut equals, &item.value);
        }
        equals
    }

    fn pauses(&mut self, seq: u64, scope: PauseScope) -> Result<(), Broken> {
        let from = match (self.state.status, self.state.paused.contains(&scope)) {
            (RunStatus::Queued | RunStatus::Running, false) => {
                self.state.paused.push(scope);
                self.state.paused.sort_unstable();
                return Ok(());
            }
            (RunStatus::Queued | RunStatus::Running, true) => "paused",
            (ended @ (RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled), _) => ended.as_str(),
        };
        Err(Broken::Illegal { seq, illegal: Illegal { entity: "run", from, to: "pause" } })
    }

    fn resumes(&mut self, seq: u64, scope: PauseScope) -> Result<(), Broken> {
        if !self.state.paused.contains(&scope) {
            let illegal = Illegal { entity: "run", from: "not paused", to: "resume" };
            return Err(Broken::Illegal { seq, illegal });
        }
        self.state.paused.retain(|paused| *paused != scope);
        Ok(())
    }

    /// A level counts only if all of it has ended, and with what it has put out.
    fn commits(&mut self, seq: u64, committed: &LevelCommitted) -> Result<(), Broken> {
        let (found, expected) = (committed.level, self.checkpoints.len() as u32);
        if found != expected {
            return Err(Broken::WrongLevel { seq, found, expected });
        }
        let mut results = Vec::with_capacity(committed.steps.len());
        for step in &committed.steps {
            let place =
                *self.places.get(step).ok_or_else(|| Broken::UnknownStep { seq, step: step.clone() })?;
            let TaskState { step, status, output, .. } = &self.state.tasks[place];
            if !matches!(status, TaskStatus::Succeeded | TaskStatus::Skipped) {
                return Err(Broken::OpenLevel { seq, step: step.clone(), status: *status });
            }
            results.push(level::Result { step, status: *status, output });
        }
        let before = self.checkpoints.last().map(String::as_str);
        if level::checkpoint(before, found, results) != committed.checkpoint {
            return Err(Broken::WrongCheckpoint { seq, level: found });
        }
        self.checkpoints.push(committed.checkpoint.clone());
        self.note_levels();
        Ok(())
    }

    fn note_levels(&mut self) {
        let count = self.checkpoints.len() as u32;
        self.state.levels = self.checkpoints.last().map(|last| Committed { count, checkpoint: last.clone() });
    }

    fn task(&mut self, seq: u64, step: &str) -> Result<&mut TaskState, Broken> {
        match self.places.get(step) {
            Some(place) => Ok(&mut self.state.tasks[*place]),
            None => Err(Broken::UnknownStep { seq, step: step.to_owned() }),
        }
    }
}

fn moved(seq: u64, task: &TaskState, step: TaskMove) -> Result<TaskStatus, Broken> {
    task.status.next(step).map_err(|illegal| Broken::Illegal { seq, illegal })
}

/// A claim writes no event: the first thing its holder says stands for it.
fn claim(seq: u64, task: &mut TaskState, attempt: u32) -> Result<(), Broken> {
    let status = moved(seq, task, TaskMove::Claim)?;
    next_attempt(seq, task, attempt)?;
    task.status = status;
    Ok(())
}

fn next_attempt(seq: u64, task: &mut TaskState, attempt: u32) -> Result<(), Broken> {
    if attempt != task.attempt + 1 {
        return Err(Broken::WrongAttempt {
            seq,
            step: task.step.clone(),
            found: attempt,
            expected: task.attempt + 1,
        });
    }
    task.attempt = attempt;
    Ok(())
}

/// An available task looks forward: what its last attempt said stands in that attempt's record.
fn forget_last_attempt(task: &mut TaskState) {
    task.node = None;
    task.reason = None;
    task.detail = None;
    task.exit_code = None;
    task.took_ms = None;
    task.started_at = None;
}

/// The end of an attempt: of the one that is running, or of one that never said that it started.
fn claim_if_unseen(seq: u64, task: &mut TaskState, attempt: u32) -> Result<(), Broken> {
    if attempt == task.attempt { Ok(()) } else { claim(seq, task, attempt) }
}

/// One more of this value: which of them it is, from 1 on.
fn count(equals: &mut HashMap<String, usize>, value: &Value) -> usize {
    let nth = equals.entry(value.to_string()).or_default();
    *nth += 1;
    *nth
}

/// The attempt that runs may begin one that has not happened.
fn begin_effect(seq: u64, task: &mut TaskState, begun: &EffectStarted) -> Result<(), Broken> {
    let refused = |from| {
        let illegal = Illegal { entity: "durable effect", from, to: "start" };
        Err(Broken::Illegal { seq, illegal })
    };
    if task.status != TaskStatus::Running || task.attempt != begun.attempt {
        return refused("of no running attempt");
    }
    let started = EffectState {
        name: begun.name.clone(),
        key: begun.key.clone(),
        status: EffectStatus::Started,
        attempt: begun.attempt,
        exit_code: None,
        by: None,
    };
    match place_of(task, &begun.name, &begun.key) {
        Ok(place) if task.effects[place].status == EffectStatus::Done => return refused("done"),
        Ok(place) => task.effects[place] = started,
        Err(place) => task.effects.insert(place, started),
    }
    Ok(())
}

/// Its own attempt says what became of one that was started; a person may say it of any.
fn end_effect(seq: u64, task: &mut TaskState, ended: &EffectCommitted) -> Result<(), Broken> {
    let refused = |from| {
        let illegal = Illegal { entity: "durable effect", from, to: "commit" };
        Err(Broken::Illegal { seq, illegal })
    };
    let Ok(place) = place_of(task, &ended.name, &ended.key) else { return refused("not there") };
    let is_running = task.status == TaskStatus::Running && task.attempt == ended.attempt;
    let effect = &mut task.effects[place];
    if effect.attempt != ended.attempt || ended.status == EffectStatus::Started {
        return refused("of another attempt");
    }
    if ended.by.is_none() && !(is_running && effect.status == EffectStatus::Started) {
        return refused(effect.status.as_str());
    }
    effect.status = ended.status;
    effect.exit_code = ended.exit_code;
    effect.by.clone_from(&ended.by);
    Ok(())
}

fn place_of(task: &TaskState, name: &str, key: &str) -> Result<usize, usize> {
    task.effects.binary_search_by(|known| (known.name.as_str(), known.key.as_str()).cmp(&(name, key)))
}

#[cfg(test)]
mod tests;
