//! The stages of `cargo xtask check`: what each runs, what it waits for, and what to do when it
//! fails. `schedule.rs` runs them side by side; this file holds no order beyond the prerequisites.
//!
//! ```text
//! format, links ─▶ build ──────────────┬─▶ tests, browser, torture, api, …   (slots)
//!                  servers, web tools ─┘   clippy ─▶ torture build ─▶ docs    (one compiler at a time, low priority)
//! ```

use anyhow::{Result, ensure};

use crate::docker::{self, Docker};
use crate::postgres::{self, Durability, Postgres};
use crate::program::Program;
use crate::schedule::{Load, Plan, Schedule};
use crate::shell::{Shell, cargo};
use crate::stage::Stages;
use crate::{api, examples, generate, package, python, suite, tools, torture, tutorial, web};

/// A stage that runs in a process of its own, as `cargo xtask stage NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Stage {
    Build,
    /// Postgres and Docker. The check itself holds them, and lends them to the stages.
    Servers,
    Tests,
    Pooler,
    WithoutCgroups,
    DocTests,
    Clippy,
    TorturedBuild,
    Documentation,
    WebTools,
    Page,
    Browser,
    Torture,
    TortureNodes,
    LongTorture,
    Api,
    Tutorial,
    Examples,
    Python,
    Package,
    GeneratedFiles,
}

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The tests alone.
    Tests,
    /// What CI runs.
    Check,
    /// The same with every hunt and every long case.
    Full,
}

/// Tells tests to play every case: set by `check --full`.
pub(crate) const FULL: &str = "LANEWAY_TEST_FULL";

/// In the order in which they start when several could. Long ones first: the check ends with the
/// last of them.
const PLANS: [Plan; 20] = [
    Plan {
        stage: Stage::Build,
        name: "build",
        after: &[],
        load: Load::Compiler,
        advice: "mend what the compiler names",
    },
    Plan {
        stage: Stage::WebTools,
        name: "web tools",
        after: &[],
        load: Load::Light,
        advice: "install what it names; the packages of web/package-lock.json come from npm's registry",
    },
    Plan {
        stage: Stage::Tests,
        name: "tests",
        after: &[Stage::Build, Stage::Servers],
        load: Load::Slot,
        advice: "run one again with `cargo xtask postgres cargo nextest run NAME`, or `cargo xtask docker …`",
    },
    Plan {
        stage: Stage::Clippy,
        name: "clippy",
        after: &[Stage::Build],
        load: Load::Compiler,
        advice: "mend what it names; `#[expect(…, reason = \"…\")]` where it is wrong",
    },
    Plan {
        stage: Stage::TorturedBuild,
        name: "build for torture",
        after: &[Stage::Build],
        load: Load::Compiler,
        advice: "mend what the compiler names: the feature `torture` is on",
    },
    Plan {
        stage: Stage::Browser,
        name: "web in a browser",
        after: &[Stage::Build, Stage::Servers, Stage::WebTools],
        load: Load::Slot,
        advice: "run one again with `npm run e2e -- NAME` in web/; web/README.md",
    },
    Plan {
        stage: Stage::Pooler,
        name: "tests through a pooler",
        after: &[Stage::Build, Stage::Servers],
        load: Load::Slot,
        advice: "run them again with LANEWAY_TEST_THROUGH_POOLER=1",
    },
    Plan {
        stage: Stage::Torture,
        name: "torture",
        after: &[Stage::TorturedBuild],
        load: Load::Slot,
        advice: "repeat one case as its finding says; docs/design/torture.md",
    },
    Plan {
        stage: Stage::TortureNodes,
        name: "torture of nodes",
        after: &[Stage::TorturedBuild],
        load: Load::Slot,
        advice: "repeat one case as its finding says; docs/design/torture.md",
    },
    Plan {
        stage: Stage::LongTorture,
        name: "long torture",
        after: &[Stage::TorturedBuild, Stage::Torture, Stage::TortureNodes],
        load: Load::Slot,
        advice: "repeat one case as its finding says; docs/design/torture.md",
    },
    Plan {
        stage: Stage::Api,
        name: "api against its description",
        after: &[Stage::Build],
        load: Load::Slot,
        advice: "mend the answer, or what crates/laneway-server/src/table.rs says of it",
    },
    Plan {
        stage: Stage::Tutorial,
        name: "tutorial",
        after: &[Stage::Build],
        load: Load::Slot,
        advice: "mend docs/tutorial.md, or what it promises",
    },
    Plan {
        stage: Stage::Python,
        name: "python client",
        after: &[Stage::Build],
        load: Load::Slot,
        advice: "run them again with `cargo xtask python`",
    },
    Plan {
        stage: Stage::Examples,
        name: "examples",
        after: &[Stage::Build],
        load: Load::Slot,
        advice: "mend the example, or the promise in its first lines",
    },
    Plan {
        stage: Stage::Page,
        name: "web",
        after: &[Stage::WebTools],
        load: Load::Slot,
        advice: "mend what it names; `npm run build` in web/ writes the page's files anew",
    },
    Plan {
        stage: Stage::WithoutCgroups,
        name: "tests without cgroups",
        after: &[Stage::Build, Stage::Servers],
        load: Load::Slot,
        advice: "run them again with LANEWAY_CGROUPS=off",
    },
    Plan {
        stage: Stage::Package,
        name: "package",
        after: &[Stage::Build],
        load: Load::Slot,
        advice: "Debian's dpkg-deb is needed; `cargo xtask package` builds a real one",
    },
    Plan {
        stage: Stage::GeneratedFiles,
        name: "generated files",
        after: &[Stage::Build],
        load: Load::Slot,
        advice: "run `cargo xtask generate` and commit what it wrote",
    },
    Plan {
        stage: Stage::Documentation,
        name: "documentation",
        after: &[Stage::Clippy],
        load: Load::Compiler,
        advice: "mend the comment that it names",
    },
    Plan {
        stage: Stage::DocTests,
        name: "tests in documentation",
        after: &[Stage::Build],
        load: Load::Compiler,
        advice: "mend the example that it names",
    },
];

