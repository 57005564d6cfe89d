//! Signatures of what is sent between programs without a token: webhooks that come in, callbacks that go out. Both are signed
//! in the same way, so that a callback of one Laneway is a webhook of another. Pure.

use axum::http::HeaderMap;
use laneway_core::trigger::Scheme;
use ring::hmac;

pub(crate) const SIGNATURE: &str = "laneway-signature";
pub(crate) const TIMESTAMP: &str = "laneway-timestamp";
pub(crate) const DELIVERY: &str = "laneway-delivery";

const GITHUB_SIGNATURE: &str = "x-hub-signature-256";
const GITHUB_DELIVERY: &str = "x-github-delivery";

pub(crate) const ABOUT: &str = "Signed with the secret of the webhook, as `Laneway-Signature: v1=HEX`: HMAC-SHA256 of \
    TIMESTAMP.DELIVERY.BODY, where `Laneway-Timestamp` is the moment in seconds since 1970 and `Laneway-Delivery` names the \
    delivery: 1 to 200 visible ASCII characters without a dot. With `scheme: github`: `X-Hub-Signature-256: sha256=HEX` of the \
    body, and `X-GitHub-Delivery`; the same body under another delivery is refused as a replay for a week.";

/// How far the moment of a delivery may be from now.
pub(crate) const WINDOW_SECONDS: i64 = 300;

/// Longer names of deliveries are refused.
const MAX_DELIVERY: usize = 200;

/// Length of an HMAC-SHA256.
const SIGNATURE_BYTES: usize = 32;

/// What proves who sent something, and what tells it from others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proof<'a> {
    pub(crate) delivery: &'a str,
    /// In seconds since 1970; none where the scheme has none.
    at: Option<i64>,
    pub(crate) signature: [u8; SIGNATURE_BYTES],
    scheme: Scheme,
}

impl<'a> Proof<'a> {
    /// `None` if something of it is missing, or is not what it has to be.
    pub(crate) fn read(headers: &'a HeaderMap, scheme: Scheme) -> Option<Self> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let (delivery, at, signature) = match scheme {
            Scheme::Laneway => {
                let at = text(TIMESTAMP)?;
                // One way to write it: what is signed is the text.
                let seconds: i64 = at.parse().ok().filter(|seconds: &i64| seconds.to_string() == at)?;
                (text(DELIVERY)?, Some(seconds), text(SIGNATURE)?.strip_prefix("v1=")?)
            }
            Scheme::Github => {
                (text(GITHUB_DELIVERY)?, None, text(GITHUB_SIGNATURE)?.strip_prefix("sha256=")?)
            }
        };
        is_delivery(delivery, scheme).then_some(())?;
        Some(Self { delivery, at, signature: bytes(signature)?, scheme })
    }

    /// Compared in constant time.
    pub(crate) fn holds(&self, secret: &str, body: &[u8]) -> bool {
        let signed = match self.scheme {
            Scheme::Laneway => signed(self.at.unwrap_or_default(), self.delivery, body),
            Scheme::Github => body.to_vec(),
        };
        hmac::verify(&key(secret), &signed, &self.signature).is_ok()
    }

    pub(crate) fn is_of(&self, now_seconds: i64) -> bool {
        self.at.is_none_or(|at| now_seconds.saturating_sub(at).saturating_abs() <= WINDOW_SECONDS)
    }
}

/// Whether a delivery may have this name. Where the name is signed, dots separate it from the moment and from the body, so it has
/// none itself: with one, `e1` with the body `1.5` would be signed as `e1.1` with the body `5` is.
fn is_delivery(name: &str, scheme: Scheme) -> bool {
    let is_part = |byte: u8| match scheme {
        Scheme::Laneway => byte.is_ascii_graphic() && byte != b'.',
        Scheme::Github => byte.is_ascii_graphic(),
    };
    (1..=MAX_DELIVERY).contains(&name.len()) && name.bytes().all(is_part)
}

/// Takes as long as `Proof::holds` where there is nothing to check: the time of a refusal says nothing of why.
pub(crate) fn check_nothing(body: &[u8]) {
    let held = Proof { delivery: "-", at: Some(0), signature: [0; SIGNATURE_BYTES], scheme: Scheme::Laneway };
    std::hint::black_box(held.holds("a secret that no sender has", body));
}

/// The value of the header `Laneway-Signature`.
pub(crate) fn sign(secret: &str, at: i64, delivery: &str, body: &[u8]) -> String {
    let tag = hmac::sign(&key(secret), &signed(at, delivery, body));
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v1={digits}")
}

fn key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

fn signed(at: i64, delivery: &str, body: &[u8]) -> Vec<u8> {
    let mut signed = format!("{at}.{delivery}.").into_bytes();
    signed.extend_from_slice(body);
    signed
}

