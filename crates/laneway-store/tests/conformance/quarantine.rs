//! What cannot be read: the run is set aside with a report, everybody else goes on, nothing is lost, and it comes
//! back once it is mended. Every kind of row is damaged here, beneath the verbs.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_store::child::Wanting;
use laneway_store::model::{About, Ask, Finished, RunFilter, Severity};
use laneway_store::{ClaimRef, Error, Fate, Store};
use rusqlite::Connection;

use crate::audit;
use crate::harness::{Database, Node, Place, block_on, flat, flow, for_each_database, succeeded};
use crate::server;

/// The oldest run, in statements.
const VICTIM: &str = "(SELECT min(no) FROM runs)";

struct Damage {
    what: &'static str,
    harm: &'static str,
    mend: &'static str,
}

/// Of this one Postgres has no kind: it looks at texts before it keeps them.
const NO_TEXT: &str = "a text that is none";

/// Met when a dead session's task is returned.
const DAMAGES: &[Damage] = &[
    Damage {
        what: "status of a run",
        harm: "UPDATE runs SET status = 'wild' WHERE no = @V",
        mend: "UPDATE runs SET status = 'running' WHERE no = @V",
    },
    Damage {
        what: "params of a run",
        harm: "UPDATE runs SET params = '{' WHERE no = @V",
        mend: "UPDATE runs SET params = '{}' WHERE no = @V",
    },
    Damage {
        what: NO_TEXT,
        harm: "UPDATE runs SET reason = CAST(x'ff00ff' AS TEXT) WHERE no = @V",
        mend: "UPDATE runs SET reason = NULL WHERE no = @V",
    },
    Damage {
        what: "number of the last event",
        harm: "UPDATE runs SET last_event = -last_event WHERE no = @V",
        mend: "UPDATE runs SET last_event = -last_event WHERE no = @V",
    },
    Damage {
        what: "id of a run",
        harm: "UPDATE runs SET id = 'x' || id WHERE no = @V",
        mend: "UPDATE runs SET id = substr(id, 2) WHERE no = @V",
    },
    Damage {
        what: "request to stop a task",
        harm: "UPDATE tasks SET stop = 'wild' WHERE run_no = @V AND position = 0",
        mend: "UPDATE tasks SET stop = NULL WHERE run_no = @V AND position = 0",
    },
    Damage {
        what: "attempt of a task",
        harm: "UPDATE tasks SET attempt = -5 WHERE run_no = @V AND position = 0",
        mend: "UPDATE tasks SET attempt = 1 WHERE run_no = @V AND position = 0",
    },
    Damage {
        what: "position of a task",
        harm: "UPDATE tasks SET position = 77 WHERE run_no = @V AND position = 0",
        mend: "UPDATE tasks SET position = 0 WHERE run_no = @V AND position = 77",
    },
    Damage {
        what: "document that is none",
        harm: "UPDATE workflows SET document = replace(document, 'steps', '][') WHERE name = 'victim'",
        mend: "UPDATE workflows SET document = replace(document, '][', 'steps') WHERE name = 'victim'",
    },
    Damage {
        what: "document that is another",
        harm: "UPDATE workflows SET document = replace(document, 'true', 'false') WHERE name = 'victim'",
        mend: "UPDATE workflows SET document = replace(document, 'false', 'true') WHERE name = 'victim'",
    },
    Damage {
        what: "event in the place of the next",
        harm: "INSERT INTO events SELECT run_no, max(seq) + 1, 0, 'x', 1, '{}' FROM events WHERE run_no = @V GROUP BY run_no",
        mend: "DELETE FROM events WHERE run_no = @V AND name = 'x'",
    },
    Damage {
        what: "attempt in the place of the one that ends",
        harm: "INSERT INTO attempts (run_no, position, attempt, session, node, outcome, finished_at) VALUES (@V, 0, 1, '', '', 'wild', 0)",
        mend: "DELETE FROM attempts WHERE run_no = @V AND outcome = 'wild'",
    },
];

