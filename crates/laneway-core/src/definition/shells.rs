//! The key `shell`, of a step, of a hook and of the workflow, whose scripts without their own take it. Owns its form; what it
//! executes is in `shell.rs`.

use super::finding::Finding;
use super::read::{argv, does_not_belong};
use super::reader::{Field, Reader};
use super::yaml::Data;
use crate::shell::{MAX_INLINE_BYTES, Shell};

const MUST_BE: &str = "sh, bash, or a list that begins with a program, such as [python3]";

impl Reader<'_> {
    pub(super) fn shell(&mut self, field: Field<'_>) -> Option<Shell> {
        let text = match &self.tree.node(field.value).data {
            Data::List(_) => return argv(self, field).map(Shell::Argv),
            Data::Scalar { text, .. } => text.as_ref(),
            Data::Map(_) => "",
        };
        match text {
            "sh" => return Some(Shell::Sh),
            "bash" => return Some(Shell::Bash),
            _ => {}
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let hint = match words.as_slice() {
            [] => "`sh` is `sh -e`, and `bash` is `bash -eo pipefail`".to_owned(),
            words => format!("for another program write its words as a list: [{}]", words.join(", ")),
        };
        let finding = self.wrong(field, MUST_BE).hint(hint);
        self.findings.push(finding);
        None
    }

    /// The shell of a script: its own, or that of the workflow.
    pub(super) fn shell_of(&mut self, own: Option<Field<'_>>, run: Field<'_>, script: &str) -> Shell {
        let shell = match own {
            None => self.shell.clone(),
            Some(field) => self.shell(field).unwrap_or_default(),
        };
        let span = self.tree.node(own.unwrap_or(run).key).span;
        let is_executable = script.starts_with("#!");
        if own.is_some() && is_executable {
            let message = "the script names its interpreter with `#!`, and the step another with `shell`";
            let hint = "remove `shell`, or the first line of the script";
            self.findings.push(Finding::new(message, span).hint(hint));
        }
        if !is_executable && shell.takes_text() && script.len() > MAX_INLINE_BYTES {
            let message = format!("a script of {} bytes is too long for an argument", script.len());
            let hint = "remove `-c` from `shell`: the program is then given the path of a file";
            self.findings.push(Finding::new(message, span).hint(hint));
        }
        shell
    }

    /// A shell where no script is.
    pub(super) fn misplaced_shell(&mut self, own: Option<Field<'_>>) {
        if let Some(field) = own {
            does_not_belong(self, field, "it says what interprets the script of `run`, and there is none");
        }
    }
}
