//! Where Laneway's state lives. [`Store`] is the contract; `sqlite` keeps it in one file beside the work.
//!
//! The store changes state and records it; what may change is decided by `laneway-core`.

mod error;
mod fence;
mod keeper;
pub mod model;
mod plans;
pub mod postgres;
pub mod sqlite;
mod store;

use std::path::PathBuf;
use std::sync::Arc;

pub use error::{Error, Result};
pub use fence::{ClaimRef, Fate};
pub use sqlite::{scratch_dir, warden_lock};
pub use store::Store;

/// Whether a store that is not there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Create,
    Existing,
}

/// Opens the store at a path or URL, as `--store` takes it.
pub fn open(address: &str, mode: Open) -> Result<Arc<dyn Store>> {
    match address.split_once("://") {
        None => Ok(Arc::new(sqlite::SqliteStore::open(&PathBuf::from(address), mode)?)),
        Some(("sqlite", path)) => Ok(Arc::new(sqlite::SqliteStore::open(&PathBuf::from(path), mode)?)),
        Some(("postgres" | "postgresql", _)) => {
            Err(Error::Address { why: "a store on Postgres is not supported yet".to_owned() })
        }
        Some((other, _)) => Err(Error::Address {
            why: format!("`{other}://` is not a kind of store; give a path or sqlite://PATH"),
        }),
    }
}
