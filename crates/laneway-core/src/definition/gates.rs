//! Keys of the document that hold a task back: locks, orders, limits, `not_before`, `max_runs`, labels and priority. Owns their form;
//! what they do is decided in `gate/`, `max_runs.rs` and `class.rs`.

use std::collections::HashSet;

use super::finding::{Finding, shown};
use super::keys;
use super::model::Order;
use super::reader::{Field, Reader, clipped};
use super::yaml::Data;
use crate::class::is_label;
use crate::expression::{Part, Template};
use crate::key;
use crate::limit::{Limit, NotALimit};
use crate::max_runs::{MaxRuns, Strategy};
use crate::not_before::NotBefore;
use crate::rank::{HIGHEST_PRIORITY, LEAST_PRIORITY};
use crate::version::OrderVersion;

const KEY: &str = "a key such as db/orders";
const LABELS: &str = "a mapping of labels to values, such as {zone: eu}";
const MAX_RUNS: &str = "a whole number of at least 1, or a mapping such as {limit: 1, strategy: queue}";
const NOT_BEFORE: &str = "a moment such as 2026-12-24T18:00:00Z, or a delay such as 5m";
const VERSION: &str = "a version in quotes, such as \"2.10\"";

impl Reader<'_> {
    /// A key: text in which `${{ params.… }}` may stand. What is fixed is checked here, the rest when a run is submitted.
    pub(super) fn key(&mut self, field: Field<'_>, name: &'static str) -> Option<Template> {
        let text = self.string(field, KEY)?;
        let template = self.at_submit(field, name)?;
        if is_constant(&template)
            && let Some(why) = key::fault(text)
        {
            let finding = self.wrong(field, KEY).hint(why);
            self.findings.push(finding);
            return None;
        }
        Some(template)
    }

    pub(super) fn order(&mut self, field: Field<'_>) -> Option<Order> {
        let must_be = "a mapping such as {key: db/orders, version: \"2.10\"}";
        let fields = self.fields(field, &keys::ORDER, must_be)?;
        let (mut key, mut version) = (None, None);
        let mut named: Vec<&str> = Vec::with_capacity(2);
        for field in fields {
            named.push(field.name);
            match field.name {
                "key" => key = self.key(field, "order.key"),
                "version" => version = self.version(field),
                _ => {}
            }
        }
        let span = self.tree.node(field.key).span;
        for (missing, hint) in [
            ("key", "say what is ordered: `order: {key: db/orders, version: \"2.10\"}`"),
            ("version", "say when it is its turn: `order: {key: db/orders, version: \"2.10\"}`"),
        ] {
            if !named.contains(&missing) {
                self.missing("`order`".to_owned(), missing, span, hint);
            }
        }
        Some(Order { key: key?, version: version? })
    }

    fn version(&mut self, field: Field<'_>) -> Option<Template> {
        if let Some(number) = self.plain_number(field) {
            let written = self.word(field, VERSION).unwrap_or_default();
            let mut hint = format!("put it in quotes: \"{}\"", clipped(written));
            if number.to_string() != written {
                hint.push_str(&format!("; without them YAML reads it as the number {number}"));
            }
            let finding = self.wrong(field, VERSION).hint(hint);
            self.findings.push(finding);
            return None;
        }
        let text = self.string(field, VERSION)?;
        let template = self.at_submit(field, "order.version")?;
        if is_constant(&template)
            && let Err(why) = OrderVersion::parse(text)
        {
            let hint = format!("{why}; a version is numbers between dots");
            let finding = self.wrong(field, VERSION).hint(hint);
            self.findings.push(finding);
            return None;
        }
        Some(template)
    }

    /// A moment or a delay. One that is fixed is checked here, the rest when a run is submitted.
    pub(super) fn not_before(&mut self, field: Field<'_>) -> Option<Template> {
        let text = self.word(field, NOT_BEFORE)?;
        let template = self.at_submit(field, "not_before")?;
        if is_constant(&template)
            && let Err(why) = NotBefore::parse(text)
        {
            let finding = self.wrong(field, NOT_BEFORE).hint(format!("it is {why}"));
            self.findings.push(finding);
            return None;
        }
        Some(template)
    }

    /// A template that is evaluated before anything has run.
    fn at_submit(&mut self, field: Field<'_>, name: &'static str) -> Option<Template> {
        let before = self.sites.len();
        let template = self.template(field);
        for site in &mut self.sites[before..] {
            site.at_submit = Some(name);
        }
        template
    }

    /// The limits that a workflow declares.
    pub(super) fn limits(&mut self, field: Field<'_>) -> Vec<(String, Limit)> {
        let must_be = "a mapping of names to limits, such as {warehouse: 3, api: 100/1m}";
        let mut limits = Vec::new();
        for entry in self.entries(field, must_be).unwrap_or_default() {
            self.check_name("limit", entry.name, entry.key);
            if let Some(limit) = self.limit(entry) {
                limits.push((entry.name.to_owned(), limit));
            }
        }
        limits
    }

    fn limit(&mut self, field: Field<'_>) -> Option<Limit> {
        let must_be = "a number of tasks at once, such as 3, or a rate, such as 100/1m";
        let text = self.word(field, must_be)?;
        match Limit::parse(text) {
            Ok(limit) => Some(limit),
            Err(why) => {
                let hint = match why {
                    NotALimit::Form => None,
                    NotALimit::Zero | NotALimit::TooLarge | NotALimit::Window { .. } => Some(why.to_string()),
                };
                let finding = self.wrong(field, must_be).maybe_hint(hint);
                self.findings.push(finding);
                None
            }
        }
    }

    /// The limits that a step takes part in. One that the document does not declare may exist in the store.
    pub(super) fn limits_of_step(&mut self, field: Field<'_>) -> Vec<String> {
        let must_be = "a list of names of limits, such as [warehouse]";
        let items = match &self.tree.node(field.value).data {
            Data::Scalar { text, .. } if !text.is_empty() => {
                let hint = format!("write [{}]", clipped(text));
                let finding = self.wrong(field, must_be).hint(hint);
                self.findings.push(finding);
                return Vec::new();
            }
            Data::Scalar { .. } | Data::List(_) | Data::Map(_) => {
                self.list(field, must_be).unwrap_or_default()
            }
        };
        let mut names: Vec<String> = Vec::with_capacity(items.len());
        // A list may be as long as the document, so it is not searched for each of its names.
        let mut seen = HashSet::with_capacity(items.len());
        for item in items {
            let Some(name) = self.string(item, must_be) else { continue };
            if !self.literal(item, name, "a limit is named, not computed") {
                continue;
            }
            if !seen.insert(name) {
                let span = self.place(item);
                let message = format!("the limit {} is named twice", shown(name));
                self.findings
                    .push(Finding::new(message, span).hint("a step takes one place of each; remove one"));
                continue;
            }
            self.check_name("limit", name, item.value);
            names.push(name.to_owned());
        }
        names
    }

    /// A number alone is a limit with the strategy `queue`.
    pub(super) fn max_runs(&mut self, field: Field<'_>) -> Option<MaxRuns> {
        if let Data::Scalar { .. } = &self.tree.node(field.value).data {
            let limit = self.limit_of_runs(field, MAX_RUNS)?;
            return Some(MaxRuns { limit, strategy: Strategy::Queue });
        }
        let fields = self.fields(field, &keys::MAX_RUNS, MAX_RUNS)?;
        let mut limit = None;
        let mut has_limit = false;
        let mut strategy = Strategy::Queue;
        for field in fields {
            match field.name {
                "limit" => {
                    has_limit = true;
                    limit = self.limit_of_runs(field, "a whole number of at least 1");
                }
                "strategy" => {
                    let choices: Vec<(&str, Strategy)> =
                        Strategy::ALL.iter().map(|strategy| (strategy.as_str(), *strategy)).collect();
                    strategy = self.choice(field, &choices).unwrap_or(strategy);
                }
                _ => {}
            }
        }
        if !has_limit {
            let span = self.tree.node(field.key).span;
            let hint = "say how many runs there may be at once: `max_runs: {limit: 1}`";
            self.missing("`max_runs`".to_owned(), "limit", span, hint);
        }
        Some(MaxRuns { limit: limit?, strategy })
    }

    fn limit_of_runs(&mut self, field: Field<'_>, must_be: &str) -> Option<std::num::NonZeroU32> {
        let number = self.number(field, must_be)?.as_u64();
        let limit = number.and_then(|number| u32::try_from(number).ok()).and_then(std::num::NonZeroU32::new);
        if limit.is_none() {
            let hint = (number == Some(0)).then(|| "leave `max_runs` out to have no limit".to_owned());
            let finding = self.wrong(field, must_be).maybe_hint(hint);
            self.findings.push(finding);
        }
        limit
    }

    /// Labels by name. Values are taken as they are written, so that `gpu: true` and `cores: 8` need no quotes.
    pub(super) fn labels(&mut self, field: Field<'_>) -> Vec<(String, String)> {
        let mut labels = Vec::new();
        for entry in self.entries(field, LABELS).unwrap_or_default() {
            let span = self.tree.node(entry.key).span;
            if !is_label(entry.name) {
                let message = format!("{} cannot be a label", shown(entry.name));
                self.findings.push(Finding::new(message, span).hint(LABEL_ADVICE));
                continue;
            }
            let Some(value) = self.word(entry, "a label's value") else { continue };
            if !self.literal(entry, value, "a label is fixed; use `if` to choose between steps") {
                continue;
            }
            if is_label(value) {
                labels.push((entry.name.to_owned(), value.to_owned()));
            } else {
                let finding = self.wrong(entry, "a label's value").hint(LABEL_ADVICE);
                self.findings.push(finding);
            }
        }
        labels
    }

    pub(super) fn priority(&mut self, field: Field<'_>) -> Option<i8> {
        let must_be = format!("a whole number from {LEAST_PRIORITY} to {HIGHEST_PRIORITY}");
        let number = self.number(field, &must_be)?;
        let priority = number.as_i64().and_then(|number| i8::try_from(number).ok());
        let priority = priority.filter(|number| (LEAST_PRIORITY..=HIGHEST_PRIORITY).contains(number));
        if priority.is_none() {
            let finding = self.wrong(field, &must_be);
            self.findings.push(finding);
        }
        priority
    }
}

const LABEL_ADVICE: &str = "use 1 to 100 letters, digits, `_`, `-`, `.`, `/` and `:`";

fn is_constant(template: &Template) -> bool {
    template.parts.iter().all(|part| match part {
        Part::Text(_) => true,
        Part::Expression(_) => false,
    })
}
