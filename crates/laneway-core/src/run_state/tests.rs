//! Histories that can have happened, and those that cannot.

use super::*;
use crate::event::{
    Reopening, TaskAvailable, TaskCached, TaskFinished, TaskParked, TaskSignaled, TaskStarted, TasksRemoved,
};
use crate::event::{RunDue, RunFinished, RunPaused, RunReopened, RunResumed, RunStarted, RunSubmitted};

fn history(facts: Vec<Fact>) -> Vec<Event> {
    let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("a well-formed id");
    let submitted = RunSubmitted {
        workflow: "nightly".into(),
        version: Version::of("nightly", ""),
        params: Map::new(),
        max_parallel: 4,
        by: "ada".into(),
        parent: None,
        no_cache: false,
        not_before: None,
    };
    let facts = std::iter::once(submitted.into()).chain(facts);
    (1..).zip(facts).map(|(seq, fact)| Event { run, seq, at: Millis(1000 + seq as i64), fact }).collect()
}

fn told(facts: Vec<Fact>) -> Result<RunState, String> {
    replay(["a", "b"], &history(facts)).map_err(|broken| broken.to_string())
}

fn started() -> Fact {
    RunStarted { node: "host:1".into() }.into()
}

fn available(step: &str) -> Fact {
    TaskAvailable { step: step.into() }.into()
}

fn paused(scope: PauseScope, tasks: &[&str]) -> Fact {
    RunPaused { scope, by: "ada".into(), tasks: tasks.iter().map(|step| (*step).to_owned()).collect() }.into()
}

fn resumed(scope: PauseScope) -> Fact {
    RunResumed { scope, by: "ada".into() }.into()
}

fn canceled() -> Fact {
    RunFinished { status: RunStatus::Canceled, reason: Some("replaced".into()) }.into()
}

fn statuses(state: &RunState) -> Vec<TaskStatus> {
    state.tasks.iter().map(|task| task.status).collect()
}

#[test]
fn a_pause_takes_back_what_nobody_had_claimed() {
    let paused = vec![started(), available("a"), available("b"), paused(PauseScope::Run, &["b"])];
    let state = told(paused.clone()).expect("a good history");
    assert_eq!(state.paused, [PauseScope::Run]);
    assert_eq!(statuses(&state), [TaskStatus::Available, TaskStatus::Pending]);
    // `a` had been claimed, and its holder says so only now.
    let mut more = paused;
    more.push(TaskStarted { step: "a".into(), attempt: 1, node: "host:1".into() }.into());
    more.extend([resumed(PauseScope::Run), available("b")]);
    let state = told(more).expect("a good history");
    assert_eq!(state.paused, []);
    assert_eq!(statuses(&state), [TaskStatus::Running, TaskStatus::Available]);
}

fn parked(until: Option<i64>) -> Fact {
    let (signal, until) = (Some("go".to_owned()), until.map(Millis));
    TaskParked { step: "a".into(), signal, until, timeout_at: None, items: None, workflow: None }.into()
}

fn signaled(step: &str) -> Fact {
    let payload = Map::from_iter([("n".to_owned(), 1.into())]);
    TaskSignaled { step: step.into(), signal: "go".into(), by: "ada".into(), reason: None, payload }.into()
}

fn cached(attempt: u32) -> Fact {
    let from = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
    TaskCached { step: "a".into(), attempt, key: "ab12".into(), from, recorded_at: Millis(7) }.into()
}

#[test]
fn a_result_is_taken_only_by_who_holds_the_task() {
    let end = |attempt| -> Fact {
        TaskFinished {
            step: "a".into(),
            attempt,
            status: TaskStatus::Succeeded,
            reason: Some(Reason::Cached),
            detail: None,
            exit_code: Some(0),
            took_ms: Some(1),
            output: Map::new(),
        }
        .into()
    };
    let begun = TaskStarted { step: "a".into(), attempt: 1, node: "host:1".into() };
    let state = told(vec![started(), available("a"), begun.into(), cached(1), end(1)]).expect("a hit");
    let task = &state.tasks[0];
    assert_eq!((task.status, task.reason), (TaskStatus::Succeeded, Some(Reason::Cached)));
    let pending = told(vec![started(), cached(1)]);
    assert_eq!(pending, Err("event 3: a task that is pending cannot claim".into()));
    let late = told(vec![started(), available("a"), cached(1), end(1), cached(1)]);
    assert!(late.is_err(), "it has ended");
    let other = told(vec![started(), available("a"), cached(2)]);
    assert!(matches!(other, Err(why) if why.contains("attempt 2")));
}

