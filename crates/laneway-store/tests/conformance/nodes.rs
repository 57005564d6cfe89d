//! W6, S3, C2: what nodes tell of themselves, what they have done, and what the store says that they hold.

use laneway_core::node_event::{Leaving, NodeEvent, NodeFact};
use laneway_store::model::{Ask, CancelMode, LOSSES_KEPT, Losses, Renewed, Tally, Whom};
use laneway_store::{Error, Teller};

use crate::harness::{Node, Place, flow, for_each_database, left};
use crate::quarantine::{alter, problems};

for_each_database! {
    node_tells_when_it_joins_drains_and_stops,
    node_that_died_is_told_as_lost_with_what_it_held,
    nodes_that_were_lost_are_counted_whether_they_come_back_or_not,
    names_that_were_lost_long_ago_are_forgotten_and_the_count_is_not,
    node_for_its_own_runs_is_in_no_stream,
    events_of_a_node_are_numbered_without_gaps_whoever_tells,
    renewal_says_what_a_session_holds_and_what_is_to_be_stopped,
    claim_whose_answer_was_lost_shows_when_the_session_is_renewed,
    session_that_is_over_cannot_be_renewed,
    what_a_node_has_done_is_shown_with_it,
    task_is_lost_only_as_often_as_the_deployment_says,
    event_of_a_node_that_cannot_be_read_is_named_and_hides_none_of_the_others,
}

fn told(events: &[NodeEvent]) -> Vec<String> {
    events.iter().map(|event| format!("{} {} {}", event.seq, event.node, event.fact.name())).collect()
}

async fn history(node: &Node) -> Vec<NodeEvent> {
    node.store.node_events(None, 0, 100).await.expect("events")
}

async fn node_tells_when_it_joins_drains_and_stops(place: Place) {
    let person = place.node("person").await;
    let node = Node::worker(place.open(), "eu:1", &["zone=eu"]).await;
    let why = Leaving::orphaned(4100);
    let drained = node.store.drain(Whom::Session(node.session), why.clone()).await.expect("a session");
    assert_eq!(drained, [node.session]);
    let again = person.store.drain(Whom::Node("eu:1".into()), Leaving::drained_by("ada")).await;
    assert_eq!(again.expect("a node"), [node.session], "it is told once");
    node.store.retire(node.session, why.clone()).await.expect("a session that can end");
    let events = history(&person).await;
    assert_eq!(told(&events), ["1 eu:1 node_joined", "2 eu:1 node_draining", "3 eu:1 node_stopping"]);
    assert!(events.iter().all(|event| event.session == node.session));
    let NodeFact::NodeJoined(joined) = &events[0].fact else { panic!("{events:?}") };
    assert_eq!((joined.slots, joined.labels.get("zone").map(String::as_str)), (4, Some("eu")));
    let NodeFact::NodeStopping(stopping) = &events[2].fact else { panic!("{events:?}") };
    assert_eq!((&stopping.why, stopping.returned), (&why, 0));
    let of_other = person.store.node_events(Some("us:1"), 0, 100).await.expect("events");
    assert!(of_other.is_empty());
    assert_eq!(person.store.node_events(Some("eu:1"), 2, 100).await.expect("events"), events[2..]);
    assert_eq!(person.store.node_events(None, 0, 1).await.expect("events"), events[..1]);
}

async fn node_that_died_is_told_as_lost_with_what_it_held(place: Place) {
    let dying = Node::worker(place.open(), "dying:1", &[]).await;
    let other = Node::worker(place.open(), "other:1", &[]).await;
    other.share(&flow("", &[("a", ""), ("b", "")])).await;
    assert_eq!(dying.take_any(9).await.len(), 2);
    drop(dying);
    other.store.reap().await.expect("a reaped session");
    let events = history(&other).await;
    assert_eq!(told(&events), ["1 dying:1 node_joined", "2 other:1 node_joined", "3 dying:1 node_lost"]);
    let NodeFact::NodeLost(lost) = &events[2].fact else { panic!("{events:?}") };
    assert_eq!(lost.returned, 2);
    let again = Node::worker(place.open(), "dying:1", &[]).await;
    let nodes = again.store.nodes(9).await.expect("nodes");
    let [back, _] = nodes.as_slice() else { panic!("{nodes:?}") };
    assert_eq!((back.node.as_str(), back.lost_sessions), ("dying:1", 1));
}

