//! What a record means to who asks, as a table; and what may be called what.

use super::*;

fn verdict(
    status: EffectStatus,
    is_own: bool,
    execution: &str,
    on_unknown: OnUnknown,
    gone: Option<&str>,
) -> Verdict {
    let standing = Standing { status, is_own, execution };
    judge(Some(standing), Asking { execution: "now", on_unknown, gone })
}

#[test]
fn what_was_never_asked_for_runs() {
    for on_unknown in [OnUnknown::Fail, OnUnknown::Retry] {
        assert_eq!(judge(None, Asking { execution: "now", on_unknown, gone: None }), Verdict::Run);
    }
}

#[test]
fn what_is_done_is_replayed_whoever_asks_and_what_failed_runs_again() {
    for is_own in [true, false] {
        for on_unknown in [OnUnknown::Fail, OnUnknown::Retry] {
            let of = |status| verdict(status, is_own, "then", on_unknown, None);
            assert_eq!(of(EffectStatus::Done), Verdict::Replay);
            assert_eq!(of(EffectStatus::Failed), Verdict::Run);
        }
    }
}

#[test]
fn what_was_started_is_run_blindly_by_nobody() {
    use OnUnknown::{Fail, Retry};
    let of = |is_own, execution, on_unknown, gone| {
        verdict(EffectStatus::Started, is_own, execution, on_unknown, gone)
    };
    // The answer to the same question was lost.
    assert_eq!(of(true, "now", Fail, None), Verdict::Repeated);
    // Somebody of this attempt is at it, as far as anybody knows.
    assert_eq!(of(true, "then", Fail, None), Verdict::Taken);
    assert_eq!(of(true, "then", Retry, None), Verdict::Taken);
    assert_eq!(of(true, "then", Retry, Some("another")), Verdict::Taken);
    // Its process is dead.
    assert_eq!(of(true, "then", Fail, Some("then")), Verdict::Unknown);
    assert_eq!(of(true, "then", Retry, Some("then")), Verdict::Run);
    // An earlier attempt began it.
    assert_eq!(of(false, "then", Fail, None), Verdict::Unknown);
    assert_eq!(of(false, "then", Retry, None), Verdict::Run);
    // Even if it has the same name: what another claim began, this one did not.
    assert_eq!(of(false, "now", Fail, None), Verdict::Unknown);
}

#[test]
fn a_command_that_says_it_failed_did_not_happen_unless_that_is_a_result() {
    assert_eq!(OnFailure::Retry.status(0), EffectStatus::Done);
    assert_eq!(OnFailure::Retry.status(1), EffectStatus::Failed);
    assert_eq!(OnFailure::Record.status(1), EffectStatus::Done);
}

#[test]
fn names_and_keys_have_bounds() {
    assert!(EffectId::new("charge.card-2_b", "order 17/ü").is_ok());
    let refused = |name: &str, key: &str| EffectId::new(name, key).expect_err("refused").to_string();
    insta::assert_snapshot!(
        [
            refused("", ""),
            refused("a/b", ""),
            refused("-a", ""),
            refused(&"a".repeat(101), ""),
            refused("a", &"k".repeat(501)),
            refused("a", "one\ntwo"),
        ]
        .join("\n"),
        @r"
    `` cannot be the name of an effect: it has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit
    `a/b` cannot be the name of an effect: it has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit
    `-a` cannot be the name of an effect: it has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit
    the name of an effect has at most 100 bytes; what differs from one to the next goes into --key
    the key of an effect has at most 500 bytes, and this one 501; use a hash of what it stands for
    the key of an effect holds a control character; use letters, digits and signs
    "
    );
}

#[test]
fn token_is_the_same_for_every_attempt_and_differs_for_all_else() {
    let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
    let of_item = |task: &str, name: &str, key: &str, item: Option<(&str, u32)>| {
        EffectId::new(name, key).expect("good").token(run, task, item)
    };
    let token = |task: &str, name: &str, key: &str| of_item(task, name, key, None);
    assert_eq!(token("pay", "charge", "1"), token("pay", "charge", "1"));
    let all = [
        token("pay", "charge", "1"),
        token("pay", "charge", ""),
        token("pay", "charge1", ""),
        token("paycharge", "1", ""),
        token("pay[0]", "charge", "1"),
        of_item("pay[0]", "charge", "1", Some(("17", 1))),
        of_item("pay[0]", "charge", "1", Some(("18", 1))),
        of_item("pay[1]", "charge", "1", Some(("17", 1))),
        of_item("pay[0]", "charge", "1", Some(("17", 2))),
    ];
    let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}
