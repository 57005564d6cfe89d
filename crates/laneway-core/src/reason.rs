//! Why an attempt or a task ended as it did. Reasons are not states: a timeout is a way to fail.

use crate::words::words;

use serde::{Deserialize, Serialize};

/// A stable word, kept in the store, in events and in `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The program ended with an exit code other than 0.
    Exit,
    /// The program was ended by a signal that Laneway did not send.
    Signal,
    /// The step's `timeout` passed.
    Timeout,
    /// The program could not be started.
    StartFailed,
    /// An expression of the step could not be evaluated.
    Expression,
    /// What the step wrote to `$LANEWAY_OUTPUT` could not be read.
    BadOutput,
    /// The node that ran it died.
    Lost,
    /// A person, or Ctrl-C, canceled the run.
    Canceled,
    /// Another step failed and `on_failure` is `abort`.
    Aborted,
    /// The run's `timeout` passed.
    RunTimeout,
    /// Another step failed and `on_failure` is `halt` or `abort`: never started.
    Halted,
    /// What it needs did not end as its `when` asks.
    Upstream,
    /// Its `if` was false.
    Condition,
    /// A person skipped it with `laneway skip`; dependents see it as succeeded.
    SkippedByPerson,
}

impl Reason {
    pub const ALL: [Self; 14] = [
        Self::Exit,
        Self::Signal,
        Self::Timeout,
        Self::StartFailed,
        Self::Expression,
        Self::BadOutput,
        Self::Lost,
        Self::Canceled,
        Self::Aborted,
        Self::RunTimeout,
        Self::Halted,
        Self::Upstream,
        Self::Condition,
        Self::SkippedByPerson,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::StartFailed => "start_failed",
            Self::Expression => "expression",
            Self::BadOutput => "bad_output",
            Self::Lost => "lost",
            Self::Canceled => "canceled",
            Self::Aborted => "aborted",
            Self::RunTimeout => "run_timeout",
            Self::Halted => "halted",
            Self::Upstream => "upstream",
            Self::Condition => "condition",
            Self::SkippedByPerson => "skipped_by_person",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_reads_back_from_its_own_word() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
            assert_eq!(serde_json::to_value(reason).expect("a reason is a string"), reason.as_str());
        }
    }
}
