//! `laneway signal`: says what a step waits for, with who and why. What it brings is the step's output, and is not shown again.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::Context as _;
use laneway_core::output;
use laneway_server::wire::{Signal, SignalResult};
use serde_json::{Map, Value};

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway signal last approve approved --reason \"checked on staging\"\n  \
    laneway signal last deploy done --payload '{\"tag\": \"v2\"}'\n\n\
    The first signal counts; a second one changes nothing. One that comes before the step waits is kept for it.\n\
    Who sends it is recorded: the name of the token, or whoever runs this command."
)]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// The step that waits
    step: String,
    /// The signal, as the step names it in `wait: {signal: NAME}`
    #[arg(value_name = "NAME")]
    signal: String,
    /// Why; kept with who sends it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The output of the step: a JSON object, or key=value lines
    #[arg(long, value_name = "TEXT", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// The same from a file; `-` is stdin
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// Print what happened as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let payload = payload(&args)?;
    let face = context.face()?;
    let run = face.run(&args.run).await?.run;
    let signal = Signal { signal: args.signal, reason: args.reason, payload };
    let signaled = face.signal(run, &args.step, signal).await?;
    if args.json {
        context.printer.json(&signaled)?;
        return Ok(Exit::Succeeded);
    }
    let (short, step, signal) = (run.short(), &args.step, &signaled.signal);
    context.printer.line(&match signaled.result {
        SignalResult::Woken => format!("{step} of run {short} has got its signal {signal} and is over"),
        SignalResult::Kept => {
            format!("{step} of run {short} does not wait for {signal} yet; the signal is kept for it")
        }
        SignalResult::Before => {
            let by = signaled.by.as_deref().unwrap_or("somebody");
            let at = signaled.at.map(|at| format!(" at {}", text::date(at.0))).unwrap_or_default();
            format!("{step} of run {short} was signaled before, by {by}{at}; nothing was changed")
        }
    })?;
    // Of a run that nobody drives nothing starts behind it.
    if face.run(&run.to_string()).await?.interrupted {
        context
            .printer
            .note(&format!("the process that ran it is gone; `laneway resume {short}` goes on with it"));
    }
    Ok(Exit::Succeeded)
}

/// As a step writes its output, so that both may hold the same.
fn payload(args: &Args) -> anyhow::Result<Map<String, Value>> {
    let bytes = match (&args.payload, &args.payload_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            // One byte more tells that there is too much.
            std::io::stdin()
                .take(output::LIMIT as u64 + 1)
                .read_to_end(&mut bytes)
                .context("stdin cannot be read")?;
            bytes
        }
        (None, Some(path)) => {
            std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?
        }
        (None, None) => return Ok(Map::new()),
    };
    Ok(output::parse(&bytes).map_err(|error| {
        Refusal::new(format!("the payload cannot be read: {error}"))
            .hint("give a JSON object such as '{\"tag\": \"v2\"}', or key=value lines")
    })?)
}
