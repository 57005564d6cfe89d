//! One request and its answer over a connection that is there: for the client of a server, and for callbacks. Bounded: of an
//! answer no more is read than its caller wants.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Asks whoever is at the other end, who has to prove that it is `host` where the line is encrypted.
pub(crate) async fn ask(
    stream: TcpStream,
    host: &str,
    is_tls: bool,
    request: Request<Full<Bytes>>,
    most: usize,
) -> Result<(StatusCode, Bytes), String> {
    if !is_tls {
        return converse(stream, request, most).await;
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(trust()?).connect(name, stream).await;
    converse(stream.map_err(|error| error.to_string())?, request, most).await
}

async fn converse<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    most: usize,
) -> Result<(StatusCode, Bytes), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let lost = |error: hyper::Error| error.to_string();
    let (mut sender, line) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let line = tokio::spawn(line);
    let response = sender.send_request(request).await.map_err(lost)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), most).collect().await;
    line.abort();
    match body {
        Ok(body) => Ok((status, body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Err(format!("its answer has more than {most} bytes")),
        Err(error) => Err(error.to_string()),
    }
}

/// What this system trusts.
fn trust() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // One that cannot be read vouches for nobody; the others do.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
