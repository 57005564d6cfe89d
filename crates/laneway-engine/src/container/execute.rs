//! One attempt in a container of its own, from its image to its removal.
//!
//! ```text
//! image ─▶ create ─▶ attach ─▶ start ─▶ running ──exit──▶ drain ─▶ look at the end ─▶ remove
//!   stop, timeout: remove what is there   │ timeout, stop: TERM      ▲
//!                                         │ grace over, kill: KILL ──┤
//!                                         └ the engine is away: wait for it a while, then look again
//! ```
//! Everything here is already evaluated: no expression, no store, no retry. A container is known by its name, which ends in
//! the attempt, from before it is made: an answer that was lost loses nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use bollard::models::ContainerStateStatusEnum;
use futures_util::StreamExt as _;
use laneway_core::definition::{ATTEMPT_DIR, Container, WORKSPACE};
use serde_json::Map;
use tokio::time::Instant;

use super::docker::{Docker, Output};
use super::end::{self, First, KILLED};
use super::error::Error;
use super::held::Held;
use super::mounts::{self, HostMounts};
use super::pull::Pulling;
use super::spec::Spec;
use super::stage::{Props, Stage, output_inside};
use crate::effect::{self, Effects};
use crate::log;
use crate::process::{Ending, Outcome, Program, StopSignal, take_output};
use crate::secret::Masks;
use crate::warden::Warden;

/// Output is waited for no longer than this once the container has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// How long an engine may be away in the middle of an attempt: a restart of it takes less.
const AWAY: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What was killed has ended in a moment, unless the engine is stuck. The run does not wait for that.
const ENDED: Duration = Duration::from_secs(5);

/// Everything needed to execute one attempt.
#[derive(Debug, Clone)]
pub struct Job {
    /// Of the container; ends in the attempt.
    pub name: String,
    pub labels: HashMap<String, String>,
    pub settings: Container,
    pub program: Program,
    pub env: Vec<(String, String)>,
    /// The run's directory, which is `/workspace` inside.
    pub dir: PathBuf,
    /// Below `/workspace`, or an absolute path inside.
    pub workdir: Option<String>,
    /// A directory for the files of this attempt; made, and removed.
    pub stage: PathBuf,
    /// By name, for `/run/secrets`.
    pub secrets: Vec<(String, String)>,
    pub host_mounts: HostMounts,
    pub log: log::Target,
    pub log_cap: u64,
    /// Not to be seen in the log, in the output, nor by whoever asks the engine.
    pub masks: Masks,
    /// From its image on: what is pulled is part of the attempt.
    pub timeout: Option<Duration>,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
    /// Where a program inside asks for effects.
    pub effects: Effects,
}

/// How often, and after how long, an engine is asked again why it got one.
const LOOKS: usize = 10;
const WHY_AGAIN: Duration = Duration::from_millis(50);

/// Runs the job to its end, after which nothing of the container is left; where its engine is away, nothing as soon as that is
/// back. That is so as well if the future is dropped.
pub async fn execute(docker: &Docker, warden: &Warden, job: Job, stop: StopSignal) -> Ending {
    let begun = Instant::now();
    let never_ran = |outcome, log: log::Summary| Ending {
        outcome,
        duration: begun.elapsed(),
        output: Ok(Map::new()),
        log,
    };
    if stop.is_asked() {
        return never_ran(Outcome::Stopped, log::Summary::default());
    }
    let staged = match stage(docker, &job) {
        Ok(staged) => staged,
        Err(why) => return never_ran(Outcome::StartFailed(why), log::Summary::default()),
    };
    let (stage, mut spec) = staged;
    let host = effect::open_inside(&job.effects, &stage.inside(), ATTEMPT_DIR, &mut spec.env);
    let log = log::Writer::new(job.log.clone(), job.log_cap).masking(&job.masks);
    let deadline = job.timeout.and_then(|timeout| begun.checked_add(timeout));
    let mut held = Held::new(docker, warden, &job.name);
    let mut attempt = Attempt {
        docker,
        job: &job,
        log,
        first: First::default(),
        urgency: Urgency::Run,
        cut_short: None,
        deadline,
        id: String::new(),
    };
    let outcome = attempt.run(&spec, &mut held, &stop).await;
    let duration = begun.elapsed();
    if let Some(host) = host {
        host.close().await;
    }
    if let Err(error) = held.remove().await {
        attempt.log.note(&format!("the container is not removed yet: {error}"));
    }
    let log = attempt.log.finish();
    let output = take_output(&stage.output(), &job.masks);
    Ending { outcome, duration, output, log }
}

