//! Callers that submit runs at the same time whose tasks want the same few keys. Each waits for its
//! answer before it submits the next run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use tokio::task::JoinSet;

use super::many::{Node, plan};
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

/// Prints how long each submit took.
pub(super) async fn contend(callers: usize, runs: usize, keys: usize) -> Result<()> {
    let node = Arc::new(Node::begin(&[], None, 1).await?);
    let documents: Vec<String> = (0..keys).map(document).collect();
    let plans: Vec<_> = documents.iter().map(|text| plan(text)).collect::<Result<_>>()?;
    let known = Arc::new((documents, plans));
    let (next, begun) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut submitting = JoinSet::new();
    for _ in 0..callers {
        let (node, known, next) = (Arc::clone(&node), Arc::clone(&known), Arc::clone(&next));
        submitting.spawn(async move {
            let mut millis = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= runs {
                    return anyhow::Ok(millis);
                }
                let begun = Instant::now();
                node.submit(&known.1[run % keys], &known.0[run % keys]).await?;
                millis.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        });
    }
    let mut millis = Vec::with_capacity(runs);
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
