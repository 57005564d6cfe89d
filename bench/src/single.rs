//! Workloads of Laneway alone: how its cost grows, what it takes while it waits, and how soon a step starts.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::drive::enqueue::{Samples, moment, read};
use crate::graph::{Graph, Shape};
use crate::meter::{Job, Sample, Timed};
use crate::report::note;
use crate::stats::{Spread, percentile, sorted};
use crate::subject::{Places, Subject, fresh_dir, text};

/// A quantity, and what a task costs there.
#[derive(Debug, Serialize)]
pub(crate) struct Grown {
    /// Tasks in the run, or finished runs in the store.
    pub(crate) size: usize,
    pub(crate) tasks: usize,
    pub(crate) wall_s: Spread,
    pub(crate) cpu_ms_per_task: Spread,
    pub(crate) to_disk_bytes_per_task: Spread,
}

/// The same flat graph with more and more tasks.
pub(crate) fn growth(sizes: &[usize], rounds: usize, places: &Places) -> Result<Vec<Grown>> {
    let mut jobs = Vec::new();
    for &size in sizes {
        let graph = Graph { shape: Shape::Flat(size), at_once: 8 };
        jobs.push((size, size, Subject::Laneway.prepare(graph, places, &format!("growth-{size}"))?));
    }
    measure_each(&jobs, rounds, "growth")
}

/// The same flat graph in stores with more and more history.
pub(crate) fn history(sizes: &[usize], tasks: usize, rounds: usize, places: &Places) -> Result<Vec<Grown>> {
    let mut jobs = Vec::new();
    for &size in sizes {
        let graph = Graph { shape: Shape::Flat(tasks), at_once: 8 };
        let mut job = Subject::Laneway.prepare(graph, places, &format!("history-{size}"))?;
        // The store stays: a few runs more make no difference to it.
        job.leftovers.clear();
        note(&format!("history: a store with {size} finished runs"));
        make_history(&job.dir, size, places)?;
        jobs.push((size, tasks, job));
    }
    measure_each(&jobs, rounds, "history")
}

fn measure_each(jobs: &[(usize, usize, Job)], rounds: usize, name: &str) -> Result<Vec<Grown>> {
    let mut samples: Vec<Vec<Sample>> = jobs.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        note(&format!("{name}: round {} of {rounds}", round + 1));
        for ((_, _, job), samples) in jobs.iter().zip(&mut samples) {
            samples.push(job.measure()?);
        }
    }
    let grown = jobs.iter().zip(samples).map(|((size, tasks, _), samples)| {
        let spread = |value: &dyn Fn(&Sample) -> f64| {
            Spread::of(samples.iter().map(value)).context("no rounds were run")
        };
        let count = *tasks as f64;
        Ok(Grown {
            size: *size,
            tasks: *tasks,
            wall_s: spread(&|sample| sample.wall_s)?,
            cpu_ms_per_task: spread(&|sample| 1e3 * sample.cpu_s / count)?,
            to_disk_bytes_per_task: spread(&|sample| sample.to_disk as f64 / count)?,
        })
    });
    grown.collect()
}

/// One run as the program makes it, copied in the database: its rows differ in nothing but their keys.
fn make_history(dir: &Path, runs: usize, places: &Places) -> Result<()> {
    fs::write(dir.join("one.yaml"), "steps:\n  only: {command: [/bin/true]}\n").context("one.yaml")?;
    Job::new(dir, &[text(&places.laneway)?, "run", "one.yaml"]).measure()?;
    let mut connection = Connection::open(dir.join(".laneway/laneway.db"))?;
    let copies = i64::try_from(runs)? - 1;
    let transaction = connection.transaction()?;
    for (table, key) in [("runs", "no"), ("tasks", "run_no"), ("attempts", "run_no"), ("events", "run_no")] {
        let columns: Vec<String> = transaction
            .prepare("SELECT name FROM pragma_table_info(?1)")?
            .query_map([table], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let values: Vec<String> = columns
            .iter()
            .map(|column| match column.as_str() {
                name if name == key => format!("{key} + n"),
                // The end of an id is random in a real one; what counts here is that it is another one.
                "id" => "substr(id, 1, 24) || printf('%012x', n * 2654435761 % 281474976710656)".to_owned(),
                "tail" => "printf('%012x', n * 2654435761 % 281474976710656)".to_owned(),
                name => name.to_owned(),
            })
            .collect();
        let (columns, values) = (columns.join(", "), values.join(", "));
        let copy = format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
             INSERT INTO {table} ({columns}) SELECT {values} FROM numbers, {table} WHERE {key} = 1"
        );
        if copies > 0 {
            transaction.execute(&copy, [copies]).with_context(|| format!("{table} cannot be copied"))?;
        }
    }
    transaction.commit()?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// What a run takes whose only step waits.
#[derive(Debug, Serialize)]
pub(crate) struct Idle {
    pub(crate) seconds: f64,
    pub(crate) node_rss_mb: f64,
    pub(crate) warden_rss_mb: f64,
    /// Of both, what they share counted once.
    pub(crate) pss_mb: f64,
    /// Of one core, node and warden together.
    pub(crate) cpu_percent: f64,
}

pub(crate) fn idle(window: Duration, places: &Places) -> Result<Idle> {
    let dir = places.work.join("idle");
    fresh_dir(&dir)?;
    let stamp = dir.join("stamp");
    // The step stamps and sleeps; the run is canceled long before it would end.
    let yaml = "steps:\n  wait: {run: 'echo 1 > stamp; exec sleep 3600'}\n";
    fs::write(dir.join("idle.yaml"), yaml).context("idle.yaml")?;
    let mut child = Job::new(&dir, &[text(&places.laneway)?, "run", "idle.yaml"]).start()?;
    let node = child.id();
    let measured = (|| {
        wait_for(|| stamp.exists())?;
        let processes = processes_of(node)?;
        // What the start left to do is not idleness.
        std::thread::sleep(Duration::from_secs(1));
        let cpu = || sum(&processes, cpu_s);
        let (before, begun) = (cpu()?, Instant::now());
        std::thread::sleep(window);
        let (used, seconds) = (cpu()? - before, begun.elapsed().as_secs_f64());
        let (node_rss_mb, warden_rss_mb) = (rss_mb(node)?, sum(&processes[1..], rss_mb)?);
        let pss_mb = sum(&processes, pss_mb)?;
        Ok(Idle { seconds, node_rss_mb, warden_rss_mb, pss_mb, cpu_percent: 100.0 * used / seconds })
    })();
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TERM).context("the idle run cannot be ended")?;
    child.wait().context("the idle run did not end")?;
    measured
}

