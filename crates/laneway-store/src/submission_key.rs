//! Keys under which a run is submitted at most once. Laneway makes some of them from events, and
//! clients choose the others. Both are in one column and differ by their prefixes. A client can
//! never choose a key with a prefix of Laneway's.

use std::collections::BTreeSet;

use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use serde_json::{Map, Value};

use crate::error::Error;

/// Maximum number of characters of a version in a message.
const VERSION_CHARS: usize = 12;

/// Maximum number of characters of a parameter's value in a message.
const MAX_VALUE_CHARS: usize = 40;

/// Prefixes of the keys that Laneway makes: of ticks, ends of runs and deliveries (`Trigger::key`),
/// of hooks, and of steps that start runs.
const OWN: [&str; 5] = ["schedule ", "after ", "webhook ", "hooks of ", "child of "];

/// Maximum length of a chosen key in characters. A longer one is a mistake.
const MAX: usize = 200;

/// Rejects an invalid key that a client chose. The error describes a valid one.
pub fn check(key: &str) -> Result<(), String> {
    if key.is_empty() || key.chars().count() > MAX || key.chars().any(char::is_control) {
        return Err(format!("a key has 1 to {MAX} plain characters"));
    }
    match OWN.iter().find(|own| key.starts_with(*own)) {
        Some(own) => Err(format!("keys that begin with `{own}` are made by Laneway itself")),
        None => Ok(()),
    }
}

/// Returns whether Laneway made the key from an event. Every submission with such a key is the
/// same, with any version and parameters.
pub(crate) fn is_own(key: &str) -> bool {
    OWN.iter().any(|own| key.starts_with(own))
}

/// The run that was submitted with a key.
#[derive(Debug)]
pub(crate) struct KeyedRun {
    pub(crate) run: RunId,
    pub(crate) workflow: String,
    pub(crate) version: String,
    pub(crate) params: Map<String, Value>,
}

impl KeyedRun {
    /// Parses the columns of `run_by_key`.
    pub(crate) fn new(run: RunId, workflow: String, version: String, params: &str) -> Result<Self, Error> {
        let params = serde_json::from_str(params).map_err(|error| Error::Unreadable {
            what: format!("params of run {}", run.short()),
            why: error.to_string(),
        })?;
        Ok(Self { run, workflow, version, params })
    }

    /// Describes how a new submission differs from this run. Returns `None` if they are equal.
    pub(crate) fn difference(&self, plan: &Plan, params: &Map<String, Value>) -> Option<String> {
        if self.workflow != plan.workflow.name {
            return Some(format!("workflow `{}`, now `{}`", self.workflow, plan.workflow.name));
        }
        let is_other = self.version != plan.version.as_str();
        let version = is_other.then(|| {
            let short = |version: &str| version.chars().take(VERSION_CHARS).collect::<String>();
            format!("version {}, now {}", short(&self.version), short(plan.version.as_str()))
        });
        // Parsed again like the stored ones: a fraction may lose its last digit on the way.
        let read_back = serde_json::to_string(params).ok().and_then(|text| serde_json::from_str(&text).ok());
        let params: &Map<String, Value> = read_back.as_ref().unwrap_or(params);
        let names: BTreeSet<&String> = self.params.keys().chain(params.keys()).collect();
        let changed = names.into_iter().filter(|name| self.params.get(*name) != params.get(*name));
        let changed = changed.map(|name| {
            format!("`{name}` {}, now {}", value_text(self.params.get(name)), value_text(params.get(name)))
        });
        let all: Vec<String> = version.into_iter().chain(changed).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

fn value_text(value: Option<&Value>) -> String {
    let Some(value) = value else { return "absent".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::child::Parent;
    use laneway_core::trigger::key_of_path;

    use super::*;

    #[test]
    fn last_leaves_out_every_key_that_laneway_makes() {
        let last = [crate::sqlite::RUN_LAST, crate::postgres::RUN_LAST];
        for (sql, any) in last.iter().zip(["*", "%"]) {
            for own in OWN {
                assert!(sql.contains(&format!("'{own}{any}'")), "{own}");
            }
        }
    }

    #[test]
    fn nobody_chooses_a_key_that_laneway_makes() {
        for good in ["nightly-2026-11-15", "schedule", "a b", "ü", &"x".repeat(MAX)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let parent = Parent { run: RunId::new(uuid::Uuid::nil()), step: "a".to_owned(), life: 3, depth: 1 };
        for bad in [
            "",
            "a\nb",
            &"x".repeat(MAX + 1),
            "schedule 0 2 * * * UTC of nightly at 1",
            "after fetch of x at the end of y (3)",
            "hooks of x (3)",
            &format!("{} d1", key_of_path("deploy")),
            &parent.key(),
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
