//! What remote workers say and are told (docs/reference/remote-workers.md). A claim is one word, `RUN.POSITION.ATTEMPT`, which
//! a worker gets with a task and gives back as it is; together with the session of the address it is the fence. Where claims of the
//! task were given back before, its generation is behind the attempt. Where none was, the word is what an older service expects.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use laneway_core::id::{RunId, SessionId};
use laneway_core::reason::Reason;
use laneway_store::{ClaimRef, Fate};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A worker that wants to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// Names it in lists, events and attempts; several may have the same.
    #[schema(value_type = Label)]
    pub name: String,
    /// The queues that it takes.
    #[schema(value_type = Vec<Label>, min_items = 1, max_items = 100)]
    pub queues: Vec<String>,
    /// How many tasks it does at once.
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub slots: u32,
    /// What `runs_on` and `prefers` of steps ask for.
    #[serde(default)]
    #[schema(value_type = BTreeMap<Label, Label>)]
    pub labels: BTreeMap<String, String>,
    /// Of its process; shown, and used for nothing.
    #[serde(default)]
    #[serde(deserialize_with = "super::integer::integer")]
    pub pid: u32,
}

/// A session that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Registered {
    #[schema(value_type = String, format = "uuid")]
    pub session: SessionId,
    /// So long it lives without being renewed.
    pub lease_ms: u64,
    /// So often it had better be renewed.
    pub renew_every_ms: u64,
    /// So long it may take to stop what it is told to stop.
    pub kill_grace_ms: u64,
}

/// A request for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskForWork {
    /// How many tasks it can start now; 0 to hear only what is to be stopped.
    #[serde(deserialize_with = "super::integer::integer")]
    pub max: u32,
    /// Wait so many seconds, up to 30, if there is nothing to tell.
    #[serde(default)]
    #[serde(deserialize_with = "super::integer::integer")]
    pub wait: u32,
    /// Everything that it holds: what it was given, and whose end was not acknowledged yet.
    #[schema(value_type = Vec<ClaimWord>)]
    pub holding: BTreeSet<ClaimWord>,
    /// What of that it is stopping already.
    #[serde(default)]
    #[schema(value_type = Vec<ClaimWord>)]
    pub stopping: BTreeSet<ClaimWord>,
}

/// What there is to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Work {
    pub tasks: Vec<WorkerTask>,
    pub stops: Vec<StopTask>,
    /// What it holds no longer: end it, and drop what comes of it.
    pub lost: Vec<ClaimWord>,
    /// It is given nothing more: somebody drained it.
    pub is_draining: bool,
}

/// A task for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerTask {
    pub claim: ClaimWord,
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub workflow: String,
    pub step: String,
    /// From 1 on.
    pub attempt: u32,
    pub queue: String,
    /// `with` of the step, evaluated.
    #[schema(value_type = Object)]
    pub input: Map<String, Value>,
    /// The parameters of the run.
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// How long it may take; nothing for as long as it likes.
    pub timeout_ms: Option<u64>,
    /// Fencing token of a step with a `lock`: larger than the token of every earlier holder.
    pub fence: Option<u64>,
}

/// Something that is to be stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopTask {
    pub claim: ClaimWord,
    /// canceled, aborted, run_timeout or timeout.
    pub reason: String,
}

/// What a worker has done so far, as it counts itself; shown, and used for nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Renew {
    /// How often it asked for work.
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(maximum = 1_000_000_000_000_000_u64)]
    pub asks: u64,
    /// How many tasks it got.
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(maximum = 1_000_000_000_000_000_u64)]
    pub claims: u64,
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(maximum = 1_000_000_000_000_000_u64)]
    pub succeeded: u64,
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(maximum = 1_000_000_000_000_000_u64)]
    pub failed: u64,
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(maximum = 1_000_000_000_000_000_u64)]
    pub canceled: u64,
    /// Given back, never started.
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(maximum = 1_000_000_000_000_000_u64)]
    pub returned: u64,
    /// Taken from it while it held them.
    #[serde(deserialize_with = "super::integer::integer")]
    #[schema(maximum = 1_000_000_000_000_000_u64)]
    pub lost: u64,
}

