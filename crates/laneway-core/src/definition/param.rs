//! The `params` key. A parameter that is neither required nor has a default is null when it is not
//! given; `${{ params.x is none }}` asks for that.

use serde_json::Value;

use super::finding::Finding;
use super::keys;
use super::model::{Param, ParamType};
use super::reader::{Field, Reader};
use super::scalar::truth;

impl<'t> Reader<'t> {
    /// The parameters, and whether something about them could not be read.
    pub(super) fn params(&mut self, field: Field<'_>) -> (Vec<Param>, bool) {
        let Some(entries) = self.entries(field, "a mapping of names to parameters") else {
            return (Vec::new(), true);
        };
        let params = entries.into_iter().map(|entry| self.param(entry)).collect();
        (params, false)
    }

    fn param(&mut self, entry: Field<'t>) -> Param {
        self.check_name("parameter", entry.name, entry.key);
        let mut param = Param {
            name: entry.name.to_owned(),
            kind: ParamType::String,
            required: false,
            default: None,
            allowed: Vec::new(),
            description: None,
        };
        let must_be = "a mapping such as {type: string, required: true}";
        let Some(fields) = self.fields(entry, &keys::PARAM, must_be) else {
            return param;
        };
        let find = |name: &str| fields.iter().find(|field| field.name == name).copied();
        let kind = match find("type") {
            Some(field) => {
                let choices = ParamType::ALL.map(|value| (value.as_str(), value));
                self.choice(field, &choices)
            }
            None => {
                let span = self.tree.node(entry.key).span;
                let words = ParamType::ALL.map(ParamType::as_str).join(", ");
                let owner = format!("parameter `{}`", super::reader::clipped(entry.name));
                self.missing(owner, "type", span, &format!("say which: {words}"));
                None
            }
        };
        param.kind = kind.unwrap_or(ParamType::String);
        let required = find("required").and_then(|field| self.boolean(field));
        param.required = required.unwrap_or(false);
        if let Some(field) = find("description") {
            param.description = self.string(field, "a string").map(str::to_owned);
        }
        if let Some(field) = find("enum") {
            param.allowed = self.allowed(field, kind);
        }
        if let Some(field) = find("default") {
            param.default = self.default(field, kind, &param.allowed);
            if param.required {
                let span = self.tree.node(field.key).span;
                self.findings.push(
                    Finding::new("a required parameter cannot have a default", span)
                        .hint("remove `required: true`, or the default"),
                );
            }
        }
        param
    }

    fn allowed(&mut self, field: Field<'t>, kind: Option<ParamType>) -> Vec<Value> {
        let items = match self.list(field, "a list of the allowed values") {
            Some(items) if items.is_empty() => {
                let finding = self.wrong(field, "a list of at least one value");
                self.findings.push(finding);
                return Vec::new();
            }
            Some(items) => items,
            None => return Vec::new(),
        };
        items.into_iter().filter_map(|item| self.typed(item, kind)).collect()
    }

    fn default(&mut self, field: Field<'t>, kind: Option<ParamType>, allowed: &[Value]) -> Option<Value> {
        let value = self.typed(field, kind)?;
        if !allowed.is_empty() && !allowed.contains(&value) {
            let span = self.place(field);
            let words: Vec<String> = allowed.iter().map(Value::to_string).collect();
            self.findings.push(
                Finding::new(format!("the default {value} is not one of the `enum`"), span)
                    .hint(format!("use one of {}", words.join(", "))),
            );
            return None;
        }
        Some(value)
    }

    /// The value, if it is of the type; of any type where that is not known.
    pub(super) fn typed(&mut self, field: Field<'_>, kind: Option<ParamType>) -> Option<Value> {
        let value = self.json(field.value);
        let Some(kind) = kind else {
            return Some(value);
        };
        if kind.accepts(&value) {
            return Some(value);
        }
        let finding = self.wrong(field, kind.described());
        let finding = match (&value, kind) {
            (Value::Null, _) => finding.hint("leave it out: what is not given is null"),
            (Value::Bool(_) | Value::Number(_), ParamType::String) => {
                finding.hint(format!("put it in quotes: \"{value}\""))
            }
            (Value::String(text), ParamType::Boolean) => finding.maybe_hint(truth(text)),
            _ => finding,
        };
        self.findings.push(finding);
        None
    }
}

impl ParamType {
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// As in "must be …".
    pub fn described(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}
