//! The chain behind a cause: who holds what a task waits for, and what that one waits for itself. Follows and stops;
//! where causes come from is the caller's.

use std::collections::HashSet;

use serde::Serialize;

use super::Cause;
use crate::gate::Gate;
use crate::id::RunId;

/// More than a person follows. A chain over steps of one run could be as long as the run.
const LONGEST: usize = 20;

/// One task of a chain, and why it does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    pub run: RunId,
    pub step: String,
    pub cause: Cause,
}

/// From a task to what it waits for, and on along the first holder that waits too, until one that runs or waits for no
/// task. `look` gives the cause of a task, `None` for one that does not wait. No task comes twice.
pub fn chain(run: RunId, step: &str, mut look: impl FnMut(RunId, &str) -> Option<Cause>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut seen = HashSet::from([(run, step.to_owned())]);
    let mut next = look(run, step).map(|cause| Link { run, step: step.to_owned(), cause });
    while let Some(link) = next {
        next = before(&link).into_iter().find_map(|(run, step)| {
            if links.len() + 1 == LONGEST || !seen.insert((run, step.clone())) {
                return None;
            }
            let cause = look(run, &step)?;
            Some(Link { run, step, cause })
        });
        links.push(link);
    }
    links
}

/// The tasks named by a cause.
fn before(link: &Link) -> Vec<(RunId, String)> {
    if !link.cause.held_by.is_empty() {
        return link.cause.held_by.iter().map(|holder| (holder.run, holder.step.clone())).collect();
    }
    // Within the run the names of the steps say it all.
    match Gate::parse(link.cause.gate) {
        Some(Gate::Needs | Gate::Level) => {
            link.cause.holders.iter().map(|step| (link.run, step.clone())).collect()
        }
        Some(
            Gate::MaxRuns
            | Gate::RunAt
            | Gate::Paused
            | Gate::Node
            | Gate::Group
            | Gate::MaxParallel
            | Gate::Order
            | Gate::Lock
            | Gate::Limit
            | Gate::Rate,
        )
        | None => Vec::new(),
    }
}
