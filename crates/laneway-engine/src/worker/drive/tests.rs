//! What the loop decides on messages that a real store sends rarely: claims that overlap, a disk that is full.

use laneway_core::class::Offer;
use laneway_core::definition::{Source, compile};
use laneway_core::state::TaskStatus;
use laneway_store::model::{Ask, CancelMode, NewSession, Submission};
use laneway_store::{Open, open};

use super::*;
use crate::container::{DOCKER_HOST, Docker};
use crate::function::Call;
use crate::warden::WardenCommand;

const WORKFLOW: &str = "steps:\n  a: {run: 'true'}\n  b: {run: 'true'}\n";

fn submission(dir: &std::path::Path, session: SessionId, workflow: &str) -> Submission {
    let source = Source { file: "t.yaml".into(), default_name: "t".into(), text: workflow.to_owned() };
    Submission {
        dir: dir.to_str().expect("UTF-8").to_owned(),
        params: serde_json::Map::new(),
        max_parallel: 4,
        by: "ada".into(),
        ..Submission::new(
            Arc::new(compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)))),
            workflow.to_owned(),
            session,
        )
    }
}

/// A loop that has not begun, with a run that nobody drives.
async fn idle_loop(dir: &std::path::Path) -> Loop {
    loop_of(dir, WORKFLOW, Functions::new()).await
}

async fn loop_of(dir: &std::path::Path, workflow: &str, functions: Functions) -> Loop {
    let aim = |run| Aim::Run { run, by: "ada".into(), is_over_when_paused: false };
    loop_for(aim, dir, workflow, functions).await
}

async fn loop_for(
    aim: impl FnOnce(RunId) -> Aim,
    dir: &std::path::Path,
    workflow: &str,
    functions: Functions,
) -> Loop {
    let path = dir.join("laneway.db");
    let store = open(path.to_str().expect("UTF-8"), Open::Create).expect("a store");
    loop_on(store, aim, dir, workflow, functions).await
}

async fn loop_on(
    store: Arc<dyn Store>,
    aim: impl FnOnce(RunId) -> Aim,
    dir: &std::path::Path,
    workflow: &str,
    functions: Functions,
) -> Loop {
    let session = store.register(NewSession::ephemeral("test:1", 4)).await.expect("a session");
    let run = store.submit(submission(dir, session, workflow)).await.expect("a run");
    let kill_grace = Duration::from_secs(1);
    let places = Places {
        store_dir: dir.to_owned(),
        scratch: dir.to_owned(),
        ground: Ground::Caller { pass_env: None },
    };
    // Nothing is started here, so any program will do.
    let command = WardenCommand {
        program: "/bin/true".into(),
        args: Vec::new(),
        lock: None,
        lease: None,
        use_cgroups: false,
        is_leased: false,
    };
    let warden = Warden::start(command).expect("a process");
    let setting = Setting {
        store: Arc::clone(&store),
        places,
        workspaces: Workspaces::new(Arc::clone(&store), dir.to_owned(), dir.to_owned(), u64::MAX),
        courier: None,
        kill_grace,
        warden: warden.clone(),
        functions: functions.clone(),
        session,
        sweeper: Sweeper::new(Docker::at(DOCKER_HOST), Arc::clone(&store)),
        containers: Containers::default(),
        pools: Arc::default(),
        recorder: Arc::default(),
        counts: Counts::default(),
        takes_results: true,
        uses: Arc::default(),
        wishes: Arc::default(),
        door: None,
        told_of_logs: Arc::default(),
    };
    let means = Means {
        store,
        session,
        slots: 4,
        kill_grace,
        warden,
        functions,
        containers: Containers::default(),
        pulse: None,
        counts: Counts::default(),
        max_poll_interval: Duration::from_secs(15),
        takes_results: true,
        workspace_max_bytes: crate::WORKSPACE_MAX_BYTES,
    };
    Loop::new(means, aim(run), setting)
}

fn run_of(work: &Loop) -> RunId {
    match work.aim {
        Aim::Run { run, .. } => run,
        Aim::Any { .. } => panic!("it drives a run"),
    }
}

fn full() -> laneway_store::Error {
    laneway_store::Error::Full { path: "laneway.db".into() }
}

