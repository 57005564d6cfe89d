//! Many promoters on Postgres at once: what is counted is counted behind the lock, one that dies
//! half-way leaves nothing, and those who meet on crossing ways are parted without anybody
//! noticing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use laneway_core::class::Offer;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_store::model::{Ask, CancelMode, Finished, NewSession, Pausable, RunFilter};
use laneway_store::postgres::PostgresStore;
use laneway_store::{Fate, Open, Store};
use serde_json::json;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::audit;
use crate::harness::{Node, TOOK, block_on, flow, submission, succeeded};
use crate::line::{Cut, Proxy};
use crate::server::Schema;
use crate::statements;

const SOON: Duration = Duration::from_secs(20);

/// How long the crowds work.
const A_WHILE: Duration = Duration::from_secs(3);

/// A connection that holds the row of a key.
struct Blocker {
    client: Client,
    pid: i32,
}

impl Blocker {
    /// Takes the key's lock, and what else it does comes to light when it lets go.
    async fn take(schema: &Schema, key: &str) -> Self {
        let client = schema.beneath().await;
        client
            .execute("INSERT INTO keys (name) VALUES ($1) ON CONFLICT DO NOTHING", &[&key])
            .await
            .expect("a key");
        Self::holding(client, &format!("SELECT 1 FROM keys WHERE name = '{key}' FOR UPDATE")).await
    }

    /// Holds whatever this locks.
    async fn holding(client: Client, locks: &str) -> Self {
        client.batch_execute("BEGIN").await.expect("a transaction");
        client.batch_execute(locks).await.expect("its lock");
        let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
        Self { client, pid }
    }

    /// Until somebody waits for it; gives that one's number.
    async fn waiter(&self, schema: &Schema) -> i32 {
        let look = schema.beneath().await;
        let who = "SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        let waits = async {
            loop {
                if let Some(found) = look.query_opt(who, &[&self.pid]).await.expect("an answer") {
                    return found.get(0);
                }
            }
        };
        timeout(SOON, waits).await.expect("somebody waits for the lock")
    }

    async fn end(self, word: &str) {
        self.client.batch_execute(word).await.expect("its end");
    }
}

#[test]
fn holders_are_counted_behind_the_wait_for_the_key() {
    for (key, wants) in [("lock:db", "lock: db"), ("limit:w", "limits: [w]")] {
        block_on(async {
            let schema = Schema::new();
            let node = Node::register(Arc::new(schema.open()), "one").await;
            let head = "limits: {w: 1}";
            let other = node.submit(&flow(head, &[("z", "")])).await;
            let blocker = Blocker::take(&schema, key).await;
            let holds = "INSERT INTO holds SELECT $1, no, 0 FROM runs WHERE id = $2";
            blocker.client.execute(holds, &[&key, &other.to_string()]).await.expect("a holder");
            let (promoter, text) = (node.clone(), flow(head, &[("a", wants)]));
            let promoter = tokio::spawn(async move {
                promoter.store.submit(submission(&text, json!({}), promoter.session)).await.expect("a run")
            });
            blocker.waiter(&schema).await;
            blocker.end("COMMIT").await;
            let run = promoter.await.expect("no panic");
            assert_eq!(node.tasks(run).await, "a pending", "{key} was taken while it waited for the lock");
        });
    }
}

/// A node whose engine answers, or does not.
async fn host(schema: &Schema, answers: bool) -> Node {
    let offer =
        Offer { node: "one".to_owned(), has_process: true, has_container: answers, ..Offer::default() };
    let session = NewSession { offer: Some(offer), ..NewSession::ephemeral("one", 8) };
    Node::join(Arc::new(schema.open()), session).await
}