async fn lose(place: &Place, name: &str) {
    drop(Node::worker(place.open(), name, &[]).await);
    place.node("reaper").await.store.reap().await.expect("a reaped session");
}

async fn losses(node: &Node) -> (u64, Vec<(String, u64)>) {
    let Losses { total, nodes } = node.store.losses().await.expect("losses");
    (total, nodes)
}

async fn nodes_that_were_lost_are_counted_whether_they_come_back_or_not(place: Place) {
    let lives = Node::worker(place.open(), "lives:1", &[]).await;
    assert_eq!(losses(&lives).await, (0, vec![]));
    let stops = Node::worker(place.open(), "stops:1", &[]).await;
    stops.store.retire(stops.session, left()).await.expect("a session that can end");
    for name in ["worker:71", "worker:72", "worker:71"] {
        lose(&place, name).await;
    }
    let of = |name: &str, lost| (name.to_owned(), lost);
    assert_eq!(losses(&lives).await, (3, vec![of("worker:71", 2), of("worker:72", 1)]));
}

async fn names_that_were_lost_long_ago_are_forgotten_and_the_count_is_not(place: Place) {
    for name in ["gone:1", "back:1"] {
        lose(&place, name).await;
    }
    let back = Node::worker(place.open(), "back:1", &[]).await;
    let kept = u64::try_from(LOSSES_KEPT).expect("a number");
    for number in 0..kept {
        lose(&place, &format!("worker:{number}")).await;
    }
    let (total, nodes) = losses(&back).await;
    assert_eq!((total, nodes.len()), (2 + kept, 1 + LOSSES_KEPT as usize));
    assert_eq!(nodes[0].0, format!("worker:{}", kept - 1), "the last first");
    assert!(nodes.contains(&("back:1".to_owned(), 1)), "it lives: {nodes:?}");
    let of_back = back.store.nodes(0).await.expect("nodes");
    assert!(of_back.iter().any(|node| node.node == "back:1" && node.lost_sessions == 1), "{of_back:?}");
}

async fn node_for_its_own_runs_is_in_no_stream(place: Place) {
    let node = place.node("here:1").await;
    node.store.retire(node.session, left()).await.expect("a session that can end");
    assert!(history(&place.node("person").await).await.is_empty());
}

async fn events_of_a_node_are_numbered_without_gaps_whoever_tells(place: Place) {
    let joining = (0..8).map(|index| {
        let store = place.open();
        async move { Node::worker(store, &format!("n{index}:1"), &[]).await }
    });
    let mut nodes = Vec::new();
    for node in joining.map(tokio::spawn).collect::<Vec<_>>() {
        nodes.push(node.await.expect("a node that joins"));
    }
    let leaving = nodes.into_iter().map(|node| {
        tokio::spawn(
            async move { node.store.retire(node.session, left()).await.expect("a session that can end") },
        )
    });
    for node in leaving.collect::<Vec<_>>() {
        node.await.expect("a node that leaves");
    }
    let events = history(&place.node("person").await).await;
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=16).collect::<Vec<_>>());
}

async fn renewal_says_what_a_session_holds_and_what_is_to_be_stopped(place: Place) {
    let node = Node::worker(place.open(), "one:1", &[]).await;
    let other = Node::worker(place.open(), "two:1", &[]).await;
    assert_eq!(renewed(&node).await, Renewed::default());
    let run = node.share(&flow("", &[("a", ""), ("b", ""), ("c", "")])).await;
    let held = node.take_any(2).await;
    other.take_any(1).await;
    node.start(&held[0]).await;
    let mut claims: Vec<_> = renewed(&node).await.held;
    claims.sort_unstable_by_key(|claim| claim.position);
    assert_eq!(claims, [held[0].at, held[1].at]);
    node.store.cancel(run, "ada", CancelMode::CleanUp).await.expect("a run that can be canceled");
    let stops = renewed(&node).await.stops;
    assert_eq!(stops.len(), 2, "{stops:?}");
    assert!(stops.iter().all(|stop| claims.contains(&stop.claim)));
}

async fn renewed(node: &Node) -> Renewed {
    node.store.renew(node.session, Tally::default()).await.expect("a session that lives")
}

