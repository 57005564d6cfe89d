//! Lets the past go: runs and records that the deployment keeps no longer, and bytes that nothing refers to. Rarely, at a time of its own,
//! and a little at once, so that no claim waits for it. Any number of nodes do so (`docs/design/retention.md`).

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_store::cache::KeepResults;
use laneway_store::prune::{Keep, KeepRecords, Prunable, Swept};
use laneway_store::{Error, Store};
use tokio::time::sleep;

/// Runs that are chosen at a time.
const AT_ONCE: usize = 50;

/// Runs that one round removes at the most: the rest has time until the next.
const IN_A_ROUND: usize = 2_000;

/// Between two runs that go.
const BREATH: Duration = Duration::from_millis(10);

/// Every so many rounds bytes are looked for that nothing refers to.
const SWEEP_EVERY: u32 = 6;

#[derive(Debug)]
pub struct Pruner {
    pub store: Arc<dyn Store>,
    pub keep: Keep,
    pub results: KeepResults,
    pub records: KeepRecords,
    /// How often, about.
    pub every: Duration,
    /// Makes nodes differ.
    pub session: SessionId,
}

/// What went.
#[derive(Debug, Default)]
pub struct Pruned {
    pub runs: u64,
    pub bytes: u64,
}

impl Pruner {
    /// Until it is dropped, at whatever moment: what has begun is brought to its end by whoever comes next.
    pub async fn until_dropped(self) {
        // Then nothing is removed, also not what nothing refers to; but for runs whose removal somebody has begun.
        if self.keep.is_everything() {
            if let Err(error) = prune(&*self.store, self.keep, IN_A_ROUND, |_| {}).await {
                tracing::warn!("what somebody began to remove stays for now: {error}");
            }
            if self.results.is_everything() && self.records.is_everything() {
                return;
            }
        }
        // At some moment of the first interval, and then about once in each.
        sleep(self.every.mul_f64(share(self.session))).await;
        for round in 0_u32.. {
            if let Err(error) = self.round(round.is_multiple_of(SWEEP_EVERY)).await {
                tracing::warn!("what is old stays for now: {error}");
            }
            sleep(self.every.mul_f64(0.75 + share(self.session) / 2.0)).await;
        }
    }

    async fn round(&self, is_sweep: bool) -> Result<(), Error> {
        if !self.results.is_everything() {
            let gone = self.store.prune_results(self.results).await?;
            if gone.results > 0 {
                tracing::info!("{} old results are gone, {} bytes", gone.results, gone.bytes);
            }
        }
        if !self.records.is_everything() {
            let gone = self.store.prune_records(self.records).await?;
            if gone > 0 {
                tracing::info!("{gone} old entries of the audit log and events of nodes are gone");
            }
        }
        if self.keep.is_everything() {
            return Ok(());
        }
        let pruned = prune(&*self.store, self.keep, IN_A_ROUND, |_| {}).await?;
        if pruned.runs > 0 {
            tracing::info!("{} old runs are gone, {} bytes", pruned.runs, pruned.bytes);
        }
        if is_sweep {
            let swept = self.store.sweep().await?;
            if swept != Swept::default() {
                tracing::info!(
                    "{} things that nothing refers to are gone, {} bytes",
                    swept.things,
                    swept.bytes
                );
            }
        }
        Ok(())
    }
}

/// Removes what `keep` lets go, up to so many runs, and tells of each.
pub async fn prune(
    store: &dyn Store,
    keep: Keep,
    limit: usize,
    mut tell: impl FnMut(&Prunable),
) -> Result<Pruned, Error> {
    let mut pruned = Pruned::default();
    while let left @ 1.. = limit.saturating_sub(usize::try_from(pruned.runs).unwrap_or(usize::MAX)) {
        let before = pruned.runs;
        for choice in store.prunable(keep, left.min(AT_ONCE)).await? {
            // It may have been opened again since, or somebody else was faster.
            if store.prune(choice.run).await? {
                pruned.runs += 1;
                pruned.bytes += choice.bytes;
                tell(&choice);
            }
            sleep(BREATH).await;
        }
        if pruned.runs == before {
            break;
        }
    }
    Ok(pruned)
}

/// A share of 1 that is the session's own.
fn share(session: SessionId) -> f64 {
    let text = session.to_string();
    let dice = text.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(u64::from(byte)));
    (dice % 1_000) as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_differ_and_stay_within_the_interval() {
        let of = |text: &str| share(SessionId::parse(text).expect("an id"));
        let (one, other) =
            (of("0190d5a0-0000-7000-8000-000000000001"), of("0190d5a0-0000-7000-8000-000000000002"));
        assert!(
            (0.0..1.0).contains(&one) && (0.0..1.0).contains(&other) && (one - other).abs() > f64::EPSILON
        );
    }
}
