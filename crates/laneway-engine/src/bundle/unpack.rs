//! Unpacks an archive without trusting it: a node gets it from a store that others write to.
//!
//! Nothing is written outside of a new directory: paths have plain names only, there are no links and no devices, nothing
//! is written twice, and both the number of entries and their bytes are bounded before anything is written.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use super::{Error, MAX_BYTES, MAX_ENTRIES, size};

/// Deeper than this nobody's scripts are.
const MAX_DEPTH: usize = 64;

/// Makes `into`, which must not be there, with what is in the archive. After an error some of it may be there.
pub fn unpack(bytes: &[u8], into: &Path) -> Result<(), Error> {
    make_dir(into)?;
    let mut archive = tar::Archive::new(bytes);
    let entries = archive.entries().map_err(damaged)?;
    let (mut count, mut total) = (0_usize, 0_u64);
    for entry in entries {
        let mut entry = entry.map_err(damaged)?;
        count += 1;
        total = total.saturating_add(entry.size());
        if count > MAX_ENTRIES {
            return Err(refused(format!("it has more than {MAX_ENTRIES} entries")));
        }
        if total > MAX_BYTES {
            return Err(refused(format!("it holds more than {}", size(MAX_BYTES))));
        }
        let path = into.join(checked(&entry)?);
        match entry.header().entry_type() {
            tar::EntryType::Directory => make_dirs(&path)?,
            tar::EntryType::Regular => {
                if let Some(parent) = path.parent() {
                    make_dirs(parent)?;
                }
                let mode = entry.header().mode().map_err(damaged)?;
                let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(damaged)?;
                // Only a file that was not there: neither a second of that name, nor a link that somebody put there.
                let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
                let written = file.and_then(|mut file| file.write_all(&bytes));
                written.map_err(|source| unwritable(&path, source))?;
            }
            other => {
                let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                return Err(refused(format!(
                    "`{name}` is neither a file nor a directory (type `{}`)",
                    char::from(other.as_byte()).escape_default()
                )));
            }
        }
    }
    Ok(())
}

