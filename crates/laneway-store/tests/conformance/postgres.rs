//! What is about Postgres alone: getting there, the schema, and hints between nodes.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::pool::{ContainerState, PoolFact};
use laneway_store::contract::*;
use laneway_store::model::{Ask, NewSession, RunFilter, Tally};
use laneway_store::postgres::{Hearing, PostgresStore};
use laneway_store::sqlite::Clock;
use laneway_store::{Error, Open};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::harness::{Database, Node, Place, START, block_on, flat, flow, submission};
use crate::server::{self, Schema};
use crate::statements;

/// Waiting for what must come: long, because a busy machine is no fault.
const SOON: Duration = Duration::from_secs(30);

fn refusal(url: &str) -> Error {
    let dir = tempfile::tempdir().expect("a directory");
    PostgresStore::open(url, dir.path(), Open::Create).expect_err("refused")
}

/// The server over TCP, where it asks for a password: the socket's URL names the port.
fn over_tcp(user: &str, database: &str, query: &str) -> String {
    let url = server::url();
    let port = url.rsplit_once(':').and_then(|(_, end)| end.split('/').next()).expect("a port").to_owned();
    format!("postgres://{user}@localhost:{port}/{database}{query}")
}

/// Beside the socket, as `cargo xtask postgres` leaves it.
fn certificate() -> String {
    let url = server::url();
    let socket = url.split('@').nth(1).and_then(|rest| rest.split(':').next()).expect("a socket");
    format!("{socket}%2Fserver.crt")
}

#[test]
fn wrong_password_is_said_so() {
    let error = refusal(&over_tcp("laneway:wrong", "postgres", ""));
    assert!(matches!(error, Error::Login { .. }), "{error:?}");
    assert!(error.to_string().contains("password authentication failed"), "{error}");
    assert!(!error.to_string().contains("wrong"), "the password is not repeated: {error}");
    let error = refusal(&over_tcp("laneway", "postgres", ""));
    assert!(matches!(error, Error::Login { .. }), "none was given: {error:?}");
}

#[test]
fn database_that_is_not_there_is_named() {
    let error = refusal(&over_tcp("laneway:laneway", "nowhere", ""));
    assert!(matches!(&error, Error::NoDatabase { database, .. } if database == "nowhere"), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("createdb nowhere")));
}

#[test]
fn server_that_is_not_there_is_said_so() {
    let error = refusal("postgres://ada:secret@localhost:1/jobs");
    assert!(matches!(error, Error::Unreachable { .. }) && error.is_passing(), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("postgres://ada@localhost:1/jobs") && !said.contains("secret"), "{said}");
}

#[test]
fn tls_is_used_as_the_url_asks() {
    block_on(async {
        let schema = Schema::new();
        let path = format!("options=-csearch_path%3D{}", schema.name);
        let trusted = format!("?sslmode=verify-full&sslrootcert={}&{path}", certificate());
        for query in ["?sslmode=require&".to_owned() + &path, trusted] {
            let dir = tempfile::tempdir().expect("a directory");
            let url = over_tcp("laneway:laneway", "postgres", &query);
            let store = PostgresStore::open(&url, dir.path(), Open::Create).expect("a store over TLS");
            let mark = schema.beneath().await;
            store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.expect("an answer");
            let encrypted: i64 = mark
                .query_one(
                    "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                     WHERE ssl AND application_name = 'laneway'",
                    &[],
                )
                .await
                .expect("an answer")
                .get(0);
            assert!(encrypted > 0, "{query}");
        }
    });
}

#[test]
fn server_whose_certificate_is_not_trusted_is_refused() {
    let other = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(other.path(), STRANGER).expect("a certificate");
    let file = other.path().to_string_lossy().replace('/', "%2F");
    let query = format!("?sslmode=verify-full&sslrootcert={file}");
    let error = refusal(&over_tcp("laneway:laneway", "postgres", &query));
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
}

