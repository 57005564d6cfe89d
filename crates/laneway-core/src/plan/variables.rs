//! Which variables of the environment the shell scripts of a plan read, and set nowhere: `laneway run` has the caller's, a worker
//! gives its steps a few. Reads scripts as text, without a full grammar of the shell: it may miss a name, never runs anything.

use std::collections::BTreeSet;

use super::Plan;
use crate::definition::{Action, SecretSource};
use crate::shell::Shell;

/// Variables that the shell sets itself.
const OF_THE_SHELL: &[&str] = &[
    "PWD",
    "OLDPWD",
    "IFS",
    "PPID",
    "OPTARG",
    "OPTIND",
    "PS1",
    "PS2",
    "PS4",
    "LINENO",
    "RANDOM",
    "SECONDS",
    "UID",
    "EUID",
    "BASH",
    "BASHPID",
    "BASH_SOURCE",
    "BASH_VERSION",
    "BASH_REMATCH",
    "BASH_SUBSHELL",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "FUNCNAME",
    "GROUPS",
    "HOSTNAME",
    "HOSTTYPE",
    "MACHTYPE",
    "OSTYPE",
    "PIPESTATUS",
    "REPLY",
    "SHLVL",
    "SRANDOM",
];

/// What every step is given, by these first letters.
const OF_LANEWAY: &str = "LANEWAY_";

/// Commands whose arguments are names of variables that they set.
const SETTING: &[&str] =
    &["read", "export", "local", "readonly", "declare", "typeset", "mapfile", "readarray", "unset"];

/// What one step, or a secret, reads of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads<'a> {
    /// A step, or a secret.
    pub of: &'a str,
    pub is_secret: bool,
    pub names: Vec<String>,
}

/// What a plan reads of an environment that has only `passed`: by step in the order of the document, then by secret. Steps in
/// containers have the environment of their image, and steps without a shell read none.
pub fn not_passed<'a>(plan: &'a Plan, passed: &[String]) -> Vec<Reads<'a>> {
    let is_passed = |name: &str| passed.iter().any(|passed| passed == name);
    let workflow = &plan.workflow;
    let mut all = Vec::new();
    let hooks = workflow.hooks.iter().map(|hook| &hook.step);
    for step in workflow.steps.iter().chain(hooks).filter(|step| step.housing().is_none()) {
        let Action::Run { script, shell, .. } = &step.action else { continue };
        if matches!(shell, Shell::Argv(_)) || !is_for_a_shell(script) {
            continue;
        }
        let is_given = |name: &str| workflow.env.iter().chain(&step.env).any(|(given, _)| given == name);
        let names: Vec<String> =
            read_by(script).into_iter().filter(|name| !is_passed(name) && !is_given(name)).collect();
        if !names.is_empty() {
            all.push(Reads { of: &step.name, is_secret: false, names });
        }
    }
    // The node looks for the value of a secret in its own whole environment; it has to be there at all.
    for (secret, source) in &workflow.secrets {
        if let SecretSource::Env(name) = source {
            all.push(Reads { of: secret, is_secret: true, names: vec![name.clone()] });
        }
    }
    all
}

fn is_for_a_shell(script: &str) -> bool {
    let Some(first) = script.strip_prefix("#!") else { return true };
    let line = first.lines().next().unwrap_or_default();
    let words = line.split(|char: char| char.is_whitespace() || char == '/');
    words.into_iter().any(|word| matches!(word, "sh" | "bash" | "dash" | "ksh" | "zsh"))
}

/// Names that a script reads and sets nowhere.
fn read_by(script: &str) -> BTreeSet<String> {
    let mut scan = Scan { rest: script, ..Scan::default() };
    scan.all();
    let is_own =
        |name: &str| scan.set.contains(name) || OF_THE_SHELL.contains(&name) || name.starts_with(OF_LANEWAY);
    scan.read.iter().filter(|name| !is_own(name)).cloned().collect()
}

