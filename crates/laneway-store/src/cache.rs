//! Results that steps take instead of being executed again: the words of the verbs that keep and find them. What a key is made of is
//! core's (`cache.rs` there). `docs/design/cache.md` says why.

use std::time::Duration;

use laneway_core::cache::{Miss, Parts, Recorded};
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::time::Millis;
use serde_json::{Map, Value};

use crate::layer::NewLayer;
use crate::model::Artifact;

/// Results of a step that a key which is not there is compared with, the newest.
pub(crate) const COMPARED: i64 = 8;

/// Results that one transaction forgets.
pub(crate) const FORGOTTEN: usize = 200;

/// A key that somebody looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub workflow: String,
    pub step: String,
    pub key: ContentHash,
    /// How old a result may be, by the store's clock.
    pub ttl: Option<Duration>,
}

/// What became of a look.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    Hit(Box<Hit>),
    /// The very key, and too old.
    Expired {
        run: RunId,
        recorded_at: Millis,
    },
    /// Another one: what is kept of the step, newest first.
    Others(Vec<Recorded>),
}

/// A result that was recorded before.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub key: ContentHash,
    /// The run that recorded it; it may be gone.
    pub from: RunId,
    pub recorded_at: Millis,
    pub exit_code: Option<i32>,
    pub output: Map<String, Value>,
    /// By name.
    pub artifacts: Vec<Artifact>,
    /// What it changed in its view of the files, if that was a view.
    pub layer: Option<Box<NewLayer>>,
}

impl Hit {
    /// What people are told of a task that took it.
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
    /// They must be kept already.
    pub artifacts: Vec<Artifact>,
    /// It must be in the store.
    pub layer: Option<Box<NewLayer>>,
}

impl NewResult {
    /// What it takes up: its files, its output and what its key is made of.
    pub(crate) fn bytes(&self, output: Option<&str>, parts: &str) -> i64 {
        let files: u64 = self.artifacts.iter().map(|artifact| artifact.size).sum();
        let layer = self.layer.as_ref().map_or(0, |layer| layer.bytes);
        let texts = output.map_or(0, str::len) + parts.len();
        i64::try_from(files.saturating_add(layer).saturating_add(texts as u64)).unwrap_or(i64::MAX)
    }
}

/// Why an attempt was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    pub attempt: u32,
    pub miss: Miss,
}

/// A result as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultView {
    pub key: ContentHash,
    pub workflow: String,
    pub step: String,
    pub run: RunId,
    pub recorded_at: Millis,
    /// What it took to make it, and what each hit saves.
    pub took_ms: u64,
    pub bytes: u64,
    /// Best effort: one may be missing.
    pub hits: u64,
    pub last_used_at: Millis,
}

/// A result as a place in their list, behind which others stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    pub last_used_at: Millis,
    pub key: ContentHash,
}

/// Which results are meant: all, or those of a workflow, or of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    pub workflow: Option<String>,
    pub step: Option<String>,
}

/// How many results are kept. `None` is all of them; what any of both lets go goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepResults {
    /// For so long after they were recorded or last taken.
    pub for_: Option<Duration>,
    /// So many bytes; those that were used longest ago go first.
    pub bytes: Option<u64>,
}

impl KeepResults {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// Results that went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub results: u64,
    /// Files among it go with the next sweep, unless something else refers to them.
    pub bytes: u64,
}

impl Forgotten {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.results += 1;
        self.bytes += bytes;
    }
}

/// One that may go: its key, what it takes up, and when it was last used.
pub(crate) type Unused = (String, u64, i64);

/// Which of those that were used longest ago go, of a `total` of bytes.
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

/// What is stored of a miss.
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