fn over(status: TaskStatus) -> Fact {
    TaskFinished {
        step: "a".into(),
        attempt: 0,
        status,
        reason: None,
        detail: None,
        exit_code: None,
        took_ms: Some(5),
        output: Map::from_iter([("n".to_owned(), 1.into())]),
    }
    .into()
}

#[test]
fn a_parked_task_is_ended_without_an_attempt() {
    let state = told(vec![started(), parked(Some(9)), signaled("a"), over(TaskStatus::Succeeded)]);
    let task = &state.expect("a good history").tasks[0];
    assert_eq!((task.status, task.attempt), (TaskStatus::Succeeded, 0));
    assert_eq!((task.started_at, task.finished_at), (Some(Millis(1003)), Some(Millis(1005))));
    let wait = task.wait.as_ref().expect("what it waited for");
    let signal = wait.signal.as_ref().expect("who let it go on");
    assert_eq!((wait.until, signal.by.as_str(), signal.at), (Some(Millis(9)), "ada", Millis(1004)));
    assert!(signal.payload.is_empty(), "it is the output");
}

#[test]
fn a_signal_may_come_before_the_task_is_parked_and_only_once() {
    let early = told(vec![started(), signaled("a"), parked(None)]).expect("a good history");
    let signal = early.tasks[0].wait.as_ref().and_then(|wait| wait.signal.as_ref()).expect("it is kept");
    assert_eq!(signal.payload.len(), 1);
    assert_eq!(
        told(vec![started(), parked(None), signaled("a"), signaled("a")]),
        Err("event 5: a task that is signaled cannot signal".into())
    );
    assert_eq!(
        told(vec![started(), available("b"), signaled("b")]),
        Err("event 4: a task that is available cannot signal".into())
    );
    assert_eq!(
        told(vec![started(), available("a"), parked(None)]),
        Err("event 4: a task that is available cannot park".into())
    );
    // Whoever opens it again has to be told anew.
    let reopened = RunReopened {
        why: Reopening::Retry,
        by: "ada".into(),
        tasks: vec!["a".into()],
        level: None,
        children: Vec::new(),
    };
    let again = vec![
        started(),
        parked(None),
        signaled("a"),
        over(TaskStatus::Succeeded),
        canceled(),
        reopened.into(),
    ];
    assert_eq!(told(again).expect("a retry").tasks[0].wait, None);
}

fn running(attempt: u32) -> Fact {
    TaskStarted { step: "a".into(), attempt, node: "host:1".into() }.into()
}

fn begun(attempt: u32, name: &str) -> Fact {
    EffectStarted { step: "a".into(), attempt, name: name.into(), key: String::new() }.into()
}

fn ended(attempt: u32, name: &str, status: EffectStatus, by: Option<&str>) -> Fact {
    EffectCommitted {
        step: "a".into(),
        attempt,
        name: name.into(),
        key: String::new(),
        status,
        exit_code: Some(0),
        took_ms: None,
        by: by.map(str::to_owned),
    }
    .into()
}