#[test]
fn lease_is_renewed_while_the_runs_that_waited_for_an_engine_are_let_go() {
    block_on(async {
        let schema = Schema::new();
        let node = host(&schema, false).await;
        let run = node.share(&flow("", &[("a", "image: 'busybox:1'")])).await;
        let locks = format!("SELECT 1 FROM runs WHERE id = '{run}' FOR UPDATE");
        let blocker = Blocker::holding(schema.beneath().await, &locks).await;
        let (store, session) = (Arc::clone(&node.store), node.session);
        let offering = tokio::spawn(async move { store.offer_containers(session, true).await });
        let pid = blocker.waiter(&schema).await;
        timeout(SOON, node.renew()).await.expect("nobody waits for the runs").expect("it lives");
        let beneath = schema.beneath().await;
        beneath.query("SELECT pg_terminate_backend($1)", &[&pid]).await.expect("its end");
        let error = offering.await.expect("no panic").expect_err("its connection is gone");
        assert!(error.is_passing(), "{error:?}");
        blocker.end("ROLLBACK").await;
        assert_eq!(node.tasks(run).await, "a pending");
        node.store.offer_containers(session, true).await.expect("said again");
        assert_eq!(node.tasks(run).await, "a available", "the rest is made up for");
    });
}

#[test]
fn class_that_is_made_while_an_engine_goes_is_not_taken() {
    block_on(async {
        let schema = Schema::new();
        let node = host(&schema, true).await;
        // As one who submits does, with the offer as it was.
        let locks = statements::postgres::statement!("classes_lock");
        let blocker = Blocker::holding(schema.beneath().await, locks).await;
        let (store, session) = (Arc::clone(&node.store), node.session);
        let offering = tokio::spawn(async move { store.offer_containers(session, false).await });
        blocker.waiter(&schema).await;
        let made = format!("INSERT INTO takers (class, session) VALUES (4711, '{session}')");
        blocker.client.batch_execute(&made).await.expect("a taker");
        blocker.end("COMMIT").await;
        offering.await.expect("no panic").expect("a session");
        let left = "SELECT count(*) FROM takers WHERE class = 4711";
        let left: i64 = schema.beneath().await.query_one(left, &[]).await.expect("a number").get(0);
        assert_eq!(left, 0, "it takes what it cannot run");
    });
}

/// Both documents are the first to declare the limits; the second one names them the other way
/// round.
#[test]
fn documents_that_declare_the_same_limits_wait_for_each_other_in_one_order() {
    block_on(async {
        let schema = Schema::new();
        let node = Node::register(Arc::new(schema.open()), "one").await;
        let declares = |limits: &str| {
            let (node, text) =
                (node.clone(), flow(&format!("limits: {{{limits}}}"), &[("a", "limits: [x, y]")]));
            tokio::spawn(async move {
                node.store.submit(submission(&text, json!({}), node.session)).await.expect("a run")
            })
        };
        let declared = "INSERT INTO limits (name, value, set_by, set_at) VALUES ('y', '1', 'ada', 0)";
        let blocker = Blocker::holding(schema.beneath().await, declared).await;
        let one = declares("x: 1, y: 1");
        let first = blocker.waiter(&schema).await;
        let other = declares("y: 1, x: 1");
        let look = schema.beneath().await;
        let waits_for = "SELECT pg_blocking_pids(pid) FROM pg_stat_activity
                         WHERE pid <> $1 AND ARRAY[$1, $2] && pg_blocking_pids(pid)";
        let second = async {
            loop {
                if let Some(found) =
                    look.query_opt(waits_for, &[&first, &blocker.pid]).await.expect("an answer")
                {
                    return found.get::<_, Vec<i32>>(0);
                }
            }
        };
        let second = timeout(SOON, second).await.expect("the second one waits");
        assert_eq!(second, [first], "it waits for x, and holds nothing that the first one needs");
        blocker.end("ROLLBACK").await;
        for run in [one.await.expect("no panic"), other.await.expect("no panic")] {
            assert_ne!(node.status(run).await, RunStatus::Failed);
        }
    });
}

