//! `laneway skip`: lets a run go on past a failed step, and goes on with it here. The step stays marked.

use laneway_server::ask;
use laneway_store::model::Placed;

use super::Context;
use crate::deed::author;
use crate::drive::{self, DriveArgs, Until};
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway skip last flaky-check\n\n\
    Steps that need the skipped one see it as succeeded, without an output.")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// The failed step
    step: String,
    #[command(flatten)]
    drive: DriveArgs,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if let Some(client) = context.client()? {
        args.drive.check_for_server()?;
        let reopened = client.skip(&args.run, &args.step).await?;
        return super::retry::goes_on(context, &reopened, args.drive.json);
    }
    let (store, run) = context.find(&args.run).await?;
    let head = store.head(run).await?;
    let is_local = head.placed == Placed::Local;
    if is_local {
        args.drive.check_labels(&head.plan)?;
    }
    let told = store.run_state(run).await?.last_event;
    let reopened = ask::skip(store.as_ref(), run, &args.step, &author()).await?;
    if !is_local {
        return super::retry::goes_on(context, &reopened, args.drive.json);
    }
    drive::take_over(context, store, run, told, (args.drive, Until::Over)).await
}
