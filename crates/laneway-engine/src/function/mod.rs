//! The function engine: steps that are async functions of the program which embeds Laneway. They run on its own
//! runtime, under the same claims, gates, retries and timeouts as processes.
//!
//! ```
//! # use laneway_engine::function::{Call, Functions};
//! #[derive(serde::Deserialize)]
//! struct Input { width: u32 }
//!
//! let functions = Functions::new().add("resize", |call: Call<Input>| async move {
//!     Ok::<_, std::io::Error>(serde_json::json!({ "bytes": call.input.width * 3 }))
//! });
//! assert!(functions.has("resize"));
//! ```
//! A stopped function is dropped at its next `.await`: one that blocks its thread blocks the worker. `execute.rs`
//! runs one attempt.

mod execute;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use laneway_core::id::RunId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use execute::{Ending, Job, execute};

use crate::effect::Effects;

/// The function that sends callbacks: what it is given is in `worker/prepare.rs`.
pub use laneway_core::class::POST;

/// What a function is called with.
#[derive(Debug, Clone)]
pub struct Call<I> {
    /// The step's `with`.
    pub input: I,
    pub run: RunId,
    pub step: String,
    /// Counts up from 1: a later attempt can tell that it is one.
    pub attempt: u32,
    /// Fencing token of a step with a `lock`: larger than the token of every earlier holder.
    pub fence: Option<u64>,
    /// What it does to the world, once: `call.effects.named("charge").run(|token| async { … }).await`.
    pub effects: Effects,
}

/// The functions of a program, by the name that a step's `function` gives.
#[derive(Clone, Default)]
pub struct Functions {
    by_name: Arc<BTreeMap<String, Handler>>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Map<String, Value>, Failure>> + Send>>;
type Handler = Arc<dyn Fn(Call<Value>) -> Answer + Send + Sync>;

/// Why a function has no output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("its input does not fit: {0}")]
    Input(serde_json::Error),
    #[error("{0}")]
    Said(String),
    #[error("its output is {0}; return an object, or nothing")]
    Output(String),
}

impl Functions {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function, in the place of a former one of that name. Its input is read from the step's `with`; its
    /// output, an object or nothing, is the step's output.
    #[must_use]
    pub fn add<I, O, E, F, R>(mut self, name: &str, function: F) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        E: fmt::Display,
        F: Fn(Call<I>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |call| {
            let Call { input, run, step, attempt, fence, effects } = call;
            match serde_json::from_value(input) {
                Ok(input) => {
                    let answer = function(Call { input, run, step, attempt, fence, effects });
                    Box::pin(async move {
                        output(answer.await.map_err(|error| Failure::Said(error.to_string()))?)
                    })
                }
                Err(error) => Box::pin(std::future::ready(Err(Failure::Input(error)))),
            }
        });
        Arc::make_mut(&mut self.by_name).insert(name.to_owned(), handler);
        self
    }

    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// In the order of the alphabet.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    fn get(&self, name: &str) -> Option<Handler> {
        self.by_name.get(name).cloned()
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

fn output(output: impl Serialize) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(output) {
        Ok(Value::Object(output)) => Ok(output),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Err(Failure::Output("a single value".to_owned()))
        }
        Ok(Value::Array(_)) => Err(Failure::Output("a list".to_owned())),
        Err(error) => Err(Failure::Output(format!("not JSON ({error})"))),
    }
}

#[cfg(test)]
mod tests;
