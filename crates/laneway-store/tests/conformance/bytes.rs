//! S8, W3: applied workflows, bytes by their hash, and logs by claim.

use std::io::Read as _;
use std::sync::Arc;

use laneway_core::artifact::ArtifactName;
use laneway_core::hash::ContentHash;
use laneway_core::state::RunStatus;
use laneway_store::model::{
    Application, Applied, Artifact, Ask, Claim, LogName, LogPiece, Opened, RunFilter, Submission,
};
use laneway_store::{Error, Fate, Store};
use serde_json::json;

use crate::harness::{
    Database, Held, Node, Place, flat, flow, for_each_database, plan, submission, succeeded,
};

for_each_database! {
    blob_comes_out_as_it_went_in,
    blob_that_is_not_there_is_said_to_be_missing,
    what_was_applied_last_is_what_starts,
    applying_what_has_not_changed_does_nothing,
    five_who_apply_at_once_make_one_version,
    version_with_a_bundle_that_is_not_there_is_refused,
    applied_workflows_are_listed_with_their_newest_runs,
    claims_bring_the_bundle_of_their_run,
    artifacts_are_those_of_attempts_that_succeeded,
    artifacts_of_a_claim_that_is_lost_are_not_kept,
    file_comes_out_as_it_went_in,
    sealed_secrets_are_kept_listed_and_removed,
    log_is_read_by_range_and_from_elsewhere,
    pieces_of_several_logs_go_together_and_twice_is_once,
    piece_that_is_said_again_may_have_grown,
    log_of_a_claim_that_is_lost_is_not_written,
    log_of_a_step_that_is_not_there_is_refused,
    log_whose_node_was_lost_says_so,
}

async fn blob_comes_out_as_it_went_in(place: Place) {
    let (store, other) = (place.open(), place.open());
    for size in [0, 1, 262_144, 3_000_000] {
        let bytes: Vec<u8> = (0..size).map(|at: usize| (at * at / 7) as u8).collect();
        let hash = store.keep_blob(bytes.clone()).await.expect("kept");
        assert_eq!(hash, ContentHash::of(&bytes));
        assert_eq!(store.keep_blob(bytes.clone()).await.expect("kept"), hash, "twice is once");
        assert!(other.blob(&hash).await.expect("there") == bytes, "{size} bytes");
    }
}

async fn blob_that_is_not_there_is_said_to_be_missing(place: Place) {
    let store = place.open();
    let missing = store.blob(&ContentHash::of(b"nobody brought these")).await;
    assert!(matches!(missing, Err(Error::NoSuchBlob { .. })), "{missing:?}");
    let large = store.keep_blob(vec![0; laneway_store::MAX_BLOB + 1]).await;
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
}

fn application(document: &str, bundle: Option<&ContentHash>) -> Application {
    Application {
        plan: Arc::new(plan(document)),
        document: document.to_owned(),
        dir: "/work".to_owned(),
        bundle: bundle.cloned(),
        by: "ada".to_owned(),
    }
}

async fn apply(store: &dyn Store, document: &str, bundle: Option<&ContentHash>) -> Applied {
    store.apply(application(document, bundle)).await.expect("applied")
}

async fn what_was_applied_last_is_what_starts(place: Place) {
    let node = place.node("one").await;
    assert!(matches!(node.store.latest("flow").await, Err(Error::NoSuchWorkflow { .. })));
    // Before anything is applied it is what ran last.
    node.submit(&flat(1, 1)).await;
    let ran = node.store.latest("flow").await.expect("known");
    assert_eq!((ran.version, ran.no, ran.bundle), (plan(&flat(1, 1)).version, None, None));
    let bundle = node.store.keep_blob(b"scripts".to_vec()).await.expect("kept");
    assert_eq!(apply(&*node.store, &flat(2, 1), Some(&bundle)).await, Applied { no: 1, was_there: false });
    assert_eq!(apply(&*node.store, &flat(3, 1), Some(&bundle)).await, Applied { no: 2, was_there: false });
    node.submit(&flat(1, 1)).await;
    let known = node.store.latest("flow").await.expect("known");
    assert_eq!((known.version, known.no), (plan(&flat(3, 1)).version, Some(2)));
    assert_eq!((known.bundle, known.dir.as_str()), (Some(bundle), "/work"));
    let text = node.store.document(&plan(&flat(3, 1)).version).await.expect("a document");
    assert_eq!(text, flat(3, 1));
    let versions = node.store.versions("flow", None, 10).await.expect("versions");
    assert_eq!(versions.iter().map(|one| one.no).collect::<Vec<_>>(), [2, 1]);
    let page = async |below| {
        let page = node.store.versions("flow", below, 1).await.expect("versions");
        page.iter().map(|one| one.no).collect::<Vec<_>>()
    };
    assert_eq!((page(None).await, page(Some(2)).await, page(Some(1)).await), (vec![2], vec![1], vec![]));
}

