//! What a step wrote to `$LANEWAY_OUTPUT`, parsed. Pure: whoever reads the file hands in its bytes.
//!
//! The text is either one JSON object (its first non-blank byte is `{`) or lines of `key=value`, whose
//! values are strings. Everything that could be read in two ways is refused with its line: a duplicate
//! key, a line without `=`, NUL, text that is not UTF-8, and more than [`LIMIT`] bytes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::definition::shown;

/// The most that a task may write, in bytes. It is kept in the store, so it is not a place for files.
pub const LIMIT: usize = 256 * 1024;

/// Why an output was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", At(*line))]
pub struct Error {
    /// Counted from 1; none where the trouble is not in a line, such as a file that cannot be read.
    pub line: Option<usize>,
    pub message: String,
}

/// Reads the whole of an output. Nothing written is an empty map.
pub fn parse(bytes: &[u8]) -> Result<Map<String, Value>, Error> {
    if bytes.len() > LIMIT {
        return Err(Error {
            line: Some(line_of(bytes, LIMIT)),
            message: format!(
                "the output is larger than {} KiB; write large data to a file and its path to $LANEWAY_OUTPUT",
                LIMIT / 1024
            ),
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| Error {
        line: Some(line_of(bytes, error.valid_up_to())),
        message: "not UTF-8 text; encode binary values, for example as base64".to_owned(),
    })?;
    if let Some(at) = text.find('\0') {
        return Err(Error { line: Some(line_of(bytes, at)), message: NUL.to_owned() });
    }
    if text.trim_start().starts_with('{') { parse_json(text) } else { parse_lines(text) }
}

const NUL: &str = "a NUL byte cannot stand in an output; encode binary values, for example as base64";

fn parse_lines(text: &str) -> Result<Map<String, Value>, Error> {
    let mut map = Map::new();
    for (index, line) in text.split('\n').enumerate() {
        // A file written with CRLF means its lines, not values that end in an invisible byte.
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim().is_empty() {
            continue;
        }
        let refuse = |message: String| Error { line: Some(index + 1), message };
        let Some((key, value)) = line.split_once('=') else {
            return Err(refuse(format!(
                "expected key=value, or one JSON object for the whole file, found `{}`",
                excerpt(line)
            )));
        };
        if !is_key(key) {
            return Err(refuse(format!(
                "`{}` is not a key: a key starts with a letter or `_` and goes on with letters, digits, `_` or `-`, without spaces",
                excerpt(key)
            )));
        }
        if map.insert(key.to_owned(), value.into()).is_some() {
            return Err(refuse(duplicate(key)));
        }
    }
    Ok(map)
}

fn parse_json(text: &str) -> Result<Map<String, Value>, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| json_error(&error, text))?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("the first byte is `{{`, so what was read is an object")
        }
    }
}

fn json_error(error: &serde_json::Error, text: &str) -> Error {
    let full = error.to_string();
    // serde_json ends its text with the place, which this error carries in a field of its own.
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = full.strip_suffix(&place).unwrap_or(&full);
    Error {
        line: Some(error.line().max(1)),
        message: match message {
            "recursion limit exceeded" => "JSON nested too deep: at most 127 levels".to_owned(),
            "trailing characters" => {
                "more text after the JSON object; an output is one object, or key=value lines".to_owned()
            }
            other if other.starts_with(REFUSED) => other[REFUSED.len()..].to_owned(),
            other => {
                let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
                format!(
                    "not valid JSON: {other} at column {} of {}; $LANEWAY_OUTPUT takes one JSON object (`jq` writes one), or lines of key=value",
                    error.column(),
                    shown(line.trim_end())
                )
            }
        },
    }
}

/// Marks this module's own refusals among the parser's messages.
const REFUSED: &str = "\u{1}";

