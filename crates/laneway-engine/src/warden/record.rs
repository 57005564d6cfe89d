//! What the node tells the guardian: memory that both share, which the node overwrites and the guardian reads when it
//! has to decide. No message has to arrive: a renewal is visible at once, also while the warden is frozen.
//!
//! The node writes a record with one call. Its number stands at both ends, so that the reader recognises
//! a record that it caught half-written.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use super::protocol::{Decoder, Encoder, Frames, millis};

/// More than the names of all containers of a node take.
const MAX_RECORD: usize = 1 << 20;

/// What is known of the node.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// End of the lease, on the clock of `boot_time`. `None` until the node has named it.
    pub(super) until: Option<Duration>,
    /// Containers that must not outlive the lease: the address of their engine, and their name.
    pub(super) containers: Vec<(OsString, OsString)>,
}

/// The node's end.
#[derive(Debug)]
pub(super) struct RecordWriter {
    memory: File,
    number: u64,
}

/// The guardian's end.
#[derive(Debug)]
pub(super) struct RecordReader(File);

impl RecordWriter {
    pub(super) fn new() -> io::Result<Self> {
        let memory = memfd_create("laneway-lease", MemfdFlags::CLOEXEC)?;
        Ok(Self { memory: memory.into(), number: 0 })
    }

    /// Opens the end of the guardian. It can only be read: what a guardian prints must not overwrite a record.
    pub(super) fn reader(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.memory.as_raw_fd()))
    }

    pub(super) fn write(&mut self, record: &Record) -> io::Result<()> {
        self.number += 1;
        self.memory.write_all_at(&record.encode(self.number), 0)
    }
}

impl RecordReader {
    pub(super) fn new(memory: File) -> Self {
        Self(memory)
    }

    /// Returns `None` before the first record, and for one that is being written.
    pub(super) fn read(&self) -> Option<Record> {
        let length = usize::try_from(self.0.metadata().ok()?.len()).ok()?;
        let mut bytes = vec![0; length.min(MAX_RECORD)];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        Record::decode(&bytes)
    }
}

impl Record {
    fn encode(&self, number: u64) -> Vec<u8> {
        let mut bytes = Encoder::default();
        // Zero is no moment that a lease ends at.
        bytes.number(number).number(self.until.map_or(0, millis)).number(self.containers.len() as u64);
        for (host, name) in &self.containers {
            bytes.bytes(host).bytes(name);
        }
        bytes.number(number).finish()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut frames = Frames::default();
        frames.add(bytes);
        let mut body = Decoder(frames.next().ok()??);
        let (number, until) = (body.number()?, body.number()?);
        let containers =
            (0..body.number()?).map(|_| Some((body.bytes()?, body.bytes()?))).collect::<Option<_>>()?;
        let until = (until > 0).then(|| Duration::from_millis(until));
        (body.number()? == number).then_some(Self { until, containers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(until: u64, containers: &[&str]) -> Record {
        let containers = containers.iter().map(|name| ("unix:///run/x.sock".into(), name.into())).collect();
        Record { until: Some(Duration::from_millis(until)), containers }
    }

    #[test]
    fn guardian_reads_the_last_record_also_after_a_longer_one() {
        let mut writer = RecordWriter::new().expect("memory");
        let reader = RecordReader::new(writer.reader().expect("opened"));
        assert_eq!(reader.read(), None, "nothing is written yet");
        for record in [record(1, &["a", "b"]), record(2, &[]), record(3, &["c"])] {
            writer.write(&record).expect("written");
            assert_eq!(reader.read(), Some(record));
        }
    }

    #[test]
    fn half_of_a_record_is_none() {
        let (old, new) = (record(1, &["a"]), record(2, &["b"]));
        let (old_bytes, new_bytes) = (old.encode(1), new.encode(2));
        for end in 0..new_bytes.len() {
            let torn: Vec<u8> = new_bytes[..end].iter().chain(&old_bytes[end..]).copied().collect();
            // Where all that differs is written, or nothing of it, the record is whole.
            assert!(Record::decode(&torn).is_none_or(|read| read == old || read == new), "{end}");
        }
    }

    #[test]
    fn guardian_cannot_write() {
        let writer = RecordWriter::new().expect("memory");
        assert!(writer.reader().expect("opened").write_all_at(b"x", 0).is_err());
    }
}
