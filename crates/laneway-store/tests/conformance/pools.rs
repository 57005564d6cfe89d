//! X10: what warm containers do is kept in order, and the newest of each says how it is.

use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::pool::{ContainerState, EndReason, PoolEvent, PoolFact};
use laneway_store::model::POOL_EVENTS_KEPT;

use crate::harness::{Node, Place, for_each_database};

for_each_database! {
    transitions_are_kept_in_order_with_their_node,
    how_a_container_is_now_is_what_was_told_last,
    what_is_old_is_forgotten_but_for_how_a_container_is,
}

fn fact(container: &str, to: ContainerState) -> PoolFact {
    PoolFact::of("warm".into(), container.into(), "busybox:1".into(), to, Some(EndReason::Expired))
}

fn told(events: &[PoolEvent]) -> Vec<String> {
    let word = |event: &PoolEvent| format!("{} {} {}", event.node, event.fact.names().1, event.fact.state());
    events.iter().map(word).collect()
}

async fn transitions_are_kept_in_order_with_their_node(place: Place) {
    use ContainerState as S;
    let one = Node::worker(place.open(), "eu:1", &[]).await;
    let other = Node::worker(place.open(), "us:1", &[]).await;
    one.store.tell_pools(one.session, vec![fact("a", S::Starting), fact("a", S::Idle)]).await.expect("told");
    other.store.tell_pools(other.session, vec![fact("b", S::Starting)]).await.expect("told");
    one.store.tell_pools(one.session, vec![fact("a", S::Terminated)]).await.expect("told");
    let events = one.store.pool_events(None, 0, 100).await.expect("events");
    assert_eq!(told(&events), ["eu:1 a starting", "eu:1 a idle", "us:1 b starting", "eu:1 a terminated"]);
    assert!(events.is_sorted_by(|before, after| before.seq < after.seq));
    let PoolFact::ContainerTerminated(ended) = &events[3].fact else { panic!("{events:?}") };
    assert_eq!((ended.why, events[3].session), (EndReason::Expired, one.session));
    assert_eq!(one.store.pool_events(Some("us:1"), 0, 9).await.expect("events"), events[2..3]);
    assert_eq!(one.store.pool_events(None, events[1].seq, 1).await.expect("events"), events[2..3]);
}

async fn how_a_container_is_now_is_what_was_told_last(place: Place) {
    use ContainerState as S;
    let one = Node::worker(place.open(), "eu:1", &[]).await;
    let other = Node::worker(place.open(), "us:1", &[]).await;
    let moves = [fact("b", S::Starting), fact("a", S::Starting), fact("a", S::Idle), fact("c", S::Starting)];
    one.store.tell_pools(one.session, moves.into()).await.expect("told");
    one.store.tell_pools(one.session, vec![fact("c", S::Terminated)]).await.expect("told");
    other.store.tell_pools(other.session, vec![fact("d", S::Starting)]).await.expect("told");
    let now = one.store.pool_containers().await.expect("containers");
    assert_eq!(told(&now), ["eu:1 a idle", "eu:1 b starting", "us:1 d starting"]);
    let done = Leaving::because(LeaveReason::Done);
    other.store.retire(other.session, done).await.expect("a session that can end");
    let now = one.store.pool_containers().await.expect("containers");
    assert_eq!(told(&now), ["eu:1 a idle", "eu:1 b starting"], "what a dead node had is nobody's");
    one.store.tell_pools(other.session, vec![fact("d", S::Idle)]).await.expect("nothing is told");
    assert_eq!(one.store.pool_events(Some("us:1"), 0, 9).await.expect("events").len(), 1);
}

async fn what_is_old_is_forgotten_but_for_how_a_container_is(place: Place) {
    use ContainerState as S;
    let node = Node::worker(place.open(), "eu:1", &[]).await;
    let old = [fact("rests", S::Starting), fact("rests", S::Idle), fact("gone", S::Terminated)];
    node.store.tell_pools(node.session, old.into()).await.expect("told");
    let busy: Vec<PoolFact> = (0..POOL_EVENTS_KEPT).map(|_| fact("busy", S::Running)).collect();
    node.store.tell_pools(node.session, busy).await.expect("told");
    let first = node.store.pool_events(None, 0, 2).await.expect("events");
    assert_eq!(told(&first), ["eu:1 rests idle", "eu:1 busy running"]);
    let now = node.store.pool_containers().await.expect("containers");
    assert_eq!(told(&now), ["eu:1 busy running", "eu:1 rests idle"]);
}
