//! The SQL statements of the embedded store by name (`build.rs`).

#![warn(unused_macro_rules, reason = "a statement that is never used must go")]

include!(concat!(env!("OUT_DIR"), "/sqlite_statements.rs"));

pub(super) use statement as sql;
