//! One attempt in a warm container: a program that is executed in it, or a question to its endpoint.
//!
//! ```text
//! acquire ──▶ exec or call ──exit, answer──▶ release: clean, for the next one
//!    │                  │ timeout, stop: TERM, kill_grace, KILL of everything the task started in there
//!    └── timeout, stop ─┴──▶ release; after a stop nothing of the run is left in the pool, and that is waited for
//! ```
//! The timeout counts from the acquire on, as that of a container of a step's own counts from its image: an image, a start or a wake that
//! takes too long is as late as a program that does. What a task waits for before that, room in its pool, is not in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::container::LogOutput;
use futures_util::StreamExt as _;
use laneway_core::definition;
use laneway_core::id::RunId;
use laneway_core::output::LIMIT;
use laneway_core::pool::Fault;
use laneway_core::shell::ScriptForm;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::files;
use super::lease::Lease;
use super::pools::{Pools, Wish};
use super::{http, inside};
use crate::container::end::KILLED;
use crate::container::{Docker, Error, Exec, ExecState, Execution};
use crate::effect::{self, Effects};
use crate::log::{self, HEADER, Stream};
use crate::process::{Ending, Outcome, Program, StopSignal, take_output};
use crate::secret::Masks;

/// A process in the background may hold the output open: how often the engine is asked whether the program itself has ended.
const ASK_FIRST: Duration = Duration::from_millis(100);
const ASK_RARELY: Duration = Duration::from_secs(2);

/// How long output is waited for after the program's end.
const DRAIN: Duration = Duration::from_millis(500);

/// How long what was killed may take to be gone.
const GONE: Duration = Duration::from_secs(5);

/// How long an engine may take to say whether memory was why, or to say anything at all. Whoever waits for the task's end waits for this too.
const WHY: Duration = Duration::from_secs(2);

/// Containers that rest may have died, all of a pool; beyond those, so many are tried.
const TRIES: u32 = 3;

/// Characters of an answer that are told of a failure.
const TOLD: usize = 500;

/// Everything that is needed to execute one attempt.
#[derive(Debug)]
pub struct Job {
    pub pool: definition::Pool,
    /// For containers after this use, instead of the pool's own.
    pub dormancy: Option<Duration>,
    pub run: RunId,
    /// The task's name, and the attempt: who has a container is told.
    pub step: String,
    pub attempt: u32,
    /// The run's directory.
    pub dir: PathBuf,
    pub what: What,
    pub log: log::Target,
    pub log_cap: u64,
    /// Not to be seen in the log, nor in the output.
    pub masks: Masks,
    /// From the moment at which it asks for a container.
    pub timeout: Option<Duration>,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
    /// Where a program inside asks for effects.
    pub effects: Effects,
}

#[derive(Debug)]
pub enum What {
    Exec { program: Program, env: Vec<(String, String)>, workdir: Option<String> },
    Call { method: definition::Method, path: String, body: Option<Value> },
}

fn never_ran(outcome: Outcome) -> Ending {
    Ending { outcome, duration: Duration::ZERO, output: Ok(Map::new()), log: log::Summary::default() }
}

/// Runs the job to its end. Nothing that it started runs on afterwards, or the container does not.
pub async fn execute(pools: &Pools, job: Job, stop: &StopSignal) -> Ending {
    let run = job.run;
    let ending = attempt(pools, job, stop).await;
    if stop.is_asked() {
        // Whoever stops a task wants nothing of it left: neither its container nor what its run let go of before.
        tokio::select! {
            // Asked for in any case; whoever is in a hurry does not wait for it.
            biased;
            () = pools.abort(run) => {}
            () = stop.killed() => {}
        }
    }
    ending
}

async fn attempt(pools: &Pools, job: Job, stop: &StopSignal) -> Ending {
    let begun = Instant::now();
    // A timeout beyond what a clock can hold is none.
    let deadline = job.timeout.and_then(|timeout| begun.checked_add(timeout));
    let mut turn = Turn { left: job.pool.max.get().saturating_add(TRIES), deadline };
    loop {
        turn.left = turn.left.saturating_sub(1);
        let wish = Wish {
            pool: &job.pool,
            run: job.run,
            dir: &job.dir,
            dormancy: job.dormancy,
            step: &job.step,
            attempt: job.attempt,
        };
        let lease = tokio::select! {
            biased;
            () = stop.asked() => return never_ran(Outcome::Stopped),
            lease = pools.acquire(wish) => lease,
            () = at(deadline) => {
                return Ending { duration: begun.elapsed(), ..never_ran(Outcome::TimedOut) };
            }
        };
        let lease = match lease {
            Ok(lease) => lease,
            Err(fault) => return never_ran(refused(fault, pools, stop).await),
        };
        lease.tell_taken(job.run, &job.step, job.attempt);
        let ended = match &job.what {
            What::Exec { program, env, workdir } => {
                let script = Script { program, env, workdir: workdir.as_deref() };
                exec(&job, script, lease, stop, turn).await
            }
            What::Call { method, path, body } => {
                call(&job, (*method, path, body.as_ref()), lease, stop, turn).await
            }
        };
        if let Some(ending) = ended {
            return ending;
        }
    }
}

