//! What was injected into nodes and what was found, added up and shown as a table.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use laneway_torture::Bug;

use super::case::{Case, Report};
use super::fault;
use crate::stage::note;

#[derive(Debug, Default)]
pub(super) struct Tally {
    cases: u32,
    runs: usize,
    tasks: usize,
    lost: usize,
    injected: BTreeMap<String, u32>,
    deaths: BTreeMap<String, u32>,
    findings: usize,
    recoveries: Vec<f64>,
    bugs: Vec<(Bug, Option<(usize, String)>)>,
}

impl Tally {
    /// Findings are shown as they come, with what repeats them.
    pub(super) fn add(&mut self, case: &Case, report: &Report) {
        self.cases += 1;
        self.runs += report.runs;
        self.tasks += report.tasks;
        self.lost += report.lost;
        for (kind, times) in &report.injected {
            *self.injected.entry(kind.clone()).or_default() += times;
        }
        for point in &report.deaths {
            *self.deaths.entry(point.clone()).or_default() += 1;
        }
        self.recoveries.extend(&report.recoveries);
        self.findings += report.findings.len();
        let faults = fault::words(&case.faults);
        let found = report.findings.len();
        note(&format!(
            "{} {} runs, {} tasks, {} lost, {found} findings: {faults}",
            if found == 0 { "✓" } else { "✗" },
            report.runs,
            report.tasks,
            report.lost
        ));
        if found > 0 {
            report.findings.iter().take(12).for_each(|finding| note(&format!("    {finding}")));
            note(&format!("    again: cargo xtask torture nodes {}", case.words()));
            if let Some(kept) = &report.kept {
                note(&format!("    see {}", kept.display()));
            }
        }
    }

    /// Something that shows only when cases are compared.
    pub(super) fn find(&mut self, finding: String) {
        self.findings += 1;
        note(&format!("✗ {finding}"));
    }

    pub(super) fn add_bug(&mut self, bug: Bug, caught: Option<(usize, String)>) {
        match &caught {
            Some((tries, finding)) => {
                let finding: String = finding.chars().take(140).collect();
                note(&format!("✓ {:<16} {} caught in case {tries}: {finding}", bug.name(), bug.about()));
            }
            None => note(&format!("✗ {:<16} {} NOT CAUGHT", bug.name(), bug.about())),
        }
        self.bugs.push((bug, caught));
    }

    pub(super) fn print(&self) {
        note(&format!("{} cases with {} runs of {} tasks were tortured", self.cases, self.runs, self.tasks));
        for (what, times) in &self.injected {
            note(&format!("  {times:>6} × {what}"));
        }
        for (point, times) in &self.deaths {
            note(&format!("  {times:>6} × died at {point}"));
        }
        note(&format!("  {:>6} attempts were lost with their nodes", self.lost));
        note(&format!("  {:>6} findings", self.findings));
        let mut recoveries = self.recoveries.clone();
        recoveries.sort_by(f64::total_cmp);
        if let (Some(last), Some(most)) = (recoveries.len().checked_sub(1), recoveries.last()) {
            let at = |share: f64| recoveries[(last as f64 * share).round() as usize];
            note(&format!(
                "  from a fault to the next start of a task that was lost by it ({}): p50 {:.1} s, p99 {:.1} s, at most {most:.1} s",
                recoveries.len(),
                at(0.5),
                at(0.99)
            ));
        }
        if !self.bugs.is_empty() {
            let caught = self.bugs.iter().filter(|(_, caught)| caught.is_some()).count();
            note(&format!("  {caught} of {} seeded bugs were caught", self.bugs.len()));
        }
    }

    /// No point is dead.
    pub(super) fn has_died_everywhere(&self) -> Result<()> {
        let names = super::hunt::points().map(laneway_torture::Point::name);
        let dead: Vec<&str> = names.filter(|name| !self.deaths.contains_key(*name)).collect();
        ensure!(
            dead.is_empty(),
            "nothing died at {}: the point is dead, or it comes by too rarely",
            dead.join(", ")
        );
        Ok(())
    }

    /// Nothing was found, and no bug went by.
    pub(super) fn verdict(&self) -> Result<()> {
        ensure!(self.findings == 0, "{} findings", self.findings);
        let missed: Vec<&str> =
            self.bugs.iter().filter(|(_, caught)| caught.is_none()).map(|(bug, _)| bug.name()).collect();
        ensure!(missed.is_empty(), "the checker does not see the bugs {}", missed.join(", "));
        Ok(())
    }
}
