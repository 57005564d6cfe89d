//! How the results of a group's members become one. Pure: what members changed in their copies comes in as lists, what is
//! to be done to the run's directory comes out. Neither depends on the order in which members ended, only on the order in
//! which the group lists them. The edge is `laneway-engine/src/isolate/`; why it is so: docs/design/groups.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::definition::OnConflict;
use crate::state::TaskStatus;

/// Paths named in a result or in words; the rest is counted. An output holds 256 KiB.
const NAMED: usize = 1_000;
const NAMED_IN_WORDS: usize = 20;

/// How a member ended, and what it put out.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub step: String,
    pub status: TaskStatus,
    pub output: Map<String, Value>,
}

/// The members' outputs in the order of the group's list, and whether all of them succeeded.
pub fn concatenate(members: &[Ended]) -> Map<String, Value> {
    let is_success = |member: &Ended| member.status == TaskStatus::Succeeded;
    let one = |member: &Ended| {
        json!({
            "step": member.step,
            "status": member.status.as_str(),
            "success": is_success(member),
            "output": member.output,
        })
    };
    let mut result = Map::new();
    result.insert("success".into(), members.iter().all(is_success).into());
    result.insert("members".into(), members.iter().map(one).collect());
    result
}

/// What lies at a path of a member's copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// By the hash of its content, and its permissions.
    File {
        hash: String,
        mode: u32,
    },
    Symlink {
        #[serde(with = "bytes")]
        target: PathBuf,
    },
    Directory {
        mode: u32,
    },
}

impl Entry {
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }
}

/// What one member made of what it was given, by relative path; `None` is removed.
pub type Changes = BTreeMap<PathBuf, Option<Entry>>;

/// A member with its place in the group's list.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub index: usize,
    pub step: String,
    pub changes: Changes,
}

/// One change of the run's directory, and which member's copy has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    #[serde(with = "bytes")]
    pub path: PathBuf,
    pub entry: Option<Entry>,
    /// The first of those who made it, by its place in the list.
    pub from: usize,
    pub steps: Vec<String>,
}

/// A path that members changed in different ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conflict {
    #[serde(with = "bytes")]
    pub path: PathBuf,
    /// Who changed it, as they are listed.
    pub steps: Vec<String>,
    /// Whose was taken; `None` if nothing decides it.
    pub kept: Option<String>,
}

/// What is to be done, in the order of paths.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Combined {
    pub applies: Vec<Apply>,
    pub conflicts: Vec<Conflict>,
}

/// Brings changes together. A path that one member changed, or several alike, is applied. One that they changed in different
/// ways is a conflict, and so is a path below which another member put something while it is no directory any more.
///
/// Directories are there for what they hold: that one removes a directory and another adds to it is no conflict.
pub fn combine(members: &[Member], on_conflict: &OnConflict) -> Combined {
    let mut members: Vec<&Member> = members.iter().collect();
    members.sort_by_key(|member| member.index);
    let mut by_path: BTreeMap<&Path, Vec<(&Member, &Option<Entry>)>> = BTreeMap::new();
    for member in members {
        for (path, entry) in &member.changes {
            by_path.entry(path).or_default().push((member, entry));
        }
    }
    let mut combined = Combined::default();
    for (path, changes) in &by_path {
        let rivals = rivals(path, changes, &by_path);
        if rivals.is_empty() {
            // Where they differ without harm, one removed a directory that another one has use for.
            let (first, entry) = changes.iter().find(|(_, entry)| entry.is_some()).unwrap_or(&changes[0]);
            combined.applies.push(Apply {
                path: path.to_path_buf(),
                entry: (*entry).clone(),
                from: first.index,
                steps: changes.iter().map(|(member, _)| member.step.clone()).collect(),
            });
            continue;
        }
        let kept = match on_conflict {
            OnConflict::Fail => None,
            // A conflict between others is none that this decides.
            OnConflict::Keep(step) => rivals.values().find(|member| member.step == *step),
        };
        if let Some(member) = kept
            && let Some((_, entry)) = changes.iter().find(|(other, _)| other.index == member.index)
        {
            combined.applies.push(Apply {
                path: path.to_path_buf(),
                entry: (*entry).clone(),
                from: member.index,
                steps: vec![member.step.clone()],
            });
        }
        combined.conflicts.push(Conflict {
            path: path.to_path_buf(),
            steps: rivals.values().map(|member| member.step.clone()).collect(),
            kept: kept.map(|member| member.step.clone()),
        });
    }
    combined
}

