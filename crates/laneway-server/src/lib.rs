//! The service: REST, events as they happen, tokens, metrics, and a typed client for all of it. Never touches a table: what
//! it knows and changes goes through `laneway_store::Store`. Decides nothing about runs either: the gate keeper does.
//!
//! ```text
//!   listen ──▶ access (names, token, rule) ──▶ routes ──▶ ask ──▶ Store
//!                        ▲                        └──▶ sse ──▶ events_since, again and again
//!                        └── table: every route with its rule, and what OpenAPI says of it
//! ```
//! `docs/design/service.md` says why it is so.

pub mod access;
pub mod ask;
pub mod callback;
mod canceling;
pub mod client;
mod extract;
mod glance;
mod graphs;
mod line;
mod linger;
mod listen;
pub mod listening;
mod logs;
mod memo;
mod metrics;
mod openapi;
mod page;
mod problem;
mod pulse;
mod refusals;
mod routes;
mod service;
mod sign;
mod sse;
mod table;
mod webhook;
pub mod wire;

pub use listen::{Tls, serve};
pub use openapi::openapi;
pub use problem::{Answer, Code, Problem};
pub use service::{App, Deadlines, Service};
pub use table::{Rule, rules};
