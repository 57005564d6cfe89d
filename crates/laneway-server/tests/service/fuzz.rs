//! Bodies that nobody would send: whatever they are, the answer is a refusal in words, and the service goes on.

use hyper::Method;
use laneway_core::role::Role;
use laneway_fuzz::{Mutants, corpus};

use crate::support::{Place, Reply};
use crate::webhooks::{SECRET, listening, now, sent};

const CASES: usize = 300;

#[track_caller]
fn is_an_answer(reply: &Reply, body: &[u8]) {
    let shown = String::from_utf8_lossy(body);
    assert!(reply.status.as_u16() < 500, "{} to {shown:?}", reply.status);
    if reply.status.as_u16() >= 400 {
        assert!(!reply.refusal().1.is_empty(), "no word for {shown:?}");
    }
}

fn bodies(name: &str) -> Vec<Vec<u8>> {
    let kept = corpus(name);
    assert!(kept.len() >= 5, "{name} has {} inputs", kept.len());
    let mutants: Vec<Vec<u8>> = Mutants::new(&kept, 1).take(CASES).collect();
    kept.into_iter().map(|(_, bytes)| bytes).chain(mutants).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_of_a_submission_is_too_much() {
    let place = Place::sqlite();
    let server = place.serve().await;
    for body in bodies("body") {
        let asking = server.ask(Method::POST, "/v1/runs").by(Role::Operator);
        let reply = asking.with("content-type", "application/json").raw(body.clone()).send().await;
        is_an_answer(&reply, &body);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_webhook_is_too_much_also_not_from_a_sender_who_has_the_secret() {
    let place = Place::sqlite();
    let server = place.serve().await;
    listening(&place, &server).await;
    for (no, body) in bodies("webhook").into_iter().enumerate() {
        let reply = sent(&server, SECRET, now(), &format!("d-{no}"), &body).send().await;
        is_an_answer(&reply, &body);
    }
    server.stop().await;
}
