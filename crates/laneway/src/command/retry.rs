//! `laneway retry`: opens an ended run again and goes on with it here.

use laneway_server::ask;
use laneway_server::wire::Reopened;
use laneway_store::model::{Placed, Reopen};

use super::Context;
use crate::deed::author;
use crate::drive::{self, DriveArgs, Until};
use crate::exit::Exit;
use crate::progress::listed;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway retry last --from test")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// Run this step and everything behind it again, whatever became of it
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    #[command(flatten)]
    drive: DriveArgs,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if let Some(client) = context.client()? {
        args.drive.check_for_server()?;
        let seen = client.run_in_short(&args.run).await?;
        let what = Reopen { from: args.from.as_deref(), seen: Some(seen.last_event) };
        let reopened = client.retry(&seen.run.to_string(), what).await?;
        return goes_on(context, &reopened, args.drive.json);
    }
    let (store, run) = context.find(&args.run).await?;
    let head = store.head(run).await?;
    let is_local = head.placed == Placed::Local;
    if is_local {
        args.drive.check_labels(&head.plan)?;
    }
    let told = store.run_state(run).await?.last_event;
    let what = Reopen { from: args.from.as_deref(), seen: Some(told) };
    let reopened = ask::retry(store.as_ref(), run, what, &author()).await?;
    if !is_local {
        return goes_on(context, &reopened, args.drive.json);
    }
    drive::take_over(context, store, run, told, (args.drive, Until::Over)).await
}

/// A submitted run is opened again and left to the workers that take its tasks.
pub(super) fn goes_on(context: &Context, reopened: &Reopened, is_json: bool) -> anyhow::Result<Exit> {
    if is_json {
        context.printer.json(reopened)?;
    } else {
        let (run, steps) = (reopened.run.short(), listed(&reopened.steps));
        context.printer.line(&format!("run {run} goes on: {steps}"))?;
    }
    Ok(Exit::Succeeded)
}
