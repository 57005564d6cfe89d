//! Copies of a run's directory, one for each member of a group that isolates them, and how what members made of them comes
//! back. Owns the directory `isolates` beside the store, and touches nothing else but the run's directory, when a merge is
//! applied to it. What is decided there is core's (`laneway_core::merge`). Why: docs/design/groups.md.
//!
//! ```text
//!   isolates/INSTANCE/RUN/
//!     applied                    cells whose changes are in the run's directory
//!     GROUP.merge                what a merge decided, so that one that was interrupted does the same again
//!     STEP.aN/                   a cell: one attempt of one member
//!       mark  given              whose it is; what was copied, as it was then
//!       upper  work              what changed, where the copy is an overlay
//!       at/tree                  the copy, with nothing beside it
//! ```
//! Every walk goes by handles of directories, and no name is followed that is a symlink: whoever swaps one in while a tree
//! is copied, compared or removed leads nobody out of it.

mod apply;
pub(crate) mod changes;
pub(crate) mod copy;
mod given;
pub(crate) mod links;
pub(crate) mod mark;
pub(crate) mod overlay;
pub(crate) mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::definition::OnConflict;
use laneway_core::id::RunId;
use laneway_core::merge::{Changes, Combined, Member, combine};

use given::Given;
use links::Links;
use walk::Identity;

/// Of one store, on one node.
#[derive(Debug, Clone)]
pub struct Isolates {
    home: PathBuf,
    /// Never copied: the store would be copied into itself.
    store_dir: PathBuf,
    /// What each file system can do, once that was tried.
    means: Arc<Mutex<BTreeMap<u64, Means>>>,
}

/// How a copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Blocks are shared until somebody writes.
    Reflink,
    /// Only what is written is copied.
    Overlay,
    Copy,
}

/// Where one attempt of a member works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellName {
    pub step: String,
    pub attempt: u32,
}

impl CellName {
    fn text(&self) -> String {
        format!("{}.a{}", self.step, self.attempt)
    }
}

/// Why a copy cannot be made, compared, applied or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {what} {}: {source}", path.display())]
    Files { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} lies too deep: more than {} directories within each other are not copied", path.display(), walk::DEEPEST)]
    TooDeep { path: PathBuf },
    #[error("{} was not made by Laneway, or is not what it was: it is left alone", path.display())]
    NotOurs { path: PathBuf },
    #[error("the copy in which `{step}` worked is gone; run it again with `laneway retry RUN --from {step}`")]
    Gone { step: String },
    #[error("{} is not what the member left: it changed while it was merged; try again", path.display())]
    Changed { path: PathBuf },
    #[error("{} holds files that no member removed, so it cannot become a file", path.display())]
    NotEmpty { path: PathBuf },
    #[error("something was mounted below {} while members worked in copies of it; unmount it and try again", path.display())]
    MountedBelow { path: PathBuf },
}

impl Error {
    /// Whether to ask again: a full disk is nobody's fault.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Files { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            Self::TooDeep { .. }
            | Self::NotOurs { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::NotEmpty { .. }
            | Self::MountedBelow { .. } => false,
        }
    }

    fn files(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Files { what, path, source }
    }
}

/// What came of a merge of copies.
#[derive(Debug)]
pub enum Merged {
    Applied(Combined),
    /// Nothing was applied; in words.
    Refused(String),
}

/// A member whose copy is to be merged.
#[derive(Debug, Clone)]
pub struct Source {
    /// In the group's list.
    pub index: usize,
    pub cell: CellName,
    /// What it says that it changed, if it says so.
    pub output: serde_json::Map<String, serde_json::Value>,
}

impl Isolates {
    pub fn new(home: PathBuf, store_dir: PathBuf) -> Self {
        Self { home, store_dir, means: Arc::default() }
    }

