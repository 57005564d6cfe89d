//! When schedules start, and what becomes of moments that were missed. Where clocks jump they are compared with a search
//! through every minute, in twenty zones.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use proptest::prelude::*;

use super::*;

const ZONES: [&str; 20] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Africa/Casablanca",
    "Africa/Cairo",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "America/Santiago",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Australia/Adelaide",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Antarctica/Troll",
];

const PATTERNS: [&str; 16] = [
    "30 2 * * *",
    "0 2 * * *",
    "0 3 * * *",
    "59 1 * * *",
    "0 0 * * *",
    "15 0,2,14 * * *",
    "*/20 2 * * *",
    "*/10 * * * *",
    "5 * * * *",
    "0 */2 * * *",
    "*/30 1-3 * * *",
    "30 2 * * SUN",
    "0 12 1 * *",
    "45 23 L * *",
    "0 0 29 2 *",
    "1 1 * JAN,MAR,OCT,NOV MON-FRI",
];

fn schedule(cron: &str, zone: &str, catch_up: CatchUp) -> Schedule {
    let zone = Zone::parse(zone).expect("a zone");
    Schedule { cron: Cron::parse(cron).expect("a pattern"), zone, catch_up }
}

fn at(text: &str) -> Millis {
    Millis(text.parse::<Timestamp>().expect("a moment").as_millisecond())
}