#[test]
fn store_is_made_once_by_whoever_comes_first() {
    block_on(async {
        let schema = Schema::new();
        let missing = schema.try_open(Open::Existing).expect_err("nothing is there yet");
        assert!(matches!(missing, Error::Missing { .. }), "{missing:?}");
        let instances: Vec<_> = std::thread::scope(|scope| {
            let opened: Vec<_> = (0..5).map(|_| scope.spawn(|| schema.open().instance())).collect();
            opened.into_iter().map(|opened| opened.join().expect("a store")).collect()
        });
        assert!(instances.iter().all(|instance| *instance == instances[0]), "{instances:?}");
        assert_eq!(schema.try_open(Open::Existing).expect("it is there").instance(), instances[0]);
    });
}

#[test]
fn store_of_a_newer_program_is_refused_and_left_alone() {
    block_on(async {
        let schema = Schema::new();
        drop(schema.open());
        let beneath = schema.beneath().await;
        beneath.batch_execute("INSERT INTO laneway_migrations (version) VALUES (99)").await.expect("a row");
        let refusal = schema.try_open(Open::Create).expect_err("refused");
        assert!(matches!(refusal, Error::Newer { found: 99, .. }), "{refusal:?}");
    });
}

#[test]
fn tables_of_somebody_else_are_not_taken_for_a_store() {
    block_on(async {
        let schema = Schema::new();
        let beneath = schema.beneath().await;
        beneath.batch_execute("CREATE TABLE customers (id int)").await.expect("a table");
        drop(schema.open());
        let taken = Schema::new();
        let beneath = taken.beneath().await;
        beneath.batch_execute("CREATE TABLE runs (id int)").await.expect("a table");
        let refusal = taken.try_open(Open::Create).expect_err("refused");
        assert!(matches!(refusal, Error::NotAStore { .. }), "{refusal:?}");
    });
}

#[test]
fn schema_that_is_not_there_is_said_so() {
    let error = refusal(&format!("{}?options=-csearch_path%3Dnowhere", server::url()));
    assert!(error.to_string().contains("CREATE SCHEMA"), "{error}");
}

#[test]
fn question_that_hangs_is_ended_by_the_server() {
    block_on(async {
        let mut schema = Schema::new();
        // What the URL says wins over what we say: half a minute is long for a test.
        schema.url += "%20-cstatement_timeout%3D300ms";
        let store = schema.open();
        store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.expect("an answer");
        let beneath = schema.beneath().await;
        beneath.batch_execute("BEGIN; LOCK TABLE runs").await.expect("a lock");
        let error = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.expect_err("too slow");
        assert!(matches!(error, Error::TooSlow { .. }) && error.is_passing(), "{error:?}");
        beneath.batch_execute("ROLLBACK").await.expect("the lock is given back");
        store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.expect("an answer again");
    });
}

#[test]
fn lease_that_ended_is_reaped_only_by_a_node_that_has_renewed_since() {
    block_on(async {
        let (schema, clock) = (Schema::new(), Arc::new(Clock::manual(START)));
        let (cut_off, node) = (schema.open_by(&clock), schema.open_by(&clock));
        let theirs = cut_off.register(NewSession::ephemeral("cut off", 4)).await.expect("a session");
        let ours = node.register(NewSession::ephemeral("one", 4)).await.expect("a session");
        assert_eq!(node.reap().await.expect("an answer").nodes, Vec::<String>::new(), "it lives");
        clock.advance(Duration::from_secs(61));
        let reaped = node.reap().await.expect("an answer");
        assert_eq!(reaped.nodes, Vec::<String>::new(), "who reaps may be the one that is cut off");
        node.renew(ours, Tally::default()).await.expect("a lease that nobody has reaped");
        assert_eq!(node.reap().await.expect("an answer").nodes, ["cut off"]);
        let over =
            cut_off.renew(theirs, Tally::default()).await.expect_err("a reaped session never comes back");
        assert!(matches!(over, Error::SessionOver { .. }), "{over:?}");
    });
}

