//! `laneway run`: a workflow, here and now, without a server.

use std::num::NonZeroU32;
use std::sync::Arc;

use laneway_core::definition::{Action, Step};
use laneway_core::hash::ContentHash;
use laneway_core::id::SessionId;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_server::wire;
use laneway_store::model::{NewSession, Submission};

use super::Context;
use super::pause::{interrupted_hooks, take_over};
use crate::children;
use crate::document::{self, Document, Files, ParamArgs};
use crate::drive::{self, DriveArgs, Node, Until, Work};
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::settings::{MAX_PARALLEL, count};
use crate::{dry_run, env};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway run nightly.yaml -p date=2026-11-15\n\n\
    Exit codes: 0 succeeded, 1 failed, 2 bad input, 3 the store cannot be used, 130 interrupted.\n\
    Ctrl-C cancels cleanly; a second one kills what still runs.")]
pub(crate) struct Args {
    /// The workflow file; `-` reads stdin
    #[arg(required_unless_present = "resume")]
    file: Option<String>,
    #[command(flatten)]
    params: ParamArgs,
    /// How many steps may run at once; wins over the document
    #[arg(long, value_name = "N", value_parser = count)]
    max_parallel: Option<NonZeroU32>,
    /// Go on with a run whose process is gone: an id, the beginning of one, or `last`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "param", "params_file", "max_parallel", "dry_run"])]
    resume: Option<String>,
    /// Show what would run, without running it and without a store
    #[arg(long)]
    dry_run: bool,
    /// Make the run, and start nothing of it: `laneway advance` does a level of it, `laneway resume` lets it go on
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    paused: bool,
    /// Refused in words: what is for later is for workers.
    #[arg(long, value_name = "WHEN", hide = true)]
    at: Option<String>,
    #[command(flatten)]
    drive: DriveArgs,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if let Some(at) = &args.at {
        return Err(Refusal::new("`laneway run` starts at once, and has no `--at`")
            .hint(format!("`laneway submit --at {at}` makes a run for later, which `laneway worker` takes"))
            .into());
    }
    if let Some(name) = &args.resume {
        let (store, run) = context.find(name).await?;
        let seen = Face::Store(Arc::clone(&store)).run(&run.to_string()).await?;
        // Of a run that has ended, what may be left are its hooks.
        let hooks =
            if seen.status.is_final() { interrupted_hooks(store.as_ref(), &seen).await? } else { None };
        return take_over(context, store, hooks.unwrap_or(run), args.drive).await;
    }
    let Some(file) = &args.file else {
        return Err(Refusal::new("no workflow file was named").into());
    };
    let mut start = Start::read(context, file, &args.params, args.max_parallel)?;
    start.no_cache = args.drive.no_cache;
    if args.dry_run {
        dry_run::show(&context.printer, &start.plan, &start.params, start.max_parallel, args.drive.json)?;
        return Ok(Exit::Succeeded);
    }
    let store = context.open_to_work()?;
    if args.paused {
        return start.leave_paused(context, store, &args.drive).await;
    }
    start.drive(context, store, args.drive).await
}

/// A new run, ready to be submitted.
pub(super) struct Start {
    pub(super) plan: Arc<laneway_core::plan::Plan>,
    pub(super) document: String,
    pub(super) dir: String,
    /// What its steps find in place of that directory.
    pub(super) bundle: Option<ContentHash>,
    pub(super) params: serde_json::Map<String, serde_json::Value>,
    pub(super) max_parallel: u32,
    /// Whether results of before are left alone.
    pub(super) no_cache: bool,
    /// Plans of files that its steps run as workflows of their own.
    pub(super) called: Vec<laneway_core::plan::Plan>,
}

impl Start {
    /// From a file, with parameters that fit.
    pub(super) fn read(
        context: &Context,
        file: &str,
        params: &ParamArgs,
        max: Option<NonZeroU32>,
    ) -> anyhow::Result<Self> {
        Self::of(context, (context.document(file)?, Files::Shared), params, max)
    }

