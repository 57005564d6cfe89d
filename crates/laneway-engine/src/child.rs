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
use laneway_core::definition::{self, DocumentDefaults, Source};
use laneway_core::hash::ContentHash;
use laneway_core::id::SessionId;
use laneway_core::params;
use laneway_core::plan::Plan;
use laneway_store::child::{Resumed, WantedPage, WantedRun, Wanting};
use laneway_store::model::Submission;
use laneway_store::{Error, Store};
use laneway_torture::{Point, pass};
use tokio::time::{Instant, sleep, sleep_until};

use crate::bundle;

/// How many are looked at at a time. In tests few are many.
const AT_ONCE: usize = if cfg!(test) { 4 } else { 1_000 };

/// How many of them are started before it is looked again: what others have started meanwhile is not tried any more.
const SHARE: usize = 32;

/// The store changes all the time, and few of those changes want a run: it is looked at this often at most.
const LOOK_AFTER: Duration = Duration::from_millis(50);

/// A hint may get lost. Where hints are reliable the store's own `max_poll_interval` is longer, and counts.
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
    /// For files that are silent.
    pub defaults: DocumentDefaults,
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
                () = sleep(LOOK_AT_LEAST.max(self.store.max_poll_interval())) => {}
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
        let (mut tried, mut full, mut first) = (HashSet::new(), HashSet::new(), Ok(()));
        let mut after = None;
        loop {
            let (session, is_own_only) = (self.session, self.is_local);
            let wanting = Wanting { session, is_own_only, after, limit: AT_ONCE };
            let WantedPage { runs: mut wanted, end } = self.store.wanted_runs(wanting).await?;
            wanted.retain(|wanted| !tried.contains(&wanted.parent.key()));
            let share = share(self.session, wanted);
            if share.is_empty() {
                // All of these were tried; there may be more behind them.
                match end {
                    Some(end) => after = Some(end),
                    None => return first,
                }
            }
            for wanted in share {
                tried.insert(wanted.parent.key());
                match self.start(&wanted, &mut full).await {
                    Ok(()) => {}
                    Err(error @ Error::SessionOver { .. }) => return Err(error),
                    Err(error) => first = first.and(Err(error)),
                }
            }
        }
    }

    /// Starts one, or tells the step why that cannot be. An error is one of the store: it is tried again. `full` are workflows of which
    /// no run can go on: one is asked for all of them, since each question is a write.
    async fn start(&self, wanted: &WantedRun, full: &mut HashSet<String>) -> Result<(), Error> {
        pass(Point::ChildWanted);
        if let Some(again) = wanted.again {
            let workflow = match self.store.head(again).await {
                Ok(head) => Some(head.plan.workflow.name.clone()),
                // What is wrong with it is told to the step below.
                Err(error) if error.is_passing() => return Err(error),
                Err(_) => None,
            };
            if workflow.as_ref().is_some_and(|workflow| full.contains(workflow)) {
                return Ok(());
            }
            let session = wanted.is_local.then_some(self.session);
            match self.store.resume_child(wanted.parent.clone(), again, session).await {
                Ok(Resumed::Done) => {
                    pass(Point::ChildResumed);
                    return Ok(());
                }
                Ok(Resumed::NoRoom) => {
                    full.extend(workflow);
                    return Ok(());
                }
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
            dir: found.dir,
            bundle: found.bundle.filter(|_| !wanted.is_local),
            params,
            max_parallel: workflow.max_parallel.map_or(self.max_parallel, NonZeroU32::get),
            is_shared: !wanted.is_local,
            key: Some(wanted.parent.key()),
            by: format!("run {}", wanted.parent.run.short()),
            parent: Some(wanted.parent.clone()),
            no_cache: wanted.no_cache,
            ..Submission::new(found.plan, found.document, self.session)
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
        let (dir, defaults) = (head.dir.clone(), self.defaults.clone());
        let read = match &head.bundle {
            Some(bundle) => {
                let name = wanted.workflow.trim_start_matches("./").to_owned();
                if name.contains('/') {
                    let why = "only a file in the same directory goes with a run; apply this one, and name the workflow";
                    return Ok(Err(why.to_owned()));
                }
                let (bytes, bundle) = (self.store.blob(bundle).await?, bundle.clone());
                tokio::task::spawn_blocking(move || packed(&bytes, &name, (dir, bundle), &defaults)).await
            }
            None if !wanted.is_local && !self.store.is_embedded() => {
                let why = "a file is found only where its run was started; apply it, and name the workflow";
                return Ok(Err(why.to_owned()));
            }
            None => {
                let path = Path::new(&dir).join(&wanted.workflow);
                tokio::task::spawn_blocking(move || file(path, &defaults)).await
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

fn file(path: PathBuf, defaults: &DocumentDefaults) -> Result<Found, String> {
    let bytes =
        std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let dir = path.parent().unwrap_or(Path::new("/")).display().to_string();
    compiled(&path, bytes, (dir, None), defaults)
}

/// A file that goes with the parent, and whose child the same files go with.
fn packed(
    bytes: &[u8],
    name: &str,
    (dir, bundle): (String, ContentHash),
    defaults: &DocumentDefaults,
) -> Result<Found, String> {
    let found = bundle::top_file(bytes, name).map_err(|error| error.to_string())?;
    let bytes = found.ok_or_else(|| format!("there is no file {name} beside the workflow"))?;
    compiled(Path::new(name), bytes, (dir, Some(bundle)), defaults)
}

fn compiled(
    path: &Path,
    bytes: Vec<u8>,
    (dir, bundle): (String, Option<ContentHash>),
    defaults: &DocumentDefaults,
) -> Result<Found, String> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let wrong = |faults: definition::Diagnostics| faults.render(false).trim_end().to_owned();
    let source = Source::from_bytes(path.display().to_string(), stem, bytes).map_err(wrong)?;
    let source = defaults.complete(source);
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
    use laneway_core::class::Offer;
    use laneway_core::id::RunId;
    use laneway_core::reason::Reason;
    use laneway_store::Open;
    use laneway_store::model::{Ask, Finished, NewSession, Outcome, Reopen};
    use serde_json::Map;

    use super::*;

    const CALL: &str = "name: parent\nsteps: {call: {workflow: flow}}\n";
    const FLOW: &str = "name: flow\nmax_runs: 1\nsteps: {a: {run: x}}\n";

    /// A store with a node that starts runs, and ends what they do.
    struct Home {
        _dir: tempfile::TempDir,
        starter: Starter,
    }

    impl Home {
        async fn new(is_local: bool) -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("laneway.db");
            let store = laneway_store::open(&path.to_string_lossy(), Open::Create).expect("a store");
            let offer = Offer { node: "one".to_owned(), has_process: true, ..Offer::default() };
            let node = NewSession { offer: Some(offer), ..NewSession::ephemeral("one", 9) };
            let session = store.register(node).await.expect("a session");
            Self {
                _dir: dir,
                starter: Starter {
                    store,
                    session,
                    max_parallel: 4,
                    is_local,
                    defaults: DocumentDefaults::default(),
                },
            }
        }

        async fn submit(&self, document: &str, is_shared: bool) -> RunId {
            let source = Source::from_bytes("x.yaml", "x", document.as_bytes().to_vec()).expect("a text");
            let submission = Submission {
                dir: "/tmp".to_owned(),
                max_parallel: 4,
                is_shared,
                by: "ada".to_owned(),
                ..Submission::new(
                    Arc::new(definition::compile(&source).expect("a plan")),
                    document.to_owned(),
                    self.starter.session,
                )
            };
            self.starter.store.submit(submission).await.expect("a run")
        }

        /// Whatever can run fails.
        async fn fail(&self) {
            let ask = Ask { session: self.starter.session, run: None, limit: 9, ahead: 0 };
            let claims = self.starter.store.claim(ask).await.expect("claims");
            let failed =
                || Outcome::Failed { reason: Reason::Exit, detail: "x".to_owned(), exit_code: Some(1) };
            let ends = claims.iter().map(|claim| Finished::new(claim.at, failed(), Duration::ZERO));
            self.starter.store.finish(ends.collect(), None).await.expect("an answer");
        }

        /// Runs whose children failed, and are to go on while another run has the one place that there is.
        async fn crowd(&self, size: usize) -> Vec<RunId> {
            self.submit(FLOW, true).await;
            self.fail().await;
            let mut parents = Vec::new();
            for _ in 0..size {
                parents.push(self.submit(CALL, true).await);
                self.starter.look().await.expect("started");
                self.fail().await;
            }
            self.submit(FLOW, true).await;
            for parent in &parents {
                self.starter.store.retry(*parent, Reopen::default(), "ada").await.expect("retried");
            }
            parents
        }

        async fn wanted(&self) -> Vec<WantedRun> {
            let wanting = Wanting::first(self.starter.session, 99);
            self.starter.store.wanted_runs(wanting).await.expect("an answer").runs
        }
    }

    #[tokio::test]
    async fn starts_without_room_hide_none_behind_them() {
        let home = Home::new(false).await;
        let parents = home.crowd(AT_ONCE + 1).await;
        let other = home.submit("name: parent\nsteps: {call: {workflow: other}}\n", true).await;
        home.submit("name: other\nsteps: {a: {run: x}}\n", true).await;
        home.starter.look().await.expect("a look");
        let wanted = home.wanted().await;
        assert_eq!(wanted.len(), parents.len(), "they wait for a place");
        assert!(wanted.iter().all(|wanted| wanted.parent.run != other));
    }

    #[tokio::test]
    async fn workflow_without_room_is_asked_once_in_a_look() {
        let home = Home::new(false).await;
        home.crowd(2).await;
        let mut full = HashSet::new();
        let wanted = home.wanted().await;
        home.starter.start(&wanted[0], &mut full).await.expect("no room");
        assert_eq!(full, HashSet::from(["flow".to_owned()]));
        home.fail().await;
        home.starter.start(&wanted[1], &mut full).await.expect("not asked");
        assert_eq!(home.wanted().await.len(), 2, "the next look will find that there is room by now");
        home.starter.start(&wanted[1], &mut HashSet::new()).await.expect("it goes on");
        assert_eq!(home.wanted().await.len(), 1);
    }

    #[tokio::test]
    async fn process_starts_its_own_behind_any_number_of_shared_ones() {
        let home = Home::new(true).await;
        home.submit("name: flow\nsteps: {a: {run: x}}\n", true).await;
        for _ in 0..=AT_ONCE {
            home.submit(CALL, true).await;
        }
        let own = home.submit(CALL, false).await;
        home.starter.look().await.expect("a look");
        let wanted = home.wanted().await;
        assert_eq!(wanted.len(), AT_ONCE + 1);
        assert!(wanted.iter().all(|wanted| wanted.parent.run != own));
    }

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
