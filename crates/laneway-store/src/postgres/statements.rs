//! The SQL statements of Postgres by name (`build.rs`).

#![warn(unused_macro_rules, reason = "a statement that is never used must go")]

include!(concat!(env!("OUT_DIR"), "/postgres_statements.rs"));

pub(super) use statement;
