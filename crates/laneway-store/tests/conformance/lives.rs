//! C5, C6, C7 on one host: what a dead session held comes back, and a live one is never touched.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::{Error, Fate, scratch_dir, warden_lock};

use crate::audit;
use crate::harness::{
    Database, Node, Place, block_on, command, flat, flow, for_each_database, left, names, succeeded,
};

for_each_database! {
    tasks_of_a_dead_session_come_back,
    claim_that_was_never_started_comes_back_too,
    lost_task_spends_no_retry,
    task_that_must_not_run_twice_fails_when_lost,
    task_that_was_lost_three_times_fails_the_fourth,
    lost_task_of_a_canceled_run_is_canceled,
    lost_task_of_a_halted_run_is_not_tried_again,
    live_session_is_never_reaped,
    two_reapers_at_once_reap_once,
    run_is_not_adopted_while_its_owner_lives,
    run_of_a_dead_owner_is_adopted,
    ended_run_is_not_adopted,
    retired_session_returns_what_it_held,
    result_that_arrives_before_anybody_reaped_is_good,
}

for_each_database! { sqlite only:
    dead_session_is_not_reaped_before_its_warden_has_ended,
    files_of_a_dead_session_go_with_it,
    files_of_a_session_that_died_between_lock_and_row_are_swept,
}

async fn reap(node: &Node, run: RunId) -> laneway_store::model::Reaped {
    let reaped = node.store.reap().await.expect("an answer");
    audit::check(&*node.store, run).await;
    reaped
}

async fn tasks_of_a_dead_session_come_back(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = dying.submit(&flow("", &[("a", ""), ("b", ""), ("c", "needs: [a]")])).await;
    let held = dying.begin(run, "a").await;
    dying.succeed(&held).await;
    dying.begin(run, "b").await;
    dying.begin(run, "c").await;
    drop(dying);
    let reaped = reap(&node, run).await;
    assert_eq!((reaped.nodes, reaped.tasks), (vec!["dying".to_owned()], 2));
    assert_eq!(node.tasks(run).await, "a succeeded, b available, c available");
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "c"]);
    assert_eq!(node.task(run, "b").await.attempt, 2);
    let outcomes: Vec<String> = node.attempts(run, "b").await.into_iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, ["lost", "succeeded"]);
    assert_eq!(reap(&node, run).await.nodes, Vec::<String>::new());
}

async fn claim_that_was_never_started_comes_back_too(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(2, 2)).await;
    assert_eq!(dying.take(run, 2).await.len(), 2);
    drop(dying);
    assert_eq!(reap(&node, run).await.tasks, 2);
    let again = node.take(run, 2).await;
    assert_eq!(names(&again), ["s0", "s1"]);
    assert!(again.iter().all(|held| held.at.attempt == 2));
}

async fn lost_task_spends_no_retry(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 0s}")])).await;
    dying.begin(run, "a").await;
    drop(dying);
    reap(&node, run).await;
    let task = node.task(run, "a").await;
    assert_eq!((task.retries, task.lost), (0, 1));
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    assert_eq!(node.task(run, "a").await.status, TaskStatus::Available);
}

async fn task_that_must_not_run_twice_fails_when_lost(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let steps = [("a", "on_lost: fail, retry: {max: 3, backoff: 0s}"), ("b", "needs: [a]")];
    let run = node.submit(&flow("", &steps)).await;
    dying.begin(run, "a").await;
    drop(dying);
    reap(&node, run).await;
    assert_eq!(node.tasks(run).await, "a failed (lost), b skipped (halted)");
    assert_eq!(node.state(run).await.reason.as_deref(), Some("a failed: its node dying died"));
}

async fn task_that_was_lost_three_times_fails_the_fourth(place: Place) {
    let node = place.node("heir").await;
    let run = node.submit(&flat(1, 1)).await;
    for times in 1..=3 {
        place.node("dying").await.begin(run, "s0").await;
        reap(&node, run).await;
        let task = node.task(run, "s0").await;
        assert_eq!((task.status, task.lost), (TaskStatus::Available, times));
    }
    place.node("dying").await.begin(run, "s0").await;
    reap(&node, run).await;
    assert_eq!(node.tasks(run).await, "s0 failed (lost)");
    assert_eq!(node.status(run).await, RunStatus::Failed);
    assert_eq!(node.attempts(run, "s0").await.len(), 4);
}

async fn lost_task_of_a_canceled_run_is_canceled(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(2, 2)).await;
    dying.begin(run, "s0").await;
    dying.take(run, 1).await;
    node.cancel(run).await;
    drop(dying);
    reap(&node, run).await;
    assert_eq!(node.tasks(run).await, "s0 canceled (canceled), s1 canceled (canceled)");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn lost_task_of_a_halted_run_is_not_tried_again(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let steps = [("a", ""), ("b", ""), ("clean", "when: always, needs: [b]")];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    dying.begin(run, "b").await;
    node.fail(&held).await;
    drop(dying);
    reap(&node, run).await;
    assert_eq!(node.tasks(run).await, "a failed (exit), b skipped (halted), clean available");
}

