//! Where the steps of a run find their files: the workflow file's directory, or one of the run's own, which is filled from its
//! bundle by whoever comes first. Owns the workspaces and the bundles that this node has fetched, and removes both again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::definition::Workspace;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::Store;
use laneway_store::model::Claim;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use tokio::sync::Mutex;

use super::prepare::Ground;
use super::run_files::RunFiles;
use crate::bundle;
use crate::isolate::{self, CellName, Isolates};

/// How long the workspace of a run that has ended is kept: somebody may look at it, or retry the run.
const KEEP_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often a node looks for workspaces that nobody needs any more.
const TIDY_EVERY: Duration = Duration::from_secs(600);

/// How many bundles are kept on the node, those that were used last.
const KEEP_BUNDLES: usize = 32;

/// The workspaces of a node.
#[derive(Debug, Clone)]
pub(super) struct Workspaces {
    store: Arc<dyn Store>,
    store_dir: PathBuf,
    /// On the same file system, and gone with the session.
    scratch: PathBuf,
    /// Where members of groups work apart from each other.
    isolates: Isolates,
    /// Views of runs whose files follow them.
    files: RunFiles,
    /// One bundle at a time is in memory, and tasks of one run do not fill its workspace twice.
    turn: Arc<Mutex<()>>,
}

/// Why a step has no place to run in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("its bundle could not be fetched: {0}")]
    Store(#[from] laneway_store::Error),
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    #[error("this node does not have {}, the directory that `workspace` names: {source}; let `runs_on` choose nodes that have it", path.display())]
    NoSuchPath { path: PathBuf, source: io::Error },
    #[error("its workspace {} cannot be made: {source}", path.display())]
    Files { path: PathBuf, source: io::Error },
}

impl Error {
    /// Whether to ask again: neither a busy store nor a full disk is the step's fault.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) => error.is_passing(),
            Self::Bundle(bundle::Error::Unwritable { source, .. }) | Self::Files { source, .. } => {
                source.kind() == io::ErrorKind::StorageFull
            }
            Self::Bundle(_) | Self::NoSuchPath { .. } => false,
        }
    }
}

/// Returns the bundle of a run whose files follow it: each attempt works in a view of its own.
pub(super) fn followed(claim: &Claim) -> Option<&ContentHash> {
    match claim.head.plan.workflow.workspace {
        Workspace::Follow => claim.head.bundle.as_ref(),
        Workspace::None | Workspace::Path(_) => None,
    }
}

impl Workspaces {
    /// Layers of a view that have more than `max_bytes` are not stored.
    pub(super) fn new(store: Arc<dyn Store>, store_dir: PathBuf, scratch: PathBuf, max_bytes: u64) -> Self {
        let home = laneway_store::isolates_dir(&store_dir, store.instance());
        let isolates = Isolates::new(home, store_dir.clone());
        let home = laneway_store::workspaces_dir(&store_dir, store.instance());
        let files = RunFiles::new(Arc::clone(&store), &home, scratch.clone(), max_bytes);
        Self { store, store_dir, scratch, isolates, files, turn: Arc::default() }
    }

    pub(super) fn files(&self) -> &RunFiles {
        &self.files
    }

    pub(super) fn isolates(&self) -> &Isolates {
        &self.isolates
    }

    /// Where a claimed step works: in a copy of the run's directory of its own, if it or its group wants that, else there.
    pub(super) async fn isolated(&self, claim: &Claim, base: &Path) -> Result<PathBuf, isolate::Error> {
        let plan = &claim.head.plan;
        if !is_merged(claim) && !plan.step(claim.at.position).files().isolate {
            return Ok(base.to_owned());
        }
        let (isolates, cell) = (self.isolates.clone(), cell(claim));
        let (run, from) = (claim.head.run, base.to_owned());
        let made = tokio::task::spawn_blocking(move || isolates.enter(run, &cell, &from));
        let failed = |error: tokio::task::JoinError| isolate::Error::Files {
            what: "copy",
            path: base.to_owned(),
            source: io::Error::other(error.to_string()),
        };
        made.await.map_err(failed)?
    }

