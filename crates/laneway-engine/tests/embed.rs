//! W5: a program that embeds the engine. Functions and processes on one store, engines side by side, a kill in the middle, and every
//! way in which a function can end.

#![expect(clippy::disallowed_methods, reason = "tests start a program of their own, to kill it")]

use std::convert::Infallible;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_engine::embed::{Call, Engine, Error, Step, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize)]
struct Two {
    a: i64,
    b: i64,
}

fn store(dir: &Path) -> String {
    dir.join("laneway.db").to_string_lossy().into_owned()
}

fn adder(dir: &Path) -> laneway_engine::embed::Builder {
    Engine::at(&store(dir)).dir(dir).function("add", |call: Call<Two>| async move {
        Ok::<_, Infallible>(Sum { sum: call.input.a + call.input.b })
    })
}

fn call(function: &str) -> Workflow {
    Workflow::new("flow").step(Step::function("it", function))
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it comes about in time")
}

#[tokio::test]
async fn typed_values_go_through_a_workflow_of_functions_and_processes() {
    let dir = tempfile::tempdir().expect("a directory");
    let warden = env!("CARGO_BIN_EXE_laneway-warden");
    let engine = adder(dir.path()).warden(warden, [""; 0]).start().await.expect("an engine");
    let workflow = Workflow::new("sums")
        .param("a", json!({ "type": "integer", "required": true }))
        .step(Step::function("first", "add").with("a", "${{ params.a }}").with("b", 2))
        .step(
            Step::script("double", "echo \"b=$((SUM * 2))\" >> \"$LANEWAY_OUTPUT\"")
                .needs(["first"])
                .env("SUM", "${{ steps.first.output.sum }}"),
        )
        .step(
            Step::function("last", "add")
                .needs(["double", "first"])
                .with("a", "${{ steps.first.output.sum }}")
                .with("b", "${{ steps.double.output.b | int }}"),
        );
    let outcome = within(engine.run(&workflow, json!({ "a": 1 }))).await.expect("it ends");
    assert!(outcome.has_succeeded(), "{:?}", outcome.reason());
    assert_eq!(outcome.output::<Sum>("last").expect("a sum"), Sum { sum: 9 });
    assert!(matches!(outcome.output::<Sum>("double"), Err(Error::Output { .. })), "it is no sum");
    assert!(matches!(outcome.output::<Sum>("third"), Err(Error::NoSuchStep { .. })));
    // The same from a document.
    let text = "steps: {it: {function: add, with: {a: '${{ 20 }}', b: '${{ 22 }}'}}}";
    let read = Workflow::from_document("doc", text);
    let outcome = within(engine.run(&read, ())).await.expect("it ends");
    assert_eq!(outcome.output::<Sum>("it").expect("a sum"), Sum { sum: 42 });
    let wrong = engine.submit(&read, json!({ "nobody": 1 })).await;
    assert!(matches!(wrong, Err(Error::Params(_))), "{wrong:?}");
    let wrong = engine.submit(&Workflow::from_document("doc", "steps: {}"), ()).await;
    assert!(matches!(wrong, Err(Error::Document(_))), "{wrong:?}");
    assert!(engine.shutdown().await.expect("a good end").is_empty());
    let late = within(engine.attach(outcome.run()).outcome()).await.expect("what has ended can be read");
    assert!(late.has_succeeded());
}

