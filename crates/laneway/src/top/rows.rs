//! The tasks of a run as rows of a list: a step each, with its items folded until somebody opens them. Pure.

use std::collections::BTreeSet;

use laneway_server::wire;

use super::model::is_match;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Where it stands among the tasks of the run.
    pub(super) task: usize,
}

/// Without a filter each step, and behind those that are open their items; with one, all tasks that match.
pub(super) fn rows(run: &wire::Run, expanded: &BTreeSet<String>, filter: &str) -> Vec<Row> {
    let tasks = run.tasks.iter().enumerate();
    if !filter.is_empty() {
        let is_shown = |task: &wire::Task| is_match(&words(task), filter);
        return tasks.filter(|(_, task)| is_shown(task)).map(|(task, _)| Row { task }).collect();
    }
    let items: Vec<(usize, &wire::Task)> = tasks.clone().filter(|(_, task)| task.index.is_some()).collect();
    let mut rows = Vec::new();
    for (at, step) in tasks.filter(|(_, task)| task.index.is_none()) {
        rows.push(Row { task: at });
        if step.items.is_some() && expanded.contains(&step.step) {
            let of_it = items.iter().filter(|(_, item)| item.step == step.step);
            rows.extend(of_it.map(|(task, _)| Row { task: *task }));
        }
    }
    rows
}

fn words(task: &wire::Task) -> String {
    format!("{} {} {}", task.name(), task.status, task.node.as_deref().unwrap_or_default())
}
