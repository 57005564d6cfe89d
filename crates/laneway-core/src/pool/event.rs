//! What warm containers do, as a stream of its own beside those of runs and nodes: every transition is one of these, and so is what is
//! pulled for them.

use serde_json::{Map, Value};

use super::state::{ContainerState, EndReason};
use crate::facts::{self, Unreadable, facts};
use crate::id::{RunId, SessionId};
use crate::time::Millis;

/// A numbered fact of a pool. Numbers start at 1 and grow; their order is the order of commits.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolEvent {
    pub seq: u64,
    pub at: Millis,
    /// The node's address.
    pub node: String,
    pub session: SessionId,
    pub fact: PoolFact,
}

impl PoolEvent {
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
        let (name, version, body) = facts::from_line(line, &common, PoolFact::version_of)?;
        let bad = |why: &str| Unreadable { name: name.clone(), version, why: why.to_owned() };
        let session = line["session"].as_str().and_then(SessionId::parse);
        Ok(Self {
            seq: line["seq"].as_u64().ok_or_else(|| bad("it has no number"))?,
            at: facts::moment(line).ok_or_else(|| bad("it has no time"))?,
            node: line["node"].as_str().ok_or_else(|| bad("it names no node"))?.to_owned(),
            session: session.ok_or_else(|| bad("it names no session"))?,
            fact: PoolFact::read(&name, version, &body)?,
        })
    }
}

/// A port with the container that holds it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HeldPort {
    pub port: u16,
    pub pool: String,
    pub container: String,
}

/// A task that waits for a port.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PortWaiter {
    pub pool: String,
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
}

