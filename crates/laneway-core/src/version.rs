//! Versions of `order: {key, version}`: dot-separated numbers, compared number by number, so that `2 < 10` and
//! `2.9 < 2.10`. Owns reading, comparing and the form that a store keeps and sorts; which step waits for which is
//! the gate's (`gate/`). Not the version of a workflow, which is a hash (`hash.rs`).

use std::fmt;

/// Digits of one part: enough for a date with its time, and below what a `u64` holds.
const MOST_DIGITS: usize = 18;
const MOST_PARTS: usize = 32;

/// A version by value: `1`, `1.0`, `v1` and `01` are the same one. Parts that are left out count as 0, so the order
/// is total and equal versions do not order each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderVersion {
    /// At least one; no zeros at the end but for the first. So the order of the lists is the order of the versions.
    parts: Vec<u64>,
}

/// Why a text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAVersion {
    #[error("it is empty")]
    Empty,
    #[error("its part `{part}` is not a number")]
    NotANumber { part: String },
    #[error("it has an empty part")]
    EmptyPart,
    #[error("a part has {digits} digits, {MOST_DIGITS} are allowed")]
    TooLong { digits: usize },
    #[error("it has {parts} parts, {MOST_PARTS} are allowed")]
    TooManyParts { parts: usize },
}

impl OrderVersion {
    /// Takes `2`, `2.10`, `2024.01.31` and, as tags are often written, `v2.10`.
    pub fn parse(text: &str) -> Result<Self, NotAVersion> {
        let numbers = text.strip_prefix('v').unwrap_or(text);
        if numbers.is_empty() {
            return Err(NotAVersion::Empty);
        }
        let count = numbers.split('.').count();
        if count > MOST_PARTS {
            return Err(NotAVersion::TooManyParts { parts: count });
        }
        let mut parts = numbers.split('.').map(part).collect::<Result<Vec<u64>, _>>()?;
        let last = parts.iter().rposition(|part| *part != 0).unwrap_or(0);
        parts.truncate(last + 1);
        Ok(Self { parts })
    }

    /// A text whose order is that of the versions, so that an index answers "is a smaller one waiting?": each part is
    /// the count of its digits, in two digits, and then these. Nothing but digits, because those sort the same in
    /// every collation, and bytewise.
    pub fn stored(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let digits = part.to_string();
            text.push_str(&format!("{:02}{digits}", digits.len()));
        }
        text
    }

    /// Takes a version back from a store.
    pub fn from_stored(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let length: usize = rest.get(..2)?.parse().ok()?;
            let end = length.checked_add(2)?;
            parts.push(rest.get(2..end)?.parse().ok()?);
            rest = &rest[end..];
        }
        let version = Self { parts };
        // Whatever this program would not have written is not read either.
        (version.stored() == text && !version.parts.is_empty()).then_some(version)
    }
}

impl fmt::Display for OrderVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts.iter().map(u64::to_string).collect();
        f.pad(&parts.join("."))
    }
}

fn part(text: &str) -> Result<u64, NotAVersion> {
    if text.is_empty() {
        return Err(NotAVersion::EmptyPart);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotAVersion::NotANumber { part: text.chars().take(40).collect() });
    }
    if text.len() > MOST_DIGITS {
        return Err(NotAVersion::TooLong { digits: text.len() });
    }
    text.parse().map_err(|_| NotAVersion::TooLong { digits: text.len() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> OrderVersion {
        OrderVersion::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn versions_compare_number_by_number() {
        let rising =
            ["0", "0.0.1", "0.9", "1", "1.0.5", "1.1", "2", "2.1", "2.9", "2.10", "10", "2024.01.31"];
        for pair in rising.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn what_is_left_out_is_zero_and_a_leading_v_says_nothing() {
        for (one, other) in [("1", "1.0"), ("1.0", "1.0.0"), ("v2.10", "2.10"), ("2.01", "2.1"), ("0", "0.0")]
        {
            assert_eq!(version(one), version(other), "{one} = {other}");
            assert_eq!(version(one).stored(), version(other).stored(), "{one} = {other}");
        }
        assert_eq!(version("v2.010.0").to_string(), "2.10");
    }

    #[test]
    fn what_is_no_version_says_why() {
        for (text, why) in [
            ("", "it is empty"),
            ("v", "it is empty"),
            ("2.x", "its part `x` is not a number"),
            ("2.1-rc1", "its part `1-rc1` is not a number"),
            ("V2", "its part `V2` is not a number"),
            ("-1", "its part `-1` is not a number"),
            ("2.", "it has an empty part"),
            (".2", "it has an empty part"),
            ("1234567890123456789", "a part has 19 digits, 18 are allowed"),
            (&["1"; 33].join("."), "it has 33 parts, 32 are allowed"),
        ] {
            assert_eq!(OrderVersion::parse(text).expect_err(text).to_string(), why, "{text}");
        }
    }

    #[test]
    fn only_what_was_stored_is_read_back() {
        assert_eq!(version("2.10").stored(), "0120210");
        for text in ["", "01", "0", "02", "0201", "01201", "xx1", "0110100", "é"] {
            assert_eq!(OrderVersion::from_stored(text), None, "{text}");
        }
    }

    /// Small and large numbers, zeros included, and few enough that some versions are equal.
    fn any_version() -> impl Strategy<Value = Vec<u64>> {
        let part = prop_oneof![0..12u64, 0..1000u64, 0..1_000_000_000_000_000_000u64];
        prop::collection::vec(part, 1..5)
    }

    /// The definition, naively: pad with zeros, then compare in turn.
    fn naive(one: &[u64], other: &[u64]) -> std::cmp::Ordering {
        let part = |parts: &[u64], index: usize| parts.get(index).copied().unwrap_or(0);
        (0..one.len().max(other.len()))
            .map(|index| part(one, index).cmp(&part(other, index)))
            .find(|ordering| ordering.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn the_stored_form_sorts_bytewise_as_the_versions_do(one in any_version(), other in any_version()) {
            let text = |parts: &[u64]| parts.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
            let (a, b) = (version(&text(&one)), version(&text(&other)));
            let expected = naive(&one, &other);
            prop_assert_eq!(a.cmp(&b), expected);
            prop_assert_eq!(a.stored().as_bytes().cmp(b.stored().as_bytes()), expected);
            prop_assert_eq!(OrderVersion::from_stored(&a.stored()), Some(a));
        }
    }
}
