//! Carries a step's output from its pipes into the log.
//!
//! There is no buffer and no task per attempt: a pipe is read when it is ready, into one buffer per
//! thread, and written at once. What exceeds the log's cap is still read, so a flood never blocks its step.
//! The pipes of a step that ends at once are never registered with the system's events: what it printed waits in
//! them for its end, and nobody is woken for that.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

use crate::log::{HEADER, Stream, Writer};
use crate::warden::Group;

/// What a pipe holds at most by default, so a read rarely leaves something behind.
const READ: usize = 64 * 1024;

/// Reads in a row before other tasks of this thread get their turn; about a millisecond of a flood.
const READS_IN_A_ROW: u32 = 16;

/// When the pipes are listened to. Most of what a graph of small steps runs has ended before; a flood waits so long
/// once, after its first 64 KiB.
const LISTEN_AFTER: Duration = Duration::from_millis(5);

thread_local! {
    /// The spare bytes in front become the frame's header, so output is never copied.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; HEADER + READ]);
}

#[derive(Debug)]
pub(super) struct Pump {
    stdout: Pipe,
    stderr: Pipe,
    /// `None` once they are.
    listen_at: Option<Instant>,
    pub(super) log: Writer,
    reads: u32,
}

#[derive(Debug)]
enum Pipe {
    Quiet(OwnedFd),
    /// Registered with the system's events.
    Heard(Receiver),
    /// The other side is closed.
    Closed,
}

impl Pump {
    /// Takes the pipes over.
    pub(super) fn new(group: &mut Group, log: Writer) -> io::Result<Self> {
        let take = |pipe: Option<OwnedFd>| -> io::Result<Pipe> {
            let Some(pipe) = pipe else {
                return Ok(Pipe::Closed);
            };
            // Only our end: the step's own end stays blocking, as programs expect of their stdout.
            rustix::io::ioctl_fionbio(&pipe, true)?;
            Ok(Pipe::Quiet(pipe))
        };
        Ok(Self {
            stdout: take(group.stdout.take())?,
            stderr: take(group.stderr.take())?,
            listen_at: Some(Instant::now() + LISTEN_AFTER),
            log,
            reads: 0,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !matches!((&self.stdout, &self.stderr), (Pipe::Closed, Pipe::Closed))
    }

    /// Waits for output and carries one piece of it; never ends when both pipes are closed. Nothing is
    /// lost if it is dropped while it waits.
    pub(super) async fn turn(&mut self) {
        if let Some(at) = self.listen_at {
            tokio::time::sleep_until(at).await;
            self.listen();
            return;
        }
        tokio::select! {
            () = ready(&self.stdout) => carry_ready(&mut self.stdout, Stream::Stdout, &mut self.log),
            () = ready(&self.stderr) => carry_ready(&mut self.stderr, Stream::Stderr, &mut self.log),
        }
        self.reads += 1;
        if self.reads.is_multiple_of(READS_IN_A_ROW) {
            tokio::task::yield_now().await;
        }
    }

    /// At a limit of the system a pipe cannot be registered: then it is emptied now and then.
    fn listen(&mut self) {
        let mut is_refused = false;
        for (pipe, stream) in [(&mut self.stdout, Stream::Stdout), (&mut self.stderr, Stream::Stderr)] {
            if let Pipe::Quiet(quiet) = pipe {
                match quiet.try_clone().and_then(Receiver::from_owned_fd_unchecked) {
                    Ok(heard) => *pipe = Pipe::Heard(heard),
                    Err(_) => {
                        is_refused = true;
                        empty(pipe, stream, &mut self.log, READS_IN_A_ROW);
                    }
                }
            }
        }
        self.listen_at = is_refused.then(|| Instant::now() + LISTEN_AFTER);
    }

    /// Carries what is still in the pipes after the step's end: until they are closed, or for `limit` if
    /// somebody keeps one open. Says whether they were closed.
    pub(super) async fn drain(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        // Usually the end is there already and no wait is needed.
        for (pipe, stream) in [(&mut self.stdout, Stream::Stdout), (&mut self.stderr, Stream::Stderr)] {
            while Instant::now() < until && empty(pipe, stream, &mut self.log, 1) {}
        }
        if self.is_open() && self.listen_at.is_some() {
            self.listen();
        }
        while self.is_open() {
            // The time is looked at as well: a flood is always ready and would never time out.
            if Instant::now() >= until || tokio::time::timeout_at(until, self.turn()).await.is_err() {
                return false;
            }
        }
        true
    }
}

async fn ready(pipe: &Pipe) {
    match pipe {
        // An error (the runtime is shutting down) shows again when the pipe is read.
        Pipe::Heard(pipe) => drop(pipe.readable().await),
        Pipe::Quiet(_) | Pipe::Closed => std::future::pending().await,
    }
}

fn carry_ready(pipe: &mut Pipe, stream: Stream, log: &mut Writer) {
    if let Pipe::Heard(open) = pipe {
        match open.try_io(|| carry(&*open, stream, log)) {
            Ok(Carried::Some) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(Carried::End) | Err(_) => *pipe = Pipe::Closed,
        }
    }
}

/// Reads up to `times` without waiting. Whether there may be more.
fn empty(pipe: &mut Pipe, stream: Stream, log: &mut Writer, times: u32) -> bool {
    for _ in 0..times {
        let carried = match pipe {
            Pipe::Quiet(open) => carry(&*open, stream, log),
            Pipe::Heard(open) => carry(&*open, stream, log),
            Pipe::Closed => return false,
        };
        match carried {
            Ok(Carried::Some) => {}
            Ok(Carried::End) => *pipe = Pipe::Closed,
            Err(_) => return false,
        }
    }
    true
}

enum Carried {
    Some,
    End,
}

/// Reads once. Nothing to read yet is `WouldBlock`, which is how tokio learns to wait again.
fn carry(pipe: impl AsFd, stream: Stream, log: &mut Writer) -> io::Result<Carried> {
    BUFFER.with_borrow_mut(|buffer| match rustix::io::read(pipe, &mut buffer[HEADER..]) {
        Ok(0) => Ok(Carried::End),
        Ok(count) => {
            log.append(stream, &mut buffer[..HEADER + count]);
            Ok(Carried::Some)
        }
        Err(rustix::io::Errno::INTR) => Ok(Carried::Some),
        Err(error) => Err(error.into()),
    })
}
