//! Keeps a session alive while the node works: on a thread and a connection of its own, so that neither full slots nor
//! floods of output can delay it. If it cannot renew, it says so in time: before anybody else may take the session for
//! dead, what runs must be gone (PROTOCOL: Identity and liveness). Where processes share a host the lease is a file, and
//! the warden decides when it is over: nothing is reaped before that is gone.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_store::model::{Lease, Renewed};
use laneway_store::{LeaseFile, Store};
use laneway_torture::{Bug, Point, has, pass};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::Error;
use super::counts::Counts;
use crate::warden::{Warden, boot_time};

/// How long before the end of the lease what runs is killed: time for the kill, and for clocks that run apart.
const MARGIN: Duration = Duration::from_secs(5);

/// After a renewal that failed.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// Time for a renewal to reach the warden.
const WARDEN_DELAY: Duration = Duration::from_millis(100);

/// Why a session is not renewed, as long as nobody says otherwise.
const NO_ANSWER: &str = "no answer";

/// A thread that renews. Dropping it ends it.
#[derive(Debug)]
pub struct Heartbeat {
    pulse: Pulse,
    stop: Option<StopSender>,
    thread: Option<JoinHandle<()>>,
}

/// Ends the thread when it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "the end of the channel is the message")]
enum StopSender {
    Renewing(oneshot::Sender<()>),
    Writing(mpsc::Sender<()>),
}

impl Heartbeat {
    /// `open` makes a handle on the store that nobody else uses. The warden, of a node that has one, is told of every
    /// renewal: it kills what runs when a lease is over, also if this process cannot.
    pub fn start(
        open: impl FnOnce() -> laneway_store::Result<Arc<dyn Store>> + Send + 'static,
        session: SessionId,
        lease: Lease,
        counts: Counts,
        warden: Option<Warden>,
    ) -> std::io::Result<Self> {
        let (say, beats) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        // The session was registered a moment ago, and lives for so long in any case.
        let begun = boot_time();
        let first = deadline(begun, lease);
        if let Some(warden) = &warden {
            warden.keep_until(first);
        }
        let (until, deadlines) = watch::channel(first);
        let prolong = move |at: Duration| {
            if let Some(warden) = &warden {
                warden.keep_until(at);
            }
            until.send_replace(at);
        };
        let thread = std::thread::Builder::new().name("laneway-heartbeat".to_owned()).spawn(move || {
            let why = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Err(error) => Some(error.to_string()),
                Ok(runtime) => runtime.block_on(async {
                    tokio::select! {
                        why = beat(open, Life { session, lease, begun, counts }, prolong, &say) => Some(why),
                        _ = stopped => None,
                    }
                }),
            };
            if let Some(why) = why {
                let _ = say.send(Some(Beat::Over(why)));
            }
        })?;
        let pulse = Pulse { beats, term: Term::Until(deadlines) };
        Ok(Self { pulse, stop: Some(StopSender::Renewing(stop)), thread: Some(thread) })
    }

    /// Renews a lease that is a file. The warden, of a node that has one, hears of every renewal: when it hears nothing
    /// more, it condemns the session and kills what runs.
    pub fn start_on_file(
        file: Arc<LeaseFile>,
        lease: Lease,
        warden: Option<Warden>,
    ) -> std::io::Result<Self> {
        let (say, beats) = watch::channel(None);
        let (stop, stopped) = mpsc::channel::<()>();
        // A session that does not expire owns what it runs, however long it is stopped.
        let warden = warden.filter(|_| file.expires());
        let span = deadline(Duration::ZERO, lease);
        if let Some(warden) = &warden {
            warden.hear(span, file.path());
        }
        let term = Term::File(Arc::clone(&file));
        let write = move || {
            let mut has_told = false;
            loop {
                match file.renew() {
                    Ok(true) => {
                        if let Some(warden) = &warden {
                            warden.hear(span, file.path());
                        }
                        has_told = false;
                    }
                    Ok(false) => {
                        let why = "it did not run for as long as its lease is, and its tasks were returned";
                        let _ = say.send(Some(Beat::Over(why.to_owned())));
                        return;
                    }
                    Err(error) if !std::mem::replace(&mut has_told, true) => {
                        tracing::warn!(%error, "the lease of the session was not renewed; trying again");
                    }
                    Err(_) => {}
                }
                match stopped.recv_timeout(lease.every) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("laneway-heartbeat".to_owned()).spawn(write)?;
        let pulse = Pulse { beats, term };
        Ok(Self { pulse, stop: Some(StopSender::Writing(stop)), thread: Some(thread) })
    }

    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }
}