#[test]
fn effects_outlive_their_attempt_and_a_retry_of_the_run() {
    use EffectStatus::{Done, Started};
    let lost = crate::event::TaskLost { step: "a".into(), attempt: 1, node: "host:1".into() };
    let reopened = RunReopened {
        why: Reopening::Retry,
        by: "ada".into(),
        tasks: vec!["a".into()],
        level: None,
        children: Vec::new(),
    };
    let mut facts = vec![
        started(),
        available("a"),
        running(1),
        begun(1, "b"),
        begun(1, "a"),
        ended(1, "a", Done, None),
        lost.into(),
        available("a"),
        running(2),
    ];
    let of = |facts: &[Fact]| {
        let state = told(facts.to_vec()).expect("a good history");
        let told = |effect: &EffectState| (effect.name.clone(), effect.status, effect.attempt);
        state.tasks[0].effects.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(of(&facts), [("a".into(), Done, 1), ("b".into(), Started, 1)]);
    facts.extend([begun(2, "b"), canceled(), reopened.into()]);
    // A run cannot end with a running task in life; the fold does not look at that.
    let broken = told(facts.clone()).expect_err("a task that runs cannot be opened");
    assert_eq!(broken, "event 13: a task that is running cannot reopen");
    let failed = TaskFinished {
        step: "a".into(),
        attempt: 2,
        status: TaskStatus::Failed,
        reason: None,
        detail: None,
        exit_code: Some(1),
        took_ms: None,
        output: Map::new(),
    };
    facts.insert(11, failed.into());
    assert_eq!(of(&facts), [("a".into(), Done, 1), ("b".into(), Started, 2)]);
    facts.push(ended(2, "b", EffectStatus::Failed, Some("ada")));
    assert_eq!(of(&facts)[1].1, EffectStatus::Failed);
}

#[test]
fn effects_that_cannot_have_happened_are_refused() {
    use EffectStatus::Done;
    let with = |more: Vec<Fact>| told([vec![started(), available("a"), running(1)], more].concat());
    assert_eq!(
        told(vec![started(), available("a"), begun(1, "a")]),
        Err("event 4: a durable effect that is of no running attempt cannot start".into())
    );
    assert_eq!(
        with(vec![begun(1, "a"), ended(1, "a", Done, None), begun(1, "a")]),
        Err("event 7: a durable effect that is done cannot start".into())
    );
    assert_eq!(
        with(vec![begun(1, "a"), ended(1, "a", Done, None), ended(1, "a", Done, None)]),
        Err("event 7: a durable effect that is done cannot commit".into())
    );
    assert_eq!(
        with(vec![ended(1, "a", Done, None)]),
        Err("event 5: a durable effect that is not there cannot commit".into())
    );
    assert_eq!(
        with(vec![begun(1, "a"), ended(2, "a", Done, None)]),
        Err("event 6: a durable effect that is of another attempt cannot commit".into())
    );
}

fn grown(first: u32, items: &[i64], attempts: u32) -> Fact {
    let items = items.iter().map(|item| (*item).into()).collect();
    TasksAdded { step: "b".into(), total: 3, first, items, attempts }.into()
}

fn parked_for(items: u32) -> Fact {
    let (signal, until, timeout_at) = (None, None, None);
    TaskParked { step: "b".into(), signal, until, timeout_at, items: Some(items), workflow: None }.into()
}

fn names(state: &RunState) -> Vec<(&str, u32)> {
    state.tasks.iter().map(|task| (task.step.as_str(), task.attempt)).collect()
}

#[test]
fn items_are_tasks_behind_the_steps_from_the_moment_on_in_which_they_are_added() {
    let some = vec![started(), parked_for(3), grown(0, &[7, 8], 0), available("b[1]")];
    let state = told(some.clone()).expect("a good history");
    assert_eq!(names(&state), [("a", 0), ("b", 0), ("b[0]", 0), ("b[1]", 0)]);
    assert_eq!(state.tasks[1].items, Some(Items { total: 3, added: 2 }));
    assert_eq!(state.tasks[1].wait, None, "it waits for its items, and for nothing else");
    let item = state.tasks[3].item.as_ref().expect("an item");
    assert_eq!((item.of.as_str(), item.index, &item.value), ("b", 1, &Value::from(8)));
    let all = [some.clone(), vec![grown(2, &[9], 0)]].concat();
    assert_eq!(names(&told(all).expect("a good history")).last(), Some(&("b[2]", 0)));
    // A list that is made anew has none of the former tasks.
    let again = [some, vec![TasksRemoved { step: "b".into() }.into()]].concat();
    let state = told(again).expect("a good history");
    assert_eq!((names(&state), state.tasks[1].items), (vec![("a", 0), ("b", 0)], None));
}

#[test]
fn items_that_cannot_have_been_added_are_refused() {
    let elsewhere = Err("event 5: a task that is elsewhere in its list cannot grow".into());
    assert_eq!(told(vec![started(), parked_for(3), grown(0, &[7], 0), grown(0, &[7], 0)]), elsewhere);
    assert_eq!(
        told(vec![started(), parked_for(3), grown(0, &[1, 2, 3, 4], 0)]),
        Err("event 4: a task that is elsewhere in its list cannot grow".into())
    );
    assert_eq!(
        told(vec![started(), grown(0, &[7], 0)]),
        Err("event 3: a task that is elsewhere in its list cannot grow".into())
    );
    assert_eq!(
        told(vec![started(), parked_for(3), available("b[0]")]),
        Err("event 4 speaks of step `b[0]`, which the workflow does not have".into())
    );
}

#[test]
fn items_that_come_in_the_place_of_others_go_on_behind_their_attempts() {
    let state = told(vec![started(), parked_for(3), grown(0, &[7], 4), available("b[0]")]);
    assert_eq!(names(&state.expect("a good history"))[2], ("b[0]", 4));
    let next = TaskStarted { step: "b[0]".into(), attempt: 5, node: "host:1".into() };
    let more = vec![started(), parked_for(3), grown(0, &[7], 4), available("b[0]"), next.into()];
    assert_eq!(told(more).expect("a good history").tasks[2].status, TaskStatus::Running);
}

#[test]
fn a_run_and_its_workflow_are_paused_apart() {
    let both = vec![started(), paused(PauseScope::Workflow, &[]), paused(PauseScope::Run, &[])];
    assert_eq!(told(both.clone()).expect("both").paused, [PauseScope::Run, PauseScope::Workflow]);
    let one = [both, vec![resumed(PauseScope::Run)]].concat();
    assert_eq!(told(one).expect("one of them").paused, [PauseScope::Workflow]);
}

#[test]
fn pauses_that_cannot_have_happened_are_refused() {
    let twice = vec![paused(PauseScope::Run, &[]), paused(PauseScope::Run, &[])];
    assert_eq!(told(twice), Err("event 3: a run that is paused cannot pause".into()));
    assert_eq!(
        told(vec![resumed(PauseScope::Run)]),
        Err("event 2: a run that is not paused cannot resume".into())
    );
    assert_eq!(
        told(vec![canceled(), paused(PauseScope::Run, &[])]),
        Err("event 3: a run that is canceled cannot pause".into())
    );
    assert_eq!(
        told(vec![paused(PauseScope::Run, &["a"])]),
        Err("event 2: a task that is pending cannot withdraw".into())
    );
}

#[test]
fn a_run_for_later_waits_until_it_is_due_or_has_ended() {
    let later = |facts: Vec<Fact>| {
        let mut events = history(facts);
        let Fact::RunSubmitted(submitted) = &mut events[0].fact else { panic!("it comes first") };
        submitted.not_before = Some(Millis(1002));
        replay(["a", "b"], &events).map_err(|broken| broken.to_string())
    };
    let due = || Fact::from(RunDue {});
    let at = |facts| later(facts).expect("a good history").not_before;
    assert_eq!(at(vec![]), Some(Millis(1002)));
    assert_eq!(at(vec![due()]), None);
    assert_eq!(at(vec![due(), started()]), None);
    assert_eq!(at(vec![canceled()]), None);
    assert!(later(vec![due(), due()]).is_err(), "a moment comes once");
    assert!(told(vec![due()]).is_err(), "it was for no later moment");
    assert!(told(vec![started(), due()]).is_err());
}

#[test]
fn a_run_that_ends_in_the_queue_starts_when_it_is_retried() {
    let state = told(vec![paused(PauseScope::Run, &[]), canceled()]).expect("queued runs can be canceled");
    assert_eq!((state.status, state.started_at), (RunStatus::Canceled, None));
    let reopened = RunReopened {
        why: Reopening::Retry,
        by: "ada".into(),
        tasks: Vec::new(),
        level: None,
        children: Vec::new(),
    };
    let state = told(vec![paused(PauseScope::Run, &[]), canceled(), reopened.into()]).expect("a retry");
    assert_eq!((state.status, state.started_at), (RunStatus::Running, Some(Millis(1004))));
    assert_eq!(state.paused, [], "whoever retries a run wants it to go on");
}
