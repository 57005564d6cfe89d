//! Gates with a key that tasks of all runs share: order, lock, limits and rates. Owns their predicate; the store counts
//! the holders under the keys' locks, from live tasks, and takes all of a task's keys or none.

use std::time::Duration;

use super::rate::{Passage, Tat, gcra};
use super::{Gate, Wait};
use crate::limit::Rate;
use crate::time::Millis;

/// What the store found behind the keys of one task. Nothing in it: a task without keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keys<'a> {
    pub order: Option<Ordered<'a>>,
    pub lock: Option<Locked<'a>>,
    /// In the order of their names.
    pub limits: &'a [Limited<'a>],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ordered<'a> {
    pub key: &'a str,
    /// Tasks with a smaller version on that key that are pending, available, running or parked. Those of a run
    /// that is queued behind `max_runs` do not count: it may wait for the very run that asks.
    pub smaller: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locked<'a> {
    pub key: &'a str,
    /// Other tasks on that key that are available or running.
    pub holders: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited<'a> {
    pub name: &'a str,
    pub level: Level,
}

/// How far a named limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `holders` are other tasks with that limit that are available or running.
    Capacity {
        limit: u32,
        holders: u32,
    },
    Rate {
        rate: Rate,
        tat: Option<Tat>,
    },
}

impl<'a> Keys<'a> {
    /// The first that is closed. Rates come last, because to pass one is to spend it.
    pub(super) fn closed(&self, now: Millis) -> Option<Wait<'a>> {
        if let Some(order) = self.order
            && order.smaller > 0
        {
            return Some(Wait { gate: Gate::Order, key: Some(order.key), until: None });
        }
        if let Some(lock) = self.lock
            && lock.holders > 0
        {
            return Some(Wait { gate: Gate::Lock, key: Some(lock.key), until: None });
        }
        self.full().or_else(|| self.too_early(now))
    }

    fn full(&self) -> Option<Wait<'a>> {
        let full = self.limits.iter().find(|limited| match limited.level {
            Level::Capacity { limit, holders } => holders >= limit,
            Level::Rate { .. } => false,
        })?;
        Some(Wait { gate: Gate::Limit, key: Some(full.name), until: None })
    }

    /// Of several rates the one that opens last: to ask before that moment is in vain.
    fn too_early(&self, now: Millis) -> Option<Wait<'a>> {
        let closed = self.limits.iter().filter_map(|limited| match limited.level {
            Level::Capacity { .. } => None,
            Level::Rate { rate, tat } => match gcra(tat, now, rate) {
                Passage::Open { .. } => None,
                Passage::Closed { until } => Some((until, limited.name)),
            },
        });
        let (until, name) = closed.max_by_key(|(until, _)| *until)?;
        Some(Wait { gate: Gate::Rate, key: Some(name), until: Some(until) })
    }

    /// Returns how long a promoted task may wait until it starts: its shortest passage.
    pub fn passage(&self) -> Option<Duration> {
        let passages = self.limits.iter().filter_map(|limited| match limited.level {
            Level::Capacity { .. } => None,
            Level::Rate { rate, .. } => Some(rate.passage()),
        });
        passages.min()
    }

    /// What a task that was let through leaves in the rows of its rates: the name of each and its new timestamp.
    pub fn spent(&self, now: Millis) -> Vec<(&'a str, Tat)> {
        let spent = self.limits.iter().filter_map(|limited| match limited.level {
            Level::Capacity { .. } => None,
            Level::Rate { rate, tat } => match gcra(tat, now, rate) {
                Passage::Open { next } => Some((limited.name, next)),
                Passage::Closed { .. } => None,
            },
        });
        spent.collect()
    }
}