/// How soon a step starts.
#[derive(Debug, Serialize)]
pub(crate) struct Enqueue {
    pub(crate) samples: usize,
    /// From submit, in a node that is up, to a process.
    pub(crate) submit_p50_ms: f64,
    pub(crate) submit_p99_ms: f64,
    /// The same to a function.
    pub(crate) function_p50_ms: f64,
    pub(crate) function_p99_ms: f64,
    /// From the start of `laneway run`.
    pub(crate) program_p50_ms: f64,
    pub(crate) program_p99_ms: f64,
    /// The same step started by nobody but us: what starting it takes in any case.
    pub(crate) bare_p50_ms: f64,
    pub(crate) bare_p99_ms: f64,
}

pub(crate) fn enqueue(samples: usize, places: &Places) -> Result<Enqueue> {
    let dir = places.work.join("enqueue");
    fresh_dir(&dir)?;
    let (own, laneway, stamp) = (text(&places.own)?, text(&places.laneway)?, text(&places.stamp)?);
    let inside = Job::new(&dir, &[own, "drive", "enqueue", &samples.to_string(), laneway, stamp]);
    let told: Samples = serde_json::from_slice(&inside.stdout()?).context("the driver told no samples")?;
    let file = dir.join("stamp");
    let stamp = [stamp, text(&file)?];
    let yaml = format!("steps:\n  stamp: {{command: {}}}\n", serde_json::to_string(&stamp)?);
    fs::write(dir.join("stamp.yaml"), yaml).context("stamp.yaml")?;
    let program = Job::new(&dir, &[laneway, "run", "stamp.yaml"]);
    let bare = Job::new(&dir, &stamp);
    let (mut programs, mut bares) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        for (job, took) in [(&program, &mut programs), (&bare, &mut bares)] {
            let begun = moment();
            job.measure()?;
            took.push((read(&file)? - begun) as f64 / 1e6);
        }
    }
    let [submits, functions, programs, bares] =
        [told.process_ms, told.function_ms, programs, bares].map(sorted);
    let at = |values: &[f64], share| percentile(values, share).context("nothing was measured");
    Ok(Enqueue {
        samples,
        submit_p50_ms: at(&submits, 0.5)?,
        submit_p99_ms: at(&submits, 0.99)?,
        function_p50_ms: at(&functions, 0.5)?,
        function_p99_ms: at(&functions, 0.99)?,
        program_p50_ms: at(&programs, 0.5)?,
        program_p99_ms: at(&programs, 0.99)?,
        bare_p50_ms: at(&bares, 0.5)?,
        bare_p99_ms: at(&bares, 0.99)?,
    })
}

/// No-op tasks, a second.
#[derive(Debug, Serialize)]
pub(crate) struct Noop {
    pub(crate) tasks: usize,
    pub(crate) group: usize,
    pub(crate) bare_per_s: Spread,
    pub(crate) store_per_s: Spread,
    pub(crate) function_per_s: Spread,
}

