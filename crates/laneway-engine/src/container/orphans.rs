//! What dead nodes left behind: containers of this store whose session is over are removed. Those of a session that lives,
//! and those of other stores, are never touched.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use laneway_store::Store;

use super::docker::Docker;
use super::labels;

/// One that is stuck is tried again with the next sweep; the others do not wait for it.
const EACH: Duration = Duration::from_secs(20);

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
        match tokio::time::timeout(EACH, docker.remove(&container.id)).await {
            Ok(Ok(())) => Ok(container.name),
            Ok(Err(error)) => Err((container.name, error.to_string())),
            Err(_) => Err((container.name, format!("it was not removed within {} s", EACH.as_secs()))),
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
