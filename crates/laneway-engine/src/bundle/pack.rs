//! Packs a directory. What is left out: what `.lanewayignore` names (in any directory, with the rules of git), the
//! directories of version control, and Laneway's own files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::{Bundle, Error, MAX_BYTES, MAX_ENTRIES, sensitive, size};

/// Its lines say what is not packed.
pub const IGNORE_FILE: &str = ".lanewayignore";

/// Left out wherever they are.
const ALWAYS_OUT: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".laneway"];

/// How many of the largest are named when there is too much.
const NAMED: usize = 5;

/// Beyond this nobody counts: the directory is not one of a workflow.
const MAX_SEEN: usize = 10 * MAX_ENTRIES;

/// What is packed of a directory, beside what its ignore rules say. Paths are as they are on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packing {
    /// Files and directories of Laneway's own.
    pub without: Vec<PathBuf>,
    /// Files that are packed although they look like credentials or are large, and directories of such files.
    pub include: Vec<PathBuf>,
}

/// Packs what is in a directory.
pub fn pack(dir: &Path, packing: &Packing) -> Result<Bundle, Error> {
    let root = dir.canonicalize().map_err(|source| unreadable(dir, source))?;
    let found = find(&root, &packing.without)?;
    let mut archive = tar::Builder::new(Vec::new());
    let (mut files, mut total) = (Vec::new(), 0);
    let mut refused = Vec::new();
    for (relative, one) in &found {
        let path = root.join(relative);
        let mut header = tar::Header::new_gnu();
        match one {
            Found::Dir => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_mode(0o755);
                header.set_size(0);
                append(&mut archive, &mut header, relative, &[])?;
            }
            Found::File { is_executable, target, .. } => {
                let bytes = read(&path, MAX_BYTES - total)?;
                let Some(bytes) = bytes else { return Err(too_large(&root, &found)) };
                total += bytes.len() as u64;
                // A link is judged by both of its names: neither may hide what the other says.
                let target = target.as_deref().unwrap_or(relative);
                let is_below =
                    |named: &PathBuf| path.starts_with(named) || root.join(target).starts_with(named);
                let is_named = packing.include.iter().any(is_below);
                let why = sensitive::why(relative, &bytes).or_else(|| sensitive::why(target, &bytes));
                if let Some(why) = why.filter(|_| !is_named) {
                    refused.push(format!("{} ({}, {why})", relative.display(), size(bytes.len() as u64)));
                }
                files.push((relative.clone(), bytes.len() as u64));
                header.set_entry_type(tar::EntryType::Regular);
                header.set_mode(if *is_executable { 0o755 } else { 0o644 });
                header.set_size(bytes.len() as u64);
                append(&mut archive, &mut header, relative, &bytes)?;
            }
        }
    }
    if !refused.is_empty() {
        return Err(Error::Sensitive { dir: root, files: refused });
    }
    let bytes = archive.into_inner().map_err(|source| unreadable(&root, source))?;
    Ok(Bundle { bytes, files })
}

#[derive(Debug)]
enum Found {
    Dir,
    /// Of a link, below the root, which file it leads to.
    File {
        size: u64,
        is_executable: bool,
        target: Option<PathBuf>,
    },
}

impl Found {
    fn size(&self) -> u64 {
        match self {
            Self::Dir => 0,
            Self::File { size, .. } => *size,
        }
    }
}

/// By path, so that the order on disk does not matter.
type Finds = BTreeMap<PathBuf, Found>;

fn find(root: &Path, without: &[PathBuf]) -> Result<Finds, Error> {
    let without = without.to_vec();
    let mut found = Finds::new();
    let walk = WalkBuilder::new(root)
        .standard_filters(false)
        .add_custom_ignore_filename(IGNORE_FILE)
        .filter_entry(move |entry| {
            !ALWAYS_OUT.iter().any(|name| entry.file_name() == OsStr::new(name))
                && !without.iter().any(|own| own == entry.path())
        })
        .build();
    for entry in walk {
        let entry = entry.map_err(|error| rules(root, error))?;
        if let Some(error) = entry.error() {
            return Err(Error::Rules { path: entry.path().to_owned(), why: error.to_string() });
        }
        let path = entry.path();
        let Ok(relative) = path.strip_prefix(root) else { continue };
        if relative.as_os_str().is_empty() {
            continue;
        }
        found.insert(relative.to_owned(), look(root, path)?);
        if found.len() > MAX_SEEN {
            break;
        }
    }
    if found.len() > MAX_ENTRIES {
        return Err(Error::TooMany { dir: root.to_owned(), most: crowded(&found) });
    }
    // A link to what is left out is left out as well.
    let is_left_out = |one: &Found| match one {
        Found::File { target: Some(target), .. } => !found.contains_key(target),
        Found::File { target: None, .. } | Found::Dir => false,
    };
    let left_out: Vec<PathBuf> =
        found.iter().filter(|(_, one)| is_left_out(one)).map(|(path, _)| path.clone()).collect();
    left_out.iter().for_each(|path| drop(found.remove(path)));
    let total = found.values().fold(0_u64, |total, one| total.saturating_add(one.size()));
    if total > MAX_BYTES {
        return Err(too_large(root, &found));
    }
    Ok(found)
}

