//! Durable effects: what a step does to the world, once. Pure: what an effect is called, and what a record that is there
//! means to whoever is about to run it. The store keeps the records. docs/design/effects.md has the whole table.

use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::words::words;

#[cfg(test)]
mod tests;

/// The longest name and the longest key, in bytes.
pub const MAX_NAME: usize = 100;
pub const MAX_KEY: usize = 500;

/// The most that is recorded of what an effect printed, in bytes. What it says to `$LANEWAY_OUTPUT` is held to `output::LIMIT`.
pub const MAX_STDOUT: usize = 256 * 1024;

words! {
    /// What is recorded of an effect.
    pub enum EffectStatus {
        /// It was let begin. If nobody is running it any more, nobody knows whether it happened.
        Started = "started",
        /// It has happened: its result is there, and it never runs again.
        Done = "done",
        /// It said that it did not happen: whoever asks next runs it.
        Failed = "failed",
    }
}

words! {
    /// What to do about an effect that was started and of whose end nobody knows.
    pub enum OnUnknown {
        /// Nothing, and say so: a person has to look.
        Fail = "fail",
        /// Run it again: it can be done twice.
        Retry = "retry",
    }
}

words! {
    /// What an exit code other than 0 means.
    pub enum OnFailure {
        /// It did not happen: whoever asks next runs it again.
        Retry = "retry",
        /// It is a result like any other.
        Record = "record",
    }
}

impl OnFailure {
    /// What a command that has ended by itself leaves behind.
    pub fn status(self, exit_code: i32) -> EffectStatus {
        match (self, exit_code) {
            (Self::Retry | Self::Record, 0) | (Self::Record, _) => EffectStatus::Done,
            (Self::Retry, _) => EffectStatus::Failed,
        }
    }
}

/// Which effect of a task: the same in every attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectId {
    pub name: String,
    /// Empty where the step has one of that name only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// Why something cannot be called that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEffect {
    #[error(
        "`{}` cannot be the name of an effect: it has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit",
        name.escape_debug()
    )]
    Name { name: String },
    #[error(
        "the name of an effect has at most {MAX_NAME} bytes; what differs from one to the next goes into --key"
    )]
    LongName,
    #[error(
        "the key of an effect has at most {MAX_KEY} bytes, and this one {found}; use a hash of what it stands for"
    )]
    LongKey { found: usize },
    #[error("the key of an effect holds a control character; use letters, digits and signs")]
    Key,
}

impl EffectId {
    pub fn new(name: &str, key: &str) -> Result<Self, BadEffect> {
        let is_good = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
        if !name.starts_with(|sign: char| sign.is_ascii_alphanumeric()) || !name.chars().all(is_good) {
            return Err(BadEffect::Name { name: name.chars().take(MAX_NAME).collect() });
        }
        if name.len() > MAX_NAME {
            return Err(BadEffect::LongName);
        }
        if key.len() > MAX_KEY {
            return Err(BadEffect::LongKey { found: key.len() });
        }
        if key.chars().any(char::is_control) {
            return Err(BadEffect::Key);
        }
        Ok(Self { name: name.to_owned(), key: key.to_owned() })
    }

    /// One word for this effect in all of the world, the same in every attempt: for services that take an idempotency key. Of an item it is
    /// made once, and stays with the record: where a list is made anew, its index may be another's. So what it stands for (`item`, as it is
    /// stored) is part of it, and the attempt that asked for it first, which no other task at that index can have.
    pub fn token(&self, run: RunId, task: &str, item: Option<(&str, u32)>) -> String {
        let mut hasher = crate::hash::Hasher::new();
        let run = run.to_string();
        let first = item.map(|(_, attempt)| attempt.to_string());
        let parts = [run.as_str(), task, &self.name, &self.key].into_iter();
        for part in parts.chain(item.map(|(value, _)| value)).chain(first.as_deref()) {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
        }
        hasher.finish().as_str()[..32].to_owned()
    }
}

impl std::fmt::Display for EffectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "`{}`", self.name),
            key => write!(f, "`{}` with the key `{key}`", self.name),
        }
    }
}

/// An effect of a task, as its history tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectState {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    pub status: EffectStatus,
    /// The attempt that ran it last.
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The person who said what became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The record that is there.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    pub status: EffectStatus,
    /// Whether it was let begin under the claim of who asks now.
    pub is_own: bool,
    /// Which of all times that it was run.
    pub execution: &'a str,
}

/// Who asks to run it.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    pub execution: &'a str,
    pub on_unknown: OnUnknown,
    /// An earlier execution under the same claim that is known to be gone: its process is dead.
    pub gone: Option<&'a str>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Record that it begins, then run it.
    Run,
    /// That was recorded before, and the answer was lost: run it.
    Repeated,
    /// It has happened: hand out what is recorded.
    Replay,
    /// Somebody of the same attempt is at it: wait for that.
    Taken,
    /// It was started, and nobody knows whether it happened.
    Unknown,
}

/// The first half of the recovery table of docs/design/effects.md. Whoever asks holds the task.
pub fn judge(standing: Option<Standing<'_>>, asking: Asking<'_>) -> Verdict {
    let Some(standing) = standing else { return Verdict::Run };
    match standing.status {
        EffectStatus::Done => Verdict::Replay,
        EffectStatus::Failed => Verdict::Run,
        EffectStatus::Started if standing.is_own && standing.execution == asking.execution => {
            Verdict::Repeated
        }
        EffectStatus::Started if standing.is_own && asking.gone != Some(standing.execution) => Verdict::Taken,
        // Whoever ran it is gone, or has lost the task, and can record nothing any more.
        EffectStatus::Started => match asking.on_unknown {
            OnUnknown::Fail => Verdict::Unknown,
            OnUnknown::Retry => Verdict::Run,
        },
    }
}
