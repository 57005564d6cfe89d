//! The stored form of a node's offer, in the row of its session. Encoding only:
//! `laneway_core::class` defines what an offer means.

use std::collections::BTreeSet;

use laneway_core::class::{Labels, Offer};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Stored {
    node: String,
    labels: Labels,
    process: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    container: bool,
    functions: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    queues: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ports: Option<u32>,
}

/// Leaves the field out, as stores of older nodes do.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_false(value: &bool) -> bool {
    !*value
}

pub(crate) fn to_text(offer: &Offer) -> String {
    let stored = Stored {
        node: offer.node.clone(),
        labels: offer.labels.clone(),
        process: offer.has_process,
        container: offer.has_container,
        functions: offer.functions.clone(),
        queues: offer.queues.clone(),
        ports: offer.ports,
    };
    serde_json::to_string(&stored).expect("text and numbers can be written")
}

/// Parses a stored offer. Returns `None` for text that this program would not have written.
pub(crate) fn from_text(text: &str) -> Option<Offer> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    Some(Offer {
        node: stored.node,
        labels: stored.labels,
        has_process: stored.process,
        has_container: stored.container,
        functions: stored.functions,
        queues: stored.queues,
        ports: stored.ports,
    })
}
