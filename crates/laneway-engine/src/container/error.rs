//! What can go wrong with the container engine, told apart by what to do about it.

use std::time::Duration;

use laneway_core::pool::Fault;

use crate::process::Outcome;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was asked of it: whatever was wanted has not happened.
    #[error(
        "no container engine answers at {host}: {why}; start it, or say where it is with the setting `docker_host`"
    )]
    Unreachable { host: String, why: String },
    /// It may have happened or not.
    #[error("the line to the container engine broke while it was asked to {verb}: {why}")]
    Cut { verb: &'static str, why: String },
    /// It may have happened or not.
    #[error("the container engine did not {verb} within {} s", within.as_secs())]
    TooSlow { verb: &'static str, within: Duration },
    #[error("the image {image} cannot be had: {why}")]
    NoImage { image: String, why: String },
    #[error(
        "there is a container named {name} already, and it is not this attempt's; remove it with `docker rm`"
    )]
    Conflict { name: String },
    /// The container, or whatever was named, is not there.
    #[error("the container engine has no such thing: {why}")]
    NotFound { why: String },
    #[error("the container engine refused to {verb}: {why}")]
    Refused { verb: &'static str, why: String },
}

impl Error {
    /// Whether what was asked for may have happened all the same.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Cut { .. } | Self::TooSlow { .. } => true,
            Self::Unreachable { .. }
            | Self::NoImage { .. }
            | Self::Conflict { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. } => false,
        }
    }

    /// Whether it is the engine that is not there, and not what was asked of it.
    pub fn is_of_engine(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Cut { .. } | Self::TooSlow { .. } => true,
            Self::NoImage { .. } | Self::Conflict { .. } | Self::NotFound { .. } | Self::Refused { .. } => {
                false
            }
        }
    }

    /// How an attempt ends that cannot go on because of it.
    pub(super) fn outcome(&self) -> Outcome {
        let why = self.to_string();
        if self.is_of_engine() { Outcome::EngineLost(why) } else { Outcome::StartFailed(why) }
    }

    /// Whether a port of the host that it was to have is somebody else's.
    pub fn is_port_taken(&self) -> bool {
        let says_so =
            |why: &str| why.contains("port is already allocated") || why.contains("address already in use");
        matches!(self, Self::Refused { why, .. } if says_so(why))
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    pub(super) fn of(verb: &'static str, host: &str, error: bollard::errors::Error) -> Self {
        use bollard::errors::Error as Docker;
        let host = || host.to_owned();
        match error {
            Docker::DockerResponseServerError { status_code: 404, message } => {
                Self::NotFound { why: tidy(&message) }
            }
            // A message of the engine, be it a refusal or its own failure.
            Docker::DockerResponseServerError { message, .. } => Self::Refused { verb, why: tidy(&message) },
            Docker::DockerStreamError { error } => Self::Refused { verb, why: tidy(&error) },
            Docker::SocketNotFoundError(path) => {
                Self::Unreachable { host: host(), why: format!("there is no socket {path}") }
            }
            Docker::HyperLegacyError { err } if err.is_connect() => {
                Self::Unreachable { host: host(), why: innermost(&err) }
            }
            Docker::RequestTimeoutError => Self::Cut { verb, why: "it took too long".to_owned() },
            other => Self::Cut { verb, why: innermost(&other) },
        }
    }
}

/// What whoever waits for a warm container is told.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let why = error.to_string();
        if error.is_of_engine() { Self::EngineLost(why) } else { Self::StartFailed(why) }
    }
}

/// The cause that says most: the wrappers only tell that something went wrong.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    tidy(&error.to_string())
}

/// On one line.
fn tidy(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
