//! A connection that waits for no client for ever, and ends in good manners. A client that reads nothing of what it is sent ends it. Whoever refuses a request before it has read all of it, and hangs up, makes the system tell
//! the sender that the line is broken, while the refusal is still on its way: the sender sees that instead of it. So what still
//! comes is read for a while, and thrown away.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What a sender may still send, and for how long: enough for an honest mistake, too little to keep anybody busy.
const MOST: usize = 8 << 20;
const PATIENCE: Duration = Duration::from_secs(2);

/// Set when a request on a line was refused, and something of it may not have been read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused(Arc<AtomicBool>);

impl Refused {
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Line<S> {
    stream: S,
    refused: Refused,
    /// How much was read since it was closed from here, and until when there is patience.
    ending: Option<(usize, Pin<Box<Sleep>>)>,
    /// How long the client may read nothing.
    write_deadline: Duration,
    /// Runs while the client reads nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Line<S> {
    pub(crate) fn new(stream: S, refused: Refused, write_deadline: Duration) -> Self {
        Self { stream, refused, ending: None, write_deadline, stalled: None }
    }

    /// Passes on what became of writing, or an error if nothing could be written for too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let deadline = self.write_deadline;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(deadline))).as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Line<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Line<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(context, flushed)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = &mut *self;
        if line.ending.is_none() {
            let closed = Pin::new(&mut line.stream).poll_shutdown(context);
            ready!(line.in_time(context, closed))?;
            if !line.refused.0.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let (read, patience) = line.ending.get_or_insert_with(|| (0, Box::pin(sleep(PATIENCE))));
        let mut thrown_away = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut thrown_away);
            let has_come = match Pin::new(&mut line.stream).poll_read(context, &mut buffer) {
                Poll::Pending => return patience.as_mut().poll(context).map(Ok),
                Poll::Ready(Ok(())) => buffer.filled().len(),
                Poll::Ready(Err(_)) => 0,
            };
            *read += has_come;
            if has_come == 0 || *read > MOST {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
