//! What a script for a shell of the Bourne family does, as far as a scan can tell without executing it: its pipes, and the
//! variables that it reads. Quotes, comments, here-documents, `case` patterns and arithmetic are told apart. Both results only
//! advise, so what is unclear is left out.

use std::collections::BTreeSet;

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Where the first pipe stands, in bytes.
    pub pipe: Option<usize>,
    /// Whether the script names `pipefail` itself.
    pub sets_pipefail: bool,
    /// Variables that it reads and neither sets nor gives a default.
    pub reads: BTreeSet<String>,
}

/// Scans a script.
pub fn scan(text: &str) -> Scan {
    let mut scanner = Scanner { text, end: text.len(), ..Scanner::default() };
    scanner.lists(0);
    let Scanner { mut found, sets, .. } = scanner;
    found.reads.retain(|name| !sets.contains(name));
    found.sets_pipefail = text.contains("pipefail");
    found
}

/// How deep lists may lie in each other. The rest of a script that goes deeper is not scanned.
const MAX_DEPTH: u32 = 50;

/// Words that a command follows.
const BEFORE_COMMANDS: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "!", "{"];

#[derive(Debug, Default)]
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// Where the part ends that is being scanned.
    end: usize,
    found: Scan,
    sets: BTreeSet<String>,
}

/// What the next word of a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Command,
    /// An argument of a command of this kind.
    Argument(Command),
    /// A pattern of `case`, up to its `)`.
    Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Plain,
    /// Sets each variable that it names: `read`, `local`, `getopts`.
    Names,
    /// Sets each variable that it gives a value: `export A=b`.
    Values,
    /// `for NAME in …`, in front of its name.
    For,
    /// `case WORD in`, in front of its `in`.
    Case,
}

#[derive(Debug)]
struct HereDocument {
    end: String,
    is_literal: bool,
    is_indented: bool,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        let at = self.at + ahead;
        if at < self.end { self.text.as_bytes()[at] } else { 0 }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    /// Lists up to the end of the part. A `)` too many begins another one.
    fn lists(&mut self, depth: u32) {
        while self.at < self.end {
            self.list(depth);
            self.at += 1;
        }
        self.at = self.end;
    }

    /// Scans a part by itself, and goes on behind it.
    fn part(&mut self, end: usize, scan: impl FnOnce(&mut Self)) {
        let outer = self.end;
        self.end = end.min(outer);
        scan(self);
        (self.at, self.end) = (self.end, outer);
    }

    /// Commands up to a `)`, which stays, or the end.
    fn list(&mut self, depth: u32) {
        let mut expected = Expected::Command;
        let mut cases = 0_u32;
        let mut here: Vec<HereDocument> = Vec::new();
        while self.at < self.end {
            let is_pattern = expected == Expected::Pattern;
            match (self.peek(0), self.peek(1)) {
                (b')', _) if is_pattern => (self.at, expected) = (self.at + 1, Expected::Command),
                (b')', _) => return,
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (b'\\', b'\n') => self.at += 2,
                (b'\n', _) => {
                    self.at += 1;
                    for document in here.drain(..) {
                        self.here_document(&document, depth);
                    }
                    if !is_pattern && expected != Expected::Argument(Command::Case) {
                        expected = Expected::Command;
                    }
                }
                (b'#', _) => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                (b';', b';') => {
                    self.at += 2;
                    expected = if cases > 0 { Expected::Pattern } else { Expected::Command };
                }
                (b'|' | b'(', _) if is_pattern => self.at += 1,
                (b'|', b'|') => (self.at, expected) = (self.at + 2, Expected::Command),
                (b'|', _) => {
                    self.found.pipe.get_or_insert(self.at);
                    (self.at, expected) = (self.at + 1, Expected::Command);
                }
                (b';' | b'&', _) => (self.at, expected) = (self.at + 1, Expected::Command),
                (b'(', _) => {
                    self.nested(depth);
                    expected = Expected::Command;
                }
                (b'<', b'<') if self.peek(2) != b'<' => here.push(self.here_begin()),
                (b'<' | b'>', _) => {
                    // `>|` and `>&` are redirections, too.
                    while matches!(self.peek(0), b'<' | b'>' | b'|' | b'&') {
                        self.at += 1;
                    }
                }
                _ => {
                    let word = self.word(depth);
                    expected = self.next(expected, &word, &mut cases);
                }
            }
        }
    }

    /// A list between parentheses, from the first of them on.
    fn nested(&mut self, depth: u32) {
        self.at += 1;
        if depth < MAX_DEPTH {
            self.list(depth + 1);
            self.at += 1;
        } else {
            self.at = self.end;
        }
    }

