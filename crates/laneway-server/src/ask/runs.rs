//! Lists of runs. Whoever looks for few among many must not have all of a store read for it: what a question with a filter looks at is
//! bounded, and the cursor says where to go on.

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model::{RunFilter, RunSummary};
use laneway_store::{Result, Store};

use crate::wire;

/// Runs that are looked at for one page where some are left out. There is no index for what people filter by: every run would pay for
/// it at each change of state.
const LOOKED_AT: usize = 20_000;

/// Runs are listed in the order of their commits, and bear the time at which their submission began: one that is older than this before a
/// moment has none behind it that is younger.
const SLACK_MS: i64 = 3_600_000;

/// A page of runs, newest first. With a filter it may have fewer than were asked for, also none, and yet a cursor.
pub async fn runs(store: &dyn Store, filter: RunFilter) -> Result<wire::RunList> {
    runs_within(store, filter, LOOKED_AT).await
}

/// The same with at most so many looked at.
pub async fn runs_within(store: &dyn Store, mut filter: RunFilter, most: usize) -> Result<wire::RunList> {
    let (limit, since) = (filter.limit, filter.since);
    let leaves_out = !filter.statuses.is_empty()
        || filter.since.is_some()
        || filter.until.is_some()
        || filter.begins.is_some();
    let end = match leaves_out {
        true => store.run_behind(filter.workflow.clone(), filter.before, most).await?,
        false => None,
    };
    filter.down_to = end.map(|(run, _)| run);
    // One more tells whether there are more.
    let mut runs = listed(store, RunFilter { limit: limit.saturating_add(1), ..filter }).await?;
    let has_more = runs.len() > limit;
    runs.truncate(limit);
    let next = if has_more { runs.last().map(|run| run.run) } else { further(end, since) };
    let next_cursor = next.map(|run| run.to_string());
    Ok(wire::RunList { runs: runs.iter().map(wire::RunSummary::from).collect(), next_cursor })
}

/// Runs that are read at once where some are left out, however few are asked for.
const MIN_PAGE: usize = 500;

/// The runs of a filter. One that no live node can take is stored as running and listed as queued,
/// so each of the two is picked out of those that are stored as running where it is asked for
/// alone.
async fn listed(store: &dyn Store, filter: RunFilter) -> Result<Vec<RunSummary>> {
    let asks = |status| filter.statuses.contains(&status);
    if asks(RunStatus::Queued) == asks(RunStatus::Running) {
        return store.runs(filter).await;
    }
    let (is_queued_asked, limit) = (asks(RunStatus::Queued), filter.limit);
    let mut both = RunFilter { limit: limit.max(MIN_PAGE), ..filter };
    if is_queued_asked {
        both.statuses.push(RunStatus::Running);
    }
    let mut found: Vec<RunSummary> = Vec::new();
    loop {
        let page = store.runs(both.clone()).await?;
        let is_last = page.len() < both.limit;
        both.before = page.last().map(|run| run.run);
        found.extend(page.into_iter().filter(|run| match run.status {
            Some(RunStatus::Queued) => is_queued_asked,
            Some(RunStatus::Running) => run.without_node.is_some() == is_queued_asked,
            Some(RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled) | None => true,
        }));
        if is_last || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
    }
}

/// Where to go on behind the last that was looked at, if something may be there.
fn further(end: Option<(RunId, Millis)>, since: Option<Millis>) -> Option<RunId> {
    let (run, at) = end?;
    let is_too_old = since.is_some_and(|since| at.0 < since.0.saturating_sub(SLACK_MS));
    (!is_too_old).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_on_to_what_is_older_than_wanted() {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        let at = |ms: i64| Some((run, Millis(ms)));
        assert_eq!(further(None, None), None, "all of it was looked at");
        assert_eq!(further(at(5), None), Some(run));
        assert_eq!(further(at(10), Some(Millis(10 + SLACK_MS))), Some(run));
        assert_eq!(further(at(9), Some(Millis(10 + SLACK_MS))), None);
    }
}
