//! Starts the runs that steps wait for (`workflow`). Any number of nodes do so at once, and the process that drives a local run
//! does for its own.
//!
//! ```text
//!   wanted_runs ──▶ the workflow, by name or file ──▶ submit, under a key made of the step's life ──▶ child_began | child_refused
//! ```
//! Whoever dies in between leaves a run that is still wanted, and the next one's submission under the same key gives the run that is
//! there: each life of a step starts one run. docs/design/children.md.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use laneway_core::child::{is_file, too_deep};
use laneway_core::definition::{self, Source};
use laneway_core::hash::ContentHash;
use laneway_core::id::{RunId, SessionId};
use laneway_core::params;
use laneway_core::plan::Plan;
use laneway_store::child::WantedRun;
use laneway_store::model::Submission;
use laneway_store::{Error, Store};
use tokio::time::{Instant, sleep, sleep_until};

/// How many are dealt with at a time.
const AT_ONCE: usize = 64;

/// The store changes all the time, and few of those changes want a run: it is looked at this often at most.
const LOOK_AFTER: Duration = Duration::from_millis(50);

/// A hint may get lost.
const LOOK_AT_LEAST: Duration = Duration::from_secs(5);

/// A store that cannot be reached may be there again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Starter {
    pub store: Arc<dyn Store>,
    /// Who submits.
    pub session: SessionId,
    /// For workflows that say nothing about it.
    pub max_parallel: u32,
}

/// What is to be started.
struct Found {
    plan: Arc<Plan>,
    document: String,
    dir: String,
    bundle: Option<ContentHash>,
}

impl Starter {
    /// Until the session is over. Dropping it at any moment loses nothing.
    pub async fn until_over(self) {
        let mut changes = self.store.changes();
        loop {
            let begun = Instant::now();
            match self.look().await {
                Ok(()) => {}
                Err(Error::SessionOver { .. }) => return,
                Err(error) => {
                    tracing::warn!("runs that steps wait for are not started yet: {error}");
                    sleep(TRY_AGAIN).await;
                    continue;
                }
            }
            tokio::select! {
                () = sleep(LOOK_AT_LEAST) => {}
                told = changes.changed() => match told {
                    Ok(()) => sleep_until(begun + LOOK_AFTER).await,
                    // The store is closing.
                    Err(_) => return,
                },
            }
        }
    }

    /// Starts all that are wanted.
    async fn look(&self) -> Result<(), Error> {
        loop {
            let wanted = self.store.wanted_runs(self.session, AT_ONCE).await?;
            if wanted.is_empty() {
                return Ok(());
            }
            for wanted in wanted {
                match self.start(&wanted).await? {
                    Ok(run) => self.store.child_began(wanted.parent, run).await?,
                    Err(why) => self.store.child_refused(wanted.parent, &why).await?,
                }
            }
        }
    }

    /// The run, or why there is none, in words. An error is one of the store, and all of it is tried again.
    async fn start(&self, wanted: &WantedRun) -> Result<Result<RunId, String>, Error> {
        if let Some(why) = too_deep(wanted.parent.depth) {
            return Ok(Err(why));
        }
        if let Some(again) = wanted.again
            && let Some(run) = told(self.go_on(again, wanted).await)?.transpose()
        {
            return Ok(run);
        }
        let found = match told(self.find(wanted).await)? {
            Ok(Ok(found)) => found,
            Ok(Err(why)) | Err(why) => return Ok(Err(why)),
        };
        let workflow = &found.plan.workflow;
        let params = match params::bind(workflow, wanted.params.clone()) {
            Ok(params) => params,
            Err(errors) => {
                return Ok(Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
            }
        };
        let submission = Submission {
            document: found.document,
            dir: found.dir,
            bundle: found.bundle.filter(|_| !wanted.is_local),
            params,
            max_parallel: workflow.max_parallel.map_or(self.max_parallel, NonZeroU32::get),
            session: self.session,
            is_shared: !wanted.is_local,
            is_paused: false,
            key: Some(wanted.parent.key()),
            by: by(wanted),
            origin: None,
            parent: Some(wanted.parent.clone()),
            plan: found.plan,
        };
        told(self.store.submit(submission).await)
    }

    /// Lets the run of an earlier life go on: what did not succeed of it runs again. `None` if it is gone.
    async fn go_on(&self, run: RunId, wanted: &WantedRun) -> Result<Option<RunId>, Error> {
        match self.store.retry(run, None, &by(wanted)).await {
            Ok(_) | Err(Error::NotEnded { .. } | Error::NothingToRetry { .. }) => {}
            Err(Error::NoSuchRun { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        if wanted.is_local {
            match self.store.adopt(run, self.session).await {
                Ok(()) | Err(Error::Ended { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(run))
    }

    async fn find(&self, wanted: &WantedRun) -> Result<Result<Found, String>, Error> {
        if is_file(&wanted.workflow) {
            return self.read(wanted).await;
        }
        let known = match self.store.latest(&wanted.workflow).await {
            Ok(known) => known,
            Err(Error::NoSuchWorkflow { .. }) => {
                return Ok(Err(format!(
                    "there is no workflow `{}`; make it known with `laneway apply FILE`, or name its file",
                    wanted.workflow
                )));
            }
            Err(error) => return Err(error),
        };
        let plan = self.store.plan(&known.version).await?;
        let document = self.store.document(&known.version).await?;
        Ok(Ok(Found { plan, document, dir: known.dir, bundle: known.bundle }))
    }

    /// A file beside that of the parent, as it is now.
    async fn read(&self, wanted: &WantedRun) -> Result<Result<Found, String>, Error> {
        let head = self.store.head(wanted.parent.run).await?;
        if head.bundle.is_some() || !wanted.is_local && !self.store.is_embedded() {
            return Ok(Err(
                "a file is found only where its run was started; apply it, and name the workflow".to_owned(),
            ));
        }
        let path = Path::new(&head.dir).join(&wanted.workflow);
        let read = tokio::task::spawn_blocking(move || file(path)).await;
        Ok(read.unwrap_or_else(|error| Err(error.to_string())))
    }
}

fn file(path: PathBuf) -> Result<Found, String> {
    let bytes =
        std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let wrong = |faults: definition::Diagnostics| faults.render(false).trim_end().to_owned();
    let source = Source::from_bytes(path.display().to_string(), stem, bytes).map_err(wrong)?;
    let plan = definition::compile(&source).map_err(wrong)?;
    let dir = path.parent().unwrap_or(Path::new("/")).display().to_string();
    Ok(Found { plan: Arc::new(plan), document: source.text, dir, bundle: None })
}

fn by(wanted: &WantedRun) -> String {
    format!("run {}", wanted.parent.run.short())
}

/// What is wrong with this one is told to the step; an error of the store is given back.
fn told<T>(done: Result<T, Error>) -> Result<Result<T, String>, Error> {
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(error) if error.is_passing() => Err(error),
        Err(error @ (Error::SessionOver { .. } | Error::Closed { .. })) => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}