/// Met when a task ends.
const MET_LATER: &[Damage] = &[
    Damage {
        what: "countdown of a step",
        harm: "UPDATE needs_sets SET succeeded = -1 WHERE run_no = @V",
        mend: "UPDATE needs_sets SET succeeded = 0 WHERE run_no = @V",
    },
    Damage {
        what: "countdown that is gone",
        harm: "DELETE FROM needs_sets WHERE run_no = @V",
        mend: "INSERT INTO needs_sets VALUES (@V, 0, 1, 0, 0, 0)",
    },
];

/// Those that this database can have.
fn damages(database: Database) -> impl Iterator<Item = &'static Damage> {
    DAMAGES.iter().filter(move |damage| database == Database::Sqlite || damage.what != NO_TEXT)
}

fn change(place: &Place, sql: &str) {
    let connection = Connection::open(place.path()).expect("the file");
    connection.pragma_update(None, "ignore_check_constraints", true).expect("a setting");
    connection.pragma_update(None, "foreign_keys", false).expect("a setting");
    let changed = connection.execute(&sql.replace("@V", VICTIM), []);
    assert_eq!(changed.expect("a statement"), 1, "{sql}");
}

/// What keeps Postgres from a damage is taken away first.
const UNGUARD: &str = "DO $$ DECLARE guard record; BEGIN
    FOR guard IN SELECT conrelid::regclass AS whose, conname FROM pg_constraint
                 WHERE contype IN ('c', 'f') AND connamespace = current_schema()::regnamespace
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', guard.whose, guard.conname); END LOOP; END $$";

/// The same on whichever database.
pub(crate) async fn alter(place: &Place, store: &dyn Store, sql: &str) {
    let Some(beneath) = server::beneath(store.dir()).await else { return change(place, sql) };
    beneath.batch_execute(UNGUARD).await.expect("no guards");
    let changed = beneath.execute(&sql.replace("@V", VICTIM), &[]).await;
    assert_eq!(changed.expect("a statement"), 1, "{sql}");
}

fn victim() -> String {
    flow("max_parallel: 1", &[("a", "retry: {max: 1, backoff: 1m}"), ("b", "needs: [a]")])
        .replace("name: flow", "name: victim")
}

pub(crate) async fn problems(store: &dyn Store) -> Vec<String> {
    let examination = store.examine(usize::MAX).await.expect("an answer");
    let problems = examination.findings.into_iter().filter(|finding| finding.severity == Severity::Problem);
    problems.map(|finding| format!("{}: {}", finding.subject, finding.what)).collect()
}

