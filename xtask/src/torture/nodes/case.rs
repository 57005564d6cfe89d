//! One case: three nodes, runs that come in one after the other, and faults; then everything is healed, all runs have to
//! end, and the checker looks.
//!
//! ```text
//!   submitters (threads) run ▸ run ▸ run …                       by key, again until it is acknowledged
//!   faults              fault ▸ (rest) ▸ fault …                 those of one node may overlap; the database's do not
//!   keeper (thread)     starts nodes again that have ended
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, bail};
use laneway_torture::Bug;
use rustix::process::Signal;

use super::super::dice::Dice;
use super::super::ledger::Ledger;
use super::super::processes;
use super::check::{self, Told};
use super::fault::{self, Fault};
use super::flows::Flow;
use super::network::Cut;
use super::node::{Keeper, Making, Node};
use super::person::Person;
use super::proxy::{Moment, Order};
use super::rows::{Rows, Session, Store};
use super::story::Story;
use super::{Ground, LEASE, NODES, PROXIED, boot_seconds, clock, offset_ms};
use crate::postgres::Stop;

/// What a crowded machine gets on top of a deadline.
const SLACK: Duration = Duration::from_millis(500);

/// How long after a lease the guardian of a frozen warden acts.
const GUARDIAN_GRACE: Duration = Duration::from_millis(250);

/// What is run meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Graphs made by chance, so many.
    Random(u32),
    /// Many that want the same at once.
    Crowd(u32),
    /// So many steps that take longer than a lease.
    Long(u32),
    /// So many short chains.
    Chain(u32),
    /// At least so many that want the same keys, submitted by several callers at the same time. With faults
    /// the callers go on until these are over, and a while beyond them.
    Contended { runs: u32, submitters: u32 },
}

impl Load {
    /// What a case has unless it says otherwise.
    pub(super) fn beside(faults: &[Fault]) -> Self {
        Self::Random((2 * faults.len() as u32).max(1))
    }
}

/// In words that can be typed again.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random(count) => write!(f, "random:{count}"),
            Self::Crowd(count) => write!(f, "crowd:{count}"),
            Self::Long(count) => write!(f, "long:{count}"),
            Self::Chain(count) => write!(f, "chain:{count}"),
            Self::Contended { runs, submitters } => write!(f, "contended:{runs}:{submitters}"),
        }
    }
}

impl FromStr for Load {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(':').collect();
        let count = |word: &str| {
            let count = word.parse::<u32>().ok().filter(|count| *count > 0);
            count.with_context(|| format!("`{word}` is no number above 0"))
        };
        Ok(match words[..] {
            ["random", runs] => Self::Random(count(runs)?),
            ["crowd", runs] => Self::Crowd(count(runs)?),
            ["long", runs] => Self::Long(count(runs)?),
            ["chain", runs] => Self::Chain(count(runs)?),
            ["contended", runs, submitters] => {
                Self::Contended { runs: count(runs)?, submitters: count(submitters)? }
            }
            _ => bail!("`{text}` is no load; docs/design/torture.md lists them"),
        })
    }
}

/// Unfinished runs at which callers pause: enough that the keys are always wanted, and few enough that what
/// is left when they stop is no more than a case without faults has.
const MAX_OPEN: u64 = 12;

/// Runs of one case at most, beside faults.
const MAX_RUNS: usize = 2_000;

/// How long callers go on beyond the faults: throughput is measured in it. What was lost by the last fault
/// has been returned by then.
const MEASURED: Duration = Duration::from_secs(5);
const RECOVERY: Duration = Duration::from_secs(LEASE.as_secs() + 1);

/// Replays of one case at most: each is a process.
const MAX_REPLAYS: usize = 60;

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) load: Load,
    pub(super) faults: Vec<Fault>,
    pub(super) bug: Option<Bug>,
    /// How long runs may take to end once everything is healed.
    pub(super) patience: Duration,
}

/// What became of a case.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) runs: usize,
    pub(super) tasks: usize,
    pub(super) lost: usize,
    /// By kind.
    pub(super) injected: BTreeMap<String, u32>,
    pub(super) findings: Vec<String>,
    /// Seconds from a fault to the next start of each task that it cost.
    pub(super) recoveries: Vec<f64>,
    pub(super) deaths: Vec<String>,
    pub(super) kept: Option<PathBuf>,
    /// From the first submit until the last run ended.
    pub(super) took: Duration,
    /// Of a contended load with faults: attempts that ended in a second once the faults were over.
    pub(super) recovered: Option<f64>,
}

