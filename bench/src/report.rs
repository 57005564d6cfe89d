//! What was measured: as JSON for machines, as tables for people. The only file here that prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a report goes to stdout, progress to stderr")]

use std::fmt::Write as _;

use serde::Serialize;

use crate::containers::ContainersResult;
use crate::durable::DurableResult;
use crate::goal::Verdict;
use crate::isolation::Isolation;
use crate::nodes::NodesResult;
use crate::noise::Noise;
use crate::parked::Parked;
use crate::rounds::{GraphResult, SubjectResult};
use crate::service::ServiceResult;
use crate::single::{Enqueue, Grown, Idle, Items, Noop};
use crate::stats::Spread;
use crate::subject::{Peer, Subject};
use crate::web::WebResult;
use crate::workspaces::Workspaces;

/// One whole run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Results {
    pub(crate) measured_on: String,
    pub(crate) laneway: String,
    /// Small sizes, to see that everything works: no figures to quote.
    pub(crate) is_quick: bool,
    pub(crate) peers: Vec<String>,
    pub(crate) noise: Noise,
    pub(crate) graphs: Vec<GraphResult>,
    pub(crate) noop: Vec<Noop>,
    pub(crate) items: Option<Items>,
    pub(crate) parked: Vec<Parked>,
    pub(crate) growth: Vec<Grown>,
    pub(crate) history: Vec<Grown>,
    pub(crate) idle: Option<Idle>,
    pub(crate) enqueue: Option<Enqueue>,
    pub(crate) service: Option<ServiceResult>,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) workspaces: Option<Workspaces>,
    pub(crate) nodes: Option<NodesResult>,
    pub(crate) containers: Option<ContainersResult>,
    pub(crate) durable: Option<DurableResult>,
    pub(crate) web: Option<WebResult>,
    pub(crate) verdicts: Vec<Verdict>,
}

pub(crate) fn print(text: &str) {
    println!("{text}");
}

pub(crate) fn note(text: &str) {
    eprintln!("   {text}");
}

impl Results {
    /// Markdown, so that it reads in a terminal and in a page.
    pub(crate) fn tables(&self) -> String {
        let mut out = String::new();
        line(&mut out, format_args!("# {} on {}\n", self.laneway, self.measured_on));
        if self.is_quick {
            line(&mut out, format_args!("Small sizes (--quick): no figures to quote.\n"));
        }
        line(&mut out, format_args!("{}\n", self.noise.sentence()));
        if !self.peers.is_empty() {
            line(&mut out, format_args!("Peers: {}.\n", self.peers.join(", ")));
        }
        for graph in &self.graphs {
            show_graph(&mut out, graph);
        }
        self.show_noop(&mut out);
        self.show_items(&mut out);
        out += &crate::parked::show(&self.parked);
        show_grown(&mut out, "growth", "tasks in the run", &self.growth);
        show_grown(&mut out, "history", "finished runs in the store", &self.history);
        self.show_idle(&mut out);
        self.show_isolation(&mut out);
        out += &self.workspaces.as_ref().map(Workspaces::show).unwrap_or_default();
        out += &self.service.as_ref().map(crate::service::show).unwrap_or_default();
        out += &self.nodes.as_ref().map(crate::nodes::show).unwrap_or_default();
        out += &self.durable.as_ref().map(crate::durable::show).unwrap_or_default();
        out += &self.containers.as_ref().map(crate::containers::show).unwrap_or_default();
        out += &self.web.as_ref().map(crate::web::show).unwrap_or_default();
        self.show_verdicts(&mut out);
        out
    }

    fn show_items(&self, out: &mut String) {
        let Some(items) = &self.items else { return };
        line(
            out,
            format_args!(
                "## items\n\n| {} functions that do nothing, 32 at once | us a task, from submit to the end |\n|---|---|",
                items.tasks
            ),
        );
        line(out, format_args!("| items of one step | {} |", spread(&items.items_us, 1)));
        line(out, format_args!("| a flat graph | {} |", spread(&items.flat_us, 1)));
        line(out, format_args!("| items, to a flat graph | {} |\n", spread(&items.ratio, 2)));
    }

    fn show_noop(&self, out: &mut String) {
        if self.noop.is_empty() {
            return;
        }
        line(
            out,
            format_args!(
                "## noop\n\n| group | bare loop, tasks/s | store's verbs, tasks/s | functions, tasks/s |\n|---|---|---|---|"
            ),
        );
        for noop in &self.noop {
            let (bare, store) = (spread(&noop.bare_per_s, 0), spread(&noop.store_per_s, 0));
            let function = spread(&noop.function_per_s, 0);
            line(out, format_args!("| {} | {bare} | {store} | {function} |", noop.group));
        }
        line(out, format_args!(""));
    }

