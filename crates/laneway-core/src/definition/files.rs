//! The keys of a step that are about files: `artifacts`, which it leaves behind, and `inputs`, steps whose artifacts it is given.

use std::collections::HashMap;

use super::finding::{Finding, Findings, Span, shown};
use super::keys;
use super::model::{Action, Workflow, Workspace};
use super::paths::ArtifactPath;
use super::read::Spans;
use super::reader::{Field, Reader};
use super::yaml::Data;
use crate::artifact::ArtifactPattern;
use crate::expression::{Part, Template};
use crate::growth::parse_name;
use crate::nearest::nearest;

const PATHS: &str = "a list of paths, such as [dist/*.tar.gz, report.html]";

impl Reader<'_> {
    /// Patterns without expressions, each once.
    pub(super) fn patterns(&mut self, field: Field<'_>) -> Vec<ArtifactPattern> {
        let mut patterns: Vec<ArtifactPattern> = Vec::new();
        for item in self.list(field, PATHS).unwrap_or_default() {
            let Some(text) = self.string(item, PATHS) else { continue };
            if !self.literal(item, text, "a path is fixed; use `*` for what is not known before") {
                continue;
            }
            if let Some(pattern) = self.pattern(item, text) {
                match patterns.contains(&pattern) {
                    true => self.named_twice(item, text),
                    false => patterns.push(pattern),
                }
            }
        }
        patterns
    }

    /// Patterns in which expressions may stand, each once.
    pub(super) fn artifacts(&mut self, field: Field<'_>) -> Vec<ArtifactPath> {
        let mut paths: Vec<ArtifactPath> = Vec::new();
        for item in self.list(field, PATHS).unwrap_or_default() {
            if self.string(item, PATHS).is_none() {
                continue;
            }
            let Some(template) = self.template(item) else { continue };
            // A name that a value may be stands in for it: what is around it has to be a path by itself.
            let Some(pattern) = self.pattern(item, &template.shape("x")) else { continue };
            let path = match template.fixed() {
                Some(_) => ArtifactPath::Fixed(pattern),
                None => ArtifactPath::Rendered(template),
            };
            match paths.contains(&path) {
                true => self.named_twice(item, &path.source()),
                false => paths.push(path),
            }
        }
        paths
    }

    fn pattern(&mut self, item: Field<'_>, text: &str) -> Option<ArtifactPattern> {
        match ArtifactPattern::parse(text) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                let of = if item.name == "files" { "a file" } else { "an artifact" };
                let span = self.place(item);
                let written = match &self.tree.node(item.value).data {
                    Data::Scalar { text, .. } => shown(text),
                    Data::List(_) | Data::Map(_) => shown(text),
                };
                self.findings.push(Finding::new(format!("{written} is no path of {of}"), span).hint(why));
                None
            }
        }
    }

    fn named_twice(&mut self, item: Field<'_>, text: &str) {
        let span = self.place(item);
        let message = format!("the path {} is named twice", shown(text));
        self.findings.push(Finding::new(message, span).hint("remove one"));
    }

    /// The directory of a step. One in which an expression stands is below that of the run.
    pub(super) fn workdir(&mut self, field: Field<'_>) -> Option<Template> {
        let text = self.string(field, "a directory")?;
        if text.is_empty() {
            let finding = self.wrong(field, "a directory");
            self.findings.push(finding);
            return None;
        }
        let template = self.template(field)?;
        if template.fixed().is_none() && template.shape("x").split('/').any(|part| part == "..") {
            let span = self.place(field);
            let finding = Finding::new("a directory with an expression in it cannot lead out by `..`", span);
            self.findings.push(finding.hint("name a directory below that of the workflow file"));
            return None;
        }
        Some(template)
    }

    /// `none`, or `{path: /somewhere}`.
    pub(super) fn workspace(&mut self, field: Field<'_>) -> Option<Workspace> {
        let must_be = "none, or {path: /data/shared}";
        match &self.tree.node(field.value).data {
            Data::Map(_) => {
                let fields = self.fields(field, &keys::WORKSPACE, must_be)?;
                let Some(path) = fields.first().copied() else {
                    let span = self.place(field);
                    self.missing("`workspace`".to_owned(), "path", span, "write `{path: /data/shared}`");
                    return None;
                };
                self.absolute(path).map(Workspace::Path)
            }
            Data::Scalar { .. } | Data::List(_) => {
                let is_none = match &self.tree.node(field.value).data {
                    Data::Scalar { text, .. } => text.as_ref() == "none",
                    Data::List(_) | Data::Map(_) => false,
                };
                if !is_none {
                    let hint = "leave it out for files that follow the run from step to step";
                    let finding = self.wrong(field, must_be).hint(hint);
                    self.findings.push(finding);
                }
                is_none.then_some(Workspace::None)
            }
        }
    }

    /// A path from the root on.
    fn absolute(&mut self, field: Field<'_>) -> Option<String> {
        let must_be = "a path from the root on, such as /data/shared";
        let path = self.string(field, must_be)?;
        if !self.literal(field, path, "a workspace is fixed; every node finds it under the same path") {
            return None;
        }
        if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            let finding = self.wrong(field, must_be).hint("every node finds it under the same path");
            self.findings.push(finding);
            return None;
        }
        Some(path.to_owned())
    }

    /// Names of steps, or of items such as `parse[0]`, each once, with their places.
    pub(super) fn inputs(&mut self, field: Field<'_>) -> Vec<(Template, Span)> {
        let must_be = "the name of a step, or a list of names";
        let items = match &self.tree.node(field.value).data {
            Data::Scalar { .. } => vec![field],
            Data::List(_) | Data::Map(_) => self.list(field, must_be).unwrap_or_default(),
        };
        let mut names: Vec<(Template, Span)> = Vec::new();
        for item in items {
            if self.string(item, must_be).is_none() {
                continue;
            }
            let Some(name) = self.template(item) else { continue };
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, self.place(item)));
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
        if let (Some(files), Some(why)) = (&step.files, elsewhere) {
            let message = format!("step `{}` {why}", step.name);
            if !files.artifacts.is_empty() || !files.inputs.is_empty() {
                let finding = Finding::new(message, spans.name);
                findings.push(finding.hint("`artifacts` and `inputs` are for scripts and programs"));
            } else if let (true, Some(span)) = (files.isolate, spans.isolate()) {
                let finding = Finding::new(format!("{message}, so there is no copy for it"), span);
                findings.push(finding.hint("remove `isolate`; it is for scripts and programs"));
            }
        }
        for (input, span) in step.files().inputs.iter().zip(spans.inputs()) {
            let wrong = |message: String| Finding::new(message, *span);
            // Which step it is, is known when the step starts.
            let Some(written) = input.fixed().map(str::to_owned).or_else(|| with_item(input)) else {
                continue;
            };
            let (name, item) = parse_name(&written);
            let finding = match by_name.get(name).map(|index| &workflow.steps[*index]) {
                None => {
                    let near = nearest(name, workflow.steps.iter().map(|step| step.name.as_str()));
                    wrong(format!("there is no step {}", shown(name)))
                        .maybe_hint(near.map(|near| format!("did you mean `{near}`?")))
                }
                Some(_) if !step.needs.iter().any(|need| need == name) && !spans.has_broken_needs => wrong(format!(
                    "step `{}` takes artifacts of `{name}` without needing it, so they may not be there by then",
                    step.name
                ))
                .hint(format!("add `{name}` to the `needs` of `{}`", step.name)),
                Some(target) if target.files().artifacts.is_empty() => {
                    wrong(format!("step `{name}` has no `artifacts`"))
                        .hint(format!("name its files there: `artifacts: [dist/*]` in `{name}`"))
                }
                Some(target) if item.is_some() && target.for_each.is_none() => {
                    wrong(format!("step `{name}` has no `for_each`, so it has no items"))
                        .hint(format!("write `inputs: [{name}]`"))
                }
                Some(_) => continue,
            };
            findings.push(finding);
        }
    }
}

/// The name of an input whose step is fixed, and whose item is an expression: `parse[${{ index }}]`.
fn with_item(input: &Template) -> Option<String> {
    let shape = input.shape("0");
    let is_fixed = matches!(input.parts.first(), Some(Part::Text(text)) if text.contains('['));
    (is_fixed && parse_name(&shape).1.is_some()).then_some(shape)
}
