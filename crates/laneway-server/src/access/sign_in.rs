//! Codes with which a person signs in at the web page: good once and not for long, in exchange for a token. They are kept in the
//! memory of the process that made them, as hashes: one that nobody used is good for nothing once that has ended, whoever finds it
//! in a log. The token that comes of one is the store's, like every other.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use laneway_core::role::Role;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use super::token::hex;

/// How long a code is good.
pub const CODE_LASTS: Duration = Duration::from_secs(60 * 60);

/// Codes at once of each who makes them; with more, his oldest go. Nobody drives out those of others.
const MOST: usize = 10;

/// Of the code, and of what tells one token that came of a code from the others.
const CODE_BYTES: usize = 32;
const NAME_BYTES: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    hash: [u8; 32],
    given: Given,
}

/// What a code is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) role: Role,
    /// Who asked for it.
    pub(crate) by: String,
    /// The token with which it was asked for: one that was revoked since lets nobody in, and what comes of the code ends with it.
    pub(crate) token: Option<String>,
    /// What the token is called that comes of it.
    pub(crate) name: String,
    /// How long.
    pub(crate) until: Instant,
}

impl Codes {
    pub(crate) fn mint(
        &self,
        role: Role,
        (by, token): (&str, Option<&str>),
        now: Instant,
    ) -> io::Result<String> {
        let mut random = [0; CODE_BYTES + NAME_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let (code, name) = random.split_at(CODE_BYTES);
        let code = hex(code);
        let (name, until) = (token_name(name), now + CODE_LASTS);
        let token = token.map(str::to_owned);
        let given = Given { role, by: by.to_owned(), token, name, until };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|one| one.given.until > now);
        while kept.iter().filter(|one| one.given.by == by).count() >= MOST
            && let Some(oldest) = kept.iter().position(|one| one.given.by == by)
        {
            kept.remove(oldest);
        }
        kept.push_back(Kept { hash: hash(&code), given });
        Ok(code)
    }

    /// What it is good for, the first time; nothing after that.
    pub(crate) fn take(&self, code: &str, now: Instant) -> Option<Given> {
        let asked = hash(code);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|one| one.given.until > now);
        let at = kept.iter().position(|one| one.hash.ct_eq(&asked).into())?;
        kept.remove(at).map(|one| one.given)
    }

    /// As if it had not been taken: nothing came of it, through no fault of who used it. A token of its name may be there all the
    /// same, so the next one has another.
    pub(crate) fn put_back(&self, code: &str, given: Given) {
        let mut random = [0; NAME_BYTES];
        let name = getrandom::fill(&mut random).map(|()| token_name(&random));
        let given = Given { name: name.unwrap_or_else(|_| given.name.clone()), ..given };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // In front: it is older than those that were made since.
        kept.push_front(Kept { hash: hash(code), given });
    }
}

fn token_name(random: &[u8]) -> String {
    format!("web-{}", hex(random))
}

fn hash(code: &str) -> [u8; 32] {
    Sha256::digest(code.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mint(codes: &Codes, now: Instant) -> String {
        codes.mint(Role::Viewer, ("ada", None), now).expect("random")
    }

    #[test]
    fn code_is_good_once_and_not_for_long() {
        let (codes, now) = (Codes::default(), Instant::now());
        let code = mint(&codes, now);
        assert_eq!(codes.take("", now), None);
        assert_eq!(codes.take(&code.to_uppercase(), now), None);
        let given = codes.take(&code, now).expect("it is good");
        assert_eq!((given.role, given.by.as_str()), (Role::Viewer, "ada"));
        assert!(given.name.starts_with("web-") && !code.contains(&given.name[4..]), "{given:?}");
        assert_eq!(codes.take(&code, now), None, "it was used");
        let old = mint(&codes, now);
        assert_eq!(codes.take(&old, now + CODE_LASTS), None, "it is old");
    }

    #[test]
    fn codes_are_bounded_for_each_who_makes_them() {
        let (codes, now) = (Codes::default(), Instant::now());
        let other = codes.mint(Role::Viewer, ("bob", None), now).expect("random");
        let all: Vec<String> = (0..=MOST).map(|_| mint(&codes, now)).collect();
        assert_eq!(codes.take(&all[0], now), None, "the oldest went");
        assert!(codes.take(&all[1], now).is_some() && codes.take(&all[MOST], now).is_some());
        assert!(codes.take(&other, now).is_some(), "those of another stay");
    }

    #[test]
    fn code_that_was_put_back_is_good_once_more_and_no_longer() {
        let (codes, now) = (Codes::default(), Instant::now());
        let code = mint(&codes, now);
        let first = codes.take(&code, now).expect("it is good");
        codes.put_back(&code, first.clone());
        assert_eq!(codes.take(&code, now + CODE_LASTS), None, "its hour goes on");
        codes.put_back(&code, first.clone());
        let again = codes.take(&code, now).expect("it is good again");
        assert_ne!(again.name, first.name);
        assert_eq!(codes.take(&code, now), None);
    }
}
