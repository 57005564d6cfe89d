//! The process engine with real children: endings, groups, starts, environment, output and logs.

mod ending;
mod start;
mod streams;
mod support;
