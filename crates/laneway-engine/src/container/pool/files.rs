//! The files of one task in a warm container: its script, its socket, what it hands on.
//!
//! ```text
//!   warm-N/         for this node alone
//!     in/           `/run/laneway` of the container: whoever is in there may do there as it likes
//!       TASK/       what a task sees, while it runs
//!     TASK/         the same, before and after that
//! ```
//! In `mode: single` others are in there at the same time, and none of them is trusted with what the node does on its host. So nothing
//! is made, written or read where they could put a link in its way: files are prepared aside, moved into the container as one, and moved
//! out again before anybody looks at them. A move follows no link at its ends, and what is between these is ours.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Of one container.
#[derive(Debug)]
pub(super) struct Shelf {
    dir: PathBuf,
}

impl Shelf {
    pub(super) fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Makes it, before there is a container that could see it.
    pub(super) fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        make_open(&self.inside())
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    /// What the container sees.
    pub(super) fn inside(&self) -> PathBuf {
        self.dir.join("in")
    }

    /// Whether no task has left anything there.
    pub(super) fn is_empty(&self) -> bool {
        std::fs::read_dir(self.inside()).is_ok_and(|mut left| left.next().is_none())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Of one task. Dropping it removes them, as far as they can be found.
#[derive(Debug)]
pub(super) struct Files {
    name: String,
    aside: PathBuf,
    shown: PathBuf,
    is_shown: bool,
}

impl Files {
    /// Aside.
    pub(super) fn make(shelf: &Shelf) -> io::Result<Self> {
        // Nobody inside guesses it, and is in its way.
        let name = uuid::Uuid::now_v7().simple().to_string();
        let (aside, shown) = (shelf.dir.join(&name), shelf.inside().join(&name));
        make_open(&aside)?;
        Ok(Self { name, aside, shown, is_shown: false })
    }

    /// How its directory is called inside.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where they are unless they are shown.
    pub(super) fn aside(&self) -> &Path {
        &self.aside
    }

    /// Moves them to where the task sees them.
    pub(super) fn show(&mut self) -> io::Result<()> {
        std::fs::rename(&self.aside, &self.shown)?;
        self.is_shown = true;
        Ok(())
    }

    /// Moves them back. What stands in their place by then may be anything; only a directory is worth a look.
    pub(super) fn hide(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_shown, false) {
            return Ok(());
        }
        std::fs::rename(&self.shown, &self.aside)?;
        match std::fs::symlink_metadata(&self.aside)?.is_dir() {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// Removes them. True: nothing is left under their name.
    pub(super) fn remove(&mut self) -> bool {
        let is_gone = |done: io::Result<()>| match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            done => done.is_ok(),
        };
        let is_hidden = match self.hide() {
            // Not a directory any more, and moved all the same.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => true,
            hidden => is_gone(hidden),
        };
        is_hidden & is_gone(std::fs::remove_dir_all(&self.aside))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Puts a script into files that are aside.
pub(super) fn write_script(aside: &Path, text: &str) -> io::Result<()> {
    let path = aside.join("script");
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    // The umask may have taken bits away.
    file.set_permissions(Permissions::from_mode(0o755))?;
    file.write_all(text.as_bytes())
}

/// A directory that anybody may use who gets to it: a container's user is not this node's. Nobody on the host does, because what is
/// above it is closed.
fn make_open(dir: &Path) -> io::Result<()> {
    std::fs::create_dir(dir)?;
    std::fs::set_permissions(dir, Permissions::from_mode(0o777))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn shelf() -> (tempfile::TempDir, Shelf) {
        let place = tempfile::tempdir().expect("a directory");
        let shelf = Shelf::at(place.path().join("warm/warm-1"));
        shelf.make().expect("made");
        (place, shelf)
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn what_is_open_to_a_container_is_closed_to_everybody_else() {
        let (_place, shelf) = shelf();
        assert_eq!((mode(shelf.path()), mode(&shelf.inside())), (0o700, 0o777));
        let mut files = Files::make(&shelf).expect("made");
        write_script(files.aside(), "true").expect("written");
        files.show().expect("shown");
        let shown = shelf.inside().join(files.name());
        assert_eq!((mode(&shown), mode(&shown.join("script"))), (0o777, 0o755));
        assert!(files.remove() && shelf.is_empty());
    }

    #[test]
    fn a_link_in_the_place_of_a_tasks_files_leads_nowhere() {
        let (place, shelf) = shelf();
        let precious = place.path().join("precious");
        std::fs::create_dir(&precious).expect("made");
        std::fs::set_permissions(&precious, Permissions::from_mode(0o700)).expect("closed");
        std::fs::write(precious.join("out"), "secret=1").expect("written");
        // Before the task's files come.
        let mut files = Files::make(&shelf).expect("made");
        let shown = shelf.inside().join(files.name());
        symlink(&precious, &shown).expect("a link");
        assert!(files.show().is_err());
        std::fs::remove_file(&shown).expect("removed");
        // And while it runs.
        files.show().expect("shown");
        std::fs::rename(&shown, shelf.inside().join("elsewhere")).expect("moved");
        symlink(&precious, &shown).expect("a link");
        assert!(files.hide().is_err());
        assert!(files.remove(), "the link goes");
        assert!(!shelf.is_empty(), "what was moved away is left, so it is not clean");
        assert_eq!(std::fs::read_to_string(precious.join("out")).expect("there"), "secret=1");
        assert_eq!(mode(&precious), 0o700);
        shelf.remove().expect("removed");
        assert!(precious.join("out").exists() && !shelf.path().exists());
    }
}
