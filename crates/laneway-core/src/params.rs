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
