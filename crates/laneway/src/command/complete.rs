//! What a shell completes that only the store knows: ids of runs, and names of their steps. The
//! scripts of `laneway completions` ask for it. It prints words, one a line, and never an error: a
//! shell has no place for one.

use std::time::Duration;

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::Context;
use crate::cli::Cli;
use crate::exit::Exit;

/// Runs that are offered, the newest.
const MAX_RUNS: usize = 50;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which of the words is being completed, from 0 on
    at: usize,
    /// The words of the command line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What stands at the cursor.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Run,
    /// A step of the run that was typed.
    Step {
        run: String,
    },
}

/// Flags that name another store than the environment and `laneway.toml` do.
const STORE_FLAGS: [&str; 3] = ["--store", "--server", "--data-dir"];

/// A person waits at the prompt.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    // The words are read before `--store` and its like are: those of another store would mislead.
    let names_a_store = |word: &String| STORE_FLAGS.iter().any(|flag| word.starts_with(flag));
    if args.words.iter().any(names_a_store) {
        return Ok(Exit::Succeeded);
    }
    if let Some(wanted) = wanted(&args.words, args.at)
        && let Ok(Ok(words)) = tokio::time::timeout(COMPLETION_TIMEOUT, words(context, wanted)).await
    {
        for word in words {
            context.printer.line(&word)?;
        }
    }
    Ok(Exit::Succeeded)
}

async fn words(context: &Context, wanted: Wanted) -> anyhow::Result<Vec<String>> {
    let face = context.face()?;
    Ok(match wanted {
        Wanted::Run => {
            let runs = face.runs(None, None, MAX_RUNS).await?;
            let ids = runs.iter().map(|run| run.run.short());
            std::iter::once("last".to_owned()).chain(ids).collect()
        }
        Wanted::Step { run } => {
            let run = face.run(&run).await?;
            run.tasks.iter().filter(|task| task.index.is_none()).map(|task| task.step.clone()).collect()
        }
    })
}

/// Goes along the words as the command line is read: subcommands, flags with their values, and what
/// stands by its place.
fn wanted(words: &[String], at: usize) -> Option<Wanted> {
    let mut root = Cli::command();
    root.build();
    let mut command = &root;
    let mut typed: Vec<&String> = Vec::new();
    let mut rest = words.get(1..at)?.iter();
    while let Some(word) = rest.next() {
        if word.starts_with('-') && word.len() > 1 {
            if takes_value(command, word) {
                rest.next()?;
            }
        } else if typed.is_empty()
            && let Some(inner) = command.find_subcommand(word)
        {
            command = inner;
        } else {
            typed.push(word);
        }
    }
    let last = words.get(at.checked_sub(1)?)?;
    let is_value = last.starts_with('-') && last.len() > 1 && takes_value(command, last);
    if is_value || words.get(at).is_some_and(|word| word.starts_with('-')) {
        return None;
    }
    let places: Vec<&Arg> = command.get_positionals().collect();
    let place = |index: usize| places.get(index).map(|argument| argument.get_id().as_str());
    match place(typed.len())? {
        "run" => Some(Wanted::Run),
        "step" => {
            let run = (0..typed.len()).find(|index| place(*index) == Some("run"))?;
            Some(Wanted::Step { run: typed[run].clone() })
        }
        _ => None,
    }
}

/// Whether the word behind a flag belongs to it.
fn takes_value(command: &Command, flag: &str) -> bool {
    let is_it = |argument: &&Arg| match flag.strip_prefix("--") {
        Some(name) => argument.get_long() == Some(name),
        // `-n5` and `-vn` have what belongs to them.
        None => flag.len() == 2 && argument.get_short() == flag.chars().nth(1),
    };
    let argument = command.get_arguments().find(is_it);
    argument.is_some_and(|argument| matches!(argument.get_action(), ArgAction::Set | ArgAction::Append))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_end(line: &str) -> Option<Wanted> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        wanted(&words, words.len() - 1)
    }

    #[test]
    fn the_place_on_the_command_line_says_what_is_wanted() {
        let step = |run: &str| Some(Wanted::Step { run: run.to_owned() });
        assert_eq!(at_end("laneway show "), Some(Wanted::Run));
        assert_eq!(at_end("laneway show --json "), Some(Wanted::Run));
        assert_eq!(at_end("laneway --store x.db show "), Some(Wanted::Run));
        assert_eq!(at_end("laneway explain 3f2a "), step("3f2a"));
        assert_eq!(at_end("laneway logs --attempt 2 last "), step("last"));
        assert_eq!(at_end("laneway "), None);
        assert_eq!(at_end("laneway run "), None, "a file is named there");
        assert_eq!(at_end("laneway logs --attempt "), None);
        assert_eq!(at_end("laneway show --"), None);
        assert_eq!(at_end("laneway show last "), None);
    }
}
