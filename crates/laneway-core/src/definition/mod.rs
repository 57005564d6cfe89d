//! From a document's text to a [`Workflow`]: reading with spans, all errors at once.

mod model;

pub use model::*;