async fn applying_what_has_not_changed_does_nothing(place: Place) {
    let store = place.open();
    let one = store.keep_blob(b"one".to_vec()).await.expect("kept");
    let two = store.keep_blob(b"two".to_vec()).await.expect("kept");
    assert_eq!(apply(&*store, &flat(1, 1), Some(&one)).await, Applied { no: 1, was_there: false });
    assert_eq!(apply(&*store, &flat(1, 1), Some(&one)).await, Applied { no: 1, was_there: true });
    // Other files beside the same text are another version, and so is the way back.
    assert_eq!(apply(&*store, &flat(1, 1), Some(&two)).await, Applied { no: 2, was_there: false });
    assert_eq!(apply(&*store, &flat(1, 1), Some(&one)).await, Applied { no: 3, was_there: false });
}

async fn five_who_apply_at_once_make_one_version(place: Place) {
    let stores: Vec<_> = (0..5).map(|_| place.open()).collect();
    let all = stores.iter().map(|store| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.apply(application(&flat(1, 1), None)).await.expect("applied") })
    });
    let (mut made, mut found) = (0, 0);
    for one in all.collect::<Vec<_>>() {
        let applied = one.await.expect("an answer");
        assert_eq!(applied.no, 1);
        if applied.was_there { found += 1 } else { made += 1 }
    }
    assert_eq!((made, found), (1, 4));
}

async fn version_with_a_bundle_that_is_not_there_is_refused(place: Place) {
    let store = place.open();
    let missing = ContentHash::of(b"never brought");
    let refused = store.apply(application(&flat(1, 1), Some(&missing))).await;
    assert!(matches!(refused, Err(Error::NoSuchBlob { .. })), "{refused:?}");
    assert!(store.workflows().await.expect("a list").is_empty());
}

async fn applied_workflows_are_listed_with_their_newest_runs(place: Place) {
    let node = place.node("one").await;
    apply(&*node.store, &flat(1, 1), None).await;
    apply(&*node.store, &flat(2, 1), None).await;
    apply(&*node.store, "name: another\nsteps: {a: {run: 'true'}}\n", None).await;
    node.submit(&flat(1, 1)).await;
    let run = node.submit(&flat(1, 1)).await;
    node.work(run, |_| succeeded()).await;
    let listed = node.store.workflows().await.expect("a list");
    let names: Vec<_> = listed.iter().map(|one| (one.definition.name.as_str(), one.definition.no)).collect();
    assert_eq!(names, [("another", 1), ("flow", 2)]);
    assert_eq!(listed[0].last_run, None);
    let last = listed[1].last_run.expect("it ran");
    assert_eq!((last.run, last.status), (run, Some(RunStatus::Succeeded)));
    let runs = node.store.runs(RunFilter { workflow: Some("flow".into()), limit: 1, ..RunFilter::default() });
    assert_eq!(runs.await.expect("runs")[0].run, run);
}

async fn claims_bring_the_bundle_of_their_run(place: Place) {
    let node = Node::worker(place.open(), "one:1", &[]).await;
    let bundle = node.store.keep_blob(b"scripts".to_vec()).await.expect("kept");
    for is_shared in [true, false] {
        let given = submission(&flat(1, 1), json!({}), node.session);
        let given = Submission { is_shared, bundle: Some(bundle.clone()), ..given };
        let run = node.store.submit(given).await.expect("a run");
        // Another handle knows nothing of it yet.
        let other = place.open();
        let ask = Ask { session: node.session, run: (!is_shared).then_some(run), limit: 1, ahead: 0 };
        let claims: Vec<Claim> = other.claim(ask).await.expect("a claim");
        assert_eq!(claims[0].head.bundle.as_ref(), Some(&bundle), "shared: {is_shared}");
    }
}

fn artifact(name: &str, content: &[u8]) -> Artifact {
    Artifact {
        name: ArtifactName::parse(name).expect("a name"),
        hash: ContentHash::of(content),
        size: content.len() as u64,
        is_executable: name.ends_with(".sh"),
    }
}

