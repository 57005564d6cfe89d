//! The layout of a log file.
//!
//! Eight bytes of magic, the last two its version, then frames
//! `[u8 stream][u64 LE unix ms][u32 LE length][bytes]`. A frame is written by one call, so a crash can
//! tear only the last one; whoever reads stops in front of it. Nothing is ever rewritten.

use std::path::PathBuf;

/// The first bytes of every log, version 1.
pub(super) const MAGIC: [u8; 8] = *b"LNWLOG01";

/// Bytes in front of a frame's payload.
pub const HEADER: usize = 13;

/// No frame is larger: the reader takes a greater length for damage instead of allocating it.
pub(super) const MAX_PAYLOAD: usize = 1 << 20;

/// Where a piece of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    Stdout,
    Stderr,
    /// Written by Laneway itself, such as the marker of a cap. One note is one line.
    Note,
}

impl Stream {
    pub const ALL: [Self; 3] = [Self::Stdout, Self::Stderr, Self::Note];

    /// The stable word of `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Note => "note",
        }
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::Note => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stream| stream.code() == code)
    }
}

/// One piece of output as it was read from the step: any bytes, not a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub stream: Stream,
    pub unix_ms: u64,
    pub bytes: Vec<u8>,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the log {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is not a log of this version of Laneway", path.display())]
    NotALog { path: PathBuf },
    /// What stands in front of the damage was handed out.
    #[error("the log {} is damaged at byte {offset}", path.display())]
    Damaged { path: PathBuf, offset: u64 },
}

/// The bytes in front of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) stream: Stream,
    pub(super) unix_ms: u64,
    pub(super) length: usize,
}

impl Head {
    pub(super) fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.stream.code();
        bytes[1..9].copy_from_slice(&self.unix_ms.to_le_bytes());
        let length = u32::try_from(self.length).expect("payloads are at most MAX_PAYLOAD");
        bytes[9..].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// None is damage: no such stream, or a length that no writer produces.
    pub(super) fn decode(bytes: [u8; HEADER]) -> Option<Self> {
        let [code, t0, t1, t2, t3, t4, t5, t6, t7, l0, l1, l2, l3] = bytes;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length > MAX_PAYLOAD {
            return None;
        }
        Some(Self {
            stream: Stream::from_code(code)?,
            unix_ms: u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_documented_layout_and_reads_back() {
        let head = Head { stream: Stream::Stderr, unix_ms: 0x0102_0304_0506_0708, length: 0x0000_0a0b };
        let bytes = head.encode();
        assert_eq!(bytes, [2, 8, 7, 6, 5, 4, 3, 2, 1, 0x0b, 0x0a, 0, 0]);
        assert_eq!(Head::decode(bytes), Some(head));
    }

    #[test]
    fn an_unknown_stream_or_an_absurd_length_is_damage() {
        let good = Head { stream: Stream::Stdout, unix_ms: 1, length: 1 };
        let mut bytes = good.encode();
        bytes[0] = 4;
        assert_eq!(Head::decode(bytes), None);
        let mut bytes = good.encode();
        bytes[12] = 0xff;
        assert_eq!(Head::decode(bytes), None);
    }
}
