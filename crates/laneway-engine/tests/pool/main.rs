//! Warm containers on a real Docker engine, which `cargo xtask docker` lends by `LANEWAY_TEST_DOCKER`.

mod away;
mod calls;
mod clean;
#[path = "../support/engine.rs"]
mod engine;
mod faults;
mod line;
mod memory;
mod ports;
#[path = "../support/proxy.rs"]
mod proxy;
mod pull;
#[path = "../support/registry.rs"]
mod registry;
mod support;
#[path = "../support/warden.rs"]
mod warden;
