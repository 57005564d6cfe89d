//! X10: what warm containers do is kept in order, and the newest of each says how it is.

use laneway_core::class::Offer;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::pool::{
    ContainerState, ContainerTaken, EndReason, HeldPort, ImagePullProgress, PoolEvent, PoolFact, PortWaiter,
    PortsFree, PortsUsedUp,
};
use laneway_store::model::{KeptPool, NewSession, POOL_EVENTS_KEPT, Wanted, Wish};
use laneway_store::{Error, Teller};

use crate::harness::{Node, Place, flat, for_each_database, names};
use crate::quarantine::{alter, problems};

for_each_database! {
    transitions_are_kept_in_order_with_their_node,
    how_a_container_is_now_is_what_was_told_last,
    what_is_old_is_forgotten_but_for_how_a_container_is,
    what_is_pulled_is_told_in_the_same_stream_and_the_newest_fact_is_kept,
    pools_are_known_while_their_session_lives,
    a_wish_is_told_to_its_sessions_until_there_is_a_newer_one,
    containers_that_a_task_was_given_are_found_by_the_task,
    task_that_waits_for_a_port_is_told_who_holds_the_ports,
    event_of_a_pool_that_cannot_be_read_is_named_and_hides_none_of_the_others,
    wish_that_cannot_be_read_is_told_and_keeps_nothing_else_from_its_node,
}

fn fact(container: &str, to: ContainerState) -> PoolFact {
    PoolFact::of("warm".into(), container.into(), ("busybox:1".into(), None), to, Some(EndReason::Expired))
}

