//! Executes what the store hands out: engines for steps, their logs, and (to come) the worker loop.

pub mod log;
pub mod process;
