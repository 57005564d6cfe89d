//! What goes over the wire, and what `--json` prints: one shape for one thing. Written and read by this program and by
//! others, so fields are only ever added. Never domain types: those change when the product does.

mod access;
mod artifact;
mod cache;
mod effect;
mod explain;
mod files;
mod graph;
mod integer;
mod line;
mod node;
mod overview;
mod pool;
mod run;
mod secret;
mod sign_in;
mod signal;
mod submit;
mod trigger;
mod validate;
mod worker;
mod workflow;

use std::borrow::Cow;
use std::fmt;

use laneway_core::reason::Reason;
use laneway_core::role::Role;
use laneway_core::time::Millis;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub use access::{
    AuditEntry, AuditLog, CreateToken, CreatedToken, Revoked, RotateToken, RotatedToken, Token, TokenList,
};
pub use artifact::{Artifact, ArtifactList};
pub use cache::{CacheChange, CacheCleared, CacheEntry, CacheList, CacheMiss};
pub use effect::{
    BeginEffect, BegunEffect, CommitEffect, CommittedEffect, Effect, EffectAnswer, EffectEndWord, EffectFate,
    EffectList, Settle, SettleEffect, SettledEffect, TaskEffect,
};
pub use explain::{
    Attempt, AttemptList, ExplainedRun, ExplainedStep, ExplainedTask, Link, StepFiles, StepLayer,
    TaskContainer,
};
pub use files::{ChangedFile, ChangedFiles, ChangedKind};
pub use graph::{Graph, GraphEdge, GraphGroup, GraphNode};
pub use line::{InLine, LimitLine, Lock, LockList, OrderLine, Standing};
pub use node::{
    ActiveClaim, Claimed, Drained, Limit, LimitList, Node, NodeEventList, NodeList, Removed, SetLimit,
    Workers, labels,
};
pub use overview::{Ended, Minute, Overview, OverviewRuns, Waiting};
pub use pool::{AskedNode, AskedPool, DrainPool, Pool, PoolEventList, PoolList, WarmContainer, WarmPool};
pub use run::{
    Cause, EventList, Holder, ParentStep, Place, Run, RunList, RunSummary, SetAside, Task, TaskList,
};
pub use secret::{SecretList, SecretSet, SetSecret, StoredSecret};
pub use sign_in::{MakeCode, Me, SignIn, SignInCode};
pub use signal::{Signal, SignalResult, Signaled, Wait};
pub use submit::{Advanced, Cancel, Canceled, LogPage, LogPiece, Paused, Reopened, Retry, Submit, Submitted};
pub use trigger::{Trigger, TriggerList, TriggersPaused};
pub use validate::{Fault, Validate, Validated};
pub(crate) use worker::millis;
pub use worker::{
    AddToLog, AddedToLog, AskForWork, ClaimFate, ClaimWord, Claims, EndReason, FateWord, Fates, FinishTasks,
    Left, LogFate, Output, OutputStream, Register, Registered, Renew, RenewedWorker, StopTask, TaskEnd,
    TaskResult, Work, WorkerTask,
};
pub use workflow::{
    Applied, Apply, Brought, Definition, Health, LastRun, Outcome, Param, VersionList, Workflow,
    WorkflowList, WorkflowSummary,
};

/// A moment, written as RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Millis);

impl From<Millis> for Moment {
    fn from(at: Millis) -> Self {
        Self(at)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let moment: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self(Millis(moment.as_millisecond())))
    }
}

impl PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Moment {}

/// How roles are described.
fn role() -> RefOr<Schema> {
    let words = Role::ALL.iter().map(|role| role.as_str());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}

/// A role with which a person signs in, or none.
fn role_of_a_person() -> RefOr<Schema> {
    let people = Role::ALL.iter().filter(|role| **role != Role::Worker);
    let words = people.map(|role| serde_json::Value::from(role.as_str())).chain([serde_json::Value::Null]);
    let kinds = SchemaType::from_iter([Type::String, Type::Null]);
    ObjectBuilder::new().schema_type(kinds).enum_values(Some(words)).into()
}

/// How the words of `Reason` are described. Of that itself nothing can be derived here.
struct ReasonWord;

impl PartialSchema for ReasonWord {
    fn schema() -> RefOr<Schema> {
        let words = Reason::ALL.iter().map(|reason| reason.as_str());
        let about = "A stable word for why a task ended as it did; programs decide by it";
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(about))
            .enum_values(Some(words))
            .into()
    }
}

impl ToSchema for ReasonWord {
    fn name() -> Cow<'static, str> {
        "Reason".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_reads_back_as_it_was_written() {
        let moment = Moment(Millis(1_700_000_000_123));
        let text = serde_json::to_string(&moment).expect("a string");
        assert_eq!(text, r#""2023-11-14T22:13:20.123Z""#);
        assert_eq!(serde_json::from_str::<Moment>(&text).expect("a moment"), moment);
        assert!(serde_json::from_str::<Moment>(r#""yesterday""#).is_err());
    }
}
