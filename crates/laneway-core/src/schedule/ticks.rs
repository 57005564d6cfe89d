//! The moments of a schedule in a zone. A pattern speaks of the clock on the wall; where that jumps, the rule is:
//!
//! - A pattern that names its hours (`30 2 * * *`, `0 8-18 * * *`) starts once for each time that it names. One that is
//!   jumped over starts when the jump ends; of one that comes twice, the first counts. Several that are jumped over end
//!   up at the same moment, and start once.
//! - A pattern of every hour (`*/10 * * * *`, `5 * * * *`) goes on as time does: what is jumped over is no time, and what
//!   comes twice counts twice.
//!
//! Between two jumps the wall and the world differ by a constant. The search goes from one such stretch to the next.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::cron::Cron;
use crate::time::Millis;

/// One moment of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    pub at: Millis,
    /// What the clock on the wall shows then.
    pub wall: DateTime,
    /// How far that is ahead of UTC, in seconds.
    pub offset: i32,
    pub shift: Option<Shift>,
}

/// What a jump of the clock did to a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// The clock jumped over this time.
    Moved {
        from: DateTime,
    },
    /// The time comes twice, and this is the first; whether the second is a tick as well is up to the pattern.
    First,
    Second,
}

/// The ticks behind a moment, in order.
#[derive(Debug, Clone)]
pub struct Ticks<'a> {
    cron: &'a Cron,
    zone: &'a TimeZone,
    /// Where the search goes on, inclusive. `None` behind the end of time.
    from: Option<Timestamp>,
}

impl<'a> Ticks<'a> {
    pub(super) fn new(cron: &'a Cron, zone: &'a TimeZone, after: Millis) -> Self {
        let second = after.0.div_euclid(1000).saturating_add(1);
        Self { cron, zone, from: Timestamp::from_second(second).ok() }
    }
}

impl Iterator for Ticks<'_> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        let mut from = self.from.take()?;
        loop {
            let stretch = Stretch::around(self.zone, from);
            let found = match stretch.first(self.cron, from) {
                Ok(tick) => tick,
                Err(end) => {
                    from = end?;
                    continue;
                }
            };
            self.from =
                Timestamp::from_millisecond(found.at.0).ok().and_then(|at| at.checked_add(1.second()).ok());
            return Some(found);
        }
    }
}

/// A time in which the wall and the world differ by a constant.
#[derive(Debug)]
struct Stretch {
    offset: Offset,
    /// Up to which time on the wall the stretch before went, if this one repeats some of it.
    repeated: Option<DateTime>,
    end: Option<End>,
}

/// Where a stretch ends, and the next begins.
#[derive(Debug)]
struct End {
    at: Timestamp,
    /// What the wall shows just before, if it went on, and just behind.
    before: DateTime,
    behind: DateTime,
    next: Offset,
}

impl Stretch {
    fn around(zone: &TimeZone, moment: Timestamp) -> Self {
        let offset = zone.to_offset(moment);
        // Changes of a name alone, or of what is called summer, move no clock.
        let end = zone.following(moment).find(|change| change.offset() != offset).map(|change| {
            let (at, next) = (change.timestamp(), change.offset());
            End { at, before: offset.to_datetime(at), behind: next.to_datetime(at), next }
        });
        let just_after = moment.checked_add(SignedDuration::from_nanos(1)).unwrap_or(moment);
        let begins = zone.preceding(just_after).map(|change| change.timestamp()).find_map(|at| {
            let before = zone.to_offset(at.checked_sub(1.second()).ok()?);
            (before != offset).then_some((at, before))
        });
        let repeated = begins
            .filter(|(_, before)| before.seconds() > offset.seconds())
            .map(|(at, before)| before.to_datetime(at));
        Self { offset, repeated, end }
    }

    /// The first tick in it, or at its end; else where to go on, `None` if there is nothing more.
    fn first(&self, cron: &Cron, from: Timestamp) -> Result<Tick, Option<Timestamp>> {
        let mut wall = self.offset.to_datetime(from);
        if cron.names_hours()
            && let Some(repeated) = self.repeated
        {
            wall = wall.max(repeated);
        }
        let Some(named) = cron.next(wall) else { return Err(None) };
        let end = match &self.end {
            Some(end) if named >= end.before => end,
            Some(_) | None => {
                let Ok(at) = self.offset.to_timestamp(named) else { return Err(None) };
                return Ok(tick(at, named, self.offset, self.shift(named)));
            }
        };
        if cron.names_hours() && named < end.behind {
            let shift = (!cron.matches(end.behind)).then_some(Shift::Moved { from: named });
            return Ok(tick(end.at, end.behind, end.next, shift));
        }
        Err(Some(end.at))
    }

    /// Whether the time comes twice.
    fn shift(&self, wall: DateTime) -> Option<Shift> {
        if self.repeated.is_some_and(|repeated| wall < repeated) {
            return Some(Shift::Second);
        }
        let comes_again = self.end.as_ref().is_some_and(|end| wall >= end.behind);
        comes_again.then_some(Shift::First)
    }
}

fn tick(at: Timestamp, wall: DateTime, offset: Offset, shift: Option<Shift>) -> Tick {
    Tick { at: Millis(at.as_millisecond()), wall, offset: offset.seconds(), shift }
}
