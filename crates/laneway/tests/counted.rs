//! What a task may cost, in things that can be counted: commits, statements, bytes of WAL and fsyncs. Times
//! belong to `bench/`, never here. The program runs as a user runs it, and its store tells what its writer did
//! (`laneway-store/src/sqlite/counts.rs`); fsyncs are counted by `strace` in a second run, since that slows, and fewer
//! tasks share a commit then. Allocations are counted in `laneway-engine/tests/allocations.rs`. Bounds are what was measured
//! and about two fifths more.

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A page of WAL with its frame's header.
const FRAME: f64 = 4096.0 + 24.0;

/// What a commit costs beside its tasks: begin and end, the clock, the run's row. Measured: 9.
const STATEMENTS_PER_COMMIT: f64 = 10.0;
/// The same in the WAL: the pages of the run, of the clock, and the last ones of each table and index.
/// Measured: 7.
const WAL_PER_COMMIT: f64 = 8.0 * FRAME;

/// What a run cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    tasks: f64,
    commits: f64,
    /// Starts that were told apart from their end, because the step took long on a busy machine. Each may have
    /// had a commit of its own, so they are left out where commits are judged.
    slow_starts: f64,
    statements: f64,
    wal_bytes: f64,
    /// Fsyncs beyond the commits of a run under strace.
    syncs_beyond_commits: f64,
}

/// What a task may cost beside its share of the commits. How many tasks share a commit differs from run to
/// run; this does not.
#[derive(Debug, Clone, Copy)]
struct Bound {
    commits: f64,
    statements: f64,
    wal_bytes: f64,
}

impl Cost {
    fn assert_within(self, bound: Bound) {
        let Self { tasks, commits, slow_starts, statements, wal_bytes, syncs_beyond_commits } = self;
        // What a run costs in any case: its session begins and ends, its submit, its first claim. Measured:
        // 4.
        const ONCE: f64 = 6.0;
        assert!(commits - slow_starts <= bound.commits * tasks + ONCE, "commits: {self:?}");
        assert!(
            statements <= bound.statements * tasks + STATEMENTS_PER_COMMIT * commits,
            "statements: {self:?}"
        );
        assert!(wal_bytes <= bound.wal_bytes * tasks + WAL_PER_COMMIT * commits, "bytes of WAL: {self:?}");
        // One for each commit; the rest makes the store, its directory and its first checkpoint.
        assert!(syncs_beyond_commits <= 20.0, "fsyncs: {self:?}");
    }

    fn statements_beside_commits(self) -> f64 {
        (self.statements - STATEMENTS_PER_COMMIT * self.commits) / self.tasks
    }

    /// By how much it differs from what its tasks and commits should have written.
    fn wal_against(self, bound: Bound) -> f64 {
        self.wal_bytes / (bound.wal_bytes * self.tasks + WAL_PER_COMMIT * self.commits)
    }
}

/// A workflow of steps that do nothing.
struct Graph {
    tasks: usize,
    yaml: String,
}

impl Graph {
    fn flat(tasks: usize) -> Self {
        Self::new(8, (0..tasks).map(|task| (format!("t{task}"), String::new())))
    }

    fn chain(tasks: usize) -> Self {
        let needs = |task: usize| task.checked_sub(1).map_or(String::new(), |before| format!("t{before}"));
        Self::new(2, (0..tasks).map(|task| (format!("t{task}"), needs(task))))
    }

    /// One step with so many items.
    fn items(tasks: usize) -> Self {
        let step = format!("  each: {{for_each: '${{{{ {tasks} | range }}}}', command: [/bin/true]}}\n");
        Self { tasks, yaml: format!("max_parallel: 8\nsteps:\n{step}") }
    }

    /// Every task of a level needs all of the level before.
    fn levels(levels: usize, width: usize) -> Self {
        let name = |level: usize, place: usize| format!("l{level}_{place}");
        let needs = |level: usize| match level.checked_sub(1) {
            None => String::new(),
            Some(before) => (0..width).map(|place| name(before, place)).collect::<Vec<_>>().join(", "),
        };
        let places = (0..levels).flat_map(|level| (0..width).map(move |place| (level, place)));
        Self::new(8, places.map(|(level, place)| (name(level, place), needs(level))))
    }

