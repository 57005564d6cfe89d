//! T2: a run from what another program sends: signed, of now, each delivery once; and what goes wrong before anybody is known.

use std::time::Duration;

use hyper::Method;
use laneway_core::role::Role;
use ring::hmac;
use serde_json::json;

use crate::support::{Asking, Place, Reply, Server};

pub(crate) const SECRET: &str = "a secret of some length";

/// A workflow that listens, with its secret in a file beside it.
pub(crate) async fn listening(place: &Place, server: &Server) {
    let file = place.dir.path().join("signing");
    std::fs::write(&file, SECRET).expect("a file");
    let document = format!(
        "name: deploy\nsecrets: {{signing: {{file: '{}'}}}}\n\
         webhook:\n- {{path: deploy, secret: signing, params: {{ref: '${{{{ payload.ref }}}}'}}}}\n\
         - {{path: push, secret: signing, scheme: github}}\n\
         params: {{ref: {{type: string, default: none}}}}\nsteps: {{a: {{run: 'true'}}}}\n",
        file.display()
    );
    let applied = server.post("/v1/workflows", json!({ "document": document })).await;
    assert_eq!(applied.status, 200, "{applied:?}");
}

fn digits(secret: &str, signed: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed);
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

pub(crate) fn sent<'a>(
    server: &'a Server,
    secret: &str,
    at: i64,
    delivery: &str,
    body: impl AsRef<[u8]>,
) -> Asking<'a> {
    let body = body.as_ref();
    let signature = digits(secret, &[format!("{at}.{delivery}.").as_bytes(), body].concat());
    server
        .ask(Method::POST, "/v1/hooks/deploy")
        .with("laneway-timestamp", &at.to_string())
        .with("laneway-delivery", delivery)
        .with("laneway-signature", &format!("v1={signature}"))
        .raw(body.to_vec())
}

async fn runs(server: &Server) -> usize {
    server.get("/v1/runs").await.json()["runs"].as_array().map_or(0, Vec::len)
}

fn refusal(reply: &Reply) -> (u16, String) {
    reply.refusal()
}

