//! What workflows ask for: their parameters, read from their documents once for each version. A version is made of content, so what is
//! kept is never out of date. Plans are not made for it: a list of workflows would drive those out that are in use.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::definition::{Source, compile};
use laneway_core::hash::Version;
use laneway_store::Store;
use laneway_store::model::Definition;

use crate::wire;

/// Versions at once; with more, the oldest go.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub struct Forms(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    params: HashMap<Version, Arc<[wire::Param]>>,
    /// In the order in which they came.
    order: VecDeque<Version>,
}

impl Forms {
    /// Nothing of a document that cannot be had or read any more: whoever starts it is told why, and the others are listed.
    pub(super) async fn of(&self, store: &dyn Store, definition: &Definition) -> Arc<[wire::Param]> {
        let version = &definition.version;
        if let Some(known) = self.known(version) {
            return known;
        }
        let text = match store.document(version).await {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(%version, %error, "a document is listed without its parameters");
                return Arc::default();
            }
        };
        let source = Source { file: "<document>".to_owned(), default_name: definition.name.clone(), text };
        let read =
            move || compile(&source).map(|plan| plan.workflow.params.iter().map(wire::Param::from).collect());
        // On a thread of its own: a large one takes its time, and others are asking.
        let params: Arc<[wire::Param]> = match tokio::task::spawn_blocking(read).await {
            Ok(Ok(params)) => params,
            Ok(Err(_)) | Err(_) => Arc::default(),
        };
        self.keep(version, &params);
        params
    }

    fn known(&self, version: &Version) -> Option<Arc<[wire::Param]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).params.get(version).cloned()
    }

    fn keep(&self, version: &Version, params: &Arc<[wire::Param]>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.params.insert(version.clone(), Arc::clone(params)).is_none() {
            kept.order.push_back(version.clone());
        }
        while kept.order.len() > MOST
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.params.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_bounded_and_the_oldest_goes_alone() {
        let (forms, version) = (Forms::default(), |number: usize| Version::from_stored(number.to_string()));
        (0..=MOST).for_each(|number| forms.keep(&version(number), &Arc::default()));
        forms.keep(&version(MOST), &Arc::default());
        assert!(forms.known(&version(0)).is_none(), "the oldest");
        assert!((1..=MOST).all(|number| forms.known(&version(number)).is_some()), "no other");
    }
}