    fn new(at_once: usize, steps: impl Iterator<Item = (String, String)>) -> Self {
        let mut graph = Self { tasks: 0, yaml: format!("max_parallel: {at_once}\nsteps:\n") };
        for (name, needs) in steps {
            writeln!(graph.yaml, "  {name}: {{needs: [{needs}], command: [/bin/true]}}")
                .expect("a string takes everything");
            graph.tasks += 1;
        }
        graph
    }

    /// Runs it twice, the second time under strace.
    fn run(&self) -> Cost {
        let cost = self.run_unobserved();
        let dir = tempfile::tempdir().expect("a directory");
        let calls = dir.path().join("calls");
        let mut command = Command::new("strace");
        // Only what is counted stops: everything else runs at its own speed.
        command.args(["-f", "--seccomp-bpf", "-c", "-U", "calls,name", "-e", "trace=fsync,fdatasync", "-o"]);
        command.arg(&calls).arg(env!("CARGO_BIN_EXE_laneway"));
        let observed = self.run_by(command, dir.path());
        Cost { syncs_beyond_commits: syncs(&calls) - observed.commits, ..cost }
    }

    fn run_unobserved(&self) -> Cost {
        let dir = tempfile::tempdir().expect("a directory");
        self.run_by(Command::new(env!("CARGO_BIN_EXE_laneway")), dir.path())
    }

    fn run_by(&self, mut command: Command, dir: &Path) -> Cost {
        std::fs::write(dir.join("graph.yaml"), &self.yaml).expect("written");
        let output = command
            .args(["run", "--json", "graph.yaml"])
            .env("LANEWAY_LOG", "laneway_store::counts=debug")
            .current_dir(dir)
            .output()
            .expect("strace is installed (Debian: apt-get install strace); `cargo xtask check` brings it");
        let told = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{told}");
        let count = |name: &str| number_after(&told, name);
        Cost {
            tasks: self.tasks as f64,
            commits: count(" commits="),
            slow_starts: slow_starts(&String::from_utf8(output.stdout).expect("text")),
            statements: count(" statements="),
            wal_bytes: count(" wal_frames=") * FRAME,
            syncs_beyond_commits: 0.0,
        }
    }
}

/// How many steps were told to have started before they were told to have ended.
fn slow_starts(events: &str) -> f64 {
    let mut started = HashMap::new();
    let mut slow = 0.0;
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).expect("an event");
        match event["event"].as_str() {
            Some("task_started") => drop(started.insert(event["step"].clone(), event["at"].clone())),
            Some("task_finished") if started.get(&event["step"]) != Some(&event["at"]) => slow += 1.0,
            _ => {}
        }
    }
    slow
}

fn number_after(told: &str, name: &str) -> f64 {
    let found = told.split(name).nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    found.unwrap_or_else(|| panic!("the writer told no `{name}`: {told}"))
}

/// From strace's summary: a line a call, its number first.
fn syncs(summary: &Path) -> f64 {
    let text = std::fs::read_to_string(summary).expect("strace wrote its summary");
    let lines = text.lines().filter(|line| line.trim_end().ends_with("sync"));
    let counts = lines.map(|line| line.split_whitespace().next().and_then(|calls| calls.parse::<f64>().ok()));
    counts.sum::<Option<f64>>().unwrap_or_else(|| panic!("strace's summary is not as expected: {text}"))
}

/// Tasks that wait for nobody: claim, start and finish with two events and an attempt.
const FLAT: Bound = Bound {
    // Measured: 0.28. A finish commits for several tasks.
    commits: 0.45,
    // Measured: 9.4.
    statements: 13.0,
    // Measured on a busy machine: 1.5 kB. The more tasks share a commit, the more of the pages are theirs.
    wal_bytes: 7_000.0,
};

#[test]
fn a_flat_run_costs_no_more_than_it_did() {
    Graph::flat(200).run().assert_within(FLAT);
}

#[test]
fn a_step_of_a_chain_costs_one_commit() {
    Graph::chain(50).run().assert_within(Bound {
        // The finish of a step makes its successor available and claims it, all in one.
        commits: 1.0,
        // Measured: 17. Each step has a needs set of its own to count down, and a gate to open.
        statements: 22.0,
        // Measured: 3.5 kB.
        wal_bytes: 7_000.0,
    });
}

#[test]
fn a_task_that_needs_ten_others_costs_no_more_than_it_did() {
    Graph::levels(5, 10).run().assert_within(Bound {
        // Measured: 0.68.
        commits: 0.95,
        // Measured: 14. Ten needs are one set, counted down once for each task and not once for each arrow.
        statements: 17.0,
        // Measured on a busy machine: 0.6 kB.
        wal_bytes: 5_000.0,
    });
}