/// A session that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RenewedWorker {
    pub lease_ms: u64,
    /// Everything that it holds.
    pub held: Vec<ClaimWord>,
    pub stops: Vec<StopTask>,
    pub is_draining: bool,
}

/// Claims that a worker starts, or gives back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    #[schema(max_items = 1_000)]
    pub claims: Vec<ClaimWord>,
}

/// What became of each, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fates {
    pub results: Vec<ClaimFate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimFate {
    pub claim: ClaimWord,
    pub fate: FateWord,
    /// Of an end that was said before: how it was recorded then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why that was, or why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FateWord {
    /// Written by this call.
    Recorded,
    /// Written before: the answer to it was lost.
    Repeated,
    /// It is held no longer, and nothing was written.
    Lost,
    /// Nothing can be written for it now; `detail` says why.
    Refused,
}

/// Output of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddToLog {
    pub claim: ClaimWord,
    /// 0, or `next_offset` of the answer before.
    #[serde(deserialize_with = "super::integer::integer")]
    pub offset: u64,
    pub pieces: Vec<Output>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    #[serde(default)]
    pub stream: OutputStream,
    /// As it was printed, line breaks included.
    pub text: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    #[default]
    Stdout,
    Stderr,
}

/// What became of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedToLog {
    pub fate: LogFate,
    /// Where the next one goes on.
    pub next_offset: u64,
    /// The cap is reached; whatever comes is dropped.
    pub is_full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFate {
    Recorded,
    Lost,
    /// The log does not go on at that offset, but at `next_offset`; nothing was written.
    Elsewhere,
}

/// How tasks ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishTasks {
    #[schema(max_items = 1_000)]
    pub results: Vec<TaskResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskResult {
    pub claim: ClaimWord,
    pub status: TaskEnd,
    /// Of one that succeeded: what later steps read, up to 256 KiB.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub output: Map<String, Value>,
    /// Of one that failed: `error`, `exit`, `signal`, `timeout`, `start_failed` or `bad_output`. The default is `error`.
    /// Of one that was canceled: the reason of its stop.
    #[serde(default)]
    pub reason: Option<EndReason>,
    /// Of one that failed: why, in words.
    #[serde(default)]
    pub detail: Option<String>,
    #[serde(default)]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    #[schema(minimum = -2_147_483_648_i64, maximum = 2_147_483_647_i64)]
    pub exit_code: Option<i32>,
    /// By the worker's own watch.
    #[serde(default)]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    pub took_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    Succeeded,
    Failed,
    /// It was stopped because the service asked for it.
    Canceled,
}

/// Why a task ended, as its worker reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    Error,
    Exit,
    Signal,
    Timeout,
    StartFailed,
    BadOutput,
    Canceled,
    Aborted,
    RunTimeout,
}

impl EndReason {
    /// Returns the reason of a failure, or `None` for a word that only a stop has.
    pub(crate) fn of_failure(self) -> Option<Reason> {
        match self {
            Self::Error => Some(Reason::Error),
            Self::Exit => Some(Reason::Exit),
            Self::Signal => Some(Reason::Signal),
            Self::Timeout => Some(Reason::Timeout),
            Self::StartFailed => Some(Reason::StartFailed),
            Self::BadOutput => Some(Reason::BadOutput),
            Self::Canceled | Self::Aborted | Self::RunTimeout => None,
        }
    }
}

/// A session that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Left {
    #[schema(value_type = String, format = "uuid")]
    pub session: SessionId,
    /// How many tasks it still held; they go on elsewhere.
    pub returned: usize,
}

/// A claim without its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimWord {
    pub run: RunId,
    pub position: u32,
    pub attempt: u32,
    pub generation: u32,
}

impl ClaimWord {
    pub fn of(claim: &ClaimRef) -> Self {
        let ClaimRef { run, position, attempt, generation, session: _ } = *claim;
        Self { run, position, attempt, generation }
    }

