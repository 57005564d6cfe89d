//! The log that is looked at: its newest lines, where the reader is in them, and what is searched for. Pure, and bounded:
//! of a log that is larger than what is kept the beginning is let go, and that is said.

use std::collections::VecDeque;

use laneway_engine::log::Stream;
use laneway_store::model::LogName;

use super::ansi::{self, Styled};
use super::message::LogPart;
use super::model::Go;

/// Lines and bytes of text that are kept.
const MAX_LINES: usize = 100_000;
const MAX_BYTES: usize = 24 << 20;

/// A line of a step, safe to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) unix_ms: u64,
    pub(super) stream: Stream,
    pub(super) text: Styled,
}

impl LogLine {
    pub(super) fn new(unix_ms: u64, stream: Stream, text: &str) -> Self {
        Self { unix_ms, stream, text: ansi::safe(text) }
    }
}

#[derive(Debug)]
pub(super) struct Log {
    pub(super) of: LogName,
    pub(super) lines: VecDeque<LogLine>,
    bytes: usize,
    /// How many lines were let go.
    pub(super) dropped: u64,
    /// Where the next part begins.
    pub(super) offset: u64,
    /// All of an attempt that has ended was read.
    pub(super) is_over: bool,
    pub(super) may_lack_end: bool,
    /// Whether the end is kept in sight.
    pub(super) is_following: bool,
    /// The last line in sight, where it is not followed.
    pub(super) bottom: usize,
    pub(super) wraps: bool,
    pub(super) has_times: bool,
    pub(super) search: String,
    /// The line that was found last.
    pub(super) found: Option<usize>,
}

impl Log {
    pub(super) fn new(of: LogName) -> Self {
        Self {
            of,
            lines: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            offset: 0,
            is_over: false,
            may_lack_end: false,
            is_following: true,
            bottom: 0,
            wraps: true,
            has_times: false,
            search: String::new(),
            found: None,
        }
    }

    /// The log of another attempt of the same task, shown in the same way.
    pub(super) fn of_attempt(&self, attempt: u32) -> Self {
        let of = LogName { attempt, ..self.of.clone() };
        Self { search: self.search.clone(), wraps: self.wraps, has_times: self.has_times, ..Self::new(of) }
    }

    /// Adds what has come; a part of another log, or one that was added before, is none of it.
    pub(super) fn take(&mut self, part: LogPart) {
        if part.of != self.of || part.next_offset < self.offset {
            return;
        }
        self.offset = part.next_offset;
        self.may_lack_end = part.may_lack_end;
        for line in part.lines {
            self.bytes += line.text.bytes();
            self.lines.push_back(line);
        }
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES && self.lines.len() > 1 {
            if let Some(gone) = self.lines.pop_front() {
                self.bytes -= gone.text.bytes();
            }
            self.dropped += 1;
            self.bottom = self.bottom.saturating_sub(1);
            self.found = self.found.and_then(|found| found.checked_sub(1));
        }
        self.is_over = part.is_end;
    }

    /// The last line in sight.
    pub(super) fn bottom(&self) -> usize {
        let last = self.lines.len().saturating_sub(1);
        if self.is_following { last } else { self.bottom.min(last) }
    }

    /// `page` lines fit.
    pub(super) fn go(&mut self, go: Go, page: usize) {
        let last = self.lines.len().saturating_sub(1);
        let first = page.saturating_sub(1).min(last);
        let to = match go {
            Go::First => first,
            Go::By(_) | Go::Last | Go::To(_) => go.from(self.bottom(), self.lines.len()).max(first),
        };
        self.bottom = to;
        self.is_following = to == last && go != Go::To(to);
    }

    /// Goes to the next line that holds what is searched for, or to the one before.
    pub(super) fn find(&mut self, is_forward: bool, page: usize) -> bool {
        if self.search.is_empty() || self.lines.is_empty() {
            return false;
        }
        let needle = self.search.to_lowercase();
        let count = self.lines.len();
        let start = self.found.unwrap_or_else(|| if is_forward { count - 1 } else { 0 });
        let order = (1..=count)
            .map(|by| if is_forward { (start + by) % count } else { (start + count - by % count) % count });
        let mut order = order.filter(|at| self.lines[*at].text.text.to_lowercase().contains(&needle));
        let Some(found) = order.next() else { return false };
        self.found = Some(found);
        // In the middle, so that what is around it is seen.
        self.bottom = (found + page / 2).min(count - 1).max(page.saturating_sub(1).min(count - 1));
        self.is_following = false;
        true
    }
}
