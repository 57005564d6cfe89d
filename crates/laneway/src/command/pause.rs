//! `laneway pause` and `laneway resume`: a run, or a workflow with all of its runs, starts nothing until it is resumed.

use super::Context;
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
    let name = args.what.say(context, true).await?;
    context.printer.line(&format!("{name} is paused; `laneway resume` lets it go on"))?;
    Ok(Exit::Succeeded)
}

pub(crate) async fn resume(context: &Context, args: ResumeArgs) -> anyhow::Result<Exit> {
    let name = args.what.say(context, false).await?;
    context.printer.line(&format!("{name} goes on"))?;
    Ok(Exit::Succeeded)
}

impl What {
    /// Holds it up or lets it go on; says what it was.
    async fn say(self, context: &Context, is_paused: bool) -> anyhow::Result<String> {
        let face = context.face()?;
        if let Some(name) = self.workflow {
            face.pause_workflow(&name, is_paused).await?;
            return Ok(format!("workflow {name}"));
        }
        let run = face.run(&self.run.unwrap_or_default()).await?.run;
        face.pause_run(run, is_paused).await?;
        Ok(format!("run {}", run.short()))
    }
}