#[test]
fn a_task_costs_the_same_among_two_hundred_as_among_two_thousand() {
    let (few, many) = (Graph::flat(200).run_unobserved(), Graph::flat(2_000).run_unobserved());
    let statements = many.statements_beside_commits() / few.statements_beside_commits();
    assert!(statements < 1.2, "statements a task grew by {statements:.2}: {few:?}, {many:?}");
    let wal = many.wal_against(FLAT) / few.wal_against(FLAT);
    assert!(wal < 1.2, "bytes of WAL a task grew by {wal:.2}: {few:?}, {many:?}");
}

/// Its countdown is read and written once in a commit, and its batches cost little for each of their items.
#[test]
fn an_item_costs_at_most_a_fifth_more_than_a_step_of_a_flat_run() {
    let (flat, items) = (Graph::flat(2_000).run_unobserved(), Graph::items(2_000).run_unobserved());
    let statements = items.statements_beside_commits() / flat.statements_beside_commits();
    assert!(statements < 1.2, "statements of an item are {statements:.2} of a step's: {flat:?}, {items:?}");
    let wal = items.wal_against(FLAT) / flat.wal_against(FLAT);
    assert!(wal < 1.2, "bytes of WAL of an item are {wal:.2} of a step's: {flat:?}, {items:?}");
    Graph::items(200).run_unobserved().assert_within(FLAT);
}

#[test]
fn an_item_costs_the_same_among_five_hundred_as_among_five_thousand() {
    let (few, many) = (Graph::items(500).run_unobserved(), Graph::items(5_000).run_unobserved());
    let statements = many.statements_beside_commits() / few.statements_beside_commits();
    assert!(statements < 1.2, "statements of an item grew by {statements:.2}: {few:?}, {many:?}");
}

/// What a submitted run wrote. Statements and commits are left out: a start that takes long has a
/// commit of its own, and views make starts longer.
#[derive(Debug, Clone, Copy)]
struct Submitted {
    tasks: f64,
    /// Of all tables.
    rows: f64,
    /// Size of the store, with its indexes.
    bytes: f64,
    /// Fsyncs beyond the commits of a run under strace.
    syncs_beyond_commits: f64,
    layers: f64,
    layer_files: f64,
    /// Bytes of packed layers, in rows and in files.
    packed: f64,
}

impl Submitted {
    /// A chain of steps with this script each, twice: the second time under strace.
    fn chain(tasks: usize, script: &str, more: &str) -> Self {
        let mut yaml = format!("{more}steps:\n");
        for task in 0..tasks {
            let needs = task.checked_sub(1).map_or(String::new(), |before| format!("t{before}"));
            writeln!(yaml, "  t{task}: {{needs: [{needs}], run: '{script}'}}")
                .expect("a string takes everything");
        }
        let (cost, _) = Self::run_by(Command::new(env!("CARGO_BIN_EXE_laneway")), &yaml, tasks);
        let dir = tempfile::tempdir().expect("a directory");
        let calls = dir.path().join("calls");
        let mut command = Command::new("strace");
        command.args(["-f", "--seccomp-bpf", "-c", "-U", "calls,name", "-e", "trace=fsync,fdatasync", "-o"]);
        command.arg(&calls).arg(env!("CARGO_BIN_EXE_laneway"));
        let observed = Self::run_by(command, &yaml, tasks);
        Self { syncs_beyond_commits: syncs(&calls) - observed.1, ..cost }
    }

