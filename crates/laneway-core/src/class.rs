//! The class of a task: everything that decides which nodes can run it, as one canonical text. It leads the claim index,
//! a node claims the classes that it can run, and "some live node can run this class" is a gate.
//! Owns the text and `can_run`; never knows which nodes there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::definition::{Action, Housing, Pool, PoolMode, Step};
use crate::hash::ContentHash;
use crate::rank::BOOST_MS;

/// By label: its value.
pub type Labels = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// One for a task; all of them for a run that one node runs as a whole.
    pub engines: BTreeSet<Engine>,
    /// What a node must have (`runs_on`).
    pub labels: Labels,
    /// What a node had better have (`prefers`).
    pub prefers: Labels,
    /// The pool in which it runs, where that has room for so many tasks at once.
    pub room: Option<Room>,
    /// The only node that may run it, by its address. Stores know a run that is bound by its own number and write no such
    /// class; whoever is told why it waits is told the name.
    pub pin: Option<String>,
}

/// Room in a pool of a node: a node takes no more tasks of such a class than it has containers for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Room {
    /// Of all that makes its containers; equal for documents that say the same of their pools.
    pub pool: String,
    /// Its `max`.
    pub places: u32,
    /// Each of its containers takes a port of the host.
    pub needs_ports: bool,
}

/// The function that sends callbacks. No document can name it: a name does not begin with a blank.
pub const POST: &str = " post";

/// What executes a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    Process,
    /// Containers, be it of a step's own or of a pool.
    Container,
    /// A function of the program that embeds Laneway, by name.
    Function(String),
    /// Remote workers that take this queue.
    Queue(String),
}

/// What a node has to offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// Its id, which pins name.
    pub node: String,
    pub labels: Labels,
    pub has_process: bool,
    /// Its container engine answers.
    pub has_container: bool,
    pub functions: BTreeSet<String>,
    pub queues: BTreeSet<String>,
    /// How many host ports its containers can have. `None`: not known.
    pub ports: Option<u32>,
}

