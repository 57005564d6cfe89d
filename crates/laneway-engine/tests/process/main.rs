//! The process engine with real children: endings, groups, starts, environment, output and logs.

#![expect(clippy::disallowed_methods, reason = "a test starts itself again under another signal mask")]

mod ending;
mod left;
mod loss;
mod start;
mod streams;
mod support;
#[path = "../support/warden.rs"]
mod warden;
