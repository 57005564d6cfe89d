//! Values with rules of their own: names, durations, whole numbers, `retry`, `env`.

use std::num::NonZeroU32;
use std::time::Duration;

use super::finding::{Finding, is_invisible, shown};
use super::keys;
use super::model::{Retry, RetryOn};
use super::reader::{Field, Reader};
use super::text::code_point;
use super::yaml::NodeId;
use crate::expression::Template;
use crate::reason::Reason;

const MAX_NAME: usize = 100;
/// The most attempts that may follow the first.
pub const MAX_RETRIES: u32 = 1000;
/// A hundred years: far beyond any use, far below any overflow.
const MAX_DURATION: Duration = Duration::from_secs(36_500 * 86_400);

const DURATION: &str = "a duration such as 500ms, 30s, 5m, 2h or 1h30m";

/// Reasons for which another attempt can make sense.
pub(super) const RETRYABLE: [Reason; 9] = [
    Reason::Exit,
    Reason::Error,
    Reason::Signal,
    Reason::Oom,
    Reason::Timeout,
    Reason::StartFailed,
    Reason::EngineLost,
    Reason::Expression,
    Reason::BadOutput,
];

impl<'t> Reader<'t> {
    /// Whether a name that the author chose may be used; says so if not.
    pub(super) fn check_name(&mut self, kind: &'static str, name: &str, node: NodeId) {
        let span = self.tree.node(node).span;
        if let Some(bad) = bad_name(kind, name) {
            self.findings.push(Finding::new(bad.to_string(), span).hint(BadName::HINT));
        }
    }

    pub(super) fn duration(&mut self, field: Field<'_>) -> Option<Duration> {
        let text = self.word(field, DURATION)?;
        match parse_duration(text) {
            Ok(duration) => Some(duration),
            Err(hint) => {
                let finding = self.wrong(field, DURATION).maybe_hint(hint);
                self.findings.push(finding);
                None
            }
        }
    }

    /// `0s` is no limit.
    pub(super) fn timeout(&mut self, field: Field<'_>) -> Option<Duration> {
        self.duration(field).filter(|duration| !duration.is_zero())
    }

    pub(super) fn at_least_one(&mut self, field: Field<'_>) -> Option<NonZeroU32> {
        let must_be = "a whole number of at least 1";
        let number = self.number(field, must_be)?;
        let value = number.as_u64().and_then(|value| u32::try_from(value).ok());
        let value = value.and_then(NonZeroU32::new);
        if value.is_none() {
            let finding = self.wrong(field, must_be);
            self.findings.push(finding);
        }
        value
    }

    /// Values may hold expressions. Numbers and booleans are taken as their text.
    /// Variables of processes, which may read secrets.
    pub(super) fn variables(&mut self, field: Field<'_>) -> Vec<(String, Template)> {
        self.is_env = true;
        let env = self.env(field);
        self.is_env = false;
        env
    }

    pub(super) fn env(&mut self, field: Field<'_>) -> Vec<(String, Template)> {
        let Some(entries) = self.entries(field, "a mapping of names to values") else {
            return Vec::new();
        };
        let mut env = Vec::with_capacity(entries.len());
        for entry in entries {
            self.check_variable(entry);
            if let Some(value) = self.template(entry) {
                env.push((entry.name.to_owned(), value));
            }
        }
        env
    }

    pub(super) fn check_variable(&mut self, entry: Field<'_>) {
        let is_name = entry.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !entry.name.starts_with(|c: char| c.is_ascii_digit())
            && !entry.name.is_empty();
        if !is_name {
            let span = self.tree.node(entry.key).span;
            self.findings.push(
                Finding::new(format!("{} cannot be the name of a variable", shown(entry.name)), span)
                    .hint("use letters, digits and `_`, not starting with a digit"),
            );
        }
    }

