//! What people want of this node's pools, by hand: the newest wish for each name counts. One that takes its time to prepare, because its
//! image is pulled first, is not granted behind one that came later.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Wishes(Mutex<HashMap<String, u64>>);

/// The number of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number(u64);

impl Wishes {
    /// A new wish for a pool, in place of all before. What can be done at once is done before anything of an older one.
    pub(super) fn begin(&self, pool: &str, act: impl FnOnce()) -> Number {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = newest.entry(pool.to_owned()).or_default();
        *number += 1;
        act();
        Number(*number)
    }

    /// Does what was wished for, unless somebody has wished for something else meanwhile. Nobody comes in between.
    pub(super) fn grant(&self, pool: &str, number: Number, act: impl FnOnce()) -> bool {
        let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newest = newest.get(pool) == Some(&number.0);
        if is_newest {
            act();
        }
        is_newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_that_is_still_prepared_when_a_newer_one_comes_is_dropped() {
        let wishes = Wishes::default();
        let (warm, other) = (wishes.begin("agents", || {}), wishes.begin("other", || {}));
        let mut drained = false;
        wishes.begin("agents", || drained = true);
        assert!(drained);
        assert!(!wishes.grant("agents", warm, || panic!("it was drained since")));
        assert!(wishes.grant("other", other, || {}), "that of another pool stands");
    }
}
