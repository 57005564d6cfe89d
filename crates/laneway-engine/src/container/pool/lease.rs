//! One task's hold on a warm container, and its files in there. Dropped without a word, the container is not used again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::definition::{ATTEMPT_DIR, PoolMode, WORKSPACE};
use laneway_core::id::RunId;
use laneway_core::pool::{ContainerTaken, Event, Ticket};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Told;
use super::calm::Beginning;
use super::files::Files;
use super::inside::{self, Whose};
use super::keeper::{Common, Keeper, Message};
use super::mounts::Loan;
use super::vessel::Vessel;
use crate::container::end::KILLED;
use crate::container::{Docker, mounts};

/// How long the engine may take for a signal whose task has ended.
const SIGNALED: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Lease {
    pub(super) vessel: Arc<Vessel>,
    ticket: Ticket,
    keeper: Keeper,
    common: Arc<Common>,
    mode: PoolMode,
    /// What is its own of the container's files, once it has some.
    files: Option<Files>,
    loan: Option<Loan>,
    /// Until its program has run for a moment: many are over by then.
    beginning: Mutex<Option<Beginning>>,
    /// Signals that are on their way.
    signals: Mutex<Vec<JoinHandle<()>>>,
    is_over: bool,
}

impl Lease {
    pub(super) fn new(
        vessel: Arc<Vessel>,
        ticket: Ticket,
        keeper: Keeper,
        common: Arc<Common>,
        mode: PoolMode,
        beginning: Beginning,
    ) -> Self {
        let beginning = Mutex::new(Some(beginning));
        Self {
            vessel,
            ticket,
            keeper,
            common,
            mode,
            files: None,
            loan: None,
            beginning,
            signals: Mutex::default(),
            is_over: false,
        }
    }

    /// Tells whose it is, for whoever looks at the task later.
    pub(super) fn tell_taken(&self, run: RunId, step: &str, attempt: u32) {
        let view = self.keeper.view();
        self.common.tell(Told::Taken(ContainerTaken {
            pool: view.name,
            container: self.vessel.name.clone(),
            run,
            step: step.to_owned(),
            attempt,
            image: Some(view.image),
            port: self.vessel.held_port(),
        }));
    }