    /// Returns the commits of the worker as well.
    fn run_by(mut worker: Command, yaml: &str, tasks: usize) -> (Self, f64) {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("graph.yaml"), yaml).expect("written");
        let laneway = |args: &[&str]| {
            let output =
                Command::new(env!("CARGO_BIN_EXE_laneway")).args(args).current_dir(dir.path()).output();
            let output = output.expect("the program starts");
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        laneway(&["submit", "graph.yaml"]);
        let is_traced = worker.get_program() == "strace";
        worker.args(["worker", "--shutdown-grace", "1s"]).env("LANEWAY_LOG", "laneway_store::counts=debug");
        worker.env("LANEWAY_EXIT_WITH_PARENT", "true").current_dir(dir.path());
        let worker = worker.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        laneway(&["watch", "last"]);
        let mut pid = worker.id().cast_signed();
        if is_traced {
            // strace goes on until its child has ended.
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.expect("a list");
            pid = children.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("a child");
        }
        kill_process(Pid::from_raw(pid).expect("a process"), Signal::TERM).expect("it lives");
        let told = worker.wait_with_output().expect("it ends").stderr;
        let told = String::from_utf8(told).expect("text");
        let commits = number_after(&told, " commits=");
        let home = dir.path().join(".laneway");
        let store = rusqlite::Connection::open(home.join("laneway.db")).expect("the store");
        let number = |sql: &str| {
            let found = store.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
            found.expect(sql).unwrap_or(0) as f64
        };
        let mut tables =
            store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").expect("a statement");
        let tables = tables.query_map([], |row| row.get::<_, String>(0)).expect("rows");
        let tables: Vec<String> = tables.collect::<Result<_, _>>().expect("names");
        let rows = tables.iter().map(|table| number(&format!("SELECT count(*) FROM {table}"))).sum();
        let apart = number("SELECT count(*) FROM layers WHERE packed IS NULL");
        let sizes = std::fs::read_dir(home.join("artifacts")).into_iter().flatten().flatten();
        let in_files: u64 = match apart {
            0.0 => 0,
            _ => sizes.filter_map(|file| file.metadata().ok()).map(|data| data.len()).sum(),
        };
        let cost = Self {
            tasks: tasks as f64,
            rows,
            bytes: number("PRAGMA page_count") * number("PRAGMA page_size"),
            syncs_beyond_commits: 0.0,
            layers: number("SELECT count(*) FROM layers"),
            layer_files: number("SELECT count(*) FROM layer_files"),
            packed: number("SELECT sum(length(packed)) FROM layers") + in_files as f64,
        };
        (cost, commits)
    }

    /// Rows for each step that another run does not have. What the worker does by the clock differs
    /// by a few.
    fn rows_beyond(self, other: Self) -> f64 {
        ((self.rows - other.rows).abs() - 5.0).max(0.0) / self.tasks
    }
}

#[test]
fn a_submitted_step_that_changes_no_file_writes_as_much_as_one_without_files() {
    let without = Submitted::chain(50, "true", "workspace: none\n");
    let none = Submitted::chain(50, "true", "");
    assert_eq!((none.layers, none.layer_files, none.packed), (0.0, 0.0, 0.0), "{none:?}");
    assert!(none.rows_beyond(without) <= 0.0, "{none:?}, {without:?}");
    assert!((none.bytes - without.bytes).abs() <= 10.0 * FRAME, "{none:?}, {without:?}");
    assert!(none.syncs_beyond_commits <= without.syncs_beyond_commits + 5.0, "{none:?}, {without:?}");
}

#[test]
fn a_submitted_step_that_writes_one_file_writes_one_row_more() {
    let none = Submitted::chain(50, "true", "");
    let one = Submitted::chain(50, "echo content > $LANEWAY_TASK", "");
    assert_eq!((one.layers, one.layer_files), (50.0, 0.0), "{one:?}");
    // Measured: 150 bytes.
    assert!(one.packed <= 300.0 * one.tasks, "{one:?}");
    assert!(one.rows_beyond(none) <= 1.0, "{one:?}, {none:?}");
    assert!(one.bytes - none.bytes <= 1_000.0 * one.tasks, "{one:?}, {none:?}");
    // It is in the row, which commits with the end of the step.
    assert!(one.syncs_beyond_commits <= none.syncs_beyond_commits + 5.0, "{one:?}, {none:?}");
}

#[test]
fn a_submitted_step_that_writes_a_thousand_files_writes_two_rows_more() {
    let script = "for n in $(seq 1000); do echo $n > $LANEWAY_TASK-$n; done";
    let many = Submitted::chain(5, script, "");
    let none = Submitted::chain(5, "true", "");
    // The layer, and the file that has it.
    assert_eq!((many.layers, many.layer_files), (5.0, 5.0), "{many:?}");
    assert!(many.rows_beyond(none) <= 2.0, "{many:?}, {none:?}");
    // Measured: 79 kB.
    assert!(many.packed <= 100_000.0 * many.tasks, "{many:?}");
    assert!(many.bytes - none.bytes <= 1_000.0 * many.tasks + 10.0 * FRAME, "{many:?}, {none:?}");
    // That file is on the disk before the row is. Measured: 3.
    assert!(many.syncs_beyond_commits <= none.syncs_beyond_commits + 4.0 * many.tasks, "{many:?}, {none:?}");
}
