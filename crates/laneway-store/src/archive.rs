//! Backup of a whole embedded store to one file, and restore: the database as of one moment, logs
//! and artifacts. The file is a tar, so that standard tools can read it. Restoring never trusts its
//! content.
//!
//! ```text
//!   backup.json         format, version of the writer, and instance
//!   laneway.db          the database
//!   logs/RUN/…          output of attempts
//!   artifacts/HASH      files that attempts left
//!   secret.key          only on request
//!   complete            empty; an archive without it is incomplete
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use laneway_core::hash::{ContentHash, Hasher};
use laneway_core::id::RunId;
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, EntryType, Header};

use crate::contract::Store;
use crate::error::{Error, Result};
use crate::sqlite::{beside, check_copy};

const MANIFEST: &str = "backup.json";
const DATABASE: &str = "laneway.db";
const SECRET_KEY: &str = "secret.key";
const COMPLETE: &str = "complete";

/// Version of the archive format. A program rejects a newer one than it knows.
const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    laneway_backup: u32,
    made_by: String,
    instance: String,
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    pub bytes: u64,
    pub logs: u64,
    pub artifacts: u64,
    /// Secret values, which cannot be opened without the key.
    pub secrets: u64,
    pub has_secret_key: bool,
}

/// Writes a whole copy to a file that does not exist yet, while work continues. Nothing is removed
/// meanwhile, so that everything that the database names is in the copy.
pub async fn write(store: &dyn Store, to: &Path, with_secret_key: bool) -> Result<Copied> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(Error::Exists { path: to.to_owned() });
    }
    let (database, part) = (aside(to, "db"), aside(to, "part"));
    let dir = store.dir().to_owned();
    let held = if store.is_embedded() { Some(blocking(move || beside::hold(&dir)).await??) } else { None };
    let made = async {
        store.backup(&database).await?;
        let manifest = Manifest {
            laneway_backup: FORMAT,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            instance: store.instance().to_string(),
        };
        let secrets = store.secrets().await?.len() as u64;
        let (dir, to) = (store.dir().to_owned(), to.to_owned());
        let (database, part) = (database.clone(), part.clone());
        let copied = blocking(move || {
            let packed = pack(&Source { dir, database, with_secret_key }, &part, &manifest);
            packed.and_then(|copied| place(&part, &to).map(|()| copied)).map_err(|error| failed(&to, &error))
        });
        Ok(Copied { secrets, ..copied.await?? })
    }
    .await;
    drop(held);
    for path in [&database, &part] {
        let _ = fs::remove_file(path);
    }
    made
}

struct Source {
    dir: PathBuf,
    database: PathBuf,
    with_secret_key: bool,
}

fn pack(source: &Source, part: &Path, manifest: &Manifest) -> io::Result<Copied> {
    let mut copied = Copied::default();
    // Private to the owner: it contains the output of steps.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part)?;
    let mut tar = Builder::new(file);
    let text = serde_json::to_vec_pretty(manifest)?;
    add(&mut tar, Path::new(MANIFEST), text.len() as u64, text.as_slice())?;
    add_file(&mut tar, Path::new(DATABASE), &source.database)?;
    for run in names(&source.dir.join("logs")).filter(|name| RunId::parse(name).is_some()) {
        for log in names(&source.dir.join("logs").join(&run)) {
            let name = Path::new("logs").join(&run).join(&log);
            // A log in use may grow or be truncated: the size in the header is that of the bytes
            // read.
            let mut bytes = Vec::new();
            File::open(source.dir.join(&name))?.read_to_end(&mut bytes)?;
            add(&mut tar, &name, bytes.len() as u64, bytes.as_slice())?;
            copied.logs += 1;
        }
    }
    for hash in names(&source.dir.join("artifacts")).filter(|name| ContentHash::parse(name).is_some()) {
        let name = Path::new("artifacts").join(&hash);
        add_file(&mut tar, &name, &source.dir.join(&name))?;
        copied.artifacts += 1;
    }
    let key = source.dir.join(SECRET_KEY);
    if source.with_secret_key && key.exists() {
        add_file(&mut tar, Path::new(SECRET_KEY), &key)?;
        copied.has_secret_key = true;
    }
    add(&mut tar, Path::new(COMPLETE), 0, io::empty())?;
    let file = tar.into_inner()?;
    file.sync_all()?;
    copied.bytes = file.metadata()?.len();
    Ok(copied)
}

fn add_file(tar: &mut Builder<File>, name: &Path, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    add(tar, name, size, file)
}

