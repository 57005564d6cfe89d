//! Conclusions from the facts of pools, the same for both databases. Pure: each database has its
//! own statements. See `docs/design/pools.md`.

use std::collections::HashMap;

use laneway_core::cause::{ImagePull, Place, PoolHolder, PoolWait, PortWait, Waits};
use laneway_core::definition::Pool;
use laneway_core::growth::parse_name;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Plan;
use laneway_core::pool::{
    ContainerState, ContainerTaken, EndReason, HeldPort, PoolEvent, PoolFact, PortHolder, PortUse,
    PortWaiter, PortsUsedUp,
};
use laneway_core::run_state::RunState;
use laneway_core::state::TaskStatus;

/// The consequence of an unreadable request, for messages.
pub(crate) const UNGRANTED: &str = "a wish for a pool is not granted";

/// Returns the fact if it is about an attempt of that task. An unreadable fact hides none of the
/// others.
pub(crate) fn taken(name: &str, version: u32, body: &str, run: RunId, step: &str) -> Option<ContainerTaken> {
    match PoolFact::read(name, version, body).ok()? {
        PoolFact::ContainerTaken(taken) if taken.run == run && taken.step == step => Some(taken),
        PoolFact::ContainerTaken(_)
        | PoolFact::ContainerStarting(_)
        | PoolFact::ContainerIdle(_)
        | PoolFact::ContainerRunning(_)
        | PoolFact::ContainerDormant(_)
        | PoolFact::ContainerTerminated(_)
        | PoolFact::PortsUsedUp(_)
        | PoolFact::PortsFree(_)
        | PoolFact::ImagePullProgress(_) => None,
    }
}

/// Returns the ends of the containers that a session leaves behind. `newest` is the newest fact of
/// each container.
pub(crate) fn left_behind(newest: &[PoolEvent], session: SessionId) -> Vec<PoolFact> {
    let end = |event: &PoolEvent| {
        let (pool, container) = event.fact.names();
        let (pool, container) = (pool.to_owned(), container?.to_owned());
        let (to, why) = (ContainerState::Terminated, Some(EndReason::NodeLost));
        Some(PoolFact::of(pool, container, (String::new(), None), to, why))
    };
    newest.iter().filter(|event| event.session == session).filter_map(end).collect()
}

/// Returns the subject of a fact, by which the newest of each is found. It is a container, the
/// ports of a node, or an image that a node pulls.
pub(crate) fn subject(session: SessionId, fact: &PoolFact) -> String {
    match fact {
        PoolFact::PortsUsedUp(_) | PoolFact::PortsFree(_) => format!("ports of {session}"),
        PoolFact::ImagePullProgress(pull) => format!("image {} of {session}", pull.image),
        PoolFact::ContainerStarting(_)
        | PoolFact::ContainerIdle(_)
        | PoolFact::ContainerRunning(_)
        | PoolFact::ContainerTaken(_)
        | PoolFact::ContainerDormant(_)
        | PoolFact::ContainerTerminated(_) => fact.names().1.unwrap_or_default().to_owned(),
    }
}

/// Returns whether steps of a run may wait for containers of pools. Explaining that takes a read of
/// the pools' state.
pub(crate) fn uses_pools(plan: &Plan) -> bool {
    !plan.workflow.pools.is_empty()
}

/// Adds the tasks that wait for a host port, and then those that wait for a container of a pool.
/// `newest` is the newest fact of each container, of the ports of each node, and of each image that
/// it pulls.
pub(crate) fn add_waits(waits: &mut [Option<Waits>], plan: &Plan, state: &RunState, newest: &[PoolEvent]) {
    for (wait, task) in waits.iter_mut().zip(&state.tasks) {
        // Its row says where it was offered, also when a node has taken it.
        let is_taken = task.status != TaskStatus::Available;
        wait.take_if(|wait| is_taken && matches!(wait, Waits::Bound(_)));
    }
    add_port_waits(waits, plan, state, newest);
    add_pool_waits(waits, plan, state, newest);
}