#[test]
fn session_whose_lease_has_ended_claims_nothing() {
    block_on(async {
        let (schema, clock) = (Schema::new(), Arc::new(Clock::manual(START)));
        let node = schema.open_by(&clock);
        let session = node.register(NewSession::ephemeral("one", 4)).await.expect("a session");
        let run = node.submit(submission(&flat(1, 1), json!({}), session)).await.expect("a run");
        let ask = Ask { session, run: Some(run), limit: 1, ahead: 0 };
        clock.advance(Duration::from_secs(61));
        assert_eq!(node.claim(ask.clone()).await.expect("an answer").len(), 0);
        node.renew(session, Tally::default()).await.expect("a lease that nobody has reaped");
        assert_eq!(node.claim(ask).await.expect("an answer").len(), 1);
    });
}

async fn until(hearing: &mut watch::Receiver<Hearing>, wanted: Hearing) {
    let waited = timeout(SOON, hearing.wait_for(|hearing| *hearing == wanted)).await;
    waited.unwrap_or_else(|_| panic!("never {wanted:?}")).expect("a listener");
}

#[test]
fn node_hears_what_another_says_also_after_its_line_was_cut() {
    block_on(async {
        let schema = Schema::new();
        let store = schema.open();
        let mut changes = store.changes();
        let mut hearing = store.hearing().expect("a listener");
        until(&mut hearing, Hearing::Listening).await;
        let minute = Duration::from_secs(60);
        assert_eq!(store.poll_interval(minute), minute, "the setting counts, however long it is");
        let beneath = schema.beneath().await;
        let instance = store.instance().to_string();
        for round in 0..2 {
            changes.mark_unchanged();
            // The hint at the beginning of a connection may still be under way: what is told comes
            // after it.
            let told = async {
                loop {
                    beneath.query("SELECT pg_notify('laneway', $1)", &[&instance]).await.expect("sent");
                    if timeout(Duration::from_millis(50), changes.changed()).await.is_ok() {
                        return;
                    }
                }
            };
            timeout(SOON, told).await.expect("a hint");
            if round == 0 {
                let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                           WHERE application_name = 'laneway listen ' || $1";
                assert_eq!(beneath.query(cut, &[&instance]).await.expect("cut").len(), 1);
                until(&mut hearing, Hearing::Unconnected).await;
                until(&mut hearing, Hearing::Listening).await;
            }
        }
    });
}

#[test]
fn node_behind_a_pooler_says_that_it_hears_nothing_and_looks_by_itself() {
    block_on(async {
        let schema = Schema::pooled();
        let (store, other) = (schema.open(), schema.open());
        let mut changes = store.changes();
        let mut hearing = store.hearing().expect("a listener");
        until(&mut hearing, Hearing::Deaf).await;
        assert_eq!(store.poll_interval(Duration::from_secs(60)), Duration::from_secs(1));
        for _ in 0..3 {
            changes.mark_unchanged();
            timeout(SOON, changes.changed()).await.expect("a hint by the clock").expect("a listener");
        }
        let session = other.register(NewSession::ephemeral("other", 1)).await.expect("a session");
        let run = other.submit(submission(&flat(3, 2), json!({}), session)).await.expect("a run");
        assert_eq!(store.status(run).await.expect("a run").as_str(), "running");
    });
}

#[test]
fn schema_in_the_url_is_not_lost_behind_a_pooler() {
    let schema = Schema::pooled();
    let error = refusal(&format!("{}?options=-csearch_path%3Delsewhere", schema.url));
    assert!(matches!(&error, Error::Address { why } if why.contains("ALTER ROLE")), "{error:?}");
}

