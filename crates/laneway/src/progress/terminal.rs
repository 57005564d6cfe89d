//! The view that moves: a line per running step with its time, below them a bar with the counts; what has
//! ended stays above as lines. All of it goes to stderr.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use laneway_core::event::{Event, Fact};
use laneway_core::plan::Plan;
use laneway_core::state::TaskStatus;

use super::{Tally, sentence};
use crate::text::{self, Palette};

/// Above this many steps only what went wrong gets a line of its own: the bar counts the rest.
const MANY_STEPS: u64 = 100;

/// Running steps that get a line; more would push the bar off a small screen.
const MAX_LINES: usize = 12;

#[derive(Debug)]
pub(super) struct Terminal {
    palette: Palette,
    all: MultiProgress,
    bar: ProgressBar,
    steps: BTreeMap<String, ProgressBar>,
    has_many: bool,
}

impl Terminal {
    pub(super) fn new(palette: Palette, plan: &Plan) -> Self {
        let total = plan.workflow.steps.len() as u64;
        let all = MultiProgress::new();
        let bar = all.add(ProgressBar::new(total).with_style(style("  {bar:24} {pos}/{len} {msg} {took}")));
        Self { palette, all, bar, steps: BTreeMap::new(), has_many: total > MANY_STEPS }
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
            Fact::TaskRetrying(_) | Fact::TaskLost(_) => {
                format!("{} {}", palette.yellow("↻"), told(event))
            }
            Fact::RunHalted(_) | Fact::RunCanceling(_) | Fact::RunAdopted(_) | Fact::RunReopened(_) => {
                palette.dim(&format!("  {}", told(event)))
            }
            Fact::RunSubmitted(_)
            | Fact::RunStarted(_)
            | Fact::RunFinished(_)
            | Fact::TaskAvailable(_)
            | Fact::TaskStarted(_)
            | Fact::TaskReturned(_) => return,
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
        for step in tally.running.keys() {
            if self.steps.len() >= MAX_LINES {
                break;
            }
            if !self.steps.contains_key(step) {
                let line = all.insert_before(
                    &self.bar,
                    ProgressBar::new_spinner()
                        .with_style(style("{spinner} {prefix} {took}"))
                        .with_prefix(step.clone()),
                );
                self.steps.insert(step.clone(), line);
            }
        }
        self.bar.set_message(self.counts(tally));
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
        let _ = self.all.println(line);
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

fn told(event: &Event) -> String {
    sentence(event).unwrap_or_default()
}

fn style(template: &str) -> ProgressStyle {
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
        .progress_chars("━╸ ")
        .tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ")
}
