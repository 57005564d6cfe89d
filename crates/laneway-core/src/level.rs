//! Runs that go level by level (`execution: levels`): how far one has come, and the checkpoint of what its levels have put out.
//! Pure. docs/design/levels.md.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::hash::ContentHash;
use crate::state::TaskStatus;

/// How far a run has come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// The level that is next, or under way. All before it are committed.
    pub level: u32,
    /// Of these; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Before which level it is to be held up again, where somebody lets it go on by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
}

/// How a step of a level has ended.
#[derive(Debug, Clone, Copy)]
pub struct Result<'a> {
    pub step: &'a str,
    pub status: TaskStatus,
    pub output: &'a Map<String, Value>,
}

/// The address of everything that the levels up to this one have put out. `results` are in the order of names, so that it does
/// not matter who was first; times, nodes and attempts are no part of it.
pub fn checkpoint<'a>(
    before: Option<&str>,
    level: u32,
    results: impl IntoIterator<Item = Result<'a>>,
) -> String {
    let results: Vec<Value> =
        results.into_iter().map(|one| json!([one.step, one.status.as_str(), one.output])).collect();
    let text = json!([before, level, sorted(Value::Array(results))]).to_string();
    ContentHash::of(text.as_bytes()).as_str().to_owned()
}

/// With the keys of every object in order, however somebody wrote them.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: Option<&str>, level: u32, status: TaskStatus, output: &str) -> String {
        let output: Map<String, Value> = serde_json::from_str(output).expect("an object");
        checkpoint(before, level, [Result { step: "a", status, output: &output }])
    }

    #[test]
    fn a_checkpoint_is_of_what_was_put_out_and_of_all_before_it() {
        let one = of(None, 0, TaskStatus::Succeeded, r#"{"x": {"b": 1, "a": [2]}, "y": 3}"#);
        assert_eq!(one, of(None, 0, TaskStatus::Succeeded, r#"{"y": 3, "x": {"a": [2], "b": 1}}"#));
        let others = [
            of(None, 0, TaskStatus::Succeeded, r#"{"x": {"b": 1, "a": [2]}, "y": 4}"#),
            of(None, 0, TaskStatus::Skipped, r#"{"x": {"b": 1, "a": [2]}, "y": 3}"#),
            of(None, 1, TaskStatus::Succeeded, r#"{"x": {"b": 1, "a": [2]}, "y": 3}"#),
            of(Some("b"), 0, TaskStatus::Succeeded, r#"{"x": {"b": 1, "a": [2]}, "y": 3}"#),
        ];
        assert!(others.iter().all(|other| *other != one));
    }
}