impl Report {
    /// Tasks a second.
    pub(super) fn throughput(&self) -> f64 {
        self.tasks as f64 / self.took.as_secs_f64().max(0.001)
    }
}

impl Case {
    /// The arguments that play it again.
    pub(super) fn words(&self) -> String {
        let faults = fault::words(&self.faults);
        let bug = self.bug.map(|bug| format!(" --bug {}", bug.name())).unwrap_or_default();
        format!("--only {faults} --load {} --seed {}{bug}", self.load, self.seed)
    }

    pub(super) fn play(&self, ground: &mut Ground) -> Result<Report> {
        let mut play = Play::begin(self, ground)?;
        let (deadlocks, begun) = (play.store.deadlocks()?, Instant::now());
        let recovered = play.go(ground)?;
        play.settle()?;
        let took = begun.elapsed();
        play.end()?;
        // A server that crashed counts anew.
        let now = play.store.deadlocks()?;
        let deadlocks = if now < deadlocks { now } else { now - deadlocks };
        if deadlocks > 0 {
            play.find(format!("the server parted {deadlocks} deadlocks"));
        }
        let mut report = Report { took, recovered, ..play.look()? };
        if report.findings.is_empty() {
            play.store.remove()?;
        } else {
            report.kept = Some(play.dir.keep());
        }
        Ok(report)
    }
}

struct Play<'a> {
    case: &'a Case,
    dir: tempfile::TempDir,
    store: Store,
    person: Person,
    nodes: Vec<Arc<Node>>,
    keeper: Option<Keeper>,
    dice: Dice,
    injected: Injected,
    findings: Mutex<Vec<String>>,
    offset_ms: f64,
}

/// How callers submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// One run after the other, with pauses by chance.
    Pausing,
    AtOnce,
    /// While fewer than `MAX_OPEN` runs are unfinished.
    Throttled,
}

/// Tells the submitters that the faults are over, when it is dropped.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What was done, and when.
#[derive(Debug, Default)]
struct Injected {
    kinds: Mutex<BTreeMap<String, u32>>,
    /// Whom it hit, and when, in seconds since the machine started.
    times: Mutex<Vec<(Option<usize>, f64)>>,
}

impl Injected {
    fn note(&self, fault: &Fault) {
        // Lines that were cut are counted one by one.
        if !matches!(fault, Fault::Answers { .. } | Fault::Claims { .. }) {
            self.count(fault.kind(), 1);
        }
        self.times.lock().expect("nobody panics with it").push((fault.node(), boot_seconds()));
    }

    fn count(&self, kind: String, times: u32) {
        *self.kinds.lock().expect("nobody panics with it").entry(kind).or_default() += times;
    }
}

impl<'a> Play<'a> {
    fn begin(case: &'a Case, ground: &Ground) -> Result<Self> {
        let mut dice = Dice::new(case.seed);
        let dir = tempfile::Builder::new().prefix("laneway-nodes-").tempdir()?;
        let (number, mark) = ground.next();
        let store = Store::make(ground.postgres.url(), &format!("case_{number}"))?;
        let ledger = dir.path().join("ledger");
        fs::write(&ledger, "")?;
        let person =
            Person::new(ground.program.clone(), dir.path().join("person"), store.address(), mark.clone())?;
        // The first to open it makes the tables.
        person.say(&["limit", "set", "nothing", "1"], &[])?;
        store.audit()?;
        let making = Making { program: ground.program.clone(), mark, ledger, bug: case.bug };
        let wrong =
            dice.is_lucky(0.5).then(|| (dice.up_to(NODES as u32) as usize - 1, dice.one_of(&clock::OFFSETS)));
        let mut nodes = Vec::new();
        let injected = Injected::default();
        for number in 0..NODES {
            let address = store.address_for(number, &ground.network.address(), ground.port_of(number));
            let node = Node::new(
                number,
                dir.path().join(super::node::name(number)),
                address,
                making.clone(),
                Arc::clone(&ground.network),
            )?;
            let clock = wrong.filter(|(whose, _)| *whose == number).map(|(_, offset)| offset);
            nodes.push(Arc::new(node.with_clock(clock)));
        }
        if let Some((_, offset)) = wrong {
            clock::library()?;
            injected.count(format!("clock of a node off by {offset}"), 1);
        }
        ground.proxies.iter().for_each(|proxy| {
            proxy.order(None);
            proxy.deafen(false);
        });
        let keeper = Some(Keeper::of(&nodes));
        let play = Self {
            case,
            dir,
            store,
            person,
            nodes,
            keeper,
            dice,
            injected,
            findings: Mutex::default(),
            offset_ms: offset_ms(),
        };
        play.wait_for("three nodes", Duration::from_secs(30), || play.living())?;
        Ok(play)
    }

