//! What was injected and what was found, added up and shown as a table.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use laneway_torture::{Bug, Point};

use super::act::Act;
use super::case::{Case, Report};
use super::walk::{self, Ground};
use crate::stage::note;

#[derive(Debug, Default)]
pub(super) struct Tally {
    cases: u32,
    /// By what it was.
    injected: BTreeMap<String, u32>,
    /// Deaths by point.
    deaths: BTreeMap<&'static str, u32>,
    findings: u32,
    slowest: Duration,
    bugs: Vec<(Bug, Option<(usize, String)>)>,
}

impl Tally {
    /// Findings are shown as they come, with what repeats them.
    pub(super) fn add(&mut self, case: &Case, report: &Report) {
        self.cases += 1;
        if self.cases.is_multiple_of(200) {
            note(&format!("{} runs, {} findings", self.cases, self.findings));
        }
        self.slowest = self.slowest.max(report.cleared);
        if let Act::Crash { point, .. } = case.act
            && report.has_died
        {
            *self.deaths.entry(point.name()).or_default() += 1;
        }
        for what in report.injected.iter().filter(|what| !what.starts_with("died at")) {
            *self.injected.entry(what.trim_end_matches(" twice").to_owned()).or_default() += 1;
        }
        self.findings += report.findings.len() as u32;
        if !report.findings.is_empty() {
            note(&format!("✗ {} (seed {}): {}", case.act, case.seed, report.injected.join(", ")));
            report.findings.iter().for_each(|finding| note(&format!("    {finding}")));
            note(&format!("    again: cargo xtask torture --only {} --seed {}", case.act, case.seed));
            if let Some(kept) = &report.kept {
                note(&format!("    see {}", kept.display()));
            }
        }
    }

    pub(super) fn add_bug(&mut self, bug: Bug, caught: Option<(usize, String)>) {
        self.bugs.push((bug, caught));
        self.bugs.sort_by_key(|(bug, _)| Bug::ALL.iter().position(|known| known == bug));
    }

    pub(super) fn print(&self) {
        note(&format!("{} runs were tortured", self.cases));
        let deaths: u32 = self.deaths.values().sum();
        let reached = self.deaths.len();
        note(&format!(
            "  {deaths:>6} deaths at {reached} of {} points",
            Point::ALL.iter().filter(|point| super::walk::is_walked(**point)).count()
        ));
        let mut echoes = 0;
        for (what, times) in &self.injected {
            if what.starts_with("finish ") {
                echoes += times;
            } else {
                note(&format!("  {times:>6} × {what}"));
            }
        }
        note(&format!("  {echoes:>6} × a finish said twice"));
        note(&format!("  {:>6} findings", self.findings));
        note(&format!(
            "  {:>5.2}s until nothing was left after a death, at most",
            self.slowest.as_secs_f64()
        ));
        for (bug, caught) in &self.bugs {
            match caught {
                Some((tries, finding)) => {
                    let finding: String = finding.chars().take(100).collect();
                    note(&format!("  ✓ {:<13} {} caught in run {tries}: {finding}", bug.name(), bug.about()));
                }
                None => note(&format!("  ✗ {:<13} {} NOT CAUGHT", bug.name(), bug.about())),
            }
        }
    }

    /// Nothing was found, no point is dead, and no bug went by.
    pub(super) fn verdict(&self, ground: &Ground) -> Result<()> {
        ensure!(self.findings == 0, "{} findings", self.findings);
        let dead: Vec<&str> =
            walk::points(ground).map(Point::name).filter(|name| !self.deaths.contains_key(name)).collect();
        ensure!(
            dead.is_empty(),
            "nothing died at {}: the point is dead, or its scene is wrong",
            dead.join(", ")
        );
        let missed: Vec<&str> =
            self.bugs.iter().filter(|(_, caught)| caught.is_none()).map(|(bug, _)| bug.name()).collect();
        ensure!(missed.is_empty(), "the checker does not see the bugs {}", missed.join(", "));
        Ok(())
    }
}