#[tokio::test]
async fn a_finish_does_not_ask_for_slots_that_a_claim_under_way_may_fill() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = idle_loop(dir.path()).await;
    work.claim();
    let (none, ask) = work.ask();
    assert_eq!((none, ask.limit), (Wanted::default(), 0));
    work.on_message(Message::Claimed(Wanted { now: 4, ahead: 0 }, Ok(Vec::new()))).expect("nothing wrong");
    assert!(work.lineup.is_asking(), "what the finish left out is asked for at once");
}

#[tokio::test]
async fn a_cancel_that_a_full_disk_refused_is_said_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = idle_loop(dir.path()).await;
    work.urge = Urge::Cancel;
    work.on_message(Message::Canceled(Err(full()))).expect("a full disk passes");
    assert!(work.look_at.is_some(), "nothing would say it again");
    work.look();
    while let Some(message) = work.events.join_next().await {
        assert!(!matches!(message, Ok(Message::Canceled(Err(_))) | Err(_)));
    }
    let status = work.store.status(run_of(&work)).await.expect("a status");
    assert_eq!(status, RunStatus::Canceled);
}

#[tokio::test]
async fn whoever_interrupts_twice_does_not_wait_for_space_on_the_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = idle_loop(dir.path()).await;
    work.on_message(Message::Recorded(Wanted::default(), Err(full()))).expect("a full disk passes");
    work.on_urge(Urge::Kill, &Control::new());
    let error =
        work.on_message(Message::Recorded(Wanted::default(), Err(full()))).expect_err("it is given up");
    assert!(matches!(error, Error::Store(_)), "{error}");
}

fn unreadable() -> laneway_store::Error {
    laneway_store::Error::Unreadable { what: "row".to_owned(), why: "`wild` is not known".to_owned() }
}

/// The same loop, as that of a node that takes whatever comes.
async fn loop_of_anything(dir: &std::path::Path) -> Loop {
    let aim = |_| Aim::Any { shutdown_grace: Duration::from_secs(1), watches_engine: false };
    loop_for(aim, dir, WORKFLOW, Functions::new()).await
}

/// C10. A hint that came before it listened is lost, as any other may be.
#[tokio::test]
async fn an_idle_worker_looks_often_from_its_start_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = loop_of_anything(dir.path()).await;
    let patience = (work.patience)();
    assert!(patience >= Duration::from_secs(1), "{patience:?} is not often");
    let often = Duration::from_millis(100);
    tokio::select! {
        biased;
        end = work.run(Control::new()) => panic!("{end:?}"),
        () = std::future::ready(()) => {}
    }
    let first = work.look_at.expect("it looks again without a hint");
    assert!(first <= Instant::now() + often, "{:?}", first - Instant::now());
    // So it stays while nothing is found.
    for look in 1..50 {
        work.look_at = None;
        work.on_message(Message::Looked(Ok((Orders::default(), None)))).expect("nothing wrong");
        let next = work.look_at.expect("it looks again without a hint");
        assert!(next <= Instant::now() + often, "look {look}: {:?}", next - Instant::now());
    }
    let mut of_one = idle_loop(dir.path()).await;
    of_one.rest();
    let next = of_one.look_at.expect("it looks again without a hint");
    assert!(next > Instant::now() + often, "who drives a run of its own hears of what it does itself");
}

#[tokio::test]
async fn what_cannot_be_read_and_is_nobodys_fault_ends_no_node_and_is_asked_for_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = loop_of_anything(dir.path()).await;
    let claim = ClaimRef {
        run: RunId::new(uuid::Uuid::now_v7()),
        position: 0,
        attempt: 1,
        generation: 1,
        session: work.session,
    };
    let messages: [fn(ClaimRef) -> Message; 7] = [
        |_| Message::Claimed(Wanted::default(), Err(unreadable())),
        |_| Message::Recorded(Wanted::default(), Err(unreadable())),
        |claim| Message::Started(vec![claim], Err(unreadable())),
        |claim| Message::GivenBack(vec![claim], Err(unreadable())),
        |_| Message::Promoted(Promotion::Timed, Err(unreadable())),
        |_| Message::Looked(Err(unreadable())),
        |_| Message::Renewed(Instant::now(), Err(unreadable())),
    ];
    for message in messages {
        (work.look_at, work.wake_at) = (None, None);
        work.unsaid.clear();
        work.on_message(message(claim)).expect("a node goes on");
        let again = work.look_at.or(work.wake_at).or(work.say_at()).expect("it is tried again");
        assert!(again > Instant::now() + ASK_AGAIN / 2, "not at once");
    }
    work.sweep_at = None;
    work.on_message(Message::Swept(Err(unreadable()))).expect("a node goes on");
    assert!(work.sweep_at.is_some());
    assert_eq!(work.told.of_faults.len(), 1, "told once");
    assert_eq!(work.unreturned, [claim]);
}

