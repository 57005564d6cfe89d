//! R11: results that steps take instead of being executed again: found by key, good for a while, kept with their files, and
//! forgotten by age and size. Why one was not taken.

use std::time::Duration;

use laneway_core::artifact::ArtifactName;
use laneway_core::cache::{Miss, Part, Parts};
use laneway_core::event::Fact;
use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::state::TaskStatus;
use laneway_store::cache::{Behind, Forgotten, Found, Hit, KeepResults, Look, NewResult, Which};
use laneway_store::model::{Artifact, Finished, Outcome};
use laneway_store::prune::Keep;
use laneway_store::{Error, Fate, Store};
use serde_json::{Map, json};

use crate::harness::{Database, Place, flow, for_each_database, succeeded};
use crate::server;

for_each_database! {
    task_ends_with_what_was_recorded_and_says_so,
    hit_of_a_claim_that_is_lost_changes_nothing,
    key_that_is_not_there_is_compared_with_what_is_kept_of_its_step,
    result_is_too_old_by_the_clock_of_the_store,
    newer_result_stands_in_the_place_of_the_older_one,
    result_outlives_its_run_and_holds_its_files,
    results_that_were_used_longest_ago_go_by_age_and_by_size,
    results_of_a_step_are_forgotten_alone,
    why_a_task_is_executed_is_said_by_its_holder_and_goes_with_its_run,
    nobody_who_looks_waits_for_somebody_who_writes,
    ten_who_record_one_key_at_once_leave_one_result,
}

