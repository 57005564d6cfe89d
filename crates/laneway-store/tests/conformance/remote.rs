//! W4: sessions of workers that are elsewhere live by a lease on every database, and are fenced as all others are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_core::artifact::ArtifactName;
use laneway_core::class::Offer;
use laneway_core::id::SessionId;
use laneway_core::reason::Reason;
use laneway_store::model::{Artifact, Ask, CancelMode, Claim, Finished, Lease, LogPiece, NewSession, Tally};
use laneway_store::sqlite::Clock;
use laneway_store::{ClaimRef, Error, Fate, Store};

use crate::audit;
use crate::harness::{Node, Place, TOOK, for_each_database, left, succeeded};

for_each_database! {
    remote_worker_takes_its_queues_and_nothing_else,
    remote_session_outlives_the_process_through_which_it_came,
    what_a_remote_worker_held_comes_back_when_its_lease_ends,
    every_write_of_a_remote_worker_that_is_over_changes_nothing,
    claim_of_one_remote_worker_is_not_that_of_another,
    lease_that_has_ended_gets_nothing_and_is_renewed_as_long_as_nobody_reaped,
    what_a_remote_worker_holds_is_told,
    remote_session_is_not_reaped_by_who_has_not_seen_it_for_a_lease,
}

const TTL: Duration = Duration::from_secs(60);

fn remote(name: &str, queue: &str, ttl: Duration) -> NewSession {
    let offer = Offer { node: name.to_owned(), queues: [queue.to_owned()].into(), ..Offer::default() };
    NewSession {
        offer: Some(offer),
        lease: Lease { ttl, every: ttl / 10 },
        token: Some(format!("token-{name}")),
        ..NewSession::ephemeral(name, 4)
    }
}

async fn join(store: &dyn Store, name: &str) -> SessionId {
    store.register(remote(name, "mail", TTL)).await.expect("a session")
}

async fn take(store: &dyn Store, session: SessionId, limit: usize) -> Vec<Claim> {
    let claims = store.claim(Ask { session, run: None, limit, ahead: 0 }).await.expect("an answer");
    for claim in &claims {
        audit::check(store, claim.at.run).await;
    }
    claims
}

async fn renew(store: &dyn Store, session: SessionId) -> laneway_store::Result<usize> {
    store.renew(session, Tally::default()).await.map(|renewed| renewed.held.len())
}

const MAIL: &str = "name: flow\nsteps: {a: {queue: mail}, b: {queue: mail}}\n";

async fn remote_worker_takes_its_queues_and_nothing_else(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    let run =
        node.share("name: flow\nsteps: {a: {queue: mail}, b: {run: 'true'}, c: {queue: print}}\n").await;
    let why = node.why(run, "a").await;
    assert_eq!(
        why,
        "no live node can run it: it needs one that takes the queue `mail`; host:1 does not take the queue `mail`"
    );
    let session = join(&*node.store, "py").await;
    let claims = take(&*node.store, session, 9).await;
    let steps: Vec<&str> =
        claims.iter().map(|one| one.head.plan.step(one.at.position).name.as_str()).collect();
    assert_eq!(steps, ["a"]);
    assert_eq!(node.take_any(9).await.len(), 1, "and the node what it can run");
    assert!(node.why(run, "c").await.contains("takes the queue `print`"));
}

async fn remote_session_outlives_the_process_through_which_it_came(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    let run = node.share(MAIL).await;
    let (session, claim) = {
        let through = place.open();
        let session = join(&*through, "py").await;
        (session, take(&*through, session, 1).await.remove(0))
    };
    assert_eq!(node.store.reap().await.expect("an answer").nodes, Vec::<String>::new());
    let other = place.open();
    assert_eq!(renew(&*other, session).await.expect("a session that lives"), 1);
    assert_eq!(other.start(vec![claim.at]).await.expect("an answer"), [Fate::Recorded]);
    let ended = Finished::new(claim.at, succeeded(), TOOK);
    assert_eq!(other.finish(vec![ended], None).await.expect("an answer").fates, [Fate::Recorded]);
    assert_eq!(node.tasks(run).await, "a succeeded, b available");
    other.retire(session, left()).await.expect("an end");
    assert!(renew(&*other, session).await.is_err());
}

async fn what_a_remote_worker_held_comes_back_when_its_lease_ends(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    let run = node.share(MAIL).await;
    let (gone, stays) = (join(&*node.store, "gone").await, join(&*node.store, "stays").await);
    let lost = take(&*node.store, gone, 1).await.remove(0);
    node.store.start(vec![lost.at]).await.expect("an answer");
    let kept = take(&*node.store, stays, 1).await.remove(0);
    place.advance(TTL / 2);
    renew(&*node.store, stays).await.expect("a session that lives");
    assert!(node.store.reap().await.expect("an answer").nodes.is_empty(), "nobody's has ended");
    let listed = |nodes: Vec<laneway_store::model::NodeView>| -> Vec<String> {
        nodes.into_iter().map(|node| node.node).collect()
    };
    assert_eq!(listed(node.store.nodes(0).await.expect("nodes")), ["gone", "host:1", "stays"]);
    place.advance(TTL / 2);
    assert_eq!(listed(node.store.nodes(0).await.expect("nodes")), ["host:1", "stays"]);
    let reaped = node.store.reap().await.expect("an answer");
    assert_eq!((reaped.nodes, reaped.tasks), (vec!["gone".to_owned()], 1));
    audit::check(&*node.store, run).await;
    assert_eq!(node.task(run, "a").await.lost, 1);
    let again = take(&*node.store, stays, 9).await;
    assert_eq!((again[0].at.position, again[0].at.attempt), (lost.at.position, 2));
    assert_eq!(node.store.start(vec![kept.at]).await.expect("an answer"), [Fate::Recorded]);
    let over = node.store.renew(gone, Tally::default()).await.expect_err("it is over");
    assert!(matches!(over, Error::SessionOver { .. }), "{over}");
}