/// Works on a run of its own, as anybody would.
async fn works(node: &Node) {
    let run = node.submit(&flat(3, 2)).await;
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn refusal(node: &Node, run: RunId) -> Error {
    node.store.adopt(run, node.session).await.expect_err("it is set aside")
}

for_each_database! { by name:
    whatever_cannot_be_read_of_a_dead_sessions_run_sets_it_aside_and_stops_nobody,
    whatever_cannot_be_read_of_a_run_that_is_held_stops_neither_its_holder_nor_others,
    whatever_cannot_be_read_of_a_run_that_waits_stops_neither_nodes_nor_others,
    history_with_a_hole_sets_its_run_aside_when_somebody_asks,
    what_stands_nowhere_in_a_plan_is_told_in_words,
    run_that_waits_for_one_that_cannot_be_read_can_be_looked_at,
}

fn whatever_cannot_be_read_of_a_dead_sessions_run_sets_it_aside_and_stops_nobody(database: Database) {
    for damage in damages(database) {
        block_on(sets_aside(&Place::new(database), damage));
    }
}

fn whatever_cannot_be_read_of_a_run_that_is_held_stops_neither_its_holder_nor_others(database: Database) {
    for damage in damages(database).chain(MET_LATER) {
        block_on(stops_no_holder(&Place::new(database), damage));
    }
}

fn whatever_cannot_be_read_of_a_run_that_waits_stops_neither_nodes_nor_others(database: Database) {
    for damage in damages(database).chain(MET_LATER) {
        block_on(stops_no_taker(&Place::new(database), damage));
    }
}

/// Everything that a loop says to the store without having been asked, and what people look at to see how it goes.
async fn look_around(node: &Node, what: &str) {
    node.renew().await.unwrap_or_else(|error| panic!("{what}: renew: {error}"));
    node.store.orders(node.session).await.unwrap_or_else(|error| panic!("{what}: orders: {error}"));
    node.store.promote().await.unwrap_or_else(|error| panic!("{what}: promote: {error}"));
    node.store.reap().await.unwrap_or_else(|error| panic!("{what}: reap: {error}"));
    let nodes = node.store.nodes(9).await.unwrap_or_else(|error| panic!("{what}: nodes: {error}"));
    assert!(nodes.iter().any(|view| view.session == node.session), "{what}: who looks is among them");
    node.store.overview().await.unwrap_or_else(|error| panic!("{what}: overview: {error}"));
}

/// Takes, starts and ends whatever comes, as a node does.
async fn work_off(node: &Node, what: &str) {
    let ask = Ask { session: node.session, run: None, limit: 4, ahead: 0 };
    loop {
        look_around(node, what).await;
        let claims = node.store.claim(ask.clone()).await;
        let claims = claims.unwrap_or_else(|error| panic!("{what}: claim: {error}"));
        if claims.is_empty() {
            return;
        }
        let at: Vec<ClaimRef> = claims.iter().map(|claim| claim.at).collect();
        let names = claims.iter().map(|claim| claim.head.plan.task_name(claim.at.position));
        assert!(names.count() > 0, "{what}: each has a name");
        node.store.start(at.clone()).await.unwrap_or_else(|error| panic!("{what}: start: {error}"));
        end_all(node, &at, what).await;
    }
}

async fn end_all(node: &Node, claims: &[ClaimRef], what: &str) -> Vec<Fate> {
    let end = |claim: &ClaimRef| Finished::new(*claim, succeeded(), Duration::ZERO);
    let ask = Ask { session: node.session, run: None, limit: 0, ahead: 0 };
    let answer = node.store.finish(claims.iter().map(end).collect(), Some(ask)).await;
    answer.unwrap_or_else(|error| panic!("{what}: finish: {error}")).fates
}

/// The victim has ended, or is set aside and reported; nobody else is.
async fn nobody_else_is_set_aside(node: &Node, (victim, other): (RunId, RunId), what: &str) {
    assert_eq!(node.status(other).await, RunStatus::Succeeded, "{what}");
    let found = node.store.examine(usize::MAX).await.expect("an answer").findings;
    let aside = found.iter().filter(|finding| finding.about == About::Quarantine).count();
    let listed = node.store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("a list");
    let of = |run: RunId| listed.iter().find(|summary| summary.run == run);
    assert!(of(other).is_some_and(|other| other.set_aside.is_none()), "{what}");
    // What has another id is not listed under its own.
    if let Some(victim) = of(victim) {
        assert_eq!(aside, usize::from(victim.set_aside.is_some()), "{what}: {found:#?}");
        assert!(
            victim.set_aside.is_some() || victim.status.is_some_and(RunStatus::is_final),
            "{what}: {:?}",
            victim.status
        );
    }
}

async fn stops_no_holder(place: &Place, damage: &Damage) {
    let what = damage.what;
    let node = Node::worker(place.open(), "one", &[]).await;
    let victim = node.share(&victim()).await;
    let other = node.share(&flat(3, 2)).await;
    let held = node.take_any(2).await;
    assert_eq!(held.iter().map(|held| held.at.run).collect::<Vec<_>>(), [victim, other]);
    for held in &held {
        node.start(held).await;
    }
    alter(place, &*node.store, damage.harm).await;
    let second = Node::worker(place.open(), "two", &[]).await;
    look_around(&node, what).await;
    look_around(&second, what).await;
    let claims: Vec<ClaimRef> = held.iter().map(|held| held.at).collect();
    assert_eq!(end_all(&node, &claims, what).await[1], Fate::Recorded, "{what}");
    work_off(&second, what).await;
    work_off(&node, what).await;
    nobody_else_is_set_aside(&node, (victim, other), what).await;
}

async fn stops_no_taker(place: &Place, damage: &Damage) {
    let what = damage.what;
    let first = Node::register(place.open(), "one").await;
    let victim = first.share(&victim()).await;
    let other = first.share(&flat(3, 2)).await;
    alter(place, &*first.store, damage.harm).await;
    let node = Node::worker(place.open(), "two", &[]).await;
    work_off(&node, what).await;
    nobody_else_is_set_aside(&node, (victim, other), what).await;
}

async fn sets_aside(place: &Place, damage: &Damage) {
    let what = damage.what;
    let dying = place.node("dying").await;
    let run = dying.submit(&victim()).await;
    dying.begin(run, "a").await;
    let other = dying.submit(&flat(1, 1)).await;
    dying.begin(other, "s0").await;
    drop(dying);
    assert_eq!(problems(&*place.open()).await, Vec::<String>::new());
    let node = place.node("one").await;
    alter(place, &*node.store, damage.harm).await;
    assert!(!problems(&*node.store).await.is_empty(), "{what}: seen before anybody meets it");

    node.store.reap().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(node.store.reap().await.expect("an answer").nodes, Vec::<String>::new(), "{what}: done once");
    works(&node).await;
    node.store.adopt(other, node.session).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(node.work(other, |_| succeeded()).await, ["s0"], "{what}: what else it held goes on");
    assert_eq!(node.promote().await, None, "{what}: nobody is woken for it");
    let found = node.store.examine(usize::MAX).await.expect("an answer").findings;
    assert!(found.iter().any(|finding| finding.about == About::Quarantine), "{what}: {found:#?}");
    if what != "id of a run" {
        assert!(
            matches!(refusal(&node, run).await, Error::SetAside { .. } | Error::Unreadable { .. }),
            "{what}"
        );
        let listed = node.store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("a list");
        let listed = listed.iter().find(|summary| summary.run == run).expect("it is listed");
        assert!(listed.set_aside.is_some(), "{what}");
        let early = node.store.release(run).await.expect_err("nothing is mended yet");
        assert!(matches!(early, Error::Unreadable { .. } | Error::UnreadableEvent { .. }), "{what}: {early}");
    }

    // Another process, which has no plan on its shelf.
    alter(place, &*node.store, damage.mend).await;
    let later = place.node("later").await;
    later.store.release(run).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(problems(&*later.store).await, Vec::<String>::new(), "{what}");
    later.store.adopt(run, later.session).await.expect("it belongs to nobody");
    audit::check(&*later.store, run).await;
    assert_eq!(later.work(run, |_| succeeded()).await, ["a", "b"], "{what}");
    assert_eq!(later.status(run).await, RunStatus::Succeeded);
    assert_eq!(later.attempts(run, "a").await.len(), 2, "{what}: the first was lost with its node");
    let again = later.store.release(run).await.expect_err("it is out");
    assert!(matches!(again, Error::NotSetAside { .. }), "{again}");
}

#[test]
fn run_that_cannot_be_promoted_stops_neither_time_nor_others() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&victim()).await;
        let held = node.begin(run, "a").await;
        node.fail(&held).await;
        let other = node.submit(&flow("", &[("x", "retry: {max: 1, backoff: 1m}")])).await;
        let held = node.begin(other, "x").await;
        node.fail(&held).await;
        change(&place, "UPDATE tasks SET gate = 'run_at', retries = -4 WHERE run_no = @V AND position = 0");
        place.advance(Duration::from_secs(120));
        assert_eq!(node.promote().await, None, "nothing is left to wake up for");
        assert_eq!(node.work(other, |_| succeeded()).await, ["x"]);
        let ask = node.ask(run, 1);
        let refusal = node.store.claim(ask).await.expect_err("it is set aside");
        assert!(matches!(refusal, Error::SetAside { .. }), "{refusal}");
        assert!(refusal.is_about_the_store() && refusal.hint().is_some_and(|hint| hint.contains("doctor")));
    });
}

