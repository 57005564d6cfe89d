//! `not_before`: a moment, or a delay, before which a step or a run does not start. Pure: reads the
//! text and resolves a delay. The store holds the task or the run back (`gate.rs`, docs/design/gates.md).

use std::fmt;
use std::time::Duration;

use crate::definition::{When, parse_duration};
use crate::limit::written;
use crate::reason::Reason;
use crate::state::TaskStatus;
use crate::time::Millis;
use crate::wait;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotBefore {
    At(Millis),
    After(Duration),
}

impl NotBefore {
    /// Reads `2026-12-24T18:00:00Z` or `90m`.
    ///
    /// # Errors
    /// Says what the text is instead, as the end of a sentence that begins with the name of the key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let hint = match parse_duration(text) {
            Ok(delay) => return Ok(Self::After(delay)),
            Err(hint) => hint,
        };
        let why = match wait::moment(text) {
            Ok(moment) => return Ok(Self::At(moment)),
            Err(why) => why,
        };
        let is_moment_without_zone = text.parse::<jiff::civil::DateTime>().is_ok();
        let is_number = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        Err(match hint {
            _ if is_moment_without_zone => why,
            Some(hint) if is_number => format!("`{text}`, which is no duration: {hint}"),
            Some(_) | None => {
                format!(
                    "`{text}`, which is neither a moment such as 2026-12-24T18:00:00Z nor a duration such as 5m"
                )
            }
        })
    }

    /// Resolves a delay that is counted from `base`.
    pub fn moment(self, base: Millis) -> Millis {
        match self {
            Self::At(moment) => moment,
            Self::After(delay) => base.after(delay),
        }
    }
}

impl fmt::Display for NotBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(moment) => write!(f, "{moment}"),
            Self::After(delay) => f.write_str(&written(*delay)),
        }
    }
}

/// A task that a step needs, as far as it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub status: TaskStatus,
    pub reason: Option<Reason>,
    pub at: Millis,
}

/// Returns the moment from which the delay of a step is counted: when what it needs had ended as its
/// `when` asks. Reads nothing but how those tasks ended, so that the answer stays the same however
/// often it is asked. `None` for a step that needs nothing.
pub fn base(when: When, needs: impl Iterator<Item = Ended>) -> Option<Millis> {
    let is_success = |ended: &Ended| {
        ended.status == TaskStatus::Succeeded || ended.reason == Some(Reason::SkippedByPerson)
    };
    match when {
        When::OneSucceeded => needs.filter(is_success).map(|ended| ended.at).min(),
        When::OneFailed => {
            needs.filter(|ended| ended.status == TaskStatus::Failed).map(|ended| ended.at).min()
        }
        When::AllSucceeded | When::AllDone | When::AllFailed | When::Always => {
            needs.map(|ended| ended.at).max()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_and_a_delay_are_told_apart() {
        assert_eq!(NotBefore::parse(" 90m "), Ok(NotBefore::After(Duration::from_secs(5400))));
        assert_eq!(NotBefore::parse("0s"), Ok(NotBefore::After(Duration::ZERO)));
        for text in ["1970-01-01T01:00:01+01:00", "1970-01-01T00:00:01Z"] {
            assert_eq!(NotBefore::parse(text), Ok(NotBefore::At(Millis(1000))), "{text}");
        }
        let early = NotBefore::After(Duration::from_secs(2));
        assert_eq!(early.moment(Millis(500)), Millis(2500));
        assert_eq!(NotBefore::At(Millis(7)).moment(Millis(500)), Millis(7));
        assert_eq!(NotBefore::After(Duration::from_secs(5400)).to_string(), "1h30m");
    }

    #[test]
    fn what_is_neither_is_refused_in_words() {
        let why = |text: &str| NotBefore::parse(text).expect_err("it must be refused");
        assert_eq!(
            why("tomorrow"),
            "`tomorrow`, which is neither a moment such as 2026-12-24T18:00:00Z nor a duration such as 5m"
        );
        assert_eq!(
            why("2026-12-24T18:00:00"),
            "`2026-12-24T18:00:00`, which is another moment in each time zone: add Z for UTC, or an offset such as +01:00"
        );
        assert_eq!(why("5"), "`5`, which is no duration: add a unit: `5s` is 5 seconds, `5m` minutes");
        assert_eq!(why("5min"), "`5min`, which is no duration: the units are ms, s, m, h and d");
        assert!(why("2026-13-40T18:00:00Z").contains("neither a moment"));
        assert!(why("").contains("neither a moment"));
        assert!(why("-5m").contains("neither a moment"));
    }

    #[test]
    fn a_delay_counts_from_when_the_needs_had_ended_as_asked() {
        let ended = |status, at| Ended { status, reason: None, at: Millis(at) };
        let needs = [
            ended(TaskStatus::Failed, 10),
            ended(TaskStatus::Succeeded, 20),
            ended(TaskStatus::Succeeded, 30),
        ];
        let from = |when| base(when, needs.into_iter()).map(|at| at.0);
        assert_eq!(from(When::AllDone), Some(30));
        assert_eq!(from(When::AllSucceeded), Some(30));
        assert_eq!(from(When::OneSucceeded), Some(20), "the others may end whenever they like");
        assert_eq!(from(When::OneFailed), Some(10));
        assert_eq!(base(When::AllDone, [].into_iter()), None);
        let reason = Some(Reason::SkippedByPerson);
        let skipped = Ended { status: TaskStatus::Skipped, reason, at: Millis(5) };
        assert_eq!(base(When::OneSucceeded, [skipped].into_iter()), Some(Millis(5)));
    }
}
