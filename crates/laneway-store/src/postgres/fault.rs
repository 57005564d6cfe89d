//! From what Postgres and the line to it say, to what a person or a verb can act on.

use std::error::Error as _;

use laneway_core::id::RunId;
use laneway_core::state::Illegal;
use tokio_postgres::error::{DbError, SqlState};

use super::address::Address;
use super::lock_order::LockSet;
use crate::error::Error;

/// How a statement, a verb or a question can fail: by its own judgement, or by the database's.
#[derive(Debug)]
pub(super) enum Failure {
    Refused(Error),
    Postgres(tokio_postgres::Error),
    /// The answer to COMMIT did not come.
    Unanswered(tokio_postgres::Error),
    /// The gate keeper asked for a fact that has to be fetched first.
    Missing,
    /// It met something that nobody thought of; in the words of the panic.
    Panicked(String),
    /// Something of a run is to blame: the run is set aside, and the verb asked again.
    Blamed {
        no: i64,
        /// Its id, unless that is what cannot be read.
        run: Option<RunId>,
        failure: Box<Failure>,
    },
    /// No connection was to be had, or none in time.
    Unconnected(Error),
    /// The transaction needs a lock behind one that it holds: it runs again, with all of these
    /// acquired in order.
    OutOfOrder(Box<LockSet>),
}

pub(super) type Done<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// What can be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It is about what was asked, or about what is stored: to ask again gives the same answer.
    Verb,
    /// Two got in each other's way, and the database gave up one of them: it was taken back, and is
    /// said again at once.
    Again,
    /// The line is broken. Nothing was kept: COMMIT had not been sent.
    Line,
    /// The line broke after COMMIT was sent: kept or not, nobody knows. Verbs may be said again.
    Unknown,
}

impl From<Illegal> for Failure {
    fn from(illegal: Illegal) -> Self {
        Self::Refused(illegal.into())
    }
}

impl Failure {
    /// Says whose row it was, if what was found there is to blame: neither the line, nor what
    /// somebody asked for.
    pub(super) fn about(self, no: i64, run: impl Into<Option<RunId>>) -> Self {
        if self.is_about_a_value() {
            Self::Blamed { no, run: run.into(), failure: Box::new(self) }
        } else {
            self
        }
    }

    /// Whether what was found in a row is to blame, and nobody says yet whose it is.
    pub(super) fn is_about_a_value(&self) -> bool {
        match self {
            Self::Refused(Error::Unreadable { .. } | Error::Illegal(_)) | Self::Panicked(_) => true,
            Self::Postgres(error) => is_about_a_value(error),
            Self::Refused(_)
            | Self::Unanswered(_)
            | Self::Missing
            | Self::Blamed { .. }
            | Self::Unconnected(_)
            | Self::OutOfOrder(_) => false,
        }
    }

    /// What of a row is to blame, and why, if something is.
    pub(super) fn to_blame(&self) -> Option<(String, String)> {
        self.is_about_a_value().then(|| self.blame())
    }

    /// What could not be read, and why.
    pub(super) fn blame(&self) -> (String, String) {
        match self {
            Self::Refused(Error::Unreadable { what, why }) => (what.clone(), why.clone()),
            Self::Refused(Error::Illegal(illegal)) => ("state".to_owned(), illegal.to_string()),
            Self::Panicked(why) => ("state".to_owned(), why.clone()),
            Self::Postgres(error) | Self::Unanswered(error) => ("row".to_owned(), words(error)),
            Self::Blamed { failure, .. } => failure.blame(),
            Self::Refused(error) | Self::Unconnected(error) => ("state".to_owned(), error.to_string()),
            Self::Missing => ("state".to_owned(), "a fact is missing".to_owned()),
            Self::OutOfOrder(_) => ("state".to_owned(), "a lock was out of order".to_owned()),
        }
    }

    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Refused(_) | Self::Missing | Self::Panicked(_) | Self::Blamed { .. } => Reach::Verb,
            Self::Unconnected(_) => Reach::Line,
            Self::OutOfOrder(_) => Reach::Again,
            // An answer that came and is an error is an answer: it was taken back.
            Self::Unanswered(error) | Self::Postgres(error) if is_collision(error) => Reach::Again,
            Self::Unanswered(error) if error.as_db_error().is_none() || is_shutdown(error) => Reach::Unknown,
            Self::Unanswered(error) | Self::Postgres(error) => {
                if is_line(error) {
                    Reach::Line
                } else {
                    Reach::Verb
                }
            }
        }
    }

    pub(super) fn explain(self, address: &Address) -> Error {
        let reach = self.reach();
        match self {
            Self::Refused(error) | Self::Unconnected(error) => error,
            Self::Blamed { failure, .. } => failure.explain(address),
            Self::Panicked(why) => Error::Unreadable { what: "state".to_owned(), why },
            Self::Missing => {
                Error::Unreadable { what: "state".to_owned(), why: "a fact is missing".to_owned() }
            }
            Self::OutOfOrder(_) => Error::TooSlow {
                address: address.shown.clone(),
                why: "other transactions kept changing what this one needs".to_owned(),
            },
            Self::Unanswered(error) if reach == Reach::Unknown => {
                Error::Unknown { address: address.shown.clone(), why: words(&error) }
            }
            Self::Unanswered(error) | Self::Postgres(error) => explain(&error, address),
        }
    }
}

