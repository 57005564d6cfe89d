//! Errors of a store. The message names the object, and `hint` proposes what to do next. The
//! predicates at the end classify errors for retries and for quarantine. See
//! `docs/design/faults.md`.

use std::fmt;
use std::path::PathBuf;

use laneway_core::effect::EffectId;
use laneway_core::id::{RunId, SessionId};
use laneway_core::reason::Reason;
use laneway_core::state::{Illegal, RunStatus, TaskStatus};
use laneway_core::wait::BadSignal;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    // ---- the store is unusable ----
    #[error("there is no store at {}", path.display())]
    Missing { path: PathBuf },
    #[error("{} is not a Laneway store", path.display())]
    NotAStore { path: PathBuf },
    #[error("{} was written by a newer Laneway: its schema is {found}, this program knows {known}", path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error(
        "{} must be changed for this program in a way that older ones cannot go on with, and nodes of those are alive: {}",
        path.display(),
        nodes.join(", ")
    )]
    OlderLives { path: PathBuf, nodes: Vec<String> },
    /// Opened by a process that does not migrate. Nothing was changed.
    #[error("{} was written by an older Laneway: its schema is {found}, this program needs {known}", path.display())]
    NeedsMigration { path: PathBuf, found: i64, known: i64 },
    /// Nothing was changed.
    #[error("{} must be brought from schema {found} to {known}, and this role has no right to do so: {why}", path.display())]
    MayNotMigrate { path: PathBuf, found: i64, known: i64, why: String },
    #[error("{} cannot be written: {why}", path.display())]
    ReadOnly { path: PathBuf, why: String },
    #[error("the file system of {} cannot lock files: {why}", path.display())]
    CannotLock { path: PathBuf, why: String },
    #[error("the disk of {} is full", path.display())]
    Full { path: PathBuf },
    #[error("{} is held by another process for too long", path.display())]
    Busy { path: PathBuf },
    #[error("{}: {why}", path.display())]
    Io { path: PathBuf, why: String },
    #[error("{} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("a stored {what} cannot be read: {why}")]
    Unreadable { what: String, why: String },
    #[error("event {seq} of {of} cannot be read: {why}")]
    UnreadableEvent { of: Teller, seq: u64, why: String },
    /// In quarantine: nothing of the run is claimed, promoted or changed until it is released.
    #[error("run {run} is set aside: a stored {what} cannot be read: {why}")]
    SetAside { run: String, what: String, why: String },
    #[error("the store was closed: {why}")]
    Closed { why: String },
    #[error(
        "this program was built with SQLite {found}, which can corrupt a store; {wanted} or newer is needed"
    )]
    OldSqlite { found: String, wanted: &'static str },
    #[error("{address} cannot be reached: {why}")]
    Unreachable { address: String, why: String },
    #[error("{address} does not let us in: {why}")]
    Login { address: String, why: String },
    #[error("there is no database `{database}` at {address}")]
    NoDatabase { address: String, database: String },
    #[error("{address} is Postgres {found}; {wanted} or newer is needed")]
    OldPostgres { address: String, found: String, wanted: u32 },
    /// Nothing of the request was kept.
    #[error("the connection to {address} was lost: {why}")]
    Disconnected { address: String, why: String },
    /// The response to a commit was lost. The caller finds out by repeating the request: verbs may
    /// be repeated.
    #[error(
        "the connection to {address} was lost during a commit, and whether that was kept is not known: {why}"
    )]
    Unknown { address: String, why: String },
    #[error("{address} took too long: {why}")]
    TooSlow { address: String, why: String },
    #[error("{address} does not do what was asked: {why}")]
    Postgres { address: String, why: String },
    #[error("session {session} is over: another process found it dead and returned its tasks")]
    SessionOver { session: SessionId },
    #[error("{why}")]
    Address { why: String },
    #[error("{} was moved to {to}", path.display())]
    Moved { path: PathBuf, to: String },
    #[error("a move into {} is unfinished", path.display())]
    HalfMoved { path: PathBuf },
    #[error("{} cannot take part in the move: {why}", path.display())]
    CannotMove { path: PathBuf, why: String, advice: String },

    // ---- the request is rejected ----
    #[error("there is no run `{name}`")]
    NoSuchRun { name: String },
    #[error("`{name}` names more than one run: {}", candidates.join(", "))]
    AmbiguousRun { name: String, candidates: Vec<String> },
    #[error("run {} has no step `{step}`", run.short())]
    NoSuchStep { run: RunId, step: String, nearest: Option<String> },
    #[error("no workflow named `{name}` was applied to or run in this store")]
    NoSuchWorkflow { name: String },
    #[error("run {} has not ended: it is {status}", run.short())]
    NotEnded { run: RunId, status: RunStatus },
    #[error("run {} has not ended: the process that ran it is gone", run.short())]
    Interrupted { run: RunId },
    #[error("run {} has ended: it is {status}", run.short())]
    Ended { run: RunId, status: RunStatus },
    #[error("run {} belongs to {node}, which is alive", run.short())]
    Owned { run: RunId, node: String },
    #[error("run {} belongs to no single node: workers take its tasks", run.short())]
    Shared { run: RunId },
    #[error("nothing of run {} failed, was skipped or canceled", run.short())]
    NothingToRetry { run: RunId },
    #[error("run {} went on since: its last event is {last}, and {seen} was the last that you have seen", run.short())]
    WentOn { run: RunId, seen: u64, last: u64 },
    #[error("run {} does not go level by level", run.short())]
    NotLeveled { run: RunId },
    #[error("run {} goes on by itself", run.short())]
    GoesOn { run: RunId },
    #[error("a level of run {} ends as a whole, and this is a part of it", run.short())]
    PartOfLevel { run: RunId },
    #[error("step `{step}` of run {} is {status}; only a failed step can be skipped", run.short())]
    NotFailed { run: RunId, step: String, status: TaskStatus },
    #[error("step `{step}` of run {} waits for no signal", run.short())]
    NoSignal { run: RunId, step: String },
    #[error("step `{step}` of run {} waits for the signal `{expected}`, not for `{found}`", run.short())]
    OtherSignal { run: RunId, step: String, expected: String, found: String },
    #[error("step `{step}` of run {} waits no more: it is {status}{}", run.short(), because(*why))]
    NotWaiting { run: RunId, step: String, status: TaskStatus, why: Option<Reason> },
    #[error("step `{step}` of run {} has no effect {effect}", run.short())]
    NoSuchEffect { run: RunId, step: String, effect: EffectId },
    #[error("the effect {effect} of step `{step}` of run {} is running, in attempt {attempt}", run.short())]
    EffectRuns { run: RunId, step: String, effect: EffectId, attempt: u32 },
    #[error(transparent)]
    BadSignal(#[from] BadSignal),
    #[error(
        "the outputs of the items of `{step}` hold more than {} MiB together, which is too much to be read as one list",
        laneway_core::growth::MAX_OUTPUTS >> 20
    )]
    OutputsTooLarge { step: String },
    #[error("run {} is not set aside", run.short())]
    NotSetAside { run: RunId },
    #[error("{} is there already", path.display())]
    Exists { path: PathBuf },
    #[error("{} is no copy that `laneway backup` has written: {why}", path.display())]
    NotABackup { path: PathBuf, why: String },
    #[error("{} is another key to secrets than the one in the copy", path.display())]
    OtherSecretKey { path: PathBuf },
    #[error("the key `{key}` belongs to run {}, which differs: {differs}", run.short())]
    KeyTaken { key: String, run: RunId, differs: String },
    #[error("a run with the key `{key}` is just being submitted")]
    UnderWay { key: String },
    #[error("no node `{node}` is alive")]
    NoSuchNode { node: String },
    #[error("no node that is alive keeps a pool `{pool}`")]
    NoSuchPool { pool: String },
    #[error("node `{node}` keeps no pool `{pool}`")]
    NoSuchPoolAt { pool: String, node: String },
    #[error("workflow `{workflow}` has no pool `{pool}`")]
    NoSuchPoolOf { pool: String, workflow: String, has: Vec<String> },
    #[error("no node that is alive takes steps in containers")]
    NoContainers,
    #[error("node `{node}` takes no steps in containers")]
    NoContainersAt { node: String },
    #[error("the limit `{name}` is in use: {}", limit_use(*held, *waiting, *run))]
    LimitInUse { name: String, held: u32, waiting: u32, run: Option<RunId> },
    #[error("the workflow `{workflow}` is in use: {}", workflow_use(*runs, *triggers))]
    WorkflowInUse { workflow: String, runs: u64, triggers: u64 },
    #[error("no schedule or other trigger starts `{workflow}`")]
    NoTriggers { workflow: String },
    #[error("the webhook `{path}` is that of the workflow `{workflow}`")]
    PathTaken { path: String, workflow: String },
    #[error("`after` leads back to where it begins: {}", way.join(" -> "))]
    LeadsBack { way: Vec<String> },
    #[error("there is no limit `{name}`")]
    NoSuchLimit { name: String },
    #[error("there is no secret `{name}` in this store")]
    NoSuchSecret { name: String },
    #[error("there are no bytes {hash} in this store")]
    NoSuchBlob { hash: String },
    #[error("{size} bytes are too many to be kept together: at most {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("a token named `{name}` is there already")]
    TokenExists { name: String },
    #[error("no token named `{name}` is in use")]
    NoSuchToken { name: String },
    #[error("the workflow cannot be run: {why}")]
    NotRunnable { why: String },
    #[error("step {step} of run {} does not wait for that run any more", run.short())]
    NotWanted { run: RunId, step: String },
    #[error(transparent)]
    Illegal(#[from] Illegal),
}