fn add(tar: &mut Builder<File>, name: &Path, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_size(size);
    tar.append_data(&mut header, name, content.take(size))
}

/// Links the file to its final path. Unlike a rename, a link never replaces a file that another
/// process has created meanwhile.
fn place(part: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(part, to)?;
    File::open(beside::parent(to))?.sync_all()
}

/// What was restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    pub runs: u64,
    pub logs: u64,
    pub artifacts: u64,
    /// Named in the database, but not in the copy.
    pub missing: u64,
    pub secrets: u64,
    pub has_secret_key: bool,
}

/// Restores a copy to a path where no store is. Everything is checked before anything is put in
/// place, and the database comes last.
pub fn restore(from: &Path, store: &Path) -> Result<Restored> {
    let dir = beside::new_data_dir(store);
    // SQLite would replay a leftover journal of another database into this one.
    let journals = ["-wal", "-shm", "-journal"].map(|end| {
        let mut path = store.as_os_str().to_owned();
        path.push(end);
        PathBuf::from(path)
    });
    let taken = [store.to_owned(), dir.join("logs"), dir.join("artifacts")];
    if let Some(path) = taken.into_iter().chain(journals).find(|path| is_taken(path)) {
        return Err(Error::Exists { path });
    }
    beside::make_dir(store)?;
    let fresh = dir.join(format!(".restore.{}", std::process::id()));
    let restored = unpack(from, &fresh).and_then(|mut restored| {
        let found =
            check_copy(&fresh.join(DATABASE), &fresh.join("artifacts"), store).map_err(
                |error| match error {
                    Error::Damaged { why, .. } => Error::NotABackup {
                        path: from.to_owned(),
                        why: format!("its database is damaged: {why}"),
                    },
                    Error::NotAStore { .. } => Error::NotABackup {
                        path: from.to_owned(),
                        why: "its database is no store".to_owned(),
                    },
                    other => other,
                },
            )?;
        (restored.runs, restored.secrets, restored.missing) = (found.runs, found.secrets, found.missing);
        check_key(&fresh, &dir)?;
        settle(&fresh, &dir, store).map_err(|error| failed(store, &error))?;
        Ok(restored)
    });
    let _ = fs::remove_dir_all(&fresh);
    restored
}

/// Returns whether something is at a path. An empty directory does not count.
fn is_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok() && (!path.is_dir() || names(path).next().is_some())
}

fn unpack(from: &Path, fresh: &Path) -> Result<Restored> {
    let strange = |why: &str| Error::NotABackup { path: from.to_owned(), why: why.to_owned() };
    let file = File::open(from).map_err(|error| failed(from, &error))?;
    if starts_with(&file, b"SQLite format 3\0") {
        return Err(strange("it is a store itself; name it with --store"));
    }
    fs::DirBuilder::new().mode(0o700).create(fresh).map_err(|error| failed(fresh, &error))?;
    let (mut archive, mut restored) = (Archive::new(file), Restored::default());
    let (mut is_known, mut is_complete) = (false, false);
    let entries = archive.entries().map_err(|_| strange("it is no archive"))?;
    for entry in entries {
        let mut entry = entry.map_err(|error| strange(&format!("it is no archive, or damaged: {error}")))?;
        let name = entry.path().map_err(|_| strange("a name in it cannot be read"))?.into_owned();
        let part = Part::of(&name).filter(|_| entry.header().entry_type() == EntryType::Regular);
        let part = part.ok_or_else(|| strange(&format!("`{}` does not belong into one", name.display())))?;
        if !is_known {
            let manifest =
                (part == Part::Manifest).then(|| serde_json::from_reader(&mut entry).ok()).flatten();
            let manifest: Manifest = manifest.ok_or_else(|| strange("it does not say what it is"))?;
            if manifest.laneway_backup > FORMAT {
                let why = format!("a newer program wrote it ({}); use that one", manifest.made_by);
                return Err(strange(&why));
            }
            is_known = true;
            continue;
        }
        let size = entry.size();
        let (hash, taken) = take(&mut entry, &fresh.join(&name)).map_err(|error| failed(from, &error))?;
        if taken != size {
            return Err(strange(&format!("its end is missing, from `{}` on", name.display())));
        }
        match part {
            Part::Manifest => return Err(strange("it says twice what it is")),
            Part::Database => {}
            Part::Complete => is_complete = true,
            Part::SecretKey => restored.has_secret_key = true,
            Part::Log => restored.logs += 1,
            Part::Artifact => {
                if !name.ends_with(hash.as_str()) {
                    return Err(strange(&format!("`{}` has another content", name.display())));
                }
                restored.artifacts += 1;
            }
        }
    }
    if !is_known || !fresh.join(DATABASE).exists() {
        return Err(strange("there is no database in it"));
    }
    if !is_complete {
        return Err(strange("its end is missing"));
    }
    Ok(restored)
}