    pub(super) fn retry(&mut self, field: Field<'_>) -> Option<Retry> {
        if let Some(number) = self.plain_number(field) {
            let finding = self.wrong(field, "a mapping").hint(format!("write `retry: {{max: {number}}}`"));
            self.findings.push(finding);
            return None;
        }
        let fields = self.fields(field, &keys::RETRY, "a mapping such as {max: 3, backoff: 1s}")?;
        let mut retry = Retry::default();
        let mut has_max = false;
        let mut max_backoff = None;
        for field in fields {
            match field.name {
                "max" => {
                    has_max = true;
                    retry.max = self.retries(field).unwrap_or(0);
                }
                "backoff" => retry.backoff = self.duration(field).unwrap_or(retry.backoff),
                "factor" => {
                    let is_fine = |value: f64| (1.0..=1000.0).contains(&value);
                    let must_be = "a number from 1 to 1000";
                    retry.factor = self.real(field, must_be, is_fine).unwrap_or(retry.factor);
                }
                "max_backoff" => max_backoff = self.duration(field).map(|value| (value, field)),
                "jitter" => {
                    let is_fine = |value: f64| (0.0..=1.0).contains(&value);
                    let must_be = "a number from 0 to 1";
                    retry.jitter = self.real(field, must_be, is_fine).unwrap_or(retry.jitter);
                }
                "on" => retry.on = self.retry_on(field),
                _ => {}
            }
        }
        match max_backoff {
            Some((value, field)) if value < retry.backoff => {
                let span = self.place(field);
                self.findings.push(
                    Finding::new("`max_backoff` is shorter than `backoff`", span)
                        .hint("the first delay is `backoff`; raise `max_backoff` or leave it out"),
                );
            }
            Some((value, _)) => retry.max_backoff = value,
            None => retry.max_backoff = retry.max_backoff.max(retry.backoff),
        }
        if !has_max {
            let span = self.tree.node(field.key).span;
            let hint = "say how many attempts may follow the first: `retry: {max: 3}`";
            self.missing("`retry`".to_owned(), "max", span, hint);
        }
        Some(retry)
    }

    fn retries(&mut self, field: Field<'_>) -> Option<u32> {
        let must_be = "a whole number from 0 to 1000";
        let number = self.number(field, must_be)?;
        match number.as_u64() {
            Some(value) if value <= u64::from(MAX_RETRIES) => u32::try_from(value).ok(),
            Some(_) | None => {
                let finding = self.wrong(field, must_be);
                self.findings.push(finding);
                None
            }
        }
    }

    fn retry_on(&mut self, field: Field<'_>) -> Vec<RetryOn> {
        let Some(items) = self.list(field, "a list such as [timeout, 75]") else {
            return Vec::new();
        };
        if items.is_empty() {
            let finding = self.wrong(field, "a list of at least one reason or exit code");
            let finding = finding.hint("leave it out to retry after every failure");
            self.findings.push(finding);
        }
        items.into_iter().filter_map(|item| self.retry_reason(item)).collect()
    }

    fn retry_reason(&mut self, item: Field<'_>) -> Option<RetryOn> {
        if let Some(number) = self.plain_number(item) {
            let code = number.as_i64().filter(|code| (1..=255).contains(code));
            if let Some(code) = code.and_then(|code| i32::try_from(code).ok()) {
                return Some(RetryOn::ExitCode(code));
            }
            let finding = self.wrong(item, "an exit code from 1 to 255, or a reason");
            self.findings.push(finding);
            return None;
        }
        let choices = RETRYABLE.map(|reason| (reason.as_str(), RetryOn::Reason(reason)));
        self.choice(item, &choices)
    }

    fn real(&mut self, field: Field<'_>, must_be: &str, is_fine: impl Fn(f64) -> bool) -> Option<f64> {
        let value = self.number(field, must_be)?.as_f64();
        let value = value.filter(|value| is_fine(*value));
        if value.is_none() {
            let finding = self.wrong(field, must_be);
            self.findings.push(finding);
        }
        value
    }
}

/// What cannot be a name, with why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be the name of a {kind}: {why}", shown(name))]
pub struct BadName {
    pub kind: &'static str,
    pub name: String,
    pub why: String,
}

impl BadName {
    /// What can be one.
    pub const HINT: &str = "use letters, digits, `_` and `-`, starting with a letter or `_`";
}

/// Whether something can be the name of a limit, in a document and elsewhere.
pub fn check_limit_name(name: &str) -> Result<(), BadName> {
    bad_name("limit", name).map_or(Ok(()), Err)
}

/// A name is ASCII, so that two that look the same are the same.
fn bad_name(kind: &'static str, name: &str) -> Option<BadName> {
    let refused = |why: String| BadName { kind, name: name.to_owned(), why };
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if let Some(bad) = name.chars().find(|c| !allowed(*c)) {
        let code = code_point(bad);
        return Some(refused(if bad.is_control() || is_invisible(bad) {
            format!("it contains the invisible character {code}")
        } else if let Some(like) = looks_like(bad) {
            format!("`{bad}` ({code}) only looks like `{like}`")
        } else if bad == ' ' {
            "it contains a space".to_owned()
        } else {
            format!("it contains `{bad}` ({code})")
        }));
    }
    match name.chars().next() {
        None => Some(refused("it is empty".to_owned())),
        Some(first) if first.is_ascii_digit() || first == '-' => {
            Some(refused(format!("it starts with `{first}`")))
        }
        Some(_) if name.len() > MAX_NAME => {
            Some(refused(format!("it has {} characters, {MAX_NAME} are allowed", name.len())))
        }
        Some(_) => None,
    }
}

