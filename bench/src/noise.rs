//! How quiet the machine was: its load before and after, and what others used of it meanwhile. A figure
//! without this says little on a shared machine.

use std::time::Instant;

use anyhow::{Context as _, Result};
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

/// Of a whole run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Noise {
    pub(crate) cores: usize,
    pub(crate) load_at_start: f64,
    pub(crate) load_at_end: f64,
    /// CPU that processes other than those measured used, in % of one core.
    /// `None` where a server works for those measured, and cannot be told from others.
    pub(crate) foreign_cpu_percent: Option<f64>,
    /// The widest spread of the calibrations, as a share of its median.
    pub(crate) calibration_width: f64,
}

impl Noise {
    pub(crate) fn sentence(&self) -> String {
        let Self { cores, load_at_start, load_at_end, foreign_cpu_percent, calibration_width } = self;
        let quiet = if self.is_quiet() { "Quiet" } else { "NOISY: figures of this run are not to be quoted" };
        let others = foreign_cpu_percent.map_or_else(
            || "what others used is not known beside a server".to_owned(),
            |percent| {
                format!(
                    "others used {percent:.0} % of a core, bare spawns lay {:.0} % apart",
                    100.0 * calibration_width
                )
            },
        );
        format!(
            "{quiet}. {cores} cores, load {load_at_start:.2} at the start and {load_at_end:.2} at the end, {others}."
        )
    }

    /// A fifth of a core is what a machine of our own takes at times.
    fn is_quiet(&self) -> bool {
        self.foreign_cpu_percent.is_none_or(|percent| percent < 20.0) && self.load_at_start < 1.0
    }
}

/// Watches from its making on.
#[derive(Debug)]
pub(crate) struct Watch {
    load: f64,
    busy_s: f64,
    own_s: f64,
    begun: Instant,
}

impl Watch {
    pub(crate) fn begin() -> Result<Self> {
        Ok(Self { load: load()?, busy_s: busy_s()?, own_s: own_s()?, begun: Instant::now() })
    }

    /// What a server did for those measured cannot be told from what others did.
    pub(crate) fn end_beside_a_server(&self, calibration_width: f64) -> Result<Noise> {
        Ok(Noise { foreign_cpu_percent: None, ..self.end(calibration_width)? })
    }

    pub(crate) fn end(&self, calibration_width: f64) -> Result<Noise> {
        let foreign = (busy_s()? - self.busy_s) - (own_s()? - self.own_s);
        Ok(Noise {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            load_at_start: self.load,
            load_at_end: load()?,
            foreign_cpu_percent: Some((100.0 * foreign / self.begun.elapsed().as_secs_f64()).max(0.0)),
            calibration_width,
        })
    }
}

fn load() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
    text.split_whitespace().next().and_then(|load| load.parse().ok()).context("/proc/loadavg")
}

/// All processors' time that was neither idle nor waiting for a disk. A tick is a hundredth of a second
/// wherever Linux tells it to programs.
pub(crate) fn busy_s() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let line = text.lines().next().context("/proc/stat is empty")?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user already.
    let busy = ticks.iter().take(8).enumerate().filter(|(place, _)| ![3, 4].contains(place));
    Ok(busy.map(|(_, ticks)| ticks).sum::<u64>() as f64 / 100.0)
}

/// This process and all that it waited for.
fn own_s() -> Result<f64> {
    let mut seconds = 0.0;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who).context("what was used")?;
        for time in [usage.user_time(), usage.system_time()] {
            seconds += time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        }
    }
    Ok(seconds)
}
