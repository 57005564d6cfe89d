//! E5 in the store: an effect is recorded before it runs and committed after, under the fence of its attempt; a later attempt gets
//! the record; what was started and never finished is run blindly by nobody. docs/design/effects.md.

use std::time::Duration;

use laneway_core::class::Offer;
use laneway_core::effect::{EffectId, EffectStatus, OnUnknown};
use laneway_core::event::Fact;
use laneway_core::id::RunId;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::effect::{Begun, EffectEnd, EffectResult, EffectView, NewEffect, Settlement};
use laneway_store::model::{Ask, Lease, NewSession, Tally};
use laneway_store::prune::Keep;
use laneway_store::{ClaimRef, Error, Fate, Store};

use crate::audit;
use crate::harness::{Held, Node, Place, START, flat, flow, for_each_database, succeeded_with};

for_each_database! {
    effect_is_recorded_before_it_runs_and_committed_after,
    later_attempt_on_another_node_gets_what_is_recorded,
    empty_result_is_a_result,
    effect_that_said_it_failed_runs_again,
    effect_that_was_started_and_never_finished_is_not_run_blindly,
    unknown_effect_runs_again_where_that_is_asked_for,
    another_execution_of_the_same_attempt_is_told_who_is_at_it,
    execution_that_is_known_to_be_gone_leaves_it_unknown,
    question_that_is_asked_again_is_answered_the_same,
    commit_that_is_said_again_changes_nothing,
    stale_holder_neither_begins_nor_commits,
    session_whose_lease_has_ended_begins_nothing_but_may_commit,
    effect_of_a_claim_that_has_not_said_start_starts_it,
    task_that_is_to_be_stopped_begins_nothing_more,
    name_key_and_step_tell_effects_apart,
    item_of_a_list_that_is_made_anew_has_what_is_recorded_of_its_value,
    effect_of_an_item_of_which_nobody_knows_is_unknown_in_a_list_that_is_made_anew,
    result_that_cannot_be_kept_is_known_to_be_lacking,
    retry_of_the_run_keeps_what_is_recorded,
    person_settles_what_nobody_knows,
    person_settles_nothing_that_runs_or_is_not_there,
    of_many_that_begin_at_once_one_runs,
    effects_go_with_their_run,
    effects_are_listed_without_what_they_printed,
}

fn id(name: &str, key: &str) -> EffectId {
    EffectId::new(name, key).expect("a good name")
}

fn new(execution: &str) -> NewEffect {
    NewEffect {
        id: id("charge", ""),
        execution: execution.to_owned(),
        on_unknown: OnUnknown::Fail,
        gone: None,
    }
}

fn retrying(execution: &str) -> NewEffect {
    NewEffect { on_unknown: OnUnknown::Retry, ..new(execution) }
}

fn result(stdout: &str) -> EffectResult {
    EffectResult {
        exit_code: 0,
        stdout: stdout.as_bytes().to_vec(),
        output: "id=7\n".to_owned(),
        lacks: None,
    }
}

fn end(execution: &str, status: EffectStatus, result: EffectResult) -> EffectEnd {
    EffectEnd { id: id("charge", ""), execution: execution.to_owned(), status, result, took_ms: Some(40) }
}

fn done(execution: &str) -> EffectEnd {
    end(execution, EffectStatus::Done, result("ok\n"))
}

async fn begin(store: &dyn Store, claim: ClaimRef, new: NewEffect) -> Begun {
    let begun = store.begin_effect(claim, new).await.expect("an answer");
    audit::check(store, claim.run).await;
    begun
}

async fn commit(store: &dyn Store, claim: ClaimRef, end: EffectEnd) -> Fate {
    let fate = store.commit_effect(claim, end).await.expect("an answer");
    audit::check(store, claim.run).await;
    fate
}

