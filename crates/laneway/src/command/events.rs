//! `laneway events`: the facts of a run in their order, as sentences or as JSON lines.

use std::time::{Duration, Instant};

use laneway_core::event::Event;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_server::wire;

use super::Context;
use crate::exit::Exit;
use crate::face::Face;
use crate::patience::Patience;
use crate::progress::sentence;
use crate::text;

/// The hint of a change can be missed.
const LOOK: Duration = Duration::from_millis(500);

/// How often it is asked whether there can be more, while nothing comes.
const QUIET: Duration = Duration::from_secs(5);

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
    let face = context.face()?;
    let run = face.run(&args.run).await?.run;
    let told = Told { after: args.after, is_json: args.json, follow: args.follow };
    tell(context, &face, run, told).await?;
    Ok(Exit::Succeeded)
}

/// What is told of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// Only events behind this number.
    pub(super) after: u64,
    pub(super) is_json: bool,
    /// Until the run ends.
    pub(super) follow: bool,
}

/// Prints the events of a run; says how it was when there were no more.
pub(super) async fn tell(
    context: &Context,
    face: &Face,
    run: RunId,
    told: Told,
) -> anyhow::Result<RunStatus> {
    let printer = &context.printer;
    let mut watch = face.watch();
    let (mut cursor, mut asked) = (told.after, None::<Instant>);
    let mut patience = Patience::new(printer, told.follow);
    loop {
        let (status, page) = match look(face, run, cursor).await {
            Ok(found) => found,
            Err(error) => {
                patience.bear(error)?;
                watch.next(LOOK).await;
                continue;
            }
        };
        patience.answered();
        // One that cannot be read does not hide those behind it.
        for unreadable in &page.unreadable {
            printer.warning(&format!("{unreadable}; `laneway doctor` says more"));
        }
        let mut lines = String::new();
        for line in &page.events {
            if told.is_json {
                lines.push_str(&format!("{line}\n"));
                continue;
            }
            let event = Event::from_json(line)?;
            let words = sentence(&event).unwrap_or_else(|| unsaid(&event));
            lines.push_str(&format!("{:>5} {} {words}\n", event.seq, text::date(event.at)));
        }
        if told.is_json {
            printer.bytes(lines.as_bytes())?
        } else {
            printer.text(&lines)?
        }
        let has_more = page.next_after > cursor;
        cursor = page.next_after;
        if printer.is_closed() || !has_more && (!told.follow || status.is_final()) {
            return Ok(status);
        }
        if has_more {
            continue;
        }
        if asked.is_none_or(|asked| asked.elapsed() >= QUIET) {
            asked = Some(Instant::now());
            if let Err(error) = face.going_on(run).await {
                patience.bear(error)?;
            }
        }
        watch.next(LOOK).await;
    }
}

/// The status is looked at first: what belongs to an end is there when the run has ended.
async fn look(face: &Face, run: RunId, after: u64) -> anyhow::Result<(RunStatus, wire::EventList)> {
    let status = face.status(run).await?;
    Ok((status, face.events(run, after).await?))
}

/// What progress leaves out is said here: this is the record.
fn unsaid(event: &Event) -> String {
    match event.fact.step() {
        Some(step) => format!("{step} is available"),
        None => format!("run {} started", event.run.short()),
    }
}
