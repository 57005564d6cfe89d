//! One warm container, from its start to its removal: made, waited for until it is healthy, woken, put to sleep, removed.
//! Each is one function that tries once and says what came of it; `keeper.rs` says when.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bollard::models::{ContainerCreateBody, ContainerInspectResponse, PortBinding};
use laneway_core::definition;
use laneway_core::definition::{ATTEMPT_DIR, PoolMode, WORKSPACE};
use laneway_core::pool::Fault;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::super::docker::Docker;
use super::super::error::Error;
use super::super::mounts::{self, HostMounts};
use super::super::spec::{Bind, Spec};
use super::files::Shelf;
use super::http;
use super::inside::{self, Pristine, Whose};
use super::mounts::{Mounts, Place};
use super::outside::Outside;
use super::ports::{Port, SharedPorts};
use crate::warden::Warden;

/// How long one look at its health may take. A server that hangs is asked again.
const LOOK: Duration = Duration::from_secs(5);

/// A container whose creation may have happened unseen is looked for again after these pauses.
const UNSURE: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// Ports that are tried for one start.
const PORTS: usize = 10;

/// How often, and after how long, an engine is asked whether something was killed for memory.
const LOOKS: usize = 5;
const WHY_AGAIN: Duration = Duration::from_millis(50);

/// What does nothing for as long as it takes.
const WAITER: [&str; 3] = ["/bin/sh", "-c", "while :; do sleep 86400; done"];

/// What every container of a node is made with.
#[derive(Debug)]
pub(super) struct Yard {
    pub(super) docker: Docker,
    /// Removes what is left when this node dies.
    pub(super) warden: Warden,
    pub(super) host_mounts: HostMounts,
    pub(super) labels: HashMap<String, String>,
    /// Of the names of its containers.
    pub(super) prefix: String,
    pub(super) ports: SharedPorts,
    /// `start_concurrency`.
    pub(super) starts: Semaphore,
    /// Scripts and outputs of tasks.
    pub(super) scratch: PathBuf,
    /// `None` where the node may not mount.
    pub(super) mounts: Option<Mounts>,
}

/// What containers of a pool are made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Recipe {
    /// Without its name: pools that differ in nothing else are one.
    pub(super) pool: definition::Pool,
    /// What the image's name meant when it was looked up.
    pub(super) image: String,
    /// The only directory that its containers see, where the node may not mount.
    pub(super) dir: Option<PathBuf>,
}

/// A container and all that belongs to it, known from before it is made, so that nothing of a failed start is forgotten.
#[derive(Debug)]
pub(super) struct Vessel {
    pub(super) name: String,
    /// Where its tasks' files are on the host.
    pub(super) shelf: Shelf,
    /// It may have been made although nobody said so.
    is_unsure: OnceLock<()>,
    port: Mutex<Option<Port>>,
    place: Mutex<Option<Arc<Place>>>,
    known: OnceLock<Known>,
    /// Whether it is being removed, or is gone. Held while it is made: what is removed meanwhile would be made behind that.
    is_ending: tokio::sync::Mutex<bool>,
}

/// Why a container did not start.
#[derive(Debug)]
pub(super) enum StartFailure {
    Fault(Fault),
    /// Other programs took its port and those tried in its place, or no other port was free.
    PortTaken,
}

impl From<Fault> for StartFailure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for StartFailure {
    fn from(error: Error) -> Self {
        Self::Fault(error.into())
    }
}

/// What is known of one that has started.
#[derive(Debug)]
struct Known {
    id: String,
    /// Where it is asked.
    port: Option<u16>,
    pristine: Option<Pristine>,
    /// It has volumes of its own, as its image says, or nobody could find out.
    has_volumes: bool,
    /// How many kills for memory have been told of.
    kills: AtomicU64,
    /// Where its processes are to be seen from here.
    outside: Option<Outside>,
}

impl Vessel {
    pub(super) fn new(yard: &Yard, number: u64) -> Self {
        Self {
            name: format!("{}{number}", yard.prefix),
            shelf: Shelf::at(yard.scratch.join(format!("warm-{number}"))),
            is_unsure: OnceLock::new(),
            port: Mutex::new(None),
            place: Mutex::new(None),
            known: OnceLock::new(),
            is_ending: tokio::sync::Mutex::new(false),
        }
    }

    /// Its id with the engine; the name where it has none yet.
    pub(super) fn id(&self) -> &str {
        self.known.get().map_or(&self.name, |known| &known.id)
    }

    pub(super) fn pristine(&self) -> Option<&Pristine> {
        self.known.get().and_then(|known| known.pristine.as_ref())
    }

    /// The port of this host at which its endpoint answers.
    pub(super) fn endpoint(&self) -> Option<u16> {
        self.known.get().and_then(|known| known.port)
    }

