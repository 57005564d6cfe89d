//! One request and its answer over a connection that is there: for the client of a server, and for callbacks. Bounded: of an
//! answer no more is held than its caller wants.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A line to somebody, who has proved to be `host` where it is encrypted.
pub(crate) enum Line {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Line {
    pub(crate) async fn begin(stream: TcpStream, host: &str, is_tls: bool) -> Result<Self, String> {
        if !is_tls {
            return Ok(Self::Plain(stream));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(trust()?).connect(name, stream).await;
        stream.map(|stream| Self::Tls(Box::new(stream))).map_err(|error| error.to_string())
    }

    /// Says something, and gives the status of the answer; of a refusal also how it begins.
    pub(crate) async fn tell(
        self,
        request: Request<Full<Bytes>>,
        most: usize,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let mut answer = self.send(request).await?;
        let (status, mut begun) = (answer.response.status(), Vec::new());
        while !status.is_success()
            && begun.len() < most
            && let Some(Ok(frame)) = answer.response.body_mut().frame().await
        {
            begun.extend(frame.into_data().unwrap_or_default());
        }
        begun.truncate(most);
        Ok((status, begun))
    }

    /// Asks, and takes an answer of at most so many bytes.
    pub(crate) async fn ask(
        self,
        request: Request<Full<Bytes>>,
        most: usize,
    ) -> Result<(StatusCode, Bytes), String> {
        let answer = self.send(request).await?;
        Ok((answer.response.status(), answer.all(most).await?))
    }

    /// Asks, and writes the answer to a file if it is not a refusal. Gives a refusal as it came.
    pub(crate) async fn save(
        self,
        request: Request<Full<Bytes>>,
        file: &mut File,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut answer = self.send(request).await?;
        let status = answer.response.status();
        if !status.is_success() {
            return Ok((status, answer.all(REFUSAL).await?));
        }
        while let Some(frame) = answer.response.body_mut().frame().await {
            if let Ok(bytes) = frame.map_err(|error| error.to_string())?.into_data() {
                file.write_all(&bytes).await.map_err(|error| error.to_string())?;
            }
        }
        file.flush().await.map_err(|error| error.to_string())?;
        Ok((status, Bytes::new()))
    }

    /// Asks, and leaves the answer to be read as it comes; a refusal is read at once.
    pub(crate) async fn open(
        self,
        request: Request<Full<Bytes>>,
    ) -> Result<std::result::Result<Answer, (StatusCode, Bytes)>, String> {
        let answer = self.send(request).await?;
        let status = answer.response.status();
        if status.is_success() { Ok(Ok(answer)) } else { Ok(Err((status, answer.all(REFUSAL).await?))) }
    }

    async fn send(self, request: Request<Full<Bytes>>) -> Result<Answer, String> {
        match self {
            Self::Plain(stream) => converse(stream, request).await,
            Self::Tls(stream) => converse(*stream, request).await,
        }
    }
}

/// The longest refusal that is looked at.
const REFUSAL: usize = 1 << 20;

/// What comes back, and what brings it.
#[derive(Debug)]
pub(crate) struct Answer {
    response: Response<Incoming>,
    line: JoinHandle<hyper::Result<()>>,
}

impl Answer {
    /// What comes next; `None` at its end, or when the line is gone.
    pub(crate) async fn bytes(&mut self) -> Option<Bytes> {
        loop {
            // Trailers are of no interest.
            if let Ok(bytes) = self.response.body_mut().frame().await?.ok()?.into_data() {
                return Some(bytes);
            }
        }
    }

    async fn all(mut self, most: usize) -> Result<Bytes, String> {
        match Limited::new(self.response.body_mut(), most).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(format!("its answer has more than {most} bytes"))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.line.abort();
    }
}

async fn converse<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let lost = |error: hyper::Error| error.to_string();
    let (mut sender, line) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let line = tokio::spawn(line);
    let response = sender.send_request(request).await.map_err(lost)?;
    Ok(Answer { response, line })
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
