//! T1, T3: schedules that come as far as somebody says, once; ends of runs that fire; pauses.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model::Application;
use laneway_store::trigger::{DueNow, Fired, HOLD_SIGNATURES, LastFired, Outcome, TriggerView};
use laneway_store::{Error, Store};

use crate::harness::{Node, Place, flat, for_each_database, plan};
use crate::quarantine::{alter, problems};

for_each_database! {
    new_schedule_is_due_at_once_and_looks_ahead_only,
    schedule_that_has_come_so_far_is_due_again_when_its_moment_comes,
    only_one_of_two_says_how_far_a_schedule_has_come,
    schedule_that_is_applied_again_goes_on_where_it_was,
    trigger_that_is_no_more_is_forgotten,
    paused_triggers_fire_nothing_and_leave_out_what_came,
    workflow_without_triggers_has_none_to_pause,
    end_of_a_run_fires_those_who_wait_for_it_once,
    end_that_nobody_waits_for_fires_nothing,
    run_that_is_opened_again_ends_again,
    end_is_not_told_to_a_trigger_that_is_paused,
    run_that_is_skipped_when_it_is_submitted_has_ended,
    new_trigger_of_a_workflow_whose_triggers_are_paused_is_paused,
    end_before_a_pause_that_nobody_looked_at_fires_nothing,
    workflow_whose_end_leads_back_to_it_is_refused_with_the_whole_way,
    of_two_that_lead_to_each_other_one_is_applied,
    end_that_cannot_be_read_is_told_and_keeps_nothing_else_from_firing,
    schedule_of_which_nobody_knows_what_came_of_it_fires_on,
    signature_stands_for_the_delivery_that_first_carried_it,
}

for_each_database! { sqlite only:
    schedule_that_cannot_be_read_is_told_and_keeps_no_other_from_firing,
}

async fn signature_stands_for_the_delivery_that_first_carried_it(place: Place) {
    let (store, other) = (place.open(), place.open());
    let remember = async |store: &Arc<dyn Store>, path: &str, byte: u8, delivery: &str| {
        store.remember_signature(path, [byte; 32], delivery).await.expect("a delivery")
    };
    assert_eq!(remember(&store, "push", 1, "d-1").await, "d-1");
    assert_eq!(remember(&other, "push", 1, "d-2").await, "d-1", "the same body under another name");
    assert_eq!(remember(&other, "push", 1, "d-1").await, "d-1", "the same delivery again");
    assert_eq!(remember(&store, "push", 2, "d-2").await, "d-2", "another body");
    assert_eq!(remember(&store, "deploy", 1, "d-2").await, "d-2", "another path");
    place.advance(HOLD_SIGNATURES - Duration::from_millis(1));
    assert_eq!(remember(&store, "push", 1, "d-3").await, "d-1", "it is still remembered");
    place.advance(Duration::from_millis(1));
    assert_eq!(remember(&other, "push", 1, "d-4").await, "d-4", "it is forgotten");
    assert_eq!(remember(&store, "push", 1, "d-1").await, "d-4");
    let (one, two) = tokio::join!(remember(&store, "push", 3, "d-5"), remember(&other, "push", 3, "d-6"));
    assert_eq!(one, two, "of two at once one is first");
}

/// A document that starts by itself.
fn document(name: &str, head: &str) -> String {
    format!("name: {name}\n{head}\nsteps: {{a: {{run: x}}}}\n")
}

const ONE: &str = "schedule: {cron: '0 1 * * *'}";
const BOTH: &str = "schedule: [{cron: '0 1 * * *'}, {cron: '0 2 * * *'}]";
const OTHER: &str = "schedule: {cron: '0 2 * * *'}";

fn application(name: &str, head: &str) -> Application {
    let text = document(name, head);
    let plan = Arc::new(plan(&text));
    Application { plan, document: text, dir: "/work".to_owned(), bundle: None, by: "ada".to_owned() }
}

async fn apply(node: &Node, name: &str, head: &str) -> Version {
    let application = application(name, head);
    let version = application.plan.version.clone();
    node.store.apply(application).await.expect("a workflow");
    version
}

async fn due(node: &Node) -> DueNow {
    node.store.due(10).await.expect("what is due")
}

