//! What keys and answers make of the model, and what that costs with very many tasks.

use std::time::Instant;

use laneway_core::definition::{Source, compile};
use laneway_core::event::Closing;
use laneway_core::id::RunId;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_server::wire;
use laneway_store::model::CancelMode;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::action::{Action, consequence};
use super::keys::{hints, typed};
use super::look::Look;
use super::message::{Answer, Effect, Load, Message};
use super::model::{Model, Pace, Screen};
use super::picture::Picture;
use super::update::update;
use super::view::view;

fn id() -> RunId {
    RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id")
}

fn task(step: &str, index: Option<u32>, status: TaskStatus) -> serde_json::Value {
    let mut task = json!({
        "step": step, "item": null, "status": status.as_str(), "attempt": 1, "node": "alpha:7000", "reason": null,
        "cause": null, "exit_code": null, "output": {}, "started_at": null, "finished_at": null, "detail": null,
        "took_ms": 5, "run_at": null,
    });
    if let Some(index) = index {
        task["index"] = index.into();
    }
    task
}

fn run(status: RunStatus, tasks: &[serde_json::Value]) -> Box<wire::Run> {
    let run = json!({
        "run": id().to_string(), "workflow": "flow", "status": status.as_str(), "reason": null, "tasks": tasks,
        "params": {}, "max_parallel": 4, "submitted_by": "ada", "submitted_at": "2026-11-15T12:00:00.000Z",
        "started_at": "2026-11-15T12:00:00.000Z", "finished_at": null, "directory": "/", "version": "x",
        "owner": null, "interrupted": false, "set_aside": null, "paused": [], "last_event": 3,
    });
    Box::new(serde_json::from_value(run).expect("a run"))
}

fn node(name: &str) -> wire::Node {
    let moment = "2026-11-15T12:00:00.000Z";
    let node = json!({
        "node": name, "session": "0199f2a0-0000-7000-8000-1a2b3c4d5e70", "pid": 7, "registered_at": moment, "slots": 4,
        "labels": {}, "engines": ["process"], "state": "takes work", "observed_at": moment, "renewed_at": moment,
        "last_active_at": null, "claim_attempts": 0, "claim_contentions": 0, "expired_leases": 0,
        "claimed": {"total": 0, "succeeded": 0, "failed": 0, "canceled": 0, "returned": 0, "lost": 0},
        "sessions_reaped": 0, "running_claims": 0, "active_claims": [],
    });
    serde_json::from_value(node).expect("a node")
}

fn pool(name: &str, node: &str) -> wire::Pool {
    let pool = json!({
        "pool": name, "node": node, "starting": 0, "idle": 1, "running": 0, "dormant": 0, "containers": [],
    });
    serde_json::from_value(pool).expect("a pool")
}

fn picture(text: &str) -> Picture {
    let source = Source { file: "t.yaml".into(), default_name: "t".into(), text: text.to_owned() };
    Picture::new(&wire::Graph::of(&compile(&source).expect("a good document")))
}

/// A model with a run on its screen.
fn model(run: Box<wire::Run>, document: &str) -> Model {
    let mut model = Model::new(Look::new(false, true), "here".to_owned(), Millis(0));
    super::update::open_run(&mut model, id());
    update(&mut model, Message::Answer(Answer::Run(run)));
    let picture = std::sync::Arc::new(picture(document));
    update(&mut model, Message::Answer(Answer::Picture { run: id(), picture }));
    model
}

fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    typed(keys).expect("keys").into_iter().flat_map(|key| update(model, Message::Key(key))).collect()
}

fn acts(effects: &[Effect]) -> Vec<Action> {
    let mut acts = Vec::new();
    for effect in effects {
        match effect {
            Effect::Act(action) => acts.push(action.clone()),
            Effect::Load(_) | Effect::LookAt(_) | Effect::Redraw | Effect::Suspend | Effect::Quit => {}
        }
    }
    acts
}

