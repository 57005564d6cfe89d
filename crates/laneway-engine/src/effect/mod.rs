//! Durable effects, on the side of whoever runs them (docs/design/effects.md).
//!
//! ```text
//! laneway effect, curl ─socket─▶ host ─▶ http ─┐
//! a function           ────────────────────────┴▶ desk ─▶ store: begin_effect … commit_effect
//! ```
//! There is a desk for each attempt: whatever the attempt asks for goes over it, so that of two who ask for the same effect at once
//! one runs it and the other waits. What counts is in the store; the desk knows only who of its own attempt is at what.

mod desk;
mod handle;
mod host;
mod http;

pub(crate) use desk::Desk;
pub use handle::{Effect, EffectError, Effects};
pub(crate) use host::{Door, open_inside};

/// Where a step finds the socket, and what it asks for there: `$LANEWAY_EFFECT_URL/NAME`.
pub const SOCKET: &str = "LANEWAY_EFFECT_SOCKET";
pub const URL: &str = "LANEWAY_EFFECT_URL";
