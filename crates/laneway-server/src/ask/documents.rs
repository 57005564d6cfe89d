//! From the text of a document to its plan. Whoever submits one often submits the same text, and to read it takes longer than
//! the rest of the request: short ones are kept with their plans.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::definition::{self, DocumentDefaults, Source};
use laneway_core::hash::Version;
use laneway_core::plan::Plan;

use crate::callback::{Reach, check_hosts};
use crate::problem::{Answer, Code, Problem};

/// Documents up to so many bytes are kept, and read where they came in: that takes less than to hand them to another thread.
const SHORT: usize = 4_096;

/// Plans that are kept; with more, they go. Those of short documents are small.
const PLANS: usize = 64;

/// Reads documents. Keeps short ones that were read lately, under the versions that their texts would have if
/// they did not name themselves.
#[derive(Debug, Default)]
pub struct Documents {
    defaults: DocumentDefaults,
    /// Where callbacks may go.
    reach: Reach,
    kept: Mutex<HashMap<Version, (Arc<Plan>, String)>>,
}

impl Documents {
    pub fn new(defaults: DocumentDefaults, reach: Reach) -> Self {
        Self { defaults, reach, kept: Mutex::default() }
    }

    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The plan of a document, with its text as it is stored.
    pub(super) async fn read(&self, document: String, name: Option<String>) -> Answer<(Arc<Plan>, String)> {
        let name = name_of(name)?;
        if !is_short(&document) {
            let (plan, document) = self.compile(document, name).await?;
            return Ok((Arc::new(plan), document));
        }
        let version = Version::of(&name, &document);
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((plan, text)) = kept().get(&version) {
            return Ok((Arc::clone(plan), text.clone()));
        }
        let (plan, document) = self.compile(document, name).await?;
        let plan = Arc::new(plan);
        let mut plans = kept();
        if plans.len() >= PLANS {
            plans.clear();
        }
        plans.insert(version, (Arc::clone(&plan), document.clone()));
        Ok((plan, document))
    }

    /// A plan, with its text, or what is wrong with that.
    pub(super) async fn compile(&self, document: String, name: String) -> Answer<(Plan, String)> {
        let (is_short, defaults, reach) = (is_short(&document), self.defaults.clone(), self.reach.clone());
        let compile = move || {
            let source = Source { file: "<document>".to_owned(), default_name: name, text: document };
            let source = defaults.complete(source);
            let compiled = definition::compile(&source)
                .and_then(|plan| check_hosts(&source, &plan.workflow, &reach).map(|()| plan));
            match compiled {
                Ok(plan) => Ok((plan, source.text)),
                Err(diagnostics) => Err(Problem::document(&diagnostics)),
            }
        };
        if is_short {
            return compile();
        }
        // On a thread of its own: a large one takes its time, and others are asking.
        tokio::task::spawn_blocking(compile).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a document could not be read");
            Err(Problem::new(Code::Internal, "something inside went wrong; the server's log says what"))
        })
    }
}

/// What a document is called that does not say so itself.
pub(super) fn name_of(given: Option<String>) -> Answer<String> {
    let name = given.unwrap_or_else(|| "workflow".to_owned());
    if definition::is_workflow_name(&name) {
        return Ok(name);
    }
    Err(Problem::new(Code::Unprocessable, "`name` is no name of a workflow")
        .hint("use 1 to 100 characters without line breaks"))
}

/// With aliases few bytes may say much.
fn is_short(document: &str) -> bool {
    document.len() <= SHORT && !document.contains('*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(step: usize) -> String {
        format!("steps: {{s{step}: {{command: [/bin/true]}}}}\n")
    }

    async fn read(documents: &Documents, text: String, name: &str) -> Arc<Plan> {
        documents.read(text, Some(name.to_owned())).await.expect("a good document").0
    }

    #[tokio::test]
    async fn the_same_text_is_read_once() {
        let documents = Documents::default();
        let first = read(&documents, document(1), "a").await;
        assert!(Arc::ptr_eq(&first, &read(&documents, document(1), "a").await));
        assert!(!Arc::ptr_eq(&first, &read(&documents, document(2), "a").await));
    }

    #[tokio::test]
    async fn the_same_text_under_another_name_is_another_workflow() {
        let documents = Documents::default();
        assert_eq!(read(&documents, document(1), "a").await.workflow.name, "a");
        assert_eq!(read(&documents, document(1), "b").await.workflow.name, "b");
    }

    #[tokio::test]
    async fn few_are_kept_and_none_that_is_long_or_wrong() {
        let documents = Documents::default();
        for step in 0..=PLANS {
            read(&documents, document(step), "a").await;
        }
        let long = format!("{}# {}", document(1), "x".repeat(SHORT));
        read(&documents, long, "a").await;
        let alias = "steps: {a: &a {command: [/bin/true]}, b: *a}".to_owned();
        read(&documents, alias, "a").await;
        documents.read("steps: 7".to_owned(), None).await.expect_err("a wrong one");
        assert_eq!(documents.kept.lock().expect("whole").len(), 1);
    }
}
