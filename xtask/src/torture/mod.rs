//! `cargo xtask torture`: kills the program wherever it can die, and at random, goes on as a person
//! would, and has the offline checker look at what is left. Then it seeds ten bugs, each of which
//! the checker has to find.
//!
//! ```text
//! walk.rs (which cases) ─▶ case.rs (one case: a run, an injection, going on) ─▶ check.rs, ledger.rs (findings)
//! ```
//! docs/design/torture.md says what is injected and what is checked. A new injection is an `Act`.

mod act;
mod callbacks;
mod case;
mod check;
mod children;
mod dice;
mod effects;
mod ledger;
pub(crate) mod nodes;
mod place;
mod processes;
mod shapes;
mod tally;
mod ticks;
mod walk;
mod workload;

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use laneway_torture::Bug;

use self::act::Act;
use self::case::{Case, Report};
use self::dice::Dice;
use self::tally::Tally;
use self::walk::Ground;
use crate::program::Program;
use crate::shell::Shell;
use crate::stage::note;

/// Cases wait more than they work.
const WORKERS: usize = 4;

/// How long each of the two goes on in `check --full`.
const LONG_MINUTES: u64 = 10;

#[derive(Debug, Clone, Default, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Go on for so long: every point twenty times, hundreds of random kills; without it, the short
    /// form of CI
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Choose the cases of an earlier run again
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Play one case alone, as a finding prints it; with --seed
    #[arg(long, value_name = "ACT", requires = "seed")]
    only: Option<String>,
    /// Seed a bug into the case that is played alone
    #[arg(long, value_name = "BUG", requires = "only")]
    bug: Option<String>,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum What {
    /// Three nodes in network namespaces and one Postgres: kill, freeze and cut them off, take the
    /// database away
    Nodes(nodes::Args),
    /// Die between every two writes of an effect, and count how often it happens
    Effects,
    /// Die wherever a signal, or something about a child, is told to a run; on both databases
    Children,
    /// Die wherever a tick is fired, while two other nodes look at it; on both databases
    Ticks,
    /// Die between the end of a run and the submission of its callbacks; on both databases
    Callbacks,
    /// Die before and after every transaction of a run that goes level by level, and of one with a
    /// list
    Shapes,
}

pub(crate) fn run(shell: &Shell, args: &Args) -> Result<()> {
    match &args.what {
        Some(What::Nodes(args)) => return nodes::run(shell, args),
        Some(What::Effects) => return effects::walk(Program::build_tortured(shell)?.path()),
        Some(What::Children) => {
            return children::walk(Program::build_tortured(shell)?.path(), children::How::Whole);
        }
        Some(What::Ticks) => return ticks::walk(Program::build_tortured(shell)?.path()),
        Some(What::Callbacks) => return callbacks::walk(Program::build_tortured(shell)?.path()),
        Some(What::Shapes) => return shapes::walk(Program::build_tortured(shell)?.path()),
        None => {}
    }
    ensure!(cfg!(target_os = "linux"), "the process table is read from /proc, so this needs Linux");
    let real = Program::build(shell)?;
    let tortured = Program::build_tortured(shell)?;
    check_that_hooks_are_gone(real.path(), tortured.path())?;
    let ground = walk::survey(tortured.path())?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    if let Some(act) = &args.only {
        return play_alone(&ground, act, seed, args.bug.as_deref());
    }
    note(&format!("seed {seed}"));
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    if !ground.has_cgroups {
        note("there are no cgroups here: nodes and wardens are not killed together");
    }
    let until = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    // The short form is played in full, whatever the time: every point at its first passing.
    play_all(&ground, some_of_everything(&ground, 1, &mut dice), None, &mut tally)?;
    while until.is_some_and(|until| Instant::now() < until) {
        play_all(&ground, some_of_everything(&ground, 5, &mut dice), until, &mut tally)?;
    }
    effects::walk(tortured.path())?;
    children::walk(tortured.path(), children::How::Short)?;
    ticks::walk(tortured.path())?;
    callbacks::walk(tortured.path())?;
    shapes::walk(tortured.path())?;
    hunt(&ground, &mut dice, &mut tally)?;
    tally.print();
    tally.verdict(&ground)
}

