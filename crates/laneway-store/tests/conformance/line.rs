//! A line to Postgres that can be cut: a proxy inside the test, which knows enough of the protocol to find COMMIT.
//!
//! ```text
//!   store ──TCP──▶ carry ──socket──▶ Postgres        Cut::Before: COMMIT never arrives
//!                                                    Cut::After:  it is done, and the answer never arrives
//!                                                    Cut::Silent: COMMIT never arrives, and no end of the line either
//! ```

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::server::Schema;

/// Where the next line is cut at which somebody commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Before,
    After,
    Silent,
}

pub(crate) struct Proxy {
    /// Of a store behind it.
    pub(crate) url: String,
    shared: Arc<Shared>,
    _door: JoinSet<()>,
}

struct Shared {
    server: PathBuf,
    cut: Mutex<Option<Cut>>,
    commits: AtomicUsize,
    /// `None` while the server is gone.
    lines: Mutex<Option<JoinSet<()>>>,
}

impl Proxy {
    pub(crate) async fn before(schema: &Schema) -> Self {
        let config: Config = schema.url.parse().expect("an address");
        let (host, port) = (&config.get_hosts()[0], config.get_ports()[0]);
        let Host::Unix(dir) = host else { panic!("the tests' server has a socket: {host:?}") };
        let shared = Arc::new(Shared {
            server: dir.join(format!(".s.PGSQL.{port}")),
            cut: Mutex::default(),
            commits: AtomicUsize::new(0),
            lines: Mutex::new(Some(JoinSet::new())),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let mut door = JoinSet::new();
        let behind = Arc::clone(&shared);
        door.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let line = carry(client, Arc::clone(&behind));
                // While the server is gone whoever comes finds the door closed.
                if let Some(lines) = &mut *locked(&behind.lines) {
                    lines.spawn(async move { drop(line.await) });
                }
            }
        });
        let options = format!("sslmode=disable&options=-csearch_path%3D{}", schema.name);
        let url = format!("postgres://laneway:laneway@127.0.0.1:{port}/postgres?{options}");
        Self { url, shared, _door: door }
    }

    /// The next COMMIT that comes by is the last that its line sees.
    pub(crate) fn cut(&self, cut: Cut) {
        *locked(&self.shared.cut) = Some(cut);
    }

    /// Nobody has committed since.
    pub(crate) fn is_armed(&self) -> bool {
        locked(&self.shared.cut).is_some()
    }

    /// How many have come by.
    pub(crate) fn commits(&self) -> usize {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// All lines break, and no new one is made until it is back.
    pub(crate) fn go_away(&self) {
        *locked(&self.shared.lines) = None;
    }

    pub(crate) fn come_back(&self) {
        *locked(&self.shared.lines) = Some(JoinSet::new());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn carry(client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let server = UnixStream::connect(&shared.server).await?;
    let (client, mut to_client) = client.into_split();
    let (server, mut to_server) = server.into_split();
    // The first that a client says has no letter in front.
    let mut said = Frames { from: client, buffer: Vec::new(), head: 0 };
    let mut answered = Frames { from: server, buffer: Vec::new(), head: 1 };
    let mut has_committed = false;
    loop {
        tokio::select! {
            frame = said.next() => {
                let Some(frame) = frame? else { return Ok(()) };
                let is_commit = frame.starts_with(b"Q") && frame[5..] == *b"COMMIT\0";
                let cut = if is_commit { locked(&shared.cut).take() } else { None };
                shared.commits.fetch_add(usize::from(is_commit), Ordering::Relaxed);
                match cut {
                    Some(Cut::Before) => return Ok(()),
                    // As a host that vanished: the line stays open on both sides.
                    Some(Cut::Silent) => std::future::pending().await,
                    Some(Cut::After) => has_committed = true,
                    None => {}
                }
                said.head = 1;
                to_server.write_all(&frame).await?;
            }
            frame = answered.next() => {
                let Some(frame) = frame? else { return Ok(()) };
                if has_committed && frame.starts_with(b"C") && frame[5..].starts_with(b"COMMIT") {
                    return Ok(());
                }
                to_client.write_all(&frame).await?;
            }
        }
    }
}

/// Messages of the protocol: a letter, the length of the rest in four bytes, the rest.
struct Frames<R> {
    from: R,
    buffer: Vec<u8>,
    /// Bytes before the length.
    head: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// `None` at the end. What was read stays in the buffer when nobody waits any more.
    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(length) = self.buffer.get(self.head..self.head + 4) {
                let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize + self.head;
                if self.buffer.len() >= length {
                    let rest = self.buffer.split_off(length);
                    return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
                }
            }
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}
