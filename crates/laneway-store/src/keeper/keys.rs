//! Keys that tasks of all runs share: locks, limits, rates and orders. Holders are counted from live tasks (a row for
//! each that is available or running), waiters stand at one key at a time, and a key that is let go of is named, so
//! that the store hands it on: SQLite in the same transaction, Postgres in the next one.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::gate::{Keys, Level, Limited, Locked, Ordered, Tat};
use laneway_core::key::TaskKeys;
use laneway_core::limit::Limit;
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_core::version::OrderVersion;
use laneway_torture::{Bug, has};

use super::{Facts, Keeper, unreadable};

/// A key by its kind and name: the order in which they are locked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    Limit(String),
    Lock(String),
    Order(String),
}

impl Key {
    /// As it is stored.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Limit(name) => format!("limit:{name}"),
            Self::Lock(key) => format!("lock:{key}"),
            Self::Order(key) => format!("order:{key}"),
        }
    }

    /// Of its text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        let name = name.to_owned();
        match kind {
            "limit" => Some(Self::Limit(name)),
            "lock" => Some(Self::Lock(name)),
            "order" => Some(Self::Order(name)),
            _ => None,
        }
    }

    /// The name of a limit, of its text.
    pub(super) fn limit_of(text: &str) -> Option<&str> {
        text.strip_prefix("limit:")
    }
}

/// What a verb did to keys.
#[derive(Debug, Default)]
pub(crate) struct KeyChanges {
    /// By key and task: whether it holds it now.
    pub(crate) holds: BTreeMap<(Key, Position), bool>,
    /// By key, version and task: whether it has yet to end.
    pub(crate) orders: BTreeMap<(String, String, Position), bool>,
    /// New timestamps of rates, and new fencing tokens of locks.
    pub(crate) tats: BTreeMap<String, Tat>,
    /// Others may go on now, in whatever run they are.
    pub(crate) freed: BTreeSet<Key>,
}

/// What was found behind the keys of one task.
#[derive(Debug, Default)]
pub(super) struct Found {
    order: Option<(String, u32)>,
    lock: Option<(String, u32)>,
    limits: Vec<(String, Level)>,
}

impl Found {
    /// Lends itself to the predicate.
    pub(super) fn lend<'a>(&'a self, limits: &'a mut Vec<Limited<'a>>) -> Keys<'a> {
        limits.extend(self.limits.iter().map(|(name, level)| Limited { name, level: *level }));
        Keys {
            order: self.order.as_ref().map(|(key, smaller)| Ordered { key, smaller: *smaller }),
            lock: self.lock.as_ref().map(|(key, holders)| Locked { key, holders: *holders }),
            limits,
        }
    }
}

impl<F: Facts> Keeper<F> {
    fn keys_of(&self, position: Position) -> Option<TaskKeys> {
        let item = self.tasks.get(&position).and_then(|kept| kept.row.item.as_deref());
        self.head.keys_of(position, item)
    }

    /// Looks behind every key of a task, in the order in which keys are locked.
    pub(super) fn find_keys(&mut self, position: Position) -> Result<Found, F::Error> {
        let Some(keys) = self.keys_of(position) else { return Ok(Found::default()) };
        let mut found = Found::default();
        for name in &keys.limits {
            let level = self.level(name, position)?;
            found.limits.push((name.clone(), level));
        }
        if let Some(key) = &keys.lock {
            let lock = Key::Lock(key.clone());
            let holders = self.holders(&lock)?;
            let is_promised = holders == 0 && self.is_promised(&lock, position)?;
            found.lock = Some((key.clone(), holders + u32::from(is_promised)));
        }
        if let Some((key, version)) = &keys.order {
            found.order = Some((key.clone(), self.smaller(key, &stored(version))?));
        }
        Ok(found)
    }

    /// Whether a key that became free, within this transaction or before it, is yet to be handed on to a
    /// task that waits longer than this one. Newcomers do not step in front of that task.
    fn is_promised(&mut self, key: &Key, position: Position) -> Result<bool, F::Error> {
        if !self.keys.freed.contains(key) && !self.promised.contains(key) {
            return Ok(false);
        }
        let rank = self.task(position)?.rank.unwrap_or(self.rank(position));
        self.facts.has_before(&key.text(), rank, position)
    }

    fn level(&mut self, name: &str, position: Position) -> Result<Level, F::Error> {
        // Nothing removes a limit that an unended run names. Without it this run alone is set
        // aside.
        let gone = || unreadable("limit of a step", name);
        let limit = self.facts.limit(name)?.ok_or_else(gone)?;
        Ok(match limit {
            Limit::Capacity(limit) => {
                let (key, limit) = (Key::Limit(name.to_owned()), limit.get());
                let holders = self.holders(&key)?;
                let is_promised = holders < limit && self.is_promised(&key, position)?;
                Level::Capacity { limit, holders: if is_promised { limit } else { holders } }
            }
            Limit::Rate(rate) => {
                let tat = match self.keys.tats.get(name) {
                    Some(tat) => Some(*tat),
                    None => self.facts.tat(name)?,
                };
                Level::Rate { rate, tat }
            }
        })
    }

