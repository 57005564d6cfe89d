//! Graphs, round by round: every round calibrates and then runs every subject once, in an order that turns,
//! so that a machine that gets slower or faster does so for all of them.

use anyhow::Result;
use serde::Serialize;

use crate::calibrate::{Calibration, Calibrations, calibrate};
use crate::counted::{self, Counted};
use crate::graph::Graph;
use crate::meter::{Job, Sample};
use crate::report::note;
use crate::stats::Spread;
use crate::subject::{Places, Subject};

/// What all rounds of a workload gave.
#[derive(Debug, Serialize)]
pub(crate) struct GraphResult {
    pub(crate) workload: String,
    pub(crate) tasks: usize,
    pub(crate) at_once: u32,
    pub(crate) calibration: Calibrations,
    pub(crate) subjects: Vec<SubjectResult>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SubjectResult {
    pub(crate) subject: Subject,
    pub(crate) wall_s: Spread,
    pub(crate) cpu_ms_per_task: Spread,
    pub(crate) written_bytes_per_task: f64,
    pub(crate) to_disk_bytes_per_task: f64,
    /// A task; `None` where the subject does not tell, or nothing was counted.
    pub(crate) syncs_per_task: Option<f64>,
    pub(crate) commits_per_task: Option<f64>,
    pub(crate) statements_per_task: Option<f64>,
    pub(crate) samples: Vec<Sample>,
}

impl GraphResult {
    pub(crate) fn of(&self, subject: Subject) -> Option<&SubjectResult> {
        self.subjects.iter().find(|result| result.subject == subject)
    }

    pub(crate) fn ms_per_task(&self, result: &SubjectResult) -> f64 {
        1e3 * result.wall_s.median / self.tasks as f64
    }
}

/// A graph and who runs it.
#[derive(Debug)]
pub(crate) struct Contest<'a> {
    pub(crate) workload: &'a str,
    pub(crate) graph: Graph,
    pub(crate) subjects: &'a [Subject],
    pub(crate) rounds: usize,
    /// Also count the fsyncs of peers.
    pub(crate) count_peers: bool,
}

struct Runner {
    subject: Subject,
    job: Job,
    counted: Option<Counted>,
    samples: Vec<Sample>,
}

impl Contest<'_> {
    pub(crate) fn run(&self, places: &Places) -> Result<GraphResult> {
        let mut runners = Vec::new();
        for &subject in self.subjects.iter().filter(|subject| subject.can_run(self.graph.shape)) {
            let job = subject.prepare(self.graph, places, self.workload)?;
            // Under strace some peers take minutes.
            let counted = if self.count_peers || subject == Subject::Laneway {
                note(&format!("{}: counting {}", self.workload, subject.name()));
                Some(counted::count(subject, &job, &places.work)?)
            } else {
                // What a first run has to read from disk is nobody's cost.
                job.measure()?;
                None
            };
            runners.push(Runner { subject, job, counted, samples: Vec::new() });
        }
        let mut calibrations: Vec<Calibration> = Vec::new();
        for round in 0..self.rounds {
            note(&format!("{}: round {} of {}", self.workload, round + 1, self.rounds));
            calibrations.push(calibrate(&places.work)?);
            let first = round % runners.len();
            runners.rotate_left(first);
            for runner in &mut runners {
                runner.samples.push(runner.job.measure()?);
            }
            runners.rotate_right(first);
        }
        let subjects = runners.into_iter().filter_map(|runner| self.sum_up(runner)).collect();
        let calibration =
            Calibrations::of(&calibrations).ok_or_else(|| anyhow::anyhow!("no rounds were run"))?;
        let Graph { at_once, .. } = self.graph;
        Ok(GraphResult {
            workload: self.workload.to_owned(),
            tasks: self.graph.tasks(),
            at_once,
            calibration,
            subjects,
        })
    }

    fn sum_up(&self, runner: Runner) -> Option<SubjectResult> {
        let Runner { subject, counted, samples, .. } = runner;
        let tasks = self.graph.tasks() as f64;
        let per_task =
            |value: fn(&Sample) -> f64| Spread::of(samples.iter().map(|sample| value(sample) / tasks));
        Some(SubjectResult {
            subject,
            wall_s: Spread::of(samples.iter().map(|sample| sample.wall_s))?,
            cpu_ms_per_task: per_task(|sample| 1e3 * sample.cpu_s)?,
            written_bytes_per_task: per_task(|sample| sample.written as f64)?.median,
            to_disk_bytes_per_task: per_task(|sample| sample.to_disk as f64)?.median,
            syncs_per_task: counted.map(|counted| counted.syncs as f64 / tasks),
            commits_per_task: counted
                .and_then(|counted| counted.commits)
                .map(|commits| commits as f64 / tasks),
            statements_per_task: counted
                .and_then(|counted| counted.statements)
                .map(|statements| statements as f64 / tasks),
            samples,
        })
    }
}
