//! Asks for what the model wants to see, one of each kind at a time, and lets some time pass before the next of its kind: at
//! most a quarter of the time is spent on looking, however large a run is and however often it changes.

use std::sync::Arc;
use std::time::Duration;

use laneway_engine::log::Lines;
use laneway_store::model::LogName;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep_until};

use super::logs::LogLine;
use super::message::{Answer, Load, LogPart};
use super::picture::Picture;
use crate::command::explain::step_text;
use crate::exit;
use crate::face::Face;
use crate::text::Palette;

/// The shortest time from one look to the next of its kind.
const LEAST: Duration = Duration::from_millis(50);

/// How many times longer than a look it is rested after it.
const REST: u32 = 3;

/// Runs in the list.
const RUNS: usize = 500;

/// An answer, and what came of the question.
#[derive(Debug)]
pub(super) struct Loaded {
    kind: usize,
    took: Duration,
    pub(super) answer: Answer,
}

/// What is asked, and what is next.
#[derive(Debug)]
pub(super) struct Loader {
    face: Face,
    reader: Arc<Mutex<Option<Reader>>>,
    answers: mpsc::UnboundedSender<Loaded>,
    kinds: [Kind; KINDS],
}

#[derive(Debug)]
struct Kind {
    is_busy: bool,
    next: Option<Load>,
    not_before: Instant,
}

const KINDS: usize = 8;

fn kind(load: &Load) -> usize {
    match load {
        Load::Runs => 0,
        Load::Run(_) => 1,
        Load::Picture(_) => 2,
        Load::Explain { .. } => 3,
        Load::Log { .. } => LOG,
        Load::Nodes => 5,
        Load::Pools => 6,
        Load::Limits => 7,
    }
}

/// To read a log to its end is one look, in parts.
const LOG: usize = 4;

impl Loader {
    /// Answers come by the channel: at most one of each kind, so that it never grows.
    pub(super) fn new(face: Face) -> (Self, mpsc::UnboundedReceiver<Loaded>) {
        let (answers, answered) = mpsc::unbounded_channel();
        let kinds = std::array::from_fn(|_| Kind { is_busy: false, next: None, not_before: Instant::now() });
        (Self { face, reader: Arc::default(), answers, kinds }, answered)
    }

    /// Asks now, or when what is asked of its kind has come; of several that wait, the last one counts.
    pub(super) fn ask(&mut self, load: Load) {
        let of = kind(&load);
        if self.kinds[of].is_busy {
            self.kinds[of].next = Some(load);
        } else {
            self.begin(load);
        }
    }

    /// Whether nothing is asked for.
    pub(super) fn is_idle(&self) -> bool {
        self.kinds.iter().all(|kind| !kind.is_busy)
    }

    /// An answer has come: the next may be asked.
    pub(super) fn done(&mut self, loaded: &Loaded) {
        let kind = &mut self.kinds[loaded.kind];
        kind.is_busy = false;
        let rest = if loaded.kind == LOG { Duration::ZERO } else { (loaded.took * REST).max(LEAST) };
        kind.not_before = Instant::now() + rest;
        if let Some(next) = kind.next.take() {
            self.begin(next);
        }
    }

    fn begin(&mut self, load: Load) {
        let of = kind(&load);
        self.kinds[of].is_busy = true;
        let not_before = self.kinds[of].not_before;
        let (face, reader, answers) = (self.face.clone(), Arc::clone(&self.reader), self.answers.clone());
        tokio::spawn(async move {
            sleep_until(not_before).await;
            let begun = Instant::now();
            let answer = match answer(&face, &reader, &load).await {
                Ok(answer) => answer,
                Err(error) => Answer::Failed(told(&error)),
            };
            // Nobody listens any more when the screen is gone.
            let _ = answers.send(Loaded { kind: of, took: begun.elapsed(), answer });
        });
    }
}

/// An error in one line, with what to do.
pub(super) fn told(error: &anyhow::Error) -> String {
    let hint = exit::hint(error).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{error}{hint}")
}

async fn answer(face: &Face, reader: &Mutex<Option<Reader>>, load: &Load) -> anyhow::Result<Answer> {
    Ok(match load {
        Load::Runs => Answer::Runs(face.runs(None, None, RUNS).await?),
        Load::Run(run) => Answer::Run(Box::new(face.run(&run.to_string()).await?)),
        Load::Picture(run) => {
            let graph = face.graph(*run).await?;
            // Ten thousand steps take a moment, in which keys are still answered.
            let picture = tokio::task::spawn_blocking(move || Picture::new(&graph)).await?;
            Answer::Picture { run: *run, picture: Arc::new(picture) }
        }
        Load::Explain { run, task } => {
            let explained = face.explain_step(&run.to_string(), task).await?;
            Answer::Explained {
                run: *run,
                task: task.clone(),
                text: step_text(&explained, Palette::new(false)),
            }
        }
        Load::Log { of, offset, is_ended } => {
            Answer::Log(part(face, reader, of, (*offset, *is_ended)).await?)
        }
        Load::Nodes => Answer::Nodes(face.nodes().await?),
        Load::Pools => Answer::Pools(face.pools().await?),
        Load::Limits => Answer::Limits(face.limits().await?),
    })
}

/// What was read of a log and is not a whole line yet.
#[derive(Debug)]
struct Reader {
    of: LogName,
    offset: u64,
    lines: Lines,
}

async fn part(
    face: &Face,
    reader: &Mutex<Option<Reader>>,
    of: &LogName,
    (offset, is_ended): (u64, bool),
) -> anyhow::Result<LogPart> {
    let mut reader = reader.lock().await;
    if reader.as_ref().is_none_or(|reader| reader.of != *of || reader.offset != offset) {
        *reader = Some(Reader { of: of.clone(), offset, lines: Lines::default() });
    }
    let found = face.log(of, offset).await?;
    let Some(known) = reader.as_mut() else { anyhow::bail!("the log is read by nobody") };
    known.offset = found.next_offset;
    let mut lines: Vec<_> = found.frames.iter().flat_map(|frame| known.lines.push(frame)).collect();
    let has_more = !found.frames.is_empty();
    let is_end = is_ended && !has_more;
    if is_end && let Some(reader) = reader.take() {
        lines.extend(reader.lines.finish());
    }
    let lines = lines.iter().map(|line| LogLine::new(line.unix_ms, line.stream, &line.text())).collect();
    Ok(LogPart {
        of: of.clone(),
        lines,
        next_offset: found.next_offset,
        has_more,
        is_end,
        may_lack_end: found.may_lack_end,
    })
}
