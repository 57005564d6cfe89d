//! Stored results that steps reuse instead of running again: inputs and outputs of the verbs. The
//! store never computes a key: `laneway_core::cache` decides what it is made of. See
//! `docs/design/cache.md`.

use std::time::Duration;

use laneway_core::cache::{Miss, Parts, Recorded};
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::time::Millis;
use serde_json::{Map, Value};

use crate::layer::NewLayer;
use crate::model::Artifact;

/// Number of newest results of a step that a key without a result is compared with.
pub(crate) const COMPARED: i64 = 8;

/// Maximum number of results that one transaction removes.
pub(crate) const FORGOTTEN: usize = 200;

/// A lookup of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub workflow: String,
    pub step: String,
    pub key: ContentHash,
    /// Maximum age of a result, by the store's clock.
    pub ttl: Option<Duration>,
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    Hit(Box<Hit>),
    /// A result of this key, older than `ttl`.
    Expired {
        run: RunId,
        recorded_at: Millis,
    },
    /// No result of this key: the stored results of the step, newest first.
    Others(Vec<Recorded>),
}

/// A stored result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub key: ContentHash,
    /// The run that recorded it. It may have been removed.
    pub from: RunId,
    pub recorded_at: Millis,
    pub exit_code: Option<i32>,
    pub output: Map<String, Value>,
    /// In the order of names.
    pub artifacts: Vec<Artifact>,
    /// Changes in its view of the files, if it had a view.
    pub layer: Option<Box<NewLayer>>,
}

impl Hit {
    /// Returns the text for a task that reused this result.
    pub(crate) fn detail(&self) -> String {
        format!("the result of run {} of {}", self.from.short(), self.recorded_at)
    }
}

/// The result of an attempt that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct NewResult {
    pub workflow: String,
    pub step: String,
    pub key: ContentHash,
    pub parts: Parts,
    pub run: RunId,
    pub took: Duration,
    pub exit_code: Option<i32>,
    pub output: Map<String, Value>,
    /// They must be stored already.
    pub artifacts: Vec<Artifact>,
    /// It must be stored already.
    pub layer: Option<Box<NewLayer>>,
}

impl NewResult {
    /// Returns its size in bytes: its files, its output and the parts of its key.
    pub(crate) fn bytes(&self, output: Option<&str>, parts: &str) -> i64 {
        let files: u64 = self.artifacts.iter().map(|artifact| artifact.size).sum();
        let layer = self.layer.as_ref().map_or(0, |layer| layer.bytes);
        let texts = output.map_or(0, str::len) + parts.len();
        i64::try_from(files.saturating_add(layer).saturating_add(texts as u64)).unwrap_or(i64::MAX)
    }
}

/// Why an attempt ran although its step has a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    pub attempt: u32,
    pub miss: Miss,
}

/// A result for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultView {
    pub key: ContentHash,
    pub workflow: String,
    pub step: String,
    pub run: RunId,
    pub recorded_at: Millis,
    /// Time that its attempt took, and that each hit saves.
    pub took_ms: u64,
    pub bytes: u64,
    /// Best effort: a hit may be missing.
    pub hits: u64,
    pub last_used_at: Millis,
}

/// A position in the list of results: the last one that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    pub last_used_at: Millis,
    pub key: ContentHash,
}

/// Selects results: all, those of a workflow, or those of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    pub workflow: Option<String>,
    pub step: Option<String>,
}

/// The retention of results. `None` keeps all of them. A result goes as soon as either bound
/// releases it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepResults {
    /// Time since the result was recorded or last reused.
    pub for_: Option<Duration>,
    /// Total size in bytes. The least recently used results go first.
    pub bytes: Option<u64>,
}

impl KeepResults {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// Results that were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub results: u64,
    /// Files among these bytes go with the next sweep, unless something else refers to them.
    pub bytes: u64,
}

impl Forgotten {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.results += 1;
        self.bytes += bytes;
    }
}

/// A removable result: its key, its size in bytes, and when it was last used.
pub(crate) type Unused = (String, u64, i64);

/// Returns which results to remove. `total` is the size of all results, in bytes. `unused` is in
/// the order of last use, the oldest first.
pub(crate) fn beyond(keep: KeepResults, now: Millis, total: u64, unused: &[Unused]) -> Vec<&Unused> {
    let cutoff = keep.for_.map_or(i64::MIN, |span| now.before(span).0);
    let mut left = total;
    let goes = |(_, bytes, used_at): &&Unused| {
        let is_too_old = *used_at < cutoff;
        let is_too_much = keep.bytes.is_some_and(|keep| left > keep);
        left = left.saturating_sub(*bytes);
        is_too_old || is_too_much
    };
    unused.iter().take_while(goes).collect()
}

/// Returns the stored form of a miss.
pub(crate) fn miss_text(miss: &Miss) -> String {
    serde_json::to_string(miss).expect("texts and numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_were_used_longest_ago_go_by_age_and_until_the_rest_fits() {
        let unused: Vec<Unused> =
            [(50, 10), (30, 20), (20, 30)].map(|(bytes, at)| (at.to_string(), bytes, at)).to_vec();
        let gone = |for_: Option<u64>, bytes| {
            let keep = KeepResults { for_: for_.map(Duration::from_millis), bytes };
            beyond(keep, Millis(100), 100, &unused).len()
        };
        assert_eq!(gone(None, None), 0);
        assert_eq!(gone(None, Some(100)), 0);
        assert_eq!(gone(None, Some(99)), 1);
        assert_eq!(gone(None, Some(50)), 1);
        assert_eq!(gone(None, Some(49)), 2);
        assert_eq!(gone(None, Some(0)), 3);
        assert_eq!(gone(Some(90), None), 0);
        assert_eq!(gone(Some(75), None), 2);
        assert_eq!(gone(Some(89), Some(20)), 2);
    }
}
