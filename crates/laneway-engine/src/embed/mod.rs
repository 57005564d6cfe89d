//! Laneway inside a program of your own: typed async functions are steps, on the same store as processes and containers.
//!
//! ```no_run
//! use laneway_engine::embed::{Call, Engine, Step, Workflow};
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Charge { amount: u32 }
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Receipt { number: String }
//! # async fn example() -> Result<(), laneway_engine::embed::Error> {
//! let engine = Engine::at(".laneway/laneway.db")
//!     .function("charge", |call: Call<Charge>| async move {
//!         Ok::<_, std::io::Error>(Receipt { number: format!("{}-{}", call.run, call.input.amount) })
//!     })
//!     .start()
//!     .await?;
//! let order = Workflow::new("order").step(Step::function("pay", "charge").with("amount", 5));
//! let outcome = engine.run(&order, ()).await?;
//! let receipt: Receipt = outcome.output("pay")?;
//! engine.shutdown().await?;
//! # drop(receipt); Ok(()) }
//! ```
//! An engine is a node like any other (`worker/`): it takes tasks whose functions it has, of whatever run, and when its process
//! dies another one goes on with them. There is no global state: any number of engines live in one process. docs/embedding.md.

mod engine;
mod life;
mod outcome;
mod workflow;

pub use crate::function::Call;
pub use engine::{Builder, Engine, Run};
pub use outcome::Outcome;
pub use workflow::{Step, Workflow};

use std::path::PathBuf;
use std::process::ExitCode;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;

use crate::warden::{Options, Refused, serve};

/// The word by which a program is asked to be its own warden.
const WARDEN: &str = "laneway-warden";

/// Why an engine could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
    #[error(transparent)]
    Worker(#[from] crate::Error),
    /// All that is wrong with it, with lines and columns.
    #[error("the workflow cannot be run:\n{0}")]
    Document(String),
    #[error("the parameters do not fit: {0}")]
    Params(String),
    #[error("the key cannot be one: {0}")]
    Key(String),
    #[error("{what} cannot be started: {source}")]
    Start { what: &'static str, source: std::io::Error },
    #[error("the directory {} cannot be used: {source}", path.display())]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("run {} {status}{}", run.short(), why.as_deref().map(|why| format!(": {why}")).unwrap_or_default())]
    NotSucceeded { run: RunId, status: RunStatus, why: Option<String> },
    #[error("run {} has no step `{step}`", run.short())]
    NoSuchStep { run: RunId, step: String },
    #[error("the output of `{step}` is something else than was asked for: {source}")]
    Output { step: String, source: serde_json::Error },
    #[error("the engine has stopped: {0}")]
    Stopped(String),
}

impl Error {
    /// Whether others have ended the session: the process did not run for too long, or could not reach the store.
    fn is_loss_of_session(&self) -> bool {
        matches!(
            self,
            Self::Worker(
                crate::Error::Fenced { .. } | crate::Error::Store(laneway_store::Error::SessionOver { .. })
            ) | Self::Store(laneway_store::Error::SessionOver { .. })
        )
    }

    /// Whether the same may succeed later, as when a database is away.
    fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) | Self::Worker(crate::Error::Store(error)) => error.is_passing(),
            Self::Worker(crate::Error::Fenced { .. } | crate::Error::Files { .. })
            | Self::Document(_)
            | Self::Params(_)
            | Self::Key(_)
            | Self::Start { .. }
            | Self::Directory { .. }
            | Self::NotSucceeded { .. }
            | Self::NoSuchStep { .. }
            | Self::Output { .. }
            | Self::Stopped(_) => false,
        }
    }
}

/// Lets a program be its own warden ([`Builder::own_warden`]): to be called first thing in `main`, before any runtime. It does nothing
/// unless the program was started by an engine for that; then it gives the exit code with which to end.
pub fn warden() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() != Some(WARDEN) {
        return None;
    }
    let served = Options::read(args).ok_or(Refused::NoNode).and_then(serve);
    Some(match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("no warden: {error}");
            ExitCode::from(2)
        }
    })
}