async fn only(node: &Node, run: RunId) -> EffectView {
    let mut all = node.store.effects(run).await.expect("a list");
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn told(facts: &[Fact]) -> Vec<&'static str> {
    facts.iter().map(Fact::name).filter(|name| name.starts_with("effect")).collect()
}

async fn facts(node: &Node, run: RunId) -> Vec<Fact> {
    node.events(run).await.into_iter().map(|event| event.fact).collect()
}

/// A task that is running, of a run in which each may be lost and come back.
async fn running(place: &Place) -> (Node, RunId, Held) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let held = node.begin(run, "s0").await;
    (node, run, held)
}

/// The same task, after the death of its holder, held by another node.
async fn heir(place: &Place, dying: Node, run: RunId) -> (Node, Held) {
    let node = place.node("heir").await;
    drop(dying);
    node.store.reap().await.expect("an answer");
    let _ = node.store.adopt(run, node.session).await;
    let held = node.begin(run, "s0").await;
    (node, held)
}

async fn effect_is_recorded_before_it_runs_and_committed_after(place: Place) {
    let (node, run, held) = running(&place).await;
    place.advance(Duration::from_secs(1));
    assert!(matches!(begin(&*node.store, held.at, new("x")).await, Begun::Run { .. }));
    let begun = only(&node, run).await;
    assert_eq!((begun.status, begun.is_unknown, begun.attempt), (EffectStatus::Started, false, 1));
    assert_eq!(begun.started_at, START.after(Duration::from_secs(1)));
    place.advance(Duration::from_secs(1));
    assert_eq!(commit(&*node.store, held.at, done("x")).await, Fate::Recorded);
    let ended = only(&node, run).await;
    assert_eq!((ended.status, ended.exit_code, ended.took_ms), (EffectStatus::Done, Some(0), Some(40)));
    assert_eq!(ended.finished_at, Some(START.after(Duration::from_secs(2))));
    assert_eq!(told(&facts(&node, run).await), ["effect_started", "effect_committed"]);
    assert_eq!(begin(&*node.store, held.at, new("y")).await, Begun::Recorded(result("ok\n")));
    node.succeed(&held).await;
}

async fn later_attempt_on_another_node_gets_what_is_recorded(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    commit(&*node.store, held.at, done("x")).await;
    let (node, held) = heir(&place, node, run).await;
    assert_eq!(held.at.attempt, 2);
    for execution in ["y", "z"] {
        assert_eq!(begin(&*node.store, held.at, retrying(execution)).await, Begun::Recorded(result("ok\n")));
    }
    assert_eq!(told(&facts(&node, run).await), ["effect_started", "effect_committed"], "it ran once");
}

async fn empty_result_is_a_result(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    let nothing = EffectResult::default();
    let ended = end("x", EffectStatus::Done, nothing.clone());
    assert_eq!(commit(&*node.store, held.at, ended).await, Fate::Recorded);
    let (node, held) = heir(&place, node, run).await;
    assert_eq!(begin(&*node.store, held.at, new("y")).await, Begun::Recorded(nothing));
}

async fn effect_that_said_it_failed_runs_again(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    let said = EffectResult { exit_code: 7, ..result("it is down\n") };
    let failed = end("x", EffectStatus::Failed, said);
    assert_eq!(commit(&*node.store, held.at, failed).await, Fate::Recorded);
    let view = only(&node, run).await;
    assert_eq!((view.status, view.exit_code, view.stdout_bytes), (EffectStatus::Failed, Some(7), 0));
    // In the same attempt, and in a later one.
    assert!(matches!(begin(&*node.store, held.at, new("y")).await, Begun::Run { .. }));
    let failed = end("y", EffectStatus::Failed, EffectResult { exit_code: 7, ..EffectResult::default() });
    commit(&*node.store, held.at, failed).await;
    let (node, held) = heir(&place, node, run).await;
    assert!(matches!(begin(&*node.store, held.at, new("z")).await, Begun::Run { .. }));
    assert_eq!(only(&node, run).await.exit_code, None, "what it said before counts no more");
    assert_eq!(commit(&*node.store, held.at, done("z")).await, Fate::Recorded);
}

