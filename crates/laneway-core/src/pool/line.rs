//! Who waits for a container, in order.

use std::collections::VecDeque;

use crate::id::RunId;

/// One wish for a container. Whoever asks numbers its wishes; no number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Who waits, and for which run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    pub ticket: Ticket,
    pub run: RunId,
}

/// First come, first served.
#[derive(Debug, Default)]
pub(super) struct Line(VecDeque<Waiter>);

impl Line {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn join(&mut self, waiter: Waiter) {
        self.0.push_back(waiter);
    }

    pub(super) fn at(&self, place: usize) -> Option<&Waiter> {
        self.0.get(place)
    }

    /// How many wait for other runs.
    pub(super) fn of_others(&self, run: RunId) -> usize {
        self.0.iter().filter(|waiter| waiter.run != run).count()
    }

    pub(super) fn first(&mut self) -> Option<Waiter> {
        self.0.pop_front()
    }

    /// Takes somebody out. False: that one does not wait.
    pub(super) fn leave(&mut self, ticket: Ticket) -> bool {
        let before = self.0.len();
        self.0.retain(|waiter| waiter.ticket != ticket);
        self.0.len() < before
    }

    pub(super) fn everybody(&mut self) -> impl Iterator<Item = Waiter> + '_ {
        self.0.drain(..)
    }
}
