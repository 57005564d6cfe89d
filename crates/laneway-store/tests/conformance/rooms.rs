//! A node takes no more tasks of a pool than that has containers for; the rest stays where others can take it.

use laneway_core::class::Offer;
use laneway_store::model::{Ask, Finished, NewSession};

use crate::harness::{Held, Node, Place, for_each_database, names, succeeded};

for_each_database! {
    a_node_takes_no_more_of_a_pool_than_it_has_containers_for,
    the_end_of_a_task_makes_room_for_the_next_in_the_same_call,
    pools_that_say_the_same_are_one_whatever_they_are_called,
    what_is_held_ahead_has_its_room_as_well,
    a_node_that_joins_later_knows_the_room_too,
    steps_of_one_pool_share_its_room_whatever_their_labels,
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
    let finished = vec![Finished { claim: held[1].at, outcome: succeeded(), took }];
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