/// What the short forms leave out: more of every case, every seeded bug, and every transaction of a
/// run that starts another.
pub(crate) fn long(shell: &Shell) -> Result<()> {
    let program = Program::build_tortured(shell)?;
    children::walk(program.path(), children::How::Whole)?;
    run(shell, &Args { minutes: Some(LONG_MINUTES), ..Args::default() })?;
    nodes::run(shell, &nodes::Args::for_minutes(LONG_MINUTES))
}

fn some_of_everything(ground: &Ground, times: u32, dice: &mut Dice) -> Vec<Case> {
    let mut cases = walk::every_point(ground, times, dice);
    cases.extend(walk::random_kills(20 * times, dice));
    cases.extend(walk::others(3 * times, dice));
    cases
}

/// The real program has nothing of the hooks in it, not even their names.
fn check_that_hooks_are_gone(real: &Path, tortured: &Path) -> Result<()> {
    let has_hooks = |path: &Path| -> Result<bool> {
        let bytes = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(["LANEWAY_CRASH", "store.commit.before", "early-answer"]
            .iter()
            .any(|name| bytes.windows(name.len()).any(|window| window == name.as_bytes())))
    };
    ensure!(has_hooks(tortured)?, "the program that is to be tortured has no hooks");
    ensure!(!has_hooks(real)?, "the real program has hooks in it");
    Ok(())
}

/// Plays cases side by side until all are done, or the time is over.
fn play_all(ground: &Ground, cases: Vec<Case>, until: Option<Instant>, tally: &mut Tally) -> Result<()> {
    let cases = Mutex::new(cases.into_iter());
    let tally = Mutex::new(tally);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = cases.lock().expect("nobody panics with it").next();
                let Some(case) = next.filter(|_| until.is_none_or(|until| Instant::now() < until)) else {
                    return Ok(());
                };
                let report = case.play(ground)?;
                tally.lock().expect("nobody panics with it").add(&case, &report);
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a case does not panic"))
    })
}

/// The checker has to find every bug.
fn hunt(ground: &Ground, dice: &mut Dice, tally: &mut Tally) -> Result<()> {
    let here = Bug::ALL.iter().filter(|bug| bug.place() != laneway_torture::Place::Shared);
    let bugs: Vec<(Bug, Vec<Case>)> = here.map(|bug| (*bug, walk::haunts(*bug, dice))).collect();
    let bugs = Mutex::new(bugs.into_iter());
    let tally = Mutex::new(tally);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = bugs.lock().expect("nobody panics with it").next();
                let Some((bug, cases)) = next else { return Ok(()) };
                let mut caught = None;
                for (tried, case) in cases.iter().enumerate() {
                    let report = case.play(ground)?;
                    if let Some(kept) = report.kept {
                        // What a seeded bug left is of no interest.
                        let _ = std::fs::remove_dir_all(kept);
                    }
                    if let Some(finding) = report.findings.into_iter().last() {
                        caught = Some((tried + 1, finding));
                        break;
                    }
                }
                tally.lock().expect("nobody panics with it").add_bug(bug, caught);
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a case does not panic"))
    })
}

fn play_alone(ground: &Ground, act: &str, seed: u64, bug: Option<&str>) -> Result<()> {
    let act: Act = act.parse()?;
    let bug =
        bug.map(|name| Bug::named(name).with_context(|| format!("there is no bug `{name}`"))).transpose()?;
    let case = Case { act, seed, bug, patience: walk::PATIENCE };
    let report: Report = case.play(ground)?;
    note(&format!("injected: {}", report.injected.join(", ")));
    report.findings.iter().for_each(|finding| note(&format!("found: {finding}")));
    if let Some(kept) = &report.kept {
        note(&format!("see {}", kept.display()));
    }
    ensure!(report.findings.is_empty(), "{} found", report.findings.len());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a seed may come from anywhere; it is printed")]
fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}
