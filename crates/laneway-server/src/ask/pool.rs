//! Wishes for pools: which nodes are told, and what each will have. Who is told is decided by what the store knows at that
//! moment; the nodes do it within a moment of hearing of it.

use laneway_core::definition::PoolMode;
use laneway_core::id::SessionId;
use laneway_core::plan::Plan;
use laneway_store::model::{KeptPool, NodeView, PoolView, Wanted, Wish};
use laneway_store::{Error, Result, Store};

use crate::wire;

/// Asks for so many warm containers on every node that keeps the pool, or on one of them. With a workflow it is the pool of its newest version,
/// on every node that takes steps in containers, also where nothing has used it yet.
pub async fn warm_pool(store: &dyn Store, pool: &str, ask: &wire::WarmPool) -> Result<wire::AskedPool> {
    let (nodes, node) = (store.nodes(0).await?, ask.node.as_deref());
    let (targets, of) = match &ask.workflow {
        None => (keepers(&nodes, store.pools().await?, pool, node)?, None),
        Some(workflow) => {
            let version = store.latest(workflow).await?.version;
            let pools = pools_of(store.plan(&version).await?.as_ref(), workflow, pool)?;
            (hosts(&nodes, &pools, node)?, Some(version))
        }
    };
    let what = Wanted::Warm { count: ask.count, of };
    store.wish(sessions(&targets), Wish { pool: pool.to_owned(), what }).await?;
    Ok(asked(pool, &targets, Some(ask.count)))
}

/// Asks every node that keeps the pool, or one of them, to let go of its containers.
pub async fn drain_pool(store: &dyn Store, pool: &str, ask: &wire::DrainPool) -> Result<wire::AskedPool> {
    let nodes = store.nodes(0).await?;
    let targets = keepers(&nodes, store.pools().await?, pool, ask.node.as_deref())?;
    store.wish(sessions(&targets), Wish { pool: pool.to_owned(), what: Wanted::Drain }).await?;
    Ok(asked(pool, &targets, None))
}

/// Who keeps a pool of that name, and lives.
fn keepers(
    nodes: &[NodeView],
    pools: Vec<PoolView>,
    name: &str,
    node: Option<&str>,
) -> Result<Vec<PoolView>> {
    is_alive(nodes, node)?;
    let is_meant = |view: &PoolView| {
        view.pool.name == name
            && node.is_none_or(|node| view.node == node)
            && nodes.iter().any(|node| node.session == view.session)
    };
    let kept: Vec<PoolView> = pools.into_iter().filter(is_meant).collect();
    match node {
        _ if !kept.is_empty() => Ok(kept),
        Some(node) => Err(Error::NoSuchPoolAt { pool: name.to_owned(), node: node.to_owned() }),
        None => Err(Error::NoSuchPool { pool: name.to_owned() }),
    }
}

/// Who could keep these pools: nodes that take steps in containers, and go on taking them.
fn hosts(nodes: &[NodeView], pools: &[KeptPool], node: Option<&str>) -> Result<Vec<PoolView>> {
    is_alive(nodes, node)?;
    let takes_containers = |view: &&NodeView| {
        let offers = view.offer.as_ref().is_some_and(|offer| offer.has_container);
        offers && !view.is_draining && node.is_none_or(|node| view.node == node)
    };
    let hosts = nodes.iter().filter(takes_containers);
    let of_host = |host: &NodeView, pool: &KeptPool| PoolView {
        node: host.node.clone(),
        session: host.session,
        pool: pool.clone(),
    };
    let hosts: Vec<PoolView> =
        hosts.flat_map(|host| pools.iter().map(move |pool| of_host(host, pool))).collect();
    match node {
        _ if !hosts.is_empty() => Ok(hosts),
        Some(node) => Err(Error::NoContainersAt { node: node.to_owned() }),
        None => Err(Error::NoContainers),
    }
}

fn is_alive(nodes: &[NodeView], node: Option<&str>) -> Result<()> {
    match node.filter(|node| !nodes.iter().any(|view| view.node == **node)) {
        Some(node) => Err(Error::NoSuchNode { node: node.to_owned() }),
        None => Ok(()),
    }
}

/// The pools of that name in a document.
fn pools_of(plan: &Plan, workflow: &str, name: &str) -> Result<Vec<KeptPool>> {
    let pools: Vec<KeptPool> = plan
        .pools_named(name)
        .into_iter()
        .map(|pool| KeptPool {
            max: match pool.mode {
                PoolMode::Multi => pool.max.get(),
                PoolMode::Single => 1,
            },
            image: pool.container.image,
            name: pool.name,
        })
        .collect();
    if pools.is_empty() {
        let has = plan.workflow.pools.iter().map(|pool| pool.name.clone()).collect();
        return Err(Error::NoSuchPoolOf { pool: name.to_owned(), workflow: workflow.to_owned(), has });
    }
    Ok(pools)
}

/// Each once: a node may have two pools of one name.
fn sessions(targets: &[PoolView]) -> Vec<SessionId> {
    let mut sessions: Vec<SessionId> = targets.iter().map(|target| target.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

fn asked(pool: &str, targets: &[PoolView], count: Option<u32>) -> wire::AskedPool {
    let node = |target: &PoolView| {
        let KeptPool { image, max, .. } = target.pool.clone();
        wire::AskedNode { node: target.node.clone(), image, max, count: count.map(|count| count.min(max)) }
    };
    wire::AskedPool { pool: pool.to_owned(), nodes: targets.iter().map(node).collect() }
}
