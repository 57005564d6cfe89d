//! What follows from a deed: `settle` derives it from scratch, until nothing changes.

use laneway_core::definition::{OnFailure, When};
use laneway_core::event::Closing;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};

use super::spec::{FLOWS, Wait};
use super::truth::{At, Needs, Status, Task, Truth};

impl Truth {
    /// Time has come to here.
    pub(super) fn come_to(&mut self, now: i64) {
        self.now = now;
        for run in 0..self.runs.len() {
            let of = &self.runs[run];
            let is_over =
                of.status == RunStatus::Running && of.deadline.is_some_and(|deadline| deadline <= now);
            match (is_over, of.is_canceling()) {
                (true, true) => self.end_clean_up(run),
                (true, false) => self.close(run, Closing::RunTimeout),
                (false, _) => {}
            }
        }
    }

    pub(super) fn close(&mut self, run: usize, closing: Closing) {
        let of = &self.runs[run];
        let was_begun = of.tasks.iter().any(|task| task.attempt > 0 || task.was_parked);
        let is_orphan = !of.doc.is_shared && of.owner.is_none();
        let cleans_up =
            |position: &usize| of.wants(*position).when == When::Always && !of.tasks[*position].is_final();
        let has_clean_up =
            was_begun && !is_orphan && (0..of.tasks.len()).any(|position| cleans_up(&position));
        let deadline = match closing {
            Closing::Halted | Closing::Aborted => of.deadline,
            // It has begun: another reason gives it no more time.
            Closing::Canceled | Closing::RunTimeout if of.is_canceling() => of.deadline,
            Closing::Canceled | Closing::RunTimeout => {
                let has_time = has_clean_up && of.doc.cleanup_timeout > 0 && of.status == RunStatus::Running;
                has_time.then_some(self.now + of.doc.cleanup_timeout)
            }
        };
        self.close_within(run, closing, deadline);
    }

    pub(super) fn close_within(&mut self, run: usize, closing: Closing, deadline: Option<i64>) {
        let of = &mut self.runs[run];
        of.closing = Some(closing);
        of.deadline = deadline;
        for position in 0..of.tasks.len() {
            let is_stopped = closing != Closing::Halted && !of.cleans_up(position);
            let task = &mut of.tasks[position];
            if is_stopped && task.holder.is_some() {
                task.stop = Some(closing.reason());
            }
        }
        self.end_what_closing_ends(run);
    }

    pub(super) fn end_clean_up(&mut self, run: usize) {
        if let Some(closing) = self.runs[run].closing {
            self.close_within(run, closing, None);
        }
    }

    pub(super) fn end(&mut self, at: At, status: TaskStatus, reason: Option<Reason>) {
        self.steps += 1;
        let task = self.task_mut(at);
        *task = task.let_go(status, reason);
    }

    pub(super) fn fail(&mut self, at: At, reason: Reason) {
        self.end(at, TaskStatus::Failed, Some(reason));
        let run = &self.runs[at.0];
        match (run.closing, run.doc.on_failure) {
            (None, OnFailure::Halt) => self.close(at.0, Closing::Halted),
            (None, OnFailure::Abort) => self.close(at.0, Closing::Aborted),
            (Some(_), _) | (None, OnFailure::Continue) => {}
        }
    }

    /// Everything that follows, until nothing does.
    pub(super) fn settle(&mut self) {
        loop {
            let before = self.steps;
            for run in 0..self.runs.len() {
                self.end_what_closing_ends(run);
                self.end_what_needs_end(run);
                self.end_what_is_over(run);
                self.park(run);
                self.end_run(run);
            }
            for flow in 0..FLOWS.len() {
                let next = self.queued(flow).first().copied();
                if let Some(next) = next
                    && self.runs[next].doc.max_runs().is_none_or(|limit| self.running(flow).len() < limit)
                {
                    self.begin(next);
                }
            }
            if self.steps == before {
                break;
            }
        }
        let now = self.now;
        for run in self.runs.iter_mut().filter(|run| run.status == RunStatus::Running) {
            for position in 0..run.tasks.len() {
                let task = &run.tasks[position];
                let is_due = task.run_at.is_none_or(|at| at <= now);
                if task.status.0 == TaskStatus::Pending && is_due && run.needs(position) == Needs::Met {
                    run.tasks[position].ready_at.get_or_insert(now);
                }
            }
        }
    }

