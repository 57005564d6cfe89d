//! The one order in which transactions of this store acquire locks, and the type that enforces it.
//!
//! ```text
//!   sessions ▸ advisory locks of workflows ▸ runs by number ▸ new limits by name
//!            ▸ keys by name ▸ classes ▸ streams
//! ```
//! Two transactions that both acquire in a total order cannot wait for each other in a circle. Task
//! rows need no place in it: they change under the lock of their run, and `claim` skips locked rows.
//! Limits that a document declares are inserted in the order of their names (`limit_declare`).
//!
//! A transaction that turns out to need a lock behind one it holds does not wait for it. It fails
//! with [`Failure::OutOfOrder`], is rolled back, and `Base` runs it again with everything that it
//! held and wanted known beforehand ([`LockSet`]). What another run or key may do next has a
//! transaction of its own (`follow.rs`), so that this is rare.
//!
//! Streams (`nodes`, `pools`) number events in the order of their commits. They come last: nothing
//! is locked behind them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::fault::{Done, Failure};
use super::link::{Flight, Link, sql};

/// Runs by number and keys by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LockSet {
    pub(super) runs: BTreeSet<i64>,
    pub(super) keys: BTreeSet<String>,
}

impl LockSet {
    pub(super) fn extend(&mut self, other: Self) {
        self.runs.extend(other.runs);
        self.keys.extend(other.keys);
    }
}

/// The locks that one transaction holds.
#[derive(Debug, Default)]
pub(super) struct HeldLocks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: LockSet,
    /// The advisory lock of classes: neither runs nor keys are locked behind it.
    has_classes: bool,
    /// Runs that this transaction has made: invisible to others until it commits.
    new_runs: BTreeSet<i64>,
    /// What an earlier try of this transaction needed.
    foreseen: LockSet,
}

/// What is still to be locked, in the order of the lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Acquisition {
    runs: Vec<i64>,
    keys: Vec<String>,
    classes: bool,
}

impl Acquisition {
    /// Appends the statements that acquire it.
    pub(super) fn send<'a>(&'a self, flight: &mut Flight<'a>) {
        if !self.runs.is_empty() {
            flight.tell(sql!("runs_lock", INT8_ARRAY), vec![&self.runs]);
        }
        if !self.keys.is_empty() {
            flight.tell(sql!("keys_lock", TEXT_ARRAY), vec![&self.keys]);
        }
        if self.classes {
            flight.tell(sql!("classes_lock"), Vec::new());
        }
    }
}

impl HeldLocks {
    /// For a try that follows one which failed out of order.
    pub(super) fn foreseeing(foreseen: LockSet) -> Self {
        Self { state: Mutex::new(State { foreseen, ..State::default() }) }
    }

    /// A transaction begins: nothing is held.
    pub(super) fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.held = LockSet::default();
        state.has_classes = false;
        state.new_runs.clear();
    }

    /// This transaction makes a run. It needs no lock, because no other transaction sees the run.
    pub(super) fn add_new_run(&self, no: i64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).new_runs.insert(no);
    }

    /// # Errors
    /// [`Failure::OutOfOrder`] if a run that is not held yet comes before what is held.
    pub(super) fn acquire_runs(&self, runs: &[i64]) -> Done<Acquisition> {
        self.acquire(runs.iter().copied().collect(), BTreeSet::new(), false)
    }

    /// # Errors
    /// [`Failure::OutOfOrder`] if a key that is not held yet comes before one that is.
    pub(super) fn acquire_keys(&self, keys: &[String]) -> Done<Acquisition> {
        self.acquire(BTreeSet::new(), keys.iter().cloned().collect(), false)
    }

    /// The lock under which a session that begins to take classes and a transaction that looks for
    /// takers, or makes a class, see each other's rows.
    ///
    /// # Errors
    /// [`Failure::OutOfOrder`] if an earlier try foresaw a lock that comes before what is held.
    pub(super) fn acquire_classes(&self) -> Done<Acquisition> {
        self.acquire(BTreeSet::new(), BTreeSet::new(), true)
    }

    fn acquire(
        &self,
        mut runs: BTreeSet<i64>,
        mut keys: BTreeSet<String>,
        classes: bool,
    ) -> Done<Acquisition> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Foreseen runs go with whatever is acquired first, foreseen keys with the first keys, or
        // before the classes.
        runs.extend(&state.foreseen.runs);
        if !keys.is_empty() || classes {
            keys.extend(state.foreseen.keys.iter().cloned());
        }
        runs.retain(|run| !state.held.runs.contains(run) && !state.new_runs.contains(run));
        keys.retain(|key| !state.held.keys.contains(key));
        let is_run_late = runs.first().is_some_and(|first| {
            !state.held.keys.is_empty() || state.held.runs.last().is_some_and(|last| first < last)
        });
        let is_key_late =
            keys.first().is_some_and(|first| state.held.keys.last().is_some_and(|last| first < last));
        let is_behind_classes = state.has_classes && !(runs.is_empty() && keys.is_empty());
        state.held.extend(LockSet { runs: runs.clone(), keys: keys.clone() });
        if is_run_late || is_key_late || is_behind_classes {
            return Err(Failure::OutOfOrder(Box::new(state.held.clone())));
        }
        let classes = classes && !std::mem::replace(&mut state.has_classes, true);
        Ok(Acquisition { runs: runs.into_iter().collect(), keys: keys.into_iter().collect(), classes })
    }

    /// Whether an earlier try foresaw more than has been acquired.
    #[cfg(test)]
    fn is_exhausted(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.foreseen.runs.is_subset(&state.held.runs) && state.foreseen.keys.is_subset(&state.held.keys)
    }
}

