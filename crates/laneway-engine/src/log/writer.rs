//! Appends to the log of one attempt, under a cap, and never lets a log's trouble become the step's.
//!
//! Writes are direct and small (at most one pipe's content, 64 KiB, per call) instead of going through
//! a writer thread: such a copy into the page cache was measured at 33 µs (p99 90 µs, the worst of
//! thousands 4 ms), handing over costs two context switches, and most steps print a line or nothing.
//! The file lies beside the store, so a disk that stalls it stalls the store's commits as well.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use laneway_store::private;
use laneway_torture::{Point, pass};

use super::clock::unix_ms;
use super::courier::Sending;
use super::format::{HEADER, Head, MAGIC, MAX_PAYLOAD, Stream};
use crate::secret::{self, Masks};

/// What became of an attempt's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes of output kept, without framing and notes.
    pub bytes: u64,
    /// Bytes of output that the cap, or an error, kept out of the log.
    pub dropped: u64,
    /// How long the log is, framing and notes included.
    pub length: u64,
    /// The first error of the file, in words. The step ran on regardless.
    pub error: Option<String>,
}

/// Where a log goes.
#[derive(Debug, Clone)]
pub enum Target {
    /// Created by the first byte of output: a silent step leaves none.
    File(PathBuf),
    /// With the store, for whoever reads it elsewhere.
    Store(Sending),
    /// Behind what a former try of the same attempt has left there: so many bytes.
    Behind(Box<Target>, u64),
}

impl From<PathBuf> for Target {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// Writes one log.
#[derive(Debug)]
pub struct Writer {
    target: Target,
    cap: u64,
    file: Option<File>,
    /// Length of the log up to the last whole frame, which is what the cap bounds.
    length: u64,
    is_capped: bool,
    summary: Summary,
    veil: Option<Box<Veil>>,
}

/// What keeps secrets out of a log. Each stream is looked at for itself.
#[derive(Debug)]
struct Veil {
    masks: Masks,
    stdout: secret::Stream,
    stderr: secret::Stream,
}

impl Writer {
    /// `cap` bounds the file, framing included, so that a step which prints byte by byte is bounded too.
    /// Notes come on top: they are few and short.
    pub fn new(target: impl Into<Target>, cap: u64) -> Self {
        let (target, length) = match target.into() {
            Target::Behind(target, length) => (*target, length),
            target @ (Target::File(_) | Target::Store(_)) => (target, 0),
        };
        Self { target, cap, file: None, length, is_capped: false, summary: Summary::default(), veil: None }
    }

    /// With secrets that are not to be seen in it.
    #[must_use]
    pub fn masking(mut self, masks: &Masks) -> Self {
        self.veil = (!masks.is_empty()).then(|| {
            Box::new(Veil { masks: masks.clone(), stdout: Default::default(), stderr: Default::default() })
        });
        self
    }

    /// Keeps one piece of output. `framed` holds [`HEADER`] spare bytes in front of the output, so that
    /// a frame goes out in one write without being copied.
    pub fn append(&mut self, stream: Stream, framed: &mut [u8]) {
        match self.veiled(stream, Some(&framed[HEADER..])) {
            Some(mut veiled) => self.keep(stream, &mut veiled),
            None => self.keep(stream, framed),
        }
    }

    /// A new frame without secrets; `None` where there are none to look for. Nothing given: the end of the stream.
    fn veiled(&mut self, stream: Stream, bytes: Option<&[u8]>) -> Option<Vec<u8>> {
        let veil = self.veil.as_deref_mut()?;
        let of_stream = match stream {
            Stream::Stdout => &mut veil.stdout,
            Stream::Stderr => &mut veil.stderr,
            Stream::Note => return None,
        };
        let mut framed = vec![0; HEADER];
        match bytes {
            Some(bytes) => of_stream.push(&veil.masks, bytes, &mut framed),
            None => of_stream.finish(&veil.masks, &mut framed),
        }
        Some(framed)
    }

