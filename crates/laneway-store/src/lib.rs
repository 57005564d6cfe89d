//! Where Laneway's state lives. [`Store`] is the contract; `sqlite` keeps it in one file beside the work,
//! `postgres` in a database for many nodes.
//!
//! The store changes state and records it; what may change is decided by `laneway-core`.

mod error;
mod examine;
mod fence;
mod keeper;
mod locks;
pub mod model;
mod offer;
mod plans;
pub mod postgres;
pub mod sqlite;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::{Error, Result};
pub use fence::{ClaimRef, Fate};
pub use locks::{scratch_dir, warden_lock};
pub use store::Store;

/// Whether a store that is not there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Create,
    Existing,
}

/// Where a node keeps logs and scratch files of a store that is no file, unless it is told otherwise.
const DATA_DIR: &str = ".laneway";

/// Opens the store at a path or URL, as `--store` takes it.
pub fn open(address: &str, mode: Open) -> Result<Arc<dyn Store>> {
    open_beside(address, Path::new(DATA_DIR), mode)
}

/// The same; `data_dir` is for logs and scratch files of a store that is no file. Those of a file are beside it.
pub fn open_beside(address: &str, data_dir: &Path, mode: Open) -> Result<Arc<dyn Store>> {
    match address.split_once("://") {
        None => Ok(Arc::new(sqlite::SqliteStore::open(&PathBuf::from(address), mode)?)),
        Some(("sqlite", path)) => Ok(Arc::new(sqlite::SqliteStore::open(&PathBuf::from(path), mode)?)),
        Some(("postgres" | "postgresql", _)) => {
            Ok(Arc::new(postgres::PostgresStore::open(address, data_dir, mode)?))
        }
        Some((other, _)) => Err(Error::Address {
            why: format!(
                "`{other}://` is not a kind of store; give a path, sqlite://PATH or postgres://USER@HOST/DATABASE"
            ),
        }),
    }
}
