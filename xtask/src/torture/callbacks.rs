//! Callbacks: the process that has to submit them for an end of a run dies before or behind that,
//! on both databases. Then another process sends them, and the receiver gets one delivery.
//! docs/design/triggers.md.
//!
//! ```text
//!   act: who is armed runs into the point, and dies ─▶ recover: the next `run`, a worker or `serve` ─▶ check
//! ```

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use laneway_torture::{Place as Of, Point};
use serde_json::Value;

use super::WORKERS;
use super::nodes::rows::Store;
use super::place::{Place, wait};
use super::walk::PATIENCE;
use crate::postgres::{Durability, Postgres};
use crate::stage::note;

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// `laneway run`, at the end of its own run.
    Run,
    /// A worker, at the end of a run that was submitted.
    Worker,
    /// A `laneway run` that submits what a dead one left.
    NextRun,
}

/// Who sends the callbacks after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    Run,
    Worker,
    Serve,
}

/// Where each victim dies, and who sends then.
const ROWS: [(Point, Victim, &[Sender]); 7] = [
    (Point::RunOver, Victim::Run, &[Sender::Run, Sender::Worker]),
    (Point::CallbacksOwed, Victim::Run, &[Sender::Run, Sender::Worker, Sender::Serve]),
    (Point::CallbacksMade, Victim::Run, &[Sender::Run, Sender::Worker, Sender::Serve]),
    (Point::CallbacksOwed, Victim::Worker, &[Sender::Run, Sender::Worker]),
    (Point::CallbacksMade, Victim::Worker, &[Sender::Run, Sender::Serve]),
    (Point::CallbacksOwed, Victim::NextRun, &[Sender::Run]),
    (Point::CallbacksMade, Victim::NextRun, &[Sender::Worker]),
];

/// Long enough that a busy machine fences nobody; what a dead process held is free after it.
const LEASE: &str = "4s";

const OTHER: &str = "steps: {a: {run: 'true'}}\n";

#[derive(Debug, Clone, Copy)]
struct Case {
    point: Point,
    victim: Victim,
    sender: Sender,
    is_postgres: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = if self.is_postgres { "Postgres" } else { "SQLite" };
        let Self { point, victim, sender, .. } = self;
        write!(f, "{} of {victim:?}, sent by {sender:?}, {database}", point.name())
    }
}

pub(super) fn walk(program: &Path) -> Result<()> {
    let has_row = |point: &Point| ROWS.iter().any(|(row, ..)| row == point);
    let missing = Point::ALL.iter().find(|point| point.place() == Of::Calling && !has_row(point));
    ensure!(missing.is_none(), "{missing:?} has no row");
    let postgres = Postgres::start(Durability::None)?;
    let cases = cases();
    let deaths = cases.len();
    let cases = Mutex::new(cases.into_iter());
    thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = cases.lock().expect("no case panics while it holds the lock").next();
                let Some(case) = next else { return Ok(()) };
                case.play(program, &postgres).with_context(|| case.to_string())?;
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a case does not panic"))
    })?;
    note(&format!("callbacks: {deaths} deaths around their submission, and each was delivered"));
    Ok(())
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for is_postgres in [false, true] {
        for (point, victim, senders) in ROWS {
            cases.extend(senders.iter().map(|&sender| Case { point, victim, sender, is_postgres }));
        }
    }
    cases
}

impl Case {
    fn play(&self, program: &Path, postgres: &Postgres) -> Result<()> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let place = Place::new(program, true, None)?;
        let receiver = Receiver::start()?;
        let post = format!("hooks: {{finished: [{{post: 'http://{}/told'}}]}}", receiver.address);
        fs::write(place.path("flow.yaml"), format!("{OTHER}{post}\n"))?;
        fs::write(place.path("other.yaml"), OTHER)?;
        let schema = format!("callbacks_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let store = self.is_postgres.then(|| Store::make(postgres.url(), &schema)).transpose()?;
        let mut settings = vec![("LANEWAY_CALLBACK_HOSTS", "127.0.0.1".to_owned())];
        if let Some(store) = &store {
            settings.extend([
                ("LANEWAY_STORE", store.address()),
                ("LANEWAY_LEASE_TTL", LEASE.to_owned()),
                ("LANEWAY_HEARTBEAT_INTERVAL", "300ms".to_owned()),
            ]);
        }
        let play = Play { case: self, place, settings, receiver };
        play.act()?;
        play.recover()?;
        store.map_or(Ok(()), |store| store.remove())
    }
}

struct Play<'a> {
    case: &'a Case,
    place: Place,
    settings: Vec<(&'static str, String)>,
    receiver: Receiver,
}

