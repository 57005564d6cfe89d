//! Side effects of steps that happen at most once (`docs/design/effects.md`).

use async_trait::async_trait;
use laneway_core::effect::EffectId;
use laneway_core::id::RunId;

use crate::effect::{Begun, EffectEnd, EffectView, NewEffect, Settlement};
use crate::error::Result;
use crate::fence::{ClaimRef, Fate};

#[async_trait]
pub trait Effects {
    /// Records that an effect begins, before it is executed, unless it has happened or its outcome
    /// is unknown. Requires a current claim of a live session.
    async fn begin_effect(&self, claim: ClaimRef, new: NewEffect) -> Result<Begun>;

    /// Records the outcome of an effect. Requires the execution that `begin_effect` admitted, and
    /// its claim. Idempotent by execution.
    async fn commit_effect(&self, claim: ClaimRef, end: EffectEnd) -> Result<Fate>;

    /// Records an operator's statement of the outcome of an effect whose execution is gone.
    async fn settle_effect(
        &self,
        run: RunId,
        step: &str,
        effect: EffectId,
        how: Settlement,
        by: &str,
    ) -> Result<()>;

    /// Returns the effects of a run in the order of steps, names and keys.
    async fn effects(&self, run: RunId) -> Result<Vec<EffectView>>;
}
