//! The pure heart of Laneway: definition, plan, states, gates, retry, events and the replay fold.
//!
//! Nothing here knows of tokio, SQL, a clock, files or the network, so nothing here can fail for a
//! reason of the environment.

// The schema of a step is one literal with as many keys as a step has.
#![recursion_limit = "256"]

pub mod artifact;
pub mod cache;
pub mod cause;
pub mod child;
pub mod class;
pub mod definition;
pub mod effect;
pub mod event;
pub mod expression;
mod facts;
pub mod gate;
pub mod graph;
pub mod group;
pub mod growth;
pub mod hash;
pub mod hook;
pub mod id;
pub mod key;
pub mod layer;
pub mod level;
pub mod limit;
pub mod max_runs;
pub mod merge;
pub mod nearest;
pub mod node_event;
pub mod not_before;
pub mod output;
pub mod params;
pub mod plan;
pub mod pool;
pub mod rank;
pub mod reason;
pub mod retry;
pub mod role;
pub mod run_state;
pub mod schedule;
pub mod shell;
pub mod state;
pub mod time;
pub mod trigger;
pub mod version;
pub mod wait;
mod words;