#[test]
fn holder_of_a_run_that_cannot_be_read_any_more_is_told_and_the_batch_goes_on() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&victim()).await;
        let other = node.submit(&flat(1, 1)).await;
        let (held, fine) = (node.begin(run, "a").await, node.begin(other, "s0").await);
        change(&place, "DELETE FROM needs_sets WHERE run_no = @V");
        let finished = |claim| vec![Finished::new(claim, succeeded(), Duration::ZERO)];
        let (lost, kept) = tokio::join!(
            node.store.finish(finished(held.at), None),
            node.store.finish(finished(fine.at), None)
        );
        assert_eq!(lost.expect("an answer").fates, [Fate::ClaimLost], "its countdown is gone");
        assert!(matches!(refusal(&node, run).await, Error::SetAside { .. }));
        assert_eq!(kept.expect("an answer").fates, [Fate::Recorded]);
        assert_eq!(node.task(run, "a").await.status.as_str(), "running", "nothing of it was changed");
        let view = node.view(run).await;
        assert!(view.set_aside.is_some_and(|found| found.what == "row"), "it can be looked at");
    });
}

#[test]
fn event_that_cannot_be_read_is_named_and_does_not_hide_the_others() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&flat(2, 2)).await;
        change(&place, "UPDATE events SET body = '{' WHERE run_no = @V AND seq = 2");
        let before = node.store.events_since(run, 0, 100).await.expect("what stands before it");
        assert_eq!(before.iter().map(|event| event.seq).collect::<Vec<_>>(), [1]);
        let error = node.store.events_since(run, 1, 100).await.expect_err("the second");
        assert!(matches!(error, Error::UnreadableEvent { seq: 2, .. }), "{error}");
        let behind = node.store.events_since(run, 2, 100).await.expect("what stands behind it");
        assert_eq!(behind.first().map(|event| event.seq), Some(3));
        // Work does not need what was told: the run goes on, and the report names the event.
        while let Some(claim) = node.store.claim(node.ask(run, 1)).await.expect("an answer").pop() {
            let finished = Finished::new(claim.at, succeeded(), Duration::ZERO);
            node.store.finish(vec![finished], None).await.expect("an answer");
        }
        assert_eq!(node.status(run).await, RunStatus::Succeeded);
        let found = problems(&*node.store).await;
        assert!(found.iter().any(|problem| problem.contains("event 2")), "{found:?}");
    });
}

