//! Connections: accepted, encrypted where that is wanted, served, and let end in good order. HTTP/1.1 alone: a browser takes
//! one connection for all of its events, and programs keep theirs.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use laneway_engine::remote::Tending;
use rustix::net::{RecvFlags, recv};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::linger::{Line, Refused};
use crate::service::{App, Deadlines};
use crate::table::router;

/// Connections at once; more wait to be accepted. Each costs some kilobytes and a file descriptor.
const MAX_CONNECTIONS: usize = 4_096;

/// What a connection buffers at most of what it reads; a head has to fit.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// When no connection can be accepted (no descriptors, for one), after how long it is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// What an encrypted service shows of itself.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// From files in PEM: the certificate with those that vouch for it, and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, String> {
        let of = |path: &Path| {
            let path = path.display().to_string();
            move |error: &dyn std::fmt::Display| format!("{path} cannot be used: {error}")
        };
        let (bad_certificate, bad_key) = (of(certificate), of(key));
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| bad_certificate(&error))?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| bad_key(&error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
            .map_err(|error| bad_certificate(&error))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Serves until the app is told to stop; then lets requests end, for at most `grace`, and what was begun for those who hung up.
/// Streams end at once.
pub async fn serve(listener: TcpListener, app: App, tls: Option<Tls>, grace: Duration) {
    let (router, stop, deadlines) = (router(&app), app.stop.clone(), app.deadlines);
    // Remote workers come through here, so they are looked after from here.
    let _tending = Tending::begin(Arc::clone(&app.store), app.remote);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let (stream, peer, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (router, tls, watcher) = (router.clone(), tls.clone(), graceful.watcher());
        let (stop, open) = (stop.clone(), app.metrics.connection());
        tokio::spawn(async move {
            // A connection that has not asked for anything does not hold up the end.
            let asked = tokio::select! {
                asked = has_asked(&stream, tls.is_some(), deadlines.head) => asked,
                () = stop.cancelled() => return,
            };
            match asked {
                // In a box: a task is as large as the largest of its phases, and a connection that is silent needs little.
                Ok(()) => Box::pin(connection(stream, (peer, deadlines), router, tls, watcher)).await,
                Err(error) => {
                    tracing::debug!(%peer, %error, "a connection ended before it asked for anything")
                }
            }
            drop((place, open));
        });
    }
    drop(listener);
    let ended = async {
        graceful.shutdown().await;
        app.changes.close();
        app.changes.wait().await;
    };
    if timeout(grace, ended).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> io::Result<Accepted> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    // Answers are small and waited for.
    stream.set_nodelay(true)?;
    Ok((stream, peer, place))
}

async fn connection(
    stream: TcpStream,
    (peer, deadlines): (SocketAddr, Deadlines),
    router: Router,
    tls: Option<Tls>,
    watcher: Watcher,
) {
    match tls {
        None => converse(stream, (peer, deadlines), router, watcher).await,
        Some(Tls(acceptor)) => match timeout(deadlines.handshake, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => converse(stream, (peer, deadlines), router, watcher).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no encrypted line came about"),
            Err(_) => tracing::debug!(%peer, "no encrypted line came about in time"),
        },
    }
}

/// Waits for the first message of a connection, until the deadline.
async fn has_asked(stream: &TcpStream, is_tls: bool, deadline: Duration) -> io::Result<()> {
    let is_whole = if is_tls { is_whole_record } else { is_complete };
    timeout(deadline, head_has_come(stream, is_whole)).await?
}

/// The most of a head that is waited for before the line is served: what is larger is for HTTP to refuse.
const HEAD_BYTES: usize = 16 << 10;

/// Waits until a request has come, and leaves it where it is, in the kernel. The buffers of HTTP are there for a connection that asks
/// for something, so a client that connects and is slow, or says nothing, costs a task and a socket and no more: the allocator would
/// keep what thousands of such clients took.
async fn head_has_come(stream: &TcpStream, is_whole: fn(&[u8]) -> bool) -> io::Result<()> {
    loop {
        let ready = stream.ready(Interest::READABLE).await?;
        let looked = stream.try_io(Interest::READABLE, || {
            let mut head = [0; HEAD_BYTES];
            let (seen, _) = recv(stream, &mut head, RecvFlags::PEEK)?;
            match seen {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ if seen == HEAD_BYTES || is_whole(&head[..seen]) => Ok(()),
                // Clears the readiness: the next bytes set it again.
                _ => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        match looked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Nothing more will come, and the line would be ready for ever.
                if ready.is_read_closed() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            looked => return looked,
        }
    }
}

/// Whether the first TLS record is all there, or the bytes are not the beginning of a handshake, which TLS then refuses.
fn is_whole_record(bytes: &[u8]) -> bool {
    const HANDSHAKE: u8 = 22;
    match bytes {
        [HANDSHAKE] | [HANDSHAKE, _] | [HANDSHAKE, _, _] | [HANDSHAKE, _, _, _] => false,
        [HANDSHAKE, _, _, high, low, rest @ ..] => {
            rest.len() >= usize::from(u16::from_be_bytes([*high, *low]))
        }
        _ => true,
    }
}

/// Whether an empty line ends it; lines may end with LF alone.
fn is_complete(head: &[u8]) -> bool {
    let mut rest = head;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
        rest = &rest[at + 1..];
        if rest.starts_with(b"\n") || rest.starts_with(b"\r\n") {
            return true;
        }
    }
    false
}

async fn converse<S>(stream: S, (peer, deadlines): (SocketAddr, Deadlines), router: Router, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let inner = TowerToHyperService::new(router);
    let refused = Refused::default();
    let line = Line::new(stream, refused.clone(), deadlines.write);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(refused.clone());
        inner.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(deadlines.head)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(line), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_whole_with_as_many_bytes_as_it_says() {
        for bytes in [&[22, 3, 1, 0, 2, 1, 0][..], &[22, 3, 1, 0, 1, 1, 0], b"G", b"GET / HTTP/1.1\r\n"] {
            assert!(is_whole_record(bytes), "{bytes:?}");
        }
        for bytes in [&[22][..], &[22, 3], &[22, 3, 1, 0], &[22, 3, 1, 0, 2], &[22, 3, 1, 0, 2, 1]] {
            assert!(!is_whole_record(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn head_is_complete_with_its_empty_line() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\n\r\nbody",
            "GET / HTTP/1.1\n\n",
            "a\nb\n\r\n",
        ] {
            assert!(is_complete(head.as_bytes()), "{head:?}");
        }
        for head in ["", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nhost: a\r\n", "\r\r\n"] {
            assert!(!is_complete(head.as_bytes()), "{head:?}");
        }
    }
}
