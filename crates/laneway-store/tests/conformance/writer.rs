//! Verbs that come together share a commit, and nothing else.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_store::model::{CancelMode, Finished, NewSession, RunFilter};
use laneway_store::{Error, Fate};
use serde_json::json;

use crate::audit;
use crate::harness::{Place, failed, flat, flow, for_each_database, submission, succeeded};

for_each_database! {
    refused_verb_does_not_harm_its_neighbours,
    verb_behind_a_slow_batch_is_not_forgotten,
    verbs_of_a_store_that_is_closing_are_still_answered,
    runs_of_several_processes_do_not_mix,
    changes_tick_for_own_commits_and_for_those_of_others,
}

async fn refused_verb_does_not_harm_its_neighbours(place: Place) {
    let node = place.node("one").await;
    let good = node.submit(&flat(40, 40)).await;
    let ended = node.submit(&flat(1, 1)).await;
    node.work(ended, |_| failed(1)).await;
    let held = node.take(good, 40).await;
    let unknown = RunId::new(uuid::Uuid::now_v7());
    let mut all = Vec::new();
    for (index, held) in held.into_iter().enumerate() {
        let node = node.clone();
        all.push(tokio::spawn(async move {
            match index % 4 {
                0 => {
                    let refusal = node
                        .store
                        .cancel(unknown, "ada", CancelMode::CleanUp)
                        .await
                        .expect_err("no such run");
                    assert!(matches!(refusal, Error::NoSuchRun { .. }), "{refusal}");
                }
                1 => {
                    let refusal = node.store.skip(ended, "nope", "ada").await.expect_err("no such step");
                    assert!(matches!(refusal, Error::NoSuchStep { .. }), "{refusal}");
                }
                2 => {
                    // It has made a limit by the time it is refused.
                    let late = flow("limits: {made: 1}", &[("a", "limits: [nowhere]")]);
                    let late = submission(&late, json!({}), node.session);
                    let refusal = node.store.submit(late).await.expect_err("there is no such limit");
                    assert!(matches!(refusal, Error::NoSuchLimit { .. }), "{refusal}");
                }
                _ => {
                    let lost = Finished::new(
                        laneway_store::ClaimRef { generation: 9, ..held.at },
                        succeeded(),
                        std::time::Duration::ZERO,
                    );
                    let answer = node.store.finish(vec![lost], None).await.expect("an answer");
                    assert_eq!(answer.fates, [Fate::ClaimLost]);
                }
            }
            let finished = Finished::new(held.at, succeeded(), std::time::Duration::ZERO);
            let answer = node.store.finish(vec![finished], None).await.expect("an answer");
            assert_eq!(answer.fates, [Fate::Recorded]);
        }));
    }
    for one in all {
        one.await.expect("an answer to each");
    }
    audit::check(&*node.store, good).await;
    assert_eq!(node.status(good).await, RunStatus::Succeeded);
    assert_eq!(node.status(ended).await, RunStatus::Failed);
    let all = RunFilter { limit: 99, ..RunFilter::default() };
    assert_eq!(node.store.runs(all).await.expect("runs").len(), 2, "nothing of what was refused is left");
    assert_eq!(node.store.limits().await.expect("limits").len(), 0, "nor of what it had made before");
}

async fn verb_behind_a_slow_batch_is_not_forgotten(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(2000, 2000)).await;
    let held = node.take(run, 2000).await;
    let claims: Vec<_> = held.iter().map(|held| held.at).collect();
    // The first takes longer than a batch may, and the second came while it waited for company.
    let both =
        async { tokio::join!(node.store.start(claims), node.store.cancel(run, "ada", CancelMode::CleanUp)) };
    let (started, canceled) =
        tokio::time::timeout(Duration::from_secs(30), both).await.expect("both are answered");
    assert_eq!(started.expect("fates").len(), 2000);
    assert_eq!(canceled.expect("a status"), RunStatus::Running);
}

async fn verbs_of_a_store_that_is_closing_are_still_answered(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(3, 3)).await;
    let held = node.take(run, 3).await;
    let store = node.store.clone();
    let starting = held.iter().map(|held| {
        let (store, at) = (store.clone(), held.at);
        tokio::spawn(async move { store.start(vec![at]).await })
    });
    let starting: Vec<_> = starting.collect();
    drop((node, store));
    for one in starting {
        assert_eq!(one.await.expect("a task that ends").expect("an answer"), [Fate::Recorded]);
    }
}

async fn runs_of_several_processes_do_not_mix(place: Place) {
    let mut nodes = Vec::new();
    for index in 0..4 {
        nodes.push(place.node(&format!("process {index}")).await);
    }
    let all: Vec<_> = nodes
        .into_iter()
        .map(|node| {
            tokio::spawn(async move {
                let run = node.submit(&flat(12, 3)).await;
                assert_eq!(node.work(run, |_| succeeded()).await.len(), 12);
                assert_eq!(node.status(run).await, RunStatus::Succeeded);
            })
        })
        .collect();
    for one in all {
        one.await.expect("a run that ends");
    }
}

async fn changes_tick_for_own_commits_and_for_those_of_others(place: Place) {
    for is_own in [true, false] {
        let (store, other) = (place.open(), place.open());
        let mut changes = store.changes();
        changes.mark_unchanged();
        let writer = if is_own { &store } else { &other };
        writer.register(NewSession::ephemeral("one", 4)).await.expect("a session");
        let ticked = tokio::time::timeout(Duration::from_secs(30), changes.changed()).await;
        ticked.expect("a tick").expect("a store that is open");
    }
}
