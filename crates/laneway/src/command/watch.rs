//! `laneway watch`: a run that goes on elsewhere, shown as `laneway run` shows its own, until it ends.

use std::time::Duration;

use laneway_core::event::Event;
use laneway_core::state::RunStatus;
use tokio::time::{Instant, interval, sleep};

use super::Context;
use crate::drive::Interrupts;
use crate::exit::Exit;
use crate::hints::Hints;
use crate::patience::is_passing;
use crate::progress::{Ending, Progress};

/// How often what moves is moved.
const TICK: Duration = Duration::from_millis(100);

/// How long nothing may happen before it is looked at whether anybody still drives it.
const QUIET: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway submit nightly.yaml\n  laneway watch last\n\n\
    Exit codes are those of `laneway run`. Ctrl-C ends the watching and not the run.")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Print one event a line as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    let face = context.face()?;
    let run = face.run(&args.run).await?;
    let (id, short) = (run.run, run.run.short());
    let steps = run.tasks.iter().filter(|task| task.index.is_none()).count();
    let mut progress = Progress::new(printer, (&run.workflow, steps), 0, args.json);
    let mut hints = Hints::new(&face);
    hints.look_at(Some((id, run.last_event)));
    let mut interrupts = Interrupts::listen()?;
    let mut tick = interval(TICK);
    let (mut cursor, mut is_lost, mut heard) = (0, false, Instant::now());

    let ended: Option<Exit> = loop {
        match face.events(id, cursor).await {
            Ok(page) => {
                is_lost = false;
                for unreadable in &page.unreadable {
                    progress.note(&format!("{unreadable}; `laneway doctor` says more"));
                }
                let events: Vec<Event> =
                    page.events.iter().map(Event::from_json).collect::<Result<_, _>>()?;
                progress.apply(&events)?;
                let has_more = page.next_after > cursor;
                cursor = page.next_after;
                if has_more {
                    heard = Instant::now();
                    continue;
                }
            }
            // Who was there before comes back; the run does not wait for that.
            Err(error) if is_passing(&error) => {
                if !is_lost {
                    progress.note(&format!("{error}; trying again"));
                }
                is_lost = true;
            }
            Err(error) => return Err(error),
        }
        if progress.is_over() {
            break None;
        }
        if printer.is_closed() {
            break Some(Exit::Succeeded);
        }
        if heard.elapsed() >= QUIET && !is_lost {
            let seen = match face.going_on(id).await {
                Err(error) if is_passing(&error) => None,
                seen => Some(seen?),
            };
            if seen.is_some_and(|seen| seen.interrupted) {
                progress.note(&format!(
                    "the process that ran it is gone; `laneway resume {short}` goes on with it"
                ));
                break Some(Exit::of_run(RunStatus::Running, false));
            }
            heard = Instant::now();
        }
        // Not begun anew with every tick: a hint that it has half heard would be lost.
        let mut hint = std::pin::pin!(hints.next());
        let mut quiet = std::pin::pin!(sleep(QUIET));
        loop {
            tokio::select! {
                biased;
                () = interrupts.next() => {
                    progress.close();
                    printer.note(&format!("run {short} goes on; `laneway cancel {short}` ends it"));
                    return Ok(Exit::Interrupted);
                }
                _ = &mut hint => break,
                () = &mut quiet => break,
                _ = tick.tick(), if progress.is_terminal() => progress.tick(),
            }
        }
    };
    let (is_json, is_terminal) = (progress.is_json(), progress.is_terminal());
    let tally = progress.close();
    if let Some(exit) = ended {
        return Ok(exit);
    }
    if !is_json {
        let ending = Ending { run: id, tally: &tally, is_terminal };
        ending.failures(printer, &face).await?;
        ending.summary(printer)?;
    }
    let status = tally.finished.as_ref().map_or(RunStatus::Running, |(status, _)| *status);
    Ok(Exit::of_run(status, false))
}
