//! Claims while a session holds the server's xmin horizon, so that every row that a task has left
//! behind stays in the indexes: what a claim takes then, beside claims of the same tasks without that.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::own;
use super::server::Server;
use crate::report::note;
use crate::stats::Spread;
use crate::subject::Places;

/// One shape of the same number of tasks.
#[derive(Debug, Serialize)]
pub(crate) struct Horizon {
    pub(crate) tasks: usize,
    pub(crate) runs: usize,
    /// Each run is submitted when the one before it has been worked off, so that all dead rows lie
    /// before the rows that can be claimed.
    pub(crate) keeps_up: bool,
    /// Means of all claims of a drain.
    pub(crate) free_ms: Spread,
    pub(crate) held_ms: Spread,
    /// Means of the last tenth of the claims.
    pub(crate) held_last_ms: Spread,
    /// Means of all finishes of a drain.
    pub(crate) free_finish_ms: Spread,
    pub(crate) held_finish_ms: Spread,
}

impl Horizon {
    pub(crate) fn case(&self) -> String {
        case(self.runs, self.keeps_up)
    }
}

fn case(runs: usize, keeps_up: bool) -> String {
    let how = if keeps_up { ", one after the other" } else { "" };
    format!("{runs} runs{how}")
}

pub(crate) fn measure(tasks: usize, rounds: usize, places: &Places, server: &Server) -> Result<Vec<Horizon>> {
    [(1, false), (tasks / 10, false), (tasks / 10, true)]
        .into_iter()
        .map(|(runs, keeps_up)| one((tasks, runs, keeps_up), rounds, places, server))
        .collect()
}

fn one(
    (tasks, runs, keeps_up): (usize, usize, bool),
    rounds: usize,
    places: &Places,
    server: &Server,
) -> Result<Horizon> {
    let mut figures: [Vec<f64>; 5] = Default::default();
    for round in 1..=rounds {
        let case = case(runs, keeps_up);
        note(&format!("horizon: {tasks} tasks of {case}, round {round} of {rounds}"));
        for is_held in [false, true] {
            let words = [tasks.to_string(), runs.to_string(), is_held.to_string()];
            let mut args = vec!["horizon", &words[0], &words[1], &words[2]];
            args.extend(keeps_up.then_some("--keeps-up"));
            let told = own(&args, places, server)?;
            let first = usize::from(is_held);
            figures[first].push(mean(&told.ms));
            figures[3 + first].push(mean(&told.finish_ms));
            if is_held {
                figures[2].push(mean(&told.ms[told.ms.len() - told.ms.len().div_ceil(10)..]));
            }
        }
    }
    let [free, held, last, free_finish, held_finish] =
        figures.map(|values| Spread::of(values).context("no rounds were run"));
    Ok(Horizon {
        tasks,
        runs,
        keeps_up,
        free_ms: free?,
        held_ms: held?,
        held_last_ms: last?,
        free_finish_ms: free_finish?,
        held_finish_ms: held_finish?,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
