//! What is true, as plain data: runs, tasks, sessions, limits. Each verb writes down what it says
//! and nothing else; `settle` then reads off all that follows, from scratch, until nothing changes:
//! no countdowns, no lines, no wake-ups. Who becomes available is not decided here: `law.rs` says
//! what a store may choose.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use laneway_core::definition::When;
use laneway_core::event::Closing;
use laneway_core::max_runs::Strategy as OneTooMany;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;
use laneway_store::model::CancelMode;

use super::spec::{Bound, Doc, LIMITS, Wait, Wants};

/// A task: the number of its run, in the order of submission, and its position.
pub(super) type At = (usize, usize);

/// A task is lost so often before it fails.
const MAX_LOST: u32 = 3;

/// A claim; sessions are numbered in the order in which they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimAt {
    pub(super) at: At,
    pub(super) attempt: u32,
    pub(super) generation: u32,
    pub(super) session: usize,
}

/// What a verb answers, without ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Done,
    Run(usize),
    Fate(Fate),
    Steps(Vec<String>),
    Status(RunStatus),
    /// What became of a signal.
    Signaled(&'static str),
    /// How many sessions, and how many tasks of theirs.
    Reaped(usize, usize),
    /// By the name of the error.
    Refused(String),
}

pub(super) fn refused(name: &str) -> Reply {
    Reply::Refused(name.to_owned())
}

/// How a holder says that its attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Succeeded,
    Failed(Reason),
    Canceled(Reason),
}

#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) zone: Option<&'static str>,
    pub(super) has_function: bool,
    pub(super) is_draining: bool,
    /// Somebody returned its tasks.
    pub(super) is_over: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) doc: Doc,
    pub(super) status: RunStatus,
    pub(super) closing: Option<Closing>,
    /// By itself; a workflow is paused as such.
    pub(super) is_paused: bool,
    pub(super) owner: Option<usize>,
    pub(super) deadline: Option<i64>,
    /// It began within this command.
    pub(super) has_just_begun: bool,
    pub(super) tasks: Vec<Task>,
}

#[derive(Clone, Default)]
pub(super) struct Task {
    pub(super) status: Status,
    /// Which execution its last claim is.
    pub(super) attempt: u32,
    /// How often it was claimed.
    pub(super) generation: u32,
    /// The last attempt of which the history knows: a claim is told by the start of its holder.
    pub(super) told: u32,
    pub(super) holder: Option<usize>,
    pub(super) is_started: bool,
    pub(super) stop: Option<Reason>,
    pub(super) reason: Option<Reason>,
    pub(super) run_at: Option<i64>,
    pub(super) retries: u32,
    pub(super) lost: u32,
    /// Since when nothing of its own keeps it: needs, condition and delay are behind it.
    pub(super) ready_at: Option<i64>,
    /// Since when it is parked.
    pub(super) parked_at: Option<i64>,
    /// It was parked, since its run was last opened.
    pub(super) was_parked: bool,
    /// Somebody has said what it waits for.
    pub(super) is_signaled: bool,
    /// A rate has let it through.
    pub(super) has_passed_rate: bool,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempt, told, holder, is_started, stop, reason, run_at, retries, lost, ready_at, .. } =
            self;
        let Self { parked_at, is_signaled, generation, .. } = self;
        write!(
            f,
            "{} attempt {attempt} (told {told}, claim {generation}) holder {holder:?} started {is_started} ",
            self.status.0
        )?;
        write!(
            f,
            "stop {stop:?} reason {reason:?} run_at {run_at:?} retries {retries} lost {lost} ready {ready_at:?} \
             parked {parked_at:?} signaled {is_signaled}"
        )
    }
}

/// A status whose beginning is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status(pub(super) TaskStatus);

impl Default for Status {
    fn default() -> Self {
        Self(TaskStatus::Pending)
    }
}

/// What the needs of a task have come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Open,
    Met,
    Never,
}

