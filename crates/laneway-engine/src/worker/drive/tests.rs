//! What the loop decides on messages that a real store sends rarely: claims that overlap, a disk that is full.

use laneway_core::definition::{Source, compile};
use laneway_store::model::{Ask, NewSession, Submission};
use laneway_store::{Open, open};

use super::*;
use crate::container::{DOCKER_HOST, Docker};
use crate::function::Call;
use crate::warden::WardenCommand;

const WORKFLOW: &str = "steps:\n  a: {run: 'true'}\n  b: {run: 'true'}\n";

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
    let session = store.register(NewSession::ephemeral("test:1", 4)).await.expect("a session");
    let source = Source { file: "t.yaml".into(), default_name: "t".into(), text: workflow.to_owned() };
    let submission = Submission {
        plan: Arc::new(compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)))),
        document: workflow.to_owned(),
        dir: dir.to_str().expect("UTF-8").to_owned(),
        bundle: None,
        params: serde_json::Map::new(),
        max_parallel: 4,
        session,
        is_shared: false,
        is_paused: false,
        key: None,
        by: "ada".into(),
        origin: None,
        parent: None,
        no_cache: false,
    };
    let run = store.submit(submission).await.expect("a run");
    let kill_grace = Duration::from_secs(1);
    let places = Places { store_dir: dir.to_owned(), scratch: dir.to_owned(), ground: Ground::Caller };
    // Nothing is started here, so any program will do.
    let command = WardenCommand {
        program: "/bin/true".into(),
        args: Vec::new(),
        lock: None,
        lease: None,
        use_cgroups: false,
    };
    let warden = Warden::start(command).expect("a process");
    let setting = Setting {
        store: Arc::clone(&store),
        places,
        workspaces: Workspaces::new(Arc::clone(&store), dir.to_owned(), dir.to_owned()),
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
    assert!(work.patience >= Duration::from_secs(1), "{:?} is not often", work.patience);
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
    let claim =
        ClaimRef { run: RunId::new(uuid::Uuid::now_v7()), position: 0, attempt: 1, session: work.session };
    let messages: [fn(ClaimRef) -> Message; 7] = [
        |_| Message::Claimed(Wanted::default(), Err(unreadable())),
        |_| Message::Recorded(Wanted::default(), Err(unreadable())),
        |claim| Message::Started(vec![claim], Err(unreadable())),
        |claim| Message::GivenBack(vec![claim], Err(unreadable())),
        |_| Message::Promoted(Err(unreadable())),
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
    let claim =
        ClaimRef { run: RunId::new(uuid::Uuid::now_v7()), position: 0, attempt: 1, session: work.session };
    let outcome = Outcome::Canceled { reason: Reason::Canceled };
    work.recording = Some(vec![Finished { claim, outcome, took: Duration::ZERO }]);
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
    work.on_message(Message::Promoted(Err(unreadable()))).expect("that may be any run");
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
        other.cancel(run, "ada").await.expect("canceled");
    };
    let both = async { tokio::join!(work.run(Control::new()), cancel).0 };
    let status = tokio::time::timeout(Duration::from_secs(60), both).await.expect("the run ends");
    assert_eq!(status.expect("the worker works"), End::Run(RunStatus::Canceled));
}

#[tokio::test]
async fn nothing_needs_a_look_without_a_hint() {
    let dir = tempfile::tempdir().expect("a directory");
    drive_beside_another(dir.path(), |work| work.patience = NEVER).await;
}

#[tokio::test]
async fn a_run_whose_hints_are_lost_goes_on_all_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_silent, changes) = watch::channel(0);
    drive_beside_another(dir.path(), |work| {
        work.changes = changes;
        work.patience = Duration::from_millis(200);
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
    let outcomes: Vec<&str> = attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["returned", "succeeded"]);
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
    let wanted = work.lineup.ask(0);
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