fn is_collision(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        // A division by zero is how a statement of ours says that a row is not as it was seen
        // (`task_save`).
        *code == SqlState::T_R_SERIALIZATION_FAILURE
            || *code == SqlState::T_R_DEADLOCK_DETECTED
            || *code == SqlState::DIVISION_BY_ZERO
            // The server ended a transaction that stood still: it was taken back.
            || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
    }) || is_known_key(error)
}

/// Somebody has submitted a run with the same key in the same moment: who asks again finds it.
fn is_known_key(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().and_then(DbError::constraint) == Some("runs_by_key")
}

/// The server ends our connection, or is not there yet.
fn is_shutdown(error: &tokio_postgres::Error) -> bool {
    let codes = [&SqlState::ADMIN_SHUTDOWN, &SqlState::CRASH_SHUTDOWN, &SqlState::CANNOT_CONNECT_NOW];
    error.code().is_some_and(|code| codes.contains(&code))
}

/// The driver has no answer of the server to show: the line is broken, or was never there.
fn is_line(error: &tokio_postgres::Error) -> bool {
    let is_io = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    error.is_closed() || is_io || is_shutdown(error)
}

/// A row was found and is not what the program can have written there.
pub(super) fn is_about_a_value(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        None => !is_line(error),
        Some(code) => {
            !is_collision(error) && (code.code().starts_with("22") || code.code().starts_with("23"))
        }
    }
}

/// Of a connection that was there.
pub(super) fn explain(error: &tokio_postgres::Error, address: &Address) -> Error {
    let (shown, why) = (address.shown.clone(), words(error));
    match error.code() {
        None if is_line(error) => Error::Disconnected { address: shown, why },
        None => Error::Unreadable { what: "row".to_owned(), why },
        Some(code) if *code == SqlState::DISK_FULL => Error::Full { path: address.path() },
        Some(code) if *code == SqlState::QUERY_CANCELED || *code == SqlState::LOCK_NOT_AVAILABLE => {
            Error::TooSlow { address: shown, why }
        }
        Some(code)
            if *code == SqlState::READ_ONLY_SQL_TRANSACTION || *code == SqlState::INSUFFICIENT_PRIVILEGE =>
        {
            Error::ReadOnly { path: address.path(), why }
        }
        Some(_) if is_shutdown(error) => Error::Disconnected { address: shown, why },
        Some(code) if code.code().starts_with("XX") => Error::Damaged { path: address.path(), why },
        Some(_) => Error::Postgres { address: shown, why },
    }
}

/// Of a connection that did not come about.
pub(super) fn explain_connect(error: &tokio_postgres::Error, address: &Address) -> Error {
    let (shown, why) = (address.shown.clone(), words(error));
    match error.code() {
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => Error::NoDatabase {
            address: shown,
            database: address
                .config
                .get_dbname()
                .or(address.config.get_user())
                .unwrap_or_default()
                .to_owned(),
        },
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
                || *code == SqlState::INSUFFICIENT_PRIVILEGE =>
        {
            Error::Login { address: shown, why }
        }
        Some(_) => Error::Unreachable { address: shown, why },
        // A password that is asked for and not given fails on our side.
        None if error.to_string().contains("configuration")
            || error.to_string().contains("authentication") =>
        {
            Error::Login { address: shown, why }
        }
        None => Error::Unreachable { address: shown, why },
    }
}

/// The driver's own words leave out what the server or the system said; that stands in the causes.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        let detail = said.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}{detail}", said.message());
    }
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
