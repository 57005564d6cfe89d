//! From submit to the start of a step, as the step itself sees it, in a node that is up: a process that stamps, and a
//! function.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context as _, Result};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_engine::function::{Call, Functions};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::Home;

/// Milliseconds from submit to the first instruction of a step, one run after the other.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Samples {
    pub(crate) process_ms: Vec<f64>,
    pub(crate) function_ms: Vec<f64>,
}

pub(super) async fn samples(samples: usize, laneway: &Path, stamp: &Path) -> Result<Samples> {
    let home = Home::new().await?;
    let warden = home.warden(laneway)?;
    let file = std::env::current_dir().context("no current directory")?.join("stamp");
    let words = serde_json::to_string(&[stamp, &file])?;
    let process = format!("steps:\n  stamp: {{command: {words}}}\n");
    let function = "steps:\n  stamp: {function: stamp}\n";
    let stamped = Arc::new(AtomicI64::new(0));
    let functions = Functions::new().add("stamp", {
        let stamped = Arc::clone(&stamped);
        move |_: Call<Value>| {
            stamped.store(moment(), Ordering::Relaxed);
            std::future::ready(Ok::<_, std::convert::Infallible>(()))
        }
    });
    let mut took = Samples::default();
    for _ in 0..samples {
        let begun = moment();
        let run = home.submit(&process, 1).await?;
        home.drive(run, 1, warden.clone(), Functions::new()).await?;
        took.process_ms.push((read(&file)? - begun) as f64 / 1e6);
        let begun = moment();
        let run = home.submit(function, 1).await?;
        home.drive(run, 1, warden.clone(), functions.clone()).await?;
        took.function_ms.push((stamped.load(Ordering::Relaxed) - begun) as f64 / 1e6);
    }
    home.store.retire(home.session, Leaving::because(LeaveReason::Done)).await?;
    Ok(took)
}

/// What a step stamped.
pub(crate) fn read(file: &Path) -> Result<i64> {
    let text = std::fs::read_to_string(file).context("the step stamped nothing")?;
    text.parse().with_context(|| format!("`{text}` is no moment"))
}

/// In nanoseconds.
pub(crate) fn moment() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