    /// It runs: what is done behind other tasks need not give way to it any more.
    pub(super) fn begun(&self) {
        drop(self.beginning.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    pub(super) fn docker(&self) -> &Docker {
        &self.common.yard.docker
    }

    /// Shows the run's directory to the container. Gives where it is in there.
    pub(super) fn lend(&mut self, dir: &Path) -> Result<String, String> {
        // Refused where the engine's own socket would be within reach.
        let yard = &self.common.yard;
        mounts::resolve(dir, &[], &yard.host_mounts, yard.docker.socket())
            .map_err(|error| error.to_string())?;
        let Some(place) = self.vessel.place() else { return Ok(WORKSPACE.to_owned()) };
        let name = self.ticket.0.to_string();
        let (below, inside) = match self.mode {
            PoolMode::Multi => (None, WORKSPACE.to_owned()),
            // Others are in there at the same time, with other directories.
            PoolMode::Single => (Some(name.as_str()), format!("{WORKSPACE}/{name}")),
        };
        let loan = place.lend(dir, below);
        let cannot = |error| format!("{} cannot be mounted for its container: {error}", dir.display());
        self.loan = Some(loan.map_err(cannot)?);
        Ok(inside)
    }

    /// A directory for this task, which nobody in there sees yet. Gives where it is here, and where it will be in there.
    pub(super) fn make_files(&mut self) -> std::io::Result<(PathBuf, String)> {
        let files = self.files.insert(Files::make(&self.vessel.shelf)?);
        Ok((files.aside().to_owned(), format!("{ATTEMPT_DIR}/{}", files.name())))
    }

    /// Lets the task see them.
    pub(super) fn show_files(&mut self) -> std::io::Result<()> {
        self.files.as_mut().map_or(Ok(()), Files::show)
    }

    /// Takes them out of reach, to be read.
    pub(super) fn hide_files(&mut self) -> std::io::Result<()> {
        self.files.as_mut().map_or(Ok(()), Files::hide)
    }

    /// Its container was dead before anything ran in it. So may be the others that rest.
    pub(super) fn was_dead(&self) {
        self.keeper.tell(Message::LookAfter);
    }

    /// What marks the processes of this task.
    pub(super) fn mark(&self) -> String {
        format!("{}-{}", self.vessel.name, self.ticket.0)
    }

    /// Whether the container is this task's alone.
    pub(super) fn is_alone(&self) -> bool {
        self.mode == PoolMode::Multi
    }

    /// Whether a task that ended with this code has wanted too much memory. Where others are in there as well, it may have been one of
    /// theirs that was killed, and only who was killed is told so.
    pub(super) async fn is_out_of_memory(&self, code: i64) -> bool {
        match self.mode {
            PoolMode::Multi => {}
            PoolMode::Single if code == KILLED => {}
            PoolMode::Single => return false,
        }
        self.vessel.is_out_of_memory(self.docker(), self.mode).await
    }

    /// Sends a signal to everything that the task has started in there. Nobody waits for it: what comes of it is seen by the
    /// task's end, which may come while the engine is still busy with this.
    pub(super) fn signal(&self, signal: &'static str) {
        let (docker, vessel, mode, mark) =
            (self.docker().clone(), Arc::clone(&self.vessel), self.mode, self.mark());
        let sent = tokio::spawn(async move {
            let sent = match (mode, vessel.pristine()) {
                (_, None) => return,
                (PoolMode::Multi, Some(pristine)) => vessel.signal(&docker, pristine, signal).await,
                (PoolMode::Single, Some(_)) => {
                    inside::signal(&docker, vessel.id(), Whose::Marked(&mark), signal).await
                }
            };
            if let Err(error) = sent {
                tracing::debug!(container = vessel.name, %error, signal, "a task was not signaled");
            }
        });
        self.signals.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
    }

    /// The run is being stopped: what it lets go of is not worth cleaning.
    pub(super) fn abort(&self, run: RunId) {
        let (done, _) = oneshot::channel();
        self.keeper.tell(Message::Abort(run, done));
    }

    /// The task has ended. Its directory is taken back at once; the rest is the pool's business and nobody waits for it.
    /// What is not clean, because something of the task may run on, goes.
    pub(super) fn release(mut self, is_clean: bool) {
        let signals = std::mem::take(self.signals.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !is_clean || signals.iter().all(JoinHandle::is_finished) {
            return self.let_go(is_clean);
        }
        // A signal that is still on its way would hit the next task in there. The run's directory does not wait for it.
        let is_back = self.take_back();
        tokio::spawn(async move {
            let sent = async {
                for signal in signals {
                    drop(signal.await);
                }
            };
            let is_sent = timeout(SIGNALED, sent).await.is_ok();
            self.let_go(is_back && is_sent);
        });
    }

    fn let_go(mut self, is_clean: bool) {
        if self.mode == PoolMode::Single && is_clean {
            // The others stay, so what this one left is sought out now and not when all have gone.
            self.is_over = true;
            self.take_back();
            let (docker, vessel, mark) = (self.docker().clone(), Arc::clone(&self.vessel), self.mark());
            let (keeper, ticket) = (self.keeper.clone(), self.ticket);
            tokio::spawn(async move {
                let killed = inside::signal(&docker, vessel.id(), Whose::Marked(&mark), "KILL").await;
                keeper.tell(Message::Event(Event::Released { ticket, is_clean: killed.unwrap_or(false) }));
            });
        } else {
            self.end(is_clean);
        }
    }

    fn end(&mut self, is_clean: bool) {
        if !std::mem::replace(&mut self.is_over, true) {
            let is_clean = self.take_back() && is_clean;
            self.keeper.tell(Message::Event(Event::Released { ticket: self.ticket, is_clean }));
        }
    }

    /// Takes back the run's directory, and removes the task's own files. True: nothing of them is left.
    fn take_back(&mut self) -> bool {
        self.loan = None;
        self.files.take().is_none_or(|mut files| files.remove())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end(false);
    }
}
