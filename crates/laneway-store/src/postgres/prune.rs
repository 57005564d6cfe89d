//! `prune` and `sweep`: a run that is over goes, with all that belongs to it, in one transaction
//! for which nobody waits; and so does what nothing refers to. Whoever looks for references does so
//! in a statement behind the lock.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;
use crate::prune::{
    Choice, HOLD_BYTES, HOLD_KEYS, Keep, Prunable, RECORDS_AT_ONCE, Record, SWEEP_ROWS, Search, Swept, beyond,
};

/// Runs that are measured with one statement.
const MEASURED: i64 = 200;

/// Which runs may go, oldest first.
pub(in crate::postgres) async fn choose(
    link: &Link,
    now: Option<Millis>,
    keep: Keep,
    limit: usize,
) -> Done<Vec<Prunable>> {
    let mut chosen = if keep.for_.is_none() && keep.runs.is_none() {
        Vec::new()
    } else {
        by_age_and_number(link, now, keep, limit).await?
    };
    chosen.sort_unstable_by_key(|(no, _)| *no);
    chosen.truncate(limit);
    let numbers: Vec<i64> = chosen.iter().map(|(no, _)| *no).collect();
    for found in link.rows(sql!("prune_size", INT8_ARRAY), &[&numbers]).await? {
        let (no, bytes): (i64, u64) = (found.try_get(0)?, row::number(&found, 1)?);
        if let Some((_, choice)) = chosen.iter_mut().find(|(chosen, _)| *chosen == no) {
            choice.bytes = bytes;
        }
    }
    // As long as there are more that go in any case, nobody knows what will be left.
    if let Some(keep) = keep.bytes.filter(|_| chosen.len() < limit) {
        let oldest = by_bytes(link, keep, &chosen, limit).await?;
        chosen.extend(oldest);
        chosen.sort_unstable_by_key(|(no, _)| *no);
        chosen.truncate(limit);
    }
    Ok(chosen.into_iter().map(|(_, choice)| choice).collect())
}

async fn by_age_and_number(link: &Link, now: Option<Millis>, keep: Keep, limit: usize) -> Done<Vec<Choice>> {
    let now = now.map(|now| now.0);
    let Some(ends) = link.row(sql!("prune_ends", INT8), &[&now]).await? else { return Ok(Vec::new()) };
    let cutoff = keep.for_.map(|span| Ok::<_, tokio_postgres::Error>(Millis(ends.try_get(2)?).before(span)));
    let cutoff = cutoff.transpose()?;
    let aged = match cutoff {
        Some(cutoff) => {
            let mut search = Search::new(ends.try_get(0)?, ends.try_get(1)?);
            while let Some(at) = search.next() {
                let found = link.row(sql!("prune_look", INT8), &[&at]).await?;
                let found = found.map(|found| Ok((found.try_get(0)?, Millis(found.try_get(1)?))));
                search.looked(at, found.transpose().map_err(|error: tokio_postgres::Error| error)?, cutoff);
            }
            search.found()
        }
        None => i64::MIN,
    };
    let (mut chosen, most) = (Vec::new(), i64::try_from(limit).unwrap_or(i64::MAX));
    for found in link.rows(sql!("prune_workflows"), &[]).await? {
        let name = row::text(&found, 0)?;
        let Some(last) = behind(link, &name, 0).await? else { continue };
        let counted = match keep.runs {
            Some(kept) => behind(link, &name, kept).await?.unwrap_or(i64::MIN),
            None => i64::MIN,
        };
        let below = last.min(aged.max(counted.saturating_add(1)));
        let cutoff = cutoff.map_or(i64::MIN, |cutoff| cutoff.0);
        let asked = sql!("prune_choose", TEXT, INT8, INT8, INT8, INT8);
        for found in link.rows(asked, &[&name, &below, &counted, &cutoff, &most]).await? {
            chosen.push(choice(&found)?);
        }
    }
    Ok(chosen)
}

/// The number of the run that has so many newer ones.
async fn behind(link: &Link, workflow: &str, newer: u32) -> Done<Option<i64>> {
    let found = link.row(sql!("prune_newest", TEXT, INT8), &[&workflow, &i64::from(newer)]).await?;
    Ok(found.map(|found| found.try_get(0)).transpose()?)
}

/// Which of the oldest go as well, so that what stays takes up no more than `keep`. All of them
/// have been measured.
async fn by_bytes(link: &Link, keep: u64, going: &[Choice], limit: usize) -> Done<Vec<Choice>> {
    let total = link.row(sql!("prune_total"), &[]).await?;
    let total: u64 = total.map(|found| row::number(&found, 0)).transpose()?.unwrap_or_default();
    if total <= keep {
        return Ok(Vec::new());
    }
    let most = i64::try_from(limit.saturating_add(going.len())).unwrap_or(i64::MAX);
    let rows = link.rows(sql!("prune_oldest", INT8), &[&most]).await?;
    let mut oldest = Vec::with_capacity(rows.len());
    for found in &rows {
        let (no, mut choice) = choice(found)?;
        choice.bytes = row::number(found, 5)?;
        oldest.push((no, choice));
    }
    Ok(beyond(total, keep, going, oldest))
}

