//! `kill -9` at random moments, resumed each time until the run ends. The steps write a ledger outside of
//! Laneway: nothing may be lost, nothing may run again whose finish was committed, and nothing of an attempt may
//! still run when the next one starts, or a step behind it.

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const KILLS: usize = 50;

/// A task that is lost more often fails with reason `lost`, as it should.
const KILLS_PER_RUN: usize = 3;

const STEPS: usize = 16;

#[test]
fn killed_runs_lose_nothing_and_repeat_nothing_that_was_committed() {
    let mut dice = Dice::new();
    println!("seed {}", dice.0);
    let mut kills = 0;
    while kills < KILLS {
        let round = Round::new();
        let usual = round.usual_time();
        let mut killed_here = 0;
        loop {
            // Killed after the last commit, the run has ended all the same.
            let Some(mut laneway) = round.start() else { break };
            let wants_kill = killed_here < KILLS_PER_RUN && kills < KILLS;
            if wants_kill {
                let moment = Instant::now() + usual.mul_f64(dice.fraction() * 1.1);
                if !ended_before(&mut laneway, moment) {
                    laneway.kill().expect("it is ours");
                    laneway.wait().expect("it is ours");
                    kills += 1;
                    killed_here += 1;
                    continue;
                }
            }
            let output = laneway.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            break;
        }
        round.check();
    }
}

/// One run and all of its resumptions.
struct Round {
    dir: tempfile::TempDir,
}

impl Round {
    fn new() -> Self {
        let round = Self { dir: tempfile::tempdir().expect("a directory") };
        round.write_workflow();
        round
    }

    /// Four stages, so that a kill meets tasks of every state. Each step tells the ledger when it starts and when
    /// it ends, in lines short enough that the system appends them whole; and it leaves a daemon that tells the
    /// ledger that it lives.
    fn write_workflow(&self) {
        let mut yaml = String::from("name: ledger\nmax_parallel: 3\nsteps:\n");
        for step in 0..STEPS {
            let needs: Vec<String> = needs_of(step).iter().map(|step| format!("s{step}")).collect();
            let tell = |what| format!("echo {what} s{step} $LANEWAY_ATTEMPT >> ledger");
            let daemon = format!("setsid sh -c \"while :; do {}; sleep 0.005; done\" &", tell("beat"));
            yaml.push_str(&format!(
                "  s{step}: {{needs: [{}], run: '{}; {daemon} sleep 0.02; {}'}}\n",
                needs.join(", "),
                tell("start"),
                tell("end")
            ));
        }
        std::fs::write(self.path().join("ledger.yaml"), yaml).expect("written");
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn laneway(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// How long the run takes when nobody disturbs it, elsewhere.
    fn usual_time(&self) -> Duration {
        let begun = Instant::now();
        let output =
            self.laneway(&["run", "ledger.yaml", "--store", "other/laneway.db"]).output().expect("it runs");
        assert!(output.status.success());
        std::fs::remove_file(self.path().join("ledger")).expect("the steps wrote it");
        begun.elapsed()
    }

    /// Starts the run, or resumes it if a run was acknowledged before; `None` if that has ended.
    fn start(&self) -> Option<Child> {
        let runs = self.laneway(&["runs", "--json"]).output().expect("it runs");
        let known: Value = serde_json::from_slice(&runs.stdout).unwrap_or_default();
        let args: &[&str] = match known[0]["status"].as_str() {
            None => &["run", "ledger.yaml"],
            Some("running") => &["run", "--resume", "last"],
            Some(_) => return None,
        };
        Some(self.laneway(args).spawn().expect("it starts"))
    }

    fn check(&self) {
        let show = self.laneway(&["show", "last", "--json"]).output().expect("it runs");
        let run: Value = serde_json::from_slice(&show.stdout).expect("JSON");
        assert_eq!(run["status"], "succeeded", "{run:#}");
        let ledger = std::fs::read_to_string(self.path().join("ledger")).expect("a ledger");
        let mut starts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut ends: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for line in ledger.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, step, attempt] = words[..] else { panic!("a torn line: {line}") };
            let attempt: u64 = attempt.parse().expect("a number");
            match what {
                "start" => starts.entry(step.to_owned()).or_default().push(attempt),
                "end" => ends.entry(step.to_owned()).or_default().push(attempt),
                "beat" => {
                    let number: usize = step[1..].parse().expect("a number");
                    let is_over = starts[step].iter().any(|later| *later > attempt)
                        || (0..STEPS)
                            .filter(|later| needs_of(*later).contains(&number))
                            .any(|later| starts.contains_key(&format!("s{later}")));
                    assert!(!is_over, "{step}: attempt {attempt} still ran\n{ledger}");
                }
                other => panic!("{other}"),
            }
        }
        let tasks = run["tasks"].as_array().expect("tasks");
        assert_eq!(tasks.len(), STEPS);
        for task in tasks {
            let step = task["step"].as_str().expect("a name");
            let committed = task["attempt"].as_u64().expect("a number");
            assert_eq!(task["status"], "succeeded", "{step}");
            assert!(
                ends[step].contains(&committed),
                "{step}: the attempt that was committed never ended\n{ledger}"
            );
            assert!(starts[step].iter().all(|attempt| *attempt <= committed), "{step} ran again\n{ledger}");
            let mut once = starts[step].clone();
            once.dedup();
            assert_eq!(once, starts[step], "{step}: an attempt started twice\n{ledger}");
        }
        let replay = self.laneway(&["replay", "last"]).output().expect("it runs");
        assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stdout));
    }
}

/// The steps that a step waits for: two of the stage before.
fn needs_of(step: usize) -> Vec<usize> {
    match step / 4 {
        0 => Vec::new(),
        stage => vec![(stage - 1) * 4 + step % 4, (stage - 1) * 4 + (step + 1) % 4],
    }
}

/// Whether it ended by itself before the moment came.
fn ended_before(child: &mut Child, moment: Instant) -> bool {
    loop {
        if child.try_wait().expect("it is ours").is_some() {
            return true;
        }
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        // The moment of the kill is what is waited for here.
        std::thread::park_timeout(left.min(Duration::from_millis(5)));
    }
}

/// A linear congruential generator: random enough, and its seed says it all.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let seed = std::env::var("LANEWAY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        Self(seed.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761))
    }

    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