/// The server ends the transaction of a verb in favour of another one that waits for it.
#[test]
fn verb_that_the_server_ends_in_a_deadlock_succeeds_and_its_caller_sees_nothing() {
    block_on(async {
        let schema = Schema::new();
        let node = Node::register(Arc::new(schema.open()), "one").await;
        let run = node
            .submit(&flow("", &[("a", ""), ("b", "needs: [a], lock: p"), ("c", "needs: [a], lock: q")]))
            .await;
        let held = node.begin(run, "a").await;
        let first = Blocker::take(&schema, "lock:p").await;
        let second = Blocker::take(&schema, "lock:q").await;
        // Only the verb looks for deadlocks.
        second.client.batch_execute("SET deadlock_timeout = '1h'").await.expect("a setting");
        let (store, at) = (Arc::clone(&node.store), held.at);
        let finishing =
            tokio::spawn(async move { store.finish(vec![Finished::new(at, succeeded(), TOOK)], None).await });
        let verb = first.waiter(&schema).await;
        // It holds the run, and goes on to the second key, whose holder waits for the run.
        let crossing = format!("SELECT 1 FROM runs WHERE id = '{run}' FOR UPDATE");
        let look = schema.beneath().await;
        let crosses = async {
            let waits = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND $2 = ANY (pg_blocking_pids(pid))";
            while look.query(waits, &[&second.pid, &verb]).await.expect("an answer").is_empty() {}
            first.end("ROLLBACK").await;
        };
        let (crossed, ()) =
            timeout(SOON, async { tokio::join!(second.client.batch_execute(&crossing), crosses) })
                .await
                .expect("the server ends one of them");
        crossed.expect("the verb's transaction was ended, and its lock of the run with it");
        second.end("ROLLBACK").await;
        let answer = timeout(SOON, finishing).await.expect("it is said again").expect("no panic");
        assert_eq!(answer.expect("the caller sees nothing").fates, [Fate::Recorded]);
        assert_eq!(node.tasks(run).await, "a succeeded, b available, c available");
        audit::check(&*node.store, run).await;
    });
}

/// A node that dies between the commit that frees a key and the transaction that hands it on.
#[test]
fn key_that_a_dead_process_freed_is_handed_on_by_the_sweep_and_never_overtaken() {
    block_on(async {
        let schema = Schema::new();
        let node = Node::register(Arc::new(schema.open()), "one").await;
        let one = node.submit(&flow("", &[("a", "lock: db"), ("b", "needs: [a]")])).await;
        let two = node.submit(&flow("", &[("c", "lock: db")])).await;
        let held = node.begin(one, "a").await;
        let blocker = Blocker::take(&schema, "lock:db").await;
        // A process of its own: with it goes what it remembers.
        let (dying, at): (Arc<dyn Store>, _) = (Arc::new(schema.open()), held.at);
        let finishing =
            tokio::spawn(async move { dying.finish(vec![Finished::new(at, succeeded(), TOOK)], None).await });
        // It has committed the end of its task, and is about to hand the key on.
        let pid = blocker.waiter(&schema).await;
        finishing.abort();
        let beneath = schema.beneath().await;
        beneath.query("SELECT pg_terminate_backend($1)", &[&pid]).await.expect("its end");
        blocker.end("ROLLBACK").await;
        assert_eq!(node.tasks(one).await, "a succeeded, b available", "what was committed stays");
        assert_eq!(node.tasks(two).await, "c pending");
        let three = node.submit(&flow("", &[("d", "lock: db")])).await;
        assert_eq!(node.tasks(three).await, "d pending", "a newcomer took the key of a task that waits");
        // The first sweep cannot know whether the process still lives, the second one does it.
        node.promote().await;
        node.promote().await;
        assert_eq!(node.tasks(two).await, "c available");
        assert_eq!(node.tasks(three).await, "d pending");
        let left = "SELECT count(*) FROM follow_ups";
        let left: i64 = beneath.query_one(left, &[]).await.expect("a number").get(0);
        assert_eq!(left, 0, "what has been done is not recorded any more");
        audit::check(&*node.store, two).await;
    });
}

