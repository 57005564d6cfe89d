//! Why an attempt or a task ended as it did. Reasons are not states: a timeout is a way to fail.

use crate::words::words;

words! {
    /// A stable word, kept in the store, in events and in `--json`.
    pub enum Reason {
        /// The program ended with an exit code other than 0.
        Exit = "exit",
        /// The function said that it failed, or panicked; or the output of a group's member says `success: false`.
        Error = "error",
        /// The program was ended by a signal that Laneway did not send.
        Signal = "signal",
        /// The container was ended because it wanted more memory than it may have.
        Oom = "oom",
        /// The step's `timeout` passed.
        Timeout = "timeout",
        /// The program could not be started.
        StartFailed = "start_failed",
        /// The container engine was not there to start it, or went away while it ran: how it ended nobody knows.
        EngineLost = "engine_lost",
        /// An expression of the step could not be evaluated.
        Expression = "expression",
        /// What the step wrote to `$LANEWAY_OUTPUT` could not be read.
        BadOutput = "bad_output",
        /// What the members of a group left behind cannot be brought together.
        Conflict = "conflict",
        /// Items of its `for_each` failed.
        Items = "items",
        /// The run that it started did not succeed, or could not be started.
        Child = "child",
        /// The node that ran it died.
        Lost = "lost",
        /// A person, or Ctrl-C, canceled the run.
        Canceled = "canceled",
        /// Another step failed and `on_failure` is `abort`, or another member of its strict group failed.
        Aborted = "aborted",
        /// The run's `timeout` passed.
        RunTimeout = "run_timeout",
        /// Another step failed and `on_failure` is `halt` or `abort`: never started.
        Halted = "halted",
        /// What it needs did not end as its `when` asks.
        Upstream = "upstream",
        /// Its `if` was false.
        Condition = "condition",
        /// A person skipped it with `laneway skip`; dependents see it as succeeded.
        SkippedByPerson = "skipped_by_person",
        /// It succeeded without being executed: the result was recorded before.
        Cached = "cached",
    }
}
