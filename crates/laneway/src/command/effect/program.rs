//! The command of an effect: started, read and waited for. It has stdin and stderr of the step, a file of its own at
//! `$LANEWAY_OUTPUT`, and its stdout is kept until it is recorded.

use std::fs::OpenOptions;
use std::io::{self, Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::{effect::MAX_STDOUT, output};
use tokio::signal::unix::{SignalKind, signal};

use crate::env;

/// A process in the background may hold the output open for ever: it is not waited for longer once the command itself has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// What the command gets in its environment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted<'a> {
    /// `LANEWAY_EFFECT_ID`.
    pub(super) token: &'a str,
    /// `LANEWAY_FENCE`, of a step with a lock.
    pub(super) fence: Option<&'a str>,
}

pub(super) enum Ended {
    Exited {
        code: i32,
        stdout: Vec<u8>,
        output: Vec<u8>,
    },
    /// A signal ended it: it has said nothing.
    Killed {
        signal: i32,
    },
    NotStarted {
        code: i32,
        why: String,
    },
}

#[expect(
    clippy::disallowed_methods,
    reason = "inside of a step, in whose cgroup it stays: the warden finds it as any other"
)]
pub(super) fn run(argv: &[String], granted: Granted<'_>, inside: &str) -> Ended {
    let not_started = |why: String, code| Ended::NotStarted { code, why };
    // A step that is to end is asked as a whole: the command is asked too, and what it says of its end is still to be recorded.
    let _runtime = match deaf() {
        Ok(runtime) => runtime,
        Err(error) => return not_started(format!("the command was not started: {error}"), 126),
    };
    let own = own_output();
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env(env::EFFECT_ID, granted.token).stdout(Stdio::piped());
    command.env(env::EFFECTS_AROUND, format!("{} {inside}", env::effects_around()).trim_start());
    // The script may have unset it, or set another one.
    if let Some(fence) = granted.fence {
        command.env(env::FENCE, fence);
    }
    if let Some(own) = &own {
        command.env(env::OUTPUT, own);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return not_started(format!("`{}` was not found: install it, or write its path", argv[0]), 127);
        }
        Err(error) => return not_started(format!("`{}` cannot be started: {error}", argv[0]), 126),
    };
    let (printed, ends) = listen(child.stdout.take());
    let status = child.wait();
    let _ = ends.recv_timeout(DRAIN);
    let stdout = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
    let output = own.map(read_output).unwrap_or_default();
    match status.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => Ended::Exited { code, stdout, output },
        Ok((None, signal)) => Ended::Killed { signal: signal.unwrap_or(0) },
        // Nobody can say how it ended.
        Err(_) => Ended::Killed { signal: 0 },
    }
}

/// Reads what it prints, and keeps as much as tells that it is too much.
fn listen(stdout: Option<impl Read + Send + 'static>) -> (Arc<Mutex<Vec<u8>>>, mpsc::Receiver<()>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (over, ends) = mpsc::channel();
    let keeping = Arc::clone(&kept);
    std::thread::spawn(move || {
        let mut chunk = vec![0; 64 * 1024];
        let Some(mut stdout) = stdout else { return };
        while let Ok(read @ 1..) = stdout.read(&mut chunk) {
            let mut kept = keeping.lock().unwrap_or_else(PoisonError::into_inner);
            let room = (MAX_STDOUT + 1).saturating_sub(kept.len());
            kept.extend_from_slice(&chunk[..read.min(room)]);
        }
        drop(over);
    });
    (kept, ends)
}

/// What asks a process to end does not end this one. Not by ignoring: what is ignored the command would ignore too.
fn deaf() -> io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let guard = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        drop(signal(kind)?);
    }
    drop(guard);
    Ok(runtime)
}

/// Beside that of the step, which goes with it.
fn own_output() -> Option<PathBuf> {
    let mut path = env::output()?.into_os_string();
    path.push(format!(".effect-{}", std::process::id()));
    Some(path.into())
}

fn read_output(path: PathBuf) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(&path) {
        // One byte more tells that there is too much. What cannot be read is not there.
        let _ = file.take(output::LIMIT as u64 + 1).read_to_end(&mut bytes);
    }
    let _ = std::fs::remove_file(path);
    bytes
}

/// Appends what is recorded to what the step hands on.
pub(super) fn hand_on(output: &[u8]) -> io::Result<()> {
    let Some(path) = env::output().filter(|_| !output.is_empty()) else { return Ok(()) };
    let mut text = output.to_vec();
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    OpenOptions::new().append(true).create(true).open(path)?.write_all(&text)
}
