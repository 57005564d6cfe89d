//! The loop of one pool: events in, `laneway_core::pool::Pool` decides, and what it says is done here, each in a task of its
//! own that reports back. Owns the containers and the line; nobody else touches either.
//!
//! ```text
//!   acquire, release, warm, drain, abort, close ──▶ loop ──▶ Pool::on ──▶ actions
//!                                                    ▲                      │ start, wake, clean, pause, remove
//!                                                    └──── what came of it ◀┘ (one task each)
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use laneway_core::id::RunId;
use laneway_core::pool::{
    Action, ContainerNumber, ContainerState, Event, Fault, Found, Mode, Pool, PoolNumber, PortDemand,
    PortHolder, PortWaiter, Ticket, Waiter,
};
use tokio::sync::{mpsc, oneshot, watch};

use super::calm::Calm;
use super::ports::{Port, PortReport};
use super::vessel::{Recipe, StartFailure, Vessel, Yard};
use super::{Outlet, PoolView, Tally, Told, Transition};

/// Pauses between two tries to remove a container: an engine that is down may be back in a moment.
const REMOVE_AGAIN: Duration = Duration::from_millis(200);
const REMOVE_RARELY: Duration = Duration::from_secs(5);

/// What the loop is told. Unbounded, because each sender waits for its answer before it sends more.
pub(super) enum Message {
    Event(Event),
    Acquire {
        waiter: Waiter,
        task: PortWaiter,
        timeout: Option<Duration>,
        /// After this use, instead of the pool's own.
        dormancy: Option<Duration>,
        reply: oneshot::Sender<Result<Arc<Vessel>, Fault>>,
    },
    /// A port of the host for the first task that needs one. Dropped, it goes to the next pool.
    Port(Port),
    /// Whatever rests is looked at: it may have died.
    LookAfter,
    /// Answered when nothing of the run is left.
    Abort(RunId, oneshot::Sender<()>),
    /// Answered when nothing at all is left.
    Close(oneshot::Sender<()>),
}

/// A way to speak to the loop.
#[derive(Debug, Clone)]
pub(super) struct Keeper {
    sender: mpsc::UnboundedSender<Message>,
    view: watch::Receiver<PoolView>,
}

/// What all loops of a node share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) yard: Yard,
    /// Numbers containers over all pools: they are names as well.
    pub(super) containers: AtomicU64,
    /// Numbers the uses of containers over all pools, so that their order is known.
    pub(super) uses: AtomicU64,
    pub(super) outlet: Outlet,
    pub(super) tally: Tally,
    /// What tasks that begin go before.
    pub(super) calm: Calm,
}

impl Common {
    pub(super) fn tell(&self, what: Told) {
        self.outlet.tell(what);
    }
}

impl Keeper {
    pub(super) fn start(name: String, recipe: Recipe, common: Arc<Common>) -> Self {
        let (sender, messages) = mpsc::unbounded_channel();
        let max = usize::try_from(recipe.pool.max.get()).unwrap_or(usize::MAX);
        let mode = match recipe.pool.mode {
            laneway_core::definition::PoolMode::Multi => Mode::Multi,
            laneway_core::definition::PoolMode::Single => Mode::Single,
        };
        let (mut pool, mut port_number) = (Pool::new(mode, max), None);
        if recipe.pool.needs_ports() {
            pool = pool.needing_ports();
            port_number = Some(common.yard.ports.join(sender.clone()));
        }
        let view = PoolView {
            name,
            image: recipe.pool.container.image.clone(),
            mode,
            max: pool.max(),
            counts: pool.counts(),
            containers: Vec::new(),
        };
        let (viewed, view) = watch::channel(view);
        let work = Loop {
            pool,
            recipe: Arc::new(recipe),
            common,
            vessels: HashMap::new(),
            waiting: HashMap::new(),
            dormancies: HashMap::new(),
            begun: HashMap::new(),
            ports: PortState { number: port_number, ..PortState::default() },
            aborts: Vec::new(),
            closes: Vec::new(),
            sender: sender.clone(),
            viewed,
            is_awaited: watch::Sender::new(false),
        };
        tokio::spawn(work.run(messages));
        Self { sender, view }
    }