/// What a heartbeat has to say.
#[derive(Debug, Clone)]
pub(super) enum Beat {
    /// The session was renewed; asked for at that moment.
    Renewed(Instant, Renewed),
    /// It can no longer be trusted, for this reason.
    Over(String),
}

/// Where a node hears how its session is.
#[derive(Debug, Clone)]
pub struct Pulse {
    beats: watch::Receiver<Option<Beat>>,
    term: Term,
}

/// How long the session lasts.
#[derive(Debug, Clone)]
enum Term {
    Until(watch::Receiver<Duration>),
    File(Arc<LeaseFile>),
}

impl Pulse {
    /// Waits for the next beat.
    pub(super) async fn next(&mut self) -> Beat {
        loop {
            if self.beats.changed().await.is_err() {
                // It ended without a word, as it does when the node ends.
                return std::future::pending().await;
            }
            if let Some(beat) = self.beats.borrow_and_update().clone() {
                return beat;
            }
        }
    }

    /// Waits until the session is over, and says why: for who has one and works for nobody.
    pub async fn lost(mut self) -> Error {
        loop {
            if let Beat::Over(why) = self.next().await {
                return Error::Fenced { why };
            }
        }
    }

    /// Whether the session has to end, also if nobody was told yet: what ends from here on may have been killed for it.
    pub(super) fn is_overdue(&self) -> bool {
        match &self.term {
            Term::Until(until) => boot_time() >= *until.borrow(),
            Term::File(file) => file.is_over(),
        }
    }

    /// Whether its beats bring what the session holds.
    pub(super) fn brings_claims(&self) -> bool {
        matches!(self.term, Term::Until(_))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The session that is kept alive.
struct Life {
    session: SessionId,
    lease: Lease,
    /// When it is known to have lived.
    begun: Duration,
    counts: Counts,
}

/// Renews until that fails for too long; gives the reason.
async fn beat(
    open: impl FnOnce() -> laneway_store::Result<Arc<dyn Store>>,
    Life { session, lease, begun, counts }: Life,
    prolong: impl Fn(Duration),
    say: &watch::Sender<Option<Beat>>,
) -> String {
    let store = match open() {
        Ok(store) => store,
        Err(error) => return error.to_string(),
    };
    let mut renewed = begun;
    let mut why = NO_ANSWER.to_owned();
    loop {
        let asked = boot_time();
        let left = deadline(renewed, lease).saturating_sub(asked);
        if left.is_zero() {
            return format!("the session could not be renewed in time: {why}");
        }
        pass(Point::RenewBefore);
        let since = Instant::now();
        let pause = match tokio::time::timeout(left, store.renew(session, counts.tally())).await {
            Ok(Ok(held)) => {
                pass(Point::RenewAfter);
                // The warden has killed the steps, or does so before it receives this renewal.
                if boot_time() + WARDEN_DELAY >= deadline(renewed, lease) {
                    return "the session was renewed too late".to_owned();
                }
                // Counted from before the request: the store may have renewed at any moment since.
                renewed = asked;
                why = NO_ANSWER.to_owned();
                prolong(deadline(renewed, lease));
                let _ = say.send(Some(Beat::Renewed(since, held)));
                lease.every
            }
            Ok(Err(error @ laneway_store::Error::SessionOver { .. })) => return error.to_string(),
            Ok(Err(error)) => {
                // Told once, not with every try.
                let said = error.to_string();
                if said != why {
                    tracing::warn!(%error, "the session was not renewed; trying again");
                }
                why = said;
                TRY_AGAIN
            }
            Err(_) => continue,
        };
        tokio::time::sleep(pause).await;
    }
}

/// When what runs must be killed, unless the session is renewed before.
fn deadline(renewed: Duration, lease: Lease) -> Duration {
    if has(Bug::FenceLate) {
        return renewed + lease.ttl * 20;
    }
    let moment = renewed + lease.ttl.saturating_sub(MARGIN.min(lease.ttl / 4));
    // The warden receives milliseconds. A later deadline here would report a step that the warden
    // killed as failed.
    Duration::from_millis(u64::try_from(moment.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_killed_before_the_lease_ends() {
        let lease = Lease { ttl: Duration::from_secs(60), every: Duration::from_secs(5) };
        assert_eq!(deadline(Duration::from_secs(100), lease), Duration::from_secs(155));
        let short = Lease { ttl: Duration::from_secs(4), every: Duration::from_secs(1) };
        assert_eq!(deadline(Duration::from_secs(100), short), Duration::from_secs(103));
    }

    #[test]
    fn node_and_warden_mean_the_same_moment() {
        let lease = Lease { ttl: Duration::from_secs(4), every: Duration::from_secs(1) };
        let renewed = Duration::new(100, 123_456_789);
        assert_eq!(deadline(renewed, lease), Duration::from_millis(103_123));
    }
}
