//! E7: what is damaged of a run while a node works on it. A real node, with everything that it says to the store by itself; that store is
//! changed beneath it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_engine::embed::{Call, Engine, Step, Workflow};
use laneway_store::Store;
use laneway_store::model::{About, RunFilter};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::support::{Place, SOON};

/// Of a run whose first step is running, and whose second waits for it. `@V` is its number.
const HARMS: &[(&str, &str)] = &[
    ("status of the run", "UPDATE runs SET status = 'wild' WHERE no = @V"),
    ("attempt of a task", "UPDATE tasks SET attempt = -5 WHERE run_no = @V AND position = 0"),
    ("position of a task", "UPDATE tasks SET position = 77 WHERE run_no = @V AND position = 0"),
    ("request to stop", "UPDATE tasks SET stop = 'wild' WHERE run_no = @V AND position = 0"),
    ("task that waits", "UPDATE tasks SET gate = 'wild' WHERE run_no = @V AND position = 1"),
    ("countdown that is gone", "DELETE FROM needs_sets WHERE run_no = @V"),
    (
        "event in the place of the next",
        "INSERT INTO events SELECT run_no, max(seq) + 1, 0, 'x', 1, '{}' FROM events WHERE run_no = @V GROUP BY run_no",
    ),
];

/// What comes about without a word to wait for is looked at again after this.
const LOOK: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_is_damaged_under_a_node_is_set_aside_and_the_node_goes_on() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let engine = start(&place, &begun, &gate).await;
        let victim = Workflow::new("victim")
            .step(Step::function("a", "held"))
            .step(Step::function("b", "free").needs(["a"]));
        let other = Workflow::new("other").step(Step::function("it", "free"));
        for (what, harm) in HARMS {
            let run = engine.submit(&victim, ()).await.expect("a run").id();
            timeout(SOON, begun.acquire()).await.expect("it begins").expect("never closed").forget();
            place
                .harm_beneath(&harm.replace("@V", &format!("(SELECT no FROM runs WHERE id = '{run}')")))
                .await;
            gate.add_permits(1);
            let outcome = timeout(SOON, engine.run(&other, ())).await;
            let outcome = outcome.unwrap_or_else(|_| panic!("{what}: nothing goes on"));
            let outcome = outcome.unwrap_or_else(|error| panic!("{what}: the node ended: {error}"));
            assert!(outcome.has_succeeded(), "{what}: {:?}", outcome.reason());
            let settled = timeout(SOON, settled(engine.store().as_ref(), run)).await;
            settled.unwrap_or_else(|_| panic!("{what}: it neither ends nor is set aside"));
        }
        let found = engine.store().examine(usize::MAX).await.expect("an answer").findings;
        let aside = found.iter().filter(|finding| finding.about == About::Quarantine).count();
        assert!((1..=HARMS.len()).contains(&aside), "{found:#?}");
        timeout(SOON, engine.shutdown()).await.expect("it ends").expect("well");
    }
}

async fn start(place: &Place, begun: &Arc<Semaphore>, gate: &Arc<Semaphore>) -> Engine {
    let (begun, gate) = (Arc::clone(begun), Arc::clone(gate));
    let held = move |_: Call<Value>| {
        let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
        async move {
            begun.add_permits(1);
            gate.acquire().await.expect("never closed").forget();
            Ok::<_, Infallible>(json!({}))
        }
    };
    let free = |_: Call<Value>| async move { Ok::<_, Infallible>(json!({})) };
    let engine = place.engine().slots(8).function("held", held).function("free", free);
    engine.start().await.expect("an engine")
}

/// Until it is set aside, or over: a node may be through with it before it meets the damage.
async fn settled(store: &dyn Store, run: RunId) {
    let mut changes = store.changes();
    loop {
        let listed = store.runs(RunFilter { limit: 50, ..RunFilter::default() }).await.expect("a list");
        let victim = listed.iter().find(|summary| summary.run == run).expect("it is listed");
        if victim.set_aside.is_some() || victim.status.is_some_and(|status| status.is_final()) {
            return;
        }
        // Hints may be missed.
        drop(timeout(LOOK, changes.changed()).await);
    }
}
