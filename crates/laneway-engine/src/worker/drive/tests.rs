//! What the loop decides on messages that a real store sends rarely: claims that overlap, a disk that is full.

use laneway_core::definition::{Source, compile};
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Open, open};

use super::*;
use crate::warden::WardenCommand;

const WORKFLOW: &str = "steps:\n  a: {run: 'true'}\n  b: {run: 'true'}\n";

/// A loop that has not begun, with a run that nobody drives.
async fn idle_loop(dir: &std::path::Path) -> Loop {
    let path = dir.join("laneway.db");
    let store = open(path.to_str().expect("UTF-8"), Open::Create).expect("a store");
    let session = store.register(NewSession::ephemeral("test:1", 4)).await.expect("a session");
    let source = Source { file: "t.yaml".into(), default_name: "t".into(), text: WORKFLOW.to_owned() };
    let submission = Submission {
        plan: Arc::new(compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)))),
        document: WORKFLOW.to_owned(),
        dir: dir.to_str().expect("UTF-8").to_owned(),
        params: serde_json::Map::new(),
        max_parallel: 4,
        owner: Some(session),
        node: "test:1".into(),
        by: "ada".into(),
    };
    let run = store.submit(submission).await.expect("a run");
    let kill_grace = Duration::from_secs(1);
    let places = Places { store_dir: dir.to_owned(), scratch: dir.to_owned() };
    // Nothing is started here, so any program will do.
    let command =
        WardenCommand { program: "/bin/true".into(), args: Vec::new(), lock: None, use_cgroups: false };
    let warden = Warden::start(command).expect("a process");
    let functions = Functions::new();
    let setting = Setting {
        store: Arc::clone(&store),
        places,
        kill_grace,
        warden: warden.clone(),
        functions: functions.clone(),
        told_of_logs: Arc::default(),
    };
    let drive = Drive {
        store,
        session,
        node: "test:1".into(),
        run,
        slots: 4,
        kill_grace,
        warden,
        functions,
        by: "ada".into(),
    };
    Loop::new(drive, setting)
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
    let status = work.drive.store.status(work.drive.run).await.expect("a status");
    assert_eq!(status, RunStatus::Canceled);
}

#[tokio::test]
async fn whoever_interrupts_twice_does_not_wait_for_space_on_the_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut work = idle_loop(dir.path()).await;
    work.on_message(Message::Recorded(Wanted::default(), Err(full()))).expect("a full disk passes");
    work.on_urge(Urge::Kill);
    let error =
        work.on_message(Message::Recorded(Wanted::default(), Err(full()))).expect_err("it is given up");
    assert!(matches!(error, Error::Store(_)), "{error}");
}
