//! The line of all pools of a node for the ports of its host: which pool gets the next free port,
//! and which dormant containers are evicted to free one. Pure; the engine reports the demand of a
//! pool after each of its events, probes ports, and acts.
//!
//! ```text
//! report, leave, give_back ──▶ PortLine::settle ──▶ [Grant, Evict]
//! ```
//! A ticket keeps its place over all pools, because tickets of a node are numbered in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::line::Ticket;
use super::manager::ContainerNumber;
use super::ports::Ports;

/// Names a pool among those of its node that need ports. No number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolNumber(pub u64);

/// What a pool needs of the host's ports, and what it could free.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortDemand {
    /// Tickets for each of which a container would start if it had a port, first in line first.
    pub tickets: Vec<Ticket>,
    /// Dormant containers that hold a port, each with the number of its last use.
    pub dormant: Vec<(u64, ContainerNumber)>,
    /// Containers with a port that are being removed.
    pub ending: usize,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortAction {
    /// The port belongs to the pool now, for the first of its tickets.
    Grant { pool: PoolNumber, port: u16 },
    /// Terminate this container if it is still dormant: tickets wait for its port.
    Evict { pool: PoolNumber, container: ContainerNumber },
}

#[derive(Debug)]
pub struct PortLine {
    ports: Ports,
    demands: BTreeMap<PoolNumber, PortDemand>,
    /// Grants that a pool has not received yet. Its demand still has their tickets.
    in_flight: BTreeMap<PoolNumber, usize>,
    /// Evictions that do not show in the demand of their pool yet.
    evicting: BTreeSet<(PoolNumber, ContainerNumber)>,
}

impl PortLine {
    pub fn new(range: RangeInclusive<u16>) -> Self {
        Self {
            ports: Ports::new(range),
            demands: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            evicting: BTreeSet::new(),
        }
    }

    pub fn range(&self) -> &RangeInclusive<u16> {
        self.ports.range()
    }

    /// How many ports of the range no container of this node holds.
    pub fn left(&self) -> usize {
        self.ports.left()
    }

    /// Replaces the demand of a pool, which has received so many grants since its last report.
    pub fn report(&mut self, pool: PoolNumber, demand: PortDemand, received: usize) {
        if let Some(count) = self.in_flight.get_mut(&pool) {
            *count = count.saturating_sub(received);
        }
        let is_dormant = |container| demand.dormant.iter().any(|(_, dormant)| *dormant == container);
        self.evicting.retain(|(of, container)| *of != pool || is_dormant(*container));
        self.demands.insert(pool, demand);
    }

    /// Forgets a pool that is closed. Ports that it holds come back by `give_back`.
    pub fn leave(&mut self, pool: PoolNumber) {
        self.demands.remove(&pool);
        self.in_flight.remove(&pool);
        self.evicting.retain(|(of, _)| *of != pool);
    }

    pub fn give_back(&mut self, port: u16) {
        self.ports.give_back(port);
    }

    /// Tickets without a port, in order over all pools.
    pub fn waiting(&self) -> Vec<(Ticket, PoolNumber)> {
        let mut waiting: Vec<(Ticket, PoolNumber)> = Vec::new();
        for (pool, demand) in &self.demands {
            let granted = self.in_flight.get(pool).copied().unwrap_or(0);
            waiting.extend(demand.tickets.iter().skip(granted).map(|ticket| (*ticket, *pool)));
        }
        waiting.sort_unstable();
        waiting
    }

    /// Gives free ports to the tickets that waited longest. For the others it evicts dormant
    /// containers, least recently used first, and no more than it takes.
    pub fn settle(&mut self, mut is_free: impl FnMut(u16) -> bool) -> Vec<PortAction> {
        let mut out = Vec::new();
        let waiting = self.waiting();
        let mut rest = waiting.iter();
        let mut lacking = waiting.len();
        for (_, pool) in rest.by_ref() {
            let Some(port) = self.ports.take(&mut is_free) else { break };
            *self.in_flight.entry(*pool).or_default() += 1;
            lacking -= 1;
            out.push(PortAction::Grant { pool: *pool, port });
        }
        let coming = self.demands.values().map(|demand| demand.ending).sum::<usize>() + self.evicting.len();
        let mut dormant: Vec<(u64, PoolNumber, ContainerNumber)> = Vec::new();
        for (pool, demand) in &self.demands {
            let own = demand.dormant.iter().map(|(used, container)| (*used, *pool, *container));
            dormant.extend(own.filter(|(_, pool, container)| !self.evicting.contains(&(*pool, *container))));
        }
        dormant.sort_unstable();
        for (_, pool, container) in dormant.into_iter().take(lacking.saturating_sub(coming)) {
            self.evicting.insert((pool, container));
            out.push(PortAction::Evict { pool, container });
        }
        out
    }

    /// Takes a port for a container that is warmed ahead. `None` if tickets wait: they come first.
    pub fn spare(&mut self, is_free: impl FnMut(u16) -> bool) -> Option<u16> {
        if self.waiting().is_empty() { self.ports.take(is_free) } else { None }
    }