#[tokio::test]
async fn node_that_leaves_does_not_wait_for_what_cannot_be_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = loop_of_anything(dir.path()).await;
    let claim = ClaimRef {
        run: RunId::new(uuid::Uuid::now_v7()),
        position: 0,
        attempt: 1,
        generation: 1,
        session: work.session,
    };
    let outcome = Outcome::Canceled { reason: Reason::Canceled };
    work.recording = Some(vec![Finished::new(claim, outcome, Duration::ZERO)]);
    work.urge = Urge::Cancel;
    work.on_message(Message::Recorded(Wanted::default(), Err(unreadable()))).expect("it goes on to its end");
    work.on_message(Message::GivenBack(vec![claim], Err(unreadable()))).expect("it goes on to its end");
    assert!(work.is_idle(), "its session returns them");
}

#[tokio::test]
async fn what_must_end_a_loop_ends_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = loop_of_anything(dir.path()).await;
    let over = laneway_store::Error::SessionOver { session: work.session };
    let closed = laneway_store::Error::Closed { why: "it is gone".to_owned() };
    for error in [over, closed] {
        work.on_message(Message::Looked(Err(error.clone()))).expect_err("nothing can be said any more");
        work.on_message(Message::Swept(Err(error))).expect_err("nothing can be said any more");
    }
}

#[tokio::test]
async fn whoever_drives_a_run_is_told_what_is_wrong_with_it_and_bears_what_is_wrong_with_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = idle_loop(dir.path()).await;
    work.on_message(Message::Promoted(Promotion::Timed, Err(unreadable()))).expect("that may be any run");
    let error = work.on_message(Message::Claimed(Wanted::default(), Err(unreadable()))).expect_err("its own");
    assert!(matches!(error, Error::Store(_)), "{error}");
}

/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(3_600);

/// A step that fails and is tried again after a while, one behind it, and one that waits until it is canceled.
const WAITS: &str = "steps:
  flaky: {function: flaky, retry: {max: 2, backoff: 50ms}}
  next: {function: flaky, needs: [flaky], retry: {max: 1, backoff: 20ms}}
  endless: {function: endless}
";

/// Drives that run with a loop that was made hard of hearing, while another process looks on, and cancels it when all
/// but the endless step has ended.
async fn drive_beside_another(dir: &std::path::Path, deafen: impl FnOnce(&mut Loop)) {
    let functions = Functions::new()
        .add("flaky", |call: Call<serde_json::Value>| async move {
            if call.attempt < 2 { Err("too early") } else { Ok(()) }
        })
        .add("endless", |_: Call<serde_json::Value>| std::future::pending::<Result<(), &str>>());
    let mut work = loop_of(dir, WAITS, functions).await;
    deafen(&mut work);
    let run = run_of(&work);
    let other = open(dir.join("laneway.db").to_str().expect("UTF-8"), Open::Existing).expect("a store");
    let cancel = async {
        let mut changes = other.changes();
        while other
            .run_state(run)
            .await
            .expect("a state")
            .tasks
            .iter()
            .filter(|task| task.status.is_final())
            .count()
            < 2
        {
            let _ = tokio::time::timeout(Duration::from_millis(20), changes.changed()).await;
        }
        other.cancel(run, "ada", CancelMode::CleanUp).await.expect("canceled");
    };
    let both = async { tokio::join!(work.run(Control::new()), cancel).0 };
    let status = tokio::time::timeout(Duration::from_secs(60), both).await.expect("the run ends");
    assert_eq!(status.expect("the worker works"), End::Run(RunStatus::Canceled));
}

#[tokio::test]
async fn nothing_needs_a_look_without_a_hint() {
    let dir = tempfile::tempdir().expect("a directory");
    drive_beside_another(dir.path(), |work| work.patience = Box::new(|| NEVER)).await;
}

