//! Steps that wait: for a signal, until a moment, for a while (`wait`), or for a run that they start (`workflow`). Pure: when such a
//! task is over by itself, and what a signal means to it. The store parks it, and wakes it by its own clock. docs/design/waits.md.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::child::SubWorkflow;
use crate::definition::parse_duration;
use crate::expression::{Scope, Template};
use crate::id::RunId;
use crate::limit::written;
use crate::output;
use crate::time::Millis;

#[cfg(test)]
mod tests;

/// The longest reason that somebody may give with a signal, in bytes.
pub const MAX_REASON: usize = 4096;

/// The `wait` key, or the `workflow` key.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    pub on: Awaited,
    /// After how long it fails. `None` is never.
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Awaited {
    /// Somebody says this name.
    Signal(String),
    /// What it evaluates to is a moment; one that is past is over at once.
    Until(Template),
    /// What it evaluates to is a duration.
    For(Template),
    /// A run of another workflow, which it starts, is over.
    Run(SubWorkflow),
}

/// What is known of one task that waits. Kept with it, also when it is over, until it is opened again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// When it is over by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// When it fails, if it is not over by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    /// The one that counts: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// Which life of a step this is that starts a run: the number of the event that parked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<u64>,
    /// The run that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<RunId>,
    /// The run that it had started in an earlier life, and is to go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<RunId>,
}

/// Somebody's word to a task that waits, or will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// Who.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub at: Millis,
    /// The output of the step, once that is over; then it stands there, and here no more.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub payload: Map<String, Value>,
}

/// How time ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// What it waited for has come.
    Come,
    TimedOut,
}

/// Why a signal cannot be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSignal {
    #[error("the payload is larger than {} KiB", output::LIMIT / 1024)]
    Large,
    #[error("the payload cannot be an output: {why}")]
    Payload { why: String },
    #[error("the reason is longer than {MAX_REASON} bytes")]
    Reason,
}

impl Wait {
    /// What a task waits for that parks now. The error is why that cannot be known, in words.
    pub fn begin(&self, scope: &Scope, now: Millis) -> Result<Waiting, String> {
        let until = match &self.on {
            Awaited::Signal(_) | Awaited::Run(_) => None,
            Awaited::Until(template) => {
                let text = template.render(scope).map_err(|error| format!("`wait.until`: {error}"))?;
                Some(moment(&text).map_err(|why| format!("`wait.until` is {why}"))?)
            }
            Awaited::For(template) => {
                let text = template.render(scope).map_err(|error| format!("`wait.for`: {error}"))?;
                Some(now.after(span(&text).map_err(|why| format!("`wait.for` is {why}"))?))
            }
        };
        Ok(Waiting {
            until,
            timeout_at: self.timeout.map(|timeout| now.after(timeout)),
            ..Waiting::default()
        })
    }

    /// Names of the steps that it reads.
    pub fn steps_read(&self) -> Vec<String> {
        match &self.on {
            Awaited::Signal(_) => Vec::new(),
            Awaited::Until(template) | Awaited::For(template) => template.steps_read().collect(),
            Awaited::Run(child) => child.steps_read().collect(),
        }
    }

    /// The signal that it waits for, if it is one.
    pub fn signal(&self) -> Option<&str> {
        match &self.on {
            Awaited::Signal(name) => Some(name),
            Awaited::Until(_) | Awaited::For(_) | Awaited::Run(_) => None,
        }
    }

    /// What it runs, if it waits for that.
    pub fn child(&self) -> Option<&SubWorkflow> {
        match &self.on {
            Awaited::Run(child) => Some(child),
            Awaited::Signal(_) | Awaited::Until(_) | Awaited::For(_) => None,
        }
    }

    /// Why it failed for want of time.
    pub fn timed_out(&self) -> String {
        let limit = written(self.timeout.unwrap_or_default());
        match &self.on {
            Awaited::Signal(name) => format!("timeout: the signal `{name}` did not come within {limit}"),
            Awaited::Until(_) | Awaited::For(_) => {
                format!("timeout: what it waits for does not come within {limit}")
            }
            Awaited::Run(child) => format!("timeout: `{}` has not ended within {limit}", child.workflow),
        }
    }
}

/// As it is written: `the signal approved, for 24h at most`.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.on {
            Awaited::Signal(name) => write!(f, "the signal {name}")?,
            Awaited::Until(template) => write!(f, "{}", template.source())?,
            Awaited::For(template) => write!(f, "{} to pass", template.source())?,
            Awaited::Run(child) => write!(f, "a run of {}", child.workflow)?,
        }
        match self.timeout {
            Some(timeout) => write!(f, ", for {} at most", written(timeout)),
            None => Ok(()),
        }
    }
}

impl Waiting {
    /// What is known of a step that is to go on with the run that it had started.
    pub fn again(child: RunId) -> Box<Self> {
        Box::new(Self { again: Some(child), ..Self::default() })
    }

    /// When somebody has to look at it, if nobody says anything before.
    pub fn due_at(&self) -> Option<Millis> {
        match (self.until, self.timeout_at) {
            (Some(until), Some(timeout_at)) => Some(until.min(timeout_at)),
            (until, timeout_at) => until.or(timeout_at),
        }
    }

    /// What time has made of it. However late somebody looks, what came first counts.
    pub fn over(&self, now: Millis) -> Option<Over> {
        if self.due_at()? > now {
            return None;
        }
        Some(match (self.until, self.timeout_at) {
            (Some(until), Some(timeout_at)) if until > timeout_at => Over::TimedOut,
            (Some(_), _) => Over::Come,
            (None, _) => Over::TimedOut,
        })
    }

    /// It has ended: the payload is its output now, or nobody's.
    pub fn end(&mut self) {
        if let Some(signal) = &mut self.signal {
            signal.payload = Map::new();
        }
    }
}

impl Signal {
    /// Whether it can be kept: as much as an output may be, and no more.
    pub fn check(&self) -> Result<(), BadSignal> {
        if self.reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON) {
            return Err(BadSignal::Reason);
        }
        let text = Value::Object(self.payload.clone()).to_string();
        if text.len() > output::LIMIT {
            return Err(BadSignal::Large);
        }
        output::parse(text.as_bytes()).map(drop).map_err(|error| BadSignal::Payload { why: error.message })
    }
}

/// A moment with its offset, such as `2026-12-24T18:00:00Z`. The error is what it is instead.
pub fn moment(text: &str) -> Result<Millis, String> {
    match text.trim().parse::<jiff::Timestamp>() {
        Ok(moment) => Ok(Millis(moment.as_millisecond())),
        Err(_) if text.trim().parse::<jiff::civil::DateTime>().is_ok() => Err(format!(
            "`{text}`, which is another moment in each time zone: add Z for UTC, or an offset such as +01:00"
        )),
        Err(_) => Err(format!("`{text}`, which is no moment such as 2026-12-24T18:00:00Z")),
    }
}

/// A duration such as `1h30m`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    parse_duration(text.trim()).map_err(|hint| match hint {
        Some(hint) => format!("`{text}`, which is no duration: {hint}"),
        None => format!("`{text}`, which is no duration such as 5m"),
    })
}
