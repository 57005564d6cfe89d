//! `laneway plan`: levels, lanes, width, critical path and pre-warm point of a workflow. Runs nothing.

use laneway_core::plan::text::describe;
use laneway_core::plan::variables::{Reads, not_passed};
use laneway_core::plan::wire;

use super::Context;
use crate::document::{self, Files};
use crate::env;
use crate::exit::Exit;
use crate::settings::PASS_ENV;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway plan build.yaml --json | jq .critical_path")]
pub(crate) struct Args {
    /// The workflow file; `-` reads stdin
    file: String,
    /// Print all of it as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let document = context.document(&args.file)?;
    let plan = document::examine(&context.printer, &document, Files::Apart, None)?;
    let more = context.settings.get(&PASS_ENV).map_or("", |(names, _)| names);
    let passed = env::passed_to_steps(more.split(','));
    let missing = not_passed(&plan, &passed);
    if args.json {
        context
            .printer
            .json(&wire::Plan { variables: wire::variables(&missing), ..wire::Plan::from(&plan) })?;
    } else {
        context.printer.text(&describe(&plan))?;
        context.printer.text(&variables(&missing))?;
    }
    Ok(Exit::Succeeded)
}

/// What works here, and not on a worker: nothing for most workflows.
fn variables(missing: &[Reads<'_>]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let lines = missing.iter().map(|Reads { of, is_secret, names }| {
        let what = if *is_secret { "secret " } else { "" };
        format!("  {what}{of}: {}\n", names.join(", "))
    });
    let lines: String = lines.collect();
    format!(
        "\nvariables that a worker may not have (`env` of the step or `pass_env` of the worker gives them; \
         `run --clean-env` tries it)\n{lines}"
    )
}