#[derive(Debug, Clone)]
pub(super) struct Truth {
    pub(super) now: i64,
    pub(super) runs: Vec<Run>,
    pub(super) sessions: Vec<Session>,
    pub(super) limits: BTreeMap<&'static str, Bound>,
    /// By rate: until when nobody may pass, as the last that did has left it.
    pub(super) closed_until: BTreeMap<&'static str, i64>,
    pub(super) paused_flows: BTreeSet<usize>,
    pub(super) keys: BTreeMap<u8, usize>,
    /// Claims whose holders have said their end.
    pub(super) ended: Vec<ClaimAt>,
    /// How many tasks and runs have changed, so that `settle` knows when nothing does.
    pub(super) steps: usize,
    /// Where tasks waited before this command, by the store's own word: gate and key.
    pub(super) waited: BTreeMap<At, (&'static str, Option<String>)>,
    /// Everything that was done, for whoever has to find out.
    pub(super) log: Vec<String>,
}

impl Task {
    pub(super) fn is_live(&self) -> bool {
        matches!(self.status.0, TaskStatus::Available | TaskStatus::Running)
    }

    pub(super) fn is_final(&self) -> bool {
        self.status.0.is_final()
    }

    pub(super) fn is_unheld(&self) -> bool {
        use TaskStatus::{Available, Parked, Pending};
        matches!(self.status.0, Pending | Available | Parked) && self.holder.is_none()
    }

    /// Nobody holds it any more, and it waits for nothing: its attempts are what is left of it.
    pub(super) fn let_go(&self, status: TaskStatus, reason: Option<Reason>) -> Self {
        Self {
            status: Status(status),
            reason,
            attempt: self.attempt,
            generation: self.generation,
            told: self.told,
            retries: self.retries,
            lost: self.lost,
            is_signaled: self.is_signaled,
            was_parked: self.was_parked,
            ..Self::default()
        }
    }

    /// How those who wait for it take its end.
    pub(super) fn end(&self) -> Option<bool> {
        match (self.status.0, self.reason) {
            (TaskStatus::Succeeded, _) | (TaskStatus::Skipped, Some(Reason::SkippedByPerson)) => Some(true),
            (TaskStatus::Failed, _) => Some(false),
            _ => None,
        }
    }

    /// It fell with its run, and comes back with it.
    pub(super) fn fell(&self) -> bool {
        use Reason::{Aborted, Canceled, Halted, RunTimeout};
        matches!(self.status.0, TaskStatus::Canceled | TaskStatus::Skipped)
            && matches!(self.reason, Some(Halted | Aborted | Canceled | RunTimeout))
    }
}

impl Run {
    pub(super) fn wants(&self, position: usize) -> &Wants {
        &self.doc.steps[position]
    }

    pub(super) fn needs(&self, position: usize) -> Needs {
        let wants = self.wants(position);
        let all: Vec<&Task> = wants.needs.iter().map(|need| &self.tasks[*need]).collect();
        let count =
            |wanted: Option<bool>| all.iter().filter(|task| task.is_final() && task.end() == wanted).count();
        let (good, bad, neither) = (count(Some(true)), count(Some(false)), count(None));
        let open = all.len() - good - bad - neither;
        let all_of = |found: usize| {
            if found == all.len() {
                Needs::Met
            } else if found + open < all.len() {
                Needs::Never
            } else {
                Needs::Open
            }
        };
        let one_of = |found: usize| match (found, open) {
            _ if all.is_empty() => Needs::Met,
            (1.., _) => Needs::Met,
            (0, 0) => Needs::Never,
            (0, _) => Needs::Open,
        };
        match wants.when {
            When::AllSucceeded => all_of(good),
            When::AllFailed => all_of(bad),
            When::OneSucceeded => one_of(good),
            When::OneFailed => one_of(bad),
            When::AllDone | When::Always => all_of(good + bad + neither),
        }
    }

    pub(super) fn is_canceling(&self) -> bool {
        matches!(self.closing, Some(Closing::Canceled | Closing::RunTimeout))
    }

    /// Whether a step still starts, and is not stopped, once the run is being canceled: there is
    /// time until `deadline`.
    pub(super) fn cleans_up(&self, position: usize) -> bool {
        self.is_canceling() && self.deadline.is_some() && self.wants(position).when == When::Always
    }