impl Stage {
    /// Runs the stage here, to its end.
    pub(crate) fn run(self, shell: &Shell) -> Result<()> {
        match self {
            Self::Build => suite::build(shell),
            Self::Servers => Ok(()),
            Self::Tests => suite::all(shell),
            Self::Pooler => suite::through_pooler(shell),
            Self::WithoutCgroups => suite::without_cgroups(shell),
            Self::DocTests => suite::in_documentation(shell),
            Self::Clippy => clippy(shell),
            Self::TorturedBuild => Program::compile_tortured(shell),
            Self::Documentation => document(shell),
            Self::WebTools => web::bring(shell),
            Self::Page => web::check(shell),
            Self::Browser => web::browse(shell, &Program::build(shell)?),
            Self::Torture => torture::run(shell, &torture::Args::default()),
            Self::TortureNodes => torture::nodes::run(shell, &torture::nodes::Args::default()),
            Self::LongTorture => torture::long(shell),
            Self::Api => api::run(shell, &Program::build(shell)?),
            Self::Tutorial => tutorial::run(shell, &Program::build(shell)?),
            Self::Examples => examples::run_all(shell, &Program::build(shell)?),
            Self::Python => python::test(shell, &Program::build(shell)?),
            Self::Package => package::run(shell, package::Build::Tests),
            Self::GeneratedFiles => generate::compare(shell, &Program::build(shell)?),
        }
    }

