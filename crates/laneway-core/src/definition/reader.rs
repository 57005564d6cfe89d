//! Typed access to the tree: each method gives a value, or says what is wrong at its place and gives
//! `None`. Owns the wording of "must be … , not …", of unknown keys and of unsupported ones.

use serde_json::{Number, Value};

use super::containers::Named;
use super::finding::{Finding, Findings, Span, shown};
use super::foreign;
use super::scalar::{Scalar, scalar, truth};
use super::yaml::{Data, NodeId, Tree};
use crate::expression::{self, Expression, Template};
use crate::nearest::nearest;
use crate::shell::Shell;

/// The keys of one kind of mapping.
#[derive(Debug)]
pub(super) struct Keys {
    /// As in "a step has no key …".
    pub(super) owner: &'static str,
    pub(super) known: &'static [&'static str],
    /// Part of the design and not built yet: refused, so that no document silently does nothing.
    pub(super) later: &'static [&'static str],
}

/// A key with its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'t> {
    pub(super) name: &'t str,
    pub(super) key: NodeId,
    pub(super) value: NodeId,
}

/// An expression whose names can be checked only when the whole graph is known.
#[derive(Debug)]
pub(super) struct Site {
    /// Index of the step it stands in; `None` for the workflow's own `env`.
    pub(super) step: Option<usize>,
    pub(super) node: NodeId,
    /// Where its source stands in the scalar's text.
    pub(super) offset: usize,
    pub(super) source: String,
    /// The key that is evaluated when a run is submitted, before any step has run: it reads `params` only.
    pub(super) at_submit: Option<&'static str>,
    /// What a trigger's parameters read, and nothing else: what happened, and what is known of that.
    pub(super) only: Option<(&'static str, &'static [&'static str])>,
    /// It becomes a variable of a process, where secrets may be read.
    pub(super) is_env: bool,
    /// It belongs to a hook, which runs when the run has ended.
    pub(super) is_hook: bool,
    /// It is evaluated when a callback is sent: secrets may be read there, too.
    pub(super) is_callback: bool,
    /// It gives the items of its step, and cannot read one.
    pub(super) is_list: bool,
}

#[derive(Debug)]
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) tree: &'t Tree<'t>,
    pub(super) findings: Findings,
    pub(super) sites: Vec<Site>,
    /// What containers name, to be checked when all is known.
    pub(super) named: Vec<Named>,
    /// The step being read.
    pub(super) step: Option<usize>,
    /// What is read are variables of processes.
    pub(super) is_env: bool,
    /// What is read are hooks.
    pub(super) is_hook: bool,
    /// What is read is sent by a callback.
    pub(super) is_callback: bool,
    /// The shell of scripts that name none.
    pub(super) shell: Shell,
}

impl<'t> Reader<'t> {
    pub(super) fn wrong(&mut self, field: Field<'_>, must_be: &str) -> Finding {
        let found = self.described(field.value);
        Finding::new(format!("`{}` must be {must_be}, not {found}", clipped(field.name)), self.place(field))
    }

    /// The value's place, or its key's where the value is empty.
    pub(super) fn place(&self, field: Field<'_>) -> Span {
        let span = self.tree.node(field.value).span;
        if span.is_empty() { self.tree.node(field.key).span } else { span }
    }