/// The ASCII letter that a letter of another script is taken for.
fn looks_like(c: char) -> Option<char> {
    let fullwidth = u32::from(c).wrapping_sub(0xFEE0);
    if ('\u{ff01}'..='\u{ff5e}').contains(&c) {
        return char::from_u32(fullwidth);
    }
    const PAIRS: &[(&str, char)] = &[
        ("аɑα", 'a'),
        ("ВΒ", 'B'),
        ("сϲ", 'c'),
        ("СϹ", 'C'),
        ("ԁ", 'd'),
        ("еҽ", 'e'),
        ("ЕΕ", 'E'),
        ("ɡ", 'g'),
        ("һ", 'h'),
        ("НΗ", 'H'),
        ("іıι", 'i'),
        ("ІΙ", 'I'),
        ("ј", 'j'),
        ("Ј", 'J'),
        ("КΚ", 'K'),
        ("ӏ", 'l'),
        ("МΜ", 'M'),
        ("Ν", 'N'),
        ("оοօ", 'o'),
        ("ОΟ", 'O'),
        ("рρ", 'p'),
        ("РΡ", 'P'),
        ("ԛ", 'q'),
        ("ѕ", 's'),
        ("Ѕ", 'S'),
        ("ТΤ", 'T'),
        ("υս", 'u'),
        ("ѵν", 'v'),
        ("ԝ", 'w'),
        ("х", 'x'),
        ("ХΧ", 'X'),
        ("уγ", 'y'),
        ("ΥҮ", 'Y'),
        ("Ζ", 'Z'),
        ("АΑ", 'A'),
        ("‐‑‒–—−", '-'),
        ("＿", '_'),
    ];
    PAIRS.iter().find(|(others, _)| others.contains(c)).map(|(_, letter)| *letter)
}

/// The error is advice, where there is some.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, Option<String>> {
    const UNITS: [(&str, u64); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Some(format!("add a unit: `{text}s` is {text} seconds, `{text}m` minutes")));
    }
    let mut rest = text;
    let mut total = 0u64;
    let mut units = UNITS.iter();
    while !rest.is_empty() || total == 0 && rest.len() == text.len() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let letters = rest[digits..].bytes().take_while(u8::is_ascii_lowercase).count();
        let (number, unit) = (&rest[..digits], &rest[digits..digits + letters]);
        if rest[digits..].starts_with('.') {
            return Err(Some("use a smaller unit instead of a fraction: `1500ms`".to_owned()));
        }
        if letters == 0 || digits == 0 {
            return Err(None);
        }
        let Some((_, factor)) = units.find(|(name, _)| *name == unit) else {
            let is_unit = UNITS.iter().any(|(name, _)| *name == unit);
            return Err(Some(if is_unit {
                "write each unit once, the largest first: `1h30m`".to_owned()
            } else {
                "the units are ms, s, m, h and d".to_owned()
            }));
        };
        total = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(*factor))
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| Some("the longest duration is 36500d".to_owned()))?;
        rest = &rest[digits + letters..];
        if rest.is_empty() {
            break;
        }
    }
    let duration = Duration::from_millis(total);
    if duration > MAX_DURATION {
        return Err(Some("the longest duration is 36500d".to_owned()));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_combine() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("1h30m", 5_400_000),
            ("1d1ms", 86_400_001),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "5 s",
            "-5s",
            "1.5s",
            "5S",
            "5min",
            "1m1h",
            "1s1s",
            "99999999999999999d",
            "36501d",
            "1h30",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_ascii_and_say_which_character_is_not() {
        let why = |name: &str| bad_name("step", name).map(|bad| bad.to_string());
        assert_eq!(why("build-2_x"), None);
        assert_eq!(why(&"a".repeat(100)), None);
        assert!(why(&"a".repeat(101)).expect("too long").contains("101 characters"));
        assert!(why("p\u{430}y").expect("cyrillic").contains("(U+0430) only looks like `a`"));
        assert!(why("a\u{200b}").expect("invisible").contains("invisible character U+200B"));
        assert!(why("ａ").expect("fullwidth").contains("looks like `a`"));
        assert!(why("é").expect("accent").contains("U+00E9"));
        assert!(why("1a").expect("digit").contains("starts with `1`"));
        assert!(why("-a").is_some() && why("").is_some() && why("a b").is_some());
    }
}