#[tokio::test]
async fn a_run_whose_hints_are_lost_goes_on_all_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_silent, changes) = watch::channel(0);
    drive_beside_another(dir.path(), |work| {
        work.changes = changes;
        work.patience = Box::new(|| Duration::from_millis(200));
    })
    .await;
}

/// The same with steps that end at once.
async fn quick_loop(dir: &std::path::Path) -> Loop {
    let functions = Functions::new()
        .add("quick", |_: Call<serde_json::Value>| async { Ok::<(), std::convert::Infallible>(()) });
    loop_of(dir, "steps:\n  a: {function: quick}\n  b: {function: quick}\n", functions).await
}

async fn run_to_its_end(work: &mut Loop) -> End {
    let end = tokio::time::timeout(Duration::from_secs(60), work.run(Control::new())).await;
    end.expect("nothing is left waiting for ever").expect("a run that ends")
}

/// Takes the tasks of the run as this session would, and loses the answer.
async fn claimed_unheard(work: &Loop) -> Vec<Claim> {
    let ask = Ask { session: work.session, run: Some(run_of(work)), limit: 9, ahead: 0 };
    work.store.claim(ask).await.expect("claims")
}

#[tokio::test]
async fn claims_whose_answer_was_lost_go_back_and_are_run_after_all() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = quick_loop(dir.path()).await;
    let lost = claimed_unheard(&work).await;
    assert!(!lost.is_empty());
    work.on_message(Message::Claimed(Wanted::default(), Err(full()))).expect("a full disk passes");
    let end = run_to_its_end(&mut work).await;
    assert_eq!(end, End::Run(RunStatus::Succeeded));
    let step = &lost[0].head.plan.step(lost[0].at.position).name;
    let attempts = work.store.attempts(run_of(&work), step).await.expect("attempts");
    let told: Vec<_> = attempts.iter().map(|attempt| (attempt.attempt, attempt.outcome.as_str())).collect();
    assert_eq!(told, [(1, "succeeded")], "a claim of which nobody heard executed nothing");
}

/// Two functions: `quick`, and `long`, which fills a slot until it is let go.
fn quick_and_long(gate: &watch::Receiver<bool>) -> Functions {
    let gate = gate.clone();
    let quick = |_: Call<serde_json::Value>| async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok::<(), std::convert::Infallible>(())
    };
    Functions::new().add("quick", quick).add("long", move |_: Call<serde_json::Value>| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|is_open| *is_open).await.expect("the test lives");
            Ok::<(), std::convert::Infallible>(())
        }
    })
}

#[tokio::test]
async fn worker_does_not_take_ahead_and_give_back_again_and_again_while_its_slots_are_busy() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("laneway.db");
    let store = open(path.to_str().expect("UTF-8"), Open::Create).expect("a store");
    gives_back_next_to_nothing(store, dir.path(), 3_000).await;
}

/// A schema of its own on the tests' server, as a URL.
#[expect(clippy::disallowed_methods, reason = "a tool of the test, and no step")]
fn schema(name: &str) -> String {
    let server = std::env::var("LANEWAY_TEST_POSTGRES").expect("run this with `cargo xtask postgres`");
    let name = format!("{name}_{}", std::process::id());
    let mut psql = std::process::Command::new("psql");
    let made = psql.args([&server, "-qc", &format!("CREATE SCHEMA {name}")]).status();
    assert!(made.expect("psql runs").success());
    let mark = if server.contains('?') { '&' } else { '?' };
    format!("{server}{mark}options=-csearch_path%3D{name}")
}

#[tokio::test]
async fn worker_does_not_take_ahead_and_give_back_again_and_again_on_postgres() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&schema("busy"), Open::Create).expect("a store");
    gives_back_next_to_nothing(store, dir.path(), 2_000).await;
}

