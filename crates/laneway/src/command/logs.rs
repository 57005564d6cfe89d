//! `laneway logs`: what steps wrote. One step alone is given back byte for byte; several are told apart by
//! a prefix. What Laneway itself notes in a log (a cap, for one) goes to stderr and never into the bytes.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_engine::log::{Frame, Line, Lines, Stream};
use laneway_server::wire::{Run, Task};
use laneway_store::model::LogName;
use serde_json::json;

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::patience::Patience;
use crate::print::Printer;
use crate::progress::why;
use crate::text;

/// A file that grows commits nothing, so it is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Nodes bring their logs to a shared store once a second.
const LOOK_AT_SHARED: Duration = Duration::from_millis(500);

/// How many looks at logs for one at the run when nothing hints that it changed.
const LOOKS_WITHOUT_HINT: u32 = 5;

/// The longest prefix; longer names are not cut, they only stand out.
const MAX_PREFIX: usize = 24;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway logs last test --follow\n\n\
    Of a step that was tried more than once the last attempt is shown. A log is cut at 64 MiB an attempt, on Postgres at\n\
    8 MiB, and says so.")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// One step, or one item of it as STEP[INDEX]; without it, all of them with their names in front
    step: Option<String>,
    /// Another attempt than the last
    #[arg(long, value_name = "N", requires = "step")]
    attempt: Option<u32>,
    /// Go on until the step, or the run, ends
    #[arg(short, long)]
    follow: bool,
    /// Put the time in front of every line
    #[arg(short, long)]
    timestamps: bool,
    /// Print one JSON object a line: time, stream, text, step, attempt
    #[arg(long, conflicts_with = "timestamps")]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    let mut run = face.run(&args.run).await?;
    if let Some(step) = &args.step {
        check(&face, &run, step, args.attempt).await?;
    }
    let mut reader = Reader {
        printer: &context.printer,
        face: &face,
        form: form(&args, &run),
        sources: Vec::new(),
        opened: HashMap::new(),
    };
    let (mut watch, mut looks) = (face.watch(), 0_u32);
    let mut patience = Patience::new(&context.printer, args.follow);
    let look = if face.is_embedded() { LOOK } else { LOOK_AT_SHARED };
    loop {
        reader.open(&run, &args);
        let has_all = match reader.drain(&run).await {
            Ok(()) => true,
            Err(error) => {
                patience.bear(error)?;
                false
            }
        };
        let is_over = run.tasks.iter().filter(|task| is_asked(task, &args)).all(|task| is_over(task, &run));
        if !args.follow || has_all && is_over || args.attempt.is_some() && reader.sources.is_empty() {
            break;
        }
        if context.printer.is_closed() {
            break;
        }
        tokio::time::sleep(look).await;
        looks += 1;
        // A commit tells that a step may have ended; now and then it is looked at without being told.
        if !watch.has_hint() && !looks.is_multiple_of(LOOKS_WITHOUT_HINT) {
            continue;
        }
        run = match face.run(&run.run.to_string()).await {
            Ok(found) => found,
            Err(error) => {
                patience.bear(error)?;
                continue;
            }
        };
        patience.answered();
        if run.interrupted {
            context.printer.warning(&format!(
                "the process that ran it is gone; `laneway resume {}` goes on with it",
                run.run.short()
            ));
            break;
        }
    }
    reader.finish()?;
    Ok(Exit::Succeeded)
}

