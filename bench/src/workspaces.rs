//! `workspaces`: what private views cost a submitted run whose steps exchange no files. The same
//! steps with files that follow the run, and with `workspace: none`, in turn on one server.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::json;

use crate::goal::Verdict;
use crate::report::{note, spread};
use crate::server::{Server, moment};
use crate::stats::Spread;
use crate::subject::{Places, fresh_dir};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Steps that do nothing.
#[derive(Debug, Serialize)]
pub(crate) struct Workspaces {
    pub(crate) steps: usize,
    /// From submit to the end of the run, by the store's clock.
    pub(crate) files_ms: Spread,
    pub(crate) none_ms: Spread,
}

pub(crate) fn measure(steps: usize, rounds: usize, places: &Places) -> Result<Workspaces> {
    let dir = places.work.join("workspaces");
    fresh_dir(&dir)?;
    let server = Server::start(places, &dir, &[])?;
    let mut took: [Vec<f64>; 2] = Default::default();
    // The first round warms the store and is not counted.
    for round in 0..=rounds {
        note(&format!("workspaces: round {round} of {rounds}"));
        for turn in 0..2 {
            let with_none = (round + turn) % 2;
            let body = json!({ "document": document(steps, with_none == 1) }).to_string();
            let run = server.submit_body(&body)?;
            let ended = server.wait_for(&run, POLL_INTERVAL)?;
            let took_ms = moment(&ended["finished_at"])? - moment(&ended["submitted_at"])?;
            if round > 0 {
                took[with_none].push(took_ms);
            }
        }
    }
    server.end()?;
    let [files, none] = took.map(|values| Spread::of(values).context("no rounds were run"));
    Ok(Workspaces { steps, files_ms: files?, none_ms: none? })
}

fn document(steps: usize, is_none: bool) -> String {
    let workspace = if is_none { "workspace: none\n" } else { "" };
    let steps: String = (0..steps).map(|step| format!("  s{step}: {{command: [/bin/true]}}\n")).collect();
    format!("name: nothing\n{workspace}max_parallel: 8\nsteps:\n{steps}")
}

impl Workspaces {
    fn ratio(&self) -> f64 {
        self.files_ms.median / self.none_ms.median
    }

    pub(crate) fn judge(&self, verdicts: &mut Vec<Verdict>) {
        let goal = "steps with files that follow the run, to none";
        verdicts.push(Verdict::at_most("workspaces", goal, self.ratio(), 1.1));
    }

    /// As a table.
    pub(crate) fn show(&self) -> String {
        let (files, none) = (spread(&self.files_ms, 0), spread(&self.none_ms, 0));
        format!(
            "## workspaces\n\n| steps | files follow the run, ms | `workspace: none`, ms | ratio |\n|---|---|---|---|\n\
             | {} | {files} | {none} | {:.2} |\n\n",
            self.steps,
            self.ratio()
        )
    }
}
