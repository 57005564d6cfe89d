//! Sessions that do not renew their leases, as this process has watched them. A lease that looks old is not enough
//! to end it: several processes that were frozen together thaw one after the other, and the first must not take
//! the others for frozen. So a lease ends only for a reaper that has itself seen it unrenewed for all of its
//! length, without a gap between its own looks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use laneway_core::id::SessionId;

#[derive(Debug, Default)]
pub(super) struct Unrenewed(Mutex<HashMap<SessionId, Watched>>);

#[derive(Debug, Clone, Copy)]
struct Watched {
    /// The renewal that was seen last, by the clock of whoever renewed.
    renewed: u128,
    /// Since when it is the last, by our own clock.
    since: Duration,
    looked: Duration,
}

impl Unrenewed {
    /// Looks at a lease whose last renewal is `renewed`, at the moment `now` of this process's clock. Says whether it
    /// was watched unrenewed for all of `ttl`.
    pub(super) fn has_watched(
        &self,
        session: SessionId,
        renewed: Duration,
        ttl: Duration,
        now: Duration,
    ) -> bool {
        let renewed = renewed.as_millis();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = all.entry(session).or_insert(Watched { renewed, since: now, looked: now });
        if watched.renewed != renewed || now.saturating_sub(watched.looked) > longest_gap(ttl) {
            (watched.renewed, watched.since) = (renewed, now);
        }
        watched.looked = now;
        now.saturating_sub(watched.since) >= ttl
    }

    /// Forgets sessions that are over.
    pub(super) fn keep(&self, is_listed: impl Fn(SessionId) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|session, _| is_listed(*session));
    }
}

/// A reaper that has not looked for so long may itself have been frozen.
fn longest_gap(ttl: Duration) -> Duration {
    ttl / 3
}

/// How soon to look again at a lease that may be ending, so that no gap comes in between.
pub(super) fn next_look(ttl: Duration) -> Duration {
    ttl / 8
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const TTL: Duration = Duration::from_secs(6);

    fn looks(at: &[u64]) -> Vec<bool> {
        let (watch, session) = (Unrenewed::default(), SessionId::new(Uuid::now_v7()));
        at.iter()
            .map(|at| watch.has_watched(session, Duration::from_secs(1), TTL, Duration::from_secs(*at)))
            .collect()
    }

    #[test]
    fn lease_ends_for_a_reaper_that_watched_all_of_it() {
        assert_eq!(looks(&[10, 12, 14, 16]), [false, false, false, true]);
    }

    #[test]
    fn reaper_that_was_frozen_itself_begins_its_watch_anew() {
        assert_eq!(looks(&[10, 12, 40, 42, 44, 46]), [false, false, false, false, false, true]);
        assert_eq!(looks(&[10, 99]), [false, false], "two looks are no watch");
    }

    #[test]
    fn renewal_begins_the_watch_anew() {
        let (watch, session) = (Unrenewed::default(), SessionId::new(Uuid::now_v7()));
        let look = |renewed, at| {
            watch.has_watched(session, Duration::from_secs(renewed), TTL, Duration::from_secs(at))
        };
        assert_eq!(
            [look(1, 10), look(1, 12), look(2, 14), look(2, 16), look(2, 18), look(2, 20)],
            [false, false, false, false, false, true]
        );
    }
}
