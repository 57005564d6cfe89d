//! The key `wait`, and what else a step that waits may say. Owns their form; what they do is decided in `wait.rs`.

use std::time::Duration;

use super::finding::Finding;
use super::keys;
use super::read::does_not_belong;
use super::reader::{Field, Reader, clipped};
use super::value::parse_duration;
use super::yaml::Data;
use crate::class::is_label;
use crate::expression::Template;
use crate::wait::{self, Awaited, Wait};

const WAIT: &str =
    "a mapping such as {signal: approved, timeout: 24h}, {until: 2026-12-24T18:00:00Z} or {for: 5m}";
const SIGNAL: &str = "the name of a signal, such as approved";
const MOMENT: &str = "a moment such as 2026-12-24T18:00:00Z";
const SPAN: &str = "a duration such as 500ms, 30s, 5m or 2h";

/// Takes a key that says what a step waits for (`wait`, `workflow`) out of its fields, and with it those that mean nothing beside it, for
/// which there is an advice: these are told of.
pub(super) fn sorted<'t>(
    reader: &mut Reader<'_>,
    fields: Vec<Field<'t>>,
    (key, advice): (&str, fn(&str) -> Option<&'static str>),
) -> (Vec<Field<'t>>, Option<Field<'t>>) {
    let Some(found) = fields.iter().find(|field| field.name == key).copied() else {
        return (fields, None);
    };
    let mut kept = Vec::with_capacity(fields.len());
    for field in fields {
        match advice(field.name) {
            None => kept.push(field),
            Some(advice) => does_not_belong(reader, field, advice),
        }
    }
    (kept, Some(found))
}

/// Why a key does not belong to a step that waits.
pub(super) fn advice(key: &str) -> Option<&'static str> {
    match key {
        "timeout" => Some("a wait has its own: `wait: {signal: approved, timeout: 24h}`"),
        "retry" => Some("a wait is not tried again; `wait: {timeout: …}` says how long it lasts at most"),
        "lock" | "limits" => Some("a wait holds nothing; put it on the step behind it"),
        "not_before" => Some("a wait has its own moment: `wait: {until: …}`, or `{for: …}` for a delay"),
        "runs_on" | "prefers" | "priority" | "on_lost" => {
            Some("a wait runs on no node; put it on the step behind it")
        }
        "args" | "shell" | "with" | "env" | "workdir" | "artifacts" | "inputs" | "isolate"
        | "on_conflict" | "cache" | "image" | "container" | "pool" => {
            Some("a wait runs nothing; put it on the step behind it")
        }
        "for_each" | "max_parallel" | "fail_fast" => {
            Some("a wait happens once; put it on the step behind it")
        }
        _ => None,
    }
}

impl Reader<'_> {
    pub(super) fn wait(&mut self, field: Field<'_>) -> Option<Wait> {
        if let Data::Scalar { text, .. } = &self.tree.node(field.value).data {
            let hint = match text.as_ref() {
                text if parse_duration(text).is_ok() => format!("write {{for: {}}}", clipped(text)),
                text if wait::moment(text).is_ok() => format!("write {{until: {}}}", clipped(text)),
                text if is_label(text) => format!("write {{signal: {}}}", clipped(text)),
                _ => "say what it waits for: `signal`, `until` or `for`".to_owned(),
            };
            let finding = self.wrong(field, WAIT).hint(hint);
            self.findings.push(finding);
            return None;
        }
        let fields = self.fields(field, &keys::WAIT, WAIT)?;
        let mut timeout = None;
        let mut named: Vec<Field<'_>> = Vec::with_capacity(1);
        for field in fields {
            match field.name {
                "timeout" => timeout = Some(field),
                _ => named.push(field),
            }
        }
        let limit = timeout.and_then(|field| self.timeout(field));
        let on = match named.as_slice() {
            [one] => self.awaited(*one)?,
            [] => {
                let span = self.tree.node(field.key).span;
                self.missing(
                    "`wait`".to_owned(),
                    "signal`, `until` or `for",
                    span,
                    "say what it waits for: `wait: {signal: approved}`",
                );
                return None;
            }
            [first, second, ..] => {
                let (first, second) = (*first, *second);
                let span = self.tree.node(second.key).span;
                let message = format!("`wait` has both `{}` and `{}`", first.name, second.name);
                self.findings.push(
                    Finding::new(message, span)
                        .note("the other one", self.tree.node(first.key).span)
                        .hint("a step waits for one thing; a step that needs two of them waits for both"),
                );
                return None;
            }
        };
        if let (Awaited::For(template), Some(field), Some(limit)) = (&on, timeout, limit)
            && constant(template).and_then(|text| parse_duration(&text).ok()).is_some_and(|span| span > limit)
        {
            let place = self.place(field);
            self.findings.push(
                Finding::new("it would always run out of time: `timeout` is shorter than `for`", place)
                    .hint("leave `timeout` out: a wait for a while ends by itself"),
            );
            return None;
        }
        Some(Wait { on, timeout: limit })
    }

    fn awaited(&mut self, field: Field<'_>) -> Option<Awaited> {
        match field.name {
            "signal" => self.signal_name(field).map(Awaited::Signal),
            "until" => self.moment(field).map(Awaited::Until),
            _ => self.span(field).map(Awaited::For),
        }
    }

    fn signal_name(&mut self, field: Field<'_>) -> Option<String> {
        let name = self.string(field, SIGNAL)?;
        if !self.literal(field, name, "a signal is named, not computed: whoever sends it has to know it") {
            return None;
        }
        if !is_label(name) {
            let finding = self.wrong(field, SIGNAL).hint("use letters, digits and `_ - . / :`");
            self.findings.push(finding);
            return None;
        }
        Some(name.to_owned())
    }

    fn moment(&mut self, field: Field<'_>) -> Option<Template> {
        self.string(field, MOMENT)?;
        let template = self.template(field)?;
        if let Some(text) = constant(&template)
            && let Err(why) = wait::moment(&text)
        {
            let finding = self.wrong(field, MOMENT).hint(format!("it is {why}"));
            self.findings.push(finding);
            return None;
        }
        Some(template)
    }

    fn span(&mut self, field: Field<'_>) -> Option<Template> {
        self.word(field, SPAN)?;
        let template = self.template(field)?;
        let parsed: Option<Result<Duration, Option<String>>> =
            constant(&template).map(|text| parse_duration(&text));
        if let Some(Err(hint)) = parsed {
            let finding = self.wrong(field, SPAN).maybe_hint(hint);
            self.findings.push(finding);
            return None;
        }
        Some(template)
    }
}

/// The text of a template in which nothing is computed.
fn constant(template: &Template) -> Option<String> {
    template.expressions().next().is_none().then(|| template.source())
}
