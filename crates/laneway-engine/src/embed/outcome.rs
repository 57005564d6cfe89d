//! What became of a run, with outputs as types.

use laneway_core::id::RunId;
use laneway_core::run_state::{RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Error;

/// A run that has ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    state: RunState,
}

impl Outcome {
    pub(super) fn new(state: RunState) -> Self {
        Self { state }
    }

    pub fn run(&self) -> RunId {
        self.state.run
    }

    pub fn status(&self) -> RunStatus {
        self.state.status
    }

    pub fn has_succeeded(&self) -> bool {
        self.state.status == RunStatus::Succeeded
    }

    /// Why it did not succeed: which step failed, and how.
    pub fn reason(&self) -> Option<&str> {
        self.state.reason.as_deref()
    }

    /// An error unless it succeeded.
    pub fn ok(self) -> Result<Self, Error> {
        match self.state.status {
            RunStatus::Succeeded => Ok(self),
            status => {
                Err(Error::NotSucceeded { run: self.state.run, status, why: self.state.reason.clone() })
            }
        }
    }

    /// How a step ended, in all that is known of it.
    pub fn task(&self, step: &str) -> Result<&TaskState, Error> {
        let found = self.state.tasks.iter().find(|task| task.step == step);
        found.ok_or_else(|| Error::NoSuchStep { run: self.state.run, step: step.to_owned() })
    }

    /// What the items of a step gave, in their order; nothing of those that did not succeed.
    fn list(&self, step: &str) -> Value {
        let is_of = |task: &&TaskState| task.item.as_ref().is_some_and(|item| item.of == step);
        let output = |task: &TaskState| match task.status == TaskStatus::Succeeded {
            true => Value::Object(task.output.clone()),
            false => Value::Null,
        };
        Value::Array(self.state.tasks.iter().filter(is_of).map(output).collect())
    }

    /// What a step gave, as the type that its function returned; of a step with `for_each` a list of that.
    pub fn output<T: DeserializeOwned>(&self, step: &str) -> Result<T, Error> {
        let output = match self.task(step)?.items {
            None => Value::Object(self.task(step)?.output.clone()),
            Some(_) => self.list(step),
        };
        // A function that returns nothing has the output of one that returns an empty object.
        let read = serde_json::from_value(output.clone());
        let read = read.or_else(|error| match output.as_object() {
            Some(fields) if fields.is_empty() => serde_json::from_value(Value::Null).map_err(|_| error),
            _ => Err(error),
        });
        read.map_err(|source| Error::Output { step: step.to_owned(), source })
    }
}
