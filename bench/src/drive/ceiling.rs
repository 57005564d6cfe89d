//! How many ends of one run the database records in a second, by the store's verbs alone: all tasks are claimed before, and
//! finishers, each with a connection of its own, say their ends in batches.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use laneway_core::class::Offer;
use laneway_core::state::RunStatus;
use laneway_store::model::{Ask, Finished, NewSession, Outcome, Submission};
use laneway_store::{ClaimRef, Open, Options, Store};
use serde_json::{Map, json};
use tokio::task::JoinSet;

use super::many::{address, plan};
use crate::graph::{Graph, Shape};
use crate::report::print;

pub(super) async fn ceiling(tasks: usize, finishers: usize, batch: usize) -> Result<()> {
    let address = address()?;
    let mut hands: Vec<(Arc<dyn Store>, Vec<ClaimRef>)> = Vec::new();
    let mut sessions = Vec::new();
    for finisher in 0..finishers {
        let data_dir = PathBuf::from(format!("finisher-{finisher}"));
        let options = Options { data_dir, ..Options::default() };
        let store = laneway_store::open_with(&address, Open::Create, &options)?;
        let name = format!("bench:{finisher}");
        let offer = Offer { functions: ["noop".to_owned()].into(), node: name.clone(), ..Offer::default() };
        let session = NewSession { offer: Some(offer), ..NewSession::ephemeral(name, 8) };
        sessions.push(store.register(session).await?);
        hands.push((store, Vec::new()));
    }
    let graph = Graph { shape: Shape::Flat(tasks), at_once: u32::try_from(tasks)? };
    let document = graph.laneway().replace("command: [/bin/true]", "function: noop");
    let submission = Submission {
        dir: "/".to_owned(),
        max_parallel: u32::try_from(tasks)?,
        is_shared: true,
        by: "bench".to_owned(),
        ..Submission::new(plan(&document)?, document, sessions[0])
    };
    let run = hands[0].0.submit(submission).await?;
    let share = tasks.div_ceil(finishers);
    for ((store, claims), session) in hands.iter_mut().zip(&sessions) {
        let ask = Ask { session: *session, run: None, limit: share, ahead: 0 };
        claims.extend(store.claim(ask).await?.into_iter().map(|claim| claim.at));
    }
    let begun = Instant::now();
    let mut finishing = JoinSet::new();
    for (store, claims) in &hands {
        let (store, claims) = (Arc::clone(store), claims.clone());
        finishing.spawn(async move {
            for batch in claims.chunks(batch) {
                let finished = batch.iter().map(|claim| {
                    Finished::new(*claim, Outcome::Succeeded { output: Map::new() }, Duration::from_micros(1))
                });
                store.finish(finished.collect(), None).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = finishing.join_next().await {
        ended.context("a finisher has panicked")??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let status = hands[0].0.status(run).await?;
    if status != RunStatus::Succeeded {
        bail!("the run ended as {status:?}");
    }
    print(&json!({ "seconds": seconds }).to_string());
    Ok(())
}
