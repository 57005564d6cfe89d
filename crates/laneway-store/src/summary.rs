//! What a list says of the tasks of a run, for both databases: how many are in which state, and
//! when the first started.

use laneway_core::run_state::RunState;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;

/// The rows of `task_counts`.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Only states that occur, in their order.
    pub(crate) states: Vec<(TaskStatus, u64)>,
    /// The first of the last starts.
    pub(crate) first_task_at: Option<Millis>,
    /// Tasks that were counted, those that count with their items too.
    pub(crate) rows: i64,
    /// A task had several attempts: which start was the first is known by the events alone.
    pub(crate) is_retried: bool,
}

impl Counted {
    /// Adds what a row says of the tasks in one state. A word that cannot be read is left out.
    pub(crate) fn add(&mut self, status: &str, count: u64, (first, attempt): (Option<Millis>, i64)) {
        self.first_task_at = self.first_task_at.into_iter().chain(first).min();
        self.is_retried |= attempt > 1;
        if let Some(status) = TaskStatus::parse(status).filter(|_| count > 0) {
            self.states.push((status, count));
            self.states.sort_unstable();
        }
    }
}

/// A task had several attempts.
pub(crate) struct Retried;

/// Returns when the first task of a run started, as its rows tell it.
pub(crate) fn first_start(state: &RunState) -> Result<Option<Millis>, Retried> {
    let executed = || state.tasks.iter().filter(|task| task.wait.is_none() && task.items.is_none());
    // The row of a task that is to run again has no start.
    if executed().any(|task| task.attempt > 1 || (task.attempt == 1 && task.started_at.is_none())) {
        return Err(Retried);
    }
    Ok(executed().filter_map(|task| task.started_at).min())
}