async fn effect_that_was_started_and_never_finished_is_not_run_blindly(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    let (node, held) = heir(&place, node, run).await;
    assert!(only(&node, run).await.is_unknown);
    let before = facts(&node, run).await;
    for _ in 0..2 {
        let begun = begin(&*node.store, held.at, new("y")).await;
        assert_eq!(begun, Begun::Unknown { attempt: 1, started_at: START });
    }
    assert_eq!(facts(&node, run).await, before, "nothing was changed");
}

async fn unknown_effect_runs_again_where_that_is_asked_for(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    let (node, current) = heir(&place, node, run).await;
    assert!(matches!(begin(&*node.store, current.at, retrying("y")).await, Begun::Run { .. }));
    assert_eq!(commit(&*node.store, held.at, done("x")).await, Fate::ClaimLost, "not what died");
    assert_eq!(commit(&*node.store, current.at, done("y")).await, Fate::Recorded);
    assert_eq!(told(&facts(&node, run).await), ["effect_started", "effect_started", "effect_committed"]);
}

async fn another_execution_of_the_same_attempt_is_told_who_is_at_it(place: Place) {
    let (node, _, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    let taken = Begun::Taken { execution: "x".to_owned() };
    assert_eq!(begin(&*node.store, held.at, new("y")).await, taken);
    assert_eq!(begin(&*node.store, held.at, retrying("y")).await, taken, "nor is it run at the same time");
    assert_eq!(commit(&*node.store, held.at, done("y")).await, Fate::ClaimLost);
    assert_eq!(commit(&*node.store, held.at, done("x")).await, Fate::Recorded);
}

async fn execution_that_is_known_to_be_gone_leaves_it_unknown(place: Place) {
    let (node, _, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    let gone = |new: NewEffect| NewEffect { gone: Some("x".to_owned()), ..new };
    let unknown = Begun::Unknown { attempt: 1, started_at: START };
    assert_eq!(begin(&*node.store, held.at, gone(new("y"))).await, unknown);
    assert!(matches!(begin(&*node.store, held.at, gone(retrying("y"))).await, Begun::Run { .. }));
    assert_eq!(commit(&*node.store, held.at, done("x")).await, Fate::ClaimLost);
    assert_eq!(commit(&*node.store, held.at, done("y")).await, Fate::Recorded);
}

async fn question_that_is_asked_again_is_answered_the_same(place: Place) {
    let (node, run, held) = running(&place).await;
    for _ in 0..3 {
        assert!(matches!(begin(&*node.store, held.at, new("x")).await, Begun::Run { .. }));
    }
    assert_eq!(told(&facts(&node, run).await), ["effect_started"]);
}

async fn commit_that_is_said_again_changes_nothing(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    commit(&*node.store, held.at, done("x")).await;
    let other = end("x", EffectStatus::Done, result("other\n"));
    assert_eq!(commit(&*node.store, held.at, other).await, Fate::Repeated);
    assert_eq!(begin(&*node.store, held.at, new("y")).await, Begun::Recorded(result("ok\n")));
    assert_eq!(told(&facts(&node, run).await), ["effect_started", "effect_committed"]);
    // Also when the task is over by then.
    node.succeed(&held).await;
    assert_eq!(commit(&*node.store, held.at, done("x")).await, Fate::Repeated);
}

async fn stale_holder_neither_begins_nor_commits(place: Place) {
    let (node, run, stale) = running(&place).await;
    begin(&*node.store, stale.at, new("x")).await;
    let (node, current) = heir(&place, node, run).await;
    let before = (node.state(run).await, facts(&node, run).await);
    let refused = async |claim: ClaimRef| {
        for ask in [new("x"), retrying("y")] {
            assert_eq!(begin(&*node.store, claim, ask).await, Begun::ClaimLost);
        }
        assert_eq!(commit(&*node.store, claim, done("x")).await, Fate::ClaimLost);
    };
    refused(stale.at).await;
    // Nor who only says so: the session of another, the attempt of another, a task that is not running.
    refused(ClaimRef { attempt: 2, generation: 2, ..stale.at }).await;
    refused(ClaimRef { session: node.session, ..stale.at }).await;
    assert_eq!((node.state(run).await, facts(&node, run).await), before);
    node.succeed(&current).await;
    refused(current.at).await;
    // Nor of a run that is not there.
    let nowhere = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
    let gone = ClaimRef { run: nowhere, ..current.at };
    assert_eq!(node.store.begin_effect(gone, new("x")).await.expect("an answer"), Begun::ClaimLost);
    assert_eq!(node.store.commit_effect(gone, done("x")).await.expect("an answer"), Fate::ClaimLost);
}

/// A result that arrives before anybody reaped is good; what begins then may be taken away in the next moment.
async fn session_whose_lease_has_ended_begins_nothing_but_may_commit(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    let run = node.share("name: flow\nsteps: {a: {queue: mail}}\n").await;
    let ttl = Duration::from_secs(60);
    let offer = Offer { node: "py".to_owned(), queues: ["mail".to_owned()].into(), ..Offer::default() };
    let remote = NewSession {
        offer: Some(offer),
        lease: Lease { ttl, every: ttl / 10 },
        token: Some("token-py".to_owned()),
        ..NewSession::ephemeral("py", 4)
    };
    let session = node.store.register(remote).await.expect("a session");
    let ask = Ask { session, run: None, limit: 1, ahead: 0 };
    let claim = node.store.claim(ask).await.expect("an answer").remove(0).at;
    assert!(matches!(begin(&*node.store, claim, new("x")).await, Begun::Run { .. }));
    place.advance(ttl);
    let other = NewEffect { id: id("mail", ""), ..new("y") };
    assert_eq!(begin(&*node.store, claim, other.clone()).await, Begun::ClaimLost);
    assert_eq!(commit(&*node.store, claim, done("x")).await, Fate::Recorded);
    assert_eq!(begin(&*node.store, claim, new("z")).await, Begun::ClaimLost, "not even to look");
    node.store.renew(session, Tally::default()).await.expect("nobody has reaped it");
    assert!(matches!(begin(&*node.store, claim, other).await, Begun::Run { .. }));
    assert_eq!(node.store.effects(run).await.expect("a list").len(), 2);
}

async fn effect_of_a_claim_that_has_not_said_start_starts_it(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let held = node.take(run, 1).await.remove(0);
    assert!(matches!(begin(&*node.store, held.at, new("x")).await, Begun::Run { .. }));
    assert_eq!(node.task(run, "s0").await.status, TaskStatus::Running);
    let facts = facts(&node, run).await;
    let names: Vec<&str> = facts.iter().map(Fact::name).collect();
    assert!(names.ends_with(&["task_started", "effect_started"]), "{names:?}");
    assert_eq!(node.start(&held).await, Fate::Repeated);
}

async fn task_that_is_to_be_stopped_begins_nothing_more(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    node.cancel(run).await;
    let other = NewEffect { id: id("mail", ""), ..new("y") };
    assert_eq!(begin(&*node.store, held.at, other).await, Begun::Stopping);
    // What has begun may say how it ended, and what is recorded is told.
    assert_eq!(commit(&*node.store, held.at, done("x")).await, Fate::Recorded);
    assert_eq!(begin(&*node.store, held.at, new("z")).await, Begun::Recorded(result("ok\n")));
}

async fn name_key_and_step_tell_effects_apart(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 2", &[("a", ""), ("b", "")])).await;
    let (a, b) = (node.begin(run, "a").await, node.begin(run, "b").await);
    let named = |name: &str, key: &str| NewEffect { id: id(name, key), ..new("x") };
    for claim in [a.at, b.at] {
        for (name, key) in [("charge", ""), ("charge", "1"), ("charge", "2"), ("charge2", "")] {
            assert!(matches!(begin(&*node.store, claim, named(name, key)).await, Begun::Run { .. }));
        }
    }
    let listed: Vec<String> = node
        .store
        .effects(run)
        .await
        .expect("a list")
        .iter()
        .map(|one| format!("{} {} {}", one.step, one.id.name, one.id.key).trim().to_owned())
        .collect();
    assert_eq!(
        listed,
        [
            "a charge",
            "a charge 1",
            "a charge 2",
            "a charge2",
            "b charge",
            "b charge 1",
            "b charge 2",
            "b charge2"
        ]
    );
}

/// A run with an item for each of the orders that `find` has put out.
const ORDERS: &str = "name: flow\nmax_parallel: 1\nsteps:\n  find: {run: x}\n  each: {run: x, needs: [find], for_each: \"${{ steps.find.output.orders }}\"}\n";

/// `find` gives these.
async fn find(node: &Node, run: RunId, orders: serde_json::Value) {
    let find = node.begin(run, "find").await;
    node.finish(&find, succeeded_with(serde_json::json!({ "orders": orders }))).await;
}

/// The next item charges, unless that is recorded: its token if it did, else what it was told. What it prints is `printed`.
async fn charge(node: &Node, run: RunId, item: &str, printed: &str) -> Result<String, Begun> {
    let held = node.begin(run, item).await;
    let charged = match begin(&*node.store, held.at, new("x")).await {
        Begun::Run { token, fence } => {
            let again = begin(&*node.store, held.at, new("x")).await;
            assert_eq!(again, Begun::Run { token: token.clone(), fence }, "the answer was lost");
            commit(&*node.store, held.at, end("x", EffectStatus::Done, result(printed))).await;
            Ok(token)
        }
        told => Err(told),
    };
    node.succeed(&held).await;
    charged
}

async fn item_of_a_list_that_is_made_anew_has_what_is_recorded_of_its_value(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(ORDERS).await;
    find(&node, run, serde_json::json!([17, 18, 17])).await;
    let mut tokens = Vec::new();
    for (item, printed) in [("each[0]", "first"), ("each[1]", "second"), ("each[2]", "third")] {
        tokens.push(charge(&node, run, item, printed).await.expect("it runs"));
    }
    node.retry(run, Some("find")).await.expect("a retry");
    // They come at other places, and of equal orders the first is the first.
    find(&node, run, serde_json::json!([18, 17, 19, 17, 17])).await;
    let recorded = |printed: &str| Err(Begun::Recorded(result(printed)));
    assert_eq!(charge(&node, run, "each[0]", "x").await, recorded("second"));
    assert_eq!(charge(&node, run, "each[1]", "x").await, recorded("first"));
    tokens.push(charge(&node, run, "each[2]", "fourth").await.expect("another order"));
    assert_eq!(charge(&node, run, "each[3]", "x").await, recorded("third"));
    tokens.push(charge(&node, run, "each[4]", "fifth").await.expect("one more of them"));
    // Where one of this value was that has gone elsewhere.
    node.retry(run, Some("find")).await.expect("a retry");
    find(&node, run, serde_json::json!([17, 17, 17, 17])).await;
    for (item, printed) in [("each[0]", "first"), ("each[1]", "third"), ("each[2]", "fifth")] {
        assert_eq!(charge(&node, run, item, "x").await, recorded(printed));
    }
    tokens.push(charge(&node, run, "each[3]", "none").await.expect("one more of them"));
    let count = tokens.len();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), count, "a service that knows a token would not charge another order");
    // Those that are not in the list now are when they come back, also where the list alone is made anew.
    node.retry(run, Some("find")).await.expect("a retry");
    find(&node, run, serde_json::json!([20])).await;
    charge(&node, run, "each[0]", "sixth").await.expect("another order");
    for _ in 0..2 {
        node.retry(run, Some("each")).await.expect("a retry");
        assert_eq!(charge(&node, run, "each[0]", "x").await, recorded("sixth"));
    }
    node.retry(run, Some("find")).await.expect("a retry");
    find(&node, run, serde_json::json!([19, 17])).await;
    assert_eq!(charge(&node, run, "each[0]", "x").await, recorded("fourth"));
    assert_eq!(charge(&node, run, "each[1]", "x").await, recorded("first"));
    // What is laid by goes with its run.
    let newer = node.submit(&flat(1, 1)).await;
    node.work(newer, |_| crate::harness::succeeded()).await;
    assert!(node.store.prune(run).await.expect("an answer"));
    let findings = node.store.examine(100).await.expect("an examination").findings;
    assert!(findings.is_empty(), "{findings:?}");
}