/// A link is what it leads to, if that is a file in here; nobody outside learns that it was one.
fn look(root: &Path, path: &Path) -> Result<Found, Error> {
    let mut data = std::fs::symlink_metadata(path).map_err(|source| unreadable(path, source))?;
    let is_link = data.file_type().is_symlink();
    let mut inside = None;
    if is_link {
        let target = path.canonicalize().map_err(|source| unreadable(path, source))?;
        match target.strip_prefix(root) {
            Ok(relative) => inside = Some(relative.to_owned()),
            Err(_) => return Err(Error::LeadsOut { link: path.to_owned(), target }),
        }
        data = std::fs::metadata(&target).map_err(|source| unreadable(path, source))?;
    }
    if data.is_dir() && !is_link {
        return Ok(Found::Dir);
    }
    if !data.is_file() {
        let what = if data.is_dir() { "a link to a directory" } else { "no plain file" };
        return Err(Error::NotAFile { path: path.to_owned(), what });
    }
    let is_executable = data.permissions().mode() & 0o111 != 0;
    Ok(Found::File { size: data.len(), is_executable, target: inside })
}

/// `None`: it has grown beyond what there is room for.
fn read(path: &Path, room: u64) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|source| unreadable(path, source))?;
    file.take(room + 1).read_to_end(&mut bytes).map_err(|source| unreadable(path, source))?;
    Ok((bytes.len() as u64 <= room).then_some(bytes))
}

fn append(
    archive: &mut tar::Builder<Vec<u8>>,
    header: &mut tar::Header,
    relative: &Path,
    bytes: &[u8],
) -> Result<(), Error> {
    // No times, no owners: equal content is an equal archive.
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    archive.append_data(header, relative, bytes).map_err(|source| unreadable(relative, source))
}

fn too_large(root: &Path, found: &Finds) -> Error {
    let mut sizes: Vec<(u64, &Path)> = found
        .iter()
        .filter_map(|(path, one)| match one {
            Found::File { size, .. } => Some((*size, path.as_path())),
            Found::Dir => None,
        })
        .collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let total = sizes.iter().map(|(size, _)| size).sum();
    let name = |(bytes, path): &(u64, &Path)| format!("{} ({})", path.display(), size(*bytes));
    Error::TooLarge { dir: root.to_owned(), total, largest: sizes.iter().take(NAMED).map(name).collect() }
}

/// The directories at the top with most in them.
fn crowded(found: &Finds) -> Vec<String> {
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for path in found.keys() {
        let top = path.iter().next().unwrap_or_default();
        *counts.entry(top.as_bytes()).or_default() += 1;
    }
    let mut counts: Vec<(usize, &[u8])> = counts.into_iter().map(|(name, count)| (count, name)).collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let name = |(count, name): &(usize, &[u8])| format!("{} ({count})", String::from_utf8_lossy(name));
    counts.iter().take(NAMED).map(name).collect()
}

