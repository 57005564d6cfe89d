//! What a store may choose: which gates of a task are closed, counted from scratch, and the laws about who is let
//! through. Nobody is let through a closed gate, nobody waits behind an open one, the gate that a store names is closed,
//! and of those who waited at the same gate the first in line goes first.

use laneway_core::event::{Event, Fact};
use laneway_core::state::{RunStatus, TaskStatus};

use super::spec::{Bound, VERSIONS};
use super::truth::{At, Needs, Status, Task, Truth};

/// A task as the store shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenTask {
    pub(super) status: TaskStatus,
    pub(super) attempt: u32,
    pub(super) reason: Option<laneway_core::reason::Reason>,
    pub(super) run_at: Option<i64>,
    pub(super) retries: u32,
    pub(super) lost: u32,
    /// Of the cause, for one that waits: gate and key.
    pub(super) gate: Option<(&'static str, Option<String>)>,
}

/// A run as the store shows it.
#[derive(Debug, Clone)]
pub(super) struct SeenRun {
    pub(super) status: RunStatus,
    /// By itself, and with its workflow.
    pub(super) pauses: (bool, bool),
    pub(super) tasks: Vec<SeenTask>,
    /// What its history tells since the last look.
    pub(super) news: Vec<Event>,
    /// The same without ids.
    pub(super) told: Vec<String>,
}

impl Truth {
    /// Takes over who was let through, and looks whether that was lawful.
    pub(super) fn adopt(&mut self, seen: &[SeenRun]) {
        let mut fresh = Vec::new();
        for (run, of) in seen.iter().enumerate() {
            for (position, task) in of.tasks.iter().enumerate() {
                let known = &mut self.runs[run].tasks[position];
                if known.status.0 == TaskStatus::Pending && task.status == TaskStatus::Available {
                    known.status = Status(TaskStatus::Available);
                    (known.reason, known.run_at) = (None, None);
                    fresh.push((run, position));
                }
            }
        }
        for at in &fresh {
            let closed = self.closed(*at, None);
            assert!(closed.is_empty(), "{} was let through, and {closed:?} is closed: {self:#?}", name(*at));
        }
        self.pass_rates(seen);
        self.is_fair(&fresh);
    }

    /// Every passage is told, also of what was ended in the same breath.
    fn pass_rates(&mut self, seen: &[SeenRun]) {
        for (run, event) in
            seen.iter().enumerate().flat_map(|(run, of)| of.news.iter().map(move |event| (run, event)))
        {
            let Fact::TaskAvailable(fact) = &event.fact else { continue };
            let position: usize = fact.step[1..].parse().expect("steps are numbered");
            let limits = self.runs[run].wants(position).limits.clone();
            self.runs[run].tasks[position].has_passed_rate =
                limits.iter().any(|limit| matches!(self.limits[*limit], Bound::Every(_)));
            for limit in limits {
                let Bound::Every(millis) = self.limits[limit] else { continue };
                let until = self.closed_until.insert(limit, self.now + spacing(millis));
                let is_open = until.is_none_or(|until| until <= self.now);
                assert!(
                    is_open,
                    "{} passed {limit} at {}, before {until:?}",
                    name((run, position)),
                    self.now
                );
            }
        }
    }

    /// Who waited at a gate is not passed over by somebody behind it, or somebody new.
    fn is_fair(&self, fresh: &[At]) {
        for (waiter, (gate, key)) in &self.waited {
            if self.task(*waiter).status.0 != TaskStatus::Pending {
                continue;
            }
            for winner in fresh {
                let wants = self.runs[winner.0].wants(winner.1);
                let is_rival = match (*gate, key.as_deref()) {
                    ("lock", key) => wants.lock == key,
                    ("limit", Some(key)) => wants.limits.contains(&key),
                    ("max_parallel", _) => winner.0 == waiter.0,
                    _ => false,
                };
                let is_passed_over = is_rival
                    && (self.rank(*waiter), *waiter) < (self.rank(*winner), *winner)
                    && self.closed(*waiter, Some(*winner)).is_empty();
                assert!(
                    !is_passed_over,
                    "{} was passed over at {gate} {key:?} by {}: {self:#?}",
                    name(*waiter),
                    name(*winner)
                );
            }
        }
    }