    /// Takes it for known how copies of a directory are made; where that cannot be, files are copied.
    pub fn prefer(&self, base: &Path, means: Means) {
        if let Ok(identity) = walk::identity(base) {
            self.means.lock().unwrap_or_else(PoisonError::into_inner).insert(identity.dev, means);
        }
    }

    /// How the last copy of what is on the same file system was made.
    pub fn means_of(&self, base: &Path) -> Option<Means> {
        let dev = walk::identity(base).ok()?.dev;
        self.means.lock().unwrap_or_else(PoisonError::into_inner).get(&dev).copied()
    }

    /// The copy for an attempt, made of the run's directory as it is now. One that is there already is given again.
    pub fn enter(&self, run: RunId, cell: &CellName, base: &Path) -> Result<PathBuf, Error> {
        let dir = self.dir(run, cell);
        if let Some(mark) = mark::read(&dir)?
            && mark.is_ready
        {
            self.mount_again(&dir, &mark)?;
            return Ok(tree(&dir));
        }
        mark::remove(&dir)?;
        mark::make(&dir)?;
        let place = walk::root(base).map_err(Error::files("look into", base))?;
        let known = self.means.lock().unwrap_or_else(PoisonError::into_inner).get(&place.1.dev).copied();
        let means = known.unwrap_or(Means::Reflink);
        let mut hidden = self.hidden(base);
        // The cell may lie within what is copied.
        hidden.extend(walk::root(&self.home).ok().map(|(_, identity)| identity));
        let may_mount = !self.is_deep_within(base) && !self.has_mounts_below(base);
        let used = self.make((means, known.is_some(), may_mount), &dir, &place.0, base, &hidden)?;
        // What was not tried may be possible for another directory.
        if may_mount || used != Means::Copy {
            self.means.lock().unwrap_or_else(PoisonError::into_inner).insert(place.1.dev, used);
        }
        mark::seal(&dir, used, base)?;
        Ok(tree(&dir))
    }

    /// Tries the best that is not known to be impossible.
    fn make(
        &self,
        (means, is_known, may_mount): (Means, bool, bool),
        dir: &Path,
        from: &OwnedFd,
        base: &Path,
        hidden: &BTreeSet<Identity>,
    ) -> Result<Means, Error> {
        let to = tree(dir);
        std::fs::create_dir_all(&to).map_err(Error::files("make", &to))?;
        let can_clone = match (means, is_known) {
            (Means::Reflink, true) => true,
            (Means::Reflink, false) => copy::can_clone(from, dir),
            (Means::Overlay | Means::Copy, _) => false,
        };
        let may_mount = may_mount && !can_clone && (means == Means::Overlay || !is_known);
        let links = Links::between(base, &to)?;
        if may_mount
            && overlay::lead_within(dir, from, hidden, &links).is_ok()
            && overlay::mount(dir, &to, base, from, hidden)
        {
            return Ok(Means::Overlay);
        }
        let into = walk::root(&to).map_err(Error::files("look into", &to))?.0;
        let given = copy::tree(from, &into, base, &copy::How { hidden, can_clone, links: &links })?;
        given.write(dir)?;
        Ok(if can_clone { Means::Reflink } else { Means::Copy })
    }

    /// After a restart of the machine the layers are there, and nothing is mounted.
    fn mount_again(&self, dir: &Path, mark: &mark::Mark) -> Result<(), Error> {
        if mark.means != Some(Means::Overlay) || overlay::is_mounted(dir) {
            return Ok(());
        }
        let (base, to) = (mark.base(), tree(dir));
        let (from, _) = walk::root(&base).map_err(Error::files("look into", &base))?;
        match overlay::mount(dir, &to, &base, &from, &self.hidden(&base)) {
            true => Ok(()),
            false => Err(Error::Files {
                what: "mount",
                path: to,
                source: io::Error::other("no overlay is possible"),
            }),
        }
    }

    /// Whether the store lies in the directory, and not at its top, where an overlay can hide it.
    fn is_deep_within(&self, base: &Path) -> bool {
        let wanted = walk::identity(base).ok();
        let mut above = self.store_dir.ancestors().skip(2);
        above.any(|above| walk::identity(above).ok() == wanted)
    }

