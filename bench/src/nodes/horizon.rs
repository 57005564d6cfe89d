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
    /// Means of all claims of a drain.
    pub(crate) free_ms: Spread,
    pub(crate) held_ms: Spread,
    /// Means of the last tenth of the claims.
    pub(crate) held_last_ms: Spread,
    /// Means of all finishes of a drain.
    pub(crate) free_finish_ms: Spread,
    pub(crate) held_finish_ms: Spread,
}

pub(crate) fn measure(tasks: usize, rounds: usize, places: &Places, server: &Server) -> Result<Vec<Horizon>> {
    [1, tasks / 10].into_iter().map(|runs| one(tasks, runs, rounds, places, server)).collect()
}

fn one(tasks: usize, runs: usize, rounds: usize, places: &Places, server: &Server) -> Result<Horizon> {
    let mut figures: [Vec<f64>; 5] = Default::default();
    for round in 1..=rounds {
        note(&format!("horizon: {tasks} tasks of {runs} runs, round {round} of {rounds}"));
        for is_held in [false, true] {
            let words = [tasks.to_string(), runs.to_string(), is_held.to_string()];
            let told = own(&["horizon", &words[0], &words[1], &words[2]], places, server)?;
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