async fn artifacts_are_those_of_attempts_that_succeeded(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 0s}"), ("b", "")])).await;
    let first = node.begin(run, "a").await;
    let one = vec![artifact("out/x.sh", b"first")];
    assert_eq!(node.store.keep_artifacts(first.at, one).await.expect("an answer"), Fate::Recorded);
    assert!(node.store.artifacts(run).await.expect("a list").is_empty(), "it has not ended");
    node.fail(&first).await;
    node.promote().await;
    let mut held = node.take(run, 2).await;
    held.sort_by(|one, other| one.step.cmp(&other.step));
    let [second, b] = <[Held; 2]>::try_from(held).expect("both are available");
    for _ in 0..2 {
        let two = vec![artifact("out/y", b"second"), artifact("out/x.sh", b"second, too")];
        assert_eq!(node.store.keep_artifacts(second.at, two).await.expect("an answer"), Fate::Recorded);
    }
    node.succeed(&second).await;
    node.succeed(&b).await;
    let found = node.store.artifacts(run).await.expect("a list");
    let told: Vec<_> =
        found.iter().map(|view| (view.step.as_str(), view.attempt, view.artifact.clone())).collect();
    assert_eq!(
        told,
        [("a", 2, artifact("out/x.sh", b"second, too")), ("a", 2, artifact("out/y", b"second"))]
    );
}

async fn artifacts_of_a_claim_that_is_lost_are_not_kept(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(1, 1)).await;
    let stale = dying.begin(run, "s0").await;
    drop(dying);
    node.store.reap().await.expect("an answer");
    let current = node.begin(run, "s0").await;
    let lost = node.store.keep_artifacts(stale.at, vec![artifact("x", b"x")]).await;
    assert_eq!(lost.expect("an answer"), Fate::ClaimLost);
    node.succeed(&current).await;
    assert!(node.store.artifacts(run).await.expect("a list").is_empty());
}

async fn file_comes_out_as_it_went_in(place: Place) {
    let (store, dir) = (place.open(), tempfile::tempdir().expect("dir"));
    let (path, to) = (dir.path().join("from"), dir.path().join("to"));
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at / 3) as u8).collect();
    std::fs::write(&path, &bytes).expect("written");
    let (hash, size) = store.keep_file(&path, laneway_store::MAX_SHARED_FILE).await.expect("kept");
    assert_eq!((&hash, size), (&ContentHash::of(&bytes), 300_000));
    assert_eq!(
        store.keep_file(&path, laneway_store::MAX_SHARED_FILE).await.expect("kept").0,
        hash,
        "twice is once"
    );
    place.open().fetch_file(&hash, &to).await.expect("fetched");
    assert!(std::fs::read(&to).expect("there") == bytes);
    let mut opened = Vec::new();
    match place.open().open_file(&hash).await.expect("opened") {
        Opened::File(mut file) => {
            file.read_to_end(&mut opened).expect("read");
        }
        Opened::Bytes(bytes) => opened = bytes,
    }
    assert!(opened == bytes);
    let missing = store.open_file(&ContentHash::of(b"none")).await;
    assert!(matches!(missing, Err(Error::NoSuchBlob { .. })), "{missing:?}");
    let missing = store.fetch_file(&ContentHash::of(b"none"), &dir.path().join("none")).await;
    assert!(matches!(missing, Err(Error::NoSuchBlob { .. })), "{missing:?}");
    let large = std::fs::File::create(dir.path().join("large")).expect("made");
    large.set_len((8 << 20) + 1).expect("sparse");
    let kept = store.keep_file(&dir.path().join("large"), laneway_store::MAX_SHARED_FILE).await;
    assert_eq!(kept.is_ok(), place.database == Database::Sqlite, "{kept:?}");
}

async fn sealed_secrets_are_kept_listed_and_removed(place: Place) {
    let store = place.open();
    assert!(matches!(store.secret("db").await, Err(Error::NoSuchSecret { .. })));
    store.set_secret("db", vec![1, 0, 255], "ada").await.expect("set");
    store.set_secret("api", vec![2], "ada").await.expect("set");
    store.set_secret("db", vec![3], "eve").await.expect("set again");
    assert_eq!(place.open().secret("db").await.expect("there"), [3]);
    let listed = store.secrets().await.expect("a list");
    let told: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.set_by.as_str())).collect();
    assert_eq!(told, [("api", "ada"), ("db", "eve")]);
    store.remove_secret("db").await.expect("removed");
    assert!(matches!(store.secret("db").await, Err(Error::NoSuchSecret { .. })));
    assert!(matches!(store.remove_secret("db").await, Err(Error::NoSuchSecret { .. })));
}

fn piece(held: &Held, start: u64, bytes: &[u8]) -> LogPiece {
    LogPiece { claim: held.at, start, bytes: bytes.to_vec() }
}

fn log_of(held: &Held) -> LogName {
    LogName { run: held.at.run, step: held.step.clone(), attempt: held.at.attempt }
}

