//! What attempts printed, behind one function: where the bytes lie is the store's matter.

use laneway_engine::log::{self, Decoder, Frame};
use laneway_store::Store;
use laneway_store::model::LogName;

/// Bytes that are read from the store at once.
const PART: usize = 256 << 10;

/// Part of a log.
#[derive(Debug, Clone)]
pub struct LogRead {
    pub frames: Vec<Frame>,
    /// Go on from here.
    pub next_offset: u64,
    /// There is nothing behind that, for now.
    pub is_end: bool,
    /// Its node died: what was printed in the last second before that may be missing.
    pub may_lack_end: bool,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogFault {
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
}

/// From `offset` on, which is 0 or what a part before gave; about `most` bytes, and at least one frame where there is one. Of
/// an attempt that printed nothing there is nothing.
pub async fn log(store: &dyn Store, of: &LogName, offset: u64, most: usize) -> Result<LogRead, LogFault> {
    let mut decoder = Decoder::new(format!("of {}", of.step).into(), offset);
    let (mut frames, mut bytes) = (Vec::new(), 0);
    loop {
        while bytes < most {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    bytes += frame.bytes.len();
                    frames.push(frame);
                }
                Ok(None) => break,
                // What stands in front of the damage is given; whoever goes on hears of it.
                Err(log::Error::Damaged { .. }) if !frames.is_empty() => bytes = most,
                Err(error) => return Err(error.into()),
            }
        }
        let next_offset = decoder.offset();
        if bytes >= most {
            return Ok(LogRead { frames, next_offset, is_end: false, may_lack_end: false });
        }
        let part = store.log(of, decoder.wanted(), PART).await?;
        if part.bytes.is_empty() {
            return Ok(LogRead { frames, next_offset, is_end: true, may_lack_end: part.may_lack_end });
        }
        decoder.push(&part.bytes);
    }
}