    fn keep(&mut self, stream: Stream, framed: &mut [u8]) {
        let wanted = framed.len() - HEADER;
        if wanted == 0 {
            return;
        }
        if self.is_capped {
            self.summary.dropped += wanted as u64;
            return;
        }
        // The magic of a file that is still to be made counts as well.
        let used = self.length.max(MAGIC.len() as u64) + HEADER as u64;
        let room = usize::try_from(self.cap.saturating_sub(used)).unwrap_or(usize::MAX);
        let kept = wanted.min(room);
        if kept > 0 {
            self.put(stream, &mut framed[..HEADER + kept], kept as u64);
        }
        if kept < wanted {
            self.summary.dropped += (wanted - kept) as u64;
            self.is_capped = true;
            self.note(&cap_note(self.cap));
        }
    }

    /// Writes a line of Laneway's own.
    pub fn note(&mut self, text: &str) {
        let mut framed = vec![0; HEADER];
        framed.extend_from_slice(text.as_bytes());
        self.put(Stream::Note, &mut framed, 0);
    }

    /// Closes the log, saying in it what is missing.
    pub fn finish(mut self) -> Summary {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Some(mut held_back) = self.veiled(stream, None) {
                self.keep(stream, &mut held_back);
            }
        }
        if self.summary.dropped > 0 {
            let text = match &self.summary.error {
                None => format!("{} bytes dropped", self.summary.dropped),
                Some(error) => format!("{} bytes dropped: {error}", self.summary.dropped),
            };
            self.note(&text);
        }
        Summary { length: self.length, ..self.summary }
    }

    fn put(&mut self, stream: Stream, framed: &mut [u8], counted: u64) {
        debug_assert!(framed.len() - HEADER <= MAX_PAYLOAD);
        let head = Head { stream, unix_ms: unix_ms(), length: framed.len() - HEADER };
        framed[..HEADER].copy_from_slice(&head.encode());
        match self.write_frame(framed) {
            Ok(()) => self.summary.bytes += counted,
            Err(error) => {
                self.summary.dropped += counted;
                // A full disk may have taken half of the frame. Cut it off, so that a later frame, when
                // there is space again, stands behind a whole one. If even that fails the reader stops there.
                if let Some(file) = &mut self.file {
                    let _ = file.set_len(self.length);
                }
                if self.summary.error.is_none() {
                    self.summary.error = Some(match &self.target {
                        Target::File(path) => format!("cannot write the log {}: {error}", path.display()),
                        Target::Store(_) | Target::Behind(..) => {
                            format!("cannot keep all of the log: {error}")
                        }
                    });
                }
            }
        }
    }

    fn write_frame(&mut self, framed: &[u8]) -> io::Result<()> {
        let path = match &self.target {
            Target::File(path) => path,
            Target::Behind(..) => return Err(io::Error::other("a log goes to one place")),
            Target::Store(sending) => {
                if self.length == 0 {
                    sending.push(0, &MAGIC)?;
                    self.length = MAGIC.len() as u64;
                }
                sending.push(self.length, framed)?;
                self.length += framed.len() as u64;
                return Ok(());
            }
        };
        if self.file.is_none() {
            pass(Point::LogMake);
            self.file = Some(if self.length == 0 { create(path)? } else { go_on(path, self.length)? });
        }
        let file = self.file.as_mut().expect("it was made just above");
        if self.length == 0 {
            file.write_all(&MAGIC)?;
            self.length = MAGIC.len() as u64;
            pass(Point::LogBegun);
        }
        file.write_all(framed)?;
        self.length += framed.len() as u64;
        pass(Point::LogWritten);
        Ok(())
    }
}

/// Append mode: a frame that was cut off after an error must not leave a hole.
fn create(path: &Path) -> io::Result<File> {
    let open = || {
        // An older file of that name can only be a leftover of an attempt that was never recorded.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        private::options().append(true).create_new(true).open(path)
    };
    match (open(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            private::create_dir_all(parent)?;
            open()
        }
        (result, _) => result,
    }
}