#[derive(Default)]
struct Scan<'a> {
    rest: &'a str,
    read: BTreeSet<String>,
    set: BTreeSet<String>,
    /// Words of the command so far: what it is, and that its arguments are names.
    is_setting: bool,
    is_start: bool,
    /// Ends of here-documents that begin behind this line, and whether they are taken as they are.
    bodies: Vec<(String, bool, bool)>,
}

impl<'a> Scan<'a> {
    fn all(&mut self) {
        self.is_start = true;
        let mut is_word_start = true;
        while let Some(char) = self.rest.chars().next() {
            match char {
                '\\' => self.skip(2),
                '\'' => self.quoted(),
                '"' => self.double_quoted(),
                '#' if is_word_start => self.line(),
                '$' => self.dollar(),
                '\n' => {
                    self.skip(1);
                    self.here_documents();
                    (self.is_start, self.is_setting) = (true, false);
                }
                ';' | '&' | '|' | '(' | ')' | '`' | '{' => {
                    self.skip(1);
                    (self.is_start, self.is_setting) = (true, false);
                }
                '<' if self.rest.starts_with("<<") && !self.rest.starts_with("<<<") => self.here_document(),
                _ if char.is_whitespace() || matches!(char, '<' | '>' | '}') => self.skip(1),
                _ if is_word_start => self.word(),
                _ => self.skip(1),
            }
            is_word_start = !self.rest.is_empty() && {
                matches!(char, '\n' | ';' | '&' | '|' | '(' | ')' | '`' | '{') || char.is_whitespace()
            };
        }
    }

    fn skip(&mut self, chars: usize) {
        let end = self.rest.char_indices().nth(chars).map_or(self.rest.len(), |(at, _)| at);
        self.rest = &self.rest[end..];
    }

    /// Up to the end of the line, which stays.
    fn line(&mut self) {
        self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]);
    }

    fn quoted(&mut self) {
        let inside = &self.rest[1..];
        self.rest = inside.find('\'').map_or("", |at| &inside[at + 1..]);
    }

    fn double_quoted(&mut self) {
        self.skip(1);
        while let Some(char) = self.rest.chars().next() {
            match char {
                '"' => return self.skip(1),
                '\\' => self.skip(2),
                '$' => self.dollar(),
                _ => self.skip(1),
            }
        }
    }

    /// `$NAME`, `${NAME}`, `${#NAME}`; one with a default is read where it is there, and not missed where it is not.
    fn dollar(&mut self) {
        self.skip(1);
        if let Some(inside) = self.rest.strip_prefix('{') {
            let inside = inside.strip_prefix('#').unwrap_or(inside);
            let name = name_at(inside);
            self.rest = &inside[name.len()..];
            let behind = self.rest.strip_prefix(':').unwrap_or(self.rest);
            let has_default = behind.starts_with(['-', '=', '+']);
            if !name.is_empty() && !has_default {
                self.read.insert(name.to_owned());
            }
            return;
        }
        let name = name_at(self.rest);
        self.rest = &self.rest[name.len()..];
        if !name.is_empty() {
            self.read.insert(name.to_owned());
        }
    }

    /// A word at the start of which a name may be set.
    fn word(&mut self) {
        let name = name_at(self.rest);
        let behind = &self.rest[name.len()..];
        if name.is_empty() {
            self.is_start = false;
            return self.skip(1);
        }
        if behind.starts_with('=') || behind.starts_with("+=") || behind.starts_with('[') {
            self.set.insert(name.to_owned());
            self.rest = behind.strip_prefix('+').unwrap_or(behind);
            return self.skip(1);
        }
        if self.is_setting {
            self.set.insert(name.to_owned());
        } else if name == "for" || name == "select" {
            let next = behind.trim_start_matches([' ', '\t']);
            self.set.insert(name_at(next).to_owned());
        } else if name == "getopts" {
            self.set.extend(behind.split_whitespace().nth(1).map(|name| name_at(name).to_owned()));
        } else if self.is_start || matches!(name, "read" | "mapfile" | "readarray") {
            // `while read`, `if read`: the command is the second word.
            self.is_setting = SETTING.contains(&name);
        }
        let is_keyword = matches!(name, "if" | "while" | "until" | "then" | "do" | "else" | "elif");
        self.is_start &= is_keyword;
        self.rest = behind;
    }

    /// `<<WORD`, `<<-WORD`, `<<'WORD'`: its body begins behind this line.
    fn here_document(&mut self) {
        self.skip(2);
        let is_indented = self.rest.starts_with('-');
        let word = self.rest.trim_start_matches('-').trim_start_matches([' ', '\t']);
        let end =
            word.find(|char: char| char.is_whitespace() || ";&|()<>".contains(char)).unwrap_or(word.len());
        let (word, behind) = word.split_at(end);
        let is_literal = word.contains(['\'', '"', '\\']);
        let word = word.replace(['\'', '"', '\\'], "");
        if !word.is_empty() {
            self.bodies.push((word, is_indented, is_literal));
        }
        self.rest = behind;
    }

    fn here_documents(&mut self) {
        for (word, is_indented, is_literal) in std::mem::take(&mut self.bodies) {
            while !self.rest.is_empty() {
                let (line, behind) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                let ending = if is_indented { line.trim_start_matches('\t') } else { line };
                if ending == word {
                    self.rest = behind;
                    break;
                }
                if !is_literal {
                    self.here_line(line);
                }
                self.rest = behind;
            }
        }
    }

    /// Quotes mean nothing there.
    fn here_line(&mut self, line: &'a str) {
        self.rest = line;
        while let Some(char) = self.rest.chars().next() {
            match char {
                '\\' => self.skip(2),
                '$' => self.dollar(),
                _ => self.skip(1),
            }
        }
    }
}

