//! Looks after remote workers that do not do their part: ends what they were asked to stop and did not, what ran far beyond
//! its timeout, and gives back what they took and never started. Where no worker of this process does so, it also promotes
//! and reaps.
//!
//! ```text
//!   remotes ─▶ remote ─▶ judge ─▶ finish, give_back     by their claims: whoever is faster wins, and nothing happens twice
//!   alone:     reap, promote                            on a hint, when time has come, every 5 s
//! ```
//! What it remembers is only since when it has seen something: another process that looks later waits longer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::time::Millis;
use laneway_store::model::{Finished, RemoteView};
use laneway_store::{ClaimRef, Result, Store};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Terms;
use super::judge::{Held, SLACK, Verdict, verdict};
use crate::log::unix_ms;
use crate::worker::DEAD_NODE_CHECK_INTERVAL;

/// How often it looks while there are remote workers, and while there are none.
const LOOK: Duration = SLACK;
const SWEEP: Duration = DEAD_NODE_CHECK_INTERVAL;

/// Hints come in crowds.
const PAUSE: Duration = Duration::from_millis(50);

/// Between two sweeps, however soon a lease ends.
const LEAST_SWEEP: Duration = Duration::from_millis(250);

/// Ends with this.
#[derive(Debug)]
pub struct Tending(AbortHandle);

impl Drop for Tending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Tending {
    /// Inside of a runtime.
    pub fn begin(store: Arc<dyn Store>, terms: Terms) -> Self {
        let tender = Tender { store, terms, seen: HashMap::new() };
        Self(tokio::spawn(tender.tend()).abort_handle())
    }
}

struct Tender {
    store: Arc<dyn Store>,
    terms: Terms,
    seen: HashMap<ClaimRef, Seen>,
}

/// Since when this process has seen a claim, and that it is to be stopped.
#[derive(Debug, Clone, Copy)]
struct Seen {
    held: Instant,
    stop: Option<Instant>,
}

impl Tender {
    async fn tend(mut self) {
        let mut changes = self.store.changes();
        let (mut look_at, mut sweep_at) = (Instant::now(), Instant::now());
        let mut promote_at = Instant::now();
        loop {
            let now = Instant::now();
            if now >= look_at {
                let has_remotes = self.look().await.unwrap_or_else(|error| told(&error));
                look_at = Instant::now() + if has_remotes { LOOK } else { SWEEP };
            }
            if self.terms.is_alone && now >= sweep_at {
                let pause = self.reap().await.unwrap_or_else(|error| {
                    told(&error);
                    SWEEP
                });
                sweep_at = Instant::now() + pause;
            }
            if self.terms.is_alone && now >= promote_at {
                promote_at = Instant::now() + self.promote().await.unwrap_or(SWEEP);
            }
            let next = if self.terms.is_alone { look_at.min(sweep_at).min(promote_at) } else { look_at };
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                changed = changes.changed(), if self.terms.is_alone => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(PAUSE).await;
                    promote_at = Instant::now();
                }
            }
        }
    }

    /// How long until the next sweep. A lease that may be ending is watched without a gap, or it never ends.
    async fn reap(&self) -> Result<Duration> {
        let reaped = self.store.reap().await?;
        for node in reaped.nodes {
            tracing::warn!(node, "a node died; what it held goes on elsewhere");
        }
        Ok(reaped.next_in.map_or(SWEEP, |next| next.clamp(LEAST_SWEEP, SWEEP)))
    }

    /// How long until there is something to do.
    async fn promote(&self) -> Result<Duration> {
        let next = self.store.promote().await?;
        let now = Millis(i64::try_from(unix_ms()).unwrap_or(i64::MAX));
        Ok(next.map_or(SWEEP, |next| next.since(now).clamp(PAUSE, SWEEP)))
    }

    /// Whether there is anybody to look after.
    async fn look(&mut self) -> Result<bool> {
        let sessions = self.store.remotes().await?;
        let mut still = HashMap::new();
        for session in &sessions {
            let Some(view) = self.store.remote(*session).await? else { continue };
            if let Err(error) = self.look_at(&view, &mut still).await {
                told(&error);
            }
        }
        self.seen = still;
        Ok(!sessions.is_empty())
    }

    async fn look_at(&self, view: &RemoteView, still: &mut HashMap<ClaimRef, Seen>) -> Result<()> {
        let now = Instant::now();
        for (claim, started_at) in &view.held {
            let stop = view.stops.iter().find(|stop| stop.claim == *claim);
            let mut seen = self.seen.get(claim).copied().unwrap_or(Seen { held: now, stop: None });
            seen.stop = stop.map(|_| seen.stop.unwrap_or(now));
            still.insert(*claim, seen);
            // Of a run that cannot be read nothing is known, but that others of this worker go on.
            let head = match self.store.head(claim.run).await {
                Ok(head) => head,
                Err(error) if error.is_passing() => return Err(error),
                Err(error) => {
                    told(&error);
                    continue;
                }
            };
            let plan = &head.plan;
            let held = Held {
                started_at: *started_at,
                lease: view.lease,
                timeout: plan.step_at(claim.position).and_then(|step| step.timeout),
                stop: stop.zip(seen.stop).map(|(stop, since)| (stop.reason, now - since)),
                idle: now - seen.held,
            };
            // One by one: they are rare, and one of a run that was set aside is nobody else's matter.
            let done = match verdict(&held, &self.terms, view.observed_at) {
                None => continue,
                // It is asked to let go, and whether it has begun is not known.
                Some(Verdict::GiveBack) => self.store.take_back(vec![*claim]).await.map(drop),
                Some(Verdict::End { outcome, took }) => {
                    let ended = Finished::new(*claim, outcome, took);
                    self.store.finish(vec![ended], None).await.map(drop)
                }
            };
            match done {
                Ok(()) => {
                    let (node, step) = (&view.node, plan.task_name(claim.position));
                    tracing::warn!(node, run = %claim.run, step, "a remote worker did not do as it was told; it is waited for no longer");
                }
                Err(error) => {
                    told(&error);
                }
            }
        }
        Ok(())
    }
}

/// Looked at again with the next round.
fn told(error: &laneway_store::Error) -> bool {
    tracing::debug!(%error, "remote workers could not be looked after");
    true
}
