//! No-op tasks on a store: as functions through the worker, through the store's verbs alone, and as a bare loop of
//! statements that writes the same rows in the same groups. All begin with the same submitted run, which is not
//! timed.

use std::convert::Infallible;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::state::RunStatus;
use laneway_engine::function::{Call, Functions};
use laneway_store::model::{Ask, Claim, Finished, Outcome};
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use super::{FILE, Home};
use crate::graph::{Graph, Shape};

/// As functions that do nothing, `group` at once. In seconds.
pub(super) async fn function(tasks: usize, group: usize, laneway: &Path) -> Result<f64> {
    let home = Home::new().await?;
    let run = home
        .submit(&yaml(tasks).replace("command: [/bin/true]", "function: noop"), u32::try_from(tasks)?)
        .await?;
    let warden = home.warden(laneway)?;
    let functions = Functions::new().add("noop", |_: Call<Value>| async { Ok::<_, Infallible>(()) });
    let begun = Instant::now();
    home.drive(run, group, warden, functions).await?;
    let took = begun.elapsed().as_secs_f64();
    home.store.retire(home.session, Leaving::because(LeaveReason::Done)).await?;
    Ok(took)
}

/// Claims, starts and finishes all tasks in groups; a group is one commit. In seconds.
pub(super) async fn store(tasks: usize, group: usize) -> Result<f64> {
    let home = Home::new().await?;
    let run = home.submit(&yaml(tasks), u32::try_from(tasks)?).await?;
    let ask = || Ask { session: home.session, run: Some(run), limit: group, ahead: 0 };
    let begun = Instant::now();
    let mut claims = home.store.claim(ask()).await?;
    while !claims.is_empty() {
        // As a worker does: the end of a short task tells of its start.
        let finished = claims.iter().map(succeeded).collect();
        claims = home.store.finish(finished, Some(ask())).await?.claims;
    }
    let took = begun.elapsed().as_secs_f64();
    let status = home.store.status(run).await?;
    if status != RunStatus::Succeeded {
        bail!("the run ended as {status:?}");
    }
    home.store.retire(home.session, Leaving::because(LeaveReason::Done)).await?;
    Ok(took)
}

/// The same rows by statements of our own, prepared once.
pub(super) fn bare(tasks: usize, group: usize) -> Result<f64> {
    super::block_on(async {
        let home = Home::new().await?;
        home.submit(&yaml(tasks), u32::try_from(tasks)?).await?;
        Ok(())
    })?;
    let connection = Connection::open(FILE)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 5000; PRAGMA cache_size = -65536;",
    )?;
    let begun = Instant::now();
    let mut event = connection.query_row("SELECT last_event FROM runs", [], |row| row.get::<_, i64>(0))?;
    let mut done = 0;
    while done < tasks {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let claimed: Vec<i64> = connection
            .prepare_cached(CLAIM)?
            .query_map([group], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        if claimed.is_empty() {
            bail!("only {done} of {tasks} tasks could be claimed");
        }
        for position in &claimed {
            connection.prepare_cached(START)?.execute([position])?;
            event += 1;
            connection.prepare_cached(EVENT)?.execute(params![event, "task_started", body(*position)])?;
            connection.prepare_cached(FINISH)?.execute([position])?;
            connection.prepare_cached(ATTEMPT)?.execute([position])?;
            event += 1;
            connection.prepare_cached(EVENT)?.execute(params![event, "task_succeeded", body(*position)])?;
        }
        done += claimed.len();
        connection.prepare_cached(RUN)?.execute(params![event, tasks - done])?;
        connection.execute_batch("COMMIT")?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

const CLAIM: &str = "UPDATE tasks SET status = 'running', attempt = attempt + 1, session = 'bench'
    WHERE (run_no, position) IN (SELECT run_no, position FROM tasks WHERE status = 'available' AND class = -1
    ORDER BY rank, run_no, position LIMIT ?1) RETURNING position";
const START: &str = "UPDATE tasks SET started_at = 1, node = 'bench:1'
    WHERE run_no = 1 AND position = ?1 AND attempt = 1 AND session = 'bench' AND status = 'running'";
const FINISH: &str = "UPDATE tasks SET status = 'succeeded', session = NULL, rank = NULL, output = '{}',
    finished_at = 2, took_ms = 1
    WHERE run_no = 1 AND position = ?1 AND attempt = 1 AND session = 'bench' AND status = 'running'";
const ATTEMPT: &str = "INSERT INTO attempts (run_no, position, attempt, session, node, outcome, exit_code,
    started_at, finished_at, took_ms)
    VALUES (1, ?1, 1, '0192e4a0-0000-7000-8000-000000000000', 'bench:1', 'succeeded', 0, 1, 2, 1)";
const EVENT: &str = "INSERT INTO events (run_no, seq, at, name, version, body) VALUES (1, ?1, 1, ?2, 1, ?3)";
const RUN: &str = "UPDATE runs SET last_event = ?1, unsettled = ?2 WHERE no = 1";

/// About as long as a real event's.
fn body(position: i64) -> String {
    format!(r#"{{"step":"t{position}","attempt":1,"node":"bench:1","took_ms":1}}"#)
}

fn succeeded(claim: &Claim) -> Finished {
    let took = Duration::from_micros(1);
    Finished::new(claim.at, Outcome::Succeeded { output: Map::new() }, took)
}

/// All of them may run at once, so that neither side opens gates.
fn yaml(tasks: usize) -> String {
    Graph { shape: Shape::Flat(tasks), at_once: u32::try_from(tasks).unwrap_or(u32::MAX) }.laneway()
}
