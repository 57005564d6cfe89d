//! Which places of the host a container sees. A path is resolved here, with all its links, and only then judged: by what
//! it leads to, not by how it is written.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use laneway_core::definition::{Mount, WORKSPACE, leads_to_engine};

use super::spec::Bind;

/// Which places of the host, beyond the run's own directory, a document may mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostMounts {
    /// Whatever the document says: it is the caller's own.
    All,
    /// What lies in one of these.
    Below(Vec<PathBuf>),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{} cannot be mounted: {source}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("`{written}` cannot be mounted: a link leads to {}, out of the run's directory; give an absolute path", to.display())]
    LeadsOut { written: String, to: PathBuf },
    #[error("{} is not among the places of this node that may be mounted; the setting `allow_mounts` names them", path.display())]
    NotAllowed { path: PathBuf },
    #[error("{} cannot be mounted: through it the container engine would be within reach", path.display())]
    Engine { path: PathBuf },
}

/// All binds that the document asks for, the run's directory first.
pub(super) fn resolve(
    dir: &Path,
    mounts: &[Mount],
    allowed: &HostMounts,
    socket: Option<&str>,
) -> Result<Vec<Bind>, Error> {
    let socket = socket.map(Path::new).and_then(|socket| socket.canonicalize().ok());
    let dir = canonical(dir)?;
    reach_of_engine(&dir, socket.as_deref())?;
    let mut binds = vec![Bind {
        source: dir.clone(),
        target: WORKSPACE.to_owned(),
        is_read_only: false,
        follows_mounts: false,
    }];
    for mount in mounts {
        // Joined with an absolute path it is that path.
        let source = canonical(&dir.join(&mount.source))?;
        if !mount.is_of_host() && !source.starts_with(&dir) {
            return Err(Error::LeadsOut { written: mount.source.clone(), to: source });
        }
        reach_of_engine(&source, socket.as_deref())?;
        if mount.is_of_host() && !is_allowed(&source, allowed) {
            return Err(Error::NotAllowed { path: source });
        }
        binds.push(Bind {
            source,
            target: mount.target.clone(),
            is_read_only: mount.is_read_only,
            follows_mounts: false,
        });
    }
    Ok(binds)
}

fn canonical(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|source| Error::Path { path: path.to_owned(), source })
}

fn is_allowed(source: &Path, allowed: &HostMounts) -> bool {
    match allowed {
        HostMounts::All => true,
        HostMounts::Below(dirs) => {
            dirs.iter().filter_map(|dir| dir.canonicalize().ok()).any(|dir| source.starts_with(dir))
        }
    }
}

/// Any socket is refused: what listens behind it is seldom meant for a step, and may be an engine under another name.
fn reach_of_engine(source: &Path, socket: Option<&Path>) -> Result<(), Error> {
    let is_socket = source.metadata().is_ok_and(|found| found.file_type().is_socket());
    let holds_socket = socket.is_some_and(|socket| socket.starts_with(source));
    if is_socket || holds_socket || leads_to_engine(source) {
        return Err(Error::Engine { path: source.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(source: &str) -> Mount {
        Mount { source: source.to_owned(), target: "/x".to_owned(), is_read_only: false }
    }

    #[test]
    fn a_link_out_of_the_runs_directory_is_not_followed() {
        let place = tempfile::tempdir().expect("tempdir");
        let (run, other) = (place.path().join("run"), place.path().join("other"));
        std::fs::create_dir_all(run.join("in")).expect("dirs");
        std::fs::create_dir_all(&other).expect("dirs");
        std::os::unix::fs::symlink("in", run.join("fine")).expect("link");
        std::os::unix::fs::symlink(&other, run.join("out")).expect("link");
        let resolved = |source: &str| resolve(&run, &[mount(source)], &HostMounts::All, None);
        let inside = run.join("in").canonicalize().expect("there");
        assert_eq!(resolved("./fine").expect("within")[1].source, inside);
        assert!(matches!(resolved("./out"), Err(Error::LeadsOut { .. })));
        assert!(matches!(resolved("./missing"), Err(Error::Path { .. })));
    }

    #[test]
    fn places_of_the_host_are_mounted_only_where_the_node_allows_it() {
        let place = tempfile::tempdir().expect("tempdir");
        let (run, data) = (place.path().join("run"), place.path().join("data/deep"));
        std::fs::create_dir_all(&run).expect("dirs");
        std::fs::create_dir_all(&data).expect("dirs");
        let wanted = [mount(&data.to_string_lossy())];
        let allowed = HostMounts::Below(vec![place.path().join("data")]);
        assert!(resolve(&run, &wanted, &allowed, None).is_ok());
        assert!(resolve(&run, &wanted, &HostMounts::All, None).is_ok());
        let denied = resolve(&run, &wanted, &HostMounts::Below(Vec::new()), None);
        assert!(matches!(denied, Err(Error::NotAllowed { .. })));
    }

    #[test]
    fn the_engines_socket_is_out_of_reach_under_whatever_name() {
        let place = tempfile::tempdir().expect("tempdir");
        let (run, other) = (place.path().join("run"), place.path().join("other"));
        std::fs::create_dir_all(&run).expect("dirs");
        std::fs::create_dir_all(&other).expect("dirs");
        let socket = other.join("engine");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        std::os::unix::fs::symlink(&socket, run.join("link")).expect("link");
        let host = socket.to_string_lossy().into_owned();
        for source in [host.as_str(), &other.to_string_lossy(), &place.path().to_string_lossy()] {
            let refused = resolve(&run, &[mount(source)], &HostMounts::All, Some(&host));
            assert!(matches!(refused, Err(Error::Engine { .. })), "{source}");
        }
        assert!(resolve(&run, &[mount("./link")], &HostMounts::All, Some(&host)).is_err());
        assert!(matches!(resolve(&other, &[], &HostMounts::All, Some(&host)), Err(Error::Engine { .. })));
    }
}
