//! `laneway graph`: a workflow as a picture, from the layout that all views share. Runs nothing.

use std::path::PathBuf;

use laneway_core::graph;

use super::{Context, write_to};
use crate::document;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway graph build.yaml -o build.svg")]
pub(crate) struct Args {
    /// The workflow file; `-` reads stdin
    file: String,
    /// The format; by default the ending of the output file says it, else DOT
    #[arg(short, long, value_enum)]
    format: Option<Format>,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Dot,
    Mermaid,
    Svg,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let document = context.document(&args.file)?;
    let plan = document::compile(&document)?;
    let output = args.output.as_deref();
    let text = match args.format.or_else(|| output.and_then(of_ending)).unwrap_or(Format::Dot) {
        Format::Dot => graph::dot(&plan),
        Format::Mermaid => graph::mermaid(&plan),
        Format::Svg => graph::svg(&plan, &graph::layout(&plan)),
    };
    write_to(context, output, &text)?;
    Ok(Exit::Succeeded)
}

fn of_ending(path: &std::path::Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "svg" => Some(Format::Svg),
        "mmd" | "mermaid" => Some(Format::Mermaid),
        "dot" | "gv" => Some(Format::Dot),
        _ => None,
    }
}