/// What a node lacks for a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    Process,
    Container,
    Function(String),
    Queue(String),
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
    fn new(engines: BTreeSet<Engine>) -> Self {
        Self { engines, labels: Labels::new(), prefers: Labels::new(), room: None, pin: None }
    }

    /// That of callbacks, which all have the same.
    pub fn of_callbacks() -> Self {
        Self::new([Engine::Function(POST.to_owned())].into())
    }

    /// That of programs which ask for nothing else.
    pub fn of_processes() -> Self {
        Self::new([Engine::Process].into())
    }

    /// Of a step by itself; `Plan::class_of` knows its pool as well.
    pub fn of(step: &Step) -> Self {
        let engine = match (&step.action, step.housing()) {
            (Action::Run { .. } | Action::Command { .. } | Action::Call { .. }, Some(housing)) => {
                match housing {
                    Housing::Own(_) | Housing::Pool(_) => Engine::Container,
                }
            }
            (Action::Call { .. }, None) => Engine::Container,
            // A class of its own: `laneway run` takes callbacks of other runs, and nothing else of them.
            (Action::Post(_), _) => Engine::Function(POST.to_owned()),
            // Whoever starts programs can bring results together, for which it may have to start one.
            // What waits is run by nobody; its class is never asked for.
            (Action::Run { .. } | Action::Command { .. }, None)
            | (Action::Merge { .. } | Action::Wait(_), _) => Engine::Process,
            (Action::Function { name, .. }, _) => Engine::Function(name.clone()),
            (Action::Queue { queue, .. }, _) => Engine::Queue(queue.clone()),
        };
        let demands = step.demands();
        Self {
            engines: [engine].into(),
            labels: demands.runs_on.iter().cloned().collect(),
            prefers: demands.prefers.iter().cloned().collect(),
            room: None,
            pin: None,
        }
    }

    /// Who can run all of these steps (`placement: pinned`), or which two of them no node can run both.
    pub fn of_all(steps: &[Step]) -> Result<Self, Divided<'_>> {
        let mut all = Self::new(BTreeSet::new());
        for step in steps.iter().filter(|step| step.wait().is_none()) {
            let class = Self::of(step);
            all.engines.extend(class.engines);
            for (name, value) in class.labels {
                if all.labels.get(&name).is_some_and(|known| *known != value) {
                    let asks = |other: &&Step| {
                        other
                            .demands()
                            .runs_on
                            .iter()
                            .any(|(label, wanted)| *label == name && *wanted != value)
                    };
                    let first = steps.iter().find(asks).map_or("", |step| step.name.as_str());
                    return Err(Divided { first, second: &step.name, label: name });
                }
                all.labels.insert(name, value);
            }
            for (name, value) in class.prefers {
                all.prefers.entry(name).or_insert(value);
            }
        }
        if all.engines.is_empty() {
            all.engines.insert(Engine::Process);
        }
        Ok(all)
    }

    /// Takes a class back from the store; `None` for what this program would not have written.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';');
        let engine = |text: &str| match text.split_once(':') {
            None if text == "container" => Some(Engine::Container),
            None => Some(Engine::Process),
            Some(("queue", name)) => unescaped(name).map(Engine::Queue),
            Some((_, name)) => unescaped(name).map(Engine::Function),
        };
        let engines = parts.next()?.split('+').map(engine).collect::<Option<_>>()?;
        let mut class = Self::new(engines);
        for part in parts {
            if let Some(room) = part.strip_prefix('#') {
                let (pool, places) = room.split_once(':')?;
                let (places, needs_ports) = match places.strip_suffix(":port") {
                    Some(places) => (places, true),
                    None => (places, false),
                };
                let (pool, places) = (pool.to_owned(), places.parse().ok()?);
                class.room = Some(Room { pool, places, needs_ports });
                continue;
            }
            if let Some(pin) = part.strip_prefix('@') {
                class.pin = Some(unescaped(pin)?);
                continue;
            }
            let (labels, part) = match part.strip_prefix('~') {
                Some(part) => (&mut class.prefers, part),
                None => (&mut class.labels, part),
            };
            let (name, value) = part.split_once('=')?;
            labels.insert(unescaped(name)?, unescaped(value)?);
        }
        (class.to_string() == text).then_some(class)
    }
}

/// `process`, `process+function:resize`, `container;gpu=a100;zone=eu;~disk=ssd;#POOL:4:port;@NODE`:
/// the engines, the labels by name, those that are preferred, the room in a pool and whether that
/// takes ports, the pin.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, engine) in self.engines.iter().enumerate() {
            f.write_str(if index > 0 { "+" } else { "" })?;
            match engine {
                Engine::Process => f.write_str("process")?,
                Engine::Container => f.write_str("container")?,
                Engine::Function(name) => write!(f, "function:{}", escaped(name))?,
                Engine::Queue(name) => write!(f, "queue:{}", escaped(name))?,
            }
        }
        for (name, value) in &self.labels {
            write!(f, ";{}={}", escaped(name), escaped(value))?;
        }
        for (name, value) in &self.prefers {
            write!(f, ";~{}={}", escaped(name), escaped(value))?;
        }
        if let Some(Room { pool, places, needs_ports }) = &self.room {
            write!(f, ";#{pool}:{places}{}", if *needs_ports { ":port" } else { "" })?;
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
    for engine in &class.engines {
        match engine {
            Engine::Process if !offer.has_process => lacks.push(Lack::Process),
            Engine::Container if !offer.has_container => lacks.push(Lack::Container),
            Engine::Function(name) if !offer.functions.contains(name) => {
                lacks.push(Lack::Function(name.clone()));
            }
            Engine::Queue(name) if !offer.queues.contains(name) => lacks.push(Lack::Queue(name.clone())),
            Engine::Process | Engine::Container | Engine::Function(_) | Engine::Queue(_) => {}
        }
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

/// How much younger than they are the tasks of a class look to a node, in milliseconds: a step of priority for each label
/// that is preferred and that it does not have. It orders what a node takes, and never keeps it from taking anything.
pub fn reluctance(offer: &Offer, class: &Class) -> i64 {
    let lacks = |(name, value): &(&String, &String)| offer.labels.get(*name) != Some(*value);
    i64::try_from(class.prefers.iter().filter(lacks).count()).unwrap_or(i64::MAX).saturating_mul(BOOST_MS)
}

/// Two steps that no node can run both.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "steps `{first}` and `{second}` ask for different values of the label `{label}`, and no node has both"
)]
pub struct Divided<'s> {
    pub first: &'s str,
    pub second: &'s str,
    pub label: String,
}

