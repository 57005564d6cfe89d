//! The line to Postgres is cut around COMMIT, or the server goes away in the middle of work.
//! Whoever says a verb again is told the truth, and nothing is done twice.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::event::{Event, Fact};
use laneway_core::id::RunId;
use laneway_core::limit::Limit;
use laneway_core::state::RunStatus;
use laneway_store::contract::*;
use laneway_store::model::{
    Ask, CancelMode, ClaimView, Finished, NewSession, Pausable, Reopen, RunFilter, Submission, Tally,
};
use laneway_store::postgres::{Hearing, PostgresStore};
use laneway_store::sqlite::Clock;
use laneway_store::{ClaimRef, Error, Fate, Open, Result};
use serde_json::json;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

use crate::audit;
use crate::harness::{Node, START, TOOK, block_on, failed, flat, flow, left, submission, succeeded};
use crate::line::{Cut, Proxy};
use crate::server::Schema;

const SOON: Duration = Duration::from_secs(20);

/// A node whose line can be cut, and one beside it that sees what is there.
struct Place {
    proxy: Proxy,
    node: Node,
    beside: Node,
    _schema: Schema,
}

impl Place {
    async fn new() -> Self {
        let schema = Schema::new();
        let clock = Arc::new(Clock::manual(START));
        let beside = Node::register(Arc::new(schema.open_by(&clock)), "beside").await;
        let proxy = Proxy::before(&schema).await;
        let store = PostgresStore::open_with(&proxy.url, schema.dir(), Open::Create, clock);
        let node = Node::register(Arc::new(store.expect("a store")), "cut off").await;
        Self { proxy, node, beside, _schema: schema }
    }

    /// Says something whose COMMIT does not come through, or whose answer does not.
    async fn lose<T: std::fmt::Debug>(&self, cut: Cut, verb: impl Future<Output = Result<T>>) {
        self.proxy.cut(cut);
        let error = verb.await.expect_err("the line is cut");
        assert!(!self.proxy.is_armed(), "it was cut at a commit");
        assert!(matches!(error, Error::Unknown { .. }) && error.is_passing(), "{error:?}");
    }

    /// How often something is told of a run.
    async fn told(&self, run: RunId, is_so: impl Fn(&Fact) -> bool) -> usize {
        audit::check(&*self.beside.store, run).await;
        self.beside.events(run).await.iter().filter(|event: &&Event| is_so(&event.fact)).count()
    }

    /// What the node holds by the store's word.
    async fn held(&self) -> Vec<ClaimView> {
        let nodes = self.beside.store.nodes(99).await.expect("nodes");
        let node = nodes.into_iter().find(|node| node.session == self.node.session);
        node.expect("it lives").claims
    }
}

/// Each way of losing an answer, in a place of its own.
fn for_each_cut<F: Future<Output = ()>>(test: impl Fn(Place, Cut) -> F) {
    for cut in [Cut::Before, Cut::After] {
        block_on(async { test(Place::new().await, cut).await });
    }
}

/// What is said again is new, or known, by whether it was kept the first time.
fn again(cut: Cut) -> Fate {
    match cut {
        Cut::Before | Cut::Silent => Fate::Recorded,
        Cut::After => Fate::Repeated,
    }
}

#[test]
fn submission_with_a_key_makes_one_run() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        let keyed =
            || Submission { key: Some("k".into()), ..submission(&flat(2, 1), json!({}), node.session) };
        place.lose(cut, node.store.submit(keyed())).await;
        let before = node.store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("a list");
        assert_eq!(before.len(), usize::from(cut == Cut::After));
        let run = node.store.submit(keyed()).await.expect("a run");
        assert!(before.first().is_none_or(|before| before.run == run));
        assert_eq!(
            node.store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("a list").len(),
            1
        );
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::RunStarted(_))).await, 1);
    });
}