/// Refuses a step or an attempt that is not there; says why there is nothing to see.
async fn check(face: &Face, run: &Run, step: &str, attempt: Option<u32>) -> anyhow::Result<()> {
    let Some(task) = run.tasks.iter().find(|task| task.name() == step) else {
        // It is refused with the nearest name.
        face.explain_step(&run.run.to_string(), step).await?;
        return Err(Refusal::new(format!("run {} has no step `{step}`", run.run.short())).into());
    };
    if let (Some(_), Some(items)) = (attempt, &task.items) {
        let hint = format!("name one of its {} items: {step}[0]", items.total);
        return Err(Refusal::new(format!("step `{step}` has items, and each has attempts of its own"))
            .hint(hint)
            .into());
    }
    match attempt {
        Some(attempt) if attempt == 0 || attempt > task.attempt => {
            let hint = match task.attempt {
                0 => "it has not started".to_owned(),
                1 => "it had one attempt".to_owned(),
                tried => format!("it had {tried} attempts"),
            };
            Err(Refusal::new(format!("step `{step}` has no attempt {attempt}")).hint(hint).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Why there is no log.
fn silence(task: &Task, run: RunId) -> String {
    let (step, short) = (&task.name(), run.short());
    match task.reason.map(|reason| why(reason, task.detail.as_deref())) {
        Some(why) => format!("{step} never started: {why}"),
        None if task.status.is_final() => format!("{step} never started"),
        None => {
            format!("{step} has not started yet; `laneway explain {short} {step}` says what it waits for")
        }
    }
}

fn is_asked(task: &Task, args: &Args) -> bool {
    // A step with items means all of them.
    args.step.as_ref().is_none_or(|step| *step == task.name() || *step == task.step)
}

fn is_over(task: &Task, run: &Run) -> bool {
    task.status.is_final() || run.status.is_final()
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// The bytes as they came.
    Raw,
    Lines {
        prefix: usize,
        has_time: bool,
    },
    Json,
}

fn form(args: &Args, run: &Run) -> Form {
    let is_one = run.tasks.iter().filter(|task| is_asked(task, args) && task.items.is_none()).count() <= 1;
    if args.json {
        Form::Json
    } else if is_one && !args.timestamps {
        Form::Raw
    } else {
        let longest = run.tasks.iter().map(|task| task.name().chars().count()).max().unwrap_or(0);
        Form::Lines { prefix: if is_one { 0 } else { longest.min(MAX_PREFIX) }, has_time: args.timestamps }
    }
}

/// The log of one attempt, as far as it was shown.
struct Source {
    of: LogName,
    offset: u64,
    lines: Lines,
    /// Its node died, and the end may be missing.
    may_lack_end: bool,
}

/// The last lines of a log, of all streams in the order in which they ended; none if nothing was printed.
pub(crate) async fn last_lines(face: &Face, of: LogName, count: usize) -> anyhow::Result<Vec<Line>> {
    let (mut lines, mut offset) = (Lines::default(), 0);
    let mut last = VecDeque::with_capacity(count);
    let mut keep = |line| {
        if last.len() == count {
            last.pop_front();
        }
        last.push_back(line);
    };
    loop {
        let part = face.log(&of, offset).await?;
        offset = part.next_offset;
        part.frames.iter().flat_map(|frame| lines.push(frame)).for_each(&mut keep);
        if part.frames.is_empty() {
            break;
        }
    }
    lines.finish().into_iter().for_each(&mut keep);
    Ok(last.into())
}

struct Reader<'a> {
    printer: &'a Printer,
    face: &'a Face,
    form: Form,
    sources: Vec<Source>,
    /// By step: the last attempt that was opened.
    opened: HashMap<String, u32>,
}

impl Reader<'_> {
    /// Opens the logs of attempts that began since the last time, in the order in which they did.
    fn open(&mut self, run: &Run, args: &Args) {
        let mut tasks: Vec<&Task> = run.tasks.iter().filter(|task| is_asked(task, args)).collect();
        tasks.sort_by_key(|task| task.started_at.map_or(Millis(i64::MAX), |at| at.0));
        for task in tasks {
            let name = task.name();
            let attempts = match (args.attempt, self.opened.get(&name)) {
                (Some(attempt), None) => attempt..=attempt,
                (Some(_), Some(_)) => continue,
                // The last one only; while following, each that comes after it.
                (None, None) => task.attempt.max(1)..=task.attempt,
                (None, Some(opened)) => opened + 1..=task.attempt,
            };
            for attempt in attempts {
                self.opened.insert(name.clone(), attempt);
                let of = LogName { run: run.run, step: name.clone(), attempt };
                self.sources.push(Source { of, offset: 0, lines: Lines::default(), may_lack_end: false });
            }
            if task.attempt == 0 && args.step.is_some() && task.items.is_none() && !args.follow {
                self.printer.note(&silence(task, run.run));
            }
        }
    }

    /// Shows all that is there; logs of attempts that had ended when `run` was read are then done with. After an error it goes on
    /// where each of them was.
    async fn drain(&mut self, run: &Run) -> anyhow::Result<()> {
        let tasks: HashMap<String, &Task> = run.tasks.iter().map(|task| (task.name(), task)).collect();
        let mut open = Vec::new();
        let mut rest = std::mem::take(&mut self.sources).into_iter();
        while let Some(mut source) = rest.next() {
            if let Err(error) = self.read(&mut source).await {
                open.push(source);
                open.extend(rest);
                self.sources = open;
                return Err(error);
            }
            if self.printer.is_closed() {
                return Ok(());
            }
            let runs = tasks
                .get(source.of.step.as_str())
                .is_some_and(|task| task.attempt == source.of.attempt && task.status == TaskStatus::Running);
            if runs {
                open.push(source);
            } else {
                self.close(source)?;
            }
        }
        self.sources = open;
        Ok(())
    }

    async fn read(&self, source: &mut Source) -> anyhow::Result<()> {
        loop {
            let part = self.face.log(&source.of, source.offset).await?;
            (source.offset, source.may_lack_end) = (part.next_offset, part.may_lack_end);
            for frame in &part.frames {
                self.show(source, frame)?;
                if self.printer.is_closed() {
                    return Ok(());
                }
            }
            if part.frames.is_empty() {
                return Ok(());
            }
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        std::mem::take(&mut self.sources).into_iter().try_for_each(|source| self.close(source))
    }

    fn show(&self, source: &mut Source, frame: &Frame) -> anyhow::Result<()> {
        match (self.form, frame.stream) {
            (Form::Raw, Stream::Stdout | Stream::Stderr) => self.printer.bytes(&frame.bytes),
            (Form::Raw | Form::Lines { .. }, Stream::Note) => {
                let note = String::from_utf8_lossy(&frame.bytes).into_owned();
                self.printer.note(&format!("{}: {}", source.of.step, note.trim_end()));
                Ok(())
            }
            (Form::Lines { .. }, Stream::Stdout | Stream::Stderr) | (Form::Json, _) => {
                let lines = source.lines.push(frame);
                self.lines(&source.of, &lines)
            }
        }
    }

    /// What ended without a newline.
    fn close(&self, source: Source) -> anyhow::Result<()> {
        self.lines(&source.of, &source.lines.finish())?;
        if source.may_lack_end {
            let step = &source.of.step;
            self.printer.note(&format!(
                "{step}: its node was lost, and what it printed in the last second before may be missing"
            ));
        }
        Ok(())
    }

    fn lines(&self, LogName { step, attempt, .. }: &LogName, lines: &[Line]) -> anyhow::Result<()> {
        let mut out = String::new();
        for line in lines {
            let at = Millis(i64::try_from(line.unix_ms).unwrap_or(i64::MAX));
            match self.form {
                Form::Raw => {}
                Form::Json => {
                    let value = json!({
                        "time": at.to_string(),
                        "stream": line.stream.as_str(),
                        "text": line.text(),
                        "step": step,
                        "attempt": attempt,
                    });
                    out.push_str(&format!("{value}\n"));
                }
                Form::Lines { prefix, has_time } => {
                    if has_time {
                        out.push_str(&self.printer.out_palette().dim(&text::clock(at)));
                        out.push(' ');
                    }
                    if prefix > 0 {
                        let name = format!("{step:<prefix$} |");
                        out.push_str(&self.printer.out_palette().cyan(&name));
                        out.push(' ');
                    }
                    out.push_str(&line.text());
                    out.push('\n');
                }
            }
        }
        // What a step printed is not ours to change.
        if out.is_empty() { Ok(()) } else { self.printer.bytes(out.as_bytes()) }
    }
}