async fn only(node: &Node) -> TriggerView {
    let mut all = node.store.triggers().await.expect("triggers");
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// How far the schedule has come, as somebody found out who saw it.
fn fired(seen: &TriggerView, dealt_with: Millis, next: Millis) -> Fired {
    Fired {
        workflow: seen.at.workflow.clone(),
        key: seen.at.key.clone(),
        seen: seen.dealt_with,
        dealt_with,
        next: Some(next),
        last: None,
    }
}

const HOUR: Duration = Duration::from_secs(3600);

async fn new_schedule_is_due_at_once_and_looks_ahead_only(place: Place) {
    let node = place.node("one").await;
    assert_eq!(due(&node).await.schedules, []);
    let version = apply(&node, "flow", ONE).await;
    let now = due(&node).await;
    assert_eq!(now.schedules.len(), 1);
    let view = &now.schedules[0];
    assert_eq!((view.at.workflow.as_str(), view.at.key.as_str()), ("flow", "schedule 0 1 * * * UTC"));
    assert_eq!((&view.at.version, view.dealt_with, view.due_at), (&version, now.now, Some(now.now)));
    assert_eq!((&view.pause, &view.last, now.next), (&None, &None, None));
}

async fn schedule_that_has_come_so_far_is_due_again_when_its_moment_comes(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", ONE).await;
    let seen = only(&node).await;
    let next = seen.dealt_with.after(HOUR);
    let run = node.submit(&flat(1, 1)).await;
    let last = LastFired { at: seen.dealt_with, outcome: Outcome::Started(run) };
    let fired = Fired { last: Some(last.clone()), ..fired(&seen, seen.dealt_with.after(HOUR / 2), next) };
    assert!(node.store.fire(fired).await.expect("an answer"));
    let now = due(&node).await;
    assert_eq!((now.schedules.len(), now.next), (0, Some(next)));
    assert_eq!(only(&node).await.last, Some(last));
    place.advance(HOUR);
    assert_eq!(due(&node).await.schedules.len(), 1);
}

async fn only_one_of_two_says_how_far_a_schedule_has_come(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", ONE).await;
    let seen = only(&node).await;
    let ends = [HOUR, HOUR * 2].map(|length| seen.dealt_with.after(length));
    assert!(node.store.fire(fired(&seen, ends[0], ends[1])).await.expect("an answer"));
    let late = node.store.fire(fired(&seen, ends[0], ends[0])).await.expect("an answer");
    assert!(!late, "somebody else was faster");
    assert_eq!(only(&node).await.due_at, Some(ends[1]));
}

async fn schedule_that_is_applied_again_goes_on_where_it_was(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", ONE).await;
    let seen = only(&node).await;
    let (far, next) = (seen.dealt_with.after(HOUR), seen.dealt_with.after(HOUR * 2));
    assert!(node.store.fire(fired(&seen, far, next)).await.expect("an answer"));
    place.advance(HOUR);
    let newer = apply(&node, "flow", &format!("max_parallel: 2\n{ONE}")).await;
    let view = only(&node).await;
    assert_eq!((view.dealt_with, view.due_at, view.at.version), (far, Some(next), newer));
}

async fn trigger_that_is_no_more_is_forgotten(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", BOTH).await;
    apply(&node, "other", ONE).await;
    apply(&node, "flow", OTHER).await;
    let keys = |all: Vec<TriggerView>| -> Vec<String> {
        all.into_iter().map(|view| format!("{} {}", view.at.workflow, view.at.key)).collect()
    };
    assert_eq!(
        keys(node.store.triggers().await.expect("triggers")),
        ["flow schedule 0 2 * * * UTC", "other schedule 0 1 * * * UTC"]
    );
    apply(&node, "flow", "").await;
    assert_eq!(keys(node.store.triggers().await.expect("triggers")), ["other schedule 0 1 * * * UTC"]);
}

async fn paused_triggers_fire_nothing_and_leave_out_what_came(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", ONE).await;
    let before = only(&node).await;
    assert!(node.store.pause_triggers("flow", "ada").await.expect("a pause"));
    assert!(!node.store.pause_triggers("flow", "bob").await.expect("once is enough"));
    assert_eq!(due(&node).await.schedules, []);
    assert_eq!(only(&node).await.pause.expect("a pause").0, "ada");
    // Somebody had seen it before the pause.
    let next = before.dealt_with.after(HOUR);
    assert!(node.store.fire(fired(&before, next, next)).await.expect("an answer"));
    place.advance(HOUR * 2);
    assert_eq!(due(&node).await.schedules, [], "the pause stays");
    node.store.resume_triggers("flow").await.expect("triggers that go on");
    let now = due(&node).await;
    assert_eq!((now.schedules.len(), now.schedules[0].dealt_with), (1, now.now), "what is past is left out");
    assert_eq!(now.schedules[0].pause, None);
}

async fn workflow_without_triggers_has_none_to_pause(place: Place) {
    let node = place.node("one").await;
    let refusals = [node.store.pause_triggers("flow", "ada").await, node.store.resume_triggers("flow").await];
    for refusal in refusals {
        assert!(matches!(refusal, Err(Error::NoTriggers { .. })), "{refusal:?}");
    }
}

/// A run of `flow` that ends well, or badly.
async fn ended(node: &Node, is_good: bool) -> RunId {
    let run = node.submit(&flat(1, 1)).await;
    let held = node.take(run, 1).await.remove(0);
    if is_good {
        node.succeed(&held).await
    } else {
        node.fail(&held).await
    }
    run
}

async fn end_of_a_run_fires_those_who_wait_for_it_once(place: Place) {
    let node = place.node("one").await;
    apply(&node, "next", "after: {workflow: flow}").await;
    apply(&node, "clean", "after: {workflow: flow, when: failed}").await;
    let (good, bad) = (ended(&node, true).await, ended(&node, false).await);
    let firings = due(&node).await.firings;
    let told: Vec<(RunId, &str, &str, RunStatus)> = firings
        .iter()
        .map(|firing| {
            (
                firing.ended.run,
                firing.ended.workflow.as_str(),
                firing.end.workflow.as_str(),
                firing.ended.status,
            )
        })
        .collect();
    assert_eq!(
        told,
        [(good, "flow", "next", RunStatus::Succeeded), (bad, "flow", "clean", RunStatus::Failed)]
    );
    let last = LastFired { at: Millis(5), outcome: Outcome::Refused("no such parameter".to_owned()) };
    node.store.settle(firings[0].end.clone(), Some(last.clone())).await.expect("a record");
    let left = due(&node).await.firings;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].ended.run, bad);
    let all = node.store.triggers().await.expect("triggers");
    assert_eq!(all.iter().map(|view| view.last.clone()).collect::<Vec<_>>(), [None, Some(last)]);
    apply(&node, "clean", "").await;
    assert_eq!(due(&node).await.firings[0].trigger, None, "nobody waits for it any more");
}

