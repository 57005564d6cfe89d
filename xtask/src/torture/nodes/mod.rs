//! `cargo xtask torture nodes`: three real workers in network namespaces of their own and one
//! Postgres; nodes are killed and frozen, cut off and lied to about the time, the database goes
//! away, answers to COMMIT are lost. Then the offline checker looks, and bugs are seeded, each of
//! which it has to find.
//!
//! ```text
//! fault.rs (what goes wrong) ─▶ case.rs (runs, faults, healing) ─▶ story.rs, check.rs (findings) ─▶ tally.rs
//!            network.rs · proxy.rs · node.rs · clock.rs                 rows.rs, flows.rs
//! ```
//! docs/design/torture.md says what is injected and what is checked.

mod case;
mod check;
mod clock;
mod contention;
mod fault;
mod flows;
mod hunt;
mod network;
mod node;
mod person;
mod proxy;
pub(super) mod rows;
mod story;
mod tally;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use laneway_torture::{Bug, Point};

use self::case::{Case, Load};
use self::fault::Fault;
use self::network::Network;
use self::proxy::Proxy;
use self::tally::Tally;
use super::dice::Dice;
use crate::postgres::{Durability, Postgres};
use crate::program::Program;
use crate::shell::Shell;
use crate::stage::note;

const NODES: usize = 3;

/// How many of them reach the database through a proxy.
const PROXIED: usize = NODES;

/// Short, so that it ends often.
const LEASE: Duration = Duration::from_secs(4);
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_millis(300);

/// Names the node to its steps.
const MARK_NODE: &str = "TORTURE_NODE";

/// Tells steps where the ledger is.
const MARK_LEDGER: &str = "TORTURE_LEDGER";

/// Before runs count as stuck. Long, for a crowded machine: only what is broken waits that long.
const PATIENCE: Duration = Duration::from_secs(90);

/// How many faults one case has, and the one case of the short form.
const FAULTS: usize = 6;
const SHORT: usize = 8;

/// The same of the contended case of the short form, which goes on for a while beyond them.
const SHORT_CONTENDED: usize = 3;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Args {
    /// Go on for so long, and hunt all bugs; without it, the short form of CI
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Choose the cases of an earlier run again
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Play one case alone, as a finding prints it: faults with commas, or none; with --seed
    #[arg(long, value_name = "FAULTS", requires = "seed")]
    only: Option<String>,
    /// What that case runs, as a finding prints it; two random graphs for each fault by default
    #[arg(long, value_name = "LOAD", requires = "only")]
    load: Option<String>,
    /// Hunt the seeded bugs alone: all of them, or one
    #[arg(long, value_name = "BUG", num_args = 0..=1, default_missing_value = "all")]
    bug: Option<String>,
}

impl Args {
    /// Goes on for so long, and hunts all bugs.
    pub(crate) fn for_minutes(minutes: u64) -> Self {
        Self { minutes: Some(minutes), ..Self::default() }
    }
}

/// What all cases stand on.
#[derive(Debug)]
struct Ground {
    program: PathBuf,
    postgres: Postgres,
    proxies: Vec<Arc<Proxy>>,
    network: Arc<Network>,
    cases: AtomicU32,
}

/// What of it faults of nodes need, on whatever thread.
#[derive(Debug, Clone)]
struct Shared {
    network: Arc<Network>,
    proxies: Vec<Arc<Proxy>>,
    /// Behind which the database is.
    ports: Vec<u16>,
}

impl Ground {
    fn new(program: PathBuf) -> Result<Self> {
        let network = Arc::new(Network::new(NODES)?);
        let postgres = Postgres::start_within(Durability::Full, Some(network.reach()))?;
        let proxies = (0..PROXIED).map(|_| Proxy::start(&network.address(), postgres.port()).map(Arc::new));
        let proxies = proxies.collect::<Result<_>>()?;
        Ok(Self { program, postgres, proxies, network, cases: AtomicU32::new(0) })
    }

    /// A number for the next case, and a mark for its processes.
    fn next(&self) -> (u32, String) {
        let number = self.cases.fetch_add(1, Ordering::Relaxed);
        (number, format!("nodes-{}-{number}", std::process::id()))
    }

    fn port_of(&self, node: usize) -> u16 {
        self.proxies.get(node).map_or(self.postgres.port(), |proxy| proxy.port())
    }

    fn shared(&self) -> Shared {
        let mut ports: Vec<u16> = self.proxies.iter().map(|proxy| proxy.port()).collect();
        ports.push(self.postgres.port());
        Shared { network: Arc::clone(&self.network), proxies: self.proxies.clone(), ports }
    }
}