const TWO: &str = "steps: {a: {run: x}, b: {needs: [a], run: x}}";

#[test]
fn nothing_is_done_without_a_second_key() {
    let tasks = [task("a", None, TaskStatus::Failed), task("b", None, TaskStatus::Skipped)];
    for (keys, wanted) in [
        ("r", Action::Retry { run: id(), from: None, seen: Some(3) }),
        ("R", Action::Retry { run: id(), from: Some("a".to_owned()), seen: Some(3) }),
        ("s", Action::Skip { run: id(), step: "a".to_owned() }),
    ] {
        let mut model = model(run(RunStatus::Failed, &tasks), TWO);
        for no in ["n", "esc", "q"] {
            assert!(acts(&press(&mut model, &format!("{keys} {no}"))).is_empty(), "{keys} {no}");
            assert!(model.asked.is_none(), "{keys} {no}");
        }
        // Any other key is neither a yes nor a no.
        assert!(acts(&press(&mut model, &format!("{keys} enter x c space"))).is_empty(), "{keys}");
        assert_eq!(acts(&press(&mut model, "y")), [wanted]);
    }
}

#[test]
fn pauses_and_drains_are_asked_about_and_name_what_they_are_for() {
    let going = |paused: &[&str]| {
        let mut run = run(RunStatus::Running, &[task("a", None, TaskStatus::Running)]);
        run.paused = paused.iter().map(ToString::to_string).collect();
        model(run, "steps: {a: {run: x}}")
    };
    let listed = || {
        let mut model = going(&[]);
        update(&mut model, Message::Answer(Answer::Nodes(vec![node("alpha:7000"), node("beta:7000")])));
        update(&mut model, Message::Answer(Answer::Pools(vec![pool("oven", "beta:7000")])));
        model
    };
    for (mut model, keys, wanted, word) in [
        (going(&[]), "p", Action::Pause { run: id(), is_paused: true }, "nothing new starts"),
        (going(&["run"]), "p", Action::Pause { run: id(), is_paused: false }, "starts at once"),
        (listed(), "2 down d", Action::Drain { node: "beta:7000".to_owned() }, "takes no more tasks"),
        (
            listed(),
            "3 d",
            Action::DrainPool { node: "beta:7000".to_owned(), pool: "oven".to_owned() },
            "containers are removed",
        ),
    ] {
        assert!(acts(&press(&mut model, &format!("{keys} n"))).is_empty(), "{keys}");
        assert!(model.asked.is_none(), "{keys}");
        let again = keys.chars().last().expect("a key").to_string();
        assert!(acts(&press(&mut model, &again)).is_empty(), "{keys}");
        let (_, told) = consequence(&model, &model.asked.as_ref().expect("a question").action);
        assert!(told.contains(word), "{keys}: {told}");
        assert_eq!(acts(&press(&mut model, "y")), [wanted], "{keys}");
    }
    let mut of_workflow = going(&["workflow"]);
    press(&mut of_workflow, "p");
    assert!(of_workflow.asked.is_none());
    assert!(of_workflow.notice.take().expect("a word").text.contains("laneway resume WORKFLOW"));
}

#[test]
fn keys_follow_the_states_and_say_why_they_do_nothing() {
    let tasks = [task("a", None, TaskStatus::Running), task("b", None, TaskStatus::Pending)];
    let mut going = model(run(RunStatus::Running, &tasks), TWO);
    for (key, why) in [
        ("r", "goes on"),
        ("R", "goes on"),
        ("s", "only a step that failed"),
        ("a", "no signal"),
        ("d", "nodes"),
    ] {
        press(&mut going, key);
        assert!(going.asked.is_none(), "{key}");
        let notice = going.notice.take().expect("a word").text;
        assert!(notice.contains(why), "{key}: {notice}");
    }
    assert_eq!(acts(&press(&mut going, "c y")), [Action::Cancel { run: id(), mode: CancelMode::CleanUp }]);
    let tasks = [task("a", None, TaskStatus::Succeeded), task("b", None, TaskStatus::Succeeded)];
    let mut over = model(run(RunStatus::Succeeded, &tasks), TWO);
    press(&mut over, "c");
    assert!(over.notice.take().expect("a word").text.contains("has ended"));
}

