//! The verbs of the container engine, over Docker's API: Docker's own, or Podman's. Each has a deadline, so that an engine
//! that hangs is an error and not a hung run; only what waits for a container's end has none. Owns no policy and no loop.
//!
//! A connection is made for each question: an engine that was restarted in between is asked like any other.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::{ContainerCreateBody, ContainerInspectResponse, ExecConfig, FilesystemChange};
use bollard::query_parameters::{
    AttachContainerOptions, CreateContainerOptions, CreateImageOptionsBuilder, KillContainerOptions,
    ListContainersOptions, RemoveContainerOptions, StopContainerOptions, WaitContainerOptions,
};
use futures_util::{Stream, StreamExt as _};
use laneway_core::definition::Pull;
use tokio::sync::OnceCell;

use super::error::Error;

/// Where the engine is by default.
pub const DOCKER_HOST: &str = "unix:///var/run/docker.sock";

/// What asks for no work of the engine.
const QUICK: Duration = Duration::from_secs(10);
/// What starts, ends or changes something: on a machine under load it takes its time.
const WORK: Duration = Duration::from_secs(60);
/// How long a pull may be silent.
const PULL_SILENCE: Duration = Duration::from_secs(120);
/// How long what is killed may take until it is gone.
const REMOVE: Duration = Duration::from_secs(30);

/// The version that is spoken where the engine knows it; an older engine is spoken to in its own, a newer one in this.
const NEWEST: bollard::ClientVersion = bollard::ClientVersion { major_version: 1, minor_version: 47 };

/// bollard counts what it waits for as one; deadlines are ours, so that a wait may take as long as it takes.
const NO_TIMEOUT: u64 = 10 * 365 * 24 * 3600;

type Result<T> = std::result::Result<T, Error>;

/// What a container or an exec prints. Ends with what prints it.
pub type Output = Pin<Box<dyn Stream<Item = std::result::Result<LogOutput, bollard::errors::Error>> + Send>>;

/// An engine, whether it is there or not. Cheap to clone; the version is settled at the first question.
#[derive(Debug, Clone)]
pub struct Docker {
    host: Arc<str>,
    client: Arc<OnceCell<bollard::Docker>>,
}

/// A container that a list or a look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub id: String,
    pub name: String,
    pub labels: HashMap<String, String>,
    /// As the engine says it: created, running, paused, exited, dead, …
    pub state: String,
}

/// A program that is started in a container that runs.
#[derive(Debug, Clone, Default)]
pub struct Exec {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub workdir: Option<String>,
    pub user: Option<String>,
}

/// How far a program in a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecState {
    /// The engine has yet to bring it up.
    Begins,
    Runs,
    Ended(i64),
}

/// One that was started.
pub struct Execution {
    pub id: String,
    pub output: Output,
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a pull says on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The layer, where it is about one.
    pub layer: Option<String>,
    pub status: String,
    /// Bytes of it, and how many there are.
    pub bytes: Option<(u64, u64)>,
}

