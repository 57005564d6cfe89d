//! Which port of the host a container gets: in sequence, wrapping, never one that is given out, and only one that the
//! caller's probe found free.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The ports of a node. One port has one holder.
#[derive(Debug, Clone)]
pub struct Ports {
    range: RangeInclusive<u16>,
    /// Where the next look begins: behind the last one given, so that a port rests as long as it can.
    next: u16,
    taken: BTreeSet<u16>,
}

/// There is no port left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no port is free from {first} to {last}: {ours} of them belong to containers of this node, {others} to others; \
     widen the setting `ports`"
)]
pub struct Exhausted {
    pub first: u16,
    pub last: u16,
    pub ours: usize,
    pub others: usize,
}

impl Ports {
    pub fn new(range: RangeInclusive<u16>) -> Self {
        Self { next: *range.start(), range, taken: BTreeSet::new() }
    }

    /// Gives the next port that nobody here has and that `is_free` finds free on the host.
    pub fn take(&mut self, mut is_free: impl FnMut(u16) -> bool) -> Result<u16, Exhausted> {
        let (first, last) = (*self.range.start(), *self.range.end());
        let in_order = (self.next..=last).chain(first..self.next);
        for port in in_order {
            if !self.taken.contains(&port) && is_free(port) {
                self.taken.insert(port);
                self.next = if port == last { first } else { port + 1 };
                return Ok(port);
            }
        }
        let ours = self.taken.len();
        Err(Exhausted { first, last, ours, others: self.range.len() - ours })
    }

    /// Takes a port back. One that is not given out changes nothing.
    pub fn give_back(&mut self, port: u16) {
        self.taken.remove(&port);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ports_go_round_before_one_is_used_again() {
        let mut ports = Ports::new(10..=12);
        assert_eq!(ports.take(|_| true), Ok(10));
        ports.give_back(10);
        assert_eq!([ports.take(|_| true), ports.take(|_| true)], [Ok(11), Ok(12)]);
        assert_eq!(ports.take(|_| true), Ok(10), "it wraps");
    }

    #[test]
    fn a_port_that_the_host_uses_is_passed_over() {
        let mut ports = Ports::new(10..=12);
        assert_eq!(ports.take(|port| port != 10), Ok(11));
    }

    #[test]
    fn a_range_of_one_serves_one_at_a_time() {
        let mut ports = Ports::new(u16::MAX..=u16::MAX);
        assert_eq!(ports.take(|_| true), Ok(u16::MAX));
        assert!(ports.take(|_| true).is_err());
        ports.give_back(u16::MAX);
        ports.give_back(u16::MAX);
        assert_eq!(ports.take(|_| true), Ok(u16::MAX));
    }

    #[test]
    fn exhaustion_says_who_has_the_ports_and_what_to_do() {
        let mut ports = Ports::new(49200..=49201);
        ports.take(|_| true).expect("one");
        let error = ports.take(|_| false).expect_err("the other is somebody else's");
        assert_eq!(
            error.to_string(),
            "no port is free from 49200 to 49201: 1 of them belong to containers of this node, 1 to others; \
             widen the setting `ports`"
        );
    }

    proptest! {
        #[test]
        fn no_port_has_two_holders(acts in prop::collection::vec((any::<bool>(), 0_usize..8), 1..200)) {
            let mut ports = Ports::new(100..=104);
            let mut held: Vec<u16> = Vec::new();
            for (takes, at) in acts {
                if takes {
                    match ports.take(|_| true) {
                        Ok(port) => {
                            prop_assert!((100..=104).contains(&port) && !held.contains(&port));
                            held.push(port);
                        }
                        Err(_) => prop_assert_eq!(held.len(), 5),
                    }
                } else if !held.is_empty() {
                    let port = held.swap_remove(at % held.len());
                    ports.give_back(port);
                }
            }
        }
    }
}