#[test]
fn a_signal_takes_a_reason_and_enter() {
    let tasks = [task("a", None, TaskStatus::Parked), task("b", None, TaskStatus::Pending)];
    let mut model =
        model(run(RunStatus::Running, &tasks), "steps: {a: {wait: {signal: go}}, b: {needs: [a], run: x}}");
    let effects = press(&mut model, "a y e s enter");
    let wanted = Action::Signal {
        run: id(),
        step: "a".to_owned(),
        signal: "go".to_owned(),
        reason: Some("yes".to_owned()),
    };
    assert_eq!(acts(&effects), [wanted]);
}

#[test]
fn what_is_pasted_is_words_and_never_a_yes() {
    let tasks = [task("a", None, TaskStatus::Parked), task("b", None, TaskStatus::Pending)];
    let document = "steps: {a: {wait: {signal: go}}, b: {needs: [a], run: x}}";
    let mut model = model(run(RunStatus::Running, &tasks), document);
    let paste = |model: &mut Model, text: &str| update(model, Message::Paste(text.to_owned()));
    // Where nothing is typed it is nothing, whatever its letters would do as keys.
    assert!(paste(&mut model, "cy\nq").is_empty() && model.asked.is_none());
    press(&mut model, "c");
    assert!(acts(&paste(&mut model, "y\n")).is_empty() && model.asked.is_some(), "only a key agrees");
    press(&mut model, "esc a o");
    assert!(acts(&paste(&mut model, "k, as\nagreed\u{1b}[31m\r\n")).is_empty());
    let reason = Some("ok, as agreed [31m".to_owned());
    let wanted = Action::Signal { run: id(), step: "a".to_owned(), signal: "go".to_owned(), reason };
    assert_eq!(acts(&press(&mut model, "enter")), [wanted]);
    press(&mut model, "tab /");
    paste(&mut model, "pend\n");
    press(&mut model, "i");
    assert_eq!(model.run.as_ref().map(|opened| opened.filter.as_str()), Some("pendi"));
}

#[test]
fn the_last_line_offers_what_the_state_allows() {
    let letters = |model: &Model| {
        let acts: Vec<&str> =
            hints(model).iter().map(|(key, _)| *key).filter(|key| "acrspd".contains(key)).collect();
        acts.concat()
    };
    let of = |status, first| {
        let tasks = [task("a", None, first), task("b", None, TaskStatus::Pending)];
        model(run(status, &tasks), "steps: {a: {wait: {signal: go}}, b: {needs: [a], run: x}}")
    };
    for (status, first, wanted) in [
        (RunStatus::Running, TaskStatus::Running, "c"),
        (RunStatus::Running, TaskStatus::Parked, "ac"),
        (RunStatus::Failed, TaskStatus::Failed, "rs"),
        (RunStatus::Canceled, TaskStatus::Canceled, "r"),
        (RunStatus::Canceled, TaskStatus::Failed, "r"),
        (RunStatus::Succeeded, TaskStatus::Succeeded, ""),
    ] {
        assert_eq!(letters(&of(status, first)), wanted, "{status} {first}");
    }
    let mut canceling = run(RunStatus::Running, &[task("a", None, TaskStatus::Running)]);
    canceling.closing = Some(Closing::Canceled);
    let mut canceling = model(canceling, "steps: {a: {run: x}}");
    assert_eq!(letters(&canceling), "");
    for key in ["c", "p"] {
        press(&mut canceling, key);
        assert!(canceling.asked.is_none(), "{key}");
        assert!(canceling.notice.take().expect("a word").text.contains("is being canceled"), "{key}");
    }
}

