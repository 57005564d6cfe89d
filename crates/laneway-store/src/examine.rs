//! Checks that both databases share. A run is checked against itself once all of it is readable:
//! its history must match its rows, and its counters must be right. That part is pure. Rows that
//! belong to no run are checked through the queries that other readers use. See
//! `docs/design/faults.md`.

use std::collections::BTreeMap;

use laneway_core::event::Event;
use laneway_core::gate::Counts;
use laneway_core::id::RunId;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::run_state::{self, RunState, TaskState};
use laneway_core::state::TaskStatus;

use crate::contract::Store;
use crate::error::{Error, Result, Teller};
use crate::keeper::Settled;
use crate::model::{About, Finding, Severity};

/// Number of events to read at a time.
const PAGE: usize = 1000;

/// Returns what is unreadable and belongs to no run. Skips a query that fails as a whole: it fails
/// for every other caller too, with its reason.
pub(crate) async fn of_no_run(store: &dyn Store) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Ok(due) = store.due(usize::MAX).await {
        let advice =
            "other triggers are not affected; mend the row, or delete it if nothing is to come of it";
        found.extend(due.unreadable.into_iter().map(|what| unreadable("triggers", what, advice)));
    }
    for node in store.nodes(0).await.unwrap_or_default() {
        let wishes = store.orders(node.session).await.map_or_else(|_| Vec::new(), |orders| orders.unreadable);
        let advice = "other wishes are not affected; say again what you want of that pool";
        found.extend(wishes.into_iter().map(|what| unreadable(&format!("node {}", node.node), what, advice)));
    }
    for of in [Teller::Nodes, Teller::Pools] {
        gaps(store, of, &mut found).await;
    }
    found
}

/// Adds a finding for each unreadable event.
async fn gaps(store: &dyn Store, of: Teller, found: &mut Vec<Finding>) {
    let mut after = 0;
    loop {
        match numbers(store, of, after).await {
            // In a damaged file events may stand out of order: a page that does not lead on would
            // be read for ever.
            Ok(page) => match page.last() {
                Some(last) if *last > after => after = *last,
                Some(_) | None => return,
            },
            Err(error @ Error::UnreadableEvent { seq, .. }) => {
                let advice = "nothing depends on it; whoever reads is told that it cannot be read";
                found.push(unreadable(&format!("history of {of}"), error.to_string(), advice));
                if seq <= after {
                    return;
                }
                after = seq;
            }
            Err(_) => return,
        }
    }
}

async fn numbers(store: &dyn Store, of: Teller, after: u64) -> Result<Vec<u64>> {
    Ok(match of {
        Teller::Run(run) => {
            store.events_since(run, after, PAGE).await?.iter().map(|event| event.seq).collect()
        }
        Teller::Nodes => store.node_events(None, after, PAGE).await?.iter().map(|event| event.seq).collect(),
        Teller::Pools => store.pool_events(None, after, PAGE).await?.iter().map(|event| event.seq).collect(),
    })
}

fn unreadable(subject: &str, what: String, advice: &str) -> Finding {
    let (subject, advice) = (subject.to_owned(), advice.to_owned());
    Finding { severity: Severity::Problem, about: About::Row, subject, what, advice }
}

pub(crate) fn unfit(run: RunId, what: &str, why: String) -> Error {
    Error::Unreadable { what: format!("{what} of run {}", run.short()), why }
}

/// Returns where the history and the stored state differ, if they do.
pub(crate) fn parts_from(state: &RunState, events: &[Event]) -> Option<String> {
    let gap = events.iter().zip(1..).find(|(event, number)| event.seq != *number);
    if let Some((event, number)) = gap {
        return Some(format!("event {} stands where event {number} should", event.seq));
    }
    if events.len() as u64 != state.last_event {
        return Some(format!("it has {} events, and {} are there", state.last_event, events.len()));
    }
    let steps = state.tasks.iter().filter(|task| task.item.is_none());
    match run_state::replay(steps.map(|task| task.step.as_str()), events) {
        Err(broken) => Some(broken.to_string()),
        Ok(told) => {
            let text = |state: &RunState| serde_json::to_string(state).unwrap_or_default();
            (text(&told) != text(state)).then(|| {
                format!(
                    "it tells another state than the one that is stored; `laneway replay {}` shows where",
                    state.run.short()
                )
            })
        }
    }
}

/// Returns which word of an attempt's record is unknown, if any.
pub(crate) fn unknown_word(outcome: &str, reason: Option<&str>) -> Option<String> {
    if !["succeeded", "failed", "canceled", "lost", "returned"].contains(&outcome) {
        return Some(format!("`{outcome}` is not known"));
    }
    match reason {
        Some(word) if Reason::parse(word).is_none() => Some(format!("`{word}` is not known")),
        Some(_) | None => None,
    }
}

/// Returns the counters that differ from a new count.
pub(crate) fn miscounts(
    plan: &Plan,
    state: &RunState,
    unsettled: i64,
    sets: &BTreeMap<usize, Counts>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    // Items are counted by their step.
    let is_open = |task: &&TaskState| !task.status.is_final() && task.item.is_none();
    let open = state.tasks.iter().filter(is_open).count();
    if unsettled != open as i64 {
        wrong.push(format!("it counts {unsettled} unsettled tasks, and {open} are there"));
    }
    for (set, needs) in plan.needs_sets.iter().enumerate() {
        if sets.get(&set) != Some(&count(state, &needs.needs)) {
            wrong.push(format!("what it counts for needs set {set} is not what its tasks say"));
        }
    }
    for (step, items) in (0..).zip(&state.tasks).filter_map(|(step, task)| Some((step, task.items?))) {
        let Some(set) =
            plan.items_set(step).filter(|_| state.tasks[step as usize].status == TaskStatus::Parked)
        else {
            continue;
        };
        let name = &state.tasks[step as usize].step;
        let of_step = |task: &&TaskState| task.item.as_ref().is_some_and(|item| item.of == *name);
        let counted = tally(state.tasks.iter().filter(of_step));
        let found = sets.get(&(set as usize)).copied().unwrap_or_default();
        // Items that are not tasks yet count as long as they will become tasks.
        let (least, most) = (counted.unsettled, counted.unsettled + (items.total - items.added));
        let is_right = (least..=most).contains(&found.unsettled);
        if !is_right || (Counts { unsettled: counted.unsettled, ..found }) != counted {
            wrong.push(format!("what it counts for the items of {name} is not what its tasks say"));
        }
    }
    wrong
}

fn count(state: &RunState, needs: &[Position]) -> Counts {
    // Cannot panic: a plan refers to its own steps only, and reading the state checked that each
    // has a task.
    tally(needs.iter().map(|need| &state.tasks[*need as usize]))
}

fn tally<'t>(tasks: impl Iterator<Item = &'t TaskState>) -> Counts {
    let mut counts = Counts::default();
    for task in tasks {
        match Settled::of(task.status, task.reason) {
            Some(Settled::Succeeded) => counts.succeeded += 1,
            Some(Settled::Failed) => counts.failed += 1,
            Some(Settled::PassedOver) => counts.passed_over += 1,
            None => counts.unsettled += 1,
        }
    }
    counts
}