#[test]
fn every_difference_between_rows_is_found() {
    let harms = [
        ("UPDATE runs SET unsettled = 7 WHERE no = @V", "unsettled"),
        ("UPDATE needs_sets SET succeeded = 0, failed = 1 WHERE run_no = @V", "needs set 0"),
        ("UPDATE tasks SET exit_code = 3 WHERE run_no = @V AND position = 1", "another state"),
        ("DELETE FROM events WHERE run_no = @V AND seq = 3", "event 4 stands where event 3 should"),
        ("DELETE FROM tasks WHERE run_no = @V AND position = 1", "2 steps, and 1 tasks"),
        ("UPDATE attempts SET outcome = 'wild' WHERE run_no = @V AND position = 0", "`wild`"),
        ("UPDATE tasks SET output = '[' WHERE run_no = @V AND position = 0", "output of a task"),
        ("INSERT INTO events VALUES (999, 1, 0, 'x', 1, '{}')", "belong to no run"),
        ("UPDATE runs SET version = 'gone' WHERE no = @V", "`gone`"),
    ];
    for (harm, said) in harms {
        let place = Place::new(Database::Sqlite);
        block_on(async {
            let node = place.node("one").await;
            let run = node.submit(&victim()).await;
            node.work(run, |_| succeeded()).await;
            drop(node);
            let store = place.open();
            assert_eq!(problems(&*store).await, Vec::<String>::new());
            change(&place, harm);
            let found = problems(&*store).await;
            assert!(found.iter().any(|problem| problem.contains(said)), "{harm}: {found:?}");
        });
    }
}

#[test]
fn files_of_runs_and_sessions_that_nobody_knows_are_noted() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&flat(1, 1)).await;
        node.begin(run, "s0").await;
        let dir = node.store.dir().to_owned();
        let stranger = "01890a5d-ac96-774b-bcce-b302099a8057";
        for name in [
            format!("logs/{stranger}"),
            format!("logs/{run}"),
            format!("scratch/{stranger}"),
            "logs/notes".to_owned(),
        ] {
            std::fs::create_dir_all(dir.join(name)).expect("a directory");
        }
        let found = node.store.examine(10).await.expect("an answer").findings;
        let subjects: Vec<&str> = found.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(subjects.len(), 2, "{subjects:?}");
        assert!(subjects.iter().all(|subject| subject.contains(stranger)), "{subjects:?}");
        assert!(found.iter().all(|finding| finding.severity == Severity::Note));
        let other = place.open();
        drop(node);
        let found = other.examine(10).await.expect("an answer").findings;
        assert!(
            found.iter().any(|finding| finding.about == About::Session && finding.what.contains("held 1")),
            "{found:#?}"
        );
    });
}

