//! Histories as released versions wrote them: each must still read, and tell what it told then. `histories/README.md` says how one
//! is added; none is ever changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use laneway_core::definition::{Source, compile};
use laneway_core::event::{Event, Fact};
use laneway_core::run_state::{Broken, RunState, replay};
use serde_json::{Value, json};

struct History {
    name: String,
    steps: Vec<String>,
    events: Vec<Event>,
    /// What the version that wrote it showed of its end, as JSON.
    state: Value,
}

impl History {
    fn read(dir: &Path) -> Self {
        let file = |name: &str| {
            let path = dir.join(name);
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let name = dir.strip_prefix(all()).expect("it lies there").display().to_string();
        let source = Source { file: name.clone(), default_name: "flow".into(), text: file("flow.yaml") };
        let plan = compile(&source).unwrap_or_else(|refusal| panic!("{name}: {}", refusal.render(false)));
        let event = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            Event::from_json(&line).unwrap_or_else(|unreadable| panic!("{name}: {unreadable}"))
        };
        Self {
            steps: plan.workflow.steps.iter().map(|step| step.name.clone()).collect(),
            events: file("events.jsonl").lines().map(event).collect(),
            state: serde_json::from_str(&file("state.json")).expect("a state"),
            name,
        }
    }

    fn replay(&self, events: &[Event]) -> Result<RunState, Broken> {
        replay(self.steps.iter().map(String::as_str), events)
    }
}

fn all() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

/// By version and name.
fn histories() -> Vec<History> {
    let dirs = |dir: &Path| {
        let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut dirs: Vec<PathBuf> =
            entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
        dirs.sort();
        dirs
    };
    dirs(&all()).iter().flat_map(|version| dirs(version)).map(|dir| History::read(&dir)).collect()
}

/// Items are told apart by their index.
fn name_of(task: &Value) -> String {
    let step = task["step"].as_str().expect("a name");
    task["index"].as_u64().map_or_else(|| step.to_owned(), |index| format!("{step}[{index}]"))
}

#[test]
fn every_stored_history_still_tells_what_it_told_then() {
    let histories = histories();
    assert!(histories.len() >= 5, "{} histories are not all of them", histories.len());
    for history in histories {
        let told =
            history.replay(&history.events).unwrap_or_else(|broken| panic!("{}: {broken}", history.name));
        let then = &history.state;
        assert_eq!(
            json!([told.status, told.reason]),
            json!([then["status"], then["reason"]]),
            "{}",
            history.name
        );
        let tasks = then["tasks"].as_array().expect("tasks");
        assert_eq!(told.tasks.len(), tasks.len(), "{}", history.name);
        for (told, then) in told.tasks.iter().zip(tasks) {
            let told = serde_json::to_value(told).expect("plain data");
            assert_eq!(told["step"], name_of(then), "{}", history.name);
            for key in ["status", "attempt", "node", "reason", "detail", "exit_code", "output", "took_ms"] {
                assert_eq!(told[key], then[key], "{}: {key} of {}", history.name, told["step"]);
            }
        }
    }
}

#[test]
fn every_kind_of_event_occurs_in_a_history() {
    let told: BTreeSet<&str> =
        histories().iter().flat_map(|history| &history.events).map(|event| event.fact.name()).collect();
    let missing: Vec<&&str> = Fact::NAMES.iter().filter(|name| !told.contains(**name)).collect();
    assert!(missing.is_empty(), "no history tells of {missing:?}; add one in which it happens");
}

#[test]
fn every_beginning_of_a_history_is_one() {
    for history in histories() {
        for count in 1..=history.events.len() {
            let told = history.replay(&history.events[..count]);
            assert!(told.is_ok(), "{}, event {count}: {told:?}", history.name);
        }
    }
}

#[test]
fn history_with_a_hole_or_in_another_order_is_refused() {
    for history in histories() {
        let events = &history.events;
        for missing in 0..events.len() - 1 {
            let rest: Vec<Event> = events
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != missing)
                .map(|(_, event)| event.clone())
                .collect();
            assert!(
                matches!(history.replay(&rest), Err(Broken::Gap { .. })),
                "{} without {missing}",
                history.name
            );
        }
        for at in 0..events.len() - 1 {
            let mut swapped = events.clone();
            swapped.swap(at, at + 1);
            assert!(history.replay(&swapped).is_err(), "{} with {at} and the next swapped", history.name);
        }
    }
}
