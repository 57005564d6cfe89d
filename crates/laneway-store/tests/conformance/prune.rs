//! S7: what goes by age, number and bytes, and what never does; bytes that nothing refers to.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::artifact::ArtifactName;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_store::model::{
    Application, Artifact, CancelMode, Deed, Finished, LogName, LogPiece, Pausable, Reopen, Submission,
};
use laneway_store::prune::{Keep, KeepRecords, Swept};
use laneway_store::sqlite::{Clock, SqliteStore};
use laneway_store::{Error, Fate, Open, Store};
use serde_json::json;

use crate::harness::{
    Database, Node, Place, START, flat, for_each_database, left, plan, submission, succeeded, succeeded_with,
};

for_each_database! {
    old_runs_go_with_all_that_belongs_to_them,
    newest_run_of_each_workflow_stays,
    run_that_is_not_over_never_goes,
    run_that_is_opened_again_stays,
    only_so_many_runs_of_each_workflow_stay,
    oldest_runs_go_until_the_rest_fits,
    rules_together_remove_no_more_than_they_have_to,
    run_whose_end_has_yet_to_start_something_stays,
    key_of_a_run_that_went_starts_nothing,
    who_knew_a_run_that_went_is_told_that_it_is_gone,
    claims_of_a_run_that_went_are_lost_alone,
    large_run_goes_as_a_whole,
    bytes_that_nothing_refers_to_go_after_a_day,
    bytes_that_are_brought_again_stay,
    what_was_applied_is_there_however_often_somebody_sweeps,
    old_records_go_but_for_the_newest_and_those_of_who_lives,
}

for_each_database! {
    sqlite only:
    removal_that_was_cut_off_goes_on,
    run_whose_removal_has_begun_is_gone_for_everybody,
    artifacts_and_logs_that_nothing_names_go,
    files_of_another_store_in_the_same_directory_stay,
}

const DAY: Duration = Duration::from_secs(24 * 3600);
const AGED: Keep = Keep { for_: Some(DAY), runs: None, bytes: None };

fn document(name: &str) -> String {
    format!("name: {name}\nsteps: {{a: {{run: 'true'}}}}\n")
}

/// A run that has ended.
async fn done(node: &Node, name: &str) -> RunId {
    let run = node.submit(&document(name)).await;
    node.work(run, |_| succeeded()).await;
    run
}

async fn prunable(node: &Node, keep: Keep) -> Vec<RunId> {
    node.store.prunable(keep, 100).await.expect("a list").into_iter().map(|one| one.run).collect()
}

async fn prune(node: &Node, keep: Keep) -> Vec<RunId> {
    let runs = prunable(node, keep).await;
    for run in &runs {
        assert!(node.store.prune(*run).await.expect("an answer"), "{run} may go");
    }
    runs
}