/// How an attempt ends that got no container.
async fn refused(fault: Fault, pools: &Pools, stop: &StopSignal) -> Outcome {
    let why = fault.to_string();
    match fault {
        Fault::EngineLost(_) => Outcome::EngineLost(why),
        Fault::StartFailed(_) | Fault::Closed => Outcome::StartFailed(why),
        // What is removed keeps its place and its port, and without an engine nothing is ever
        // removed: then it has waited for the engine.
        Fault::TimedOut { .. } | Fault::NoPort { .. } => match lost(pools.docker(), stop).await {
            Some(error) => Outcome::EngineLost(error.to_string()),
            None => Outcome::StartFailed(why),
        },
    }
}

/// How many more containers may be tried, and until when all of them together may take.
#[derive(Debug, Clone, Copy)]
struct Turn {
    left: u32,
    deadline: Option<Instant>,
}

struct Script<'a> {
    program: &'a Program,
    env: &'a [(String, String)],
    workdir: Option<&'a str>,
}

/// `None`: the container was dead before anything ran in it, and another one may do.
async fn exec(
    job: &Job,
    script: Script<'_>,
    mut lease: Lease,
    stop: &StopSignal,
    turn: Turn,
) -> Option<Ending> {
    let failed = |why: String| Some(never_ran(Outcome::StartFailed(why)));
    let (files, inside_files) = match lease.make_files() {
        Ok(files) => files,
        Err(error) => return failed(format!("its files cannot be made: {error}")),
    };
    let workspace = match lease.lend(&job.dir) {
        Ok(workspace) => workspace,
        Err(why) => return failed(why),
    };
    let argv = match argv(script.program, &files, &inside_files) {
        Ok(argv) => argv,
        Err(error) => return failed(format!("its script cannot be written: {error}")),
    };
    let mut env = script.env.to_vec();
    env.push(("LANEWAY_OUTPUT".to_owned(), format!("{inside_files}/out")));
    env.push((inside::MARK.to_owned(), lease.mark()));
    // Its files are its own, and gone with it: nobody else on this host gets to the socket.
    let host = effect::open_inside(&job.effects, &files, &inside_files, &mut env);
    if let Err(error) = lease.show_files() {
        return failed(format!("its files cannot be shown to its container: {error}"));
    }
    let workdir = match script.workdir {
        None => workspace,
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("{workspace}/{path}"),
    };
    let exec = Exec { argv, env, workdir: Some(workdir), user: None };
    let begun = Instant::now();
    let started = tokio::select! {
        biased;
        started = lease.docker().exec(lease.vessel.id(), exec) => Ok(started),
        () = stop.asked() => Err(Outcome::Stopped),
        () = at(turn.deadline) => Err(Outcome::TimedOut),
    };
    let execution = match started {
        Ok(Ok(execution)) => execution,
        // Whether it has begun nobody knows: it is killed if so, and its container is not used again.
        Err(cut_short) => {
            lease.signal("KILL");
            return Some(Ending { duration: begun.elapsed(), ..never_ran(cut_short) });
        }
        Ok(Err(error)) => {
            let is_dead = matches!(error, Error::NotFound { .. })
                || matches!(&error, Error::Refused { why, .. } if why.contains("is not running"));
            if is_dead {
                lease.was_dead();
            }
            drop(lease);
            return if is_dead && turn.left > 0 { None } else { Some(never_ran(error.outcome())) };
        }
    };
    let log = log::Writer::new(job.log.clone(), job.log_cap).masking(&job.masks);
    let mut watch = Watch {
        lease: &lease,
        log,
        deadline: turn.deadline,
        level: Level::Run,
        cut_short: None,
        grace: job.kill_grace,
    };
    let (outcome, is_over) = watch.until_ended(execution, stop).await;
    let (outcome, log) = (watch.cut_short.take().unwrap_or(outcome), watch.log.finish());
    let duration = begun.elapsed();
    if let Some(host) = host {
        host.close().await;
    }
    let output = match lease.hide_files() {
        Ok(()) => take_output(&files.join("out"), &job.masks),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(laneway_core::output::Error {
            line: None,
            message: format!("what was written to $LANEWAY_OUTPUT cannot be read: {error}"),
        }),
    };
    if stop.is_asked() {
        lease.abort(job.run);
    }
    lease.release(is_over);
    Some(Ending { outcome, duration, output, log })
}

