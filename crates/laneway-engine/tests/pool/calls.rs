//! Questions to containers that answer HTTP, and their ports.

use std::time::Duration;

use laneway_core::definition::Method;
use laneway_core::pool::ContainerState;
use laneway_engine::container::pool::What;
use laneway_engine::process::Outcome;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::proxy::Proxy;
use crate::support::{BUSYBOX, Node, agents, docker};

fn call(method: Method, path: &str, body: Option<serde_json::Value>) -> What {
    What::Call { method, path: path.to_owned(), body }
}

/// A port that nobody had a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn the_answer_of_an_endpoint_is_the_output_and_a_woken_one_answers_again() {
    let mut node = Node::new();
    let pool = agents(1);
    let asked = || call(Method::Post, "/cgi-bin/echo", Some(json!({"question": "why"})));
    for _ in 0..2 {
        let ending = node.end_of(node.job(&pool, asked())).await;
        assert_eq!(ending.outcome, Outcome::Exited(0));
        let output = ending.output.expect("an output");
        assert_eq!((&output["method"], &output["body"]), (&json!("POST"), &json!({"question": "why"})));
        node.told(ContainerState::Dormant).await;
    }
    assert_eq!(node.story().iter().filter(|word| **word == "starting").count(), 1);
    node.close().await;
}

#[tokio::test]
async fn a_question_that_nobody_has_heard_is_put_to_another_container() {
    let mut node = Node::new();
    let pool = agents(1);
    node.pools.warm(&pool, &node.path("work"), 1);
    let dead = node.told(ContainerState::Idle).await.container;
    node.docker.kill(&dead, "KILL").await.expect("killed");
    node.docker.wait(&dead).await.expect("ended");
    let job = node.job(&pool, call(Method::Post, "/cgi-bin/echo", Some(json!(1))));
    let ending = node.end_of(job).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    assert_eq!(ending.output.expect("an output")["body"], json!(1));
    node.close().await;
}

#[tokio::test]
async fn a_question_that_is_cut_off_with_its_engine_is_told_from_a_server_that_fails() {
    let place = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::start(place.path(), docker().socket().expect("a socket"));
    let node = Node::at(proxy.docker(), 49200..=49300);
    // With the host's own network its endpoint is here, so that it is known when the question has been heard.
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut pool = agents(1);
    pool.container.image = BUSYBOX.to_owned();
    pool.container.network = Some("host".to_owned());
    pool.command = ["sleep", "1000"].map(str::to_owned).to_vec();
    pool.endpoint.as_mut().expect("one").port = server.local_addr().expect("an address").port();
    let hear = async |is_engine_lost: bool| {
        loop {
            let (mut asked, _) = server.accept().await.expect("a question");
            let mut first = [0; 1024];
            let count = asked.read(&mut first).await.expect("a question");
            if first[..count].starts_with(b"GET /health") {
                asked.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.expect("heard");
                continue;
            }
            if is_engine_lost {
                proxy.go_away();
            }
            break;
        }
    };
    let ask = || node.end_of(node.job(&pool, call(Method::Get, "/work", None)));
    let (ending, ()) = tokio::join!(ask(), hear(false));
    assert!(matches!(ending.outcome, Outcome::Failed(_)), "{:?}", ending.outcome);
    let (ending, ()) = tokio::join!(ask(), hear(true));
    let Outcome::EngineLost(why) = ending.outcome else { panic!("{:?}", ending.outcome) };
    assert!(why.starts_with("/work: ") && why.contains("no container engine answers"), "{why}");
    proxy.come_back();
    node.close().await;
}

#[tokio::test]
async fn an_answer_that_is_no_success_fails_with_its_status_and_its_beginning() {
    let node = Node::new();
    let ending = node.end_of(node.job(&agents(1), call(Method::Get, "/nothing", None))).await;
    let Outcome::Failed(why) = ending.outcome else { panic!("{:?}", ending.outcome) };
    assert!(why.starts_with("GET /nothing answered 404: <HTML>"), "{why}");
    node.close().await;
}

#[tokio::test]
async fn a_range_of_one_port_serves_one_container_after_another() {
    let port = free_port();
    let mut node = Node::with_ports(port..=port);
    let mut pool = agents(1);
    pool.dormancy = Duration::from_millis(50);
    for _ in 0..2 {
        let job = node.job(&pool, call(Method::Get, "/health", None));
        let ending = node.end_of(job).await;
        // `ok` is no JSON, which is for whoever asked for it to know.
        assert_eq!(ending.outcome, Outcome::Exited(0));
        assert!(ending.output.is_err());
        node.told(ContainerState::Terminated).await;
        while !node.containers().await.is_empty() {}
    }
    node.close().await;
}

#[tokio::test]
async fn a_port_that_somebody_took_in_between_is_passed_over() {
    let place = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::start(place.path(), docker().socket().expect("a socket"));
    let node = Node::at(proxy.docker(), 49200..=49300);
    proxy.take_ports(2);
    let job = node.job(&agents(1), call(Method::Post, "/cgi-bin/echo", Some(json!(1))));
    assert_eq!(node.end_of(job).await.outcome, Outcome::Exited(0));
    assert_eq!(proxy.creates(), 3, "one for each port");
    node.close().await;
}

#[tokio::test]
async fn a_container_without_a_port_is_a_clear_error_and_leaves_nothing() {
    let port = free_port();
    let node = Node::with_ports(port..=port);
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port");
    let mut pool = agents(1);
    pool.acquire_timeout = Some(Duration::from_millis(300));
    let job = node.job(&pool, call(Method::Get, "/health", None));
    let ending = node.end_of(job).await;
    let Outcome::StartFailed(why) = ending.outcome else { panic!("{:?}", ending.outcome) };
    let expected = format!("no port of {port} is free: 1 by another program; widen the setting `ports`");
    assert!(why.contains(&expected), "{why}");
    node.close().await;
}