fn rules(root: &Path, error: ignore::Error) -> Error {
    let why = error.to_string();
    match error.into_io_error() {
        Some(source) => unreadable(root, io::Error::new(source.kind(), why)),
        None => Error::Rules { path: root.to_owned(), why },
    }
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Unreadable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn names(bundle: &Bundle) -> Vec<String> {
        let mut archive = tar::Archive::new(bundle.bytes.as_slice());
        let entries = archive.entries().expect("an archive");
        let path = |entry: tar::Entry<'_, &[u8]>| entry.path().expect("a path").display().to_string();
        entries.map(|entry| path(entry.expect("an entry"))).collect()
    }

    #[test]
    fn equal_content_is_an_equal_archive_wherever_and_whenever_it_was_written() {
        let (one, other) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        for (dir, order) in [(&one, ["b/x.sh", "a.txt"]), (&other, ["a.txt", "b/x.sh"])] {
            order.iter().for_each(|name| write(dir.path(), name, name));
            fs::set_permissions(dir.path().join("b/x.sh"), fs::Permissions::from_mode(0o700)).expect("set");
        }
        fs::set_permissions(other.path().join("b/x.sh"), fs::Permissions::from_mode(0o777)).expect("set");
        let packed = pack(one.path(), &Packing::default()).expect("packed");
        assert_eq!(packed, pack(other.path(), &Packing::default()).expect("packed"));
        write(other.path(), "a.txt", "changed");
        assert_ne!(packed.bytes, pack(other.path(), &Packing::default()).expect("packed").bytes);
    }

    #[test]
    fn what_the_rules_name_and_what_is_laneways_own_is_left_out() {
        let dir = tempfile::tempdir().expect("dir");
        for name in
            ["keep.sh", "sub/keep.txt", "sub/drop.log", "big/x", ".git/HEAD", "own/logs/x", ".laneway/x"]
        {
            write(dir.path(), name, name);
        }
        write(dir.path(), IGNORE_FILE, "*.log\n/big/\n");
        let own = dir.path().canonicalize().expect("a path").join("own/logs");
        let packed = pack(dir.path(), &Packing { without: vec![own], ..Packing::default() }).expect("packed");
        assert_eq!(names(&packed), [".lanewayignore", "keep.sh", "own", "sub", "sub/keep.txt"]);
        assert_eq!(packed.files.len(), 3);
    }

    #[test]
    fn link_is_packed_as_its_file_and_refused_if_it_leads_out() {
        let dir = tempfile::tempdir().expect("dir");
        write(dir.path(), "real.sh", "real");
        symlink("real.sh", dir.path().join("alias.sh")).expect("a link");
        let packed = pack(dir.path(), &Packing::default()).expect("packed");
        assert_eq!(names(&packed), ["alias.sh", "real.sh"]);
        symlink("/etc/passwd", dir.path().join("out")).expect("a link");
        let error = pack(dir.path(), &Packing::default()).expect_err("refused");
        assert!(matches!(error, Error::LeadsOut { .. }), "{error}");
        fs::remove_file(dir.path().join("out")).expect("removed");
        fs::create_dir(dir.path().join("sub")).expect("made");
        symlink("sub", dir.path().join("loop")).expect("a link");
        assert!(matches!(pack(dir.path(), &Packing::default()), Err(Error::NotAFile { .. })));
    }

    #[test]
    fn link_is_judged_by_the_file_that_it_leads_to() {
        let dir = tempfile::tempdir().expect("dir");
        write(dir.path(), "prod.env", "A=1");
        write(dir.path(), ".git/config", "token");
        symlink("prod.env", dir.path().join("settings")).expect("a link");
        symlink(".git/config", dir.path().join("remote")).expect("a link");
        let said = pack(dir.path(), &Packing::default()).expect_err("refused").to_string();
        assert!(said.contains("settings (3 bytes, it usually holds credentials)"), "{said}");
        assert!(!said.contains("remote"), "{said}");
        let include = vec![dir.path().canonicalize().expect("a path").join("prod.env")];
        let packed = pack(dir.path(), &Packing { include, ..Packing::default() }).expect("packed");
        assert_eq!(names(&packed), ["prod.env", "settings"], "it is the file that is named");
        write(dir.path(), IGNORE_FILE, "prod.env\n");
        let packed = pack(dir.path(), &Packing::default()).expect("packed");
        assert_eq!(names(&packed), [IGNORE_FILE], "a link to what is left out is left out");
    }

    #[test]
    fn too_much_is_refused_with_the_largest_named() {
        let dir = tempfile::tempdir().expect("dir");
        write(dir.path(), "small", "x");
        let large = File::create(dir.path().join("large.bin")).expect("made");
        large.set_len(MAX_BYTES + 1).expect("sparse");
        let error = pack(dir.path(), &Packing::default()).expect_err("refused").to_string();
        assert!(error.contains("large.bin (32 MiB), small (1 bytes)"), "{error}");
    }

    #[test]
    fn what_looks_like_a_credential_is_packed_when_it_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text) in [("flow.yaml", "steps: {}"), (".env", "A=1"), ("tls/server.key", "x")] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        }
        let refused = pack(dir.path(), &Packing::default()).expect_err("refused");
        let said = refused.to_string();
        assert!(said.contains(".env (3 bytes, it usually holds credentials)"), "{said}");
        assert!(said.contains("tls/server.key (1 bytes, it usually holds a key)"), "{said}");
        let root = dir.path().canonicalize().expect("there");
        let include = vec![root.join(".env"), root.join("tls")];
        let packed = pack(dir.path(), &Packing { include, ..Packing::default() }).expect("packed");
        let names: Vec<_> =
            packed.files.iter().map(|(name, size)| (name.display().to_string(), *size)).collect();
        let wanted = [(".env".to_owned(), 3), ("flow.yaml".to_owned(), 9), ("tls/server.key".to_owned(), 1)];
        assert_eq!(names, wanted);
        fs::write(dir.path().join(".lanewayignore"), ".env\ntls/\n").expect("written");
        assert_eq!(
            pack(dir.path(), &Packing::default()).expect("packed").files.len(),
            2,
            "they are left out"
        );
    }
}