/// What is executed, and a file for it where it has to be one.
fn argv(program: &Program, aside: &Path, inside: &str) -> std::io::Result<Vec<String>> {
    let (text, name, args, shell) = match program {
        Program::Command { argv } => return Ok(argv.clone()),
        Program::Script { text, name, args, shell } => (text, name, args, shell),
    };
    Ok(match shell.form(text, true) {
        ScriptForm::Text => shell.with_text(text, name, args),
        form @ (ScriptForm::File | ScriptForm::Executable) => {
            files::write_script(aside, text)?;
            shell.with_file(form, &format!("{inside}/script"), args)
        }
    })
}

/// How urgently its end was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Run,
    Stop,
    Kill,
}

/// Looks after a program that runs.
struct Watch<'a> {
    lease: &'a Lease,
    log: log::Writer,
    /// Of the timeout, then of the grace, then of the patience with what was killed.
    deadline: Option<Instant>,
    level: Level,
    /// Why Laneway ended it; the first reason stays.
    cut_short: Option<Outcome>,
    grace: Duration,
}

impl Watch<'_> {
    /// Gives how it ended by itself, and whether it is over: nothing of it runs, as far as the engine knows.
    async fn until_ended(&mut self, execution: Execution, stop: &StopSignal) -> (Outcome, bool) {
        let Execution { id, mut output } = execution;
        let mut pause = ASK_FIRST;
        let mut ask_at = Instant::now() + pause;
        // Set when the program itself has ended: what is left to print has until then.
        let mut drain_until: Option<Instant> = None;
        loop {
            tokio::select! {
                piece = output.next() => match piece {
                    Some(Ok(piece)) => self.keep(&piece),
                    Some(Err(error)) => {
                        let why = format!("the line to its container broke: {error}");
                        return (Outcome::EngineLost(why), false);
                    }
                    None => break,
                },
                () = stop.asked(), if self.level == Level::Run => self.end(Level::Stop, Outcome::Stopped),
                () = stop.killed(), if self.level < Level::Kill => self.end(Level::Kill, Outcome::Stopped),
                () = at(self.deadline) => match self.level {
                    Level::Run => self.end(Level::Stop, Outcome::TimedOut),
                    Level::Stop => self.end(Level::Kill, Outcome::Stopped),
                    Level::Kill => return (Outcome::Stopped, false),
                },
                () = tokio::time::sleep_until(ask_at), if drain_until.is_none() => {
                    match self.lease.docker().exec_state(&id).await {
                        Ok(ExecState::Runs) => self.lease.begun(),
                        Ok(ExecState::Ended(_)) => drain_until = Some(Instant::now() + DRAIN),
                        Ok(ExecState::Begins) | Err(_) => {}
                    }
                    pause = (pause * 2).min(ASK_RARELY);
                    ask_at = Instant::now() + pause;
                }
                () = at(drain_until) => break,
            }
        }
        if stop.is_asked() && self.lease.is_alone() {
            // Its container goes, whatever it was that ended.
            return (Outcome::Stopped, false);
        }
        match tokio::time::timeout(GONE, self.lease.docker().exec_end(&id)).await {
            Ok(Ok(code)) => (self.judge(code, stop).await, true),
            // One that answers and knows nothing of what it has started was restarted meanwhile.
            Ok(Err(error)) => (Outcome::EngineLost(format!("how it ended is not known: {error}")), false),
            Err(_) => {
                (Outcome::EngineLost("how it ended is not known: the engine does not say".to_owned()), false)
            }
        }
    }

    /// What its own end tells of. What was asked to end is not asked why.
    async fn judge(&self, code: i64, stop: &StopSignal) -> Outcome {
        if code != 0 && self.level == Level::Run && is_out_of_memory(self.lease, code, stop).await {
            return Outcome::OutOfMemory(exit_code(code));
        }
        ended(code)
    }

    fn end(&mut self, level: Level, why: Outcome) {
        self.level = level;
        self.cut_short.get_or_insert(why);
        let (signal, patience) = match level {
            Level::Run => return,
            Level::Stop => ("TERM", self.grace),
            Level::Kill => ("KILL", GONE),
        };
        self.deadline = Instant::now().checked_add(patience);
        self.lease.signal(signal);
    }

    fn keep(&mut self, piece: &LogOutput) {
        let stream = match piece {
            LogOutput::StdErr { .. } => Stream::Stderr,
            LogOutput::StdOut { .. } | LogOutput::StdIn { .. } | LogOutput::Console { .. } => Stream::Stdout,
        };
        for part in inside::bytes_of(piece).chunks(64 * 1024) {
            let mut framed = vec![0; HEADER];
            framed.extend_from_slice(part);
            self.log.append(stream, &mut framed);
        }
    }
}

