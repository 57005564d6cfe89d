//! Files that the program itself writes: committed, so that people can read them here, and compared by
//! `check`, so that they are never behind.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::program::Program;
use crate::reference;
use crate::shell::Shell;
use crate::stage;

/// A generated file: where it lies, and what is to be in it.
#[derive(Debug)]
struct Generated {
    path: &'static str,
    text: String,
}

pub(crate) fn write(shell: &Shell, program: &Program) -> Result<()> {
    for Generated { path, text } in all(shell, program)? {
        let full = shell.root().join(path);
        if fs::read_to_string(&full).is_ok_and(|found| found == text) {
            stage::note(&format!("{path} is up to date"));
            continue;
        }
        if let Some(dir) = full.parent() {
            fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        fs::write(&full, text).with_context(|| path.to_owned())?;
        stage::note(&format!("wrote {path}"));
    }
    Ok(())
}

pub(crate) fn compare(shell: &Shell, program: &Program) -> Result<()> {
    let mut behind = Vec::new();
    for Generated { path, text } in all(shell, program)? {
        let found = fs::read_to_string(shell.root().join(path)).unwrap_or_default();
        if let Some(line) = first_difference(&found, &text) {
            behind.push(format!("{path}:{line}"));
        }
    }
    if !behind.is_empty() {
        bail!("not what the program generates, from this line on: {}", behind.join(", "));
    }
    Ok(())
}

/// The number of the first line in which they part.
fn first_difference(found: &str, wanted: &str) -> Option<usize> {
    if found == wanted {
        return None;
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(found, wanted)| found == wanted).count();
    Some(same + 1)
}

fn all(shell: &Shell, program: &Program) -> Result<Vec<Generated>> {
    Ok(vec![
        Generated { path: "docs/reference/laneway.schema.json", text: program.stdout(shell, &["schema"])? },
        Generated { path: "docs/reference/document.md", text: document(shell, program)? },
        Generated { path: "docs/reference/openapi.json", text: program.stdout(shell, &["openapi"])? },
        Generated { path: "docs/reference/cli.md", text: cli(shell, program)? },
        Generated { path: "docs/reference/settings.md", text: settings(shell, program)? },
    ])
}

fn document(shell: &Shell, program: &Program) -> Result<String> {
    let schema: Value = serde_json::from_str(&program.stdout(shell, &["schema"])?).context("the schema")?;
    reference::document(&schema)
}

/// The reference of the command line: every `--help`, as it is printed into a pipe.
fn cli(shell: &Shell, program: &Program) -> Result<String> {
    let help = program.stdout(shell, &["--help"])?;
    let commands = commands(&help);
    if commands.is_empty() {
        bail!("`laneway --help` lists no commands");
    }
    let mut text =
        String::from("# Command line\n\nGenerated from `--help` by `cargo xtask generate`; do not edit.\n");
    section(&mut text, "laneway", &help);
    for command in commands {
        let help = program.stdout(shell, &[command, "--help"])?;
        section(&mut text, &format!("laneway {command}"), &help);
    }
    Ok(text)
}

/// The reference of the settings, with their defaults.
fn settings(shell: &Shell, program: &Program) -> Result<String> {
    let listed: Vec<Value> = serde_json::from_str(&program.stdout(shell, &["settings", "--json"])?)
        .context("`laneway settings --json` is not as expected")?;
    let mut text = String::from(
        "# Settings\n\nGenerated from `laneway settings` by `cargo xtask generate`; do not edit.\n\n\
         A flag wins over the environment, that over `laneway.toml` in the current directory (or the file that\n\
         `LANEWAY_CONFIG` names), and that over the default. What a document says of its own workflow wins over all but the\n\
         flag.\n\n| setting | variable | default | meaning |\n|---|---|---|---|\n",
    );
    for setting in &listed {
        let part = |key: &str| setting[key].as_str().unwrap_or_default();
        let default = match part("default") {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        text.push_str(&format!(
            "| `{}` | `{}` | {default} | {} |\n",
            part("name"),
            part("env"),
            part("about")
        ));
    }
    text.push_str(
        "\n```toml\n# laneway.toml\nslots = 8\nkill_grace = \"10s\"\nlabels = {zone = \"eu\"}\npass_env = [\"TOKEN\"]\n```\n",
    );
    Ok(text)
}

fn section(text: &mut String, title: &str, help: &str) {
    text.push_str(&format!("\n## {title}\n\n```text\n"));
    for line in help.trim().lines() {
        // Padding at the end of a line means nothing, and editors remove it.
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str("```\n");
}

/// The commands that a help lists, but for the one that repeats helps.
fn commands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.trim().is_empty());
    // A command is indented by two; what follows further in goes on with its description.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_a_help() {
        let help = "About\n\nCommands:\n  run   Run a\n          workflow\n  show  Show\n  help  Print\n\nOptions:\n  -h";
        assert_eq!(commands(help), ["run", "show"]);
    }

    #[test]
    fn a_file_that_is_behind_is_named_by_its_line() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
    }
}