async fn end_that_nobody_waits_for_fires_nothing(place: Place) {
    let node = place.node("one").await;
    apply(&node, "next", "after: [{workflow: flow, when: canceled}, {workflow: flown}]").await;
    ended(&node, true).await;
    ended(&node, false).await;
    assert_eq!(due(&node).await.firings, []);
    let run = node.submit(&flat(1, 1)).await;
    node.cancel(run).await;
    assert_eq!(due(&node).await.firings.len(), 1);
}

async fn run_that_is_opened_again_ends_again(place: Place) {
    let node = place.node("one").await;
    apply(&node, "next", "after: {workflow: flow, when: finished}").await;
    let run = ended(&node, false).await;
    node.retry(run, None).await.expect("a retry");
    let held = node.take(run, 1).await.remove(0);
    node.succeed(&held).await;
    let ends: Vec<RunStatus> = due(&node).await.firings.iter().map(|firing| firing.ended.status).collect();
    assert_eq!(ends, [RunStatus::Failed, RunStatus::Succeeded]);
}

async fn end_is_not_told_to_a_trigger_that_is_paused(place: Place) {
    let node = place.node("one").await;
    apply(&node, "next", "after: {workflow: flow}").await;
    node.store.pause_triggers("next", "ada").await.expect("a pause");
    ended(&node, true).await;
    node.store.resume_triggers("next").await.expect("triggers that go on");
    assert_eq!(due(&node).await.firings, []);
    ended(&node, true).await;
    assert_eq!(due(&node).await.firings.len(), 1);
}

async fn run_that_is_skipped_when_it_is_submitted_has_ended(place: Place) {
    let node = place.node("one").await;
    apply(&node, "next", "after: {workflow: flow, when: canceled}").await;
    let document = format!("max_runs: {{limit: 1, strategy: skip}}\n{}", flat(1, 1));
    node.submit(&document).await;
    node.submit(&document).await;
    assert_eq!(due(&node).await.firings.len(), 1);
}

async fn new_trigger_of_a_workflow_whose_triggers_are_paused_is_paused(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", ONE).await;
    node.store.pause_triggers("flow", "ada").await.expect("a pause");
    apply(&node, "flow", OTHER).await;
    assert_eq!(due(&node).await.schedules, []);
    let view = only(&node).await;
    assert_eq!(
        (view.at.key.as_str(), view.pause.map(|(by, _)| by)),
        ("schedule 0 2 * * * UTC", Some("ada".to_owned()))
    );
    node.store.resume_triggers("flow").await.expect("triggers that go on");
    assert_eq!(due(&node).await.schedules.len(), 1);
}

async fn end_before_a_pause_that_nobody_looked_at_fires_nothing(place: Place) {
    let node = place.node("one").await;
    apply(&node, "next", "after: {workflow: flow}").await;
    ended(&node, true).await;
    node.store.pause_triggers("next", "ada").await.expect("a pause");
    let firings = due(&node).await.firings;
    assert_eq!(firings.iter().map(|firing| firing.trigger.clone()).collect::<Vec<_>>(), [None]);
}

