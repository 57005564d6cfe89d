//! Runs that go level by level. The first step of a level, by name, is offered; who takes it takes
//! all of them, and says how all of them ended in one go. What `core/level.rs` makes of that is
//! committed with the ends. docs/design/levels.md.

use std::sync::Arc;

use laneway_core::event::{LevelCommitted, PauseScope, RunReleased, TaskAvailable};
use laneway_core::gate::Gate;
use laneway_core::level::{self, Cursor};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskMove, TaskStatus};
use serde_json::{Map, Value};

use super::ending::{EndedBy, Ending};
use super::{Facts, GivenBackBy, Keeper, Pause, Touch, unreadable};
use crate::error::Error;
use crate::fence::{ClaimRef, Fate};
use crate::model::{Finished, Outcome, Placed};

/// Who lets a run go on by one level, for its pause behind that.
const STEPPING: &str = "advance";

/// How a step of the level that is next is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It is the first of those that are open: it may be offered.
    First,
    /// It may be skipped, and is not offered: it is taken along with the first.
    Led,
}

/// What of a level counts.
enum Counts {
    All,
    /// Only failures: the rest is canceled for this reason.
    Failures(Reason),
    Nothing(Reason),
}

impl<F: Facts> Keeper<F> {
    pub(super) fn is_leveled(&self) -> bool {
        self.plan().is_leveled()
    }

    fn cursor(&mut self) -> &mut Cursor {
        self.run.levels.get_or_insert_default()
    }

    fn next_level(&self) -> u32 {
        self.run.levels.as_ref().map_or(0, |cursor| cursor.level)
    }

    /// What follows from a change: the level that is next is offered, and those of which all has
    /// ended are committed.
    pub(super) fn pump_levels(&mut self) -> Result<(), F::Error> {
        // Of a run that is closing nothing is offered; what came back meanwhile ends.
        let waiting: Vec<Position> = self.to_examine.drain(..).collect();
        if self.is_closing() || self.run.status != RunStatus::Running {
            return waiting.into_iter().try_for_each(|position| self.examine(position));
        }
        while (self.next_level() as usize) < self.plan().levels.len() {
            let steps = self.plan().level(self.next_level());
            self.facts.prepare(&steps, &[])?;
            if !self.is_over(&steps, false)? || !self.is_over(&steps, true)? {
                return Ok(());
            }
            // What was looked at may have failed.
            if self.is_closing() {
                return Ok(());
            }
            // Only what succeeded or was left out counts.
            for position in &steps {
                match self.task(*position)?.status {
                    TaskStatus::Failed => return self.close_after_failure(*position),
                    TaskStatus::Canceled => return Ok(()),
                    TaskStatus::Pending
                    | TaskStatus::Available
                    | TaskStatus::Running
                    | TaskStatus::Parked
                    | TaskStatus::Succeeded
                    | TaskStatus::Skipped => {}
                }
            }
            self.commit_level(&steps)?;
        }
        self.to_examine.clear();
        Ok(())
    }

    /// Offers the first of a level's steps that have not ended, or parks those that wait. Says
    /// whether there are none.
    fn is_over(&mut self, steps: &[Position], is_wait: bool) -> Result<bool, F::Error> {
        let mut is_led = false;
        for position in steps {
            if self.step(*position).wait().is_some() != is_wait {
                continue;
            }
            self.look(*position, if is_led { Look::Led } else { Look::First })?;
            is_led |= !self.task(*position)?.status.is_final() && !is_wait;
        }
        self.to_examine.clear();
        let mut is_over = true;
        for position in steps {
            let is_meant = self.step(*position).wait().is_some() == is_wait;
            is_over &= !is_meant || self.task(*position)?.status.is_final();
        }
        if is_over && !is_wait {
            return Ok(true);
        }
        for position in steps {
            // What waits comes behind what works, and says so.
            if !is_wait && self.step(*position).wait().is_some() {
                self.look(*position, Look::Led)?;
            }
        }
        if !is_over && is_wait {
            self.rest()?;
        }
        Ok(is_over)
    }