async fn live_session_is_never_reaped(place: Place) {
    let (idle, node) = (place.node("idle").await, place.node("one").await);
    let run = node.submit(&flat(1, 1)).await;
    let held = idle.begin(run, "s0").await;
    place.advance(std::time::Duration::from_secs(1_000_000));
    for reaper in [&node, &idle] {
        assert_eq!(reap(reaper, run).await.nodes, Vec::<String>::new());
    }
    idle.succeed(&held).await;
}

async fn two_reapers_at_once_reap_once(place: Place) {
    let reapers = [place.node("one").await, place.node("two").await, place.node("three").await];
    for round in 0..10 {
        let dying = place.node("dying").await;
        let run = dying.submit(&flat(3, 3)).await;
        dying.take(run, 3).await;
        // Those who asked for the run know the dying node by name, and must not take that for its being there.
        for reaper in &reapers {
            let refusal = reaper.store.adopt(run, reaper.session).await.expect_err("its owner lives");
            assert!(matches!(refusal, Error::Owned { .. }), "{refusal}");
        }
        drop(dying);
        let (one, two, three) =
            tokio::join!(reapers[0].store.reap(), reapers[1].store.reap(), reapers[2].store.reap());
        let all = [one.expect("an answer"), two.expect("an answer"), three.expect("an answer")];
        let nodes: usize = all.iter().map(|reaped| reaped.nodes.len()).sum();
        let tasks: usize = all.iter().map(|reaped| reaped.tasks).sum();
        assert_eq!((nodes, tasks), (1, 3), "round {round}: {all:?}");
        audit::check(&*reapers[0].store, run).await;
        let lost = reapers[0].task(run, "s0").await.lost;
        assert_eq!(lost, 1);
    }
}

async fn run_is_not_adopted_while_its_owner_lives(place: Place) {
    let (owner, other) = (place.node("owner:1").await, place.node("other:2").await);
    let run = owner.submit(&flat(1, 1)).await;
    let refusal = other.store.adopt(run, other.session).await.expect_err("its owner lives");
    assert!(matches!(&refusal, Error::Owned { node, .. } if node == "owner:1"), "{refusal}");
    owner.store.adopt(run, owner.session).await.expect("its owner may ask again");
    assert_eq!(other.view(run).await.owner.as_deref(), Some("owner:1"));
}

async fn run_of_a_dead_owner_is_adopted(place: Place) {
    let (owner, heir) = (place.node("owner").await, place.node("heir").await);
    let run = owner.submit(&flat(1, 1)).await;
    let refusal = heir.store.adopt(run, heir.session).await.expect_err("its owner lives");
    assert!(matches!(refusal, Error::Owned { .. }), "{refusal}");
    drop(owner);
    let view = heir.view(run).await;
    assert!(view.is_interrupted);
    assert_eq!(view.owner, None);
    heir.store.adopt(run, heir.session).await.expect("its owner is gone, whoever reaps it");
    audit::check(&*heir.store, run).await;
    let view = heir.view(run).await;
    assert!(!view.is_interrupted);
    assert_eq!(view.owner.as_deref(), Some("heir"));
    let events = heir.events(run).await;
    assert!(events.iter().any(|event| event.fact.name() == "run_adopted"));
    heir.work(run, |_| succeeded()).await;
    assert_eq!(heir.status(run).await, RunStatus::Succeeded);
}

async fn ended_run_is_not_adopted(place: Place) {
    let (owner, heir) = (place.node("owner").await, place.node("heir").await);
    let run = owner.submit(&flat(1, 1)).await;
    owner.work(run, |_| succeeded()).await;
    let refusal = heir.store.adopt(run, heir.session).await.expect_err("it has ended");
    assert!(matches!(refusal, Error::Ended { .. }), "{refusal}");
    heir.retry(run, Some("s0")).await.expect("a retry");
    heir.store.adopt(run, heir.session).await.expect("a run that was opened again belongs to nobody");
}

async fn retired_session_returns_what_it_held(place: Place) {
    let (leaving, node) = (place.node("leaving").await, place.node("one").await);
    let run = leaving.submit(&flat(2, 2)).await;
    let held = leaving.begin(run, "s0").await;
    leaving.store.retire(leaving.session, left()).await.expect("a session that can end");
    audit::check(&*node.store, run).await;
    assert_eq!(node.tasks(run).await, "s0 available, s1 available");
    assert_eq!(leaving.start(&held).await, Fate::ClaimLost);
    node.store.adopt(run, node.session).await.expect("a run whose owner has left");
    assert_eq!(reap(&node, run).await.nodes, Vec::<String>::new(), "there is nothing left to reap");
    leaving.store.retire(leaving.session, left()).await.expect("leaving twice does nothing");
}

