//! Wishes for pools: which nodes are told, and what each will have. Who is told is decided by what the store knows at that
//! moment; the nodes do it within a moment of hearing of it.

use laneway_core::definition::{Pool, PoolMode};
use laneway_core::id::SessionId;
use laneway_core::plan::Plan;
use laneway_store::model::{KeptPool, NodeView, PoolView, Wanted, Wish};
use laneway_store::{Error, Result, Store};

use super::Author;
use crate::wire;

/// Asks for so many warm containers on every node that keeps the pool, or on one of them. With a workflow it is the pool of its newest version,
/// on every node that takes steps in containers, also where nothing has used it yet.
pub async fn warm_pool(
    store: &dyn Store,
    pool: &str,
    ask: &wire::WarmPool,
    author: &Author,
) -> Result<wire::AskedPool> {
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
    let told = asked(pool, &targets, Some(ask.count));
    author.record(store, "warm_pool", format!("pool {pool} to {}{}", ask.count, places(&told))).await?;
    Ok(told)
}

/// Asks every node that keeps the pool, or one of them, to let go of its containers; also one that was told to warm it and does not
/// keep it yet.
pub async fn drain_pool(
    store: &dyn Store,
    pool: &str,
    ask: &wire::DrainPool,
    author: &Author,
) -> Result<wire::AskedPool> {
    let (nodes, mut kept) = (store.nodes(0).await?, store.pools().await?);
    kept.extend(warming(store, &nodes, &kept, pool).await?);
    let targets = keepers(&nodes, kept, pool, ask.node.as_deref())?;
    store.wish(sessions(&targets), Wish { pool: pool.to_owned(), what: Wanted::Drain }).await?;
    let told = asked(pool, &targets, None);
    author.record(store, "drain_pool", format!("pool {pool}{}", places(&told))).await?;
    Ok(told)
}

/// Where it was asked for, for the audit log.
fn places(told: &wire::AskedPool) -> String {
    let mut nodes: Vec<&str> = told.nodes.iter().map(|node| node.node.as_str()).collect();
    nodes.dedup();
    format!(" on {}", nodes.join(", "))
}

/// Who was told to warm a pool of that name before any run, and does not keep it: it may be at it.
async fn warming(
    store: &dyn Store,
    nodes: &[NodeView],
    kept: &[PoolView],
    name: &str,
) -> Result<Vec<PoolView>> {
    let keeps =
        |session: SessionId| kept.iter().any(|view| view.session == session && view.pool.name == name);
    let mut warming = Vec::new();
    for node in nodes.iter().filter(|node| node.offer.is_some() && !keeps(node.session)) {
        let wishes = match store.orders(node.session).await {
            Ok(orders) => orders.wishes,
            // Since they were listed: it warms nothing any more.
            Err(Error::SessionOver { .. }) => continue,
            Err(error) => return Err(error),
        };
        let wish = wishes.into_iter().map(|(_, wish)| wish).find(|wish| wish.pool == name);
        let Some(Wish { what: Wanted::Warm { of: Some(version), .. }, .. }) = wish else { continue };
        let pools = kept_pools(store.plan(&version).await?.as_ref(), name);
        warming.extend(pools.into_iter().map(|pool| PoolView {
            node: node.node.clone(),
            session: node.session,
            pool,
        }));
    }
    Ok(warming)
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

/// As nodes will keep them.
fn kept_pools(plan: &Plan, name: &str) -> Vec<KeptPool> {
    let kept = |pool: Pool| KeptPool {
        max: match pool.mode {
            PoolMode::Multi => pool.max.get(),
            PoolMode::Single => 1,
        },
        image: pool.container.image,
        name: pool.name,
    };
    plan.pools_named(name).into_iter().map(kept).collect()
}

/// The pools of that name in a document.
fn pools_of(plan: &Plan, workflow: &str, name: &str) -> Result<Vec<KeptPool>> {
    let pools = kept_pools(plan, name);
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
