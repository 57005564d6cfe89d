//! Which program interprets the script of a step, and with which words. Pure: the engines add what they find on their node.

mod scan;

pub use scan::{Scan, scan};

/// Longest script that is passed as an argument. Linux takes 128 KiB in one.
pub const MAX_INLINE_BYTES: usize = 100 * 1024;

/// Shells of the Bourne family take the word behind the text of `-c` as `$0`, other programs as their first argument.
const BOURNE_SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "yash", "zsh"];

/// The `shell` key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub enum Shell {
    /// `/bin/sh -e`.
    #[default]
    Sh,
    /// `bash -eo pipefail`.
    Bash,
    /// These words, which begin with a program. The script follows them: its text behind a `-c`, the path of its file otherwise.
    Argv(Vec<String>),
}

/// How a script reaches its interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptForm {
    /// `FILE ARGS…`, which the system executes by its `#!` line.
    Executable,
    /// `SHELL… FILE ARGS…`
    File,
    /// `SHELL… TEXT [NAME] ARGS…`, where the last word of the shell is `-c`.
    Text,
}

impl Shell {
    /// Returns the words in front of the script for a form. `-c` is among them for [`ScriptForm::Text`].
    pub fn words(&self, form: ScriptForm) -> Vec<String> {
        let fixed: &[&str] = match (self, form) {
            (_, ScriptForm::Executable) => return Vec::new(),
            (Self::Argv(words), _) => return words.clone(),
            (Self::Sh, ScriptForm::File) => &["/bin/sh", "-e"],
            (Self::Sh, ScriptForm::Text) => &["/bin/sh", "-e", "-c"],
            (Self::Bash, ScriptForm::File) => &["bash", "-eo", "pipefail"],
            (Self::Bash, ScriptForm::Text) => &["bash", "-eo", "pipefail", "-c"],
        };
        fixed.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Returns how a script is passed: its `#!` line wins, and a list says itself what it takes. `sh` and `bash` take the
    /// text of a script that is short enough if `prefers_text`, which spares a file.
    pub fn form(&self, script: &str, prefers_text: bool) -> ScriptForm {
        let is_short = script.len() <= MAX_INLINE_BYTES;
        match self {
            _ if script.starts_with("#!") => ScriptForm::Executable,
            Self::Sh | Self::Bash if prefers_text && is_short => ScriptForm::Text,
            Self::Sh | Self::Bash => ScriptForm::File,
            Self::Argv(_) if self.takes_text() => ScriptForm::Text,
            Self::Argv(_) => ScriptForm::File,
        }
    }

    /// Returns whether the last word of a list asks for the text of the script: `-c`, also among other letters as in `-lc`.
    pub fn takes_text(&self) -> bool {
        let Self::Argv(words) = self else { return false };
        let Some(last) = words.last().filter(|_| words.len() > 1) else { return false };
        last.strip_prefix('-')
            .and_then(|letters| letters.strip_suffix('c'))
            .is_some_and(|letters| letters.bytes().all(|letter| letter.is_ascii_alphabetic()))
    }

    /// Returns everything that is executed for a script of the form [`ScriptForm::Text`].
    pub fn with_text(&self, text: &str, name: &str, args: &[String]) -> Vec<String> {
        let mut argv = self.words(ScriptForm::Text);
        // A shell takes a text that begins with `-` for an option. A space keeps line numbers.
        let guard = if self.is_bourne() && text.starts_with(['-', '+']) { " " } else { "" };
        argv.push(format!("{guard}{text}"));
        if self.is_bourne() {
            argv.push(name.to_owned());
        }
        argv.extend_from_slice(args);
        argv
    }

    /// Returns everything that is executed for a script in a file.
    pub fn with_file(&self, form: ScriptForm, file: &str, args: &[String]) -> Vec<String> {
        let mut argv = self.words(form);
        argv.push(file.to_owned());
        argv.extend_from_slice(args);
        argv
    }

    /// Returns whether it is a shell of the Bourne family, by the name of its program.
    pub fn is_bourne(&self) -> bool {
        match self {
            Self::Sh | Self::Bash => true,
            Self::Argv(words) => {
                let program = words.first().map(String::as_str).unwrap_or_default();
                BOURNE_SHELLS.contains(&program.rsplit('/').next().unwrap_or(program))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Shell {
        Shell::Argv(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn script_is_text_behind_c_and_a_file_otherwise() {
        let form = |words: &[&str]| list(words).form("print(1)", true);
        assert_eq!(form(&["python3"]), ScriptForm::File);
        assert_eq!(form(&["python3", "-u"]), ScriptForm::File);
        assert_eq!(form(&["python3", "-c"]), ScriptForm::Text);
        assert_eq!(form(&["bash", "-euxo", "pipefail", "-c"]), ScriptForm::Text);
        assert_eq!(form(&["bash", "-lc"]), ScriptForm::Text);
        assert_eq!(form(&["cc"]), ScriptForm::File);
        assert_eq!(form(&["tool", "--doc"]), ScriptForm::File);
        assert_eq!(list(&["python3", "-c"]).form("#!/bin/sh\n", true), ScriptForm::Executable);
        assert_eq!(Shell::Sh.form("make", true), ScriptForm::Text);
        assert_eq!(Shell::Bash.form("make", false), ScriptForm::File);
        assert_eq!(Shell::Bash.form(&"#".repeat(MAX_INLINE_BYTES + 1), true), ScriptForm::File);
    }

    #[test]
    fn first_argument_is_the_first_argument_in_every_program() {
        let args = ["one".to_owned()];
        assert_eq!(
            Shell::Bash.with_text("x", "step", &args),
            ["bash", "-eo", "pipefail", "-c", "x", "step", "one"]
        );
        assert_eq!(
            list(&["/usr/bin/zsh", "-c"]).with_text("-x", "step", &args),
            ["/usr/bin/zsh", "-c", " -x", "step", "one"]
        );
        assert_eq!(list(&["python3", "-c"]).with_text("-x", "step", &args), ["python3", "-c", "-x", "one"]);
        let file = list(&["python3", "-u"]).with_file(ScriptForm::File, "/s", &args);
        assert_eq!(file, ["python3", "-u", "/s", "one"]);
        assert_eq!(Shell::Sh.with_file(ScriptForm::Executable, "/s", &args), ["/s", "one"]);
    }
}
