//! Values for a run's parameters: from the command line's text, and checked against what the
//! workflow declares, before a run exists. All errors at once.

use serde_json::{Map, Value};

use crate::definition::{Param, ParamType, Workflow};
use crate::expression::kind_of;
use crate::nearest::nearest;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("parameter `{name}` is required; give it with `-p {name}=VALUE`")]
    Missing { name: String },
    #[error("the workflow has no parameter `{name}`; {advice}")]
    Unknown { name: String, advice: String },
    #[error("parameter `{name}` must be {expected}, not {found}")]
    Type { name: String, expected: &'static str, found: String },
    #[error("parameter `{name}` must be one of {allowed}, not {found}")]
    NotAllowed { name: String, allowed: String, found: String },
}

/// The values of all declared parameters, in their order: given, default, or null.
pub fn bind(workflow: &Workflow, mut given: Map<String, Value>) -> Result<Map<String, Value>, Vec<Error>> {
    let mut bound = Map::new();
    let mut errors = Vec::new();
    for param in &workflow.params {
        let value = match given.remove(&param.name) {
            // A null given on purpose means the same as nothing given.
            None | Some(Value::Null) => match &param.default {
                Some(default) => default.clone(),
                None if param.required => {
                    errors.push(Error::Missing { name: param.name.clone() });
                    continue;
                }
                None => Value::Null,
            },
            Some(value) => match check(param, &value) {
                Ok(()) => value,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            },
        };
        bound.insert(param.name.clone(), value);
    }
    errors.extend(given.keys().map(|name| unknown(workflow, name)));
    if errors.is_empty() { Ok(bound) } else { Err(errors) }
}

/// The value of `-p name=value`: a string as it is, a list or an object as JSON.
pub fn parse_value(param: &Param, text: &str) -> Result<Value, Error> {
    let read = match param.kind {
        ParamType::String => Some(Value::String(text.to_owned())),
        ParamType::Integer | ParamType::Number | ParamType::Boolean | ParamType::List | ParamType::Object => {
            serde_json::from_str(text.trim()).ok()
        }
    };
    match read {
        Some(value) => check(param, &value).map(|()| value),
        None => Err(Error::Type {
            name: param.name.clone(),
            expected: expected(param.kind),
            found: format!("`{}`", clip(text)),
        }),
    }
}

/// That a name is none of the workflow's, with the nearest that is.
pub fn unknown(workflow: &Workflow, name: &str) -> Error {
    let names = || workflow.params.iter().map(|param| param.name.as_str());
    let advice = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if workflow.params.is_empty() => "it has none".to_owned(),
        None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
    };
    Error::Unknown { name: name.to_owned(), advice }
}

fn check(param: &Param, value: &Value) -> Result<(), Error> {
    if !param.kind.accepts(value) {
        return Err(Error::Type {
            name: param.name.clone(),
            expected: expected(param.kind),
            found: match value {
                Value::Null | Value::Array(_) | Value::Object(_) => kind_of(value).to_owned(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    format!("{} `{}`", kind_of(value), clip(&plain(value)))
                }
            },
        });
    }
    if !param.allowed.is_empty() && !param.allowed.contains(value) {
        let allowed: Vec<String> = param.allowed.iter().map(plain).collect();
        return Err(Error::NotAllowed {
            name: param.name.clone(),
            allowed: allowed.join(", "),
            found: format!("`{}`", clip(&plain(value))),
        });
    }
    Ok(())
}

fn expected(kind: ParamType) -> &'static str {
    match kind {
        ParamType::String => "a string",
        ParamType::Integer => "an integer",
        ParamType::Number => "a number",
        ParamType::Boolean => "true or false",
        ParamType::List => "a list, as JSON such as [\"a\", \"b\"]",
        ParamType::Object => "an object, as JSON such as {\"a\": 1}",
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Short, and without characters that act on a terminal.
fn clip(text: &str) -> String {
    const MAX: usize = 60;
    let mut clipped: String =
        text.chars().take(MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().count() > MAX {
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::{Source, read};

    fn workflow() -> Workflow {
        let text = "
params:
  date: {type: string, required: true}
  depth: {type: integer, default: 2}
  ratio: {type: number}
  fast: {type: boolean, default: false}
  tags: {type: list, default: [a]}
  more: {type: object}
  level: {type: string, enum: [low, high], default: low}
steps: {a: {run: make}}
";
        read(&Source { file: "w.yaml".into(), default_name: "w".into(), text: text.into() })
            .expect("it is valid")
    }

    fn bound(given: Value) -> Result<Value, Vec<String>> {
        let Value::Object(given) = given else { unreachable!("an object literal") };
        bind(&workflow(), given)
            .map(Value::Object)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn parsed(name: &str, text: &str) -> Result<Value, String> {
        let workflow = workflow();
        let param = workflow.params.iter().find(|param| param.name == name).expect("declared");
        parse_value(param, text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_given_is_the_default_or_null() {
        assert_eq!(
            bound(json!({"date": "today", "ratio": 1})),
            Ok(json!({"date": "today", "depth": 2, "ratio": 1, "fast": false, "tags": ["a"],
                      "more": null, "level": "low"}))
        );
    }

    #[test]
    fn every_wrong_parameter_is_named_at_once() {
        assert_eq!(
            bound(json!({"depht": 1, "depth": 1.5, "ratio": "x", "fast": "yes", "tags": {}, "more": [],
                         "level": "mid"})),
            Err(vec![
                "parameter `date` is required; give it with `-p date=VALUE`".into(),
                "parameter `depth` must be an integer, not a number `1.5`".into(),
                "parameter `ratio` must be a number, not a string `x`".into(),
                "parameter `fast` must be true or false, not a string `yes`".into(),
                "parameter `tags` must be a list, as JSON such as [\"a\", \"b\"], not an object".into(),
                "parameter `more` must be an object, as JSON such as {\"a\": 1}, not a list".into(),
                "parameter `level` must be one of low, high, not `mid`".into(),
                "the workflow has no parameter `depht`; did you mean `depth`?".into(),
            ])
        );
    }

    #[test]
    fn text_of_the_command_line_becomes_a_value_of_the_type() {
        assert_eq!(parsed("date", "12"), Ok(json!("12")));
        assert_eq!(parsed("depth", "12"), Ok(json!(12)));
        assert_eq!(parsed("ratio", "0.5"), Ok(json!(0.5)));
        assert_eq!(parsed("fast", "true"), Ok(json!(true)));
        assert_eq!(parsed("tags", "[1, \"x\"]"), Ok(json!([1, "x"])));
        assert_eq!(parsed("more", "{\"a\": {}}"), Ok(json!({"a": {}})));
        let wrong = |name: &str, text: &str| parsed(name, text).expect_err("it does not fit");
        assert_eq!(wrong("depth", "x"), "parameter `depth` must be an integer, not `x`");
        assert_eq!(wrong("depth", ""), "parameter `depth` must be an integer, not ``");
        assert_eq!(wrong("fast", "yes"), "parameter `fast` must be true or false, not `yes`");
        assert_eq!(wrong("level", "mid"), "parameter `level` must be one of low, high, not `mid`");
        assert!(wrong("tags", "a,b").contains("as JSON"));
        assert!(parsed("tags", &"[".repeat(100_000)).is_err());
    }
}