/// A list of short items beside steps that fill every slot, again and again: what is taken ahead of them goes back once
/// for each time.
async fn gives_back_next_to_nothing(store: Arc<dyn Store>, dir: &std::path::Path, items: usize) {
    const ROUNDS: usize = 5;
    let (open, gate) = watch::channel(false);
    let functions = quick_and_long(&gate);
    let aim = |_| Aim::Any { shutdown_grace: Duration::from_secs(1), watches_engine: false };
    let mut work = loop_on(store, aim, dir, WORKFLOW, functions.clone()).await;
    let names = functions.names().map(str::to_owned).collect();
    let offer = Offer { node: "busy:1".into(), functions: names, ..Offer::default() };
    let session = NewSession { offer: Some(offer), ..NewSession::ephemeral("busy:1", 4) };
    work.session = work.store.register(session).await.expect("a session");
    let (store, session, counts) = (Arc::clone(&work.store), work.session, work.counts.clone());
    let list = format!("steps:\n  each: {{function: quick, for_each: {:?}}}\n", vec![0; items]);
    let submitted = Submission { max_parallel: 64, ..submission(dir, session, &list) };
    let each = store.submit(Submission { is_shared: true, ..submitted }).await.expect("a run");
    let control = Control::new();
    let mut worker = tokio::spawn({
        let control = control.clone();
        async move { work.run(control).await.map(|_| ()) }
    });
    let mut changes = store.changes();
    let mut until = async |is_so: &dyn Fn(&laneway_core::run_state::RunState) -> bool, run: RunId| {
        while !is_so(&store.run_state(run).await.expect("a run")) {
            tokio::select! {
                end = &mut worker => panic!("the worker ended: {end:?}"),
                _ = changes.changed() => {}
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
            }
        }
    };
    let status = |state: &laneway_core::run_state::RunState, status: TaskStatus| {
        state.tasks.iter().filter(|task| task.status == status && !task.step.contains("each[")).count()
    };
    let ended = |state: &laneway_core::run_state::RunState| {
        state.tasks.iter().filter(|task| task.status == TaskStatus::Succeeded).count()
    };
    let mut before = 0;
    for round in 1..=ROUNDS {
        // Some of the list, so that tasks are known to be quick.
        until(&|state| ended(state) >= before + 100, each).await;
        let long = "steps:\n".to_owned()
            + &["a", "b", "c", "d"]
                .map(|name| format!("  {name}: {{function: long, priority: 100}}\n"))
                .concat();
        open.send_replace(false);
        let submitted = submission(dir, session, &long);
        let run = store.submit(Submission { is_shared: true, ..submitted }).await.expect("a run");
        until(&|state| status(state, TaskStatus::Running) == 4, run).await;
        // So long that what is held ahead goes back five times.
        tokio::time::sleep(5 * leave::HOLD).await;
        open.send_replace(true);
        until(&|state| state.status.is_final(), run).await;
        before = ended(&store.run_state(each).await.expect("a run"));
        assert!(before < items, "the list was too short for round {round}");
    }
    until(&|state| state.status.is_final(), each).await;
    let tally = counts.tally();
    assert!(tally.claims >= items as u64, "{tally:?}");
    // At most what the slots hold ahead, once for each time in which they are busy.
    assert!(tally.returned <= 4 * ROUNDS as u64, "{} were given back", tally.returned);
    let state = store.run_state(each).await.expect("a run");
    assert!(state.tasks.iter().all(|task| task.attempt <= 1), "each was executed once");
    control.cancel();
    worker.await.expect("no panic").expect("a worker that ends");
}

#[tokio::test]
async fn level_that_is_taken_when_the_time_to_leave_is_over_begins_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "execution: levels\nsteps:\n  a: {function: quick}\n  b: {function: quick}\n";
    let quick = |_: Call<serde_json::Value>| async { Ok::<(), std::convert::Infallible>(()) };
    let mut work = loop_of(dir.path(), text, Functions::new().add("quick", quick)).await;
    let run = run_of(&work);
    let first = claimed_unheard(&work).await.remove(0);
    work.aim = Aim::Any { shutdown_grace: NEVER, watches_engine: false };
    let at = first.at;
    work.take_level(first);
    work.on_urge(Urge::Cancel, &Control::new());
    work.cut_short();
    let taken = loop {
        let message = work.events.join_next().await.expect("it is under way").expect("no panic");
        if matches!(message, Message::LevelTaken(..)) {
            break message;
        }
    };
    assert!(matches!(&taken, Message::LevelTaken(of, Ok(claims)) if *of == at && claims.len() == 2));
    work.on_message(taken).expect("nothing wrong");
    assert!(work.running.is_empty() && work.levels.is_empty() && work.taking.is_empty());
    // What is held goes back with the session, and the whole level is offered again.
    let left = laneway_core::node_event::Leaving::because(laneway_core::node_event::LeaveReason::Done);
    work.store.retire(work.session, left).await.expect("it leaves");
    let heir = work.store.register(NewSession::ephemeral("heir:1", 4)).await.expect("a session");
    work.store.adopt(run, heir).await.expect("adopted");
    let ask = Ask { session: heir, run: Some(run), limit: 9, ahead: 0 };
    let first = work.store.claim(ask).await.expect("claims").remove(0);
    let level = work.store.claim_level(first.at).await.expect("a level");
    let attempts: Vec<u32> = level.iter().map(|claim| claim.at.attempt).collect();
    assert_eq!(attempts, [2, 2]);
}

