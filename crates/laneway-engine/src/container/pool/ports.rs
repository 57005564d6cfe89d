//! The ports of this host that containers of this node get. Owns the one line in which all pools
//! wait for them (`laneway_core::pool::PortLine` decides), the probe, and what is published about
//! it. Pools report after each of their events; grants and evictions go to them as messages.
//!
//! ```text
//!   pool loops ── report ──▶ line ── Port, Evict ──▶ pool loops
//!   dropped Port, probe timer ─┘ └── PortsUsedUp, PortsFree ──▶ recorder
//! ```

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use laneway_core::pool::{
    Event, HeldPort, PoolNumber, PortAction, PortDemand, PortHolder, PortLine, PortUse, PortWaiter,
    PortsFree, PortsUsedUp, Ticket,
};
use tokio::sync::mpsc;

use super::keeper::Message;
use super::{Outlet, Told};

/// How often ports of other programs are probed while a task waits: their release is no event.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a port is passed over that looked free and that the engine could not bind.
const REFUSED_PORT_DELAY: Duration = Duration::from_secs(1);

/// Holders that are published. A cause names fewer.
const MAX_PUBLISHED_HOLDERS: usize = 20;

/// Shared by all pools of a node.
#[derive(Debug, Clone)]
pub(super) struct SharedPorts(Arc<Desk>);

#[derive(Debug)]
struct Desk {
    state: Mutex<State>,
    outlet: Outlet,
}

#[derive(Debug)]
struct State {
    line: PortLine,
    pools: BTreeMap<PoolNumber, Member>,
    last_number: u64,
    refused: HashMap<u16, Instant>,
    published: Option<PortsUsedUp>,
    is_probing: bool,
}

#[derive(Debug)]
struct Member {
    sender: mpsc::UnboundedSender<Message>,
    waiting: Vec<(Ticket, PortWaiter)>,
    holders: Vec<PortHolder>,
}

/// What a pool reports after an event.
#[derive(Debug, Default)]
pub(super) struct PortReport {
    pub(super) demand: PortDemand,
    /// Ports that it was granted and that have arrived since its last report.
    pub(super) received: usize,
    /// The tasks behind the tickets of `demand`.
    pub(super) waiting: Vec<(Ticket, PortWaiter)>,
    pub(super) holders: Vec<PortHolder>,
}

impl SharedPorts {
    pub(super) fn new(range: RangeInclusive<u16>, outlet: Outlet) -> Self {
        let state = State {
            line: PortLine::new(range),
            pools: BTreeMap::new(),
            last_number: 0,
            refused: HashMap::new(),
            published: None,
            is_probing: false,
        };
        Self(Arc::new(Desk { state: Mutex::new(state), outlet }))
    }

    /// Registers a pool whose containers need ports.
    pub(super) fn join(&self, sender: mpsc::UnboundedSender<Message>) -> PoolNumber {
        let mut state = self.locked();
        state.last_number += 1;
        let number = PoolNumber(state.last_number);
        state.pools.insert(number, Member { sender, waiting: Vec::new(), holders: Vec::new() });
        number
    }

    /// Forgets a pool that is closed.
    pub(super) fn leave(&self, pool: PoolNumber) {
        let mut state = self.locked();
        state.line.leave(pool);
        state.pools.remove(&pool);
        self.settle(state);
    }

    pub(super) fn report(&self, pool: PoolNumber, report: PortReport) {
        let mut state = self.locked();
        state.line.report(pool, report.demand, report.received);
        if let Some(member) = state.pools.get_mut(&pool) {
            member.waiting = report.waiting;
            member.holders = report.holders;
        }
        self.settle(state);
    }

    /// A port for a container that is warmed ahead; `None` if none is free or a task waits for one.
    pub(super) fn spare(&self) -> Option<Port> {
        let mut state = self.locked();
        let State { line, refused, .. } = &mut *state;
        let number = line.spare(|port| is_free(refused, port))?;
        Some(Port { number, of: self.clone() })
    }