fn told(events: &[PoolEvent]) -> Vec<String> {
    let word = |event: &PoolEvent| match (event.fact.names(), event.fact.state()) {
        ((_, Some(container)), Some(state)) => format!("{} {container} {state}", event.node),
        ((pool, _), _) => format!("{} {pool} {}", event.node, event.fact.name()),
    };
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
    let events = one.store.pool_events(Some("us:1"), 0, 9).await.expect("events");
    assert_eq!(told(&events), ["us:1 d starting", "us:1 d terminated"], "its history has an end");
    let PoolFact::ContainerTerminated(ended) = &events[1].fact else { panic!("{events:?}") };
    assert_eq!(ended.why, EndReason::NodeLost);
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

async fn what_is_pulled_is_told_in_the_same_stream_and_the_newest_fact_is_kept(place: Place) {
    let node = Node::worker(place.open(), "eu:1", &[]).await;
    let pull = |bytes: u64| -> PoolFact {
        let (pool, image) = ("warm".to_owned(), "busybox:1".to_owned());
        ImagePullProgress { pool, image, bytes, of: 10, is_done: bytes == 10 }.into()
    };
    let facts = vec![pull(0), pull(10), fact("a", ContainerState::Starting), pull(3)];
    node.store.tell_pools(node.session, facts).await.expect("told");
    let events = node.store.pool_events(None, 0, 9).await.expect("events");
    let pulled = "eu:1 warm image_pull_progress";
    assert_eq!(told(&events), [pulled, pulled, "eu:1 a starting", pulled]);
    assert_eq!(events[1].fact, pull(10));
    let now = node.store.pool_containers().await.expect("containers");
    assert_eq!(told(&now), ["eu:1 a starting", pulled]);
    assert_eq!(now[1].fact, pull(3));
    let busy: Vec<PoolFact> = (0..POOL_EVENTS_KEPT).map(|_| fact("a", ContainerState::Running)).collect();
    node.store.tell_pools(node.session, busy).await.expect("told");
    let first = node.store.pool_events(None, 0, 1).await.expect("events");
    assert_eq!(told(&first), [pulled], "how far it is stays known");
}

async fn containers_that_a_task_was_given_are_found_by_the_task(place: Place) {
    use ContainerState as S;
    let node = Node::worker(place.open(), "eu:1", &[]).await;
    let (run, other) =
        (node.submit("steps: {a: {run: x}}").await, node.submit("steps: {a: {run: x}, b: {run: x}}").await);
    let taken = |run, step: &str, attempt, container: &str| -> PoolFact {
        let (pool, container, step) = ("warm".to_owned(), container.to_owned(), step.to_owned());
        ContainerTaken { pool, container, run, step, attempt, image: None, port: None }.into()
    };
    let facts = vec![
        fact("c1", S::Running),
        taken(run, "a", 1, "c1"),
        fact("c1", S::Idle),
        taken(other, "a", 1, "c1"),
        taken(other, "b", 1, "c2"),
        taken(run, "a", 2, "c2"),
    ];
    node.store.tell_pools(node.session, facts).await.expect("told");
    let found = async |run, step: &str| -> Vec<(u32, String)> {
        let taken = node.store.taken(run, step).await.expect("containers");
        taken.into_iter().map(|taken| (taken.attempt, taken.container)).collect()
    };
    assert_eq!(found(run, "a").await, [(1, "c1".to_owned()), (2, "c2".to_owned())]);
    assert_eq!(found(other, "b").await, [(1, "c2".to_owned())]);
    assert_eq!(found(run, "b").await, [], "of another run");
    let now = node.store.pool_containers().await.expect("containers");
    assert_eq!(told(&now), ["eu:1 c1 running", "eu:1 c2 running"], "whoever has it, it is in use");
}

const SERVED: &str = "
max_parallel: 9
pools: {web: {image: 'busybox:1', max: 2, endpoint: {port: 80}}}
steps:
  a: {pool: web, run: x}
  b: {pool: web, run: x}
  c: {pool: web, run: x}
  plain: {run: x}
";

async fn task_that_waits_for_a_port_is_told_who_holds_the_ports(place: Place) {
    use ContainerState as S;
    let offer = Offer { node: "one".into(), has_process: true, has_container: true, ..Offer::default() };
    let node =
        Node::join(place.open(), NewSession { offer: Some(offer), ..NewSession::ephemeral("one", 8) }).await;
    let run = node.share(SERVED).await;
    let held = node.take_any(2).await;
    assert_eq!(names(&held), ["a", "b"]);
    for one in &held {
        node.start(one).await;
    }
    let waiter = PortWaiter { pool: "web".into(), run, step: "b".into(), attempt: 1 };
    let used_up = |holders: &[&str]| -> PoolFact {
        let holder = |(port, name): (u16, &&str)| HeldPort {
            port,
            pool: "web".to_owned(),
            container: (*name).to_owned(),
        };
        let holders: Vec<HeldPort> = (10..).zip(holders).map(holder).collect();
        let held = u32::try_from(holders.len()).expect("few");
        PortsUsedUp { first: 10, last: 11, held, holders, waiting: vec![waiter.clone()] }.into()
    };
    let (pool, container, step) = ("web".to_owned(), "c1".to_owned(), "a".to_owned());
    let taken = ContainerTaken { pool, container, run, step, attempt: 1, image: None, port: None }.into();
    let facts =
        vec![fact("c1", S::Running), taken, fact("c2", S::Idle), used_up(&["c1"]), used_up(&["c1", "c2"])];
    node.store.tell_pools(node.session, facts).await.expect("told");
    let short = run.short();
    let ports = format!(
        "no port of 10-11 is free: 10 by c1 of pool `web` (runs a of run {short}), 11 by c2 of pool `web` (idle)"
    );
    let waits =
        format!("waits for a host port for the pool `web` on one: {ports}; it is number 1 of 1 in line");
    assert_eq!(node.why(run, "b").await, waits);
    let ready = format!(
        "ready, waits for a free slot and for room in the pool `web`, whose containers need host ports; on one \
         {ports}"
    );
    assert_eq!(node.why(run, "c").await, ready);
    assert_eq!(node.why(run, "plain").await, "ready, waits for a free slot", "it needs no port");
    let view = node.store.run(run).await.expect("a run");
    let cause = view.causes[1].clone().expect("a cause");
    assert_eq!((cause.gate, cause.key.as_deref(), cause.held_by.len()), ("port", Some("10-11"), 1));
    assert!(view.causes[0].is_none(), "it has its container");
    // However much happens meanwhile.
    let busy: Vec<PoolFact> = (0..POOL_EVENTS_KEPT).map(|_| fact("busy", S::Running)).collect();
    node.store.tell_pools(node.session, busy).await.expect("told");
    assert!(node.why(run, "b").await.starts_with("waits for a host port"));
    let free = PortsFree { first: 10, last: 11 }.into();
    node.store.tell_pools(node.session, vec![free]).await.expect("told");
    let view = node.store.run(run).await.expect("a run");
    assert!(view.causes[1].is_none(), "it runs: {:?}", view.causes[1]);
    let ready = "ready, waits for a free slot and for room in the pool `web`";
    assert_eq!(node.why(run, "c").await, format!("{ready}: c1 on one (runs a of run {short})"));
    // The image of another pool is of no interest.
    let pull = |pool: &str, bytes, is_done| -> PoolFact {
        let (pool, image) = (pool.to_owned(), format!("{pool}:1"));
        ImagePullProgress { pool, image, bytes, of: 50 << 20, is_done }.into()
    };
    let pulls = vec![pull("other", 10 << 20, false), pull("web", 21 << 20, false)];
    node.store.tell_pools(node.session, pulls).await.expect("told");
    let pulled = "one pulls web:1, 42 % of 50 MiB";
    assert_eq!(node.why(run, "c").await, format!("{ready}: c1 on one (runs a of run {short}), {pulled}"));
    assert_eq!(node.why(run, "b").await, format!("waits for a container of the pool `web`: {pulled}"));
    let view = node.store.run(run).await.expect("a run");
    assert!(view.causes[0].is_none(), "it has its container");
    let cause = view.causes[2].clone().expect("a cause");
    assert_eq!((cause.gate, cause.key.as_deref(), cause.held_by.len()), ("pool", Some("web"), 1));
    node.store.tell_pools(node.session, vec![pull("web", 50 << 20, true)]).await.expect("told");
    let view = node.store.run(run).await.expect("a run");
    assert!(view.causes[1].is_none(), "its image is there: {:?}", view.causes[1]);
}

fn kept(name: &str, max: u32) -> KeptPool {
    KeptPool { name: name.to_owned(), image: "busybox:1".to_owned(), max }
}

async fn pools_are_known_while_their_session_lives(place: Place) {
    let one = Node::worker(place.open(), "eu:1", &[]).await;
    let other = Node::worker(place.open(), "us:1", &[]).await;
    one.store.keep_pools(one.session, vec![kept("warm", 3), kept("agents", 1)]).await.expect("kept");
    // Said again, with another of the same name.
    one.store.keep_pools(one.session, vec![kept("warm", 3), kept("warm", 4)]).await.expect("kept");
    other.store.keep_pools(other.session, vec![kept("warm", 2)]).await.expect("kept");
    let known = async || -> Vec<String> {
        let pools = one.store.pools().await.expect("pools");
        pools.iter().map(|view| format!("{} {} {}", view.node, view.pool.name, view.pool.max)).collect()
    };
    assert_eq!(known().await, ["eu:1 agents 1", "eu:1 warm 3", "eu:1 warm 4", "us:1 warm 2"]);
    let done = Leaving::because(LeaveReason::Done);
    other.store.retire(other.session, done).await.expect("a session that can end");
    assert_eq!(known().await, ["eu:1 agents 1", "eu:1 warm 3", "eu:1 warm 4"]);
    one.store.keep_pools(other.session, vec![kept("late", 2)]).await.expect("nothing is kept");
    assert_eq!(known().await.len(), 3, "a session that is over keeps nothing");
}

async fn a_wish_is_told_to_its_sessions_until_there_is_a_newer_one(place: Place) {
    let one = Node::worker(place.open(), "eu:1", &[]).await;
    let other = Node::worker(place.open(), "us:1", &[]).await;
    let third = Node::worker(place.open(), "us:2", &[]).await;
    let run = one.submit("steps: {a: {run: x}}").await;
    let version = one.store.head(run).await.expect("a run").plan.version.clone();
    let warm = |pool: &str, count, of| Wish { pool: pool.to_owned(), what: Wanted::Warm { count, of } };
    let drain = Wish { pool: "warm".to_owned(), what: Wanted::Drain };
    let both = vec![one.session, other.session];
    one.store.wish(both.clone(), warm("warm", 2, None)).await.expect("told");
    one.store.wish(both, warm("agents", 1, Some(version.clone()))).await.expect("told");
    let wishes = async |node: &Node| node.store.orders(node.session).await.expect("orders").wishes;
    let told =
        async |node: &Node| -> Vec<Wish> { wishes(node).await.into_iter().map(|(_, wish)| wish).collect() };
    let first = wishes(&one).await;
    assert_eq!(told(&one).await, [warm("warm", 2, None), warm("agents", 1, Some(version.clone()))]);
    assert_eq!(wishes(&one).await, first, "nothing changes while nobody wants anything else");
    assert_eq!(told(&third).await, [], "nobody asked for something of this one");
    one.store.wish(vec![one.session], drain.clone()).await.expect("told");
    assert_eq!(told(&one).await, [warm("agents", 1, Some(version.clone())), drain.clone()]);
    assert_eq!(told(&other).await, [warm("warm", 2, None), warm("agents", 1, Some(version))]);
    let before = wishes(&one).await;
    one.store.wish(vec![one.session], drain).await.expect("told");
    let after = wishes(&one).await;
    assert_eq!(before[1].1, after[1].1);
    assert_ne!(before[1].0, after[1].0, "the same wish once more is another one");
    let done = Leaving::because(LeaveReason::Done);
    other.store.retire(other.session, done).await.expect("a session that can end");
    one.store.wish(vec![other.session], warm("warm", 9, None)).await.expect("nobody is told");
}

async fn event_of_a_pool_that_cannot_be_read_is_named_and_hides_none_of_the_others(place: Place) {
    use ContainerState as S;
    let node = Node::worker(place.open(), "eu:1", &[]).await;
    let facts = vec![fact("a", S::Starting), fact("b", S::Starting), fact("c", S::Starting)];
    node.store.tell_pools(node.session, facts).await.expect("told");
    let all = node.store.pool_events(None, 0, 100).await.expect("events");
    let second = all[1].seq;
    alter(&place, &*node.store, &format!("UPDATE pool_events SET body = '{{' WHERE seq = {second}")).await;
    assert_eq!(node.store.pool_events(None, 0, 100).await.expect("what stands before it"), all[..1]);
    let gap = node.store.pool_events(None, all[0].seq, 100).await.expect_err("the second");
    assert!(matches!(gap, Error::UnreadableEvent { of: Teller::Pools, seq, .. } if seq == second), "{gap}");
    assert_eq!(node.store.pool_events(None, second, 100).await.expect("what stands behind it"), all[2..]);
    let now = node.store.pool_containers().await.expect("containers");
    assert_eq!(told(&now), ["eu:1 a starting", "eu:1 c starting"]);
    let found = problems(&*node.store).await;
    let named = format!("event {second} of pools");
    assert!(found.iter().any(|problem| problem.contains(&named)), "{found:?}");
}

async fn wish_that_cannot_be_read_is_told_and_keeps_nothing_else_from_its_node(place: Place) {
    let node = Node::worker(place.open(), "eu:1", &[]).await;
    let run = node.share(&flat(1, 1)).await;
    let held = node.take_any(1).await.remove(0);
    node.start(&held).await;
    for pool in ["warm", "agents"] {
        let wish = Wish { pool: pool.to_owned(), what: Wanted::Warm { count: 2, of: None } };
        node.store.wish(vec![node.session], wish).await.expect("told");
    }
    alter(&place, &*node.store, "UPDATE pool_wishes SET warm = -1 WHERE name = 'warm'").await;
    node.cancel(run).await;
    let orders = node.store.orders(node.session).await.expect("orders");
    assert_eq!(orders.stops.iter().map(|stop| stop.claim).collect::<Vec<_>>(), [held.at]);
    let pools: Vec<&str> = orders.wishes.iter().map(|(_, wish)| wish.pool.as_str()).collect();
    assert_eq!((pools, orders.unreadable.len()), (vec!["agents"], 1));
    let found = problems(&*node.store).await;
    assert!(found.iter().any(|problem| problem.contains(&orders.unreadable[0])), "{found:?}");
}