/// A task begins to wait at a key while the key is handed on: it counted the holder that has ended
/// since, and stands before the task that is being looked at.
#[test]
fn key_is_handed_on_to_a_task_that_began_to_wait_meanwhile() {
    block_on(async {
        let schema = Schema::new();
        let node = Node::register(Arc::new(schema.open()), "one").await;
        let head = "limits: {x: 1}";
        let one = node.submit(&flow(head, &[("g", "limits: [x]")])).await;
        let early = node.submit(&flow(head, &[("q", "lock: p, limits: [x]")])).await;
        let two = node.submit(&flow("", &[("h", "lock: p")])).await;
        let late = node.submit(&flow("", &[("t", "lock: p")])).await;
        let (g, h) = (node.begin(one, "g").await, node.begin(two, "h").await);
        assert_eq!(node.tasks(late).await, "t pending");
        let row = format!("SELECT 1 FROM tasks JOIN runs ON runs.no = run_no WHERE id = '{early}'");
        let blocker = Blocker::holding(schema.beneath().await, &format!("{row} FOR UPDATE OF tasks")).await;
        let ends = |at| {
            let store = Arc::clone(&node.store);
            tokio::spawn(async move { store.finish(vec![Finished::new(at, succeeded(), TOOK)], None).await })
        };
        let first = ends(g.at);
        // It holds both keys, has counted h at p, and writes that q waits there.
        let begins_to_wait = blocker.waiter(&schema).await;
        let second = ends(h.at);
        let look = schema.beneath().await;
        let hands_on = async {
            let waits = "SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
            while look.query(waits, &[&begins_to_wait]).await.expect("an answer").is_empty() {}
        };
        timeout(SOON, hands_on).await.expect("the key of h is handed on");
        blocker.end("ROLLBACK").await;
        for ended in [first, second] {
            ended.await.expect("no panic").expect("an answer");
        }
        assert_eq!(node.tasks(early).await, "q available", "it waits for a key that nobody holds");
        assert_eq!(node.tasks(late).await, "t pending", "it waits since later");
        let q = node.begin(early, "q").await;
        node.succeed(&q).await;
        assert_eq!(node.tasks(late).await, "t available");
        audit::check(&*node.store, late).await;
    });
}

/// The server waits for a transaction whose host is gone, and with it every caller of the same run.
#[test]
fn host_that_vanishes_inside_a_transaction_holds_its_locks_for_seconds_only() {
    block_on(async {
        let schema = Schema::new();
        let proxy = Proxy::before(&schema).await;
        let store = PostgresStore::open(&proxy.url, schema.dir(), Open::Create).expect("a store");
        let vanishing = Node::register(Arc::new(store), "gone").await;
        let other = Node::register(Arc::new(schema.open()), "other").await;
        let run = vanishing.submit(&flow("", &[("a", "")])).await;
        proxy.cut(Cut::Silent);
        let (store, session) = (Arc::clone(&vanishing.store), vanishing.session);
        let pausing =
            tokio::spawn(async move { store.pause(Pausable::Run(run), &session.to_string()).await });
        while proxy.is_armed() {
            tokio::task::yield_now().await;
        }
        let canceled = timeout(Duration::from_secs(8), other.store.cancel(run, "ada", CancelMode::CleanUp));
        let canceled = canceled.await.expect("the lock is given back").expect("an answer");
        assert_eq!(canceled, RunStatus::Canceled);
        pausing.abort();
    });
}

/// Whoever pauses a workflow does not see a run that is about to begin or to go on, and that one
/// does not see the pause.
#[test]
fn run_that_begins_or_goes_on_beside_a_pause_of_its_workflow_is_paused() {
    for is_retry in [false, true] {
        block_on(async {
            let schema = Schema::new();
            let node = Node::register(Arc::new(schema.open()), "one").await;
            let text = flow("", &[("a", "lock: db")]);
            let failed = node.submit(&text).await;
            node.fail(&node.begin(failed, "a").await).await;
            let blocker = Blocker::take(&schema, "lock:db").await;
            let person = node.clone();
            let begins = tokio::spawn(async move {
                if is_retry {
                    person.retry(failed, None).await.expect("a run that goes on");
                    return failed;
                }
                person.store.submit(submission(&text, json!({}), person.session)).await.expect("a run")
            });
            // It has looked whether its workflow is paused, and nobody sees yet what it has done.
            blocker.waiter(&schema).await;
            let person = node.clone();
            let pause = tokio::spawn(async move {
                person.store.pause(Pausable::Workflow("flow".to_owned()), "ada").await.expect("a pause");
            });
            let look = schema.beneath().await;
            let waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
            let settled = async {
                while !pause.is_finished() && look.query(waits, &[]).await.expect("an answer").is_empty() {}
            };
            timeout(SOON, settled).await.expect("the pause waits, or is done");
            blocker.end("ROLLBACK").await;
            let run = begins.await.expect("no panic");
            pause.await.expect("no panic");
            assert_eq!(node.tasks(run).await, "a pending", "a retry: {is_retry}");
            assert!(node.why(run, "a").await.contains("paused"));
        });
    }
}

