//! How often a task allocates, from its claim to its end, with a real store and real processes. Alone in its
//! file, because an allocator belongs to a whole program. Counted, never timed; see also
//! `laneway/tests/counted.rs`.

#[path = "support/warden.rs"]
mod warden;

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::definition::{Source, compile};
use laneway_core::state::RunStatus;
use laneway_engine::container::Containers;
use laneway_engine::function::Functions;
use laneway_engine::worker::{Control, Counts, Drive, Means};
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Open, open};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations a task while a worker drives a flat run, 8 at once. Planning and submitting are not in it.
async fn allocations_per_task(tasks: usize) -> f64 {
    let steps: String = (0..tasks).map(|task| format!("  t{task}: {{command: [/bin/true]}}\n")).collect();
    let yaml = format!("max_parallel: 8\nsteps:\n{steps}");
    let source = Source { file: "test.yaml".into(), default_name: "test".into(), text: yaml.clone() };
    let plan = Arc::new(compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false))));
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(".laneway/laneway.db");
    let store = open(path.to_str().expect("UTF-8"), Open::Create).expect("a store");
    let session = store.register(NewSession::ephemeral("test:1", 4)).await.expect("a session");
    let submission = Submission {
        dir: dir.path().to_str().expect("UTF-8").to_owned(),
        params: serde_json::Map::new(),
        max_parallel: 8,
        by: "ada".into(),
        ..Submission::new(plan, yaml, session)
    };
    let run = store.submit(submission).await.expect("a run");
    let drive = Drive {
        means: Means {
            store,
            session,
            slots: 8,
            kill_grace: Duration::from_secs(2),
            warden: warden::warden(),
            functions: Functions::new(),
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
    let region = Region::new(ALLOCATOR);
    let status = drive.until_done(Control::new()).await.expect("the worker works");
    let counted = region.change().allocations as f64 / tasks as f64;
    assert_eq!(status, RunStatus::Succeeded);
    counted
}

#[tokio::test]
async fn a_task_costs_a_bounded_number_of_allocations_however_many_there_are() {
    let few = allocations_per_task(200).await;
    let many = allocations_per_task(2_000).await;
    println!("allocations a task: {few:.0} of 200, {many:.0} of 2,000");
    // Measured: 137. Most are the worker's futures and messages, paths, and the rows of the store.
    assert!(few < 160.0, "{few:.0} allocations a task");
    let growth = many / few;
    assert!(growth < 1.2, "allocations a task grew by {growth:.2}: {few:.0} of 200, {many:.0} of 2,000");
}