    /// Another port instead of one that the engine could not bind. That one is passed over for a
    /// moment. `None` if no other port is free.
    pub(super) fn replace(&self, refused_port: u16) -> Option<Port> {
        let mut state = self.locked();
        let State { line, refused, .. } = &mut *state;
        refused.insert(refused_port, Instant::now());
        let number = line.replace(|port| is_free(refused, port))?;
        Some(Port { number, of: self.clone() })
    }

    /// Which containers hold the ports, by port.
    pub(super) fn in_use(&self) -> PortUse {
        self.locked().in_use()
    }

    /// Gives out what is free, asks for what can be evicted, and publishes what has changed.
    /// Messages go out when the lock is released: a pool that is closed drops its port at once.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        let State { line, refused, pools, .. } = &mut *state;
        refused.retain(|_, since| since.elapsed() < REFUSED_PORT_DELAY);
        let mut outbox = Vec::new();
        for action in line.settle(|port| is_free(refused, port)) {
            let (pool, message) = match action {
                PortAction::Grant { pool, port } => {
                    (pool, Message::Port(Port { number: port, of: self.clone() }))
                }
                PortAction::Evict { pool, container } => (pool, Message::Event(Event::Evict(container))),
            };
            outbox.push((pools.get(&pool).map(|member| member.sender.clone()), message));
        }
        if let Some(told) = state.changed() {
            // Under the lock, so that they are recorded in this order.
            self.0.outlet.tell(told);
        }
        if !state.is_probing && state.line.left() > 0 && !state.line.waiting().is_empty() {
            state.is_probing = probe_later(Arc::downgrade(&self.0));
        }
        drop(state);
        for (sender, message) in outbox {
            if let Some(sender) = sender {
                let _ = sender.send(message);
            }
        }
    }

    /// Held for a few system calls at most, and never while a `Port` is dropped.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn in_use(&self) -> PortUse {
        let range = self.line.range();
        let mut holders: Vec<PortHolder> =
            self.pools.values().flat_map(|member| member.holders.iter().cloned()).collect();
        holders.sort_by_key(|holder| holder.port);
        let held = range.len() - self.line.left();
        PortUse { first: *range.start(), last: *range.end(), holders, held }
    }

    /// What is to be published, if it differs from what was.
    fn changed(&mut self) -> Option<Told> {
        let waiting: Vec<PortWaiter> = self
            .line
            .waiting()
            .into_iter()
            .filter_map(|(ticket, pool)| {
                let mut waiting = self.pools.get(&pool)?.waiting.iter();
                waiting.find(|(known, _)| *known == ticket).map(|(_, waiter)| waiter.clone())
            })
            .collect();
        let is_used_up = !waiting.is_empty() || self.line.left() == 0;
        let now = is_used_up.then(|| {
            let PortUse { first, last, holders, held } = self.in_use();
            let holder = |PortHolder { port, pool, container, .. }| HeldPort { port, pool, container };
            let holders = holders.into_iter().take(MAX_PUBLISHED_HOLDERS).map(holder).collect();
            PortsUsedUp { first, last, held: u32::try_from(held).unwrap_or(u32::MAX), holders, waiting }
        });
        if now == self.published {
            return None;
        }
        self.published.clone_from(&now);
        Some(Told::Ports(match now {
            Some(used_up) => used_up.into(),
            None => {
                let range = self.line.range();
                PortsFree { first: *range.start(), last: *range.end() }.into()
            }
        }))
    }
}

/// Settles again in a moment, if a runtime is there to do it.
fn probe_later(desk: Weak<Desk>) -> bool {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
    runtime.spawn(async move {
        tokio::time::sleep(PROBE_INTERVAL).await;
        if let Some(desk) = desk.upgrade() {
            let ports = SharedPorts(desk);
            let mut state = ports.locked();
            state.is_probing = false;
            ports.settle(state);
        }
    });
    true
}

