//! The view that moves: a line per running step with its time, below them a bar with the counts; what has
//! ended stays above as lines. All of it goes to stderr.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use laneway_core::event::{Event, Fact};
use laneway_core::state::TaskStatus;

use super::keys::QuietKeys;
use super::{Tally, sentence};
use crate::print::plain;
use crate::text::{self, Palette};

/// Above this many steps only what went wrong gets a line of its own: the bar counts the rest.
const MANY_STEPS: u64 = 100;

/// Running steps that get a line, where the screen is high enough.
const MAX_LINES: usize = 12;

/// Rows that are not for running steps: the bar, a line that tells what ended, and the cursor's.
const OTHER_ROWS: usize = 3;

#[derive(Debug)]
pub(super) struct Terminal {
    palette: Palette,
    is_utf8: bool,
    all: MultiProgress,
    bar: ProgressBar,
    /// Of the document; items come on top.
    total: u64,
    steps: BTreeMap<String, ProgressBar>,
    has_many: bool,
    /// Held for as long as lines move.
    _quiet: Option<QuietKeys>,
}

impl Terminal {
    /// `total` steps are in its document.
    pub(super) fn new((palette, is_utf8): (Palette, bool), total: u64) -> Self {
        let all = MultiProgress::new();
        let look = style("  {bar:24} {pos}/{len} {msg} {took}", is_utf8);
        let bar = all.add(ProgressBar::new(total).with_style(look));
        Self {
            palette,
            is_utf8,
            all,
            bar,
            total,
            steps: BTreeMap::new(),
            has_many: total > MANY_STEPS,
            _quiet: QuietKeys::begin(),
        }
    }

    /// Leaves a line behind for what has ended.
    pub(super) fn tell(&self, event: &Event) {
        let palette = self.palette;
        let line = match &event.fact {
            Fact::TaskFinished(f) if f.status == TaskStatus::Succeeded => {
                if self.has_many {
                    return;
                }
                let took = text::duration(Duration::from_millis(f.took_ms.unwrap_or(0)));
                format!("{} {} {}", palette.green("✓"), f.step, palette.dim(&took))
            }
            Fact::TaskFinished(f) => {
                let mark = palette.task(f.status, text::task_mark(f.status));
                // A canceled run ends all that waits; the count is enough.
                if f.status == TaskStatus::Canceled && (self.has_many || f.attempt == 0) {
                    return;
                }
                format!("{mark} {}", told(event))
            }
            Fact::TaskSkipped(_) => {
                if self.has_many {
                    return;
                }
                palette.dim(&format!("– {}", told(event)))
            }
            Fact::TaskParked(_) if self.has_many => return,
            Fact::TaskParked(_) => format!("{} {}", palette.yellow("·"), told(event)),
            Fact::TaskRetrying(_) | Fact::TaskLost(_) => {
                format!("{} {}", palette.yellow("↻"), told(event))
            }
            Fact::RunHalted(_)
            | Fact::RunCanceling(_)
            | Fact::RunAdopted(_)
            | Fact::RunBound(_)
            | Fact::RunReleased(_)
            | Fact::RunPaused(_)
            | Fact::RunResumed(_)
            | Fact::RunDue(_)
            | Fact::ChildRunStarted(_)
            | Fact::TaskSignaled(_)
            | Fact::RunReopened(_) => palette.dim(&format!("  {}", told(event))),
            // The id comes first: whoever wants to cancel from elsewhere needs it now.
            Fact::RunSubmitted(f) => {
                let steps = text::count(self.bar.length().unwrap_or(0), "step");
                format!("{} {} {}", palette.bold(&f.workflow), event.run.short(), palette.dim(&steps))
            }
            Fact::RunStarted(_)
            | Fact::TasksAdded(_)
            | Fact::TasksRemoved(_)
            | Fact::RunFinished(_)
            | Fact::TaskAvailable(_)
            | Fact::TaskStarted(_)
            | Fact::TaskReturned(_)
            | Fact::EffectStarted(_)
            | Fact::EffectCommitted(_)
            | Fact::LaneStarted(_)
            | Fact::TaskCached(_)
            | Fact::LaneFinished(_) => return,
            Fact::LevelCommitted(_) => palette.dim(&format!("  {}", told(event))),
            Fact::MergeFinished(f) if f.files == 0 => return,
            Fact::MergeFinished(_) => palette.dim(&format!("  {}", told(event))),
        };
        self.note(&line);
    }

