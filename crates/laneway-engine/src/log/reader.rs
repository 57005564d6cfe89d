//! Reads the log of an attempt: from the start, its last lines, or onwards while it grows.
//!
//! A frame that is not whole yet, or was torn by a crash, is not handed out. Memory is bounded by one
//! read and one frame, whatever the size of the file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::decoder::Decoder;
use super::format::{Error, Frame};
use super::lines::{Line, Lines};

/// Opens a log that exists. An attempt that printed nothing has none: [`Follower`] treats that as empty.
pub fn read(path: &Path) -> Result<Frames, Error> {
    let mut follower = Follower::new(path.to_owned(), 0);
    follower.open()?;
    if follower.file.is_none() {
        return Err(follower.io_error(io::ErrorKind::NotFound.into()));
    }
    Ok(Frames { follower, ended: false })
}

/// All whole frames of a log; an error ends it.
#[derive(Debug)]
pub struct Frames {
    follower: Follower,
    ended: bool,
}

impl Iterator for Frames {
    type Item = Result<Frame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.follower.next_frame().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Continues where it stopped. Whoever follows a live attempt asks until it gets none, waits to be
/// told (or for a moment), and asks a last time after the attempt's end.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: Option<File>,
    decoder: Decoder,
}

impl Follower {
    /// `offset` is 0 or what [`Follower::offset`] said before. The file may not exist yet.
    pub fn new(path: PathBuf, offset: u64) -> Self {
        Self { decoder: Decoder::new(path.clone(), offset), path, file: None }
    }

    /// Where to go on, in another process if need be.
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// The next whole frame; none if there is none yet.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        const READ: usize = 64 * 1024;
        self.open()?;
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(Some(frame));
            }
            let Some(file) = &self.file else { return Ok(None) };
            let mut buffer = vec![0; READ];
            let read = file.read_at(&mut buffer, self.decoder.wanted());
            let read = read.map_err(|error| self.io_error(error))?;
            if read == 0 {
                self.decoder.forget_half();
                return Ok(None);
            }
            self.decoder.push(&buffer[..read]);
        }
    }

    fn open(&mut self) -> Result<(), Error> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.io_error(error)),
            }
        }
        Ok(())
    }

    fn io_error(&self, source: io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }
}

/// The end of a log, as shown for a step that failed.
#[derive(Debug)]
pub struct Tail;

impl Tail {
    /// The last `count` lines of all streams in the order in which they ended; none if there is no log.
    pub fn last_lines(path: &Path, count: usize) -> Result<Vec<Line>, Error> {
        let mut follower = Follower::new(path.to_owned(), 0);
        let mut lines = Lines::default();
        let mut last = VecDeque::new();
        let mut keep = |line| {
            if last.len() == count {
                last.pop_front();
            }
            if count > 0 {
                last.push_back(line);
            }
        };
        while let Some(frame) = follower.next_frame()? {
            lines.push(&frame).into_iter().for_each(&mut keep);
        }
        lines.finish().into_iter().for_each(&mut keep);
        Ok(last.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{HEADER, MAGIC};
    use super::super::{Stream, Writer};
    use super::*;

    fn append(writer: &mut Writer, stream: Stream, bytes: &[u8]) {
        let mut framed = vec![0; HEADER];
        framed.extend_from_slice(bytes);
        writer.append(stream, &mut framed);
    }

    fn sample(path: &Path, frames: usize) -> Vec<u8> {
        let mut writer = Writer::new(path.to_owned(), 1 << 30);
        for index in 0..frames {
            append(&mut writer, Stream::Stdout, format!("line {index}\n").as_bytes());
        }
        writer.finish();
        std::fs::read(path).expect("read")
    }

    #[test]
    fn a_torn_tail_ends_the_log_at_the_last_whole_frame() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("log");
        let bytes = sample(&path, 3);
        let frame = (bytes.len() - MAGIC.len()) / 3;
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).expect("write");
            let whole: Result<Vec<_>, _> = read(&path).expect("opens").collect();
            let whole = whole.expect("no error in a torn log").len();
            assert_eq!(whole, cut.saturating_sub(MAGIC.len()) / frame, "cut at {cut}");
        }
    }

    #[test]
    fn a_follower_goes_on_where_it_stopped_also_in_a_new_life() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("log");
        let mut follower = Follower::new(path.clone(), 0);
        assert!(follower.next_frame().expect("no file yet").is_none());
        let mut writer = Writer::new(path.clone(), 1 << 20);
        append(&mut writer, Stream::Stdout, b"one");
        assert_eq!(follower.next_frame().expect("reads").expect("a frame").bytes, b"one");
        assert!(follower.next_frame().expect("reads").is_none());
        append(&mut writer, Stream::Stderr, b"two");
        let mut second = Follower::new(path, follower.offset());
        for follower in [&mut follower, &mut second] {
            let frame = follower.next_frame().expect("reads").expect("a frame");
            assert_eq!((frame.stream, frame.bytes), (Stream::Stderr, b"two".to_vec()));
            assert!(frame.unix_ms > 1_600_000_000_000);
        }
    }

    #[test]
    fn half_a_frame_that_its_writer_cuts_off_is_forgotten() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("log");
        let bytes = sample(&path, 2);
        let frame = (bytes.len() - MAGIC.len()) / 2;
        std::fs::write(&path, &bytes[..MAGIC.len() + frame + 5]).expect("write");
        let mut follower = Follower::new(path.clone(), 0);
        assert!(follower.next_frame().expect("reads").is_some());
        assert!(follower.next_frame().expect("reads").is_none());
        let mut other = bytes[..MAGIC.len() + frame].to_vec();
        other.extend([2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'o', b'k']);
        std::fs::write(&path, other).expect("write");
        let next = follower.next_frame().expect("reads").expect("a frame");
        assert_eq!((next.stream, next.bytes), (Stream::Stderr, b"ok".to_vec()));
    }

    #[test]
    fn damage_and_foreign_files_are_told_apart_from_the_end() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("log");
        let mut bytes = sample(&path, 1);
        bytes.extend([9; 40]);
        std::fs::write(&path, &bytes).expect("write");
        let results: Vec<_> = read(&path).expect("opens").collect();
        assert!(matches!(results.as_slice(), [Ok(_), Err(Error::Damaged { .. })]));
        std::fs::write(&path, "some other file").expect("write");
        assert!(matches!(read(&path).expect("opens").next(), Some(Err(Error::NotALog { .. }))));
        assert!(matches!(read(&dir.path().join("none")), Err(Error::Io { .. })));
    }

    #[test]
    fn the_last_lines_are_the_last_lines() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("log");
        assert!(Tail::last_lines(&path, 5).expect("no log is no lines").is_empty());
        sample(&path, 5000);
        let texts = |count| -> Vec<String> {
            let lines = Tail::last_lines(&path, count).expect("reads");
            lines.iter().map(|line| line.text().into_owned()).collect()
        };
        assert_eq!(texts(2), ["line 4998", "line 4999"]);
        assert_eq!(texts(0), Vec::<String>::new());
        assert_eq!(texts(10_000).len(), 5000);
    }
}
