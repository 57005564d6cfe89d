//! The workspace's own tasks: `cargo xtask` lists them, `cargo xtask check` is exactly what CI runs.
//! Owns which task does what, in which order; never holds what the product itself would need.

mod api;
mod bench;
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
mod shell;
mod stage;
mod tools;
mod torture;
mod tutorial;
mod venv;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

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
    /// Everything that CI checks, in the order in which it fails soonest
    Check {
        /// Go on after a stage that failed
        #[arg(long)]
        keep_going: bool,
    },
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
    /// Kill the program at every point and at random, and check that nothing was lost, doubled or left
    Torture(torture::Args),
}

fn main() -> ExitCode {
    let task = Cli::parse().task;
    let shell = match Shell::at_the_root() {
        Ok(shell) => shell,
        Err(error) => return stage::failed_to_begin(&error),
    };
    let mut stages = Stages::new(matches!(task, Task::Check { keep_going: true }));
    match task {
        Task::Check { .. } => check(&shell, &mut stages),
        Task::Fmt => stages.run("format", "", || shell.run(cargo(&["fmt", "--all"]))),
        Task::Lint => lint(&shell, &mut stages),
        Task::Test => test(&shell, &mut stages),
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
            document(&shell, &mut stages);
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
fn check(shell: &Shell, stages: &mut Stages) {
    stages.run("format", "run `cargo xtask fmt`", || shell.run(cargo(&["fmt", "--all", "--check"])));
    check_links(shell, stages);
    lint(shell, stages);
    test(shell, stages);
    run_examples(shell, stages);
    test_python(shell, stages);
    test_web(shell, stages, false);
    run_tutorial(shell, stages);
    try_api(shell, stages);
    stages.run("package", "Debian's dpkg-deb is needed; `cargo xtask package` builds a real one", || {
        package::run(shell, package::Build::Tests)
    });
    torture(shell, stages, &torture::Args::default());
    torture_nodes(shell, stages);
    stages.run("generated files", "run `cargo xtask generate` and commit what it wrote", || {
        generate::compare(shell, &Program::build(shell)?)
    });
    document(shell, stages);
}

fn lint(shell: &Shell, stages: &mut Stages) {
    stages.run("clippy", "mend what it names; `#[expect(…, reason = \"…\")]` where it is wrong", || {
        shell.run(cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    });
}

fn test(shell: &Shell, stages: &mut Stages) {
    stages.run("tools", "install what it names", tools::bring);
    // One of each for all tests; they end with this function, whatever becomes of them. While Postgres starts, so does
    // Docker.
    let (mut server, mut engine) = (None, None);
    let own_engine = std::env::var_os(docker::VARIABLE).is_none();
    if own_engine {
        stages.run(
            "docker",
            "install Debian's packages docker.io and busybox-static, or your system's",
            || {
                engine = Some(Docker::spawn()?);
                Ok(())
            },
        );
    }
    stages.run("postgres", "install Debian's packages postgresql and pgbouncer, or your system's", || {
        server = Some(Postgres::start(Durability::None)?);
        Ok(())
    });
    if own_engine {
        stages.run("docker is ready", "its log is above", || {
            engine = engine.take().map(Docker::ready).transpose()?;
            Ok(())
        });
    }
    let advice =
        "run one again with `cargo xtask postgres cargo nextest run NAME`, or `cargo xtask docker …`";
    stages.run("tests", advice, || {
        let mut command = if shell.has_nextest() {
            cargo(&["nextest", "run", "--workspace", "--profile", "ci"])
        } else {
            stage::note("cargo-nextest is not installed; `cargo test` runs the same tests, but not each in a process of its own");
            cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"])
        };
        if let Some(server) = &server {
            command.envs(server.variables());
        }
        if let Some(engine) = &engine {
            command.envs(engine.variables());
        }
        shell.run(command)
    });
    drop(engine);
    stages.run("tests through a pooler", "run them again with LANEWAY_TEST_THROUGH_POOLER=1", || {
        // The store's verbs; what is about connections themselves has tests of its own.
        let mut tests = if shell.has_nextest() {
            let some = "package(laneway-store) & test(/::postgres::/) - test(/^(random|reference|looking|quarantine)::/)";
            cargo(&["nextest", "run", "--workspace", "--profile", "ci", "-E", some])
        } else {
            cargo(&["test", "--workspace", "--test", "conformance", "--", "gates::postgres::", "fence::postgres::"])
        };
        if let Some(server) = &server {
            tests.envs(server.variables());
        }
        tests.env(pooler::THROUGH, "1");
        shell.run(tests)
    });
    stages.run("tests without cgroups", "run them again with LANEWAY_CGROUPS=off", || {
        // What depends most on them; the rest of the suites is the same with and without.
        let mut tests = if shell.has_nextest() {
            let some = "package(laneway-engine) & (binary(process) | binary(drive))";
            cargo(&["nextest", "run", "--workspace", "--profile", "ci", "-E", some])
        } else {
            cargo(&["test", "--workspace", "--test", "process", "--test", "drive"])
        };
        tests.env("LANEWAY_CGROUPS", "off");
        shell.run(tests)
    });
    stages.run("tests in documentation", "mend the example that it names", || {
        shell.run(cargo(&["test", "--workspace", "--doc", "--quiet"]))
    });
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

/// The short form.
fn torture_nodes(shell: &Shell, stages: &mut Stages) {
    stages.run("torture of nodes", "repeat one case as its finding says; docs/design/torture.md", || {
        torture::nodes::run(shell, &torture::nodes::Args::default())
    });
}

fn check_links(shell: &Shell, stages: &mut Stages) {
    stages.run("links", "mend the link, or add the page", || links::check(shell.root()));
}

fn document(shell: &Shell, stages: &mut Stages) {
    stages.run("documentation", "mend the comment that it names", || {
        let mut command = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
        command.env("RUSTDOCFLAGS", "--deny warnings");
        shell.run(command)
    });
}