    /// As `cargo xtask stage` takes it.
    pub(crate) fn argument(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn belongs_to(self, extent: Extent) -> bool {
        let is_test =
            matches!(self, Self::Build | Self::Tests | Self::Pooler | Self::WithoutCgroups | Self::DocTests);
        match extent {
            Extent::Tests => is_test,
            Extent::Check => self != Self::LongTorture,
            Extent::Full => true,
        }
    }
}

/// Runs the stages of an extent, or only some of them with what they wait for. The servers are
/// started while the build runs.
pub(crate) fn run(shell: &Shell, stages: &mut Stages, extent: Extent, only: &[Stage]) {
    let plans = plans(extent, only);
    let needs_servers = plans.iter().any(|plan| plan.after.contains(&Stage::Servers));
    let mut schedule = match Schedule::new(shell, plans) {
        Ok(schedule) => schedule,
        Err(error) => return stages.run("schedule", "", || Err(error)),
    };
    if extent == Extent::Full {
        schedule.lend([(FULL, "1".to_owned())]);
    }
    schedule.start_ready(stages);
    stages.run("tools", "install what it names", tools::bring);
    // Both end with this function, behind the last stage.
    let (mut server, mut engine) = (None, None);
    if needs_servers {
        let advice =
            "install Debian's packages docker.io, busybox-static, postgresql and pgbouncer, or your system's";
        stages.run("servers", advice, || {
            // While Postgres starts, so does Docker.
            let spawned = if is_lent(docker::VARIABLE) { None } else { Some(Docker::spawn()?) };
            if !is_lent(postgres::VARIABLE) {
                server = Some(Postgres::start(Durability::None)?);
            }
            engine = spawned.map(Docker::ready).transpose()?;
            Ok(())
        });
        schedule.lend(server.iter().flat_map(Postgres::variables).map(|(name, url)| (name, url.to_owned())));
        schedule.lend(engine.iter().flat_map(Docker::variables));
        if (server.is_some() || is_lent(postgres::VARIABLE))
            && (engine.is_some() || is_lent(docker::VARIABLE))
        {
            schedule.provide(Stage::Servers);
        }
    }
    schedule.run(stages);
}

fn is_lent(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

fn plans(extent: Extent, only: &[Stage]) -> Vec<Plan> {
    let all = PLANS.into_iter().filter(|plan| plan.stage.belongs_to(extent));
    if only.is_empty() {
        return all.collect();
    }
    let mut wanted = only.to_vec();
    let mut next = 0;
    while let Some(stage) = wanted.get(next).copied() {
        let after = PLANS.iter().filter(|plan| plan.stage == stage).flat_map(|plan| plan.after);
        wanted.extend(after);
        next += 1;
    }
    all.filter(|plan| wanted.contains(&plan.stage)).collect()
}

pub(crate) fn clippy(shell: &Shell) -> Result<()> {
    shell.run(cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
}

pub(crate) fn document(shell: &Shell) -> Result<()> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    command.env("RUSTDOCFLAGS", "--deny warnings");
    shell.run(command)
}

/// Rejects a plan that waits for a stage that is not there.
pub(crate) fn ensure_complete(plans: &[Plan]) -> Result<()> {
    for plan in plans {
        for needed in plan.after {
            let is_there = *needed == Stage::Servers || plans.iter().any(|plan| plan.stage == *needed);
            ensure!(is_there, "the stage `{}` waits for {needed:?}, which is not planned", plan.name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extent_has_what_its_stages_wait_for() {
        for extent in [Extent::Tests, Extent::Check, Extent::Full] {
            assert!(ensure_complete(&plans(extent, &[])).is_ok(), "{extent:?}");
        }
    }

    #[test]
    fn some_stages_come_with_what_they_wait_for() {
        let some = plans(Extent::Check, &[Stage::TortureNodes, Stage::Page]);
        let some: Vec<Stage> = some.into_iter().map(|plan| plan.stage).collect();
        let wanted = [Stage::Build, Stage::WebTools, Stage::TorturedBuild, Stage::TortureNodes, Stage::Page];
        assert_eq!(some, wanted);
    }

    #[test]
    fn what_ci_runs_is_all_but_the_long_torture() {
        let (check, full) = (plans(Extent::Check, &[]), plans(Extent::Full, &[]));
        let missing = |plan: &&Plan| !check.iter().any(|other| other.stage == plan.stage);
        let missing: Vec<Stage> = full.iter().filter(missing).map(|plan| plan.stage).collect();
        assert_eq!(missing, [Stage::LongTorture]);
    }
}
