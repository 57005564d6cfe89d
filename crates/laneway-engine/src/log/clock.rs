//! Wall time of log frames. It is shown to people and decides nothing: leases and gates use the
//! store's clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970. A clock set before that reads as 0 rather than failing a step.
#[expect(clippy::disallowed_methods, reason = "this is the wrapper around the machine's clock for logs")]
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
