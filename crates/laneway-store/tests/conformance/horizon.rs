//! Postgres alone: claims while another session holds the server's xmin horizon, so that what
//! claimed tasks leave in the index stays there.

use std::collections::HashSet;
use std::time::Duration;

use laneway_store::ClaimRef;
use laneway_store::model::{Ask, Finished};
use tokio_postgres::Client;

use crate::harness::{Database, Held, Node, Place, block_on, flat, flow, succeeded};
use crate::server;

/// Tasks that are claimed at once: a walk from the head of the line reads all that they leave.
const TAKEN_BEFORE: usize = 20_000;

/// Enough that one of them is measured (one in 32 is), and most come behind it.
const CLAIMS: usize = 400;

const BATCH: usize = 8;

/// Behind it nothing is recent: claims always look at what became ready within half a second.
const NOT_RECENT: Duration = Duration::from_secs(1);

/// Claims of a fleet that keeps up with its work: each gets less than it wants.
const SHORT_CLAIMS: usize = 600;

/// Opens a transaction that holds the horizon, and does nothing more in it.
async fn hold_the_horizon(node: &Node) -> Client {
    let holder = server::beneath(node.store.dir()).await.expect("a store on Postgres");
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()";
    holder.batch_execute(begin).await.expect("a transaction");
    holder
}

/// Claims without a look at the whole store behind each claim, which would take minutes here.
async fn claim(node: &Node, limit: usize) -> Vec<ClaimRef> {
    let ask = Ask { session: node.session, run: None, limit, ahead: 0 };
    let claims = node.store.claim(ask).await.expect("a claim");
    claims.into_iter().map(|claim| claim.at).collect()
}

/// Entries of tasks_available that scans have read. A connection reports its counts when it ends, so the
/// figure is read until it stays.
async fn entries_read(client: &Client) -> i64 {
    let sql = "SELECT idx_tup_read FROM pg_stat_user_indexes
               WHERE schemaname = current_schema AND indexrelname = 'tasks_available'";
    let (mut last, mut alike) = (-1, 0);
    while alike < 10 {
        let read: i64 = client.query_one(sql, &[]).await.expect("a count").get(0);
        alike = if read == last && read > 0 { alike + 1 } else { 0 };
        last = read;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    last
}

#[test]
fn claims_pass_over_dead_entries_while_the_horizon_is_held() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        let looker = server::beneath(node.store.dir()).await.expect("a store on Postgres");
        let holder = hold_the_horizon(&node).await;
        node.share(&flat(TAKEN_BEFORE + CLAIMS * BATCH, TAKEN_BEFORE + CLAIMS * BATCH)).await;
        place.advance(NOT_RECENT);
        assert_eq!(claim(&node, TAKEN_BEFORE).await.len(), TAKEN_BEFORE);
        let mut taken = HashSet::new();
        for _ in 0..CLAIMS {
            let held = claim(&node, BATCH).await;
            assert_eq!(held.len(), BATCH, "a claim gets all that it asks for");
            taken.extend(held.iter().map(|claim| claim.position));
        }
        assert_eq!(taken.len(), CLAIMS * BATCH, "no task is claimed twice");
        assert!(claim(&node, BATCH).await.is_empty(), "no task is left");
        drop(node);
        drop(holder);
        let read = entries_read(&looker).await;
        let from_the_head = (CLAIMS * TAKEN_BEFORE) as i64;
        assert!(read < from_the_head / 2, "{read} entries read, {from_the_head} by claims from the head");
    });
}

#[test]
fn claims_that_get_too_little_pass_over_dead_entries_too() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        let looker = server::beneath(node.store.dir()).await.expect("a store on Postgres");
        let holder = hold_the_horizon(&node).await;
        node.share(&flat(TAKEN_BEFORE, TAKEN_BEFORE)).await;
        place.advance(NOT_RECENT);
        assert_eq!(claim(&node, TAKEN_BEFORE).await.len(), TAKEN_BEFORE);
        for number in 0..SHORT_CLAIMS {
            if number % 10 == 0 {
                let run = node.share(&flow("", &[("only", "")])).await;
                let taken = claim(&node, BATCH).await;
                assert_eq!(taken.iter().map(|claim| claim.run).collect::<Vec<_>>(), [run], "claim {number}");
            } else {
                assert!(claim(&node, BATCH).await.is_empty());
            }
        }
        drop(node);
        drop(holder);
        let read = entries_read(&looker).await;
        let from_the_head = (SHORT_CLAIMS * TAKEN_BEFORE) as i64;
        assert!(read < from_the_head / 2, "{read} entries read, {from_the_head} by claims from the head");
    });
}

