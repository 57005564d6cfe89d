//! What is told from run to run, and from people to runs: the program dies wherever a signal, the start, the end or the cancel of
//! a child is told, on both databases. A person goes on, and then there is one child, its parent has ended as it did, and nothing waits for
//! anything. docs/design/children.md.

use std::fmt;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use laneway_torture::{Place as Of, Point};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::WORKERS;
use super::nodes::rows::Store;
use super::place::{Place, wait};
use super::walk::PATIENCE;
use crate::postgres::{Durability, Postgres};
use crate::stage::note;

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Every point on both databases, and the transactions of a run that starts another one.
    Short,
    /// Every transaction of every scene as well.
    Whole,
}

/// Who is armed, and what happens besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// Who drives the parent.
    Run,
    /// Who retries it, after its child has failed.
    Retry,
    /// Who cancels it from elsewhere.
    Cancel,
    /// Who drives it, and is interrupted.
    Interrupt,
    /// Who sends its child the signal that ends it.
    Signal,
}

const PARENT: &str =
    "name: parent\nsteps:\n  call: {workflow: child.yaml}\n  after: {needs: [call], run: 'true'}\n";

/// Where every point comes by.
const ROWS: [(Point, &[Scene]); 11] = [
    (Point::SignalBefore, &[Scene::Signal]),
    (Point::SignalAfter, &[Scene::Signal]),
    (Point::ChildWanted, &[Scene::Run, Scene::Retry]),
    (Point::ChildMade, &[Scene::Run, Scene::Retry]),
    (Point::ChildTold, &[Scene::Run, Scene::Retry]),
    (Point::ChildStarted, &[Scene::Run]),
    (Point::ChildResumed, &[Scene::Retry]),
    (Point::ChildOver, &[Scene::Run, Scene::Retry, Scene::Interrupt, Scene::Signal]),
    (Point::ChildOverTold, &[Scene::Run, Scene::Retry, Scene::Interrupt, Scene::Signal]),
    (Point::ChildStop, &[Scene::Cancel, Scene::Interrupt]),
    (Point::ChildStopTold, &[Scene::Cancel, Scene::Interrupt]),
];

/// How many transactions of a scene are walked to one by one: more than most have.
const COMMITS: u32 = 24;

/// How often it may have to be taken up again: a node that died on Postgres is in the way until its lease is over.
const ROUNDS: usize = 120;

#[derive(Debug, Clone)]
struct Case {
    point: Point,
    passing: u32,
    scene: Scene,
    is_postgres: bool,
    /// Whether nothing but its death will do.
    must_die: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = if self.is_postgres { "Postgres" } else { "SQLite" };
        write!(f, "{}:{}, {:?}, {database}", self.point.name(), self.passing, self.scene)
    }
}

pub(super) fn walk(program: &Path, how: How) -> Result<()> {
    let has_row = |point: &&Point| ROWS.iter().any(|(row, _)| row == *point);
    let missing =
        Point::ALL.iter().filter(|point| point.place() == Of::Telling).find(|point| !has_row(point));
    ensure!(missing.is_none(), "{missing:?} has no row");
    let postgres = Postgres::start(Durability::None)?;
    let (cases, deaths) = (Mutex::new(cases(how).into_iter()), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = cases.lock().expect("nobody panics with it").next();
                let Some(case) = next else { return Ok(()) };
                let died = case.play(program, &postgres).with_context(|| case.to_string())?;
                ensure!(died || !case.must_die, "nothing died at {case}: it does not come by there");
                deaths.fetch_add(u32::from(died), Ordering::Relaxed);
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a case does not panic"))
    })?;
    let deaths = deaths.into_inner();
    note(&format!(
        "children: {deaths} deaths at {} points and around transactions, and nothing is lost",
        ROWS.len()
    ));
    Ok(())
}

fn cases(how: How) -> Vec<Case> {
    let mut cases = Vec::new();
    for is_postgres in [false, true] {
        for (point, scenes) in ROWS {
            for scene in scenes {
                cases.push(Case { point, passing: 1, scene: *scene, is_postgres, must_die: true });
            }
        }
        let commits = match is_postgres {
            false => [Point::CommitBefore, Point::CommitAfter],
            true => [Point::SharedCommitBefore, Point::SharedCommitAfter],
        };
        let scenes: &[(Scene, u32)] = match (how, is_postgres) {
            (How::Short, false) => &[(Scene::Run, COMMITS)],
            (How::Short, true) => &[],
            (How::Whole, _) => {
                &[(Scene::Run, COMMITS), (Scene::Retry, COMMITS), (Scene::Cancel, 3), (Scene::Signal, 3)]
            }
        };
        for (scene, most) in scenes {
            for (point, passing) in commits.into_iter().flat_map(|point| (1..=*most).map(move |n| (point, n)))
            {
                cases.push(Case { point, passing, scene: *scene, is_postgres, must_die: false });
            }
        }
    }
    cases
}