#[tokio::test]
async fn a_function_fails_with_its_words_and_a_panic_with_its_message() {
    let dir = tempfile::tempdir().expect("a directory");
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let engine = Engine::at(&store(dir.path()))
        .dir(dir.path())
        .function("fails", |_: Call<Value>| async { Err::<(), _>("the card was declined") })
        .function("panics", |_: Call<Value>| async {
            if true {
                panic!("no moon tonight");
            }
            Ok::<_, Infallible>(())
        })
        .function("flaky", move |call: Call<Value>| {
            let counted = Arc::clone(&counted);
            async move {
                counted.fetch_add(1, Ordering::SeqCst);
                if call.attempt < 3 { Err("too early") } else { Ok(()) }
            }
        })
        .start()
        .await
        .expect("an engine");
    for (name, words) in
        [("fails", "the card was declined"), ("panics", "the function panicked: no moon tonight")]
    {
        let outcome = within(engine.run(&call(name), ())).await.expect("it ends");
        let task = outcome.task("it").expect("a task");
        assert_eq!((task.status, task.reason), (TaskStatus::Failed, Some(Reason::Error)), "{name}");
        assert_eq!(task.detail.as_deref(), Some(words));
        let error = outcome.ok().expect_err("it failed");
        assert!(error.to_string().contains(words), "{error}");
    }
    let again = Workflow::new("flow").step(Step::function("it", "flaky").retry(5, Duration::from_millis(1)));
    let outcome = within(engine.run(&again, ())).await.expect("it ends").ok().expect("the third one");
    outcome.output::<()>("it").expect("nothing is an output too");
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    engine.shutdown().await.expect("a good end");
}

/// Says when it is dropped.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// An engine with a function that never ends, and what says that it began and that it is gone.
async fn endless(dir: &Path, grace: Duration) -> (Engine, Arc<Notify>, Arc<AtomicBool>) {
    let (begun, gone) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (tell, guard) = (Arc::clone(&begun), Arc::clone(&gone));
    let engine = Engine::at(&store(dir))
        .dir(dir)
        .shutdown_grace(grace)
        .function("endless", move |_: Call<Value>| {
            let (tell, guard) = (Arc::clone(&tell), Gone(Arc::clone(&guard)));
            async move {
                tell.notify_one();
                std::future::pending::<()>().await;
                drop(guard);
                Ok::<_, Infallible>(())
            }
        })
        .start()
        .await
        .expect("an engine");
    (engine, begun, gone)
}

#[tokio::test]
async fn a_function_is_dropped_when_its_timeout_passes_or_its_run_is_canceled() {
    let dir = tempfile::tempdir().expect("a directory");
    let (engine, begun, gone) = endless(dir.path(), PATIENCE).await;
    let short =
        Workflow::new("flow").step(Step::function("it", "endless").timeout(Duration::from_millis(50)));
    let outcome = within(engine.run(&short, ())).await.expect("it ends");
    assert_eq!(outcome.task("it").expect("a task").reason, Some(Reason::Timeout));
    assert!(gone.swap(false, Ordering::SeqCst));
    within(begun.notified()).await;
    let run = engine.submit(&call("endless"), ()).await.expect("a run");
    within(begun.notified()).await;
    run.cancel().await.expect("canceled");
    let outcome = within(run.outcome()).await.expect("it ends");
    assert_eq!((outcome.status(), gone.load(Ordering::SeqCst)), (RunStatus::Canceled, true));
    engine.shutdown().await.expect("a good end");
}

#[tokio::test]
async fn what_runs_at_a_shutdown_is_given_back_and_runs_again_with_the_next_engine() {
    let dir = tempfile::tempdir().expect("a directory");
    let (engine, begun, gone) = endless(dir.path(), Duration::from_millis(50)).await;
    let run = engine.submit(&call("endless"), ()).await.expect("a run");
    within(begun.notified()).await;
    let waiting = tokio::spawn({
        let run = run.clone();
        async move { run.outcome().await }
    });
    let cut = within(engine.shutdown()).await.expect("a good end");
    assert_eq!((cut.len(), cut[0].run, cut[0].step.as_str()), (1, run.id(), "it"));
    assert!(gone.load(Ordering::SeqCst));
    let told = within(waiting).await.expect("no panic");
    assert!(matches!(told, Err(Error::Stopped(_))), "{told:?}");
    assert!(engine.shutdown().await.expect("twice is once").is_empty());
    let next = Engine::at(&store(dir.path()))
        .dir(dir.path())
        .function("endless", |call: Call<Value>| async move {
            Ok::<_, Infallible>(json!({ "attempt": call.attempt }))
        })
        .start()
        .await
        .expect("another engine");
    let outcome = within(next.attach(run.id()).outcome()).await.expect("it ends").ok().expect("well");
    assert_eq!(outcome.output::<Value>("it").expect("an output"), json!({ "attempt": 2 }));
    next.shutdown().await.expect("a good end");
}

