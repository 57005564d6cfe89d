//! Whole runs on a real store with real processes.

#[path = "support/warden.rs"]
mod warden;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::definition::{Source, compile};
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::run_state::{RunState, replay};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_engine::container::Containers;
use laneway_engine::effect::EffectError;
use laneway_engine::function::{Call, Functions};
use laneway_engine::worker::{Control, Counts, Drive, Means};
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Open, Store, open};
use serde_json::{Value, json};

/// A run that was driven to its end.
struct Ran {
    store: Arc<dyn Store>,
    run: RunId,
    status: RunStatus,
    state: RunState,
    dir: tempfile::TempDir,
    counts: Counts,
}

impl Ran {
    fn task(&self, step: &str) -> &laneway_core::run_state::TaskState {
        self.state.tasks.iter().find(|task| task.step == step).expect("a step of the workflow")
    }

    fn statuses(&self) -> Vec<(&str, TaskStatus)> {
        self.state.tasks.iter().map(|task| (task.step.as_str(), task.status)).collect()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(file)).unwrap_or_default()
    }

    async fn assert_replays(&self) {
        let events = self.store.events_since(self.run, 0, usize::MAX).await.expect("events");
        let steps: Vec<&str> = self.state.tasks.iter().map(|task| task.step.as_str()).collect();
        let folded = replay(steps, &events).expect("a history that can have happened");
        assert_eq!(
            serde_json::to_string(&folded).expect("state is JSON"),
            serde_json::to_string(&self.state).expect("state is JSON")
        );
    }
}

/// A run that was submitted and waits for its worker.
struct Setup {
    store: Arc<dyn Store>,
    session: SessionId,
    run: RunId,
    counts: Counts,
}

impl Setup {
    async fn new(dir: &tempfile::TempDir, yaml: &str) -> Self {
        let source = Source { file: "test.yaml".into(), default_name: "test".into(), text: yaml.to_owned() };
        let plan = Arc::new(compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false))));
        let path = dir.path().join(".laneway/laneway.db");
        let store = open(path.to_str().expect("UTF-8"), Open::Create).expect("a store");
        let session = store.register(NewSession::ephemeral("test:1", 4)).await.expect("a session");
        let max_parallel = plan.workflow.max_parallel.map_or(4, std::num::NonZeroU32::get);
        let submission = Submission {
            dir: dir.path().to_str().expect("UTF-8").to_owned(),
            params: serde_json::Map::new(),
            max_parallel,
            by: "ada".into(),
            ..Submission::new(plan, yaml.to_owned(), session)
        };
        let run = store.submit(submission).await.expect("a run");
        Self { store, session, run, counts: Counts::default() }
    }

    fn drive(&self) -> Drive {
        Drive {
            means: Means {
                store: Arc::clone(&self.store),
                session: self.session,
                slots: 8,
                kill_grace: Duration::from_secs(2),
                warden: warden::warden(),
                functions: functions(),
                containers: Containers::default(),
                pulse: None,
                counts: self.counts.clone(),
                max_poll_interval: Duration::from_secs(15),
                takes_results: true,
                workspace_max_bytes: laneway_engine::WORKSPACE_MAX_BYTES,
            },
            run: self.run,
            by: "ada".into(),
            is_over_when_paused: false,
            pass_env: None,
        }
    }
}

fn functions() -> Functions {
    Functions::new()
        .add("add", |call: Call<Sum>| async move {
            Ok::<_, Infallible>(json!({ "sum": call.input.a + call.input.b }))
        })
        .add("flaky", |call: Call<Value>| async move {
            if call.attempt < 3 { Err(format!("attempt {} is too early", call.attempt)) } else { Ok(()) }
        })
        .add("endless", |_: Call<Value>| std::future::pending::<Result<(), Infallible>>())
        .add("pay", |call: Call<Pay>| pay(call))
}

#[derive(serde::Deserialize)]
struct Pay {
    /// Where what happened to the world is counted.
    dir: std::path::PathBuf,
}

