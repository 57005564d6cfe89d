//! The socket of one attempt: where it lies, who may reach it, and that it goes with the attempt. What is said on it is `http.rs`'s.
//!
//! A path of a socket has about a hundred bytes, and a step must be able to name it, with whichever program. So those of processes
//! lie at the top of the session's scratch directory; where that is too deep, in the directory for temporary files. Those of
//! containers lie where the container sees them, under a short name of its own.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::id::SessionId;
use rustix::fs::{Mode, OFlags};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::desk::Desk;
use super::{Effects, SOCKET, http};

/// What every system takes as the path of a socket.
const MAX_PATH: usize = 100;

/// Where the sockets of a session's processes lie.
#[derive(Debug)]
pub(crate) struct Rooms {
    dir: PathBuf,
    /// Whether the directory is ours alone, and goes with us.
    is_own: bool,
    next: AtomicU64,
}

impl Rooms {
    pub(crate) fn new(scratch: &Path, session: SessionId) -> io::Result<Self> {
        let scratch = std::path::absolute(scratch)?;
        let next = AtomicU64::new(0);
        if scratch.as_os_str().len() + "/e99999999".len() <= MAX_PATH {
            return Ok(Self { dir: scratch, is_own: false, next });
        }
        let session = session.to_string().replace('-', "");
        let dir = std::env::temp_dir().join(format!("laneway-{}", &session[session.len() - 12..]));
        match fs::DirBuilder::new().mode(0o700).create(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        Ok(Self { dir, is_own: true, next })
    }

    /// One that nobody had before.
    pub(crate) fn next(&self) -> PathBuf {
        self.dir.join(format!("e{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        if self.is_own {
            drop(fs::remove_dir_all(&self.dir));
        }
    }
}

/// Serves an attempt. Dropping it ends that, and whoever is at an effect is gone.
#[derive(Debug)]
pub(crate) struct Host {
    desk: Arc<Desk>,
    path: PathBuf,
    serving: JoinHandle<()>,
}

impl Host {
    /// `mode` is who may ask: for a container everybody who gets there, which is it alone.
    pub(crate) fn open(desk: Arc<Desk>, path: PathBuf, mode: u32) -> io::Result<Self> {
        let listener = bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        let serving = tokio::spawn(serve(listener, Arc::clone(&desk)));
        Ok(Self { desk, path, serving })
    }

    /// What is just being told is waited for: an effect that has happened must not be forgotten because its step was quick.
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
    match Host::open(Arc::clone(desk), path.clone(), 0o666) {
        Ok(host) => {
            env.push((SOCKET.to_owned(), format!("{inside}/effect.sock")));
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
async fn serve(listener: UnixListener, desk: Arc<Desk>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(http::converse(stream, Arc::clone(&desk)));
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