fn name_at(text: &str) -> &str {
    let is_first = |char: char| char.is_ascii_alphabetic() || char == '_';
    if !text.starts_with(is_first) {
        return "";
    }
    let end = text.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reads_what_it_does_not_set() {
        let table = [
            ("echo $REGION ${PROFILE}", "PROFILE REGION"),
            ("echo \"to $REGION\" '$NOT' \\$NOR # $COMMENT", "REGION"),
            ("echo ${REGION:-eu} ${B-} ${C:+x} ${D:?no} ${#E} ${F%.x}", "D E F"),
            ("A=1; echo $A; export B=2 C; echo $B$C", ""),
            ("for f in *; do echo $f; done; while read -r a b; do echo $a $b; done", ""),
            ("test -n \"$X\" && Y=$X; echo $Y", "X"),
            ("echo $1 $@ $? $$ $PWD $LANEWAY_RUN ${IFS}", ""),
            ("cat <<EOF\nit's $HOST_NAME\nEOF\necho 'x' $AFTER", "AFTER HOST_NAME"),
            ("cat <<'EOF'\n$LITERAL\nEOF\necho $AFTER", "AFTER"),
            ("awk '{print $NF}' | sed \"s/a/$B/\"", "B"),
            ("x=$(echo $IN) ; echo `echo $BACK` $x", "BACK IN"),
            ("local k v; k=1; echo $k $v; getopts ab opt; echo $opt", ""),
            ("a[0]=1; echo ${a[0]}", ""),
            ("NAME+=x; ä=1; echo $NAME", ""),
        ];
        for (script, expected) in table {
            let read: Vec<String> = read_by(script).into_iter().collect();
            assert_eq!(read.join(" "), expected, "{script}");
        }
    }

    #[test]
    fn only_scripts_of_a_shell_are_read() {
        for (script, is_so) in [
            ("echo", true),
            ("#!/bin/sh\n", true),
            ("#!/usr/bin/env bash\n", true),
            ("#!/usr/bin/python3\n", false),
        ] {
            assert_eq!(is_for_a_shell(script), is_so, "{script}");
        }
    }
}
