//! Adds to the log of an attempt whose worker is elsewhere. Nothing is remembered between two calls: the worker says from
//! which place on it goes on, and what is there already is not written twice. Under the same caps as everybody's.

use laneway_store::model::{LogName, LogPiece};
use laneway_store::{ClaimRef, Fate, Store};

use super::clock::unix_ms;
use super::format::{Error, Frame, HEADER, Head, MAGIC, Stream};
use super::part::{Unread, read_part};
use super::writer::cap_note;

/// What of an attempt's output is kept, in files beside a store and as rows of one.
pub(crate) const LOG_CAP: u64 = 64 << 20;
pub(crate) const SHARED_LOG_CAP: u64 = 8 << 20;

/// Output of one frame; more of it is several.
const PIECE: usize = 64 * 1024;

/// What became of an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    pub fate: Fate,
    /// Where the next one goes on.
    pub next: u64,
    /// The cap is reached: whatever comes is dropped.
    pub is_full: bool,
}

/// Why nothing was added.
#[derive(Debug, thiserror::Error)]
pub enum NotAdded {
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
    /// Nothing begins at that place, or something else than what was said.
    #[error("the log does not go on there")]
    Elsewhere { next: u64 },
    #[error(transparent)]
    Log(Error),
}

/// Adds output from a place on, which is 0 or what an addition said before. Said again after a lost answer, it adds what
/// is missing.
pub async fn add(
    store: &dyn Store,
    claim: ClaimRef,
    of: &LogName,
    offset: u64,
    output: &[(Stream, Vec<u8>)],
) -> Result<Added, NotAdded> {
    let cap = if store.is_embedded() { LOG_CAP } else { SHARED_LOG_CAP };
    let size = store.log(of, offset, 0).await?.size;
    if offset > size {
        return Err(NotAdded::Elsewhere { next: size });
    }
    let said: Vec<(Stream, &[u8])> =
        output.iter().flat_map(|(stream, bytes)| bytes.chunks(PIECE).map(|chunk| (*stream, chunk))).collect();
    let (mut from, mut known) = (offset, 0);
    if offset < size {
        let most = said.iter().map(|(_, chunk)| chunk.len()).sum::<usize>() + 1;
        let part = read_part(store, of, offset, most).await.map_err(|error| match error {
            Unread::Store(error) => error.into(),
            Unread::Log(Error::Damaged { .. }) => NotAdded::Elsewhere { next: size },
            Unread::Log(error) => NotAdded::Log(error),
        })?;
        known = already(&part.frames, &said).ok_or(NotAdded::Elsewhere { next: size })?;
        // Behind the last whole frame: half of one, which a crash may have left, is written over.
        from = part.next_offset;
    }
    let built = build(from, cap, &said[known..]);
    let (next, is_full) = (from.max(built.next), built.is_full);
    if built.bytes.is_empty() {
        return Ok(Added { fate: Fate::Recorded, next, is_full });
    }
    let piece = LogPiece { claim, start: from, bytes: built.bytes };
    let fate = store.keep_logs(vec![piece]).await?.first().copied().unwrap_or(Fate::ClaimLost);
    Ok(Added { fate, next, is_full })
}

/// How much of what is said is there already; `None` if something else is.
fn already(there: &[Frame], said: &[(Stream, &[u8])]) -> Option<usize> {
    let printed: Vec<&Frame> = there.iter().filter(|frame| frame.stream != Stream::Note).collect();
    let is_capped = printed.len() < there.len();
    for (index, frame) in printed.iter().enumerate() {
        let (stream, bytes) = said.get(index)?;
        // Of the last one the cap may have cut something off.
        let is_cut = is_capped && index + 1 == printed.len() && bytes.starts_with(&frame.bytes);
        if *stream != frame.stream || !(frame.bytes == *bytes || is_cut) {
            return None;
        }
    }
    Some(if is_capped { said.len() } else { printed.len() })
}

struct Built {
    bytes: Vec<u8>,
    next: u64,
    is_full: bool,
}

/// Frames from a place on, as far as there is room. When there is none left, the log says so, once.
fn build(from: u64, cap: u64, said: &[(Stream, &[u8])]) -> Built {
    let mut bytes = Vec::new();
    let is_full = |at: u64| at.max(MAGIC.len() as u64) + HEADER as u64 >= cap;
    if is_full(from) || said.is_empty() {
        return Built { bytes, next: from, is_full: is_full(from) };
    }
    if from == 0 {
        bytes.extend_from_slice(&MAGIC);
    }
    for (stream, chunk) in said {
        let room = cap - (from + bytes.len() as u64) - HEADER as u64;
        let kept = chunk.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        frame(&mut bytes, *stream, &chunk[..kept]);
        if is_full(from + bytes.len() as u64) {
            frame(&mut bytes, Stream::Note, cap_note(cap).as_bytes());
            break;
        }
    }
    let next = from + bytes.len() as u64;
    Built { bytes, next, is_full: is_full(next) }
}

fn frame(bytes: &mut Vec<u8>, stream: Stream, payload: &[u8]) {
    bytes.extend_from_slice(&Head { stream, unix_ms: unix_ms(), length: payload.len() }.encode());
    bytes.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &str) -> (Stream, &[u8]) {
        (Stream::Stdout, text.as_bytes())
    }

    fn kept(stream: Stream, text: &str) -> Frame {
        Frame { stream, unix_ms: 1, bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn what_is_there_is_known_again_and_something_else_is_not() {
        let there = [kept(Stream::Stdout, "one"), kept(Stream::Stderr, "two")];
        let both = [out("one"), (Stream::Stderr, &b"two"[..])];
        assert_eq!(already(&there, &both), Some(2));
        assert_eq!(already(&there[..1], &both), Some(1), "it has grown since");
        assert_eq!(already(&there, &both[..1]), None, "more is there than was said");
        assert_eq!(already(&there, &[out("one"), out("two")]), None, "of another stream");
        let capped = [kept(Stream::Stdout, "on"), kept(Stream::Note, "cap")];
        assert_eq!(already(&capped, &both), Some(2), "the cap has cut it, and nothing more is to be added");
        assert_eq!(already(&capped[..1], &both), None, "nothing else cuts");
    }

    #[test]
    fn log_that_is_full_says_so_once_and_takes_nothing_more() {
        let cap = 8 + 2 * (13 + 10);
        let first = build(0, cap, &[out("0123456789")]);
        assert_eq!((first.next, first.is_full), (31, false));
        let second = build(first.next, cap, &[out("0123456789abc"), out("never")]);
        assert!(second.is_full);
        let text = String::from_utf8_lossy(&second.bytes);
        assert!(
            text.contains("0123456789")
                && !text.contains("abc")
                && text.contains("log cap of 54 bytes reached")
        );
        let third = build(second.next, cap, &[out("x")]);
        assert_eq!((third.bytes.len(), third.next, third.is_full), (0, second.next, true));
        // What fits to the last byte leaves no room either, and is told of.
        let exact = build(first.next, cap, &[out("0123456789")]);
        assert!(exact.is_full && String::from_utf8_lossy(&exact.bytes).contains("reached"));
    }
}
