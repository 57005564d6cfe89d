//! Starts the runs that steps wait for (`workflow`). Any number of nodes do so at once, and the process that drives a local run
//! does for its own.
//!
//! ```text
//!   wanted_runs ──▶ the workflow, by name or file ──▶ submit, with its parent | resume_child | child_refused
//! ```
//! From the moment on in which it is there the step waits for it: each life of a step starts one run, and none that nobody waits for. docs/design/children.md.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use laneway_core::child::{is_file, too_deep};
use laneway_core::definition::{self, Source};
use laneway_core::hash::ContentHash;
use laneway_core::id::SessionId;
use laneway_core::params;
use laneway_core::plan::Plan;
use laneway_store::child::{Resumed, WantedRun};
use laneway_store::model::Submission;
use laneway_store::{Error, Store};
use laneway_torture::{Point, pass};
use tokio::time::{Instant, sleep, sleep_until};

use crate::bundle;

/// How many are looked at at a time.
const AT_ONCE: usize = 1_000;

/// How many of them are started before it is looked again: what others have started meanwhile is not tried any more.
const SHARE: usize = 32;

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
    /// Whether it starts no others than those of local runs of its session.
    pub is_local: bool,
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

    /// Starts all that are wanted and can be, each tried once. One that cannot keeps no other from starting; the first error is given in
    /// the end.
    async fn look(&self) -> Result<(), Error> {
        let (mut tried, mut first) = (HashSet::new(), Ok(()));
        loop {
            let mut wanted = self.store.wanted_runs(self.session, AT_ONCE).await?;
            wanted.retain(|wanted| wanted.is_local || !self.is_local);
            wanted.retain(|wanted| !tried.contains(&wanted.parent.key()));
            let share = share(self.session, wanted);
            if share.is_empty() {
                return first;
            }
            for wanted in share {
                tried.insert(wanted.parent.key());
                match self.start(&wanted).await {
                    Ok(()) => {}
                    Err(error @ Error::SessionOver { .. }) => return Err(error),
                    Err(error) => first = first.and(Err(error)),
                }
            }
        }
    }

    /// Starts one, or tells the step why that cannot be. An error is one of the store: it is tried again.
    async fn start(&self, wanted: &WantedRun) -> Result<(), Error> {
        pass(Point::ChildWanted);
        if let Some(again) = wanted.again {
            let session = wanted.is_local.then_some(self.session);
            match self.store.resume_child(wanted.parent.clone(), again, session).await {
                Ok(Resumed::Done) => {
                    pass(Point::ChildResumed);
                    return Ok(());
                }
                Ok(Resumed::NoRoom) => return Ok(()),
                Ok(Resumed::Gone) => {}
                Err(error) => return self.refuse(wanted, told(error)?).await,
            }
        }
        let submission = match self.submission(wanted).await {
            Ok(Ok(submission)) => submission,
            Ok(Err(why)) => return self.refuse(wanted, why).await,
            Err(error) => return self.refuse(wanted, told(error)?).await,
        };
        match self.store.submit(submission).await {
            // Somebody was faster, or nobody waits for it any more.
            Ok(_) | Err(Error::NotWanted { .. }) => {
                pass(Point::ChildStarted);
                Ok(())
            }
            Err(error) => self.refuse(wanted, told(error)?).await,
        }
    }

    async fn refuse(&self, wanted: &WantedRun, why: String) -> Result<(), Error> {
        self.store.child_refused(wanted.parent.clone(), &why).await
    }

    async fn submission(&self, wanted: &WantedRun) -> Result<Result<Submission, String>, Error> {
        if let Some(why) = too_deep(wanted.parent.depth) {
            return Ok(Err(why));
        }
        let found = match self.find(wanted).await? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        let workflow = &found.plan.workflow;
        if let Some(why) = self.in_its_own_way(wanted, &found.plan).await? {
            return Ok(Err(why));
        }
        let params = match params::bind(workflow, wanted.params.clone()) {
            Ok(params) => params,
            Err(errors) => {
                return Ok(Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
            }
        };
        Ok(Ok(Submission {
            document: found.document,
            dir: found.dir,
            bundle: found.bundle.filter(|_| !wanted.is_local),
            params,
            max_parallel: workflow.max_parallel.map_or(self.max_parallel, NonZeroU32::get),
            session: self.session,
            is_shared: !wanted.is_local,
            is_paused: false,
            key: Some(wanted.parent.key()),
            by: format!("run {}", wanted.parent.run.short()),
            origin: None,
            parent: Some(wanted.parent.clone()),
            no_cache: wanted.no_cache,
            plan: found.plan,
        }))
    }

    /// Why it would wait for ever: runs above it, which wait for it, have all the places that its workflow has.
    async fn in_its_own_way(&self, wanted: &WantedRun, plan: &Plan) -> Result<Option<String>, Error> {
        let workflow = &plan.workflow;
        let Some(limit) = workflow.max_runs.map(|max| max.limit.get()) else { return Ok(None) };
        let (mut above, mut same) = (Some(wanted.parent.run), 0);
        while let Some(run) = above {
            let head = self.store.head(run).await?;
            same += u32::from(head.plan.workflow.name == workflow.name);
            above = head.parent.as_ref().map(|parent| parent.run);
        }
        Ok((same >= limit).then(|| {
            format!(
                "`max_runs` of {} is {limit}, and it is below {same} of its own runs, which wait for it",
                workflow.name
            )
        }))
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
        let dir = head.dir.clone();
        let read = match &head.bundle {
            Some(bundle) => {
                let name = wanted.workflow.trim_start_matches("./").to_owned();
                if name.contains('/') {
                    let why = "only a file in the same directory goes with a run; apply this one, and name the workflow";
                    return Ok(Err(why.to_owned()));
                }
                let (bytes, bundle) = (self.store.blob(bundle).await?, bundle.clone());
                tokio::task::spawn_blocking(move || packed(&bytes, &name, dir, bundle)).await
            }
            None if !wanted.is_local && !self.store.is_embedded() => {
                let why = "a file is found only where its run was started; apply it, and name the workflow";
                return Ok(Err(why.to_owned()));
            }
            None => {
                let path = Path::new(&dir).join(&wanted.workflow);
                tokio::task::spawn_blocking(move || file(path)).await
            }
        };
        Ok(read.unwrap_or_else(|error| Err(error.to_string())))
    }
}

