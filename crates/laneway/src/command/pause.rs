//! `laneway pause` and `laneway resume`: a run, or a workflow with all of its runs, starts nothing until it is resumed.

use laneway_store::model::Pausable;

use super::Context;
use crate::env;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway pause last\n  laneway pause --workflow nightly\n\n\
    What runs goes on; nothing new starts until `laneway resume`.")]
pub(crate) struct Args {
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway resume last\n  laneway resume --workflow nightly")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Run id, the beginning of one, or `last`
    run: Option<String>,
    /// Every run of this workflow, also later ones
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let (store, what, name) = args.what.find(context).await?;
    store.pause(what, &env::person()).await?;
    context.printer.line(&format!("{name} is paused; `laneway resume` lets it go on"))?;
    Ok(Exit::Succeeded)
}

pub(crate) async fn resume(context: &Context, args: ResumeArgs) -> anyhow::Result<Exit> {
    let (store, what, name) = args.what.find(context).await?;
    store.resume(what, &env::person()).await?;
    context.printer.line(&format!("{name} goes on"))?;
    Ok(Exit::Succeeded)
}

impl What {
    async fn find(
        self,
        context: &Context,
    ) -> anyhow::Result<(std::sync::Arc<dyn laneway_store::Store>, Pausable, String)> {
        if let Some(name) = self.workflow {
            let store = context.open()?;
            // A name that nobody has used is a slip of the finger.
            store.latest(&name).await?;
            return Ok((store, Pausable::Workflow(name.clone()), format!("workflow {name}")));
        }
        let (store, run) = context.find(&self.run.unwrap_or_default()).await?;
        Ok((store, Pausable::Run(run), format!("run {}", run.short())))
    }
}