async fn effect_of_an_item_of_which_nobody_knows_is_unknown_in_a_list_that_is_made_anew(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(ORDERS).await;
    find(&node, run, serde_json::json!([17])).await;
    let held = node.begin(run, "each[0]").await;
    let begun = begin(&*node.store, held.at, new("x")).await;
    node.fail(&held).await;
    node.retry(run, Some("find")).await.expect("a retry");
    find(&node, run, serde_json::json!([16, 17])).await;
    charge(&node, run, "each[0]", "ok").await.expect("another order");
    let held = node.begin(run, "each[1]").await;
    let told = begin(&*node.store, held.at, new("y")).await;
    assert!(matches!(told, Begun::Unknown { attempt: 1, .. }), "{told:?}");
    assert_eq!(
        begin(&*node.store, held.at, retrying("y")).await,
        begun,
        "a service knows it by the same token"
    );
    node.fail(&held).await;
    let settled = node.store.settle_effect(run, "each[1]", id("charge", ""), Settlement::Done, "ada").await;
    settled.expect("a person has looked");
    audit::check(&*node.store, run).await;
    node.retry(run, Some("find")).await.expect("a retry");
    find(&node, run, serde_json::json!([17])).await;
    assert!(matches!(charge(&node, run, "each[0]", "x").await, Err(Begun::Recorded(_))));
}