    /// All pairs of a mapping whose keys are names given by the author.
    pub(super) fn entries(&mut self, field: Field<'_>, must_be: &str) -> Option<Vec<Field<'t>>> {
        match &self.tree.node(field.value).data {
            Data::Map(flat) => Some(self.pairs(flat)),
            Data::Scalar { .. } | Data::List(_) => {
                let finding = self.wrong(field, must_be);
                self.findings.push(finding);
                None
            }
        }
    }

    /// The known keys of a mapping; unknown and unsupported ones are reported.
    pub(super) fn fields(&mut self, field: Field<'_>, keys: &Keys, must_be: &str) -> Option<Vec<Field<'t>>> {
        let fields = self.entries(field, must_be)?;
        Some(self.known(fields, keys))
    }

    pub(super) fn known(&mut self, mut fields: Vec<Field<'t>>, keys: &Keys) -> Vec<Field<'t>> {
        fields.retain(|field| self.is_known(*field, keys));
        fields
    }

    pub(super) fn pairs(&self, flat: &[NodeId]) -> Vec<Field<'t>> {
        Tree::pairs(flat).map(|(key, value)| Field { name: self.tree.key(key), key, value }).collect()
    }

    fn is_known(&mut self, field: Field<'_>, keys: &Keys) -> bool {
        let name = field.name;
        if keys.known.contains(&name) {
            return true;
        }
        let span = self.tree.node(field.key).span;
        let finding = if keys.later.contains(&name) {
            Finding::new(format!("`{name}` is not supported yet"), span).hint(foreign::later(name))
        } else {
            let hint = match (foreign::key(keys.owner, name), nearest(name, keys.known.iter().copied())) {
                (Some(ours), _) => ours.to_owned(),
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => format!("the keys are: {}", keys.known.join(", ")),
            };
            Finding::new(format!("{} has no key {}", keys.owner, shown(name)), span).hint(hint)
        };
        self.findings.push(finding);
        false
    }

    pub(super) fn missing(&mut self, owner: String, key: &str, span: Span, hint: &str) {
        self.findings.push(Finding::new(format!("{owner} has no `{key}`"), span).hint(hint));
    }

    /// A string that is no number, boolean or null.
    pub(super) fn string(&mut self, field: Field<'_>, must_be: &str) -> Option<&'t str> {
        match self.tree.node(field.value) {
            node if matches!(scalar(&node.data), Some(Scalar::Text)) => self.clean(field),
            node => {
                let mut finding = self.wrong(field, must_be);
                if let Data::Scalar { text, .. } = &node.data
                    && !text.is_empty()
                {
                    finding = finding.hint(format!("put it in quotes: \"{}\"", clipped(text)));
                }
                self.findings.push(finding);
                None
            }
        }
    }

    /// A scalar as it is written: numbers and booleans are taken as their text.
    pub(super) fn word(&mut self, field: Field<'_>, must_be: &str) -> Option<&'t str> {
        match scalar(&self.tree.node(field.value).data) {
            Some(Scalar::Text | Scalar::Bool(_) | Scalar::Number(_) | Scalar::NotFinite) => self.clean(field),
            Some(Scalar::Null) => {
                let finding = self.wrong(field, must_be).hint("for an empty value write \"\"");
                self.findings.push(finding);
                None
            }
            None => {
                let finding = self.wrong(field, must_be);
                self.findings.push(finding);
                None
            }
        }
    }

    /// The text of a scalar, without NUL, which no program can be given.
    fn clean(&mut self, field: Field<'_>) -> Option<&'t str> {
        let text = match &self.tree.node(field.value).data {
            Data::Scalar { text, .. } => text.as_ref(),
            Data::List(_) | Data::Map(_) => return None,
        };
        if text.contains('\0') {
            let span = self.place(field);
            self.findings
                .push(Finding::new(format!("`{}` contains a NUL character", clipped(field.name)), span));
            return None;
        }
        Some(text)
    }

    pub(super) fn boolean(&mut self, field: Field<'_>) -> Option<bool> {
        let data = &self.tree.node(field.value).data;
        match scalar(data) {
            Some(Scalar::Bool(value)) => Some(value),
            found => {
                let hint = match (found, data) {
                    (Some(Scalar::Text), Data::Scalar { text, .. }) => truth(text),
                    _ => None,
                };
                let finding = self.wrong(field, "true or false").maybe_hint(hint);
                self.findings.push(finding);
                None
            }
        }
    }

    pub(super) fn number(&mut self, field: Field<'_>, must_be: &str) -> Option<Number> {
        match scalar(&self.tree.node(field.value).data) {
            Some(Scalar::Number(number)) => Some(number),
            Some(Scalar::Null | Scalar::Bool(_) | Scalar::NotFinite | Scalar::Text) | None => {
                let finding = self.wrong(field, must_be);
                self.findings.push(finding);
                None
            }
        }
    }

    /// The number, if it is one; says nothing if not.
    pub(super) fn plain_number(&self, field: Field<'_>) -> Option<Number> {
        match scalar(&self.tree.node(field.value).data) {
            Some(Scalar::Number(number)) => Some(number),
            Some(Scalar::Null | Scalar::Bool(_) | Scalar::NotFinite | Scalar::Text) | None => None,
        }
    }

    /// The items, each as a field of the list's own key.
    pub(super) fn list(&mut self, field: Field<'_>, must_be: &str) -> Option<Vec<Field<'t>>> {
        match &self.tree.node(field.value).data {
            Data::List(items) => Some(
                items
                    .iter()
                    .map(|item| Field { name: self.tree.key(field.key), key: field.key, value: *item })
                    .collect(),
            ),
            Data::Scalar { .. } | Data::Map(_) => {
                let finding = self.wrong(field, must_be);
                self.findings.push(finding);
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&mut self, field: Field<'_>, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let must_be = format!("one of {}", words.join(", "));
        let text = match &self.tree.node(field.value).data {
            Data::Scalar { text, .. } => text.as_ref(),
            Data::List(_) | Data::Map(_) => "",
        };
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let near = || nearest(text, words).map(|near| format!("did you mean `{near}`?"));
        let hint = foreign::choice(field.name, text).map(str::to_owned).or_else(near);
        let finding = self.wrong(field, &must_be).maybe_hint(hint);
        self.findings.push(finding);
        None
    }

    /// Text in which `${{ … }}` may stand.
    pub(super) fn template(&mut self, field: Field<'_>) -> Option<Template> {
        let text = self.word(field, "a string")?;
        match Template::parse(text) {
            Ok(template) => {
                let mut from = 0;
                for expression in template.expressions() {
                    let offset = from + text[from..].find(&expression.source).unwrap_or(0);
                    from = offset + expression.source.len();
                    self.note_site(field, expression, offset);
                }
                Some(template)
            }
            Err(error) => {
                self.bad_expression(field, 0, error);
                None
            }
        }
    }

    /// A condition: a bare expression, or one within `${{ … }}`.
    pub(super) fn condition(&mut self, field: Field<'_>) -> Option<Expression> {
        let text = self.word(field, "an expression such as `params.depth > 1`")?;
        let trimmed = text.trim();
        let inside =
            trimmed.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or(trimmed).trim();
        let offset = text.find(inside).unwrap_or(0);
        if inside.contains("${{") {
            let span = self.place(field);
            self.findings.push(
                Finding::new("a condition is one expression", span)
                    .hint("write it without `${{ }}` in the middle: `a == 1 and b == 2`"),
            );
            return None;
        }
        match Expression::parse(inside) {
            Ok(expression) => {
                self.note_site(field, &expression, offset);
                Some(expression)
            }
            Err(error) => {
                self.bad_expression(field, offset, error);
                None
            }
        }
    }

    /// Text that is taken as it is. `${{` in it would silently stay what it is, so it is refused.
    pub(super) fn literal(&mut self, field: Field<'_>, text: &str, advice: &str) -> bool {
        let Some(open) = text.find("${{") else {
            return true;
        };
        let end = text[open..].find("}}").map_or(text.len(), |close| open + close + 2);
        let span = self.locate(field, open..end);
        self.findings.push(
            Finding::new(format!("an expression cannot stand in `{}`", clipped(field.name)), span)
                .hint(advice),
        );
        false
    }

    fn note_site(&mut self, field: Field<'_>, expression: &Expression, offset: usize) {
        if !expression.reads.is_empty() {
            self.sites.push(Site {
                step: self.step,
                node: field.value,
                offset,
                source: expression.source.clone(),
                at_submit: None,
                only: None,
                is_env: self.is_env,
                is_hook: self.is_hook,
                is_callback: self.is_callback,
                is_list: false,
            });
        }
    }

    fn bad_expression(&mut self, field: Field<'_>, offset: usize, error: expression::Error) {
        let span = match error.at {
            Some(at) => self.locate(field, offset + at.start..offset + at.end),
            None => self.place(field),
        };
        let finding = Finding::new(error.message, span);
        self.findings.push(match error.hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        });
    }

    /// Where a part of a scalar's text stands in the document. Escapes and folding move things, so
    /// where the part is not found as it is, the whole value is the place.
    pub(super) fn locate(&self, field: Field<'_>, part: std::ops::Range<usize>) -> Span {
        locate(self.text, self.tree, field.value, part).unwrap_or_else(|| self.place(field))
    }

    fn described(&self, id: NodeId) -> String {
        let data = &self.tree.node(id).data;
        match (scalar(data), data) {
            (Some(Scalar::Null), _) => "empty".to_owned(),
            (Some(Scalar::Bool(value)), _) => format!("the boolean {value}"),
            (Some(Scalar::Number(_) | Scalar::NotFinite), Data::Scalar { text, .. }) => {
                format!("the number {}", clipped(text))
            }
            (_, Data::Scalar { text, .. }) if text.is_empty() => "an empty string".to_owned(),
            (_, Data::Scalar { text, .. }) => format!("the string {}", shown(text)),
            (_, Data::List(items)) if items.is_empty() => "an empty list".to_owned(),
            (_, Data::List(_)) => "a list".to_owned(),
            (_, Data::Map(flat)) if flat.is_empty() => "an empty mapping".to_owned(),
            (_, Data::Map(_)) => "a mapping".to_owned(),
        }
    }

    /// Any value as JSON. The tree's bound on depth bounds the recursion.
    pub(super) fn json(&mut self, id: NodeId) -> Value {
        match &self.tree.node(id).data {
            data @ Data::Scalar { text, .. } => match scalar(data) {
                Some(Scalar::Null) => Value::Null,
                Some(Scalar::Bool(value)) => Value::Bool(value),
                Some(Scalar::Number(number)) => Value::Number(number),
                Some(Scalar::NotFinite | Scalar::Text) | None => Value::String(text.to_string()),
            },
            Data::List(items) => items.iter().map(|item| self.json(*item)).collect(),
            Data::Map(flat) => Tree::pairs(flat)
                .map(|(key, value)| (self.tree.key(key).to_owned(), self.json(value)))
                .collect(),
        }
    }
}

pub(super) fn locate(text: &str, tree: &Tree<'_>, id: NodeId, part: std::ops::Range<usize>) -> Option<Span> {
    let node = tree.node(id);
    let Data::Scalar { text: value, .. } = &node.data else {
        return None;
    };
    let raw = &text[node.span.range()];
    let wanted = value.get(part.clone())?;
    let start = node.span.start as usize;
    // Most scalars stand as they are, or so between quotes.
    let quoted = raw.find(value.as_ref()).map(|shift| shift + part.start);
    let found = quoted.or_else(|| raw.find(wanted))?;
    Some(Span::new(start + found, start + found + wanted.len()))
}

pub(super) fn clipped(text: &str) -> String {
    let quoted = shown(text);
    quoted[1..quoted.len() - 1].to_owned()
}