#[tokio::test]
async fn what_the_store_says_is_held_is_kept_while_its_answer_may_be_under_way() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = quick_loop(dir.path()).await;
    let (wanted, _) = work.ask();
    let claims = claimed_unheard(&work).await;
    let held = claims.iter().map(|claim| claim.at).collect();
    work.compare(Instant::now(), Renewed { held, stops: Vec::new() });
    assert!(work.events.is_empty(), "nothing is given back");
    let mine = claims[0].at;
    work.on_message(Message::Claimed(wanted, Ok(claims))).expect("claims");
    assert!(work.running.contains_key(&mine));
    assert!(work.strangers.is_empty());
    let end = run_to_its_end(&mut work).await;
    assert_eq!(end, End::Run(RunStatus::Succeeded));
    assert_eq!(work.counts.tally().returned, 0);
}

#[tokio::test]
async fn what_runs_without_being_held_is_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = quick_loop(dir.path()).await;
    let before = Instant::now();
    let claims = claimed_unheard(&work).await;
    let mine = claims[0].at;
    work.on_message(Message::Claimed(Wanted::default(), Ok(claims))).expect("claims");
    work.compare(before, Renewed::default());
    assert!(!work.running[&mine].is_lost, "it began after the question");
    work.compare(Instant::now(), Renewed::default());
    assert!(work.running[&mine].is_lost);
    assert_eq!(work.counts.tally().lost, 2, "both steps");
}

/// On Postgres a start and the end behind it travel on two connections, and the store may take the end first.
#[tokio::test]
async fn start_that_comes_to_the_store_behind_its_own_end_loses_no_claim() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = quick_loop(dir.path()).await;
    let claims = claimed_unheard(&work).await;
    let [first, second] = [claims[0].at, claims[1].at];
    work.on_message(Message::Claimed(Wanted::default(), Ok(claims))).expect("claims");
    while work.running.contains_key(&first) {
        let message = work.events.join_next().await.expect("it is under way").expect("no panic");
        work.on_message(message).expect("nothing wrong");
    }
    work.record();
    while work.recording.is_some() {
        let message = work.events.join_next().await.expect("it is under way").expect("no panic");
        work.on_message(message).expect("nothing wrong");
    }
    let late = work.store.start(vec![first]).await.expect("an answer");
    assert_eq!(late, [Fate::ClaimLost], "the store says that of a claim that is over");
    work.on_message(Message::Started(vec![first], Ok(late))).expect("nothing wrong");
    assert_eq!(work.counts.tally().lost, 0, "its end was recorded");
    let end = run_to_its_end(&mut work).await;
    assert_eq!(end, End::Run(RunStatus::Succeeded), "{second:?}");
}

#[tokio::test]
async fn start_of_a_step_that_still_runs_under_a_claim_of_another_kills_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let functions = Functions::new()
        .add("endless", |_: Call<serde_json::Value>| std::future::pending::<Result<(), &str>>());
    let mut work = loop_of(dir.path(), "steps:\n  a: {function: endless}\n", functions).await;
    let claims = claimed_unheard(&work).await;
    let mine = claims[0].at;
    work.on_message(Message::Claimed(Wanted::default(), Ok(claims))).expect("claims");
    work.on_message(Message::Started(vec![mine], Ok(vec![Fate::ClaimLost]))).expect("nothing wrong");
    assert!(work.running[&mine].is_lost);
    assert_eq!(work.counts.tally().lost, 1);
}