    /// Copies may lie beside the store, or elsewhere, when the store is the very directory.
    fn has_mounts_below(&self, base: &Path) -> bool {
        overlay::has_mounts_below(base, &[&self.store_dir, &self.home])
    }

    /// What is never seen in a copy: the files of the store.
    fn hidden(&self, base: &Path) -> BTreeSet<Identity> {
        let identity = |path: &Path| walk::identity(path).ok();
        let is_within_its_own = identity(base).is_some() && identity(base) == identity(&self.store_dir);
        if !is_within_its_own {
            // A directory that is named after its database lies beside it.
            let database = laneway_store::database_of(&self.store_dir).into_iter().flatten();
            let files = database.filter_map(|path| identity(&path));
            return identity(&self.store_dir).into_iter().chain(files).collect();
        }
        // The store lies in the very directory: then what it has made there is left out by name.
        let entries = std::fs::read_dir(&self.store_dir).into_iter().flatten().flatten();
        let of_store = entries.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("laneway.db")
                || laneway_store::OWN_DIRS.contains(&&*name)
                || laneway_store::OWN_FILES.contains(&&*name)
        });
        of_store.filter_map(|entry| identity(&entry.path())).collect()
    }

    /// Brings what members changed into the run's directory: all of it, or nothing. What was decided is written down before
    /// anything is touched, so that a merge that was interrupted, and finds the directory half changed, does the same again.
    pub fn merge(
        &self,
        run: RunId,
        group: &str,
        base: &Path,
        sources: &[Source],
        on_conflict: &OnConflict,
    ) -> Result<Merged, Error> {
        let of_run = self.home.join(run.to_string());
        let journal = of_run.join(format!("{group}.merge"));
        let cells: Vec<String> = sources.iter().map(|source| source.cell.text()).collect();
        let applied = apply::applied(&of_run.join("applied"));
        let combined = match apply::begun(&journal, &cells) {
            // It is done. What was changed there since, and copies that are gone, are none of its business any more.
            Some(combined) if cells.iter().all(|cell| applied.contains(cell)) => {
                return Ok(Merged::Applied(combined));
            }
            Some(combined) => combined,
            None => match self.decide(run, base, sources, &applied, on_conflict)? {
                Ok(combined) => combined,
                Err(refused) => return Ok(Merged::Refused(refused)),
            },
        };
        laneway_store::private::create_dir_all(&of_run).map_err(Error::files("make", &of_run))?;
        apply::write_down(&journal, &cells, &combined)?;
        let trees: BTreeMap<usize, PathBuf> =
            sources.iter().map(|source| (source.index, tree(&self.dir(run, &source.cell)))).collect();
        apply::apply(base, &trees, &combined)?;
        apply::note_applied(&of_run.join("applied"), &cells)?;
        Ok(Merged::Applied(combined))
    }

    fn decide(
        &self,
        run: RunId,
        base: &Path,
        sources: &[Source],
        applied: &BTreeSet<String>,
        on_conflict: &OnConflict,
    ) -> Result<Result<Combined, String>, Error> {
        let mut members = Vec::with_capacity(sources.len());
        // What is in the directory already stays as others have left it since, be the copy still there or not.
        for source in sources.iter().filter(|source| !applied.contains(&source.cell.text())) {
            let step = source.cell.step.clone();
            let Some(changes) = self.changes(run, &source.cell, base)? else {
                return Err(Error::Gone { step });
            };
            let files = changes.iter().filter(|(_, entry)| !entry.as_ref().is_some_and(|e| e.is_directory()));
            let files: BTreeSet<PathBuf> = files
                .filter(|(path, entry)| entry.is_some() || !is_dir(base, path))
                .map(|(p, _)| p.clone())
                .collect();
            if let Some(wrong) = laneway_core::merge::against_said(&step, &source.output, &files) {
                return Ok(Err(wrong));
            }
            members.push(Member { index: source.index, step, changes });
        }
        let combined = combine(&members, on_conflict);
        Ok(match combined.undecided() {
            Some(why) => Err(why),
            None => Ok(combined),
        })
    }

    /// What a member changed; `None` if its copy is not there.
    pub fn changes(&self, run: RunId, cell: &CellName, base: &Path) -> Result<Option<Changes>, Error> {
        let dir = self.dir(run, cell);
        let Some(mark) = mark::read(&dir)?.filter(|mark| mark.is_ready) else { return Ok(None) };
        self.mount_again(&dir, &mark)?;
        let at = tree(&dir);
        let (tree, _) = walk::root(&at).map_err(Error::files("look into", &at))?;
        let (origin, _) = walk::root(base).map_err(Error::files("look into", base))?;
        let links = Links::between(base, &at)?;
        let changes = match mark.means {
            Some(Means::Overlay) => {
                // What is mounted there now was not to be seen in the copy, and would count as removed.
                if self.has_mounts_below(base) {
                    return Err(Error::MountedBelow { path: base.to_owned() });
                }
                let upper = overlay::upper(&dir);
                let (upper, _) = walk::root(&upper).map_err(Error::files("look into", &upper))?;
                changes::of_overlay(&tree, &upper, &origin, &self.hidden(base), &links)?
            }
            Some(Means::Reflink | Means::Copy) | None => {
                changes::of_copy(&tree, &origin, &Given::read(&dir)?, &links)?
            }
        };
        Ok(Some(changes))
    }

    /// Removes the copies of a run. Refuses what it has not made.
    pub fn remove(&self, run: RunId) -> Result<(), Error> {
        self.each_cell(run, mark::remove)?;
        let of_run = self.home.join(run.to_string());
        // What was merged is remembered as long as somebody may ask; without cells it is a line or two.
        let _ = std::fs::remove_dir(&of_run);
        Ok(())
    }

    /// Removes the copy of one attempt.
    pub fn discard(&self, run: RunId, cell: &CellName) -> Result<(), Error> {
        mark::remove(&self.dir(run, cell))?;
        let _ = std::fs::remove_dir(self.home.join(run.to_string()));
        Ok(())
    }

    /// Removes all that is known of a run.
    pub fn forget(&self, run: RunId) -> Result<(), Error> {
        self.each_cell(run, mark::remove)?;
        let of_run = self.home.join(run.to_string());
        for entry in std::fs::read_dir(&of_run).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                std::fs::remove_file(entry.path()).map_err(Error::files("remove", &entry.path()))?;
            }
        }
        let _ = std::fs::remove_dir(&of_run);
        Ok(())
    }

    /// Nothing of a run stays mounted; what was written stays.
    pub fn rest(&self, run: RunId) -> Result<(), Error> {
        self.each_cell(run, |dir| {
            overlay::unmount(dir);
            Ok(())
        })
    }

    /// The runs of which something is there.
    pub fn runs(&self) -> Vec<RunId> {
        let entries = std::fs::read_dir(&self.home).into_iter().flatten().flatten();
        entries.filter_map(|entry| RunId::parse(entry.file_name().to_str()?)).collect()
    }

    fn each_cell(&self, run: RunId, mut with: impl FnMut(&Path) -> Result<(), Error>) -> Result<(), Error> {
        let of_run = self.home.join(run.to_string());
        for entry in std::fs::read_dir(of_run).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                with(&entry.path())?;
            }
        }
        Ok(())
    }

    fn dir(&self, run: RunId, cell: &CellName) -> PathBuf {
        self.home.join(run.to_string()).join(cell.text())
    }
}

/// Where the copy of a cell is.
fn tree(cell: &Path) -> PathBuf {
    cell.join("at").join("tree")
}

fn is_dir(base: &Path, path: &Path) -> bool {
    std::fs::symlink_metadata(base.join(path)).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests;
