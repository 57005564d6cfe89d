//! The workspace's own tasks: `cargo xtask` lists them, `cargo xtask check` is exactly what CI
//! runs. Owns which task does what, in which order; never holds what the product itself would need.

mod api;
mod bench;
mod check;
mod cpu;
mod docker;
mod examples;
mod generate;
mod links;
mod package;
mod pooler;
mod postgres;
mod program;
mod python;
mod reference;
mod schedule;
mod shell;
mod stage;
mod suite;
mod tools;
mod torture;
mod tutorial;
mod venv;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::check::Extent;
use crate::docker::Docker;
use crate::postgres::{Durability, Postgres};
use crate::program::Program;
use crate::shell::{Shell, cargo, program};
use crate::stage::Stages;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks of this workspace", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Clone, Subcommand)]
enum Task {
    /// Everything that CI checks; stages run side by side
    Check {
        /// Go on after a stage that failed
        #[arg(long)]
        keep_going: bool,
        /// Run every hunt and every long case as well, which CI does not
        #[arg(long)]
        full: bool,
        /// Run only these stages, and what they wait for
        #[arg(long, value_name = "STAGE", num_args = 1.., conflicts_with = "full")]
        only: Vec<check::Stage>,
    },
    /// One stage of the check alone, with the servers of its environment
    #[command(hide = true)]
    Stage { stage: check::Stage },
    /// Format all code
    Fmt,
    /// Clippy over all targets, warnings denied
    Lint,
    /// All tests, and those in the documentation
    Test,
    /// A private Postgres for tests: for the length of a command, or until Enter
    Postgres {
        /// Sync every commit to disk, as a Postgres does by itself: to measure
        #[arg(long)]
        durable: bool,
        /// What to run while it is there; tests find it through the environment
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// A private Docker engine for tests, with images: for the length of a command, or until Enter
    Docker {
        /// What to run while it is there; tests find it through the environment
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Validate and run every example
    Examples,
    /// Tests of the Python client, against the program
    Python,
    /// The web page: its types, its tests, its built files, and all of it in a browser
    Web {
        /// Leave the browser out
        #[arg(long)]
        quick: bool,
    },
    /// Links of all pages, and the crates' own documentation
    Docs,
    /// Write the generated files anew
    Generate,
    /// The Debian package, and a trial of it
    Package {
        /// Pack the program of the tests instead of a release, for a trial
        #[arg(long)]
        quick: bool,
    },
    /// Run every command of the tutorial
    Tutorial,
    /// Send a server requests of every kind that its description allows
    Api,
    /// Measure Laneway and its peers in one run (bench/README.md); `--help` lists the workloads
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        args: Vec<OsString>,
    },
    /// Kill the program at every point and at random, and check that nothing was lost, doubled or
    /// left
    Torture(torture::Args),
}

fn main() -> ExitCode {
    let task = Cli::parse().task;
    let shell = match Shell::at_the_root() {
        Ok(shell) => shell,
        Err(error) => return stage::failed_to_begin(&error),
    };
    let mut stages = Stages::new(matches!(task, Task::Check { keep_going: true, .. }));
    match task {
        Task::Check { full, only, .. } if only.is_empty() => check(&shell, &mut stages, full),
        Task::Check { only, .. } => check::run(&shell, &mut stages, Extent::Check, &only),
        Task::Stage { stage } => return stage::alone(stage.run(&shell)),
        Task::Fmt => stages.run("format", "", || shell.run(cargo(&["fmt", "--all"]))),
        Task::Lint => {
            stages.run("clippy", "mend what it names", || check::clippy(&shell));
        }
        Task::Test => check::run(&shell, &mut stages, Extent::Tests, &[]),
        Task::Postgres { durable, command } => {
            stages.run("postgres", "its log is above, if it has one", || {
                lend_postgres(&shell, if durable { Durability::Full } else { Durability::None }, &command)
            });
        }
        Task::Docker { command } => {
            stages.run("docker", "its log is above, if it has one", || lend_docker(&shell, &command));
        }
        Task::Examples => run_examples(&shell, &mut stages),
        Task::Python => test_python(&shell, &mut stages),
        Task::Web { quick } => test_web(&shell, &mut stages, quick),
        Task::Docs => {
            check_links(&shell, &mut stages);
            stages.run("documentation", "mend the comment that it names", || check::document(&shell));
        }
        Task::Generate => stages.run("generate", "build errors come first; mend them", || {
            generate::write(&shell, &Program::build(&shell)?)
        }),
        Task::Package { quick } => stages.run("package", "Debian's dpkg-deb is needed", || {
            package::run(&shell, if quick { package::Build::Tests } else { package::Build::Release })
        }),
        Task::Tutorial => run_tutorial(&shell, &mut stages),
        Task::Api => try_api(&shell, &mut stages),
        Task::Bench { args } => {
            stages.run("bench", "`cargo xtask bench --help` says how it is called", || {
                bench::run(&shell, &args)
            });
        }
        Task::Torture(args) => torture(&shell, &mut stages, &args),
    }
    stages.close()
}

/// What is cheap and fails often comes first.
fn check(shell: &Shell, stages: &mut Stages, is_full: bool) {
    stages.run("format", "run `cargo xtask fmt`", || shell.run(cargo(&["fmt", "--all", "--check"])));
    check_links(shell, stages);
    check::run(shell, stages, if is_full { Extent::Full } else { Extent::Check }, &[]);
}

fn lend_postgres(shell: &Shell, durability: Durability, command: &[OsString]) -> Result<()> {
    let server = Postgres::start(durability)?;
    if let Some((name, args)) = command.split_first() {
        let mut command = program(name);
        command.args(args).envs(server.variables());
        return shell.run(command);
    }
    for (name, url) in server.variables() {
        stage::note(&format!("export {name}='{url}'"));
    }
    stage::note("it is there until Enter is pressed here");
    std::io::stdin().read_line(&mut String::new()).context("the terminal cannot be read")?;
    Ok(())
}

fn lend_docker(shell: &Shell, command: &[OsString]) -> Result<()> {
    let engine = Docker::start()?;
    if let Some((name, args)) = command.split_first() {
        let mut command = program(name);
        command.args(args).envs(engine.variables());
        return shell.run(command);
    }
    for (name, value) in engine.variables() {
        stage::note(&format!("export {name}='{value}'"));
    }
    stage::note("it is there until Enter is pressed here");
    std::io::stdin().read_line(&mut String::new()).context("the terminal cannot be read")?;
    Ok(())
}

fn run_examples(shell: &Shell, stages: &mut Stages) {
    stages.run("examples", "mend the example, or the promise in its first lines", || {
        examples::run_all(shell, &Program::build(shell)?)
    });
}

fn test_python(shell: &Shell, stages: &mut Stages) {
    stages.run("python client", "run them again with `cargo xtask python`", || {
        python::test(shell, &Program::build(shell)?)
    });
}

fn test_web(shell: &Shell, stages: &mut Stages, is_quick: bool) {
    stages.run(
        "web tools",
        "install what it names; the packages of web/package-lock.json come from npm's registry",
        || web::bring(shell),
    );
    stages.run("web", "mend what it names; `npm run build` in web/ writes the page's files anew", || {
        web::check(shell)
    });
    if !is_quick {
        stages.run(
            "web in a browser",
            "run one again with `npm run e2e -- NAME` in web/; web/README.md",
            || web::browse(shell, &Program::build(shell)?),
        );
    }
}

fn try_api(shell: &Shell, stages: &mut Stages) {
    stages.run(
        "api against its description",
        "mend the answer, or what crates/laneway-server/src/table.rs says of it",
        || api::run(shell, &Program::build(shell)?),
    );
}

fn run_tutorial(shell: &Shell, stages: &mut Stages) {
    stages.run("tutorial", "mend docs/tutorial.md, or what it promises", || {
        tutorial::run(shell, &Program::build(shell)?)
    });
}

fn torture(shell: &Shell, stages: &mut Stages, args: &torture::Args) {
    stages.run("torture", "repeat one case as its finding says; docs/design/torture.md", || {
        torture::run(shell, args)
    });
}

fn check_links(shell: &Shell, stages: &mut Stages) {
    stages.run("links", "mend the link, or add the page", || links::check(shell.root()));
}