for_each_database! {
    sqlite only:
    file_of_a_result_stays_beside_the_store,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

fn parts(command: &str) -> Parts {
    let mut parts = Parts::default();
    parts.add(Part::Command, command.as_bytes());
    parts
}

fn result(run: RunId, step: &str, command: &str) -> NewResult {
    let parts = parts(command);
    let output = Map::from_iter([("said".to_owned(), json!(command))]);
    NewResult {
        workflow: "flow".to_owned(),
        step: step.to_owned(),
        key: parts.key("flow", step),
        parts,
        run,
        took: Duration::from_millis(1_500),
        exit_code: Some(0),
        output,
        artifacts: Vec::new(),
        layer: None,
    }
}

fn asked(step: &str, command: &str, ttl: Option<Duration>) -> Look {
    let key = parts(command).key("flow", step);
    Look { workflow: "flow".to_owned(), step: step.to_owned(), key, ttl }
}

async fn look(store: &dyn Store, step: &str, command: &str, ttl: Option<Duration>) -> Found {
    store.cached(asked(step, command, ttl)).await.expect("an answer")
}

async fn hit(store: &dyn Store, step: &str, command: &str) -> Option<Hit> {
    match look(store, step, command, None).await {
        Found::Hit(hit) => Some(*hit),
        Found::Expired { .. } | Found::Others(_) => None,
    }
}

async fn remember(store: &dyn Store, result: NewResult) {
    store.remember(result).await.expect("recorded");
}

fn all() -> Which {
    Which::default()
}

async fn task_ends_with_what_was_recorded_and_says_so(place: Place) {
    let node = place.node("one").await;
    let first = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    remember(&*node.store, result(first, "a", "make")).await;
    place.advance(Duration::from_secs(60));
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    let held = node.take(run, 1).await.remove(0);
    let found = hit(&*node.store, "a", "make").await.expect("a result");
    assert_eq!((found.from, found.exit_code), (first, Some(0)));
    let fate = node.finish(&held, Outcome::Cached(Box::new(found.clone()))).await;
    assert_eq!(fate, Fate::Recorded);
    let task = node.task(run, "a").await;
    assert_eq!((task.status, task.reason), (TaskStatus::Succeeded, Some(Reason::Cached)));
    assert_eq!((task.exit_code, &task.output), (Some(0), &found.output));
    assert!(task.detail.as_deref().is_some_and(|detail| detail.contains(&first.short())), "{task:?}");
    assert_eq!(node.task(run, "b").await.status, TaskStatus::Available, "what comes behind it goes on");
    let names: Vec<&str> = node.events(run).await.iter().map(|event| event.fact.name()).collect();
    let expected = [
        "run_submitted",
        "run_started",
        "task_available",
        "task_started",
        "task_cached",
        "task_finished",
        "task_available",
    ];
    assert_eq!(names, expected);
    let events = node.events(run).await;
    let Fact::TaskCached(said) = &events[4].fact else { panic!("{:?}", events[4]) };
    assert_eq!((said.from, said.recorded_at, &*said.key), (first, found.recorded_at, found.key.as_str()));
    let attempts = node.attempts(run, "a").await;
    assert_eq!((attempts[0].outcome.as_str(), attempts[0].reason), ("succeeded", Some(Reason::Cached)));
    assert_eq!(node.finish(&held, Outcome::Cached(Box::new(found))).await, Fate::Repeated);
}

async fn hit_of_a_claim_that_is_lost_changes_nothing(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    remember(&*node.store, result(run, "a", "make")).await;
    let held = node.take(run, 1).await.remove(0);
    node.give_back(&held).await;
    let found = hit(&*node.store, "a", "make").await.expect("a result");
    assert_eq!(node.finish(&held, Outcome::Cached(Box::new(found))).await, Fate::ClaimLost);
    assert_eq!(node.task(run, "a").await.status, TaskStatus::Available);
}

async fn key_that_is_not_there_is_compared_with_what_is_kept_of_its_step(place: Place) {
    let (node, other) = (place.node("one").await, place.open());
    let run = node.submit(&flow("", &[("a", ""), ("b", "")])).await;
    assert_eq!(look(&*other, "a", "make", None).await, Found::Others(Vec::new()));
    for (step, command) in [("a", "make 1"), ("a", "make 2"), ("b", "make")] {
        remember(&*node.store, result(run, step, command)).await;
        place.advance(Duration::from_secs(1));
    }
    let Found::Others(kept) = look(&*other, "a", "make", None).await else { panic!("it is another key") };
    let found: Vec<&Parts> = kept.iter().map(|recorded| &recorded.parts).collect();
    assert_eq!(found, [&parts("make 2"), &parts("make 1")], "the newest first, and none of another step");
    assert!(hit(&*other, "a", "make 1").await.is_some());
}

async fn result_is_too_old_by_the_clock_of_the_store(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    remember(&*node.store, result(run, "a", "make")).await;
    let ttl = Some(Duration::from_secs(3_600));
    place.advance(Duration::from_secs(3_599));
    assert!(matches!(look(&*node.store, "a", "make", ttl).await, Found::Hit(_)));
    place.advance(Duration::from_secs(1));
    let Found::Expired { run: of, .. } = look(&*node.store, "a", "make", ttl).await else {
        panic!("its time is up")
    };
    assert_eq!(of, run);
    assert!(hit(&*node.store, "a", "make").await.is_some(), "it is the ttl of whoever looks that counts");
    remember(&*node.store, result(run, "a", "make")).await;
    assert!(matches!(look(&*node.store, "a", "make", ttl).await, Found::Hit(_)), "recorded anew");
}

async fn kept_file(store: &dyn Store, name: &str, bytes: &[u8]) -> Artifact {
    let hash = store.keep_blob(bytes.to_vec()).await.expect("kept");
    let name = ArtifactName::parse(name).expect("a name");
    Artifact { name, hash, size: bytes.len() as u64, is_executable: true }
}

async fn newer_result_stands_in_the_place_of_the_older_one(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let (old, new) =
        (kept_file(&*node.store, "old", b"1").await, kept_file(&*node.store, "new", b"22").await);
    let first = result(run, "a", "make");
    let key = first.key.clone();
    remember(&*node.store, NewResult { artifacts: vec![old], ..first }).await;
    node.store.note_uses(vec![(key.clone(), 3)]).await.expect("counted");
    let second = result(run, "a", "make");
    let output = Map::from_iter([("n".to_owned(), json!(2))]);
    remember(&*node.store, NewResult { artifacts: vec![new.clone()], output, ..second }).await;
    let found = hit(&*node.store, "a", "make").await.expect("a result");
    assert_eq!((found.artifacts, json!(found.output)), (vec![new], json!({ "n": 2 })));
    let listed = node.store.results(all(), None, 10).await.expect("a list");
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].hits, &listed[0].key, listed[0].took_ms), (3, &key, 1_500));
}

