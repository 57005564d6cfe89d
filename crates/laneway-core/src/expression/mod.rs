//! Expressions `${{ … }}`: total, bounded, strict. A template is text with expressions in it.
//! Owns compiling, listing what is read, and evaluation; never sees a script, so a value cannot
//! become code. Whether a name that is read exists in a workflow is checked in `definition/names.rs`.

mod machine;
mod reads;
mod template;

use serde_json::{Map, Value};

pub(crate) use reads::{Read, reads_of};

use crate::plan::merge_name;

/// The longest source of one expression, in bytes.
pub const MAX_SOURCE: usize = 4096;

/// One expression, compiled once to prove that it can be.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    pub source: String,
    /// What it reads, as dotted paths: `params.date`, `steps.fetch.output.files`.
    pub reads: Vec<String>,
}

/// A string in which expressions may stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    Expression(Expression),
}

/// What expressions can see: `params`, `steps`, `groups`, `run`.
pub type Scope = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct Error {
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Byte range within the expression's (or the template's) source.
    pub at: Option<std::ops::Range<usize>>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, at: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(mut self, range: std::ops::Range<usize>) -> Self {
        self.at = Some(range);
        self
    }
}

impl Expression {
    /// Takes the bare expression, without `${{` and `}}`.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let source = source.trim();
        let found = reads_of(source)?;
        machine::compile(source)?;
        let mut reads: Vec<String> = Vec::new();
        for read in found {
            let path = read.dotted();
            if !reads.contains(&path) {
                reads.push(path);
            }
        }
        Ok(Self { source: source.to_owned(), reads })
    }

    /// The value; one that is not set, or not a JSON value, is an error that names the path.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, Error> {
        machine::evaluate(self, scope)
    }

    /// The value of a condition, which must be a boolean.
    pub fn holds(&self, scope: &Scope) -> Result<bool, Error> {
        match self.evaluate(scope)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(Error::new(format!(
                "`{}` must be true or false, but it is {}; compare it, as in `… == \"value\"`",
                self.source,
                kind_of(&other)
            ))),
        }
    }

    /// Names of the secrets it reads.
    pub fn secrets_read(&self) -> impl Iterator<Item = &str> {
        self.reads.iter().filter_map(|path| path.strip_prefix("secrets."))
    }

    /// Whether it reads the item of its task, or the index of that.
    pub fn reads_item(&self) -> bool {
        let root =
            |path: &String| path.split('.').next().is_some_and(|root| matches!(root, "item" | "index"));
        self.reads.iter().any(root)
    }

    /// Names of the steps it reads, each once, so that only their outputs need loading. A group's result is that of its
    /// merge.
    pub fn steps_read(&self) -> impl Iterator<Item = String> {
        let mut seen: Vec<String> = Vec::new();
        for path in &self.reads {
            let first = |rest: &str| rest.split('.').next().unwrap_or(rest).to_owned();
            let of_step = path.strip_prefix("steps.").map(first);
            let of_group = || path.strip_prefix("groups.").map(|rest| merge_name(&first(rest)));
            if let Some(name) = of_step.or_else(of_group)
                && !seen.contains(&name)
            {
                seen.push(name);
            }
        }
        seen.into_iter()
    }
}

/// A value's type in words, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
