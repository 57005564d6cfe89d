//! Three durable steps a run through the Rust API, in this process: one run after the other, and many at once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use laneway_engine::embed::{Call, Engine, Step, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::FILE;
use crate::report::print;

/// Before anything is timed.
const WARM_UP: u64 = 20;

#[derive(Deserialize)]
struct Number {
    number: u64,
}

#[derive(Serialize, Deserialize)]
struct Sum {
    number: u64,
}

/// As durable as it ships: every step is on disk before the next begins, and the run before it is answered.
pub(super) async fn three_steps(runs: u64, at_once: usize, samples: u64) -> Result<()> {
    let slots = u32::try_from(at_once)?;
    let add = |call: Call<Number>| async move { Ok::<_, Infallible>(Sum { number: call.input.number + 1 }) };
    let store = std::env::var("DATABASE_URL").unwrap_or_else(|_| FILE.to_owned());
    let engine = Engine::at(&store).function("add", add).slots(slots).start().await?;
    let three = Arc::new(workflow());
    for number in 0..WARM_UP {
        timed(&engine, &three, number).await?;
    }
    let mut alone = Vec::new();
    for number in 0..samples {
        alone.push(timed(&engine, &three, number).await?);
    }
    alone.sort_by(f64::total_cmp);
    let begun = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..at_once as u64 {
        let (engine, three) = (engine.clone(), Arc::clone(&three));
        callers.spawn(async move {
            for number in (caller..runs).step_by(at_once) {
                timed(&engine, &three, number).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.context("a caller panicked")??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    engine.shutdown().await?;
    let p50_ms = alone.get(alone.len() / 2).copied().unwrap_or_default();
    print(&json!({ "seconds": seconds, "p50_ms": p50_ms }).to_string());
    Ok(())
}

fn workflow() -> Workflow {
    let add = |name: &str, input: &str| Step::function(name, "add").with("number", input);
    Workflow::new("three")
        .param("number", json!({ "type": "integer", "required": true }))
        .step(add("one", "${{ params.number }}"))
        .step(add("two", "${{ steps.one.output.number }}").needs(["one"]))
        .step(add("three", "${{ steps.two.output.number }}").needs(["two"]))
}

/// In milliseconds.
async fn timed(engine: &Engine, three: &Workflow, number: u64) -> Result<f64> {
    let begun = Instant::now();
    let sum: Sum = engine.run(three, json!({ "number": number })).await?.ok()?.output("three")?;
    if sum.number != number + 3 {
        bail!("{} instead of {}", sum.number, number + 3);
    }
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}