    pub(super) fn end_what_closing_ends(&mut self, run: usize) {
        let Some(closing) = self.runs[run].closing else { return };
        for position in self.runs[run].positions(Task::is_unheld) {
            match closing {
                Closing::Canceled | Closing::RunTimeout if self.runs[run].cleans_up(position) => {}
                Closing::Canceled | Closing::RunTimeout => {
                    self.end((run, position), TaskStatus::Canceled, Some(closing.reason()));
                }
                Closing::Halted | Closing::Aborted
                    if !self.runs[run].wants(position).when.accepts_failure() =>
                {
                    // What has begun is not skipped.
                    let is_parked = self.task((run, position)).status.0 == TaskStatus::Parked;
                    let status = if is_parked { TaskStatus::Canceled } else { TaskStatus::Skipped };
                    self.end((run, position), status, Some(Reason::Halted));
                }
                Closing::Halted | Closing::Aborted => {}
            }
        }
    }

    pub(super) fn end_what_needs_end(&mut self, run: usize) {
        if self.runs[run].status != RunStatus::Running {
            return;
        }
        for position in self.runs[run].positions(|task| task.status.0 == TaskStatus::Pending) {
            let is_unwanted = self.runs[run].wants(position).condition == Some(false);
            match self.runs[run].needs(position) {
                Needs::Never => self.end((run, position), TaskStatus::Skipped, Some(Reason::Upstream)),
                Needs::Met if is_unwanted => {
                    self.end((run, position), TaskStatus::Skipped, Some(Reason::Condition));
                }
                Needs::Met | Needs::Open => {}
            }
        }
    }

    /// What waits is parked as soon as nothing of its own keeps it, and holds nothing.
    pub(super) fn park(&mut self, run: usize) {
        if self.runs[run].status != RunStatus::Running || self.is_paused(run) {
            return;
        }
        let now = self.now;
        for position in self.runs[run].positions(|task| task.status.0 == TaskStatus::Pending) {
            let of = &mut self.runs[run];
            let wants = of.wants(position);
            let is_wanted = wants.wait.is_some() && wants.condition != Some(false);
            if is_wanted && of.needs(position) == Needs::Met {
                of.tasks[position].status = Status(TaskStatus::Parked);
                of.tasks[position].parked_at = Some(now);
                of.tasks[position].was_parked = true;
                self.steps += 1;
            }
        }
    }

    /// A signal, or time.
    pub(super) fn end_what_is_over(&mut self, run: usize) {
        for position in self.runs[run].positions(|task| task.status.0 == TaskStatus::Parked) {
            let (now, task) = (self.now, self.task((run, position)));
            // The failure of another one may have ended it.
            let Some(parked_at) = task.parked_at else { continue };
            let is_past = |span: i64| parked_at + span <= now;
            let has_come = match self.runs[run].wants(position).wait {
                _ if task.is_signaled => Some(true),
                Some(Wait::For { span, timeout }) if timeout.is_none_or(|timeout| span <= timeout) => {
                    is_past(span).then_some(true)
                }
                Some(Wait::Signal { timeout } | Wait::For { timeout, .. }) => {
                    timeout.is_some_and(is_past).then_some(false)
                }
                None => None,
            };
            match has_come {
                Some(true) => self.end((run, position), TaskStatus::Succeeded, None),
                Some(false) => self.fail((run, position), Reason::Timeout),
                None => {}
            }
        }
    }

    pub(super) fn end_run(&mut self, run: usize) {
        let of = &mut self.runs[run];
        if of.status.is_final() || !of.tasks.iter().all(Task::is_final) {
            return;
        }
        self.steps += 1;
        let has_failed = of.tasks.iter().any(|task| task.status.0 == TaskStatus::Failed);
        of.status = match of.closing {
            Some(Closing::Canceled) => RunStatus::Canceled,
            Some(Closing::RunTimeout) => RunStatus::Failed,
            Some(Closing::Halted | Closing::Aborted) | None if has_failed => RunStatus::Failed,
            Some(Closing::Halted | Closing::Aborted) | None => RunStatus::Succeeded,
        };
        of.owner = None;
        of.deadline = None;
    }
}