/// An engine that ends what `endless` was begun for.
async fn ender(dir: &Path) -> Engine {
    let engine = Engine::at(&store(dir)).dir(dir).function("endless", |call: Call<Value>| async move {
        Ok::<_, Infallible>(json!({ "attempt": call.attempt }))
    });
    engine.start().await.expect("another engine")
}

#[tokio::test]
async fn shutdown_that_nobody_waits_for_gives_back_what_was_held() {
    let dir = tempfile::tempdir().expect("a directory");
    let (engine, begun, gone) = endless(dir.path(), Duration::from_millis(50)).await;
    let run = engine.submit(&call("endless"), ()).await.expect("a run");
    within(begun.notified()).await;
    tokio::select! {
        biased;
        ended = engine.shutdown() => panic!("something runs, and it ended at once: {ended:?}"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(within(engine.ended()).await, "it was shut down");
    assert!(gone.load(Ordering::SeqCst));
    // The first one is still there, and holds nothing.
    let next = ender(dir.path()).await;
    let outcome = within(next.attach(run.id()).outcome()).await.expect("it ends").ok().expect("well");
    assert_eq!(outcome.output::<Value>("it").expect("an output"), json!({ "attempt": 2 }));
    let cut = within(engine.shutdown()).await.expect("the same end");
    assert_eq!((cut.len(), cut[0].run), (1, run.id()));
    assert!(engine.shutdown().await.expect("it was told").is_empty());
    next.shutdown().await.expect("a good end");
}

#[tokio::test]
async fn engine_that_cannot_go_on_gives_back_what_it_held_and_says_why() {
    let dir = tempfile::tempdir().expect("a directory");
    let (engine, begun, gone) = endless(dir.path(), PATIENCE).await;
    let run = engine.submit(&call("endless"), ()).await.expect("a run");
    within(begun.notified()).await;
    let outcome = tokio::spawn({
        let run = run.clone();
        async move { run.outcome().await }
    });
    // Nothing can start any more, as where something is wrong with the file.
    let file = rusqlite::Connection::open(store(dir.path())).expect("it opens");
    let broken = "CREATE TRIGGER broken BEFORE UPDATE ON tasks WHEN NEW.status = 'running'
        BEGIN SELECT json('no JSON'); END";
    file.execute_batch(broken).expect("a trigger");
    let other = engine.submit(&call("endless"), ()).await.expect("another run");
    let why = within(engine.ended()).await;
    assert!(why.contains("malformed JSON"), "{why}");
    assert!(gone.load(Ordering::SeqCst), "what ran is dropped");
    let told = within(outcome).await.expect("no panic").expect_err("nobody here goes on with it");
    assert!(told.to_string().contains("malformed JSON"), "{told}");
    file.execute_batch("DROP TRIGGER broken").expect("mended");
    // The first one is still there, and holds nothing.
    let next = ender(dir.path()).await;
    for (run, attempt) in [(run.id(), 2), (other.id(), 1)] {
        let outcome = within(next.attach(run).outcome()).await.expect("it ends").ok().expect("well");
        assert_eq!(outcome.output::<Value>("it").expect("an output"), json!({ "attempt": attempt }));
    }
    let told = engine.shutdown().await.expect_err("it had ended, and not well");
    assert!(matches!(told, Error::Worker(_)), "{told:?}");
    next.shutdown().await.expect("a good end");
}

#[tokio::test]
async fn engines_live_side_by_side_on_one_store_and_on_two() {
    let (dir, elsewhere) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let of = |word: &'static str, dir: &Path| {
        let engine = Engine::at(&store(dir)).dir(dir).name(word);
        engine.function(word, move |_: Call<Value>| async move { Ok::<_, Infallible>(json!({ "by": word })) })
    };
    let one = of("one", dir.path()).start().await.expect("an engine");
    let two = of("two", dir.path()).start().await.expect("another on the same store");
    let far = of("one", elsewhere.path()).start().await.expect("one on another store");
    // Each takes what it has the function for, whoever submits it.
    let both =
        Workflow::new("both").step(Step::function("a", "one")).step(Step::function("b", "two").needs(["a"]));
    let outcome = within(one.run(&both, ())).await.expect("it ends").ok().expect("well");
    assert_eq!(outcome.output::<Value>("b").expect("an output"), json!({ "by": "two" }));
    assert_eq!(outcome.task("b").expect("a task").node.as_deref(), Some("two"));
    let seen = within(two.attach(outcome.run()).outcome()).await.expect("they share a store");
    assert!(seen.has_succeeded());
    assert!(far.attach(outcome.run()).status().await.is_err(), "this one does not");
    within(far.run(&call("one"), ())).await.expect("it ends").ok().expect("well");
    one.shutdown().await.expect("a good end");
    within(two.run(&call("two"), ())).await.expect("the other goes on").ok().expect("well");
    two.shutdown().await.expect("a good end");
    far.shutdown().await.expect("a good end");
}

#[tokio::test]
async fn function_of_a_step_with_a_lock_is_called_with_its_fencing_token() {
    let dir = tempfile::tempdir().expect("a directory");
    let fence = |call: Call<Value>| async move { Ok::<_, Infallible>(json!({ "fence": call.fence })) };
    let engine = Engine::at(&store(dir.path()))
        .dir(dir.path())
        .function("fence", fence)
        .start()
        .await
        .expect("an engine");
    let step = |name: &str| Step::function(name, "fence");
    let workflow = Workflow::new("flow")
        .step(step("first").set("lock", json!("bank")))
        .step(step("second").set("lock", json!("bank")).needs(["first"]))
        .step(step("free"));
    let outcome = within(engine.run(&workflow, ())).await.expect("it ends");
    let fence = |step: &str| outcome.output::<Value>(step).expect("an output")["fence"].as_u64();
    assert!(fence("first").is_some() && fence("first") < fence("second"));
    assert_eq!(fence("free"), None);
    engine.shutdown().await.expect("a good end");
}

#[tokio::test]
async fn a_key_starts_one_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = adder(dir.path()).start().await.expect("an engine");
    let sum = Workflow::new("sum").step(Step::function("it", "add").with("a", 1).with("b", 2));
    let first = engine.submit_once("order-7", &sum, ()).await.expect("a run");
    within(first.outcome()).await.expect("it ends");
    let second = engine.submit_once("order-7", &sum, ()).await.expect("the same");
    assert_eq!(first.id(), second.id());
    engine.shutdown().await.expect("a good end");
}

