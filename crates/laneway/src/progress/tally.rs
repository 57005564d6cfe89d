//! The sums of a run as its events tell them: how many tasks are where, since when, and what failed.
//! Pure. It counts; what is legal is decided by `laneway_core::run_state`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use laneway_core::event::{Event, Fact};
use laneway_core::growth::parse_name;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;

#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) workflow: String,
    /// Steps that run now, with the moment they started.
    pub(crate) running: BTreeMap<String, Millis>,
    /// Steps that wait for a signal or a moment.
    pub(crate) parked: BTreeSet<String>,
    /// Steps that took a result which was recorded before.
    pub(crate) cached: BTreeSet<String>,
    /// By step: how many items its list has.
    items: HashMap<String, u32>,
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
    /// Not a step whose items say the same.
    is_counted: bool,
}

impl Tally {
    pub(crate) fn new(workflow: &str) -> Self {
        Self {
            workflow: workflow.to_owned(),
            running: BTreeMap::new(),
            parked: BTreeSet::new(),
            cached: BTreeSet::new(),
            items: HashMap::new(),
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
                // Only a person skips what has failed; all others never began, and there may be many.
                if f.why == Reason::SkippedByPerson {
                    self.failed.retain(|step| *step != f.step);
                    self.reopen(&f.step);
                }
                self.end(&f.step, TaskStatus::Skipped, 0);
            }
            Fact::TaskParked(f) => {
                // What is parked for its items is told by these.
                match f.items {
                    None => drop(self.parked.insert(f.step.clone())),
                    Some(total) => drop(self.items.insert(f.step.clone(), total)),
                }
            }
            Fact::TasksAdded(_) => {}
            Fact::TasksRemoved(f) => {
                self.items.remove(&f.step);
                let gone: Vec<String> =
                    self.ended.keys().filter(|task| is_item_of(task, &f.step)).cloned().collect();
                gone.iter().for_each(|task| self.reopen(task));
                self.failed.retain(|step| self.ended.contains_key(step));
            }
            Fact::TaskFinished(f) => {
                // To wait is no work.
                let is_parked = self.parked.remove(&f.step) || self.items.contains_key(&f.step);
                let took_ms = f.took_ms.filter(|_| !is_parked);
                self.attempt_ended(&f.step, took_ms, is_new);
                self.end(&f.step, f.status, f.attempt);
                if f.reason == Some(Reason::Cached) {
                    self.cached.insert(f.step.clone());
                }
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
            | Fact::RunBound(_)
            | Fact::RunReleased(_)
            | Fact::RunHalted(_)
            | Fact::RunCanceling(_)
            | Fact::RunPaused(_)
            | Fact::RunResumed(_)
            | Fact::RunDue(_)
            | Fact::TaskAvailable(_)
            | Fact::TaskSignaled(_)
            | Fact::ChildRunStarted(_)
            | Fact::LevelCommitted(_)
            | Fact::TaskCached(_)
            | Fact::EffectStarted(_)
            | Fact::EffectCommitted(_)
            | Fact::LaneStarted(_)
            | Fact::LaneFinished(_)
            | Fact::MergeFinished(_) => {}
        }
    }

    pub(crate) fn count(&self, status: TaskStatus) -> u64 {
        self.counts.get(&status).copied().unwrap_or(0)
    }

    /// Items of lists that are known by now.
    pub(crate) fn items(&self) -> u64 {
        self.items.values().map(|items| u64::from(*items)).sum()
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
        self.cached.remove(step);
        if let Some(ended) = self.ended.remove(step)
            && ended.is_counted
            && let Some(count) = self.counts.get_mut(&ended.status)
        {
            *count -= 1;
        }
    }

    fn end(&mut self, step: &str, status: TaskStatus, attempt: u32) {
        let is_counted = !self.is_told_by_items(step, status);
        if is_counted {
            *self.counts.entry(status).or_default() += 1;
        }
        self.ended.insert(step.to_owned(), Ended { status, attempt, is_counted });
        if status == TaskStatus::Failed && is_counted {
            self.failed.push(step.to_owned());
        }
    }

