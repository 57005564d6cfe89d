//! From a document's text to a [`Workflow`] and its [`Plan`]: reading with spans, all errors at once.
//!
//! ```text
//! text -> yaml (tree, bounds) -> read (keys, types, units) -> names (expressions) -> plan (graph)
//!   each adds findings, none stops at the first -> diagnostic (line, column, advice)
//! ```

mod diagnostic;
mod finding;
mod keys;
mod model;
mod names;
mod param;
mod params_file;
mod read;
mod reader;
mod schema;
mod text;
mod value;
mod words;
mod yaml;

#[cfg(test)]
mod tests;

pub use diagnostic::{Diagnostic, Diagnostics, Note};
pub use model::*;
pub use params_file::read_params;
pub use schema::schema;
pub use text::MAX_BYTES;

use crate::hash::Version;
use crate::plan::{Fault, Place, Plan};
use finding::{Finding, Findings, Span};
use read::{Outcome, Spans};
use text::Text;

/// A document and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As shown in errors.
    pub file: String,
    /// The workflow's name where the document gives none: the file's stem.
    pub default_name: String,
    pub text: String,
}

impl Source {
    /// Takes a file's bytes; refuses those that are no UTF-8, or too many to look at.
    pub fn from_bytes(
        file: impl Into<String>,
        default_name: impl Into<String>,
        bytes: Vec<u8>,
    ) -> Result<Self, Diagnostics> {
        let file = file.into();
        let refused = |finding: Finding| {
            let mut findings = Findings::default();
            findings.push(finding);
            Diagnostics::new(&file, None, findings)
        };
        if bytes.len() > MAX_BYTES {
            return Err(refused(text::too_large(bytes.len())));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { file, default_name: default_name.into(), text }),
            Err(error) => Err(refused(text::not_utf8(&error))),
        }
    }
}

/// Reads a document alone, without looking at its graph or at the names in its expressions.
pub fn read(source: &Source) -> Result<Workflow, Diagnostics> {
    let checked = checked(source)?;
    let (outcome, _) = outcome(source, &checked);
    match outcome.workflow {
        Some(workflow) if outcome.findings.is_empty() => Ok(workflow),
        Some(_) | None => Err(Diagnostics::new(&source.file, Some(&checked), outcome.findings)),
    }
}

/// Reads, checks and plans a document.
pub fn compile(source: &Source) -> Result<Plan, Diagnostics> {
    let checked = checked(source)?;
    let (outcome, tree) = outcome(source, &checked);
    let Outcome { workflow, spans, mut findings, sites } = outcome;
    let mut plan = None;
    if let (Some(workflow), Some(tree)) = (workflow, tree) {
        for finding in names::check(&source.text, &tree, &workflow, &spans, &sites) {
            findings.push(finding);
        }
        // The tree is large, and the planner needs memory of its own.
        drop(tree);
        let version = Version::of(&workflow.name, &source.text);
        match Plan::build(workflow, version) {
            Ok(built) => plan = Some(built),
            Err(faults) => {
                for fault in faults {
                    if let Some(finding) = located(fault, &spans) {
                        findings.push(finding);
                    }
                }
            }
        }
    }
    match plan {
        Some(plan) if findings.is_empty() => Ok(plan),
        Some(_) | None => Err(Diagnostics::new(&source.file, Some(&checked), findings)),
    }
}

fn checked(source: &Source) -> Result<Text<'_>, Diagnostics> {
    Text::check(&source.text).map_err(|refused| {
        let mut findings = Findings::default();
        let text = Text::index(&source.text);
        let text = refused.span.is_some().then_some(&text);
        findings.push(refused.clone());
        Diagnostics::new(&source.file, text, findings)
    })
}

fn outcome<'t>(source: &'t Source, text: &Text<'t>) -> (Outcome, Option<yaml::Tree<'t>>) {
    let mut findings = Findings::default();
    match yaml::parse(text.all, &mut findings) {
        Some(tree) => (read::workflow(&source.text, &tree, findings, &source.default_name), Some(tree)),
        None => (Outcome { workflow: None, spans: Spans::default(), findings, sites: Vec::new() }, None),
    }
}

/// A fault of the graph at its place in the document; `None` if it only follows from another error.
fn located(fault: Fault, spans: &Spans) -> Option<Finding> {
    let step = |position: u32| spans.step.get(position as usize);
    let span = match fault.at {
        Place::Steps => Some(spans.steps),
        Place::Step(position) => step(position).map(|step| step.name),
        Place::Need { step: position, index } => {
            step(position).map(|step| step.needs.get(index).copied().unwrap_or(step.name))
        }
        Place::Group(group) => match spans.group.get(group) {
            Some(group) if group.is_broken => return None,
            Some(group) => Some(group.name),
            None => None,
        },
        Place::Member { group, index } => {
            spans.group.get(group).map(|group| group.members.get(index).copied().unwrap_or(group.name))
        }
    };
    let span = span.unwrap_or(Span::default());
    Some(Finding::new(fault.message, span).maybe_hint(fault.hint))
}
