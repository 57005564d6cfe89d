//! What many parked tasks cost a process that starts: opens the store, begins a session, returns what the dead have left, looks at
//! the clock and asks for work. `cargo run --release -p laneway-store --example parked -- 100000`.

#![expect(clippy::print_stdout, reason = "it measures, and says what it found")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use laneway_core::class::Offer;
use laneway_core::definition::{Source, compile};
use laneway_store::model::{Ask, NewSession, Submission};
use laneway_store::{Open, Store, open};

/// Steps of one run.
const STEPS: usize = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let wanted: usize = std::env::args().nth(1).map_or(Ok(100_000), |number| number.parse())?;
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("laneway.db");
    let address = path.to_str().ok_or("the path is no text")?;
    for parked in [0, wanted / 100, wanted] {
        park(address, parked).await?;
        let (before, begun) = (resident()?, Instant::now());
        let store = open(address, Open::Create)?;
        let offer = Offer { node: "node".to_owned(), has_process: true, ..Offer::default() };
        let session =
            store.register(NewSession { offer: Some(offer), ..NewSession::ephemeral("node", 4) }).await?;
        store.reap().await?;
        let next = store.promote().await?;
        let claims = store.claim(Ask { session, run: None, limit: 4, ahead: 0 }).await?;
        let (took, after) = (begun.elapsed(), resident()?);
        println!(
            "{parked:>7} parked: started in {took:.1?}, {} KiB more memory, next moment known: {}, claims: {}",
            after.saturating_sub(before),
            next.is_some(),
            claims.len()
        );
    }
    Ok(())
}

/// Brings the store to so many parked tasks, in a life of its own.
async fn park(address: &str, wanted: usize) -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn Store> = open(address, Open::Create)?;
    let session = store.register(NewSession::ephemeral("maker", 1)).await?;
    let there: u64 = store
        .runs(laneway_store::model::RunFilter { limit: usize::MAX, ..Default::default() })
        .await?
        .iter()
        .flat_map(|run| &run.counts)
        .map(|(_, number)| number)
        .sum();
    let mut missing = wanted.saturating_sub(usize::try_from(there)?);
    while missing > 0 {
        let steps = missing.min(STEPS);
        missing -= steps;
        let lines: String =
            (0..steps).map(|step| format!("  s{step}: {{wait: {{signal: go, timeout: 30d}}}}\n")).collect();
        let document = format!("name: parked\nsteps:\n{lines}");
        let source = Source {
            file: "parked.yaml".to_owned(),
            default_name: "parked".to_owned(),
            text: document.clone(),
        };
        let plan = compile(&source).map_err(|found| found.render(false))?;
        let submission = Submission {
            plan: Arc::new(plan),
            document,
            dir: "/tmp".to_owned(),
            bundle: None,
            params: serde_json::Map::new(),
            max_parallel: 4,
            session,
            is_shared: true,
            is_paused: false,
            key: None,
            by: "bench".to_owned(),
            origin: None,
            parent: None,
            no_cache: false,
        };
        store.submit(submission).await?;
    }
    Ok(())
}

/// In KiB, as the system counts it.
fn resident() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("the system tells no size")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