async fn log_is_read_by_range_and_from_elsewhere(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let held = node.begin(run, "s0").await;
    let reader = place.open();
    let empty = reader.log(&log_of(&held), 0, 100).await.expect("a part");
    assert_eq!((empty.bytes.len(), empty.size, empty.may_lack_end), (0, 0, false));
    let all: Vec<u8> = (0..700_000_u32).map(|at| (at / 251 + at) as u8).collect();
    for (start, end) in [(0, 10), (10, 600_000), (600_000, 700_000)] {
        let fates = node.store.keep_logs(vec![piece(&held, start as u64, &all[start..end])]).await;
        assert_eq!(fates.expect("an answer"), [Fate::Recorded]);
    }
    let ranges =
        [(0, 5), (5, 10), (9, 2), (262_100, 100), (599_990, 20), (0, 700_000), (699_999, 50), (700_000, 9)];
    for (offset, limit) in ranges {
        let part = reader.log(&log_of(&held), offset as u64, limit).await.expect("a part");
        assert!(part.bytes == all[offset..all.len().min(offset + limit)], "{offset}+{limit}");
        assert_eq!(part.size, 700_000);
    }
    // It can be read when the attempt has ended as well.
    node.succeed(&held).await;
    assert_eq!(reader.log(&log_of(&held), 1, 3).await.expect("a part").bytes, all[1..4]);
}

async fn pieces_of_several_logs_go_together_and_twice_is_once(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(2, 2)).await;
    let (one, two) = (node.begin(run, "s0").await, node.begin(run, "s1").await);
    let pieces = || vec![piece(&one, 0, b"one"), piece(&two, 0, b"two"), piece(&one, 3, b" more")];
    for _ in 0..2 {
        let fates = node.store.keep_logs(pieces()).await.expect("an answer");
        assert_eq!(fates, [Fate::Recorded; 3]);
    }
    assert_eq!(node.store.log(&log_of(&one), 0, 100).await.expect("a part").bytes, b"one more");
    assert_eq!(node.store.log(&log_of(&two), 0, 100).await.expect("a part").bytes, b"two");
    assert_eq!(node.store.keep_logs(Vec::new()).await.expect("an answer"), []);
}

/// Its answer was lost, and more was printed meanwhile.
async fn piece_that_is_said_again_may_have_grown(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let held = node.begin(run, "s0").await;
    for text in ["first", "first and more", "first"] {
        node.store.keep_logs(vec![piece(&held, 0, text.as_bytes())]).await.expect("an answer");
    }
    node.store.keep_logs(vec![piece(&held, 14, b"!")]).await.expect("an answer");
    assert_eq!(node.store.log(&log_of(&held), 0, 100).await.expect("a part").bytes, b"first and more!");
}

async fn log_of_a_claim_that_is_lost_is_not_written(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(2, 2)).await;
    let stale = dying.begin(run, "s0").await;
    let good = node.begin(run, "s1").await;
    let mut forged = good.clone();
    forged.at.session = dying.session;
    drop(dying);
    node.store.reap().await.expect("an answer");
    let pieces = vec![piece(&stale, 0, b"stale"), piece(&good, 0, b"good"), piece(&forged, 4, b"forged")];
    let fates = node.store.keep_logs(pieces).await.expect("an answer");
    assert_eq!(fates, [Fate::ClaimLost, Fate::Recorded, Fate::ClaimLost]);
    assert_eq!(node.store.log(&log_of(&stale), 0, 100).await.expect("a part").bytes, b"");
    assert_eq!(node.store.log(&log_of(&good), 0, 100).await.expect("a part").bytes, b"good");
    // An attempt that has ended prints nothing more.
    node.succeed(&good).await;
    let late = node.store.keep_logs(vec![piece(&good, 4, b"late")]).await.expect("an answer");
    assert_eq!(late, [Fate::ClaimLost]);
}

async fn log_of_a_step_that_is_not_there_is_refused(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("build", "")])).await;
    let of = LogName { run, step: "biuld".into(), attempt: 1 };
    let refused = node.store.log(&of, 0, 100).await;
    assert!(matches!(refused, Err(Error::NoSuchStep { nearest: Some(_), .. })), "{refused:?}");
}

async fn log_whose_node_was_lost_says_so(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(1, 1)).await;
    let lost = dying.begin(run, "s0").await;
    dying.store.keep_logs(vec![piece(&lost, 0, b"last words")]).await.expect("an answer");
    drop(dying);
    node.store.reap().await.expect("an answer");
    let part = node.store.log(&log_of(&lost), 0, 100).await.expect("a part");
    assert_eq!(part.bytes, b"last words");
    // A file keeps everything that was written to it, whatever becomes of its process.
    assert_eq!(part.may_lack_end, place.database == Database::Postgres);
}