async fn result_that_cannot_be_kept_is_known_to_be_lacking(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    let large = EffectResult { lacks: Some("too large".to_owned()), ..result("much") };
    commit(&*node.store, held.at, end("x", EffectStatus::Done, large)).await;
    let view = only(&node, run).await;
    assert_eq!(
        (view.status, view.stdout_bytes, view.lacks.as_deref()),
        (EffectStatus::Done, 0, Some("too large"))
    );
    let Begun::Recorded(found) = begin(&*node.store, held.at, new("y")).await else { panic!("recorded") };
    assert_eq!((found.stdout.len(), found.lacks.as_deref()), (0, Some("too large")));
}

async fn retry_of_the_run_keeps_what_is_recorded(place: Place) {
    for from in [None, Some("s0")] {
        let (node, run, held) = running(&place).await;
        begin(&*node.store, held.at, new("x")).await;
        commit(&*node.store, held.at, done("x")).await;
        node.fail(&held).await;
        assert_eq!(node.status(run).await, RunStatus::Failed);
        node.retry(run, from).await.expect("a run that goes on");
        let held = node.begin(run, "s0").await;
        assert_eq!(begin(&*node.store, held.at, new("y")).await, Begun::Recorded(result("ok\n")));
        node.succeed(&held).await;
    }
}

