//! JSON documents, as events of the same kind as YAML's. JSON is YAML, but the YAML scanner keeps
//! every token of a `{…}` until it ends, in case the whole is a key; of a large JSON document that
//! would be gigabytes. What is not JSON is left to the YAML parser, which also words the errors.

use std::borrow::Cow;

use saphyr_parser::{Event, ScalarStyle};

use super::finding::Span;

/// What may stand next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// Calls `take` for each event until it fails. `None` if the text is not JSON after all.
pub(super) fn events<'t, E>(
    text: &'t str,
    mut take: impl FnMut(Event<'t>, Span) -> Result<(), E>,
) -> Option<Result<(), E>> {
    let bytes = text.as_bytes();
    // One entry for each open container: whether it is an object.
    let mut open: Vec<bool> = Vec::new();
    let mut next = Next::Value;
    let mut at = 0;
    loop {
        at += bytes[at..].iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        let Some(byte) = bytes.get(at).copied() else {
            return (next == Next::Nothing).then_some(Ok(()));
        };
        let start = at;
        let is_value = matches!(next, Next::Value | Next::ValueOrEnd);
        let is_key = matches!(next, Next::Key | Next::KeyOrEnd);
        let event = match byte {
            b':' if next == Next::Colon => {
                at += 1;
                next = Next::Value;
                continue;
            }
            b',' if next == Next::CommaOrEnd => {
                at += 1;
                next = if open.last() == Some(&true) { Next::Key } else { Next::Value };
                continue;
            }
            b'{' if is_value => {
                at += 1;
                open.push(true);
                next = Next::KeyOrEnd;
                Event::MappingStart(0, None)
            }
            b'[' if is_value => {
                at += 1;
                open.push(false);
                next = Next::ValueOrEnd;
                Event::SequenceStart(0, None)
            }
            b'}' if matches!(next, Next::KeyOrEnd | Next::CommaOrEnd) && open.pop()? => {
                at += 1;
                next = behind(&open);
                Event::MappingEnd
            }
            b']' if matches!(next, Next::ValueOrEnd | Next::CommaOrEnd) && !open.pop()? => {
                at += 1;
                next = behind(&open);
                Event::SequenceEnd
            }
            b'"' if is_value || is_key => {
                let (value, end) = string(text, at)?;
                at = end;
                next = if is_key { Next::Colon } else { behind(&open) };
                Event::Scalar(value, ScalarStyle::DoubleQuoted, 0, None)
            }
            _ if is_value => {
                let length = bytes[at..].iter().take_while(|byte| is_bare(**byte)).count();
                let word = &text[at..at + length];
                serde_json::from_str::<serde_json::Value>(word).ok()?;
                at += length;
                next = behind(&open);
                Event::Scalar(Cow::Borrowed(word), ScalarStyle::Plain, 0, None)
            }
            _ => return None,
        };
        if let Err(error) = take(event, Span::new(start, at)) {
            return Some(Err(error));
        }
    }
}

/// What may stand behind a value.
fn behind(open: &[bool]) -> Next {
    if open.is_empty() { Next::Nothing } else { Next::CommaOrEnd }
}

/// Numbers, `true`, `false` and `null`.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// The string that starts here, and the index behind its closing quote.
fn string(text: &str, start: usize) -> Option<(Cow<'_, str>, usize)> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    let mut has_escapes = false;
    loop {
        match bytes.get(at)? {
            b'"' => break,
            b'\\' => {
                has_escapes = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    let value = if has_escapes {
        Cow::Owned(serde_json::from_str(&text[start..=at]).ok()?)
    } else if text[start + 1..at].contains(['\n', '\r', '\t']) {
        // YAML folds such a string, JSON has none.
        return None;
    } else {
        Cow::Borrowed(&text[start + 1..at])
    };
    Some((value, at + 1))
}
