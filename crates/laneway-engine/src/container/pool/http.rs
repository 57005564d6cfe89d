//! Questions to a container's endpoint: one request on one connection of this host, an answer of bounded size. Owns how it is
//! asked; what an answer means is its caller's.

use std::net::Ipv4Addr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What is kept of an answer at most: an output has 256 KiB.
const MAX_ANSWER: usize = 1024 * 1024;

/// An answer, whatever it says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// There was no connection, so nobody has heard of the question.
    #[error("{0}")]
    Unheard(String),
    /// Somebody may have.
    #[error("{0}")]
    Unanswered(String),
}

/// Whether a path answers with success.
pub(super) async fn look(port: u16, path: &str, within: Duration) -> Result<(), String> {
    let asked = tokio::time::timeout(within, ask(port, "GET", path, None)).await;
    match asked {
        Ok(Ok(answer)) if (200..300).contains(&answer.status) => Ok(()),
        Ok(Ok(answer)) => Err(format!("{path} answered {}", answer.status)),
        Ok(Err(fault)) => Err(fault.to_string()),
        Err(_) => Err(format!("{path} did not answer within {within:?}")),
    }
}

/// Asks, and waits for the whole answer. Dropping it closes the connection.
pub(super) async fn ask(port: u16, method: &str, path: &str, body: Option<Vec<u8>>) -> Result<Answer, Fault> {
    let unanswered = |why: String| Fault::Unanswered(why);
    let method: Method = method.parse().map_err(|_| unanswered(format!("`{method}` is no method")))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let mut request = Request::builder()
        .method(method)
        .uri(&path)
        .header(HOST, format!("127.0.0.1:{port}"))
        .header(CONNECTION, "close");
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let request = request.body(Full::new(Bytes::from(body.unwrap_or_default())));
    let request = request.map_err(|error| unanswered(format!("`{path}` cannot be asked for: {error}")))?;
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    let nobody = |error| Fault::Unheard(format!("nobody answers at its port {port}: {error}"));
    let stream = stream.map_err(nobody)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| unanswered(format!("{path}: {error}")))?;
    let asked = async {
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| unanswered(format!("{path}: {error}")))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| match error.downcast_ref::<http_body_util::LengthLimitError>() {
            Some(_) => unanswered(format!("{path} answered with more than {MAX_ANSWER} bytes")),
            None => unanswered(format!("{path}: {error}")),
        })?;
        Ok(Answer { status, body: body.to_bytes().to_vec() })
    };
    // The connection lives as long as somebody polls it, and no longer than the question.
    let mut connection = std::pin::pin!(connection);
    let mut asked = std::pin::pin!(asked);
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            answer = &mut asked => return answer,
            _ = &mut connection, if is_open => is_open = false,
        }
    }
}