#[test]
fn claim_whose_answer_was_lost_is_held_and_can_be_given_back() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        let run = node.submit(&flat(2, 2)).await;
        place.lose(cut, node.store.claim(node.ask(run, 1))).await;
        let lost = place.held().await;
        let next = node.take(run, 1).await.pop().expect("a task");
        if cut == Cut::Before {
            assert!(lost.is_empty());
            assert_eq!((next.step.as_str(), next.at.attempt), ("s0", 1));
            return;
        }
        assert_eq!((lost.len(), lost[0].step.as_str(), lost[0].attempt), (1, "s0", 1));
        assert_eq!(next.step, "s1", "it is not given out twice");
        let lost = ClaimRef { run, position: 0, attempt: 1, generation: 1, session: node.session };
        assert_eq!(node.store.give_back(vec![lost]).await.expect("an answer"), [Fate::Recorded]);
        let back = node.take(run, 9).await;
        assert_eq!((back.len(), back[0].step.as_str()), (1, "s0"));
        assert_eq!((back[0].at.attempt, back[0].at.generation), (1, 2));
    });
}

#[test]
fn start_that_is_said_again_is_one_start() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        let run = node.submit(&flat(1, 1)).await;
        let held = node.take(run, 1).await.remove(0);
        place.lose(cut, node.store.start(vec![held.at])).await;
        assert_eq!(node.start(&held).await, again(cut));
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::TaskStarted(_))).await, 1);
    });
}

#[test]
fn level_is_taken_once_and_counts_once_whatever_was_lost_on_the_way() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        let document = flow("execution: levels", &[("a", ""), ("b", ""), ("c", "needs: [a, b]")]);
        let run = node.submit(&document).await;
        let first = node.take(run, 9).await.remove(0);
        place.lose(cut, node.store.claim_level(first.at)).await;
        let started = usize::from(cut == Cut::After) * 2;
        assert_eq!(
            place.told(run, |fact| matches!(fact, Fact::TaskStarted(_))).await,
            started,
            "all or nothing"
        );
        let held = node.store.claim_level(first.at).await.expect("a level");
        assert_eq!(held.len(), 2);
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::TaskStarted(_))).await, 2);
        let ends = || held.iter().map(|claim| Finished::new(claim.at, succeeded(), TOOK));
        place.lose(cut, node.store.finish(ends().collect(), None)).await;
        let counts = usize::from(cut == Cut::After);
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::TaskFinished(_))).await, counts * 2);
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::LevelCommitted(_))).await, counts);
        let said = node.store.finish(ends().collect(), None).await.expect("an answer");
        assert_eq!(said.fates, [again(cut); 2]);
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::LevelCommitted(_))).await, 1);
        assert_eq!(node.take(run, 9).await[0].step, "c");
    });
}

#[test]
fn finish_that_is_said_again_is_one_end_and_the_next_claim_is_not_lost() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        let run = node.submit(&flow("", &[("a", "retry: {max: 3, backoff: 0s}"), ("b", "needs: [a]")])).await;
        let held = node.begin(run, "a").await;
        let finished = |claim, outcome| vec![Finished::new(claim, outcome, TOOK)];
        place.lose(cut, node.store.finish(finished(held.at, failed(1)), None)).await;
        assert_eq!(node.finish(&held, failed(1)).await, again(cut));
        assert_eq!(node.task(run, "a").await.retries, 1, "one failure spends one retry");
        let held = node.begin(run, "a").await;
        assert_eq!(held.at.attempt, 2);
        let ask = || Some(node.ask(run, 1));
        place.lose(cut, node.store.finish(finished(held.at, succeeded()), ask())).await;
        let answer = node.store.finish(finished(held.at, succeeded()), ask()).await.expect("an answer");
        assert_eq!(answer.fates, [again(cut)]);
        let holds = place.held().await;
        assert_eq!(
            (holds.len(), holds[0].step.as_str(), holds[0].attempt),
            (1, "b", 1),
            "claimed along, once"
        );
        assert_eq!(answer.claims.len(), usize::from(cut == Cut::Before));
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::TaskFinished(_))).await, 1);
        assert_eq!(node.attempts(run, "a").await.len(), 2);
    });
}

