//! Clients that are slow on purpose, in every phase of a connection: each one is let go at its deadline, and leaves nothing behind.

use std::time::Duration;

use hyper::Method;
use laneway_core::role::Role;
use laneway_server::{Deadlines, Tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{Place, SOON, Server};

/// Clients of each kind at once.
const MANY: usize = 40;

/// Longer than any client of these tests waits, where a phase is not the one that is tested.
const NEVER: Duration = Duration::from_secs(600);
const AT_ONCE: Duration = Duration::from_millis(200);

const PATIENT: Deadlines =
    Deadlines { head: NEVER, handshake: NEVER, body: NEVER, strangers_body: NEVER, write: NEVER };

/// Sends `first`, then a byte of `drip` again and again, until the server hangs up. Returns what the server sent.
async fn drip(mut stream: TcpStream, first: Vec<u8>, drip: Option<u8>) -> Vec<u8> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    // A server that has hung up already breaks the connection, which is what is waited for.
    let _ = stream.write_all(&first).await;
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    loop {
        tokio::select! {
            read = stream.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return received,
                Ok(read) => received.extend_from_slice(&buffer[..read]),
            },
            _ = pace.tick(), if drip.is_some() => {
                let _ = stream.write_all(&[drip.unwrap_or_default()]).await;
            }
        }
    }
}

/// Lets many such clients come, and waits until each one was let go and the server counts none of them any more.
async fn all_are_let_go(server: &Server, first: &[u8], byte: Option<u8>) -> Vec<Vec<u8>> {
    let mut clients = JoinSet::new();
    for _ in 0..MANY {
        let stream = TcpStream::connect(server.address).await.expect("a connection");
        clients.spawn(drip(stream, first.to_vec(), byte));
    }
    timeout(SOON, clients.join_all()).await.expect("every client is let go at the deadline")
}

/// Waits until the connection that asks is the only one.
async fn no_connection_is_left(server: &Server) {
    let none = async {
        loop {
            let metrics = server.ask(Method::GET, "/metrics").by(Role::Viewer).send().await;
            let text = String::from_utf8(metrics.body.to_vec()).expect("text");
            if text.contains("\nlaneway_http_connections 1\n") {
                return;
            }
        }
    };
    timeout(SOON, none).await.expect("the server counts no connection but this one");
}

