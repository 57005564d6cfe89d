//! What the members of a group mean to each other and to their run: the first failure in a strict one ends the others, one
//! in a lenient one ends nobody, only so many have a place at once, and a lane begins and ends with them. Whether there is
//! something to merge is core's to say (`group::against_merging`). docs/design/groups.md.

use std::sync::Arc;

use laneway_core::definition::{GroupFailure, Merge};
use laneway_core::event::{LaneFinished, LaneKind, LaneResult, LaneStarted, MergeFinished};
use laneway_core::gate::{Gate, Room};
use laneway_core::group::{self, Ended};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::TaskStatus;
use serde_json::{Map, Value};

use super::{Facts, Failures, Keeper, Settled};

impl<F: Facts> Keeper<F> {
    /// A task failed for good: what that means for its group, and for the run.
    pub(super) fn fail(&mut self, position: Position) -> Result<(), F::Error> {
        match self.plan().group_of(position) {
            None => self.close_after_failure(position),
            Some(group) => match self.plan().group(group).failure {
                GroupFailure::Lenient => Ok(()),
                GroupFailure::Strict => {
                    self.cancel_members(group, position)?;
                    self.close_after_failure(position)
                }
            },
        }
    }

    /// Ends the others: who has not started does not, who runs is asked to stop.
    fn cancel_members(&mut self, group: u32, failed: Position) -> Result<(), F::Error> {
        let head = Arc::clone(&self.head);
        let members = head.plan.members(group);
        self.facts.prepare(members, &[])?;
        for member in members.iter().copied().filter(|member| *member != failed) {
            let task = self.task(member)?;
            let (attempt, is_asked) = (task.attempt, task.stop.is_some());
            match task.status {
                TaskStatus::Pending | TaskStatus::Available | TaskStatus::Parked => {
                    let why = Some(self.why_stopped(failed));
                    self.cancel_task(member, attempt, Reason::Aborted, why)?;
                }
                TaskStatus::Running if !is_asked => {
                    self.change(member, |task| task.stop = Some(Reason::Aborted))?;
                }
                TaskStatus::Running
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled
                | TaskStatus::Skipped => {}
            }
        }
        Ok(())
    }

    fn why_stopped(&self, failed: Position) -> String {
        let group = self.plan().group_of(failed).map_or("", |group| &self.plan().group(group).name);
        format!("`{}` of its group `{group}` failed", self.step(failed).name)
    }

    /// Why a member that was asked to stop has ended, where that was because of another one.
    pub(super) fn why_aborted(
        &mut self,
        position: Position,
        reason: Reason,
    ) -> Result<Option<String>, F::Error> {
        let head = Arc::clone(&self.head);
        if let (Some((step, _)), Reason::Aborted) = (head.plan.item(position), reason) {
            return self.why_not_the_others(step);
        }
        let Some(group) = head.plan.group_of(position).filter(|_| reason == Reason::Aborted) else {
            return Ok(None);
        };
        if head.plan.group(group).failure == GroupFailure::Lenient {
            return Ok(None);
        }
        self.facts.prepare(head.plan.members(group), &[])?;
        for member in head.plan.members(group) {
            if *member != position && self.task(*member)?.status == TaskStatus::Failed {
                return Ok(Some(self.why_stopped(*member)));
            }
        }
        Ok(None)
    }

    /// Why a merge whose members have all ended has nothing to do.
    pub(super) fn against_merging(&mut self, position: Position) -> Result<Option<String>, F::Error> {
        let Some(group) = self.step(position).merges() else { return Ok(None) };
        let head = Arc::clone(&self.head);
        let members = head.plan.members(group);
        self.facts.prepare(members, &[])?;
        let mut ended = Vec::with_capacity(members.len());
        for member in members {
            let task = self.task(*member)?;
            let (status, reason) = (task.status, task.reason);
            ended.push(Ended { step: &head.plan.step(*member).name, status, reason });
        }
        Ok(group::against_merging(head.plan.group(group).failure, &ended))
    }

    /// How much room there is in the group of a member, where that is bounded. Counted from the members themselves.
    pub(super) fn room(&mut self, position: Position) -> Result<Option<Room>, F::Error> {
        let head = Arc::clone(&self.head);
        let Some(group) = head.plan.bounded_group_of(position) else { return Ok(None) };
        let Some(max) = head.plan.group(group).max_parallel else { return Ok(None) };
        let members = head.plan.members(group);
        self.facts.prepare(members, &[])?;
        let mut live = 0;
        for member in members.iter().filter(|member| **member != position) {
            live += u32::from(self.task(*member)?.status.is_live());
        }
        Ok(Some(Room { live, max: max.get() }))
    }

    /// A task is not live any more, or waits for something that is not its group's to give: another member may go on.
    pub(super) fn leave_group(&mut self, position: Position) {
        if let Some(group) = self.plan().bounded_group_of(position) {
            self.roomy.insert(group);
        }
        if let Some((step, _)) = self.bounded_items(position) {
            self.roomy_steps.insert(step);
        }
    }

