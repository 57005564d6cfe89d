//! What attempts printed, for those who ask and for those who wait for more. Where the bytes lie is the store's matter.

use std::time::Duration;

use laneway_engine::log::{Error, Frame, Unread, read_part};
use laneway_store::Store;
use laneway_store::model::LogName;

use crate::problem::{Answer, Code, Problem};

/// A log that grows commits nothing, so it is looked at, while somebody waits for it.
const LOOK: Duration = Duration::from_millis(100);

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

/// From `offset` on. An attempt that printed nothing has an empty log; one that never was is refused.
pub(crate) async fn read(store: &dyn Store, wanted: Wanted) -> Answer<Part> {
    let until = tokio::time::Instant::now() + wanted.wait;
    loop {
        // Looked at first: what was written before an attempt ended is there when it has.
        let has_ended = has_ended(store, &wanted).await?;
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

async fn has_ended(store: &dyn Store, wanted: &Wanted) -> Answer<bool> {
    let attempts = store.attempts(wanted.of.run, &wanted.of.step).await?;
    let found = attempts.iter().find(|attempt| attempt.attempt == wanted.of.attempt);
    match found {
        Some(attempt) => Ok(attempt.finished_at.is_some()),
        None => {
            let (step, attempt) = (&wanted.of.step, wanted.of.attempt);
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
