//! The first place that a transaction has filled in the line of each class, which moves the claim
//! cursors of every node back (claim_cursor.rs). Pure, but for the words in which a notification
//! carries it.

use std::collections::BTreeMap;
use std::collections::btree_map::Iter;

use super::claim_cursor::LinePlace;

/// A task whose rank is older than this is announced to other nodes. Every claim looks at younger
/// ones anyway.
const EARLY_MS: i64 = 200;

/// Classes of one announcement: with these it has at most 5,200 of the 8,000 bytes that Postgres
/// allows.
const MAX_ANNOUNCED: usize = 64;

/// The first new place in the line of each class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlacedTasks {
    first: BTreeMap<i64, LinePlace>,
    /// Those that claims of other nodes may have passed already.
    early: BTreeMap<i64, LinePlace>,
}

impl PlacedTasks {
    pub(super) fn add(&mut self, class: i64, place: LinePlace, now_ms: i64) {
        lower(&mut self.first, class, place);
        if place.rank < now_ms - EARLY_MS {
            lower(&mut self.early, class, place);
        }
    }

    pub(super) fn iter(&self) -> Iter<'_, i64, LinePlace> {
        self.first.iter()
    }

    /// Whether claims of other nodes may have passed some of them already.
    pub(super) fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    /// Adds the early places of another transaction.
    pub(super) fn announce_too(&mut self, other: &Self) {
        other.early.iter().for_each(|(class, place)| lower(&mut self.early, *class, *place));
    }

    /// Returns what other nodes are told, or `None` where no place is early. Classes beyond
    /// `MAX_ANNOUNCED` are left to the full walks of those nodes.
    pub(super) fn words(&self) -> Option<String> {
        let word = |(class, place): (&i64, &LinePlace)| {
            format!("{class}:{}:{}:{}", place.rank, place.run_no, place.position)
        };
        let words: Vec<String> = self.early.iter().take(MAX_ANNOUNCED).map(word).collect();
        (!words.is_empty()).then(|| words.join(","))
    }

    /// Reads `words`. Passes over what it cannot read: a notification is a hint.
    pub(super) fn parse(words: &str) -> Self {
        let mut placed = Self::default();
        for word in words.split(',') {
            let numbers: Result<Vec<i64>, _> = word.split(':').map(str::parse).collect();
            if let Ok([class, rank, run_no, position]) = numbers.as_deref() {
                let place = LinePlace { rank: *rank, run_no: *run_no, position: *position };
                lower(&mut placed.first, *class, place);
                lower(&mut placed.early, *class, place);
            }
        }
        placed
    }
}

fn lower(places: &mut BTreeMap<i64, LinePlace>, class: i64, place: LinePlace) {
    places.entry(class).and_modify(|kept| *kept = place.min(*kept)).or_insert(place);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: i64) -> LinePlace {
        LinePlace { rank, run_no: 7, position: 3 }
    }

    #[test]
    fn early_places_are_announced_and_read_again() {
        let mut placed = PlacedTasks::default();
        for (class, rank) in [(1, 900), (1, 500), (2, -60_000), (3, 990)] {
            placed.add(class, place(rank), 1_000);
        }
        let words = placed.words().expect("two classes have early places");
        assert_eq!(words, "1:500:7:3,2:-60000:7:3");
        let heard: Vec<_> =
            PlacedTasks::parse(&words).iter().map(|(class, place)| (*class, place.rank)).collect();
        assert_eq!(heard, [(1, 500), (2, -60_000)]);
        let all: Vec<_> = placed.iter().map(|(class, place)| (*class, place.rank)).collect();
        assert_eq!(all, [(1, 500), (2, -60_000), (3, 990)]);
    }

    #[test]
    fn what_cannot_be_read_is_passed_over() {
        let heard = PlacedTasks::parse("1:2:3,x:1:1:1,5:6:7:8,");
        let place = LinePlace { rank: 6, run_no: 7, position: 8 };
        assert_eq!(heard.iter().collect::<Vec<_>>(), [(&5, &place)]);
    }

    #[test]
    fn an_announcement_fits_a_notification() {
        let mut placed = PlacedTasks::default();
        (0..1_000).for_each(|class| {
            placed.add(
                i64::MIN + class,
                LinePlace { rank: i64::MIN, run_no: i64::MIN, position: i64::MIN },
                0,
            )
        });
        assert!(placed.words().expect("early places").len() < 5_500);
    }
}