    fn show_isolation(&self, out: &mut String) {
        let Some(isolation) = &self.isolation else { return };
        let overlay = match &isolation.overlay_ms {
            Some(spread) => format!("{:.1} ms", spread.median),
            None => "not possible here".to_owned(),
        };
        line(
            out,
            format_args!(
                "## isolation\n\nA copy of {} files and {} MB for a member of a group: by an overlay {overlay}, by copying {:.0} ms, \
                 `cp -a` {:.0} ms ({:.2}x).\n",
                isolation.files,
                isolation.megabytes,
                isolation.copy_ms.median,
                isolation.cp_ms.median,
                isolation.copy_against_cp()
            ),
        );
    }

    fn show_idle(&self, out: &mut String) {
        if let Some(idle) = &self.idle {
            line(
                out,
                format_args!(
                    "## idle\n\nA run whose only step sleeps, over {:.0} s: node {:.1} MB, warden {:.1} MB \
                     ({:.1} if what they share is counted once), {:.3} % of a core.\n",
                    idle.seconds, idle.node_rss_mb, idle.warden_rss_mb, idle.pss_mb, idle.cpu_percent
                ),
            );
        }
        if let Some(found) = &self.enqueue {
            line(out, format_args!("## enqueue\n\n| from | p50 ms | p99 ms |\n|---|---|---|"));
            for (from, p50, p99) in [
                ("submit to a function, in a node that is up", found.function_p50_ms, found.function_p99_ms),
                ("submit to a process, in a node that is up", found.submit_p50_ms, found.submit_p99_ms),
                ("the start of `laneway run`", found.program_p50_ms, found.program_p99_ms),
                ("a bare start of the same step", found.bare_p50_ms, found.bare_p99_ms),
            ] {
                line(out, format_args!("| {from} | {p50:.2} | {p99:.2} |"));
            }
            line(out, format_args!(""));
        }
    }

    fn show_verdicts(&self, out: &mut String) {
        line(out, format_args!("## Goals\n\n| workload | goal | limit | figure | |\n|---|---|---|---|---|"));
        for Verdict { workload, goal, figure, limit, is_met } in &self.verdicts {
            let word = if *is_met { "met" } else { "SHORT" };
            line(out, format_args!("| {workload} | {goal} | {limit:.2} | {figure:.2} | {word} |"));
        }
    }
}

fn show_graph(out: &mut String, graph: &GraphResult) {
    let calibration = &graph.calibration;
    line(out, format_args!("## {}: {} tasks, {} at once\n", graph.workload, graph.tasks, graph.at_once));
    line(
        out,
        format_args!(
            "Bare spawn {} ms; 4 KiB append + fdatasync p50 {} ms, p99 {} ms.\n",
            spread(&calibration.spawn_ms, 2),
            spread(&calibration.sync_p50_ms, 2),
            spread(&calibration.sync_p99_ms, 2)
        ),
    );
    let reference = reference(graph);
    let name = reference.map_or("", |result| result.subject.name());
    line(
        out,
        format_args!(
            "| | wall s | ms a task | to {name} | CPU ms a task | fsyncs a task | commits | statements | \
             bytes to disk |\n|---|---|---|---|---|---|---|---|---|"
        ),
    );
    for result in &graph.subjects {
        let ratio =
            reference.map_or(String::new(), |to| format!("{:.2}", result.wall_s.median / to.wall_s.median));
        let count = |count: Option<f64>| count.map_or(String::new(), |count| format!("{count:.2}"));
        line(
            out,
            format_args!(
                "| {} | {} | {:.3} | {ratio} | {} | {} | {} | {} | {:.0} |",
                result.subject.name(),
                spread(&result.wall_s, 3),
                graph.ms_per_task(result),
                spread(&result.cpu_ms_per_task, 2),
                count(result.syncs_per_task),
                count(result.commits_per_task),
                count(result.statements_per_task),
                result.to_disk_bytes_per_task,
            ),
        );
    }
    line(out, format_args!(""));
}

/// Whom the others are held against: who does the same with the least around it.
fn reference(graph: &GraphResult) -> Option<&SubjectResult> {
    let order = [Subject::Peer(Peer::Xargs), Subject::Peer(Peer::Make), Subject::Spawn];
    order.into_iter().find_map(|subject| graph.of(subject))
}

fn show_grown(out: &mut String, name: &str, what: &str, grown: &[Grown]) {
    if grown.is_empty() {
        return;
    }
    line(
        out,
        format_args!(
            "## {name}\n\n| {what} | tasks | wall s | ms a task | CPU ms a task | bytes to disk a task |\n|---|---|---|---|---|---|"
        ),
    );
    for Grown { size, tasks, wall_s, cpu_ms_per_task, to_disk_bytes_per_task } in grown {
        let each = 1e3 * wall_s.median / *tasks as f64;
        line(
            out,
            format_args!(
                "| {size} | {tasks} | {} | {each:.3} | {} | {:.0} |",
                spread(wall_s, 2),
                spread(cpu_ms_per_task, 2),
                to_disk_bytes_per_task.median
            ),
        );
    }
    line(out, format_args!(""));
}

/// The median, and how far the rounds lie apart.
pub(crate) fn spread(spread: &Spread, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$}–{:.digits$})", spread.median, spread.min, spread.max)
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes everything");
}
