//! What the machine itself takes right now: a bare spawn, and an append that is on disk. Measured in every
//! round, so that a goal is judged by the machine of that round, and so that noise shows.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::meter::program;
use crate::stats::{Spread, percentile, sorted};

const SPAWNS: usize = 50;
const SYNCS: usize = 100;
const BLOCK: [u8; 4096] = [0x5a; 4096];

/// One round's figures, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Calibration {
    pub(crate) spawn_ms: f64,
    pub(crate) sync_p50_ms: f64,
    pub(crate) sync_p99_ms: f64,
}

/// All rounds of a workload.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Calibrations {
    pub(crate) spawn_ms: Spread,
    pub(crate) sync_p50_ms: Spread,
    pub(crate) sync_p99_ms: Spread,
}

impl Calibrations {
    pub(crate) fn of(rounds: &[Calibration]) -> Option<Self> {
        Some(Self {
            spawn_ms: Spread::of(rounds.iter().map(|round| round.spawn_ms))?,
            sync_p50_ms: Spread::of(rounds.iter().map(|round| round.sync_p50_ms))?,
            sync_p99_ms: Spread::of(rounds.iter().map(|round| round.sync_p99_ms))?,
        })
    }
}

/// `dir` lies on the disk that is measured.
pub(crate) fn calibrate(dir: &Path) -> Result<Calibration> {
    let spawn_ms = 1e3 * spawn_loop(SPAWNS)? / SPAWNS as f64;
    let path = dir.join("calibration");
    let syncs =
        sorted(append_and_sync(&path).with_context(|| format!("{} cannot be written", path.display()))?);
    let at = |share| percentile(&syncs, share).context("nothing was measured");
    Ok(Calibration { spawn_ms, sync_p50_ms: at(0.5)?, sync_p99_ms: at(0.99)? })
}

/// Spawns and waits, one after the other; how many seconds it took. The standard library uses posix_spawn
/// here.
pub(crate) fn spawn_loop(times: usize) -> Result<f64> {
    let begun = Instant::now();
    for _ in 0..times {
        let status = program("/bin/true").stdin(Stdio::null()).status().context("/bin/true")?;
        if !status.success() {
            bail!("/bin/true ended with {status}");
        }
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn append_and_sync(path: &Path) -> std::io::Result<Vec<f64>> {
    let mut file = File::create(path)?;
    let mut took = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&BLOCK)?;
        file.sync_data()?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    drop(file);
    std::fs::remove_file(path)?;
    Ok(took)
}