    /// A loop that is over needs no message: it has closed.
    pub(super) fn tell(&self, message: Message) {
        let _ = self.sender.send(message);
    }

    pub(super) fn view(&self) -> PoolView {
        self.view.borrow().clone()
    }
}

struct Waiting {
    reply: oneshot::Sender<Result<Arc<Vessel>, Fault>>,
    task: PortWaiter,
    dormancy: Option<Duration>,
    since: Instant,
}

/// What a loop knows of the ports of its pool. Empty for a pool that needs none.
#[derive(Default)]
struct PortState {
    /// Of the pool in the line for ports.
    number: Option<PoolNumber>,
    /// Ports that have come and that no container has yet.
    granted: Vec<Port>,
    /// Grants since the last report.
    received: usize,
    /// The tasks that have containers.
    users: HashMap<Ticket, (ContainerNumber, PortWaiter)>,
    /// The number of the last use of each container.
    last_used: HashMap<ContainerNumber, u64>,
}

struct Loop {
    pool: Pool,
    recipe: Arc<Recipe>,
    common: Arc<Common>,
    vessels: HashMap<ContainerNumber, Arc<Vessel>>,
    waiting: HashMap<Ticket, Waiting>,
    /// How long each rests, if its last user said so.
    dormancies: HashMap<ContainerNumber, Duration>,
    /// When starts began, to know what a warm one saves.
    begun: HashMap<ContainerNumber, Instant>,
    ports: PortState,
    aborts: Vec<(RunId, oneshot::Sender<()>)>,
    closes: Vec<oneshot::Sender<()>>,
    sender: mpsc::UnboundedSender<Message>,
    viewed: watch::Sender<PoolView>,
    /// Somebody waits for what is yet to be cleaned.
    is_awaited: watch::Sender<bool>,
}

