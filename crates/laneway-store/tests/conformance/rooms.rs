//! A node takes no more tasks of a pool than that has containers for; the rest stays where others can take it.

use laneway_core::class::Offer;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_store::model::{Ask, Finished, NewSession, Whom};

use crate::harness::{Held, Node, Place, for_each_database, names, succeeded};

for_each_database! {
    a_node_takes_no_more_of_a_pool_than_it_has_containers_for,
    the_end_of_a_task_makes_room_for_the_next_in_the_same_call,
    pools_that_say_the_same_are_one_whatever_they_are_called,
    what_is_held_ahead_has_its_room_as_well,
    a_node_that_joins_later_knows_the_room_too,
    steps_of_one_pool_share_its_room_whatever_their_labels,
    node_takes_no_more_of_a_pool_than_it_has_host_ports_for,
    a_node_takes_steps_in_containers_while_its_engine_answers,
    an_engine_that_comes_to_a_node_that_leaves_changes_nothing,
    a_run_that_a_node_owns_stays_with_it_when_its_engine_goes,
    a_pinned_run_of_nobody_says_that_no_engine_answers,
}

async fn host(place: &Place, name: &str) -> Node {
    let offer = Offer { node: name.to_owned(), has_process: true, has_container: true, ..Offer::default() };
    Node::join(place.open(), NewSession { offer: Some(offer), ..NewSession::ephemeral(name, 8) }).await
}

/// Five steps in a pool of two, and behind them one that needs none.
const WIDE: &str = "
max_parallel: 9
pools: {warm: {image: 'busybox:1', max: 2}}
steps:
  a: {pool: warm, run: x}
  b: {pool: warm, run: x}
  c: {pool: warm, run: x}
  d: {pool: warm, run: x}
  e: {pool: warm, run: x}
  plain: {run: x}
";

async fn a_node_takes_no_more_of_a_pool_than_it_has_containers_for(place: Place) {
    let one = host(&place, "one").await;
    let run = one.share(WIDE).await;
    let held = one.take_any(4).await;
    assert_eq!(names(&held), ["a", "b", "plain"], "what needs no container is not held up");
    assert!(one.take_any(4).await.is_empty());
    assert_eq!(one.store.contentions(), 0, "nobody is in its way");
    assert_eq!(one.why(run, "c").await, "ready, waits for a free slot and for room in the pool `warm`");
    let other = host(&place, "other").await;
    assert_eq!(
        names(&other.take_any(4).await),
        ["c", "d"],
        "in order, and as many as it has room for itself"
    );
    assert!(other.take_any(4).await.is_empty());
    assert_eq!(one.store.give_back(vec![held[1].at]).await.expect("an answer").len(), 1);
    assert_eq!(names(&one.take_any(4).await), ["b"], "the place of what went back is free");
}

async fn the_end_of_a_task_makes_room_for_the_next_in_the_same_call(place: Place) {
    let one = host(&place, "one").await;
    one.share(WIDE).await;
    let held = one.take_any(2).await;
    assert_eq!(names(&held), ["a", "b"]);
    let took = std::time::Duration::from_millis(5);
    let finished = vec![Finished::new(held[1].at, succeeded(), took)];
    let ask = Ask { session: one.session, run: None, limit: 3, ahead: 0 };
    let answer = one.store.finish(finished, Some(ask)).await.expect("an answer");
    let next: Vec<Held> = answer.claims.into_iter().map(Held::of).collect();
    assert_eq!(names(&next), ["c", "plain"]);
}

async fn pools_that_say_the_same_are_one_whatever_they_are_called(place: Place) {
    let one = host(&place, "one").await;
    one.share(WIDE).await;
    let same = "pools: {agents: {image: 'busybox:1', max: 2}}\nsteps: {same: {pool: agents, run: x}}";
    let other = "pools: {warm: {image: 'busybox:2', max: 2}}\nsteps: {other: {pool: warm, run: x}}";
    let shared = "pools: {warm: {image: 'busybox:1', max: 2, mode: single}}
steps: {s1: {pool: warm, run: x}, s2: {pool: warm, run: x}, s3: {pool: warm, run: x}}";
    for document in [same, other, shared] {
        one.share(document).await;
    }
    let held = one.take_any(9).await;
    let mut taken = names(&held);
    taken.sort_unstable();
    assert_eq!(
        taken,
        ["a", "b", "other", "plain", "s1", "s2", "s3"],
        "one container is enough for all that share it"
    );
}

async fn what_is_held_ahead_has_its_room_as_well(place: Place) {
    let one = host(&place, "one").await;
    one.share(WIDE).await;
    let ask = |limit, ahead| Ask { session: one.session, run: None, limit, ahead };
    let held = one.store.claim(ask(1, 4)).await.expect("claims");
    let held: Vec<Held> = held.into_iter().map(Held::of).collect();
    assert_eq!(names(&held), ["a", "b", "plain"]);
    assert!(one.store.claim(ask(1, 4)).await.expect("claims").is_empty());
}

async fn a_node_that_joins_later_knows_the_room_too(place: Place) {
    let one = host(&place, "one").await;
    one.share(WIDE).await;
    let late = host(&place, "late").await;
    assert_eq!(names(&late.take_any(9).await), ["a", "b", "plain"]);
}

/// Steps of one pool that ask for different nodes are of different classes.
const MIXED: &str = "
max_parallel: 9
pools: {warm: {image: 'busybox:1', max: 2}}
steps:
  a: {pool: warm, run: x}
  b: {pool: warm, run: x, prefers: {zone: eu}}
  c: {pool: warm, run: x, runs_on: {disk: ssd}}
  d: {pool: warm, run: x}