    /// Whether every node has a session of its present life, and nobody else has one.
    fn living(&self) -> bool {
        let sessions = self.store.rows::<Session>("SELECT node, pid FROM sessions ORDER BY node");
        let nodes =
            self.nodes.iter().filter_map(|node| Some(Session { node: node.name(), pid: node.pid()? }));
        let nodes: Vec<Session> = nodes.collect();
        nodes.len() == NODES && sessions.is_ok_and(|sessions| sessions == nodes)
    }

    fn wait_for(&self, what: &str, patience: Duration, is_so: impl Fn() -> bool) -> Result<()> {
        let until = Instant::now() + patience;
        while !is_so() {
            if Instant::now() > until {
                bail!("there are never {what}: {}", self.last_words());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn go(&mut self, ground: &mut Ground) -> Result<Option<f64>> {
        let flows = flows(self.case.load, &mut self.dice);
        let pauses: Vec<Duration> =
            flows.iter().map(|_| Duration::from_millis(u64::from(self.dice.up_to(600)))).collect();
        let (pace, submitters) = match self.case.load {
            Load::Crowd(_) => (Pace::AtOnce, 1),
            Load::Contended { submitters, .. } => (Pace::Throttled, submitters as usize),
            Load::Random(_) | Load::Long(_) | Load::Chain(_) => (Pace::Pausing, 1),
        };
        let goes_on = pace == Pace::Throttled && !self.case.faults.is_empty();
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(!goes_on));
        let mut dice = self.dice.clone();
        let this = &*self;
        let recovered = thread::scope(|scope| {
            let (flows, pauses, next, is_over) = (&flows, &pauses, &next, &is_over);
            let submit = move || -> Result<()> {
                loop {
                    if pace == Pace::Throttled {
                        this.wait_for_room();
                    }
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let is_beyond = number >= flows.len();
                    if is_beyond && (is_over.load(Ordering::Relaxed) || number >= MAX_RUNS) {
                        return Ok(());
                    }
                    let refusals = this.person.submit(number, &flows[number % flows.len()])?;
                    this.note_refusals(refusals);
                    if pace == Pace::Pausing {
                        thread::sleep(pauses[number]);
                    }
                }
            };
            let submitters: Vec<_> = (0..submitters).map(|_| scope.spawn(submit)).collect();
            // Also where a fault could not be done: the submitters are waited for.
            let ending = Ending(is_over);
            let mut under_way: Vec<(usize, ScopedJoinHandle<'_, Result<()>>)> = Vec::new();
            if !self.case.faults.is_empty() {
                this.wait_for_steps();
            }
            for fault in &self.case.faults {
                thread::sleep(Duration::from_millis(u64::from(dice.up_to(700))));
                let Some(node) = fault.node() else {
                    this.hit_database(fault, ground)?;
                    continue;
                };
                // A node is hit by one thing at a time, so that what was to happen by when can be told.
                under_way = join(under_way, |at| at == node)?;
                let shared = ground.shared();
                if dice.is_lucky(0.5) {
                    under_way.push((node, scope.spawn(move || this.hit_node(fault, &shared))));
                } else {
                    this.hit_node(fault, &shared)?;
                }
            }
            join(under_way, |_| true)?;
            let recovered = if goes_on {
                ground.proxies.iter().for_each(|proxy| proxy.order(None));
                Some(this.measure_recovered()?)
            } else {
                None
            };
            drop(ending);
            for submitter in submitters {
                submitter.join().expect("a submitter does not panic")?;
            }
            Ok::<_, anyhow::Error>(recovered)
        })?;
        for node in 0..NODES {
            ground.network.heal(node)?;
        }
        ground.proxies.iter().for_each(|proxy| proxy.order(None));
        Ok(recovered)
    }

    /// A submit that fails while the database is there is a finding, also if the next try succeeds.
    fn note_refusals(&self, refusals: Vec<String>) {
        if !self.case.faults.iter().any(Fault::is_outage) {
            refusals.into_iter().for_each(|refusal| self.find(format!("a submit failed: {refusal}")));
        }
    }

    /// Attempts that end in a second, once what the faults cost has been returned.
    fn measure_recovered(&self) -> Result<f64> {
        let ended = "SELECT count(*) FROM attempts WHERE outcome = 'succeeded'";
        thread::sleep(RECOVERY);
        let (before, begun) = (self.store.count(ended)?, Instant::now());
        thread::sleep(MEASURED);
        Ok((self.store.count(ended)? - before) as f64 / begun.elapsed().as_secs_f64())
    }

    /// While the database is away there is none.
    fn wait_for_room(&self) {
        let open = "SELECT count(*) FROM runs WHERE status IN ('queued', 'running')";
        let until = Instant::now() + self.case.patience;
        while !self.store.count(open).is_ok_and(|open| open < MAX_OPEN) && Instant::now() < until {
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// So that there is something to lose.
    fn wait_for_steps(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.nodes.iter().any(|node| !node.steps().is_empty()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn hit_node(&self, fault: &Fault, ground: &super::Shared) -> Result<()> {
        let Some(node) = fault.node().map(|node| &self.nodes[node]) else { return Ok(()) };
        self.injected.note(fault);
        let begun = Instant::now();
        match fault {
            Fault::Kill { rest_ms, .. } => node.kill(Duration::from_millis(*rest_ms)),
            Fault::Freeze { .. } => {
                node.signal(Signal::STOP);
                self.expect_no_steps(node, begun, fault);
                sleep_until(begun + LEASE * 2);
                node.signal(Signal::CONT);
            }
            Fault::FreezeAll { .. } => {
                let frozen = node.freeze_all();
                self.expect_no_steps(node, begun + GUARDIAN_GRACE, fault);
                sleep_until(begun + LEASE * 2);
                frozen.into_iter().for_each(processes::thaw);
            }
            Fault::Cut { cut, for_ms, .. } => {
                ground.network.cut(node.number, *cut, &ground.ports)?;
                let for_long = Duration::from_millis(*for_ms);
                if for_long > LEASE + SLACK {
                    self.expect_no_steps(node, begun, fault);
                }
                sleep_until(begun + for_long);
                ground.network.heal(node.number)?;
            }
            Fault::Flap { times, .. } => {
                for _ in 0..*times {
                    ground.network.cut(node.number, Cut::Full, &ground.ports)?;
                    thread::sleep(LEASE / 4);
                    ground.network.heal(node.number)?;
                    thread::sleep(LEASE / 6);
                }
            }
            Fault::Answers { moment, times, .. } => {
                let order = Order { moment: *moment, about: None, times: *times };
                self.cut_lines(fault, node, order, ground);
            }
            Fault::Claims { times, .. } => {
                let about = Some("Picks and takes tasks");
                self.cut_lines(fault, node, Order { moment: Moment::After, about, times: *times }, ground);
            }
            Fault::Crash { point, passing, .. } => {
                let passed = self.dir.path().join("passed").to_string_lossy().into_owned();
                node.arm(vec![
                    ("LANEWAY_CRASH", format!("{}:{passing}", point.name())),
                    ("LANEWAY_PASSED", passed),
                ]);
                node.kill(Duration::ZERO);
                sleep_until(begun + LEASE);
            }
            Fault::CutAll { .. }
            | Fault::Restart { .. }
            | Fault::Restarts { .. }
            | Fault::Outage { .. }
            | Fault::Renewals { .. }
            | Fault::Deaf { .. }
            | Fault::SubmitCrash
            | Fault::Rest { .. } => {}
        }
        Ok(())
    }

    fn cut_lines(&self, fault: &Fault, node: &Node, order: Order, ground: &super::Shared) {
        let Some(proxy) = ground.proxies.get(node.number) else { return };
        let (before, times) = (proxy.cuts(), order.times);
        proxy.order(Some(order));
        // A node that has nothing to say commits no more than its renewals.
        let until = Instant::now() + LEASE;
        while proxy.cuts() < before + times && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        proxy.order(None);
        self.injected.count(fault.kind(), proxy.cuts() - before);
    }

    fn hit_database(&self, fault: &Fault, ground: &mut Ground) -> Result<()> {
        if !matches!(fault, Fault::Rest { .. }) {
            self.injected.note(fault);
        }
        let begun = Instant::now();
        match fault {
            Fault::Restart { stop } => {
                ground.postgres.stop(*stop)?;
                ground.postgres.start_again()?;
            }
            Fault::Restarts { times } => {
                for time in 0..*times {
                    if time > 0 {
                        thread::sleep(Duration::from_secs(2));
                        self.injected.note(fault);
                    }
                    ground.postgres.stop(Stop::Immediate)?;
                    ground.postgres.start_again()?;
                }
            }
            Fault::Outage { for_ms } => {
                ground.postgres.stop(Stop::Immediate)?;
                self.nodes.iter().for_each(|node| self.expect_no_steps(node, begun, fault));
                sleep_until(begun + Duration::from_millis(*for_ms));
                ground.postgres.start_again()?;
            }
            Fault::CutAll { for_ms } => {
                let ports = ground.shared().ports;
                for node in 0..NODES {
                    ground.network.cut(node, Cut::Full, &ports)?;
                }
                sleep_until(begun + Duration::from_millis(*for_ms));
                for node in 0..NODES {
                    ground.network.heal(node)?;
                }
            }
            Fault::Renewals { for_ms } => {
                let order = Order { moment: Moment::Before, about: Some("Renews a lease"), times: u32::MAX };
                ground.proxies.iter().for_each(|proxy| proxy.order(Some(order.clone())));
                sleep_until(begun + Duration::from_millis(*for_ms));
                ground.proxies.iter().for_each(|proxy| proxy.order(None));
            }
            Fault::Deaf { for_ms } => {
                ground.proxies.iter().for_each(|proxy| proxy.deafen(true));
                sleep_until(begun + Duration::from_millis(*for_ms));
                ground.proxies.iter().for_each(|proxy| proxy.deafen(false));
            }
            Fault::SubmitCrash => self.person.submit_and_die(&self.dir.path().join("passed"))?,
            Fault::Rest { for_ms } => sleep_until(begun + Duration::from_millis(*for_ms)),
            Fault::Kill { .. }
            | Fault::Freeze { .. }
            | Fault::FreezeAll { .. }
            | Fault::Cut { .. }
            | Fault::Flap { .. }
            | Fault::Answers { .. }
            | Fault::Claims { .. }
            | Fault::Crash { .. } => {}
        }
        Ok(())
    }

    /// A lease later nothing may run any more that was begun under it. Nobody can have renewed since the fault.
    fn expect_no_steps(&self, node: &Node, begun: Instant, fault: &Fault) {
        sleep_until(begun + LEASE + SLACK / 2);
        let left = node.steps();
        if !left.is_empty() {
            let left: Vec<String> =
                left.into_iter().map(|(pid, words)| format!("{} ({words})", pid.as_raw_nonzero())).collect();
            self.find(format!("alive on {} a lease after {fault}: {}", node.name(), left.join(", ")));
        }
    }

    /// Everything is healed: now all runs have to end, and dead sessions have to go.
    fn settle(&mut self) -> Result<()> {
        let until = Instant::now() + self.case.patience;
        let open = "SELECT count(*) FROM runs WHERE status IN ('queued', 'running')";
        while Instant::now() < until {
            if self.store.count(open)? == 0 && self.living() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        let (open, sessions) = (self.store.count(open)?, self.store.count("SELECT count(*) FROM sessions")?);
        self.find(format!(
            "{:?} after everything was healed {open} runs have not ended, and there are {sessions} sessions",
            self.case.patience
        ));
        Ok(())
    }

    /// Nodes are asked to stop; then nothing may be left of them.
    fn end(&mut self) -> Result<()> {
        self.nodes.iter().for_each(|node| node.stop());
        for node in &self.nodes {
            match node.wait(Duration::from_secs(20)) {
                Some(Some(0)) => {}
                Some(code) => {
                    self.find(format!("{} stopped with {code:?}: {}", node.name(), last_line(&node.said())))
                }
                None => self.find(format!("{} did not stop within 20 s", node.name())),
            }
            if node.said().contains("panicked") {
                self.find(format!("{} panicked", node.name()));
            }
        }
        drop(self.keeper.take());
        if let Err(left) = processes::wait_until_gone(self.person.mark(), Duration::from_secs(5)) {
            self.find(format!("still alive although nobody owns it: {}", left.join(", ")));
        }
        Ok(())
    }

    fn look(&mut self) -> Result<Report> {
        let mut findings = std::mem::take(&mut *self.findings.lock().expect("nobody panics with it"));
        let known = self.person.submitted();
        let (mut flows, mut keys) = (BTreeMap::new(), BTreeSet::new());
        let rows = Rows::read(&self.store)?;
        for submitted in known {
            // Who died with the commit does not know the run; its key does.
            let by_key = || {
                rows.runs
                    .iter()
                    .find(|run| run.key.as_deref() == Some(&submitted.key))
                    .map(|run| run.id.clone())
            };
            if let Some(run) = submitted.run.clone().or_else(by_key) {
                flows.insert(run, submitted.flow);
            }
            keys.insert(submitted.key);
        }
        let text = fs::read_to_string(self.dir.path().join("ledger"))?;
        let ledger = Ledger::parse(&text, &mut findings);
        let story = Story::read(&ledger, &flows, &mut findings);
        let told = Told { flows: &flows, keys: &keys, offset_ms: self.offset_ms };
        findings.extend(check::check(&rows, &story, &told));
        let times = self.injected.times.lock().expect("nobody panics with it").clone();
        let recoveries = check::recoveries(&rows, &story, &told, &times);
        let every = rows.runs.len().div_ceil(MAX_REPLAYS).max(1);
        for run in rows.runs.iter().step_by(every) {
            let replay = self.person.laneway(&["replay", &run.id], &[]).output()?;
            if !replay.status.success() {
                findings.push(String::from_utf8_lossy(&replay.stdout).trim().replace('\n', " "));
            }
        }
        let doctor = self.person.laneway(&["doctor"], &[]).output()?;
        if !doctor.status.success() {
            findings.push(format!(
                "doctor: {}",
                String::from_utf8_lossy(&doctor.stdout).trim().replace('\n', " ")
            ));
        }
        let passed = fs::read_to_string(self.dir.path().join("passed")).unwrap_or_default();
        Ok(Report {
            runs: rows.runs.len(),
            tasks: rows.tasks.len(),
            lost: rows.attempts.iter().filter(|attempt| attempt.outcome == "lost").count(),
            injected: std::mem::take(&mut *self.injected.kinds.lock().expect("nobody panics with it")),
            findings,
            recoveries,
            deaths: passed.lines().filter_map(|line| Some(line.strip_prefix("died ")?.to_owned())).collect(),
            kept: None,
            took: Duration::ZERO,
            recovered: None,
        })
    }

    fn find(&self, finding: String) {
        self.findings.lock().expect("nobody panics with it").push(finding);
    }

    fn last_words(&self) -> String {
        let words = self.nodes.iter().map(|node| format!("{}: {}", node.name(), last_line(&node.said())));
        words.collect::<Vec<_>>().join(" / ")
    }
}

fn last_line(said: &str) -> String {
    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing").to_owned()
}

fn flows(load: Load, dice: &mut Dice) -> Vec<Flow> {
    let many = |count: u32, flow: Flow| vec![flow; count as usize];
    match load {
        Load::Random(count) => (0..count).map(|_| Flow::random(dice)).collect(),
        Load::Crowd(count) => many(count, Flow::crowd()),
        Load::Long(count) => many(count, Flow::long(120)),
        Load::Chain(count) => many(count, Flow::chain()),
        Load::Contended { runs, .. } => (0..runs).map(|_| Flow::contended(dice)).collect(),
    }
}

/// Waits for those that are wanted; the others go on.
fn join<'s>(
    under_way: Vec<(usize, ScopedJoinHandle<'s, Result<()>>)>,
    is_wanted: impl Fn(usize) -> bool,
) -> Result<Vec<(usize, ScopedJoinHandle<'s, Result<()>>)>> {
    let (wanted, others): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|(node, _)| is_wanted(*node));
    for (_, thread) in wanted {
        thread.join().expect("a fault does not panic")?;
    }
    Ok(others)
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

const _: () = assert!(PROXIED == NODES, "notifications are lost in proxies, and all nodes have to be deaf");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_is_printed_can_be_typed_again() {
        let loads = [
            Load::Random(12),
            Load::Crowd(6),
            Load::Long(3),
            Load::Chain(8),
            Load::Contended { runs: 40, submitters: 6 },
        ];
        for load in loads {
            assert_eq!(load.to_string().parse::<Load>().expect("it was printed"), load);
        }
        assert!("random:0".parse::<Load>().is_err());
        assert!("contended:40".parse::<Load>().is_err());
    }
}