/// The files of the attempt, and what the engine is asked for.
fn stage(docker: &Docker, job: &Job) -> Result<(Stage, Spec), String> {
    let mut binds = mounts::resolve(&job.dir, &job.settings.mounts, &job.host_mounts, docker.socket())
        .map_err(|error| error.to_string())?;
    let is_secret = |value: &str| !job.masks.is_empty() && job.masks.text(value) != value;
    let (hidden, mut env): (Vec<_>, Vec<_>) =
        job.env.iter().cloned().partition(|(_, value)| is_secret(value));
    let hidden: Vec<(&str, &str)> =
        hidden.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut settings = job.settings.clone();
    let own = rustix::process::getuid();
    if settings.user.is_none() && !own.is_root() {
        // Without capabilities root inside may not write what is ours here; we may.
        settings.user = Some(format!("{}:{}", own.as_raw(), rustix::process::getgid().as_raw()));
    }
    let user = settings.user.clone();
    let props =
        Props { program: &job.program, secrets: &job.secrets, variables: &hidden, user: user.as_deref() };
    let stage = Stage::make(job.stage.clone(), &props)
        .map_err(|error| format!("{} cannot be made: {error}", job.stage.display()))?;
    env.push(("LANEWAY_OUTPUT".to_owned(), output_inside()));
    binds.extend(stage.binds());
    let workdir = match &job.workdir {
        None => WORKSPACE.to_owned(),
        Some(path) if path.starts_with('/') => path.clone(),
        Some(path) => format!("{WORKSPACE}/{path}"),
    };
    let spec = Spec {
        argv: stage.argv(&job.program),
        settings,
        env,
        workdir: Some(workdir),
        binds,
        labels: job.labels.clone(),
    };
    Ok((stage, spec))
}

/// How urgently its end was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Run,
    Stop,
    Kill,
}

struct Attempt<'a> {
    docker: &'a Docker,
    job: &'a Job,
    log: log::Writer,
    /// What it printed first, which is where an init says that there was nothing to execute.
    first: First,
    urgency: Urgency,
    /// Why Laneway ended it; the first reason stays.
    cut_short: Option<Outcome>,
    /// Of the timeout, then of the grace, then of our patience.
    deadline: Option<Instant>,
    id: String,
}