/// Charges once, whatever becomes of the attempt; tries again what failed; and leaves one in the middle.
async fn pay(call: Call<Pay>) -> Result<Value, String> {
    let happened = |what: &str| {
        let path = call.input.dir.join(what);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, format!("{before}x")).expect("the world can be written");
    };
    let charge = call.effects.named("charge").key(17);
    let receipt: u32 = charge
        .run(|token| async move {
            happened("charged");
            if token.len() == 32 { Ok(7) } else { Err("no token") }
        })
        .await
        .map_err(|error| error.to_string())?;
    let mail = call.effects.named("mail").run(|_| async {
        happened("mailed");
        if call.attempt == 1 { Err("the office is closed") } else { Ok(()) }
    });
    let mailed: Result<(), _> = mail.await;
    if call.attempt == 1 {
        let failed = mailed.expect_err("it failed");
        // One that is dropped in the middle is unknown, also to the same attempt.
        let never = call.effects.named("half").run(|_| std::future::pending::<Result<(), Infallible>>());
        assert!(tokio::time::timeout(Duration::from_millis(50), never).await.is_err());
        let again = call.effects.named("half").run(|_| async { Ok::<_, Infallible>(()) }).await;
        assert!(
            matches!(&again, Err(EffectError::Unknown(why)) if why.contains("nobody knows")),
            "{again:?}"
        );
        return Err(failed.to_string());
    }
    mailed.map_err(|error| error.to_string())?;
    let half = call.effects.named("half").retry_unknown();
    let half = half.run(|_| async { Ok::<_, Infallible>("whole".to_owned()) });
    let half = half.await.map_err(|error| error.to_string())?;
    Ok(json!({ "receipt": receipt, "half": half }))
}

#[derive(serde::Deserialize)]
struct Sum {
    a: i64,
    b: i64,
}

async fn drive(yaml: &str, control: impl FnOnce(Control, &Path)) -> Ran {
    let dir = tempfile::tempdir().expect("a directory");
    let setup = Setup::new(&dir, yaml).await;
    let hand = Control::new();
    control(hand.clone(), dir.path());
    let status = tokio::time::timeout(Duration::from_secs(60), setup.drive().until_done(hand))
        .await
        .expect("the run ends")
        .expect("the worker works");
    let (store, run, counts) = (setup.store, setup.run, setup.counts);
    let state = store.run_state(run).await.expect("a state");
    let ran = Ran { store, run, status, state, dir, counts };
    ran.assert_replays().await;
    ran
}

async fn run(yaml: &str) -> Ran {
    drive(yaml, |_, _| {}).await
}

