//! A list of 100,000 items, driven as a person would, with functions for steps: all of them run, in their order, a bounded number
//! is open at any time, and what they put out is one list. Counts and a generous deadline, never speed.

#[path = "support/warden.rs"]
mod warden;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::definition::{Source, compile};
use laneway_core::event::Fact;
use laneway_core::run_state::Replay;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_engine::container::Containers;
use laneway_engine::function::{Call, Functions};
use laneway_engine::worker::{Control, Counts, Drive, Means};
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Open, open};
use serde_json::{Value, json};

const ITEMS: u64 = 100_000;

const DOCUMENT: &str = r#"
name: many
max_parallel: 32
steps:
  each: {for_each: "${{ 100000 | range }}", function: twice, with: {n: "${{ item }}", at: "${{ index }}"}}
  sum: {needs: [each], function: count, with: {length: "${{ steps.each.output | length }}", last: "${{ steps.each.output[99999].twice }}"}}
"#;

#[derive(Debug, serde::Deserialize)]
struct Number {
    n: u64,
    at: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_items_run_and_replay() {
    let source = Source { file: "many.yaml".into(), default_name: "many".into(), text: DOCUMENT.into() };
    let plan = Arc::new(compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false))));
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(".laneway/laneway.db");
    let store = open(path.to_str().expect("UTF-8"), Open::Create).expect("a store");
    let session = store.register(NewSession::ephemeral("test:1", 32)).await.expect("a session");
    let submission = Submission {
        dir: dir.path().to_str().expect("UTF-8").to_owned(),
        max_parallel: 32,
        by: "ada".into(),
        ..Submission::new(Arc::clone(&plan), DOCUMENT.to_owned(), session)
    };
    let run = store.submit(submission).await.expect("a run");
    let (ran, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&ran);
    let told = Arc::clone(&seen);
    let functions = Functions::new()
        .add("twice", move |call: Call<Number>| {
            assert_eq!(call.input.n, call.input.at, "items of a range are their places");
            counter.fetch_add(1, Ordering::Relaxed);
            async move { Ok::<_, Infallible>(json!({ "twice": call.input.n * 2 })) }
        })
        .add("count", move |call: Call<Value>| {
            told.store(call.input["length"].as_u64().unwrap_or(0), Ordering::Relaxed);
            assert_eq!(call.input["last"], json!(199_998));
            async { Ok::<_, Infallible>(()) }
        });
    let drive = Drive {
        means: Means {
            store: Arc::clone(&store),
            session,
            slots: 32,
            kill_grace: Duration::from_secs(2),
            warden: warden::warden(),
            functions,
            containers: Containers::default(),
            pulse: None,
            counts: Counts::default(),
            max_poll_interval: Duration::from_secs(15),
            takes_results: true,
            workspace_max_bytes: laneway_engine::WORKSPACE_MAX_BYTES,
        },
        run,
        by: "ada".into(),
        is_over_when_paused: false,
        pass_env: None,
    };
    let deadline = Duration::from_secs(600);
    let status = tokio::time::timeout(deadline, drive.until_done(Control::new())).await;
    assert_eq!(status.expect("it ends in time").expect("the worker works"), RunStatus::Succeeded);
    assert_eq!((ran.load(Ordering::Relaxed), seen.load(Ordering::Relaxed)), (ITEMS, ITEMS));

    // The history tells the state, and no more items were open at once than two batches have.
    let stored = store.run_state(run).await.expect("a state");
    assert_eq!(stored.tasks.len() as u64, ITEMS + 2);
    assert!(stored.tasks.iter().all(|task| task.status == TaskStatus::Succeeded && task.attempt <= 1));
    let mut replay = Replay::new(plan.workflow.steps.iter().map(|step| step.name.as_str()));
    let (mut after, mut added, mut ended, mut most) = (0, 0_u64, 0_u64, 0);
    loop {
        let page = store.events_since(run, after, 10_000).await.expect("events");
        let Some(last) = page.last() else { break };
        after = last.seq;
        for event in &page {
            match &event.fact {
                Fact::TasksAdded(f) => added += f.items.len() as u64,
                Fact::TaskFinished(f) if f.step.contains('[') => ended += 1,
                _ => {}
            }
            most = most.max(added - ended);
        }
        replay.go_on(&page).expect("a good history");
    }
    assert_eq!((added, ended), (ITEMS, ITEMS));
    assert!(most <= 1_000, "{most} items were open at once");
    assert_eq!(replay.end().expect("a run"), stored);
}
