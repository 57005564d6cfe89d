//! A directory of its own for each test, with workflow files in it, and a way to run the program there.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Place {
    dir: TempDir,
}

/// What a command printed and how it ended. As text, whatever differs from run to run is replaced.
pub(crate) struct Outcome {
    line: String,
    dir: PathBuf,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().expect("a temporary directory") }
    }

    /// A place with a workflow file.
    pub(crate) fn with(file: &str, text: &str) -> Self {
        let place = Self::new();
        place.write(file, text);
        place
    }

    /// A place with a workflow whose steps work in the place also when it is submitted.
    pub(crate) fn in_place(file: &str, text: &str) -> Self {
        let place = Self::new();
        let path = place.path("").display().to_string();
        place.write(file, &format!("workspace: {{path: {}}}\n{text}", path.trim_end_matches('/')));
        place
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).expect("the test's file is written");
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("the test's file is there")
    }

    /// A pipe through which a step tells the test how far it is: reading it waits for the step.
    pub(crate) fn pipe(&self, file: &str) {
        let made = Command::new("mkfifo").arg(self.path(file)).status().expect("mkfifo runs");
        assert!(made.success());
    }

    /// The program with arguments, in a clean environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("USER", "ada")
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("LANEWAY_EXIT_WITH_PARENT", "true")
            .stdin(Stdio::null());
        command
    }

    /// Runs `laneway` with a command line that is split at blanks.
    pub(crate) fn laneway(&self, line: &str) -> Outcome {
        let args: Vec<&str> = line.split_whitespace().collect();
        self.outcome(line, self.command(&args))
    }

    pub(crate) fn outcome(&self, line: &str, mut command: Command) -> Outcome {
        let output = command.output().expect("the program starts");
        Outcome::new(line, self.dir.path(), output)
    }

    pub(crate) fn spawn(&self, line: &str) -> Running {
        self.spawn_with(line, &[])
    }

    /// The same with variables beside those of a clean environment.
    pub(crate) fn spawn_with(&self, line: &str, variables: &[(&str, &str)]) -> Running {
        let args: Vec<&str> = line.split_whitespace().collect();
        let mut command = self.command(&args);
        command.envs(variables.iter().copied());
        let child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        Running { line: line.to_owned(), dir: self.dir.path().to_owned(), child: Some(child) }
    }

    /// What a command prints with `--json`, in one object or array.
    pub(crate) fn json(&self, line: &str) -> Value {
        let outcome = self.laneway(line);
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
    }

    /// The status of each task of the last run, as `step=status` words.
    pub(crate) fn statuses(&self) -> String {
        self.statuses_in("last")
    }

    /// The same of the newest run of a workflow, which may not be the last: its hooks are a run
    /// too.
    pub(crate) fn statuses_of(&self, workflow: &str) -> String {
        let runs = self.json("runs --json");
        let mut runs = runs.as_array().expect("a list of runs").iter();
        let run = runs.find(|run| run["workflow"] == workflow).expect("a run of it");
        self.statuses_in(text(&run["run"]))
    }

    fn statuses_in(&self, run: &str) -> String {
        let run = self.json(&format!("show {run} --json"));
        let tasks = run["tasks"].as_array().expect("a list of tasks");
        let word = |task: &Value| format!("{}={}", text(&task["step"]), text(&task["status"]));
        tasks.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// Waits for something that another process brings about.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program that runs beside the test. It is killed if the test fails on its way.
pub(crate) struct Running {
    line: String,
    dir: PathBuf,
    child: Option<Child>,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().expect("it was not waited for yet").id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let child = self.child.as_ref().expect("it was not waited for yet");
        rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).expect("it runs");
    }

    /// Whether it has said what to do about a signal; until then it ends as the system says.
    pub(crate) fn hears(&self, signal: rustix::process::Signal) -> bool {
        let child = self.child.as_ref().expect("it was not waited for yet");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
    }

    /// Waits until a line of stdout contains a text. What was read so far is not part of the outcome.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let stdout = self.child.as_mut().and_then(|child| child.stdout.as_mut()).expect("stdout is a pipe");
        read_to(stdout, text);
    }

    /// The same of stderr.
    pub(crate) fn wait_for_note(&mut self, text: &str) {
        let stderr = self.child.as_mut().and_then(|child| child.stderr.as_mut()).expect("stderr is a pipe");
        read_to(stderr, text);
    }

    pub(crate) fn wait(mut self) -> Outcome {
        let child = self.child.take().expect("it is waited for once");
        Outcome::new(&self.line, &self.dir, child.wait_with_output().expect("it ends"))
    }
}

fn read_to(pipe: &mut impl Read, text: &str) {
    // Byte by byte: a buffer would keep what belongs to the outcome.
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&line).contains(text) {
        if byte == *b"\n" {
            line.clear();
        }
        pipe.read_exact(&mut byte).unwrap_or_else(|error| panic!("`{text}` was never printed: {error}"));
        line.extend(byte);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Outcome {
    fn new(line: &str, dir: &Path, output: Output) -> Self {
        Self {
            line: line.to_owned(),
            dir: dir.to_owned(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        let text = format!(
            "$ laneway {}\nexit code {code}\n----- stdout\n{}----- stderr\n{}",
            self.line, self.stdout, self.stderr
        );
        f.write_str(&steady(&text, &self.dir))
    }
}

/// Replaces ids, times, durations and paths.
pub(crate) fn steady(text: &str, dir: &Path) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut text = text.to_owned();
    for path in [dir.canonicalize().ok(), Some(dir.to_owned())].into_iter().flatten() {
        text = text.replace(&path.display().to_string(), "[dir]");
    }
    let filters = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uuid]".to_owned()),
        (&format!(r"{}:\d+", regex::escape(&host)), "[node]".to_owned()),
        (r"\b[0-9a-f]{64}\b", "[version]".to_owned()),
        (r"\b[0-9a-f]{8}\b", "[id]".to_owned()),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "[time]".to_owned()),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "[date]".to_owned()),
        (r"\b\d\d:\d\d:\d\d\b", "[clock]".to_owned()),
        (r"\b(\d+ms|\d+\.\ds)( *)", "[took]".to_owned()),
        (r"\b(TOOK)( *)", "TOOK".to_owned()),
    ];
    for (pattern, replacement) in filters {
        // Tables are padded by what they hold: the blanks behind a duration and its head go with it.
        let pattern = Regex::new(pattern).expect("a well-formed pattern");
        text = pattern
            .replace_all(&text, |found: &regex::Captures<'_>| {
                let blanks = found.get(2).map_or("", |blanks| if blanks.is_empty() { "" } else { " " });
                format!("{replacement}{blanks}")
            })
            .into_owned();
    }
    text
}
