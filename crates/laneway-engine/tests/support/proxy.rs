//! Stands between a container engine and its client, and loses what it is told to lose.

#![allow(dead_code, reason = "several programs of tests use it, each its part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use laneway_engine::container::Docker;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

pub(crate) struct Proxy {
    socket: PathBuf,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How many answers to creates are lost from here on.
    cuts: AtomicU32,
    /// How many creates there were.
    creates: AtomicU32,
    /// How many starts are refused from here on, because a port is somebody else's.
    ports_taken: AtomicU32,
    /// Requests that hold this in their first line are never answered, nor passed on.
    stuck: Mutex<Option<String>>,
    /// How many of these there were.
    waits: AtomicU32,
}

impl Proxy {
    pub(crate) fn start(dir: &Path, to: &str) -> Self {
        let socket = dir.join("proxy.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let state = Arc::new(State::default());
        let (to, shared) = (to.to_owned(), Arc::clone(&state));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (to, state) = (to.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let _ = carry(client, &to, &state).await;
                });
            }
        });
        Self { socket, state }
    }

    pub(crate) fn docker(&self) -> Docker {
        Docker::at(&format!("unix://{}", self.socket.display()))
    }

    pub(crate) fn lose_creates(&self, count: u32) {
        self.state.cuts.store(count, Ordering::SeqCst);
    }

    pub(crate) fn take_ports(&self, count: u32) {
        self.state.ports_taken.store(count, Ordering::SeqCst);
    }

    pub(crate) fn creates(&self) -> u32 {
        self.state.creates.load(Ordering::SeqCst)
    }

    pub(crate) fn stuck(&self) -> u32 {
        self.state.waits.load(Ordering::SeqCst)
    }

    /// From here on nobody is there to be asked.
    pub(crate) fn go_away(&self) {
        std::fs::rename(&self.socket, self.socket.with_extension("away")).expect("it is ours");
    }

    pub(crate) fn come_back(&self) {
        std::fs::rename(self.socket.with_extension("away"), &self.socket).expect("it is ours");
    }

    pub(crate) fn stick_at(&self, what: &str) {
        *self.state.stuck.lock().expect("no panic") = Some(what.to_owned());
    }
}

async fn carry(mut client: UnixStream, to: &str, state: &State) -> std::io::Result<()> {
    let mut engine = UnixStream::connect(to).await?;
    let mut first = vec![0; 64 * 1024];
    let count = client.read(&mut first).await?;
    let head = String::from_utf8_lossy(&first[..count]).into_owned();
    let line = head.lines().next().unwrap_or_default();
    if state.stuck.lock().expect("no panic").as_ref().is_some_and(|stuck| line.contains(stuck)) {
        state.waits.fetch_add(1, Ordering::SeqCst);
        // Until whoever asked gives up.
        let _ = client.read(&mut first).await?;
        return Ok(());
    }
    let one_less = |count: &AtomicU32| {
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    };
    let is_start = line.contains("/containers/") && line.contains("/start");
    if is_start && one_less(&state.ports_taken) {
        let why = r#"{"message": "driver failed: Bind for 127.0.0.1:1 failed: port is already allocated"}"#;
        let head =
            "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nConnection: close\r\n";
        let answer = format!("{head}Content-Length: {}\r\n\r\n{why}", why.len());
        return client.write_all(answer.as_bytes()).await;
    }
    engine.write_all(&first[..count]).await?;
    if line.contains("/containers/create") {
        state.creates.fetch_add(1, Ordering::SeqCst);
        if one_less(&state.cuts) {
            // It is done, and nobody is told.
            let (mut from_client, _) = client.split();
            let (mut from_engine, mut to_engine) = engine.split();
            tokio::select! {
                _ = tokio::io::copy(&mut from_client, &mut to_engine) => {}
                _ = from_engine.read(&mut first) => {}
            }
            return Ok(());
        }
    }
    tokio::io::copy_bidirectional(&mut client, &mut engine).await.map(|_| ())
}