    /// Takes another port for a start whose own port turned out to be taken by another program.
    pub fn replace(&mut self, is_free: impl FnMut(u16) -> bool) -> Option<u16> {
        self.ports.take(is_free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PoolNumber = PoolNumber(1);
    const B: PoolNumber = PoolNumber(2);

    fn demand(tickets: &[u64], dormant: &[(u64, u64)], ending: usize) -> PortDemand {
        PortDemand {
            tickets: tickets.iter().map(|ticket| Ticket(*ticket)).collect(),
            dormant: dormant.iter().map(|(used, number)| (*used, ContainerNumber(*number))).collect(),
            ending,
        }
    }

    /// What is to be done, in words.
    fn settled(line: &mut PortLine, is_free: impl FnMut(u16) -> bool) -> String {
        let word = |action: &PortAction| match action {
            PortAction::Grant { pool, port } => format!("{port} to {}", pool.0),
            PortAction::Evict { pool, container } => format!("evict {} of {}", container.0, pool.0),
        };
        line.settle(is_free).iter().map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn free_ports_go_to_the_tickets_that_waited_longest_over_all_pools() {
        let cases = [
            ("one pool", 2, vec![(A, demand(&[1, 2, 3], &[], 0))], "10 to 1, 11 to 1"),
            (
                "in turn",
                3,
                vec![(A, demand(&[1, 4], &[], 0)), (B, demand(&[2], &[], 0))],
                "10 to 1, 11 to 2, 12 to 1",
            ),
            ("later pool first", 1, vec![(A, demand(&[7], &[], 0)), (B, demand(&[5], &[], 0))], "10 to 2"),
            ("nothing wanted", 2, vec![(A, demand(&[], &[(1, 1)], 0))], ""),
        ];
        for (case, count, demands, expected) in cases {
            let mut line = PortLine::new(10..=9 + count);
            demands.into_iter().for_each(|(pool, demand)| line.report(pool, demand, 0));
            assert_eq!(settled(&mut line, |_| true), expected, "{case}");
        }
    }

    #[test]
    fn dormant_containers_are_evicted_least_recently_used_first_and_no_more_than_it_takes() {
        let cases = [
            ("the oldest", demand(&[], &[(9, 1), (4, 2), (6, 3)], 0), "evict 2 of 2"),
            ("of the same pool", demand(&[], &[], 0), "evict 8 of 1"),
            ("a port comes anyway", demand(&[], &[(4, 2)], 1), ""),
            ("two are to come", demand(&[2], &[(4, 2), (3, 1)], 0), "evict 1 of 2, evict 2 of 2"),
        ];
        for (case, of_other, expected) in cases {
            let mut line = PortLine::new(10..=10);
            line.report(A, demand(&[1], &[(20, 8)], 0), 0);
            line.report(B, of_other, 0);
            assert_eq!(settled(&mut line, |_| false), expected, "{case}");
            assert_eq!(settled(&mut line, |_| false), "", "{case}: it is said once");
        }
    }

    #[test]
    fn free_port_spares_dormant_containers() {
        let mut line = PortLine::new(10..=11);
        line.report(A, demand(&[1], &[], 0), 0);
        line.report(B, demand(&[], &[(1, 1)], 0), 0);
        assert_eq!(settled(&mut line, |port| port != 10), "11 to 1", "and passes over what others hold");
    }

    #[test]
    fn grant_is_not_repeated_before_its_pool_has_received_it() {
        let mut line = PortLine::new(10..=12);
        line.report(A, demand(&[1], &[], 0), 0);
        assert_eq!(settled(&mut line, |_| true), "10 to 1");
        // A report that was made before the grant arrived.
        line.report(A, demand(&[1, 2], &[], 0), 0);
        assert_eq!(settled(&mut line, |_| true), "11 to 1", "for the second ticket");
        line.report(A, demand(&[], &[], 0), 2);
        line.report(A, demand(&[3], &[], 0), 0);
        assert_eq!(settled(&mut line, |_| true), "12 to 1");
    }

    #[test]
    fn eviction_that_came_too_late_is_made_up_for_by_another() {
        let mut line = PortLine::new(10..=10);
        line.report(A, demand(&[1], &[], 0), 0);
        line.report(B, demand(&[], &[(1, 1), (2, 2)], 0), 0);
        assert_eq!(settled(&mut line, |_| false), "evict 1 of 2");
        // Its pool has woken it meanwhile.
        line.report(B, demand(&[], &[(2, 2)], 0), 0);
        assert_eq!(settled(&mut line, |_| false), "evict 2 of 2");
        line.report(B, demand(&[], &[], 1), 0);
        assert_eq!(settled(&mut line, |_| false), "", "it is being removed");
        assert_eq!(settled(&mut line, |_| true), "10 to 1");
    }

    #[test]
    fn ticket_that_leaves_gives_its_place_to_the_next() {
        let mut line = PortLine::new(10..=10);
        line.report(A, demand(&[1, 3], &[], 0), 0);
        line.report(B, demand(&[2], &[], 0), 0);
        assert_eq!(settled(&mut line, |_| false), "");
        assert_eq!(line.waiting(), [(Ticket(1), A), (Ticket(2), B), (Ticket(3), A)]);
        line.report(A, demand(&[3], &[], 0), 0);
        assert_eq!(settled(&mut line, |_| true), "10 to 2", "the later ticket of A is behind B");
        line.leave(B);
        line.give_back(10);
        assert_eq!(settled(&mut line, |_| true), "10 to 1");
    }

    #[test]
    fn container_that_is_warmed_ahead_gets_a_port_only_if_no_ticket_waits() {
        let mut line = PortLine::new(10..=10);
        line.report(A, demand(&[1], &[], 0), 0);
        assert_eq!(line.spare(|_| true), None);
        line.report(A, demand(&[], &[], 0), 0);
        assert_eq!((line.spare(|_| true), line.spare(|_| true)), (Some(10), None));
        line.report(B, demand(&[], &[(1, 1)], 0), 0);
        assert_eq!(line.spare(|_| true), None, "and nothing is evicted for it");
        assert_eq!(settled(&mut line, |_| true), "");
    }
}