    /// From a document that was read.
    pub(super) fn of(
        context: &Context,
        (document, files): (Document, Files),
        params: &ParamArgs,
        max: Option<NonZeroU32>,
    ) -> anyhow::Result<Self> {
        let plan = document::examine(&context.printer, &document, files, context.reach(files)?.as_ref())?;
        let called = children::check(context, &plan, &document.dir)?;
        let params = params.bind(&plan)?;
        let max_parallel = max_parallel(context, max, plan.workflow.max_parallel)?;
        Ok(Self {
            plan: Arc::new(plan),
            document: document.source.text,
            dir: document.dir.to_string_lossy().into_owned(),
            bundle: None,
            params,
            max_parallel,
            no_cache: false,
            called,
        })
    }

    /// As one that belongs to the session which submits it.
    pub(super) fn submission(self, session: SessionId) -> Submission {
        Submission {
            dir: self.dir,
            bundle: self.bundle,
            params: self.params,
            max_parallel: self.max_parallel,
            by: env::person(),
            no_cache: self.no_cache,
            ..Submission::new(self.plan, self.document, session)
        }
    }

    /// What only others could do would wait for ever in a run that belongs to this process.
    fn refuse_what_others_do(&self, args: &DriveArgs) -> Result<(), Refusal> {
        for plan in std::iter::once(self.plan.as_ref()).chain(&self.called) {
            args.check_labels(plan)?;
        }
        let refusal = |step: &Step| match &step.action {
            Action::Run { .. }
            | Action::Command { .. }
            | Action::Call { .. }
            | Action::Post { .. }
            | Action::Wait(_)
            | Action::Merge { .. } => None,
            Action::Function { .. } => {
                let message = format!("step `{}` calls a function, and `laneway` has none", step.name);
                let hint = "functions belong to the program that embeds Laneway: run this workflow with that";
                Some(Refusal::new(message).hint(hint))
            }
            Action::Queue { queue, .. } => {
                let message = format!(
                    "step `{}` is for remote workers of the queue `{queue}`, and they take nothing of a run that belongs to one process",
                    step.name
                );
                let hint = "start `laneway serve`, let a worker join it, and use `laneway submit FILE` or `laneway start NAME`";
                Some(Refusal::new(message).hint(hint))
            }
        };
        self.plan.workflow.steps.iter().find_map(refusal).map_or(Ok(()), Err)
    }

    /// Makes the run for this directory and environment, and leaves it to whoever goes on with it there.
    async fn leave_paused(
        self,
        context: &Context,
        store: Arc<dyn laneway_store::Store>,
        args: &DriveArgs,
    ) -> anyhow::Result<Exit> {
        self.refuse_what_others_do(args)?;
        let workflow = self.plan.workflow.name.clone();
        let session = store.register(NewSession::ephemeral(env::node(), 1)).await?;
        let submitted = store.submit(Submission { is_paused: true, ..self.submission(session) }).await;
        store.retire(session, Leaving::because(LeaveReason::Done)).await?;
        let run = submitted?;
        if args.json {
            context.printer.json(&wire::Submitted { run, workflow })?;
        } else {
            let short = run.short();
            context.printer.line(&format!("run {short} of {workflow} is made, and paused"))?;
            context.printer.note(&format!(
                "`laneway advance {short}` does a level of it; `laneway resume {short}` goes on with it here"
            ));
        }
        Ok(Exit::Succeeded)
    }

    pub(super) async fn drive(
        self,
        context: &Context,
        store: Arc<dyn laneway_store::Store>,
        args: DriveArgs,
    ) -> anyhow::Result<Exit> {
        self.refuse_what_others_do(&args)?;
        let node = Node::ephemeral(context, store).await?;
        let outcome = async {
            let (plan, max_parallel) = (Arc::clone(&self.plan), self.max_parallel);
            let run = node.store.submit(self.submission(node.session)).await?;
            let work = Work { run, plan, max_parallel, told: 0 };
            drive::to_the_end(context, &node, work, (args, Until::Over)).await
        }
        .await;
        node.end(Leaving::because(LeaveReason::Done)).await;
        outcome
    }
}

/// The flag, then the document, then the setting: a document knows its workflow better than whoever set up the machine,
/// and the person who types a flag knows best.
pub(super) fn max_parallel(
    context: &Context,
    flag: Option<NonZeroU32>,
    document: Option<NonZeroU32>,
) -> anyhow::Result<u32> {
    match flag.or(document) {
        Some(number) => Ok(number.get()),
        None => Ok(context.settings.count(&MAX_PARALLEL)?.get()),
    }
}
