//! Whether a failed attempt is tried again, and when. Pure: the dice are passed in.

use std::time::Duration;

use crate::definition::{Retry, RetryOn};
use crate::reason::Reason;

/// The delay before the next attempt, or `None` when the failure is final.
///
/// `spent` is how many retries this task has used; attempts that were given back or lost with their node
/// do not count. `dice` is a number from 0 up to 1.
pub fn next_delay(
    retry: &Retry,
    spent: u32,
    reason: Reason,
    exit_code: Option<i32>,
    dice: f64,
) -> Option<Duration> {
    if spent >= retry.max || !covers(retry, reason, exit_code) {
        return None;
    }
    let exponent = i32::try_from(spent).unwrap_or(i32::MAX);
    let full = retry.backoff.as_secs_f64() * retry.factor.powi(exponent);
    let capped = full.min(retry.max_backoff.as_secs_f64());
    let jittered = capped * (1.0 - retry.jitter * dice);
    // The cap above is a Duration, so the conversion cannot overflow; NaN (0 x infinity) means no delay.
    Some(Duration::try_from_secs_f64(jittered).unwrap_or(Duration::ZERO))
}

fn covers(retry: &Retry, reason: Reason, exit_code: Option<i32>) -> bool {
    retry.on.is_empty()
        || retry.on.iter().any(|on| match on {
            RetryOn::Reason(wanted) => *wanted == reason,
            RetryOn::ExitCode(code) => reason == Reason::Exit && exit_code == Some(*code),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(max: u32) -> Retry {
        Retry {
            max,
            backoff: Duration::from_secs(1),
            factor: 2.0,
            max_backoff: Duration::from_secs(5),
            ..Retry::default()
        }
    }

    #[test]
    fn delay_grows_by_the_factor_up_to_its_cap() {
        let delays: Vec<_> =
            (0..5).map(|spent| next_delay(&retry(9), spent, Reason::Exit, Some(1), 0.0)).collect();
        assert_eq!(delays, [1, 2, 4, 5, 5].map(|secs| Some(Duration::from_secs(secs))));
    }

    #[test]
    fn no_retry_is_left_after_max() {
        assert_eq!(next_delay(&retry(2), 2, Reason::Exit, Some(1), 0.0), None);
        assert_eq!(next_delay(&retry(0), 0, Reason::Timeout, None, 0.0), None);
    }

    #[test]
    fn jitter_only_shortens() {
        let jittered = Retry { jitter: 0.5, ..retry(1) };
        assert_eq!(next_delay(&jittered, 0, Reason::Exit, Some(1), 1.0), Some(Duration::from_millis(500)));
    }

    #[test]
    fn on_limits_which_failures_are_tried_again() {
        let only = Retry { on: vec![RetryOn::Reason(Reason::Timeout), RetryOn::ExitCode(75)], ..retry(3) };
        assert!(next_delay(&only, 0, Reason::Timeout, None, 0.0).is_some());
        assert!(next_delay(&only, 0, Reason::Exit, Some(75), 0.0).is_some());
        assert!(next_delay(&only, 0, Reason::Exit, Some(1), 0.0).is_none());
    }

    #[test]
    fn huge_factors_stay_at_the_cap() {
        let wild = Retry { factor: 1e300, ..retry(1000) };
        assert_eq!(next_delay(&wild, 999, Reason::Exit, Some(1), 0.0), Some(Duration::from_secs(5)));
    }
}
