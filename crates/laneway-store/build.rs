//! Makes a macro of the named SQL statements of each database: `statement!("claim")` is the text
//! below `-- name: claim` in `src/sql/` (both databases) or in `src/sqlite/sql/`, `src/postgres/sql/`.
//! An unknown name is a compile error, and so is a statement that is never used.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const NAME: &str = "-- name: ";

struct Statement {
    text: String,
    /// The index that its head comment names, for tests that read the database's plan.
    index: Option<String>,
    file: String,
}

type Statements = BTreeMap<String, Statement>;

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for database in ["sqlite", "postgres"] {
        let mut statements = Statements::new();
        collect(Path::new("src/sql"), &mut statements);
        collect(&Path::new("src").join(database).join("sql"), &mut statements);
        let (mut arms, mut indexes) = (String::new(), String::new());
        for (name, Statement { text, index, .. }) in &statements {
            let text = match database {
                "sqlite" => with_question_marks(text),
                // The name is what an operator sees of it in the server's own views.
                _ => format!("-- {name}\n{text}"),
            };
            writeln!(arms, "    ({name:?}) => {{ {text:?} }};").expect("a string grows");
            if let Some(index) = index {
                writeln!(indexes, "    ({name:?}, {index:?}, {text:?}),").expect("a string grows");
            }
        }
        let unknown = "($name:tt) => { compile_error!(concat!(\"no statement is named \", $name)) };";
        let dir = Path::new(&out);
        write(
            &dir.join(format!("{database}_statements.rs")),
            &format!("macro_rules! statement {{\n{arms}    {unknown}\n}}\n"),
        );
        write(&dir.join(format!("{database}_indexes.rs")), &format!("&[\n{indexes}]\n"));
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn collect(dir: &Path, statements: &mut Statements) {
    println!("cargo::rerun-if-changed={}", dir.display());
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    files.sort();
    for path in files {
        let file = path.display().to_string();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        for part in text.split(NAME).skip(1) {
            let (name, body) = part.split_once('\n').unwrap_or((part, ""));
            let text = without_head_comment(body);
            assert!(!text.is_empty(), "{file}: statement {name} is empty");
            let statement = Statement { text: text.to_owned(), index: index_of(body), file: file.clone() };
            if let Some(other) = statements.insert(name.trim().to_owned(), statement) {
                panic!("statement {name} is in {file} and in {}", other.file);
            }
        }
    }
}

/// The comment is for readers of the file.
fn without_head_comment(body: &str) -> &str {
    let mut rest = body.trim();
    while let Some(comment) = rest.strip_prefix("--") {
        rest = comment.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
    }
    rest
}

fn index_of(body: &str) -> Option<String> {
    let (_, named) = body.split_once("Index: ")?;
    named.split(['.', ',', ' ', '\n']).next().map(str::to_owned)
}

/// Statements of both databases have parameters as Postgres writes them (`$1`).
fn with_question_marks(statement: &str) -> String {
    let mut text = String::with_capacity(statement.len());
    let mut rest = statement.chars().peekable();
    while let Some(letter) = rest.next() {
        let is_parameter = letter == '$' && rest.peek().is_some_and(char::is_ascii_digit);
        text.push(if is_parameter { '?' } else { letter });
    }
    text
}
