//! The summary of a run's tasks in lists: how many are in each state, and when the first started.
//! Shared by both databases, which contribute the rows. Nothing here reads a store.

use laneway_core::run_state::RunState;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;

/// The sums of the rows of `task_counts`.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Only states that occur, in their order.
    pub(crate) states: Vec<(TaskStatus, u64)>,
    /// The earliest among the last starts of the tasks.
    pub(crate) first_task_at: Option<Millis>,
    /// Number of task rows read, including steps that `states` counts by their items only.
    pub(crate) rows: i64,
    /// A task had several attempts: only the events show which start was the first.
    pub(crate) is_retried: bool,
}

impl Counted {
    /// Adds the row of the tasks in one state. Leaves out a state that is unreadable.
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

/// Returns when the first task of a run started, according to its rows.
///
/// # Errors
/// `Retried` if only the events show it.
pub(crate) fn first_start(state: &RunState) -> Result<Option<Millis>, Retried> {
    let executed = || state.tasks.iter().filter(|task| task.wait.is_none() && task.items.is_none());
    // The row of a task that will run again has no start.
    if executed().any(|task| task.attempt > 1 || (task.attempt == 1 && task.started_at.is_none())) {
        return Err(Retried);
    }
    Ok(executed().filter_map(|task| task.started_at).min())
}
