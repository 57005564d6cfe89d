//! What an expression reads, and the bounds that keep its compiler safe: length, brackets, tokens.
//! Owns a small scan over tokens; the grammar itself is minijinja's. Expressions have no local
//! names, so every name that is no attribute, filter, test or keyword is a read.

use std::ops::Range;

use super::{Error, MAX_SOURCE, machine};

/// Deeper brackets and longer expressions would make the compiler recurse further than any
/// thread's stack is sure to allow.
const MAX_DEPTH: usize = 32;
const MAX_TOKENS: usize = 400;

/// One path that is read, such as `steps.fetch.output.files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    /// The root first. Ends where the path stops being constant.
    pub(crate) segments: Vec<String>,
    pub(crate) range: Range<usize>,
    /// A subscript that is not a constant follows: `steps[params.x]`.
    pub(crate) is_open: bool,
    /// Followed by `is defined`, `is undefined` or `| default(…)`.
    pub(crate) is_guarded: bool,
    /// For `steps.my-step`, which reads as a subtraction: `my-step` and where it ends.
    pub(crate) hyphened: Option<(String, usize)>,
}

impl Read {
    pub(crate) fn dotted(&self) -> String {
        self.segments.join(".")
    }
}

pub(crate) fn reads_of(source: &str) -> Result<Vec<Read>, Error> {
    if source.len() > MAX_SOURCE {
        return Err(Error::new(format!(
            "the expression has {} bytes, {MAX_SOURCE} are allowed; let a step compute it",
            source.len()
        )));
    }
    if source.trim().is_empty() {
        return Err(Error::new("the expression is empty"));
    }
    let tokens = tokens(source)?;
    let mut reads = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some(name) = tokens[at].name(source) else {
            at += 1;
            continue;
        };
        let before = at.checked_sub(1).map(|index| tokens[index].text(source));
        match before {
            Some(".") => {
                at += 1;
                continue;
            }
            Some("|") => {
                known(name, &tokens[at], "filter", machine::FILTERS)?;
                at += 1;
                continue;
            }
            Some("is") if name != "not" => {
                known(name, &tokens[at], "test", machine::TESTS)?;
                at += 1;
                continue;
            }
            Some("not") if at >= 2 && tokens[at - 2].text(source) == "is" => {
                known(name, &tokens[at], "test", machine::TESTS)?;
                at += 1;
                continue;
            }
            Some(_) | None => {}
        }
        let next = tokens.get(at + 1).map(|token| token.text(source));
        if KEYWORDS.contains(&name) || next == Some("=") {
            at += 1;
            continue;
        }
        if next == Some("(") {
            return Err(Error::new(format!(
                "there is no function `{name}`; use a filter, as in `value | {}`",
                machine::FILTERS[0]
            ))
            .at(tokens[at].range.clone()));
        }
        let (read, end) = path(source, &tokens, at)?;
        reads.push(read);
        at = end;
    }
    Ok(reads)
}

pub(super) const KEYWORDS: &[&str] =
    &["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"];

/// Follows a path from its root; returns the index of the first token behind it.
fn path(source: &str, tokens: &[Token], start: usize) -> Result<(Read, usize), Error> {
    let text = |index: usize| tokens.get(index).map(|token: &Token| token.text(source));
    let mut segments = vec![tokens[start].text(source).to_owned()];
    let mut at = start + 1;
    let mut is_open = false;
    let mut hyphened = None;
    loop {
        match text(at) {
            Some(".") => match tokens.get(at + 1) {
                Some(token) if token.kind == Kind::Name || token.kind == Kind::Number => {
                    segments.push(token.text(source).to_owned());
                    at += 2;
                    if segments.len() == 2 {
                        hyphened = hyphened_name(source, tokens, at - 1);
                    }
                }
                Some(_) | None => break,
            },
            Some("[") => match (tokens.get(at + 1), text(at + 2)) {
                (Some(token), Some("]")) if token.kind == Kind::Text => {
                    let quoted = token.text(source);
                    let inner = &quoted[1..quoted.len() - 1];
                    if inner.contains('\\') {
                        is_open = true;
                        break;
                    }
                    segments.push(inner.to_owned());
                    at += 3;
                }
                _ => {
                    is_open = true;
                    break;
                }
            },
            Some("(") => {
                return Err(Error::new("a value cannot be called; use a filter, as in `value | upper`")
                    .at(tokens[start].range.start..tokens[at].range.end));
            }
            Some(_) | None => break,
        }
    }
    let is_guarded = match text(at) {
        Some("|") => matches!(text(at + 1), Some("default" | "d")),
        Some("is") => {
            let test = if text(at + 1) == Some("not") { 2 } else { 1 };
            matches!(text(at + test), Some("defined" | "undefined"))
        }
        Some(_) | None => false,
    };
    let range = tokens[start].range.start..tokens[at - 1].range.end;
    Ok((Read { segments, range, is_open, is_guarded, hyphened }, at))
}