#[test]
fn copy_made_while_work_goes_on_is_whole_and_can_be_worked_on() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&flat(40, 4)).await;
        let elsewhere = tempfile::tempdir().expect("a directory");
        let path = |round: usize| elsewhere.path().join(round.to_string()).join("laneway.db");
        for round in 0..5 {
            std::fs::create_dir(elsewhere.path().join(round.to_string())).expect("a directory");
        }
        let working = async {
            while node.status(run).await == RunStatus::Running {
                for held in node.take(run, 4).await {
                    node.succeed(&held).await;
                }
            }
        };
        let copying = async {
            for round in 0..5 {
                node.store.backup(&path(round)).await.expect("a copy");
            }
        };
        tokio::join!(working, copying);
        for round in 0..5 {
            let copy: Arc<dyn Store> = Arc::new(
                laneway_store::sqlite::SqliteStore::open(&path(round), laneway_store::Open::Existing)
                    .expect("a store"),
            );
            assert_eq!(problems(&*copy).await, Vec::<String>::new());
            let second = Node::register(copy, "two").await;
            second.store.reap().await.expect("an answer");
            if second.status(run).await == RunStatus::Running {
                second.store.adopt(run, second.session).await.expect("its owner lives elsewhere");
                second.work(run, |_| succeeded()).await;
            }
            assert_eq!(second.status(run).await, RunStatus::Succeeded);
        }
        let refusal = node.store.backup(&path(0)).await.expect_err("it is there");
        assert!(matches!(refusal, Error::Exists { .. }), "{refusal}");
        let beside = std::fs::read_dir(elsewhere.path().join("0")).expect("a list").flatten();
        let mut parts = beside.filter(|entry| entry.file_name().to_string_lossy().contains(".part"));
        assert!(parts.next().is_none(), "nothing is left of the making");
    });
}

/// Histories that nobody stumbles over: they are only written, until somebody replays one.
const HISTORIES: &[(&str, &str)] = &[
    ("corrupt", "UPDATE events SET body = '{' WHERE run_no = @V AND seq = 2"),
    (
        "truncated",
        "DELETE FROM events WHERE run_no = @V AND seq = (SELECT max(seq) FROM events WHERE run_no = @V)",
    ),
    ("with a hole", "DELETE FROM events WHERE run_no = @V AND seq = 3"),
    ("of another kind", "UPDATE events SET name = 'task_teleported' WHERE run_no = @V AND seq = 3"),
    ("of another version", "UPDATE events SET version = 9 WHERE run_no = @V AND seq = 3"),
    ("changed", "UPDATE events SET body = replace(body, '\"a\"', '\"b\"') WHERE run_no = @V AND seq = 3"),
];

#[test]
fn run_whose_history_is_wrong_is_found_and_can_be_set_aside() {
    for (how, harm) in HISTORIES {
        let place = Place::new(Database::Sqlite);
        block_on(async {
            let node = place.node("one").await;
            let run = node.submit(&victim()).await;
            node.begin(run, "a").await;
            assert_eq!(node.store.set_aside(run).await.expect("an answer"), None, "nothing is wrong yet");
            change(&place, harm);
            assert!(!problems(&*node.store).await.is_empty(), "{how}: it is found");
            let why = node.store.set_aside(run).await.expect("an answer");
            assert!(why.is_some(), "{how}");
            works(&node).await;
            let ask = node.ask(run, 1);
            let refusal = node.store.claim(ask).await.expect_err("it is set aside");
            assert!(matches!(refusal, Error::SetAside { .. }), "{how}: {refusal}");
        });
    }
}

