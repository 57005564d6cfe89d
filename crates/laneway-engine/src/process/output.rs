//! Reads what a step left at `$LANEWAY_OUTPUT`, without trusting what lies there.
//!
//! The path belongs to the step: a pipe must not hang the attempt, a link must not make Laneway read
//! another file, and a huge file must not fill the memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use laneway_core::output::{Error, LIMIT, parse};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Map, Value};

/// Reads, parses and removes the file. None there is an empty output.
pub(super) fn take(path: &Path) -> Result<Map<String, Value>, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let result = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => read(File::from(file)),
        Err(Errno::NOENT) => return Ok(Map::new()),
        // A link, or a socket.
        Err(Errno::LOOP | Errno::NXIO) => Err(not_a_file()),
        Err(error) => Err(unreadable(&error.into())),
    };
    let removed = match std::fs::remove_file(path) {
        // An empty directory goes too. One with content is left alone: nothing is removed recursively.
        Err(_) if path.is_dir() => std::fs::remove_dir(path),
        other => other,
    };
    if let Err(error) = removed {
        tracing::warn!("cannot remove {}: {error}", path.display());
    }
    result
}

fn read(file: File) -> Result<Map<String, Value>, Error> {
    let is_file = file.metadata().map_err(|error| unreadable(&error))?.is_file();
    if !is_file {
        return Err(not_a_file());
    }
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to know that it is too large.
    file.take(LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    parse(&bytes)
}

fn not_a_file() -> Error {
    Error {
        line: None,
        message: "what lies at $LANEWAY_OUTPUT is not a plain file; write to the path itself".to_owned(),
    }
}

fn unreadable(error: &io::Error) -> Error {
    Error { line: None, message: format!("what was written to $LANEWAY_OUTPUT cannot be read: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_file_is_read_and_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("output");
        assert!(take(&path).expect("none").is_empty());
        std::fs::write(&path, "a=1\n").expect("write");
        assert_eq!(take(&path).expect("good")["a"], "1");
        assert!(!path.exists());
    }

    #[test]
    fn whatever_else_lies_there_is_refused_without_hanging_or_leaking() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("output");
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "a=secret\n").expect("write");
        let plants: [&dyn Fn(); 4] = [
            &|| std::os::unix::fs::symlink(&secret, &path).expect("plant"),
            &|| std::fs::create_dir(&path).expect("plant"),
            &|| {
                let fifo = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, Mode::RUSR, 0).expect("plant");
            },
            &|| drop(std::os::unix::net::UnixListener::bind(&path).expect("plant")),
        ];
        for plant in plants {
            plant();
            let error = take(&path).expect_err("refused");
            assert!(error.message.contains("not a plain file"), "{error}");
            assert!(std::fs::symlink_metadata(&path).is_err(), "it is removed");
        }
        assert!(secret.exists());
    }

    #[test]
    fn a_huge_file_is_refused_after_reading_no_more_than_the_limit() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("output");
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        let error = take(&path).expect_err("refused");
        assert!(error.message.contains("larger than 256 KiB"), "{error}");
    }
}