/// All who stand against each other at a path, by their place in the list; nobody if they agree.
fn rivals<'m>(
    path: &Path,
    changes: &[(&'m Member, &'m Option<Entry>)],
    by_path: &BTreeMap<&Path, Vec<(&'m Member, &'m Option<Entry>)>>,
) -> BTreeMap<usize, &'m Member> {
    let everybody = || changes.iter().map(|(member, _)| (member.index, *member));
    let mut rivals = BTreeMap::new();
    let is_divided = changes.iter().any(|(_, entry)| *entry != changes[0].1);
    // Who removed a directory, and who changed what it is worth: that one of them keeps it harms nobody.
    let is_about_a_directory =
        changes.iter().all(|(_, entry)| entry.as_ref().is_none_or(Entry::is_directory))
            && changes.iter().any(|(_, entry)| entry.is_some());
    if is_divided && !(is_about_a_directory && agrees_on_directory(changes)) {
        rivals.extend(everybody());
    }
    // Something that is no directory stands where others have put something below.
    let is_in_the_way = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| !entry.is_directory());
    if changes.iter().any(|(_, entry)| is_in_the_way(entry)) {
        let below = by_path.range::<Path, _>((std::ops::Bound::Excluded(path), std::ops::Bound::Unbounded));
        let below = below.take_while(|(other, _)| other.starts_with(path));
        let owners: BTreeSet<usize> = changes.iter().map(|(member, _)| member.index).collect();
        for (member, entry) in below.flat_map(|(_, changes)| changes) {
            if entry.is_some() && !owners.contains(&member.index) {
                rivals.insert(member.index, *member);
                rivals.extend(everybody());
            }
        }
    }
    // The same, looked at from below.
    if changes.iter().any(|(_, entry)| entry.is_some()) {
        for parent in path.ancestors().skip(1) {
            let Some(above) = by_path.get(parent) else { continue };
            let owners: BTreeSet<usize> = changes.iter().map(|(member, _)| member.index).collect();
            for (member, entry) in above {
                if is_in_the_way(entry) && !owners.contains(&member.index) {
                    rivals.insert(member.index, *member);
                    rivals.extend(everybody());
                }
            }
        }
    }
    rivals
}

/// Of changes to a directory: whether those who did not remove it want the same of it.
fn agrees_on_directory(changes: &[(&Member, &Option<Entry>)]) -> bool {
    let mut wanted = changes.iter().filter_map(|(_, entry)| entry.as_ref());
    let first = wanted.next();
    wanted.all(|entry| Some(entry) == first)
}

impl Combined {
    /// Those that nothing decides, in words; `None` if there are none.
    pub fn undecided(&self) -> Option<String> {
        let open: Vec<&Conflict> = self.conflicts.iter().filter(|conflict| conflict.kept.is_none()).collect();
        if open.is_empty() {
            return None;
        }
        let named: Vec<String> = open
            .iter()
            .take(NAMED_IN_WORDS)
            .map(|conflict| format!("{} ({})", conflict.path.display(), conflict.steps.join(", ")))
            .collect();
        let more = match open.len().saturating_sub(NAMED_IN_WORDS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "members changed the same files in different ways, so nothing was applied: {}{more}; \
             let one of them win with `on_conflict: {{keep: STEP}}`",
            named.join("; ")
        ))
    }

    /// The changes of files and symlinks; those of directories alone are not told, unless they are gone.
    pub fn files(&self) -> impl Iterator<Item = &Apply> {
        self.applies.iter().filter(|apply| !apply.entry.as_ref().is_some_and(Entry::is_directory))
    }

    /// Adds what was done to a result.
    pub fn tell(&self, result: &mut Map<String, Value>) {
        let files: Vec<&Apply> = self.files().collect();
        let one = |apply: &&Apply| {
            json!({
                "path": apply.path.to_string_lossy(),
                "change": if apply.entry.is_some() { "written" } else { "removed" },
                "steps": apply.steps,
            })
        };
        let conflict = |conflict: &Conflict| {
            json!({
                "path": conflict.path.to_string_lossy(),
                "steps": conflict.steps,
                "kept": conflict.kept,
            })
        };
        result.insert("files_changed".into(), files.len().into());
        result.insert("files".into(), files.iter().take(NAMED).map(one).collect());
        result.insert("conflicts".into(), self.conflicts.iter().take(NAMED).map(conflict).collect());
    }
}

/// Whether what a member says it has changed (`files_changed` in its output, a list of paths) is what it has. Says in words
/// what is not; nothing if it says nothing, or the truth.
pub fn against_said(step: &str, output: &Map<String, Value>, changed: &BTreeSet<PathBuf>) -> Option<String> {
    let said = output.get("files_changed")?;
    let wrong = || Some(format!("`files_changed` of `{step}` must be a list of paths, not {said}"));
    let Value::Array(said) = said else { return wrong() };
    let mut named = BTreeSet::new();
    for path in said {
        let Value::String(path) = path else { return wrong() };
        let normal = Path::new(path).components().filter(|part| *part != Component::CurDir);
        named.insert(normal.collect::<PathBuf>());
    }
    let listed = |paths: Vec<&PathBuf>| {
        let shown: Vec<String> =
            paths.iter().take(NAMED_IN_WORDS).map(|path| path.display().to_string()).collect();
        let more = paths.len().saturating_sub(NAMED_IN_WORDS);
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    let unsaid: Vec<&PathBuf> = changed.difference(&named).collect();
    let untrue: Vec<&PathBuf> = named.difference(changed).collect();
    let mut words = Vec::new();
    if !untrue.is_empty() {
        words.push(format!("names {}, which it did not change", listed(untrue)));
    }
    if !unsaid.is_empty() {
        words.push(format!("does not name {}, which it changed", listed(unsaid)));
    }
    (!words.is_empty()).then(|| format!("`files_changed` of `{step}` {}", words.join(" and ")))
}

/// Paths as they are written down between two tries of a merge: they need not be text.
mod bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(path.as_os_str().as_bytes())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(PathBuf::from(OsString::from_vec(Vec::<u8>::deserialize(from)?)))
    }
}

#[cfg(test)]
mod tests;
