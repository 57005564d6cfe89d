//! The program `laneway`: reads the command line, does one command, and ends with its exit code.
//! Owns nothing but the way from arguments to `command/`; what a code means stands in `exit.rs`.
//!
//! A library only so that two programs can be made of it, `laneway` and, for tests, `laneway-tortured`.

mod children;
mod cli;
mod command;
mod deed;
mod document;
mod drive;
mod dry_run;
mod env;
mod exit;
mod face;
mod firing;
mod hide;
mod hints;
mod outbox;
mod patience;
mod print;
mod progress;
mod pruning;
mod settings;
mod text;
mod top;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::exit::Exit;
use crate::print::Printer;
use crate::settings::{ALL, File, STORE, Settings};

/// The whole program.
pub fn run() -> ExitCode {
    // Every page of a warden counts, and its node waits for it: it has no use for settings, commands or a runtime.
    if let Some(args) = command::warden::typed() {
        return match command::warden::execute(args) {
            Ok(exit) => exit.into(),
            Err(error) => Printer::new().failure(&error).into(),
        };
    }
    let file = match File::load() {
        Ok(file) => file,
        Err(refusal) => return Printer::new().failure(&refusal.into()).into(),
    };
    let command = file.beneath(cli::Cli::command());
    let typed = command.try_get_matches().and_then(|matches| {
        let cli = cli::Cli::from_arg_matches(&matches)?;
        let asked = matches.subcommand().and_then(|(command, matches)| {
            let run = matches.try_get_one::<String>("run").ok().flatten()?.clone();
            Some(command::elsewhere::Asked { command: command.to_owned(), run })
        });
        Ok((cli, Settings::of(&matches, &file), asked))
    });
    let (cli, settings, asked) = match typed {
        Ok(typed) => typed,
        Err(usage) => {
            // A reader that went away, such as `laneway --help | head -1`, is no failure.
            let _ = usage.print();
            return if usage.use_stderr() { Exit::BadInput } else { Exit::Succeeded }.into();
        }
    };
    env::init_tracing();
    let printer = Printer::new();
    // Inside of a step its output is that of the effect.
    if !matches!(cli.command, cli::Command::Effect(_)) {
        tell_unknown_variables(&printer);
    }
    if settings.is_typed(&STORE)
        && let Some(bare) = laneway_store::without_password(&cli.store)
    {
        printer.warning("the password of the store stands on the command line, where other users of this host can read it");
        printer.note(&format!(
            "hint: use --store {bare} with the password in ~/.pgpass, PGPASSFILE, PGPASSWORD or a service (PGSERVICE), or give the whole URL in LANEWAY_STORE"
        ));
        // From here on it does not stand there any more: the same program goes on with it in its environment.
        let error = hide::store(&cli.store, &bare);
        return printer
            .failure(&anyhow::Error::new(error).context("the program could not be started anew"))
            .into();
    }
    if let Err(error) = env::arm_hooks() {
        return printer.failure(&error).into();
    }
    let context = command::Context { printer, store: cli.store, settings, asked };
    // Ends as what it ran.
    if let cli::Command::Effect(args) = cli.command {
        return command::effect::execute(&context.printer, args);
    }
    // One thread is enough for a program that waits for children and for the store's own writer thread.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = anyhow::Error::new(error).context("the program could not start");
            return context.printer.failure(&error).into();
        }
    };
    match runtime.block_on(command::dispatch(&context, cli.command)) {
        Ok(exit) => exit.into(),
        Err(error) => context.printer.failure(&error).into(),
    }
}

fn tell_unknown_variables(printer: &Printer) {
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let settings: Vec<&'static str> = ALL.iter().map(|setting| setting.env).collect();
    for (name, nearest) in env::unknown(names.iter().map(String::as_str), &settings) {
        let near = nearest.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        printer.warning(&format!("{name} is set, and there is no such setting; it changes nothing"));
        printer.note(&format!("hint: {near}`laneway settings` lists them"));
    }
}