async fn each_delivery_starts_one_run(place: Place) {
    let server = place.serve().await;
    listening(&place, &server).await;
    let body = "{\"ref\": \"main\"}";
    let first = sent(&server, SECRET, now(), "d-1", body).send().await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = sent(&server, SECRET, now(), "d-1", body).send().await;
    assert_eq!(again.json(), first.json());
    let other = sent(&server, SECRET, now(), "d-2", body).send().await;
    assert_ne!(other.json()["run"], first.json()["run"]);
    assert_eq!(runs(&server).await, 2);
    let run = server.get(&format!("/v1/runs/{}", first.json()["run"].as_str().expect("an id"))).await.json();
    assert_eq!(run["params"]["ref"], "main");
    let listed = server.get("/v1/triggers").await.json();
    assert_eq!(listed["triggers"][0]["trigger"], "webhook deploy");
    let audit = server.ask(Method::GET, "/v1/audit").by(Role::Admin).send().await.json();
    assert_eq!(audit["entries"][0]["by"], "webhook deploy");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_delivery_starts_one_run_on_an_embedded_store() {
    each_delivery_starts_one_run(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_delivery_starts_one_run_on_postgres() {
    each_delivery_starts_one_run(Place::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_signed_as_it_has_to_be_starts_nothing_and_learns_nothing() {
    let place = Place::sqlite();
    let server = place.serve().await;
    listening(&place, &server).await;
    let unknown = server.ask(Method::POST, "/v1/hooks/nowhere").raw(b"{}".to_vec()).send().await;
    let unsigned = server.ask(Method::POST, "/v1/hooks/deploy").raw(b"{}".to_vec()).send().await;
    let forged = sent(&server, "another secret", now(), "d-1", "{}").send().await;
    let changed = sent(&server, SECRET, now(), "d-1", "{}").raw(b"{\"ref\": \"evil\"}".to_vec()).send().await;
    let no_json = sent(&server, "another secret", now(), "d-1", "no JSON").send().await;
    for refused in [&unsigned, &forged, &changed, &no_json] {
        assert_eq!(refusal(refused), (401, "bad_signature".to_owned()));
        assert_eq!(refused.json(), unknown.json(), "it says the same as where nobody listens");
    }
    // Nor who sends while its secret is not to be found, for which the sender can do nothing.
    let file = place.dir.path().join("signing");
    std::fs::remove_file(&file).expect("a file");
    let unchecked = sent(&server, SECRET, now(), "d-1", "{}").send().await;
    assert_eq!((refusal(&unchecked), unchecked.json()), ((401, "bad_signature".to_owned()), unknown.json()));
    std::fs::write(&file, SECRET).expect("a file");
    let old = sent(&server, SECRET, now() - 400, "d-1", "{}").send().await;
    assert_eq!(refusal(&old), (401, "bad_signature".to_owned()));
    let early = sent(&server, SECRET, now() + 400, "d-1", "{}").send().await;
    assert_eq!(refusal(&early), (401, "bad_signature".to_owned()));
    assert_eq!(runs(&server).await, 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn known_sender_is_told_what_is_wrong() {
    let place = Place::sqlite();
    let server = place.serve().await;
    listening(&place, &server).await;
    let no_json = sent(&server, SECRET, now(), "d-1", "ref=main").send().await;
    assert_eq!(refusal(&no_json), (400, "bad_body".to_owned()));
    let no_ref = sent(&server, SECRET, now(), "d-2", "{}").send().await;
    assert_eq!(refusal(&no_ref), (422, "bad_params".to_owned()));
    let large = sent(&server, SECRET, now(), "d-3", format!("\"{}\"", "x".repeat(1 << 20))).send().await;
    assert_eq!(refusal(&large), (413, "body_too_large".to_owned()));
    server.post("/v1/workflows/deploy/triggers/pause", json!({})).await;
    let paused = sent(&server, SECRET, now(), "d-4", "{\"ref\": \"main\"}").send().await;
    assert_eq!(refusal(&paused), (409, "triggers_paused".to_owned()));
    assert_eq!(runs(&server).await, 0);
    server.post("/v1/workflows/deploy/triggers/resume", json!({})).await;
    let taken = sent(&server, SECRET, now(), "d-4", "{\"ref\": \"main\"}").send().await;
    assert_eq!(taken.status, 201, "it may be sent again");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn github_signs_in_its_own_way() {
    let place = Place::sqlite();
    let server = place.serve().await;
    listening(&place, &server).await;
    let body = b"{\"zen\": \"Keep it logically awesome.\"}";
    let push = |signature: String| {
        server
            .ask(Method::POST, "/v1/hooks/push")
            .with("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
            .with("x-hub-signature-256", &signature)
            .raw(body.to_vec())
            .send()
    };
    let taken = push(format!("sha256={}", digits(SECRET, body))).await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let forged = push(format!("sha256={}", digits("another secret", body))).await;
    assert_eq!(refusal(&forged), (401, "bad_signature".to_owned()));
    server.stop().await;
}

async fn body_under_another_name_is_a_replay_where_the_body_alone_is_signed(place: Place) {
    let server = place.serve().await;
    listening(&place, &server).await;
    let push = |delivery: &str, body: &str| {
        let signature = format!("sha256={}", digits(SECRET, body.as_bytes()));
        let asked = server.ask(Method::POST, "/v1/hooks/push").with("x-github-delivery", delivery);
        asked.with("x-hub-signature-256", &signature).raw(body.as_bytes().to_vec()).send()
    };
    let first = push("d-1", "{\"after\": 1}").await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = push("d-1", "{\"after\": 1}").await;
    assert_eq!(again.json(), first.json(), "the same delivery gives the same run");
    let replayed = push("d-2", "{\"after\": 1}").await;
    assert_eq!(refusal(&replayed), (409, "replayed".to_owned()));
    assert_eq!(replayed.json()["detail"], "this body was already delivered as d-1");
    let other = push("d-3", "{\"after\": 2}").await;
    assert_eq!(other.status, 201, "another body: {other:?}");
    assert_eq!(runs(&server).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_under_another_name_is_a_replay_on_an_embedded_store() {
    body_under_another_name_is_a_replay_where_the_body_alone_is_signed(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_under_another_name_is_a_replay_on_postgres() {
    body_under_another_name_is_a_replay_where_the_body_alone_is_signed(Place::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signature_is_good_for_one_delivery_and_one_body() {
    let place = Place::sqlite();
    let server = place.serve().await;
    listening(&place, &server).await;
    let at = now();
    // What is signed of both is the same: TIMESTAMP.e1.1.5
    let taken = sent(&server, SECRET, at, "e1", "1.5").send().await;
    assert_eq!(refusal(&taken), (422, "bad_params".to_owned()), "it is signed as it has to be");
    let split = sent(&server, SECRET, at, "e1.1", "5").send().await;
    assert_eq!(refusal(&split), (401, "bad_signature".to_owned()), "it is signed for another delivery");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_takes_as_long_where_nothing_listens() {
    let place = Place::sqlite();
    let server = place.serve().await;
    listening(&place, &server).await;
    let refuse = async |path: &str| {
        let begun = std::time::Instant::now();
        let refused = server.ask(Method::POST, path).raw(b"{}".to_vec()).send().await;
        assert_eq!(refusal(&refused), (401, "bad_signature".to_owned()), "{path}");
        begun.elapsed()
    };
    let (mut signed, mut github, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    // Side by side, so that what else the machine does delays all of them.
    for _ in 0..15 {
        let took =
            tokio::join!(refuse("/v1/hooks/deploy"), refuse("/v1/hooks/push"), refuse("/v1/hooks/nowhere"));
        signed.push(took.0);
        github.push(took.1);
        unknown.push(took.2);
    }
    let median = |mut took: Vec<Duration>| {
        took.sort_unstable();
        took[took.len() / 2]
    };
    let (signed, github, unknown) = (median(signed), median(github), median(unknown));
    for known in [signed, github] {
        assert!(known >= Duration::from_millis(250), "a known path was refused after {known:?}");
        // Far below the grid of refusals, and above what a busy machine makes of a timer.
        let difference = known.abs_diff(unknown);
        assert!(difference < Duration::from_millis(25), "known: {known:?}, unknown: {unknown:?}");
    }
    server.stop().await;
}