#[test]
fn idle_node_is_woken_for_a_task_that_another_one_placed_before_its_cursor() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        let other = Node::worker(place.open(), "two:2", &[]).await;
        let mut changes = node.store.changes();
        let _holder = hold_the_horizon(&node).await;
        claim_up_to_the_last(&place, &node).await;
        let urgent = other.share(&flow("", &[("now", "priority: 9")])).await;
        loop {
            if let Some(taken) = claim(&node, BATCH).await.first() {
                assert_eq!(taken.run, urgent);
                return;
            }
            // No claim is made by the clock: it is a hint that leads to the task.
            let hint = tokio::time::timeout(Duration::from_secs(30), changes.changed()).await;
            hint.expect("a hint").expect("a store");
        }
    });
}

#[test]
fn task_placed_before_the_cursor_is_found_while_the_horizon_is_held() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        let _holder = hold_the_horizon(&node).await;
        node.share(&flat(TAKEN_BEFORE + 2_000, TAKEN_BEFORE + 2_000)).await;
        place.advance(NOT_RECENT);
        assert_eq!(claim(&node, TAKEN_BEFORE).await.len(), TAKEN_BEFORE);
        // Measured, if no claim was so far; from here on claims begin at a cursor.
        for _ in 0..40 {
            claim(&node, 1).await;
        }
        let urgent = node.share(&flow("", &[("now", "priority: 9")])).await;
        // Full walks take a tenth of the time, so one comes long before 1,900 claims have been made.
        let mut others = 0;
        while claim(&node, 1).await.first().expect("tasks are left").run != urgent {
            others += 1;
        }
        assert!(others < 1_500, "{others} tasks of a lower priority were claimed before it");
    });
}

/// Leaves a held horizon, cursors in use, and nothing to claim. Returns a claim that stands before the cursors.
async fn claim_up_to_the_last(place: &Place, node: &Node) -> Held {
    node.share(&flat(TAKEN_BEFORE + BATCH * BATCH, TAKEN_BEFORE + BATCH * BATCH)).await;
    place.advance(NOT_RECENT);
    let first = node.take_any(1).await.pop().expect("the first of the line");
    // Measured as the first claim, whatever it takes; the second one that is measured is the 33rd.
    assert_eq!(claim(node, TAKEN_BEFORE - 1).await.len(), TAKEN_BEFORE - 1);
    for _ in 0..BATCH * BATCH {
        assert_eq!(claim(node, 1).await.len(), 1, "each claim gets all that it asks for");
    }
    first
}

#[test]
fn task_that_comes_back_before_the_cursor_is_claimed_at_once_by_an_idle_node() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        let _holder = hold_the_horizon(&node).await;
        let first = claim_up_to_the_last(&place, &node).await;
        node.give_back(&first).await;
        let back: Vec<_> = claim(&node, BATCH).await.iter().map(|claim| claim.position).collect();
        assert_eq!(back, [first.at.position], "without a second claim, and without a wait");
        let urgent = node.share(&flow("", &[("now", "priority: 9"), ("then", "priority: 9")])).await;
        let taken = claim(&node, BATCH).await;
        assert_eq!(taken.iter().map(|claim| claim.run).collect::<Vec<_>>(), [urgent; 2]);
        assert!(claim(&node, BATCH).await.is_empty(), "nothing is left");
    });
}

#[test]
fn task_that_comes_back_before_the_cursor_is_handed_on_by_a_finish() {
    block_on(async {
        let place = Place::new(Database::Postgres);
        let node = Node::worker(place.open(), "one:1", &[]).await;
        let _holder = hold_the_horizon(&node).await;
        let first = claim_up_to_the_last(&place, &node).await;
        let urgent = node.share(&flow("", &[("one", "priority: 9"), ("two", "priority: 9")])).await;
        let ask = Ask { session: node.session, run: None, limit: BATCH, ahead: 0 };
        let finished = Finished::new(first.at, succeeded(), Duration::ZERO);
        let answer = node.store.finish(vec![finished], Some(ask)).await.expect("an answer");
        assert_eq!(answer.claims.iter().map(|claim| claim.at.run).collect::<Vec<_>>(), [urgent; 2]);
    });
}
