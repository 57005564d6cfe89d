//! A stream of bytes in compressed blocks, so that neither side holds the whole of it. What is read is
//! bounded by what the reader takes: a block says its length, and no block is longer than `BLOCK_BYTES`.

use lz4_flex::block::{compress, decompress_into};

use super::Error;

const BLOCK_BYTES: usize = 1 << 20;

/// Compresses bytes that come one after the other.
#[derive(Debug)]
pub(super) struct BlockWriter {
    out: Vec<u8>,
    block: Vec<u8>,
}

impl BlockWriter {
    /// Writes behind a head.
    pub(super) fn new(head: Vec<u8>) -> Self {
        Self { out: head, block: Vec::new() }
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (taken, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(taken);
            bytes = rest;
            if self.block.len() == BLOCK_BYTES {
                self.flush();
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.out
    }

    /// A block that gets no smaller is stored as it is, which its equal lengths say.
    fn flush(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let packed = compress(&self.block);
        let stored = if packed.len() < self.block.len() { &packed } else { &self.block };
        self.out.extend_from_slice(&(self.block.len() as u32).to_le_bytes());
        self.out.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        self.out.extend_from_slice(stored);
        self.block.clear();
    }
}

/// Reads what a `BlockWriter` wrote.
#[derive(Debug)]
pub(super) struct BlockReader<'a> {
    rest: &'a [u8],
    block: Vec<u8>,
    /// Bytes of the block that are read.
    read: usize,
}

impl<'a> BlockReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, block: Vec::new(), read: 0 }
    }

    /// The next bytes, exactly so many. Grows with what is there, not with what is asked for.
    pub(super) fn take(&mut self, mut count: u64) -> Result<Vec<u8>, Error> {
        let mut taken = Vec::new();
        while count > 0 {
            if self.read == self.block.len() {
                self.next_block()?;
            }
            let there = self.block.len() - self.read;
            let part = usize::try_from(count).map_or(there, |count| count.min(there));
            taken.extend_from_slice(&self.block[self.read..self.read + part]);
            self.read += part;
            count -= part as u64;
        }
        Ok(taken)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty() && self.read == self.block.len()
    }

    fn next_block(&mut self) -> Result<(), Error> {
        let length = self.length()?;
        let stored = self.length()?;
        if length == 0 || stored == 0 || stored > length {
            return Err(damaged());
        }
        let (stored, rest) = self.rest.split_at_checked(stored).ok_or_else(damaged)?;
        self.rest = rest;
        self.read = 0;
        if stored.len() == length {
            self.block = stored.to_vec();
            return Ok(());
        }
        self.block.resize(length, 0);
        match decompress_into(stored, &mut self.block) {
            Ok(written) if written == length => Ok(()),
            Ok(_) | Err(_) => Err(damaged()),
        }
    }

    fn length(&mut self) -> Result<usize, Error> {
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        self.rest = rest;
        let length = u32::from_le_bytes(*length) as usize;
        if length > BLOCK_BYTES { Err(damaged()) } else { Ok(length) }
    }
}

pub(super) fn damaged() -> Error {
    Error::Rejected { why: "it is damaged".to_owned() }
}