async fn person_settles_what_nobody_knows(place: Place) {
    for how in [Settlement::Done, Settlement::Again] {
        let (node, run, held) = running(&place).await;
        begin(&*node.store, held.at, new("x")).await;
        node.fail(&held).await;
        let settle = || node.store.settle_effect(run, "s0", id("charge", ""), how, "ada");
        settle().await.expect("settled");
        audit::check(&*node.store, run).await;
        settle().await.expect("once is enough");
        let events = facts(&node, run).await;
        assert_eq!(told(&events), ["effect_started", "effect_committed"]);
        assert_eq!(only(&node, run).await.settled_by.as_deref(), Some("ada"));
        node.retry(run, None).await.expect("a run that goes on");
        let held = node.begin(run, "s0").await;
        let expected = match how {
            Settlement::Done => Begun::Recorded(EffectResult::default()),
            Settlement::Again => Begun::Run { token: id("charge", "").token(run, "s0", None), fence: None },
        };
        assert_eq!(begin(&*node.store, held.at, new("y")).await, expected);
        node.fail(&held).await;
    }
}

async fn person_settles_nothing_that_runs_or_is_not_there(place: Place) {
    let (node, run, held) = running(&place).await;
    let settle = |step: &'static str, name: &'static str| {
        node.store.settle_effect(run, step, id(name, ""), Settlement::Done, "ada")
    };
    let refused = settle("s0", "charge").await.expect_err("there is none");
    assert!(matches!(refused, Error::NoSuchEffect { .. }), "{refused}");
    let refused = settle("s9", "charge").await.expect_err("no such step");
    assert!(matches!(refused, Error::NoSuchStep { .. }), "{refused}");
    begin(&*node.store, held.at, new("x")).await;
    let refused = settle("s0", "charge").await.expect_err("it runs");
    assert!(matches!(refused, Error::EffectRuns { attempt: 1, .. }), "{refused}");
    // What is recorded can be made undone, also while its step runs.
    commit(&*node.store, held.at, done("x")).await;
    let again = node.store.settle_effect(run, "s0", id("charge", ""), Settlement::Again, "ada");
    again.await.expect("settled");
    audit::check(&*node.store, run).await;
    assert!(matches!(begin(&*node.store, held.at, new("y")).await, Begun::Run { .. }));
}

