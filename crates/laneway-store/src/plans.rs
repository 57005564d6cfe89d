//! Plans by version, compiled from their stored documents on demand and cached. A cache only: an
//! entry may be lost at any moment, and costs no more than compiling again. All users of a version
//! share one plan. A client that submits a document a hundred times would otherwise leave a hundred
//! plans with the runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use laneway_core::definition::{Source, compile};
use laneway_core::hash::Version;
use laneway_core::hook::name_of_workflow;
use laneway_core::plan::Plan;

use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Plans that stay in memory although they are unused.
    kept: HashMap<Version, Arc<Plan>>,
    /// All plans that are in use.
    used: HashMap<Version, Weak<Plan>>,
}

/// Maximum number of plans in `kept`: a plan of 100,000 steps takes tens of megabytes.
const PLANS: usize = 16;

/// Number of entries in `used` from which unused ones are removed.
const USED: usize = 256;

impl Plans {
    /// Caches a plan and returns it, or the plan of the same version that is in use already.
    pub(crate) fn keep(&self, plan: &Arc<Plan>) -> Arc<Plan> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = shared.find(&plan.version).unwrap_or_else(|| Arc::clone(plan));
        if shared.kept.len() >= PLANS && !shared.kept.contains_key(&plan.version) {
            shared.kept.clear();
        }
        if shared.used.len() >= USED && !shared.used.contains_key(&plan.version) {
            shared.used.retain(|_, plan| plan.strong_count() > 0);
        }
        shared.kept.insert(plan.version.clone(), Arc::clone(&plan));
        shared.used.insert(plan.version.clone(), Arc::downgrade(&plan));
        plan
    }

    pub(crate) fn kept(&self, version: &Version) -> Option<Arc<Plan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).find(version)
    }

    /// Compiles a stored document and caches the plan.
    ///
    /// # Errors
    /// `Unreadable` if the document does not compile to a plan of this version.
    pub(crate) fn make(&self, version: &Version, name: String, document: String) -> Result<Arc<Plan>> {
        let file = format!("workflow {name}");
        // Hooks are part of the document of their workflow.
        let hooks = version.hooks();
        let of_hooks = hooks.and_then(|(end, _)| name_of_workflow(&name, end)).map(str::to_owned);
        let source = Source { file, default_name: of_hooks.unwrap_or(name), text: document };
        let plan = compile(&source).map_err(|diagnostics| Error::Unreadable {
            what: source.file.clone(),
            why: diagnostics.render(false),
        })?;
        let plan = match hooks {
            None => plan,
            Some((end, which)) => plan.hooks_at(end, which).ok_or_else(|| Error::Unreadable {
                what: source.file.clone(),
                why: format!("it has no hooks for runs that are {end}"),
            })?,
        };
        if plan.version != *version {
            let why = format!("its content has the version {}, not {version}", plan.version);
            return Err(Error::Unreadable { what: source.file, why });
        }
        Ok(self.keep(&Arc::new(plan)))
    }
}

impl Shared {
    fn find(&self, version: &Version) -> Option<Arc<Plan>> {
        self.used.get(version).and_then(Weak::upgrade)
    }
}

/// Returns whether a step of a plan needs a named limit.
pub(crate) fn names_limit(plan: &Plan, name: &str) -> bool {
    plan.workflow.steps.iter().any(|step| step.demands().limits.iter().any(|limit| limit == name))
}

/// Returns the named limits that steps of a plan need, each once.
pub(crate) fn limits_named(plan: &Plan) -> Vec<String> {
    let named = plan.workflow.steps.iter().flat_map(|step| &step.demands().limits).cloned();
    named.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Returns the error of a run that needs a limit which was removed after its submission.
pub(crate) fn limit_is_gone(name: &str) -> Error {
    let why = format!("the limit `{name}` was removed; `laneway limit set {name} N` makes it again");
    Error::NotRunnable { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str) -> Arc<Plan> {
        let text = format!("name: {name}\nsteps: {{a: {{run: 'true'}}}}\n");
        let source = Source { file: "f".to_owned(), default_name: "f".to_owned(), text };
        Arc::new(compile(&source).expect("a workflow"))
    }

    #[test]
    fn all_who_use_a_version_share_one_plan() {
        let plans = Plans::default();
        let first = plans.keep(&plan("a"));
        assert!(Arc::ptr_eq(&first, &plans.keep(&plan("a"))), "whoever submits it again");
        (0..=PLANS).for_each(|other| drop(plans.keep(&plan(&format!("o{other}")))));
        let found = plans.kept(&first.version).expect("somebody uses it");
        assert!(Arc::ptr_eq(&first, &found), "also when it is no longer kept here");
    }

    #[test]
    fn few_are_kept_that_nobody_uses() {
        let plans = Plans::default();
        let versions: Vec<Version> =
            (0..USED * 2).map(|number| plans.keep(&plan(&format!("o{number}"))).version.clone()).collect();
        let kept = versions.iter().filter(|version| plans.kept(version).is_some()).count();
        assert!((1..=PLANS).contains(&kept), "{kept}");
        assert!(plans.0.lock().expect("a lock").used.len() <= USED + PLANS);
    }
}
