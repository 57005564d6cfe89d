//! Keys of locks and orders, and what becomes of a plan's keys when a run is submitted: they are evaluated with its
//! parameters once, and never change. Owns what may be a key; who holds one is the store's to count.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::definition::{Order, Step};
use crate::expression::{Scope, Template};
use crate::not_before::NotBefore;
use crate::plan::{Plan, Position};
use crate::version::OrderVersion;

/// In characters: long enough for a path, short enough to be read in a cause.
pub const MAX_KEY: usize = 200;

/// The keys of one task of a run, as they are stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskKeys {
    pub lock: Option<String>,
    pub order: Option<(String, OrderVersion)>,
    /// Names of limits, sorted: keys are taken in one order by everybody.
    pub limits: Vec<String>,
}

/// Why a run cannot be submitted with these parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("`{key}` of step `{step}` is {value}, which cannot be a key: {why}")]
    Key { step: String, key: &'static str, value: String, why: &'static str },
    #[error("`order.version` of step `{step}` is `{value}`, which is no version: {why}")]
    Version { step: String, value: String, why: String },
    #[error("`not_before` of step `{step}` is {why}")]
    NotBefore { step: String, why: String },
    #[error("`{key}` of step `{step}`: {why}")]
    Expression { step: String, key: &'static str, why: String },
    /// `order` against `needs`, with these parameters.
    #[error("{message}; {hint}")]
    Deadlock { message: String, hint: String },
}

/// What is wrong with a key's text; `None` for a good one.
pub(crate) fn fault(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        Some("it is empty")
    } else if text.trim() != text {
        Some("it begins or ends with a blank")
    } else if text.chars().any(|c| c.is_control() || crate::definition::is_invisible(c)) {
        Some("it contains a character that cannot be seen")
    } else if text.chars().count() > MAX_KEY {
        Some("it has more than 200 characters")
    } else {
        None
    }
}

/// The keys of a run's tasks by position, of those that have any.
pub fn bind(plan: &Plan, params: &Map<String, Value>) -> Result<BTreeMap<Position, TaskKeys>, BadKey> {
    let scope = of_params(params);
    let mut all = BTreeMap::new();
    for (position, step) in (0..).zip(&plan.workflow.steps) {
        not_before(step, params)?;
        let keys = keys_of(step, &scope)?;
        // Each item of a step may have a lock of its own.
        if keys != TaskKeys::default() || step.lock_reads_item() {
            all.insert(position, keys);
        }
    }
    let orders: Vec<(Position, &str, &OrderVersion)> = all
        .iter()
        .filter_map(|(position, keys)| {
            let (key, version) = keys.order.as_ref()?;
            Some((*position, key.as_str(), version))
        })
        .collect();
    match plan.deadlock(&orders) {
        Some(fault) => Err(BadKey::Deadlock { message: fault.message, hint: fault.hint.unwrap_or_default() }),
        None => Ok(all),
    }
}

/// When a step may start at the earliest, by the parameters of its run. `None` if it does not say.
pub fn not_before(step: &Step, params: &Map<String, Value>) -> Result<Option<NotBefore>, BadKey> {
    let Some(template) = &step.demands().not_before else { return Ok(None) };
    let text = rendered(step, "not_before", template, &of_params(params))?;
    let failed = |why| BadKey::NotBefore { step: step.name.clone(), why };
    NotBefore::parse(&text).map(Some).map_err(failed)
}

fn of_params(params: &Map<String, Value>) -> Scope {
    [("params".to_owned(), Value::Object(params.clone()))].into_iter().collect()
}

/// The lock of an item of a step, where that is not the same for all of them.
pub fn lock_of_item(step: &Step, scope: &Scope) -> Result<Option<String>, BadKey> {
    step.demands().lock.as_ref().map(|lock| key(step, "lock", lock, scope)).transpose()
}

fn keys_of(step: &Step, scope: &Scope) -> Result<TaskKeys, BadKey> {
    let demands = step.demands();
    // One that reads the item of its task is known with that.
    let lock = demands.lock.as_ref().filter(|_| !step.lock_reads_item());
    let lock = lock.map(|lock| key(step, "lock", lock, scope)).transpose()?;
    let order = demands.order.as_ref().map(|order| ordered(step, order, scope)).transpose()?;
    let mut limits = demands.limits.clone();
    limits.sort_unstable();
    Ok(TaskKeys { lock, order, limits })
}

fn ordered(step: &Step, order: &Order, scope: &Scope) -> Result<(String, OrderVersion), BadKey> {
    let key = key(step, "order.key", &order.key, scope)?;
    // A number has lost the zero of `2.10` before it comes here.
    let is_fraction = matches!(order.version.evaluate(scope), Ok(Value::Number(number)) if number.is_f64());
    let value = rendered(step, "order.version", &order.version, scope)?;
    let why = match OrderVersion::parse(&value) {
        Ok(version) if !is_fraction => return Ok((key, version)),
        Ok(_) => "as a number 2.10 is the same as 2.1; make the parameter one of `type: string`".to_owned(),
        Err(why) => why.to_string(),
    };
    Err(BadKey::Version { step: step.name.clone(), value, why })
}

fn key(step: &Step, name: &'static str, template: &Template, scope: &Scope) -> Result<String, BadKey> {
    let value = rendered(step, name, template, scope)?;
    match fault(&value) {
        None => Ok(value),
        Some(why) => {
            let value = format!("`{}`", value.chars().take(60).collect::<String>().escape_debug());
            Err(BadKey::Key { step: step.name.clone(), key: name, value, why })
        }
    }
}