#[test]
fn run_whose_events_have_changed_places_is_found_and_can_be_set_aside() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&victim()).await;
        node.begin(run, "a").await;
        for (from, to) in [(2, 77), (3, 2), (77, 3)] {
            change(&place, &format!("UPDATE events SET seq = {to} WHERE run_no = @V AND seq = {from}"));
        }
        let why = node.store.set_aside(run).await.expect("an answer");
        assert!(why.is_some_and(|why| why.contains("event 2")), "it says where");
        assert!(matches!(refusal(&node, run).await, Error::SetAside { .. }));
    });
}

fn history_with_a_hole_sets_its_run_aside_when_somebody_asks(database: Database) {
    block_on(history_with_a_hole(Place::new(database)));
}

async fn history_with_a_hole(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&victim()).await;
    node.begin(run, "a").await;
    assert_eq!(node.store.set_aside(run).await.expect("an answer"), None);
    match server::beneath(node.store.dir()).await {
        Some(beneath) => {
            let gone = beneath.execute("DELETE FROM events WHERE seq = 3", &[]).await.expect("a statement");
            assert_eq!(gone, 1);
        }
        None => change(&place, "DELETE FROM events WHERE run_no = @V AND seq = 3"),
    }
    let why = node.store.set_aside(run).await.expect("an answer").expect("something is wrong");
    assert!(why.contains("event"), "{why}");
    let refused = node.store.claim(node.ask(run, 1)).await;
    assert!(matches!(refused, Err(Error::SetAside { .. })), "{refused:?}");
    let early = node.store.release(run).await.expect_err("nothing is mended");
    assert!(matches!(early, Error::Unreadable { .. } | Error::UnreadableEvent { .. }), "{early}");
}

/// Rows that nobody works on are shown as they are: they name a position that the plan of their run does not have.
fn what_stands_nowhere_in_a_plan_is_told_in_words(database: Database) {
    block_on(stands_nowhere(&Place::new(database)));
}

async fn stands_nowhere(place: &Place) {
    let node = place.node("one").await;
    let run = node.submit(&victim()).await;
    let held = node.begin(run, "a").await;
    node.succeed(&held).await;
    let hash = "0".repeat(64);
    let is_executable = if place.database == Database::Sqlite { "0" } else { "false" };
    for harm in [
        format!("INSERT INTO artifacts VALUES (@V, 77, 1, 'left.txt', '{hash}', 1, {is_executable})"),
        "INSERT INTO wanted_runs (run_no, position, life, workflow, params) VALUES (@V, 77, 1, 'flow', '{}')"
            .to_owned(),
        "UPDATE tasks SET position = 77 WHERE run_no = @V AND position = 0".to_owned(),
    ] {
        alter(place, &*node.store, &harm).await;
    }
    let artifacts = node.store.artifacts(run).await.expect("a list");
    assert_eq!(artifacts.iter().map(|left| left.step.as_str()).collect::<Vec<_>>(), ["position 77"]);
    let wanted = node.store.wanted_runs(Wanting::first(node.session, 10)).await.expect("a list");
    assert!(wanted.runs.is_empty(), "it is started for nobody: {wanted:?}");
    let found = problems(&*node.store).await;
    assert!(found.iter().any(|problem| problem.contains("`position 77`")), "{found:?}");
    works(&node).await;
}

fn run_that_waits_for_one_that_cannot_be_read_can_be_looked_at(database: Database) {
    block_on(waits_for_what_cannot_be_read(&Place::new(database)));
}

async fn waits_for_what_cannot_be_read(place: &Place) {
    let node = place.node("one").await;
    let victim = node.submit(&flow("", &[("a", "lock: db")]).replace("name: flow", "name: victim")).await;
    node.begin(victim, "a").await;
    let other = node.submit(&flow("", &[("b", "lock: db")])).await;
    let harm = "UPDATE workflows SET document = replace(document, 'steps', '][') WHERE name = 'victim'";
    alter(place, &*node.store, harm).await;
    // Another process, which has no plan on its shelf.
    let later = place.node("later").await;
    let why = later.why(other, "b").await;
    assert!(why.contains(&victim.short()), "it says who holds it: {why}");
}