    fn look(&mut self, position: Position, look: Look) -> Result<(), F::Error> {
        self.look = Some(look);
        let looked = self.examine(position);
        self.look = None;
        looked
    }

    /// Only what waits is left of a level: no node keeps the run meanwhile.
    fn rest(&mut self) -> Result<(), F::Error> {
        let Some(owner) = self.run.owner.filter(|_| matches!(self.head.placed, Placed::Pinned { .. })) else {
            return Ok(());
        };
        let node = self.facts.node(owner)?.map(|node| node.to_string()).unwrap_or_default();
        self.run.owner = None;
        self.append(RunReleased { node, tasks: Vec::new() });
        Ok(())
    }

    /// All of a level has ended, and nothing of it failed.
    fn commit_level(&mut self, steps: &[Position]) -> Result<(), F::Error> {
        let level = self.next_level();
        let before = self.run.levels.as_ref().and_then(|cursor| cursor.checkpoint.clone());
        let checkpoint = self.checkpoint(before.as_deref(), level, steps)?;
        let cursor = self.cursor();
        cursor.level = level + 1;
        cursor.checkpoint = Some(checkpoint.clone());
        let is_far_enough = cursor.until.take_if(|until| *until <= level + 1).is_some();
        let steps = steps.iter().map(|position| self.name(*position)).collect();
        self.append(LevelCommitted { level, checkpoint, steps });
        if is_far_enough && (level + 1 < self.plan().levels.len() as u32) {
            let pause = Pause { scope: PauseScope::Run, by: STEPPING.to_owned(), since: self.now };
            self.pause_between(pause);
        }
        Ok(())
    }

