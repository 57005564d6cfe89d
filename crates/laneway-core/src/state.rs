//! The states of runs and tasks, and the only functions that say which may follow which.
//! Used when live, on recovery and in replay; what the tables below do not allow cannot happen.
//! PROTOCOL: "Transitions". Timeout, lost, halted and the like are reasons, not states.

use crate::words::words;

words! {
    /// Where a run is.
    pub enum RunStatus {
        Queued = "queued",
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Canceled = "canceled",
    }
}

words! {
    /// Where a task is.
    pub enum TaskStatus {
        /// Waits for gates.
        Pending = "pending",
        /// Can be claimed by anyone at once.
        Available = "available",
        /// Held by exactly one claim.
        Running = "running",
        /// A wait step that holds neither slot nor lease.
        Parked = "parked",
        Succeeded = "succeeded",
        Failed = "failed",
        Canceled = "canceled",
        Skipped = "skipped",
    }
}

words! {
    /// What can happen to a run.
    pub enum RunMove {
        Start = "start",
        Succeed = "succeed",
        Fail = "fail",
        Cancel = "cancel",
        /// A retry, or a skip of what failed.
        Reopen = "reopen",
    }
}

words! {
    /// What can happen to a task.
    pub enum TaskMove {
        /// Its gates opened.
        Promote = "promote",
        /// Its gates opened, and it is a wait step.
        Park = "park",
        /// Pause, halt, or a gate's key withdrawn.
        Withdraw = "withdraw",
        Claim = "claim",
        /// Given back by its holder, never started; spends no retry.
        GiveBack = "give_back",
        /// A failed attempt that will be tried again, or a claim whose session died.
        Requeue = "requeue",
        Succeed = "succeed",
        Fail = "fail",
        Cancel = "cancel",
        Skip = "skip",
        /// A retry of its run, or a skip undone.
        Reopen = "reopen",
        /// A person's `laneway skip`: dependents see it as succeeded.
        Pardon = "pardon",
    }
}

/// A transition that no table row allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {entity} that is {from} cannot {to}")]
pub struct Illegal {
    pub entity: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

impl RunStatus {
    pub fn is_final(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled => true,
            Self::Queued | Self::Running => false,
        }
    }

    pub fn next(self, step: RunMove) -> Result<Self, Illegal> {
        match (self, step) {
            (Self::Queued, RunMove::Start) => Ok(Self::Running),
            (Self::Running, RunMove::Succeed) => Ok(Self::Succeeded),
            (Self::Running, RunMove::Fail) => Ok(Self::Failed),
            // One that waits behind `max_runs` is canceled by a person, replaced by a newer one, or skipped.
            (Self::Queued | Self::Running, RunMove::Cancel) => Ok(Self::Canceled),
            (Self::Succeeded | Self::Failed | Self::Canceled, RunMove::Reopen) => Ok(Self::Running),
            (
                Self::Queued | Self::Running | Self::Succeeded | Self::Failed | Self::Canceled,
                RunMove::Start | RunMove::Succeed | RunMove::Fail | RunMove::Cancel | RunMove::Reopen,
            ) => Err(Illegal { entity: "run", from: self.as_str(), to: step.as_str() }),
        }
    }
}

impl TaskStatus {
    pub fn is_final(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled | Self::Skipped => true,
            Self::Pending | Self::Available | Self::Running | Self::Parked => false,
        }
    }

    /// Whether it counts against `max_parallel`.
    pub fn is_live(self) -> bool {
        match self {
            Self::Available | Self::Running => true,
            Self::Pending
            | Self::Parked
            | Self::Succeeded
            | Self::Failed
            | Self::Canceled
            | Self::Skipped => false,
        }
    }

    pub fn next(self, step: TaskMove) -> Result<Self, Illegal> {
        use TaskMove as M;
        use TaskStatus as S;
        let illegal = Err(Illegal { entity: "task", from: self.as_str(), to: step.as_str() });
        match (step, self) {
            (M::Promote, S::Pending) => Ok(S::Available),
            (M::Park, S::Pending) => Ok(S::Parked),
            (M::Withdraw, S::Available) => Ok(S::Pending),
            (M::Claim, S::Available) => Ok(S::Running),
            (M::GiveBack, S::Running) => Ok(S::Available),
            (M::Requeue, S::Running) => Ok(S::Pending),
            (M::Succeed, S::Running | S::Parked) => Ok(S::Succeeded),
            (M::Fail, S::Running | S::Parked) => Ok(S::Failed),
            (M::Cancel, S::Pending | S::Available | S::Running | S::Parked) => Ok(S::Canceled),
            (M::Skip, S::Pending | S::Available) => Ok(S::Skipped),
            (M::Reopen, S::Succeeded | S::Failed | S::Canceled | S::Skipped) => Ok(S::Pending),
            (M::Pardon, S::Failed) => Ok(S::Skipped),
            (
                M::Promote
                | M::Park
                | M::Withdraw
                | M::Claim
                | M::GiveBack
                | M::Requeue
                | M::Succeed
                | M::Fail
                | M::Cancel
                | M::Skip
                | M::Reopen
                | M::Pardon,
                _,
            ) => illegal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: states. Columns: moves. A letter is the state that follows, a dot is refused.
    fn table<S: Copy, M: Copy>(
        states: &[S],
        moves: &[M],
        next: impl Fn(S, M) -> Option<&'static str>,
    ) -> String {
        let mut text = String::new();
        for state in states {
            let row: Vec<&str> = moves.iter().map(|step| next(*state, *step).unwrap_or(".")).collect();
            text.push_str(&row.join(" "));
            text.push('\n');
        }
        text
    }

    #[test]
    fn run_table_holds_for_every_state_and_move() {
        let table =
            table(RunStatus::ALL, RunMove::ALL, |state, step| state.next(step).ok().map(RunStatus::as_str));
        insta::assert_snapshot!(table, @r"
        running . . canceled .
        . succeeded failed canceled .
        . . . . running
        . . . . running
        . . . . running
        ");
    }

    #[test]
    fn task_table_holds_for_every_state_and_move() {
        let table = table(TaskStatus::ALL, TaskMove::ALL, |state, step| {
            state.next(step).ok().map(TaskStatus::as_str)
        });
        // Columns: promote park withdraw claim give_back requeue succeed fail cancel skip reopen pardon.
        insta::assert_snapshot!(table, @r"
        available parked . . . . . . canceled skipped . .
        . . pending running . . . . canceled skipped . .
        . . . . available pending succeeded failed canceled . . .
        . . . . . . succeeded failed canceled . . .
        . . . . . . . . . . pending .
        . . . . . . . . . . pending skipped
        . . . . . . . . . . pending .
        . . . . . . . . . . pending .
        ");
    }

    #[test]
    fn refusal_names_the_entity_the_state_and_the_move() {
        let refusal =
            TaskStatus::Succeeded.next(TaskMove::Claim).expect_err("a finished task is never claimed");
        assert_eq!(refusal.to_string(), "a task that is succeeded cannot claim");
    }
}
