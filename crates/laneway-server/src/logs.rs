//! What an attempt printed, and waiting for it to print more.

use std::time::Duration;

use laneway_engine::log::Error;
use laneway_store::Store;
use laneway_store::model::LogName;

use crate::ask::{self, LogFault, LogRead};
use crate::problem::{Answer, Code, Problem};

/// A log that grows commits nothing, so it is looked at, while somebody waits for it.
const LOOK: Duration = Duration::from_millis(100);

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

/// From `offset` on, and whether the attempt has ended with nothing behind that. One that never was is refused.
pub(crate) async fn read(store: &dyn Store, wanted: &Wanted) -> Answer<(LogRead, bool)> {
    let until = tokio::time::Instant::now() + wanted.wait;
    loop {
        // Looked at first: what was written before an attempt ended is there when it has. The step is one of its run's from
        // here on, so that nothing is looked for by what somebody sent.
        let has_ended = has_ended(store, &wanted.of).await?;
        let part = ask::log(store, &wanted.of, wanted.offset, wanted.most).await;
        let part = part.map_err(|fault| problem(fault, wanted.offset))?;
        let is_over = has_ended && part.is_end;
        if !part.frames.is_empty() || is_over || tokio::time::Instant::now() >= until {
            return Ok((part, is_over));
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn has_ended(store: &dyn Store, of: &LogName) -> Answer<bool> {
    let attempts = store.attempts(of.run, &of.step).await?;
    match attempts.iter().find(|attempt| attempt.attempt == of.attempt) {
        Some(attempt) => Ok(attempt.finished_at.is_some()),
        None => Err(Problem::new(
            Code::NoSuchAttempt,
            format!("step `{}` has no attempt {}", of.step, of.attempt),
        )
        .hint(format!("it had {} so far", attempts.len()))),
    }
}

fn problem(fault: LogFault, offset: u64) -> Problem {
    match fault {
        LogFault::Store(error) => error.into(),
        LogFault::Log(Error::Damaged { .. }) if offset > 0 => {
            Problem::new(Code::BadRequest, format!("nothing of the log begins at {offset}"))
                .hint("use an offset that an answer gave as `next_offset`")
        }
        LogFault::Log(error) => {
            tracing::error!(%error, "a log cannot be read");
            Problem::new(Code::Unreadable, "the log cannot be read")
        }
    }
}