    fn checkpoint(
        &mut self,
        before: Option<&str>,
        level: u32,
        steps: &[Position],
    ) -> Result<String, F::Error> {
        let mut results: Vec<(Position, TaskStatus, Map<String, Value>)> = Vec::with_capacity(steps.len());
        for position in steps {
            let task = self.task(*position)?;
            let output = match &task.output {
                None => Map::new(),
                Some(text) => serde_json::from_str(text).map_err(|_| unreadable("output of a task", text))?,
            };
            results.push((*position, task.status, output));
        }
        let result = |(position, status, output): &'_ (Position, TaskStatus, Map<String, Value>)| {
            (self.plan().step(*position).name.as_str(), *status, output.clone())
        };
        let named: Vec<(&str, TaskStatus, Map<String, Value>)> = results.iter().map(result).collect();
        let results =
            named.iter().map(|(step, status, output)| level::Result { step, status: *status, output });
        Ok(level::checkpoint(before, level, results))
    }

    /// The holder of a level's first task takes all of it, and says that all of it has started.
    /// Gives what it holds, by name; nothing where the claim is lost. In a run that was paused
    /// meanwhile it goes back.
    pub(crate) fn claim_level(&mut self, claim: &ClaimRef) -> Result<Vec<ClaimRef>, F::Error> {
        let task = self.task(claim.position)?;
        if !task.is_held_by(claim) {
            return Ok(Vec::new());
        }
        let (is_said, is_stopped) = (task.started_at.is_some(), task.stop.is_some());
        if !self.is_leveled() {
            return Err(Error::NotLeveled { run: self.head.run }.into());
        }
        let steps = self.plan().level(self.plan().level_of[claim.position as usize]);
        self.facts.prepare(&steps, &[])?;
        if !is_said {
            // In a run that was paused meanwhile it waits, in one that is being stopped it ends.
            if !self.run.pauses.is_empty() || self.run.closing.is_some() || is_stopped {
                self.give_back(claim, GivenBackBy::Holder)?;
                return Ok(Vec::new());
            }
            let Some(node) = self.facts.node(claim.session)? else { return Ok(Vec::new()) };
            let mut taken = Vec::with_capacity(steps.len());
            for position in &steps {
                if *position == claim.position {
                    taken.push(*claim);
                } else if matches!(self.task(*position)?.gate, Some(Gate::Level | Gate::Node)) {
                    // Who takes the level is the node for all of it.
                    taken.extend(self.take_along(*position, claim)?);
                }
            }
            for claim in taken {
                let now = self.now;
                let kept = self.kept(claim.position)?;
                kept.row.started_at = Some(now);
                kept.row.node = Some(Arc::clone(&node));
                kept.touch = kept.touch.max(Touch::Start);
                self.say_started(&claim, false, &node)?;
            }
        }
        let mut held = Vec::with_capacity(steps.len());
        for position in steps {
            let task = self.task(position)?;
            if task.status == TaskStatus::Running && task.session == Some(claim.session) {
                let (attempt, generation) = (task.attempt, task.generation());
                held.push(ClaimRef { position, attempt, generation, ..*claim });
            }
        }
        Ok(held)
    }

    /// One that was led becomes available and is claimed at once. What waits is nobody's.
    fn take_along(&mut self, position: Position, with: &ClaimRef) -> Result<Option<ClaimRef>, F::Error> {
        if self.step(position).wait().is_some() {
            return Ok(None);
        }
        let status = self.task(position)?.status.next(TaskMove::Promote)?.next(TaskMove::Claim)?;
        self.note_wait(position)?;
        let class = self.class_for(position)?;
        self.change(position, |task| {
            task.forget_attempt();
            task.class = class;
            task.status = status;
            task.gate = None;
            task.rank = None;
            task.attempt += 1;
            task.session = Some(with.session);
        })?;
        self.append(TaskAvailable { step: self.name(position) });
        let task = self.task(position)?;
        let (attempt, generation) = (task.attempt, task.generation());
        Ok(Some(ClaimRef { position, attempt, generation, ..*with }))
    }

    /// The holder of a level says how all of it ended. It counts as one: after a failure nothing of
    /// it does but that.
    pub(crate) fn finish_level(&mut self, finished: &[&Finished]) -> Result<Vec<Fate>, F::Error> {
        let mut fates = Vec::with_capacity(finished.len());
        for one in finished {
            let is_held = self.task(one.claim.position)?.is_held_by(&one.claim);
            fates.push(if is_held { Fate::Recorded } else { self.earlier_fate(&one.claim)? });
        }
        // What was said before may be said again together with the next level.
        let held = finished.iter().zip(&fates).filter(|(_, fate)| **fate == Fate::Recorded);
        let finished: Vec<&Finished> = held.map(|(one, _)| *one).collect();
        if finished.is_empty() {
            return Ok(fates);
        }
        let is_lost = fates.contains(&Fate::ClaimLost);
        // What nobody asked to stop and was stopped all the same says nothing of the level.
        let is_cut = self.run.closing.is_none()
            && finished.iter().all(|one| !matches!(one.outcome, Outcome::Failed { .. }))
            && finished.iter().any(|one| matches!(one.outcome, Outcome::Canceled { .. }));
        if is_lost || is_cut {
            // Nobody takes single tasks of a level away. Whatever did, what is left of it is done
            // anew together with the rest.
            for one in &finished {
                let node = self.facts.node(one.claim.session)?.unwrap_or_else(|| Arc::from(""));
                self.lose_for_another_try(&one.claim, &node)?;
            }
            return Ok(fates);
        }
        let rows = self.facts.running()?;
        self.keep_all(rows);
        if self.those_that_are(&[TaskStatus::Running]).len() != finished.len() {
            return Err(Error::PartOfLevel { run: self.head.run }.into());
        }
        let is_failed = |one: &&Finished| matches!(one.outcome, Outcome::Failed { .. });
        let counts = match self.run.closing {
            Some(closing) => Counts::Nothing(closing.reason()),
            None if finished.iter().any(is_failed) => Counts::Failures(Reason::Aborted),
            None => Counts::All,
        };
        let mut order: Vec<&Finished> = finished.clone();
        order.sort_by(|one, other| {
            let name = |one: &Finished| self.step(one.claim.position).name.as_str();
            name(one).cmp(name(other))
        });
        for one in order {
            match ending(one, &counts) {
                Some(ending) => self.end(&one.claim, ending)?,
                None => drop(self.finish(one)?),
            }
        }
        Ok(fates)
    }

    /// Lets a run that is held up go on by one level.
    pub(crate) fn advance(&mut self, by: &str) -> Result<u32, F::Error> {
        let run = self.head.run;
        if !self.is_leveled() {
            return Err(Error::NotLeveled { run }.into());
        }
        if self.run.status.is_final() {
            return Err(Error::Ended { run, status: self.run.status }.into());
        }
        let is_stepping = self.run.levels.as_ref().is_some_and(|cursor| cursor.until.is_some());
        if is_stepping || !self.run.pauses.iter().any(|pause| pause.scope == PauseScope::Run) {
            return Err(Error::GoesOn { run }.into());
        }
        let level = self.next_level();
        self.resume(PauseScope::Run, by)?;
        self.cursor().until = Some(level + 1);
        Ok(level)
    }

    /// Somebody holds the run up, or lets it go on to its end: it is done with going level by
    /// level.
    pub(super) fn stop_advancing(&mut self) -> bool {
        self.run.levels.as_mut().is_some_and(|cursor| cursor.until.take().is_some())
    }

    /// Some tasks are pending again: the run goes on at the first level that has one. Gives that
    /// level.
    pub(super) fn reopen_levels(&mut self, again: &[Position]) -> Result<Option<u32>, F::Error> {
        if !self.is_leveled() {
            return Ok(None);
        }
        let lowest = again.iter().map(|position| self.plan().level_of[*position as usize]).min();
        let level = lowest.unwrap_or(u32::MAX).min(self.next_level());
        let mut checkpoint = None;
        for before in 0..level {
            let steps = self.plan().level(before);
            checkpoint = Some(self.checkpoint(checkpoint.as_deref(), before, &steps)?);
        }
        self.run.levels = Some(Cursor { level, checkpoint, until: None });
        Ok(Some(level))
    }
}

