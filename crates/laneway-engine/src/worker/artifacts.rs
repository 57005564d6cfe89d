//! Files that steps hand on: finds and keeps what a step that succeeded declares, and puts what it is given into its directory
//! before it starts. Neither ever leads out of that directory, whatever links lie there.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_core::artifact::{ArtifactName, ArtifactPattern};
use laneway_core::definition::is_input;
use laneway_core::expression::Scope;
use laneway_core::hash::Hasher;
use laneway_store::Store;
use laneway_store::model::{Artifact, Claim};

use super::written::{Stamps, Written};

/// A step that leaves more behind than this has named the wrong directory.
const MAX_FILES: usize = 1_000;

/// Nor is more looked at to find them.
const MAX_SEEN: usize = 100_000;

/// Not looked into, unless a path names them.
const PASSED_OVER: [&str; 2] = [".git", ".laneway"];

/// Why files are not handed on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no file is like its artifact `{pattern}`: {there}")]
    NoMatch { pattern: ArtifactPattern, there: String },
    #[error(
        "the files like its artifact `{pattern}` were there before, and the step wrote none of them; only what the \
         attempt itself writes is kept: let it write them anew, or `touch` those that are up to date"
    )]
    NotWritten { pattern: ArtifactPattern },
    #[error("more than {MAX_FILES} files are like its artifacts; pack them into one")]
    TooMany,
    #[error("its artifact `{name}` is a link that leads out of its directory")]
    LeadsOut { name: ArtifactName },
    #[error(
        "its artifact `{name}` has {size} bytes, and at most {limit} of one are kept in a store for many nodes"
    )]
    TooLarge { name: ArtifactName, size: u64, limit: u64 },
    #[error("{}: {source}", path.display())]
    Files { path: PathBuf, source: io::Error },
    #[error("artifact `{name}` of `{step}` cannot be put into its directory: {why}")]
    Misplaced { name: ArtifactName, step: String, why: String },
    /// A path with an expression, in words.
    #[error("{0}")]
    Path(String),
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
}

impl Error {
    /// Whether to ask again.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_passing())
    }

    /// The same of files that are looked at for a key.
    pub(super) fn of_cache(&self) -> String {
        match self {
            Self::NoMatch { pattern, .. } => format!("no file is like `{pattern}` of `cache.files`"),
            Self::TooMany => "too many files are like its `cache.files`".to_owned(),
            Self::LeadsOut { name } => format!("`{name}` is a link that leads out of its directory"),
            Self::NotWritten { .. }
            | Self::TooLarge { .. }
            | Self::Files { .. }
            | Self::Misplaced { .. }
            | Self::Path(_)
            | Self::Store(_) => self.to_string(),
        }
    }
}

