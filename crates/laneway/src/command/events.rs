//! `laneway events`: the facts of a run in their order, as sentences or as JSON lines.

use std::time::Duration;

use super::Context;
use crate::exit::Exit;
use crate::progress::{Tally, sentence};
use crate::text;

const PAGE: usize = 2_000;

/// The hint of a change can be missed.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway events last --json | jq -r 'select(.event == \"task_finished\") | .step'"
)]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// Go on until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Only events numbered above this
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Print one event a line as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    let (store, run) = context.find(&args.run).await?;
    let plan = store.run(run).await?.plan;
    let mut changes = store.changes();
    let mut tally = Tally::new(&plan);
    // From the first on, also with --after: durations need the starts.
    let mut cursor = 0;
    loop {
        let events = match store.events_since(run, cursor, PAGE).await {
            // One that cannot be read does not hide those behind it.
            Err(error @ laneway_store::Error::UnreadableEvent { seq, .. }) => {
                printer.warning(&format!("{error}; `laneway doctor` says more"));
                cursor = seq;
                continue;
            }
            events => events?,
        };
        let mut lines = String::new();
        for event in &events {
            cursor = event.seq;
            if event.seq > args.after {
                if args.json {
                    lines.push_str(&format!("{}\n", event.to_json()));
                } else {
                    let told = sentence(event).unwrap_or_else(|| unsaid(event));
                    lines.push_str(&format!("{:>5} {} {told}\n", event.seq, text::date(event.at)));
                }
            }
            tally.apply(event, true);
        }
        printer.text(&lines)?;
        if printer.is_closed() {
            break;
        }
        // A page ends early in front of an event that cannot be read.
        if !events.is_empty() {
            continue;
        }
        if !args.follow || tally.finished.is_some() {
            break;
        }
        let _ = tokio::time::timeout(LOOK, changes.changed()).await;
    }
    Ok(Exit::Succeeded)
}

/// What progress leaves out is said here: this is the record.
fn unsaid(event: &laneway_core::event::Event) -> String {
    match event.fact.step() {
        Some(step) => format!("{step} is available"),
        None => format!("run {} started", event.run.short()),
    }
}