/// The next ticks as text, with what the jump of a clock did to them.
fn ticks(cron: &str, zone: &str, after: &str, count: usize) -> String {
    let schedule = schedule(cron, zone, CatchUp::None);
    let line = |tick: Tick| {
        let shift = match tick.shift {
            None => String::new(),
            Some(Shift::Moved { from }) => format!(" moved from {}", from.time()),
            Some(Shift::First) => " first".to_owned(),
            Some(Shift::Second) => " second".to_owned(),
        };
        format!("{} {}{shift}", tick.wall, tick.at)
    };
    schedule.ticks(at(after)).take(count).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn named_time_that_is_jumped_over_starts_when_the_jump_ends() {
    insta::assert_snapshot!(ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3), @r"
    2026-03-28T02:30:00 2026-03-28T01:30:00.000Z
    2026-03-29T03:00:00 2026-03-29T01:00:00.000Z moved from 02:30:00
    2026-03-30T02:30:00 2026-03-30T00:30:00.000Z
    ");
}

#[test]
fn named_time_that_comes_twice_starts_the_first_time() {
    insta::assert_snapshot!(ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2), @r"
    2026-10-25T02:30:00 2026-10-25T00:30:00.000Z first
    2026-10-26T02:30:00 2026-10-26T01:30:00.000Z
    ");
}

#[test]
fn every_hour_goes_on_as_time_does() {
    insta::assert_snapshot!(ticks("5 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3), @r"
    2026-03-29T01:05:00 2026-03-29T00:05:00.000Z
    2026-03-29T03:05:00 2026-03-29T01:05:00.000Z
    2026-03-29T04:05:00 2026-03-29T02:05:00.000Z
    ");
    insta::assert_snapshot!(ticks("5 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3), @r"
    2026-10-25T02:05:00 2026-10-25T00:05:00.000Z first
    2026-10-25T02:05:00 2026-10-25T01:05:00.000Z second
    2026-10-25T03:05:00 2026-10-25T02:05:00.000Z
    ");
}

#[test]
fn half_an_hour_is_a_jump_as_well() {
    insta::assert_snapshot!(ticks("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2), @r"
    2026-10-04T02:30:00 2026-10-03T15:30:00.000Z moved from 02:15:00
    2026-10-05T02:15:00 2026-10-04T15:15:00.000Z
    ");
    insta::assert_snapshot!(ticks("*/15 1 * * *", "Australia/Lord_Howe", "2026-04-04T13:59:00Z", 5), @r"
    2026-04-05T01:00:00 2026-04-04T14:00:00.000Z
    2026-04-05T01:15:00 2026-04-04T14:15:00.000Z
    2026-04-05T01:30:00 2026-04-04T14:30:00.000Z first
    2026-04-05T01:45:00 2026-04-04T14:45:00.000Z first
    2026-04-06T01:00:00 2026-04-05T14:30:00.000Z
    ");
}

#[test]
fn day_that_was_left_out_starts_at_its_end() {
    // Samoa went from the 29th to the 31st of December 2011.
    insta::assert_snapshot!(ticks("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3), @r"
    2011-12-29T12:00:00 2011-12-29T22:00:00.000Z
    2011-12-31T00:00:00 2011-12-30T10:00:00.000Z moved from 12:00:00
    2011-12-31T12:00:00 2011-12-30T22:00:00.000Z
    ");
}

#[test]
fn tick_is_never_repeated_and_never_at_the_moment_asked_about() {
    let schedule = schedule("* * * * * *", "UTC", CatchUp::None);
    let from = at("2026-01-01T00:00:00Z");
    let next: Vec<i64> = schedule.ticks(from).take(3).map(|tick| tick.at.0 - from.0).collect();
    assert_eq!(next, [1000, 2000, 3000]);
    let between = schedule.ticks(Millis(from.0 + 1)).next().expect("a tick");
    assert_eq!(between.at.0 - from.0, 1000);
}

#[test]
fn bad_patterns_are_refused_with_the_reason() {
    let refusal = |text: &str| Cron::parse(text).expect_err("no pattern").to_string();
    let five = "there are five (minute, hour, day, month, weekday), or six with seconds in front";
    assert_eq!(refusal("* * *"), format!("it has 3 fields; {five}"));
    assert_eq!(refusal("0 0 0 1 1 * 2030"), format!("it has 7 fields; {five}"));
    assert_eq!(refusal(""), format!("it has 0 fields; {five}"));
    assert_eq!(refusal("0 0 30 2 *"), "no day is like that, so it would never start anything");
    assert_eq!(refusal(&"1,".repeat(200)), "it has more than 200 characters");
    assert_eq!(refusal("61 * * * *"), "`61` is no minute: write 0 to 59");
    assert_eq!(refusal("0 0 32 * *"), "`32` is no day of the month: write 1 to 31");
    assert_eq!(refusal("0 2 * * MONDAY"), "`MONDAY` is no weekday: write `MON`, or `1`");
    assert_eq!(refusal("0 2 * december *"), "`december` is no month: write `DEC`, or `12`");
    assert_eq!(refusal("0 2 * * FOO"), "`FOO` is no weekday: write SUN to SAT, 0 to 7, or `*`");
    assert_eq!(refusal("noon * * * *"), "`noon` is no minute: write 0 to 59, or `*`");
    assert_eq!(refusal("*/0 * * * *"), "`*/0` repeats every 0 minutes; write `*/1` for every one");
    for fine in [
        "0 0 L * *",
        "0 0 15W * *",
        "0 0 * * 5#2",
        "0 0 * * MON-FRI",
        "*/15 0-6/2 1,15 jan,JUL 7",
        "0 0 LW * *",
        "0 0 ? * 5L",
    ] {
        assert!(Cron::parse(fine).is_ok(), "{fine}");
    }
    for text in ["61 * * * *", "* 24 * * *", "a b c d e", "*/0 * * * *", "@never", "5-1 * * * *"] {
        assert!(!refusal(text).is_empty(), "{text}");
    }
}

#[test]
fn unknown_zone_is_refused_with_the_nearest() {
    let error = Zone::parse("Europe/Berln").expect_err("no zone");
    assert_eq!(
        (error.to_string().as_str(), error.hint.as_str()),
        ("there is no time zone `Europe/Berln`", "did you mean `Europe/Berlin`?")
    );
    assert_eq!(Zone::parse("europe/berlin").expect("a zone").name(), "Europe/Berlin");
}

fn due(catch_up: CatchUp, cron: &str, dealt_with: &str, now: &str) -> (Vec<String>, String, Option<String>) {
    let due = schedule(cron, "UTC", catch_up).due(at(dealt_with), at(now));
    let fire = due.fire.iter().map(|tick| tick.at.to_string()).collect();
    (fire, due.dealt_with.to_string(), due.next.map(|next| next.to_string()))
}

#[test]
fn tick_on_time_starts_whatever_is_caught_up_with() {
    for catch_up in CatchUp::ALL {
        let (fire, dealt_with, next) =
            due(*catch_up, "0 * * * *", "2026-01-01T09:30:00Z", "2026-01-01T10:00:00.004Z");
        assert_eq!(fire, ["2026-01-01T10:00:00.000Z"], "{catch_up}");
        assert_eq!(dealt_with, "2026-01-01T10:00:00.004Z");
        assert_eq!(next.as_deref(), Some("2026-01-01T11:00:00.000Z"));
    }
}

#[test]
fn missed_ticks_are_left_out_made_up_for_once_or_each() {
    let (since, now) = ("2026-01-01T06:30:00Z", "2026-01-01T10:20:00Z");
    assert_eq!(due(CatchUp::None, "0 * * * *", since, now).0, [""; 0]);
    assert_eq!(due(CatchUp::Latest, "0 * * * *", since, now).0, ["2026-01-01T10:00:00.000Z"]);
    assert_eq!(
        due(CatchUp::All, "0 * * * *", since, now).0,
        [
            "2026-01-01T07:00:00.000Z",
            "2026-01-01T08:00:00.000Z",
            "2026-01-01T09:00:00.000Z",
            "2026-01-01T10:00:00.000Z"
        ]
    );
}

#[test]
fn many_missed_ticks_are_dealt_with_in_parts() {
    let (since, now) = ("2026-01-01T00:00:00Z", "2026-01-01T02:30:00Z");
    let (fire, dealt_with, next) = due(CatchUp::All, "* * * * *", since, now);
    assert_eq!((fire.len(), dealt_with.as_str()), (MOST_AT_ONCE, "2026-01-01T01:40:00.000Z"));
    assert_eq!(next.as_deref(), Some("2026-01-01T01:41:00.000Z"), "there is more to do at once");
    let (rest, dealt_with, next) = due(CatchUp::All, "* * * * *", &dealt_with, now);
    assert_eq!((rest.len(), dealt_with.as_str()), (50, "2026-01-01T02:30:00.000Z"));
    assert_eq!(next.as_deref(), Some("2026-01-01T02:31:00.000Z"));
}

#[test]
fn last_of_a_year_of_seconds_is_found_at_once() {
    let schedule = schedule("* * * * * *", "Europe/Berlin", CatchUp::Latest);
    let due = schedule.due(at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
    assert!(due.fire.len() <= MOST_AT_ONCE && due.next.is_some());
}

/// What the rule says, found by looking at every minute of some days on its own.
fn by_looking(cron: &Cron, zone: &TimeZone, from: i64, minutes: i64) -> BTreeSet<i64> {
    let moment = |minute: i64| Timestamp::from_second(minute * 60).expect("a moment");
    let wall = |minute: i64| zone.to_datetime(moment(minute));
    // A day on either side: clocks jump by less than that, but for the one that left a day out.
    let (first, last) = (from - 3 * 1440, from + minutes + 3 * 1440);
    let mut found = BTreeSet::new();
    if !cron.names_hours() {
        found.extend((first..last).filter(|minute| cron.matches(wall(*minute))));
        return found.into_iter().filter(|minute| (from + 1..=from + minutes).contains(minute)).collect();
    }
    let mut civil: DateTime = wall(first);
    while civil < wall(last) {
        if cron.matches(civil) {
            let earliest = match zone.to_ambiguous_timestamp(civil).offset() {
                AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil),
                AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil),
                AmbiguousOffset::Gap { .. } => {
                    let behind =
                        (first..last).find(|minute| wall(*minute) > civil).expect("an end of the jump");
                    Ok(moment(behind))
                }
            };
            found.insert(earliest.expect("a moment").as_second() / 60);
        }
        civil = civil.checked_add(jiff::Span::new().minutes(1)).expect("a time");
    }
    found.into_iter().filter(|minute| (from + 1..=from + minutes).contains(minute)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn ticks_are_those_of_the_rule_wherever_clocks_jump(
        zone in proptest::sample::select(&ZONES[..]),
        cron in proptest::sample::select(&PATTERNS[..]),
        // Minutes between 2000 and 2037, or minutes around a jump of the clock after one of these.
        start in 15_778_080i64..35_500_000,
        is_near_a_jump in proptest::bool::weighted(0.8),
        before in 0i64..3000,
    ) {
        let schedule = schedule(cron, zone, CatchUp::None);
        let rules = &schedule.zone.rules;
        let moment = Timestamp::from_second(start * 60).expect("a moment");
        let jump = rules.following(moment).next().map(|change| change.timestamp().as_second() / 60);
        let from = match jump {
            Some(jump) if is_near_a_jump => jump - before,
            Some(_) | None => start,
        };
        let span = 3 * 1440;
        let expected = by_looking(&schedule.cron, rules, from, span);
        let until = Millis((from + span) * 60_000);
        let found = schedule.ticks(Millis(from * 60_000)).take_while(|tick| tick.at <= until);
        let found: Vec<i64> = found.map(|tick| tick.at.0 / 60_000).collect();
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{} in {} from minute {}", cron, zone, from);
    }
}
