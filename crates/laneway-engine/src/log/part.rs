//! A part of a log, as frames, wherever its bytes lie: beside the store of this host, or in the store of many.

use laneway_store::Store;
use laneway_store::model::LogName;

use super::decoder::Decoder;
use super::format::{Error, Frame};

/// Bytes of one question.
const STEP: usize = 256 * 1024;

/// Frames of a log, from a place on.
#[derive(Debug, Default)]
pub struct Part {
    pub frames: Vec<Frame>,
    /// Where to go on.
    pub next_offset: u64,
    /// How long the log is by now, in the bytes in which offsets count.
    pub size: u64,
    /// There was nothing behind them.
    pub is_end: bool,
    /// Its node died: what was printed in the last second before that may be missing.
    pub may_lack_end: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
    #[error(transparent)]
    Log(#[from] Error),
}

/// About `most` bytes of frames from `offset` on, which is 0 or where a part ended; at least one frame where there is one.
pub async fn read_part(store: &dyn Store, of: &LogName, offset: u64, most: usize) -> Result<Part, Unread> {
    let mut decoder = Decoder::new(format!("of {}", of.step).into(), offset);
    let (mut part, mut bytes) = (Part { next_offset: offset, ..Part::default() }, 0);
    loop {
        let found = store.log(of, decoder.wanted(), STEP).await?;
        (part.may_lack_end, part.size) = (found.may_lack_end, found.size);
        if found.bytes.is_empty() {
            part.is_end = true;
            return Ok(part);
        }
        decoder.push(&found.bytes);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    bytes += frame.bytes.len();
                    part.frames.push(frame);
                    part.next_offset = decoder.offset();
                }
                Ok(None) => break,
                // What stands in front of the damage is given.
                Err(Error::Damaged { .. }) if !part.frames.is_empty() => return Ok(part),
                Err(error) => return Err(error.into()),
            }
            if bytes >= most {
                return Ok(part);
            }
        }
    }
}
