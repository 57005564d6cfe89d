//! What is wrong with a store: the result of `examine` and of `horizon`. Plain values only.
//! `contract/maintenance.rs` describes the verbs. See `docs/design/faults.md`.

use std::time::Duration;

/// The result of examining a whole store.
#[derive(Debug, Clone)]
pub struct Examination {
    /// How many runs were examined in detail, the newest ones.
    pub runs: usize,
    /// How many runs the store has.
    pub total: usize,
    pub findings: Vec<Finding>,
}

/// One defect or remarkable fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub about: About,
    pub subject: String,
    pub what: String,
    /// What the operator should do about it.
    pub advice: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A defect that does not repair itself.
    Problem,
    /// Worth knowing; nothing is wrong.
    Note,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Note => "note",
        }
    }
}

/// The kind of object that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    File,
    Row,
    Run,
    Quarantine,
    Session,
    Leftover,
    /// The container engine of a node.
    Engine,
    Database,
}

impl About {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Row => "row",
            Self::Run => "run",
            Self::Quarantine => "quarantine",
            Self::Session => "session",
            Self::Engine => "engine",
            Self::Database => "database",
            Self::Leftover => "leftover",
        }
    }
}

/// An open transaction that keeps the database from removing dead rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Horizon {
    /// A session with its process id, a prepared transaction, or a replication slot.
    pub holder: String,
    /// `None` if the role of this store may not read it.
    pub held_for: Option<Duration>,
}

impl Horizon {
    /// `doctor` and `/metrics` report transactions that are open for this long.
    pub const LONG: Duration = Duration::from_secs(60);
}