#[tokio::test]
async fn a_graph_runs_in_the_order_of_its_needs_and_ends_succeeded() {
    let ran = run("
steps:
  a: {run: 'echo a >> order'}
  b: {needs: [a], run: 'echo b >> order'}
  c: {needs: [b], run: 'echo c >> order'}
")
    .await;
    assert_eq!(ran.status, RunStatus::Succeeded);
    assert_eq!(ran.read("order"), "a\nb\nc\n");
}

#[tokio::test]
async fn outputs_reach_later_steps_as_values_and_never_as_code() {
    let ran = run(r#"
steps:
  a: {run: 'printf "greeting=\$(touch hacked); hi\n" > "$LANEWAY_OUTPUT"'}
  b:
    needs: [a]
    env: {WORD: "${{ steps.a.output.greeting }}"}
    run: 'printf "%s" "$WORD" > word'
"#)
    .await;
    assert_eq!(ran.status, RunStatus::Succeeded);
    assert_eq!(ran.read("word"), "$(touch hacked); hi");
    assert!(!ran.dir.path().join("hacked").exists());
}

#[tokio::test]
async fn a_flaky_step_is_tried_again_until_it_succeeds() {
    let ran = run("
steps:
  flaky:
    run: 'test \"$LANEWAY_ATTEMPT\" = 3'
    retry: {max: 5, backoff: 10ms, factor: 1}
")
    .await;
    assert_eq!(ran.status, RunStatus::Succeeded);
    assert_eq!(ran.task("flaky").attempt, 3);
    let attempts = ran.store.attempts(ran.run, "flaky").await.expect("attempts");
    let outcomes: Vec<&str> = attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["failed", "failed", "succeeded"]);
}

#[tokio::test]
async fn a_timeout_fails_the_attempt_and_clean_up_still_runs() {
    let ran = run("
steps:
  slow: {run: 'sleep 100', timeout: 200ms}
  after: {needs: [slow], run: 'true'}
  clean: {needs: [slow], when: always, run: 'echo clean > cleaned'}
")
    .await;
    assert_eq!(ran.status, RunStatus::Failed);
    assert_eq!(ran.task("slow").reason, Some(laneway_core::reason::Reason::Timeout));
    assert_eq!(
        ran.statuses(),
        [("slow", TaskStatus::Failed), ("after", TaskStatus::Skipped), ("clean", TaskStatus::Succeeded)]
    );
    assert_eq!(ran.state.reason.as_deref(), Some("slow failed: ran longer than 200ms"));
}

#[tokio::test]
async fn abort_cancels_what_runs() {
    let ran = run("
on_failure: abort
steps:
  long: {run: 'touch started; sleep 100'}
  bad: {run: 'while [ ! -e started ]; do sleep 0.01; done; exit 3'}
")
    .await;
    assert_eq!(ran.status, RunStatus::Failed);
    assert_eq!(ran.task("long").status, TaskStatus::Canceled);
    assert_eq!(ran.task("long").reason, Some(laneway_core::reason::Reason::Aborted));
    assert_eq!(ran.task("bad").exit_code, Some(3));
}

#[tokio::test]
async fn a_runs_timeout_stops_everything_but_clean_up() {
    let ran = run("
timeout: 300ms
steps:
  long: {run: 'sleep 100'}
  next: {needs: [long], when: all_done, run: 'true'}
  clean: {needs: [long], when: always, run: 'true'}
")
    .await;
    assert_eq!(ran.status, RunStatus::Failed);
    let (canceled, succeeded) = (TaskStatus::Canceled, TaskStatus::Succeeded);
    assert_eq!(ran.statuses(), [("long", canceled), ("next", canceled), ("clean", succeeded)]);
    assert!(ran.state.reason.as_deref().is_some_and(|reason| reason.contains("timeout")));
}

#[tokio::test]
async fn cancel_ends_the_run_and_its_processes() {
    let ran = drive(
        "steps: {long: {run: 'touch started; sleep 100'}, next: {needs: [long], run: 'true'}}",
        |control, dir| {
            let started = dir.join("started");
            tokio::spawn(async move {
                wait_for(&started).await;
                control.cancel();
            });
        },
    )
    .await;
    assert_eq!(ran.status, RunStatus::Canceled);
    assert_eq!(ran.statuses(), [("long", TaskStatus::Canceled), ("next", TaskStatus::Canceled)]);
    assert_eq!(ran.state.reason.as_deref(), Some("canceled by ada"));
}

#[tokio::test]
async fn kill_does_not_wait_for_the_grace() {
    let ran = drive(
        "steps: {stubborn: {run: 'trap \"\" TERM; touch started; while :; do sleep 1; done'}}",
        |control, dir| {
            let started = dir.join("started");
            tokio::spawn(async move {
                wait_for(&started).await;
                control.cancel();
                control.kill();
            });
        },
    )
    .await;
    assert_eq!(ran.status, RunStatus::Canceled);
}

#[tokio::test]
async fn bad_output_fails_the_attempt_with_the_line_named() {
    let ran = run(r#"steps: {a: {run: 'printf "good=1\nbad line\n" > "$LANEWAY_OUTPUT"'}}"#).await;
    assert_eq!(ran.task("a").reason, Some(laneway_core::reason::Reason::BadOutput));
    assert!(
        ran.task("a").detail.as_deref().is_some_and(|detail| detail.contains("line 2")),
        "{:?}",
        ran.task("a")
    );
}

#[tokio::test]
async fn an_expression_that_cannot_be_evaluated_fails_the_attempt_in_words() {
    let ran = run(r#"
steps:
  a: {run: 'true'}
  b: {needs: [a], env: {X: "${{ steps.a.output.missing }}"}, run: 'true'}
  c: {needs: [a], if: "${{ steps.a.output.missing == 1 }}", run: 'true'}
"#)
    .await;
    for step in ["b", "c"] {
        assert_eq!(ran.task(step).reason, Some(laneway_core::reason::Reason::Expression), "{step}");
        assert!(ran.task(step).detail.as_deref().is_some_and(|detail| detail.contains("missing")));
    }
}

#[tokio::test]
async fn never_more_than_max_parallel_run_at_once() {
    let steps: String =
        (0..12).map(|n| format!("  s{n}: {{run: 'echo + >> log; sleep 0.02; echo - >> log'}}\n")).collect();
    let ran = run(&format!("max_parallel: 3\nsteps:\n{steps}")).await;
    assert_eq!(ran.status, RunStatus::Succeeded);
    let mut running = 0;
    for line in ran.read("log").lines() {
        running += if line == "+" { 1 } else { -1 };
        assert!(running <= 3);
    }
}

async fn wait_for(path: &Path) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(std::time::Instant::now() < deadline, "{} did not appear", path.display());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_worker_whose_session_was_reaped_stops_instead_of_waiting_for_ever() {
    let dir = tempfile::tempdir().expect("a directory");
    let setup = Setup::new(&dir, "steps: {long: {run: 'touch started; sleep 100'}}").await;
    let store = Arc::clone(&setup.store);
    let session = setup.session;
    let started = dir.path().join("started");
    // What another process does with proof of our death.
    tokio::spawn(async move {
        wait_for(&started).await;
        store.retire(session, Leaving::because(LeaveReason::Done)).await.expect("reaped");
    });
    let worker = setup.drive().until_done(Control::new());
    let error =
        tokio::time::timeout(Duration::from_secs(30), worker).await.expect("it stops").expect_err("an error");
    assert!(error.to_string().contains("is over"), "{error}");
}

#[tokio::test]
async fn functions_run_beside_processes_and_hand_values_on() {
    let ran = run(r#"
steps:
  a: {run: 'echo n=20 > "$LANEWAY_OUTPUT"'}
  b: {needs: [a], function: add, with: {a: "${{ steps.a.output.n | int }}", b: "${{ 22 }}"}}
  c: {needs: [b], run: 'echo "$SUM" > sum', env: {SUM: "${{ steps.b.output.sum }}"}}
  d: {function: flaky, retry: {max: 5, backoff: 0s}}
"#)
    .await;
    assert_eq!(ran.status, RunStatus::Succeeded, "{:?}", ran.state);
    assert_eq!(ran.read("sum"), "42\n");
    assert_eq!(ran.task("d").attempt, 3);
}

#[tokio::test]
async fn effects_of_a_function_happen_once() {
    let world = tempfile::tempdir().expect("a directory");
    let dir = world.path().display();
    let ran = run(&format!(
        "steps: {{p: {{function: pay, with: {{dir: '{dir}'}}, retry: {{max: 1, backoff: 0s}}}}}}"
    ))
    .await;
    assert_eq!(ran.status, RunStatus::Succeeded, "{:?}", ran.state);
    let task = ran.task("p");
    assert_eq!(
        (task.attempt, &task.output["receipt"], &task.output["half"]),
        (2, &json!(7), &json!("whole"))
    );
    let happened = |what: &str| std::fs::read_to_string(world.path().join(what)).unwrap_or_default();
    assert_eq!((happened("charged").as_str(), happened("mailed").as_str()), ("x", "xx"));
    let told: Vec<&str> = task.effects.iter().map(|effect| effect.name.as_str()).collect();
    assert_eq!(told, ["charge", "half", "mail"]);
}

#[tokio::test]
async fn a_function_that_fails_says_why() {
    let ran = run(r#"
on_failure: continue
steps:
  wrong: {function: add, with: {a: "x"}}
  unknown: {function: subtract}
  slow: {function: endless, timeout: 20ms}
"#)
    .await;
    assert_eq!(ran.status, RunStatus::Failed);
    let told = |step: &str| {
        let task = ran.task(step);
        format!("{}: {}", task.reason.expect("a reason"), task.detail.as_deref().unwrap_or_default())
    };
    assert!(
        told("wrong").starts_with("error: its input does not fit: invalid type: string"),
        "{}",
        told("wrong")
    );
    assert!(
        told("unknown").starts_with("start_failed: this program has no function `subtract`; it has: add")
    );
    assert_eq!(told("slow"), "timeout: ran longer than 20ms");
}

#[tokio::test]
async fn cancel_drops_a_function_where_it_waits() {
    let ran = drive("steps: {a: {function: endless}}", |control, _| {
        tokio::spawn(async move { control.cancel() });
    })
    .await;
    assert_eq!(ran.status, RunStatus::Canceled);
}

#[tokio::test]
async fn nothing_that_is_held_ahead_starts_after_a_failure() {
    let before: String = (0..6).map(|at| format!("  quick{at}: {{command: [/bin/true]}}\n")).collect();
    let after: String = (0..6).map(|at| format!("  after{at}: {{run: 'echo >> ran'}}\n")).collect();
    let ran = run(&format!("max_parallel: 1\nsteps:\n{before}  bad: {{run: exit 1}}\n{after}")).await;
    assert_eq!(ran.status, RunStatus::Failed);
    assert_eq!(ran.read("ran"), "", "{:?}", ran.statuses());
    assert!(ran.statuses()[7..].iter().all(|(_, status)| *status == TaskStatus::Skipped));
    // Else this would prove nothing: what follows the failure was held when it came.
    let claims = ran.counts.tally().claims;
    assert!(claims > 7, "nothing was held ahead: {claims} claims for 7 steps that ran");
}
