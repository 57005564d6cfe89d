//! Results that steps take instead of being executed again, and why one did not: the shapes of `laneway cache`, of
//! `laneway explain`, and of their routes.

use laneway_core::cache::{How, Miss};
use laneway_core::id::RunId;
use laneway_store::cache;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Moment;

/// Why an attempt of a step with `cache` was executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheMiss {
    pub attempt: u32,
    /// never_seen, expired, differs, gone, no_key, not_wanted or again.
    pub why: String,
    /// The same as a sentence.
    pub text: String,
    /// The run whose result it was compared with.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub run: Option<RunId>,
    pub recorded_at: Option<Moment>,
    /// What is not as it was then.
    pub changes: Vec<CacheChange>,
}

/// One thing that a result depends on, and that is not as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheChange {
    /// command, platform, image, container, artifacts, key, env:NAME, file:PATH or files:PATTERN.
    pub part: String,
    /// changed, added or removed.
    pub how: String,
}

/// A result that is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheEntry {
    pub key: String,
    pub workflow: String,
    pub step: String,
    /// The run that recorded it.
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub recorded_at: Moment,
    /// What it took to make it.
    pub took_ms: u64,
    pub bytes: u64,
    /// How often it was taken, about.
    pub hits: u64,
    pub last_used_at: Moment,
}

/// Those that were used last first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CacheList {
    pub entries: Vec<CacheEntry>,
    /// The next page is asked for with this; null on the last one.
    pub next_cursor: Option<String>,
}

/// Results that were forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheCleared {
    pub entries: u64,
    pub bytes: u64,
}

impl From<&cache::Missed> for CacheMiss {
    fn from(missed: &cache::Missed) -> Self {
        let (why, compared, changes) = match &missed.miss {
            Miss::NeverSeen => ("never_seen", None, &[][..]),
            Miss::Expired { run, recorded_at, .. } => ("expired", Some((*run, *recorded_at)), &[][..]),
            Miss::Differs { run, recorded_at, changes } => {
                ("differs", Some((*run, *recorded_at)), changes.as_slice())
            }
            Miss::Gone { run, recorded_at } => ("gone", Some((*run, *recorded_at)), &[][..]),
            Miss::NoKey { .. } => ("no_key", None, &[][..]),
            Miss::NotWanted => ("not_wanted", None, &[][..]),
            Miss::Again => ("again", None, &[][..]),
        };
        let how = |how: How| match how {
            How::Changed => "changed",
            How::Added => "added",
            How::Removed => "removed",
        };
        let change = |change: &laneway_core::cache::Change| CacheChange {
            part: change.part.as_stored(),
            how: how(change.how).to_owned(),
        };
        Self {
            attempt: missed.attempt,
            why: why.to_owned(),
            text: missed.miss.to_string(),
            run: compared.map(|(run, _)| run),
            recorded_at: compared.map(|(_, at)| Moment(at)),
            changes: changes.iter().map(change).collect(),
        }
    }
}

impl From<&cache::ResultView> for CacheEntry {
    fn from(view: &cache::ResultView) -> Self {
        Self {
            key: view.key.to_string(),
            workflow: view.workflow.clone(),
            step: view.step.clone(),
            run: view.run,
            recorded_at: Moment(view.recorded_at),
            took_ms: view.took_ms,
            bytes: view.bytes,
            hits: view.hits,
            last_used_at: Moment(view.last_used_at),
        }
    }
}
