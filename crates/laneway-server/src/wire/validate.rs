//! A document that somebody is writing, and what is wrong with it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Graph;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Validate {
    pub document: String,
    /// Its name, where the document gives none.
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Validated {
    pub ok: bool,
    /// In the order of the document; the first 50.
    pub problems: Vec<Fault>,
    /// How many there are beyond those.
    pub more: usize,
    /// Of a document that is good.
    pub graph: Option<Graph>,
}

/// Something that is wrong, and where: from a character on and up to another one, which is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// Lines are counted from 1, and so are columns, in characters.
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}
