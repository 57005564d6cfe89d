//! What a node that takes work of others tells of itself: a stream of its own beside those of runs. Ephemeral nodes, which
//! live for one run, are in that run's events.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::class::Labels;
use crate::facts::{self, Unreadable, facts};
use crate::id::SessionId;
use crate::time::Millis;
use crate::words::words;

/// A numbered fact of a node. Numbers start at 1 and have no gaps; their order is the order of commits.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeEvent {
    pub seq: u64,
    pub at: Millis,
    /// The node's address.
    pub node: String,
    pub session: SessionId,
    pub fact: NodeFact,
}

impl NodeEvent {
    /// One line of `--json`: name, number, time and who first, then the fact's own fields.
    pub fn to_json(&self) -> Value {
        let mut line = Map::new();
        line.insert("event".into(), self.fact.name().into());
        line.insert("seq".into(), self.seq.into());
        line.insert("at".into(), self.at.to_string().into());
        line.insert("node".into(), self.node.clone().into());
        line.insert("session".into(), self.session.to_string().into());
        if let Value::Object(fields) = self.fact.body() {
            line.extend(fields);
        }
        Value::Object(line)
    }

    /// Reads such a line back.
    pub fn from_json(line: &Value) -> Result<Self, Unreadable> {
        let common = ["event", "seq", "at", "node", "session"];
        let (name, version, body) = facts::from_line(line, &common, NodeFact::version_of)?;
        let bad = |why: &str| Unreadable { name: name.clone(), version, why: why.to_owned() };
        let session = line["session"].as_str().and_then(SessionId::parse);
        Ok(Self {
            seq: line["seq"].as_u64().ok_or_else(|| bad("it has no number"))?,
            at: facts::moment(line).ok_or_else(|| bad("it has no time"))?,
            node: line["node"].as_str().ok_or_else(|| bad("it names no node"))?.to_owned(),
            session: session.ok_or_else(|| bad("it names no session"))?,
            fact: NodeFact::read(&name, version, &body)?,
        })
    }
}

words! {
    /// What makes a node take nothing more, or stop.
    pub enum LeaveReason {
        /// It did what it was there for.
        Done = "done",
        /// Somebody drained it.
        Drained = "drained",
        Signal = "signal",
        ParentDied = "parent_died",
        /// It could not renew its session, or somebody had ended that.
        Fenced = "fenced",
        /// Something that it cannot go on with.
        Failed = "failed",
    }
}

/// Why a node leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaving {
    pub reason: LeaveReason,
    /// The process that started it, where that died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_pid: Option<i32>,
    /// The person who wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Leaving {
    pub fn because(reason: LeaveReason) -> Self {
        Self { reason, parent_pid: None, by: None }
    }

    pub fn drained_by(person: impl Into<String>) -> Self {
        Self { by: Some(person.into()), ..Self::because(LeaveReason::Drained) }
    }

    pub fn orphaned(parent: i32) -> Self {
        Self { parent_pid: Some(parent), ..Self::because(LeaveReason::ParentDied) }
    }
}

facts! {
    /// The closed set of facts of a node.
    pub enum NodeFact;
    NodeJoined = "node_joined" v 1 {
        pid: u32,
        slots: u32,
        labels: Labels,
    }
    /// It takes nothing more; what it runs may end.
    NodeDraining = "node_draining" v 1 {
        why: Leaving,
    }
    /// It ended in good order.
    NodeStopping = "node_stopping" v 1 {
        why: Leaving,
        /// How many tasks it still held, which go on elsewhere.
        returned: u32,
    }
    /// Its container engine has come, or gone.
    NodeEngine = "node_engine" v 1 {
        /// Whether it answers, so that steps in containers are taken.
        answers: bool,
    }
    /// Somebody had proof that it is dead, or its lease had ended.
    NodeLost = "node_lost" v 1 {
        returned: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One stored example of every event, as the first release wrote it. Never edit a line: add one.
    const GOLDEN: &[(&str, u32, &str)] = &[
        ("node_joined", 1, r#"{"pid":4242,"slots":4,"labels":{"zone":"eu"}}"#),
        ("node_draining", 1, r#"{"why":{"reason":"drained","by":"ada"}}"#),
        ("node_stopping", 1, r#"{"why":{"reason":"parent_died","parent_pid":4100},"returned":2}"#),
        ("node_lost", 1, r#"{"returned":3}"#),
        ("node_engine", 1, r#"{"answers":false}"#),
    ];

    #[test]
    fn every_stored_event_still_reads_and_writes_back_to_the_same_bytes() {
        for (name, version, body) in GOLDEN {
            let fact = NodeFact::read(name, *version, body).expect("a golden event");
            assert_eq!((fact.name(), fact.version()), (*name, *version));
            assert_eq!(fact.body_text(), *body);
        }
    }

    #[test]
    fn line_of_json_reads_back_as_the_event_it_was_made_of() {
        let session = SessionId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        for (seq, (name, version, body)) in (1..).zip(GOLDEN) {
            let fact = NodeFact::read(name, *version, body).expect("a golden event");
            let event =
                NodeEvent { seq, at: Millis(1_700_000_000_123), node: "a:1".to_owned(), session, fact };
            assert_eq!(NodeEvent::from_json(&event.to_json()), Ok(event));
        }
    }

    #[test]
    fn every_kind_of_event_has_a_golden_example() {
        for name in NodeFact::NAMES {
            assert!(GOLDEN.iter().any(|(golden, _, _)| golden == name), "{name} has no example");
        }
    }
}