/// The parts of an archive. Every other name is rejected, so that no path leads out of the
/// directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Manifest,
    Database,
    SecretKey,
    Log,
    Artifact,
    Complete,
}

impl Part {
    fn of(name: &Path) -> Option<Self> {
        let names: Option<Vec<&str>> = name
            .components()
            .map(|part| match part {
                Component::Normal(name) => name.to_str(),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
            })
            .collect();
        match names?.as_slice() {
            [MANIFEST] => Some(Self::Manifest),
            [DATABASE] => Some(Self::Database),
            [SECRET_KEY] => Some(Self::SecretKey),
            [COMPLETE] => Some(Self::Complete),
            ["logs", run, log] if RunId::parse(run).is_some() && log.ends_with(".log") => Some(Self::Log),
            ["artifacts", hash] => ContentHash::parse(hash).map(|_| Self::Artifact),
            _ => None,
        }
    }
}

/// Writes an entry to a file that does not exist yet. Returns its hash and its size.
fn take(entry: &mut impl Read, to: &Path) -> io::Result<(ContentHash, u64)> {
    if let Some(parent) = to.parent() {
        crate::private::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let (mut hasher, mut size, mut buffer) = (Hasher::new(), 0, vec![0; 64 << 10]);
    loop {
        let read = entry.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        io::Write::write_all(&mut file, &buffer[..read])?;
        size += read as u64;
    }
    file.sync_all()?;
    Ok((hasher.finish(), size))
}

/// Rejects a copy whose secret key differs from the existing one. The existing key stays, because
/// other secrets would be lost without it. Beside another key the secrets of the copy would be
/// unusable, and the first step that needs one would be the first to fail.
fn check_key(fresh: &Path, dir: &Path) -> Result<()> {
    let read = |path: PathBuf| match fs::read(&path) {
        Ok(key) => Ok(Some(key)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&path, &error)),
    };
    let path = dir.join(SECRET_KEY);
    match (read(fresh.join(SECRET_KEY))?, read(path.clone())?) {
        (Some(ours), Some(theirs)) if ours.trim_ascii() != theirs.trim_ascii() => {
            Err(Error::OtherSecretKey { path })
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

fn settle(fresh: &Path, dir: &Path, store: &Path) -> io::Result<()> {
    for name in ["logs", "artifacts"] {
        if fresh.join(name).exists() {
            // An existing directory is empty.
            let _ = fs::remove_dir(dir.join(name));
            fs::rename(fresh.join(name), dir.join(name))?;
        }
    }
    // An existing key is equal.
    if fresh.join(SECRET_KEY).exists() && !dir.join(SECRET_KEY).exists() {
        fs::rename(fresh.join(SECRET_KEY), dir.join(SECRET_KEY))?;
    }
    fs::hard_link(fresh.join(DATABASE), store)?;
    File::open(dir)?.sync_all()?;
    File::open(beside::parent(store))?.sync_all()
}

fn starts_with(mut file: &File, words: &[u8]) -> bool {
    let mut found = vec![0; words.len()];
    let is_so = file.read_exact(&mut found).is_ok() && found == words;
    io::Seek::rewind(&mut file).is_ok() && is_so
}

fn names(dir: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names.into_iter()
}

fn aside(to: &Path, end: &str) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{end}", std::process::id()));
    to.with_file_name(name)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull => Error::Full { path: path.to_owned() },
        io::ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly { path: path.to_owned(), why: error.to_string() }
        }
        _ => Error::Io { path: path.to_owned(), why: error.to_string() },
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Closed { why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_its_parts_has_a_place_in_an_archive() {
        let run = "0190d5a0-0000-7000-8000-000000000000";
        let hash = ContentHash::of(b"x");
        for (name, part) in [
            ("laneway.db".to_owned(), Some(Part::Database)),
            (format!("logs/{run}/a.a1.log"), Some(Part::Log)),
            (format!("artifacts/{hash}"), Some(Part::Artifact)),
            (format!("logs/{run}/../../../x.log"), None),
            ("/etc/passwd".to_owned(), None),
            ("../laneway.db".to_owned(), None),
            ("admin.token".to_owned(), None),
            (format!("artifacts/../{hash}"), None),
        ] {
            assert_eq!(Part::of(Path::new(&name)), part, "{name}");
        }
    }
}