/// Eight nodes with a pool each, all of them after the same keys, as fast as they can.
#[test]
fn eight_nodes_on_crossing_ways_grant_nothing_twice_and_see_no_error() {
    block_on(async {
        let schema = Schema::alone();
        let head = "limits: {w: 2, x: 1}\nmax_parallel: 4\non_failure: continue";
        // Each end hands keys on to other runs, which lets their tasks go on, in whatever order of
        // runs.
        let keys = [
            "lock: p",
            "lock: q",
            "limits: [w]",
            "limits: [w, x]",
            "lock: p, limits: [x]",
            "lock: q, limits: [w]",
        ];
        let names: Vec<String> = (0..18).map(|step| format!("s{step}")).collect();
        let steps: Vec<(&str, &str)> =
            names.iter().enumerate().map(|(step, name)| (name.as_str(), keys[step % keys.len()])).collect();
        let document = flow(head, &steps);
        let is_over = Arc::new(AtomicBool::new(false));
        let mut crowd = Vec::new();
        for number in 0..8 {
            let node = Node::worker(Arc::new(schema.open()), &format!("n{number}"), &[]).await;
            crowd.push(tokio::spawn(work(node, document.clone(), Instant::now() + A_WHILE)));
        }
        let look = tokio::spawn(watch(schema.beneath().await, Arc::clone(&is_over)));
        let mut runs: Vec<RunId> = Vec::new();
        for one in crowd {
            runs.extend(one.await.expect("no error reaches anybody"));
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(look.await.expect("nothing is granted twice") > 0, "it was looked at");
        // What is left is worked off by one: nobody waits for what is free.
        let node = Node::worker(Arc::new(schema.open()), "last", &[]).await;
        while take_one(&node).await {}
        for run in runs {
            assert_eq!(node.status(run).await, RunStatus::Succeeded, "{}", node.tasks(run).await);
            audit::check(&*node.store, run).await;
        }
        drop(node);
        assert_eq!(schema.deadlocks().await, 0, "the server has ended a transaction of ours");
    });
}

async fn work(node: Node, document: String, until: Instant) -> Vec<RunId> {
    let mut runs = Vec::new();
    while Instant::now() < until {
        let open = node.store.runs(RunFilter {
            limit: 99,
            statuses: vec![RunStatus::Running],
            ..RunFilter::default()
        });
        if open.await.expect("a list").len() < 6 {
            let submission = laneway_store::model::Submission {
                is_shared: true,
                is_paused: false,
                ..submission(&document, json!({}), node.session)
            };
            runs.push(node.store.submit(submission).await.expect("a run"));
        }
        take_one(&node).await;
    }
    runs
}

/// Claims up to two tasks and ends them together. Says whether there was one.
async fn take_one(node: &Node) -> bool {
    let ask = Ask { session: node.session, run: None, limit: 2, ahead: 0 };
    let claims = node.store.claim(ask).await.expect("claims");
    let finished = |claim: &laneway_store::model::Claim| Finished::new(claim.at, succeeded(), TOOK);
    // In the order in which they come, which is not that of their runs.
    let answer =
        node.store.finish(claims.iter().rev().map(finished).collect(), None).await.expect("an answer");
    assert!(answer.fates.iter().all(|fate| *fate == Fate::Recorded), "{:?}", answer.fates);
    !claims.is_empty()
}

/// Looks at what is granted as long as others work, and says how often.
async fn watch(beneath: Client, is_over: Arc<AtomicBool>) -> usize {
    let mut looks = 0;
    while !is_over.load(Ordering::Relaxed) {
        let granted = "SELECT key, count(*) FROM holds JOIN tasks USING (run_no, position)
                       WHERE tasks.status IN ('available', 'running') GROUP BY key";
        for row in beneath.query(granted, &[]).await.expect("an answer") {
            let (key, count): (String, i64) = (row.get(0), row.get(1));
            let most = if key == "limit:w" { 2 } else { 1 };
            assert!(count <= most, "{key} is granted {count} times");
        }
        looks += 1;
    }
    looks
}
