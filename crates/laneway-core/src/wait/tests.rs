//! Waits as they begin and end, and what cannot be a signal.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOW: Millis = Millis(1_700_000_000_000);

fn until(text: &str) -> Wait {
    Wait { on: Awaited::Until(Template::parse(text).expect("a template")), timeout: None }
}

fn span_of(text: &str) -> Wait {
    Wait { on: Awaited::For(Template::parse(text).expect("a template")), timeout: None }
}

fn scope(value: Value) -> Scope {
    match value {
        Value::Object(scope) => scope,
        other => panic!("{other} is no scope"),
    }
}

#[test]
fn moments_carry_their_offset() {
    let utc = moment("2026-12-24T18:00:00Z").expect("UTC");
    assert_eq!(moment("2026-12-24T19:00:00+01:00"), Ok(utc));
    assert_eq!(moment(" 2026-12-24 18:00:00Z "), Ok(utc), "as people paste it");
    assert_eq!(moment("1969-12-31T23:59:59.5Z"), Ok(Millis(-500)));
    assert!(moment("2026-12-24T18:00:00").expect_err("no zone").contains("add Z for UTC"));
    for text in ["", "tomorrow", "2026-12-24", "18:00", "1700000000", "2026-13-01T00:00:00Z"] {
        assert!(moment(text).is_err(), "{text}");
    }
}

#[test]
fn a_wait_knows_its_moment_when_it_begins() {
    let fixed = until("2026-12-24T18:00:00Z").begin(&Scope::new(), NOW).expect("a moment");
    assert_eq!(fixed.until, moment("2026-12-24T18:00:00Z").ok());
    assert_eq!((fixed.timeout_at, fixed.signal), (None, None));
    let scope = scope(json!({ "params": { "at": "2026-12-24T18:00:00Z", "delay": "90s" } }));
    assert_eq!(until("${{ params.at }}").begin(&scope, NOW).expect("computed").until, fixed.until);
    let delayed = Wait { timeout: Some(Duration::from_secs(5)), ..span_of("${{ params.delay }}") };
    let delayed = delayed.begin(&scope, NOW).expect("computed");
    assert_eq!(delayed.until, Some(Millis(NOW.0 + 90_000)));
    assert_eq!(delayed.timeout_at, Some(Millis(NOW.0 + 5_000)));
}

#[test]
fn what_cannot_be_evaluated_says_which_key_and_why() {
    let bad = |wait: Wait, value: &str| {
        wait.begin(&scope(json!({ "params": { "x": value } })), NOW).expect_err("not a moment")
    };
    assert_eq!(
        bad(until("${{ params.x }}"), "tomorrow"),
        "`wait.until` is `tomorrow`, which is no moment such as 2026-12-24T18:00:00Z"
    );
    assert_eq!(
        bad(span_of("${{ params.x }}"), "5"),
        "`wait.for` is `5`, which is no duration: add a unit: `5s` is 5 seconds, `5m` minutes"
    );
    assert!(bad(span_of("${{ params.y }}"), "").starts_with("`wait.for`: "));
}

#[test]
fn what_comes_first_counts_however_late_somebody_looks() {
    let late = Millis(NOW.0 + 1_000_000);
    let waiting = |until: Option<i64>, timeout_at: Option<i64>| Waiting {
        until: until.map(|ms| Millis(NOW.0 + ms)),
        timeout_at: timeout_at.map(|ms| Millis(NOW.0 + ms)),
        ..Waiting::default()
    };
    for (until, timeout_at, expected) in [
        (None, None, None),
        (Some(5), None, Some(Over::Come)),
        (None, Some(5), Some(Over::TimedOut)),
        (Some(5), Some(6), Some(Over::Come)),
        (Some(5), Some(5), Some(Over::Come)),
        (Some(6), Some(5), Some(Over::TimedOut)),
    ] {
        let waiting = waiting(until, timeout_at);
        assert_eq!(waiting.over(late), expected, "{until:?} {timeout_at:?}");
        assert_eq!(waiting.over(NOW), None, "{until:?} {timeout_at:?}");
    }
}

#[test]
fn a_payload_is_as_large_as_an_output_and_no_larger() {
    let signal = |payload: Value, reason: Option<String>| Signal {
        by: "ada".to_owned(),
        reason,
        at: NOW,
        payload: scope(payload),
    };
    assert_eq!(signal(json!({}), None).check(), Ok(()));
    assert_eq!(signal(json!({ "tag": "v2", "more": [1, null, { "x": true }] }), None).check(), Ok(()));
    let overhead = r#"{"x":""}"#.len();
    let fits = "x".repeat(output::LIMIT - overhead);
    assert_eq!(signal(json!({ "x": fits }), None).check(), Ok(()));
    assert_eq!(signal(json!({ "x": fits + "x" }), None).check(), Err(BadSignal::Large));
    assert!(matches!(signal(json!({ "x": "a\0b" }), None).check(), Err(BadSignal::Payload { .. })));
    assert_eq!(signal(json!({}), Some("x".repeat(MAX_REASON))).check(), Ok(()));
    assert_eq!(signal(json!({}), Some("x".repeat(MAX_REASON + 1))).check(), Err(BadSignal::Reason));
}

#[test]
fn a_wait_reads_as_it_was_written() {
    let signal =
        Wait { on: Awaited::Signal("approved".to_owned()), timeout: Some(Duration::from_secs(86_400)) };
    assert_eq!(signal.to_string(), "the signal approved, for 1d at most");
    assert_eq!(signal.timed_out(), "timeout: the signal `approved` did not come within 1d");
    assert_eq!(until("${{ params.at }}").to_string(), "${{ params.at }}");
    assert_eq!(span_of("5m").to_string(), "5m to pass");
}

proptest! {
    /// Whoever looks at the moment at which a wait is due finds it over, and nobody does before.
    #[test]
    fn a_wait_is_over_from_its_due_moment_on(
        until in proptest::option::of(-1000i64..1000),
        timeout_at in proptest::option::of(-1000i64..1000),
        now in -1200i64..1200,
    ) {
        let waiting =
            Waiting { until: until.map(Millis), timeout_at: timeout_at.map(Millis), ..Waiting::default() };
        let is_due = waiting.due_at().is_some_and(|due| due.0 <= now);
        prop_assert_eq!(waiting.over(Millis(now)).is_some(), is_due);
        // And it ends the same at every later look.
        if let Some(over) = waiting.over(Millis(now)) {
            prop_assert_eq!(waiting.over(Millis(now + 5000)), Some(over));
        }
    }

    /// What is stored of a wait is read back as it was.
    #[test]
    fn a_stored_wait_reads_back(until in proptest::option::of(any::<i64>()), by in ".*", reason in proptest::option::of(".*")) {
        let signal = Signal { by, reason, at: NOW, payload: scope(json!({ "x": [1, "é"] })) };
        let waiting = Waiting { until: until.map(Millis), signal: Some(signal), ..Waiting::default() };
        let text = serde_json::to_string(&waiting).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Waiting>(&text).expect("read back"), waiting);
    }
}
