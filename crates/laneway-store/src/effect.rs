//! Durable effects as the verbs speak of them (docs/design/effects.md). What a record means is core's to say (`effect.rs`).

use laneway_core::effect::{EffectId, EffectStatus, OnUnknown, Standing};
use laneway_core::id::SessionId;
use laneway_core::time::Millis;

use crate::fence::ClaimRef;

/// Who is about to run an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEffect {
    pub id: EffectId,
    /// Made by whoever runs it, another one each time; asked again with the same it is told the same.
    pub execution: String,
    pub on_unknown: OnUnknown,
    /// An earlier execution of this attempt that is known to be gone: its process is dead.
    pub gone: Option<String>,
}

/// What is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is recorded that it begins: run it, and say what became of it. Its token is the same in every attempt, and no other effect
    /// has it. Its fence is the fencing token of the claim, if the step has a lock.
    Run { token: String, fence: Option<u64> },
    /// It has happened.
    Recorded(EffectResult),
    /// Another execution of the same attempt is at it.
    Taken { execution: String },
    /// It was started, and nobody knows whether it happened. Nothing was changed.
    Unknown { attempt: u32, started_at: Millis },
    /// The attempt is to be stopped: nothing more begins in it.
    Stopping,
    /// The claim is no longer current, or its session is over. Nothing was changed.
    ClaimLost,
}

/// What an effect left behind, the same for everybody who asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EffectResult {
    pub exit_code: i32,
    pub stdout: Vec<u8>,
    /// What it wrote to `$LANEWAY_OUTPUT`, as it is.
    pub output: String,
    /// Why stdout and output are not here, although it has happened.
    pub lacks: Option<String>,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectEnd {
    pub id: EffectId,
    pub execution: String,
    /// Done or failed. Of what failed nothing is kept but its exit code.
    pub status: EffectStatus,
    pub result: EffectResult,
    pub took_ms: Option<u64>,
}

/// What a person says of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It has happened: the step gets an empty result, and never runs it.
    Done,
    /// It has not, or is to happen again: whoever asks next runs it.
    Again,
}

/// An effect, as people see it: without what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectView {
    pub step: String,
    pub id: EffectId,
    pub status: EffectStatus,
    /// Whether nobody runs it any more, and nobody knows whether it happened.
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

/// The row that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EffectRow {
    pub(crate) status: EffectStatus,
    pub(crate) attempt: u32,
    pub(crate) session: SessionId,
    pub(crate) execution: String,
    pub(crate) started_at: Millis,
    /// What services know it by.
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

/// What a keeper made of a wish to begin. What it says is written or read by the store, in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Write the row with this token, under the claim, then this is the answer.
    Write(Begun, String),
    /// Read the result.
    Read,
    Answer(Begun),
}
