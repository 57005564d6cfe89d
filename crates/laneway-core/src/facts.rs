//! Facts that are stored: each stream of events has a closed set of them, one struct each, with a name, a version and a
//! stored form. A field is never renamed or re-used: a new meaning is a new version.

/// A stored event that this program cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {name} (version {version}): {why}")]
pub struct Unreadable {
    pub name: String,
    pub version: u32,
    pub why: String,
}

/// The fact of a line of `--json`: what is left of it without the `common` fields, and its name. Of a version that this
/// program does not know it says so.
pub(crate) fn from_line(
    line: &serde_json::Value,
    common: &[&str],
    version_of: fn(&str) -> Option<u32>,
) -> Result<(String, u32, String), Unreadable> {
    let name = line["event"].as_str().unwrap_or_default().to_owned();
    let bad = |why: &str| Unreadable { name: name.clone(), version: 0, why: why.to_owned() };
    let mut fields = line.as_object().cloned().ok_or_else(|| bad("it is no object"))?;
    fields.retain(|field, _| !common.contains(&field.as_str()));
    let version = version_of(&name).ok_or_else(|| bad("this program does not know that kind of event"))?;
    let body = serde_json::Value::Object(fields).to_string();
    Ok((name, version, body))
}

/// The moment of such a line.
pub(crate) fn moment(line: &serde_json::Value) -> Option<crate::time::Millis> {
    let at: jiff::Timestamp = line["at"].as_str()?.parse().ok()?;
    Some(crate::time::Millis(at.as_millisecond()))
}

/// Defines such a set: the structs, the enum over them, and how they are written and read.
macro_rules! facts {
    ($(#[$outer:meta])* pub enum $set:ident;
     $($(#[$meta:meta])* $name:ident = $word:literal v $version:literal { $($(#[$fmeta:meta])* $field:ident: $type:ty,)* })+) => {
        $($(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$fmeta])* pub $field: $type,)* })+

        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $set { $($(#[$meta])* $name($name),)+ }

        $(impl From<$name> for $set {
            fn from(fact: $name) -> Self { Self::$name(fact) }
        })+

        impl $set {
            pub const NAMES: &'static [&'static str] = &[$($word,)+];

            pub fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => $word,)+ }
            }

            pub fn version(&self) -> u32 {
                match self { $(Self::$name(_) => $version,)+ }
            }

            /// The version that this program writes of a kind of fact.
            pub fn version_of(name: &str) -> Option<u32> {
                match name { $($word => Some($version),)+ _ => None }
            }

            /// The fact's own fields.
            pub fn body(&self) -> serde_json::Value {
                match self { $(Self::$name(fact) => serde_json::to_value(fact)
                    .expect("facts hold only strings, numbers and JSON values"),)+ }
            }

            /// The same as text, without a detour over a tree: this is written for every event.
            pub fn body_text(&self) -> String {
                match self { $(Self::$name(fact) => serde_json::to_string(fact)
                    .expect("facts hold only strings, numbers and JSON values"),)+ }
            }

            /// Reads a stored fact; what cannot be read is the caller's to quarantine.
            pub fn read(name: &str, version: u32, body: &str) -> Result<Self, $crate::facts::Unreadable> {
                let bad = |why: String| $crate::facts::Unreadable { name: name.to_owned(), version, why };
                match (name, version) {
                    $(($word, $version) => serde_json::from_str(body).map(Self::$name).map_err(|e| bad(e.to_string())),)+
                    _ => Err(bad("this program does not know that kind of event".to_owned())),
                }
            }
        }
    };
}

pub(crate) use facts;