impl Docker {
    /// `unix://PATH`, a path, or `tcp://HOST:PORT`. Does not look whether it is there.
    pub fn at(host: &str) -> Self {
        Self { host: host.into(), client: Arc::new(OnceCell::new()) }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path of its socket, if it has one.
    pub fn socket(&self) -> Option<&str> {
        match self.host.strip_prefix("unix://") {
            Some(path) => Some(path),
            None => self.host.starts_with('/').then_some(&*self.host),
        }
    }

    pub async fn ping(&self) -> Result<()> {
        let client = self.client().await?;
        self.within("answer", QUICK, client.ping()).await.map(|_| ())
    }

    /// The id of an image that is there.
    pub async fn image(&self, image: &str) -> Result<Option<String>> {
        let client = self.client().await?;
        match self.within("look for an image", QUICK, client.inspect_image(image)).await {
            Ok(found) => Ok(found.id),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes sure that an image is there, and gives its id.
    pub async fn ensure_image(&self, image: &str, pull: Pull, tell: impl FnMut(Progress)) -> Result<String> {
        let found = self.image(image).await?;
        match (pull, found) {
            (Pull::Missing | Pull::Never, Some(id)) => return Ok(id),
            (Pull::Never, None) => {
                let why = "it is not on this node, and `pull` is `never`".to_owned();
                return Err(Error::NoImage { image: image.to_owned(), why });
            }
            (Pull::Missing, None) | (Pull::Always, _) => self.pull(image, tell).await?,
        }
        let why = || "it was pulled, and is not there".to_owned();
        self.image(image).await?.ok_or_else(|| Error::NoImage { image: image.to_owned(), why: why() })
    }

    async fn pull(&self, image: &str, mut tell: impl FnMut(Progress)) -> Result<()> {
        let client = self.client().await?;
        // Without a tag all tags would be pulled.
        let has_tag = image.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
        let name = if has_tag { image.to_owned() } else { format!("{image}:latest") };
        let options = CreateImageOptionsBuilder::new().from_image(&name).build();
        let mut steps = std::pin::pin!(client.create_image(Some(options), None, None));
        let no_image = |why: String| Error::NoImage { image: image.to_owned(), why };
        loop {
            let step = tokio::time::timeout(PULL_SILENCE, steps.next()).await;
            match step.map_err(|_| no_image(format!("its pull was silent for {PULL_SILENCE:?}")))? {
                None => return Ok(()),
                Some(Ok(step)) => {
                    let bytes = step.progress_detail.and_then(|detail| {
                        Some((u64::try_from(detail.current?).ok()?, u64::try_from(detail.total?).ok()?))
                    });
                    tell(Progress { layer: step.id, status: step.status.unwrap_or_default(), bytes });
                }
                Some(Err(error)) => {
                    return Err(match Error::of("pull an image", &self.host, error) {
                        Error::NotFound { why } | Error::Refused { why, .. } => no_image(why),
                        other => other,
                    });
                }
            }
        }
    }

    /// Gives its id. A name that is taken is a `Conflict`, an image that is not there is `NoImage`.
    pub async fn create(&self, name: &str, body: ContainerCreateBody) -> Result<String> {
        let client = self.client().await?;
        let image = body.image.clone().unwrap_or_default();
        let options = CreateContainerOptions { name: Some(name.to_owned()), ..Default::default() };
        let verb = "create a container";
        let created = tokio::time::timeout(WORK, client.create_container(Some(options), body)).await;
        match created.map_err(|_| Error::TooSlow { verb, within: WORK })? {
            Ok(created) => Ok(created.id),
            Err(bollard::errors::Error::DockerResponseServerError { status_code: 409, .. }) => {
                Err(Error::Conflict { name: name.to_owned() })
            }
            Err(error) => Err(match Error::of(verb, &self.host, error) {
                Error::NotFound { why } => Error::NoImage { image, why },
                other => other,
            }),
        }
    }

    /// What it prints from now on. Asked before it is started, that is all of it.
    pub async fn attach(&self, id: &str) -> Result<Output> {
        let client = self.client().await?;
        let options =
            AttachContainerOptions { stream: true, stdout: true, stderr: true, ..Default::default() };
        let attached = client.attach_container(id, Some(options));
        self.within("attach to a container", QUICK, attached).await.map(|attached| attached.output)
    }

    pub async fn start(&self, id: &str) -> Result<()> {
        let client = self.client().await?;
        self.within("start a container", WORK, client.start_container(id, None)).await
    }

    /// Waits for its end, however long that takes, and gives the exit code.
    pub async fn wait(&self, id: &str) -> Result<i64> {
        let client = self.client().await?;
        let options = WaitContainerOptions { condition: "not-running".to_owned() };
        let mut ends = std::pin::pin!(client.wait_container(id, Some(options)));
        match ends.next().await {
            Some(Ok(end)) => Ok(end.status_code),
            // So bollard calls every code but 0.
            Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. })) => Ok(code),
            Some(Err(error)) => Err(Error::of("wait for a container", &self.host, error)),
            None => Err(Error::Cut {
                verb: "wait for a container",
                why: "the engine closed the connection".to_owned(),
            }),
        }
    }

    /// Sends a signal such as `TERM`. One that does not run is `Refused`, one that is gone `NotFound`.
    pub async fn kill(&self, id: &str, signal: &str) -> Result<()> {
        let client = self.client().await?;
        let options = KillContainerOptions { signal: signal.to_owned() };
        self.within("signal a container", QUICK, client.kill_container(id, Some(options))).await
    }

