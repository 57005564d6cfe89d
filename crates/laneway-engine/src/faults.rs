//! What is stored and cannot be read is met again with every question, and told once.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// How many are remembered. Whoever has more of them is told again.
const KEPT: usize = 100;

/// Of which faults people were told.
#[derive(Debug, Default)]
pub struct Faults(Mutex<HashSet<String>>);

impl Faults {
    /// Whether nobody was told of it yet. From here on somebody was.
    pub fn is_new(&self, fault: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(fault) {
            return false;
        }
        if told.len() >= KEPT {
            told.clear();
        }
        told.insert(fault.to_owned())
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_and_few_are_remembered() {
        let faults = Faults::default();
        assert!(faults.is_new("one") && !faults.is_new("one") && faults.is_new("two"));
        assert!((0..KEPT).all(|number| faults.is_new(&number.to_string())));
        assert!(faults.len() <= KEPT);
    }
}