/// What an engine does not say soon is not known, and who is in a hurry does not wait for it.
async fn is_out_of_memory(lease: &Lease, code: i64, stop: &StopSignal) -> bool {
    tokio::select! {
        asked = tokio::time::timeout(WHY, lease.is_out_of_memory(code)) => asked.unwrap_or(false),
        () = stop.killed() => false,
    }
}

/// Whether the engine is gone, and how that shows. One that takes its time is there.
async fn lost(docker: &Docker, stop: &StopSignal) -> Option<Error> {
    tokio::select! {
        asked = tokio::time::timeout(WHY, docker.ping()) => asked.ok()?.err().filter(Error::is_of_engine),
        () = stop.killed() => None,
    }
}

fn exit_code(code: i64) -> i32 {
    i32::try_from(code).unwrap_or(i32::MAX)
}

/// What an exit code tells of: a shell's way to say that a signal ended the program.
fn ended(code: i64) -> Outcome {
    let code = exit_code(code);
    match code {
        129..=192 => Outcome::Signaled(code - 128),
        _ => Outcome::Exited(code),
    }
}

/// Asks the endpoint. A connection that is cut tells a server that nobody waits any more. `None`: nobody was there to hear of it, and another
/// container may do.
async fn call(
    job: &Job,
    (method, path, body): (definition::Method, &str, Option<&Value>),
    lease: Lease,
    stop: &StopSignal,
    turn: Turn,
) -> Option<Ending> {
    lease.begun();
    let Some(port) = lease.vessel.endpoint() else {
        let why =
            "its pool serves nothing: give it an `endpoint` with the port on which its containers listen";
        return Some(never_ran(Outcome::StartFailed(why.to_owned())));
    };
    let begun = Instant::now();
    let body = body.map(|body| body.to_string().into_bytes());
    let answer = tokio::select! {
        biased;
        answer = http::ask(port, method.as_str(), path, body) => Ok(answer),
        () = stop.asked() => Err(Outcome::Stopped),
        () = at(turn.deadline) => Err(Outcome::TimedOut),
    };
    let duration = begun.elapsed();
    let (outcome, output, is_over) = match answer {
        Err(cut_short) => (cut_short, Ok(Map::new()), false),
        // It died while nobody used it.
        Ok(Err(http::Fault::Unheard(_))) if turn.left > 0 => {
            lease.was_dead();
            return None;
        }
        // The server may be gone because of what it was asked for.
        Ok(Err(_)) if is_out_of_memory(&lease, KILLED, stop).await => {
            (Outcome::OutOfMemory(exit_code(KILLED)), Ok(Map::new()), false)
        }
        // Or because its engine is, which took the way to it along.
        Ok(Err(why)) => match lost(lease.docker(), stop).await {
            Some(error) => (Outcome::EngineLost(format!("{why}; {error}")), Ok(Map::new()), false),
            None => (Outcome::Failed(why.to_string()), Ok(Map::new()), false),
        },
        Ok(Ok(answer)) => {
            let text = job.masks.text(&String::from_utf8_lossy(&answer.body));
            if (200..300).contains(&answer.status) {
                (Outcome::Exited(0), answered(&text).map(|output| job.masks.output(output)), true)
            } else {
                let start: String = text.trim().chars().take(TOLD).collect();
                let why = format!("{method} {path} answered {}: {start}", answer.status);
                (Outcome::Failed(why), Ok(Map::new()), true)
            }
        }
    };
    // A server that was cut off may still be at it, with what this task has told it.
    lease.release(is_over);
    Some(Ending { outcome, duration, output, log: log::Summary::default() })
}

/// An answer as an output: a JSON object as it is, anything else under `answer`, nothing as nothing.
fn answered(text: &str) -> Result<Map<String, Value>, laneway_core::output::Error> {
    let bad = |message: String| laneway_core::output::Error { line: None, message };
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    if text.len() > LIMIT {
        return Err(bad(format!("the answer is {} bytes long, and {LIMIT} are kept at most", text.len())));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(output)) => Ok(output),
        Ok(other) => Ok(Map::from_iter([("answer".to_owned(), other)])),
        Err(error) => Err(bad(format!("the answer is no JSON: {error}"))),
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
