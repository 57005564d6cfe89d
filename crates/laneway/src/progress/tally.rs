//! The sums of a run as its events tell them: how many tasks are where, since when, and what failed.
//! Pure. It counts; what is legal is decided by `laneway_core::run_state`.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use laneway_core::event::{Event, Fact};
use laneway_core::plan::Plan;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;

#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) workflow: String,
    /// Steps that run now, with the moment they started.
    pub(crate) running: BTreeMap<String, Millis>,
    /// Steps that have ended.
    ended: HashMap<String, Ended>,
    /// How many have ended in each way. Kept, because the terminal asks many times a second.
    counts: BTreeMap<TaskStatus, u64>,
    /// Names of steps that have failed, in the order in which they did.
    failed: Vec<String>,
    /// The first event that was told to this reader, and the last.
    first_at: Option<Millis>,
    last_at: Option<Millis>,
    /// What the attempts took that ended while this reader looked.
    work: Duration,
    pub(crate) finished: Option<(RunStatus, Option<String>)>,
}

#[derive(Debug, Clone)]
struct Ended {
    status: TaskStatus,
    attempt: u32,
}

impl Tally {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            workflow: plan.workflow.name.clone(),
            running: BTreeMap::new(),
            ended: HashMap::new(),
            counts: BTreeMap::new(),
            failed: Vec::new(),
            first_at: None,
            last_at: None,
            work: Duration::ZERO,
            finished: None,
        }
    }

    pub(crate) fn apply(&mut self, event: &Event, is_new: bool) {
        if is_new {
            self.first_at.get_or_insert(event.at);
            self.last_at = Some(event.at);
        }
        match &event.fact {
            Fact::TaskStarted(f) => {
                self.running.insert(f.step.clone(), event.at);
            }
            Fact::TaskRetrying(f) => self.attempt_ended(&f.step, Some(f.took_ms), is_new),
            Fact::TaskLost(f) => self.attempt_ended(&f.step, None, is_new),
            Fact::TaskReturned(f) => self.attempt_ended(&f.step, None, is_new),
            Fact::TaskSkipped(f) => {
                self.failed.retain(|step| *step != f.step);
                self.reopen(&f.step);
                self.end(&f.step, TaskStatus::Skipped, 0);
            }
            Fact::TaskFinished(f) => {
                self.attempt_ended(&f.step, f.took_ms, is_new);
                self.end(&f.step, f.status, f.attempt);
            }
            Fact::RunReopened(f) => {
                self.finished = None;
                for step in &f.tasks {
                    self.reopen(step);
                }
                self.failed.retain(|step| self.ended.contains_key(step));
            }
            Fact::RunFinished(f) => self.finished = Some((f.status, f.reason.clone())),
            Fact::RunSubmitted(_)
            | Fact::RunStarted(_)
            | Fact::RunAdopted(_)
            | Fact::RunHalted(_)
            | Fact::RunCanceling(_)
            | Fact::TaskAvailable(_) => {}
        }
    }

    pub(crate) fn count(&self, status: TaskStatus) -> u64 {
        self.counts.get(&status).copied().unwrap_or(0)
    }

    pub(crate) fn done(&self) -> u64 {
        self.ended.len() as u64
    }

    /// Failed steps and the attempts that failed last, in the order in which they did.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&str, u32)> {
        self.failed.iter().filter_map(|step| Some((step.as_str(), self.ended.get(step)?.attempt)))
    }

    /// From the first event that was told to the last.
    pub(crate) fn wall(&self) -> Duration {
        match (self.first_at, self.last_at) {
            (Some(first), Some(last)) => last.since(first),
            (None, _) | (_, None) => Duration::ZERO,
        }
    }

    /// What one step after the other would have taken longer.
    pub(crate) fn saved(&self) -> Duration {
        self.work.saturating_sub(self.wall())
    }

    fn attempt_ended(&mut self, step: &str, took_ms: Option<u64>, is_new: bool) {
        self.running.remove(step);
        if is_new {
            self.work += Duration::from_millis(took_ms.unwrap_or(0));
        }
    }

    fn reopen(&mut self, step: &str) {
        if let Some(ended) = self.ended.remove(step)
            && let Some(count) = self.counts.get_mut(&ended.status)
        {
            *count -= 1;
        }
    }

    fn end(&mut self, step: &str, status: TaskStatus, attempt: u32) {
        *self.counts.entry(status).or_default() += 1;
        self.ended.insert(step.to_owned(), Ended { status, attempt });
        if status == TaskStatus::Failed {
            self.failed.push(step.to_owned());
        }
    }
}