/// Locks runs, for verbs that need nothing else in the same flight.
pub(super) async fn lock_runs(link: &Link, runs: &[i64]) -> Done<()> {
    let acquisition = link.locks.acquire_runs(runs)?;
    let mut flight = link.flight();
    acquisition.send(&mut flight);
    flight.land().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn locks_are_acquired_in_ascending_order_whatever_the_order_of_the_request() {
        let locks = HeldLocks::default();
        let acquired = locks.acquire_runs(&[7, 3]).expect("nothing is held");
        assert_eq!(acquired, Acquisition { runs: vec![3, 7], ..Acquisition::default() });
        let acquired = locks.acquire_keys(&keys(&["lock:b", "limit:a"])).expect("keys follow runs");
        assert_eq!(acquired.keys, keys(&["limit:a", "lock:b"]));
        let acquired = locks.acquire_keys(&keys(&["limit:a", "order:c"])).expect("c comes behind b");
        assert_eq!(acquired.keys, keys(&["order:c"]), "what is held is not locked again");
    }

    #[test]
    fn a_lock_behind_one_that_is_held_fails_and_the_next_try_acquires_all_in_order() {
        let locks = HeldLocks::default();
        locks.acquire_runs(&[5]).expect("nothing is held");
        locks.acquire_keys(&keys(&["lock:b"])).expect("keys follow runs");
        let Err(Failure::OutOfOrder(needed)) = locks.acquire_keys(&keys(&["limit:a"])) else {
            panic!("a key before one that is held was acquired");
        };
        let again = HeldLocks::foreseeing(*needed);
        assert_eq!(again.acquire_runs(&[5]).expect("nothing is held").runs, [5]);
        let acquired = again.acquire_keys(&keys(&["lock:b"])).expect("keys follow runs");
        assert_eq!(acquired.keys, keys(&["limit:a", "lock:b"]));
        assert!(again.is_exhausted());
        assert_eq!(again.acquire_keys(&keys(&["limit:a"])).expect("it is held"), Acquisition::default());
    }

    #[test]
    fn a_run_behind_a_key_fails_unless_the_transaction_has_made_it() {
        let locks = HeldLocks::default();
        locks.acquire_keys(&keys(&["lock:b"])).expect("nothing is held");
        locks.add_new_run(9);
        assert_eq!(locks.acquire_runs(&[9]).expect("it is new"), Acquisition::default());
        assert!(matches!(locks.acquire_runs(&[4]), Err(Failure::OutOfOrder(_))));
    }

    #[test]
    fn foreseen_runs_are_acquired_before_the_first_keys() {
        let foreseen = LockSet { runs: [4].into(), keys: BTreeSet::new() };
        let again = HeldLocks::foreseeing(foreseen);
        let acquired = again.acquire_keys(&keys(&["lock:b"])).expect("nothing is held");
        assert_eq!(acquired, Acquisition { runs: vec![4], keys: keys(&["lock:b"]), classes: false });
    }

    #[test]
    fn a_key_behind_the_classes_fails_and_the_next_try_acquires_it_before_them() {
        let locks = HeldLocks::default();
        locks.acquire_runs(&[5]).expect("nothing is held");
        assert!(locks.acquire_classes().expect("classes follow runs").classes);
        assert_eq!(locks.acquire_classes().expect("they are held"), Acquisition::default());
        locks.acquire_runs(&[5]).expect("it is held");
        let Err(Failure::OutOfOrder(needed)) = locks.acquire_keys(&keys(&["lock:b"])) else {
            panic!("a key was acquired behind the classes");
        };
        let again = HeldLocks::foreseeing(*needed);
        again.acquire_runs(&[5]).expect("nothing is held");
        let acquired = again.acquire_classes().expect("the key comes before them");
        assert_eq!(acquired, Acquisition { runs: Vec::new(), keys: keys(&["lock:b"]), classes: true });
        assert_eq!(again.acquire_keys(&keys(&["lock:b"])).expect("it is held"), Acquisition::default());
        assert!(again.is_exhausted());
    }

    #[test]
    fn a_second_transaction_of_a_try_acquires_what_was_foreseen_as_well() {
        let again = HeldLocks::foreseeing(LockSet { runs: [4].into(), keys: ["lock:b".to_owned()].into() });
        again.acquire_classes().expect("nothing is held");
        again.clear();
        assert_eq!(again.acquire_runs(&[7]).expect("nothing is held").runs, [4, 7]);
        assert_eq!(
            again.acquire_keys(&keys(&["lock:c"])).expect("in order").keys,
            keys(&["lock:b", "lock:c"])
        );
    }
}