/// A schema of its own on the tests' server, as a URL.
fn schema(test: &str) -> String {
    let server = std::env::var("LANEWAY_TEST_POSTGRES").expect("run this with `cargo xtask postgres`");
    let name = format!("embed_{test}_{}", std::process::id());
    let made = Command::new("psql").args([&server, "-qc", &format!("CREATE SCHEMA {name}")]).status();
    assert!(made.expect("psql runs").success());
    let mark = if server.contains('?') { '&' } else { '?' };
    format!("{server}{mark}options=-csearch_path%3D{name}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_share_the_steps_of_a_run_on_postgres() {
    let (url, dir) = (schema("two"), tempfile::tempdir().expect("a directory"));
    let of = |word: &'static str| {
        let engine = Engine::at(&url).data_dir(dir.path().join(word)).dir(dir.path()).name(word);
        engine.function(word, move |_: Call<Value>| async move { Ok::<_, Infallible>(json!({ "by": word })) })
    };
    let one = of("one").start().await.expect("an engine");
    let two = of("two").start().await.expect("another");
    let both =
        Workflow::new("both").step(Step::function("a", "one")).step(Step::function("b", "two").needs(["a"]));
    let outcome = within(one.run(&both, ())).await.expect("it ends").ok().expect("well");
    assert_eq!(outcome.output::<Value>("b").expect("an output"), json!({ "by": "two" }));
    one.shutdown().await.expect("a good end");
    two.shutdown().await.expect("a good end");
}

