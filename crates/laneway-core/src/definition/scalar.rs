//! The type of a scalar: YAML 1.2's core schema, strictly. Owns no wording but what to write instead
//! of `yes` and `no`.

use serde_json::Number;

use super::yaml::Data;

/// A scalar by the rules of YAML 1.2's core schema, but that only `true` and `false` are booleans:
/// `yes`, `on` and `NO` are strings.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    /// `.inf` and `.nan`, which no key accepts.
    NotFinite,
    Text,
}

/// What to write instead of a word that other formats take for a boolean.
pub(super) fn truth(text: &str) -> Option<String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" => Some("write true".to_owned()),
        "no" | "off" | "n" | "false" => Some("write false".to_owned()),
        _ => None,
    }
}

/// `None` for a list or a mapping.
pub(super) fn scalar(data: &Data<'_>) -> Option<Scalar> {
    match data {
        Data::Scalar { text, is_plain: true } => Some(resolve(text)),
        Data::Scalar { is_plain: false, .. } => Some(Scalar::Text),
        Data::List(_) | Data::Map(_) => None,
    }
}

fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" => return Scalar::Bool(true),
        "false" => return Scalar::Bool(false),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN" => return Scalar::NotFinite,
        _ => {}
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Scalar::Text;
    }
    let radix = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix)?;
        let number = u64::from_str_radix(digits, radix).ok()?;
        (!digits.starts_with('+')).then(|| Scalar::Number(number.into()))
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return number;
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(number) = plain.parse::<i64>() {
            return Scalar::Number(number.into());
        }
        if let Ok(number) = plain.parse::<u64>() {
            return Scalar::Number(number.into());
        }
    }
    let is_float = unsigned.bytes().any(|byte| byte.is_ascii_digit())
        && unsigned
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+'));
    match plain.parse::<f64>() {
        Ok(number) if is_float => Number::from_f64(number).map_or(Scalar::NotFinite, Scalar::Number),
        Ok(_) | Err(_) => Scalar::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_have_the_types_of_the_core_schema() {
        let number = |value: i64| Scalar::Number(value.into());
        let float = |value: f64| Scalar::Number(Number::from_f64(value).expect("finite"));
        for (text, expected) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("true", Scalar::Bool(true)),
            ("True", Scalar::Text),
            ("yes", Scalar::Text),
            ("on", Scalar::Text),
            ("NO", Scalar::Text),
            ("12", number(12)),
            ("-12", number(-12)),
            ("+12", number(12)),
            ("0x1F", number(31)),
            ("0o17", number(15)),
            ("010", number(10)),
            ("1.5", float(1.5)),
            (".5", float(0.5)),
            ("1e3", float(1000.0)),
            ("1.2.3", Scalar::Text),
            ("12:30", Scalar::Text),
            ("1_000", Scalar::Text),
            (".inf", Scalar::NotFinite),
            ("1e999", Scalar::NotFinite),
            ("-", Scalar::Text),
            (".", Scalar::Text),
            ("1s", Scalar::Text),
            ("infinity", Scalar::Text),
            ("nan", Scalar::Text),
        ] {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }
}