pub(crate) fn run(shell: &Shell, args: &Args) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "network namespaces are Linux's, so this needs Linux");
    let tortured = Program::build_tortured(shell)?;
    let mut ground = Ground::new(tortured.path().to_owned())?;
    let seed = args.seed.unwrap_or_else(super::fresh_seed);
    if let Some(faults) = &args.only {
        return play_alone(&mut ground, faults, seed, args);
    }
    note(&format!("seed {seed}"));
    let (mut dice, mut tally) = (Dice::new(seed), Tally::default());
    if let Some(bug) = &args.bug {
        hunt::all(&mut ground, &bugs(bug)?, &mut dice, &mut tally)?;
        tally.print();
        return tally.verdict();
    }
    let Some(minutes) = args.minutes else {
        let mut faults = Fault::all_kinds(&mut dice);
        faults.truncate(SHORT);
        let case = case(faults, &mut dice);
        tally.add(&case, &case.play(&mut ground)?);
        contention::play(&mut ground, &mut dice, SHORT_CONTENDED, &mut tally)?;
        tally.print();
        return tally.verdict();
    };
    let until = Instant::now() + Duration::from_secs(minutes * 60);
    while Instant::now() < until {
        for case in some_of_everything(&mut dice).into_iter().chain(crashes(&mut dice)) {
            tally.add(&case, &case.play(&mut ground)?);
        }
        contention::play(&mut ground, &mut dice, SHORT, &mut tally)?;
    }
    hunt::all(&mut ground, &bugs("all")?, &mut dice, &mut tally)?;
    tally.print();
    tally.verdict()?;
    tally.has_died_everywhere()
}

/// Every kind of fault once, a few in each case.
fn some_of_everything(dice: &mut Dice) -> Vec<Case> {
    let faults = Fault::all_kinds(dice);
    faults.chunks(FAULTS).map(|faults| case(faults.to_vec(), dice)).collect()
}

/// Every point that only nodes come past, and some that others come past as well.
fn crashes(dice: &mut Dice) -> Vec<Case> {
    let mut faults = Vec::new();
    for point in hunt::points() {
        let node = dice.up_to(NODES as u32) as usize - 1;
        if matches!(point, Point::ExpiredFound | Point::ExpiredReaped) {
            // Somebody has to die for it, and the other two are armed.
            let others = (0..NODES).filter(|other| *other != node);
            faults.extend(others.map(|node| Fault::Crash { node, point, passing: 1 }));
            let lease = LEASE.as_millis() as u64;
            faults.push(Fault::Kill { node, rest_ms: lease * 3 });
            faults.push(Fault::Rest { for_ms: lease * 3 });
        } else {
            faults.push(Fault::Crash { node, point, passing: dice.up_to(3) });
        }
    }
    faults.chunks(2 * FAULTS).map(|faults| case(faults.to_vec(), dice)).collect()
}

fn case(faults: Vec<Fault>, dice: &mut Dice) -> Case {
    let seed = (dice.fraction() * f64::from(u32::MAX)) as u64;
    Case { seed, load: Load::beside(&faults), faults, bug: None, patience: PATIENCE }
}

fn bugs(wanted: &str) -> Result<Vec<Bug>> {
    if wanted == "all" {
        return Ok(hunt::bugs());
    }
    let bug = Bug::named(wanted).with_context(|| format!("there is no bug `{wanted}`"))?;
    Ok(vec![bug])
}

fn play_alone(ground: &mut Ground, faults: &str, seed: u64, args: &Args) -> Result<()> {
    let faults = fault::parse_all(faults)?;
    let load = args.load.as_deref().map_or_else(|| Ok(Load::beside(&faults)), str::parse)?;
    let bug = args.bug.as_deref();
    let bug =
        bug.map(|name| Bug::named(name).with_context(|| format!("there is no bug `{name}`"))).transpose()?;
    let case = Case { seed, load, faults, bug, patience: PATIENCE };
    let mut tally = Tally::default();
    tally.add(&case, &case.play(ground)?);
    tally.print();
    tally.verdict()
}

/// Nothing of the caller's that could change what the program does.
fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LANEWAY_") {
            command.env_remove(name);
        }
    }
}

/// As the steps read it.
fn boot_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// From seconds since the machine started to milliseconds of the wall clock, which is also the
/// database's.
#[expect(clippy::disallowed_methods, reason = "the ledger and the database's times are compared by it")]
fn offset_ms() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    (now - boot_seconds()) * 1000.0
}