    /// Brings the moving lines in step with the sums.
    pub(super) fn draw(&mut self, tally: &Tally) {
        let all = &self.all;
        self.steps.retain(|step, line| {
            let stays = tally.running.contains_key(step);
            if !stays {
                line.finish_and_clear();
                all.remove(line);
            }
            stays
        });
        let room = room(rows());
        for step in tally.running.keys() {
            if self.steps.len() >= room {
                break;
            }
            if !self.steps.contains_key(step) {
                let line = all.insert_before(
                    &self.bar,
                    ProgressBar::new_spinner()
                        .with_style(style("{spinner} {prefix} {took}", self.is_utf8))
                        .with_prefix(step.clone()),
                );
                self.steps.insert(step.clone(), line);
            }
        }
        self.bar.set_message(self.counts(tally));
        let total = self.total + tally.items();
        self.has_many |= total > MANY_STEPS;
        self.bar.set_length(total);
        self.bar.set_position(tally.done());
    }

    pub(super) fn tick(&self) {
        for line in self.steps.values() {
            line.tick();
        }
        self.bar.tick();
    }

    pub(super) fn note(&self, line: &str) {
        // A terminal that went away cannot be told so.
        let _ = match self.is_utf8 {
            true => self.all.println(line),
            false => self.all.println(plain(line)),
        };
    }

    pub(super) fn close(self) {
        for line in self.steps.values() {
            line.finish_and_clear();
        }
        self.bar.finish_and_clear();
        let _ = self.all.clear();
    }

    fn counts(&self, tally: &Tally) -> String {
        let mut counts = format!("{} running", tally.running.len());
        if !tally.parked.is_empty() {
            let _ = write!(counts, ", {} parked", tally.parked.len());
        }
        for status in [TaskStatus::Failed, TaskStatus::Skipped, TaskStatus::Canceled] {
            match tally.count(status) {
                0 => {}
                number => {
                    let _ = write!(counts, ", {}", self.palette.task(status, &format!("{number} {status}")));
                }
            }
        }
        counts
    }
}

/// How high the screen is, as far as it says.
fn rows() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    size.ok().map(|size| size.ws_row).filter(|rows| *rows > 0)
}

/// Lines for running steps: more than fit would push the bar off the screen.
fn room(rows: Option<u16>) -> usize {
    rows.map_or(MAX_LINES, |rows| usize::from(rows).saturating_sub(OTHER_ROWS).min(MAX_LINES))
}

fn told(event: &Event) -> String {
    sentence(event).unwrap_or_default()
}

fn style(template: &str, is_utf8: bool) -> ProgressStyle {
    let (bar, spinner) =
        if is_utf8 { ("━╸─", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ") } else { ("=>-", "-\\|/ ") };
    ProgressStyle::with_template(template)
        .expect("the templates of this file are well formed")
        .with_key("took", |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
            // Tenths of a second would flicker.
            let took = state.elapsed();
            let shown = Duration::from_secs(took.as_secs());
            let _ = if took < Duration::from_secs(1) {
                out.write_str("")
            } else if took < Duration::from_secs(60) {
                write!(out, "{}s", took.as_secs())
            } else {
                out.write_str(&text::duration(shown))
            };
        })
        .progress_chars(bar)
        .tick_chars(spinner)
}

#[cfg(test)]
mod tests {
    use super::room;

    #[test]
    fn a_small_screen_keeps_room_for_the_bar() {
        assert_eq!([None, Some(50), Some(15), Some(10), Some(2)].map(room), [12, 12, 12, 7, 0]);
    }
}