    /// Whether a step ends as one of its items did: that one is counted, and the step itself is not.
    fn is_told_by_items(&self, step: &str, status: TaskStatus) -> bool {
        if !self.items.contains_key(step) {
            return false;
        }
        let is_like_it = |task: &str, ended: &Ended| ended.status == status && is_item_of(task, step);
        self.ended.iter().any(|(task, ended)| is_like_it(task, ended))
    }
}

fn is_item_of(task: &str, step: &str) -> bool {
    matches!(parse_name(task), (of, Some(_)) if of == step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laneway_core::id::RunId;

    /// Events at moments, each as `--json` names and shapes it.
    fn tally(events: &[(i64, &str, &str)]) -> Tally {
        let mut tally = Tally::new("t");
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        for (seq, (at, name, body)) in (1..).zip(events) {
            let fact = Fact::read(name, 1, body).expect("a good event");
            tally.apply(&Event { run, seq, at: Millis(*at), fact }, true);
        }
        tally
    }

    #[test]
    fn what_ran_side_by_side_is_time_saved() {
        let tally = tally(&[
            (0, "task_started", r#"{"step":"a","attempt":1,"node":"n"}"#),
            (0, "task_started", r#"{"step":"b","attempt":1,"node":"n"}"#),
            (900, "task_finished", r#"{"step":"a","attempt":1,"status":"succeeded","took_ms":900}"#),
            (1000, "task_finished", r#"{"step":"b","attempt":1,"status":"succeeded","took_ms":1000}"#),
        ]);
        assert_eq!(tally.wall(), Duration::from_millis(1000));
        assert_eq!(tally.saved(), Duration::from_millis(900));
        assert_eq!((tally.done(), tally.count(TaskStatus::Succeeded), tally.running.len()), (2, 2, 0));
    }

    #[test]
    fn a_run_that_is_opened_again_forgets_what_will_run_again() {
        let failed = (1, "task_finished", r#"{"step":"a","attempt":1,"status":"failed","reason":"exit"}"#);
        let reopened = (2, "run_reopened", r#"{"why":"retry","by":"ada","tasks":["a"]}"#);
        let before = tally(&[failed]);
        assert_eq!(before.failures().collect::<Vec<_>>(), [("a", 1)]);
        let after = tally(&[failed, reopened]);
        assert_eq!((after.done(), after.count(TaskStatus::Failed), after.failures().count()), (0, 0, 0));
    }

    #[test]
    fn a_failed_item_is_counted_once_and_its_step_is_not() {
        let mut events = vec![
            (0, "task_parked", r#"{"step":"parse","items":2}"#),
            (1, "task_finished", r#"{"step":"parse[0]","attempt":1,"status":"succeeded"}"#),
            (2, "task_finished", r#"{"step":"parse[1]","attempt":1,"status":"failed","reason":"exit"}"#),
            (3, "task_finished", r#"{"step":"parse","attempt":1,"status":"failed","reason":"items"}"#),
        ];
        let before = tally(&events);
        assert_eq!((before.count(TaskStatus::Failed), before.count(TaskStatus::Succeeded)), (1, 1));
        assert_eq!(before.failures().collect::<Vec<_>>(), [("parse[1]", 1)]);
        events.push((4, "run_reopened", r#"{"why":"retry","by":"ada","tasks":["parse","parse[1]"]}"#));
        let after = tally(&events);
        assert_eq!((after.count(TaskStatus::Failed), after.count(TaskStatus::Succeeded)), (0, 1));
        // All of its items were well, and its list took too long.
        let alone = [
            events[0],
            events[1],
            (3, "task_finished", r#"{"step":"parse","attempt":1,"status":"failed","reason":"timeout"}"#),
        ];
        assert_eq!(tally(&alone).count(TaskStatus::Failed), 1);
    }

    #[test]
    fn a_step_that_a_person_skipped_has_not_failed() {
        let tally = tally(&[
            (1, "task_finished", r#"{"step":"a","attempt":1,"status":"failed","reason":"exit"}"#),
            (2, "task_skipped", r#"{"step":"a","why":"skipped_by_person"}"#),
        ]);
        assert_eq!((tally.count(TaskStatus::Failed), tally.count(TaskStatus::Skipped)), (0, 1));
        assert_eq!(tally.failures().count(), 0);
    }
}