impl Attempt<'_> {
    async fn run(&mut self, spec: &Spec, held: &mut Held, stop: &StopSignal) -> Outcome {
        let deadline = self.deadline;
        let started = {
            let begin = begin(self.docker, self.job, spec, held, &mut self.log);
            tokio::select! {
                biased;
                () = stop.asked() => Err(Outcome::Stopped),
                () = at(deadline) => Err(Outcome::TimedOut),
                started = begin => started.map_err(|error| error.outcome()),
            }
        };
        match started {
            Ok(begun) => {
                self.id = begun.id;
                self.watch(Some(begun.output), begun.doubt, stop).await
            }
            Err(outcome) => outcome,
        }
    }

    /// Until it has ended, by itself or by us. `doubt` is why it is not known whether it began.
    async fn watch(
        &mut self,
        mut output: Option<Output>,
        mut doubt: Option<Error>,
        stop: &StopSignal,
    ) -> Outcome {
        let mut was_away = false;
        loop {
            let ended = match doubt.take() {
                Some(error) => Ended::Away(error),
                None => self.until_ended(&mut output, stop).await,
            };
            match ended {
                Ended::Exit(code) => {
                    if !self.drain(&mut output).await {
                        self.log.note("output that was still on its way is not kept");
                    }
                    return self.outcome(code, was_away).await;
                }
                Ended::Stuck => {
                    self.log.note("the container was killed, and its engine has not said that it is gone");
                    return self.cut_short.take().unwrap_or(Outcome::Stopped);
                }
                Ended::Away(error) => {
                    self.log.note(&format!("{error}; waiting for the container engine"));
                    was_away = true;
                    match self.until_back(stop).await {
                        // Still there: an engine that keeps containers alive while it restarts.
                        Ok(Back::Running) => {
                            output = self.docker.attach(&self.id).await.ok();
                            self.log
                                .note("the container engine is back; what was printed meanwhile is missing");
                        }
                        Ok(Back::Ended) => {}
                        Ok(Back::NeverBegan) => {
                            let why = "the container engine went away while it was starting the container, and knows of no start";
                            return self.cut_short.take().unwrap_or(Outcome::EngineLost(why.to_owned()));
                        }
                        Err(error) => {
                            let why = format!(
                                "{error}; it went away while the step ran, and how the step ended is not known"
                            );
                            return self.cut_short.take().unwrap_or(Outcome::EngineLost(why));
                        }
                    }
                }
            }
        }
    }

    async fn until_ended(&mut self, output: &mut Option<Output>, stop: &StopSignal) -> Ended {
        let (docker, id) = (self.docker.clone(), self.id.clone());
        let mut wait = std::pin::pin!(async move { docker.wait(&id).await });
        loop {
            tokio::select! {
                // In this order: what ended in time did not time out, and a flood of output must not hide the rest.
                biased;
                ended = &mut wait => return match ended {
                    Ok(code) => Ended::Exit(code),
                    // Somebody else removed it.
                    Err(Error::NotFound { .. }) => Ended::Exit(end::KILLED),
                    Err(error) => Ended::Away(error),
                },
                () = stop.asked(), if self.urgency == Urgency::Run => self.end(Urgency::Stop, Outcome::Stopped),
                () = stop.killed(), if self.urgency < Urgency::Kill => self.end(Urgency::Kill, Outcome::Stopped),
                () = at(self.deadline) => match self.urgency {
                    Urgency::Run => self.end(Urgency::Stop, Outcome::TimedOut),
                    Urgency::Stop => self.end(Urgency::Kill, Outcome::Stopped),
                    Urgency::Kill => return Ended::Stuck,
                },
                printed = next(output) => self.keep(output, printed),
            }
        }
    }

    /// What became of it, once the engine answers again. A step that has run out of time meanwhile is not waited for.
    async fn until_back(&mut self, stop: &StopSignal) -> Result<Back, Error> {
        let away = Instant::now() + AWAY;
        let until = self.deadline.map_or(away, |deadline| deadline.min(away));
        loop {
            let error = match self.docker.inspect(&self.id).await {
                Ok(found) => {
                    let state = found.state.unwrap_or_default();
                    return Ok(match state.running {
                        Some(true) => Back::Running,
                        // To whoever waits for it, such a one has ended well.
                        _ if state.status == Some(ContainerStateStatusEnum::CREATED) => Back::NeverBegan,
                        Some(false) | None => Back::Ended,
                    });
                }
                Err(Error::NotFound { .. }) => return Ok(Back::Ended),
                Err(error) => error,
            };
            let now = Instant::now();
            if self.urgency == Urgency::Run && self.deadline.is_some_and(|deadline| now >= deadline) {
                self.cut_short.get_or_insert(Outcome::TimedOut);
            }
            if now >= until || stop.is_asked() || self.cut_short.is_some() {
                return Err(error);
            }
            tokio::time::sleep_until(until.min(now + LOOK_AGAIN)).await;
        }
    }

    /// Raises the urgency and acts on it. The engine is asked aside: one that is slow must not hold up the output.
    fn end(&mut self, urgency: Urgency, why: Outcome) {
        self.urgency = urgency;
        self.cut_short.get_or_insert(why);
        let (signal, patience) = match urgency {
            Urgency::Run => return,
            Urgency::Stop => ("TERM", self.job.kill_grace),
            Urgency::Kill => ("KILL", ENDED),
        };
        self.deadline = Instant::now().checked_add(patience);
        let (docker, id) = (self.docker.clone(), self.id.clone());
        tokio::spawn(async move {
            if let Err(error) = docker.kill(&id, signal).await {
                tracing::debug!(%error, signal, "a container could not be signaled");
            }
        });
    }

    fn keep(&mut self, output: &mut Option<Output>, printed: Printed) {
        match printed {
            Printed::Some(stream, bytes) => {
                self.first.see(stream, &bytes);
                end::append(&mut self.log, stream, &bytes);
            }
            Printed::End => *output = None,
        }
    }

    /// Whether all of it was kept.
    async fn drain(&mut self, output: &mut Option<Output>) -> bool {
        let until = Instant::now() + DRAIN;
        while output.is_some() {
            // The time is looked at as well: a flood is always ready and would never time out.
            if Instant::now() >= until {
                return false;
            }
            match tokio::time::timeout_at(until, next(output)).await {
                Ok(printed) => self.keep(output, printed),
                Err(_) => return false,
            }
        }
        true
    }

    async fn outcome(&mut self, code: i64, was_away: bool) -> Outcome {
        if let Some(why) = self.cut_short.take() {
            return why;
        }
        let mut is_oom = self.is_out_of_memory().await;
        // An engine that is busy hears of the exit before it hears why.
        for _ in 0..LOOKS {
            if is_oom || was_away || code != KILLED {
                break;
            }
            tokio::time::sleep(WHY_AGAIN).await;
            is_oom = self.is_out_of_memory().await;
        }
        end::judge(code, is_oom, was_away, &self.first)
    }

    async fn is_out_of_memory(&self) -> bool {
        let state = self.docker.inspect(&self.id).await.ok().and_then(|found| found.state);
        state.and_then(|state| state.oom_killed).unwrap_or(false)
    }
}