async fn claim_whose_answer_was_lost_shows_when_the_session_is_renewed(place: Place) {
    let node = Node::worker(place.open(), "one:1", &[]).await;
    let run = node.share(&flow("", &[("a", "")])).await;
    let ask = Ask { session: node.session, run: None, limit: 1, ahead: 0 };
    drop(node.store.claim(ask).await.expect("an answer that nobody reads"));
    let held = renewed(&node).await.held;
    assert_eq!(held.len(), 1);
    node.store.give_back(held).await.expect("an answer");
    assert_eq!(node.tasks(run).await, "a available");
    assert!(renewed(&node).await.held.is_empty());
}

async fn session_that_is_over_cannot_be_renewed(place: Place) {
    let node = Node::worker(place.open(), "one:1", &[]).await;
    node.store.retire(node.session, left()).await.expect("a session that can end");
    for tally in [Tally::default(), Tally { claims: 1, ..Tally::default() }] {
        let over = node.store.renew(node.session, tally).await.expect_err("it is over");
        assert!(matches!(over, Error::SessionOver { .. }), "{over}");
    }
}

async fn what_a_node_has_done_is_shown_with_it(place: Place) {
    let node = Node::worker(place.open(), "one:1", &[]).await;
    let seen = || async {
        let mut nodes = node.store.nodes(9).await.expect("nodes");
        nodes.pop().expect("one node")
    };
    assert_eq!((seen().await.tally, seen().await.last_active_at), (Tally::default(), None));
    let tally = Tally { asks: 7, claims: 3, succeeded: 2, failed: 1, ..Tally::default() };
    node.store.renew(node.session, tally).await.expect("a session that lives");
    let first = seen().await;
    assert_eq!(first.tally, tally);
    let active = first.last_active_at.expect("it did something");
    assert!(active <= first.observed_at && first.renewed_at <= first.observed_at);
    place.advance(std::time::Duration::from_secs(60));
    node.store.renew(node.session, Tally { asks: 9, ..tally }).await.expect("a session that lives");
    assert_eq!(seen().await.last_active_at, Some(active), "to ask and get nothing is no activity");
    node.store.renew(node.session, Tally { succeeded: 3, ..tally }).await.expect("a session that lives");
    assert!(seen().await.last_active_at > Some(active));
}

async fn task_is_lost_only_as_often_as_the_deployment_says(place: Place) {
    let run = {
        let first = Node::worker(place.open_for(1), "n0:1", &[]).await;
        let run = first.share(&flow("", &[("a", "")])).await;
        first.take_any(1).await;
        run
    };
    let second = Node::worker(place.open_for(1), "n1:1", &[]).await;
    second.store.reap().await.expect("a reaped session");
    assert_eq!(second.take_any(1).await.len(), 1, "once it comes back");
    drop(second);
    let third = Node::worker(place.open_for(1), "n2:1", &[]).await;
    third.store.reap().await.expect("a reaped session");
    assert_eq!(third.tasks(run).await, "a failed (lost)");
}

async fn event_of_a_node_that_cannot_be_read_is_named_and_hides_none_of_the_others(place: Place) {
    let node = Node::worker(place.open(), "eu:1", &[]).await;
    let others =
        [Node::worker(place.open(), "eu:2", &[]).await, Node::worker(place.open(), "eu:3", &[]).await];
    let harms = ["body = '{'", "name = 'node_teleported'", "version = 99", "session = 'wild'"];
    for harm in harms {
        let kept = "(SELECT name, version, body, session FROM node_events WHERE seq = 1)";
        alter(&place, &*node.store, &format!("UPDATE node_events SET {harm} WHERE seq = 2")).await;
        let seen = |events: Vec<NodeEvent>| events.iter().map(|event| event.seq).collect::<Vec<_>>();
        assert_eq!(seen(history(&node).await), [1], "{harm}: what stands before it");
        let gap = node.store.node_events(None, 1, 100).await.expect_err("the second");
        assert!(matches!(gap, Error::UnreadableEvent { of: Teller::Nodes, seq: 2, .. }), "{harm}: {gap}");
        let behind = node.store.node_events(None, 2, 100).await.expect("what stands behind it");
        assert_eq!(seen(behind), [3], "{harm}");
        let found = problems(&*node.store).await;
        assert!(found.iter().any(|problem| problem.contains("event 2 of nodes")), "{harm}: {found:?}");
        let mend = format!("UPDATE node_events SET (name, version, body, session) = {kept} WHERE seq = 2");
        alter(&place, &*node.store, &mend).await;
    }
    assert_eq!(problems(&*others[0].store).await, Vec::<String>::new());
}
