//! `laneway advance`: one level of a run that is held up. Workers do it, or this process, where the run belongs to none that
//! lives.

use laneway_server::ask;
use laneway_store::Error;
use laneway_store::model::Placed;

use super::Context;
use crate::deed::author;
use crate::drive::{self, DriveArgs, Until};
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway run nightly.yaml --paused\n  laneway advance last\n\n\
    For runs with `execution: levels` that are paused. Behind the level the run is paused again;\n\
    `laneway resume` lets it go on to its end.")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    #[command(flatten)]
    drive: DriveArgs,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if context.client()?.is_some() {
        let face = context.face()?;
        let run = face.run(&args.run).await?.run;
        let level = face.advance(run).await?;
        context.printer.line(&format!("run {} goes on with level {level}", run.short()))?;
        return Ok(Exit::Succeeded);
    }
    let (store, run) = context.find(&args.run).await?;
    let head = store.head(run).await?;
    let is_local = head.placed == Placed::Local;
    if is_local {
        args.drive.check_labels(&head.plan)?;
    }
    let told = store.run_state(run).await?.last_event;
    let level = ask::advance(store.as_ref(), run, &author()).await?.level;
    let goes_on = format!("run {} goes on with level {level}", run.short());
    if !is_local {
        context.printer.line(&format!("{goes_on}, on whichever node takes it"))?;
        return Ok(Exit::Succeeded);
    }
    match drive::take_over(context, store, run, told, (args.drive, Until::Paused)).await {
        // Who drives it sees that it may go on.
        Err(error) if matches!(error.downcast_ref(), Some(Error::Owned { .. })) => {
            context.printer.line(&format!("{goes_on}, where it was started"))?;
            Ok(Exit::Succeeded)
        }
        outcome => outcome,
    }
}
