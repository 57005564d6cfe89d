//! What the service answers when it cannot do what was asked: problem+json (RFC 9457) with a stable code. Every code stands
//! here, with its status; every error of the store is mapped here, and nowhere else. What went wrong inside is logged, and
//! told to nobody.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use laneway_core::definition::Diagnostics;
use laneway_core::wait::BadSignal;
use laneway_store::Error;
use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $word:literal, $status:ident;)+) => {
        /// A stable word for each kind of refusal; programs decide by it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$meta])* #[serde(rename = $word)] $variant,)+
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)+ }
            }
        }
    };
}

// Derived, it would not see the words through the macro.
impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let words = Self::ALL.iter().map(|code| code.as_str());
        let about = "A stable word for each kind of refusal; programs decide by it";
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(about))
            .enum_values(Some(words))
            .into()
    }
}

impl ToSchema for Code {}

codes! {
    /// A part of the address or of the query cannot be read.
    BadRequest = "bad_request", BAD_REQUEST;
    /// The body cannot be read.
    BadBody = "bad_body", BAD_REQUEST;
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE;
    NotJson = "not_json", UNSUPPORTED_MEDIA_TYPE;
    /// The document of a workflow is refused; `detail` has all of its errors.
    BadDocument = "bad_document", UNPROCESSABLE_ENTITY;
    BadParams = "bad_params", UNPROCESSABLE_ENTITY;
    /// What was asked is written as the description says, and yet means nothing: a cursor that no answer gave, a name that cannot be one.
    Unprocessable = "unprocessable", UNPROCESSABLE_ENTITY;
    NotRunnable = "not_runnable", UNPROCESSABLE_ENTITY;
    NoToken = "no_token", UNAUTHORIZED;
    BadToken = "bad_token", UNAUTHORIZED;
    /// What was sent is not signed as it has to be, or nobody listens there: which of them, nobody is told.
    BadSignature = "bad_signature", UNAUTHORIZED;
    /// A body that is signed without a moment came before, under another name.
    Replayed = "replayed", CONFLICT;
    /// The code to sign in with was used, is too old, or was never made by this process.
    BadCode = "bad_code", FORBIDDEN;
    /// The role of the token does not allow it.
    Forbidden = "forbidden", FORBIDDEN;
    /// The name by which the service was asked is none of its own.
    HostRefused = "host_refused", MISDIRECTED_REQUEST;
    /// A page from elsewhere asks.
    OriginRefused = "origin_refused", FORBIDDEN;
    NoSuchRoute = "no_such_route", NOT_FOUND;
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED;
    NoSuchRun = "no_such_run", NOT_FOUND;
    AmbiguousRun = "ambiguous_run", BAD_REQUEST;
    NoSuchStep = "no_such_step", NOT_FOUND;
    NoSuchEvent = "no_such_event", NOT_FOUND;
    NoSuchAttempt = "no_such_attempt", NOT_FOUND;
    NoSuchWorkflow = "no_such_workflow", NOT_FOUND;
    /// The workflow was never applied with that number.
    NoSuchVersion = "no_such_version", NOT_FOUND;
    NoSuchNode = "no_such_node", NOT_FOUND;
    NoSuchPool = "no_such_pool", NOT_FOUND;
    /// No node that is asked takes steps in containers.
    NoContainers = "no_containers", CONFLICT;
    NoSuchLimit = "no_such_limit", NOT_FOUND;
    NoSuchToken = "no_such_token", NOT_FOUND;
    NoTriggers = "no_triggers", NOT_FOUND;
    NoSuchArtifact = "no_such_artifact", NOT_FOUND;
    /// What was printed does not reach that far.
    NoSuchRange = "no_such_range", RANGE_NOT_SATISFIABLE;
    NoSuchBytes = "no_such_bytes", NOT_FOUND;
    NoSuchSecret = "no_such_secret", NOT_FOUND;
    /// A remote worker has no such session: it is over, or that of another token. Register anew.
    NoSuchSession = "no_such_session", NOT_FOUND;
    TokenExists = "token_exists", CONFLICT;
    /// Another workflow listens at that path.
    PathTaken = "path_taken", CONFLICT;
    /// What comes after the workflow (`after`) leads back to it.
    LeadsBack = "leads_back", CONFLICT;
    /// The triggers of the workflow are paused.
    TriggersPaused = "triggers_paused", CONFLICT;
    RunNotEnded = "run_not_ended", CONFLICT;
    RunEnded = "run_ended", CONFLICT;
    RunOwned = "run_owned", CONFLICT;
    RunShared = "run_shared", CONFLICT;
    /// The run is local to the process that started it: no node would take its tasks.
    RunLocal = "run_local", CONFLICT;
    RunSetAside = "run_set_aside", CONFLICT;
    NotSetAside = "not_set_aside", CONFLICT;
    NothingToRetry = "nothing_to_retry", CONFLICT;
    /// The run is not as it was when whoever asks has seen it.
    RunWentOn = "run_went_on", CONFLICT;
    StepNotFailed = "step_not_failed", CONFLICT;
    /// The step waits for no signal, or for another one.
    NoSuchSignal = "no_such_signal", CONFLICT;
    /// The step has ended.
    StepNotWaiting = "step_not_waiting", CONFLICT;
    /// The run does not go level by level, or is not held up.
    NotAdvancing = "not_advancing", CONFLICT;
    /// The step has no effect of that name and key.
    NoSuchEffect = "no_such_effect", NOT_FOUND;
    /// The effect is running just now.
    EffectRuns = "effect_runs", CONFLICT;
    /// The Idempotency-Key was used for a run of another workflow or version, or with other parameters.
    KeyTaken = "key_taken", CONFLICT;
    /// Tasks hold the limit or wait for it, or a run that has not ended names it.
    LimitInUse = "limit_in_use", CONFLICT;
    /// The workflow has runs that have not ended, or triggers that fire.
    WorkflowInUse = "workflow_in_use", CONFLICT;
    /// The same is being done just now: ask again in a moment.
    UnderWay = "under_way", CONFLICT;
    /// The state does not allow it.
    Illegal = "illegal", CONFLICT;
    Exists = "exists", CONFLICT;
    /// Something stored cannot be read.
    Unreadable = "unreadable", INTERNAL_SERVER_ERROR;
    Internal = "internal", INTERNAL_SERVER_ERROR;
    /// The store cannot be used now; the same request may succeed later.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE;
    TimedOut = "timed_out", SERVICE_UNAVAILABLE;
    /// Too many bytes without a token are on their way; the same request may succeed later.
    Busy = "busy", SERVICE_UNAVAILABLE;
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE;

}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// Names the kind; the same as `code`, as a URI.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub code: Code,
    /// What is wrong, in words.
    pub detail: String,
    /// What to do next, where there is something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a handler answers.
