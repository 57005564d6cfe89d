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
        if !is_nickname {
            check_fields(&text, count).map_err(|why| BadCron::Pattern { why })?;
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

/// A field: its name, what it goes from and to, and the names of its values.
struct FieldRange {
    name: &'static str,
    from: u32,
    to: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The last five are those of a pattern without seconds.
const FIELDS: [FieldRange; 6] = [
    FieldRange { name: "second", from: 0, to: 59, names: &[] },
    FieldRange { name: "minute", from: 0, to: 59, names: &[] },
    FieldRange { name: "hour", from: 0, to: 23, names: &[] },
    FieldRange { name: "day of the month", from: 1, to: 31, names: &[] },
    FieldRange { name: "month", from: 1, to: 12, names: &MONTHS },
    FieldRange { name: "weekday", from: 0, to: 7, names: &WEEKDAYS },
];

/// Says of numbers and names which field they do not fit; everything else is croner's to judge.
fn check_fields(text: &str, count: usize) -> Result<(), String> {
    for (field, range) in text.split(' ').zip(&FIELDS[6 - count.min(6)..]) {
        for part in field.split(',') {
            let (values, step) =
                part.split_once('/').map_or((part, None), |(values, step)| (values, Some(step)));
            if step == Some("0") {
                return Err(format!("`{part}` repeats every 0 {}s; write `*/1` for every one", range.name));
            }
            for value in values.split('-').filter(|value| !value.is_empty()) {
                range.check(value)?;
            }
        }
    }
    Ok(())
}

impl FieldRange {
    fn check(&self, value: &str) -> Result<(), String> {
        let Self { name, from, to, names } = self;
        if value.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_within = value.parse().is_ok_and(|number: u32| (*from..=*to).contains(&number));
            return match is_within {
                true => Ok(()),
                false => Err(format!("`{value}` is no {name}: write {from} to {to}")),
            };
        }
        let plain = value.bytes().all(|byte| byte.is_ascii_alphabetic());
        let word = value.to_ascii_uppercase();
        // `L` is the last one, and `W` the weekday next to a day.
        if !plain || names.contains(&word.as_str()) || matches!(word.as_str(), "L" | "W" | "LW") {
            return Ok(());
        }
        let meant = names.iter().position(|name| word.starts_with(name));
        Err(match (meant, names) {
            (Some(at), names) => {
                format!("`{value}` is no {name}: write `{}`, or `{}`", names[at], at + *from as usize)
            }
            (None, []) => format!("`{value}` is no {name}: write {from} to {to}, or `*`"),
            (None, [first, .., last]) => {
                format!("`{value}` is no {name}: write {first} to {last}, {from} to {to}, or `*`")
            }
            (None, [_]) => format!("`{value}` is no {name}"),
        })
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