async fn workflow_whose_end_leads_back_to_it_is_refused_with_the_whole_way(place: Place) {
    let node = place.node("one").await;
    apply(&node, "b", "after: {workflow: a}").await;
    apply(&node, "c", "after: [{workflow: x}, {workflow: b, when: failed}]").await;
    // Paused is not gone.
    node.store.pause_triggers("c", "ada").await.expect("a pause");
    let refused =
        node.store.apply(application("a", "after: {workflow: c}")).await.expect_err("it leads back");
    assert!(matches!(&refused, Error::LeadsBack { way } if way.join(" ") == "a b c a"), "{refused}");
    let known = node.store.triggers().await.expect("triggers");
    assert!(known.iter().all(|trigger| trigger.at.workflow != "a"), "{known:?}");
    // Nothing is left of it, and what leads nowhere back may come after the same.
    apply(&node, "d", "after: {workflow: c}").await;
    apply(&node, "b", ONE).await;
    apply(&node, "a", "after: {workflow: c}").await;
}

async fn of_two_that_lead_to_each_other_one_is_applied(place: Place) {
    let (one, other) = (place.node("one").await, place.node("two").await);
    for round in 0..10 {
        let (p, q) = (format!("p{round}"), format!("q{round}"));
        let (first, second) = tokio::join!(
            one.store.apply(application(&p, &format!("after: {{workflow: {q}}}"))),
            other.store.apply(application(&q, &format!("after: {{workflow: {p}}}"))),
        );
        assert_ne!(first.is_ok(), second.is_ok(), "{first:?} {second:?}");
        let refused = first.err().or(second.err());
        assert!(matches!(refused, Some(Error::LeadsBack { .. })), "{refused:?}");
    }
}

async fn end_that_cannot_be_read_is_told_and_keeps_nothing_else_from_firing(place: Place) {
    let node = place.node("one").await;
    apply(&node, "next", "after: {workflow: flow}").await;
    apply(&node, "other", ONE).await;
    let (first, second) = (ended(&node, true).await, ended(&node, true).await);
    let harms = [
        ("status = 'wild'", "status = 'succeeded'"),
        ("seq = -seq", "seq = -seq"),
        ("run = 'x' || run", "run = substr(run, 2)"),
    ];
    for (harm, mend) in harms {
        let of_it = format!("WHERE run LIKE '%{first}'");
        alter(&place, &*node.store, &format!("UPDATE firings SET {harm} {of_it}")).await;
        // The one that cannot be read comes first, and yet takes nobody's place.
        let now = node.store.due(1).await.unwrap_or_else(|error| panic!("{harm}: {error}"));
        assert_eq!(now.schedules.len(), 1, "{harm}");
        let ends: Vec<RunId> = now.firings.iter().map(|firing| firing.end.run).collect();
        assert_eq!(ends, [second], "{harm}");
        let found = due(&node).await.unreadable;
        assert!(found.len() == 1 && found[0].contains(&first.to_string()), "{harm}: {found:?}");
        let problems = problems(&*node.store).await;
        assert!(problems.iter().any(|problem| problem.contains(&found[0])), "{harm}: {problems:?}");
        alter(&place, &*node.store, &format!("UPDATE firings SET {mend} {of_it}")).await;
        assert_eq!((due(&node).await.firings.len(), due(&node).await.unreadable.len()), (2, 0), "{harm}");
    }
}

async fn schedule_of_which_nobody_knows_what_came_of_it_fires_on(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", ONE).await;
    alter(&place, &*node.store, "UPDATE triggers SET fired_at = 5, fired_run = 'wild'").await;
    let now = due(&node).await;
    assert_eq!((now.schedules.len(), now.unreadable.len()), (1, 0));
    let last = only(&node).await.last.expect("something came of it");
    assert!(matches!(&last.outcome, Outcome::Refused(why) if why.contains("`wild`")), "{last:?}");
}

/// Postgres looks at texts before it keeps them.
async fn schedule_that_cannot_be_read_is_told_and_keeps_no_other_from_firing(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", ONE).await;
    apply(&node, "other", ONE).await;
    let harm = "UPDATE triggers SET version = CAST(x'ff00ff' AS TEXT) WHERE workflow = 'flow'";
    alter(&place, &*node.store, harm).await;
    let now = node.store.due(1).await.expect("what is due");
    let names: Vec<&str> = now.schedules.iter().map(|view| view.at.workflow.as_str()).collect();
    assert_eq!(names, ["other"]);
    assert!(now.unreadable.len() == 1 && now.unreadable[0].contains("`flow`"), "{:?}", now.unreadable);
}
