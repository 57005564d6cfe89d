//! Ticks: one of three nodes dies wherever it fires one, before its run is there, behind that, and around the transaction that says how
//! far the schedule has come, on both databases. Then every tick has started one run, none is left out, and the others went on.
//! docs/design/triggers.md.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use laneway_torture::{Place as Of, Point};
use serde_json::Value;

use super::nodes::rows::Store;
use super::place::Place;
use super::walk::PATIENCE;
use crate::postgres::{Durability, Postgres};
use crate::stage::note;

/// Three nodes each, which wait for the same moments: more at once would make them miss those.
const AT_ONCE: usize = 2;

/// Ticks that have to come behind a death.
const MORE: usize = 3;

const DOCUMENT: &str = "name: every
schedule: {cron: '* * * * * *', catch_up: all, params: {at: '${{ tick.at }}'}}
params: {at: {type: string}}
steps: {note: {run: 'echo \"$(date -d $AT +%s) $LANEWAY_RUN\" >> LEDGER', env: {AT: '${{ params.at }}'}}}
";

#[derive(Debug, Clone, Copy)]
struct Case {
    point: Point,
    is_postgres: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = if self.is_postgres { "Postgres" } else { "SQLite" };
        write!(f, "{}, {database}", self.point.name())
    }
}

pub(super) fn walk(program: &Path) -> Result<()> {
    let points: Vec<Point> = Point::ALL.iter().copied().filter(|point| point.place() == Of::Firing).collect();
    let all = [true, false].map(|is_postgres| points.iter().map(move |&point| Case { point, is_postgres }));
    let cases: Vec<Case> = all.into_iter().flatten().collect();
    let postgres = Postgres::start(Durability::None)?;
    let (deaths, cases) = (cases.len(), Mutex::new(cases.into_iter()));
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = cases.lock().expect("nobody panics with it").next();
                let Some(case) = next else { return Ok(()) };
                case.play(program, &postgres).with_context(|| case.to_string())?;
            }
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a case does not panic"))
    })?;
    note(&format!("ticks: {deaths} deaths at {} points, and each tick has started one run", points.len()));
    Ok(())
}

impl Case {
    fn play(&self, program: &Path, postgres: &Postgres) -> Result<()> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let place = Place::new(program, true, None)?;
        let ledger = place.path("ticks").display().to_string();
        fs::write(place.path("every.yaml"), DOCUMENT.replace("LEDGER", &ledger))?;
        let schema = format!("ticks_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let store = self.is_postgres.then(|| Store::make(postgres.url(), &schema)).transpose()?;
        let settings = match &store {
            None => Vec::new(),
            Some(store) => vec![
                ("LANEWAY_STORE", store.address()),
                ("LANEWAY_LEASE_TTL", "2s".to_owned()),
                ("LANEWAY_HEARTBEAT_INTERVAL", "300ms".to_owned()),
            ],
        };
        let play = Play { place, settings };
        play.say(&["apply", "every.yaml"])?;
        let mut others = vec![play.node("one", &[])?, play.node("two", &[])?];
        let passed = play.place.path("passed").to_string_lossy().into_owned();
        // Not the first, so that it dies among others that are at it too.
        let arms = [("LANEWAY_CRASH", format!("{}:2", self.point.name())), ("LANEWAY_PASSED", passed)];
        let mut armed = play.node("armed", &arms)?;
        play.until("its death", || Ok(play.place.died_at().is_some()))?;
        armed.0.wait()?;
        let before = play.ticks()?.len();
        play.until("the ticks behind it", || Ok(play.ticks()?.len() >= before + MORE))?;
        play.say(&["schedule", "pause", "every"])?;
        play.until("every run to end", || Ok(play.runs()?.iter().all(|run| run["status"] == "succeeded")))?;
        play.look()?;
        others.clear();
        store.map_or(Ok(()), |store| store.remove())
    }
}

/// A process that does not outlive its case, however that ends.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Play {
    place: Place,
    settings: Vec<(&'static str, String)>,
}

impl Play {
    /// Waits until it takes work.
    fn node(&self, name: &str, arms: &[(&'static str, String)]) -> Result<Started> {
        let arms: Vec<_> = self.settings.iter().chain(arms).cloned().collect();
        let args = ["worker", "--exit-with-parent", "--shutdown-grace", "1s", "--node-address", name];
        let node = Started(self.place.start(&args, &arms)?);
        self.until("a node", || {
            let is_here = |node: &Value| node["node"] == name;
            let joined =
                self.json(&["nodes", "--json"])?.as_array().is_some_and(|all| all.iter().any(is_here));
            // One that dies may be gone before anybody sees it.
            Ok(joined || self.place.died_at().is_some())
        })?;
        Ok(node)
    }

    /// Every tick that was noted with its run, once: a step whose node died behind it says the same again.
    fn ticks(&self) -> Result<BTreeSet<(i64, String)>> {
        let text = fs::read_to_string(self.place.path("ticks")).unwrap_or_default();
        let tick = |line: &str| -> Result<(i64, String)> {
            let (at, run) = line.split_once(' ').with_context(|| format!("`{line}` is no tick"))?;
            Ok((at.parse().with_context(|| format!("`{at}` is no moment"))?, run.to_owned()))
        };
        text.lines().map(tick).collect()
    }

    fn look(&self) -> Result<()> {
        let ticks = self.ticks()?;
        let seconds: Vec<i64> = ticks.iter().map(|(second, _)| *second).collect();
        let first = seconds.first().copied().context("nothing has started")?;
        let expected: Vec<i64> = (first..).take(seconds.len()).collect();
        ensure!(seconds == expected, "a tick is left out, or has started two runs: {ticks:?}");
        let runs = self.runs()?.len();
        ensure!(runs == ticks.len(), "{runs} runs for {} ticks", ticks.len());
        self.say(&["doctor"])
    }

    fn runs(&self) -> Result<Vec<Value>> {
        let runs = self.json(&["runs", "--json", "--limit", "1000"])?;
        Ok(runs.as_array().cloned().unwrap_or_default())
    }

    fn say(&self, args: &[&str]) -> Result<()> {
        let said = self.place.laneway(args, &self.settings).output()?;
        ensure!(
            said.status.success(),
            "`laneway {}`: {}{}",
            args.join(" "),
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
        Ok(())
    }

    fn json(&self, args: &[&str]) -> Result<Value> {
        let output = self.place.laneway(args, &self.settings).output()?;
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    fn until(&self, what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !is_so()? {
            ensure!(Instant::now() < until, "{what} does not come: {}", self.place.last_words());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}
