//! What workflows ask for: their parameters, read from their documents once for each version. A version is made of content, so what is
//! kept is never out of date. Plans are not made for it: a list of workflows would drive those out that are in use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::definition::{Source, compile};
use laneway_core::hash::Version;
use laneway_store::model::Definition;
use laneway_store::{Result, Store};

use crate::wire;

/// Versions at once; with more, all of them go.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub struct Forms(Mutex<HashMap<Version, Arc<[wire::Param]>>>);

impl Forms {
    /// Nothing of a document that cannot be read any more: whoever starts it is told why.
    pub(super) async fn of(&self, store: &dyn Store, definition: &Definition) -> Result<Arc<[wire::Param]>> {
        let version = &definition.version;
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(version) {
            return Ok(Arc::clone(known));
        }
        let text = store.document(version).await?;
        let source = Source { file: "<document>".to_owned(), default_name: definition.name.clone(), text };
        let read =
            move || compile(&source).map(|plan| plan.workflow.params.iter().map(wire::Param::from).collect());
        // On a thread of its own: a large one takes its time, and others are asking.
        let params: Arc<[wire::Param]> = match tokio::task::spawn_blocking(read).await {
            Ok(Ok(params)) => params,
            Ok(Err(_)) | Err(_) => Arc::default(),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(version.clone(), Arc::clone(&params));
        Ok(params)
    }
}
