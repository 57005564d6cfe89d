//! Plans by version: made from their documents again when they are needed, and kept for a while. What is kept can be
//! lost at any moment and costs only the making.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::definition::{Source, compile};
use laneway_core::hash::Version;
use laneway_core::hook::name_of_workflow;
use laneway_core::plan::Plan;

use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<HashMap<Version, Arc<Plan>>>);

/// A plan of 100,000 steps takes tens of megabytes, so few are kept.
const PLANS: usize = 16;

impl Plans {
    pub(crate) fn keep(&self, plan: &Arc<Plan>) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= PLANS {
            plans.clear();
        }
        plans.insert(plan.version.clone(), Arc::clone(plan));
    }

    pub(crate) fn kept(&self, version: &Version) -> Option<Arc<Plan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(version).cloned()
    }

    /// From the stored document, and kept.
    pub(crate) fn make(&self, version: &Version, name: String, document: String) -> Result<Arc<Plan>> {
        let file = format!("workflow {name}");
        // Hooks stand in the document of their workflow.
        let end = version.end();
        let of_hooks = end.and_then(|end| name_of_workflow(&name, end)).map(str::to_owned);
        let source = Source { file, default_name: of_hooks.unwrap_or(name), text: document };
        let plan = compile(&source).map_err(|diagnostics| Error::Unreadable {
            what: source.file.clone(),
            why: diagnostics.render(false),
        })?;
        let plan = match end {
            None => plan,
            Some(end) => plan.hooks_at(end).ok_or_else(|| Error::Unreadable {
                what: source.file.clone(),
                why: format!("it has no hooks for runs that are {end}"),
            })?,
        };
        if plan.version != *version {
            let why = format!("its content has the version {}, not {version}", plan.version);
            return Err(Error::Unreadable { what: source.file, why });
        }
        let plan = Arc::new(plan);
        self.keep(&plan);
        Ok(plan)
    }
}