impl Case {
    /// Says whether something died.
    fn play(&self, program: &Path, postgres: &Postgres) -> Result<bool> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let place = Place::new(program, true, None)?;
        std::fs::write(place.path("parent.yaml"), PARENT)?;
        std::fs::write(place.path("child.yaml"), self.child())?;
        let schema = format!("children_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let store = self.is_postgres.then(|| Store::make(postgres.url(), &schema)).transpose()?;
        let settings = match &store {
            None => Vec::new(),
            Some(store) => vec![
                ("LANEWAY_STORE", store.address()),
                ("LANEWAY_LEASE_TTL", "2s".to_owned()),
                ("LANEWAY_HEARTBEAT_INTERVAL", "300ms".to_owned()),
            ],
        };
        let play = Play { case: self, place, settings };
        play.act()?;
        let died = play.place.died_at().is_some();
        play.go_on()?;
        play.look()?;
        if let Some(store) = store {
            store.remove()?;
        }
        Ok(died)
    }

    fn child(&self) -> String {
        let work = match self.scene {
            // More steps than a test build submits at once.
            Scene::Run => "run: 'true'",
            Scene::Retry => "run: 'test -e mended'",
            Scene::Cancel | Scene::Interrupt => "run: 'touch begun; exec sleep 600'",
            Scene::Signal => return "name: child\nsteps:\n  work: {wait: {signal: go}}\n".to_owned(),
        };
        let rest: String = (1..8).map(|n| format!("  s{n}: {{needs: [work], run: 'true'}}\n")).collect();
        format!("name: child\nmax_parallel: 8\nsteps:\n  work: {{{work}}}\n{rest}")
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

struct Play<'c> {
    case: &'c Case,
    place: Place,
    settings: Vec<(&'static str, String)>,
}

impl Play<'_> {
    fn act(&self) -> Result<()> {
        let run = ["run", "parent.yaml"];
        match self.case.scene {
            Scene::Run => self.end(self.start(&run, true)?),
            Scene::Retry => {
                self.end(self.start(&run, false)?)?;
                std::fs::write(self.place.path("mended"), "")?;
                let (parent, _) = self.of("parent")?.context("the run is not there")?;
                self.end(self.start(&["retry", &parent], true)?)
            }
            Scene::Cancel => {
                let node = self.start(&run, false)?;
                self.until("the child's step", || Ok(self.place.path("begun").exists()))?;
                let (parent, _) = self.of("parent")?.context("the run is not there")?;
                self.end(self.start(&["cancel", &parent], true)?)?;
                // Who died has heard nothing, and says it again.
                self.end(self.start(&["cancel", &parent], false)?)?;
                self.end(node)
            }
            Scene::Interrupt => {
                let node = self.start(&run, true)?;
                self.until("the child's step", || Ok(self.place.path("begun").exists()))?;
                let _ = kill_process(Pid::from_child(&node.0), Signal::INT);
                self.end(node)?;
                let (parent, _) = self.of("parent")?.context("the run is not there")?;
                self.end(self.start(&["cancel", &parent], false)?)
            }
            Scene::Signal => {
                let node = self.start(&run, false)?;
                self.until("the wait", || {
                    let Some((child, _)) = self.of("child")? else { return Ok(false) };
                    Ok(self.json(&["show", &child, "--json"])?["tasks"][0]["status"] == "parked")
                })?;
                let (child, _) = self.of("child")?.context("the child is not there")?;
                let signal = ["signal", child.as_str(), "work", "go", "--json"];
                self.end(self.start(&signal, true)?)?;
                let again = self.json(&signal)?;
                // Only what was committed counts, and that does.
                let is_committed = match self.case.point {
                    Point::SignalAfter | Point::CommitAfter | Point::SharedCommitAfter => Some("before"),
                    // There the parent is told in the transaction that follows.
                    Point::ChildOver | Point::ChildOverTold if self.case.is_postgres => Some("before"),
                    Point::SignalBefore | Point::ChildOver | Point::ChildOverTold | Point::CommitBefore => {
                        Some("woken")
                    }
                    // Questions have transactions as well there.
                    _ => None,
                };
                let died = self.place.died_at().is_some();
                if let Some(result) = is_committed.filter(|_| died && self.case.must_die) {
                    ensure!(again["result"] == result, "said again, the signal is {again}, not {result}");
                }
                self.end(node)
            }
        }
    }

    /// As a person would, until the run has ended.
    fn go_on(&self) -> Result<()> {
        for _ in 0..ROUNDS {
            match self.of("parent")? {
                None if self.case.scene == Scene::Run => {
                    self.end(self.start(&["run", "parent.yaml"], false)?)?
                }
                None => bail!("the run is gone"),
                Some((parent, status)) if !is_final(&status) => {
                    self.end(self.start(&["run", "--resume", &parent], false)?)?;
                    // The lease of a dead node is waited for.
                    std::thread::sleep(Duration::from_millis(if self.case.is_postgres { 200 } else { 0 }));
                }
                // A retry that died before it was written.
                Some((parent, status)) if self.case.scene == Scene::Retry && status == "failed" => {
                    self.end(self.start(&["retry", &parent], false)?)?;
                }
                Some(_) => return Ok(()),
            }
        }
        bail!("the run has not ended after {ROUNDS} resumptions: {}", self.place.last_words());
    }

    fn look(&self) -> Result<()> {
        let expected = match self.case.scene {
            Scene::Run | Scene::Retry | Scene::Signal => "succeeded",
            Scene::Cancel | Scene::Interrupt => "canceled",
        };
        let runs = self.json(&["runs", "--json"])?;
        let of = |name: &str| -> Vec<&Value> {
            runs.as_array().into_iter().flatten().filter(|run| run["workflow"] == name).collect()
        };
        let (parents, children) = (of("parent"), of("child"));
        ensure!((parents.len(), children.len()) == (1, 1), "there are {runs}");
        for run in [parents[0], children[0]] {
            ensure!(run["status"] == expected, "it is not {expected}: {runs}");
            let id = run["run"].as_str().unwrap_or_default();
            self.succeeds(&["replay", id])?;
        }
        let shown = self.json(&["show", parents[0]["run"].as_str().unwrap_or_default(), "--json"])?;
        let child = &shown["tasks"][0]["wait"]["child"];
        ensure!(*child == children[0]["run"], "the step has waited for {child} and not for {}", children[0]);
        self.succeeds(&["doctor"])
    }

    fn succeeds(&self, args: &[&str]) -> Result<()> {
        let said = self.place.laneway(args, &self.settings).output()?;
        ensure!(
            said.status.success(),
            "`laneway {}`: {}",
            args.join(" "),
            String::from_utf8_lossy(&said.stdout)
        );
        Ok(())
    }

    fn start(&self, args: &[&str], is_armed: bool) -> Result<Started> {
        let mut arms = self.settings.clone();
        if is_armed {
            let passed = self.place.path("passed").to_string_lossy().into_owned();
            let crash = format!("{}:{}", self.case.point.name(), self.case.passing);
            arms.extend([("LANEWAY_CRASH", crash), ("LANEWAY_PASSED", passed)]);
        }
        self.place.start(args, &arms).map(Started)
    }

    /// However it ends: what is left counts.
    fn end(&self, mut process: Started) -> Result<()> {
        ensure!(wait(&mut process.0, PATIENCE)?.is_some(), "it does not end: {}", self.place.last_words());
        Ok(())
    }

    fn until(&self, what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !is_so()? {
            ensure!(Instant::now() < until, "{what} does not come: {}", self.place.last_words());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn json(&self, args: &[&str]) -> Result<Value> {
        let output = self.place.laneway(args, &self.settings).output()?;
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    /// The id and the status of a run.
    fn of(&self, workflow: &str) -> Result<Option<(String, String)>> {
        let runs = self.json(&["runs", "--json"])?;
        let run = runs.as_array().into_iter().flatten().find(|run| run["workflow"] == workflow);
        let text = |run: &Value, key: &str| run[key].as_str().unwrap_or_default().to_owned();
        Ok(run.map(|run| (text(run, "run"), text(run, "status"))))
    }
}

fn is_final(status: &str) -> bool {
    matches!(status, "succeeded" | "failed" | "canceled")
}
