//! Fills a store with tasks that wait for somebody, each with a moment at which it gives up.

use anyhow::Result;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_store::model::Submission;

use super::{Home, compiled};

/// Steps of one run.
const STEPS: usize = 1_000;

pub(super) async fn park(tasks: usize) -> Result<()> {
    let home = Home::new().await?;
    let mut missing = tasks;
    while missing > 0 {
        let steps = missing.min(STEPS);
        missing -= steps;
        let lines: String =
            (0..steps).map(|step| format!("  s{step}: {{wait: {{signal: go, timeout: 30d}}}}\n")).collect();
        let document = format!("name: parked\nsteps:\n{lines}");
        let submission = home.submission(compiled(&document)?, &document, 4)?;
        home.store.submit(Submission { is_shared: true, ..submission }).await?;
    }
    home.store.retire(home.session, Leaving::because(LeaveReason::Done)).await?;
    Ok(())
}