impl Play<'_> {
    fn act(&self) -> Result<()> {
        let run = ["run", "flow.yaml"];
        let point = self.case.point;
        match self.case.victim {
            Victim::Run => self.dies_at(point, &run)?,
            Victim::Worker => {
                self.succeeds(&["submit", "flow.yaml"])?;
                self.dies_at(point, &["worker", "--exit-with-parent"])?;
            }
            Victim::NextRun => {
                self.dies_at(Point::CallbacksOwed, &run)?;
                fs::remove_file(self.place.path("passed"))?;
                self.dies_when_it_recovers(point)?;
            }
        }
        ensure!(self.receiver.deliveries().is_empty(), "the callback was sent before the death");
        Ok(())
    }

    /// On Postgres the next run submits what is left as soon as the lease of the dead one is over.
    fn dies_when_it_recovers(&self, point: Point) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while self.place.died_at().is_none() {
            ensure!(
                Instant::now() < until,
                "no run comes past {}: {}",
                point.name(),
                self.place.last_words()
            );
            self.end(self.start(&["run", "other.yaml"], Some(point))?)?;
        }
        Ok(())
    }

    fn dies_at(&self, point: Point, args: &[&str]) -> Result<()> {
        self.end(self.start(args, Some(point))?)?;
        ensure!(
            self.place.died_at().as_deref() == Some(point.name()),
            "`laneway {}` does not come past {}: {}",
            args.join(" "),
            point.name(),
            self.place.last_words()
        );
        Ok(())
    }

    fn recover(&self) -> Result<()> {
        let sender = match self.case.sender {
            Sender::Run => None,
            Sender::Worker => Some(self.start(&["worker", "--exit-with-parent"], None)?),
            Sender::Serve => Some(self.start(&["serve", "--listen", "127.0.0.1:0"], None)?),
        };
        let until = Instant::now() + PATIENCE;
        while !self.is_delivered()? {
            ensure!(Instant::now() < until, "no callback is delivered: {}", self.place.last_words());
            match &sender {
                None => self.succeeds(&["run", "other.yaml"])?,
                Some(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
        self.check()?;
        drop(sender);
        Ok(())
    }

    /// Whether all runs have ended, and one of them is that of the callbacks.
    fn is_delivered(&self) -> Result<bool> {
        let runs = self.runs()?;
        let has_ended = runs.iter().all(|run| run["status"] == "succeeded");
        Ok(has_ended && runs.iter().any(|run| run["workflow"] == "flow (succeeded)"))
    }

    fn check(&self) -> Result<()> {
        let runs = self.runs()?;
        let of = |name: &str| -> Vec<&Value> { runs.iter().filter(|run| run["workflow"] == name).collect() };
        let (flows, callbacks) = (of("flow"), of("flow (succeeded)"));
        ensure!((flows.len(), callbacks.len()) == (1, 1), "not one run, and one of its callbacks: {runs:?}");
        let deliveries = self.receiver.deliveries();
        let expected = format!("{}:finished-1", callbacks[0]["run"].as_str().unwrap_or_default());
        ensure!(
            deliveries == [expected.as_str()],
            "the receiver was sent {deliveries:?}, and not {expected} once"
        );
        self.succeeds(&["doctor"])
    }

    fn runs(&self) -> Result<Vec<Value>> {
        let output = self.place.laneway(&["runs", "--json", "--limit", "1000"], &self.settings).output()?;
        let runs: Value = serde_json::from_slice(&output.stdout).context("`laneway runs` prints no JSON")?;
        Ok(runs.as_array().cloned().unwrap_or_default())
    }

    fn start(&self, args: &[&str], crash: Option<Point>) -> Result<Started> {
        let mut arms = self.settings.clone();
        if let Some(point) = crash {
            let passed = self.place.path("passed").to_string_lossy().into_owned();
            arms.extend([("LANEWAY_CRASH", format!("{}:1", point.name())), ("LANEWAY_PASSED", passed)]);
        }
        self.place.start(args, &arms).map(Started)
    }

    fn end(&self, mut process: Started) -> Result<()> {
        ensure!(wait(&mut process.0, PATIENCE)?.is_some(), "it does not end: {}", self.place.last_words());
        Ok(())
    }

    fn succeeds(&self, args: &[&str]) -> Result<()> {
        let output = self.place.laneway(args, &self.settings).output()?;
        ensure!(
            output.status.success(),
            "`laneway {}`: {}{}",
            args.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
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

/// An HTTP server that accepts every request and keeps the names of deliveries.
struct Receiver {
    address: SocketAddr,
    deliveries: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
        let address = listener.local_addr()?;
        let (deliveries, is_over) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicBool>::default());
        let thread = thread::spawn({
            let (deliveries, is_over) = (Arc::clone(&deliveries), Arc::clone(&is_over));
            move || {
                for stream in listener.incoming().flatten() {
                    if is_over.load(Ordering::Acquire) {
                        return;
                    }
                    // A sender that died has cut its request off.
                    if let Ok(delivery) = answer(stream) {
                        deliveries.lock().expect("it holds no panic").push(delivery);
                    }
                }
            }
        });
        Ok(Self { address, deliveries, is_over, thread: Some(thread) })
    }

    fn deliveries(&self) -> Vec<String> {
        self.deliveries.lock().expect("it holds no panic").clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the thread, which waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads a request, accepts it, and returns the name of its delivery.
fn answer(mut stream: TcpStream) -> Result<String> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut delivery) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            None if line.trim_end().is_empty() => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse()?,
            Some((name, value)) if name.eq_ignore_ascii_case("laneway-delivery") => {
                value.clone_into(&mut delivery)
            }
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")?;
    Ok(delivery)
}
