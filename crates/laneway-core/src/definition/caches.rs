//! The key `cache`, and for which steps it would be wrong. Owns its form; what a key is made of is decided in `cache.rs`.

use super::finding::{Finding, Findings};
use super::keys;
use super::model::{Action, OnLost, Step, Workflow};
use super::read::Spans;
use super::reader::{Field, Reader};
use super::yaml::Data;
use crate::cache::Cache;

const CACHE: &str = "true, or a mapping such as {key: \"${{ params.tag }}\", ttl: 24h, files: [src/**]}";

impl Reader<'_> {
    /// `false` is none.
    pub(super) fn cache(&mut self, field: Field<'_>) -> Option<Cache> {
        if !matches!(self.tree.node(field.value).data, Data::Map(_)) {
            return match super::scalar::scalar(&self.tree.node(field.value).data) {
                Some(super::scalar::Scalar::Bool(is_on)) => is_on.then(Cache::default),
                Some(_) | None => {
                    let finding = self.wrong(field, CACHE);
                    self.findings.push(finding);
                    None
                }
            };
        }
        let mut cache = Cache::default();
        for field in self.fields(field, &keys::CACHE, CACHE)? {
            match field.name {
                "key" => cache.key = self.template(field),
                "ttl" => cache.ttl = self.ttl(field),
                "files" => cache.files = self.patterns(field),
                _ => {}
            }
        }
        Some(cache)
    }

    fn ttl(&mut self, field: Field<'_>) -> Option<std::time::Duration> {
        let ttl = self.duration(field)?;
        if ttl.is_zero() {
            let finding = self
                .wrong(field, "a duration above zero, such as 24h")
                .hint("leave `ttl` out for a result that stays good, or `cache` for a step that always runs");
            self.findings.push(finding);
            return None;
        }
        Some(ttl)
    }
}

/// Steps whose result is more than what would be recorded of it, or of which nobody here knows what it depends on.
pub(super) fn check(workflow: &Workflow, spans: &Spans, findings: &mut Findings) {
    let cached = workflow.steps.iter().zip(&spans.step).filter(|(step, _)| step.cache.is_some());
    for (step, spans) in cached {
        let Some((why, hint)) = fault(workflow, step) else { continue };
        let message = format!("step `{}` cannot be cached: {why}", step.name);
        findings.push(Finding::new(message, spans.cache().unwrap_or(spans.name)).hint(hint));
    }
}

fn fault(workflow: &Workflow, step: &Step) -> Option<(&'static str, &'static str)> {
    let is_isolated =
        || workflow.groups.iter().any(|group| group.isolate && group.steps.contains(&step.name));
    match &step.action {
        Action::Queue { .. } => Some((
            "a remote worker does it, and nobody here knows what its result depends on",
            "let the worker remember what it has done",
        )),
        Action::Call { .. } => Some((
            "what a container answers depends on what it was asked before",
            "leave `cache` out; a script or program may have it",
        )),
        // The reader has told of the key already.
        Action::Wait(_) | Action::Merge { .. } | Action::Post { .. } => None,
        Action::Run { .. } | Action::Command { .. } | Action::Function { .. }
            if step.on_lost == OnLost::Fail =>
        {
            Some((
                "`on_lost: fail` says that it has an effect, which a recorded result does not have",
                "leave one of the two out",
            ))
        }
        Action::Run { .. } | Action::Command { .. } | Action::Function { .. } if is_isolated() => Some((
            "its group merges the files that it changes, and these are not recorded",
            "take it out of the group, or `isolate` off it",
        )),
        Action::Function { .. } if step.cache().is_some_and(|cache| !cache.files.is_empty()) => {
            Some(("it calls a function, which has no directory", "leave `files` out; `key` may say more"))
        }
        Action::Run { .. } | Action::Command { .. } | Action::Function { .. } => None,
    }
}
