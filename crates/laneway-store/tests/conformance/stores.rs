//! S7: a store of every schema that was ever released opens, is read as it was, and its work goes on. `tests/stores/make.sh` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use laneway_core::state::RunStatus;
use laneway_store::model::{NewSignal, Reopen, RunFilter};
use laneway_store::sqlite::SqliteStore;
use laneway_store::{Open, Store};
use serde_json::Map;

use crate::audit;
use crate::harness::{Database, Node, block_on, for_each_database, names};
use crate::server::Schema;

for_each_database! {
    by name:
    store_of_every_schema_that_was_released_opens_and_its_work_goes_on,
}

fn store_of_every_schema_that_was_released_opens_and_its_work_goes_on(database: Database) {
    let end = match database {
        Database::Sqlite => ".sqlite.sql",
        Database::Postgres => ".postgres.sql",
    };
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores");
    let files = fs::read_dir(home).expect("a directory").map(|file| file.expect("a file").path());
    let mut kept: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    kept.sort_unstable();
    assert!(!kept.is_empty(), "at least one is kept");
    for path in kept {
        let dump = fs::read_to_string(&path).expect("text");
        block_on(async {
            match database {
                Database::Sqlite => {
                    let dir = tempfile::tempdir().expect("a directory");
                    let file = dir.path().join("laneway.db");
                    let made = rusqlite::Connection::open(&file).expect("a file");
                    made.execute_batch(&dump).expect("the store as it was");
                    drop(made);
                    go_on(Arc::new(SqliteStore::open(&file, Open::Migrate).expect("it opens"))).await;
                }
                Database::Postgres => {
                    let schema = Schema::new();
                    let dump = dump.replace("laneway_stored", schema.within());
                    schema.beneath().await.batch_execute(&dump).await.expect("the store as it was");
                    go_on(Arc::new(schema.try_open(Open::Migrate).expect("it opens"))).await;
                }
            }
        });
    }
}

async fn go_on(store: Arc<dyn Store>) {
    let runs = store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("runs");
    let by_name: BTreeMap<&str, _> = runs.iter().map(|run| (run.workflow.as_str(), run)).collect();
    let status = |name: &str| by_name[name].status.expect("it can be read");
    assert_eq!(status("done"), RunStatus::Succeeded);
    assert_eq!(status("broken"), RunStatus::Failed);
    assert_eq!(status("going"), RunStatus::Running);
    for run in &runs {
        audit::check(&*store, run.run).await;
    }
    let told: Vec<_> =
        store.triggers().await.expect("triggers").into_iter().map(|one| one.at.workflow).collect();
    assert_eq!(told, ["yearly"]);
    assert_eq!(store.tokens().await.expect("tokens").len(), 1);
    assert_eq!(store.audit(None, 9).await.expect("entries").len(), 1);
    let events = store.node_events(None, 0, 9).await.expect("events");
    assert_eq!(
        events.iter().map(|event| event.fact.name()).collect::<Vec<_>>(),
        ["node_joined", "node_draining", "node_stopping"]
    );
    let going = by_name["going"].run;
    let node = Node::worker(Arc::clone(&store), "new:1", &[]).await;
    assert_eq!(node.take_any(9).await.len(), 0, "it waits");
    let signal = NewSignal { name: "go".into(), by: "ada".into(), reason: None, payload: Map::new() };
    store.signal(going, "approved", signal).await.expect("it is told");
    let held = node.take_any(9).await;
    assert_eq!(names(&held), ["last"]);
    node.start(&held[0]).await;
    node.succeed(&held[0]).await;
    assert_eq!(node.status(going).await, RunStatus::Succeeded);
    let broken = by_name["broken"].run;
    store.retry(broken, Reopen::default(), "ada").await.expect("it is opened again");
    audit::check(&*store, broken).await;
}
