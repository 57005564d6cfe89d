//! E6: events as they happen, without gap or repeat, whatever becomes of the connection and of the server.

use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use laneway_core::pool::{ContainerState, PoolFact};
use laneway_core::role::Role;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Actor, Place, SOON, Server};

const FLOW: &str = "steps: {a: {run: 'true'}, b: {needs: [a], run: 'true'}, c: {needs: [b], run: 'true'}}\n";

/// One event, as a browser would see it.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    id: String,
    name: String,
    data: Value,
}

impl Seen {
    fn place(&self) -> (String, u64) {
        let run = self.data["run"].as_str().or(self.data["node"].as_str()).expect("whose it is");
        (run.to_owned(), self.data["seq"].as_u64().expect("a number"))
    }
}

/// A stream that is being read.
struct Reading {
    body: Incoming,
    text: String,
}

impl Reading {
    async fn open(server: &Server, query: &str, last: Option<&str>) -> Self {
        let mut asking = server.ask(Method::GET, &format!("/v1/events?{query}")).by(Role::Viewer);
        if let Some(last) = last {
            asking = asking.with("last-event-id", last);
        }
        let response = timeout(SOON, asking.begin()).await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event; `None` when the stream has ended.
    async fn next(&mut self) -> Option<Seen> {
        timeout(SOON, async {
            loop {
                while let Some((block, rest)) = self.text.split_once("\n\n") {
                    let field = |name: &str| {
                        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                        line.unwrap_or_default().to_owned()
                    };
                    let seen = Seen {
                        id: field("id"),
                        name: field("event"),
                        data: serde_json::from_str(&field("data")).unwrap_or_default(),
                    };
                    self.text = rest.to_owned();
                    if !seen.name.is_empty() {
                        return Some(seen);
                    }
                }
                let frame = self.body.frame().await?;
                let bytes = frame.ok()?.into_data().ok()?;
                self.text.push_str(std::str::from_utf8(&bytes).expect("text"));
            }
        })
        .await
        .expect("an event in time")
    }

    async fn take(&mut self, count: usize) -> Vec<Seen> {
        let mut seen = Vec::new();
        for _ in 0..count {
            seen.push(self.next().await.expect("the stream goes on"));
        }
        seen
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_many_runs_come_on_one_connection_as_they_happen() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let (one, two) = (server.submit(FLOW).await, server.submit(FLOW).await);
    let mut reading = Reading::open(&server, &format!("runs={one},{two}:1&nodes=0"), None).await;
    actor.work(true).await;
    let mut seen: Vec<Seen> = Vec::new();
    while seen.iter().filter(|seen| seen.name == "run_finished").count() < 2 {
        seen.push(reading.next().await.expect("the stream goes on"));
    }
    let of = |run: &str| -> Vec<u64> {
        seen.iter().map(Seen::place).filter(|(of, _)| of == run).map(|(_, seq)| seq).collect()
    };
    let last = server.store.run_state(one).await.expect("a run").last_event;
    assert_eq!(of(&one.to_string()), (1..=last).collect::<Vec<_>>());
    assert_eq!(of(&two.to_string()), (2..=last).collect::<Vec<_>>());
    assert_eq!(of("actor:1"), [1]);
    server.stop().await;
}

/// They share what is read, and each gets all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_listen_to_one_run_are_each_told_all_of_it() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit(FLOW).await;
    let mut readings = Vec::new();
    let before = server.store.run_state(run).await.expect("a run").last_event;
    for after in (0..=before).cycle().take(40) {
        let mut reading = Reading::open(&server, &format!("runs={run}:{after}"), None).await;
        // So that all of them have read to the end, and wait for the same.
        reading.take(usize::try_from(before - after).expect("few")).await;
        readings.push((before, reading));
    }
    actor.work(true).await;
    let last = server.store.run_state(run).await.expect("a run").last_event;
    for (after, mut reading) in readings {
        let seen = reading.take(usize::try_from(last - after).expect("few")).await;
        let places: Vec<u64> = seen.iter().map(|seen| seen.place().1).collect();
        assert_eq!(places, (after + 1..=last).collect::<Vec<_>>());
        assert_eq!(seen.last().map(|seen| seen.name.as_str()), Some("run_finished"));
    }
    server.stop().await;
}

/// Reads a run of many events over connections that break again and again, to servers that come and go.
async fn read_in_pieces(place: Place) {
    let mut server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let (one, two) = (server.submit(FLOW).await, server.submit(FLOW).await);
    let query = format!("runs={one},{two}&nodes=0");
    let mut seen: Vec<Seen> = Vec::new();
    let mut last: Option<String> = None;
    let is_whole = |seen: &[Seen]| seen.iter().filter(|seen| seen.name == "run_finished").count() == 2;
    while !is_whole(&seen) {
        let mut reading = Reading::open(&server, &query, last.as_deref()).await;
        // A little work meanwhile, so that some of it was there before and some comes while it is read.
        for claim in actor.take(1).await {
            actor.end(&claim, true).await;
        }
        for event in reading.take(2).await {
            last = Some(event.id.clone());
            seen.push(event);
            if is_whole(&seen) {
                break;
            }
        }
        drop(reading);
        if seen.len().is_multiple_of(3) {
            let next = place.serve().await;
            std::mem::replace(&mut server, next).stop().await;
        }
    }
    for run in [one, two] {
        let numbers: Vec<u64> = seen
            .iter()
            .map(Seen::place)
            .filter(|(of, _)| *of == run.to_string())
            .map(|(_, seq)| seq)
            .collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "without gap or repeat");
        assert_eq!(numbers.len() as u64, server.store.run_state(run).await.expect("a run").last_event);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_back_goes_on_without_gap_or_repeat_also_to_another_server() {
    read_in_pieces(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_back_goes_on_without_gap_or_repeat_also_to_another_server_on_postgres() {
    read_in_pieces(Place::postgres().await).await;
}

/// A tab that slept over night comes back to runs of which one is kept no longer.
async fn come_back_after_a_prune(place: Place) {
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let (gone, newer) = (server.submit(FLOW).await, server.submit(FLOW).await);
    actor.work(true).await;
    let query = format!("runs={gone},{newer}:1");
    let first = Reading::open(&server, &query, None).await.next().await.expect("an event");
    assert!(server.store.prune(gone).await.expect("it has ended"));
    let mut reading = Reading::open(&server, &query, Some(&first.id)).await;
    let last = server.store.run_state(newer).await.expect("a run").last_event;
    let seen = reading.take(usize::try_from(last - 1).expect("few")).await;
    let places: Vec<_> = (2..=last).map(|seq| (newer.to_string(), seq)).collect();
    assert_eq!(seen.iter().map(Seen::place).collect::<Vec<_>>(), places);
    // Who was never there cannot have seen it end.
    let path = format!("/v1/events?{query}");
    assert_eq!(server.get(&path).await.refusal(), (404, "no_such_run".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_was_removed_meanwhile_ends_for_who_comes_back_and_the_others_go_on() {
    come_back_after_a_prune(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_was_removed_meanwhile_ends_for_who_comes_back_on_postgres() {
    come_back_after_a_prune(Place::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_ends_when_the_server_does() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit(FLOW).await;
    let mut reading = Reading::open(&server, &format!("runs={run}"), None).await;
    reading.take(2).await;
    server.tell_to_stop();
    while reading.next().await.is_some() {}
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_that_is_revoked_hears_nothing_of_what_happens_then() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit("steps: {a: {run: 'true'}}\n").await;
    let mut reading = Reading::open(&server, &format!("runs={run}"), None).await;
    reading.take(2).await;
    let name = format!("viewer-{}", server.address.port());
    let gone = server.ask(Method::DELETE, &format!("/v1/tokens/{name}")).by(Role::Admin).send().await;
    assert_eq!(gone.status, 200);
    actor.work(true).await;
    while let Some(seen) = reading.next().await {
        assert!(!matches!(seen.name.as_str(), "task_started" | "task_finished" | "run_finished"), "{seen:?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_followed_is_refused_before_a_stream_begins() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit(FLOW).await;
    for (query, status, code) in [
        ("runs=last".to_owned(), 400, "bad_request"),
        ("nodes=-1".to_owned(), 400, "bad_request"),
        (String::new(), 422, "unprocessable"),
        (format!("runs={run},{run}"), 422, "unprocessable"),
        ("runs=0199f2a0-0000-7000-8000-1a2b3c4d5e6f".to_owned(), 404, "no_such_run"),
    ] {
        let refused = server.get(&format!("/v1/events?{query}")).await;
        assert_eq!(refused.refusal(), (status, code.to_owned()), "{query}");
    }
    let path = format!("/v1/events?runs={run}");
    let strange = server.ask(Method::GET, &path).by(Role::Viewer).with("last-event-id", "1.2.3").send().await;
    assert_eq!(strange.refusal(), (422, "unprocessable".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_does_not_read_holds_up_nobody() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit(FLOW).await;
    let lazy = Reading::open(&server, &format!("runs={run}"), None).await;
    let mut eager = Reading::open(&server, &format!("runs={run}"), None).await;
    actor.work(true).await;
    while eager.next().await.is_some_and(|seen| seen.name != "run_finished") {}
    let reply = server.post(&format!("/v1/runs/{run}/retry"), json!({ "from": "a" })).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    drop(lazy);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_any_kind_are_told_at_most_once_a_second() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let server = place.serve().await;
        let mut reading = Reading::open(&server, "changes=1", None).await;
        let first = reading.next().await.expect("at once");
        assert_eq!((first.name.as_str(), first.id.as_str()), ("changed", ""));
        assert!(first.data["at"].is_string(), "{first:?}");
        let begun = tokio::time::Instant::now();
        for _ in 0..20 {
            server.submit(FLOW).await;
        }
        let second = reading.next().await.expect("a change");
        assert_eq!(second.name, "changed");
        assert!(begun.elapsed() > std::time::Duration::from_millis(500), "not at once behind the first");
        // What another process does is heard of as well.
        let elsewhere = Actor::join(&place, "actor:1").await;
        assert!(elsewhere.work(true).await >= 60);
        assert_eq!(reading.next().await.expect("a change").name, "changed");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_come_beside_events_and_do_not_move_their_place() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit(FLOW).await;
    let mut reading = Reading::open(&server, &format!("runs={run}&changes=1"), None).await;
    let seen = reading.take(3).await;
    assert!(seen.iter().any(|seen| seen.name == "changed" && seen.id.is_empty()), "{seen:?}");
    let places: Vec<&str> =
        seen.iter().filter(|seen| seen.name != "changed").map(|seen| seen.id.as_str()).collect();
    assert_eq!(places, ["1", "2"]);
    assert_eq!(server.get("/v1/events?changes=2").await.refusal(), (400, "bad_request".to_owned()));
    assert_eq!(server.get("/v1/events").await.refusal(), (422, "unprocessable".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_containers_of_pools_do_and_what_is_pulled_for_them_comes_as_it_happens() {
    use laneway_core::pool::{ContainerState, EndReason, ImagePullProgress, PoolFact};
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let mut reading = Reading::open(&server, "pools=0", None).await;
    let (pool, image) = ("agents".to_owned(), "busybox:1".to_owned());
    let moved =
        |to| PoolFact::of(pool.clone(), "c1".to_owned(), (image.clone(), None), to, Some(EndReason::Expired));
    let (of, is_done) = (7, true);
    let pulled = ImagePullProgress { pool: pool.clone(), image: image.clone(), bytes: 7, of, is_done };
    server
        .store
        .tell_pools(actor.session, vec![pulled.into(), moved(ContainerState::Starting)])
        .await
        .expect("told");
    let first = reading.take(2).await;
    server.store.tell_pools(actor.session, vec![moved(ContainerState::Idle)]).await.expect("told");
    let more = reading.take(1).await;
    let names: Vec<&str> = first.iter().chain(&more).map(|seen| seen.name.as_str()).collect();
    assert_eq!(names, ["image_pull_progress", "container_starting", "container_idle"]);
    assert_eq!((&first[0].data["image"], &first[0].data["is_done"]), (&"busybox:1".into(), &true.into()));
    // Who was cut off goes on behind what it has seen.
    let mut again = Reading::open(&server, "pools=0", Some(&first[1].id)).await;
    assert_eq!(again.take(1).await[0].name, "container_idle");
    let metrics = String::from_utf8(server.get("/metrics").await.body.to_vec()).expect("text");
    let idle = "laneway_pool_containers{node=\"actor:1\",pool=\"agents\",state=\"idle\"} 1";
    assert!(metrics.contains(idle), "{metrics}");
    server.stop().await;
}

/// A client that came back to it would meet it again, for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_that_cannot_be_read_is_told_as_such_and_the_stream_goes_on_behind_it() {
    for place in [Place::sqlite(), Place::postgres().await] {
        let server = place.serve().await;
        let actors = [Actor::join(&place, "actor:1").await, Actor::join(&place, "actor:2").await];
        let run = server.submit(FLOW).await;
        let fact = |name: &str| {
            PoolFact::of(
                "warm".into(),
                name.into(),
                ("busybox:1".into(), None),
                ContainerState::Starting,
                None,
            )
        };
        let facts = vec![fact("a"), fact("b")];
        actors[0].store.tell_pools(actors[0].session, facts).await.expect("told");
        let pools = server.store.pool_events(None, 0, 9).await.expect("events");
        for harm in [
            "UPDATE node_events SET name = 'node_teleported' WHERE seq = 1".to_owned(),
            format!("UPDATE pool_events SET body = '{{' WHERE seq = {}", pools[0].seq),
            "UPDATE events SET version = 99 WHERE seq = 1".to_owned(),
        ] {
            place.harm(&harm).await;
        }
        let mut reading = Reading::open(&server, &format!("runs={run}&nodes=0&pools=0"), None).await;
        let mut seen: Vec<Seen> = Vec::new();
        let is_told = |seen: &[Seen], name: &str| seen.iter().any(|seen| seen.name == name);
        while !["task_available", "node_joined", "container_starting"].iter().all(|name| is_told(&seen, name))
        {
            seen.push(reading.next().await.expect("the stream goes on"));
        }
        let gaps: Vec<&Value> =
            seen.iter().filter(|seen| seen.name == "unreadable").map(|seen| &seen.data).collect();
        let gap = |seq: u64| json!({ "event": "unreadable", "seq": seq });
        let of_run = json!({ "event": "unreadable", "seq": 1, "run": run });
        assert_eq!(gaps, [&of_run, &gap(1), &gap(pools[0].seq)], "each once");
        for (path, first) in [("nodes", 1), ("pools", pools[0].seq)] {
            let page = server.get(&format!("/v1/{path}/events")).await.json();
            let told = page["unreadable"].as_array().expect("a list");
            assert!(
                told.len() == 1 && told[0].to_string().contains(&format!("event {first} of {path}")),
                "{page}"
            );
            assert_eq!(page["events"].as_array().map(Vec::len), Some(1), "{page}");
        }
        server.stop().await;
    }
}
