//! The counted passes: commits, statements and fsyncs of a run, apart from the timed rounds, because counting
//! slows. Fsyncs are counted by strace, which slows so much that more commits are made; commits and statements
//! therefore come from a run of their own, which only the store itself counts.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::meter::Job;
use crate::subject::Subject;

/// What can be counted of one run. Only Laneway tells what its store did.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Counted {
    pub(crate) syncs: u64,
    pub(crate) commits: Option<u64>,
    pub(crate) statements: Option<u64>,
}

pub(crate) fn count(subject: Subject, job: &Job, work: &Path) -> Result<Counted> {
    let summary = work.join("calls");
    let file = crate::subject::text(&summary)?;
    let calls = "trace=fsync,fdatasync,sync_file_range,msync";
    job.run_behind(&["strace", "-f", "--seccomp-bpf", "-c", "-U", "calls,name", "-e", calls, "-o", file])?;
    let text = std::fs::read_to_string(&summary).context("strace wrote no summary")?;
    let (commits, statements) = match subject {
        Subject::Laneway => told_by_the_store(job)?,
        Subject::Spawn | Subject::Peer(_) => (None, None),
    };
    Ok(Counted { syncs: sum(&text)?, commits, statements })
}

fn told_by_the_store(job: &Job) -> Result<(Option<u64>, Option<u64>)> {
    let mut job = job.clone();
    job.env.push(("LANEWAY_LOG".to_owned(), "laneway_store::counts=debug".to_owned()));
    let told = job.run_behind(&[])?;
    Ok((number(&told, "commits="), number(&told, "statements=")))
}

/// strace's summary: a line a call, its number first; nothing at all when there was no call.
fn sum(summary: &str) -> Result<u64> {
    let lines = summary.lines().filter(|line| line.contains("sync"));
    let counts = lines.map(|line| line.split_whitespace().next().and_then(|calls| calls.parse::<u64>().ok()));
    counts.sum::<Option<u64>>().with_context(|| format!("strace's summary is not as expected: {summary}"))
}

fn number(told: &str, name: &str) -> Option<u64> {
    told.split(name).nth(1)?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_over_their_names() {
        let summary = "    calls syscall\n--------- ----------------\n       12 fdatasync\n        3 fsync\n       15 total\n";
        assert_eq!(sum(summary).expect("a summary"), 15);
        assert_eq!(sum("").expect("no calls"), 0);
        assert!(sum("many fsync").is_err());
    }

    #[test]
    fn numbers_are_found_by_their_names() {
        assert_eq!(
            number("DEBUG the writer has ended commits=7 statements=99 wal_frames=3\n", "statements="),
            Some(99)
        );
        assert_eq!(number("nothing", "commits="), None);
    }
}
