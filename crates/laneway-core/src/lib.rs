//! The pure heart of Laneway: definition, plan, states, gates, retry, events and the replay fold.
//!
//! Nothing here knows of tokio, SQL, a clock, files or the network, so nothing here can fail for a
//! reason of the environment.

pub mod definition;
pub mod expression;
pub mod hash;
pub mod output;
pub mod plan;
pub mod reason;