    /// TERM, the grace, KILL. Comes back when it has ended.
    pub async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        let client = self.client().await?;
        let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptions { t: Some(seconds), ..Default::default() };
        self.within("stop a container", grace + WORK, client.stop_container(id, Some(options))).await
    }

    /// Ends it if it runs, and removes it with its volumes. One that is gone, or on its way, is fine.
    pub async fn remove(&self, id: &str) -> Result<()> {
        let client = self.client().await?;
        let options = RemoveContainerOptions { v: true, force: true, link: false };
        match self.within("remove a container", REMOVE, client.remove_container(id, Some(options))).await {
            Err(Error::NotFound { .. }) => Ok(()),
            Err(Error::Refused { why, .. }) if why.contains("already in progress") => Ok(()),
            other => other,
        }
    }

    pub async fn pause(&self, id: &str) -> Result<()> {
        let client = self.client().await?;
        self.within("pause a container", QUICK, client.pause_container(id)).await
    }

    pub async fn unpause(&self, id: &str) -> Result<()> {
        let client = self.client().await?;
        self.within("wake a container", QUICK, client.unpause_container(id)).await
    }

    /// Starts a program in a container that runs. Its exit code is `exec_end`'s, once its output has ended.
    pub async fn exec(&self, id: &str, exec: Exec) -> Result<Execution> {
        let client = self.client().await?;
        let config = ExecConfig {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(exec.argv),
            env: Some(variables(&exec.env)),
            working_dir: exec.workdir,
            user: exec.user,
            ..Default::default()
        };
        let made =
            self.within("prepare a program in a container", QUICK, client.create_exec(id, config)).await?;
        let options = StartExecOptions { output_capacity: Some(64 * 1024), ..Default::default() };
        let started = client.start_exec(&made.id, Some(options));
        match self.within("start a program in a container", WORK, started).await? {
            StartExecResults::Attached { output, .. } => Ok(Execution { id: made.id, output }),
            StartExecResults::Detached => {
                Err(Error::Refused { verb: "attach to a program", why: "it was started detached".to_owned() })
            }
        }
    }

    /// Starts a program and waits for its end, however long that takes; what it prints is dropped.
    pub async fn run_to_end(&self, id: &str, exec: Exec) -> Result<i64> {
        let mut started = self.exec(id, exec).await?;
        while started.output.next().await.is_some() {}
        self.exec_end(&started.id).await
    }

    pub async fn exec_state(&self, exec: &str) -> Result<ExecState> {
        let client = self.client().await?;
        let found = self.within("look at a program in a container", QUICK, client.inspect_exec(exec)).await?;
        Ok(match found.exit_code.filter(|_| found.running != Some(true)) {
            Some(code) => ExecState::Ended(code),
            None if found.pid.is_some_and(|pid| pid > 0) => ExecState::Runs,
            None => ExecState::Begins,
        })
    }

    /// The exit code of a program whose output has ended: the engine learns of it a moment later.
    pub async fn exec_end(&self, exec: &str) -> Result<i64> {
        let mut pause = Duration::from_millis(1);
        loop {
            if let ExecState::Ended(code) = self.exec_state(exec).await? {
                return Ok(code);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    pub async fn inspect(&self, id: &str) -> Result<ContainerInspectResponse> {
        let client = self.client().await?;
        self.within("look at a container", QUICK, client.inspect_container(id, None)).await
    }

    /// What of its own files has changed since it was made.
    pub async fn changes(&self, id: &str) -> Result<Vec<FilesystemChange>> {
        let client = self.client().await?;
        let changes =
            self.within("look for changes in a container", WORK, client.container_changes(id)).await?;
        Ok(changes.unwrap_or_default())
    }

    /// All with these labels, in whatever state they are.
    pub async fn list(&self, labels: &[(&str, &str)]) -> Result<Vec<Found>> {
        let wanted = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.listed("label", wanted).await
    }

    /// The one of this name.
    pub async fn find(&self, name: &str) -> Result<Option<Found>> {
        // A filter by name finds all that contain it.
        let all = self.listed("name", vec![format!("^/?{name}$")]).await?;
        Ok(all.into_iter().find(|found| found.name == name))
    }

    async fn listed(&self, by: &str, wanted: Vec<String>) -> Result<Vec<Found>> {
        let client = self.client().await?;
        let filters = HashMap::from([(by.to_owned(), wanted)]);
        let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
        let all = self.within("list containers", WORK, client.list_containers(Some(options))).await?;
        let found = all.into_iter().filter_map(|one| {
            let name = one.names.and_then(|names| names.into_iter().next()).unwrap_or_default();
            Some(Found {
                id: one.id?,
                name: name.trim_start_matches('/').to_owned(),
                labels: one.labels.unwrap_or_default(),
                state: one.state.map(|state| state.to_string()).unwrap_or_default(),
            })
        });
        Ok(found.collect())
    }

    /// Connected, and with a version that both sides speak. A failure is not kept: the next question tries again.
    async fn client(&self) -> Result<&bollard::Docker> {
        let connect = || async {
            let unreachable = |why: String| Error::Unreachable { host: self.host.to_string(), why };
            let client = match self.socket() {
                Some(path) => bollard::Docker::connect_with_unix(path, NO_TIMEOUT, &NEWEST),
                None => bollard::Docker::connect_with_http(&self.host, NO_TIMEOUT, &NEWEST),
            };
            let client = client.map_err(|error| Error::of("answer", &self.host, error))?;
            match tokio::time::timeout(QUICK, client.negotiate_version()).await {
                Ok(Ok(client)) => Ok(client),
                Ok(Err(error)) => Err(match Error::of("answer", &self.host, error) {
                    Error::Cut { why, .. } => unreachable(why),
                    other => other,
                }),
                Err(_) => Err(unreachable(format!("it did not answer within {} s", QUICK.as_secs()))),
            }
        };
        self.client.get_or_try_init(connect).await
    }

    async fn within<T>(
        &self,
        verb: &'static str,
        within: Duration,
        asked: impl Future<Output = std::result::Result<T, bollard::errors::Error>>,
    ) -> Result<T> {
        match tokio::time::timeout(within, asked).await {
            Ok(answer) => answer.map_err(|error| Error::of(verb, &self.host, error)),
            Err(_) => Err(Error::TooSlow { verb, within }),
        }
    }
}

/// As the API takes them.
pub(super) fn variables(env: &[(String, String)]) -> Vec<String> {
    env.iter().map(|(name, value)| format!("{name}={value}")).collect()
}
