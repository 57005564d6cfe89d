//! Keeps secrets out of what steps print: replaces them, and what they become in common encodings, wherever the output was cut.
//!
//! What might be the beginning of a secret at the end of a piece is held back until it is known how it goes on; that is less
//! than one secret. Each stream is looked at for itself.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What stands in place of a secret.
const MASK: &[u8] = b"***";

/// What is shorter would be found everywhere; a secret must not be.
pub const MIN_LENGTH: usize = 4;

/// What is not to be printed: secrets in all of their forms.
#[derive(Clone, Default)]
pub struct Masks {
    /// Longest first, so that a whole is never taken for its part.
    forms: Vec<Vec<u8>>,
    /// By first byte, whether any begins so.
    begins: Vec<bool>,
}

/// How much there is, never what.
impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masks").field("forms", &self.forms.len()).finish_non_exhaustive()
    }
}

impl Masks {
    /// Of secrets, and of each line of one that has several.
    pub fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut forms = BTreeSet::new();
        for secret in secrets {
            for part in std::iter::once(secret).chain(secret.lines()).map(str::trim_end) {
                if part.len() >= MIN_LENGTH {
                    forms.extend(forms_of(part));
                }
            }
        }
        let mut forms: Vec<Vec<u8>> =
            forms.into_iter().filter(|form: &Vec<u8>| form.len() >= MIN_LENGTH).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let mut begins = vec![false; 256];
        forms.iter().for_each(|form| begins[usize::from(form[0])] = true);
        Self { forms, begins }
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// A text that is there as a whole.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// The same of what need not be a text.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut stream = Stream::default();
        stream.push(self, bytes, &mut out);
        stream.finish(self, &mut out);
        out
    }

    /// All strings of what a step hands on, names included.
    pub fn output(&self, output: Map<String, Value>) -> Map<String, Value> {
        output.into_iter().map(|(key, value)| (self.text(&key), self.value(value))).collect()
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => Value::Object(self.output(map)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

/// One stream of output, as it comes.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The beginning of what may be a secret.
    held: Vec<u8>,
}

impl Stream {
    /// Appends what is safe to be shown.
    pub(crate) fn push(&mut self, masks: &Masks, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        self.scan(masks, out, false);
    }

    /// Nothing more comes: what was held back is what it is.
    pub(crate) fn finish(&mut self, masks: &Masks, out: &mut Vec<u8>) {
        self.scan(masks, out, true);
    }

    fn scan(&mut self, masks: &Masks, out: &mut Vec<u8>, is_last: bool) {
        let whole = std::mem::take(&mut self.held);
        let mut at = 0;
        while at < whole.len() {
            let rest = &whole[at..];
            if masks.begins.get(usize::from(rest[0])) != Some(&true) {
                out.push(rest[0]);
                at += 1;
                continue;
            }
            // One that is longer than what is there would be cut in two, also if a shorter one ends here.
            if !is_last && masks.forms.iter().any(|form| form.len() > rest.len() && form.starts_with(rest)) {
                self.held = rest.to_vec();
                return;
            }
            match masks.forms.iter().find(|form| rest.starts_with(form)) {
                Some(form) => {
                    out.extend_from_slice(MASK);
                    at += form.len();
                }
                None => {
                    out.push(rest[0]);
                    at += 1;
                }
            }
        }
    }
}

/// What a secret becomes where it is encoded.
fn forms_of(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let hex = |digits: &[u8; 16]| -> Vec<u8> {
        bytes
            .iter()
            .flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]])
            .collect()
    };
    let json = Value::from(secret).to_string();
    let mut forms = vec![
        bytes.to_vec(),
        hex(b"0123456789abcdef"),
        hex(b"0123456789ABCDEF"),
        json.as_bytes()[1..json.len() - 1].to_vec(),
    ];
    for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
        forms.push(in_url(bytes, digits, "%20"));
        forms.push(in_url(bytes, digits, "+"));
    }
    for last in [b"+/", b"-_"] {
        forms.extend((0..3).map(|before| base64(bytes, before, last)));
    }
    forms
}

fn in_url(bytes: &[u8], digits: &[u8; 16], blank: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            b' ' => out.extend_from_slice(blank.as_bytes()),
            _ => out.extend([b'%', digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]),
        }
    }
    out
}