    /// An attempt has succeeded, and its artifacts are kept: a copy that no merge will ask for is removed. That of an attempt that
    /// failed stays for a look at it, until the files of its run go.
    pub(super) async fn discard(&self, claim: &Claim) {
        if is_merged(claim) || !claim.head.plan.step(claim.at.position).files().isolate {
            return;
        }
        let (isolates, run, cell) = (self.isolates.clone(), claim.head.run, cell(claim));
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || isolates.discard(run, &cell)).await {
            tracing::debug!("{error}");
        }
    }

    /// A run has ended here. What was merged is where it belongs; of one that did not succeed the copies stay, because
    /// whoever retries it needs those of members that did.
    pub(super) async fn leave(&self, run: RunId, has_succeeded: bool) {
        let isolates = self.isolates.clone();
        let left = tokio::task::spawn_blocking(move || match has_succeeded {
            true => isolates.remove(run),
            false => isolates.rest(run),
        });
        if let Ok(Err(error)) = left.await {
            tracing::debug!("{error}");
        }
    }

    /// The directory in which a claimed step runs.
    pub(super) async fn ready(&self, ground: &Ground, claim: &Claim) -> Result<PathBuf, Error> {
        let head = &claim.head;
        // A local run works in the caller's directory, whatever its document says.
        if let (Workspace::Path(path), Ground::Beside { .. } | Ground::Apart { .. }) =
            (&head.plan.workflow.workspace, ground)
        {
            let path = PathBuf::from(path);
            let there = std::fs::metadata(&path).and_then(|found| match found.is_dir() {
                true => Ok(()),
                false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
            });
            return there.map(|()| path.clone()).map_err(|source| Error::NoSuchPath { path, source });
        }
        match (&head.bundle, ground) {
            (Some(hash), _) => self.fill(head.run, hash).await,
            (None, Ground::Caller { .. } | Ground::Beside { .. }) => Ok(PathBuf::from(&head.dir)),
            (None, Ground::Apart { .. }) => {
                let dir = self.of(head.run);
                // Of the directory itself containers of other users see the mode; those above keep others out.
                let above = dir.parent().map_or(Ok(()), laneway_store::private::create_dir_all);
                let made = above.and_then(|()| std::fs::create_dir_all(&dir));
                made.map_err(|source| Error::Files { path: dir.clone(), source })?;
                Ok(dir)
            }
        }
    }

    /// Now and then, for as long as somebody holds it.
    pub(super) async fn keep_tidy(self, now: impl Fn() -> Millis) {
        loop {
            self.tidy(now()).await;
            tokio::time::sleep(TIDY_EVERY).await;
        }
    }

    /// Removes workspaces of runs that ended long ago or are gone. What cannot be removed stays.
    pub(super) async fn tidy(&self, now: Millis) {
        let entries = std::fs::read_dir(self.home()).into_iter().flatten();
        let runs = entries.flatten().filter_map(|entry| RunId::parse(entry.file_name().to_str()?));
        for run in runs {
            if self.is_done_with(run, now).await {
                let workspace = self.of(run);
                drop(tokio::task::spawn_blocking(move || std::fs::remove_dir_all(workspace)).await);
            }
        }
        self.tidy_isolates(now).await;
        self.files.tidy().await;
    }

    async fn tidy_isolates(&self, now: Millis) {
        for run in self.isolates.runs() {
            if self.is_done_with(run, now).await {
                let isolates = self.isolates.clone();
                drop(tokio::task::spawn_blocking(move || isolates.forget(run)).await);
            } else if let Ok(status) = self.store.status(run).await
                && status.is_final()
            {
                self.leave(run, status == RunStatus::Succeeded).await;
            }
        }
    }

    async fn is_done_with(&self, run: RunId, now: Millis) -> bool {
        match self.store.status(run).await {
            Ok(status) if status.is_final() => {}
            Ok(_) => return false,
            Err(error) => return matches!(error, laneway_store::Error::NoSuchRun { .. }),
        }
        // Only then: a run may have many tasks.
        let state = self.store.run_state(run).await;
        state.is_ok_and(|state| state.finished_at.is_some_and(|at| now.since(at) > KEEP_FOR))
    }

    fn of(&self, run: RunId) -> PathBuf {
        self.home().join(run.to_string())
    }

    /// Those of one store: another one may have its files in the same directory, and knows none of these runs.
    fn home(&self) -> PathBuf {
        laneway_store::workspaces_dir(&self.store_dir, self.store.instance())
    }

    async fn fill(&self, run: RunId, hash: &ContentHash) -> Result<PathBuf, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let target = self.of(run);
        let _turn = self.turn.lock().await;
        if target.is_dir() {
            return Ok(target);
        }
        let cache = Cache { dir: self.store_dir.join("bundles") };
        let bytes = match cache.get(hash) {
            Some(bytes) => bytes,
            None => {
                let bytes = self.store.blob(hash).await?;
                cache.put(hash, &bytes, &self.scratch);
                bytes
            }
        };
        let (place, scratch) = (target.clone(), self.scratch.clone());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unpacked = tokio::task::spawn_blocking(move || {
            let fresh = scratch.join(format!("workspace-{number}"));
            let unpacked = bundle::unpack(&bytes, &fresh).map_err(Error::from);
            let placed = unpacked.and_then(|()| place_dir(&fresh, &place));
            if placed.is_err() {
                drop(std::fs::remove_dir_all(&fresh));
            }
            placed
        });
        let failed = |error: tokio::task::JoinError| Error::Files {
            path: target.clone(),
            source: io::Error::other(error.to_string()),
        };
        unpacked.await.map_err(failed)??;
        Ok(target)
    }
}

