//! Who is first among those who wait: a number that an index sorts, so that nothing is compared when somebody claims.

use crate::time::Millis;

/// What one step of priority is worth, as waiting time.
pub const BOOST_MS: i64 = 60_000;

/// The bounds of `priority`. Together with the boost they bound how long the least may be overtaken by the highest:
/// 200 steps of a minute.
pub const LEAST_PRIORITY: i8 = -100;
pub const HIGHEST_PRIORITY: i8 = 100;

/// Smaller comes first. Among equal priorities the oldest is first; a task of lower priority is overtaken only by
/// those that came within its boost of it, so that it starts under any load.
pub fn rank(available_at: Millis, priority: i8) -> i64 {
    available_at.0.saturating_sub(i64::from(priority) * BOOST_MS)
}

/// Since when something has waited that has this place in line.
pub fn since(rank: i64, priority: i8) -> Millis {
    Millis(rank.saturating_add(i64::from(priority) * BOOST_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_in_line_tells_since_when_it_was_taken() {
        let at = Millis(1_700_000_000_000);
        for priority in [LEAST_PRIORITY, 0, 7, HIGHEST_PRIORITY] {
            assert_eq!(since(rank(at, priority), priority), at);
        }
    }

    #[test]
    fn priority_comes_first_then_age() {
        let at = Millis(1_700_000_000_000);
        let later = Millis(at.0 + 1);
        assert!(rank(at, 0) < rank(later, 0), "the older of equals");
        assert!(rank(later, 5) < rank(at, 0), "the more urgent one, though younger");
        assert!(rank(at, 0) < rank(at, -1));
    }

    #[test]
    fn nothing_is_overtaken_for_ever() {
        let at = Millis(0);
        let steps = i64::from(HIGHEST_PRIORITY) - i64::from(LEAST_PRIORITY);
        let beyond = Millis(steps * BOOST_MS + 1);
        assert!(rank(at, LEAST_PRIORITY) < rank(beyond, HIGHEST_PRIORITY));
    }
}