    pub(super) fn place(&self) -> Option<Arc<Place>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives it a port of the host, before it starts.
    pub(super) fn take_port(&self, port: Port) {
        let before = self.port.lock().unwrap_or_else(PoisonError::into_inner).replace(port);
        // Dropped when the lock is released: its port may be granted to another pool at once.
        drop(before);
    }

    /// The port of the host that it holds.
    pub(super) fn held_port(&self) -> Option<u16> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|port| port.number)
    }

    /// Makes it, starts it and waits until it is healthy. Whatever the outcome: `remove` leaves nothing of it.
    pub(super) async fn start(&self, yard: &Yard, recipe: &Recipe) -> Result<(), StartFailure> {
        let _permit = yard.starts.acquire().await.map_err(|_| Fault::Closed)?;
        let (id, port) = self.up(yard, recipe).await?;
        self.until_healthy(yard, recipe, &id, port).await?;
        let pristine = inside::pristine(&yard.docker, &id).await?;
        let kills = AtomicU64::new(pristine.as_ref().map_or(0, Pristine::kills));
        let found = yard.docker.inspect(&id).await.ok();
        let has_volumes = found.as_ref().is_none_or(has_volumes);
        let outside = found.and_then(|found| Outside::find(found.state?.pid?, &id));
        let _ = self.known.set(Known { id, port, pristine, has_volumes, kills, outside });
        Ok(())
    }

    /// Makes it and starts it. Returns its id, and the port at which it will answer. Two nodes may
    /// find the same port free at the same moment, so a port that was taken in between is replaced.
    async fn up(&self, yard: &Yard, recipe: &Recipe) -> Result<(String, Option<u16>), StartFailure> {
        let mut body = None;
        let mut tried = 0;
        loop {
            tried += 1;
            let (id, port) = self.make(yard, recipe, &mut body).await?;
            match yard.docker.start(&id).await {
                Ok(()) => return Ok((id, port)),
                Err(error) => {
                    let taken = self.held_port().filter(|_| error.is_port_taken());
                    let Some(taken) = taken else { return Err(error.into()) };
                    yard.docker.remove(&id).await?;
                    let other = if tried < PORTS { yard.ports.replace(taken) } else { None };
                    self.take_port(other.ok_or(StartFailure::PortTaken)?);
                }
            }
        }
    }

    /// `body` is what it is made of, but for its port, once that is known.
    async fn make(
        &self,
        yard: &Yard,
        recipe: &Recipe,
        body: &mut Option<ContainerCreateBody>,
    ) -> Result<(String, Option<u16>), Fault> {
        let is_ending = self.is_ending.lock().await;
        if *is_ending {
            return Err(Fault::StartFailed("it is not wanted any more".to_owned()));
        }
        let body = match body {
            Some(body) => body,
            None => body.insert(self.body(yard, recipe).map_err(Fault::StartFailed)?),
        };
        let port = self.map_port(recipe, body).or_else(|| own_port(recipe));
        // Before it is made: from here on it does not outlive this node.
        yard.warden.hold(yard.docker.host(), &self.name);
        let id = yard.docker.create(&self.name, body.clone()).await.inspect_err(|error| {
            if error.is_unknown() {
                let _ = self.is_unsure.set(());
            }
        })?;
        Ok((id, port))
    }

    /// Maps its endpoint to the port that it holds. `None` if it serves nothing, or has the network
    /// of the host.
    fn map_port(&self, recipe: &Recipe, body: &mut ContainerCreateBody) -> Option<u16> {
        let endpoint = recipe.pool.endpoint.as_ref()?;
        let number = self.held_port()?;
        let inside = format!("{}/tcp", endpoint.port);
        let at = PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(number.to_string()) };
        body.exposed_ports = Some(vec![inside.clone()]);
        let host = body.host_config.get_or_insert_default();
        host.port_bindings = Some(HashMap::from([(inside, Some(vec![at]))]));
        Some(number)
    }

    fn body(&self, yard: &Yard, recipe: &Recipe) -> Result<ContainerCreateBody, String> {
        let pool = &recipe.pool;
        let shelf = |error: std::io::Error| {
            format!("its files cannot be made: {}: {error}", self.shelf.path().display())
        };
        self.shelf.make().map_err(shelf)?;
        let mut binds = vec![bind(self.shelf.inside(), ATTEMPT_DIR)];
        match (&yard.mounts, &recipe.dir) {
            (Some(mounts), None) => {
                let place = mounts
                    .place(&self.name)
                    .map_err(|error| format!("no place for a run's directory: {error}"))?;
                // Nothing is to be written to the place itself: it lies on the host, and is seen by every task. What is lent there can be.
                let at = bind(place.path().to_owned(), WORKSPACE);
                binds.push(Bind { follows_mounts: true, is_read_only: true, ..at });
                *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(place));
            }
            (_, Some(dir)) => binds.push(bind(dir.clone(), WORKSPACE)),
            (None, None) => {}
        }
        let written = &pool.container.mounts;
        if let (None, Some(mount)) = (&recipe.dir, written.iter().find(|mount| !mount.is_of_host())) {
            return Err(format!(
                "the mount `{}` is of a run's directory, and a warm container is of no run; name a place of the host",
                mount.source
            ));
        }
        let dir = recipe.dir.as_deref().unwrap_or_else(|| self.shelf.path());
        let resolved = mounts::resolve(dir, written, &yard.host_mounts, yard.docker.socket());
        // The first is the directory itself.
        binds.extend(resolved.map_err(|error| error.to_string())?.into_iter().skip(1));
        let mut settings = pool.container.clone();
        // By what it was when the pool was made: a tag that moves must not mix two images in one pool.
        settings.image.clone_from(&recipe.image);
        // What clean means begins here: nothing of the image can be changed.
        settings.is_read_only = true;
        let own = rustix::process::getuid();
        if settings.user.is_none() && !own.is_root() {
            // Without capabilities root inside may not write what is ours here; we may.
            settings.user = Some(format!("{}:{}", own.as_raw(), rustix::process::getgid().as_raw()));
        }
        let argv = match (pool.command.as_slice(), &pool.endpoint) {
            ([], None) => WAITER.map(str::to_owned).to_vec(),
            (command, _) => command.to_vec(),
        };
        let spec = Spec { settings, argv, binds, labels: yard.labels.clone(), ..Spec::default() };
        Ok(spec.body())
    }

    async fn until_healthy(
        &self,
        yard: &Yard,
        recipe: &Recipe,
        id: &str,
        port: Option<u16>,
    ) -> Result<(), Fault> {
        let pool = &recipe.pool;
        let until = Instant::now() + pool.health_timeout;
        loop {
            let sick = match health(&yard.docker, pool, id, port).await {
                Ok(()) => return Ok(()),
                Err(sick) => sick,
            };
            let found = yard.docker.inspect(id).await;
            let state = found.as_ref().ok().and_then(|found| found.state.as_ref());
            if let Some(state) = state.filter(|state| state.running != Some(true)) {
                let code = state.exit_code.unwrap_or_default();
                let why = format!("its container ended with exit code {code} before it was healthy");
                return Err(Fault::StartFailed(why));
            }
            if Instant::now() + pool.health_interval > until {
                return Err(match found {
                    // Nobody can say whether it is well. A restart of the engine would be over by now.
                    Err(error) if error.is_of_engine() => error.into(),
                    Ok(_) | Err(_) => Fault::StartFailed(format!(
                        "its container was not healthy within {:?}: {sick}",
                        pool.health_timeout
                    )),
                });
            }
            tokio::time::sleep(pool.health_interval).await;
        }
    }

    /// Wakes it and sees whether it is well.
    pub(super) async fn wake(&self, yard: &Yard, recipe: &Recipe) -> Result<(), String> {
        yard.docker.unpause(self.id()).await.map_err(|error| error.to_string())?;
        let pool = &recipe.pool;
        // That it runs at all is said by its waking.
        if pool.health.is_none() && pool.endpoint.is_none() {
            return Ok(());
        }
        let until = Instant::now() + LOOK.min(pool.health_timeout);
        loop {
            match health(&yard.docker, pool, self.id(), self.endpoint()).await {
                Ok(()) => return Ok(()),
                Err(sick) if Instant::now() >= until => return Err(sick),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Whether it does not run any more, as far as the engine knows.
    pub(super) async fn is_dead(&self, docker: &Docker) -> bool {
        match docker.inspect(self.id()).await {
            Ok(found) => found.state.and_then(|state| state.running) == Some(false),
            Err(error) => matches!(error, Error::NotFound { .. }),
        }
    }

    /// Whether something in there was killed for memory since that was last told of. The group counts at once; the engine, where
    /// nobody in there can be asked, hears of it a moment later.
    pub(super) async fn is_out_of_memory(&self, docker: &Docker, mode: PoolMode) -> bool {
        if let (Some(known), Some(_)) = (self.known.get(), self.pristine())
            && let Ok(Some(now)) = inside::kills(docker, &known.id).await
        {
            return use_up(&known.kills, now, mode);
        }
        for _ in 0..LOOKS {
            let state = docker.inspect(self.id()).await.ok().and_then(|found| found.state);
            match state.and_then(|state| state.oom_killed) {
                Some(true) => return true,
                Some(false) => tokio::time::sleep(WHY_AGAIN).await,
                None => return false,
            }
        }
        false
    }

    /// Sends a signal (`TERM`, `KILL`) to all but what it started with; after KILL none of them is left if it says true.
    pub(super) async fn signal(
        &self,
        docker: &Docker,
        pristine: &Pristine,
        signal: &'static str,
    ) -> Result<bool, Error> {
        let outside = self.known.get().and_then(|known| known.outside.clone());
        if let Some(outside) = outside {
            let keep = pristine.processes().to_vec();
            let sent = tokio::task::spawn_blocking(move || outside.signal(&keep, signal)).await;
            if let Ok(Some(is_done)) = sent {
                return Ok(is_done);
            }
        }
        inside::signal(docker, self.id(), Whose::Guests(pristine), signal).await
    }

    /// Makes it as if nobody had used it. False: that is not possible.
    pub(super) async fn clean(&self, yard: &Yard) -> bool {
        let Some(pristine) = self.pristine() else { return false };
        // What is written there shows in no layer, and what was there at first nobody has kept.
        if self.known.get().is_none_or(|known| known.has_volumes) {
            return false;
        }
        let cleaned = async {
            let is_alone = self.signal(&yard.docker, pristine, "KILL").await?;
            Ok::<bool, Error>(is_alone && inside::is_as_before(&yard.docker, self.id(), pristine).await?)
        };
        match cleaned.await {
            // The directory of a task that ended is gone already; what is there now was put there behind its end.
            Ok(is_clean) => is_clean && self.shelf.is_empty(),
            Err(error) => {
                tracing::debug!(container = self.name, %error, "a container could not be cleaned");
                false
            }
        }
    }

    /// Removes it, with its port and its place. To be asked again until it succeeds; once it has, nothing happens.
    pub(super) async fn remove(&self, yard: &Yard) -> Result<(), Error> {
        *self.is_ending.lock().await = true;
        let pauses = if self.is_unsure.get().is_some() { UNSURE.as_slice() } else { &UNSURE[..1] };
        for pause in pauses {
            tokio::time::sleep(*pause).await;
            yard.docker.remove(&self.name).await?;
        }
        yard.warden.release(&self.name);
        let port = self.port.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(port);
        drop(self.place.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Err(error) = self.shelf.remove() {
            tracing::debug!(container = self.name, %error, "a warm container's files could not be removed");
        }
        Ok(())
    }
}

/// Whether something in it can be written that is neither the image's, nor memory, nor a place of the host.
fn has_volumes(found: &ContainerInspectResponse) -> bool {
    let mut mounts = found.mounts.iter().flatten();
    mounts.any(|mount| !matches!(mount.typ.as_deref(), Some("bind" | "tmpfs")))
}

/// Whether there are kills that nobody was told of. A task that is alone has caused them all; of several that were killed together,
/// each is told of one.
fn use_up(told: &AtomicU64, now: u64, mode: PoolMode) -> bool {
    match mode {
        PoolMode::Multi => told.fetch_max(now, Ordering::Relaxed) < now,
        PoolMode::Single => {
            let one_more = |told: u64| (told < now).then_some(told + 1);
            told.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
        }
    }
}

/// One look. The error says what was seen.
async fn health(docker: &Docker, pool: &definition::Pool, id: &str, port: Option<u16>) -> Result<(), String> {
    match (&pool.health, &pool.endpoint, port) {
        (Some(argv), _, _) => {
            let (code, printed) = inside::run_program(docker, id, argv.clone(), LOOK)
                .await
                .map_err(|error| error.to_string())?;
            let last = printed.trim().lines().last().unwrap_or_default();
            if code == 0 {
                Ok(())
            } else {
                let printed = if last.is_empty() { "it printed nothing" } else { last };
                Err(format!("`{}` ended with exit code {code}: {printed}", argv.join(" ")))
            }
        }
        (None, Some(endpoint), Some(port)) => http::look(port, &endpoint.health, LOOK).await,
        (None, Some(_) | None, _) => {
            let found = docker.inspect(id).await.map_err(|error| error.to_string())?;
            let is_running = found.state.and_then(|state| state.running) == Some(true);
            if is_running { Ok(()) } else { Err("it does not run".to_owned()) }
        }
    }
}

/// The port of a container that has the host's own network: there is nothing to map.
fn own_port(recipe: &Recipe) -> Option<u16> {
    recipe.pool.endpoint.as_ref().filter(|_| !recipe.pool.needs_ports()).map(|endpoint| endpoint.port)
}

fn bind(source: PathBuf, target: &str) -> Bind {
    Bind { source, target: target.to_owned(), is_read_only: false, follows_mounts: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_tasks_that_are_killed_together_each_is_told_of_one() {
        let told = AtomicU64::new(1);
        let mut seen = [(); 3].map(|()| use_up(&told, 3, PoolMode::Single));
        assert_eq!(seen, [true, true, false]);
        told.store(1, Ordering::Relaxed);
        seen = [(); 3].map(|()| use_up(&told, 3, PoolMode::Multi));
        assert_eq!(seen, [true, false, false], "who is alone has caused them all");
    }
}