enum Ended {
    Exit(i64),
    Away(Error),
    /// It was killed, and the engine does not say that it is gone.
    Stuck,
}

/// What an engine has of a container after it was away.
enum Back {
    Running,
    Ended,
    NeverBegan,
}

/// A container that was asked to start.
struct Begun {
    id: String,
    output: Output,
    /// The answer was lost, so it may have begun or not.
    doubt: Option<Error>,
}

/// From the image to the start.
async fn begin(
    docker: &Docker,
    job: &Job,
    spec: &Spec,
    held: &mut Held,
    log: &mut log::Writer,
) -> Result<Begun, Error> {
    let settings = &spec.settings;
    let mut pulling = Pulling::of(&settings.image);
    let pulled = docker.ensure_image(&settings.image, settings.pull, |progress| {
        if let Some(line) = pulling.line(&progress, Instant::now()) {
            log.note(&line);
        }
    });
    pulled.await?;
    held.asked();
    let created = create(docker, job, spec).await;
    held.answered(&created);
    let id = created?;
    let output = docker.attach(&id).await?;
    let doubt = match docker.start(&id).await {
        Ok(()) => None,
        Err(error) if error.is_unknown() => Some(error),
        Err(error) => return Err(error),
    };
    Ok(Begun { id, output, doubt })
}

/// One whose answer was lost is found by its name, and is ours if it says so.
async fn create(docker: &Docker, job: &Job, spec: &Spec) -> Result<String, Error> {
    let error = match docker.create(&job.name, spec.body()).await {
        Ok(id) => return Ok(id),
        Err(error) if error.is_unknown() || matches!(error, Error::Conflict { .. }) => error,
        Err(error) => return Err(error),
    };
    let is_ours = |labels: &HashMap<String, String>| {
        job.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
    };
    // An engine that cannot tell leaves it open.
    let Ok(found) = docker.find(&job.name).await else { return Err(error) };
    match found {
        Some(found) if found.state == "created" && is_ours(&found.labels) => Ok(found.id),
        Some(_) => Err(Error::Conflict { name: job.name.clone() }),
        // It was not made: once more, and no further.
        None if error.is_unknown() => docker.create(&job.name, spec.body()).await,
        None => Err(error),
    }
}

/// What came out of it.
enum Printed {
    Some(log::Stream, bytes::Bytes),
    End,
}

/// Never ends when there is nothing to listen to. Nothing is lost if it is dropped while it waits.
async fn next(output: &mut Option<Output>) -> Printed {
    let Some(open) = output else { return std::future::pending().await };
    match open.next().await {
        Some(Ok(piece)) => {
            let (stream, bytes) = end::piece(piece);
            Printed::Some(stream, bytes)
        }
        Some(Err(_)) | None => Printed::End,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