/// Builds a [`Value`] as serde_json does, but refuses what it lets pass: duplicate keys and escaped NUL.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        without_nul(&value)?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            without_nul(&key)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("{REFUSED}{}", duplicate(&key))));
            }
            let value = access.next_value_seed(Self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn without_nul<E: serde::de::Error>(text: &str) -> Result<(), E> {
    if text.contains('\0') {
        return Err(E::custom(format!("{REFUSED}{NUL}")));
    }
    Ok(())
}

fn is_key(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn duplicate(key: &str) -> String {
    format!("the key `{}` is given twice", excerpt(key))
}

/// The start of a text that may be long or hold control characters, fit for one line of a message.
fn excerpt(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

fn line_of(bytes: &[u8], offset: usize) -> usize {
    bytes[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

struct At(Option<usize>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(line) => write!(f, "line {line}: "),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn good(text: &str) -> Value {
        Value::Object(parse(text.as_bytes()).expect("a good output"))
    }

    fn bad(bytes: &[u8]) -> String {
        parse(bytes).expect_err("a bad output").to_string()
    }

    #[test]
    fn nothing_and_blank_lines_are_an_empty_output() {
        assert_eq!(good(""), json!({}));
        assert_eq!(good("\n  \n\t\r\n"), json!({}));
    }

    #[test]
    fn lines_are_split_at_the_first_equals_sign_and_values_stay_strings() {
        assert_eq!(
            good("a=1\n\n_b-2=x=y \nempty=\nlast={\"no\": 1}"),
            json!({"a": "1", "_b-2": "x=y ", "empty": "", "last": "{\"no\": 1}"})
        );
        assert_eq!(good("a=1\r\nb=2\r\n"), json!({"a": "1", "b": "2"}));
    }

    #[test]
    fn one_json_object_keeps_its_types_and_order() {
        let text = " \n{\"z\": [1, -2, 2.5, null, true], \"a\": {\"deep\": \"x\"}}\n";
        assert_eq!(good(text), json!({"z": [1, -2, 2.5, null, true], "a": {"deep": "x"}}));
        let keys: Vec<_> = parse(text.as_bytes()).expect("good").keys().cloned().collect();
        assert_eq!(keys, ["z", "a"]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, expected) in [
            (
                "a=1\nfoo bar\n",
                "line 2: expected key=value, or one JSON object for the whole file, found `foo bar`",
            ),
            ("[1, 2]", "line 1: expected key=value"),
            ("a=1\n\n1b=2", "line 3: `1b` is not a key"),
            ("a =2", "line 1: `a ` is not a key"),
            ("=2", "line 1: `` is not a key"),
            ("é=2", "line 1: `é` is not a key"),
            ("a=1\nb=2\na=3", "line 3: the key `a` is given twice"),
            ("a=1\nb=\0", "line 2: a NUL byte"),
        ] {
            let message = bad(text.as_bytes());
            assert!(message.starts_with(expected), "{text:?}: {message}");
        }
        assert!(bad(b"a=1\nb=\xff\xfe").starts_with("line 2: not UTF-8"));
    }

    #[test]
    fn bad_json_is_named_by_line() {
        for (text, expected) in [
            ("{\n\"a\": 1,\n}", "line 3: not valid JSON: trailing comma"),
            ("{\"a\": 1", "line 1: not valid JSON: EOF while parsing"),
            ("{\"a\": 1}\n{\"b\": 2}", "line 2: more text after the JSON object"),
            ("{\"a\": 1,\n\"a\": 2}", "line 2: the key `a` is given twice"),
            ("{\"a\": {\n\"b\": 1, \"b\": 1}}", "line 2: the key `b` is given twice"),
            ("{\n\"a\": \"x\\u0000\"}", "line 2: a NUL byte"),
            ("{\"a\": 1e999}", "line 1: not valid JSON: number out of range"),
        ] {
            let message = bad(text.as_bytes());
            assert!(message.starts_with(expected), "{text:?}: {message}");
        }
        assert_eq!(
            bad(b"{\"a\": nope}"),
            "line 1: not valid JSON: expected ident at column 8 of `{\"a\": nope}`; $LANEWAY_OUTPUT takes one JSON object (`jq` writes one), or lines of key=value"
        );
    }

    #[test]
    fn json_nested_too_deep_is_refused_and_does_not_overflow() {
        for depth in [128, 100_000] {
            let text = format!("{{\"a\":\n{}", "[".repeat(depth));
            assert!(bad(text.as_bytes()).starts_with("line 2: JSON nested too deep"));
        }
        let text = format!("{{\"a\": {}{}}}", "[".repeat(100), "]".repeat(100));
        assert!(parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn an_output_beyond_the_limit_is_refused_at_the_line_that_crosses_it() {
        let mut text = "a=1\nb=".to_owned();
        text.push_str(&"x".repeat(LIMIT - text.len()));
        assert!(parse(text.as_bytes()).is_ok());
        text.push('x');
        assert!(bad(text.as_bytes()).starts_with("line 2: the output is larger than 256 KiB"));
    }

    #[test]
    fn a_message_never_repeats_a_long_or_unprintable_line() {
        let message = bad(format!("\u{1b}[31m{}", "x".repeat(10_000)).as_bytes());
        assert!(message.len() < 300, "{message}");
        assert!(!message.contains('\u{1b}'));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = parse(&[b"{", &bytes[..]].concat());
        }

        #[test]
        fn what_is_accepted_as_json_equals_what_serde_json_reads(text in "\\{(\"[ab]\":([0-9]{1,3}|\"[a-z\\\\]{0,3}\"|\\[\\]|null),?){0,4}\\}?") {
            if let Ok(map) = parse(text.as_bytes()) {
                let reference: Value = serde_json::from_str(&text).expect("accepted text is JSON");
                prop_assert_eq!(Value::Object(map), reference);
            }
        }
    }
}
