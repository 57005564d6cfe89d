//! Callers that submit runs at the same time whose tasks want the same few keys. Each waits for its
//! answer before it submits the next run.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::many::{Node, address, plan};
use crate::report::print;

/// Tasks of one run.
pub(crate) const TASKS: usize = 5;

/// A fan of three steps, each behind a key that other runs want as well, and an end.
fn document(key: usize) -> String {
    format!(
        "name: contend\nlimits: {{x{key}: 2}}\nsteps:\n  a: {{command: [/bin/true]}}\n  \
         m: {{needs: a, lock: a{key}, command: [/bin/true]}}\n  \
         l: {{needs: a, limits: [x{key}], command: [/bin/true]}}\n  \
         n: {{needs: a, limits: [x{key}], command: [/bin/true]}}\n  \
         z: {{needs: [m, l, n], command: [/bin/true]}}\n"
    )
}

/// Prints how long each submit took, when all runs are submitted.
pub(super) async fn contend(callers: usize, runs: usize, keys: usize) -> Result<()> {
    submit(callers, keys, move |run| Box::pin(async move { Ok(run < runs) })).await
}

/// Prints how long each submit took in `duration`. Callers pause while `max_backlog` runs are unfinished.
pub(super) async fn endure(
    callers: usize,
    keys: usize,
    duration: Duration,
    max_backlog: usize,
) -> Result<()> {
    let database = Arc::new(connect().await?);
    let (max_backlog, begun) = (i64::try_from(max_backlog)?, Instant::now());
    submit(callers, keys, move |run| {
        let database = Arc::clone(&database);
        Box::pin(async move {
            // A count for each submit would be a load of its own.
            while run % COUNT_EVERY == 0 && begun.elapsed() < duration {
                if database.query_one(BACKLOG, &[]).await?.try_get::<_, i64>(0)? < max_backlog {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(begun.elapsed() < duration)
        })
    })
    .await
}

const COUNT_EVERY: usize = 16;
const BACKLOG: &str = "SELECT count(*) FROM runs WHERE status IN ('queued', 'running')";

async fn connect() -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(&address()?, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Whether the run of this number is to be submitted.
type Admission = Pin<Box<dyn Future<Output = Result<bool>> + Send>>;

async fn submit(
    callers: usize,
    keys: usize,
    admit: impl Fn(usize) -> Admission + Send + Sync + 'static,
) -> Result<()> {
    let node = Arc::new(Node::begin(&[], None, 1).await?);
    let documents: Vec<String> = (0..keys).map(document).collect();
    let plans: Vec<_> = documents.iter().map(|text| plan(text)).collect::<Result<_>>()?;
    let shared = Arc::new((documents, plans, admit));
    let (next, begun) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut submitting = JoinSet::new();
    for _ in 0..callers {
        let (node, shared, next) = (Arc::clone(&node), Arc::clone(&shared), Arc::clone(&next));
        submitting.spawn(async move {
            let (documents, plans, admit) = &*shared;
            let mut millis = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if !admit(run).await? {
                    return anyhow::Ok(millis);
                }
                let begun = Instant::now();
                node.submit(&plans[run % keys], &documents[run % keys]).await?;
                millis.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        });
    }
    let mut millis = Vec::new();
    while let Some(one) = submitting.join_next().await {
        millis.extend(one??);
    }
    let seconds = begun.elapsed().as_secs_f64();
    if let Some(node) = Arc::into_inner(node) {
        node.end().await?;
    }
    print(&json!({ "seconds": seconds, "ms": millis }).to_string());
    Ok(())
}
