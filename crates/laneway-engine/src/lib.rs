//! Executes what the store hands out: the worker loop, engines for steps, and their logs.

pub mod bundle;
pub mod child;
pub mod container;
pub mod effect;
pub mod embed;
pub mod faults;
pub mod fire;
pub mod function;
pub mod hooks;
pub mod isolate;
pub mod log;
pub mod process;
pub mod prune;
pub mod remote;
pub mod secret;
pub mod warden;
pub mod worker;

pub use worker::Error;
