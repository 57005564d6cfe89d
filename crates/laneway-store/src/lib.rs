//! The state of Laneway. [`contract`] is the contract. `sqlite` implements it in one file beside
//! the work, `postgres` in a database for many nodes.
//!
//! The store changes state and records it. It never decides what may change: `laneway-core` does.
//! See `docs/design/store.md`.

pub mod archive;
mod bytes;
pub mod cache;
pub mod child;
pub mod contract;
pub mod effect;
mod error;
mod examine;
mod fence;
mod keeper;
pub mod layer;
mod lease;
pub mod line;
mod locks;
mod migration;
pub mod model;
mod offer;
pub mod overview;
mod plans;
mod pool;
pub mod postgres;
pub mod private;
pub mod prune;
mod readable;
pub mod sqlite;
pub mod submission_key;
mod summary;
pub mod tally;
pub mod transfer;
pub mod trigger;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use bytes::{
    MAX_BLOB, MAX_LOG_PART, MAX_SHARED_FILE, OWN_DIRS, OWN_FILES, database_of, file_name, isolates_dir,
    log_path, workspaces_dir,
};
pub use contract::Store;
pub use error::{Error, Result, Teller};
pub use fence::{ClaimRef, Fate, claim_suffix};
pub use lease::{LeaseFile, condemn, lease_path, monotonic_time};
pub use locks::{scratch_dir, warden_lock};

/// What opening may do to a store that is missing, or that an older program has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Creates a missing store and migrates an older one. For processes that run tasks, and for
    /// `laneway migrate`.
    Migrate,
    /// Creates a missing store. Rejects an older one with `NeedsMigration`.
    Create,
    /// Changes nothing. Rejects a missing store and an older one.
    Existing,
}

/// How opening a store changed its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaChange {
    /// The store has the schema that this program knows.
    Unchanged {
        schema: i64,
    },
    /// The store was missing, and was created with this schema.
    Made {
        schema: i64,
    },
    Migrated {
        from: i64,
        to: i64,
    },
}

impl SchemaChange {
    /// Compares the schema before (0: without any table) and after opening.
    pub(crate) fn between(from: i64, to: i64) -> Self {
        match from {
            0 => Self::Made { schema: to },
            from if from == to => Self::Unchanged { schema: to },
            from => Self::Migrated { from, to },
        }
    }
}

/// Default of `Options::max_lost`.
const MAX_LOST: u32 = 3;

/// Settings of a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directory of a node's logs and scratch files, for a store that is not a file. Those of
    /// `laneway.db` are beside it, and those of any other file `NAME` are in `NAME.d`.
    pub data_dir: PathBuf,
    /// How often a task may be lost with its node before it fails.
    pub max_lost: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { data_dir: PathBuf::from(".laneway"), max_lost: MAX_LOST }
    }
}

/// Opens the store at a path or URL, as `--store` accepts it.
pub fn open(address: &str, mode: Open) -> Result<Arc<dyn Store>> {
    open_with(address, mode, &Options::default())
}

pub fn open_with(address: &str, mode: Open, options: &Options) -> Result<Arc<dyn Store>> {
    Ok(open_telling(address, mode, options)?.0)
}

/// Opens a store, and returns how that changed its schema.
pub fn open_telling(address: &str, mode: Open, options: &Options) -> Result<(Arc<dyn Store>, SchemaChange)> {
    let file = |path: &str| -> Result<(Arc<dyn Store>, SchemaChange)> {
        let store = sqlite::SqliteStore::open(&PathBuf::from(path), mode)?;
        let change = store.schema_change();
        Ok((Arc::new(store.with_max_lost(options.max_lost)), change))
    };
    match address.split_once("://") {
        None => file(address),
        Some(("sqlite", path)) => file(path),
        Some(("postgres" | "postgresql", _)) => {
            let store = postgres::PostgresStore::open(address, &options.data_dir, mode)?;
            let change = store.schema_change();
            Ok((Arc::new(store.with_max_lost(options.max_lost)), change))
        }
        Some((other, _)) => Err(Error::Address {
            why: format!(
                "`{other}://` is not a kind of store; give a path, sqlite://PATH or postgres://USER@HOST/DATABASE"
            ),
        }),
    }
}

/// Returns the data directory of the store at a path or URL, whether the store exists or not.
pub fn data_dir(address: &str, options: &Options) -> PathBuf {
    match address.split_once("://") {
        None => sqlite::data_dir(Path::new(address)),
        Some(("sqlite", path)) => sqlite::data_dir(Path::new(path)),
        Some(_) => options.data_dir.clone(),
    }
}

/// Returns whether an earlier version made the store at a path or URL. Such a store keeps its files
/// in `dir`, where other stores may keep theirs.
pub fn shares_dir(address: &str, dir: &Path) -> bool {
    let path = address.strip_prefix("sqlite://").unwrap_or(address);
    !path.contains("://") && sqlite::shares_dir(Path::new(path), dir)
}

/// Returns the address of a store without its password, if it has one.
pub fn without_password(address: &str) -> Option<String> {
    postgres::without_password(address)
}

/// Returns an address for display, without its password.
pub fn shown(address: &str) -> String {
    match address.split_once("://") {
        Some(("postgres" | "postgresql", _)) => postgres::shown(address),
        Some(_) | None => address.to_owned(),
    }
}