async fn of_many_that_begin_at_once_one_runs(place: Place) {
    let (node, run, held) = running(&place).await;
    let ask = |n: usize| {
        let (store, claim) = (place.open(), held.at);
        tokio::spawn(
            async move { store.begin_effect(claim, new(&format!("x{n}"))).await.expect("an answer") },
        )
    };
    let asked: Vec<_> = (0..8).map(ask).collect();
    let mut runs = 0;
    for one in asked {
        match one.await.expect("no panic") {
            Begun::Run { .. } => runs += 1,
            Begun::Taken { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(runs, 1);
    audit::check(&*node.store, run).await;
}

async fn effects_go_with_their_run(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    commit(&*node.store, held.at, done("x")).await;
    node.succeed(&held).await;
    let newer = node.submit(&flat(1, 1)).await;
    node.work(newer, |_| crate::harness::succeeded()).await;
    place.advance(Duration::from_secs(100));
    let keep = Keep { for_: Some(Duration::from_secs(10)), ..Keep::default() };
    let found = node.store.prunable(keep, 10).await.expect("a list");
    assert_eq!(found.iter().map(|one| one.run).collect::<Vec<_>>(), [run]);
    assert!(found[0].bytes >= "ok\nid=7\n".len() as u64);
    assert!(node.store.prune(run).await.expect("an answer"));
    let findings = node.store.examine(100).await.expect("an examination").findings;
    assert!(findings.is_empty(), "{findings:?}");
}

async fn effects_are_listed_without_what_they_printed(place: Place) {
    let (node, run, held) = running(&place).await;
    begin(&*node.store, held.at, new("x")).await;
    commit(&*node.store, held.at, done("x")).await;
    let view = only(&node, run).await;
    assert_eq!((view.step.as_str(), view.id.name.as_str()), ("s0", "charge"));
    assert_eq!((view.stdout_bytes, view.output_bytes), (3, 5));
    let nowhere = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
    assert!(matches!(node.store.effects(nowhere).await, Err(Error::NoSuchRun { .. })));
}
