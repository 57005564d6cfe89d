//! Results that are taken instead of being made again (`cache`): what a key is made of, and why one missed. Pure: whoever runs
//! a step looks at its files and its image, the store keeps what came of it. docs/design/cache.md.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::artifact::ArtifactPattern;
use crate::expression::Template;
use crate::hash::{ContentHash, Hasher};
use crate::id::RunId;
use crate::limit::written;
use crate::time::Millis;

#[cfg(test)]
mod tests;

/// What a key is made of changes with this: entries of another one are never found.
const FORM: &str = "laneway cache 1";

/// Files that are parts by themselves; of more than these each pattern is one.
pub const MAX_FILE_PARTS: usize = 1_000;

/// Changes that are listed; the rest is counted.
const SHOWN: usize = 5;

/// The `cache` key of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cache {
    /// What else the result depends on, in the words of whoever wrote the document.
    pub key: Option<Template>,
    /// For how long a result is good. `None` is for as long as it is kept.
    pub ttl: Option<Duration>,
    /// Files whose contents belong to the key, relative to the step's directory.
    pub files: Vec<ArtifactPattern>,
}

/// One thing that a result depends on. Only its hash is ever kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The script or program with its arguments and directory, or the function with its input.
    Command,
    /// The system and the processor.
    Platform,
    /// The digest of the image.
    Image,
    /// How its container is made.
    Container,
    /// What it declares to leave behind.
    Artifacts,
    /// The user's own `key`.
    Key,
    /// A variable of the document.
    Env(String),
    /// A file, by its path.
    File(String),
    /// All files that are like a pattern, where there are many.
    Files(String),
}

/// What a key is made of, each with the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts(BTreeMap<Part, ContentHash>);

/// Something that is another one than it was when a result was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub part: Part,
    pub how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Changed,
    /// It was not there before.
    Added,
    /// It is not there any more.
    Removed,
}

/// A result of a step that is kept, as far as a look at keys goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub run: RunId,
    pub at: Millis,
    pub parts: Parts,
}

/// Why a step was executed although its document lets it take a recorded result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Miss {
    /// No result of this step is kept.
    NeverSeen,
    /// The very key is known, and its result is too old.
    Expired { run: RunId, recorded_at: Millis, ttl_ms: u64 },
    /// Another key is known: compared with the one that is most like it.
    Differs { run: RunId, recorded_at: Millis, changes: Vec<Change> },
    /// The very key is known, and a file that it left behind is not kept any more.
    Gone { run: RunId, recorded_at: Millis },
    /// There is no key: what belongs to it could not be read.
    NoKey { detail: String },
    /// Nobody looked: the run was started with `--no-cache`.
    NotWanted,
    /// Nobody looked: a person wants the step, which has succeeded before in this run, again.
    Again,
}

impl Parts {
    pub fn add(&mut self, part: Part, content: &[u8]) {
        self.0.insert(part, ContentHash::of(content));
    }

    /// Of what has its hash already.
    pub fn add_hash(&mut self, part: Part, hash: ContentHash) {
        self.0.insert(part, hash);
    }

    /// The key of a step of a workflow. Two steps that say the same are two steps: what they do depends on more than they say.
    pub fn key(&self, workflow: &str, step: &str) -> ContentHash {
        let mut hasher = Hasher::new();
        let mut field = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        [FORM, workflow, step].into_iter().for_each(&mut field);
        for (part, hash) in &self.0 {
            field(&part.as_stored());
            field(hash.as_str());
        }
        hasher.finish()
    }

    /// What of these is not as in others, in a fixed order.
    pub fn changes_since(&self, before: &Self) -> Vec<Change> {
        let mut changes: BTreeMap<&Part, How> = BTreeMap::new();
        for (part, hash) in &self.0 {
            match before.0.get(part) {
                None => drop(changes.insert(part, How::Added)),
                Some(was) if was != hash => drop(changes.insert(part, How::Changed)),
                Some(_) => {}
            }
        }
        let removed = before.0.keys().filter(|part| !self.0.contains_key(part));
        changes.extend(removed.map(|part| (part, How::Removed)));
        changes.into_iter().map(|(part, how)| Change { part: part.clone(), how }).collect()
    }

