//! Records when tokens were last used: in the background, and for each token at most once per `TOKEN_USE_GRAIN`, so that a read
//! stays a read. What could not be recorded is recorded with a later request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use laneway_store::model::TOKEN_USE_GRAIN;
use tokio::time::Instant;

use super::ReadToken;
use crate::service::App;

/// When this process last recorded the use of each token. Only tokens that were accepted are in it.
#[derive(Debug, Default)]
pub(crate) struct TokenUses(Mutex<HashMap<String, Instant>>);

impl TokenUses {
    pub(crate) fn note(&self, app: &App, used: &ReadToken) {
        if !used.token.is_use_stale(used.age()) || !self.is_due(&used.token.id, Instant::now()) {
            return;
        }
        let (app, id) = (app.clone(), used.token.id.clone());
        tokio::spawn(async move {
            if let Err(error) = app.store.note_token_use(&id).await {
                tracing::debug!(%error, "the use of a token could not be recorded");
                app.token_uses.forget(&id);
            }
        });
    }

    /// Whether this request is the one that records it: requests that come at once read the same row.
    fn is_due(&self, id: &str, now: Instant) -> bool {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.retain(|_, at| now.duration_since(*at) < TOKEN_USE_GRAIN);
        if recorded.contains_key(id) {
            return false;
        }
        recorded.insert(id.to_owned(), now);
        true
    }

    fn forget(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_recorded_once_a_minute_for_each_token() {
        let (uses, now) = (TokenUses::default(), Instant::now());
        assert!(uses.is_due("a", now));
        assert!(!uses.is_due("a", now), "another request at the same time");
        assert!(uses.is_due("b", now));
        assert!(!uses.is_due("a", now + TOKEN_USE_GRAIN / 2));
        assert!(uses.is_due("a", now + TOKEN_USE_GRAIN));
        uses.forget("a");
        assert!(uses.is_due("a", now + TOKEN_USE_GRAIN), "it could not be recorded");
    }
}
