//! The reference of the document, from its JSON Schema: every key, what it takes and what it means. Pure.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

const HEAD: &str = "# The document\n\nGenerated from `laneway schema` by `cargo xtask generate`; do not edit.\n\n\
    A workflow is one YAML or JSON document. A key that is not listed is refused, with the nearest one that is; keys that begin \
    with `x-` are yours. Durations are `500ms`, `30s`, `5m`, `2h` or `1h30m`. [How a document is read](../design/document.md) \
    says why it is as it is.\n";

/// The page.
pub(crate) fn document(schema: &Value) -> Result<String> {
    let mut text = String::from(HEAD);
    let parts = schema["$defs"].as_object().context("the schema has no $defs")?;
    let mut sections = vec![("A workflow".to_owned(), schema)];
    sections.extend(parts.iter().map(|(name, part)| (format!("`{name}`"), part)));
    for (title, part) in sections {
        section(&mut text, &title, part, parts)?;
    }
    Ok(text)
}

/// Nothing for a part that has no keys.
fn section(text: &mut String, title: &str, part: &Value, parts: &Map<String, Value>) -> Result<()> {
    let Some(owner) = owner(part) else { return Ok(()) };
    let keys = owner["properties"].as_object().with_context(|| format!("{title} has no keys"))?;
    text.push_str(&format!("\n## {title}\n\n"));
    if let Some(about) = part["description"].as_str() {
        text.push_str(&format!("{about}\n\n"));
    }
    if !std::ptr::eq(owner, part) {
        text.push_str(&format!("Written as {}.\n\n", kind(part)));
    }
    text.push_str("| key | value | meaning |\n|---|---|---|\n");
    let required: Vec<&str> =
        owner["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut nested = Vec::new();
    for (key, value) in keys {
        let elsewhere = reference(value).and_then(|name| parts.get(name)?["description"].as_str());
        let about = value["description"].as_str().or(elsewhere).unwrap_or_default();
        if about.is_empty() {
            bail!("the schema does not say what `{key}` of {title} means");
        }
        let about =
            if required.contains(&key.as_str()) { format!("{about} Required.") } else { about.to_owned() };
        text.push_str(&format!("| `{key}` | {} | {} |\n", kind(value), cell(about.trim())));
        if reference(value).is_none() && owner_within(value).is_some() {
            nested.push((format!("`{key}`"), value));
        }
    }
    for (title, value) in nested {
        section(text, &title, owner_within(value).unwrap_or(value), parts)?;
    }
    Ok(())
}

/// The part of a value that has keys: itself, or the one of several forms that does.
fn owner(value: &Value) -> Option<&Value> {
    if value["properties"].is_object() {
        return Some(value);
    }
    let forms = ["oneOf", "anyOf"].into_iter().filter_map(|either| value[either].as_array()).flatten();
    forms.into_iter().find_map(owner)
}

/// The same of its values, where it is a map of names or a list.
fn owner_within(value: &Value) -> Option<&Value> {
    [value, &value["additionalProperties"], &value["items"]].into_iter().find_map(owner)
}

/// What a value may be, in words.
fn kind(value: &Value) -> String {
    if let Some(name) = reference(value) {
        return if name == "scalar" {
            "text, number or boolean".to_owned()
        } else {
            format!("[{name}](#{name})")
        };
    }
    if let Some(words) = value["enum"].as_array() {
        return join(
            words.iter().map(|word| format!("`{}`", word.as_str().map_or(word.to_string(), str::to_owned))),
        );
    }
    if let Some(word) = value.get("const") {
        return format!("`{word}`");
    }
    for either in ["oneOf", "anyOf"] {
        if let Some(kinds) = value[either].as_array().filter(|_| !value["properties"].is_object()) {
            return join(kinds.iter().map(kind));
        }
    }
    match &value["type"] {
        Value::String(one) => of_type(one, value),
        Value::Array(several) => {
            join(several.iter().filter_map(Value::as_str).map(|one| of_type(one, value)))
        }
        _ => "anything".to_owned(),
    }
}

fn of_type(word: &str, value: &Value) -> String {
    match word {
        "array" => format!("list of {}", value.get("items").map_or("anything".to_owned(), kind)),
        "object" => match (&value["additionalProperties"], value["properties"].as_object()) {
            (Value::Object(each), _) => format!("map of names to {}", kind(&Value::Object(each.clone()))),
            (_, Some(keys)) => of_keys(keys),
            (_, None) => "map".to_owned(),
        },
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        other => other.to_owned(),
    }
}

fn of_keys(keys: &Map<String, Value>) -> String {
    format!("map of {}", join(keys.keys().map(|key| format!("`{key}`"))))
}

fn reference(value: &Value) -> Option<&str> {
    value["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// `a, b or c`, each once.
fn join(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();
    words.dedup();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "anything".to_owned(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_has_a_line_with_what_it_takes() {
        let schema = json!({
            "required": ["steps"],
            "properties": {
                "steps": {"description": "What to do.", "type": "object", "additionalProperties": {"$ref": "#/$defs/step"}},
                "on_failure": {"description": "Then.", "enum": ["halt", "abort"]},
            },
            "$defs": {"step": {"properties": {"needs": {
                "description": "Before it.",
                "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            }}}, "scalar": {"type": ["string"]}},
        });
        let text = document(&schema).expect("a page");
        for line in [
            "| `steps` | map of names to [step](#step) | What to do. Required. |",
            "| `on_failure` | `halt` or `abort` | Then. |",
            "| `needs` | text or list of text | Before it. |",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let silent = json!({"properties": {"x": {"type": "string"}}, "$defs": {}});
        assert!(document(&silent).is_err(), "a key without words");
    }
}
