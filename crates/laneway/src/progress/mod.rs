//! What a person or a program sees while a run goes on. One stream of events feeds all three views: lines
//! that move on a terminal, plain lines in a pipe, JSON lines with `--json`.
//! Owns what is shown and when; never touches the run (`drive.rs` does).

mod ending;
mod keys;
mod sentence;
mod tally;
mod terminal;

use laneway_core::event::{Event, Fact};

use crate::print::Printer;
use crate::text;

pub(crate) use ending::Ending;
pub(crate) use sentence::{listed, sentence, why};
pub(crate) use tally::Tally;
use terminal::Terminal;

/// Follows one run.
#[derive(Debug)]
pub(crate) struct Progress<'a> {
    printer: &'a Printer,
    view: View,
    tally: Tally,
    /// Events up to this number happened before: they count, and are not told again.
    told: u64,
}

#[derive(Debug)]
enum View {
    Terminal(Terminal),
    Lines,
    Json,
}

impl<'a> Progress<'a> {
    /// Of a run of a workflow with so many steps.
    pub(crate) fn new(
        printer: &'a Printer,
        (workflow, steps): (&str, usize),
        told: u64,
        is_json: bool,
    ) -> Self {
        let view = if is_json {
            View::Json
        } else if printer.can_animate() {
            View::Terminal(Terminal::new((printer.err_palette(), printer.is_utf8()), steps as u64))
        } else {
            View::Lines
        };
        Self { printer, view, tally: Tally::new(workflow), told }
    }

    /// Whether the events so far end the run.
    pub(crate) fn is_over(&self) -> bool {
        self.tally.finished.is_some()
    }

    /// Takes the next events, in order.
    pub(crate) fn apply(&mut self, events: &[Event]) -> anyhow::Result<()> {
        // One write for all of them: a run of thousands of short steps must not wait for its own progress.
        let (mut lines, mut json) = (String::new(), String::new());
        for event in events {
            let is_new = event.seq > self.told;
            if is_new {
                match &mut self.view {
                    View::Json => json.push_str(&format!("{}\n", event.to_json())),
                    // The last word of a run is its summary.
                    View::Lines if matches!(event.fact, Fact::RunFinished(_)) => {}
                    View::Lines => {
                        if let Some(sentence) = sentence(event) {
                            lines.push_str(&format!("{} {sentence}\n", text::clock(event.at)));
                        }
                    }
                    View::Terminal(terminal) => terminal.tell(event),
                }
            }
            self.tally.apply(event, is_new);
        }
        match &mut self.view {
            View::Json if json.is_empty() => Ok(()),
            View::Json => self.printer.bytes(json.as_bytes()),
            View::Lines if lines.is_empty() => Ok(()),
            View::Lines => self.printer.text(&lines),
            View::Terminal(terminal) => {
                terminal.draw(&self.tally);
                Ok(())
            }
        }
    }

    /// Moves what moves with time.
    pub(crate) fn tick(&self) {
        match &self.view {
            View::Terminal(terminal) => terminal.tick(),
            View::Lines | View::Json => {}
        }
    }

    /// A remark in between.
    pub(crate) fn note(&self, line: &str) {
        match &self.view {
            View::Terminal(terminal) => terminal.note(line),
            View::Lines | View::Json => self.printer.note(line),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.view, View::Json)
    }

    /// Whether the last words belong to stderr, as all that moved did.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.view, View::Terminal(_))
    }

    /// Takes away what moved and returns the sums.
    pub(crate) fn close(self) -> Tally {
        match self.view {
            View::Terminal(terminal) => terminal.close(),
            View::Lines | View::Json => {}
        }
        self.tally
    }
}
