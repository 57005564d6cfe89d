//! By what a container is known: its name and its labels. No value of a document is among them but the name of its step.

use std::collections::HashMap;

use laneway_core::id::{InstanceId, RunId, SessionId};

/// `true` for everything that Laneway made.
pub const MANAGED: &str = "laneway.managed";
/// The store.
pub const INSTANCE: &str = "laneway.instance";
/// The life of the node that made it.
pub const SESSION: &str = "laneway.session";
pub const RUN: &str = "laneway.run";
/// The step.
pub const TASK: &str = "laneway.task";
pub const ATTEMPT: &str = "laneway.attempt";

/// What every container of a node carries.
pub fn of_node(instance: InstanceId, session: SessionId) -> HashMap<String, String> {
    HashMap::from([
        (MANAGED.to_owned(), "true".to_owned()),
        (INSTANCE.to_owned(), instance.to_string()),
        (SESSION.to_owned(), session.to_string()),
    ])
}

/// What one of an attempt carries beside that.
pub fn of_attempt(run: RunId, step: &str, attempt: u32) -> HashMap<String, String> {
    HashMap::from([
        (RUN.to_owned(), run.to_string()),
        (TASK.to_owned(), step.to_owned()),
        (ATTEMPT.to_owned(), attempt.to_string()),
    ])
}

/// Ends in what tells its claim from others (`ClaimRef::suffix`), so that a new one never collides with what is left of an old one.
pub fn name(run: RunId, step: &str, claim: &str) -> String {
    format!("laneway-{}-{step}-{claim}", run.short())
}
