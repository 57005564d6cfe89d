//! The routes, a file for each resource. They read the request, ask (`ask/`), write down what was changed, and answer.

pub(crate) mod access;
pub(crate) mod artifacts;
pub(crate) mod cache;
pub(crate) mod effects;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod hooks;
pub(crate) mod limits;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod overview;
pub(crate) mod pools;
pub(crate) mod runs;
pub(crate) mod secrets;
pub(crate) mod sign_in;
mod tag;
pub(crate) mod tasks;
pub(crate) mod triggers;
pub(crate) mod validate;
pub(crate) mod workers;
pub(crate) mod workflows;

use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::{Answer, Code, Problem};

/// Entries of a page, where nobody says how many.
const PAGE: usize = 100;

/// The most that anybody gets at once.
const MOST: usize = 1_000;

fn page(limit: Option<usize>) -> Answer<usize> {
    match limit.unwrap_or(PAGE) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(Problem::new(Code::BadRequest, format!("`limit` is a number from 1 to {MOST}"))),
    }
}

/// Which page of a list that is asked for by nothing else.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paged {
    /// From `next_cursor` of the page before
    #[param(pattern = "^(true|false):[^\\u0000]*:[^\\u0000:]*$")]
    cursor: Option<String>,
    /// At most so many, up to 1000; 100 without it
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Which events of nodes, or of their pools, are meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfNodes {
    /// Only those of this node
    node: Option<String>,
    /// Only events numbered above this
    after: Option<u64>,
    /// At most so many, up to 1000; 100 without it
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl OfNodes {
    /// The node, behind which number, and how many.
    fn read(&self) -> Answer<(Option<&str>, u64, usize)> {
        Ok((self.node.as_deref(), self.after.unwrap_or(0), page(self.limit)?))
    }
}