#[test]
fn give_back_that_is_said_again_returns_once() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        let run = node.submit(&flat(1, 1)).await;
        let held = node.take(run, 1).await.remove(0);
        place.lose(cut, node.store.give_back(vec![held.at])).await;
        let expected = if cut == Cut::Before { Fate::Recorded } else { Fate::ClaimLost };
        assert_eq!(node.give_back(&held).await, expected, "it is not held any more, either way");
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::TaskReturned(_))).await, 0);
        let next = node.take(run, 1).await.remove(0).at;
        assert_eq!((next.attempt, next.generation), (1, 2));
    });
}

#[test]
fn renewal_that_is_said_again_keeps_the_session() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        place.lose(cut, node.store.renew(node.session, Tally::default())).await;
        node.store.renew(node.session, Tally::default()).await.expect("it lives");
    });
}

#[test]
fn retirement_that_is_said_again_loses_what_it_held_once() {
    for_each_cut(|place, cut| async move {
        let node = &place.node;
        let run = node.submit(&flat(1, 1)).await;
        node.begin(run, "s0").await;
        place.lose(cut, node.store.retire(node.session, left())).await;
        node.store.retire(node.session, left()).await.expect("it is over");
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::TaskLost(_))).await, 1);
        let renewed = node.store.renew(node.session, Tally::default()).await;
        assert!(matches!(renewed, Err(Error::SessionOver { .. })));
    });
}

#[test]
fn what_people_say_again_is_done_once() {
    for_each_cut(|place, cut| async move {
        let (node, store) = (&place.node, &*place.node.store);
        let run = node.submit(&flow("limits: {w: 1}", &[("a", "limits: [w]"), ("b", "limits: [w]")])).await;
        place.lose(cut, store.pause(Pausable::Run(run), "ada")).await;
        store.pause(Pausable::Run(run), "ada").await.expect("paused, or paused before");
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::RunPaused(_))).await, 1);
        place.lose(cut, store.resume(Pausable::Run(run), "ada")).await;
        store.resume(Pausable::Run(run), "ada").await.expect("resumed, or resumed before");
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::RunResumed(_))).await, 1);
        let two = Limit::parse("2").expect("a limit");
        place.lose(cut, store.set_limit("w", two, "ada")).await;
        store.set_limit("w", two, "ada").await.expect("set");
        assert_eq!(node.tasks(run).await, "a available, b available");
        place.lose(cut, store.cancel(run, "ada", CancelMode::CleanUp)).await;
        assert_eq!(
            store.cancel(run, "ada", CancelMode::CleanUp).await.expect("canceled"),
            RunStatus::Canceled
        );
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::RunCanceling(_))).await, 1);
        place.lose(cut, store.retry(run, Reopen::default(), "ada")).await;
        match (cut, store.retry(run, Reopen::default(), "ada").await) {
            (Cut::Before, Ok(steps)) => assert_eq!(steps, ["a", "b"]),
            (Cut::After, Err(Error::NotEnded { .. })) => {}
            (_, answer) => panic!("{answer:?}"),
        }
        assert_eq!(place.told(run, |fact| matches!(fact, Fact::RunReopened(_))).await, 1);
    });
}