async fn result_that_arrives_before_anybody_reaped_is_good(place: Place) {
    // The session's lock is gone, its row is not: the fence does not ask whether the holder lives.
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(1, 1)).await;
    let held = dying.begin(run, "s0").await;
    drop(dying);
    assert_eq!(node.finish(&held, succeeded()).await, Fate::Recorded);
    assert_eq!(reap(&node, run).await.tasks, 0);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn dead_session_is_not_reaped_before_its_warden_has_ended(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(1, 1)).await;
    dying.begin(run, "s0").await;
    let warden = File::create(warden_lock(node.store.dir(), dying.session)).expect("a lock file");
    warden.try_lock().expect("nobody else has it");
    drop(dying);
    let mut reaping = std::pin::pin!(reap(&node, run));
    let patience = std::time::Duration::from_millis(100);
    assert!(tokio::time::timeout(patience, &mut reaping).await.is_err(), "steps of it may still run");
    assert_eq!(node.tasks(run).await, "s0 running");
    drop(warden);
    assert_eq!(reaping.await.tasks, 1);
    assert_eq!(node.tasks(run).await, "s0 available");
}

async fn files_of_a_dead_session_go_with_it(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(1, 1)).await;
    let (ours, theirs) = [&node, &dying].map(|node| scratch_dir(node.store.dir(), node.session)).into();
    for dir in [&ours, &theirs] {
        std::fs::create_dir_all(dir).expect("a directory");
        std::fs::write(dir.join("script"), "true").expect("a file");
    }
    drop(dying);
    reap(&node, run).await;
    assert!(ours.exists() && !theirs.exists());
    let left = std::fs::read_dir(node.store.dir().join("sessions")).expect("files of sessions").count();
    assert_eq!(left, 2, "the lock and the lease of the session that lives");
}

async fn files_of_a_session_that_died_between_lock_and_row_are_swept(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let sessions = node.store.dir().join("sessions");
    let name = |end: u32| sessions.join(format!("01a1e22b-0000-7000-8000-00000000000{end}.lock"));
    let beginning = File::create(name(1)).expect("a lock file");
    beginning.try_lock().expect("nobody else has it");
    File::create(name(2)).expect("a lock file");
    reap(&node, run).await;
    assert!(name(1).exists(), "whoever holds the lock is about to write its row");
    assert!(!name(2).exists(), "nobody will ever write that row");
}

/// Names the store to the process that is going to be killed.
const VICTIM: &str = "LANEWAY_TEST_VICTIM";

#[test]
fn killed_process_loses_what_it_held() {
    if let Some(path) = std::env::var_os(VICTIM) {
        return live_until_killed(std::path::PathBuf::from(path));
    }
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("heir").await;
        let mut victim = command(std::env::current_exe().expect("this program"))
            .args(["--exact", "lives::killed_process_loses_what_it_held", "--nocapture"])
            .env(VICTIM, place.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let out = BufReader::new(victim.stdout.take().expect("its output"));
        let line =
            out.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("holds ").map(RunId::parse));
        let run = line.flatten().expect("the victim says which run it holds");
        assert_eq!(reap(&node, run).await.nodes, Vec::<String>::new(), "it lives");
        let refusal = node.store.adopt(run, node.session).await.expect_err("it lives");
        assert!(matches!(&refusal, Error::Owned { node, .. } if node == "victim"), "{refusal}");
        victim.kill().expect("a process that can be killed");
        victim.wait().expect("its end");
        let reaped = reap(&node, run).await;
        assert_eq!((reaped.nodes, reaped.tasks), (vec!["victim".to_owned()], 2));
        assert_eq!(node.task(run, "s0").await.lost, 1);
        node.store.adopt(run, node.session).await.expect("its owner is gone");
        assert_eq!(node.work(run, |_| succeeded()).await, ["s0", "s1", "s2"], "who was lost keeps its place");
        assert_eq!(node.task(run, "s0").await.reason, None::<Reason>);
    });
}

#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn live_until_killed(path: std::path::PathBuf) {
    block_on(async {
        let store = laneway_store::open(&path.display().to_string(), laneway_store::Open::Existing);
        let node = Node::register(store.expect("a store"), "victim").await;
        let run = node.submit(&flat(3, 3)).await;
        node.begin(run, "s0").await;
        node.take(run, 1).await;
        println!("holds {run}");
        std::future::pending::<()>().await;
    });
}