/// A source of events. Each numbers its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Teller {
    Run(RunId),
    Nodes,
    Pools,
}

impl fmt::Display for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run {}", run.short()),
            Self::Nodes => f.write_str("nodes"),
            Self::Pools => f.write_str("pools"),
        }
    }
}

/// Processes one result of a list of which some parts may be unreadable, so that the rest is still
/// processed. Keeps the first such error in `kept` for the end of the list.
///
/// # Errors
/// Returns any other error at once.
pub(crate) fn put_off<T>(kept: &mut Result<()>, done: Result<T>) -> Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.is_about_what_is_stored() => {
            if kept.is_ok() {
                *kept = Err(error);
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Describes what uses a limit.
fn limit_use(held: u32, waiting: u32, run: Option<RunId>) -> String {
    match (held, waiting, run) {
        (0, 0, Some(run)) => format!("run {} has not ended and names it", run.short()),
        (held, waiting, _) => format!("{held} hold it and {waiting} wait for it"),
    }
}

/// Describes what uses a workflow.
fn workflow_use(runs: u64, triggers: u64) -> String {
    let runs = match runs {
        0 => None,
        1 => Some("1 run has not ended".to_owned()),
        runs => Some(format!("{runs} runs have not ended")),
    };
    let triggers = match triggers {
        0 => None,
        1 => Some("1 trigger fires".to_owned()),
        triggers => Some(format!("{triggers} triggers fire")),
    };
    runs.into_iter().chain(triggers).collect::<Vec<_>>().join(", and ")
}

/// Returns the reason in brackets, after a space.
fn because(why: Option<Reason>) -> String {
    why.map(|why| format!(" ({why})")).unwrap_or_default()
}

impl Error {
    /// Returns what is unreadable, and why, for the quarantine.
    pub(crate) fn in_two(&self) -> (String, String) {
        match self {
            Self::Unreadable { what, why } => (what.clone(), why.clone()),
            other => ("history".to_owned(), other.to_string()),
        }
    }

    /// Returns what to do next, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => {
                Some("run a workflow first, or name another store with --store".to_owned())
            }
            Self::NotAStore { .. } => {
                Some("name another file with --store; this one was left as it is".to_owned())
            }
            Self::Newer { .. } => Some("use the newer program; this one was left as it is".to_owned()),
            Self::OlderLives { .. } => Some(
                "stop them, and start this program again; until then they go on, and nothing was changed".to_owned(),
            ),
            Self::NeedsMigration { .. } => Some(
                "`laneway migrate` brings it there, and so does the next `laneway run`, `worker` or `serve` of this program"
                    .to_owned(),
            ),
            Self::MayNotMigrate { .. } => Some(
                "use `laneway migrate` with a role that owns the tables; nodes need no such right behind it".to_owned(),
            ),
            Self::ReadOnly { .. } => {
                Some("make the file and its directory writable, or put the store elsewhere, such as --store ~/laneway.db".to_owned())
            }
            Self::CannotLock { .. } => Some("put the store on a local file system with --store".to_owned()),
            Self::Full { .. } => Some("free some space; nothing that was recorded is lost".to_owned()),
            Self::Busy { .. } => Some("look for a stopped or stuck process that uses this store".to_owned()),
            Self::AmbiguousRun { .. } => Some("type more of the id".to_owned()),
            Self::NoSuchRun { name } if name == "last" => {
                Some("`laneway runs` lists all, also those of triggers, hooks and steps".to_owned())
            }
            Self::NoSuchRun { .. } => Some("`laneway runs` lists them".to_owned()),
            Self::NoSuchStep { nearest: Some(name), .. } => Some(format!("did you mean `{name}`?")),
            Self::NoSuchStep { run, nearest: None, .. } => {
                Some(format!("`laneway show {}` lists its steps", run.short()))
            }
            Self::NotEnded { run, .. } => {
                Some(format!("wait for it, or end it with `laneway cancel {}`", run.short()))
            }
            Self::Interrupted { run } => Some(format!(
                "`laneway resume {0}` goes on with it, and `laneway cancel {0}` ends it",
                run.short()
            )),
            Self::Ended { run, status: RunStatus::Succeeded } => {
                Some(format!("`laneway retry {} --from STEP` runs a step and all behind it again", run.short()))
            }
            Self::Ended { run, status: RunStatus::Failed | RunStatus::Canceled | RunStatus::Queued | RunStatus::Running } => {
                Some(format!("`laneway retry {}` runs what did not succeed again", run.short()))
            }
            Self::Shared { .. } => Some("`laneway worker` runs a worker".to_owned()),
            Self::Owned { run, .. } => Some(format!("`laneway cancel {}` stops it", run.short())),
            Self::NotFailed { run, .. } => Some(format!("`laneway show {}` lists its steps", run.short())),
            Self::NoSignal { run, .. } => Some(format!("`laneway explain {}` says what its steps wait for", run.short())),
            Self::OtherSignal { run, step, expected, .. } => {
                Some(format!("`laneway signal {} {step} {expected}` sends it", run.short()))
            }
            Self::NotWaiting { run, step, .. } => Some(format!(
                "`laneway show {0}` lists its steps; once its run has ended, `laneway retry {0} --from {step}` lets it wait again",
                run.short()
            )),
            Self::NotLeveled { .. } => Some("`execution: levels` in its document makes it do so".to_owned()),
            Self::GoesOn { run } => Some(format!("`laneway pause {}` holds it up behind its level", run.short())),
            Self::NoSuchEffect { run, .. } => Some(format!("`laneway effects {}` lists them", run.short())),
            Self::EffectRuns { run, .. } => {
                Some(format!("wait for it, or stop it with `laneway cancel {}`", run.short()))
            }
            Self::OutputsTooLarge { .. } => {
                Some("let items write large data to files, and where they are to $LANEWAY_OUTPUT".to_owned())
            }
            Self::BadSignal(_) => Some("write large data to a file, and where it is into the payload".to_owned()),
            Self::NoSuchWorkflow { .. } => {
                Some("`laneway workflows` lists those that were applied, `laneway runs` what has run".to_owned())
            }
            Self::Address { .. } => Some("the default is .laneway/laneway.db".to_owned()),
            Self::Moved { to, .. } => Some(format!(
                "use --store {to}; if that store is given up, `laneway move --undo` opens this one again"
            )),
            Self::HalfMoved { .. } => Some(
                "finish it with the same `laneway move --to …` where the store comes from; nothing was removed there"
                    .to_owned(),
            ),
            Self::CannotMove { advice, .. } => Some(advice.clone()),
            Self::NothingToRetry { .. } => {
                Some("use --from STEP to run a step and all behind it again".to_owned())
            }
            Self::WentOn { .. } => Some("look at it again, and then decide".to_owned()),
            Self::Damaged { .. } => {
                Some("`laneway doctor` says what is wrong with it; a copy made by `laneway backup` can take its place".to_owned())
            }
            Self::Unreadable { .. } | Self::UnreadableEvent { .. } => {
                Some("`laneway doctor` says what else is wrong, and what to do".to_owned())
            }
            Self::SetAside { run, .. } => Some(format!(
                "`laneway doctor` says more; `laneway doctor --release {run}` brings it back once it is mended"
            )),
            Self::KeyTaken { run, .. } => {
                Some(format!("use another key for a new run; `laneway show {}` shows that one", run.short()))
            }
            Self::UnderWay { .. } => Some("ask again in a moment".to_owned()),
            Self::NoSuchNode { .. } => Some("`laneway nodes` lists them".to_owned()),
            Self::NoSuchPool { .. } | Self::NoSuchPoolAt { .. } => Some(
                "`laneway pool` lists them; a node knows a pool from the first task that uses it, and `laneway pool warm NAME N \
                 --workflow WORKFLOW` warms that of a workflow before"
                    .to_owned(),
            ),
            Self::NoSuchPoolOf { has, .. } if has.is_empty() => Some("its document declares no `pools`".to_owned()),
            Self::NoSuchPoolOf { has, .. } => Some(format!("it has {}", has.join(", "))),
            Self::NoContainers | Self::NoContainersAt { .. } => Some(
                "start `laneway worker` where Docker or Podman answers; what it says at its start tells which engine it found"
                    .to_owned(),
            ),
            Self::LimitInUse { .. } => Some(
                "wait for the runs that need it, or cancel them; `laneway limit list` shows how far it is used"
                    .to_owned(),
            ),
            Self::WorkflowInUse { workflow, .. } => Some(format!(
                "`laneway runs --workflow {workflow}` and `laneway schedule list` show them; with --force its triggers go, \
                 and its runs go on to their end"
            )),
            Self::NoTriggers { .. } => Some("`laneway schedule list` shows what starts by itself".to_owned()),
            Self::LeadsBack { .. } => {
                Some("each run would start the next one, for ever; take `after` out of one of them".to_owned())
            }
            Self::PathTaken { .. } => Some("choose another `path`, or apply that workflow without it".to_owned()),
            Self::NoSuchLimit { name } => Some(format!(
                "declare it under `limits` of the document, or make it with `laneway limit set {name} N`"
            )),
            Self::TokenExists { name } => {
                Some(format!("choose another name, or end that one with `laneway token revoke {name}`"))
            }
            Self::NoSuchToken { .. } => Some("`laneway token list` lists them".to_owned()),
            Self::NoSuchSecret { name } => Some(format!("`laneway secret set {name}` makes it; `laneway secret list` lists them")),
            Self::NotABackup { .. } => Some("name a file that it wrote; nothing was changed".to_owned()),
            Self::Exists { .. } => Some("name a file that is not there yet".to_owned()),
            Self::OtherSecretKey { path } => Some(format!(
                "restore into another directory, or, if nothing needs {} any more, move it away first; nothing was changed",
                path.display()
            )),
            Self::NotSetAside { run } => Some(format!("`laneway show {}` shows it", run.short())),
            Self::Unreachable { .. } => Some(
                "look whether the server runs, and whether host and port in --store are right".to_owned(),
            ),
            Self::Login { .. } => Some(
                "look at user and password in --store, and at the server's pg_hba.conf".to_owned(),
            ),
            Self::NoDatabase { database, .. } => {
                Some(format!("make it with `createdb {database}`, or name another one with --store"))
            }
            Self::OldPostgres { .. } => Some("use a newer server; this one was left as it is".to_owned()),
            Self::TooSlow { .. } => {
                Some("look for what else this database does, and for locks that nobody gives back".to_owned())
            }
            Self::Postgres { .. }
            | Self::Disconnected { .. }
            | Self::Unknown { .. }
            | Self::Io { .. }
            | Self::Closed { .. }
            | Self::SessionOver { .. }
            | Self::OldSqlite { .. }
            | Self::NotRunnable { .. }
            | Self::NotWanted { .. }
            | Self::NoSuchBlob { .. }
            | Self::TooLarge { .. }
            | Self::PartOfLevel { .. }
            | Self::Illegal(_) => None,
        }
    }

    /// Returns whether the same call may succeed later without any repair. The caller keeps its
    /// result and retries.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Full { .. }
                | Self::Busy { .. }
                | Self::UnderWay { .. }
                | Self::Unreachable { .. }
                | Self::Disconnected { .. }
                | Self::Unknown { .. }
                | Self::TooSlow { .. }
        )
    }

    /// Returns whether the error is about stored data that this program cannot have written. A
    /// retry fails in the same way until an operator repairs it. A caller that works for many runs
    /// therefore continues with the others.
    pub fn is_about_what_is_stored(&self) -> bool {
        matches!(
            self,
            Self::Unreadable { .. }
                | Self::UnreadableEvent { .. }
                | Self::SetAside { .. }
                | Self::Illegal(_)
                // The database reports a row in the way in its own words.
                | Self::Postgres { .. }
        )
    }

    /// Returns whether the store as a whole is unusable, as opposed to a rejected request.
    pub fn is_about_the_store(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Moved { .. }
                | Self::HalfMoved { .. }
                | Self::NotAStore { .. }
                | Self::Newer { .. }
                | Self::OlderLives { .. }
                | Self::ReadOnly { .. }
                | Self::CannotLock { .. }
                | Self::Full { .. }
                | Self::Busy { .. }
                | Self::Io { .. }
                | Self::Damaged { .. }
                | Self::Unreadable { .. }
                | Self::UnreadableEvent { .. }
                | Self::SetAside { .. }
                | Self::Closed { .. }
                | Self::SessionOver { .. }
                | Self::Unreachable { .. }
                | Self::Login { .. }
                | Self::NoDatabase { .. }
                | Self::OldPostgres { .. }
                | Self::Disconnected { .. }
                | Self::Unknown { .. }
                | Self::TooSlow { .. }
                | Self::Postgres { .. }
                | Self::OldSqlite { .. }
        )
    }
}