/// Notes the files that are like the artifacts of a step, just before it starts in a directory that
/// it shares. What is wrong with them is told at its end.
pub(super) async fn stamps(claim: &Claim, (dir, scope): (&Path, &Scope)) -> Stamps {
    let Ok(patterns) = patterns(claim, scope) else { return Stamps::default() };
    if patterns.is_empty() {
        return Stamps::default();
    }
    let dir = dir.to_owned();
    let look = move || {
        let Ok(root) = dir.canonicalize() else { return Stamps::default() };
        let mut names = Vec::new();
        for pattern in &patterns {
            // Too many files are too many at the end as well, unless the step removes them.
            drop(walk(&root, &plain_part(pattern).join("/"), pattern, &mut names, (&mut 0, MAX_SEEN)));
        }
        Stamps::of(&root, names)
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn patterns(claim: &Claim, scope: &Scope) -> Result<Vec<ArtifactPattern>, Error> {
    let step = claim.head.plan.step(claim.at.position);
    step.files()
        .artifacts
        .iter()
        .map(|path| path.pattern(scope))
        .collect::<Result<_, _>>()
        .map_err(Error::Path)
}

/// Keeps what a step declares. Called before its end is recorded, so that the next step finds them.
/// Only what the attempt wrote itself can be one.
pub(super) async fn keep(
    store: &dyn Store,
    claim: &Claim,
    (dir, scope): (&Path, &Scope),
    written: Written,
) -> Result<Vec<Artifact>, Error> {
    let (patterns, place) = (patterns(claim, scope)?, dir.to_owned());
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let find = move || find_written(&place, &patterns, &written);
    let found = tokio::task::spawn_blocking(find).await;
    let found = found.map_err(|error| files(dir, io::Error::other(error.to_string())))??;
    let mut artifacts = Vec::with_capacity(found.len());
    for Found { name, path, is_executable } in found {
        let (hash, size) =
            store.keep_file(&path, laneway_store::MAX_SHARED_FILE).await.map_err(|error| match error {
                laneway_store::Error::TooLarge { size, limit } => {
                    Error::TooLarge { name: name.clone(), size, limit }
                }
                other => other.into(),
            })?;
        artifacts.push(Artifact { name, hash, size, is_executable });
    }
    // A claim that is lost is noticed by the end that follows.
    store.keep_artifacts(claim.at, artifacts.clone()).await?;
    Ok(artifacts)
}

/// Puts the artifacts of the steps it names into the directory of a step, and returns their paths.
pub(super) async fn give(
    store: &Arc<dyn Store>,
    claim: &Claim,
    (dir, scope): (&Path, &Scope),
) -> Result<Vec<PathBuf>, Error> {
    let inputs = claim.head.plan.step(claim.at.position).inputs(scope).map_err(Error::Path)?;
    let mut given = Vec::new();
    if inputs.is_empty() {
        return Ok(given);
    }
    let root = dir.canonicalize().map_err(|source| files(dir, source))?;
    for view in store.artifacts(claim.head.run).await? {
        // Of a step with items, those of all of them, in their order.
        if !inputs.iter().any(|input| is_input(input, &view.step)) {
            continue;
        }
        let placed = place(store.as_ref(), claim, &root, &view.artifact).await;
        given.push(placed.map_err(|error| match error {
            Error::Misplaced { name, why, .. } => Error::Misplaced { name, step: view.step.clone(), why },
            other => other,
        })?);
    }
    Ok(given)
}

/// Puts a file that is kept below a directory, and says where.
pub(super) async fn place(
    store: &dyn Store,
    claim: &Claim,
    root: &Path,
    artifact: &Artifact,
) -> Result<PathBuf, Error> {
    let misplaced = |why: String| {
        let step = claim.head.plan.step(claim.at.position).name.clone();
        Error::Misplaced { name: artifact.name.clone(), step, why }
    };
    let target = room(root, &artifact.name).map_err(&misplaced)?;
    if has(&target, artifact) {
        return Ok(target);
    }
    // Whole, or not at all, and in the place of a link rather than through it.
    let (run, position, generation) = (claim.head.run, claim.at.position, claim.at.generation);
    let fresh = target.with_file_name(format!(".laneway-{run}-{position}-{generation}"));
    drop(fs::remove_file(&fresh));
    let fetched = store.fetch_file(&artifact.hash, &fresh).await;
    let mode = if artifact.is_executable { 0o755 } else { 0o644 };
    let placed = match fetched {
        Ok(()) => fs::set_permissions(&fresh, fs::Permissions::from_mode(mode))
            .and_then(|()| fs::rename(&fresh, &target))
            .map_err(|error| misplaced(error.to_string())),
        Err(error) => Err(error.into()),
    };
    if placed.is_err() {
        drop(fs::remove_file(&fresh));
    }
    placed.map(|()| target)
}

/// Where a file goes; its directories are made. None of them may be a link to elsewhere.
fn room(root: &Path, name: &ArtifactName) -> Result<PathBuf, String> {
    let target = root.join(name.as_str());
    let parent = target.parent().unwrap_or(root);
    let mut made = root.to_owned();
    for part in parent.strip_prefix(root).unwrap_or(Path::new("")) {
        made.push(part);
        match fs::create_dir(&made) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.to_string()),
            Ok(()) | Err(_) => {}
        }
        let is_inside = made.canonicalize().is_ok_and(|path| path.starts_with(root) && path.is_dir());
        if !is_inside {
            return Err(format!("{} leads out of it", made.display()));
        }
    }
    Ok(target)
}