/// Behind what is there. If that has become shorter, a reader would stop at the hole.
fn go_on(path: &Path, length: u64) -> io::Result<File> {
    let file = OpenOptions::new().append(true).open(path)?;
    if file.metadata()?.len() < length {
        return Err(io::Error::other("what was there before is gone"));
    }
    file.set_len(length)?;
    Ok(file)
}

/// What a log says when it is full.
pub(super) fn cap_note(cap: u64) -> String {
    format!("log cap of {} reached; output beyond it is dropped", Size(cap))
}

/// A size as people write it in settings.
struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::read;
    use super::*;

    fn append(writer: &mut Writer, stream: Stream, bytes: &[u8]) {
        let mut framed = vec![0; HEADER];
        framed.extend_from_slice(bytes);
        writer.append(stream, &mut framed);
    }

    fn texts(path: &Path) -> Vec<(Stream, String)> {
        read(path)
            .expect("the log opens")
            .map(|frame| frame.expect("a whole frame"))
            .map(|frame| (frame.stream, String::from_utf8_lossy(&frame.bytes).into_owned()))
            .collect()
    }

    #[test]
    fn a_silent_attempt_leaves_no_file() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("log");
        let mut writer = Writer::new(path.clone(), 100);
        append(&mut writer, Stream::Stdout, b"");
        assert_eq!(writer.finish(), Summary::default());
        assert!(!path.exists());
    }

    #[test]
    fn frames_keep_stream_order_and_bytes() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("not/yet/made");
        let mut writer = Writer::new(path.clone(), 1 << 20);
        append(&mut writer, Stream::Stdout, b"one\n");
        append(&mut writer, Stream::Stderr, b"two");
        writer.note("three");
        let summary = writer.finish();
        assert_eq!((summary.bytes, summary.dropped), (7, 0));
        assert_eq!(
            texts(&path),
            [
                (Stream::Stdout, "one\n".to_owned()),
                (Stream::Stderr, "two".to_owned()),
                (Stream::Note, "three".to_owned())
            ]
        );
    }

    #[test]
    fn the_cap_bounds_the_file_keeps_what_fits_and_says_so() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("log");
        let mut writer = Writer::new(path.clone(), 1024);
        for _ in 0..100 {
            append(&mut writer, Stream::Stdout, &[b'x'; 100]);
        }
        let summary = writer.finish();
        assert_eq!(summary.bytes + summary.dropped, 10_000);
        assert_eq!(summary.error, None);
        let frames = texts(&path);
        let kept: usize =
            frames.iter().filter(|(stream, _)| *stream == Stream::Stdout).map(|(_, text)| text.len()).sum();
        assert_eq!(kept as u64, summary.bytes);
        let framing = 8 + HEADER as u64 * (frames.len() as u64 - 2);
        assert_eq!(summary.bytes + framing, 1024);
        let notes: Vec<_> = frames
            .iter()
            .filter(|(stream, _)| *stream == Stream::Note)
            .map(|(_, text)| text.as_str())
            .collect();
        assert_eq!(
            notes,
            [
                "log cap of 1 KiB reached; output beyond it is dropped",
                format!("{} bytes dropped", summary.dropped).as_str()
            ]
        );
    }

    #[test]
    fn a_log_that_cannot_be_written_is_reported_and_counted() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join("file");
        std::fs::write(&file, "").expect("write");
        let mut writer = Writer::new(file.join("log"), 1024);
        append(&mut writer, Stream::Stdout, b"lost");
        let summary = writer.finish();
        assert_eq!((summary.bytes, summary.dropped), (0, 4));
        assert!(summary.error.expect("an error").contains("cannot write the log"));
    }

    #[test]
    fn a_full_disk_tears_no_frame() {
        let mut writer = Writer::new(PathBuf::from("/dev/full"), 1024);
        writer.file = Some(OpenOptions::new().append(true).open("/dev/full").expect("open"));
        append(&mut writer, Stream::Stdout, b"lost");
        assert_eq!(writer.length, 0);
        let summary = writer.finish();
        assert_eq!((summary.bytes, summary.dropped), (0, 4));
        assert!(summary.error.expect("an error").contains("No space left"));
    }
}