    /// What follows a word. Notes what the word sets.
    fn next(&mut self, expected: Expected, word: &str, cases: &mut u32) -> Expected {
        match expected {
            Expected::Pattern | Expected::Command if word == "esac" => {
                *cases = cases.saturating_sub(1);
                Expected::Argument(Command::Plain)
            }
            Expected::Pattern => Expected::Pattern,
            Expected::Command => {
                if let Some(name) = assigned(word) {
                    self.sets.insert(name.to_owned());
                    return Expected::Command;
                }
                match word {
                    "for" | "select" => Expected::Argument(Command::For),
                    "case" => Expected::Argument(Command::Case),
                    "read" | "local" | "getopts" | "declare" | "typeset" | "mapfile" => {
                        Expected::Argument(Command::Names)
                    }
                    "export" | "readonly" => Expected::Argument(Command::Values),
                    word if BEFORE_COMMANDS.contains(&word) => Expected::Command,
                    _ => Expected::Argument(Command::Plain),
                }
            }
            Expected::Argument(Command::Case) if word == "in" => {
                *cases += 1;
                Expected::Pattern
            }
            Expected::Argument(command) => {
                let set = match command {
                    Command::Names | Command::For => {
                        assigned(word).or(Some(word).filter(|word| is_name(word)))
                    }
                    Command::Values => assigned(word),
                    Command::Plain | Command::Case => None,
                };
                self.sets.extend(set.map(str::to_owned));
                if command == Command::For { Expected::Argument(Command::Plain) } else { expected }
            }
        }
    }

    /// A word. What is quoted in it is replaced by a quote, so that it is neither a keyword nor a name.
    fn word(&mut self, depth: u32) -> String {
        let mut word = String::new();
        while self.at < self.end {
            match self.peek(0) {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'\\' => {
                    self.at += 1;
                    self.letter();
                    word.push('\'');
                }
                b'\'' => {
                    self.at += 1;
                    self.at =
                        (self.at + self.rest().find('\'').unwrap_or(self.rest().len()) + 1).min(self.end);
                    word.push('\'');
                }
                b'"' => {
                    self.at += 1;
                    self.expansions(Some(b'"'), depth);
                    self.at += 1;
                    word.push('\'');
                }
                b'$' => {
                    self.dollar(depth);
                    word.push('\'');
                }
                b'`' => {
                    self.backticks(depth);
                    word.push('\'');
                }
                _ => word.extend(self.letter()),
            }
        }
        word
    }

    fn letter(&mut self) -> Option<char> {
        let letter = self.rest().chars().next();
        self.at += letter.map_or(1, char::len_utf8);
        letter
    }