#[tokio::test]
async fn a_function_with_a_cache_is_called_once_for_each_input() {
    let dir = tempfile::tempdir().expect("a directory");
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let engine = Engine::at(&store(dir.path()))
        .dir(dir.path())
        .function("double", move |call: Call<Value>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let number = call.input["n"].as_i64().unwrap_or_default();
            async move { Ok::<_, Infallible>(Sum { sum: number * 2 }) }
        })
        .start()
        .await
        .expect("an engine");
    let double = |number: i64| {
        Workflow::new("flow").step(Step::function("it", "double").with("n", number).set("cache", json!(true)))
    };
    for (number, expected) in [(1, 1), (1, 1), (2, 2), (1, 2)] {
        let outcome = within(engine.run(&double(number), ())).await.expect("it ends").ok().expect("well");
        assert_eq!(outcome.output::<Sum>("it").expect("a sum"), Sum { sum: number * 2 });
        assert_eq!(calls.load(Ordering::SeqCst), expected, "{number}");
    }
    engine.shutdown().await.expect("a good end");
}

const CHILD: &str = "LANEWAY_EMBED_CHILD";

/// Not a test by itself: what is killed in the next one.
#[tokio::test]
async fn child_that_is_killed() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let dir = Path::new(&dir).to_owned();
    let mark = dir.join("begun");
    let engine = adder(&dir)
        .function("stuck", move |call: Call<Value>| {
            std::fs::write(&mark, call.run.to_string()).expect("written");
            std::future::pending::<Result<(), Infallible>>()
        })
        .start()
        .await
        .expect("an engine");
    let workflow = Workflow::new("long")
        .step(Step::function("sum", "add").with("a", 1).with("b", 2))
        .step(Step::function("it", "stuck").needs(["sum"]));
    engine.submit(&workflow, ()).await.expect("a run").outcome().await.expect("it is killed before");
}