/// `my-step` of `steps.my-step`: names and hyphens that touch each other.
fn hyphened_name(source: &str, tokens: &[Token], first: usize) -> Option<(String, usize)> {
    let mut last = first;
    while let (Some(hyphen), Some(next)) = (tokens.get(last + 1), tokens.get(last + 2)) {
        let touches = hyphen.text(source) == "-"
            && hyphen.range.start == tokens[last].range.end
            && next.range.start == hyphen.range.end
            && matches!(next.kind, Kind::Name | Kind::Number);
        if !touches {
            break;
        }
        last += 2;
    }
    let range = tokens[first].range.start..tokens[last].range.end;
    (last > first).then(|| (source[range.clone()].to_owned(), range.end))
}

fn known(name: &str, token: &Token, kind: &str, all: &[&str]) -> Result<(), Error> {
    if all.contains(&name) {
        return Ok(());
    }
    let loops =
        ["map", "select", "reject", "selectattr", "rejectattr", "groupby", "filter", "batch", "slice"];
    let advice = match crate::nearest::nearest(name, all.iter().copied()) {
        _ if loops.contains(&name) => {
            "an expression has no loops: `for_each` makes a task for each item, and a script can compute a list with `jq`"
                .to_owned()
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", all.join(", ")),
    };
    Err(Error::new(format!("there is no {kind} `{name}`")).hint(advice).at(token.range.clone()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    kind: Kind,
    range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Text,
    Number,
    Sign,
}

impl Token {
    fn text<'s>(&self, source: &'s str) -> &'s str {
        &source[self.range.clone()]
    }

    fn name<'s>(&self, source: &'s str) -> Option<&'s str> {
        (self.kind == Kind::Name).then(|| self.text(source))
    }
}

fn tokens(source: &str) -> Result<Vec<Token>, Error> {
    let bytes = source.as_bytes();
    let mut tokens: Vec<Token> = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        let kind = if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            at = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
            Kind::Name
        } else if byte.is_ascii_digit() {
            // `x.0.y` is an index and then an attribute, `1.5` is one number.
            let is_index = tokens.last().is_some_and(|last| last.text(source) == ".");
            at = run(bytes, at, |byte| {
                byte.is_ascii_alphanumeric() || byte == b'_' || (byte == b'.' && !is_index)
            });
            Kind::Number
        } else if byte == b'"' || byte == b'\'' {
            at = string_end(bytes, at)
                .ok_or_else(|| Error::new("the quote is never closed").at(start..source.len()))?;
            Kind::Text
        } else {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return Err(Error::new(format!("brackets are nested deeper than {MAX_DEPTH} levels"))
                    .at(start..start + 1));
            }
            let double = bytes
                .get(at..at + 2)
                .is_some_and(|pair| matches!(pair, b"==" | b"!=" | b"<=" | b">=" | b"//" | b"**"));
            at += if double { 2 } else { source[at..].chars().next().map_or(1, char::len_utf8) };
            Kind::Sign
        };
        tokens.push(Token { kind, range: start..at });
        if tokens.len() > MAX_TOKENS {
            return Err(Error::new(format!(
                "the expression has more than {MAX_TOKENS} parts; let a step compute it"
            )));
        }
    }
    Ok(tokens)
}

fn run(bytes: &[u8], start: usize, accepts: impl Fn(u8) -> bool) -> usize {
    bytes[start..].iter().position(|byte| !accepts(*byte)).map_or(bytes.len(), |length| start + length)
}

/// Index behind the closing quote.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == bytes[start] => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}