/// Those that this node starts next. Every node reads the same list; each begins elsewhere in it, so that they rarely try the same.
fn share(session: SessionId, mut wanted: Vec<WantedRun>) -> Vec<WantedRun> {
    wanted.sort_by_cached_key(|wanted| {
        let mut hasher = DefaultHasher::new();
        (session.to_string(), wanted.parent.run.to_string(), &wanted.parent.step).hash(&mut hasher);
        hasher.finish()
    });
    wanted.truncate(SHARE);
    wanted
}

fn file(path: PathBuf) -> Result<Found, String> {
    let bytes =
        std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let dir = path.parent().unwrap_or(Path::new("/")).display().to_string();
    compiled(&path, bytes, dir, None)
}

/// A file that goes with the parent, and whose child the same files go with.
fn packed(bytes: &[u8], name: &str, dir: String, bundle: ContentHash) -> Result<Found, String> {
    let found = bundle::top_file(bytes, name).map_err(|error| error.to_string())?;
    let bytes = found.ok_or_else(|| format!("there is no file {name} beside the workflow"))?;
    compiled(Path::new(name), bytes, dir, Some(bundle))
}

fn compiled(path: &Path, bytes: Vec<u8>, dir: String, bundle: Option<ContentHash>) -> Result<Found, String> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let wrong = |faults: definition::Diagnostics| faults.render(false).trim_end().to_owned();
    let source = Source::from_bytes(path.display().to_string(), stem, bytes).map_err(wrong)?;
    let plan = definition::compile(&source).map_err(wrong)?;
    Ok(Found { plan: Arc::new(plan), document: source.text, dir, bundle })
}

/// What is wrong with this one is told to the step; any other error is given back.
fn told(error: Error) -> Result<String, Error> {
    match error {
        Error::NotRunnable { .. }
        | Error::NoSuchLimit { .. }
        | Error::NoSuchWorkflow { .. }
        | Error::SetAside { .. }
        | Error::Owned { .. }
        | Error::Unreadable { .. } => Ok(error.to_string()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::child::Parent;
    use laneway_core::id::RunId;
    use serde_json::Map;

    use super::*;

    fn wanted(run: RunId, item: usize) -> WantedRun {
        let parent = Parent { run, step: format!("call[{item}]"), life: 7, depth: 1 };
        let (workflow, params) = ("flow".to_owned(), Map::new());
        WantedRun { parent, workflow, params, again: None, is_local: false, no_cache: false }
    }

    /// As if all nodes were equally fast, which is the worst that can be: each knows what was started before its look.
    #[test]
    fn nodes_rarely_try_what_another_one_starts() {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("a well-formed id");
        let session = |node: u32| {
            SessionId::parse(&format!("0199f2a0-0000-7000-8000-0000000000{node:02}"))
                .expect("a well-formed id")
        };
        let mut left: Vec<WantedRun> = (0..1_000).map(|item| wanted(run, item)).collect();
        let mut tries = 0;
        while !left.is_empty() {
            let shares: Vec<WantedRun> = (0..8).flat_map(|node| share(session(node), left.clone())).collect();
            tries += shares.len();
            left.retain(|wanted| !shares.iter().any(|started| started.parent == wanted.parent));
        }
        assert!(tries < 2_000, "{tries} tries of eight nodes for 1,000 runs; all of all would be 8,000");
    }

    #[test]
    fn all_are_started_by_one_node_alone() {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("a well-formed id");
        let session = SessionId::parse("0199f2a0-0000-7000-8000-000000000001").expect("a well-formed id");
        let all: Vec<WantedRun> = (0..5).map(|item| wanted(run, item)).collect();
        let mut share = share(session, all.clone());
        share.sort_by_key(|wanted| wanted.parent.step.clone());
        assert_eq!(share, all);
    }
}