fn head(server: &Server, line: &str) -> String {
    format!("{line} HTTP/1.1\r\nhost: {}\r\n", server.address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_does_not_finish_a_head_is_let_go() {
    let place = Place::sqlite();
    let server = place.serve_within(Deadlines { head: AT_ONCE, ..PATIENT }, None).await;
    let begun = format!("{}x-slow: ", head(&server, "GET /healthz"));
    assert!(all_are_let_go(&server, b"", None).await.iter().all(Vec::is_empty), "silent clients");
    assert!(all_are_let_go(&server, begun.as_bytes(), Some(b'a')).await.iter().all(Vec::is_empty));
    no_connection_is_left(&server).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_does_not_finish_a_second_head_is_let_go() {
    let place = Place::sqlite();
    let server = place.serve_within(Deadlines { head: AT_ONCE, ..PATIENT }, None).await;
    let first = format!("{}\r\n", head(&server, "GET /healthz"));
    let second = format!("{first}{}x-slow: ", head(&server, "GET /healthz"));
    for (sent, byte) in [(&first, None), (&first, Some(b'G')), (&second, Some(b'a'))] {
        let answers = all_are_let_go(&server, sent.as_bytes(), byte).await;
        assert!(
            answers.iter().all(|answer| answer.starts_with(b"HTTP/1.1 200 ")),
            "the first request is answered"
        );
    }
    no_connection_is_left(&server).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_does_not_finish_a_body_is_refused_and_let_go() {
    let place = Place::sqlite();
    let strangers = Deadlines { strangers_body: AT_ONCE, ..PATIENT };
    let callers = Deadlines { body: AT_ONCE, ..PATIENT };
    for (deadlines, line, role) in [
        (strangers, "POST /v1/hooks/nowhere", None),
        (strangers, "POST /v1/sign-in", None),
        (callers, "POST /v1/validate", Some(Role::Viewer)),
    ] {
        let server = place.serve_within(deadlines, None).await;
        let token = role.map(|role| format!("authorization: Bearer {}\r\n", server.token(role)));
        let kind = "content-type: application/json\r\ncontent-length: 1000";
        let begun = format!("{}{}{kind}\r\n\r\n{{", head(&server, line), token.unwrap_or_default());
        let answers = all_are_let_go(&server, begun.as_bytes(), Some(b' ')).await;
        for answer in answers {
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("timed_out"), "{line}: {answer}");
        }
        no_connection_is_left(&server).await;
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_without_a_token_share_what_they_may_take() {
    const LARGE: usize = 1_000_000;
    let place = Place::sqlite();
    let server = place.serve_within(PATIENT, None).await;
    let mut begun = head(&server, "POST /v1/hooks/nowhere").into_bytes();
    begun.extend_from_slice(format!("content-length: {}\r\n\r\n", LARGE + 1).as_bytes());
    begun.resize(begun.len() + LARGE, b' ');
    // Each one keeps back its last byte, so that none of them ends by itself.
    let mut waiting: Vec<TcpStream> = Vec::new();
    let refused = loop {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        stream.write_all(&begun).await.expect("it is read");
        let mut answer = [0; 512];
        tokio::select! {
            // The one that is refused is told at once. The others are read in the order in which they came.
            read = stream.read(&mut answer) => {
                break String::from_utf8_lossy(&answer[..read.expect("an answer")]).into_owned();
            }
            () = all_is_read(&server) => waiting.push(stream),
        }
        assert!(waiting.len() < 64, "{} bodies of {LARGE} bytes are held at once", waiting.len());
    };
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("busy"), "{refused}");
    assert!(waiting.len() >= 8, "it was refused behind {} others", waiting.len());
    // With a token there is room.
    let validated = server.ask(Method::POST, "/v1/validate").by(Role::Viewer);
    let body = serde_json::json!({ "document": format!("# {}\nsteps: {{a: {{run: 'true'}}}}", " ".repeat(100_000)) });
    assert_eq!(validated.json(&body).send().await.status, 200);
    drop(waiting);
    no_connection_is_left(&server).await;
    // And without one there is room again.
    let again = server.ask(Method::POST, "/v1/hooks/nowhere").raw(vec![b' '; LARGE]).send().await;
    assert_eq!(again.refusal(), (401, "bad_signature".to_owned()));
    server.stop().await;
}

/// A request behind others on the same processor is answered when those were looked at.
async fn all_is_read(server: &Server) {
    for _ in 0..20 {
        server.ask(Method::GET, "/healthz").send().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_reads_nothing_of_an_answer_is_let_go() {
    let place = Place::sqlite();
    let server = place.serve_within(Deadlines { write: AT_ONCE, ..PATIENT }, None).await;
    // More than the system keeps for a client, in small answers: what is asked for again and again is never read.
    let asked = format!("{}\r\n", head(&server, "GET /v1/sign-in")).repeat(200_000);
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let mut stream = socket.connect(server.address).await.expect("a connection");
        let asked = asked.clone();
        // Ends with an error, because the server has hung up before all of it was sent.
        clients.spawn(async move { stream.write_all(asked.as_bytes()).await.is_err() });
    }
    let ended = timeout(SOON, clients.join_all()).await.expect("every client is let go at the deadline");
    assert_eq!(ended, [true; 4]);
    no_connection_is_left(&server).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_does_not_finish_a_handshake_is_let_go() {
    let place = Place::sqlite();
    let (certificate, key) = (place.dir.path().join("cert.pem"), place.dir.path().join("key.pem"));
    std::fs::write(&certificate, CERTIFICATE).expect("a file");
    std::fs::write(&key, KEY).expect("a file");
    let tls = Tls::read(&certificate, &key).expect("a certificate");
    // The beginning of a record of 512 bytes; and a whole one, a hello that offers what the server can do.
    let begun = [22, 3, 1, 2, 0];
    let hello = hello();
    for (deadlines, first, byte) in [
        (Deadlines { head: AT_ONCE, ..PATIENT }, &b""[..], None),
        (Deadlines { head: AT_ONCE, ..PATIENT }, &begun[..], Some(1)),
        (Deadlines { handshake: AT_ONCE, ..PATIENT }, &hello[..], None),
        (Deadlines { handshake: AT_ONCE, ..PATIENT }, &b"GET / HTTP/1.1\r\n\r\n"[..], None),
    ] {
        let server = place.serve_within(deadlines, Some(tls.clone())).await;
        all_are_let_go(&server, first, byte).await;
        server.stop().await;
    }
}

/// The first message of a client of TLS.
fn hello() -> Vec<u8> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = "localhost".try_into().expect("a name");
    let mut client = rustls::ClientConnection::new(config.into(), name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("a message");
    hello
}

/// Self-signed, for localhost. Good for this test and nothing else.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBmDCCAT6gAwIBAgIUU1lkPfwcLRlUxLB9M1ggX8+t298wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNjEyMjIyMVoYDzIxMjYxMDIz
MTIyMjIxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATywGquMzZfy2rL/Md3t3ryDrOsJUMU9AcInmVy7M/s5RMB6x4xdtHL
ShWEJllzVmaZHCZoWI9Mj+fxhbAngzAao2wwajAdBgNVHQ4EFgQUXsqiEkR3kPUk
bNf3/Nnw+9rRS8kwHwYDVR0jBBgwFoAUXsqiEkR3kPUkbNf3/Nnw+9rRS8kwGgYD
VR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0E
AwIDSAAwRQIhAPx31GYiuT7Wzrce9xCE6zbIisDMygMO1JYlL8QirMdGAiAI/R0d
HtftFN+tr4vcykDYS23OJBgJRKj2YrONVZluug==
-----END CERTIFICATE-----
";

const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgp67qVE81K9+hFSpV
fhmEwjm4EGMaL2+h/wgWty13BouhRANCAATywGquMzZfy2rL/Md3t3ryDrOsJUMU
9AcInmVy7M/s5RMB6x4xdtHLShWEJllzVmaZHCZoWI9Mj+fxhbAngzAa
-----END PRIVATE KEY-----
";