";

async fn steps_of_one_pool_share_its_room_whatever_their_labels(place: Place) {
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let offer = Offer {
        node: "one".to_owned(),
        labels: [label("zone", "eu"), label("disk", "ssd")].into_iter().collect(),
        has_process: true,
        has_container: true,
        ..Offer::default()
    };
    let one =
        Node::join(place.open(), NewSession { offer: Some(offer), ..NewSession::ephemeral("one", 8) }).await;
    one.share(MIXED).await;
    let held = one.take_any(8).await;
    assert_eq!(names(&held), ["a", "b"], "one call takes no more than there is room for");
    assert!(one.take_any(8).await.is_empty(), "nor does the next");
    one.succeed(&held[1]).await;
    assert_eq!(names(&one.take_any(8).await), ["c"]);
    assert!(one.take_any(8).await.is_empty());
}

async fn node_takes_no_more_of_a_pool_than_it_has_host_ports_for(place: Place) {
    let offer = |node: &str, ports| Offer {
        node: node.to_owned(),
        has_process: true,
        has_container: true,
        ports,
        ..Offer::default()
    };
    let session =
        |node, ports| NewSession { offer: Some(offer(node, ports)), ..NewSession::ephemeral(node, 8) };
    let one = Node::join(place.open(), session("one", Some(1))).await;
    one.share(&WIDE.replace("max: 2", "max: 2, endpoint: {port: 80}")).await;
    assert_eq!(names(&one.take_any(9).await), ["a", "plain"]);
    let late = Node::join(place.open(), session("late", Some(9))).await;
    assert_eq!(names(&late.take_any(9).await), ["b", "c"], "the range is wider than `max`");
    one.share(WIDE).await;
    assert_eq!(names(&one.take_any(9).await), ["a", "b", "plain"], "containers without endpoint need none");
}

/// One step in a container, and one that needs none.
const BOXED: &str = "
steps:
  boxed: {image: 'busybox:1', run: x}
  plain: {run: x}
";

async fn a_node_takes_steps_in_containers_while_its_engine_answers(place: Place) {
    let one = host(&place, "one").await;
    one.store.offer_containers(one.session, false).await.expect("a session");
    let run = one.share(BOXED).await;
    assert_eq!(names(&one.take_any(4).await), ["plain"]);
    let why = one.why(run, "boxed").await;
    assert!(why.contains("has no container engine that answers"), "{why}");
    one.store.offer_containers(one.session, true).await.expect("a session");
    one.store.offer_containers(one.session, true).await.expect("said again");
    assert_eq!(names(&one.take_any(4).await), ["boxed"]);

    // One that waits for a slot when the engine goes says why it waits from then on, and goes on when it is back.
    let run = one.share(BOXED).await;
    assert!(one.why(run, "boxed").await.starts_with("ready, waits for a free slot"));
    one.store.offer_containers(one.session, false).await.expect("a session");
    let why = one.why(run, "boxed").await;
    assert!(why.contains("has no container engine that answers"), "{why}");
    assert_eq!(names(&one.take_any(4).await), ["plain"]);
    one.store.offer_containers(one.session, true).await.expect("a session");
    assert_eq!(names(&one.take_any(4).await), ["boxed"]);

    let told = one.store.node_events(None, 0, 9).await.expect("events");
    let told: Vec<String> = told.iter().map(|event| event.fact.body_text()).collect();
    assert_eq!(
        told[1..],
        [r#"{"answers":false}"#, r#"{"answers":true}"#, r#"{"answers":false}"#, r#"{"answers":true}"#]
    );
}

async fn a_run_that_a_node_owns_stays_with_it_when_its_engine_goes(place: Place) {
    let one = host(&place, "one").await;
    one.share("placement: pinned\nsteps: {a: {image: 'busybox:1', run: x}, b: {needs: [a], run: x}}").await;
    let held = one.take_any(4).await;
    assert_eq!(names(&held), ["a"]);
    one.store.offer_containers(one.session, false).await.expect("a session");
    one.succeed(&held[0]).await;
    assert_eq!(names(&one.take_any(4).await), ["b"], "nobody else could take it");
}

async fn a_pinned_run_of_nobody_says_that_no_engine_answers(place: Place) {
    let one = host(&place, "one").await;
    let run = one.share("placement: pinned\nsteps: {a: {image: 'busybox:1', run: x}}").await;
    assert!(one.why(run, "a").await.starts_with("ready, waits for a free slot"));
    one.store.offer_containers(one.session, false).await.expect("a session");
    let why = one.why(run, "a").await;
    assert!(why.contains("has no container engine that answers"), "{why}");
}

async fn an_engine_that_comes_to_a_node_that_leaves_changes_nothing(place: Place) {
    let one = host(&place, "one").await;
    one.store.offer_containers(one.session, false).await.expect("a session");
    let drained = Leaving::drained_by("ada");
    one.store.drain(Whom::Session(one.session), drained).await.expect("a session");
    one.store.offer_containers(one.session, true).await.expect("a session");
    one.share(BOXED).await;
    assert!(one.take_any(4).await.is_empty(), "it takes nothing more");
    let done = Leaving::because(LeaveReason::Done);
    one.store.retire(one.session, done).await.expect("a session that can end");
    let over = one.store.offer_containers(one.session, false).await;
    assert!(matches!(over, Err(laneway_store::Error::SessionOver { .. })), "{over:?}");
}
