//! What dead nodes left behind: containers of this store whose session is over are removed. Those of a session that lives,
//! and those of other stores, are never touched.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use laneway_store::Store;
use tokio::sync::{Notify, OnceCell};

use super::docker::Docker;
use super::labels;

/// One that is stuck is tried again with the next sweep; the others do not wait for it.
const EACH: Duration = Duration::from_secs(20);

/// How often a node that takes whatever comes looks by itself: whoever died may have been reaped by a node elsewhere, which
/// cannot reach this host's engine.
const EVERY: Duration = Duration::from_secs(15);

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// By name.
    pub removed: Vec<String>,
    /// By name, and why they are still there.
    pub left: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] super::Error),
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
}

/// Removes the containers of dead sessions of this store.
pub async fn sweep(docker: &Docker, store: &dyn Store) -> Result<Swept, Error> {
    sweep_within(docker, store, EACH).await
}

/// The same, with another patience for each of them.
pub async fn sweep_within(docker: &Docker, store: &dyn Store, each: Duration) -> Result<Swept, Error> {
    let instance = store.instance().to_string();
    let found = docker.list(&[(labels::MANAGED, "true"), (labels::INSTANCE, &instance)]).await?;
    if found.is_empty() {
        return Ok(Swept::default());
    }
    // Asked after the list: whoever made one of these was registered by then, and who is not alive now never will be again.
    let alive: HashSet<String> =
        store.nodes(0).await?.into_iter().map(|node| node.session.to_string()).collect();
    let dead = found.into_iter().filter(|container| {
        container.labels.get(labels::SESSION).is_some_and(|session| !alive.contains(session))
    });
    let removals = dead.map(|container| async move {
        match tokio::time::timeout(each, docker.remove(&container.id)).await {
            Ok(Ok(())) => Ok(container.name),
            Ok(Err(error)) => Err((container.name, error.to_string())),
            Err(_) => Err((container.name, format!("it was not removed within {} s", each.as_secs()))),
        }
    });
    let mut swept = Swept::default();
    for removal in join_all(removals).await {
        match removal {
            Ok(name) => swept.removed.push(name),
            Err(left) => swept.left.push(left),
        }
    }
    Ok(swept)
}

/// Sees to it that a node's host is swept.
#[derive(Debug, Clone)]
pub(crate) struct Sweeper {
    docker: Docker,
    store: Arc<dyn Store>,
    wanted: Arc<Notify>,
    /// One has got to its end.
    first: Arc<OnceCell<()>>,
}

impl Sweeper {
    pub(crate) fn new(docker: Docker, store: Arc<dyn Store>) -> Self {
        Self { docker, store, wanted: Arc::default(), first: Arc::default() }
    }

    /// Somebody died: soon.
    pub(crate) fn soon(&self) {
        self.wanted.notify_one();
    }

    /// For a node of one run, which looks once, when it has to do with containers at all. Nobody waits for it.
    pub(crate) fn once(&self) {
        if !self.first.initialized() {
            let sweeper = self.clone();
            tokio::spawn(async move { sweeper.swept().await });
        }
    }

    /// Waits until the host was swept once. What is made for later waits for that, so that it never competes with leftovers. One that fails
    /// does not count: who comes next tries it again.
    pub(crate) async fn swept(&self) {
        let swept = || async { self.sweep().await.then_some(()).ok_or(()) };
        let _ = self.first.get_or_try_init(swept).await;
    }

    /// At once, when somebody died, and now and then. Never ends.
    pub(crate) async fn keep_swept(self) {
        self.swept().await;
        loop {
            let _ = tokio::time::timeout(EVERY, self.wanted.notified()).await;
            if self.sweep().await {
                let _ = self.first.set(());
            }
        }
    }

    /// At once. False: it could not be looked.
    pub(crate) async fn sweep(&self) -> bool {
        match sweep(&self.docker, self.store.as_ref()).await {
            Ok(swept) => {
                for name in swept.removed {
                    tracing::warn!(name, "a container of a node that died was removed");
                }
                for (name, why) in swept.left {
                    tracing::warn!(name, why, "a container of a node that died is still there");
                }
                true
            }
            // Most nodes have no engine.
            Err(error) => {
                tracing::debug!(%error, "containers of dead nodes were not looked for");
                false
            }
        }
    }
}