/// `None` for what is said as of any other task.
fn ending(finished: &Finished, counts: &Counts) -> Option<Ending> {
    let took_ms = u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX);
    let by = EndedBy::Holder { took_ms };
    let canceled = |reason: Reason| Ending {
        by,
        step: TaskMove::Cancel,
        reason: Some(reason),
        detail: None,
        exit_code: None,
        output: Map::new(),
        layer: None,
    };
    let layer = || finished.layer.clone();
    Some(match (&finished.outcome, counts) {
        (Outcome::Cached(_), Counts::All) => return None,
        (_, Counts::Nothing(reason))
        | (
            Outcome::Succeeded { .. } | Outcome::Cached(_) | Outcome::Canceled { .. },
            Counts::Failures(reason),
        ) => canceled(*reason),
        (Outcome::Canceled { reason }, Counts::All) => canceled(*reason),
        (Outcome::Succeeded { output }, Counts::All) => Ending {
            step: TaskMove::Succeed,
            reason: None,
            exit_code: Some(0),
            output: output.clone(),
            layer: layer(),
            ..canceled(Reason::Aborted)
        },
        (Outcome::Failed { reason, detail, exit_code }, Counts::All | Counts::Failures(_)) => Ending {
            step: TaskMove::Fail,
            reason: Some(*reason),
            detail: Some(detail.clone()),
            exit_code: *exit_code,
            layer: layer(),
            ..canceled(*reason)
        },
    })
}