    /// Those that are stored, and what this transaction has changed about them.
    fn holders(&mut self, key: &Key) -> Result<u32, F::Error> {
        let stored = self.facts.holders(key)?;
        let mut holders = i64::from(stored);
        let of_key = (key.clone(), Position::MIN)..=(key.clone(), Position::MAX);
        for ((_, position), holds) in self.keys.holds.range(of_key) {
            let held = self.tasks.get(position).is_some_and(|kept| kept.was.status.is_live());
            holders += i64::from(*holds) - i64::from(held);
        }
        Ok(u32::try_from(holders).unwrap_or_default())
    }

    /// Tasks with a smaller version that have yet to end.
    fn smaller(&mut self, key: &str, version: &str) -> Result<u32, F::Error> {
        let of_key = (key.to_owned(), String::new(), Position::MIN)..;
        let (mut begun, mut ended) = (0, 0);
        for ((other, smaller, position), stands) in self.keys.orders.range(of_key) {
            if other != key || smaller.as_str() >= version {
                break;
            }
            match (self.stood_in_order(*position), *stands) {
                (false, true) => begun += 1,
                (true, false) => ended += 1,
                // One that began and ended in this transaction is not among those that are stored.
                (false, false) | (true, true) => {}
            }
        }
        // More than have ended here is all that matters.
        let stored = self.facts.smaller(key, version, ended + 1)?;
        Ok((stored + begun).saturating_sub(ended))
    }

    /// Whether a task was among those on an order's key before this transaction.
    fn stood_in_order(&self, position: Position) -> bool {
        let had_ended = |kept: &super::Kept| kept.was.status.is_final();
        self.was.status == RunStatus::Running && !self.tasks.get(&position).is_some_and(had_ended)
    }

    /// Whether somebody else will be woken for a key, and this one need not be.
    pub(super) fn is_behind_another(
        &mut self,
        position: Position,
        key: Option<&str>,
    ) -> Result<bool, F::Error> {
        let Some(key) = key else { return Ok(false) };
        let is_woken = |(other, kept): (&Position, &super::Kept)| {
            *other != position && kept.row.wake_at.is_some() && kept.row.gate_key.as_deref() == Some(key)
        };
        if self.tasks.iter().any(is_woken) {
            return Ok(true);
        }
        self.facts.is_awaited(key, position)
    }

    /// Acquires the keys of a promoted task and spends its rates. Returns until when the task may
    /// start.
    pub(super) fn take_keys(&mut self, position: Position) -> Result<Option<Millis>, F::Error> {
        let Some(keys) = self.keys_of(position) else { return Ok(None) };
        let found = self.find_keys(position)?;
        let mut limits = Vec::new();
        let lent = found.lend(&mut limits);
        let start_by = lent.passage().map(|passage| self.now.after(passage));
        for (name, tat) in lent.spent(self.now) {
            self.keys.tats.insert(name.to_owned(), tat);
            // The next in line learns when its turn will come.
            self.keys.freed.insert(Key::Limit(name.to_owned()));
        }
        for key in held(&keys) {
            self.keys.holds.insert((key, position), true);
        }
        Ok(start_by)
    }

    /// Mints the fencing token of a task that has acquired its lock: larger than every earlier one.
    ///
    /// The time leads it, so a store restored from a backup mints larger tokens than it did before.
    pub(super) fn mint_fence(&mut self, position: Position) -> Result<Option<i64>, F::Error> {
        let Some(key) = self.keys_of(position).and_then(|keys| keys.lock) else { return Ok(None) };
        let lock = Key::Lock(key);
        let last = match self.keys.tats.get(&lock.text()) {
            Some(last) => Some(*last),
            None => self.facts.fence(&lock)?,
        };
        let next = last.map_or(0, |last| last.0.saturating_add(1)).max(self.now.0.saturating_mul(1000));
        self.keys.tats.insert(lock.text(), Tat(next));
        Ok(Some(next))
    }

    /// A task is not live any more.
    pub(super) fn free_keys(&mut self, position: Position) {
        let Some(keys) = self.keys_of(position) else { return };
        for key in held(&keys) {
            self.keys.holds.insert((key.clone(), position), false);
            self.keys.freed.insert(key);
        }
    }

    /// A task has ended, or is to run again: it stands before larger versions, or does so no more.
    pub(super) fn stand_in_order(&mut self, position: Position, stands: bool) {
        let Some((key, version)) = self.keys_of(position).and_then(|keys| keys.order) else { return };
        self.keys.orders.insert((key.clone(), stored(&version), position), stands);
        if !stands {
            self.keys.freed.insert(Key::Order(key));
        }
    }
}

/// What a live task holds.
fn held(keys: &TaskKeys) -> Vec<Key> {
    let limits = keys.limits.iter().cloned().map(Key::Limit);
    limits.chain(keys.lock.iter().cloned().map(Key::Lock)).collect()
}

/// In a form that sorts as versions compare, unless a seeded bug has it otherwise.
fn stored(version: &OrderVersion) -> String {
    if has(Bug::OrderAsText) { version.to_string() } else { version.stored() }
}
