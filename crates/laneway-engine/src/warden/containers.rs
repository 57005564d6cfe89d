//! The containers of a node that must not outlive it. They are no children of the warden: it knows them by name, and asks the
//! container engine to remove them, with the smallest client there is. One that is stuck holds up no other.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// An engine that does not answer within this is asked again.
const ANSWER: Duration = Duration::from_secs(10);
/// Between questions.
const PAUSE: Duration = Duration::from_millis(200);
/// A create or a start may still have been under way when the node died: so long a name that is not there is looked for.
const LATE: Duration = Duration::from_secs(2);
/// So long it is tried to remove one; whoever comes after us removes what is left.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Containers {
    /// By name, with the address of its engine.
    held: BTreeMap<String, String>,
    /// How many are being removed.
    under_way: Arc<AtomicUsize>,
}

impl Containers {
    pub(super) fn hold(&mut self, host: &OsStr, name: &OsStr) {
        self.held.insert(name.to_string_lossy().into_owned(), host.to_string_lossy().into_owned());
    }

    pub(super) fn release(&mut self, name: &OsStr) {
        self.held.remove(name.to_string_lossy().as_ref());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Begins to remove all of them, each on a thread of its own.
    pub(super) fn remove_all(&mut self) {
        for (name, host) in std::mem::take(&mut self.held) {
            let under_way = Arc::clone(&self.under_way);
            under_way.fetch_add(1, Ordering::AcqRel);
            let job = move || {
                remove(&host, &name);
                under_way.fetch_sub(1, Ordering::AcqRel);
            };
            // Without a thread it stays for whoever clears up after us.
            if let Err(error) = std::thread::Builder::new().name("container".to_owned()).spawn(job) {
                tracing::debug!(%error, "no thread to remove a container");
                self.under_way.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// Waits until none is being removed, or for as long as the warden has.
    pub(super) fn wait(&self, until: Instant) {
        while self.under_way.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn remove(host: &str, name: &str) {
    let begun = Instant::now();
    let mut was_there = false;
    while begun.elapsed() < PATIENCE {
        match ask(host, name) {
            // Removed, or somebody else is at it.
            Ok(204 | 409) => was_there = true,
            Ok(404) if was_there || begun.elapsed() > LATE => return,
            // Not there yet, not able to, or away.
            Ok(_) | Err(_) => {}
        }
        std::thread::sleep(PAUSE);
    }
}

/// The status of the answer.
fn ask(host: &str, name: &str) -> io::Result<u16> {
    let path = host.strip_prefix("unix://").or_else(|| host.starts_with('/').then_some(host));
    match path {
        Some(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER))?;
            stream.set_write_timeout(Some(ANSWER))?;
            converse(stream, name)
        }
        None => {
            let address = host.split_once("://").map_or(host, |(_, address)| address);
            let stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(ANSWER))?;
            stream.set_write_timeout(Some(ANSWER))?;
            converse(stream, name)
        }
    }
}

/// Without a version in the path every engine answers in its own. Names are made by Laneway and need no escapes.
fn converse(mut stream: impl io::Read + io::Write, name: &str) -> io::Result<u16> {
    write!(
        stream,
        "DELETE /containers/{name}?force=true&v=true HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = Vec::new();
    // `HTTP/1.1 204`: what follows is not needed.
    stream.take(12).read_to_end(&mut head)?;
    let status = head.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_plain_and_of_the_answer_the_status_is_read() {
        #[derive(Debug, Default)]
        struct Line(Vec<u8>, io::Cursor<Vec<u8>>);
        impl io::Read for Line {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.1.read(into)
            }
        }
        impl io::Write for Line {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut line = Line(Vec::new(), io::Cursor::new(b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec()));
        assert_eq!(converse(&mut line, "laneway-1-a-a1").expect("a status"), 404);
        assert!(line.0.starts_with(b"DELETE /containers/laneway-1-a-a1?force=true&v=true HTTP/1.1\r\n"));
        let mut line = Line(Vec::new(), io::Cursor::new(b"SSH-2.0-x".to_vec()));
        assert!(converse(&mut line, "x").is_err());
    }
}
