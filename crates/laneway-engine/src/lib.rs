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
pub mod view;
pub mod warden;
pub mod worker;

pub use worker::Error;

/// Layers of one view that together have more bytes are not stored, unless a deployment says otherwise.
pub const WORKSPACE_MAX_BYTES: u64 = 256 << 20;
