//! Inputs and outputs of the verbs of the contract, as plain values, one file per subject. Nothing
//! here reads or writes a store. `contract/` describes the verbs.

mod access;
mod blobs;
mod maintenance;
mod operator;
mod run_views;
mod sessions;
mod store_views;
mod work;

pub use access::{
    AuditEntry, Deed, NewToken, RevokedToken, RotatedToken, SecretView, TOKEN_HASH, TOKEN_USE_GRAIN, Token,
    TokenRotation,
};
pub use blobs::{Artifact, ArtifactView, LogName, LogPart, LogPiece, Opened};
pub use maintenance::{About, Examination, Finding, Horizon, Severity};
pub use operator::{Application, Applied, CancelMode, NewSignal, Pausable, Reopen, Signaled, Whom};
pub(crate) use run_views::Part;
pub use run_views::{Attempt, ItemsAsked, RunFilter, RunSummary, RunView, SetAside, TaskView};
pub use sessions::{
    CacheTally, KeptPool, Lease, NewSession, Orders, PoolTally, Reaped, RemoteView, Renewed, Stop,
    StuckSession, Tally, Wanted, Wish,
};
pub use store_views::{
    ClaimView, Commits, Definition, Known, LOSSES_KEPT, LastRun, LimitView, Losses, NodeView,
    POOL_EVENTS_KEPT, PoolView, RunOutcome, Stamp, WorkflowView,
};
pub use work::{Answer, Ask, Claim, DEFAULT_MAX_PARALLEL, Finished, Outcome, Placed, RunHead, Submission};