#[tokio::test]
async fn what_a_killed_program_had_begun_goes_on_in_the_next_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child_that_is_killed"])
        .env(CHILD, dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mark = dir.path().join("begun");
    let begun = within(async {
        loop {
            match std::fs::read_to_string(&mark) {
                Ok(run) if !run.is_empty() => return run,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
    .await;
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    let run = laneway_core::id::RunId::parse(&begun).expect("an id");
    let engine = adder(dir.path())
        .function("stuck", |call: Call<Value>| async move {
            Ok::<_, Infallible>(json!({ "attempt": call.attempt }))
        })
        .start()
        .await
        .expect("an engine");
    let outcome = within(engine.attach(run).outcome()).await.expect("it ends").ok().expect("well");
    assert_eq!(outcome.output::<Value>("it").expect("an output"), json!({ "attempt": 2 }));
    let sum = outcome.task("sum").expect("a task");
    assert_eq!(sum.attempt, 1, "what was done is not done again");
    engine.shutdown().await.expect("a good end");
}

const FROZEN_CHILD: &str = "LANEWAY_EMBED_FROZEN_CHILD";
const FROZEN_STORE: &str = "LANEWAY_EMBED_FROZEN_STORE";

/// An engine whose tasks others take when it does not run for two seconds.
fn leased(store: &str, dir: &Path, name: &str) -> laneway_engine::embed::Builder {
    let (ttl, every) = (Duration::from_secs(2), Duration::from_millis(200));
    Engine::at(store).dir(dir).data_dir(dir.join(name)).name(name).lease(ttl, every)
}

/// Not a test by itself: what is frozen in the next ones.
#[tokio::test]
async fn child_that_is_frozen() {
    let Ok(dir) = std::env::var(FROZEN_CHILD) else { return };
    let dir = Path::new(&dir).to_owned();
    let begun = dir.join("begun");
    let store = std::env::var(FROZEN_STORE).expect("the store");
    let engine = leased(&store, &dir, "frozen")
        .function("stuck", move |call: Call<Value>| {
            std::fs::write(&begun, call.run.to_string()).expect("written");
            std::future::pending::<Result<(), Infallible>>()
        })
        .function("own", |_: Call<Value>| async { Ok::<_, Infallible>(()) })
        .start()
        .await
        .expect("an engine");
    let before = format!("{engine:?}");
    let stuck = engine.submit(&call("stuck"), ()).await.expect("a run");
    stuck.outcome().await.expect("the end that another engine brings about").ok().expect("well");
    // No other engine has this function.
    engine.run(&call("own"), ()).await.expect("it ends").ok().expect("well");
    assert_ne!(format!("{engine:?}"), before, "it is another session");
    engine.shutdown().await.expect("a good end");
    std::fs::write(dir.join("joined"), "").expect("written");
}

async fn frozen_engine_joins_again(store: &str, dir: &Path) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child_that_is_frozen"])
        .env(FROZEN_CHILD, dir)
        .env(FROZEN_STORE, store)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let run = within(async {
        loop {
            let begun = std::fs::read_to_string(dir.join("begun")).unwrap_or_default();
            match laneway_core::id::RunId::parse(&begun) {
                Some(run) => return run,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
    .await;
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it is ours");
    let other = leased(store, dir, "other").function("stuck", |call: Call<Value>| async move {
        Ok::<_, Infallible>(json!({ "attempt": call.attempt }))
    });
    let other = other.start().await.expect("another engine");
    let outcome = within(other.attach(run).outcome()).await.expect("it ends").ok().expect("well");
    assert_eq!(outcome.output::<Value>("it").expect("an output"), json!({ "attempt": 2 }));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it is ours");
    let ended = within(async {
        loop {
            match child.try_wait().expect("it is ours") {
                Some(status) => return status,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
    .await;
    assert!(ended.success() && dir.join("joined").exists(), "{ended}");
    other.shutdown().await.expect("a good end");
}

#[tokio::test]
async fn engine_that_was_frozen_for_longer_than_its_lease_joins_again() {
    let dir = tempfile::tempdir().expect("a directory");
    frozen_engine_joins_again(&store(dir.path()), dir.path()).await;
}

#[tokio::test]
async fn engine_that_was_frozen_for_longer_than_its_lease_joins_again_on_postgres() {
    let dir = tempfile::tempdir().expect("a directory");
    frozen_engine_joins_again(&schema("frozen"), dir.path()).await;
}

/// A program spawns these futures on a runtime with several threads. Held to by the compiler.
#[test]
fn futures_of_an_engine_move_between_threads() {
    fn is_send<T: Send>(_: impl FnOnce(&'static Engine, &'static Workflow) -> T) {}
    is_send(|engine, workflow| engine.run(workflow, ()));
    is_send(|engine, workflow| async { engine.submit(workflow, ()).await?.outcome().await });
}

#[test]
fn the_example_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    // Examples are built beside the tests.
    let this = std::env::current_exe().expect("this program");
    let built = this.parent().and_then(Path::parent).expect("a directory").join("examples/order");
    let output = Command::new(built).arg(store(dir.path())).current_dir(dir.path()).output();
    let output = output.expect("it is built with the tests, or by `cargo build --workspace --examples`");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "paid 5: receipt ada-5\n", "{}", String::from_utf8_lossy(&output.stderr));
}