#[test]
fn the_list_knows_that_a_run_is_being_canceled() {
    let mut model = Model::new(Look::new(false, true), "here".to_owned(), Millis(0));
    let listed = json!({
        "run": id().to_string(), "workflow": "flow", "status": "running", "reason": null, "closing": "canceled",
        "submitted_at": "2026-11-15T12:00:00.000Z", "started_at": null, "finished_at": null, "submitted_by": "ada",
        "tasks": {}, "interrupted": false, "set_aside": null,
    });
    let runs = vec![serde_json::from_value(listed).expect("a run of a list")];
    update(&mut model, Message::Answer(Answer::Runs(runs)));
    press(&mut model, "c");
    assert!(model.asked.is_none());
    assert!(model.notice.take().expect("a word").text.contains("is being canceled"));
}

/// R tries again what did not succeed, and undoes what a person skipped; what is done is left to `laneway retry --from`.
#[test]
fn a_step_is_tried_again_only_where_something_is_left_to_do() {
    let skipped_by = |reason: &str| {
        let mut task = task("a", None, TaskStatus::Skipped);
        task["reason"] = reason.into();
        task
    };
    for (status, first, is_offered) in [
        (RunStatus::Failed, task("a", None, TaskStatus::Failed), true),
        (RunStatus::Canceled, task("a", None, TaskStatus::Failed), true),
        (RunStatus::Canceled, task("a", None, TaskStatus::Canceled), true),
        (RunStatus::Succeeded, skipped_by("skipped_by_person"), true),
        (RunStatus::Failed, skipped_by("upstream"), false),
        (RunStatus::Failed, task("a", None, TaskStatus::Succeeded), false),
        (RunStatus::Succeeded, task("a", None, TaskStatus::Succeeded), false),
        (RunStatus::Running, skipped_by("skipped_by_person"), false),
    ] {
        let name = format!("{status} {first}");
        let mut model = model(run(status, &[first, task("b", None, TaskStatus::Succeeded)]), TWO);
        press(&mut model, "R");
        assert_eq!(model.asked.is_some(), is_offered, "{name}");
    }
    let mut canceled = model(
        run(
            RunStatus::Canceled,
            &[task("a", None, TaskStatus::Failed), task("b", None, TaskStatus::Canceled)],
        ),
        TWO,
    );
    press(&mut canceled, "s");
    assert!(canceled.asked.is_none());
    assert!(canceled.notice.take().expect("a word").text.contains("was canceled"));
}

/// A run of `laneway run` goes on in the terminal beside its store; through a server nobody could go on with it.
#[test]
fn a_run_of_laneway_run_is_not_opened_again_through_a_server() {
    let tasks = [task("a", None, TaskStatus::Failed), task("b", None, TaskStatus::Skipped)];
    for (local, is_remote, wanted) in
        [(true, false, "in this terminal"), (false, false, "Nodes take it"), (false, true, "Nodes take it")]
    {
        let mut run = run(RunStatus::Failed, &tasks);
        run.local = local;
        let mut model = model(run, TWO);
        model.is_remote = is_remote;
        for key in ["r", "R", "s"] {
            press(&mut model, key);
            let action = model.asked.take().expect("a question").action;
            let (_, told) = consequence(&model, &action);
            assert!(told.contains(wanted), "{key}: {told}");
        }
    }
    let mut run = run(RunStatus::Failed, &tasks);
    run.local = true;
    let mut model = model(run, TWO);
    model.is_remote = true;
    for key in ["r", "R", "s"] {
        press(&mut model, key);
        assert!(model.asked.is_none(), "{key}");
        let notice = model.notice.take().expect("a word").text;
        assert!(notice.contains("laneway retry") && notice.contains("beside its store"), "{key}: {notice}");
    }
}