pub(crate) fn noop(tasks: usize, groups: &[usize], rounds: usize, places: &Places) -> Result<Vec<Noop>> {
    let job = |driver: &str, group: usize| -> Result<Job> {
        let dir = places.work.join(format!("{driver}-{group}"));
        fresh_dir(&dir)?;
        let (tasks, group) = (tasks.to_string(), group.to_string());
        let mut words = vec![text(&places.own)?, "drive", driver, &tasks, &group];
        if driver == "noop-function" {
            words.push(text(&places.laneway)?);
        }
        let mut job = Job::new(&dir, &words);
        job.timed = Timed::Inside;
        job.leftovers = vec![".laneway".to_owned()];
        Ok(job)
    };
    let mut results = Vec::new();
    for &group in groups {
        let jobs = [job("noop-bare", group)?, job("noop-store", group)?, job("noop-function", group)?];
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds {
            note(&format!("noop in groups of {group}: round {} of {rounds}", round + 1));
            for (job, rates) in jobs.iter().zip(&mut rates) {
                rates.push(tasks as f64 / job.measure()?.wall_s);
            }
        }
        let [bare, store, function] = rates.map(|rates| Spread::of(rates).context("no rounds were run"));
        results.push(Noop {
            tasks,
            group,
            bare_per_s: bare?,
            store_per_s: store?,
            function_per_s: function?,
        });
    }
    Ok(results)
}

/// As items of one step, and as a flat graph of as many.
#[derive(Debug, Serialize)]
pub(crate) struct Items {
    pub(crate) tasks: usize,
    pub(crate) items_us: Spread,
    pub(crate) flat_us: Spread,
    /// Round by round, so that a machine that drifts does so for both.
    pub(crate) ratio: Spread,
}

/// Functions that do nothing, 32 at once; which comes first turns with the rounds. Microseconds a task.
pub(crate) fn items(tasks: usize, rounds: usize, places: &Places) -> Result<Items> {
    let job = |kind: &str| -> Result<Job> {
        let dir = places.work.join(format!("items-{kind}"));
        fresh_dir(&dir)?;
        let tasks = tasks.to_string();
        let words = [text(&places.own)?, "drive", "items", kind, &tasks, "32", text(&places.laneway)?];
        let mut job = Job::new(&dir, &words);
        job.timed = Timed::Inside;
        job.leftovers = vec![".laneway".to_owned()];
        Ok(job)
    };
    let jobs = [job("items")?, job("flat")?];
    let mut took = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        note(&format!("items: round {} of {rounds}", round + 1));
        for place in 0..jobs.len() {
            let place = (place + round) % jobs.len();
            took[place].push(1e6 * jobs[place].measure()?.wall_s / tasks as f64);
        }
    }
    let ratios = took[0].iter().zip(&took[1]).map(|(items, flat)| items / flat).collect::<Vec<f64>>();
    let spread = |values: Vec<f64>| Spread::of(values).context("no rounds were run");
    let [items, flat] = took;
    Ok(Items { tasks, items_us: spread(items)?, flat_us: spread(flat)?, ratio: spread(ratios)? })
}

fn wait_for(condition: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > Duration::from_secs(30) {
            bail!("the step did not start within 30 seconds");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Returns the node itself, the guardian of its warden if there is one, and its warden.
pub(crate) fn processes_of(node: u32) -> Result<Vec<u32>> {
    let mut found = vec![node];
    while let Some(pid) = warden_below(found[found.len() - 1])? {
        found.push(pid);
    }
    ensure!(found.len() > 1, "the node has no warden");
    Ok(found)
}

/// Any thread of a process may have started its warden.
fn warden_below(process: u32) -> Result<Option<u32>> {
    for thread in fs::read_dir(format!("/proc/{process}/task")).context("the node is gone")? {
        let children =
            fs::read_to_string(thread?.path().join("children")).context("/proc tells no children")?;
        for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if words.split(|byte| *byte == 0).nth(1) == Some(b"warden") {
                return Ok(Some(pid));
            }
        }
    }
    Ok(None)
}

/// Adds up what is measured of each process.
pub(crate) fn sum(processes: &[u32], measure: fn(u32) -> Result<f64>) -> Result<f64> {
    processes.iter().map(|pid| measure(*pid)).sum()
}

/// CPU seconds of all threads of a process, to the nanosecond.
pub(crate) fn cpu_s(pid: u32) -> Result<f64> {
    let mut nanoseconds = 0_u64;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).context("the process is gone")? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).context("no schedstat here")?;
        nanoseconds += text.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(nanoseconds as f64 / 1e9)
}

pub(crate) fn rss_mb(pid: u32) -> Result<f64> {
    field_mb(pid, "status", "VmRSS:")
}

/// The same, where a page that several processes use is counted in parts: of a node and its warden, one program in memory.
pub(crate) fn pss_mb(pid: u32) -> Result<f64> {
    field_mb(pid, "smaps_rollup", "Pss:")
}

fn field_mb(pid: u32, file: &str, field: &str) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).context("the process is gone")?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
    let kib: f64 = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).context("no number")?;
    Ok(kib * 1024.0 / 1e6)
}
