//! From the bytes of a log, as they come, to its frames. Where the bytes come from is its caller's matter: a file, or the store.

use std::path::PathBuf;

use super::format::{Error, Frame, HEADER, Head, MAGIC};

/// Takes bytes from a place on, and gives out frames that are whole.
#[derive(Debug)]
pub struct Decoder {
    /// How errors call the log.
    name: PathBuf,
    /// Where the next frame starts in the log.
    offset: u64,
    /// What came from `offset` on and was not handed out, without its first `taken` bytes.
    buffer: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// `offset` is 0 or what [`Decoder::offset`] said before.
    pub fn new(name: PathBuf, offset: u64) -> Self {
        Self { name, offset, buffer: Vec::new(), taken: 0 }
    }

    /// Where to go on, in another process if need be.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// From which byte of the log on the next [`Decoder::push`] is expected.
    pub fn wanted(&self) -> u64 {
        self.offset + self.rest().len() as u64
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// At the end of what there is: half a frame may be cut off again by its writer (a full disk), so it is not kept.
    pub fn forget_half(&mut self) {
        self.buffer.clear();
        self.taken = 0;
    }

    /// The next whole frame; none if more bytes are needed for one.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        if self.offset == 0 {
            let Some(magic) = self.rest().get(..MAGIC.len()) else { return Ok(None) };
            if magic != MAGIC {
                return Err(Error::NotALog { path: self.name.clone() });
            }
            self.take(MAGIC.len());
        }
        let Some(head) = self.rest().first_chunk::<HEADER>() else { return Ok(None) };
        let head = Head::decode(*head)
            .ok_or_else(|| Error::Damaged { path: self.name.clone(), offset: self.offset })?;
        let whole = HEADER + head.length;
        let Some(bytes) = self.rest().get(HEADER..whole) else { return Ok(None) };
        let frame = Frame { stream: head.stream, unix_ms: head.unix_ms, bytes: bytes.to_vec() };
        self.take(whole);
        Ok(Some(frame))
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    fn take(&mut self, count: usize) {
        self.taken += count;
        self.offset += count as u64;
    }
}
