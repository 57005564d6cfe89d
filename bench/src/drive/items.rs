//! The same functions that do nothing, once as the items of one step and once as a flat graph of as many steps: from submit to the end of
//! the run, since items become tasks while it runs, and steps when it is submitted. Reading the documents is not timed.

use std::convert::Infallible;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_engine::function::{Call, Functions};
use serde_json::Value;

use super::{Home, compiled};
use crate::graph::{Graph, Shape};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    Items,
    Flat,
}

/// In seconds.
pub(super) async fn run(kind: Kind, tasks: usize, at_once: usize, laneway: &Path) -> Result<f64> {
    let places = u32::try_from(at_once)?;
    let yaml = match kind {
        Kind::Items => {
            let each = format!("for_each: \"${{{{ {tasks} | range }}}}\", function: noop");
            format!("name: items\nsteps:\n  each: {{{each}}}\n")
        }
        Kind::Flat => {
            let graph = Graph { shape: Shape::Flat(tasks), at_once: places };
            graph.laneway().replace("command: [/bin/true]", "function: noop")
        }
    };
    let plan = compiled(&yaml)?;
    let home = Home::new().await?;
    let warden = home.warden(laneway)?;
    let functions = Functions::new().add("noop", |_: Call<Value>| async { Ok::<_, Infallible>(()) });
    let begun = Instant::now();
    let run = home.submit_plan(plan, &yaml, places).await?;
    home.drive(run, at_once, warden, functions).await?;
    let took = begun.elapsed().as_secs_f64();
    home.store.retire(home.session, Leaving::because(LeaveReason::Done)).await?;
    Ok(took)
}