/// Whether the very file is there, as it is where steps share a directory.
fn has(target: &Path, artifact: &Artifact) -> bool {
    let Ok(data) = fs::symlink_metadata(target) else { return false };
    if !data.is_file() || data.len() != artifact.size {
        return false;
    }
    let (Ok(mut file), mut hasher) = (fs::File::open(target), Hasher::new()) else { return false };
    let mut buffer = vec![0; 64 << 10];
    loop {
        match io::Read::read(&mut file, &mut buffer) {
            Ok(0) => return hasher.finish() == artifact.hash,
            Ok(read) => hasher.update(&buffer[..read]),
            Err(_) => return false,
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) name: ArtifactName,
    pub(super) path: PathBuf,
    pub(super) is_executable: bool,
}

/// The files that are like one of the patterns, by name, not more than so many; each of those has to have one.
pub(super) fn find(dir: &Path, patterns: &[ArtifactPattern], most: usize) -> Result<Vec<Found>, Error> {
    let root = dir.canonicalize().map_err(|source| files(dir, source))?;
    names(&root, patterns, most)?.into_iter().map(|name| look(&root, name)).collect()
}

/// Only what is below the part without any `*` or `?` can be like a pattern.
fn plain_part(pattern: &ArtifactPattern) -> Vec<&str> {
    pattern.as_str().split('/').take_while(|part| !part.contains(['*', '?'])).collect()
}

fn names(root: &Path, patterns: &[ArtifactPattern], most: usize) -> Result<Vec<ArtifactName>, Error> {
    let mut names = Vec::new();
    let mut seen = 0;
    for pattern in patterns {
        let base = plain_part(pattern);
        walk(root, &base.join("/"), pattern, &mut names, (&mut seen, most))?;
        if !names.iter().any(|name| pattern.matches(name)) {
            let there = what_is_there(root, &base);
            return Err(Error::NoMatch { pattern: pattern.clone(), there });
        }
    }
    names.sort_unstable();
    names.dedup();
    if names.len() > most {
        return Err(Error::TooMany);
    }
    Ok(names)
}

/// What lies where a pattern looks, for a person who wonders why nothing matched.
fn what_is_there(root: &Path, plain: &[&str]) -> String {
    const MAX_NAMES: usize = 8;
    let mut at = root.to_owned();
    for part in plain {
        if !at.join(part).is_dir() {
            break;
        }
        at.push(part);
    }
    let below = at.strip_prefix(root).unwrap_or(&at).display().to_string();
    let place = if below.is_empty() { format!("{}", root.display()) } else { format!("`{below}`") };
    let missing = plain.get(at.strip_prefix(root).map_or(0, |path| path.components().count()));
    let mut names: Vec<String> = fs::read_dir(&at)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !PASSED_OVER.contains(&name.as_str()))
        .collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let has = match (names.is_empty(), more) {
        (true, _) => format!("{place} is empty"),
        (false, 0) => format!("{place} has {}", names.join(", ")),
        (false, more) => format!("{place} has {} and {more} more", names.join(", ")),
    };
    match missing {
        Some(missing) => format!("there is no `{missing}`, and {has}"),
        None => has,
    }
}

/// The files that are like one of the patterns and that the step wrote; each pattern has to have one.
fn find_written(dir: &Path, patterns: &[ArtifactPattern], written: &Written) -> Result<Vec<Found>, Error> {
    let root = dir.canonicalize().map_err(|source| files(dir, source))?;
    let mut names = names(&root, patterns, MAX_SEEN)?;
    names.retain(|name| written.has(&root, name));
    for pattern in patterns {
        if !names.iter().any(|name| pattern.matches(name)) {
            return Err(Error::NotWritten { pattern: pattern.clone() });
        }
    }
    if names.len() > MAX_FILES {
        return Err(Error::TooMany);
    }
    names.into_iter().map(|name| look(&root, name)).collect()
}