    /// Gives free places of groups to the members who wait for one, first in line first. Who has to wait for something else
    /// then leaves the place to the next; who waits for a place in the run is counted as if it had it.
    pub(super) fn fill_groups(&mut self) -> Result<(), F::Error> {
        while let Some(group) = self.roomy.pop_first() {
            let head = Arc::clone(&self.head);
            let members = head.plan.members(group);
            self.facts.prepare(members, &[])?;
            let max = head.plan.group(group).max_parallel.map_or(u32::MAX, std::num::NonZeroU32::get);
            let mut taken = 0;
            let mut line = Vec::new();
            for member in members {
                let task = self.task(*member)?;
                taken += u32::from(task.status.is_live() || task.is_in_line());
                if task.gate == Some(Gate::Group) {
                    line.push((task.rank, *member));
                }
            }
            line.sort_unstable();
            for (_, member) in line {
                if taken >= max {
                    break;
                }
                self.examine(member)?;
                let task = self.task(member)?;
                taken += u32::from(task.status.is_live() || task.is_in_line());
            }
        }
        Ok(())
    }

    /// A member starts. The merge of its group has a rank from the first of them on: so the start of a lane is told once,
    /// and once more when the merge is opened again.
    pub(super) fn begin_lane(&mut self, position: Position) -> Result<(), F::Error> {
        let Some(group) = self.plan().group_of(position) else { return Ok(()) };
        let merge = self.plan().merge_of(group);
        let rank = self.rank(merge);
        let task = self.task(merge)?;
        if task.rank.is_some() || task.status != TaskStatus::Pending {
            return Ok(());
        }
        self.change(merge, |task| task.rank = Some(rank))?;
        let (head, kind) = (Arc::clone(&self.head), LaneKind::Group);
        let steps = head.plan.members(group).iter().map(|member| self.name(*member)).collect();
        self.append(LaneStarted { lane: head.plan.group(group).name.clone(), kind, steps });
        Ok(())
    }

    /// The last member of a group has ended.
    pub(super) fn end_lane(&mut self, group: u32) -> Result<(), F::Error> {
        let head = Arc::clone(&self.head);
        let members = head.plan.members(group);
        self.facts.prepare(members, &[])?;
        let mut results = Vec::with_capacity(members.len());
        // The merge may have been skipped with the rest of a run that was halted, and tells nothing then.
        let mut has_begun = self.task(head.plan.merge_of(group))?.rank.is_some();
        for member in members {
            let task = self.task(*member)?;
            has_begun |= task.started_at.is_some();
            let status = task.status;
            let success = status == TaskStatus::Succeeded;
            results.push(LaneResult { step: head.plan.step(*member).name.clone(), status, success });
        }
        // Nobody was told of a lane in which nothing has started.
        if has_begun {
            let lane = head.plan.group(group).name.clone();
            self.append(LaneFinished { lane, kind: LaneKind::Group, results });
        }
        Ok(())
    }

    /// A merge has succeeded with this.
    pub(super) fn say_merged(&mut self, position: Position, output: &Map<String, Value>) {
        let Some(group) = self.step(position).merges().map(|group| self.plan().group(group)) else { return };
        // What other merges put out is the author's, whatever it is called.
        let is_of_files = matches!(group.merge, Merge::Workspace { .. });
        let files = output.get("files_changed").filter(|_| is_of_files).and_then(Value::as_u64);
        let conflicts = output.get("conflicts").filter(|_| is_of_files).and_then(Value::as_array);
        let path = |conflict: &Value| conflict.get("path")?.as_str().map(str::to_owned);
        let conflicts = conflicts.map(|all| all.iter().filter_map(path).collect()).unwrap_or_default();
        self.append(MergeFinished { group: group.name.clone(), files: files.unwrap_or(0), conflicts });
    }

    /// The first failure that makes the run fail, in words: one of a lenient group's members does not.
    pub(super) fn first_that_counts(&mut self) -> Result<Option<String>, F::Error> {
        let rows = self.facts.all()?;
        self.keep_all(rows);
        let head = Arc::clone(&self.head);
        let is_lenient = |position: Position| {
            let group = head.plan.group_of(position).map(|group| head.plan.group(group));
            group.is_some_and(|group| group.failure == GroupFailure::Lenient)
        };
        let mut failed: Vec<Failures> = self
            .tasks
            .iter()
            .filter(|(position, kept)| {
                Settled::of(kept.row.status, kept.row.reason) == Some(Settled::Failed)
                    && !is_lenient(**position)
                    && head.plan.item(**position).is_none()
            })
            .map(|(position, kept)| Failures {
                position: *position,
                reason: kept.row.reason,
                detail: kept.row.detail.clone(),
                finished_at: kept.row.finished_at,
                count: 0,
            })
            .collect();
        failed.sort_by_key(|failures| (failures.finished_at, failures.position));
        let count = failed.len() as u64;
        Ok(failed.into_iter().next().map(|first| self.failure_in_words(first, count)))
    }
}