impl Room {
    /// In a pool whose tasks each have a container; those that share one have room without end.
    pub fn of(pool: &Pool) -> Option<Self> {
        let places = match pool.mode {
            PoolMode::Multi => pool.max.get(),
            PoolMode::Single => return None,
        };
        // Its name makes no difference to its containers.
        let made_of = format!("{:?}", Pool { name: String::new(), ..pool.clone() });
        let name = ContentHash::of(made_of.as_bytes()).as_str()[..16].to_owned();
        Some(Self { pool: name, places, needs_ports: pool.needs_ports() })
    }

    /// How many tasks a node takes at once that has so many host ports: a pool cannot have more
    /// containers than the range has ports, whatever its `max` is.
    pub fn places_with(&self, ports: Option<u32>) -> u32 {
        match ports {
            Some(ports) if self.needs_ports => self.places.min(ports.max(1)),
            Some(_) | None => self.places,
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("runs no programs"),
            Self::Container => f.write_str("has no container engine that answers"),
            Self::Function(name) if name == POST => f.write_str("sends no callbacks"),
            Self::Function(name) => write!(f, "has no function `{name}`"),
            Self::Queue(name) => write!(f, "does not take the queue `{name}`"),
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

    #[test]
    fn pool_has_no_more_places_than_its_node_has_ports() {
        let cases = [
            (4, true, Some(2), 2),
            (4, true, Some(100), 4),
            (4, true, None, 4),
            (4, true, Some(0), 1),
            (4, false, Some(2), 4),
        ];
        for (places, needs_ports, ports, expected) in cases {
            let room = Room { pool: "00ff".into(), places, needs_ports };
            assert_eq!(room.places_with(ports), expected, "{room:?} with {ports:?}");
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn node(pairs: &[(&str, &str)]) -> Offer {
        Offer {
            node: "n1".into(),
            labels: labels(pairs),
            has_process: true,
            has_container: true,
            functions: ["resize".to_owned()].into(),
            queues: ["mail/send".to_owned()].into(),
            ports: None,
        }
    }

    fn class(text: &str) -> Class {
        Class::parse(text).unwrap_or_else(|| panic!("{text} is a class"))
    }

    #[test]
    fn a_class_is_one_text_whatever_the_order_of_the_labels() {
        let one = Class {
            engines: [Engine::Process].into(),
            labels: labels(&[("zone", "eu"), ("gpu", "a100")]),
            prefers: labels(&[("disk", "ssd")]),
            room: None,
            pin: None,
        };
        assert_eq!(one.to_string(), "process;gpu=a100;zone=eu;~disk=ssd");
        let pinned = Class {
            engines: [Engine::Function("a;b=c @+".into()), Engine::Process].into(),
            labels: Labels::new(),
            prefers: Labels::new(),
            room: Some(Room { pool: "00ff".into(), places: 4, needs_ports: false }),
            pin: Some("n1".into()),
        };
        assert_eq!(pinned.to_string(), "process+function:a%3Bb%3Dc%20%40%2B;#00ff:4;@n1");
        for text in [
            "",
            "containers",
            "process;zone",
            "process;zone=eu;gpu=1",
            "process;~zone=eu;gpu=1",
            "function:a+process",
            "process;@a;@b",
            "container;#00ff",
            "container;#00ff:many",
            "container;#00ff:04",
            "container;#00ff:4:ports",
            "container;#00ff:4:port:port",
            "container;#00ff:4;zone=eu",
            "function:%4",
            "process:x",
        ] {
            assert_eq!(Class::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_node_runs_what_it_has_the_engine_the_labels_and_the_name_for() {
        let eu = node(&[("zone", "eu"), ("disk", "ssd")]);
        for text in [
            "process",
            "process;zone=eu",
            "process;disk=ssd;zone=eu;@n1",
            "function:resize",
            "queue:mail/send;zone=eu",
            "container;zone=eu",
            "container;zone=eu;#00ff:4",
            "process+container",
        ] {
            assert!(can_run(&eu, &class(text)), "{text}");
        }
        for (text, why) in [
            ("process;zone=us", "has zone=eu, not us"),
            ("process;gpu=a100", "has no label gpu=a100"),
            ("process;@n2", "is not n2, to which the run is bound"),
            ("function:crop", "has no function `crop`"),
            ("queue:mail", "does not take the queue `mail`"),
        ] {
            let lacks: Vec<String> = lacks(&eu, &class(text)).iter().map(ToString::to_string).collect();
            assert_eq!(lacks, [why], "{text}");
            assert!(!can_run(&eu, &class(text)), "{text}");
        }
        let bare = Offer { has_process: false, has_container: false, ..eu };
        assert_eq!(lacks(&bare, &class("container")), [Lack::Container]);
        assert!(!can_run(&bare, &class("process")) && can_run(&bare, &class("function:resize")));
    }

    #[test]
    fn a_node_without_what_a_step_prefers_takes_it_later_and_still_takes_it() {
        let (eu, any) = (node(&[("zone", "eu")]), node(&[]));
        let class = class("process;~disk=ssd;~zone=eu");
        assert!(can_run(&eu, &class) && can_run(&any, &class));
        assert_eq!((reluctance(&eu, &class), reluctance(&any, &class)), (BOOST_MS, 2 * BOOST_MS));
    }

    #[test]
    fn a_run_that_one_node_runs_needs_all_that_its_steps_need() {
        let steps = |text: &str| {
            let source = crate::definition::Source {
                file: "f.yaml".into(),
                default_name: "f".into(),
                text: format!("steps: {text}"),
            };
            crate::definition::compile(&source)
                .map_err(|refusal| refusal.render(false))
                .expect(text)
                .workflow
                .steps
        };
        let fits = steps(
            "{a: {run: x, runs_on: {zone: eu}}, b: {function: resize, runs_on: {disk: ssd, zone: eu}}}",
        );
        assert_eq!(
            Class::of_all(&fits).expect("one node"),
            class("process+function:resize;disk=ssd;zone=eu")
        );
        let divided =
            steps("{a: {run: x, runs_on: {zone: eu}}, b: {run: x}, c: {run: x, runs_on: {zone: us}}}");
        let why = Class::of_all(&divided).expect_err("no node").to_string();
        assert!(why.starts_with("steps `a` and `c` ask for different values of the label `zone`"), "{why}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

        #[test]
        fn every_class_reads_back_from_its_text(
            name in prop::option::of("[ -~é]{1,9}"),
            queue in prop::option::of("[ -~é]{1,9}"),
            labels in prop::collection::btree_map("[ -~é]{1,6}", "[ -~é]{1,6}", 0..4),
            prefers in prop::collection::btree_map("[ -~é]{1,6}", "[ -~é]{1,6}", 0..3),
            room in prop::option::of(("[0-9a-f]{4}", 1..9_u32, any::<bool>())),
            pin in prop::option::of("[ -~]{1,6}"),
        ) {
            let engines = name.map(Engine::Function).into_iter().chain(queue.map(Engine::Queue)).chain([Engine::Process]);
            let engines = engines.collect();
            let room = room.map(|(pool, places, needs_ports)| Room { pool, places, needs_ports });
            let class = Class { engines, labels, prefers, room, pin };
            prop_assert_eq!(Class::parse(&class.to_string()), Some(class));
        }
    }
}