/// The characters that bytes become behind so many others, whatever those are: without the ones at either end in which there
/// are bits of neighbours.
fn base64(bytes: &[u8], before: usize, last: &[u8; 2]) -> Vec<u8> {
    let bit = |at: usize| -> u8 {
        match at.checked_sub(before * 8) {
            Some(at) if at < bytes.len() * 8 => bytes[at / 8] >> (7 - at % 8) & 1,
            Some(_) | None => 0,
        }
    };
    let digit = |at: usize| -> u8 {
        let value = (0..6).fold(0, |value, offset| value << 1 | bit(at * 6 + offset));
        match value {
            0..=25 => b'A' + value,
            26..=51 => b'a' + value - 26,
            52..=61 => b'0' + value - 52,
            62 => last[0],
            _ => last[1],
        }
    };
    ((before * 8).div_ceil(6)..(before + bytes.len()) * 8 / 6).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(masks: &Masks, pieces: &[&[u8]]) -> Vec<u8> {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        pieces.iter().for_each(|piece| stream.push(masks, piece, &mut out));
        stream.finish(masks, &mut out);
        out
    }

    #[test]
    fn secret_is_masked_in_all_of_its_forms() {
        let masks = Masks::of(["p\"ss wört/1"]);
        for form in [
            "p\"ss wört/1",
            "p\\\"ss wört/1",
            "p%22ss%20w%C3%B6rt%2F1",
            "p%22ss+w%c3%b6rt%2f1",
            "702273732077c3b672742f31",
            "702273732077C3B672742F31",
        ] {
            assert_eq!(masks.text(&format!("a {form} b")), "a *** b", "{form}");
        }
    }

    #[test]
    fn base64_is_masked_wherever_the_secret_stands_in_it() {
        let masks = Masks::of(["sesame-open"]);
        // "sesame-open", "xsesame-open", "xxsesame-openyy", as others encode them.
        for (text, shown) in [
            ("c2VzYW1lLW9wZW4=", "***4="),
            ("eHNlc2FtZS1vcGVu", "eH***"),
            ("eHhzZXNhbWUtb3Blbnl5", "eHh***nl5"),
        ] {
            let told = masks.text(text);
            assert!(told.contains("***") && told.len() < text.len(), "{text} {told}");
            assert!(told == shown || !told.contains(&text[4..10]), "{told}");
        }
    }

    #[test]
    fn lines_of_a_secret_are_masked_for_themselves_and_short_ones_are_left() {
        let masks = Masks::of(["-----BEGIN\nabc\nsecretline\n"]);
        assert_eq!(masks.text("x secretline abc"), "x *** abc");
        assert!(Masks::of(["abc"]).is_empty());
    }

    #[test]
    fn shorter_secret_at_the_end_is_masked_though_a_longer_one_might_have_come() {
        let masks = Masks::of(["abcd", "abcdefgh"]);
        assert_eq!(masked(&masks, &[b"x abcd"]), b"x ***");
        assert_eq!(masked(&masks, &[b"x abcd", b"ef y"]), b"x ***ef y");
        assert_eq!(masked(&masks, &[b"x abcdef", b"gh y"]), b"x *** y");
    }

    proptest! {
        #[test]
        fn how_the_output_is_cut_makes_no_difference(
            secrets in proptest::collection::vec("[ab]{4,8}", 1..4),
            text in "[abc]{0,200}",
            cuts in proptest::collection::vec(0_usize..200, 0..20),
        ) {
            let masks = Masks::of(secrets.iter().map(String::as_str));
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.sort_unstable();
            let (mut pieces, mut at) = (Vec::new(), 0);
            for cut in cuts {
                pieces.push(&text.as_bytes()[at..cut]);
                at = cut;
            }
            pieces.push(&text.as_bytes()[at..]);
            let told = masked(&masks, &pieces);
            prop_assert_eq!(&told, &masked(&masks, &[text.as_bytes()]));
            let told = String::from_utf8(told).expect("text");
            for part in told.split("***") {
                prop_assert!(!secrets.iter().any(|secret| part.contains(secret.as_str())), "{}", told);
            }
        }
    }
}
