//! What the end of a container means, and what it printed: pure decisions.

use bollard::container::LogOutput;
use bytes::Bytes;

use crate::log::{HEADER, Stream, Writer};
use crate::process::Outcome;

/// How a container ends that was killed.
pub(in crate::container) const KILLED: i64 = 128 + 9;

/// The last signal there is.
const LAST_SIGNAL: i64 = 64;

/// The largest piece that goes into the log at once.
const PIECE: usize = 64 * 1024;

/// The beginning of what it printed to stderr.
#[derive(Debug, Default)]
pub(super) struct First(Vec<u8>);

impl First {
    const ENOUGH: usize = 512;

    pub(super) fn see(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stderr {
            let room = Self::ENOUGH.saturating_sub(self.0.len());
            self.0.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
    }

    /// What an init says that found nothing to execute: Docker's is tini, Podman's catatonit.
    fn not_executed(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let line = text.lines().next()?;
        let of_tini = line.strip_prefix("[FATAL tini (").and_then(|rest| Some(rest.split_once(")] ")?.1));
        let of_catatonit =
            line.strip_prefix("ERROR (catatonit:").and_then(|rest| Some(rest.split_once("): ")?.1));
        let said = of_tini.filter(|said| said.starts_with("exec ")).or(of_catatonit)?;
        Some(format!("the image cannot run it: {said}"))
    }
}

/// What an exit that nobody asked for tells of.
pub(super) fn judge(code: i64, is_oom: bool, was_away: bool, first: &First) -> Outcome {
    let exit = i32::try_from(code).unwrap_or(i32::MAX);
    if matches!(code, 126 | 127)
        && let Some(why) = first.not_executed()
    {
        return Outcome::StartFailed(why);
    }
    match code {
        0 => Outcome::Exited(0),
        // Also where only a child of it wanted too much and the step failed of that.
        _ if is_oom => Outcome::OutOfMemory(exit),
        // Nobody meant the step.
        KILLED | 143 if was_away => Outcome::EngineLost(
            "the container engine went away while the step ran, and took the container with it".to_owned(),
        ),
        129.. if code - 128 <= LAST_SIGNAL => Outcome::Signaled(exit - 128),
        _ => Outcome::Exited(exit),
    }
}

pub(super) fn piece(piece: LogOutput) -> (Stream, Bytes) {
    match piece {
        LogOutput::StdErr { message } => (Stream::Stderr, message),
        LogOutput::StdOut { message } | LogOutput::StdIn { message } | LogOutput::Console { message } => {
            (Stream::Stdout, message)
        }
    }
}

/// In frames that have room for their heads.
pub(super) fn append(log: &mut Writer, stream: Stream, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE) {
        let mut framed = vec![0; HEADER + piece.len()];
        framed[HEADER..].copy_from_slice(piece);
        log.append(stream, &mut framed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> First {
        let mut first = First::default();
        first.see(Stream::Stderr, text.as_bytes());
        first
    }

    #[test]
    fn endings_are_told_apart() {
        let quiet = First::default();
        let judge = |code, is_oom, was_away| judge(code, is_oom, was_away, &quiet);
        assert_eq!(judge(0, false, false), Outcome::Exited(0));
        assert_eq!(judge(0, true, false), Outcome::Exited(0), "a child died of it, the step did not");
        assert_eq!(judge(3, false, false), Outcome::Exited(3));
        assert_eq!(judge(127, false, false), Outcome::Exited(127));
        assert_eq!(judge(137, true, false), Outcome::OutOfMemory(137));
        assert_eq!(judge(1, true, false), Outcome::OutOfMemory(1));
        assert_eq!(judge(139, false, false), Outcome::Signaled(11));
        assert_eq!(judge(255, false, false), Outcome::Exited(255));
        assert_eq!(judge(137, false, false), Outcome::Signaled(9));
        assert!(matches!(judge(137, false, true), Outcome::EngineLost(_)));
        assert!(matches!(judge(143, false, true), Outcome::EngineLost(_)));
        assert_eq!(judge(5, false, true), Outcome::Exited(5), "it ended by itself meanwhile");
    }

    #[test]
    fn a_program_that_the_image_does_not_have_is_told_from_one_that_exits_so() {
        let of_tini = said("[FATAL tini (7)] exec nope failed: No such file or directory\n");
        let Outcome::StartFailed(why) = judge(127, false, false, &of_tini) else { panic!("it never ran") };
        assert_eq!(why, "the image cannot run it: exec nope failed: No such file or directory");
        assert_eq!(judge(127, false, false, &said("sh: nope: not found")), Outcome::Exited(127));
        let of_catatonit = said("ERROR (catatonit:2): failed to exec pid1: No such file or directory");
        assert!(matches!(judge(127, false, false, &of_catatonit), Outcome::StartFailed(_)));
    }
}