facts! {
    /// The closed set of facts of a pool.
    pub enum PoolFact;
    /// It is being made.
    ContainerStarting = "container_starting" v 1 {
        pool: String,
        container: String,
        image: String,
    }
    /// Healthy, and nobody's.
    ContainerIdle = "container_idle" v 1 {
        pool: String,
        container: String,
        /// Of its container, since programs record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Its port on the host, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    }
    /// A task has it.
    ContainerRunning = "container_running" v 1 {
        pool: String,
        container: String,
        /// Of its container, since programs record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Its port on the host, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    }
    /// Which task: in a pool of one container several may have it at once, and each is told of.
    ContainerTaken = "container_taken" v 1 {
        pool: String,
        container: String,
        run: RunId,
        step: String,
        attempt: u32,
        /// Of its container, since programs record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Its port on the host, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    }
    /// Clean and paused.
    ContainerDormant = "container_dormant" v 1 {
        pool: String,
        container: String,
        /// Of its container, since programs record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Its port on the host, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    }
    ContainerTerminated = "container_terminated" v 1 {
        pool: String,
        container: String,
        why: EndReason,
    }
    /// No port of the host is left for containers of this node, or a task waits for one. Told again
    /// whenever this changes, until `ports_free`.
    PortsUsedUp = "ports_used_up" v 1 {
        first: u16,
        last: u16,
        /// How many of them containers of this node hold. The others belong to other programs.
        held: u32,
        /// The containers, by port; of many only the first are named.
        holders: Vec<HeldPort>,
        /// Tasks that wait for a port, in order.
        waiting: Vec<PortWaiter>,
    }
    /// There is a port again, and no task waits for one.
    PortsFree = "ports_free" v 1 {
        first: u16,
        last: u16,
    }
    /// Its image is being fetched: said when that begins, now and then, and when it is there.
    ImagePullProgress = "image_pull_progress" v 1 {
        pool: String,
        image: String,
        /// Of its layers that are fetched, as far as their sizes are known.
        bytes: u64,
        of: u64,
        is_done: bool,
    }
}

impl PoolFact {
    /// The fact of a transition.
    pub fn of(
        pool: String,
        container: String,
        (image, port): (String, Option<u16>),
        to: ContainerState,
        why: Option<EndReason>,
    ) -> Self {
        match to {
            ContainerState::Starting => ContainerStarting { pool, container, image }.into(),
            ContainerState::Idle => ContainerIdle { pool, container, image: Some(image), port }.into(),
            ContainerState::Running => ContainerRunning { pool, container, image: Some(image), port }.into(),
            ContainerState::Dormant => ContainerDormant { pool, container, image: Some(image), port }.into(),
            ContainerState::Terminated => {
                ContainerTerminated { pool, container, why: why.unwrap_or(EndReason::Closed) }.into()
            }
        }
    }

    /// `None` for what is about no container.
    pub fn state(&self) -> Option<ContainerState> {
        match self {
            Self::ContainerStarting(_) => Some(ContainerState::Starting),
            Self::ContainerIdle(_) => Some(ContainerState::Idle),
            Self::ContainerRunning(_) | Self::ContainerTaken(_) => Some(ContainerState::Running),
            Self::ContainerDormant(_) => Some(ContainerState::Dormant),
            Self::ContainerTerminated(_) => Some(ContainerState::Terminated),
            Self::PortsUsedUp(_) | Self::PortsFree(_) | Self::ImagePullProgress(_) => None,
        }
    }

    /// The pool, and the container where it is about one. What is about the ports of all pools of a
    /// node has an empty name.
    pub fn names(&self) -> (&str, Option<&str>) {
        match self {
            Self::ContainerStarting(fact) => (&fact.pool, Some(&fact.container)),
            Self::ContainerIdle(fact) => (&fact.pool, Some(&fact.container)),
            Self::ContainerRunning(fact) => (&fact.pool, Some(&fact.container)),
            Self::ContainerTaken(fact) => (&fact.pool, Some(&fact.container)),
            Self::ContainerDormant(fact) => (&fact.pool, Some(&fact.container)),
            Self::ContainerTerminated(fact) => (&fact.pool, Some(&fact.container)),
            Self::PortsUsedUp(_) | Self::PortsFree(_) => ("", None),
            Self::ImagePullProgress(fact) => (&fact.pool, None),
        }
    }

    /// The image of its container and its port on the host, as far as it says.
    pub fn image_and_port(&self) -> (Option<&str>, Option<u16>) {
        match self {
            Self::ContainerStarting(fact) => (Some(&fact.image), None),
            Self::ContainerIdle(fact) => (fact.image.as_deref(), fact.port),
            Self::ContainerRunning(fact) => (fact.image.as_deref(), fact.port),
            Self::ContainerTaken(fact) => (fact.image.as_deref(), fact.port),
            Self::ContainerDormant(fact) => (fact.image.as_deref(), fact.port),
            Self::ContainerTerminated(_)
            | Self::PortsUsedUp(_)
            | Self::PortsFree(_)
            | Self::ImagePullProgress(_) => (None, None),
        }
    }

    /// The task that has its container: its run and its name.
    pub fn task(&self) -> Option<(RunId, &str)> {
        match self {
            Self::ContainerTaken(fact) => Some((fact.run, &fact.step)),
            Self::ContainerStarting(_)
            | Self::ContainerIdle(_)
            | Self::ContainerRunning(_)
            | Self::ContainerDormant(_)
            | Self::ContainerTerminated(_)
            | Self::PortsUsedUp(_)
            | Self::PortsFree(_)
            | Self::ImagePullProgress(_) => None,
        }
    }

    /// Whether it says how the ports of a node are used.
    pub fn is_about_ports(&self) -> bool {
        matches!(self, Self::PortsUsedUp(_) | Self::PortsFree(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One stored example of every event, as the first release wrote it. Never edit a line: add one.
    const GOLDEN: &[(&str, u32, &str)] = &[
        ("container_starting", 1, r#"{"pool":"warm","container":"laneway-1a2b-warm-1","image":"busybox:1"}"#),
        ("container_idle", 1, r#"{"pool":"warm","container":"laneway-1a2b-warm-1"}"#),
        ("container_running", 1, r#"{"pool":"warm","container":"laneway-1a2b-warm-1"}"#),
        (
            "container_taken",
            1,
            r#"{"pool":"warm","container":"laneway-1a2b-warm-1","run":"0199f2a0-0000-7000-8000-1a2b3c4d5e6f","step":"build","attempt":2}"#,
        ),
        ("container_dormant", 1, r#"{"pool":"warm","container":"laneway-1a2b-warm-1"}"#),
        (
            "container_idle",
            1,
            r#"{"pool":"warm","container":"laneway-1a2b-warm-1","image":"busybox:1","port":49200}"#,
        ),
        ("container_terminated", 1, r#"{"pool":"warm","container":"laneway-1a2b-warm-1","why":"expired"}"#),
        (
            "ports_used_up",
            1,
            r#"{"first":49200,"last":49201,"held":1,"holders":[{"port":49200,"pool":"warm","container":"laneway-1a2b-warm-1"}],"waiting":[{"pool":"web","run":"0199f2a0-0000-7000-8000-1a2b3c4d5e6f","step":"build","attempt":1}]}"#,
        ),
        ("ports_free", 1, r#"{"first":49200,"last":49201}"#),
        (
            "image_pull_progress",
            1,
            r#"{"pool":"warm","image":"busybox:1","bytes":1048576,"of":2097152,"is_done":false}"#,
        ),
    ];

    #[test]
    fn every_stored_event_still_reads_and_writes_back_to_the_same_bytes() {
        for (name, version, body) in GOLDEN {
            let fact = PoolFact::read(name, *version, body).expect("a golden event");
            assert_eq!((fact.name(), fact.version()), (*name, *version));
            assert_eq!(fact.body_text(), *body);
            if let Some(state) = fact.state() {
                let told = if *name == "container_taken" { "running" } else { &name["container_".len()..] };
                assert_eq!(state.to_string(), told);
            }
        }
        let has_example = |kind: &str| GOLDEN.iter().any(|(name, ..)| *name == kind);
        assert!(PoolFact::NAMES.iter().copied().all(has_example), "every kind has an example");
    }

    #[test]
    fn line_of_json_reads_back_as_the_event_it_was_made_of() {
        let session = SessionId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        for (seq, (name, version, body)) in (1..).zip(GOLDEN) {
            let fact = PoolFact::read(name, *version, body).expect("a golden event");
            let event =
                PoolEvent { seq, at: Millis(1_700_000_000_123), node: "a:1".to_owned(), session, fact };
            assert_eq!(PoolEvent::from_json(&event.to_json()), Ok(event));
        }
    }
}
