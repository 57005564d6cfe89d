//! The last words of a run: what the failed steps printed last, and one line that sums it up.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::model::LogName;

use super::Tally;
use crate::command::logs::last_lines;
use crate::face::Face;
use crate::print::Printer;
use crate::text::{self, Palette};

/// Failed steps whose last lines are shown, and how many lines of each.
const MAX_FAILURES: usize = 5;
const MAX_LINES: usize = 10;

/// A line of a log is cut here: it is shown to say what went wrong, `laneway logs` has all of it.
const MAX_COLUMNS: usize = 300;

/// Below this, parallelism is not worth a word.
const WORTH_SAYING: Duration = Duration::from_millis(100);

/// Where the last words of a run go: to stderr if what moved was there, too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending<'a> {
    pub(crate) run: RunId,
    pub(crate) tally: &'a Tally,
    pub(crate) is_terminal: bool,
}

impl Ending<'_> {
    /// What failed printed this last.
    pub(crate) async fn failures(self, printer: &Printer, face: &Face) -> anyhow::Result<()> {
        let text = failures(self.palette(printer), face, self.run, self.tally).await;
        self.print(printer, &text)
    }

    /// One line that sums it up. Nothing of the run is shown behind it.
    pub(crate) fn summary(self, printer: &Printer) -> anyhow::Result<()> {
        let line = summary(self.palette(printer), self.run, self.tally);
        self.print(printer, &format!("{line}\n"))
    }

    fn palette(self, printer: &Printer) -> Palette {
        if self.is_terminal { printer.err_palette() } else { printer.out_palette() }
    }

    fn print(self, printer: &Printer, text: &str) -> anyhow::Result<()> {
        if self.is_terminal {
            printer.note_text(text);
            return Ok(());
        }
        printer.text(text)
    }
}

async fn failures(palette: Palette, face: &Face, run: RunId, tally: &Tally) -> String {
    // What failed is set apart from the lines above it.
    let mut text = String::from(if tally.failures().next().is_some() { "\n" } else { "" });
    // What only waited has printed nothing; the summary says why it failed.
    for (step, attempt) in tally.failures().filter(|(_, attempt)| *attempt > 0).take(MAX_FAILURES) {
        text.push_str(&failure(palette, face, LogName { run, step: step.to_owned(), attempt }).await);
    }
    if let Some(more @ 1..) = tally.failures().count().checked_sub(MAX_FAILURES) {
        let short = run.short();
        text.push_str(&format!(
            "{} failed; `laneway explain {short}` lists them\n\n",
            text::count(more as u64, "more step")
        ));
    }
    text
}

async fn failure(palette: Palette, face: &Face, of: LogName) -> String {
    let (mark, step) = (palette.red("✗"), of.step.clone());
    let command = format!("laneway logs {} {step}", of.run.short());
    let lines = match last_lines(face, of, MAX_LINES).await {
        Ok(lines) => lines,
        Err(error) => return format!("{mark} {step}: its log cannot be read: {error}\n\n"),
    };
    if lines.is_empty() {
        return format!("{mark} {step} printed nothing\n\n");
    }
    let last = if lines.len() < MAX_LINES { "it printed" } else { "its last lines" };
    let mut text = format!("{mark} {step}, {last} ({}):\n", palette.cyan(&command));
    for line in lines {
        let line = text::cut(&text::tame(&line.text()), MAX_COLUMNS);
        text.push_str(&format!("  {} {line}\n", palette.dim("│")));
    }
    text.push('\n');
    text
}

/// `✓ nightly 1a2b3c4d succeeded in 3.2s: 12 succeeded, 2 skipped; parallelism saved 5.1s`. Of a failed run: why, and what to type
/// next, all of it in red.
fn summary(palette: Palette, run: RunId, tally: &Tally) -> String {
    let (status, reason) = match &tally.finished {
        Some((status, reason)) => (*status, reason.as_deref()),
        None => (RunStatus::Running, None),
    };
    let counts: Vec<String> =
        [TaskStatus::Succeeded, TaskStatus::Failed, TaskStatus::Canceled, TaskStatus::Skipped]
            .into_iter()
            .filter(|status| tally.count(*status) > 0)
            .map(|status| match (status, tally.cached.len()) {
                (TaskStatus::Succeeded, cached @ 1..) => {
                    format!("{} {status} ({cached} from cache)", tally.count(status))
                }
                (_, _) => format!("{} {status}", tally.count(status)),
            })
            .collect();
    let (short, counts, took) = (run.short(), counts.join(", "), text::duration(tally.wall()));
    let (mark, word) = (text::run_mark(status), status.as_str());
    if status == RunStatus::Failed {
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let next = next(run, tally);
        let workflow = &tally.workflow;
        return palette.red(&format!("{mark} {workflow} {short} {word} in {took}: {counts}{reason}; {next}"));
    }
    let (mark, word) = (palette.run(status, mark), palette.run(status, word));
    let mut line = format!("{mark} {} {short} {word} in {took}: {counts}", palette.bold(&tally.workflow));
    match (status, reason) {
        (RunStatus::Canceled, Some(reason)) => line.push_str(&format!(" ({reason})")),
        (_, _) if tally.saved() >= WORTH_SAYING => {
            line.push_str(&format!("; parallelism saved {}", text::duration(tally.saved())));
        }
        (_, _) => {}
    }
    line
}

/// The commands behind a failed run: what the step that failed first printed, where it ran at all, and another try.
fn next(run: RunId, tally: &Tally) -> String {
    let short = run.short();
    let look = match tally.failures().next() {
        Some((step, 1..)) => format!("laneway logs {short} {step}"),
        Some((_, 0)) | None => format!("laneway explain {short}"),
    };
    format!("next: {look}, laneway retry {short}")
}
