//! A run as its events tell it: the fold that `laneway replay` compares with the store, byte for byte.
//! It decides nothing: every change goes through the transition functions of `state.rs`, and a history that
//! they do not allow is refused with the number of the event.

use serde::Serialize;
use serde_json::{Map, Value};

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
    /// What keeps it paused, sorted; empty for a run that is not.
    pub paused: Vec<PauseScope>,
    pub submitted_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    /// Number of the last event.
    pub last_event: u64,
    /// How far it has come, of a run that goes level by level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Committed>,
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
    places: std::collections::HashMap<String, usize>,
    /// Of the levels that are committed.
    checkpoints: Vec<String>,
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
            paused: Vec::new(),
            submitted_at: first.at,
            started_at: None,
            finished_at: None,
            last_event: 1,
            levels: None,
            tasks,
        };
        Ok(Self { state, places, checkpoints: Vec::new(), at: first.at })
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
            Fact::RunStarted(_) => {
                self.run_moves(seq, RunMove::Start)?;
                self.state.started_at = Some(at);
            }
            Fact::RunAdopted(_) | Fact::RunBound(_) => {}
            Fact::RunReleased(f) => self.withdraw(seq, &f.tasks)?,
            Fact::RunHalted(f) => self.state.closing = Some(f.closing),
            Fact::RunCanceling(f) => self.state.closing = Some(f.closing),
            Fact::RunPaused(f) => {
                self.pauses(seq, f.scope)?;
                self.withdraw(seq, &f.tasks)?;
            }
            Fact::RunResumed(f) => self.resumes(seq, f.scope)?,
            Fact::RunReopened(f) => {
                self.run_moves(seq, RunMove::Reopen)?;
                self.state.reason = None;
                self.state.closing = None;
                self.state.finished_at = None;
                // One that ended before its first start, in the queue, starts with this.
                self.state.started_at = self.state.started_at.or(Some(at));
                for step in &f.tasks {
                    let task = self.task(seq, step)?;
                    let status = moved(seq, task, TaskMove::Reopen)?;
                    *task = TaskState { status, ..task.reopened() };
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
                let is_paused = !self.state.paused.is_empty();
                let task = self.task(seq, &f.step)?;
                if task.status == TaskStatus::Pending {
                    // It was claimed ahead of its place, and waits for that as before.
                    next_attempt(seq, task, f.attempt)?;
                } else {
                    claim(seq, task, f.attempt)?;
                    task.status = moved(seq, task, TaskMove::GiveBack)?;
                    // In a paused run it waits as everything else does.
                    if is_paused {
                        task.status = moved(seq, task, TaskMove::Withdraw)?;
                    }
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
                    }
                    // It waits for its items, and for nothing else.
                    Some(total) => {
                        let added = task.items.map_or(0, |items| items.added);
                        task.items = Some(Items { total, added });
                    }
                }
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
        for (index, value) in (added.first..).zip(&added.items) {
            let name = ItemName(&added.step, index).to_string();
            let item = Item { of: added.step.clone(), index, value: value.clone() };
            self.places.insert(name.clone(), self.state.tasks.len());
            self.state.tasks.push(TaskState {
                attempt: added.attempts,
                item: Some(Box::new(item)),
                ..TaskState::new(name)
            });
        }
        Ok(())
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
mod tests {
    use super::*;
    use crate::event::{
        Reopening, TaskAvailable, TaskCached, TaskFinished, TaskParked, TaskSignaled, TaskStarted,
        TasksRemoved,
    };
    use crate::event::{RunFinished, RunPaused, RunReopened, RunResumed, RunStarted, RunSubmitted};

    fn history(facts: Vec<Fact>) -> Vec<Event> {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("a well-formed id");
        let submitted = RunSubmitted {
            workflow: "nightly".into(),
            version: Version::of("nightly", ""),
            params: Map::new(),
            max_parallel: 4,
            by: "ada".into(),
        };
        let facts = std::iter::once(submitted.into()).chain(facts);
        (1..).zip(facts).map(|(seq, fact)| Event { run, seq, at: Millis(1000 + seq as i64), fact }).collect()
    }

    fn told(facts: Vec<Fact>) -> Result<RunState, String> {
        replay(["a", "b"], &history(facts)).map_err(|broken| broken.to_string())
    }

    fn started() -> Fact {
        RunStarted { node: "host:1".into() }.into()
    }

    fn available(step: &str) -> Fact {
        TaskAvailable { step: step.into() }.into()
    }

    fn paused(scope: PauseScope, tasks: &[&str]) -> Fact {
        RunPaused { scope, by: "ada".into(), tasks: tasks.iter().map(|step| (*step).to_owned()).collect() }
            .into()
    }

    fn resumed(scope: PauseScope) -> Fact {
        RunResumed { scope, by: "ada".into() }.into()
    }

    fn canceled() -> Fact {
        RunFinished { status: RunStatus::Canceled, reason: Some("replaced".into()) }.into()
    }

    fn statuses(state: &RunState) -> Vec<TaskStatus> {
        state.tasks.iter().map(|task| task.status).collect()
    }

    #[test]
    fn a_pause_takes_back_what_nobody_had_claimed() {
        let paused = vec![started(), available("a"), available("b"), paused(PauseScope::Run, &["b"])];
        let state = told(paused.clone()).expect("a good history");
        assert_eq!(state.paused, [PauseScope::Run]);
        assert_eq!(statuses(&state), [TaskStatus::Available, TaskStatus::Pending]);
        // `a` had been claimed, and its holder says so only now.
        let mut more = paused;
        more.push(TaskStarted { step: "a".into(), attempt: 1, node: "host:1".into() }.into());
        more.extend([resumed(PauseScope::Run), available("b")]);
        let state = told(more).expect("a good history");
        assert_eq!(state.paused, []);
        assert_eq!(statuses(&state), [TaskStatus::Running, TaskStatus::Available]);
    }

    fn parked(until: Option<i64>) -> Fact {
        let (signal, until) = (Some("go".to_owned()), until.map(Millis));
        TaskParked { step: "a".into(), signal, until, timeout_at: None, items: None }.into()
    }

    fn signaled(step: &str) -> Fact {
        let payload = Map::from_iter([("n".to_owned(), 1.into())]);
        TaskSignaled { step: step.into(), signal: "go".into(), by: "ada".into(), reason: None, payload }
            .into()
    }

    fn cached(attempt: u32) -> Fact {
        let from = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        TaskCached { step: "a".into(), attempt, key: "ab12".into(), from, recorded_at: Millis(7) }.into()
    }

    #[test]
    fn a_result_is_taken_only_by_who_holds_the_task() {
        let end = |attempt| -> Fact {
            TaskFinished {
                step: "a".into(),
                attempt,
                status: TaskStatus::Succeeded,
                reason: Some(Reason::Cached),
                detail: None,
                exit_code: Some(0),
                took_ms: Some(1),
                output: Map::new(),
            }
            .into()
        };
        let begun = TaskStarted { step: "a".into(), attempt: 1, node: "host:1".into() };
        let state = told(vec![started(), available("a"), begun.into(), cached(1), end(1)]).expect("a hit");
        let task = &state.tasks[0];
        assert_eq!((task.status, task.reason), (TaskStatus::Succeeded, Some(Reason::Cached)));
        let pending = told(vec![started(), cached(1)]);
        assert_eq!(pending, Err("event 3: a task that is pending cannot claim".into()));
        let late = told(vec![started(), available("a"), cached(1), end(1), cached(1)]);
        assert!(late.is_err(), "it has ended");
        let other = told(vec![started(), available("a"), cached(2)]);
        assert!(matches!(other, Err(why) if why.contains("attempt 2")));
    }

    fn over(status: TaskStatus) -> Fact {
        TaskFinished {
            step: "a".into(),
            attempt: 0,
            status,
            reason: None,
            detail: None,
            exit_code: None,
            took_ms: Some(5),
            output: Map::from_iter([("n".to_owned(), 1.into())]),
        }
        .into()
    }

    #[test]
    fn a_parked_task_is_ended_without_an_attempt() {
        let state = told(vec![started(), parked(Some(9)), signaled("a"), over(TaskStatus::Succeeded)]);
        let task = &state.expect("a good history").tasks[0];
        assert_eq!((task.status, task.attempt), (TaskStatus::Succeeded, 0));
        assert_eq!((task.started_at, task.finished_at), (Some(Millis(1003)), Some(Millis(1005))));
        let wait = task.wait.as_ref().expect("what it waited for");
        let signal = wait.signal.as_ref().expect("who let it go on");
        assert_eq!((wait.until, signal.by.as_str(), signal.at), (Some(Millis(9)), "ada", Millis(1004)));
        assert!(signal.payload.is_empty(), "it is the output");
    }

    #[test]
    fn a_signal_may_come_before_the_task_is_parked_and_only_once() {
        let early = told(vec![started(), signaled("a"), parked(None)]).expect("a good history");
        let signal = early.tasks[0].wait.as_ref().and_then(|wait| wait.signal.as_ref()).expect("it is kept");
        assert_eq!(signal.payload.len(), 1);
        assert_eq!(
            told(vec![started(), parked(None), signaled("a"), signaled("a")]),
            Err("event 5: a task that is signaled cannot signal".into())
        );
        assert_eq!(
            told(vec![started(), available("b"), signaled("b")]),
            Err("event 4: a task that is available cannot signal".into())
        );
        assert_eq!(
            told(vec![started(), available("a"), parked(None)]),
            Err("event 4: a task that is available cannot park".into())
        );
        // Whoever opens it again has to be told anew.
        let reopened =
            RunReopened { why: Reopening::Retry, by: "ada".into(), tasks: vec!["a".into()], level: None };
        let again = vec![
            started(),
            parked(None),
            signaled("a"),
            over(TaskStatus::Succeeded),
            canceled(),
            reopened.into(),
        ];
        assert_eq!(told(again).expect("a retry").tasks[0].wait, None);
    }

    fn running(attempt: u32) -> Fact {
        TaskStarted { step: "a".into(), attempt, node: "host:1".into() }.into()
    }

    fn begun(attempt: u32, name: &str) -> Fact {
        EffectStarted { step: "a".into(), attempt, name: name.into(), key: String::new() }.into()
    }

    fn ended(attempt: u32, name: &str, status: EffectStatus, by: Option<&str>) -> Fact {
        EffectCommitted {
            step: "a".into(),
            attempt,
            name: name.into(),
            key: String::new(),
            status,
            exit_code: Some(0),
            took_ms: None,
            by: by.map(str::to_owned),
        }
        .into()
    }

    #[test]
    fn effects_outlive_their_attempt_and_a_retry_of_the_run() {
        use EffectStatus::{Done, Started};
        let lost = crate::event::TaskLost { step: "a".into(), attempt: 1, node: "host:1".into() };
        let reopened =
            RunReopened { why: Reopening::Retry, by: "ada".into(), tasks: vec!["a".into()], level: None };
        let mut facts = vec![
            started(),
            available("a"),
            running(1),
            begun(1, "b"),
            begun(1, "a"),
            ended(1, "a", Done, None),
            lost.into(),
            available("a"),
            running(2),
        ];
        let of = |facts: &[Fact]| {
            let state = told(facts.to_vec()).expect("a good history");
            let told = |effect: &EffectState| (effect.name.clone(), effect.status, effect.attempt);
            state.tasks[0].effects.iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(of(&facts), [("a".into(), Done, 1), ("b".into(), Started, 1)]);
        facts.extend([begun(2, "b"), canceled(), reopened.into()]);
        // A run cannot end with a running task in life; the fold does not look at that.
        let broken = told(facts.clone()).expect_err("a task that runs cannot be opened");
        assert_eq!(broken, "event 13: a task that is running cannot reopen");
        let failed = TaskFinished {
            step: "a".into(),
            attempt: 2,
            status: TaskStatus::Failed,
            reason: None,
            detail: None,
            exit_code: Some(1),
            took_ms: None,
            output: Map::new(),
        };
        facts.insert(11, failed.into());
        assert_eq!(of(&facts), [("a".into(), Done, 1), ("b".into(), Started, 2)]);
        facts.push(ended(2, "b", EffectStatus::Failed, Some("ada")));
        assert_eq!(of(&facts)[1].1, EffectStatus::Failed);
    }

    #[test]
    fn effects_that_cannot_have_happened_are_refused() {
        use EffectStatus::Done;
        let with = |more: Vec<Fact>| told([vec![started(), available("a"), running(1)], more].concat());
        assert_eq!(
            told(vec![started(), available("a"), begun(1, "a")]),
            Err("event 4: a durable effect that is of no running attempt cannot start".into())
        );
        assert_eq!(
            with(vec![begun(1, "a"), ended(1, "a", Done, None), begun(1, "a")]),
            Err("event 7: a durable effect that is done cannot start".into())
        );
        assert_eq!(
            with(vec![begun(1, "a"), ended(1, "a", Done, None), ended(1, "a", Done, None)]),
            Err("event 7: a durable effect that is done cannot commit".into())
        );
        assert_eq!(
            with(vec![ended(1, "a", Done, None)]),
            Err("event 5: a durable effect that is not there cannot commit".into())
        );
        assert_eq!(
            with(vec![begun(1, "a"), ended(2, "a", Done, None)]),
            Err("event 6: a durable effect that is of another attempt cannot commit".into())
        );
    }

    fn grown(first: u32, items: &[i64], attempts: u32) -> Fact {
        let items = items.iter().map(|item| (*item).into()).collect();
        TasksAdded { step: "b".into(), total: 3, first, items, attempts }.into()
    }

    fn parked_for(items: u32) -> Fact {
        let (signal, until, timeout_at) = (None, None, None);
        TaskParked { step: "b".into(), signal, until, timeout_at, items: Some(items) }.into()
    }

    fn names(state: &RunState) -> Vec<(&str, u32)> {
        state.tasks.iter().map(|task| (task.step.as_str(), task.attempt)).collect()
    }

    #[test]
    fn items_are_tasks_behind_the_steps_from_the_moment_on_in_which_they_are_added() {
        let some = vec![started(), parked_for(3), grown(0, &[7, 8], 0), available("b[1]")];
        let state = told(some.clone()).expect("a good history");
        assert_eq!(names(&state), [("a", 0), ("b", 0), ("b[0]", 0), ("b[1]", 0)]);
        assert_eq!(state.tasks[1].items, Some(Items { total: 3, added: 2 }));
        assert_eq!(state.tasks[1].wait, None, "it waits for its items, and for nothing else");
        let item = state.tasks[3].item.as_ref().expect("an item");
        assert_eq!((item.of.as_str(), item.index, &item.value), ("b", 1, &Value::from(8)));
        let all = [some.clone(), vec![grown(2, &[9], 0)]].concat();
        assert_eq!(names(&told(all).expect("a good history")).last(), Some(&("b[2]", 0)));
        // A list that is made anew has none of the former tasks.
        let again = [some, vec![TasksRemoved { step: "b".into() }.into()]].concat();
        let state = told(again).expect("a good history");
        assert_eq!((names(&state), state.tasks[1].items), (vec![("a", 0), ("b", 0)], None));
    }

    #[test]
    fn items_that_cannot_have_been_added_are_refused() {
        let elsewhere = Err("event 5: a task that is elsewhere in its list cannot grow".into());
        assert_eq!(told(vec![started(), parked_for(3), grown(0, &[7], 0), grown(0, &[7], 0)]), elsewhere);
        assert_eq!(
            told(vec![started(), parked_for(3), grown(0, &[1, 2, 3, 4], 0)]),
            Err("event 4: a task that is elsewhere in its list cannot grow".into())
        );
        assert_eq!(
            told(vec![started(), grown(0, &[7], 0)]),
            Err("event 3: a task that is elsewhere in its list cannot grow".into())
        );
        assert_eq!(
            told(vec![started(), parked_for(3), available("b[0]")]),
            Err("event 4 speaks of step `b[0]`, which the workflow does not have".into())
        );
    }

    #[test]
    fn items_that_come_in_the_place_of_others_go_on_behind_their_attempts() {
        let state = told(vec![started(), parked_for(3), grown(0, &[7], 4), available("b[0]")]);
        assert_eq!(names(&state.expect("a good history"))[2], ("b[0]", 4));
        let next = TaskStarted { step: "b[0]".into(), attempt: 5, node: "host:1".into() };
        let more = vec![started(), parked_for(3), grown(0, &[7], 4), available("b[0]"), next.into()];
        assert_eq!(told(more).expect("a good history").tasks[2].status, TaskStatus::Running);
    }

    #[test]
    fn a_run_and_its_workflow_are_paused_apart() {
        let both = vec![started(), paused(PauseScope::Workflow, &[]), paused(PauseScope::Run, &[])];
        assert_eq!(told(both.clone()).expect("both").paused, [PauseScope::Run, PauseScope::Workflow]);
        let one = [both, vec![resumed(PauseScope::Run)]].concat();
        assert_eq!(told(one).expect("one of them").paused, [PauseScope::Workflow]);
    }

    #[test]
    fn pauses_that_cannot_have_happened_are_refused() {
        let twice = vec![paused(PauseScope::Run, &[]), paused(PauseScope::Run, &[])];
        assert_eq!(told(twice), Err("event 3: a run that is paused cannot pause".into()));
        assert_eq!(
            told(vec![resumed(PauseScope::Run)]),
            Err("event 2: a run that is not paused cannot resume".into())
        );
        assert_eq!(
            told(vec![canceled(), paused(PauseScope::Run, &[])]),
            Err("event 3: a run that is canceled cannot pause".into())
        );
        assert_eq!(
            told(vec![paused(PauseScope::Run, &["a"])]),
            Err("event 2: a task that is pending cannot withdraw".into())
        );
    }

    #[test]
    fn a_run_that_ends_in_the_queue_starts_when_it_is_retried() {
        let state =
            told(vec![paused(PauseScope::Run, &[]), canceled()]).expect("queued runs can be canceled");
        assert_eq!((state.status, state.started_at), (RunStatus::Canceled, None));
        let reopened =
            RunReopened { why: Reopening::Retry, by: "ada".into(), tasks: Vec::new(), level: None };
        let state = told(vec![paused(PauseScope::Run, &[]), canceled(), reopened.into()]).expect("a retry");
        assert_eq!((state.status, state.started_at), (RunStatus::Running, Some(Millis(1004))));
        assert_eq!(state.paused, [], "whoever retries a run wants it to go on");
    }
}
