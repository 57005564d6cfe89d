//! A cron pattern of five fields, or of six with seconds in front, on a clock without a zone. Parsing and matching are
//! croner's; what happens where a zone's clock jumps is ours (`ticks.rs`).

use std::fmt;

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{DateTime, date};

/// Longer than anything that somebody would want to read.
const MAX_LENGTH: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub struct Cron {
    text: String,
    pattern: croner::Cron,
    /// Whether it says at which hours, rather than at every one.
    names_hours: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCron {
    #[error("it has more than {MAX_LENGTH} characters")]
    TooLong,
    #[error(
        "it has {count} fields; there are five (minute, hour, day, month, weekday), or six with seconds in front"
    )]
    Fields { count: usize },
    #[error("{why}")]
    Pattern { why: String },
    #[error("no day is like that, so it would never start anything")]
    Never,
}

impl Cron {
    pub fn parse(text: &str) -> Result<Self, BadCron> {
        if text.len() > MAX_LENGTH {
            return Err(BadCron::TooLong);
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let count = text.split(' ').filter(|field| !field.is_empty()).count();
        let is_nickname = text.starts_with('@') && count == 1;
        if !is_nickname && !(5..=6).contains(&count) {
            return Err(BadCron::Fields { count });
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let pattern = parser.parse(&text).map_err(|error| BadCron::Pattern { why: words(error) })?;
        let every_hour = (0..24).all(|hour| pattern.pattern.hour_match(hour).unwrap_or(false));
        let cron = Self { text, pattern, names_hours: !every_hour };
        // Leap years come and go in eight years at most.
        let first = date(2024, 1, 1).at(0, 0, 0, 0);
        match cron.next(first) {
            Some(_) => Ok(cron),
            None => Err(BadCron::Never),
        }
    }

    /// The first moment that matches, at `from` or behind it.
    pub(super) fn next(&self, from: DateTime) -> Option<DateTime> {
        self.pattern.find_next_occurrence(&from, true).ok()
    }

    pub(super) fn matches(&self, moment: DateTime) -> bool {
        self.pattern.is_time_matching(&moment).unwrap_or(false)
    }

    pub(super) fn names_hours(&self) -> bool {
        self.names_hours
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Its words without its type's names.
fn words(error: CronError) -> String {
    let text = match error {
        CronError::EmptyPattern => "it is empty".to_owned(),
        CronError::InvalidDate | CronError::InvalidTime | CronError::TimeSearchLimitExceeded => {
            "no moment is like that".to_owned()
        }
        CronError::InvalidPattern(why)
        | CronError::IllegalCharacters(why)
        | CronError::ComponentError(why) => why,
    };
    text.trim_end_matches('.').to_owned()
}
