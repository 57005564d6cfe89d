//! The command line as a whole: which commands there are, in the order in which `--help` lists them.
//! The arguments of each stand with its code in `command/`.

use clap::{Parser, Subcommand};

use crate::command;
use crate::settings::{DATA_DIR, SERVER, STORE};

/// Runs graphs of steps in parallel, and remembers.
#[derive(Debug, Parser)]
#[command(
    name = "laneway",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Example:\n  laneway init\n  laneway run hello.yaml\n  laneway top"
)]
pub(crate) struct Cli {
    #[arg(long, global = true, help = STORE.about, env = STORE.env, hide_env_values = true, value_name = "PATH|URL", default_value = STORE.default, value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Global options")]
    pub(crate) store: String,

    #[arg(long, global = true, help = DATA_DIR.about, env = DATA_DIR.env, value_name = "DIR", default_value = DATA_DIR.default, value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Global options")]
    pub(crate) data_dir: String,

    #[arg(long, global = true, help = SERVER.about, env = SERVER.env, value_name = "URL", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Global options")]
    pub(crate) server: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a first workflow, and say what to do with it
    Init(command::init::Args),
    /// Run a workflow here and show its progress
    Run(command::run::Args),
    /// Check workflow files without running anything
    Validate(command::validate::Args),
    /// Show how a workflow would be ordered: levels, lanes, critical path
    Plan(command::plan::Args),
    /// Draw a workflow as DOT, Mermaid or SVG
    Graph(command::graph::Args),
    /// Print the JSON Schema of workflow files
    Schema(command::schema::Args),
    /// Print the OpenAPI description of the server
    Openapi(command::openapi::Args),
    /// Make workflows, with the files beside them, known by name
    Apply(command::apply::Args),
    /// List the workflows that were applied
    Workflows(command::workflows::Args),
    /// Remove a workflow that was applied
    Workflow(command::workflow::Args),
    /// Start a workflow that was applied or has run before, by its name
    Start(command::start::Args),
    /// Submit a run for workers to take
    Submit(command::submit::Args),
    /// Take tasks of submitted runs until told to stop
    Worker(command::worker::Args),
    /// Serve the API and take tasks, until told to stop
    Serve(command::serve::Args),
    /// Make, list and revoke the tokens of those who may ask the server
    Token(command::token::Args),
    /// Print a link to the web page of a server
    Web(command::web::Args),
    /// List the nodes that are alive
    Nodes(command::nodes::Args),
    /// Let a node take nothing more
    Drain(command::nodes::DrainArgs),
    /// Show the warm containers of nodes, and what became of them
    Pool(command::pool::Args),
    /// Make, change and list named limits
    Limit(command::limit::Args),
    /// List and forget results that steps take instead of being executed again
    Cache(command::cache::Args),
    /// Set, list and remove secrets of the store
    Secret(command::secret::Args),
    /// Let a run or a workflow start nothing new
    Pause(command::pause::Args),
    /// Let a paused run go on by one level
    Advance(command::advance::Args),
    /// Let what was paused go on
    Resume(command::pause::ResumeArgs),
    /// Show what starts by itself, and when
    Schedule(command::schedule::Args),
    /// Look at everything at once, on a screen that follows along
    Top(command::top::Args),
    /// Follow a run until it ends
    Watch(command::watch::Args),
    /// List runs, newest first
    Runs(command::runs::Args),
    /// Show a run and its tasks
    Show(command::show::Args),
    /// Print what the steps of a run wrote
    Logs(command::logs::Args),
    /// List or fetch the files that steps left behind
    Artifacts(command::artifacts::Args),
    /// List or fetch the files that a step of a submitted run changed
    Files(command::files::Args),
    /// Print the events of a run
    Events(command::events::Args),
    /// Say why tasks wait, or why they ended as they did
    Explain(command::explain::Args),
    /// Cancel a run and wait until it has stopped
    Cancel(command::cancel::Args),
    /// Run again what failed, was skipped or canceled, and everything behind it
    Retry(command::retry::Args),
    /// Say what a step waits for, such as an approval
    Signal(command::signal::Args),
    /// List what the steps of a run did to the world, or say what became of it
    Effects(command::effects::Args),
    /// Inside of a step: do something to the world, once
    Effect(command::effect::Args),
    /// Let a run go on past a failed step
    Skip(command::skip::Args),
    /// Rebuild a run from its events and compare it with the store
    Replay(command::replay::Args),
    /// Say what is wrong with the store, and what to do
    Doctor(command::doctor::Args),
    /// Remove runs that are kept no longer, and what nothing refers to
    Prune(command::prune::Args),
    /// Copy the store, with logs and artifacts, to a file while it is in use
    Backup(command::backup::Args),
    /// Make a store of what `laneway backup` has written
    Restore(command::restore::Args),
    /// Bring the store to the schema that this program needs
    Migrate(command::migrate::Args),
    /// Move an idle store from its file to Postgres
    Move(command::move_store::Args),
    /// List the settings, and where each comes from
    Settings(command::settings::Args),
    /// Print a completion script for a shell
    Completions(command::completions::Args),
    /// Print what a shell completes of runs and steps
    #[command(name = "__complete", hide = true)]
    Complete(command::complete::Args),
    /// Write manual pages, one for each command
    #[command(hide = true)]
    Man(command::man::Args),
}

#[cfg(test)]
mod tests;