    /// Compares everything, and remembers where who waits.
    pub(super) fn compare(&mut self, seen: &[SeenRun]) {
        assert_eq!(self.runs.len(), seen.len());
        self.waited.clear();
        for (run, of) in seen.iter().enumerate() {
            let known = &self.runs[run];
            assert_eq!(of.status, known.status, "run {run}: {self:#?}\n{seen:#?}");
            if !known.status.is_final() {
                let pauses = (known.is_paused, self.paused_flows.contains(&known.doc.flow));
                assert_eq!(of.pauses, pauses, "pauses of run {run}: {self:#?}");
            }
            for (position, task) in of.tasks.iter().enumerate() {
                let at = (run, position);
                let expected = shown(&known.tasks[position], task);
                assert_eq!(*task, expected, "{} (left: stored, right: true): {self:#?}\n{seen:#?}", name(at));
                if task.status == TaskStatus::Pending {
                    let closed = self.closed(at, None);
                    assert!(
                        !closed.is_empty(),
                        "{} waits at {:?}, and nothing is closed: {self:#?}",
                        name(at),
                        task.gate
                    );
                    let (gate, key) =
                        task.gate.clone().unwrap_or_else(|| panic!("{} has no cause", name(at)));
                    assert!(
                        closed.contains(&gate),
                        "{} waits at {gate} {key:?}; closed is {closed:?}: {self:#?}",
                        name(at)
                    );
                    // One verb may open a second gate of it only after the first went to somebody else: runs are worked
                    // off one by one. Who waits for one thing alone is never passed over.
                    if closed.len() == 1 {
                        self.waited.insert(at, (gate, key));
                    }
                }
            }
        }
        for run in &mut self.runs {
            run.has_just_begun = false;
        }
    }

    /// The gates of a task that are closed now. It does not stand in its own way; neither does what `without` holds.
    fn closed(&self, at: At, without: Option<At>) -> Vec<&'static str> {
        let run = &self.runs[at.0];
        let wants = run.wants(at.1);
        let others = |is_wanted: &dyn Fn(At, &Task) -> bool| {
            let all =
                self.runs.iter().enumerate().flat_map(|(run, of)| (0..of.tasks.len()).map(move |p| (run, p)));
            all.filter(|other| *other != at && is_wanted(*other, self.task(*other))).count()
        };
        let is_live = |other: At, task: &Task| task.is_live() && Some(other) != without;
        let is_smaller = |other: At, task: &Task| {
            // Through is through: those of a run that begins only now come too late.
            let counts = self.runs[other.0].status == RunStatus::Running
                && (!self.runs[other.0].has_just_begun
                    || other.0 == at.0
                    || self.task(at).status.0 == TaskStatus::Pending);
            counts
                && !task.is_final()
                && match (wants.order, self.runs[other.0].wants(other.1).order) {
                    (Some((key, mine)), Some((other, theirs))) => {
                        key == other && VERSIONS[theirs].1 < VERSIONS[mine].1
                    }
                    _ => false,
                }
        };
        let is_full = |limit: &&'static str| {
            let holders = others(&|other, task| {
                is_live(other, task) && self.runs[other.0].wants(other.1).limits.contains(limit)
            });
            matches!(self.limits[*limit], Bound::AtOnce(bound) if holders >= bound)
        };
        let is_early = |limit: &&'static str| {
            let until = self.closed_until.get(*limit).copied().unwrap_or_default();
            matches!(self.limits[*limit], Bound::Every(_)) && until > self.now
        };
        let has_lock = |other: At, task: &Task| {
            is_live(other, task) && self.runs[other.0].wants(other.1).lock == wants.lock
        };
        let has_node = || (0..self.sessions.len()).any(|session| self.takes(session, wants));
        let is_claimed = wants.wait.is_none();
        let gates = [
            ("max_runs", run.status == RunStatus::Queued),
            ("needs", run.needs(at.1) != Needs::Met),
            ("run_at", self.task(at).run_at.is_some_and(|run_at| run_at > self.now)),
            ("paused", self.is_paused(at.0)),
            ("node", is_claimed && run.doc.is_shared && !has_node()),
            (
                "max_parallel",
                is_claimed
                    && others(&|other, task| other.0 == at.0 && is_live(other, task)) >= run.doc.max_parallel,
            ),
            ("order", others(&is_smaller) > 0),
            ("lock", wants.lock.is_some() && others(&has_lock) > 0),
            ("limit", wants.limits.iter().any(is_full)),
            ("rate", wants.limits.iter().any(is_early)),
        ];
        gates.into_iter().filter(|(_, is_closed)| *is_closed).map(|(gate, _)| gate).collect()
    }
}

/// What the store is to show of a task. A claim is told by the start of its holder.
fn shown(task: &Task, seen: &SeenTask) -> SeenTask {
    let is_unsaid = task.status.0 == TaskStatus::Running && !task.is_started;
    SeenTask {
        status: if is_unsaid { TaskStatus::Available } else { task.status.0 },
        attempt: task.told,
        reason: task.reason,
        run_at: task.run_at,
        retries: task.retries,
        lost: task.lost,
        gate: seen.gate.clone(),
    }
}

fn name((run, position): At) -> String {
    format!("s{position} of run {run}")
}

/// Returns the distance of passages, in milliseconds, of a rate of two starts in twice `millis`: no
/// window has three starts, even late ones.
fn spacing(millis: i64) -> i64 {
    let passage = (millis / 10).clamp(50, 5_000);
    millis + passage * 3 / 4
}
