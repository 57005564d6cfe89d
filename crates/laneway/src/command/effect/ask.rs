//! Questions on the socket of an attempt: as much of HTTP as that takes, on one connection that stays open while the command runs. By
//! its end the node knows that we are gone.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use laneway_core::effect::EffectId;

/// An answer is at most what is recorded, twice.
const MAX_ANSWER: u64 = 1024 * 1024;

pub(super) struct Line {
    stream: BufReader<UnixStream>,
}

/// An answer, whatever it says.
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What is asked about.
pub(super) struct Target(String);

impl Target {
    pub(super) fn of(base: &str, id: &EffectId) -> Self {
        Self(format!("{base}/{}?key={}", id.name, encoded(&id.key)))
    }

    pub(super) fn with(self, name: &str, value: &str) -> Self {
        Self(format!("{}&{name}={}", self.0, encoded(value)))
    }
}

impl Line {
    pub(super) fn open(socket: &Path) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(UnixStream::connect(socket)?) })
    }

    pub(super) fn ask(
        &mut self,
        method: &str,
        target: &Target,
        headers: &[(&str, String)],
        body: &[&[u8]],
    ) -> io::Result<Reply> {
        let length: usize = body.iter().map(|part| part.len()).sum();
        let mut head =
            format!("{method} {} HTTP/1.1\r\nhost: laneway\r\ncontent-length: {length}\r\n", target.0);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        body.iter().try_for_each(|part| stream.write_all(part))?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<Reply> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("it answers with {what}"));
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| bad(&format!("`{first}`")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad(&format!("`{line}`")))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        let length = reply.header("content-length").map_or(Ok(0), str::parse::<u64>);
        let length = length.ok().filter(|length| *length <= MAX_ANSWER).ok_or_else(|| bad("too much"))?;
        let read = (&mut self.stream).take(length).read_to_end(&mut reply.body)?;
        if read as u64 == length { Ok(reply) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if (&mut self.stream).take(16 * 1024).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