fn bytes(digits: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let digit = |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.as_bytes().chunks_exact(2);
    let read: Option<Vec<u8>> = (pairs.remainder().is_empty())
        .then(|| pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect())?;
    read?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (name.parse().expect("a name"), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    const BODY: &[u8] = b"{\"ref\": \"main\"}";

    #[test]
    fn what_was_signed_holds_and_nothing_else() {
        let signature = sign("a long secret", 1_000, "d-1", BODY);
        let sent = [(SIGNATURE, signature.as_str()), (TIMESTAMP, "1000"), (DELIVERY, "d-1")];
        let given = headers(&sent);
        let proof = Proof::read(&given, Scheme::Laneway).expect("a proof");
        assert_eq!(proof.delivery, "d-1");
        assert!(proof.holds("a long secret", BODY));
        assert!(!proof.holds("another secret", BODY));
        assert!(!proof.holds("a long secret", b"{\"ref\": \"mean\"}"));
        for (name, other) in [(TIMESTAMP, "1001"), (DELIVERY, "d-2")] {
            let mut changed = sent;
            changed.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, value)| *value = other);
            let given = headers(&changed);
            let proof = Proof::read(&given, Scheme::Laneway).expect("a proof");
            assert!(!proof.holds("a long secret", BODY), "another {name}");
        }
    }

    #[test]
    fn bytes_that_were_signed_can_be_read_in_one_way_only() {
        // "1.e1.1.5" could be the delivery `e1` with the body `1.5`, or `e1.1` with `5`.
        let signature = sign("s", 1, "e1", b"1.5");
        assert_eq!(signature, sign("s", 1, "e1.1", b"5"), "what is signed is the same");
        let of = |delivery: &'static str| {
            headers(&[(SIGNATURE, signature.as_str()), (TIMESTAMP, "1"), (DELIVERY, delivery)])
        };
        let given = of("e1");
        assert!(Proof::read(&given, Scheme::Laneway).is_some_and(|proof| proof.holds("s", b"1.5")));
        assert_eq!(Proof::read(&of("e1.1"), Scheme::Laneway), None);
        assert!(is_delivery("e1.1", Scheme::Github), "where the name is not signed it may have dots");
    }

    #[test]
    fn moment_has_to_be_near() {
        let given =
            headers(&[(SIGNATURE, &sign("s", 1_000, "d", BODY)), (TIMESTAMP, "1000"), (DELIVERY, "d")]);
        let proof = Proof::read(&given, Scheme::Laneway).expect("a proof");
        assert!(proof.is_of(1_000) && proof.is_of(1_300) && proof.is_of(700));
        assert!(!proof.is_of(1_301) && !proof.is_of(699) && !proof.is_of(i64::MIN) && !proof.is_of(i64::MAX));
    }

    #[test]
    fn github_signs_the_body() {
        // From GitHub's own description of its webhooks.
        let given = headers(&[
            (GITHUB_SIGNATURE, "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
            (GITHUB_DELIVERY, "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        ]);
        let proof = Proof::read(&given, Scheme::Github).expect("a proof");
        assert!(proof.holds("It's a Secret to Everybody", b"Hello, World!"));
        assert!(!proof.holds("It's a Secret to Everybody", b"Hello, World?"));
    }

    #[test]
    fn what_is_not_as_it_has_to_be_is_no_proof() {
        let good = sign("s", 1, "d", BODY);
        let upper = "v1=".to_owned() + &"0".repeat(63);
        let long = "d".repeat(201);
        for sent in [
            vec![],
            vec![(SIGNATURE, good.as_str()), (TIMESTAMP, "1")],
            vec![(SIGNATURE, &good), (DELIVERY, "d")],
            vec![(SIGNATURE, &good), (TIMESTAMP, "+1"), (DELIVERY, "d")],
            vec![(SIGNATURE, &good), (TIMESTAMP, "1.0"), (DELIVERY, "d")],
            vec![(SIGNATURE, &good[3..]), (TIMESTAMP, "1"), (DELIVERY, "d")],
            vec![(SIGNATURE, &upper), (TIMESTAMP, "1"), (DELIVERY, "d")],
            vec![(SIGNATURE, &good), (TIMESTAMP, "1"), (DELIVERY, "d e")],
            vec![(SIGNATURE, &good), (TIMESTAMP, "1"), (DELIVERY, "")],
            vec![(SIGNATURE, &good), (TIMESTAMP, "1"), (DELIVERY, &long)],
        ] {
            assert_eq!(Proof::read(&headers(&sent), Scheme::Laneway), None, "{sent:?}");
        }
    }
}
