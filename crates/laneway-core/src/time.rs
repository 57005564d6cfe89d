//! A moment by the store's clock. Core never asks what time it is: `now` is always passed in.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970 in UTC. Stored as such, shown as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    pub fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)))
    }

    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Zero when `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            // Outside of years -9999 to 9999; a number is more honest than a wrong date.
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_rfc_3339() {
        assert_eq!(Millis(1_700_000_000_123).to_string(), "2023-11-14T22:13:20.123Z");
    }

    #[test]
    fn distances_never_go_below_zero() {
        assert_eq!(Millis(5).since(Millis(9)), Duration::ZERO);
        assert_eq!(Millis(9).since(Millis(5)), Duration::from_millis(4));
    }
}