impl Loop {
    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        while let Some(message) = messages.recv().await {
            match message {
                Message::Event(event) => self.on(event),
                Message::Acquire { waiter, task, timeout, dormancy, reply } => {
                    let since = Instant::now();
                    self.waiting.insert(waiter.ticket, Waiting { reply, task, dormancy, since });
                    if let Some(timeout) = timeout {
                        self.later(timeout, Event::TimedOut(waiter.ticket));
                    }
                    self.on(Event::Acquire(waiter));
                }
                Message::Port(port) => {
                    self.ports.received += 1;
                    self.ports.granted.push(port);
                    self.on(Event::PortGranted);
                }
                Message::LookAfter => self.look_after(),
                Message::Abort(run, done) => {
                    self.aborts.push((run, done));
                    self.on(Event::Abort(run));
                }
                Message::Close(done) => {
                    self.closes.push(done);
                    self.on(Event::Close);
                }
            }
            // What no start took: its task has left, or found a container.
            self.ports.granted.clear();
            self.answer();
            self.report_ports();
            if !self.closes.is_empty() && self.pool.is_empty() {
                break;
            }
        }
        if let Some(number) = self.ports.number {
            self.common.yard.ports.leave(number);
        }
        // Whoever waits for a close sees its end when this is dropped.
    }

    fn on(&mut self, event: Event) {
        // An acquirer that is gone lets go at once, which is an event of its own.
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            if let Event::Started(number) = &event
                && let Some(begun) = self.begun.remove(number)
            {
                self.common.tally.started(begun.elapsed());
            }
            if let Event::Canceled(ticket) = &event {
                self.waiting.remove(ticket);
            }
            if let Event::Canceled(ticket) | Event::Released { ticket, .. } = &event
                && let Some((container, _)) = self.ports.users.remove(ticket)
            {
                let number = self.common.uses.fetch_add(1, Ordering::Relaxed) + 1;
                self.ports.last_used.insert(container, number);
            }
            for action in self.pool.on(event) {
                events.extend(self.act(action));
            }
        }
    }

    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Moved { container, to, why } => {
                if to == ContainerState::Starting {
                    let number = self.common.containers.fetch_add(1, Ordering::Relaxed) + 1;
                    self.vessels.insert(container, Arc::new(Vessel::new(&self.common.yard, number)));
                }
                if let Some(vessel) = self.vessels.get(&container) {
                    let (pool, image) = {
                        let view = self.viewed.borrow();
                        (view.name.clone(), view.image.clone())
                    };
                    let (container, port) = (vessel.name.clone(), vessel.held_port());
                    self.common.tell(Told::Moved(Transition { pool, container, image, port, to, why }));
                }
            }
            Action::Start(number) => {
                self.begun.insert(number, Instant::now());
                if let (Some(vessel), Some(port)) = (self.vessels.get(&number), self.ports.granted.pop()) {
                    vessel.take_port(port);
                }
                let recipe = Arc::clone(&self.recipe);
                self.effect(number, async move |vessel, common| match vessel.start(&common.yard, &recipe).await {
                    Ok(()) => Event::Started(number),
                    Err(StartFailure::Fault(fault)) => Event::StartFailed(number, fault),
                    Err(StartFailure::PortTaken) => Event::PortLost(number),
                });
            }
            Action::Wake(number) => {
                let recipe = Arc::clone(&self.recipe);
                self.effect(number, async move |vessel, common| match vessel.wake(&common.yard, &recipe).await {
                    Ok(()) => Event::Woke(number),
                    Err(why) => {
                        tracing::debug!(container = vessel.name, why, "a container did not wake; another one is used");
                        Event::WakeFailed(number)
                    }
                });
            }
            Action::Clean(number) => {
                let mut is_awaited = self.is_awaited.subscribe();
                self.effect(number, async move |vessel, common| {
                common.calm.give_way(&mut is_awaited).await;
                if vessel.clean(&common.yard).await { Event::Cleaned(number) } else { Event::CleanFailed(number) }
            });
            }
            Action::Pause(number) => self.effect(number, async move |vessel, common| {
                match common.yard.docker.pause(vessel.id()).await {
                    Ok(()) => Event::Paused(number),
                    Err(_) => Event::PauseFailed(number),
                }
            }),
            Action::Rest { container, rest } => {
                let dormancy = self.dormancies.get(&container).copied().unwrap_or(self.recipe.pool.dormancy);
                self.later(dormancy, Event::Expired { container, rest });
            }
            Action::Terminate(number) => self.effect(number, async move |vessel, common| {
                let mut pause = REMOVE_AGAIN;
                // As often as it takes: whoever waits for the end of all of it has a limit of its own, and what a dead
                // session leaves is removed by others.
                while let Err(error) = vessel.remove(&common.yard).await {
                    tracing::debug!(container = vessel.name, %error, "a container could not be removed; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(REMOVE_RARELY);
                }
                Event::Gone(number)
            }),
            Action::Hand { ticket, container, found } => return self.hand(ticket, container, found),
            Action::Refuse { ticket, fault } => self.refuse(ticket, fault),
            Action::RefuseForPort { ticket } => {
                let (pool, timeout) = (self.viewed.borrow().name.clone(), self.recipe.pool.acquire_timeout);
                let ports = Box::new(self.common.yard.ports.in_use());
                self.refuse(ticket, Fault::NoPort { pool, timeout, ports });
            }
            Action::AskSparePort(run) => match self.common.yard.ports.spare() {
                Some(port) => {
                    self.ports.granted.push(port);
                    return Some(Event::SparePort(run));
                }
                None => {
                    let pool = self.viewed.borrow().name.clone();
                    tracing::debug!(pool, "a container was not warmed: no host port is to spare");
                }
            },
        }
        None
    }

    fn refuse(&mut self, ticket: Ticket, fault: Fault) {
        if let Some(waiting) = self.waiting.remove(&ticket) {
            let _ = waiting.reply.send(Err(fault));
        }
    }

    fn hand(&mut self, ticket: Ticket, number: ContainerNumber, found: Found) -> Option<Event> {
        let unused = Some(Event::Released { ticket, is_clean: true });
        let Some(waiting) = self.waiting.remove(&ticket) else { return unused };
        let Some(vessel) = self.vessels.get(&number) else { return unused };
        match waiting.dormancy {
            Some(dormancy) => drop(self.dormancies.insert(number, dormancy)),
            None => drop(self.dormancies.remove(&number)),
        }
        if waiting.reply.send(Ok(Arc::clone(vessel))).is_err() {
            return unused;
        }
        if self.ports.number.is_some() {
            self.ports.users.insert(ticket, (number, waiting.task));
        }
        self.common.tally.handed(found, waiting.since.elapsed());
        None
    }

    /// Does something about a container, and tells what came of it.
    fn effect<F>(&self, number: ContainerNumber, act: impl FnOnce(Arc<Vessel>, Arc<Common>) -> F)
    where
        F: Future<Output = Event> + Send + 'static,
    {
        let Some(vessel) = self.vessels.get(&number) else { return };
        let (done, sender) = (act(Arc::clone(vessel), Arc::clone(&self.common)), self.sender.clone());
        tokio::spawn(async move {
            let _ = sender.send(Message::Event(done.await));
        });
    }

    fn look_after(&self) {
        let rests = |state: ContainerState| matches!(state, ContainerState::Idle | ContainerState::Dormant);
        for (number, _) in self.pool.states().filter(|(_, state)| rests(*state)) {
            let Some(vessel) = self.vessels.get(&number).cloned() else { continue };
            let (common, sender) = (Arc::clone(&self.common), self.sender.clone());
            tokio::spawn(async move {
                if vessel.is_dead(&common.yard.docker).await {
                    let _ = sender.send(Message::Event(Event::Died(number)));
                }
            });
        }
    }

    fn later(&self, delay: Duration, event: Event) {
        let sender = self.sender.downgrade();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(sender) = sender.upgrade() {
                let _ = sender.send(Message::Event(event));
            }
        });
    }

    /// Answers whoever waits for something to be gone, and shows how it is now.
    fn answer(&mut self) {
        let left: Vec<ContainerNumber> = self.pool.states().map(|(number, _)| number).collect();
        self.vessels.retain(|number, _| left.contains(number));
        self.dormancies.retain(|number, _| left.contains(number));
        self.ports.last_used.retain(|number, _| left.contains(number));
        let pool = &self.pool;
        for (_, done) in self.aborts.extract_if(.., |(run, _)| !pool.has_left(*run)) {
            let _ = done.send(());
        }
        let is_awaited = self.pool.awaits_cleaning();
        self.is_awaited.send_if_modified(|known| std::mem::replace(known, is_awaited) != is_awaited);
        let named = |(number, state)| Some((self.vessels.get(&number)?.name.clone(), state));
        let (counts, containers) = (self.pool.counts(), self.pool.states().filter_map(named).collect());
        self.viewed.send_modify(|view| {
            view.counts = counts;
            view.containers = containers;
        });
    }
    /// Tells the line for ports what this pool needs, what it could free, and which containers hold
    /// ports.
    fn report_ports(&mut self) {
        let Some(number) = self.ports.number else { return };
        let mut demand = PortDemand { tickets: self.pool.port_tickets(), ..PortDemand::default() };
        let mut holders = Vec::new();
        for (container, state) in self.pool.states() {
            let Some(vessel) = self.vessels.get(&container) else { continue };
            let Some(port) = vessel.held_port() else { continue };
            match state {
                ContainerState::Dormant if self.pool.is_dormant(container) => {
                    let used = self.ports.last_used.get(&container).copied().unwrap_or(0);
                    demand.dormant.push((used, container));
                }
                ContainerState::Terminated => demand.ending += 1,
                ContainerState::Starting
                | ContainerState::Idle
                | ContainerState::Running
                | ContainerState::Dormant => {}
            }
            let mut users = self.ports.users.values().filter(|(of, _)| *of == container);
            holders.push(PortHolder {
                port,
                pool: self.viewed.borrow().name.clone(),
                container: vessel.name.clone(),
                state,
                task: users.next().map(|(_, task)| (task.run, task.step.clone())),
            });
        }
        let task = |ticket: &Ticket| Some((*ticket, self.waiting.get(ticket)?.task.clone()));
        let waiting = demand.tickets.iter().filter_map(task).collect();
        let received = std::mem::take(&mut self.ports.received);
        self.common.yard.ports.report(number, PortReport { demand, received, waiting, holders });
    }
}