/// Of a name that no server here has.
const STRANGER: &str = "-----BEGIN CERTIFICATE-----
MIIBjDCCATOgAwIBAgIUdQ4sgm2dcfdDL5dBsuUwC8+RdxswCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQc3RyYW5nZXIuZXhhbXBsZTAgFw0yNjExMTYwNTE4MzhaGA8y
MTI2MTAyMzA1MTgzOFowGzEZMBcGA1UEAwwQc3RyYW5nZXIuZXhhbXBsZTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABLpbcatTkFl9N/D4Q3zLMQJzYf0cqlHfnX12
oCOvdne2AUr/YoQqHUQRf4vF7Pl9L5++b/uLOENlBZW9uEiAK5WjUzBRMB0GA1Ud
DgQWBBTiRvfy9WsrZM9OK5rWT6mQ4itr+DAfBgNVHSMEGDAWgBTiRvfy9WsrZM9O
K5rWT6mQ4itr+DAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCICLP
hqxrXfbr32qIb/92XXN8sfjn5Q9kU61rK4B+9pzTAiBt8XkaRnIp8i/FSgS4qyDs
aisLBBB4Hm0xSI3os3ELdA==
-----END CERTIFICATE-----
";

/// All Rust of a directory.
fn code_in(dir: &std::path::Path) -> String {
    let files = std::fs::read_dir(dir).expect("a directory").map(|file| file.expect("a file").path());
    let rust = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    rust.map(|path| std::fs::read_to_string(path).expect("text")).collect()
}

/// The types of a statement's parameters, as the code that says it names them.
fn types_of(code: &str, name: &str) -> Vec<String> {
    let calls = code.split("sql!(").skip(1);
    let call = calls.filter_map(|call| call.trim_start().strip_prefix(&format!("\"{name}\""))).next();
    let call = call.unwrap_or_else(|| panic!("nobody says {name}"));
    let types = call.split(')').next().unwrap_or_default().split(',').map(str::trim);
    let type_of = |word: &str| match word.strip_suffix("_ARRAY") {
        Some(one) => format!("{one}[]"),
        None => word.to_owned(),
    };
    types.filter(|word| !word.is_empty()).map(type_of).collect()
}

/// A statement's head names its index. One that cannot use it, because a condition does not imply
/// the index's own, makes a run quadratic, unseen.
#[test]
fn every_statement_has_an_index_as_its_head_says() {
    block_on(async {
        let schema = Schema::new();
        drop(schema.open());
        let beneath = schema.beneath().await;
        // With tables that are empty nothing but a rule keeps the planner from reading them whole.
        let rules = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";
        beneath.batch_execute(rules).await.expect("rules");
        let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres");
        let code = ["", "work", "operator"].map(|dir| code_in(&home.join(dir))).concat();
        let mut checked = 0;
        for (name, index, sql) in statements::postgres::INDEXED {
            let types = types_of(&code, name);
            let given = if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
            let prepared = format!("PREPARE {name}_looked_at {given} AS {sql}");
            beneath.batch_execute(&prepared).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let count = (1..100).take_while(|number| sql.contains(&format!("${number}"))).count();
            let nulls =
                if count == 0 { String::new() } else { format!("({})", vec!["NULL"; count].join(", ")) };
            let explained = beneath.simple_query(&format!("EXPLAIN EXECUTE {name}_looked_at{nulls}")).await;
            let explained = format!("{:?}", explained.unwrap_or_else(|error| panic!("{name}: {error:?}")));
            // Which of two it takes depends on how many rows there are; that it has one to take
            // does not.
            assert!(!explained.contains("Seq Scan on"), "{name} cannot use {index}: {explained}");
            let is_there = beneath
                .query_opt(
                    "SELECT 1 FROM pg_indexes WHERE schemaname = current_schema AND indexname = $1",
                    &[index],
                )
                .await;
            assert!(is_there.expect("an answer").is_some(), "{name} names {index}, which is no index");
            checked += 1;
        }
        assert!(checked > 15, "only {checked} statements name an index");
    });
}