/// A port that a container holds until this is dropped.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) number: u16,
    of: SharedPorts,
}

impl Drop for Port {
    fn drop(&mut self) {
        let mut state = self.of.locked();
        state.line.give_back(self.number);
        self.of.settle(state);
    }
}

/// Whether a container could listen there. Another program may begin to at any moment; then the
/// engine reports it when the container starts.
fn is_free(refused: &HashMap<u16, Instant>, port: u16) -> bool {
    let is_refused = refused.get(&port).is_some_and(|since| since.elapsed() < REFUSED_PORT_DELAY);
    !is_refused && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use laneway_core::pool::ContainerNumber;

    use super::*;

    fn wants(tickets: &[u64]) -> PortReport {
        let demand =
            PortDemand { tickets: tickets.iter().map(|one| Ticket(*one)).collect(), ..PortDemand::default() };
        PortReport { demand, ..PortReport::default() }
    }

    fn received(messages: &mut mpsc::UnboundedReceiver<Message>) -> Option<Port> {
        match messages.try_recv() {
            Ok(Message::Port(port)) => Some(port),
            Ok(_) | Err(_) => None,
        }
    }

    #[test]
    fn port_on_which_another_program_listens_is_passed_over_and_comes_back_when_it_is_dropped() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let used = other.local_addr().expect("an address").port();
        let ports = SharedPorts::new(used..=used, Outlet::default());
        assert!(ports.spare().is_none(), "another program listens there");
        drop(other);
        let port = ports.spare().expect("it is free now");
        assert_eq!(port.number, used);
        assert!(ports.spare().is_none(), "it is given out");
        drop(port);
        assert!(ports.spare().is_some());
    }

    #[test]
    fn dropped_port_goes_to_the_pool_that_waits_and_nothing_is_lost_when_that_is_closed() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let number = free.local_addr().expect("an address").port();
        drop(free);
        let ports = SharedPorts::new(number..=number, Outlet::default());
        let (sender, mut messages) = mpsc::unbounded_channel();
        let pool = ports.join(sender);
        let held = ports.spare().expect("a port");
        ports.report(pool, wants(&[1]));
        assert!(received(&mut messages).is_none());
        drop(held);
        let port = received(&mut messages).expect("it is granted");
        ports.report(pool, PortReport { received: 1, ..wants(&[]) });
        assert!(ports.spare().is_none());
        drop(port);
        ports.report(pool, wants(&[2]));
        // Its loop is over, with a port under way.
        drop(messages);
        ports.leave(pool);
        assert!(ports.spare().is_some());
    }

    #[test]
    fn dormant_container_of_another_pool_is_evicted_for_a_task() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let number = other.local_addr().expect("an address").port();
        let ports = SharedPorts::new(number..=number, Outlet::default());
        let (first, mut to_first) = mpsc::unbounded_channel();
        let (second, _to_second) = mpsc::unbounded_channel();
        let (first, second) = (ports.join(first), ports.join(second));
        let demand = PortDemand { dormant: vec![(1, ContainerNumber(4))], ..PortDemand::default() };
        ports.report(first, PortReport { demand, ..PortReport::default() });
        ports.report(second, wants(&[1]));
        let evicted = to_first.try_recv();
        assert!(matches!(evicted, Ok(Message::Event(Event::Evict(ContainerNumber(4))))));
    }

    #[test]
    fn port_that_the_engine_could_not_bind_is_passed_over_for_a_moment() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let number = free.local_addr().expect("an address").port();
        drop(free);
        let ports = SharedPorts::new(number..=number, Outlet::default());
        let port = ports.spare().expect("a port");
        assert!(ports.replace(port.number).is_none());
        drop(port);
        assert!(ports.spare().is_none(), "it looks free, and is not");
    }
}
