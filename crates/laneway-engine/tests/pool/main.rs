//! Warm containers on a real Docker engine, which `cargo xtask docker` lends by `LANEWAY_TEST_DOCKER`.

mod away;
mod calls;
mod clean;
#[path = "../support/engine.rs"]
mod engine;
mod faults;
mod line;
mod support;
#[path = "../support/warden.rs"]
mod warden;