/// Whether its copy is for the merge of a group.
fn is_merged(claim: &Claim) -> bool {
    let plan = &claim.head.plan;
    plan.group_of(claim.at.position).is_some_and(|group| plan.group(group).isolate)
}

fn cell(claim: &Claim) -> CellName {
    CellName { step: claim.head.plan.task_name(claim.at.position), attempt: claim.at.attempt }
}

/// Whole, or not at all. Another process of this node may have been quicker; its content is the same.
fn place_dir(fresh: &Path, target: &Path) -> Result<(), Error> {
    let failed = |source| Error::Files { path: target.to_owned(), source };
    if let Some(parent) = target.parent() {
        laneway_store::private::create_dir_all(parent).map_err(failed)?;
    }
    match std::fs::rename(fresh, target) {
        Err(_) if target.is_dir() => {
            drop(std::fs::remove_dir_all(fresh));
            Ok(())
        }
        renamed => renamed.map_err(failed),
    }
}

/// Archives by their hash. They are looked at whenever they are used, so that it does not matter what became of a file
/// meanwhile; without one, the store has it.
struct Cache {
    dir: PathBuf,
}

impl Cache {
    fn path(&self, hash: &ContentHash) -> PathBuf {
        self.dir.join(format!("{hash}.tar"))
    }

    fn get(&self, hash: &ContentHash) -> Option<Vec<u8>> {
        let path = self.path(hash);
        let bytes = std::fs::read(&path).ok()?;
        if ContentHash::of(&bytes) != *hash {
            drop(std::fs::remove_file(&path));
            return None;
        }
        // Those that were used last are kept.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        if let Ok(file) = std::fs::File::open(&path) {
            let _ = futimens(file, &Timestamps { last_access: now, last_modification: now });
        }
        Some(bytes)
    }

    /// A cache that cannot be written is none.
    fn put(&self, hash: &ContentHash, bytes: &[u8], scratch: &Path) {
        let fresh = scratch.join(format!("{hash}.tar"));
        let put = || -> io::Result<()> {
            laneway_store::private::create_dir_all(&self.dir)?;
            laneway_store::private::write(&fresh, bytes)?;
            std::fs::rename(&fresh, self.path(hash))
        };
        if let Err(error) = put() {
            tracing::debug!(%error, "a bundle is not kept on this node");
            drop(std::fs::remove_file(&fresh));
        }
        self.prune();
    }

    fn prune(&self) {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut kept: Vec<_> = entries
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        kept.sort_unstable_by(|one, other| other.cmp(one));
        for (_, path) in kept.into_iter().skip(KEEP_BUNDLES) {
            drop(std::fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundle_that_was_changed_on_the_node_is_fetched_again() {
        let dir = tempfile::tempdir().expect("dir");
        let (cache, hash) = (Cache { dir: dir.path().join("bundles") }, ContentHash::of(b"content"));
        assert_eq!(cache.get(&hash), None);
        cache.put(&hash, b"content", dir.path());
        assert_eq!(cache.get(&hash).as_deref(), Some(&b"content"[..]));
        std::fs::write(cache.path(&hash), b"poison").expect("written");
        assert_eq!(cache.get(&hash), None);
        assert!(!cache.path(&hash).exists());
    }

    #[tokio::test]
    async fn workspace_of_a_run_that_is_gone_goes() {
        let dir = tempfile::tempdir().expect("dir");
        let store = laneway_store::open(
            &dir.path().join("laneway.db").to_string_lossy(),
            laneway_store::Open::Create,
        );
        let (store, scratch) = (store.expect("a store"), dir.path().join("scratch"));
        let workspaces = Workspaces::new(store, dir.path().to_owned(), scratch, u64::MAX);
        let gone = RunId::parse("0190d5a0-0000-7000-8000-000000000000").expect("an id");
        // Of another store, which knows it.
        let foreign = dir.path().join("workspaces/other").join(gone.to_string());
        for path in [&workspaces.of(gone), &foreign] {
            std::fs::create_dir_all(path).expect("made");
        }
        workspaces.tidy(Millis(0)).await;
        assert!(!workspaces.of(gone).exists() && foreign.exists());
    }

    #[test]
    fn only_the_bundles_that_were_used_last_stay() {
        let dir = tempfile::tempdir().expect("dir");
        let cache = Cache { dir: dir.path().join("bundles") };
        for number in 0..KEEP_BUNDLES + 5 {
            let bytes = number.to_string();
            cache.put(&ContentHash::of(bytes.as_bytes()), bytes.as_bytes(), dir.path());
        }
        assert_eq!(std::fs::read_dir(&cache.dir).expect("dir").count(), KEEP_BUNDLES);
    }
}
