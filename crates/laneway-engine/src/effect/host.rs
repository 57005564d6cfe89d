//! Sockets on which steps ask for effects: where they lie, who may reach them, and that they go. What is said there is `http.rs`'s.
//!
//! All processes of a session ask at one, its **door**, each with the ticket of its attempt: an attempt that asks for nothing costs
//! no more than a word. A container has a socket of its own, in the directory of its attempt.
//!
//! A path of a socket has about a hundred bytes, and a step must be able to name it, with whichever program. So the door is in the
//! session's scratch directory; where that is too deep, in the directory for temporary files.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::id::SessionId;
use rustix::fs::{Mode, OFlags};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::desk::{self, Desk};
use super::{Effects, SOCKET, URL, http};

/// What every system takes as the path of a socket.
const MAX_PATH: usize = 100;

/// Where the processes of a session ask. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Door {
    path: PathBuf,
    /// Whether its directory was made for it, and goes with it.
    has_own_dir: bool,
    desks: Arc<Desks>,
    serving: JoinHandle<()>,
}

/// Desks by their tickets.
#[derive(Debug, Default)]
pub(super) struct Desks(Mutex<HashMap<String, Arc<Desk>>>);

impl Desks {
    pub(super) fn find(&self, ticket: &str) -> Option<Arc<Desk>> {
        self.lock().get(ticket).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Desk>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that may ask at the door. Dropping it makes its ticket worthless.
#[derive(Debug)]
pub(crate) struct Ticket {
    desks: Arc<Desks>,
    word: String,
}

impl Door {
    pub(crate) fn open(scratch: &Path, session: SessionId) -> io::Result<Self> {
        let scratch = std::path::absolute(scratch)?;
        let mut path = scratch.join("effects");
        let has_own_dir = path.as_os_str().len() > MAX_PATH;
        if has_own_dir {
            let session = session.to_string().replace('-', "");
            let dir = std::env::temp_dir().join(format!("laneway-{}", &session[session.len() - 12..]));
            match fs::DirBuilder::new().mode(0o700).create(&dir) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => path = dir.join("effects"),
            }
        }
        let listener = bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let desks = Arc::new(Desks::default());
        let serving = tokio::spawn(serve(listener, Room::Shared(Arc::clone(&desks))));
        Ok(Self { path, has_own_dir, desks, serving })
    }

    /// Lets an attempt ask; it finds the way by these variables.
    pub(crate) fn admit(&self, desk: Arc<Desk>, env: &mut Vec<(String, String)>) -> Ticket {
        let word = desk::unique();
        env.push((SOCKET.to_owned(), self.path.to_string_lossy().into_owned()));
        env.push((URL.to_owned(), format!("http://laneway/{word}/effects")));
        self.desks.lock().insert(word.clone(), desk);
        Ticket { desks: Arc::clone(&self.desks), word }
    }
}

impl Ticket {
    /// What is just being told is waited for: an effect that has happened must not be forgotten because its step was quick.
    pub(crate) async fn close(self) {
        if let Some(desk) = self.desks.find(&self.word) {
            desk.close().await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.desks.lock().remove(&self.word);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.serving.abort();
        drop(fs::remove_file(&self.path));
        if let Some(dir) = self.path.parent().filter(|_| self.has_own_dir) {
            drop(fs::remove_dir(dir));
        }
    }
}

/// Who is asked for at a socket.
#[derive(Debug, Clone)]
pub(super) enum Room {
    /// One attempt alone.
    Own(Arc<Desk>),
    /// Whoever has a ticket.
    Shared(Arc<Desks>),
}

/// Serves the container of an attempt. Dropping it ends that, and whoever is at an effect is gone.
#[derive(Debug)]
pub(crate) struct Host {
    desk: Arc<Desk>,
    path: PathBuf,
    serving: JoinHandle<()>,
}

impl Host {
    /// Everybody who gets there may ask, whoever that is inside.
    fn open(desk: Arc<Desk>, path: PathBuf) -> io::Result<Self> {
        let listener = bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        let serving = tokio::spawn(serve(listener, Room::Own(Arc::clone(&desk))));
        Ok(Self { desk, path, serving })
    }

    /// As that of a ticket.
    pub(crate) async fn close(self) {
        self.desk.close().await;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.serving.abort();
        drop(fs::remove_file(&self.path));
    }
}

/// For a program in a container, in a directory that is its own on the host and inside. Whoever it runs as may ask; nobody else gets
/// there. A step that asks for no effect does not suffer from a socket that cannot be made.
pub(crate) fn open_inside(
    effects: &Effects,
    dir: &Path,
    inside: &str,
    env: &mut Vec<(String, String)>,
) -> Option<Host> {
    let desk = effects.desk()?;
    let path = dir.join("effect.sock");
    match Host::open(Arc::clone(desk), path.clone()) {
        Ok(host) => {
            env.push((SOCKET.to_owned(), format!("{inside}/effect.sock")));
            env.push((URL.to_owned(), "http://laneway/effects".to_owned()));
            Some(host)
        }
        Err(error) => {
            tracing::warn!(%error, "a step cannot ask for effects: {} cannot be made", path.display());
            None
        }
    }
}

/// By way of the directory: its own path may be longer than that of a socket can be.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("it is no path of a file"));
    };
    if path.as_os_str().len() <= MAX_PATH || !cfg!(target_os = "linux") {
        return UnixListener::bind(path);
    }
    let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    UnixListener::bind(Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
}

/// All connections end with the loop.
async fn serve(listener: UnixListener, room: Room) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(http::converse(stream, room.clone()));
                }
                Err(error) => {
                    // Too many files are open, most likely: that passes.
                    tracing::warn!(%error, "nobody can ask for effects just now");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