    /// As it is kept: one object of names and hashes.
    pub fn to_text(&self) -> String {
        let stored: BTreeMap<String, &str> =
            self.0.iter().map(|(part, hash)| (part.as_stored(), hash.as_str())).collect();
        serde_json::to_string(&stored).expect("texts")
    }

    /// `None` for what this program would not have written.
    pub fn parse(text: &str) -> Option<Self> {
        let stored: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
        let each = stored.iter().map(|(part, hash)| Some((Part::parse(part)?, ContentHash::parse(hash)?)));
        each.collect::<Option<_>>().map(Self)
    }
}

/// Why these were not found among the results that are kept of a step: compared with the one that differs in the fewest, of those
/// the newest.
pub fn miss(parts: &Parts, kept: &[Recorded]) -> Miss {
    let each = kept.iter().map(|recorded| (parts.changes_since(&recorded.parts), recorded));
    let nearest = each.min_by_key(|(changes, recorded)| (changes.len(), std::cmp::Reverse(recorded.at)));
    match nearest {
        None => Miss::NeverSeen,
        Some((changes, recorded)) => Miss::Differs { run: recorded.run, recorded_at: recorded.at, changes },
    }
}

impl Part {
    /// As it stands in the store and in `--json`.
    pub fn as_stored(&self) -> String {
        match self {
            Self::Command => "command".to_owned(),
            Self::Platform => "platform".to_owned(),
            Self::Image => "image".to_owned(),
            Self::Container => "container".to_owned(),
            Self::Artifacts => "artifacts".to_owned(),
            Self::Key => "key".to_owned(),
            Self::Env(name) => format!("env:{name}"),
            Self::File(path) => format!("file:{path}"),
            Self::Files(pattern) => format!("files:{pattern}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text.split_once(':') {
            Some(("env", name)) => Self::Env(name.to_owned()),
            Some(("file", path)) => Self::File(path.to_owned()),
            Some(("files", pattern)) => Self::Files(pattern.to_owned()),
            Some(_) => return None,
            None => match text {
                "command" => Self::Command,
                "platform" => Self::Platform,
                "image" => Self::Image,
                "container" => Self::Container,
                "artifacts" => Self::Artifacts,
                "key" => Self::Key,
                _ => return None,
            },
        })
    }
}

impl Serialize for Part {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.as_stored())
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no part of a key")))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command => f.write_str("the command"),
            Self::Platform => f.write_str("the platform"),
            Self::Image => f.write_str("the image"),
            Self::Container => f.write_str("the configuration of its container"),
            Self::Artifacts => f.write_str("its list of artifacts"),
            Self::Key => f.write_str("`cache.key`"),
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {path}"),
            Self::Files(pattern) => write!(f, "a file like {pattern}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            How::Changed => "has changed",
            How::Added => "is new",
            How::Removed => "is gone",
        };
        write!(f, "{} {how}", self.part)
    }
}

/// Why, for people.
impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverSeen => f.write_str("no result of this step was recorded before"),
            Self::Expired { run, recorded_at, ttl_ms } => {
                let ttl = written(Duration::from_millis(*ttl_ms));
                write!(f, "the result of run {} of {recorded_at} is older than its ttl of {ttl}", run.short())
            }
            Self::Differs { run, changes, .. } => {
                let shown: Vec<String> = changes.iter().take(SHOWN).map(Change::to_string).collect();
                write!(f, "since run {} {}", run.short(), shown.join(", "))?;
                match changes.len().checked_sub(SHOWN) {
                    Some(more @ 1..) => write!(f, ", and {more} more"),
                    Some(0) | None => Ok(()),
                }
            }
            Self::Gone { run, .. } => {
                write!(f, "files of the result of run {} are not kept any more", run.short())
            }
            Self::NoKey { detail } => write!(f, "it has no key: {detail}"),
            Self::NotWanted => f.write_str("nobody looked, because of --no-cache"),
            Self::Again => f.write_str("nobody looked, because a person wanted it again"),
        }
    }
}
