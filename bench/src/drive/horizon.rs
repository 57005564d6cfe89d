//! Claims while another session holds the server's xmin horizon, so that no dead row can be removed.
//! One caller claims and finishes batches of tasks through the store's verbs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use laneway_core::plan::Plan;
use laneway_store::model::{Ask, Finished, Outcome};
use serde_json::{Map, json};
use tokio_postgres::{Client, NoTls};

use super::many::{Node, address, plan};
use crate::graph::{Graph, Shape};
use crate::report::print;

/// Tasks that one claim may take, as many as a worker has slots.
const BATCH: usize = 8;

/// Prints how long each claim and each finish took.
pub(super) async fn horizon((tasks, runs): (usize, usize), is_held: bool, keeps_up: bool) -> Result<()> {
    let node = Node::begin(&["noop"], None, u32::try_from(BATCH)?).await?;
    let of_run = tasks / runs;
    let graph = Graph { shape: Shape::Flat(of_run), at_once: u32::try_from(of_run)? };
    let document = graph.laneway().replace("command: [/bin/true]", "function: noop");
    let plan: Arc<Plan> = plan(&document)?;
    // Rows that the submits leave dead are as many with a held horizon as without.
    let mut submitted = 0;
    while submitted < runs && !keeps_up {
        node.submit(&plan, &document).await?;
        submitted += 1;
    }
    let holder = if is_held { Some(hold().await?) } else { None };
    let (mut claim_ms, mut finish_ms, mut done) = (Vec::new(), Vec::new(), 0);
    while done < of_run * runs {
        if done == submitted * of_run {
            node.submit(&plan, &document).await?;
            submitted += 1;
        }
        let begun = Instant::now();
        let ask = Ask { session: node.session, run: None, limit: BATCH, ahead: 0 };
        let claims = node.store.claim(ask).await?;
        claim_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        if claims.is_empty() {
            bail!("only {done} of {tasks} tasks could be claimed");
        }
        done += claims.len();
        let finished = claims.iter().map(|claim| {
            Finished::new(claim.at, Outcome::Succeeded { output: Map::new() }, Duration::from_micros(1))
        });
        let begun = Instant::now();
        node.store.finish(finished.collect(), None).await?;
        finish_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    if let Some(holder) = holder {
        holder.batch_execute("COMMIT").await.context("the holder of the horizon was ended")?;
    }
    node.end().await?;
    print(&json!({ "ms": claim_ms, "finish_ms": finish_ms }).to_string());
    Ok(())
}

/// Opens a transaction that holds the horizon, and does nothing more in it.
async fn hold() -> Result<Client> {
    let (client, line) = tokio_postgres::connect(&address()?, NoTls).await.context("no connection")?;
    tokio::spawn(line);
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()").await?;
    Ok(client)
}
