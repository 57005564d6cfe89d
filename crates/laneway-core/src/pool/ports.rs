//! Which port of the host a container gets: in sequence, wrapping, never one that is taken, and
//! only one that the caller's probe found free. Owns the numbers; `port_line.rs` says who is next.

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

impl Ports {
    pub fn new(range: RangeInclusive<u16>) -> Self {
        Self { next: *range.start(), range, taken: BTreeSet::new() }
    }

    /// Takes the next port that is not taken here and that `is_free` finds free on the host.
    pub fn take(&mut self, mut is_free: impl FnMut(u16) -> bool) -> Option<u16> {
        let (first, last) = (*self.range.start(), *self.range.end());
        let mut in_order = (self.next..=last).chain(first..self.next);
        let port = in_order.find(|port| !self.taken.contains(port) && is_free(*port))?;
        self.taken.insert(port);
        self.next = if port == last { first } else { port + 1 };
        Some(port)
    }

    /// Takes a port back. One that is not given out changes nothing.
    pub fn give_back(&mut self, port: u16) {
        self.taken.remove(&port);
    }

    pub fn range(&self) -> &RangeInclusive<u16> {
        &self.range
    }

    /// How many ports of the range are not taken here. Other programs may have them.
    pub fn left(&self) -> usize {
        self.range.len() - self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ports_go_round_before_one_is_used_again() {
        let mut ports = Ports::new(10..=12);
        assert_eq!(ports.take(|_| true), Some(10));
        ports.give_back(10);
        assert_eq!([ports.take(|_| true), ports.take(|_| true)], [Some(11), Some(12)]);
        assert_eq!(ports.take(|_| true), Some(10), "it wraps");
    }

    #[test]
    fn a_port_that_the_host_uses_is_passed_over() {
        let mut ports = Ports::new(10..=12);
        assert_eq!(ports.take(|port| port != 10), Some(11));
    }

    #[test]
    fn a_range_of_one_serves_one_at_a_time() {
        let mut ports = Ports::new(u16::MAX..=u16::MAX);
        assert_eq!(ports.take(|_| true), Some(u16::MAX));
        assert_eq!((ports.take(|_| true), ports.left()), (None, 0));
        ports.give_back(u16::MAX);
        ports.give_back(u16::MAX);
        assert_eq!(ports.left(), 1);
        assert_eq!(ports.take(|_| true), Some(u16::MAX));
    }

    proptest! {
        #[test]
        fn no_port_has_two_holders(acts in prop::collection::vec((any::<bool>(), 0_usize..8), 1..200)) {
            let mut ports = Ports::new(100..=104);
            let mut held: Vec<u16> = Vec::new();
            for (takes, at) in acts {
                if takes {
                    match ports.take(|_| true) {
                        Some(port) => {
                            prop_assert!((100..=104).contains(&port) && !held.contains(&port));
                            held.push(port);
                        }
                        None => prop_assert_eq!(held.len(), 5),
                    }
                } else if !held.is_empty() {
                    let port = held.swap_remove(at % held.len());
                    ports.give_back(port);
                }
            }
        }
    }
}