fn rendered(step: &Step, key: &'static str, template: &Template, scope: &Scope) -> Result<String, BadKey> {
    let failed = |why: String| BadKey::Expression { step: step.name.clone(), key, why };
    template.render(scope).map_err(|error| failed(error.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::{Source, compile};

    fn plan(text: &str) -> Plan {
        let source = Source { file: "f.yaml".into(), default_name: "f".into(), text: text.into() };
        compile(&source).map_err(|refusal| refusal.render(false)).expect("it is valid")
    }

    fn bound(text: &str, params: Value) -> Result<BTreeMap<Position, TaskKeys>, BadKey> {
        let Value::Object(params) = params else { panic!("an object of parameters") };
        bind(&plan(text), &params)
    }

    const KEYED: &str = r#"
params: {db: {type: string}, version: {type: string, default: "1"}, number: {type: number}}
steps:
  free: {run: make}
  a: {run: make, lock: "db/${{ params.db }}", limits: [warehouse, api]}
  b: {run: make, order: {key: "db/${{ params.db }}", version: "v2.${{ params.version }}"}}
"#;

    #[test]
    fn keys_are_fixed_by_the_parameters_of_the_run() {
        let keys = bound(KEYED, json!({"db": "orders", "version": "10"})).expect("good keys");
        assert_eq!(keys.keys().copied().collect::<Vec<_>>(), [1, 2]);
        let version = OrderVersion::parse("2.10").expect("a version");
        assert_eq!(
            keys[&1],
            TaskKeys {
                lock: Some("db/orders".into()),
                order: None,
                limits: vec!["api".into(), "warehouse".into()],
            }
        );
        assert_eq!(keys[&2].order, Some(("db/orders".into(), version)));
    }

    #[test]
    fn parameters_that_make_no_key_or_version_are_refused_in_words() {
        let refusal =
            |text: &str, params: Value| bound(text, params).expect_err("it must be refused").to_string();
        assert_eq!(
            refusal(KEYED, json!({"db": "a\u{200b}", "version": "1"})),
            "`lock` of step `a` is `db/a\\u{200b}`, which cannot be a key: it contains a character that cannot be seen"
        );
        assert_eq!(
            refusal(KEYED, json!({"db": "x", "version": "rc1"})),
            "`order.version` of step `b` is `v2.rc1`, which is no version: its part `rc1` is not a number"
        );
        assert_eq!(
            refusal(KEYED, json!({"db": null, "version": "1"})),
            "`lock` of step `a`: `params.db` is null; give it a value with `| default(\"…\", true)`"
        );
        let number = "params: {v: {type: number}}\nsteps: {a: {run: make, order: {key: k, version: '${{ params.v }}'}}}";
        assert_eq!(
            refusal(number, json!({"v": 2.1})),
            "`order.version` of step `a` is `2.1`, which is no version: as a number 2.10 is the same as 2.1; make the \
             parameter one of `type: string`"
        );
        assert!(bound(number, json!({"v": 2})).is_ok(), "a whole number has nothing to lose");
        let empty = "params: {k: {type: string}}\nsteps: {a: {run: make, lock: '${{ params.k }}'}}";
        assert_eq!(
            refusal(empty, json!({"k": " "})),
            "`lock` of step `a` is ` `, which cannot be a key: it is empty"
        );
        assert!(refusal(empty, json!({"k": "x".repeat(201)})).ends_with("it has more than 200 characters"));
    }

    #[test]
    fn a_deadlock_that_only_the_parameters_make_is_refused_at_submit() {
        let text = r#"
params: {first: {type: string}, second: {type: string}}
steps:
  a: {run: make, order: {key: k, version: "${{ params.first }}"}}
  b: {run: make, needs: a, order: {key: k, version: "${{ params.second }}"}}
"#;
        assert!(bound(text, json!({"first": "1", "second": "2"})).is_ok());
        assert!(
            bound(text, json!({"first": "1", "second": "1.0"})).is_ok(),
            "equals do not order each other"
        );
        let refusal = bound(text, json!({"first": "10", "second": "9"})).expect_err("a deadlock");
        assert_eq!(
            refusal.to_string(),
            "steps wait for each other in a cycle: a -> b -> a; each step waits for the one before the arrow; `a` waits \
             for `b` by `order`: on the key `k` version 9 goes before 10"
        );
    }

    #[test]
    fn a_moment_that_the_parameters_make_is_read_at_submit() {
        let text = "params: {when: {type: string}}\nsteps: {a: {run: make, not_before: '${{ params.when }}'}, b: {run: make}}";
        let plan = plan(text);
        let at = |when: Value| {
            let Value::Object(params) = json!({ "when": when }) else { panic!("an object") };
            let bound = bind(&plan, &params).map(|keys| assert!(keys.is_empty(), "it is no key"));
            bound.and_then(|()| not_before(plan.step(0), &params)).map_err(|error| error.to_string())
        };
        let delay = NotBefore::After(std::time::Duration::from_secs(300));
        assert_eq!(at(json!("5m")), Ok(Some(delay)));
        assert_eq!(not_before(plan.step(1), &Map::new()), Ok(None));
        assert_eq!(
            at(json!("noon")).expect_err("no moment"),
            "`not_before` of step `a` is `noon`, which is neither a moment such as 2026-12-24T18:00:00Z nor a duration such as 5m"
        );
        assert!(
            at(json!(null))
                .expect_err("no moment")
                .starts_with("`not_before` of step `a`: `params.when` is null")
        );
    }
}