/// Adds what is like a pattern, from a path below the root on. Links are not followed to directories.
fn walk(
    root: &Path,
    from: &str,
    pattern: &ArtifactPattern,
    names: &mut Vec<ArtifactName>,
    (seen, most): (&mut usize, usize),
) -> Result<(), Error> {
    *seen += 1;
    if *seen > MAX_SEEN || names.len() > most {
        return Err(Error::TooMany);
    }
    let path = root.join(from);
    let Ok(data) = fs::symlink_metadata(&path) else { return Ok(()) };
    if !data.is_dir() {
        if let Ok(name) = ArtifactName::parse(from)
            && pattern.matches(&name)
        {
            names.push(name);
        }
        return Ok(());
    }
    for entry in fs::read_dir(&path).map_err(|source| files(&path, source))? {
        let entry = entry.map_err(|source| files(&path, source))?;
        // A name that is no text can be like no pattern.
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if PASSED_OVER.contains(&name.as_str()) {
            continue;
        }
        let below = if from.is_empty() { name } else { format!("{from}/{name}") };
        walk(root, &below, pattern, names, (seen, most))?;
    }
    Ok(())
}

fn look(root: &Path, name: ArtifactName) -> Result<Found, Error> {
    let path = root.join(name.as_str());
    let real = path.canonicalize().map_err(|source| files(&path, source))?;
    if !real.starts_with(root) {
        return Err(Error::LeadsOut { name });
    }
    let data = fs::metadata(&real).map_err(|source| files(&path, source))?;
    if !data.is_file() {
        return Err(files(&path, io::Error::other("it is no plain file")));
    }
    Ok(Found { name, path: real, is_executable: data.permissions().mode() & 0o111 != 0 })
}

pub(super) fn files(path: &Path, source: io::Error) -> Error {
    Error::Files { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn found(dir: &Path, patterns: &[&str]) -> Result<Vec<String>, Error> {
        let parsed: Vec<_> =
            patterns.iter().map(|text| ArtifactPattern::parse(text).expect("a pattern")).collect();
        Ok(find(dir, &parsed, MAX_FILES)?.into_iter().map(|found| found.name.to_string()).collect())
    }

    #[test]
    fn what_is_like_a_pattern_is_found_once_and_links_lead_nowhere_else() {
        let dir = tempfile::tempdir().expect("dir");
        fs::create_dir_all(dir.path().join("dist/sub")).expect("made");
        for name in ["dist/a.txt", "dist/sub/b.txt", "top.txt"] {
            fs::write(dir.path().join(name), name).expect("written");
        }
        symlink("a.txt", dir.path().join("dist/alias.txt")).expect("a link");
        let names = found(dir.path(), &["dist/*.txt", "**/*.txt"]).expect("found");
        assert_eq!(names, ["dist/a.txt", "dist/alias.txt", "dist/sub/b.txt", "top.txt"]);
        assert!(matches!(found(dir.path(), &["none/*"]), Err(Error::NoMatch { .. })));
        symlink("/etc", dir.path().join("etc")).expect("a link");
        assert!(matches!(found(dir.path(), &["etc/*"]), Err(Error::NoMatch { .. })));
        symlink("/etc/passwd", dir.path().join("dist/out.txt")).expect("a link");
        assert!(matches!(found(dir.path(), &["dist/*.txt"]), Err(Error::LeadsOut { .. })));
    }

    #[test]
    fn nothing_is_put_through_a_link_that_leads_out() {
        let (dir, outside) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        let root = dir.path().canonicalize().expect("a path");
        symlink(outside.path(), root.join("link")).expect("a link");
        let name = |text: &str| ArtifactName::parse(text).expect("a name");
        assert!(room(&root, &name("link/x")).is_err());
        assert!(room(&root, &name("link/deeper/x")).is_err());
        assert_eq!(room(&root, &name("new/x")).expect("room"), root.join("new/x"));
        assert_eq!(fs::read_dir(outside.path()).expect("dir").count(), 0);
    }
}
