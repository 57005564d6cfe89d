//! Joins frames into lines. A line that arrives in pieces is put together per stream, so that a line of
//! stdout is not cut where stderr spoke in between. A line longer than [`MAX_LINE`] is handed out in
//! pieces, which bounds the memory whatever a step prints.

use std::borrow::Cow;

use super::format::{Frame, Stream};

/// The most of one line that is held in memory, in bytes.
pub const MAX_LINE: usize = 64 * 1024;

/// One line without its newline, or a piece of a very long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub stream: Stream,
    /// When its first byte was read.
    pub unix_ms: u64,
    pub bytes: Vec<u8>,
    /// The line goes on in the next piece of the same stream.
    pub continues: bool,
}

impl Line {
    /// Fit for a terminal or JSON: what is not UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// What is left of each stream since its last newline.
#[derive(Debug, Default)]
pub struct Lines {
    stdout: Open,
    stderr: Open,
}

impl Lines {
    /// The lines that this frame ends.
    pub fn push(&mut self, frame: &Frame) -> Vec<Line> {
        let mut lines = Vec::new();
        match frame.stream {
            Stream::Stdout => self.stdout.push(frame, &mut lines),
            Stream::Stderr => self.stderr.push(frame, &mut lines),
            Stream::Note => lines.push(Line {
                stream: Stream::Note,
                unix_ms: frame.unix_ms,
                bytes: frame.bytes.clone(),
                continues: false,
            }),
        }
        lines
    }

    /// What ended without a newline. To be asked once nothing more will come.
    pub fn finish(self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (open, stream) in [(self.stdout, Stream::Stdout), (self.stderr, Stream::Stderr)] {
            if !open.bytes.is_empty() {
                lines.push(Line { stream, unix_ms: open.unix_ms, bytes: open.bytes, continues: false });
            }
        }
        // The streams' last words in the order in which they began.
        lines.sort_by_key(|line| line.unix_ms);
        lines
    }
}

#[derive(Debug, Default)]
struct Open {
    unix_ms: u64,
    bytes: Vec<u8>,
}

impl Open {
    fn push(&mut self, frame: &Frame, lines: &mut Vec<Line>) {
        for part in frame.bytes.split_inclusive(|byte| *byte == b'\n') {
            let (content, is_ended) = match part.strip_suffix(b"\n") {
                Some(content) => (content, true),
                None => (part, false),
            };
            if self.bytes.is_empty() {
                self.unix_ms = frame.unix_ms;
            }
            self.bytes.extend_from_slice(content);
            while self.bytes.len() > MAX_LINE {
                let rest = self.bytes.split_off(char_boundary(&self.bytes));
                let piece = std::mem::replace(&mut self.bytes, rest);
                lines.push(self.line(frame.stream, piece, true));
                self.unix_ms = frame.unix_ms;
            }
            if is_ended {
                let bytes = std::mem::take(&mut self.bytes);
                lines.push(self.line(frame.stream, bytes, false));
            }
        }
    }

    fn line(&self, stream: Stream, bytes: Vec<u8>, continues: bool) -> Line {
        Line { stream, unix_ms: self.unix_ms, bytes, continues }
    }
}

/// Where to cut, so that no character of UTF-8 text is torn: at most three bytes before the limit.
fn char_boundary(bytes: &[u8]) -> usize {
    let is_start = |at: &usize| bytes[*at] & 0b1100_0000 != 0b1000_0000;
    (MAX_LINE - 3..=MAX_LINE).rev().find(is_start).unwrap_or(MAX_LINE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(stream: Stream, unix_ms: u64, bytes: &[u8]) -> Frame {
        Frame { stream, unix_ms, bytes: bytes.to_vec() }
    }

    fn lines_of(frames: &[Frame]) -> Vec<Line> {
        let mut lines = Lines::default();
        let mut all: Vec<Line> = frames.iter().flat_map(|frame| lines.push(frame)).collect();
        all.extend(lines.finish());
        all
    }

    #[test]
    fn a_line_is_joined_across_frames_of_its_own_stream() {
        let lines = lines_of(&[
            frame(Stream::Stdout, 1, b"hel"),
            frame(Stream::Stderr, 2, b"oops\n"),
            frame(Stream::Stdout, 3, b"lo\n\nlast"),
            frame(Stream::Note, 4, b"a note"),
        ]);
        let told: Vec<_> =
            lines.iter().map(|line| (line.stream, line.unix_ms, line.text().into_owned())).collect();
        assert_eq!(
            told,
            [
                (Stream::Stderr, 2, "oops".to_owned()),
                (Stream::Stdout, 1, "hello".to_owned()),
                (Stream::Stdout, 3, String::new()),
                (Stream::Note, 4, "a note".to_owned()),
                (Stream::Stdout, 3, "last".to_owned()),
            ]
        );
    }

    #[test]
    fn a_very_long_line_comes_in_pieces_that_tear_no_character() {
        let text = "é€😀".repeat(100_000);
        let frames: Vec<_> =
            text.as_bytes().chunks(50_001).map(|chunk| frame(Stream::Stdout, 1, chunk)).collect();
        let lines = lines_of(&frames);
        assert!(lines.len() > 10);
        assert!(lines.iter().all(|line| line.bytes.len() <= MAX_LINE));
        let (last, pieces) = lines.split_last().expect("there are lines");
        assert!(!last.continues && pieces.iter().all(|line| line.continues));
        let joined: String =
            lines.iter().map(|line| std::str::from_utf8(&line.bytes).expect("no torn character")).collect();
        assert!(joined == text);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_output_was_cut(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..300),
            size in 1usize..50,
        ) {
            let cut: Vec<_> = bytes.chunks(size).map(|chunk| frame(Stream::Stdout, 1, chunk)).collect();
            let whole = lines_of(&[frame(Stream::Stdout, 1, &bytes)]);
            prop_assert_eq!(lines_of(&cut), whole);
        }
    }
}
