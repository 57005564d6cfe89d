//! Carries a step's output from its pipes into the log.
//!
//! There is no buffer and no task per attempt: a pipe is read when it is ready, into one buffer per
//! thread, and written at once. What exceeds the log's cap is still read, so a flood never blocks its step.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

use crate::log::{HEADER, Stream, Writer};
use crate::warden::Group;

/// What a pipe holds at most by default, so a read rarely leaves something behind.
const READ: usize = 64 * 1024;

/// Reads in a row before other tasks of this thread get their turn; about a millisecond of a flood.
const READS_IN_A_ROW: u32 = 16;

thread_local! {
    /// The spare bytes in front become the frame's header, so output is never copied.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; HEADER + READ]);
}

#[derive(Debug)]
pub(super) struct Pump {
    /// None once the other side is closed.
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
    pub(super) log: Writer,
    reads: u32,
}

impl Pump {
    /// Takes the pipes over.
    pub(super) fn new(group: &mut Group, log: Writer) -> io::Result<Self> {
        let register = |pipe: Option<OwnedFd>| -> io::Result<Option<Receiver>> {
            let Some(pipe) = pipe else {
                return Ok(None);
            };
            // Only our end: the step's own end stays blocking, as programs expect of their stdout.
            rustix::io::ioctl_fionbio(&pipe, true)?;
            Receiver::from_owned_fd_unchecked(pipe).map(Some)
        };
        Ok(Self {
            stdout: register(group.stdout.take())?,
            stderr: register(group.stderr.take())?,
            log,
            reads: 0,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Waits for output and carries one piece of it; never ends when both pipes are closed. Nothing is
    /// lost if it is dropped while it waits.
    pub(super) async fn turn(&mut self) {
        tokio::select! {
            () = ready(self.stdout.as_ref()) => carry_ready(&mut self.stdout, Stream::Stdout, &mut self.log),
            () = ready(self.stderr.as_ref()) => carry_ready(&mut self.stderr, Stream::Stderr, &mut self.log),
        }
        self.reads += 1;
        if self.reads.is_multiple_of(READS_IN_A_ROW) {
            tokio::task::yield_now().await;
        }
    }

    /// Carries what is still in the pipes after the step's end: until they are closed, or for `limit` if
    /// somebody keeps one open. Says whether they were closed.
    pub(super) async fn drain(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        // Usually the end is there already and no wait is needed.
        for (pipe, stream) in [(&mut self.stdout, Stream::Stdout), (&mut self.stderr, Stream::Stderr)] {
            while let Some(open) = pipe
                && Instant::now() < until
            {
                match carry(open, stream, &mut self.log) {
                    Ok(Carried::Some) => {}
                    Ok(Carried::End) => *pipe = None,
                    Err(_) => break,
                }
            }
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

async fn ready(pipe: Option<&Receiver>) {
    match pipe {
        // An error (the runtime is shutting down) shows again when the pipe is read.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

fn carry_ready(pipe: &mut Option<Receiver>, stream: Stream, log: &mut Writer) {
    if let Some(open) = pipe {
        match open.try_io(|| carry(open, stream, log)) {
            Ok(Carried::Some) => {}
            Ok(Carried::End) => *pipe = None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => *pipe = None,
        }
    }
}

enum Carried {
    Some,
    End,
}

/// Reads once. Nothing to read yet is `WouldBlock`, which is how tokio learns to wait again.
fn carry(pipe: &Receiver, stream: Stream, log: &mut Writer) -> io::Result<Carried> {
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
