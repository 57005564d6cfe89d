//! The class of a task: everything that decides which nodes can run it, as one canonical text. It leads the claim index,
//! a node claims the classes that it can run, and "some live node can run this class" is a gate.
//! Owns the text and `can_run`; never knows which nodes there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::definition::{Action, Step};

/// By label: its value.
pub type Labels = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    pub engine: Engine,
    /// What a node must have (`runs_on`).
    pub labels: Labels,
    /// The only node that may run it, by its id: `placement: pinned` once the run has one, `local` from the start.
    pub pin: Option<String>,
}

/// What executes a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    Process,
    /// A function of the program that embeds Laneway, by name.
    Function(String),
}

/// What a node has to offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// Its id, which pins name.
    pub node: String,
    pub labels: Labels,
    pub has_process: bool,
    pub functions: BTreeSet<String>,
}

/// What a node lacks for a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    Process,
    Function(String),
    /// A label it does not have, or has with another value.
    Label {
        name: String,
        wanted: String,
        has: Option<String>,
    },
    /// It belongs to another node.
    Pin(String),
}

impl Class {
    pub fn of(step: &Step, pin: Option<&str>) -> Self {
        let engine = match &step.action {
            Action::Run { .. } | Action::Command { .. } => Engine::Process,
            Action::Function { name, .. } => Engine::Function(name.clone()),
        };
        let labels = step.demands().runs_on.iter().cloned().collect();
        Self { engine, labels, pin: pin.map(str::to_owned) }
    }

    /// Takes a class back from the store; `None` for what this program would not have written.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        let engine = match parts.next()?.split_once(':') {
            None => Engine::Process,
            Some((_, name)) => Engine::Function(unescaped(name)?),
        };
        let mut class = Self { engine, labels: Labels::new(), pin: None };
        for part in parts {
            match (part.strip_prefix('@'), part.split_once('=')) {
                (Some(pin), _) => class.pin = Some(unescaped(pin)?),
                (None, Some((name, value))) => {
                    class.labels.insert(unescaped(name)?, unescaped(value)?);
                }
                (None, None) => return None,
            }
        }
        (class.to_string() == text).then_some(class)
    }
}

/// `process`, `process;gpu=a100;zone=eu;@NODE`, `function:resize`: the engine, the labels by name, the pin.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.engine {
            Engine::Process => f.write_str("process")?,
            Engine::Function(name) => write!(f, "function:{}", escaped(name))?,
        }
        for (name, value) in &self.labels {
            write!(f, ";{}={}", escaped(name), escaped(value))?;
        }
        match &self.pin {
            Some(pin) => write!(f, ";@{}", escaped(pin)),
            None => Ok(()),
        }
    }
}

/// Whether a text can be a label's name or value, in a document or of a node.
pub fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':');
    (1..=100).contains(&text.len()) && text.bytes().all(allowed)
}

pub fn can_run(offer: &Offer, class: &Class) -> bool {
    lacks(offer, class).is_empty()
}

/// What keeps a node from running a class, for the cause of a task that nobody can run.
pub fn lacks(offer: &Offer, class: &Class) -> Vec<Lack> {
    let mut lacks = Vec::new();
    match &class.engine {
        Engine::Process if !offer.has_process => lacks.push(Lack::Process),
        Engine::Function(name) if !offer.functions.contains(name) => lacks.push(Lack::Function(name.clone())),
        Engine::Process | Engine::Function(_) => {}
    }
    for (name, wanted) in &class.labels {
        let has = offer.labels.get(name);
        if has != Some(wanted) {
            lacks.push(Lack::Label { name: name.clone(), wanted: wanted.clone(), has: has.cloned() });
        }
    }
    match &class.pin {
        Some(pin) if *pin != offer.node => lacks.push(Lack::Pin(pin.clone())),
        Some(_) | None => {}
    }
    lacks
}

/// How many of the labels that a step `prefers` a node has. More comes first among tasks of equal rank; it never
/// keeps a node from taking one.
pub fn preference(offer: &Offer, step: &Step) -> usize {
    step.demands().prefers.iter().filter(|(name, value)| offer.labels.get(name) == Some(value)).count()
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("runs no programs"),
            Self::Function(name) => write!(f, "has no function `{name}`"),
            Self::Label { name, wanted, has: None } => write!(f, "has no label {name}={wanted}"),
            Self::Label { name, wanted, has: Some(has) } => write!(f, "has {name}={has}, not {wanted}"),
            Self::Pin(pin) => write!(f, "is not {pin}, to which the run is bound"),
        }
    }
}

/// Labels need no escapes, names of functions may: everything that could be taken for a part of the text.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/' | b':' => {
                out.push(char::from(byte))
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn node(pairs: &[(&str, &str)]) -> Offer {
        Offer {
            node: "n1".into(),
            labels: labels(pairs),
            has_process: true,
            functions: ["resize".to_owned()].into(),
        }
    }

    fn class(text: &str) -> Class {
        Class::parse(text).unwrap_or_else(|| panic!("{text} is a class"))
    }

    #[test]
    fn a_class_is_one_text_whatever_the_order_of_the_labels() {
        let one =
            Class { engine: Engine::Process, labels: labels(&[("zone", "eu"), ("gpu", "a100")]), pin: None };
        assert_eq!(one.to_string(), "process;gpu=a100;zone=eu");
        let pinned = Class {
            engine: Engine::Function("a;b=c @".into()),
            labels: Labels::new(),
            pin: Some("n1".into()),
        };
        assert_eq!(pinned.to_string(), "function:a%3Bb%3Dc%20%40;@n1");
        for text in [
            "",
            "container",
            "process;zone",
            "process;zone=eu;gpu=1",
            "process;@a;@b",
            "function:%4",
            "process:x",
        ] {
            assert_eq!(Class::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_node_runs_what_it_has_the_engine_the_labels_and_the_name_for() {
        let eu = node(&[("zone", "eu"), ("disk", "ssd")]);
        for text in ["process", "process;zone=eu", "process;disk=ssd;zone=eu;@n1", "function:resize"] {
            assert!(can_run(&eu, &class(text)), "{text}");
        }
        for (text, why) in [
            ("process;zone=us", "has zone=eu, not us"),
            ("process;gpu=a100", "has no label gpu=a100"),
            ("process;@n2", "is not n2, to which the run is bound"),
            ("function:crop", "has no function `crop`"),
        ] {
            let lacks: Vec<String> = lacks(&eu, &class(text)).iter().map(ToString::to_string).collect();
            assert_eq!(lacks, [why], "{text}");
            assert!(!can_run(&eu, &class(text)), "{text}");
        }
        let bare = Offer { has_process: false, ..eu };
        assert!(!can_run(&bare, &class("process")) && can_run(&bare, &class("function:resize")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

        #[test]
        fn every_class_reads_back_from_its_text(
            name in prop::option::of("[ -~é]{1,9}"),
            labels in prop::collection::btree_map("[ -~é]{1,6}", "[ -~é]{1,6}", 0..4),
            pin in prop::option::of("[ -~]{1,6}"),
        ) {
            let engine = name.map_or(Engine::Process, Engine::Function);
            let class = Class { engine, labels, pin };
            prop_assert_eq!(Class::parse(&class.to_string()), Some(class));
        }
    }
}