#[test]
fn claim_that_finds_what_it_wants_in_the_hands_of_others_is_counted() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        node.share(&flow("", &[("a", "")])).await;
        let other = server::beneath(node.store.dir()).await.expect("a store on Postgres");
        other.batch_execute("BEGIN; SELECT 1 FROM tasks FOR UPDATE").await.expect("a row in hand");
        assert!(node.take_any(1).await.is_empty(), "it is passed over");
        assert_eq!(node.store.contentions(), 1);
        other.batch_execute("ROLLBACK").await.expect("it lets go");
        assert_eq!(node.take_any(1).await.len(), 1);
        assert!(node.take_any(1).await.is_empty(), "there is nothing more");
        assert_eq!(node.store.contentions(), 1);
    });
}

#[test]
fn task_that_comes_while_its_node_joins_waits_for_nobody() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        let person = place.node("person:1").await;
        let document = flow("limits: {w: 1}", &[("a", "limits: [w]")]);
        let mut runs = vec![node.share(&flow("", &[("z", "")])).await];
        for document in [flow("", &[("a", "")]), document] {
            // As far as others can see, it has not joined yet.
            let joining = server::beneath(node.store.dir()).await.expect("a store on Postgres");
            let leave = "CREATE TEMP TABLE kept AS SELECT * FROM takers; DELETE FROM takers";
            joining.batch_execute(leave).await.expect("nobody takes anything");
            let lock = "BEGIN; SELECT pg_advisory_xact_lock(hashtext('laneway classes'), hashtext(current_schema()));
                        INSERT INTO takers SELECT * FROM kept";
            joining.batch_execute(lock).await.expect("it joins");
            let other = person.clone();
            let submitted = tokio::spawn(async move { other.share(&document).await });
            let waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
            let looking = async {
                while joining.query(waits, &[]).await.expect("an answer").is_empty() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            timeout(Duration::from_secs(20), looking).await.expect("the submit waits for who joins");
            joining.batch_execute("COMMIT").await.expect("it has joined");
            runs.push(submitted.await.expect("a run"));
        }
        for run in runs {
            let told = node.tasks(run).await;
            assert!(told.ends_with("available"), "{told}");
        }
    });
}

/// Between the look for what is due and the run's lock somebody may remove the run.
#[test]
fn run_that_goes_while_it_is_promoted_ends_nobody() {
    block_on(async {
        let schema = Schema::new();
        let clock = Arc::new(Clock::manual(START));
        let store: Arc<dyn Store> = Arc::new(schema.open_by(&clock));
        let node = Node::register(Arc::clone(&store), "one").await;
        let retried = flow("", &[("a", "retry: {max: 1, backoff: 1s}")]);
        let (going, staying) = (node.submit(&retried).await, node.submit(&retried).await);
        for run in [going, staying] {
            let held = node.begin(run, "a").await;
            node.fail(&held).await;
        }
        clock.advance(Duration::from_secs(5));
        let mut beneath = schema.beneath().await;
        let removal = beneath.transaction().await.expect("a transaction");
        let pid: i32 = removal.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
        for table in ["events", "attempts", "tasks"] {
            let delete = format!("DELETE FROM {table} WHERE run_no = (SELECT no FROM runs WHERE id = $1)");
            removal.execute(&delete, &[&going.to_string()]).await.expect("gone");
        }
        removal.execute("DELETE FROM runs WHERE id = $1", &[&going.to_string()]).await.expect("gone");
        let promoting = tokio::spawn(async move { store.promote().await });
        let watcher = schema.beneath().await;
        let waits = "SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        timeout(SOON, async {
            while watcher.query_opt(waits, &[&pid]).await.expect("an answer").is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("it waits for the run's lock");
        removal.commit().await.expect("gone");
        promoting.await.expect("no panic").expect("a run that is gone is nobody's matter");
        assert_eq!(node.tasks(staying).await, "a available");
    });
}

