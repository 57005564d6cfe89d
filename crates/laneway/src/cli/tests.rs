//! What every command keeps to: an example in its help, and `--json` where it reads. The exceptions stand here, all of them.

use clap::{Command, CommandFactory as _};

use super::Cli;

/// Commands without `--json`, each with its reason.
const WITHOUT_JSON: &[(&str, &str)] = &[
    ("init", "it writes a file"),
    ("graph", "it draws; `plan --json` has what is drawn"),
    ("schema", "it is JSON"),
    ("openapi", "it is JSON"),
    ("worker", "it works until it is told to stop"),
    ("serve", "it works until it is told to stop"),
    ("top", "it draws; what it shows has commands of its own"),
    ("effect", "it ends as the command that it runs"),
    ("completions", "it prints a script"),
    ("token revoke", "it changes, and says so in a sentence"),
    ("limit set", "it changes, and says so in a sentence"),
    ("limit rm", "it changes, and says so in a sentence"),
    ("workflow rm", "it changes, and says so in a sentence"),
    ("schedule rm", "it changes, and says so in a sentence"),
    ("cache clear", "it changes, and says so in a sentence"),
    ("secret set", "it changes, and says so in a sentence"),
    ("secret remove", "it changes, and says so in a sentence"),
    ("schedule pause", "it changes, and says so in a sentence"),
    ("schedule resume", "it changes, and says so in a sentence"),
    ("drain", "it changes, and says so in a sentence"),
    ("pause", "it changes, and says so in a sentence"),
];

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

fn walk(command: &Command, path: &str, visit: &mut impl FnMut(&Command, &str)) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let path = format!("{path} {}", inner.get_name()).trim().to_owned();
        visit(inner, &path);
        walk(inner, &path, visit);
    }
}

#[test]
fn every_command_ends_its_help_with_an_example() {
    let mut lacking = Vec::new();
    walk(&Cli::command(), "", &mut |command, path| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if !help.starts_with("Example:\n  laneway ") || !help.contains(&format!("laneway {path}")) {
            lacking.push(path.to_owned());
        }
    });
    assert!(lacking.is_empty(), "without an example: {}", lacking.join(", "));
}

#[test]
fn help_is_ascii_and_reads_the_same_in_every_locale() {
    let mut others = Vec::new();
    walk(&Cli::command(), "", &mut |command, path| {
        if !command.clone().render_long_help().to_string().is_ascii() {
            others.push(path.to_owned());
        }
    });
    assert!(others.is_empty(), "not ASCII: {}", others.join(", "));
}

#[test]
fn whatever_is_read_can_be_read_by_programs() {
    let (mut lacking, mut needless) = (Vec::new(), Vec::new());
    walk(&Cli::command(), "", &mut |command, path| {
        let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
        let is_exception = WITHOUT_JSON.iter().any(|(name, _)| *name == path);
        let has_commands = command.get_subcommands().any(|inner| !inner.is_hide_set());
        match (has_json, is_exception) {
            (false, false) if !has_commands => lacking.push(path.to_owned()),
            (true, true) => needless.push(path.to_owned()),
            (_, _) => {}
        }
    });
    assert!(lacking.is_empty(), "without --json: {}", lacking.join(", "));
    assert!(needless.is_empty(), "no exception any more: {}", needless.join(", "));
}
