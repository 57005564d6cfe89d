//! The container engine with a real Docker: endings, settings, secrets, mounts, faults, orphans.
//! `cargo xtask docker cargo nextest run -p laneway-engine --test container`

mod ending;
#[path = "../support/engine.rs"]
mod engine;
mod faults;
mod orphans;
#[path = "../support/proxy.rs"]
mod proxy;
#[path = "../support/registry.rs"]
mod registry;
mod settings;
mod support;
#[path = "../support/warden.rs"]
mod warden;
