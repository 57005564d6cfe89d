//! What the ends of a group's members mean for it: whether there is something to merge, and when a result says by itself
//! that it failed. Pure; the gate keeper asks when all members have ended. docs/design/groups.md.

use serde_json::{Map, Value};

use crate::definition::GroupFailure;
use crate::reason::Reason;
use crate::state::TaskStatus;

/// How one member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended<'a> {
    pub step: &'a str,
    pub status: TaskStatus,
    pub reason: Option<Reason>,
}

/// Why a group that has ended is not merged; `None` if it is.
///
/// A member that its own `if` left out, or a person skipped, keeps nobody from merging the others. One that was
/// canceled or skipped because of something else means that the group did not run as it should, strict or not.
pub fn against_merging(failure: GroupFailure, members: &[Ended<'_>]) -> Option<String> {
    let against = members.iter().filter(|member| match (member.status, member.reason) {
        (TaskStatus::Succeeded, _) => false,
        (TaskStatus::Skipped, Some(Reason::Condition | Reason::SkippedByPerson)) => false,
        (TaskStatus::Failed, _) => failure == GroupFailure::Strict,
        (TaskStatus::Skipped | TaskStatus::Canceled, _) => true,
        (TaskStatus::Pending | TaskStatus::Available | TaskStatus::Running | TaskStatus::Parked, _) => true,
    });
    let words: Vec<String> = against
        .take(3)
        .map(|member| match member.status {
            TaskStatus::Failed => format!("{} failed", member.step),
            other => format!("{} was {other}", member.step),
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Whether a member's output says that it failed, however its program ended. Lines of `key=value` know no booleans.
pub fn says_it_failed(output: &Map<String, Value>) -> bool {
    match output.get("success") {
        Some(Value::Bool(success)) => !success,
        Some(Value::String(text)) => text == "false",
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => false,
    }
}

/// What is told of such a failure.
pub const SAID: &str = "its output says `success: false`";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_is_merged_unless_a_member_ended_as_it_must_not() {
        use GroupFailure::{Lenient, Strict};
        let cases = [
            // status, reason, against a strict group, against a lenient one
            (TaskStatus::Succeeded, None, false, false),
            (TaskStatus::Failed, Some(Reason::Exit), true, false),
            (TaskStatus::Canceled, Some(Reason::Aborted), true, true),
            (TaskStatus::Skipped, Some(Reason::Condition), false, false),
            (TaskStatus::Skipped, Some(Reason::SkippedByPerson), false, false),
            (TaskStatus::Skipped, Some(Reason::Upstream), true, true),
            (TaskStatus::Skipped, Some(Reason::Halted), true, true),
        ];
        for (status, reason, strict, lenient) in cases {
            let members = [
                Ended { step: "a", status: TaskStatus::Succeeded, reason: None },
                Ended { step: "b", status, reason },
            ];
            assert_eq!(against_merging(Strict, &members).is_some(), strict, "strict: {status} {reason:?}");
            assert_eq!(against_merging(Lenient, &members).is_some(), lenient, "lenient: {status} {reason:?}");
        }
        let members = [
            Ended { step: "a", status: TaskStatus::Failed, reason: Some(Reason::Exit) },
            Ended { step: "b", status: TaskStatus::Canceled, reason: Some(Reason::Aborted) },
        ];
        assert_eq!(against_merging(Strict, &members).as_deref(), Some("a failed, b was canceled"));
    }

    #[test]
    fn only_a_clear_word_is_a_failure() {
        for (value, failed) in [
            (json!(false), true),
            (json!("false"), true),
            (json!(true), false),
            (json!("no"), false),
            (json!(0), false),
            (json!(null), false),
        ] {
            let output = Map::from_iter([("success".to_owned(), value.clone())]);
            assert_eq!(says_it_failed(&output), failed, "{value}");
        }
        assert!(!says_it_failed(&Map::new()));
    }
}