    pub fn held_by(self, session: SessionId) -> ClaimRef {
        let Self { run, position, attempt, generation } = self;
        ClaimRef { run, position, attempt, generation, session }
    }

    /// Reads a word, and rejects what its pattern rejects.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '.');
        let id = parts.next()?;
        let run = RunId::parse(id).filter(|run| run.to_string() == id)?;
        let (position, attempt) = (number(parts.next()?)?, number(parts.next()?)?);
        let generation = parts.next().map_or(Some(attempt), number)?;
        Some(Self { run, position, attempt, generation })
    }
}

/// Reads a number as the pattern of claims has it: 1 to 9 digits.
fn number(digits: &str) -> Option<u32> {
    let is_short = (1..=9).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_short.then(|| digits.parse().ok()).flatten()
}

impl fmt::Display for ClaimWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.run, self.position, self.attempt)?;
        if self.generation == self.attempt { Ok(()) } else { write!(f, ".{}", self.generation) }
    }
}

impl Serialize for ClaimWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClaimWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("a claim is a word that came with a task"))
    }
}

impl PartialSchema for ClaimWord {
    fn schema() -> RefOr<Schema> {
        let about = "Names a task that a worker holds; given back as it came";
        let pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\.[0-9]{1,9}\\.[0-9]{1,9}(\\.[0-9]{1,9})?$";
        ObjectBuilder::new().schema_type(Type::String).description(Some(about)).pattern(Some(pattern)).into()
    }
}

impl ToSchema for ClaimWord {}

/// Describes labels and names of queues, as `is_label` accepts them.
pub(crate) struct Label;

impl PartialSchema for Label {
    fn schema() -> RefOr<Schema> {
        let about = "1 to 100 letters, digits and `_ - . / :`";
        let text = ObjectBuilder::new().schema_type(Type::String).description(Some(about));
        text.min_length(Some(1)).max_length(Some(100)).pattern(Some("^[-A-Za-z0-9_./:]+$")).into()
    }
}

impl ToSchema for Label {
    fn name() -> Cow<'static, str> {
        "Label".into()
    }
}

impl From<Fate> for FateWord {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Recorded => Self::Recorded,
            Fate::Repeated => Self::Repeated,
            Fate::ClaimLost => Self::Lost,
        }
    }
}

impl ClaimFate {
    pub(crate) fn new(claim: ClaimWord, fate: FateWord) -> Self {
        Self { claim, fate, status: None, detail: None }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_is_one_word_that_reads_back() {
        let text = "\"0199f2a0-0000-7000-8000-1a2b3c4d5e6f.7.2\"";
        let claim: ClaimWord = serde_json::from_str(text).expect("a claim");
        assert_eq!((claim.position, claim.attempt), (7, 2));
        assert_eq!(serde_json::to_string(&claim).expect("text"), text);
        for bad in [
            "",
            "x.1.1",
            "0199f2a0-0000-7000-8000-1a2b3c4d5e6f.1",
            "0199F2A0-0000-7000-8000-1A2B3C4D5E6F.1.1",
            "0199f2a0000070008000-1a2b3c4d5e6f.1.1",
        ] {
            assert_eq!(ClaimWord::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn claim_word_has_its_generation_only_where_that_is_not_its_attempt() {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        let word = |attempt, generation| ClaimWord { run, position: 3, attempt, generation };
        for (word, text) in [(word(2, 2), format!("{run}.3.2")), (word(2, 7), format!("{run}.3.2.7"))] {
            assert_eq!(word.to_string(), text);
            assert_eq!(ClaimWord::parse(&text), Some(word));
        }
        for wrong in ["", ".3", ".3.x", ".3.+2", ".3.2.x", ".3.2.7.1", ".3.2.", ".3.1234567890"] {
            assert_eq!(ClaimWord::parse(&format!("{run}{wrong}")), None, "{wrong}");
        }
    }
}