async fn result_outlives_its_run_and_holds_its_files(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let file = kept_file(&*node.store, "dist/app", b"binary").await;
    remember(&*node.store, NewResult { artifacts: vec![file.clone()], ..result(run, "a", "make") }).await;
    node.work(run, |_| succeeded()).await;
    let newer = node.submit(&flow("", &[("a", "")])).await;
    node.work(newer, |_| succeeded()).await;
    place.advance(DAY + DAY);
    let keep = Keep { for_: Some(DAY), ..Keep::default() };
    assert_eq!(node.store.prunable(keep, 10).await.expect("a list").len(), 1);
    assert!(node.store.prune(run).await.expect("pruned"));
    assert_eq!(node.store.sweep().await.expect("swept").things, 0, "the result holds it");
    let found = hit(&*node.store, "a", "make").await.expect("it is still there");
    assert_eq!((found.from, found.artifacts), (run, vec![file.clone()]));
    let gone = node.store.forget_results(all()).await.expect("forgotten");
    assert_eq!(gone.results, 1);
    assert!(gone.bytes > 6, "{gone:?}");
    assert_eq!(node.store.sweep().await.expect("swept").things, 1, "nothing holds it any more");
    assert!(matches!(node.store.blob(&file.hash).await, Err(Error::NoSuchBlob { .. })));
    assert_eq!(hit(&*node.store, "a", "make").await, None);
}

async fn results_that_were_used_longest_ago_go_by_age_and_by_size(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    for command in ["one", "two", "three"] {
        let file = kept_file(&*node.store, "out", &[7; 1_000]).await;
        remember(&*node.store, NewResult { artifacts: vec![file], ..result(run, "a", command) }).await;
        place.advance(DAY);
    }
    let aged = |days: u32| KeepResults { for_: Some(DAY * days), bytes: None };
    assert_eq!(node.store.prune_results(aged(9)).await.expect("pruned"), Forgotten::default());
    // The oldest is used again, and so it is not the first to go.
    node.store.note_uses(vec![(parts("one").key("flow", "a"), 1)]).await.expect("counted");
    assert_eq!(node.store.prune_results(aged(1)).await.expect("pruned").results, 1);
    assert_eq!(hit(&*node.store, "a", "two").await, None);
    let within = |bytes| KeepResults { for_: None, bytes: Some(bytes) };
    assert_eq!(node.store.prune_results(within(4_000)).await.expect("pruned").results, 0);
    assert_eq!(node.store.prune_results(within(2_000)).await.expect("pruned").results, 1);
    assert_eq!(hit(&*node.store, "a", "three").await, None);
    assert!(hit(&*node.store, "a", "one").await.is_some());
}

async fn results_of_a_step_are_forgotten_alone(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "")])).await;
    for number in 0..250 {
        remember(&*node.store, result(run, "a", &format!("make {number}"))).await;
    }
    remember(&*node.store, result(run, "b", "make")).await;
    let of = |workflow: &str, step: Option<&str>| Which {
        workflow: Some(workflow.to_owned()),
        step: step.map(str::to_owned),
    };
    // Page by page, as long as there is something behind the last one.
    let count = async |which: Which| {
        let (mut behind, mut keys) = (None, Vec::new());
        loop {
            let page = node.store.results(which.clone(), behind, 1).await.expect("a page");
            let Some(last) = page.into_iter().next() else { break };
            assert!(!keys.contains(&last.key), "{} comes twice", last.key);
            keys.push(last.key.clone());
            behind = Some(Behind { last_used_at: last.last_used_at, key: last.key });
        }
        keys.len()
    };
    assert_eq!(count(of("flow", None)).await, 251);
    assert_eq!(node.store.forget_results(of("other", None)).await.expect("none").results, 0);
    assert_eq!(node.store.forget_results(of("flow", Some("a"))).await.expect("some").results, 250);
    assert_eq!(count(all()).await, 1);
}

async fn why_a_task_is_executed_is_said_by_its_holder_and_goes_with_its_run(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    assert_eq!(node.store.missed(run, "a").await.expect("an answer"), None);
    let lost = node.take(run, 1).await.remove(0);
    node.give_back(&lost).await;
    let fate = node.store.note_miss(lost.at, Miss::NotWanted).await.expect("an answer");
    assert_eq!(fate, Fate::ClaimLost);
    let held = node.take(run, 1).await.remove(0);
    for miss in [Miss::NeverSeen, Miss::NoKey { detail: "no file".to_owned() }] {
        let fate = node.store.note_miss(held.at, miss.clone()).await.expect("an answer");
        assert_eq!(fate, Fate::Recorded);
        let missed = node.store.missed(run, "a").await.expect("an answer").expect("a word");
        assert_eq!((missed.attempt, missed.miss), (held.at.attempt, miss));
    }
    assert!(matches!(node.store.missed(run, "b").await, Err(Error::NoSuchStep { .. })));
    node.succeed(&held).await;
    let newer = node.submit(&flow("", &[("a", "")])).await;
    node.work(newer, |_| succeeded()).await;
    assert!(node.store.prune(run).await.expect("pruned"));
    assert!(node.store.missed(run, "a").await.is_err(), "the run is gone");
    assert_eq!(rows(&place, "cache_misses").await, 0);
}

