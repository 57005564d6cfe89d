//! Effects of functions: the same as `laneway effect` is to a process, for a future of the program that embeds Laneway.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use laneway_core::effect::{BadEffect, EffectId, EffectStatus, MAX_STDOUT, OnUnknown};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::desk::{Answer, Desk, Ended, Refused};

/// The effects of one attempt of a function ([`crate::function::Call`]).
#[derive(Debug, Clone, Default)]
pub struct Effects {
    desk: Option<Arc<Desk>>,
}

/// One of them, about to be run.
#[derive(Debug)]
pub struct Effect<'a> {
    effects: &'a Effects,
    name: String,
    key: String,
    on_unknown: OnUnknown,
}

/// Why an effect has no result.
#[derive(Debug, thiserror::Error)]
pub enum EffectError<E> {
    /// It ran, and failed: it did not happen, and whoever asks next runs it again.
    #[error("{0}")]
    Failed(E),
    #[error(transparent)]
    Name(#[from] BadEffect),
    /// It was started, and nobody knows whether it happened.
    #[error("{0}")]
    Unknown(String),
    /// It was not run, or its end was not recorded.
    #[error("{0}")]
    Refused(String),
    /// What is recorded, or is to be, is not of that type.
    #[error("its result cannot be recorded, or read back: {0}")]
    Result(String),
}

impl Effects {
    pub(crate) fn at(desk: Arc<Desk>) -> Self {
        Self { desk: Some(desk) }
    }

    pub(crate) fn desk(&self) -> Option<&Arc<Desk>> {
        self.desk.as_ref()
    }

    /// An effect of this step by its name.
    pub fn named(&self, name: &str) -> Effect<'_> {
        Effect { effects: self, name: name.to_owned(), key: String::new(), on_unknown: OnUnknown::Fail }
    }
}

impl Effect<'_> {
    /// Tells it from others of the same name.
    #[must_use]
    pub fn key(mut self, key: impl fmt::Display) -> Self {
        self.key = key.to_string();
        self
    }

    /// One that can happen twice runs again where nobody knows whether it has happened.
    #[must_use]
    pub fn retry_unknown(mut self) -> Self {
        self.on_unknown = OnUnknown::Retry;
        self
    }

    /// Runs it, unless it has happened: then what is recorded comes back. It is given a word that is the same in every attempt, for
    /// services that take an idempotency key. Its result is recorded as JSON, up to 256 KiB of it, masked as what steps print.
    pub async fn run<T, E, F, R>(self, effect: F) -> Result<T, EffectError<E>>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce(String) -> R,
        R: Future<Output = Result<T, E>>,
    {
        let id = EffectId::new(&self.name, &self.key)?;
        let Some(desk) = &self.effects.desk else {
            return Err(EffectError::Refused("effects are recorded in runs only".to_owned()));
        };
        let (hold, granted) = match desk.begin(id, self.on_unknown).await.map_err(refused)? {
            Answer::Recorded(result) => return read(&result.stdout),
            Answer::Run(hold, granted) => (hold, granted),
        };
        let begun = Instant::now();
        let ended = |status, exit_code, stdout| Ended {
            status,
            exit_code,
            stdout,
            output: Vec::new(),
            took: Some(begun.elapsed()),
        };
        match effect(granted.token).await {
            Err(error) => {
                hold.commit(ended(EffectStatus::Failed, 1, Vec::new())).await.map_err(refused)?;
                Err(EffectError::Failed(error))
            }
            Ok(value) => {
                // What cannot be written down is told by its size, as what is too large is.
                let text = serde_json::to_vec(&value).unwrap_or_else(|_| vec![0; MAX_STDOUT + 1]);
                let result = hold.commit(ended(EffectStatus::Done, 0, text)).await.map_err(refused)?;
                read(&result.stdout)
            }
        }
    }
}

/// What a person has settled has no result, which is `null`.
fn read<T: DeserializeOwned, E>(stdout: &[u8]) -> Result<T, EffectError<E>> {
    let text: &[u8] = if stdout.is_empty() { b"null" } else { stdout };
    serde_json::from_slice(text).map_err(|error| EffectError::Result(error.to_string()))
}

fn refused<E>(refused: Refused) -> EffectError<E> {
    match refused {
        Refused::Unknown { .. } => EffectError::Unknown(refused.to_string()),
        Refused::Lacking { .. }
        | Refused::Stopping
        | Refused::ClaimLost
        | Refused::Taken { .. }
        | Refused::Store(_) => EffectError::Refused(refused.to_string()),
    }
}