    /// These steps and all that need them, and so on.
    pub(super) fn with_dependents(&self, first: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut all: BTreeSet<usize> = first.into_iter().collect();
        for position in 0..self.doc.steps.len() {
            if self.wants(position).needs.iter().any(|need| all.contains(need)) {
                all.insert(position);
            }
        }
        all
    }

    pub(super) fn positions(&self, wanted: impl Fn(&Task) -> bool) -> Vec<usize> {
        (0..self.tasks.len()).filter(|position| wanted(&self.tasks[*position])).collect()
    }
}

impl Truth {
    pub(super) fn new(now: i64) -> Self {
        Self {
            now,
            runs: Vec::new(),
            sessions: Vec::new(),
            limits: BTreeMap::new(),
            closed_until: BTreeMap::new(),
            paused_flows: BTreeSet::new(),
            keys: BTreeMap::new(),
            ended: Vec::new(),
            steps: 0,
            waited: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Clean-up of a run that is being canceled waits for no person.
    pub(super) fn is_paused(&self, run: usize) -> bool {
        let of = &self.runs[run];
        (of.is_paused || self.paused_flows.contains(&of.doc.flow)) && !of.is_canceling()
    }

    /// Claims of a session, by run and position.
    pub(super) fn held_by(&self, session: usize) -> Vec<ClaimAt> {
        let mut held = Vec::new();
        for (run, of) in self.runs.iter().enumerate() {
            for (position, task) in of.tasks.iter().enumerate() {
                if task.holder == Some(session) {
                    let (attempt, generation) = (task.attempt, task.generation);
                    held.push(ClaimAt { at: (run, position), attempt, generation, session });
                }
            }
        }
        held
    }

    pub(super) fn task(&self, at: At) -> &Task {
        &self.runs[at.0].tasks[at.1]
    }

    pub(super) fn task_mut(&mut self, at: At) -> &mut Task {
        &mut self.runs[at.0].tasks[at.1]
    }

    pub(super) fn is_current(&self, claim: ClaimAt) -> bool {
        let task = self.task(claim.at);
        task.holder == Some(claim.session) && task.generation == claim.generation
    }

    // ---- work ---------------------------------------------------------------------------------------

    /// Returns the document that was submitted with a key.
    pub(super) fn keyed(&self, key: Option<u8>) -> Option<&Doc> {
        key.and_then(|key| self.keys.get(&key)).map(|run| &self.runs[*run].doc)
    }

    pub(super) fn submit(&mut self, doc: &Doc, session: usize, key: Option<u8>) -> Reply {
        if let Some(run) = key.and_then(|key| self.keys.get(&key)) {
            // The text is what a version is of, and no run of the model has parameters.
            let is_its_own = self.runs[*run].doc.text() == doc.text();
            return if is_its_own { Reply::Run(*run) } else { refused("KeyTaken") };
        }
        let mut limits = self.limits.clone();
        for (name, bound) in LIMITS.iter().filter(|_| doc.declares) {
            if *limits.entry(name).or_insert(*bound) != *bound {
                return refused("NotRunnable");
            }
        }
        if doc.steps.iter().flat_map(|step| &step.limits).any(|name| !limits.contains_key(name)) {
            return refused("NoSuchLimit");
        }
        let (running, queued) = (self.running(doc.flow), self.queued(doc.flow));
        let room = doc.max_runs().is_none_or(|limit| running.len() + queued.len() < limit);
        if !room && doc.one_too_many == OneTooMany::Fail {
            return refused("NotRunnable");
        }
        self.limits = limits;
        let now = self.now;
        let is_ready =
            |step: &Wants| step.needs.is_empty() && step.condition.is_none() && step.wait.is_none();
        let task = |step| Task { ready_at: is_ready(step).then_some(now), ..Task::default() };
        let run = self.runs.len();
        self.runs.push(Run {
            tasks: doc.steps.iter().map(task).collect(),
            doc: doc.clone(),
            status: RunStatus::Queued,
            closing: None,
            is_paused: false,
            owner: (!doc.is_shared).then_some(session),
            deadline: None,
            has_just_begun: false,
        });
        self.keys.extend(key.map(|key| (key, run)));
        match doc.one_too_many {
            _ if room => self.begin(run),
            OneTooMany::Skip => self.close(run, Closing::Canceled),
            OneTooMany::Replace => {
                // The oldest of those that would go on, so that with the new one there are as many
                // as may be.
                let goes_on = |run: &usize| !self.runs[*run].is_canceling();
                let all: Vec<usize> = running.into_iter().filter(goes_on).chain(queued).collect();
                let too_many = (all.len() + 1).saturating_sub(doc.max_runs().unwrap_or(usize::MAX));
                all.into_iter().take(too_many).for_each(|run| self.close(run, Closing::Canceled));
            }
            OneTooMany::Queue | OneTooMany::Fail => {}
        }
        Reply::Run(run)
    }

    pub(super) fn of_flow(&self, flow: usize, status: RunStatus) -> Vec<usize> {
        let is_so = |run: &usize| self.runs[*run].doc.flow == flow && self.runs[*run].status == status;
        (0..self.runs.len()).filter(is_so).collect()
    }

    pub(super) fn running(&self, flow: usize) -> Vec<usize> {
        self.of_flow(flow, RunStatus::Running)
    }

    /// One that belongs to nobody any more is passed over.
    pub(super) fn queued(&self, flow: usize) -> Vec<usize> {
        let mut queued = self.of_flow(flow, RunStatus::Queued);
        queued.retain(|run| self.runs[*run].doc.is_shared || self.runs[*run].owner.is_some());
        queued
    }

    pub(super) fn begin(&mut self, run: usize) {
        self.steps += 1;
        let now = self.now;
        let run = &mut self.runs[run];
        run.status = RunStatus::Running;
        run.has_just_begun = true;
        run.deadline = run.doc.timeout.map(|timeout| now + timeout);
    }

    pub(super) fn start(&mut self, claim: ClaimAt) -> Reply {
        if !self.is_current(claim) {
            return Reply::Fate(Fate::ClaimLost);
        }
        let task = self.task_mut(claim.at);
        let was_started = std::mem::replace(&mut task.is_started, true);
        task.told = claim.attempt;
        Reply::Fate(if was_started { Fate::Repeated } else { Fate::Recorded })
    }

    pub(super) fn finish(&mut self, claim: ClaimAt, said: Said) -> Reply {
        if !self.is_current(claim) {
            let was_said = self.ended.contains(&claim);
            return Reply::Fate(if was_said { Fate::Repeated } else { Fate::ClaimLost });
        }
        self.ended.push(claim);
        self.task_mut(claim.at).told = claim.attempt;
        match said {
            Said::Succeeded => self.end(claim.at, TaskStatus::Succeeded, None),
            Said::Canceled(reason) => self.end(claim.at, TaskStatus::Canceled, Some(reason)),
            Said::Failed(reason) => {
                let (run, task) = (&self.runs[claim.at.0], self.task(claim.at));
                let wants = run.wants(claim.at.1);
                let may_start = match run.closing {
                    None => true,
                    Some(Closing::Halted | Closing::Aborted) => wants.when.accepts_failure(),
                    Some(Closing::Canceled | Closing::RunTimeout) => run.cleans_up(claim.at.1),
                };
                // What was asked to stop is not tried again.
                if may_start && task.stop.is_none() && task.retries < wants.retries {
                    let (retries, run_at) = (task.retries + 1, Some(self.now + wants.backoff));
                    let again = task.let_go(TaskStatus::Pending, Some(reason));
                    *self.task_mut(claim.at) = Task { retries, run_at, ..again };
                } else {
                    self.fail(claim.at, reason);
                }
            }
        }
        Reply::Fate(Fate::Recorded)
    }

    /// Returns a claim that never started: it was no attempt. The task is available again, unless
    /// its run is paused or it has to take new passages.
    pub(super) fn give_back(&mut self, claim: ClaimAt) -> Reply {
        if !self.is_current(claim) || self.task(claim.at).is_started {
            return Reply::Fate(Fate::ClaimLost);
        }
        let has_rate = self.task(claim.at).has_passed_rate;
        let has_to_wait = self.is_paused(claim.at.0) || has_rate;
        let task = self.task_mut(claim.at);
        let back = if has_to_wait { TaskStatus::Pending } else { TaskStatus::Available };
        let (ready_at, stop) = (task.ready_at, task.stop);
        *task = Task { ready_at, attempt: task.attempt - 1, ..task.let_go(back, None) };
        // What was asked to stop has stopped, clean-up as well; the rest is skipped with its run.
        if stop.is_some() && self.runs[claim.at.0].wants(claim.at.1).when.accepts_failure() {
            self.end(claim.at, TaskStatus::Canceled, stop);
        }
        Reply::Fate(Fate::Recorded)
    }

    /// What of all that is available a session gets: first in line first.
    pub(super) fn claim(&mut self, session: usize, of_run: Option<usize>, limit: usize) -> Vec<ClaimAt> {
        let mut line = Vec::new();
        for (run, of) in self.runs.iter().enumerate() {
            let is_asked = of_run.map_or(of.doc.is_shared, |asked| asked == run && !of.doc.is_shared);
            for (position, task) in of.tasks.iter().enumerate() {
                let may = of_run.is_some() || self.takes(session, of.wants(position));
                if is_asked && may && task.status.0 == TaskStatus::Available && task.holder.is_none() {
                    line.push((self.rank((run, position)), (run, position)));
                }
            }
        }
        line.sort_unstable();
        line.truncate(limit);
        let mut claims = Vec::new();
        for (_, at) in line {
            let task = self.task_mut(at);
            task.attempt += 1;
            task.generation += 1;
            task.holder = Some(session);
            task.status = Status(TaskStatus::Running);
            claims.push(ClaimAt { at, attempt: task.attempt, generation: task.generation, session });
        }
        claims
    }

    /// Whether a session takes such a step of others.
    pub(super) fn takes(&self, session: usize, wants: &Wants) -> bool {
        let session = &self.sessions[session];
        let has_labels = wants.zone.is_none() || wants.zone == session.zone;
        !session.is_over && !session.is_draining && has_labels && (!wants.is_function || session.has_function)
    }

    /// Smaller is first: a step of priority is worth a minute.
    pub(super) fn rank(&self, at: At) -> i64 {
        let ready = self.task(at).ready_at.unwrap_or(i64::MAX / 2);
        ready - self.runs[at.0].wants(at.1).priority * 60_000
    }

    // ---- lives --------------------------------------------------------------------------------------

    pub(super) fn reap(&mut self, session: usize) -> usize {
        self.sessions[session].is_over = true;
        let held = self.held_by(session);
        for claim in &held {
            self.lose(claim.at);
        }
        for run in self.runs.iter_mut().filter(|run| run.owner == Some(session)) {
            run.owner = None;
        }
        held.len()
    }

    pub(super) fn lose(&mut self, at: At) {
        let fails_when_lost = self.runs[at.0].wants(at.1).fails_when_lost;
        let task = self.task_mut(at);
        task.told = task.attempt;
        if let Some(reason) = task.stop {
            self.end(at, TaskStatus::Canceled, Some(reason));
        } else if fails_when_lost || task.lost >= MAX_LOST {
            self.fail(at, Reason::Lost);
        } else {
            let again = task.let_go(TaskStatus::Pending, Some(Reason::Lost));
            // It keeps its place in line.
            *task = Task { lost: task.lost + 1, ready_at: task.ready_at, ..again };
        }
    }

    pub(super) fn drain(&mut self, session: usize) {
        self.sessions[session].is_draining = true;
    }

    pub(super) fn adopt_run(&mut self, run: usize, session: usize) -> Reply {
        let of = &mut self.runs[run];
        if of.status.is_final() {
            return refused("Ended");
        } else if of.doc.is_shared {
            return refused("Shared");
        } else if of.owner.is_some_and(|owner| owner != session) {
            return refused("Owned");
        }
        of.owner = Some(session);
        Reply::Done
    }

    // ---- people -------------------------------------------------------------------------------------

    pub(super) fn cancel(&mut self, run: usize, mode: CancelMode) {
        let of = &self.runs[run];
        if of.status.is_final() {
            return;
        }
        match mode {
            CancelMode::Now if of.is_canceling() && of.deadline.is_some() => self.end_clean_up(run),
            _ if of.closing == Some(Closing::Canceled) => {}
            CancelMode::CleanUp => self.close(run, Closing::Canceled),
            CancelMode::Now => self.close_within(run, Closing::Canceled, None),
        }
    }

    pub(super) fn has_no_room(&self, run: usize) -> bool {
        let of = &self.runs[run];
        let taken = self.running(of.doc.flow).len() + self.queued(of.doc.flow).len();
        of.status.is_final() && of.doc.max_runs().is_some_and(|limit| taken >= limit)
    }

    pub(super) fn retry(&mut self, run: usize, from: Option<usize>) -> Reply {
        let of = &self.runs[run];
        if self.has_no_room(run) {
            return refused("NotRunnable");
        } else if !of.status.is_final() {
            return refused("NotEnded");
        }
        let first = match from {
            Some(step) => of.positions(Task::fell).into_iter().chain([step]).collect(),
            None => of.positions(|task| task.end() != Some(true)),
        };
        if first.is_empty() {
            return refused("NothingToRetry");
        }
        let again = of.with_dependents(first);
        self.reopen(run, &again)
    }

    pub(super) fn skip(&mut self, run: usize, step: usize) -> Reply {
        let of = &self.runs[run];
        if self.has_no_room(run) {
            return refused("NotRunnable");
        } else if !of.status.is_final() {
            return refused("NotEnded");
        } else if of.status == RunStatus::Canceled {
            return refused("Ended");
        } else if of.tasks[step].status.0 != TaskStatus::Failed {
            return refused("NotFailed");
        }
        let behind = of.with_dependents([step]);
        let held_up = |position: &usize| of.tasks[*position].reason == Some(Reason::Upstream);
        let first = of.positions(Task::fell).into_iter().chain(behind.into_iter().filter(held_up));
        let mut again = of.with_dependents(first);
        again.remove(&step);
        self.end((run, step), TaskStatus::Skipped, Some(Reason::SkippedByPerson));
        self.reopen(run, &again)
    }

    /// The first one counts.
    pub(super) fn signal(&mut self, run: usize, step: usize) -> Reply {
        if !matches!(self.runs[run].wants(step).wait, Some(Wait::Signal { .. })) {
            return refused("NoSignal");
        }
        let task = self.task_mut((run, step));
        let was_signaled = task.is_signaled;
        let said = match task.status.0 {
            TaskStatus::Pending | TaskStatus::Succeeded | TaskStatus::Failed if was_signaled => "before",
            TaskStatus::Pending => "kept",
            TaskStatus::Parked => "woken",
            _ => return refused("NotWaiting"),
        };
        task.is_signaled = true;
        Reply::Signaled(said)
    }

    pub(super) fn reopen(&mut self, run: usize, again: &BTreeSet<usize>) -> Reply {
        let now = self.now;
        let of = &mut self.runs[run];
        of.status = RunStatus::Running;
        of.closing = None;
        of.is_paused = false;
        of.deadline = of.doc.timeout.map(|timeout| now + timeout);
        for position in again {
            let task = &mut of.tasks[*position];
            let (attempt, generation, told) = (task.attempt, task.generation, task.told);
            *task = Task { attempt, generation, told, ..Task::default() };
        }
        Reply::Steps(again.iter().map(|position| format!("s{position}")).collect())
    }

    /// What is available and not claimed waits again.
    pub(super) fn withdraw(&mut self, run: usize) {
        let of = &mut self.runs[run];
        if of.is_canceling() {
            return;
        }
        for task in of.tasks.iter_mut().filter(|task| task.status.0 == TaskStatus::Available) {
            task.status = Status(TaskStatus::Pending);
        }
    }

    pub(super) fn unended(&self, flow: usize) -> Vec<usize> {
        let is_so = |run: &usize| self.runs[*run].doc.flow == flow && !self.runs[*run].status.is_final();
        (0..self.runs.len()).filter(is_so).collect()
    }
}
