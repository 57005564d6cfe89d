//! Integers of JSON, as its schema language knows them: `3.0` is one.

use serde::{Deserialize as _, Deserializer};
use serde_json::Number;

/// Greater numbers with a fraction part of zero are not exact.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

pub(super) fn integer<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i128>,
{
    of(&Number::deserialize(deserializer)?)
}

pub(super) fn maybe_integer<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i128>,
{
    Option::<Number>::deserialize(deserializer)?.as_ref().map(of).transpose()
}

fn of<T: TryFrom<i128>, E: serde::de::Error>(number: &Number) -> Result<T, E> {
    let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MAX_EXACT);
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and within what is exact")]
    let value =
        number.as_i128().or_else(|| number.as_u64().map(i128::from)).or(whole.map(|float| float as i128));
    value
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| E::custom(format!("{number} is no integer, or out of range")))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Sample {
        #[serde(deserialize_with = "integer")]
        one: u32,
        #[serde(default, deserialize_with = "maybe_integer")]
        other: Option<u64>,
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        let read = |value| serde_json::from_value::<Sample>(value).map(|sample| (sample.one, sample.other));
        assert_eq!(read(json!({"one": 3.0})).expect("an integer"), (3, None));
        assert_eq!(read(json!({"one": 3, "other": u64::MAX})).expect("integers"), (3, Some(u64::MAX)));
        assert_eq!(read(json!({"one": 0, "other": null})).expect("an integer"), (0, None));
        for bad in [
            json!({"one": 3.5}),
            json!({"one": -1}),
            json!({"one": 4_294_967_296_u64}),
            json!({"one": "3"}),
            json!({}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