/// All of them, by one claim.
async fn all_writes(store: &dyn Store, claim: ClaimRef) -> Vec<Fate> {
    let one = |fates: Vec<Fate>| fates[0];
    let piece = LogPiece { claim, start: 0, bytes: b"x".to_vec() };
    let artifact = Artifact {
        name: ArtifactName::parse("x").expect("a name"),
        hash: store.keep_blob(b"x".to_vec()).await.expect("a blob"),
        size: 1,
        is_executable: false,
    };
    let ended = Finished::new(claim, succeeded(), TOOK);
    vec![
        one(store.start(vec![claim]).await.expect("an answer")),
        one(store.keep_logs(vec![piece]).await.expect("an answer")),
        store.keep_artifacts(claim, vec![artifact]).await.expect("an answer"),
        one(store.give_back(vec![claim]).await.expect("an answer")),
        one(store.finish(vec![ended], None).await.expect("an answer").fates),
    ]
}

async fn every_write_of_a_remote_worker_that_is_over_changes_nothing(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    let run = node.share(MAIL).await;
    let session = join(&*node.store, "py").await;
    let claim = take(&*node.store, session, 1).await.remove(0).at;
    place.advance(TTL);
    node.store.reap().await.expect("an answer");
    let before = (node.state(run).await, node.events(run).await);
    assert_eq!(all_writes(&*node.store, claim).await, [Fate::ClaimLost; 5]);
    assert_eq!((node.state(run).await, node.events(run).await), before);
    assert!(take(&*node.store, session, 1).await.is_empty());
}

async fn claim_of_one_remote_worker_is_not_that_of_another(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    let run = node.share(MAIL).await;
    let (one, other) = (join(&*node.store, "one").await, join(&*node.store, "other").await);
    let claim = take(&*node.store, one, 1).await.remove(0).at;
    let forged = ClaimRef { session: other, ..claim };
    assert_eq!(all_writes(&*node.store, forged).await, [Fate::ClaimLost; 5]);
    let older = ClaimRef { generation: claim.generation + 1, ..claim };
    assert_eq!(all_writes(&*node.store, older).await, [Fate::ClaimLost; 5]);
    assert_eq!(node.store.start(vec![claim]).await.expect("an answer"), [Fate::Recorded]);
    assert_eq!(node.tasks(run).await, "a running, b available");
}

async fn lease_that_has_ended_gets_nothing_and_is_renewed_as_long_as_nobody_reaped(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    node.share(MAIL).await;
    let session = join(&*node.store, "py").await;
    let claim = take(&*node.store, session, 1).await.remove(0).at;
    place.advance(TTL);
    assert!(take(&*node.store, session, 1).await.is_empty(), "its lease has ended");
    assert_eq!(renew(&*node.store, session).await.expect("nobody has reaped it"), 1);
    assert!(node.store.reap().await.expect("an answer").nodes.is_empty());
    assert_eq!(take(&*node.store, session, 1).await.len(), 1);
    assert_eq!(node.store.start(vec![claim]).await.expect("an answer"), [Fate::Recorded]);
}

async fn what_a_remote_worker_holds_is_told(place: Place) {
    let node = Node::worker(place.open(), "host:1", &[]).await;
    let store = &*node.store;
    assert_eq!(store.remotes().await.expect("a list"), []);
    assert_eq!(store.remote(node.session).await.expect("an answer"), None, "a node is none");
    let run = node.share(MAIL).await;
    let session = join(store, "py").await;
    let claims = take(store, session, 2).await;
    store.start(vec![claims[1].at]).await.expect("an answer");
    store.cancel(run, "ada", CancelMode::CleanUp).await.expect("a run");
    let view = store.remote(session).await.expect("an answer").expect("a session");
    assert_eq!((view.node.as_str(), view.token.as_str(), view.slots), ("py", "token-py", 4));
    assert_eq!(view.held, [(claims[0].at, None), (claims[1].at, Some(view.observed_at))]);
    let stops: Vec<_> = view.stops.iter().map(|stop| (stop.claim, stop.reason)).collect();
    assert_eq!(stops, [(claims[0].at, Reason::Canceled), (claims[1].at, Reason::Canceled)]);
    assert_eq!(store.remotes().await.expect("a list"), [session]);
    assert_eq!(store.head(run).await.expect("a run").plan.workflow.name, "flow");
    store.drain(laneway_store::model::Whom::Node("py".into()), left()).await.expect("a node");
    assert!(store.remote(session).await.expect("an answer").expect("a session").is_draining);
    store.retire(session, left()).await.expect("an end");
    assert_eq!(store.remote(session).await.expect("an answer"), None);
}

/// After a restart of the server, or a laptop's sleep, nobody has had the time to renew.
async fn remote_session_is_not_reaped_by_who_has_not_seen_it_for_a_lease(place: Place) {
    let (ttl, soon) = (Duration::from_millis(600), Duration::from_secs(30));
    let open = || place.open_by(&Arc::new(Clock::system()));
    let first = open();
    first.register(remote("py", "mail", ttl)).await.expect("a session");
    let begun = Instant::now();
    while !first.nodes(0).await.expect("nodes").is_empty() {
        assert!(begun.elapsed() < soon, "its lease ends");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (second, begun) = (open(), Instant::now());
    let node = Node::worker(Arc::clone(&second), "host:1", &[]).await;
    while second.reap().await.expect("an answer").nodes.is_empty() {
        assert!(begun.elapsed() < soon, "it is reaped in the end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(begun.elapsed() >= ttl, "{:?}", begun.elapsed());
    drop(node);
}
