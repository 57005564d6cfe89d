//! Named limits, which all runs of a store share: a number of tasks at once, or a rate. Owns how they are written
//! (`3`, `100/1m`) and when two of one name agree; whether one is open is the gate's (`gate/`).

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::definition::parse_duration;

/// The largest number of a limit; more is a limit that nobody reaches.
pub const MAX_LIMIT: u32 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// So many tasks at once.
    Capacity(NonZeroU32),
    Rate(Rate),
}

/// At most so many tasks start in any window of that length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    pub count: NonZeroU32,
    /// Never zero.
    pub window: Duration,
}

/// Why a text is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotALimit {
    #[error("a limit of 0 lets nothing run; leave it out to have none, or use `laneway pause`")]
    Zero,
    #[error("the largest number is {MAX_LIMIT}")]
    TooLarge,
    #[error("write a number of tasks at once, such as 3, or a rate, such as 100/1m")]
    Form,
    #[error("after the `/` stands a duration: {hint}")]
    Window { hint: String },
}

/// A document declares a limit that the store has otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit `{name}` is {stored} in this store, and the document says {declared}; write {stored} or leave it out of \
     `limits`, or change it for all with `laneway limit set {name} {declared}`"
)]
pub struct Disagreement {
    pub name: String,
    pub stored: Limit,
    pub declared: Limit,
}

/// A passage lasts for `window / WINDOW_DIVISOR`, within the two bounds below: long enough for a
/// node to claim and start the task.
const WINDOW_DIVISOR: u32 = 20;
const MIN_PASSAGE: Duration = Duration::from_millis(50);
const MAX_PASSAGE: Duration = Duration::from_secs(5);

impl Rate {
    /// Returns how long a passage lasts. A task that does not start within it needs a new one, so
    /// passages that expire while all slots are busy do not add up to a burst.
    pub fn passage(self) -> Duration {
        (self.window / WINDOW_DIVISOR).clamp(MIN_PASSAGE, MAX_PASSAGE)
    }

    /// Returns the distance between two passages, in microseconds, rounded up.
    ///
    /// A task starts at most `passage` after its promotion, and its program needs a moment more to
    /// run (half a passage). With passages `(window + both) / count` apart, no window has more than
    /// `count` starts.
    pub fn spacing(self) -> i64 {
        let late = self.passage() * 3 / 2;
        let micros = i64::try_from((self.window.saturating_add(late)).as_micros()).unwrap_or(i64::MAX);
        let count = i64::from(self.count.get());
        micros / count + i64::from(micros % count != 0)
    }
}

impl Limit {
    /// Takes `3` or `100/1m`, as a document, a command or a store writes it.
    pub fn parse(text: &str) -> Result<Self, NotALimit> {
        match text.split_once('/') {
            None => count(text).map(Self::Capacity),
            Some((number, window)) => {
                let count = count(number)?;
                let window = parse_duration(window).map_err(|hint| NotALimit::Window {
                    hint: hint.unwrap_or_else(|| "such as 1s, 1m or 1h".to_owned()),
                })?;
                if window.is_zero() {
                    return Err(NotALimit::Window { hint: "it is longer than 0s".to_owned() });
                }
                Ok(Self::Rate(Rate { count, window }))
            }
        }
    }

    /// A document may repeat what the store has, and never change it: other workflows count on it.
    pub fn agree(name: &str, declared: Self, stored: Self) -> Result<(), Disagreement> {
        if declared == stored {
            return Ok(());
        }
        Err(Disagreement { name: name.to_owned(), stored, declared })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(count) => write!(f, "{count}"),
            Self::Rate(rate) => rate.fmt(f),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, written(self.window))
    }
}

/// A duration as a document writes it: `1h30m`.
pub(crate) fn written(duration: Duration) -> String {
    const UNITS: [(&str, u128); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = duration.as_millis();
    let mut text = String::new();
    for (unit, size) in UNITS {
        if rest >= size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn count(text: &str) -> Result<NonZeroU32, NotALimit> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotALimit::Form);
    }
    match text.parse::<u32>() {
        Ok(number) if number <= MAX_LIMIT => NonZeroU32::new(number).ok_or(NotALimit::Zero),
        Ok(_) | Err(_) => Err(NotALimit::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in ["3", "1000000", "100/1m", "1/1h30m", "5/250ms", "10/1d"] {
            assert_eq!(Limit::parse(text).expect(text).to_string(), text);
        }
        assert_eq!(Limit::parse("2/60s"), Limit::parse("2/1m"), "one rate, written in two ways");
    }

    #[test]
    fn what_is_no_limit_says_what_to_write() {
        for (text, why) in [
            ("0", "a limit of 0 lets nothing run; leave it out to have none, or use `laneway pause`"),
            ("0/1m", "a limit of 0 lets nothing run; leave it out to have none, or use `laneway pause`"),
            ("1000001", "the largest number is 1000000"),
            ("many", "write a number of tasks at once, such as 3, or a rate, such as 100/1m"),
            ("-1", "write a number of tasks at once, such as 3, or a rate, such as 100/1m"),
            ("/1m", "write a number of tasks at once, such as 3, or a rate, such as 100/1m"),
            ("5/m", "after the `/` stands a duration: such as 1s, 1m or 1h"),
            ("5/60", "after the `/` stands a duration: add a unit: `60s` is 60 seconds, `60m` minutes"),
            ("5/0s", "after the `/` stands a duration: it is longer than 0s"),
        ] {
            assert_eq!(Limit::parse(text).expect_err(text).to_string(), why, "{text}");
        }
    }

    #[test]
    fn a_document_that_says_otherwise_is_refused_with_both_ways_out() {
        let [three, rate] = ["3", "100/1m"].map(|text| Limit::parse(text).expect(text));
        assert_eq!(Limit::agree("api", rate, rate), Ok(()));
        assert_eq!(
            Limit::agree("api", rate, three).expect_err("they differ").to_string(),
            "the limit `api` is 3 in this store, and the document says 100/1m; write 3 or leave it out of `limits`, or \
             change it for all with `laneway limit set api 100/1m`"
        );
    }
}
