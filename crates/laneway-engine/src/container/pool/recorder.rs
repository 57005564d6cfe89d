//! Keeps pools, every transition and what is pulled in the store, in the order in which they came and off everybody's path. A store that is busy or full
//! is waited for; what happens to containers never waits for the store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_core::pool::{ImagePullProgress, PoolFact};
use laneway_store::Store;
use laneway_store::model::KeptPool;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Pull, Told, Transition};

/// How many are told at once.
const BATCH: usize = 64;

/// Between tries.
const AGAIN: Duration = Duration::from_millis(500);

/// How long the end of a node waits for the last ones.
const FLUSH: Duration = Duration::from_secs(5);

/// Listens until the pools are closed.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    work: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// Begins to listen. Gives what pools are told to speak to.
    pub(crate) fn start(&self, store: Arc<dyn Store>, session: SessionId) -> mpsc::UnboundedSender<Told> {
        let (sender, mut told) = mpsc::unbounded_channel();
        let work = tokio::spawn(async move {
            let mut batch: Vec<Told> = Vec::new();
            while told.recv_many(&mut batch, BATCH).await > 0 {
                let (mut pools, mut facts) = (Vec::new(), Vec::new());
                for told in batch.drain(..) {
                    match told {
                        Told::Pool { name, image, max } => {
                            let max = u32::try_from(max).unwrap_or(u32::MAX);
                            pools.push(KeptPool { name, image, max });
                        }
                        Told::Moved(moved) => facts.push(fact(moved)),
                        Told::Pulling(pull) => facts.push(pulled(pull)),
                        Told::Taken(taken) => facts.push(taken.into()),
                        Told::Ports(ports) => facts.push(ports),
                    }
                }
                if !pools.is_empty() {
                    persist(|| store.keep_pools(session, pools.clone())).await;
                }
                if !facts.is_empty() {
                    persist(|| store.tell_pools(session, facts.clone())).await;
                }
            }
        });
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        sender
    }

    /// Waits for what was told before the pools were closed.
    pub(crate) async fn finish(&self) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(work) = work
            && tokio::time::timeout(FLUSH, work).await.is_err()
        {
            tracing::debug!("the last words of warm containers were not recorded");
        }
    }
}

/// Says it until the store has taken it, or never will.
async fn persist<F: Future<Output = laneway_store::Result<()>>>(say: impl Fn() -> F) {
    loop {
        match say().await {
            Ok(()) => break,
            Err(error) if error.is_passing() => tokio::time::sleep(AGAIN).await,
            Err(error) => {
                tracing::debug!(%error, "what containers did was not recorded");
                break;
            }
        }
    }
}

fn fact(moved: Transition) -> PoolFact {
    let Transition { pool, container, image, port, to, why } = moved;
    PoolFact::of(pool, container, (image, port), to, why)
}

fn pulled(pull: Pull) -> PoolFact {
    let Pull { pool, image, bytes, of, is_done } = pull;
    ImagePullProgress { pool, image, bytes, of, is_done }.into()
}
