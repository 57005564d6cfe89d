//! Keeps a session alive while the node works: on a thread and a connection of its own, so that neither full slots nor
//! floods of output can delay it. If it cannot renew, it says so in time: before anybody else may take the session for
//! dead, what runs must be gone (PROTOCOL: Identity and liveness).

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_store::Store;
use laneway_store::model::Lease;
use laneway_torture::{Bug, Point, has, pass};
use tokio::sync::{oneshot, watch};

use crate::warden::{Warden, boot_time};

/// How long before the end of the lease what runs is killed: time for the kill, and for clocks that run apart.
const MARGIN: Duration = Duration::from_secs(5);

/// After a renewal that failed.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// A thread that renews. Dropping it ends it.
#[derive(Debug)]
pub struct Heartbeat {
    fence: Fence,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// `open` makes a handle on the store that nobody else uses. The warden is told of every renewal: it kills what runs
    /// when a lease is over, also if this process cannot.
    pub fn start(
        open: impl FnOnce() -> laneway_store::Result<Arc<dyn Store>> + Send + 'static,
        session: SessionId,
        lease: Lease,
        warden: Warden,
    ) -> std::io::Result<Self> {
        let (say, fenced) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        // The session was registered a moment ago, and lives for so long in any case.
        let begun = boot_time();
        let (until, deadlines) = watch::channel(deadline(begun, lease));
        warden.keep_until(deadline(begun, lease));
        let told = move |at: Duration| {
            warden.keep_until(at);
            until.send_replace(at);
        };
        let thread = std::thread::Builder::new().name("laneway-heartbeat".to_owned()).spawn(move || {
            let why = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Err(error) => Some(error.to_string()),
                Ok(runtime) => runtime.block_on(async {
                    tokio::select! {
                        why = beat(open, session, (lease, begun), told) => Some(why),
                        _ = stopped => None,
                    }
                }),
            };
            if why.is_some() {
                let _ = say.send(why);
            }
        })?;
        let fence = Fence { fallen: fenced, until: deadlines };
        Ok(Self { fence, stop: Some(stop), thread: Some(thread) })
    }

    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }
}

/// Where a node hears that its session can no longer be trusted.
#[derive(Debug, Clone)]
pub struct Fence {
    fallen: watch::Receiver<Option<String>>,
    until: watch::Receiver<Duration>,
}

impl Fence {
    /// Waits for that; gives the reason.
    pub(super) async fn falls(&mut self) -> String {
        match self.fallen.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            // It ended without a word, as it does when the node ends.
            Err(_) => std::future::pending().await,
        }
    }

    /// Whether it has to fall, also if nobody was told yet: what ends from here on may have been killed for it.
    pub(super) fn is_due(&self) -> bool {
        boot_time() >= *self.until.borrow()
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

/// Renews until that fails for too long; gives the reason.
async fn beat(
    open: impl FnOnce() -> laneway_store::Result<Arc<dyn Store>>,
    session: SessionId,
    (lease, begun): (Lease, Duration),
    told: impl Fn(Duration),
) -> String {
    let store = match open() {
        Ok(store) => store,
        Err(error) => return error.to_string(),
    };
    let mut renewed = begun;
    let mut why = "no answer".to_owned();
    loop {
        let asked = boot_time();
        let left = deadline(renewed, lease).saturating_sub(asked);
        if left.is_zero() {
            return format!("the session could not be renewed in time: {why}");
        }
        pass(Point::RenewBefore);
        let pause = match tokio::time::timeout(left, store.renew(session)).await {
            Ok(Ok(())) => {
                pass(Point::RenewAfter);
                // What ran is killed by now, and cannot be made undone.
                if boot_time() >= deadline(renewed, lease) {
                    return "the session was renewed too late".to_owned();
                }
                // Counted from before the request: the store may have renewed at any moment since.
                renewed = asked;
                told(deadline(renewed, lease));
                lease.every
            }
            Ok(Err(error @ laneway_store::Error::SessionOver { .. })) => return error.to_string(),
            Ok(Err(error)) => {
                why = error.to_string();
                tracing::warn!(%error, "the session was not renewed; trying again");
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
    renewed + lease.ttl.saturating_sub(MARGIN.min(lease.ttl / 4))
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
}
