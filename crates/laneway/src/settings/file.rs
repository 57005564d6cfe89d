//! `laneway.toml`: settings of a directory. It is read before the command line is, so that its values stand where the
//! defaults stood; what is wrong in it is refused by name.

use std::path::{Path, PathBuf};

use laneway_core::class::is_label;
use laneway_core::nearest::nearest;
use toml::{Table, Value};

use super::{ALL, Kind, MAX_PARALLEL, Setting, bytes, count};
use crate::drive::duration;
use crate::exit::Refusal;

/// Where it is, unless somebody says otherwise.
const NAME: &str = "laneway.toml";

/// The variable that names another file.
const CONFIG: &str = "LANEWAY_CONFIG";

/// What a file sets.
#[derive(Debug, Default)]
pub(crate) struct File {
    values: Vec<(&'static str, Vec<String>)>,
}

impl File {
    /// A file that is named must be there; the one of this directory need not be.
    pub(crate) fn load() -> Result<Self, Refusal> {
        let named = std::env::var_os(CONFIG).filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = named.clone().unwrap_or_else(|| NAME.into());
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::read(&path, &text),
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            Err(error) => {
                let hint = format!(
                    "{CONFIG} names the file with settings; leave it out to use {NAME}, if there is one"
                );
                Err(Refusal::new(format!("{} cannot be read: {error}", path.display())).hint(hint))
            }
        }
    }

    fn read(path: &Path, text: &str) -> Result<Self, Refusal> {
        let file = path.display();
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            Refusal::new(format!("{file} cannot be read: {}", error.to_string().trim_end()))
        })?;
        let mut values = Vec::new();
        for (name, value) in &table {
            let Some(setting) = ALL.iter().find(|setting| setting.name == name) else {
                let near = nearest(name, ALL.iter().map(|setting| setting.name));
                let near = near.map(|near| format!("do you mean `{near}`? ")).unwrap_or_default();
                return Err(Refusal::new(format!("{file}: there is no setting `{name}`"))
                    .hint(format!("{near}`laneway settings` lists them")));
            };
            let texts = texts(setting, value)
                .map_err(|how| Refusal::new(format!("{file}: `{name}` is {value}")).hint(how))?;
            values.push((setting.name, texts));
        }
        Ok(Self { values })
    }

    pub(crate) fn get(&self, setting: &Setting) -> Option<&[String]> {
        let found = self.values.iter().find(|(name, _)| *name == setting.name);
        found.map(|(_, values)| values.as_slice())
    }

    /// The command line with the file's values as defaults. Not where the document comes in between.
    pub(crate) fn beneath(&self, mut command: clap::Command) -> clap::Command {
        let flags: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        let is_flag = |name: &str| name != MAX_PARALLEL.name && flags.iter().any(|flag| flag == name);
        for (name, values) in self.values.iter().filter(|(name, _)| is_flag(name)) {
            let values = values.clone();
            command = command.mut_arg(name, |arg| arg.default_values(values));
        }
        let subcommands: Vec<String> =
            command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        for name in subcommands {
            command = command.mut_subcommand(name, |sub| self.beneath(sub));
        }
        command
    }
}

/// A value as its flag would take it, or how to write it.
fn texts(setting: &Setting, value: &Value) -> Result<Vec<String>, String> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match setting.kind {
        Kind::Count => {
            let how = "write a whole number of at least 1, without quotes";
            let number = value.as_integer().ok_or(how)?.to_string();
            count(&number)?;
            Ok(vec![number])
        }
        Kind::Duration => {
            let written =
                text(value).ok_or("write a duration in quotes, such as \"500ms\", \"5s\" or \"1m\"")?;
            duration(&written)?;
            Ok(vec![written])
        }
        Kind::Bytes => {
            let written = text(value).ok_or("write a size in quotes, such as \"20GiB\"")?;
            bytes(&written)?;
            Ok(vec![written])
        }
        Kind::Switch => Ok(vec![value.as_bool().ok_or("write true or false, without quotes")?.to_string()]),
        Kind::Text => Ok(vec![text(value).ok_or("write a text in quotes")?]),
        Kind::Names => {
            let names = value.as_array().and_then(|names| names.iter().map(text).collect::<Option<Vec<_>>>());
            names.ok_or_else(|| "write a list of names, such as [\"TOKEN\", \"REGION\"]".to_owned())
        }
        Kind::Labels => {
            let how = "write a table of labels, such as {zone = \"eu\"}";
            let pair = |(name, value): (&String, &Value)| {
                let value = text(value).filter(|value| is_label(value) && is_label(name))?;
                Some(format!("{name}={value}"))
            };
            let labels =
                value.as_table().and_then(|labels| labels.iter().map(pair).collect::<Option<Vec<_>>>());
            labels.ok_or_else(|| how.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{LABELS, SLOTS};

    fn read(text: &str) -> Result<File, String> {
        File::read(Path::new("laneway.toml"), text).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn values_are_as_their_flags_take_them() {
        let file = read("slots = 8\nlabels = {zone = \"eu\"}\nkill_grace = \"2s\"").expect("settings");
        assert_eq!(file.get(&SLOTS).expect("slots"), ["8"]);
        assert_eq!(file.get(&LABELS).expect("labels"), ["zone=eu"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("slot = 8", "there is no setting `slot`"),
            ("slots = 0", "`slots` is 0"),
            ("slots = \"many\"", "`slots` is \"many\""),
            ("kill_grace = 5", "`kill_grace` is 5"),
            ("pass_env = \"A\"", "`pass_env` is \"A\""),
            ("labels = {zone = \"\"}", "`labels` is"),
            ("worker_enabled = \"no\"", "`worker_enabled` is \"no\""),
            ("slots = ", "cannot be read"),
        ] {
            let refusal = read(text).expect_err(text);
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }
}
