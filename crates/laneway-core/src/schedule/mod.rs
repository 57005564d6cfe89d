//! Schedules: at which moments a workflow starts by itself, and what becomes of moments that nobody was there for.
//! Decides; what time it is and who starts the run is the engine's (`docs/design/triggers.md`).

mod cron;
mod ticks;

use std::time::Duration;

use jiff::tz::TimeZone;

pub use cron::{BadCron, Cron};
pub use ticks::{Shift, Tick, Ticks};

use crate::nearest::nearest;
use crate::time::Millis;
use crate::words::words;

/// A tick is on time until so long after its moment. Nodes look when it comes; this is for those that were busy, or died.
pub const ON_TIME: Duration = Duration::from_secs(60);

/// How many ticks are dealt with at a time where all that were missed are wanted.
pub const MOST_AT_ONCE: usize = 100;

/// When, by whose clock on the wall, and what about moments that were missed.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub cron: Cron,
    pub zone: Zone,
    pub catch_up: CatchUp,
}

words! {
    /// What becomes of ticks at which no node was there.
    pub enum CatchUp {
        /// They are left out.
        None = "none",
        /// The last of them is made up for.
        Latest = "latest",
        /// Each of them is made up for, oldest first.
        All = "all",
    }
}

/// A time zone by its name. The rules are part of the program, so that all nodes of a version agree on every moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone `{name}`")]
pub struct NoSuchZone {
    pub name: String,
    pub hint: String,
}

impl Zone {
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), rules: TimeZone::UTC }
    }

    /// Takes a name of the IANA database, in whatever case.
    pub fn parse(name: &str) -> Result<Self, NoSuchZone> {
        let refused = || {
            let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
            let hint = match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use a name such as Europe/Berlin, America/New_York or UTC".to_owned(),
            };
            NoSuchZone { name: name.to_owned(), hint }
        };
        let rules = TimeZone::get(name).map_err(|_| refused())?;
        let name = rules.iana_name().ok_or_else(refused)?.to_owned();
        Ok(Self { name, rules })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What is to be done about a schedule at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Each starts a run, in this order.
    pub fire: Vec<Tick>,
    /// Everything up to here is dealt with then.
    pub dealt_with: Millis,
    /// When to look again. In the past if there is more than could be done at once.
    pub next: Option<Millis>,
}

impl Schedule {
    /// All ticks after a moment, in order.
    pub fn ticks(&self, after: Millis) -> Ticks<'_> {
        Ticks::new(&self.cron, &self.zone.rules, after)
    }

    /// What to do about everything after `dealt_with`, up to and with `now`.
    pub fn due(&self, dealt_with: Millis, now: Millis) -> Due {
        let mut fire: Vec<Tick> = match self.catch_up {
            CatchUp::All => {
                self.ticks(dealt_with).take_while(|tick| tick.at <= now).take(MOST_AT_ONCE).collect()
            }
            CatchUp::None | CatchUp::Latest => {
                let late = Millis(now.0.saturating_sub(ON_TIME.as_millis() as i64));
                let on_time = self.ticks(dealt_with.max(late)).take_while(|tick| tick.at <= now);
                on_time.take(MOST_AT_ONCE).collect()
            }
        };
        if fire.is_empty() && self.catch_up == CatchUp::Latest {
            fire.extend(self.last(dealt_with, now));
        }
        let is_more = fire.len() == MOST_AT_ONCE;
        let dealt_with = match fire.last() {
            Some(last) if is_more => last.at,
            Some(_) | None => now.max(dealt_with),
        };
        Due { fire, dealt_with, next: self.ticks(dealt_with).next().map(|tick| tick.at) }
    }

    /// The last tick behind `from`, up to and with `to`. Looks at the end first, and at more only if nothing is there: there
    /// may be a year of seconds in between.
    fn last(&self, from: Millis, to: Millis) -> Option<Tick> {
        let mut span: i64 = 60_000;
        loop {
            let begin = Millis(to.0.saturating_sub(span)).max(from);
            let within = self.ticks(begin).take_while(|tick| tick.at <= to);
            if let Some(last) = within.last() {
                return Some(last);
            }
            if begin <= from {
                return None;
            }
            span = span.saturating_mul(30);
        }
    }
}

#[cfg(test)]
mod tests;