pub type Answer<T> = Result<T, Problem>;

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = code.status();
        Self {
            kind: format!("urn:laneway:problem:{}", code.as_str()),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            hint: None,
        }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// A document with all of its errors, as the command line shows them.
    pub fn document(diagnostics: &Diagnostics) -> Self {
        Self::new(Code::BadDocument, diagnostics.render(false).trim_end())
            .hint("`laneway validate FILE` says the same before it is sent")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), Json(&self)).into_response();
        // The guard in front of the route looks whether it is one of those that the route may say.
        response.extensions_mut().insert(self.code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.code.status() {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let code = code_of(&error);
        if code.status().is_server_error() {
            tracing::error!(%error, "a request failed");
        }
        // What the store says of itself names files, hosts and users: that is for the log.
        let (detail, hint) = match code {
            Code::StoreUnavailable => ("the store cannot be used now".to_owned(), None),
            Code::Internal => ("something inside went wrong; the server's log says what".to_owned(), None),
            _ => (error.to_string(), error.hint()),
        };
        Self { hint, ..Self::new(code, detail) }
    }
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::Full { .. }
        | Error::Busy { .. }
        | Error::Io { .. }
        | Error::ReadOnly { .. }
        | Error::Closed { .. }
        | Error::Unreachable { .. }
        | Error::Login { .. }
        | Error::NoDatabase { .. }
        | Error::Disconnected { .. }
        | Error::Unknown { .. }
        | Error::TooSlow { .. }
        | Error::Moved { .. }
        | Error::SessionOver { .. } => Code::StoreUnavailable,
        Error::Missing { .. }
        | Error::NotAStore { .. }
        | Error::Newer { .. }
        | Error::OlderLives { .. }
        | Error::NeedsMigration { .. }
        | Error::MayNotMigrate { .. }
        | Error::CannotLock { .. }
        | Error::Damaged { .. }
        | Error::OldSqlite { .. }
        | Error::OldPostgres { .. }
        | Error::Postgres { .. }
        | Error::HalfMoved { .. }
        | Error::CannotMove { .. }
        | Error::NotABackup { .. }
        | Error::OtherSecretKey { .. }
        | Error::Address { .. } => Code::Internal,
        Error::Unreadable { .. } | Error::UnreadableEvent { .. } => Code::Unreadable,
        Error::SetAside { .. } => Code::RunSetAside,
        Error::NoSuchRun { .. } => Code::NoSuchRun,
        Error::AmbiguousRun { .. } => Code::AmbiguousRun,
        Error::NoSuchStep { .. } => Code::NoSuchStep,
        Error::NoSuchWorkflow { .. } => Code::NoSuchWorkflow,
        Error::NotEnded { .. } | Error::Interrupted { .. } => Code::RunNotEnded,
        Error::Ended { .. } => Code::RunEnded,
        Error::Owned { .. } => Code::RunOwned,
        Error::Shared { .. } => Code::RunShared,
        Error::NothingToRetry { .. } => Code::NothingToRetry,
        Error::WentOn { .. } => Code::RunWentOn,
        Error::NotFailed { .. } => Code::StepNotFailed,
        Error::NoSignal { .. } | Error::OtherSignal { .. } => Code::NoSuchSignal,
        Error::NotWaiting { .. } => Code::StepNotWaiting,
        Error::NotLeveled { .. } | Error::GoesOn { .. } => Code::NotAdvancing,
        Error::PartOfLevel { .. } => Code::Illegal,
        Error::NoSuchEffect { .. } => Code::NoSuchEffect,
        Error::EffectRuns { .. } => Code::EffectRuns,
        Error::BadSignal(BadSignal::Large) => Code::BodyTooLarge,
        Error::BadSignal(BadSignal::Payload { .. } | BadSignal::Reason) => Code::Unprocessable,
        Error::NotSetAside { .. } => Code::NotSetAside,
        Error::Exists { .. } => Code::Exists,
        Error::KeyTaken { .. } => Code::KeyTaken,
        Error::UnderWay { .. } => Code::UnderWay,
        Error::NoSuchNode { .. } => Code::NoSuchNode,
        Error::NoSuchPool { .. } | Error::NoSuchPoolAt { .. } | Error::NoSuchPoolOf { .. } => {
            Code::NoSuchPool
        }
        Error::NoContainers | Error::NoContainersAt { .. } => Code::NoContainers,
        Error::NoSuchLimit { .. } => Code::NoSuchLimit,
        Error::TokenExists { .. } => Code::TokenExists,
        Error::NoSuchToken { .. } => Code::NoSuchToken,
        Error::NoTriggers { .. } => Code::NoTriggers,
        Error::LimitInUse { .. } => Code::LimitInUse,
        Error::WorkflowInUse { .. } => Code::WorkflowInUse,
        Error::PathTaken { .. } => Code::PathTaken,
        Error::LeadsBack { .. } => Code::LeadsBack,
        Error::NoSuchBlob { .. } => Code::NoSuchBytes,
        Error::NoSuchSecret { .. } => Code::NoSuchSecret,
        Error::TooLarge { .. } | Error::OutputsTooLarge { .. } => Code::BodyTooLarge,
        Error::NotRunnable { .. } | Error::NotWanted { .. } => Code::NotRunnable,
        Error::Illegal(_) => Code::Illegal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_words_that_stand_once() {
        let mut words: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    }

    #[test]
    fn what_the_store_says_of_itself_is_not_told() {
        let error = Error::Login { address: "postgres://ada@db:5432/x".to_owned(), why: "secret".to_owned() };
        let problem = Problem::from(error);
        assert_eq!((problem.code, problem.hint.as_deref()), (Code::StoreUnavailable, None));
        assert!(!problem.detail.contains("ada") && !problem.detail.contains("secret"), "{problem:?}");
    }
}
