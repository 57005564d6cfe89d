//! What changes a run, and what is answered; and what an attempt has printed.

use std::borrow::Cow;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Moment;

/// A run that is to be made: of a document, or of a workflow that was submitted before. Exactly one of the two is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The text of a workflow file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The name of the document's workflow, where the document gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of a workflow; its newest version is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Where steps run, an absolute path on the server's host; the directory of the server without it. Of a workflow that
    /// was submitted before, the one it had. Nodes of a store for many hosts give every run a directory of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^/[^\\x00]*$")]
    pub directory: Option<String>,
    /// Hash of the files that go with the document, brought before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub bundle: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// How many tasks may run at once; wins over the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    #[schema(minimum = 1)]
    pub max_parallel: Option<u32>,
    /// Nothing of it starts before somebody resumes it, or lets it go on by one level.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Every step is executed, also where a result was recorded before; what comes of it is recorded anew. The runs that its steps
    /// start keep to it as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// The run waits until this moment, such as 2026-12-24T18:00:00Z, or for this long, such as 90m. Until then
    /// it counts for nothing under `max_runs`; its `timeout` counts from when it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
}

/// A run that is there now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub workflow: String,
}

/// A run that was told to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Canceled {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    /// `running` while steps take their time to stop; nothing new starts.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// Before.
    #[schema(value_type = String)]
    pub was: RunStatus,
    /// Until when steps with `when: always` and hooks may run; nothing where there are none, or no
    /// time is left for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_up_until: Option<Moment>,
}

/// How a run is to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Without clean-up: steps with `when: always` and hooks do not start, and those that run are
    /// stopped. Without this a run that is being canceled already is left alone, so that a request
    /// may be repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// From where on a run is to be tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// This step and everything behind it, whatever became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `last_event` of the run as it was seen: one that went on since is left alone, and so the second half of a double click does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    pub last_event: Option<u64>,
}

/// A run that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reopened {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    /// What will run.
    pub steps: Vec<String>,
}

/// What was paused, or let go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Paused {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    pub paused: bool,
    /// Whether it was not so before.
    pub changed: bool,
}

/// A run goes on by one level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Advanced {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    /// The level that is done now.
    pub level: u32,
}

/// Part of what an attempt printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    pub pieces: Vec<LogPiece>,
    /// Go on from here.
    pub next_offset: u64,
    /// How long the log is by now, in the bytes in which offsets count.
    #[serde(default)]
    pub size: u64,
    /// The attempt has ended: the log grows no more.
    #[serde(default)]
    pub has_ended: bool,
    /// The attempt has ended and there is nothing behind `next_offset`.
    pub is_over: bool,
    /// Its node died: what was printed in the last second before that may be missing
    pub may_lack_end: bool,
}

/// One piece of output: any bytes, not a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPiece {
    pub time: Moment,
    /// stdout, stderr or note.
    pub stream: String,
    /// What is not UTF-8 is replaced.
    pub text: String,
    /// All bytes in hexadecimal, where the text has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
}

impl LogPiece {
    pub fn new(time: Moment, stream: &str, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let hex = match &text {
            Cow::Borrowed(_) => None,
            Cow::Owned(_) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        };
        Self { time, stream: stream.to_owned(), text: text.into_owned(), hex }
    }

    /// What was printed.
    pub fn bytes(&self) -> Vec<u8> {
        let pairs = self.hex.as_deref().map(|hex| hex.as_bytes().chunks(2));
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        pairs
            .and_then(|pairs| pairs.map(byte).collect::<Option<Vec<u8>>>())
            .unwrap_or_else(|| self.text.clone().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_piece_reads_back() {
        for bytes in [&b"plain"[..], b"", b"\xff\x00two", "ä".as_bytes(), &[0xc3]] {
            let piece = LogPiece::new(Moment(laneway_core::time::Millis(0)), "stdout", bytes);
            let text = serde_json::to_string(&piece).expect("JSON");
            assert_eq!(serde_json::from_str::<LogPiece>(&text).expect("a piece").bytes(), bytes);
            assert_eq!(piece.hex.is_some(), std::str::from_utf8(bytes).is_err());
        }
    }
}
