//! Durable effects: inputs and outputs of the verbs, and the stored row. The meaning of a record is
//! decided by `laneway_core::effect`, never here. See `docs/design/effects.md`.

use laneway_core::effect::{EffectId, EffectStatus, OnUnknown, Standing};
use laneway_core::id::SessionId;
use laneway_core::time::Millis;

use crate::fence::ClaimRef;

/// An execution of an effect that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEffect {
    pub id: EffectId,
    /// Made by the caller, unique to each execution. A repeated request with the same value gets
    /// the same answer.
    pub execution: String,
    pub on_unknown: OnUnknown,
    /// An earlier execution of this attempt that is known to be gone: its process is dead.
    pub gone: Option<String>,
}

/// What the caller must do about the effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Recorded as begun: execute it, and report its outcome. The token is the same in every
    /// attempt, and unique to this effect. The fence is the fencing token of the claim, if the step
    /// has a lock.
    Run { token: String, fence: Option<u64> },
    /// It has happened.
    Recorded(EffectResult),
    /// Another execution of the same attempt is in progress.
    Taken { execution: String },
    /// It began, and whether it happened is unknown. Nothing was changed.
    Unknown { attempt: u32, started_at: Millis },
    /// The attempt must stop: no further effect begins in it.
    Stopping,
    /// The claim is no longer current, or its session is over. Nothing was changed.
    ClaimLost,
}

/// What an effect left behind. Every caller gets the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectResult {
    pub exit_code: i32,
    pub stdout: Vec<u8>,
    /// What it wrote to `$LANEWAY_OUTPUT`, unchanged.
    pub output: String,
    /// Why stdout and output are missing, although it has happened.
    pub lacks: Option<String>,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectEnd {
    pub id: EffectId,
    pub execution: String,
    /// Done or failed. Of a failed one only the exit code is kept.
    pub status: EffectStatus,
    pub result: EffectResult,
    pub took_ms: Option<u64>,
}

/// An operator's statement about an effect whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It has happened: the step gets an empty result, and never executes it.
    Done,
    /// It has not happened, or must happen again: the next request executes it.
    Again,
}

/// An effect for display, without its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectView {
    pub step: String,
    pub id: EffectId,
    pub status: EffectStatus,
    /// Its execution is gone, and whether it happened is unknown.
    pub is_unknown: bool,
    pub attempt: u32,
    pub started_at: Millis,
    pub finished_at: Option<Millis>,
    pub took_ms: Option<u64>,
    pub exit_code: Option<i32>,
    pub stdout_bytes: u64,
    pub output_bytes: u64,
    pub lacks: Option<String>,
    pub settled_by: Option<String>,
}

/// The stored row of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EffectRow {
    pub(crate) status: EffectStatus,
    pub(crate) attempt: u32,
    pub(crate) session: SessionId,
    pub(crate) execution: String,
    pub(crate) started_at: Millis,
    /// The token that external services know it by.
    pub(crate) token: Option<String>,
}

impl EffectRow {
    pub(crate) fn is_of(&self, claim: &ClaimRef) -> bool {
        self.attempt == claim.attempt && self.session == claim.session
    }

    pub(crate) fn standing(&self, claim: &ClaimRef) -> Standing<'_> {
        Standing { status: self.status, is_own: self.is_of(claim), execution: &self.execution }
    }
}

/// A keeper's decision about a request to begin. The store writes or reads accordingly, in the same
/// transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Write the row with this token, under the claim. Then return this answer.
    Write(Begun, String),
    /// Return the stored result.
    Read,
    Answer(Begun),
}
