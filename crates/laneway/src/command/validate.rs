//! `laneway validate`: every error of every file, and an exit code. Never runs anything.

use laneway_core::definition::{self, Diagnostics};
use laneway_server::callback::check_hosts;
use serde_json::{Value, json};

use super::Context;
use crate::children;
use crate::document::Bad;
use crate::exit::Exit;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway validate workflows/*.yaml")]
pub(crate) struct Args {
    /// Workflow files; `-` reads stdin
    #[arg(required = true)]
    files: Vec<String>,
    /// Print one JSON object per file
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    let mut exit = Exit::Succeeded;
    for file in &args.files {
        // A bad file does not hide the errors of the others.
        let mut warnings = None;
        let plan = context.document(file).and_then(|document| {
            let examined = definition::examine(&document.source).map_err(Bad)?;
            warnings = Some(examined.warnings);
            if !examined.shared_directory.is_empty() {
                return Err(Bad(examined.shared_directory).into());
            }
            let reach = context.settings.reach()?;
            check_hosts(&document.source, &examined.plan.workflow, &reach).map_err(Bad)?;
            children::check(context, &examined.plan, &document.dir)?;
            Ok(examined.plan)
        });
        let warned = warnings.as_ref().map(Diagnostics::entries).unwrap_or_default();
        if let Some(warnings) = warnings.filter(|_| !args.json) {
            printer.warnings(&warnings);
        }
        match plan {
            Ok(plan) if args.json => {
                printer.json(&verdict(file, Some(&plan.workflow.name), (json!([]), warned)))?;
            }
            Ok(plan) => {
                let steps = text::count(plan.workflow.steps.len() as u64, "step");
                let file = if file == "-" { "stdin" } else { file };
                printer.line(&format!("{file}: ok, {} has {steps}", plan.workflow.name))?;
            }
            Err(error) => {
                exit = Exit::BadInput;
                if args.json {
                    let errors = match error.downcast_ref::<Bad>() {
                        Some(Bad(diagnostics)) => json!(diagnostics.entries()),
                        None => json!([{ "message": format!("{error:#}") }]),
                    };
                    printer.json(&verdict(file, None, (errors, warned)))?;
                } else {
                    printer.failure(&error);
                }
            }
        }
    }
    Ok(exit)
}

fn verdict(file: &str, workflow: Option<&str>, (errors, warnings): (Value, Vec<Value>)) -> Value {
    json!({
        "file": file, "valid": workflow.is_some(), "workflow": workflow, "errors": errors, "warnings": warnings,
    })
}