fn choice(found: &Row) -> Done<Choice> {
    let choice = Prunable {
        run: row::word(found, 1, "run id", RunId::parse)?,
        workflow: row::text(found, 2)?,
        status: row::word(found, 3, "status of a run", RunStatus::parse)?,
        finished_at: Millis(found.try_get(4)?),
        bytes: 0,
    };
    Ok((found.try_get(0)?, choice))
}

/// What some runs that are over take up, as far as that is not known. Gives how many were measured.
pub(in crate::postgres) async fn measure(link: &Link) -> Done<usize> {
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("prune_measure", INT8), vec![&MEASURED]);
    Ok(flight.commit().await?.first().map_or(0, Vec::len))
}

pub(in crate::postgres) async fn prune(link: &Link, terms: Terms, run: RunId) -> Done<bool> {
    let (id, now) = (run.to_string(), terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("prune_lock", TEXT), vec![&id]);
    flight.ask(sql!("prune_check", TEXT), vec![&id]);
    let answers = flight.land().await?;
    let (Some([_]), Some([found])) = (answers.first().map(Vec::as_slice), answers.get(1).map(Vec::as_slice))
    else {
        link.roll_back().await;
        return Ok(false);
    };
    let (no, key): (i64, Option<String>) = (found.try_get(0)?, found.try_get(1)?);
    let mut flight = link.flight();
    if let Some(key) = &key {
        flight.ask(sql!("used_key_add", TEXT, TEXT, INT8), vec![key, &id, &now]);
    }
    flight.ask(sql!("prune_artifacts", INT8), vec![&no]);
    flight.ask(sql!("prune_layers", INT8), vec![&no]);
    flight.ask(sql!("prune_layer_files", INT8), vec![&no]);
    flight.ask(sql!("prune_log_chunks", INT8), vec![&no]);
    flight.ask(sql!("prune_cache_misses", INT8), vec![&no]);
    flight.ask(sql!("prune_attempts", INT8), vec![&no]);
    flight.ask(sql!("prune_effects", INT8), vec![&no]);
    flight.ask(sql!("prune_laid_by", INT8), vec![&no]);
    flight.ask(sql!("prune_events", INT8), vec![&no]);
    flight.ask(sql!("prune_needs_sets", INT8), vec![&no]);
    flight.ask(sql!("prune_tasks", INT8), vec![&no]);
    flight.ask(sql!("prune_batches", INT8), vec![&no]);
    flight.ask(sql!("prune_run_bytes", INT8), vec![&no]);
    flight.ask(sql!("prune_run", INT8), vec![&no]);
    flight.commit().await?;
    Ok(true)
}

/// Some blobs behind a hash. Gives the last one that was looked at; `None` when there are no more.
pub(in crate::postgres) async fn sweep(
    link: &Link,
    terms: Terms,
    after: &str,
    swept: &mut Swept,
) -> Done<Option<String>> {
    let before = moment(link, terms).await?.before(HOLD_BYTES).0;
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("sweep_lock", TEXT, INT8, INT8), vec![&after, &before, &SWEEP_ROWS]);
    let found = flight.land().await?.pop().unwrap_or_default();
    let hashes = found.iter().map(|found| row::text(found, 0)).collect::<Done<Vec<String>>>()?;
    let mut flight = link.flight();
    flight.ask(sql!("sweep_blobs", TEXT_ARRAY), vec![&hashes]);
    let gone = flight.commit().await?.pop().unwrap_or_default();
    for found in &gone {
        swept.add(row::number(found, 0)?);
    }
    Ok(hashes.into_iter().next_back())
}

/// Keys of runs that went long ago.
pub(in crate::postgres) async fn forget_keys(link: &Link, terms: Terms) -> Done<()> {
    let (before, most) = (moment(link, terms).await?.before(HOLD_KEYS).0, 1_000_i64);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("used_keys_forget", INT8, INT8), vec![&before, &most]);
    flight.commit().await?;
    Ok(())
}

/// Some of the records that are kept no longer. Gives how many went.
pub(in crate::postgres) async fn forget_records(
    link: &Link,
    terms: Terms,
    record: Record,
    kept: Duration,
) -> Done<usize> {
    let before = moment(link, terms).await?.before(kept).0;
    let statement = match record {
        Record::Audit => sql!("prune_audit", INT8, INT8),
        Record::NodeEvent => sql!("prune_node_events", INT8, INT8),
    };
    let mut flight = link.begin(Begin::Write);
    flight.ask(statement, vec![&before, &RECORDS_AT_ONCE]);
    Ok(flight.commit().await?.first().map_or(0, Vec::len))
}

async fn moment(link: &Link, terms: Terms) -> Done<Millis> {
    let now = terms.now.map(|now| now.0);
    let found = link.row(sql!("moment", INT8), &[&now]).await?;
    let found = found.ok_or_else(|| row::unreadable("moment", "none"))?;
    Ok(Millis(found.try_get(0)?))
}
