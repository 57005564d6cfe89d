//! `durable`: runs of three durable steps each, through the Rust API, beside DBOS and Restate. Many at once, and one after the other.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::goal::Verdict;
use crate::install;
use crate::meter::program;
use crate::nodes::Server as Postgres;
use crate::report::note;
use crate::servers::Server;
use crate::stats::Spread;
use crate::subject::{Peer, Places, fresh_dir, text};

/// How many are under way at once.
const AT_ONCE: usize = 64;

/// Of one run after the other.
const SAMPLES: usize = 200;

#[derive(Debug, Serialize)]
pub(crate) struct DurableResult {
    pub(crate) runs: usize,
    pub(crate) subjects: Vec<Subjected>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Subjected {
    pub(crate) name: String,
    pub(crate) runs_per_s: Spread,
    /// Of a run that is alone.
    pub(crate) p50_ms: Spread,
}

/// What a driver tells.
#[derive(Debug, Deserialize)]
struct Told {
    seconds: f64,
    p50_ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Embedded,
    Shared,
    Dbos,
    Restate,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Embedded => "laneway, embedded",
            Self::Shared => "laneway, Postgres",
            Self::Dbos => "DBOS, Postgres",
            Self::Restate => "Restate",
        }
    }
}

pub(crate) fn measure(
    (runs, rounds): (usize, usize),
    postgres: &str,
    peers: &[Peer],
    places: &Places,
) -> Result<DurableResult> {
    let mut subjects = vec![Who::Embedded, Who::Shared];
    subjects.extend(peers.contains(&Peer::Dbos).then_some(Who::Dbos));
    subjects.extend(peers.contains(&Peer::Restate).then_some(Who::Restate));
    let mut told: Vec<Vec<Told>> = subjects.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for place in 0..subjects.len() {
            let place = (place + round) % subjects.len();
            note(&format!("durable: {}, round {}", subjects[place].name(), round + 1));
            told[place].push(once(subjects[place], (runs, round), postgres, places)?);
        }
    }
    let subject = |(who, told): (&Who, &Vec<Told>)| -> Result<Subjected> {
        let spread = |of: &dyn Fn(&Told) -> f64| Spread::of(told.iter().map(of));
        Ok(Subjected {
            name: who.name().to_owned(),
            runs_per_s: spread(&|one| runs as f64 / one.seconds).context("no round was measured")?,
            p50_ms: spread(&|one| one.p50_ms).context("no round was measured")?,
        })
    };
    Ok(DurableResult { runs, subjects: subjects.iter().zip(&told).map(subject).collect::<Result<_>>()? })
}

fn once(who: Who, (runs, round): (usize, usize), postgres: &str, places: &Places) -> Result<Told> {
    let dir = places.work.join("durable");
    fresh_dir(&dir)?;
    let words = [runs.to_string(), AT_ONCE.to_string(), SAMPLES.to_string()];
    // A database of its own for each, so that nobody finds what others left.
    let database = |who: &str| -> Result<String> {
        let (server, name) = (Postgres::connect(postgres)?, format!("durable_{who}_{round}"));
        server.fresh(&name, false)?;
        Ok(server.url(&name))
    };
    let mut restate = None;
    let mut command = match who {
        Who::Embedded | Who::Shared => {
            let mut command = program(&places.own);
            command.args(["drive", "durable"]).args(&words);
            if who == Who::Shared {
                command.env("DATABASE_URL", database("laneway")?);
            }
            command
        }
        Who::Dbos => {
            let mut command = program(places.tools.join("venv/bin/python"));
            command.arg(places.drivers.join("durable_dbos.py")).args(&words);
            command.env("DATABASE_URL", database("dbos")?);
            command
        }
        Who::Restate => {
            let (server, _) = Server::start(Peer::Restate, places)?;
            let [ingress, admin, _] = server.ports();
            restate = Some(server);
            let mut command = program(places.tools.join(install::NODE));
            command.arg(places.drivers.join("durable_restate.mjs")).args(&words);
            command.env("NPM", text(&places.tools.join("npm"))?).env("RESTATE_LOGGING", "ERROR");
            command.env("INGRESS", ingress.to_string()).env("ADMIN", admin.to_string());
            command
        }
    };
    let output = command.current_dir(&dir).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} cannot be started", who.name()))?;
    restate.map_or(Ok(()), Server::end)?;
    if !output.status.success() {
        bail!("{} ended with {}: {}", who.name(), output.status, String::from_utf8_lossy(&output.stderr));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{} told {line:?}", who.name()))
}

pub(crate) fn show(found: &DurableResult) -> String {
    use std::fmt::Write as _;
    let mut out = format!(
        "## Durable: {} runs of three steps, {AT_ONCE} at once\n\n| | runs a second | one alone, p50 ms |\n|---|---|---|\n",
        found.runs
    );
    for subject in &found.subjects {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {} | {:.0} | {:.2} |",
            subject.name, subject.runs_per_s.median, subject.p50_ms.median
        );
    }
    out.push('\n');
    out
}

/// Each of ours against each peer: the embedded one against Restate, which keeps its own files too; both against DBOS.
pub(crate) fn judge(found: &DurableResult, verdicts: &mut Vec<Verdict>) {
    let named = |who: Who| found.subjects.iter().find(|subject| subject.name == who.name());
    let Some(ours) = named(Who::Embedded) else { return };
    for peer in [Who::Dbos, Who::Restate].into_iter().filter_map(named) {
        let rate = ours.runs_per_s.median / peer.runs_per_s.median;
        verdicts.push(Verdict::at_least("durable", &format!("runs a second, to {}", peer.name), rate, 1.0));
        let alone = ours.p50_ms.median / peer.p50_ms.median;
        verdicts.push(Verdict::at_most("durable", &format!("one run alone, to {}", peer.name), alone, 1.0));
    }
    if let (Some(ours), Some(peer)) = (named(Who::Shared), named(Who::Dbos)) {
        let rate = ours.runs_per_s.median / peer.runs_per_s.median;
        verdicts.push(Verdict::at_least("durable", "runs a second on Postgres, to DBOS", rate, 1.0));
        let alone = ours.p50_ms.median / peer.p50_ms.median;
        verdicts.push(Verdict::at_most("durable", "one run alone on Postgres, to DBOS", alone, 1.0));
    }
}
