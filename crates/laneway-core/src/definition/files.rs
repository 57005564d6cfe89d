//! The keys of a step that are about files: `artifacts`, which it leaves behind, and `inputs`, steps whose artifacts it is given.

use std::collections::HashMap;

use super::finding::{Finding, Findings, shown};
use super::model::{Action, Workflow};
use super::read::Spans;
use super::reader::{Field, Reader};
use super::yaml::Data;
use crate::artifact::ArtifactPattern;
use crate::nearest::nearest;

impl Reader<'_> {
    /// Patterns, each once.
    pub(super) fn artifacts(&mut self, field: Field<'_>) -> Vec<ArtifactPattern> {
        let must_be = "a list of paths, such as [dist/*.tar.gz, report.html]";
        let mut patterns: Vec<ArtifactPattern> = Vec::new();
        for item in self.list(field, must_be).unwrap_or_default() {
            let Some(text) = self.string(item, must_be) else { continue };
            if !self.literal(item, text, "a path is fixed; use `*` for what is not known before") {
                continue;
            }
            let span = self.place(item);
            match ArtifactPattern::parse(text) {
                Ok(pattern) if patterns.contains(&pattern) => {
                    let message = format!("the path {} is named twice", shown(text));
                    self.findings.push(Finding::new(message, span).hint("remove one"));
                }
                Ok(pattern) => patterns.push(pattern),
                Err(why) => {
                    let of = if field.name == "files" { "a file" } else { "an artifact" };
                    let message = format!("{} is no path of {of}", shown(text));
                    self.findings.push(Finding::new(message, span).hint(why));
                }
            }
        }
        patterns
    }

    /// Names of steps, each once, with their places.
    pub(super) fn inputs(&mut self, field: Field<'_>) -> Vec<(String, super::finding::Span)> {
        let must_be = "the name of a step, or a list of names";
        let items = match &self.tree.node(field.value).data {
            Data::Scalar { .. } => vec![field],
            Data::List(_) | Data::Map(_) => self.list(field, must_be).unwrap_or_default(),
        };
        let mut names: Vec<(String, super::finding::Span)> = Vec::new();
        for item in items {
            let Some(name) = self.string(item, must_be) else { continue };
            let is_fixed = self.literal(item, name, "a step is named, not computed");
            if is_fixed && !names.iter().any(|(known, _)| known == name) {
                names.push((name.to_owned(), self.place(item)));
            }
        }
        names
    }
}

/// Whether what steps are given is there by then: of steps that they need, and that leave something behind.
pub(super) fn check(workflow: &Workflow, spans: &Spans, findings: &mut Findings) {
    if workflow.steps.iter().all(|step| step.files.is_none()) {
        return;
    }
    let by_name: HashMap<&str, usize> =
        workflow.steps.iter().enumerate().map(|(index, step)| (step.name.as_str(), index)).collect();
    for (step, spans) in workflow.steps.iter().zip(&spans.step) {
        let elsewhere = match step.action {
            Action::Run { .. } | Action::Command { .. } | Action::Post { .. } | Action::Merge { .. } => None,
            Action::Function { .. } => Some("calls a function, which has no directory"),
            Action::Queue { .. } => Some("is done by a remote worker, which has no directory here"),
            Action::Call { .. } => Some("calls an endpoint, which has no directory here"),
            Action::Wait(_) => Some("has no directory: it waits for something else"),
        };
        if let (Some(_), Some(why)) = (&step.files, elsewhere) {
            let message = format!("step `{}` {why}", step.name);
            let finding = Finding::new(message, spans.name);
            findings.push(finding.hint("`artifacts` and `inputs` are for scripts and programs"));
        }
        for (name, span) in step.files().inputs.iter().zip(spans.inputs()) {
            let wrong = |message: String| Finding::new(message, *span);
            let finding = match by_name.get(name.as_str()).map(|index| &workflow.steps[*index]) {
                None => {
                    let near = nearest(name, workflow.steps.iter().map(|step| step.name.as_str()));
                    wrong(format!("there is no step {}", shown(name)))
                        .maybe_hint(near.map(|near| format!("did you mean `{near}`?")))
                }
                Some(_) if !step.needs.contains(name) && !spans.has_broken_needs => wrong(format!(
                    "step `{}` takes artifacts of `{name}` without needing it, so they may not be there by then",
                    step.name
                ))
                .hint(format!("add `{name}` to the `needs` of `{}`", step.name)),
                Some(target) if target.files().artifacts.is_empty() => {
                    wrong(format!("step `{name}` has no `artifacts`"))
                        .hint(format!("name its files there: `artifacts: [dist/*]` in `{name}`"))
                }
                Some(_) => continue,
            };
            findings.push(finding);
        }
    }
}
