//! From columns to values. Integers are `bigint` throughout; what does not fit where it belongs cannot have been
//! written by us, and is said so.

use laneway_core::reason::Reason;
use laneway_core::time::Millis;
use serde_json::{Map, Value};
use tokio_postgres::Row;

use super::fault::Done;
use crate::error::Error;

pub(super) fn text(row: &Row, column: usize) -> Done<String> {
    Ok(row.try_get(column)?)
}

pub(super) fn maybe_text(row: &Row, column: usize) -> Done<Option<String>> {
    Ok(row.try_get(column)?)
}

/// A count, a number of an attempt, a position.
pub(super) fn number<T: TryFrom<i64>>(row: &Row, column: usize) -> Done<T> {
    let stored: i64 = row.try_get(column)?;
    Ok(T::try_from(stored).map_err(|_| unreadable("number", &stored.to_string()))?)
}

pub(super) fn maybe_number<T: TryFrom<i64>>(row: &Row, column: usize) -> Done<Option<T>> {
    let stored: Option<i64> = row.try_get(column)?;
    Ok(stored
        .map(|stored| T::try_from(stored).map_err(|_| unreadable("number", &stored.to_string())))
        .transpose()?)
}

pub(super) fn moment(row: &Row, column: usize) -> Done<Option<Millis>> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Millis))
}

/// A word of laneway-core, by the function that knows them.
pub(super) fn word<T>(row: &Row, column: usize, what: &str, parse: impl Fn(&str) -> Option<T>) -> Done<T> {
    let stored = text(row, column)?;
    Ok(parse(&stored).ok_or_else(|| unreadable(what, &stored))?)
}

pub(super) fn maybe_word<T>(
    row: &Row,
    column: usize,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Done<Option<T>> {
    let stored = maybe_text(row, column)?;
    Ok(stored.map(|stored| parse(&stored).ok_or_else(|| unreadable(what, &stored))).transpose()?)
}

pub(super) fn reason(row: &Row, column: usize) -> Done<Option<Reason>> {
    maybe_word(row, column, "reason of a task", Reason::parse)
}

pub(super) fn output(row: &Row, column: usize) -> Done<Map<String, Value>> {
    let Some(stored) = maybe_text(row, column)? else { return Ok(Map::new()) };
    Ok(serde_json::from_str(&stored)
        .map_err(|error| Error::Unreadable { what: "output of a task".to_owned(), why: error.to_string() })?)
}

pub(super) fn unreadable(what: &str, found: &str) -> Error {
    Error::Unreadable { what: what.to_owned(), why: format!("`{found}` is not known") }
}
