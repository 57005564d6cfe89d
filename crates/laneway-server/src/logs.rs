//! What attempts printed, for those who ask and for those who wait for more. Where the bytes lie is the store's matter.

use std::time::Duration;

use laneway_engine::log::{Error, Frame, Stream, Unread, read_part};
use laneway_store::Store;
use laneway_store::model::LogName;

use crate::problem::{Answer, Code, Problem};

/// A log that grows commits nothing, so it is looked at, while somebody waits for it.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes that are looked at in one go.
const STRIDE: usize = 1 << 20;

/// Part of a log.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) frames: Vec<Frame>,
    pub(crate) next_offset: u64,
    /// How long the log is by now.
    pub(crate) size: u64,
    /// The attempt has ended: the log grows no more.
    pub(crate) has_ended: bool,
    /// The attempt has ended, and there is nothing behind it.
    pub(crate) is_over: bool,
    /// Its node died, and the end may be missing.
    pub(crate) may_lack_end: bool,
}

/// Which part.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) of: LogName,
    /// 0, or what a part before said.
    pub(crate) offset: u64,
    /// About so many bytes; always at least one frame where there is one.
    pub(crate) most: usize,
    /// How long to wait for something to come.
    pub(crate) wait: Duration,
}

/// Which of the bytes that a step wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// From one on, to another and that included, or to the end.
    From(u64, Option<u64>),
    /// So many at the end.
    Last(u64),
}

/// Some of the bytes that a step wrote, to whichever of its streams. What Laneway noted is none of them.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// How many stand in front of them.
    pub(crate) first: u64,
    /// How many there are by now, where the end was seen.
    pub(crate) all: Option<u64>,
}

/// At most `most` of the bytes of a span; none if the log does not reach that far. A log knows where its frames begin, and not which byte
/// of output stands where, so it is gone through from its beginning; its length has a limit.
pub(crate) async fn span(store: &dyn Store, of: &LogName, span: Span, most: usize) -> Answer<Written> {
    let (mut written, mut offset, mut seen) = (Written::default(), 0, 0_u64);
    let (first, wanted) = match span {
        Span::From(first, last) => {
            let wanted = last.map_or(u64::MAX, |last| last.saturating_sub(first).saturating_add(1));
            (first, usize::try_from(wanted).unwrap_or(usize::MAX).min(most))
        }
        Span::Last(count) => (0, usize::try_from(count).unwrap_or(usize::MAX).min(most)),
    };
    loop {
        let part = read_part(store, of, offset, STRIDE).await.map_err(|error| refusal(error, 0))?;
        for frame in part.frames.iter().filter(|frame| frame.stream != Stream::Note) {
            let skipped = usize::try_from(first.saturating_sub(seen)).unwrap_or(usize::MAX);
            seen += frame.bytes.len() as u64;
            written.bytes.extend(frame.bytes.iter().skip(skipped));
            let excess = written.bytes.len().saturating_sub(wanted);
            match span {
                Span::From(..) => written.bytes.truncate(wanted),
                Span::Last(_) => drop(written.bytes.drain(..excess)),
            }
        }
        if matches!(span, Span::From(..)) && written.bytes.len() == wanted {
            break;
        }
        if part.is_end || part.next_offset == offset {
            written.all = Some(seen);
            break;
        }
        offset = part.next_offset;
    }
    written.first = match span {
        Span::From(first, _) => first,
        Span::Last(_) => seen - written.bytes.len() as u64,
    };
    Ok(written)
}

/// From `offset` on. An attempt that printed nothing has an empty log; one that never was is refused.
pub(crate) async fn read(store: &dyn Store, wanted: Wanted) -> Answer<Part> {
    let until = tokio::time::Instant::now() + wanted.wait;
    loop {
        // Looked at first: what was written before an attempt ended is there when it has.
        let has_ended = has_ended(store, &wanted.of).await?;
        let part = read_part(store, &wanted.of, wanted.offset, wanted.most).await;
        let part = part.map_err(|error| refusal(error, wanted.offset))?;
        let is_over = has_ended && part.is_end;
        if !part.frames.is_empty() || is_over || tokio::time::Instant::now() >= until {
            let laneway_engine::log::Part { frames, next_offset, size, may_lack_end, .. } = part;
            return Ok(Part { frames, next_offset, size, has_ended, is_over, may_lack_end });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether an attempt has ended; one that never was is refused.
pub(crate) async fn has_ended(store: &dyn Store, of: &LogName) -> Answer<bool> {
    let attempts = store.attempts(of.run, &of.step).await?;
    let found = attempts.iter().find(|attempt| attempt.attempt == of.attempt);
    match found {
        Some(attempt) => Ok(attempt.finished_at.is_some()),
        None => {
            let (step, attempt) = (&of.step, of.attempt);
            Err(Problem::new(Code::NoSuchAttempt, format!("step `{step}` has no attempt {attempt}"))
                .hint(format!("it had {} so far", attempts.len())))
        }
    }
}

fn refusal(error: Unread, offset: u64) -> Problem {
    match error {
        Unread::Store(error) => error.into(),
        Unread::Log(Error::Damaged { .. }) if offset > 0 => {
            Problem::new(Code::BadRequest, format!("nothing of the log begins at {offset}"))
                .hint("use an offset that an answer gave as `next_offset`")
        }
        Unread::Log(error) => {
            tracing::error!(%error, "a log cannot be read");
            Problem::new(Code::Unreadable, "the log cannot be read")
        }
    }
}
