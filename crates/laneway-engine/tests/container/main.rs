//! The container engine with a real Docker: endings, settings, secrets, mounts, faults, orphans.
//! `cargo xtask docker cargo nextest run -p laneway-engine --test container`

mod ending;
mod faults;
mod orphans;
mod settings;
mod support;
#[path = "../support/warden.rs"]
mod warden;
