//! Expressions `${{ … }}`: total, bounded, strict. A template is text with expressions in it.
//! Owns compiling, checking of names and evaluation; never sees a script, so a value cannot become code.

use serde_json::{Map, Value};

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

/// What expressions can see: `params`, `steps`, `run`.
pub type Scope = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub message: String,
    /// Byte range within the expression's (or the template's) source.
    pub at: Option<std::ops::Range<usize>>,
}