/// Adds the tasks that wait for a container. For a claimed task it reports only that the image is
/// being pulled, because a node claims a task only when its pool has room.
fn add_pool_waits(waits: &mut [Option<Waits>], plan: &Plan, state: &RunState, newest: &[PoolEvent]) {
    for (wait, task) in waits.iter_mut().zip(&state.tasks) {
        let is_taken = match task.status {
            TaskStatus::Available => task.node.is_some(),
            TaskStatus::Running => true,
            TaskStatus::Pending
            | TaskStatus::Parked
            | TaskStatus::Succeeded
            | TaskStatus::Failed
            | TaskStatus::Canceled
            | TaskStatus::Skipped => continue,
        };
        let Some(pool) = pool_of(plan, &task.step).filter(|_| wait.is_none()) else { continue };
        let of_pool: Vec<&PoolEvent> =
            newest.iter().filter(|event| event.fact.names().0 == pool.name).collect();
        if of_pool.iter().any(|event| event.fact.task() == Some((state.run, &task.step))) {
            continue;
        }
        let pull = of_pool.iter().find_map(|event| {
            let PoolFact::ImagePullProgress(pull) = &event.fact else { return None };
            let (node, image) = (event.node.clone(), pull.image.clone());
            (!pull.is_done).then_some(ImagePull { node, image, bytes: pull.bytes, of: pull.of })
        });
        let pull = pull.filter(|pull| !is_taken || task.node.as_ref() == Some(&pull.node));
        if is_taken && pull.is_none() {
            continue;
        }
        let holder = |event: &&PoolEvent| {
            Some(PoolHolder {
                container: event.fact.names().1?.to_owned(),
                node: event.node.clone(),
                state: event.fact.state()?,
                task: event.fact.task().map(|(run, step)| (run, step.to_owned())),
            })
        };
        let holders = if is_taken { Vec::new() } else { of_pool.iter().filter_map(holder).collect() };
        *wait = Some(Waits::Pool(PoolWait { pool: pool.name, is_taken, holders, pull }));
    }
}

/// Adds claimed tasks that wait for a port, and unclaimed tasks while the ports of some node are
/// used up.
fn add_port_waits(waits: &mut [Option<Waits>], plan: &Plan, state: &RunState, newest: &[PoolEvent]) {
    let used_up = |event: &PoolEvent| {
        let PoolFact::PortsUsedUp(used_up) = &event.fact else { return None };
        Some((event.node.clone(), used_up.clone()))
    };
    let shortages: Vec<(String, PortsUsedUp)> = newest.iter().filter_map(used_up).collect();
    let Some((any_node, any)) = shortages.first() else { return };
    for (wait, task) in waits.iter_mut().zip(&state.tasks) {
        if wait.is_some() || !matches!(task.status, TaskStatus::Running | TaskStatus::Available) {
            continue;
        }
        let place = |used_up: &PortsUsedUp| {
            let is_it = |waiter: &PortWaiter| waiter.run == state.run && waiter.step == task.step;
            used_up.waiting.iter().position(is_it)
        };
        let taken = shortages.iter().find_map(|(node, used_up)| Some((node, used_up, place(used_up)?)));
        if let Some((node, used_up, place)) = taken {
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            *wait = Some(Waits::Port(PortWait {
                pool: used_up.waiting[place].pool.clone(),
                node: node.clone(),
                ports: port_use(used_up, newest),
                place: Some(Place { at: count(place + 1), of: count(used_up.waiting.len()) }),
            }));
        } else if task.status == TaskStatus::Available
            && let Some(pool) = pool_of(plan, &task.step).filter(Pool::needs_ports)
        {
            let (node, ports) = (any_node.clone(), port_use(any, newest));
            *wait = Some(Waits::Port(PortWait { pool: pool.name, node, ports, place: None }));
        }
    }
}

/// Returns the pool of a task.
fn pool_of(plan: &Plan, task: &str) -> Option<Pool> {
    plan.pool_of(plan.position(parse_name(task).0)?)
}

fn port_use(used_up: &PortsUsedUp, newest: &[PoolEvent]) -> PortUse {
    let facts: HashMap<&str, &PoolFact> =
        newest.iter().filter_map(|event| Some((event.fact.names().1?, &event.fact))).collect();
    let holder = |held: &HeldPort| {
        let fact = facts.get(held.container.as_str());
        PortHolder {
            port: held.port,
            pool: held.pool.clone(),
            container: held.container.clone(),
            // A container without a fact is being removed.
            state: fact.and_then(|fact| fact.state()).unwrap_or(ContainerState::Terminated),
            task: fact.and_then(|fact| fact.task()).map(|(run, step)| (run, step.to_owned())),
        }
    };
    PortUse {
        first: used_up.first,
        last: used_up.last,
        holders: used_up.holders.iter().map(holder).collect(),
        held: usize::try_from(used_up.held).unwrap_or(usize::MAX),
    }
}