/// Whoever follows the stream of pools by number has passed by what becomes visible behind a larger
/// number.
#[test]
fn event_of_a_pool_never_becomes_visible_behind_a_later_one() {
    block_on(async {
        let schema = Schema::new();
        let clock = Arc::new(Clock::manual(START));
        let slow = Node::worker(Arc::new(schema.open_by(&clock)), "slow:1", &[]).await;
        let quick = Node::worker(Arc::new(schema.open_by(&clock)), "quick:1", &[]).await;
        let (beneath, watcher) = (schema.beneath().await, schema.beneath().await);
        // Its events have their numbers, and are not committed before somebody lets them.
        let hold = "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
                    BEGIN PERFORM 1 FROM meta WHERE key = 'instance' FOR UPDATE; RETURN NULL; END $$;
                    CREATE TRIGGER wait AFTER INSERT ON pool_events
                    FOR EACH ROW WHEN (NEW.node = 'slow:1') EXECUTE FUNCTION wait()";
        beneath.batch_execute(hold).await.expect("a trigger");
        let lock = "BEGIN; SELECT 1 FROM meta WHERE key = 'instance' FOR UPDATE";
        beneath.batch_execute(lock).await.expect("a lock");
        let pid: i32 = beneath.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
        let fact = |container: &str| -> PoolFact {
            let (pool, image) = ("warm".to_owned(), "busybox:1".to_owned());
            PoolFact::of(pool, container.to_owned(), (image, None), ContainerState::Starting, None)
        };
        let first = {
            let (slow, fact) = (slow.clone(), fact("a"));
            tokio::spawn(async move { slow.store.tell_pools(slow.session, vec![fact]).await })
        };
        let waits = "SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        let waiting = async |pid: i32| loop {
            if let Some(found) = watcher.query_opt(waits, &[&pid]).await.expect("an answer") {
                return found.get::<_, i32>(0);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let held = timeout(SOON, waiting(pid)).await.expect("its event waits to be committed");
        let mut second = {
            let (quick, fact) = (quick.clone(), fact("b"));
            tokio::spawn(async move { quick.store.tell_pools(quick.session, vec![fact]).await })
        };
        let is_told = tokio::select! {
            told = &mut second => { told.expect("no panic").expect("told"); true }
            waited = timeout(SOON, waiting(held)) => { waited.expect("it waits for the other"); false }
        };
        let seen = quick.store.pool_events(None, 0, 9).await.expect("events");
        let after = seen.last().map_or(0, |event| event.seq);
        beneath.batch_execute("COMMIT").await.expect("the lock is given back");
        first.await.expect("no panic").expect("told");
        if !is_told {
            second.await.expect("no panic").expect("told");
        }
        let rest = quick.store.pool_events(None, after, 9).await.expect("events");
        let told: Vec<&str> = seen.iter().chain(&rest).map(|event| event.node.as_str()).collect();
        assert_eq!(told, ["slow:1", "quick:1"], "whoever went on behind {after} has seen everything");
    });
}

/// An open transaction keeps dead rows, which claims walk past: who holds it is named.
#[test]
fn transaction_that_holds_up_the_database_is_named() {
    block_on(async {
        let schema = Schema::new();
        let store = schema.open();
        let other = schema.beneath().await;
        other
            .batch_execute("SET application_name = 'a long report'; BEGIN; SELECT pg_current_xact_id()")
            .await
            .expect("open");
        let is_named = async || {
            let horizon = store.horizon(Duration::from_secs(1)).await.expect("an answer");
            horizon
                .is_some_and(|horizon| horizon.holder.contains("a long report") && horizon.held_for.is_some())
        };
        let named = async {
            while !is_named().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(SOON, named).await.expect("its session is named");
        other.batch_execute("ROLLBACK").await.expect("closed");
        assert!(!is_named().await);
    });
}