    /// Text in which only expansions mean something, up to a closing byte, which stays, or the end.
    fn expansions(&mut self, close: Option<u8>, depth: u32) {
        while self.at < self.end {
            match self.peek(0) {
                byte if Some(byte) == close => return,
                b'\\' => self.at += 2,
                b'$' => self.dollar(depth),
                b'`' => self.backticks(depth),
                // Quotes of their own are possible within `${…}`.
                b'\'' if close == Some(b'}') => {
                    self.at += 1;
                    self.at += self.rest().find('\'').unwrap_or(self.rest().len()) + 1;
                }
                b'"' if close == Some(b'}') && depth < MAX_DEPTH => {
                    self.at += 1;
                    self.expansions(Some(b'"'), depth + 1);
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.end);
    }

    /// What begins with `$`.
    fn dollar(&mut self, depth: u32) {
        self.at += 1;
        match (self.peek(0), self.peek(1)) {
            (b'(', b'(') => self.arithmetic(depth),
            (b'(', _) => self.nested(depth),
            (b'{', _) if depth < MAX_DEPTH => {
                self.at += 1;
                // `${#NAME}` is its length, and `${!NAME}` the variable that it names.
                self.at += usize::from(matches!(self.peek(0), b'#' | b'!') && is_start(self.peek(1)));
                let name = self.name();
                let reads = match (self.peek(0), self.peek(1)) {
                    (b':', b'-' | b'+') | (b'-' | b'+', _) => false,
                    (b':', b'=') | (b'=', _) => {
                        self.sets.extend(name.clone());
                        false
                    }
                    _ => true,
                };
                self.found.reads.extend(name.filter(|_| reads));
                self.expansions(Some(b'}'), depth + 1);
                self.at += 1;
            }
            (byte, _) if is_start(byte) => {
                let name = self.name();
                self.found.reads.extend(name);
            }
            _ => {}
        }
    }

    fn name(&mut self) -> Option<String> {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| is_start(*byte) || byte.is_ascii_digit()).count();
        let name = rest[..length].to_owned();
        self.at += length;
        is_name(&name).then_some(name)
    }

    /// `((…))`, in which `|` and `<<` are operators.
    fn arithmetic(&mut self, depth: u32) {
        let mut open = 0_u32;
        while self.at < self.end {
            match self.peek(0) {
                b'(' => open += 1,
                b')' => open -= 1,
                b'$' if depth < MAX_DEPTH => {
                    self.dollar(depth + 1);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    /// A list between backticks.
    fn backticks(&mut self, depth: u32) {
        self.at += 1;
        let bytes = self.rest().as_bytes();
        let is_end = |at: &usize| bytes[*at] == b'`' && (*at == 0 || bytes[*at - 1] != b'\\');
        let length = (0..bytes.len()).find(is_end).unwrap_or(bytes.len());
        if depth < MAX_DEPTH {
            self.part(self.at + length, |scanner| scanner.lists(depth + 1));
        } else {
            self.at += length;
        }
        self.at += 1;
    }

    /// From `<<` on, up to behind the word that ends it.
    fn here_begin(&mut self) -> HereDocument {
        self.at += 2;
        let is_indented = self.peek(0) == b'-';
        self.at += usize::from(is_indented);
        while matches!(self.peek(0), b' ' | b'\t') {
            self.at += 1;
        }
        let rest = self.rest();
        let length = rest.find([' ', '\t', '\r', '\n', ';', '&', '|', '<', '>', ')']).unwrap_or(rest.len());
        let word = &rest[..length];
        let end: String = word.chars().filter(|letter| !matches!(letter, '\'' | '"' | '\\')).collect();
        let document = HereDocument { is_literal: end.len() < word.len(), end, is_indented };
        self.at += length;
        document
    }

    fn here_document(&mut self, document: &HereDocument, depth: u32) {
        let mut length = 0;
        let mut behind = self.rest().len();
        for line in self.rest().split_inclusive('\n') {
            let text = line.trim_end_matches(['\n', '\r']);
            let text = if document.is_indented { text.trim_start_matches('\t') } else { text };
            if text == document.end {
                behind = length + line.len();
                break;
            }
            length += line.len();
        }
        let behind = self.at + behind;
        if !document.is_literal {
            self.part(self.at + length, |scanner| scanner.expansions(None, depth));
        }
        self.at = behind;
    }
}

/// The variable that a word such as `A=b` sets.
fn assigned(word: &str) -> Option<&str> {
    let name = word.split_once('=')?.0;
    Some(name.strip_suffix('+').unwrap_or(name)).filter(|name| is_name(name))
}

fn is_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(is_start)
        && text.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reads(text: &str) -> Vec<String> {
        scan(text).reads.into_iter().collect()
    }

    #[test]
    fn pipe_is_found_where_a_shell_would_make_one() {
        for (text, at) in [
            ("a | b", 2),
            ("a|b", 1),
            ("# x\na || b | c", 11),
            ("a && b |\n c", 7),
            ("x=$(a | b)", 6),
            ("echo \"$(a | b)\"", 10),
            ("echo `a | b`", 8),
            ("(a | b)", 3),
            ("for f in *; do a | b; done", 17),
            ("case $x in a|b) a | c;; esac", 18),
            ("cat <<EOF | sort\na | b\nEOF\n", 10),
            ("a >| f | b", 7),
            ("f() { a | b; }", 8),
        ] {
            assert_eq!(scan(text).pipe, Some(at), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_pipe_is_none() {
        for text in [
            "a || b",
            "echo 'a | b'",
            "echo \"a | b\"",
            "echo a\\|b",
            "make # a | b",
            "a >| f",
            "case $x in a|b) make;; (c|d) make;; esac",
            "case $x in\n  a | b)\n    make ;;\n  *) make ;;\nesac",
            "cat <<EOF\na | b\nEOF\n",
            "cat <<-'EOF'\na | b\n\tEOF\n",
            "x=$((a | b))",
            "echo ${x#a|b}",
            "grep -E 'a|b' f",
            "",
        ] {
            assert_eq!(scan(text).pipe, None, "{text}");
        }
        assert!(scan("set -o pipefail\na | b").sets_pipefail);
    }

    #[test]
    fn variables_are_read_unless_the_script_sets_them_or_knows_a_default() {
        assert_eq!(reads("echo $A \"${B}c\" $C/x"), ["A", "B", "C"]);
        assert_eq!(reads("echo '$A' \\$B $1 $@ $? ${#C} # $D"), ["C"]);
        assert_eq!(reads("A=1; echo $A; B=$C make"), ["C"]);
        assert_eq!(reads("echo ${A:-x} ${B-$C} ${D:+x} ${E:=x} $E ${F:?needed} ${G%.txt}"), ["C", "F", "G"]);
        assert_eq!(reads("for f in $LIST; do echo $f; done"), ["LIST"]);
        assert_eq!(reads("while read -r a b; do echo $a $b; done < $FILE"), ["FILE"]);
        assert_eq!(reads("export A=1 B; echo $A $B"), ["B"]);
        assert_eq!(reads("cat <<EOF\n$A\nEOF\ncat <<'EOF'\n$B\nEOF\n"), ["A"]);
        assert_eq!(reads("echo $(echo $A) `echo $B` $((C + $D))"), ["A", "B", "D"]);
        assert_eq!(reads("case $A in x) echo $B;; esac; C=; echo $C"), ["A", "B"]);
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_to_its_end(text in "[ab|&;()<>$`\"'\\\\{}#=\\n \u{e9}-]{0,60}|(case a in |esac|<<EOF\\n|\\$\\(\\(|`|\\)|\"|\\$\\{A){0,20}") {
            let found = scan(&text);
            prop_assert!(found.pipe.is_none_or(|at| text.as_bytes()[at] == b'|'));
        }

        #[test]
        fn deep_text_is_scanned(depth in 0_usize..20_000) {
            for open in ["(", "$(", "`", "${a-", "$((", "\"$("] {
                scan(&open.repeat(depth));
            }
        }
    }
}