#[test]
fn nothing_is_lost_or_doubled_while_the_server_goes_away_again_and_again() {
    block_on(LocalSet::new().run_until(async {
        let schema = Schema::new();
        let proxy = Proxy::before(&schema).await;
        let document = flow("limits: {w: 2}\nmax_parallel: 3", &STEPS);
        let mut workers = Vec::new();
        for number in 0..2 {
            let store = PostgresStore::open(&proxy.url, schema.dir(), Open::Create).expect("a store");
            let node = Node::worker(Arc::new(store), &format!("n{number}"), &[]).await;
            node.share(&document).await;
            workers.push(node);
        }
        let beside = schema.open();
        let all = beside.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("a list");
        let runs: Vec<RunId> = all.iter().map(|run| run.run).collect();
        let work: Vec<_> = workers.into_iter().map(|node| spawn_local(work(node, runs.clone()))).collect();
        let has_ended = async || {
            let all = beside.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("a list");
            all.iter().all(|run| run.status.is_some_and(RunStatus::is_final))
        };
        let mut rounds = 0;
        let bounce = async {
            while !has_ended().await {
                // Some commits come through each time, or it would never end.
                let (before, enough) = (proxy.commits(), 6 + rounds % 5);
                while proxy.commits() < before + enough && !has_ended().await {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                proxy.go_away();
                tokio::time::sleep(Duration::from_millis(10)).await;
                proxy.come_back();
                rounds += 1;
            }
        };
        timeout(SOON * 3, bounce).await.expect("the runs end");
        let mut ran = Vec::new();
        for one in work {
            ran.extend(one.await.expect("no panic"));
        }
        for run in &runs {
            audit::check(&beside, *run).await;
            let state = beside.run_state(*run).await.expect("a run");
            assert_eq!(state.status, RunStatus::Succeeded, "{state:#?}");
        }
        let once: BTreeSet<(RunId, u32)> = ran.iter().copied().collect();
        assert_eq!(
            (ran.len(), once.len()),
            (runs.len() * STEPS.len(), runs.len() * STEPS.len()),
            "after {rounds} rounds"
        );
    }));
}

const STEPS: [(&str, &str); 6] = [
    ("a", ""),
    ("b", "limits: [w]"),
    ("c", "limits: [w]"),
    ("d", "needs: [a], lock: k"),
    ("e", "needs: [b], lock: k"),
    ("f", "needs: [a, b, c, d, e]"),
];

/// Works as a node does: repeats what was not answered, and gives back what it was never told that
/// it holds. Says which tasks it has ended.
async fn work(node: Node, runs: Vec<RunId>) -> Vec<(RunId, u32)> {
    let (store, mut ended) = (&node.store, Vec::new());
    loop {
        let is_over = again_and_again(async || {
            for run in &runs {
                if !store.status(*run).await?.is_final() {
                    return Ok(false);
                }
            }
            Ok(true)
        });
        if is_over.await {
            return ended;
        }
        // A renewal is a commit, of which few come through: only where there is something to give
        // back.
        let mine = again_and_again(async || {
            let nodes = store.nodes(99).await?;
            Ok(nodes.into_iter().find(|view| view.session == node.session).map(|view| view.held))
        });
        if mine.await.expect("it lives") > 0 {
            for unknown in again_and_again(async || node.renew().await).await.held {
                again_and_again(async || store.give_back(vec![unknown]).await).await;
            }
        }
        let ask = || Ask { session: node.session, run: None, limit: 2, ahead: 0 };
        // An answer that was lost is found by the look above.
        for claim in store.claim(ask()).await.unwrap_or_default() {
            again_and_again(async || store.start(vec![claim.at]).await).await;
            let end = || vec![Finished::new(claim.at, succeeded(), TOOK)];
            let fate = again_and_again(async || store.finish(end(), None).await).await.fates[0];
            assert_ne!(fate, Fate::ClaimLost);
            ended.push((claim.at.run, claim.at.position));
        }
    }
}

async fn again_and_again<T>(verb: impl AsyncFn() -> Result<T>) -> T {
    loop {
        match verb().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(error.is_passing(), "{error:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

#[test]
fn change_that_nobody_heard_of_is_hinted_at_when_the_line_is_there_again() {
    block_on(async {
        let schema = Schema::new();
        let (store, other) = (schema.open(), schema.open());
        let session = other.register(NewSession::ephemeral("other", 1)).await.expect("a session");
        let mut changes = store.changes();
        let mut hearing = store.hearing().expect("a listener");
        let beneath = schema.beneath().await;
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE application_name = 'laneway listen ' || $1";
        let instance = store.instance().to_string();
        let rounds = async {
            loop {
                hearing.wait_for(|hearing| *hearing == Hearing::Listening).await.expect("a listener");
                beneath.query(cut, &[&instance]).await.expect("cut");
                hearing.wait_for(|hearing| *hearing == Hearing::Unconnected).await.expect("a listener");
                changes.mark_unchanged();
                other.submit(submission(&flat(1, 1), json!({}), session)).await.expect("a run");
                // A line that was quick to come back has heard of it; then it is cut once more.
                if *hearing.borrow() == Hearing::Unconnected {
                    return changes.changed().await.expect("a listener");
                }
            }
        };
        timeout(SOON, rounds).await.expect("a hint");
    });
}