async fn is_there(store: &dyn Store, run: RunId) -> bool {
    match store.status(run).await {
        Ok(_) => true,
        Err(Error::NoSuchRun { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Nothing is left that belongs to no run.
async fn is_whole(store: &dyn Store) {
    let found = store.examine(100).await.expect("an examination").findings;
    assert!(found.is_empty(), "{found:?}");
}

async fn old_runs_go_with_all_that_belongs_to_them(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&document("flow")).await;
    let held = node.begin(run, "a").await;
    let piece = LogPiece { claim: held.at, start: 0, bytes: vec![7; 5_000] };
    assert_eq!(node.store.keep_logs(vec![piece]).await.expect("kept"), [Fate::Recorded]);
    node.finish(&held, succeeded_with(json!({"x": "y".repeat(1_000)}))).await;
    let young = done(&node, "flow").await;
    assert_eq!(prunable(&node, AGED).await, [], "it is not old enough");
    place.advance(DAY + Duration::from_secs(1));
    let late = done(&node, "flow").await;
    let listed = node.store.prunable(AGED, 1).await.expect("a list");
    assert_eq!(listed.len(), 1, "no more than asked for");
    assert_eq!((listed[0].run, listed[0].workflow.as_str()), (run, "flow"));
    assert!(listed[0].bytes > 1_000, "{} bytes", listed[0].bytes);
    assert!(is_there(&*node.store, run).await, "to list changes nothing");
    assert_eq!(prune(&node, AGED).await, [run, young]);
    for gone in [run, young] {
        assert!(!is_there(&*node.store, gone).await);
        assert!(matches!(node.store.run(gone).await, Err(Error::NoSuchRun { .. })));
        let log = LogName { run: gone, step: "a".to_owned(), attempt: 1 };
        assert!(matches!(node.store.log(&log, 0, 10).await, Err(Error::NoSuchRun { .. })));
        assert!(!node.store.prune(gone).await.expect("an answer"), "twice is once");
    }
    assert!(is_there(&*node.store, late).await);
    is_whole(&*node.store).await;
}

async fn old_records_go_but_for_the_newest_and_those_of_who_lives(place: Place) {
    let person = place.node("person").await;
    let lives = Node::worker(place.open(), "lives:1", &[]).await;
    let stops = async || {
        let stops = Node::worker(place.open(), "stops:1", &[]).await;
        stops.store.retire(stops.session, left()).await.expect("a session that can end");
    };
    let record = async |what: &str| {
        let (by, act) = ("ada".to_owned(), "cancel".to_owned());
        let deed = Deed { by, act, what: what.to_owned(), origin: "here".to_owned() };
        person.store.record(deed).await.expect("a number")
    };
    let entries = async || -> Vec<u64> {
        let entries = person.store.audit(None, 99).await.expect("entries");
        entries.into_iter().map(|entry| entry.seq).collect()
    };
    let events = async || -> Vec<(u64, String)> {
        let events = person.store.node_events(None, 0, 99).await.expect("events");
        events.into_iter().map(|event| (event.seq, event.node)).collect()
    };
    let of = |seq: u64, node: &str| (seq, node.to_owned());
    for what in ["a", "b"] {
        record(what).await;
    }
    stops().await;
    place.advance(10 * DAY);
    record("c").await;
    stops().await;
    let all = KeepRecords::default();
    assert_eq!(
        person.store.prune_records(all).await.expect("an answer"),
        0,
        "without a word all of it stays"
    );
    let keep = KeepRecords { audit: Some(DAY), node_events: Some(DAY) };
    assert_eq!(person.store.prune_records(keep).await.expect("an answer"), 4);
    assert_eq!(entries().await, [3]);
    assert_eq!(events().await, [of(1, "lives:1"), of(4, "stops:1"), of(5, "stops:1")]);
    place.advance(10 * DAY);
    assert_eq!(person.store.prune_records(keep).await.expect("an answer"), 1);
    assert_eq!((entries().await, events().await), (vec![3], vec![of(1, "lives:1"), of(5, "stops:1")]));
    assert_eq!(record("d").await, 4, "no number is given out twice");
    drop(lives);
    person.store.reap().await.expect("a reaped session");
    assert_eq!(events().await.last(), Some(&of(6, "lives:1")));
    is_whole(&*person.store).await;
}

async fn newest_run_of_each_workflow_stays(place: Place) {
    let node = place.node("one").await;
    let (first, last) = (done(&node, "flow").await, done(&node, "flow").await);
    let only = done(&node, "another").await;
    place.advance(10 * DAY);
    assert_eq!(prune(&node, AGED).await, [first]);
    let none = Keep { bytes: Some(0), ..Keep::default() };
    assert_eq!(prunable(&node, none).await, []);
    for stays in [last, only] {
        assert!(!node.store.prune(stays).await.expect("an answer"));
        assert!(is_there(&*node.store, stays).await);
    }
    assert_eq!(node.store.latest("flow").await.expect("known").version, plan(&document("flow")).version);
}

async fn run_that_is_not_over_never_goes(place: Place) {
    let node = place.node("one").await;
    let running = node.submit(&document("flow")).await;
    let held = node.begin(running, "a").await;
    let waiting = node.submit(&document("flow")).await;
    done(&node, "flow").await;
    place.advance(10 * DAY);
    for keep in [AGED, Keep { runs: Some(1), ..Keep::default() }, Keep { bytes: Some(0), ..Keep::default() }]
    {
        assert_eq!(prunable(&node, keep).await, []);
    }
    for run in [running, waiting] {
        assert!(!node.store.prune(run).await.expect("an answer"));
    }
    node.succeed(&held).await;
    assert_eq!(prunable(&node, Keep { runs: Some(1), ..Keep::default() }).await, [running]);
}

async fn run_that_is_opened_again_stays(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&document("flow")).await;
    node.cancel(run).await;
    done(&node, "flow").await;
    place.advance(2 * DAY);
    assert_eq!(prunable(&node, AGED).await, [run]);
    node.retry(run, None).await.expect("it goes on");
    assert!(!node.store.prune(run).await.expect("an answer"), "it was chosen before");
    node.work(run, |_| succeeded()).await;
    assert_eq!(prunable(&node, AGED).await, [], "it has just ended");
}

async fn only_so_many_runs_of_each_workflow_stay(place: Place) {
    let node = place.node("one").await;
    let mut flow = Vec::new();
    for _ in 0..5 {
        flow.push(done(&node, "flow").await);
    }
    let other = [done(&node, "other").await, done(&node, "other").await];
    assert_eq!(prune(&node, Keep { runs: Some(2), ..Keep::default() }).await, flow[..3]);
    for run in flow[3..].iter().chain(&other) {
        assert!(is_there(&*node.store, *run).await);
    }
    is_whole(&*node.store).await;
}

async fn oldest_runs_go_until_the_rest_fits(place: Place) {
    let node = place.node("one").await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        let run = node.submit(&document("flow")).await;
        node.work(run, |_| succeeded_with(json!({"x": "y".repeat(20_000)}))).await;
        runs.push(run);
    }
    // An output is in the row of its task and in an event: 40 kB each, and little more.
    let keep = |bytes| Keep { bytes: Some(bytes), ..Keep::default() };
    assert_eq!(prunable(&node, keep(200_000)).await, []);
    assert_eq!(prune(&node, keep(100_000)).await, runs[..2]);
    assert_eq!(prunable(&node, keep(100_000)).await, [], "the rest fits");
    // One that grew is measured again.
    node.retry(runs[2], Some("a")).await.expect("again");
    node.work(runs[2], |_| succeeded_with(json!({"x": "y".repeat(50_000)}))).await;
    assert_eq!(prunable(&node, keep(100_000)).await, [runs[2]]);
}

async fn rules_together_remove_no_more_than_they_have_to(place: Place) {
    let node = place.node("one").await;
    let mut runs = Vec::new();
    for name in ["old", "old", "old", "new", "new", "new", "new"] {
        let run = node.submit(&document(name)).await;
        node.work(run, |_| succeeded_with(json!({"x": "y".repeat(20_000)}))).await;
        runs.push(run);
    }
    // Seven runs of 40 kB each, and little more.
    let keep = |bytes| Keep { runs: Some(3), bytes: Some(bytes), ..Keep::default() };
    assert_eq!(prunable(&node, keep(250_000)).await, [runs[3]], "when that is gone, the rest fits");
    assert_eq!(prunable(&node, keep(220_000)).await, [runs[0], runs[3]]);
    let first = node.store.prunable(keep(0), 1).await.expect("a list");
    assert_eq!(first.len(), 1, "no more than asked for");
    assert_eq!(prune(&node, keep(250_000)).await, [runs[3]]);
    assert_eq!(prunable(&node, keep(250_000)).await, []);
}

async fn run_whose_end_has_yet_to_start_something_stays(place: Place) {
    let node = place.node("one").await;
    let text = format!("after: [{{workflow: flow}}]\n{}", document("next"));
    let application = Application {
        plan: Arc::new(plan(&text)),
        document: text,
        dir: "/work".to_owned(),
        bundle: None,
        by: "ada".to_owned(),
    };
    node.store.apply(application).await.expect("applied");
    let (first, _) = (done(&node, "flow").await, done(&node, "flow").await);
    place.advance(10 * DAY);
    assert_eq!(prunable(&node, AGED).await, []);
    assert!(!node.store.prune(first).await.expect("an answer"));
    for firing in node.store.due(10).await.expect("what is due").firings {
        node.store.settle(firing.end, None).await.expect("settled");
    }
    assert_eq!(prune(&node, AGED).await, [first]);
}

async fn key_of_a_run_that_went_starts_nothing(place: Place) {
    let node = place.node("one").await;
    let keyed = |key: &str| Submission {
        key: Some(key.to_owned()),
        ..submission(&document("flow"), json!({}), node.session)
    };
    let run = node.store.submit(keyed("tick")).await.expect("a run");
    node.work(run, |_| succeeded()).await;
    done(&node, "flow").await;
    assert_eq!(prune(&node, Keep { runs: Some(1), ..Keep::default() }).await, [run]);
    place.advance(6 * DAY);
    node.store.sweep().await.expect("swept");
    assert_eq!(place.open().submit(keyed("tick")).await.expect("known"), run, "it is remembered");
    assert!(!is_there(&*node.store, run).await, "and nothing was started");
    place.advance(2 * DAY);
    node.store.sweep().await.expect("swept");
    let another = node.store.submit(keyed("tick")).await.expect("a run");
    assert_ne!(another, run, "not for ever");
}

async fn who_knew_a_run_that_went_is_told_that_it_is_gone(place: Place) {
    let (node, other) = (place.node("one").await, place.node("two").await);
    let run = node.submit(&document("flow")).await;
    other.store.cancel(run, "ada", CancelMode::CleanUp).await.expect("canceled");
    done(&node, "flow").await;
    assert_eq!(prune(&node, Keep { runs: Some(1), ..Keep::default() }).await, [run]);
    let told = [
        other.store.retry(run, Reopen::default(), "ada").await.err(),
        other.store.cancel(run, "ada", CancelMode::CleanUp).await.err(),
        other.store.run(run).await.err(),
        other.store.run_state(run).await.err(),
        other.store.events_since(run, 0, 10).await.err(),
    ];
    for error in told {
        assert!(matches!(error, Some(Error::NoSuchRun { .. })), "{error:?}");
    }
}

/// The answer to an end was lost, the run is over, and meanwhile it went.
async fn claims_of_a_run_that_went_are_lost_alone(place: Place) {
    let (node, other) = (place.node("one").await, place.node("two").await);
    let gone = node.submit(&document("flow")).await;
    let held = node.begin(gone, "a").await;
    // From here on the run is on the shelf of the other process.
    assert_eq!(other.start(&held).await, Fate::Repeated);
    node.succeed(&held).await;
    done(&node, "flow").await;
    let (begun, unbegun) = (node.submit(&document("flow")).await, node.submit(&document("flow")).await);
    let (begun, unbegun) = (node.begin(begun, "a").await, node.take(unbegun, 1).await.remove(0));
    assert_eq!(prune(&node, Keep { runs: Some(1), ..Keep::default() }).await.first(), Some(&gone));
    let store = &other.store;
    assert_eq!(store.start(vec![held.at, begun.at]).await.expect("fates"), [Fate::ClaimLost, Fate::Repeated]);
    assert_eq!(
        store.give_back(vec![unbegun.at, held.at]).await.expect("fates"),
        [Fate::Recorded, Fate::ClaimLost]
    );
    let end = |claim| Finished::new(claim, succeeded(), Duration::ZERO);
    let answer = store.finish(vec![end(held.at), end(begun.at)], None).await.expect("an answer");
    assert_eq!(answer.fates, [Fate::ClaimLost, Fate::Recorded]);
    let hash = store.keep_blob(b"x".to_vec()).await.expect("kept");
    let name = ArtifactName::parse("x").expect("a name");
    let artifact = Artifact { name, hash, size: 1, is_executable: false };
    assert_eq!(store.keep_artifacts(held.at, vec![artifact]).await.expect("a fate"), Fate::ClaimLost);
    let piece = LogPiece { claim: held.at, start: 0, bytes: vec![7; 10] };
    assert_eq!(store.keep_logs(vec![piece]).await.expect("fates"), [Fate::ClaimLost]);
}

async fn large_run_goes_as_a_whole(place: Place) {
    let node = place.node("one").await;
    let run = node.store.submit(submission(&flat(4_500, 1), json!({}), node.session)).await.expect("a run");
    node.store.cancel(run, "ada", CancelMode::CleanUp).await.expect("canceled");
    done(&node, "flow").await;
    assert_eq!(prune(&node, Keep { runs: Some(1), ..Keep::default() }).await, [run]);
    assert!(!is_there(&*node.store, run).await);
    is_whole(&*node.store).await;
}

async fn bytes_that_nothing_refers_to_go_after_a_day(place: Place) {
    let node = place.node("one").await;
    let keep = |bytes: &'static [u8]| node.store.keep_blob(bytes.to_vec());
    let applied = keep(b"applied").await.expect("kept");
    let submitted = keep(b"submitted").await.expect("kept");
    let nobodys = keep(b"nobody's").await.expect("kept");
    apply(&*node.store, "flow", &applied).await.expect("applied");
    let given = submission(&document("flow"), json!({}), node.session);
    let run =
        node.store.submit(Submission { bundle: Some(submitted.clone()), ..given }).await.expect("a run");
    node.work(run, |_| succeeded()).await;
    done(&node, "flow").await;
    assert_eq!(
        node.store.sweep().await.expect("swept"),
        Swept::default(),
        "whoever brought it may name it yet"
    );
    place.advance(DAY + Duration::from_secs(1));
    assert_eq!(node.store.sweep().await.expect("swept"), Swept { things: 1, bytes: 8 });
    assert!(matches!(node.store.blob(&nobodys).await, Err(Error::NoSuchBlob { .. })));
    prune(&node, AGED).await;
    assert_eq!(node.store.sweep().await.expect("swept"), Swept { things: 1, bytes: 9 });
    assert!(matches!(node.store.blob(&submitted).await, Err(Error::NoSuchBlob { .. })));
    assert_eq!(node.store.blob(&applied).await.expect("there"), b"applied");
    assert_eq!(keep(b"nobody's").await.expect("kept again"), nobodys);
    assert_eq!(node.store.blob(&nobodys).await.expect("there"), b"nobody's");
}

async fn bytes_that_are_brought_again_stay(place: Place) {
    let store = place.open();
    let hash = store.keep_blob(b"scripts".to_vec()).await.expect("kept");
    place.advance(DAY - Duration::from_secs(1));
    store.keep_blob(b"scripts".to_vec()).await.expect("kept");
    place.advance(Duration::from_secs(2));
    assert_eq!(store.sweep().await.expect("swept"), Swept::default());
    assert!(store.blob(&hash).await.is_ok());
}

async fn apply(store: &dyn Store, name: &str, bundle: &ContentHash) -> laneway_store::Result<()> {
    let text = document(name);
    let (plan, dir) = (Arc::new(plan(&text)), "/work".to_owned());
    let bundle = Some(bundle.clone());
    store.apply(Application { plan, document: text, dir, bundle, by: "ada".to_owned() }).await.map(drop)
}

/// Whoever sweeps here takes everything for old. Nobody is given a word that does not hold.
async fn what_was_applied_is_there_however_often_somebody_sweeps(place: Place) {
    let store = place.open();
    let sweeper = place.open_by(&Arc::new(Clock::manual(START.after(10 * DAY))));
    let sweeping = tokio::spawn(async move {
        loop {
            sweeper.sweep().await.expect("swept");
            tokio::task::yield_now().await;
        }
    });
    // On SQLite all of it is new by the sweeper's clock: there is one clock for all. Elsewhere it goes on until a sweep came in between.
    let (mut refused, mut number) = (0, 0);
    while number < 100 || (place.database != Database::Sqlite && refused == 0 && number < 10_000) {
        number += 1;
        let bytes = format!("scripts {number}").into_bytes();
        loop {
            let hash = store.keep_blob(bytes.clone()).await.expect("kept");
            match apply(&*store, &format!("flow-{number}"), &hash).await {
                Ok(()) => {
                    assert_eq!(store.blob(&hash).await.expect("it is named"), bytes);
                    break;
                }
                Err(Error::NoSuchBlob { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    sweeping.abort();
    assert!(place.database == Database::Sqlite || refused > 0, "nobody came in between");
}

async fn removal_that_was_cut_off_goes_on(place: Place) {
    let node = place.node("one").await;
    let run = done(&node, "flow").await;
    done(&node, "flow").await;
    let beneath = rusqlite::Connection::open(place.path()).expect("the file");
    beneath
        .execute_batch(&format!(
            "UPDATE runs SET is_visible = 0 WHERE id = '{run}'; DELETE FROM events WHERE run_no = 1"
        ))
        .expect("half of it is gone");
    assert_eq!(prune(&node, Keep::default()).await, [run]);
    let left: i64 = beneath
        .query_row("SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM tasks)", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(left, 2, "one run with one task");
    is_whole(&*node.store).await;
}

/// A large run goes in chunks. Whoever knew it must not bring back what is left of it.
async fn run_whose_removal_has_begun_is_gone_for_everybody(place: Place) {
    let (node, other) = (place.node("one").await, place.node("two").await);
    let run = node.submit(&flat(3, 1)).await;
    // From here on it is on the shelf of this process.
    other.store.cancel(run, "ada", CancelMode::CleanUp).await.expect("canceled");
    let newer = node.submit(&flat(3, 1)).await;
    node.cancel(newer).await;
    let beneath = rusqlite::Connection::open(place.path()).expect("the file");
    beneath
        .execute_batch(&format!(
            "UPDATE runs SET is_visible = 0, owner = NULL, key = NULL WHERE id = '{run}';
             DELETE FROM tasks WHERE run_no = 1 AND position < 1"
        ))
        .expect("it has begun");
    for store in [&node.store, &other.store] {
        let told = [
            store.retry(run, Reopen::default(), "ada").await.err(),
            store.retry(run, Reopen::now(Some("s1")), "ada").await.err(),
            store.skip(run, "s1", "ada").await.err(),
            store.cancel(run, "ada", CancelMode::CleanUp).await.err(),
            store.pause(Pausable::Run(run), "ada").await.err(),
            store.adopt(run, other.session).await.err(),
            store.head(run).await.err(),
            store.run(run).await.err(),
            store.artifacts(run).await.err(),
            store.attempts(run, "s1").await.err(),
            store.scope(run, &["s1"]).await.err(),
        ];
        for (which, error) in told.into_iter().enumerate() {
            assert!(matches!(error, Some(Error::NoSuchRun { .. })), "{which}: {error:?}");
        }
    }
    assert_eq!(prune(&node, Keep::default()).await, [run], "and its removal goes on");
    is_whole(&*node.store).await;
}

async fn artifacts_and_logs_that_nothing_names_go(place: Place) {
    let node = place.node("one").await;
    let dir = node.store.dir().to_owned();
    let source = dir.join("source");
    let keep = async |content: &str| {
        std::fs::write(&source, content).expect("written");
        let (hash, size) = node.store.keep_file(&source, laneway_store::MAX_SHARED_FILE).await.expect("kept");
        (
            hash.clone(),
            Artifact { name: ArtifactName::parse("x").expect("a name"), hash, size, is_executable: false },
        )
    };
    let (named, artifact) = keep("named").await;
    let run = node.submit(&document("flow")).await;
    let held = node.begin(run, "a").await;
    node.store.keep_artifacts(held.at, vec![artifact]).await.expect("named");
    node.succeed(&held).await;
    let (nobodys, _) = keep("nobody's").await;
    let stray = dir.join("logs").join("0190d5a0-0000-7000-8000-000000000000");
    std::fs::create_dir_all(&stray).expect("made");
    std::fs::write(stray.join("a.a1.log"), "text").expect("written");
    let file = |hash: &ContentHash| dir.join("artifacts").join(hash.as_str());
    assert_eq!(node.store.sweep().await.expect("swept"), Swept::default());
    // Files are as old as the machine says, and the clock of this store is behind it.
    place.clock.advance(Duration::from_secs(20 * 365 * 24 * 3600));
    assert_eq!(node.store.sweep().await.expect("swept"), Swept { things: 2, bytes: 8 + 4 });
    assert!(file(&named).exists() && !file(&nobodys).exists() && !stray.exists());
    done(&node, "flow").await;
    assert_eq!(prune(&node, Keep { runs: Some(1), ..Keep::default() }).await, [run]);
    assert_eq!(node.store.sweep().await.expect("swept"), Swept { things: 1, bytes: 5 });
    assert!(!file(&named).exists());
}

/// Whose a file is nobody can tell by its name.
async fn files_of_another_store_in_the_same_directory_stay(place: Place) {
    let node = place.node("one").await;
    let dir = node.store.dir().to_owned();
    let path = dir.join("other.db");
    // As an earlier version has made it: with its files beside it.
    drop(SqliteStore::open(&path, Open::Create).expect("a store"));
    let database = rusqlite::Connection::open(&path).expect("a database");
    database.execute("DELETE FROM meta WHERE key = 'data_dir'", []).expect("deleted");
    drop(database);
    let store = SqliteStore::open_with(&path, Open::Create, Arc::clone(&place.clock)).expect("a store");
    let other = Node::register(Arc::new(store), "two").await;
    let source = dir.join("source");
    std::fs::write(&source, "named by the other").expect("written");
    let (hash, size) = other.store.keep_file(&source, laneway_store::MAX_SHARED_FILE).await.expect("kept");
    let run = other.submit(&document("flow")).await;
    let held = other.begin(run, "a").await;
    let name = ArtifactName::parse("x").expect("a name");
    let artifact = Artifact { name, hash: hash.clone(), size, is_executable: false };
    other.store.keep_artifacts(held.at, vec![artifact]).await.expect("named");
    let piece = LogPiece { claim: held.at, start: 0, bytes: vec![7; 10] };
    assert_eq!(other.store.keep_logs(vec![piece]).await.expect("kept"), [Fate::Recorded]);
    other.succeed(&held).await;
    place.clock.advance(Duration::from_secs(20 * 365 * 24 * 3600));
    assert_eq!(node.store.sweep().await.expect("swept"), Swept::default());
    assert!(dir.join("artifacts").join(hash.as_str()).exists());
    assert!(dir.join("logs").join(run.to_string()).exists());
}