/// Rows of a table, beneath the verbs.
async fn rows(place: &Place, table: &str) -> i64 {
    let count = format!("SELECT count(*) FROM {table}");
    match place.database {
        Database::Sqlite => {
            let file = rusqlite::Connection::open(place.path()).expect("the file");
            file.query_row(&count, [], |row| row.get(0)).expect("a number")
        }
        Database::Postgres => {
            let store = place.open();
            let beneath = server::beneath(store.dir()).await.expect("a database");
            beneath.query_one(&count, &[]).await.expect("a number").get(0)
        }
    }
}

/// Somebody has the result in hand, and does not commit.
async fn nobody_who_looks_waits_for_somebody_who_writes(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    remember(&*node.store, result(run, "a", "make")).await;
    let change = "UPDATE cache SET hits = 99";
    let soon = Duration::from_secs(5);
    let looks = async {
        let found = tokio::time::timeout(soon, hit(&*node.store, "a", "make")).await;
        assert!(found.expect("it is answered at once").is_some());
        let found = tokio::time::timeout(soon, hit(&*node.store, "a", "other")).await;
        assert!(found.expect("it is answered at once").is_none());
    };
    match place.database {
        Database::Sqlite => {
            let file = rusqlite::Connection::open(place.path()).expect("the file");
            file.execute_batch(&format!("BEGIN IMMEDIATE; {change};")).expect("the lock");
            looks.await;
        }
        Database::Postgres => {
            let beneath = server::beneath(node.store.dir()).await.expect("a database");
            beneath.batch_execute(&format!("BEGIN; {change};")).await.expect("the lock");
            looks.await;
            // Nor does a count wait: it is left out.
            let uses = node.store.note_uses(vec![(parts("make").key("flow", "a"), 1)]);
            tokio::time::timeout(soon, uses)
                .await
                .expect("nobody waits for a count")
                .expect("counted, or not");
            beneath.batch_execute("ROLLBACK").await.expect("let go");
            assert_eq!(node.store.results(all(), None, 1).await.expect("a list")[0].hits, 0);
        }
    }
}

async fn ten_who_record_one_key_at_once_leave_one_result(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let file = kept_file(&*node.store, "out", b"x").await;
    let each = (0..10).map(|_| {
        let (store, file) = (place.open(), file.clone());
        let result = NewResult { artifacts: vec![file], ..result(run, "a", "make") };
        tokio::spawn(async move { store.remember(result).await })
    });
    for said in each.collect::<Vec<_>>() {
        said.await.expect("no panic").expect("recorded");
    }
    assert_eq!((rows(&place, "cache").await, rows(&place, "cache_artifacts").await), (1, 1));
    let found = hit(&*node.store, "a", "make").await.expect("a result");
    assert_eq!(found.artifacts, [file]);
    // An end by a hit goes with others in one call.
    let held = node.take(run, 1).await.remove(0);
    let finished = Finished::new(held.at, Outcome::Cached(Box::new(found)), DAY);
    let answer = node.store.finish(vec![finished], None).await.expect("finished");
    assert_eq!(answer.fates, [Fate::Recorded]);
}

async fn file_of_a_result_stays_beside_the_store(place: Place) {
    let node = place.node("one").await;
    let source = node.store.dir().join("source");
    std::fs::write(&source, "binary").expect("written");
    let (hash, size) = node.store.keep_file(&source, laneway_store::MAX_SHARED_FILE).await.expect("kept");
    let name = ArtifactName::parse("dist/app").expect("a name");
    let file = Artifact { name, hash: hash.clone(), size, is_executable: false };
    let run = node.submit(&flow("", &[("a", "")])).await;
    remember(&*node.store, NewResult { artifacts: vec![file], ..result(run, "a", "make") }).await;
    // Files are as old as the machine says, and the clock of this store is behind it.
    place.advance(DAY * 20 * 365);
    assert_eq!(node.store.sweep().await.expect("swept").things, 0);
    assert!(node.store.dir().join("artifacts").join(hash.as_str()).exists());
    node.store.forget_results(all()).await.expect("forgotten");
    assert_eq!(node.store.sweep().await.expect("swept").things, 1);
}
