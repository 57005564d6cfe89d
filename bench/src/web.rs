//! `web`: the page of a run of 10,000 tasks in Chromium, and what Dagu's page makes of the same graph. The measuring is done by
//! `web/bench`, in the browser; owns how it is called, the figures of it and their goals.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::goal::Verdict;
use crate::install;
use crate::meter::program;
use crate::report::note;
use crate::stats::{Spread, percentile, sorted};
use crate::subject::{Peer, Places, fresh_dir};

/// By how much the script heap may grow while every task of the run starts and ends, MB.
const GROWTH_MB: f64 = 150.0;

#[derive(Debug, Serialize)]
pub(crate) struct WebResult {
    pub(crate) tasks: usize,
    pub(crate) chromium: String,
    /// From the navigation to the paint of the graph's first boxes.
    pub(crate) first_paint_ms: Spread,
    /// From the arrival of news of 50 tasks to their paint: with the whole graph in sight, and near.
    pub(crate) update_far_ms: Update,
    pub(crate) update_near_ms: Update,
    pub(crate) panning: Vec<Panned>,
    /// While the run runs.
    pub(crate) busy: Busy,
    pub(crate) dagu: Vec<DaguPage>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Update {
    pub(crate) ms: Spread,
    pub(crate) p95_ms: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Panned {
    pub(crate) view: String,
    pub(crate) frames: Frames,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Frames {
    pub(crate) fps: f64,
    pub(crate) p95_ms: f64,
    pub(crate) longest_ms: f64,
}

/// Bytes of the script heap are those after a collection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Busy {
    pub(crate) status: String,
    pub(crate) seconds: f64,
    pub(crate) events: u64,
    pub(crate) frames: Frames,
    pub(crate) heap_before: f64,
    pub(crate) heap_most: f64,
    pub(crate) heap_after: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct DaguPage {
    pub(crate) steps: usize,
    /// `None`: it drew no step in a minute and a half.
    pub(crate) first_paint_ms: Option<Spread>,
    pub(crate) elements: u64,
    pub(crate) panning: Option<Frames>,
    pub(crate) why: Option<String>,
}

/// As `web/bench/run.bench.ts` tells it.
#[derive(Debug, Deserialize)]
struct Told {
    tasks: usize,
    chromium: String,
    first_paint_ms: Vec<f64>,
    update_far_ms: Vec<f64>,
    update_near_ms: Vec<f64>,
    panning: Vec<Panned>,
    busy: Option<Busy>,
    dagu: Vec<ToldDagu>,
}

#[derive(Debug, Deserialize)]
struct ToldDagu {
    steps: usize,
    first_paint_ms: Vec<f64>,
    elements: u64,
    panning: Option<Frames>,
    why: Option<String>,
}

/// `page`: where its source is. `cargo xtask bench web` has brought what it needs.
pub(crate) fn measure(
    (tasks, rounds): (usize, usize),
    peers: &[Peer],
    page: &Path,
    places: &Places,
) -> Result<WebResult> {
    let dir = places.work.join("web");
    fresh_dir(&dir)?;
    let out = dir.join("told.json");
    note(&format!("web: a run of {tasks} tasks in Chromium"));
    let mut command = program("npm");
    command.arg("--prefix").arg(page).args(["run", "bench"]);
    for variable in ["LANEWAY_SERVER", "LANEWAY_TOKEN", "LANEWAY_STORE", "LANEWAY_PAGE"] {
        command.env_remove(variable);
    }
    command.env("LANEWAY_BIN", &places.laneway).env("BENCH_OUT", &out);
    command.env("TASKS", tasks.to_string()).env("ROUNDS", rounds.to_string());
    if peers.contains(&Peer::Dagu) {
        command.env("DAGU", places.tools.join(install::DAGU));
    }
    let output = command.stdin(Stdio::null()).output().context("npm cannot be started")?;
    if !output.status.success() {
        let (said, erred) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("`npm run bench` ended with {}: {said}{erred}", output.status);
    }
    let told = std::fs::read_to_string(&out).context("the page's figures cannot be read")?;
    let told: Told = serde_json::from_str(&told).context("the page's figures are not as expected")?;
    WebResult::of(told)
}

impl WebResult {
    fn of(told: Told) -> Result<Self> {
        let update = |values: Vec<f64>| -> Result<Update> {
            let values = sorted(values);
            let p95_ms = percentile(&values, 0.95).context("no update was seen")?;
            Ok(Update { ms: Spread::of(values).context("no update was seen")?, p95_ms })
        };
        let dagu = |page: ToldDagu| DaguPage {
            steps: page.steps,
            first_paint_ms: Spread::of(page.first_paint_ms),
            elements: page.elements,
            panning: page.panning,
            why: page.why,
        };
        Ok(Self {
            tasks: told.tasks,
            chromium: told.chromium,
            first_paint_ms: Spread::of(told.first_paint_ms).context("nothing was painted")?,
            update_far_ms: update(told.update_far_ms)?,
            update_near_ms: update(told.update_near_ms)?,
            panning: told.panning,
            busy: told.busy.context("no run was looked at while it ran")?,
            dagu: told.dagu.into_iter().map(dagu).collect(),
        })
    }
}

pub(crate) fn show(found: &WebResult) -> String {
    let mut out = format!(
        "## web: the page of a run of {} tasks, Chromium {}\n\n| what | figure |\n|---|---|\n",
        found.tasks, found.chromium
    );
    // Writing to a string cannot fail.
    let mut row = |what: &str, figure: String| {
        let _ = writeln!(out, "| {what} | {figure} |");
    };
    let spread = |spread: &Spread| format!("{:.0} ms ({:.0}–{:.0})", spread.median, spread.min, spread.max);
    let frames = |frames: &Frames| {
        format!(
            "{:.0} a second; p95 {:.0} ms, longest {:.0} ms",
            frames.fps, frames.p95_ms, frames.longest_ms
        )
    };
    row("first meaningful paint", spread(&found.first_paint_ms));
    for (name, update) in [("all in sight", &found.update_far_ms), ("near", &found.update_near_ms)] {
        row(
            &format!("update of 50 tasks, {name}"),
            format!("{}; p95 {:.0} ms", spread(&update.ms), update.p95_ms),
        );
    }
    for panned in &found.panning {
        row(&format!("frames while panning, {}", panned.view), frames(&panned.frames));
    }
    let busy = &found.busy;
    row(
        &format!("frames while it runs ({} events in {:.0} s, {})", busy.events, busy.seconds, busy.status),
        frames(&busy.frames),
    );
    let heap = [busy.heap_before, busy.heap_most, busy.heap_after].map(|bytes| format!("{:.1}", bytes / 1e6));
    row("script heap before, at most, after, MB", heap.join(", "));
    for page in &found.dagu {
        let first = match (&page.first_paint_ms, &page.why) {
            (Some(first), _) => spread(first),
            (None, why) => why.as_deref().unwrap_or("nothing was drawn").replace(['\n', '|'], " "),
        };
        row(&format!("dagu, {} steps: first paint of the graph", page.steps), first);
        if let Some(panning) = &page.panning {
            let what = format!("dagu, {} steps: frames while panning {} elements", page.steps, page.elements);
            row(&what, frames(panning));
        }
    }
    out.push('\n');
    out
}

pub(crate) fn judge(found: &WebResult, verdicts: &mut Vec<Verdict>) {
    let mut at_most = |goal: &str, figure: f64, limit: f64| {
        verdicts.push(Verdict::at_most("web", goal, figure, limit));
    };
    at_most("first meaningful paint, ms", found.first_paint_ms.median, 1_000.0);
    for (name, update) in [("all in sight", &found.update_far_ms), ("near", &found.update_near_ms)] {
        at_most(&format!("update of 50 tasks, {name}, ms"), update.ms.median, 50.0);
    }
    let grown = (found.busy.heap_most - found.busy.heap_before) / 1e6;
    at_most("growth of the heap over a busy run, MB", grown, GROWTH_MB);
    // Beside the page of the peer, at the largest size that it drew.
    if let Some((steps, theirs)) =
        found.dagu.iter().rev().find_map(|page| Some((page.steps, page.first_paint_ms?)))
    {
        let goal = format!("first paint of {} tasks, to dagu's of {steps}", found.tasks);
        at_most(&goal, found.first_paint_ms.median / theirs.median, 1.0);
    }
    for panned in &found.panning {
        let goal = format!("frames a second while panning, {}", panned.view);
        verdicts.push(Verdict::at_least("web", &goal, panned.frames.fps, 50.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the browser's side writes it, in short.
    const TOLD: &str = r#"{
        "tasks": 10000, "chromium": "141.0", "first_paint_ms": [700, 900, 800],
        "update_far_ms": [10, 30, 20], "update_near_ms": [60, 61, 62],
        "panning": [{"view": "near", "frames": {"fps": 49.0, "p95_ms": 30, "longest_ms": 60}}],
        "busy": {"status": "succeeded", "seconds": 60, "events": 40000,
                 "frames": {"fps": 40, "p95_ms": 50, "longest_ms": 300},
                 "heap_before": 20e6, "heap_most": 60e6, "heap_after": 30e6},
        "dagu": [{"steps": 100, "first_paint_ms": [400], "elements": 100, "panning": null, "why": null},
                 {"steps": 10000, "first_paint_ms": [], "elements": 0, "panning": null, "why": "no step\nwas drawn"}]
    }"#;

    #[test]
    fn what_the_browser_tells_is_judged_by_its_medians() {
        let found = WebResult::of(serde_json::from_str(TOLD).expect("its shape")).expect("figures");
        let mut verdicts = Vec::new();
        judge(&found, &mut verdicts);
        let short: Vec<&str> =
            verdicts.iter().filter(|verdict| !verdict.is_met).map(|verdict| verdict.goal.as_str()).collect();
        assert_eq!(
            short,
            [
                "update of 50 tasks, near, ms: at most",
                "first paint of 10000 tasks, to dagu's of 100: at most",
                "frames a second while panning, near: at least",
            ]
        );
        assert!(show(&found).contains("| dagu, 10000 steps: first paint of the graph | no step was drawn |"));
    }

    #[test]
    fn a_page_that_painted_nothing_has_no_figures() {
        let told: Told = serde_json::from_str(&TOLD.replace("[700, 900, 800]", "[]")).expect("its shape");
        assert!(WebResult::of(told).is_err());
    }
}