/// What is in a file at the top of an archive; `None` if it has no such file.
pub fn top_file(bytes: &[u8], name: &str) -> Result<Option<Vec<u8>>, Error> {
    let mut archive = tar::Archive::new(bytes);
    for entry in archive.entries().map_err(damaged)?.take(MAX_ENTRIES) {
        let mut entry = entry.map_err(damaged)?;
        if entry.header().entry_type() == tar::EntryType::Regular && checked(&entry)? == Path::new(name) {
            let mut bytes = Vec::new();
            entry.by_ref().take(MAX_BYTES).read_to_end(&mut bytes).map_err(damaged)?;
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Where an entry goes, below the new directory.
fn checked(entry: &tar::Entry<'_, &[u8]>) -> Result<PathBuf, Error> {
    let bytes = entry.path_bytes();
    let bad =
        |why: &str| refused(format!("the path `{}` {why}", String::from_utf8_lossy(&bytes).escape_debug()));
    if bytes.contains(&0) {
        return Err(bad("has a NUL in it"));
    }
    let path = entry.path().map_err(damaged)?;
    let mut plain = PathBuf::new();
    for (depth, component) in path.components().enumerate() {
        match component {
            Component::Normal(name) if depth < MAX_DEPTH => plain.push(name),
            Component::Normal(_) => return Err(bad("is too deep")),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(bad("leads out of the bundle"));
            }
        }
    }
    if plain.as_os_str().is_empty() {
        return Err(bad("names nothing"));
    }
    Ok(plain)
}

fn make_dir(path: &Path) -> Result<(), Error> {
    DirBuilder::new().mode(0o755).create(path).map_err(|source| unwritable(path, source))
}

fn make_dirs(path: &Path) -> Result<(), Error> {
    DirBuilder::new().mode(0o755).recursive(true).create(path).map_err(|source| unwritable(path, source))
}

fn damaged(error: io::Error) -> Error {
    refused(format!("it is damaged: {error}"))
}

fn refused(why: String) -> Error {
    Error::Refused { why }
}

fn unwritable(path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            refused(format!("it has `{}` twice", path.display()))
        }
        _ => Error::Unwritable { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::super::{Packing, pack};
    use super::*;

    /// An archive with whatever is in its headers: no library would write these.
    fn archive(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(tar::EntryType::new(*kind));
            header.set_mode(0o644);
            header.set_size(content.len() as u64);
            header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
            header.set_cksum();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(content);
            bytes.resize(bytes.len().div_ceil(512) * 512, 0);
        }
        bytes.extend([0; 1024]);
        bytes
    }

    #[test]
    fn what_was_packed_comes_out_with_its_exec_bits() {
        let dir = tempfile::tempdir().expect("dir");
        let long = format!("{}/{}", "d".repeat(90), "f".repeat(150));
        for name in ["run.sh", "sub/data", &long] {
            let path = dir.path().join("in").join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, name).expect("written");
        }
        fs::create_dir(dir.path().join("in/empty")).expect("made");
        fs::set_permissions(dir.path().join("in/run.sh"), fs::Permissions::from_mode(0o750)).expect("set");
        let packed = pack(&dir.path().join("in"), &Packing::default()).expect("packed");
        let out = dir.path().join("out");
        unpack(&packed.bytes, &out).expect("unpacked");
        assert_eq!(fs::read_to_string(out.join("sub/data")).expect("there"), "sub/data");
        assert_eq!(fs::read_to_string(out.join(&long)).expect("there"), long);
        assert!(out.join("empty").is_dir());
        let mode = |name: &str| fs::metadata(out.join(name)).expect("there").permissions().mode() & 0o111;
        assert_eq!((mode("run.sh") != 0, mode("sub/data") != 0), (true, false));
        assert_eq!(pack(&out, &Packing::default()).expect("packed"), packed);
    }

    #[test]
    fn hostile_archive_is_refused_and_writes_nothing_outside() {
        let cases: [(&str, Vec<u8>); 9] = [
            ("a path that goes up", archive(&[("../evil", b'0', b"x")])),
            ("one that goes up later", archive(&[("a/../../evil", b'0', b"x")])),
            ("an absolute path", archive(&[("/tmp/evil", b'0', b"x")])),
            ("a link", archive(&[("evil", b'2', b"")])),
            ("a hard link", archive(&[("evil", b'1', b"")])),
            ("a device", archive(&[("evil", b'3', b"")])),
            ("a pipe", archive(&[("evil", b'6', b"")])),
            ("one file twice", archive(&[("evil", b'0', b"x"), ("evil", b'0', b"y")])),
            ("a file that is a directory", archive(&[("evil", b'0', b"x"), ("evil/in", b'0', b"y")])),
        ];
        for (what, bytes) in cases {
            let dir = tempfile::tempdir().expect("dir");
            let error = unpack(&bytes, &dir.path().join("out")).expect_err(what);
            assert!(matches!(error, Error::Refused { .. }), "{what}: {error}");
            let names: Vec<_> =
                fs::read_dir(dir.path()).expect("dir").flatten().map(|one| one.file_name()).collect();
            assert_eq!(names, ["out"], "{what}");
        }
        assert!(!Path::new("/tmp/evil").exists());
    }

    #[test]
    fn too_many_entries_and_sizes_that_lie_are_refused() {
        let dir = tempfile::tempdir().expect("dir");
        let names: Vec<String> = (0..=MAX_ENTRIES).map(|number| format!("f{number}")).collect();
        let entries: Vec<(&str, u8, &[u8])> =
            names.iter().map(|name| (name.as_str(), b'0', &[][..])).collect();
        let error = unpack(&archive(&entries), &dir.path().join("many")).expect_err("refused");
        assert!(error.to_string().contains("more than 10000 entries"), "{error}");
        let mut lie = archive(&[("big", b'0', b"x")]);
        let mut header = tar::Header::from_byte_slice(&lie[..512]).clone();
        header.set_size(1 << 40);
        header.set_cksum();
        lie[..512].copy_from_slice(header.as_bytes());
        let error = unpack(&lie, &dir.path().join("lie")).expect_err("refused");
        assert!(error.to_string().contains("more than 32 MiB"), "{error}");
    }

    proptest! {
        #[test]
        fn noise_neither_panics_nor_leaves_the_directory(
            noise in proptest::collection::vec(any::<u8>(), 0..2048),
            at in 0_usize..1024,
        ) {
            let mut bytes = archive(&[("a", b'0', b"content"), ("b", b'5', b"")]);
            for (place, byte) in bytes.iter_mut().skip(at).zip(&noise) {
                *place = *byte;
            }
            let dir = tempfile::tempdir().expect("dir");
            drop(unpack(&bytes, &dir.path().join("out")));
            let names: Vec<_> =
                fs::read_dir(dir.path()).expect("dir").flatten().map(|one| one.file_name()).collect();
            prop_assert_eq!(names, ["out"]);
        }
    }
}
