//! `isolation`: what it takes to give a member of a group its own copy of a workspace, by an overlay and by copying, beside
//! `cp -a` of the same files in the same rounds.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use laneway_core::id::RunId;
use laneway_engine::isolate::{CellName, Isolates, Means};
use serde::Serialize;

use crate::stats::Spread;
use crate::subject::{Places, fresh_dir};

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Isolation {
    pub(crate) files: usize,
    pub(crate) megabytes: usize,
    /// `None` where no overlay can be mounted.
    pub(crate) overlay_ms: Option<Spread>,
    pub(crate) copy_ms: Spread,
    pub(crate) cp_ms: Spread,
}

impl Isolation {
    pub(crate) fn copy_against_cp(&self) -> f64 {
        self.copy_ms.median / self.cp_ms.median
    }
}

/// Rounds of all three, in an order that turns, on files of equal size in a hundred directories.
pub(crate) fn measure(files: usize, megabytes: usize, rounds: usize, places: &Places) -> Result<Isolation> {
    let dir = places.work.join("isolation");
    fresh_dir(&dir)?;
    let base = dir.join("base");
    fill(&base, files, megabytes)?;
    let (mut overlay, mut copy, mut cp) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..3 {
            match (round + turn) % 3 {
                0 => overlay.extend(isolate(&dir, &base, Means::Overlay)?),
                1 => copy.extend(isolate(&dir, &base, Means::Copy)?),
                _ => cp.push(bare(&dir, &base)?),
            }
        }
    }
    let some = "there was a round";
    Ok(Isolation {
        files,
        megabytes,
        overlay_ms: Spread::of(overlay),
        copy_ms: Spread::of(copy).context(some)?,
        cp_ms: Spread::of(cp).context(some)?,
    })
}

fn fill(base: &Path, files: usize, megabytes: usize) -> Result<()> {
    let size = (megabytes << 20) / files.max(1);
    // Nothing that a file system could make smaller.
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..files {
        let dir = base.join(format!("d{}", number % 100));
        std::fs::create_dir_all(&dir)?;
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes.extend_from_slice(&seed.to_le_bytes());
        }
        File::create(dir.join(format!("f{number}")))?.write_all(&bytes[..size])?;
    }
    Ok(())
}

/// Milliseconds until a member could start; `None` where it was done by other means than asked for.
fn isolate(dir: &Path, base: &Path, means: Means) -> Result<Option<f64>> {
    let state = dir.join("state");
    fresh_dir(&state)?;
    let isolates = Isolates::new(state.join("isolates"), state.clone());
    isolates.prefer(base, means);
    let run = RunId::parse("0190d5a0-0000-7000-8000-000000000000").context("an id")?;
    let cell = CellName { step: "member".to_owned(), attempt: 1 };
    let begun = Instant::now();
    let made = isolates.enter(run, &cell, base)?;
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    ensure!(made.join("d0/f0").is_file(), "the copy is not whole");
    let is_as_asked = isolates.means_of(base) == Some(means);
    isolates.forget(run)?;
    Ok(is_as_asked.then_some(took))
}

fn bare(dir: &Path, base: &Path) -> Result<f64> {
    let to = dir.join("cp");
    drop(std::fs::remove_dir_all(&to));
    let begun = Instant::now();
    let status = crate::meter::program("cp").arg("-a").arg(base).arg(&to).status().context("cp")?;
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    ensure!(status.success(), "cp failed");
    std::fs::remove_dir_all(&to)?;
    Ok(took)
}
