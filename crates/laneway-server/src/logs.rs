//! What attempts printed, behind one function: where the bytes lie is nobody else's matter. Now they lie in files beside the
//! store of the node that ran the attempt.

use std::path::PathBuf;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_engine::log::{Error, Follower, Frame};
use laneway_engine::worker::log_path;
use laneway_store::Store;

use crate::problem::{Answer, Code, Problem};

/// A log that grows commits nothing, so it is looked at, while somebody waits for it.
const LOOK: Duration = Duration::from_millis(100);

/// Part of a log.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) frames: Vec<Frame>,
    pub(crate) next_offset: u64,
    /// The attempt has ended, and there is nothing behind it.
    pub(crate) is_over: bool,
}

/// Which part.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) run: RunId,
    pub(crate) step: String,
    pub(crate) attempt: u32,
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
        // The step is one of its run's, so no path is put together from what somebody sent.
        let path = log_path(store.dir(), wanted.run, &wanted.step, wanted.attempt);
        let (offset, most) = (wanted.offset, wanted.most);
        let read = tokio::task::spawn_blocking(move || read_file(path, offset, most));
        let (frames, next_offset, is_end) = read.await.map_err(|error| internal(&error))??;
        let is_over = has_ended && is_end;
        if !frames.is_empty() || is_over || tokio::time::Instant::now() >= until {
            return Ok(Part { frames, next_offset, is_over });
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn has_ended(store: &dyn Store, wanted: &Wanted) -> Answer<bool> {
    let attempts = store.attempts(wanted.run, &wanted.step).await?;
    let found = attempts.iter().find(|attempt| attempt.attempt == wanted.attempt);
    match found {
        Some(attempt) => Ok(attempt.finished_at.is_some()),
        None => {
            let (step, attempt) = (&wanted.step, wanted.attempt);
            Err(Problem::new(Code::NoSuchAttempt, format!("step `{step}` has no attempt {attempt}"))
                .hint(format!("it had {} so far", attempts.len())))
        }
    }
}

/// Frames, where they end, and whether there was nothing behind them.
fn read_file(path: PathBuf, offset: u64, most: usize) -> Answer<(Vec<Frame>, u64, bool)> {
    let mut follower = Follower::new(path, offset);
    let (mut frames, mut bytes) = (Vec::new(), 0);
    while bytes < most {
        match follower.next_frame() {
            Ok(Some(frame)) => {
                bytes += frame.bytes.len();
                frames.push(frame);
            }
            Ok(None) => return Ok((frames, follower.offset(), true)),
            // What stands in front of the damage is given.
            Err(Error::Damaged { .. }) if !frames.is_empty() => break,
            Err(Error::Damaged { .. }) if offset > 0 => {
                return Err(Problem::new(Code::BadRequest, format!("nothing of the log begins at {offset}"))
                    .hint("use an offset that an answer gave as `next_offset`"));
            }
            Err(error) => {
                tracing::error!(%error, "a log cannot be read");
                return Err(Problem::new(Code::Unreadable, "the log cannot be read"));
            }
        }
    }
    Ok((frames, follower.offset(), false))
}

fn internal(error: &tokio::task::JoinError) -> Problem {
    tracing::error!(%error, "a log could not be read");
    Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
}
