//! When a remote worker is to stop something, and when it had its time to do so. Pure: whoever calls brings what is held,
//! how long it was seen so, and the store's moment.

use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::time::Millis;
use laneway_store::ClaimRef;
use laneway_store::model::{Outcome, RemoteView, Stop};

use super::Terms;

/// How often those are told who do not listen; added to what they are given for stopping.
pub(super) const SLACK: Duration = Duration::from_secs(1);

/// What a worker holds, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) started_at: Option<Millis>,
    pub(super) timeout: Option<Duration>,
    /// For how long its session lives without a renewal.
    pub(super) lease: Duration,
    /// Why it is to be stopped, and for how long it was seen so.
    pub(super) stop: Option<(Reason, Duration)>,
    /// For how long it was seen unstarted.
    pub(super) idle: Duration,
}

/// What is done in the place of a worker.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    GiveBack,
    End { outcome: Outcome, took: Duration },
}

/// What a worker is asked to stop: what the store says, and what has run for longer than its step may.
pub fn stops(view: &RemoteView, timeout_of: impl Fn(&ClaimRef) -> Option<Duration>) -> Vec<Stop> {
    let mut stops = view.stops.clone();
    for (claim, started_at) in &view.held {
        let is_late = ran(*started_at, view.observed_at)
            .zip(timeout_of(claim))
            .is_some_and(|(ran, timeout)| ran >= timeout);
        if is_late && !stops.iter().any(|stop| stop.claim == *claim) {
            stops.push(Stop { claim: *claim, reason: Reason::Timeout });
        }
    }
    stops
}

/// A worker that was told, and had its time, is waited for no longer. What it never started goes back: others may have room.
pub(super) fn verdict(held: &Held, terms: &Terms, now: Millis) -> Option<Verdict> {
    let took = ran(held.started_at, now).unwrap_or_default();
    let grace = terms.kill_grace + SLACK;
    if let Some((reason, since)) = held.stop {
        let end = Verdict::End { outcome: Outcome::Canceled { reason }, took };
        return (since >= grace).then_some(end);
    }
    match (held.started_at, held.timeout) {
        (None, _) => (held.idle >= held.lease).then_some(Verdict::GiveBack),
        (Some(_), Some(timeout)) if took >= timeout + grace => {
            let detail = format!("ran longer than {timeout:?}");
            let outcome = Outcome::Failed { reason: Reason::Timeout, detail, exit_code: None };
            Some(Verdict::End { outcome, took })
        }
        (Some(_), _) => None,
    }
}

fn ran(started_at: Option<Millis>, now: Millis) -> Option<Duration> {
    started_at.map(|started_at| now.since(started_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000_000);

    fn held(started: Option<u64>, timeout: Option<u64>) -> Held {
        Held {
            started_at: started.map(|ago| Millis(NOW.0 - ago as i64 * 1_000)),
            timeout: timeout.map(Duration::from_secs),
            lease: Duration::from_secs(60),
            stop: None,
            idle: Duration::ZERO,
        }
    }

    #[test]
    fn worker_has_its_grace_and_not_more() {
        let terms = Terms::default();
        let late = |ago| verdict(&held(Some(ago), Some(10)), &terms, NOW);
        assert_eq!((late(9), late(15)), (None, None));
        let Some(Verdict::End { outcome: Outcome::Failed { reason, detail, .. }, took }) = late(16) else {
            panic!("it is over");
        };
        assert_eq!((reason, detail.as_str(), took.as_secs()), (Reason::Timeout, "ran longer than 10s", 16));
        assert_eq!(verdict(&held(Some(99_999), None), &terms, NOW), None, "no timeout is none");
        let stopped = |since| {
            let stop = Some((Reason::Canceled, Duration::from_secs(since)));
            verdict(&Held { stop, ..held(Some(3), Some(1)) }, &terms, NOW)
        };
        assert_eq!(stopped(5), None);
        let canceled = Outcome::Canceled { reason: Reason::Canceled };
        assert_eq!(stopped(6), Some(Verdict::End { outcome: canceled, took: Duration::from_secs(3) }));
    }

    #[test]
    fn what_is_never_started_goes_back_after_a_lease() {
        let terms = Terms::default();
        let idle = |seconds| {
            verdict(&Held { idle: Duration::from_secs(seconds), ..held(None, Some(1)) }, &terms, NOW)
        };
        assert_eq!((idle(59), idle(60)), (None, Some(Verdict::GiveBack)));
    }
}
