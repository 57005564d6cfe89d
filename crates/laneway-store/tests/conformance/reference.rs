//! A second opinion on how a run ends: read off the graph in one pass, without a store, gates or an order.
//! Under `continue` the statuses at the end must not depend on who took what when.

use std::time::Duration;

use laneway_core::definition::When;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::reason::Reason;
use laneway_core::run_state::RunState;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;
use laneway_store::model::{Claim, Finished};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness::{Database, Node, Place, block_on, failed, for_each_database, plan, succeeded};
use crate::random::{document, prove};

for_each_database! { by name:
    run_ends_as_the_reference_says_in_whatever_order,
    run_that_three_processes_share_ends_as_the_reference_says,
}

fn run_ends_as_the_reference_says_in_whatever_order(database: Database) {
    let head = (1..5_u8).prop_map(|n| format!("on_failure: continue\nmax_parallel: {n}"));
    let cases = (document(head, false), vec(any::<bool>(), 8), vec(any::<u8>(), 1..8));
    prove(
        "run_ends_as_the_reference_says_in_whatever_order",
        database.cases(100),
        cases,
        |(document, luck, order)| {
            block_on(async {
                let place = Place::quick(database);
                let node = place.node("one").await;
                let run = node.submit(&document).await;
                let (mut held, mut turn, mut ran) = (Vec::new(), 0, Vec::new());
                loop {
                    let pick = usize::from(order[turn % order.len()]);
                    turn += 1;
                    held.extend(node.take(run, pick % 3).await);
                    if held.is_empty() {
                        held.extend(node.take(run, 1).await);
                    }
                    if held.is_empty() {
                        break;
                    }
                    let one = held.swap_remove(pick % held.len());
                    let is_lucky = luck[one.at.position as usize];
                    node.finish(&one, if is_lucky { succeeded() } else { failed(1) }).await;
                    ran.push(one.at.position as usize);
                }
                let state = node.state(run).await;
                assert_reference(&document, &luck, &state, ran);
            });
        },
    );
}

fn run_that_three_processes_share_ends_as_the_reference_says(database: Database) {
    let head = (1..5_u8).prop_map(|n| format!("on_failure: continue\nmax_parallel: {n}"));
    let cases = (document(head, false), vec(any::<bool>(), 8));
    prove(
        "run_that_three_processes_share_ends_as_the_reference_says",
        database.cases(25),
        cases,
        |(document, luck)| {
            block_on(async {
                let place = Place::quick(database);
                let nodes = [place.node("one").await, place.node("two").await, place.node("three").await];
                let run = nodes[0].submit(&document).await;
                let workers = nodes.map(|node| tokio::spawn(work(node, run, luck.clone())));
                let mut ran = Vec::new();
                for worker in workers {
                    ran.extend(worker.await.expect("a worker that ends"));
                }
                let store = place.open();
                crate::audit::check(&*store, run).await;
                let state = store.run_state(run).await.expect("a run");
                assert_reference(&document, &luck, &state, ran);
            });
        },
    );
}

/// Takes one task after the other along with the finish of the last, until the run has ended.
async fn work(node: Node, run: RunId, luck: Vec<bool>) -> Vec<usize> {
    let mut ran = Vec::new();
    let mut claims = Vec::new();
    while !claims.is_empty() || !node.status(run).await.is_final() {
        let finished = claims.iter().map(|claim: &Claim| {
            let outcome = if luck[claim.at.position as usize] { succeeded() } else { failed(1) };
            Finished::new(claim.at, outcome, Duration::from_millis(3))
        });
        let finished: Vec<Finished> = finished.collect();
        ran.extend(finished.iter().map(|one| one.claim.position as usize));
        let answer = node.store.finish(finished, Some(node.ask(run, 1))).await.expect("an answer");
        assert!(answer.fates.iter().all(|fate| *fate == Fate::Recorded));
        claims = answer.claims;
    }
    ran
}

fn assert_reference(document: &str, luck: &[bool], state: &RunState, mut ran: Vec<usize>) {
    let expected = reference(&plan(document), luck);
    let found: Vec<End> = state.tasks.iter().map(|task| (task.status, task.reason)).collect();
    assert_eq!(found, expected, "{document}");
    ran.sort_unstable();
    let runs = |end: &End| matches!(end.0, TaskStatus::Succeeded | TaskStatus::Failed);
    let must_run: Vec<usize> = (0..expected.len()).filter(|step| runs(&expected[*step])).collect();
    assert_eq!(ran, must_run, "each that had to run ran once");
    let has_failed = expected.iter().any(|end| end.0 == TaskStatus::Failed);
    assert_eq!(state.status, if has_failed { RunStatus::Failed } else { RunStatus::Succeeded });
}

type End = (TaskStatus, Option<Reason>);

/// Steps need only steps before them, so one pass in their order sees every predecessor's end.
fn reference(plan: &Plan, luck: &[bool]) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    for (position, step) in plan.workflow.steps.iter().enumerate() {
        let needs: Vec<TaskStatus> = plan.needs[position].iter().map(|need| ends[*need as usize].0).collect();
        let all = |wanted: TaskStatus| needs.iter().all(|status| *status == wanted);
        let any = |wanted: TaskStatus| needs.is_empty() || needs.contains(&wanted);
        let may_run = match step.when {
            When::AllSucceeded => all(TaskStatus::Succeeded),
            When::AllFailed => all(TaskStatus::Failed),
            When::OneSucceeded => any(TaskStatus::Succeeded),
            When::OneFailed => any(TaskStatus::Failed),
            When::AllDone | When::Always => true,
        };
        let is_wanted = step.condition.as_ref().is_none_or(|condition| condition.source != "false");
        ends.push(match (may_run, is_wanted, luck[position]) {
            (false, _, _) => (TaskStatus::Skipped, Some(Reason::Upstream)),
            (true, false, _) => (TaskStatus::Skipped, Some(Reason::Condition)),
            (true, true, true) => (TaskStatus::Succeeded, None),
            (true, true, false) => (TaskStatus::Failed, Some(Reason::Exit)),
        });
    }
    ends
}
