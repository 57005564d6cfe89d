//! One attempt of a function, from its call to its end: it returns, it fails, it panics, or it is stopped.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::output::LIMIT;
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Call, Failure, Functions};
use crate::effect::Effects;
use crate::process::StopSignal;

/// What is to be called, with its values.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) input: Map<String, Value>,
    pub(crate) run: RunId,
    pub(crate) step: String,
    pub(crate) attempt: u32,
    pub(crate) fence: Option<u64>,
    pub(crate) effects: Effects,
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Ending {
    Returned(Map<String, Value>),
    Failed(String),
    BadOutput(String),
    /// There is no function of that name.
    Unknown(String),
    TimedOut,
    Stopped,
}

/// Calls the function and sees it to its end. Whatever happens, it does not run afterwards; a function that was
/// stopped is dropped where it waits.
pub(crate) async fn execute(functions: &Functions, job: Job, stop: &StopSignal) -> Ending {
    let Some(function) = functions.get(&job.name) else {
        return Ending::Unknown(unknown(functions, &job.name));
    };
    let deadline = job.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let Job { input, run, step, attempt, fence, effects, .. } = job;
    // A task of its own, so that a panic is its own as well; dropping the set ends it.
    let mut calls = JoinSet::new();
    let call = Call { input: Value::Object(input), run, step, attempt, fence, effects };
    calls.spawn(async move { function(call).await });
    tokio::select! {
        biased;
        Some(ended) = calls.join_next() => match ended {
            Ok(Ok(output)) => checked(output),
            Ok(Err(failure @ Failure::Output(_))) => Ending::BadOutput(failure.to_string()),
            Ok(Err(failure @ (Failure::Input(_) | Failure::Said(_)))) => Ending::Failed(failure.to_string()),
            Err(error) => Ending::Failed(panicked(error)),
        },
        () = stop.asked() => Ending::Stopped,
        () = at(deadline) => Ending::TimedOut,
    }
}

fn checked(output: Map<String, Value>) -> Ending {
    if output.is_empty() {
        return Ending::Returned(output);
    }
    let size = serde_json::to_string(&output).map_or(usize::MAX, |text| text.len());
    if size > LIMIT {
        return Ending::BadOutput(format!("its output is {size} bytes long, and {LIMIT} are kept at most"));
    }
    Ending::Returned(output)
}

fn unknown(functions: &Functions, name: &str) -> String {
    let known: Vec<&str> = functions.names().collect();
    match known.as_slice() {
        [] => format!("this program has no function `{name}`, nor any other"),
        known => format!("this program has no function `{name}`; it has: {}", known.join(", ")),
    }
}

fn panicked(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "the function was ended from outside".to_owned() };
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the function panicked: {}", said.unwrap_or_else(|| "it did not say why".to_owned()))
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
