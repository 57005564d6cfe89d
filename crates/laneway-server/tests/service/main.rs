//! The service as programs see it: a real server on a port of its own, a real store beneath it, and requests over a real
//! connection. What tasks do is played by a node that claims and finishes without running anything.

mod access;
mod applied;
mod artifacts;
mod cache;
mod damage;
mod dashboard;
mod documents;
mod effects;
mod fuzz;
mod graphs;
mod matrix;
mod page;
mod pages;
mod pools;
mod remote;
mod runs;
mod secrets;
mod signals;
mod slow;
mod stream;
mod support;
mod told;
mod webhooks;