#[test]
fn a_hint_reads_what_is_on_the_screen_and_nothing_else() {
    let tasks = [task("a", None, TaskStatus::Running), task("b", None, TaskStatus::Pending)];
    let mut model = model(run(RunStatus::Running, &tasks), TWO);
    assert_eq!(update(&mut model, Message::Hint), [Effect::Load(Load::Run(id()))]);
    press(&mut model, "2");
    assert_eq!(update(&mut model, Message::Hint), [Effect::Load(Load::Nodes)]);
    assert_eq!(model.pace(), Pace::Still, "nothing moves there");
    assert_eq!(model.screen, Screen::Nodes);
}

#[test]
fn what_is_shown_is_called_stale_until_an_answer_comes() {
    let tasks = [task("a", None, TaskStatus::Running)];
    let mut model = model(run(RunStatus::Running, &tasks), "steps: {a: {run: x}}");
    update(&mut model, Message::Lost("gone".to_owned()));
    assert_eq!(model.stale.as_deref(), Some("gone"));
    update(&mut model, Message::Answer(Answer::Run(run(RunStatus::Running, &tasks))));
    assert_eq!(model.stale, None);
}

#[test]
fn what_was_chosen_stays_chosen_when_the_list_changes() {
    let tasks = [task("a", None, TaskStatus::Succeeded), task("b", None, TaskStatus::Running)];
    let mut model = model(run(RunStatus::Running, &tasks), TWO);
    press(&mut model, "tab G");
    let chosen = |model: &Model| model.run.as_ref().and_then(|opened| opened.chosen.clone());
    assert_eq!(chosen(&model), Some(("b".to_owned(), None)));
    let more = [
        task("a", None, TaskStatus::Succeeded),
        task("c", None, TaskStatus::Pending),
        task("b", None, TaskStatus::Failed),
    ];
    update(&mut model, Message::Answer(Answer::Run(run(RunStatus::Running, &more))));
    assert_eq!(chosen(&model), Some(("b".to_owned(), None)));
}

#[test]
fn a_log_knows_its_task_also_when_a_filter_no_longer_does() {
    let tasks = |status| [task("a", None, status), task("b", None, TaskStatus::Running)];
    let mut model = model(run(RunStatus::Running, &tasks(TaskStatus::Running)), TWO);
    press(&mut model, "tab / r u n n i n g enter g enter");
    assert_eq!(model.log.as_ref().map(|log| log.of.step.as_str()), Some("a"));
    update(&mut model, Message::Answer(Answer::Run(run(RunStatus::Running, &tasks(TaskStatus::Succeeded)))));
    let is_ended = |effects: Vec<Effect>| {
        effects.iter().any(
            |effect| matches!(effect, Effect::Load(Load::Log { is_ended: true, of, .. }) if of.step == "a"),
        )
    };
    assert!(is_ended(update(&mut model, Message::Clock(Millis(1)))));
}

#[test]
fn ten_thousand_tasks_that_change_cost_a_bounded_time() {
    let steps: Vec<String> = (0..10_000).map(|n| format!("s{n}: {{run: x}}")).collect();
    let tasks: Vec<_> = (0..10_000).map(|n| task(&format!("s{n}"), None, TaskStatus::Running)).collect();
    let mut model = model(run(RunStatus::Running, &tasks), &format!("steps: {{{}}}", steps.join(", ")));
    model.size = (160, 50);
    let mut terminal = Terminal::new(TestBackend::new(160, 50)).expect("no terminal can fail here");
    let begun = Instant::now();
    for keys in ["down", "tab", "down", "tab"].into_iter().cycle().take(40) {
        press(&mut model, keys);
        terminal.draw(|frame| view(&model, frame)).expect("it is drawn");
    }
    let each = begun.elapsed() / 40;
    // A tenth of the time between two frames, in a build that is hardly optimised.
    assert!(each.as_millis() < 50, "{each:?} for a frame");
}
