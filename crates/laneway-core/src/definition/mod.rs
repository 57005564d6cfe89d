//! From a document's text to a [`Workflow`] and its [`Plan`]: reading with spans, all errors at once.
//!
//! ```text
//! text -> yaml (tree, bounds) -> read (keys, types, units) -> names (expressions) -> plan (graph)
//!   each adds findings, none stops at the first -> diagnostic (line, column, advice)
//! ```

mod advice;
mod caches;
mod children;
mod containers;
mod defaults;
mod diagnostic;
mod files;
mod finding;
mod foreign;
mod gates;
mod groups;
mod growth;
mod hooks;
mod hosts;
mod housing;
mod input;
mod json;
mod keys;
mod levels;
mod model;
mod names;
mod param;
mod params_file;
mod paths;
mod pools;
mod read;
mod reader;
mod scalar;
mod schema;
mod secrets;
mod shells;
mod text;
mod triggers;
mod value;
mod waits;
mod words;
mod yaml;

#[cfg(test)]
mod tests;

pub use advice::Examined;
pub use containers::leads_to_engine;
pub use defaults::DocumentDefaults;
pub use diagnostic::{Diagnostic, Diagnostics, Note, Severity};
pub(crate) use finding::{is_invisible, shown};
pub use hosts::check_hosts;
pub use housing::*;
pub use input::{Input, MAX_INPUT, evaluate_input};
pub use model::*;
pub use params_file::read_params;
pub use paths::{ArtifactPath, is_input};
pub use read::is_workflow_name;
pub use schema::schema;
pub use text::MAX_BYTES;
pub(crate) use value::parse_duration;
pub use value::{BadName, MAX_RETRIES, check_limit_name};

use crate::hash::Version;
use crate::plan::{Fault, Place, Plan};
use advice::Advice;
use finding::{Finding, Findings, Span};
use read::Spans;

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
    let mut findings = Findings::default();
    let workflow = parsed(source, &mut findings).and_then(|tree| {
        let outcome = read::workflow(&source.text, &tree, &source.default_name);
        findings.append(outcome.findings);
        outcome.workflow
    });
    finish(source, workflow, findings)
}

/// Reads, checks and plans a document.
pub fn compile(source: &Source) -> Result<Plan, Diagnostics> {
    let mut findings = Findings::default();
    let plan = parsed(source, &mut findings).and_then(|tree| plan(source, tree, &mut findings, None));
    finish(source, plan, findings)
}

/// Does the same for a person who has just written it, with advice.
pub fn examine(source: &Source) -> Result<Examined, Diagnostics> {
    let mut findings = Findings::default();
    let mut advice = Advice::default();
    let plan =
        parsed(source, &mut findings).and_then(|tree| plan(source, tree, &mut findings, Some(&mut advice)));
    let plan = finish(source, plan, findings)?;
    let (file, text) = (&source.file, Some(source.text.as_str()));
    let warnings = Diagnostics::new(file, text, advice.warnings).of(Severity::Warning);
    let shared_directory = Diagnostics::new(file, text, advice.shared_directory);
    Ok(Examined { plan, warnings, shared_directory })
}

fn plan(
    source: &Source,
    tree: yaml::Tree<'_>,
    findings: &mut Findings,
    advice: Option<&mut Advice>,
) -> Option<Plan> {
    let outcome = read::workflow(&source.text, &tree, &source.default_name);
    let spans = outcome.spans;
    findings.append(outcome.findings);
    let workflow = outcome.workflow?;
    for finding in names::check(&source.text, &tree, &workflow, &spans, &outcome.sites) {
        findings.push(finding);
    }
    if let Some(advice) = advice {
        *advice = advice::of(&source.text, &tree, &workflow);
    }
    // The tree is large, and the planner needs memory of its own.
    drop(tree);
    let version = Version::of(&workflow.name, &source.text);
    match Plan::build(workflow, version) {
        Ok(plan) => Some(plan),
        Err(faults) => {
            for fault in faults {
                if let Some(finding) = located(fault, &spans) {
                    findings.push(finding);
                }
            }
            None
        }
    }
}

fn parsed<'t>(source: &'t Source, findings: &mut Findings) -> Option<yaml::Tree<'t>> {
    match text::check(&source.text) {
        Ok(()) => yaml::parse(&source.text, findings),
        Err(refused) => {
            findings.push(refused);
            None
        }
    }
}

fn finish<T>(source: &Source, result: Option<T>, findings: Findings) -> Result<T, Diagnostics> {
    match result {
        Some(result) if findings.is_empty() => Ok(result),
        Some(_) | None => {
            // What is too large is not looked at, not even for its lines.
            let text = (source.text.len() <= MAX_BYTES).then_some(source.text.as_str());
            Err(Diagnostics::new(&source.file, text, findings))
        }
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
        Place::Order(position) => step(position).map(|step| step.order().unwrap_or(step.name)),
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
