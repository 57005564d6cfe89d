//! Who gets which container: every event of a pool in, what is to be done about it out. Pure; the engine's
//! `container/pool/` acts, and tells what came of it as the next event.
//!
//! What is on its way (starting, waking, being cleaned) serves whoever is first in line when it arrives. So nobody is
//! overtaken, and a container that failed takes nobody's place with it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::line::{Line, Ticket, Waiter};
use super::port_use::PortUse;
use super::state::{ContainerState, EndReason};
use crate::id::RunId;
use crate::words::words;

words! {
    /// How tasks share a pool's containers.
    pub enum Mode {
        /// Each task has one for itself.
        Multi = "multi",
        /// All tasks run in one.
        Single = "single",
    }
}

/// Names a container within its pool. No number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerNumber(pub u64);

/// What can happen to a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Acquire(Waiter),
    /// Whoever waited does so no longer; it may have been given one in the same moment, which it will never use.
    Canceled(Ticket),
    /// `acquire_timeout` is over.
    TimedOut(Ticket),
    /// A port for the first of `port_tickets`. If none is left, nothing starts and the caller
    /// returns the port.
    PortGranted,
    /// A port for a container that is warmed ahead, for a run if it was warmed for one.
    SparePort(Option<RunId>),
    /// A start has no port: another program took it, and no other port was free. Its task goes on
    /// waiting.
    PortLost(ContainerNumber),
    /// A task needs the port of this container. Only what is still dormant ends.
    Evict(ContainerNumber),
    /// A task has ended. Not clean: something of it may still run in there.
    Released {
        ticket: Ticket,
        is_clean: bool,
    },
    /// Healthy.
    Started(ContainerNumber),
    /// With what is told to whoever waited for it.
    StartFailed(ContainerNumber, Fault),
    Woke(ContainerNumber),
    WakeFailed(ContainerNumber),
    /// Nothing of the task before is left.
    Cleaned(ContainerNumber),
    /// Something of it is, or nobody could find out.
    CleanFailed(ContainerNumber),
    Paused(ContainerNumber),
    PauseFailed(ContainerNumber),
    /// It has rested for as long as it may. An older rest is not meant.
    Expired {
        container: ContainerNumber,
        rest: u64,
    },
    /// It is not there any more, and that was not us.
    Died(ContainerNumber),
    /// What was to be terminated is removed, with its port.
    Gone(ContainerNumber),
    /// So many are wanted in all.
    Warm(usize),
    /// The same, for tasks of a run that are to come.
    WarmFor(RunId, usize),
    /// What there is goes: now if nobody uses it, else after its task.
    Drain,
    /// Whatever a run has used, or was started for it, and nobody else uses or waits for now goes.
    Abort(RunId),
    /// Everything goes, and nothing is given out any more.
    Close,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is there now: a fact for whoever looks on.
    Moved {
        container: ContainerNumber,
        to: ContainerState,
        why: Option<EndReason>,
    },
    Start(ContainerNumber),
    /// Unpause it, and see whether it is healthy.
    Wake(ContainerNumber),
    Hand {
        ticket: Ticket,
        container: ContainerNumber,
        found: Found,
    },
    Clean(ContainerNumber),
    Pause(ContainerNumber),
    /// Nobody has it: see to it that `Expired` comes, with this number of its rest.
    Rest {
        container: ContainerNumber,
        rest: u64,
    },
    /// Remove it, with its port. To be done as often as it is said, to the same end.
    Terminate(ContainerNumber),
    Refuse {
        ticket: Ticket,
        fault: Fault,
    },
    /// Refuse a task that waited too long for a port. The caller knows which containers hold them.
    RefuseForPort {
        ticket: Ticket,
    },
    /// Answer with `SparePort` if a port is free and no task waits for one, else do nothing.
    AskSparePort(Option<RunId>),
}

words! {
    /// What a task found when it came.
    pub enum Found {
        /// Ready, or shared with others.
        Idle = "idle",
        /// Clean after another task, for which this one waited.
        Released = "released",
        Dormant = "dormant",
        /// None: it waited for a start.
        Nothing = "nothing",
    }
}

/// Why somebody gets none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    StartFailed(String),
    /// Not its start, but the engine that was to do it.
    #[error("{0}")]
    EngineLost(String),
    #[error(
        "waited for a container longer than `acquire_timeout`; all {max} of its pool are in use: give the pool a larger \
         `max`, or its tasks more time"
    )]
    TimedOut { max: usize },
    #[error(
        "no host port became free for the pool `{pool}` within `acquire_timeout` ({}): {ports}; {}",
        waited(*timeout), free_ports_hint(ports)
    )]
    NoPort { pool: String, timeout: Option<Duration>, ports: Box<PortUse> },
    #[error("the pool is closed: this node stops")]
    Closed,
}

fn waited(timeout: Option<Duration>) -> String {
    timeout.map_or_else(|| "none".to_owned(), |timeout| format!("{timeout:?}"))
}

fn free_ports_hint(ports: &PortUse) -> String {
    let widen = "widen the setting `ports`, or raise `acquire_timeout` of the pool";
    match ports.drain_command() {
        Some(command) => format!("{widen}, or remove idle containers with `{command}`"),
        None => widen.to_owned(),
    }
}

/// How many containers are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub starting: usize,
    pub idle: usize,
    pub running: usize,
    pub dormant: usize,
    /// Who waits.
    pub waiting: usize,
}

#[derive(Debug)]
pub struct Pool {
    mode: Mode,
    max: usize,
    /// Each container needs a port of the host, and starts only when it has one.
    needs_ports: bool,
    /// Until they are gone: what is being removed has its place still.
    containers: BTreeMap<ContainerNumber, Container>,
    line: Line,
    last_number: u64,
    last_rest: u64,
    /// What these let go of goes. Whoever comes again is forgiven; sixteen bytes for each of the others.
    aborted: BTreeSet<RunId>,
    is_closed: bool,
}

#[derive(Debug)]
struct Container {
    phase: Phase,
    /// Who used it last, or for whom it was started.
    run: Option<RunId>,
    /// It ends as soon as nobody holds it.
    doom: Option<EndReason>,
}

/// More than a state: what is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Starting,
    Idle { rest: u64 },
    Held(BTreeMap<Ticket, RunId>),
    Cleaning,
    Pausing { from: ContainerState },
    Dormant { rest: u64 },
    Waking,
    Ending,
}

impl Phase {
    fn state(&self) -> ContainerState {
        match self {
            Self::Starting => ContainerState::Starting,
            Self::Idle { .. } => ContainerState::Idle,
            Self::Held(_) | Self::Cleaning => ContainerState::Running,
            Self::Pausing { from } => *from,
            Self::Dormant { .. } | Self::Waking => ContainerState::Dormant,
            Self::Ending => ContainerState::Terminated,
        }
    }

    /// It will be somebody's without another start or wake.
    fn is_coming(&self) -> bool {
        match self {
            Self::Starting | Self::Cleaning | Self::Pausing { .. } | Self::Waking => true,
            Self::Idle { .. } | Self::Held(_) | Self::Dormant { .. } | Self::Ending => false,
        }
    }
}

impl Pool {
    /// `max` is at least one. A pool that is shared by all has one container, whatever `max` says.
    pub fn new(mode: Mode, max: usize) -> Self {
        let max = match mode {
            Mode::Multi => max.max(1),
            Mode::Single => 1,
        };
        Self {
            mode,
            max,
            needs_ports: false,
            containers: BTreeMap::new(),
            line: Line::default(),
            last_number: 0,
            last_rest: 0,
            aborted: BTreeSet::new(),
            is_closed: false,
        }
    }

    /// A pool whose containers each need a port of the host.
    pub fn needing_ports(self) -> Self {
        Self { needs_ports: true, ..self }
    }

    pub fn needs_ports(&self) -> bool {
        self.needs_ports
    }

    pub fn max(&self) -> usize {
        self.max
    }

    /// Tickets for each of which a container would start if it had a port, first in line first.
    /// Tasks that wait for a container of the pool itself, or for its `max`, are not among them.
    pub fn port_tickets(&self) -> Vec<Ticket> {
        if !self.needs_ports {
            return Vec::new();
        }
        let room = self.max.saturating_sub(self.containers.len());
        let places = (self.coming()..self.wanted()).take(room);
        places.filter_map(|place| self.line.at(place)).map(|waiter| waiter.ticket).collect()
    }

    /// Nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.line.len() == 0
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts { waiting: self.line.len(), ..Counts::default() };
        for container in self.containers.values() {
            match container.phase.state() {
                ContainerState::Starting => counts.starting += 1,
                ContainerState::Idle => counts.idle += 1,
                ContainerState::Running => counts.running += 1,
                ContainerState::Dormant => counts.dormant += 1,
                ContainerState::Terminated => {}
            }
        }
        counts
    }

    /// The state of each container that is not gone.
    pub fn states(&self) -> impl Iterator<Item = (ContainerNumber, ContainerState)> + '_ {
        self.containers.iter().map(|(number, container)| (*number, container.phase.state()))
    }

    /// Whether a container sleeps, and nothing is done about it yet.
    pub fn is_dormant(&self, number: ContainerNumber) -> bool {
        self.is_in(number, |phase| matches!(phase, Phase::Dormant { .. }))
    }

    /// Whether somebody waits who has nothing to hope for but a container that is being cleaned.
    pub fn awaits_cleaning(&self) -> bool {
        let comes_anyway = |container: &&Container| {
            container.doom.is_none() && container.phase.is_coming() && container.phase != Phase::Cleaning
        };
        self.line.len() > self.containers.values().filter(comes_anyway).count()
    }

    /// Whether something that a run has used, or that was started for it, is still there and nobody's.
    pub fn has_left(&self, run: RunId) -> bool {
        let is_left = |container: &Container| match &container.phase {
            Phase::Held(_) => false,
            Phase::Starting
            | Phase::Idle { .. }
            | Phase::Cleaning
            | Phase::Pausing { .. }
            | Phase::Dormant { .. }
            | Phase::Waking
            | Phase::Ending => container.run == Some(run),
        };
        self.containers.values().any(is_left)
    }

    /// What follows from what happened. An event that comes too late, of a container that went another way meanwhile,
    /// changes nothing.
    pub fn on(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Acquire(waiter) if self.is_closed => {
                out.push(Action::Refuse { ticket: waiter.ticket, fault: Fault::Closed });
            }
            Event::Acquire(waiter) => {
                self.aborted.remove(&waiter.run);
                self.line.join(waiter);
                self.serve(Found::Idle, &mut out);
            }
            Event::Canceled(ticket) => {
                if !self.line.leave(ticket) {
                    // Given to it already, and nothing of it has run in there.
                    self.release(ticket, true, &mut out);
                }
            }
            Event::TimedOut(ticket) => {
                let needs_port = self.port_tickets().contains(&ticket);
                if self.line.leave(ticket) {
                    out.push(if needs_port {
                        Action::RefuseForPort { ticket }
                    } else {
                        Action::Refuse { ticket, fault: Fault::TimedOut { max: self.max } }
                    });
                }
            }
            Event::PortGranted => {
                if !self.port_tickets().is_empty() {
                    let first = self.line.at(self.coming());
                    self.start(first.map(|waiter| waiter.run), &mut out);
                }
            }
            Event::SparePort(run) => {
                if !self.is_closed {
                    self.start(run, &mut out);
                }
            }
            Event::PortLost(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Starting)) {
                    self.end(number, EndReason::StartFailed, &mut out);
                    self.serve(Found::Idle, &mut out);
                }
            }
            Event::Evict(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Dormant { .. })) {
                    self.end(number, EndReason::Evicted, &mut out);
                }
            }
            Event::Released { ticket, is_clean } => self.release(ticket, is_clean, &mut out),
            Event::Started(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Starting)) {
                    self.arrived(number, Found::Nothing, &mut out);
                }
            }
            Event::StartFailed(number, fault) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Starting)) {
                    self.end(number, EndReason::StartFailed, &mut out);
                    self.refuse_one_too_many(fault, &mut out);
                }
            }
            Event::Woke(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Waking)) {
                    self.arrived(number, Found::Dormant, &mut out);
                }
            }
            Event::WakeFailed(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Waking)) {
                    self.end(number, EndReason::WakeFailed, &mut out);
                    self.serve(Found::Idle, &mut out);
                }
            }
            Event::Cleaned(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Cleaning)) {
                    self.arrived(number, Found::Released, &mut out);
                }
            }
            Event::CleanFailed(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Cleaning)) {
                    self.end(number, EndReason::Dirty, &mut out);
                    self.serve(Found::Idle, &mut out);
                }
            }
            Event::Paused(number) => self.paused(number, &mut out),
            Event::PauseFailed(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Pausing { .. })) {
                    self.end(number, EndReason::Dirty, &mut out);
                    self.serve(Found::Idle, &mut out);
                }
            }
            Event::Expired { container, rest } => {
                let is_that_rest = |phase: &Phase| match phase {
                    Phase::Idle { rest: of } | Phase::Dormant { rest: of } => *of == rest,
                    Phase::Starting
                    | Phase::Held(_)
                    | Phase::Cleaning
                    | Phase::Pausing { .. }
                    | Phase::Waking
                    | Phase::Ending => false,
                };
                if self.is_in(container, is_that_rest) {
                    self.end(container, EndReason::Expired, &mut out);
                }
            }
            Event::Died(number) => self.doom(number, EndReason::Died, &mut out),
            Event::Gone(number) => {
                if self.is_in(number, |phase| matches!(phase, Phase::Ending)) {
                    self.containers.remove(&number);
                    self.serve(Found::Idle, &mut out);
                }
            }
            Event::Warm(wanted) => self.warm(wanted, None, &mut out),
            Event::WarmFor(run, wanted) => self.warm(wanted, Some(run), &mut out),
            Event::Drain => {
                self.numbers().into_iter().for_each(|number| self.doom(number, EndReason::Drained, &mut out));
                self.serve(Found::Idle, &mut out);
            }
            Event::Abort(run) => {
                self.aborted.insert(run);
                let of_run = |number: &ContainerNumber| self.containers[number].run == Some(run);
                let its: Vec<_> = self.numbers().into_iter().filter(of_run).collect();
                for number in its {
                    let is_starting = self.is_in(number, |phase| matches!(phase, Phase::Starting));
                    if is_starting && self.coming() <= self.line.of_others(run) {
                        // Somebody else waits for it.
                        self.containers.get_mut(&number).expect("it was listed just above").run = None;
                    } else {
                        self.doom(number, EndReason::Aborted, &mut out);
                    }
                }
                self.serve(Found::Idle, &mut out);
            }
            Event::Close => self.close(&mut out),
        }
        out
    }

    fn numbers(&self) -> Vec<ContainerNumber> {
        self.containers.keys().copied().collect()
    }

    fn is_in(&self, number: ContainerNumber, phase: impl FnOnce(&Phase) -> bool) -> bool {
        self.containers.get(&number).is_some_and(|container| phase(&container.phase))
    }

    /// It is clean, healthy and nobody's.
    fn arrived(&mut self, number: ContainerNumber, found: Found, out: &mut Vec<Action>) {
        let doom = self.containers[&number].doom;
        if let Some(why) = doom {
            self.end(number, why, out);
        } else if self.line.len() > 0 || found == Found::Nothing {
            let rest = self.new_rest();
            self.enter(number, Phase::Idle { rest }, out);
        } else {
            let from = if found == Found::Dormant {
                // Nobody wants it any more, and it is awake.
                let rest = self.new_rest();
                self.enter(number, Phase::Idle { rest }, out);
                ContainerState::Idle
            } else {
                ContainerState::Running
            };
            self.enter(number, Phase::Pausing { from }, out);
            out.push(Action::Pause(number));
        }
        self.serve(found, out);
        if let Some(Container { phase: Phase::Idle { rest }, .. }) = self.containers.get(&number) {
            out.push(Action::Rest { container: number, rest: *rest });
        }
    }

    fn paused(&mut self, number: ContainerNumber, out: &mut Vec<Action>) {
        if !self.is_in(number, |phase| matches!(phase, Phase::Pausing { .. })) {
            return;
        }
        if let Some(why) = self.containers[&number].doom {
            self.end(number, why, out);
        } else {
            let rest = self.new_rest();
            self.enter(number, Phase::Dormant { rest }, out);
            out.push(Action::Rest { container: number, rest });
        }
        self.serve(Found::Idle, out);
    }

    fn release(&mut self, ticket: Ticket, is_clean: bool, out: &mut Vec<Action>) {
        let holding = self.containers.iter_mut().find_map(|(number, container)| match &mut container.phase {
            Phase::Held(by) => by.remove(&ticket).map(|run| (*number, run, by.is_empty())),
            Phase::Starting
            | Phase::Idle { .. }
            | Phase::Cleaning
            | Phase::Pausing { .. }
            | Phase::Dormant { .. }
            | Phase::Waking
            | Phase::Ending => None,
        });
        // Released twice, or closed meanwhile.
        let Some((number, run, is_last)) = holding else { return };
        let container = self.containers.get_mut(&number).expect("it was found just above");
        container.run = Some(run);
        if !is_clean {
            container.doom.get_or_insert(EndReason::Dirty);
        }
        if self.aborted.contains(&run) {
            container.doom.get_or_insert(EndReason::Aborted);
        }
        if is_last {
            match container.doom {
                Some(why) => self.end(number, why, out),
                None => {
                    self.enter(number, Phase::Cleaning, out);
                    out.push(Action::Clean(number));
                }
            }
        }
        self.serve(Found::Idle, out);
    }

    /// Gives out what is there, then sees to it that there will be enough. `found` is what somebody finds who is served
    /// now, if that was not there before.
    fn serve(&mut self, found: Found, out: &mut Vec<Action>) {
        while self.line.len() > 0 {
            let Some(number) = self.free() else { break };
            let waiter = self.line.first().expect("somebody waits");
            let container = self.containers.get_mut(&number).expect("it is free");
            container.run = Some(waiter.run);
            match &mut container.phase {
                Phase::Held(by) => drop(by.insert(waiter.ticket, waiter.run)),
                Phase::Starting
                | Phase::Idle { .. }
                | Phase::Cleaning
                | Phase::Pausing { .. }
                | Phase::Dormant { .. }
                | Phase::Waking
                | Phase::Ending => {
                    let by = BTreeMap::from([(waiter.ticket, waiter.run)]);
                    self.enter(number, Phase::Held(by), out);
                }
            }
            out.push(Action::Hand { ticket: waiter.ticket, container: number, found });
        }
        let wanted = self.wanted();
        // What sleeps is there sooner than what starts or is cleaned first, and so it is woken whatever else is on its way.
        for _ in self.waking()..wanted {
            let Some(number) = self.freshest() else { break };
            self.enter(number, Phase::Waking, out);
            out.push(Action::Wake(number));
        }
        if self.needs_ports {
            // They start one by one, as ports come for `port_tickets`.
            return;
        }
        for place in self.coming()..wanted {
            if !self.start(self.line.at(place).map(|waiter| waiter.run), out) {
                break;
            }
        }
    }

    /// How many containers the line could use at once.
    fn wanted(&self) -> usize {
        match self.mode {
            Mode::Multi => self.line.len(),
            Mode::Single => self.line.len().min(1),
        }
    }

    /// What somebody can have at once.
    fn free(&self) -> Option<ContainerNumber> {
        let is_free = |container: &Container| match (&container.phase, self.mode) {
            (Phase::Idle { .. }, Mode::Multi | Mode::Single) => true,
            (Phase::Held(_), Mode::Single) => container.doom.is_none(),
            (Phase::Held(_), Mode::Multi)
            | (
                Phase::Starting
                | Phase::Cleaning
                | Phase::Pausing { .. }
                | Phase::Dormant { .. }
                | Phase::Waking
                | Phase::Ending,
                Mode::Multi | Mode::Single,
            ) => false,
        };
        self.containers.iter().find(|(_, container)| is_free(container)).map(|(number, _)| *number)
    }

    fn waking(&self) -> usize {
        let is_waking = |container: &&Container| container.phase == Phase::Waking && container.doom.is_none();
        self.containers.values().filter(is_waking).count()
    }

    fn coming(&self) -> usize {
        let is_coming = |container: &&Container| container.phase.is_coming() && container.doom.is_none();
        self.containers.values().filter(is_coming).count()
    }

    /// The one that went to sleep last is the warmest, and the others get the chance to expire.
    fn freshest(&self) -> Option<ContainerNumber> {
        let rest = |container: &Container| match container.phase {
            Phase::Dormant { rest } => Some(rest),
            Phase::Starting
            | Phase::Idle { .. }
            | Phase::Held(_)
            | Phase::Cleaning
            | Phase::Pausing { .. }
            | Phase::Waking
            | Phase::Ending => None,
        };
        let dormant =
            self.containers.iter().filter_map(|(number, container)| Some((rest(container)?, *number)));
        dormant.max().map(|(_, number)| number)
    }

    /// Starts one more, if there is a place for it. What is being removed still has its own.
    fn start(&mut self, run: Option<RunId>, out: &mut Vec<Action>) -> bool {
        if self.containers.len() >= self.max {
            return false;
        }
        self.last_number += 1;
        let number = ContainerNumber(self.last_number);
        self.containers.insert(number, Container { phase: Phase::Starting, run, doom: None });
        out.push(Action::Moved { container: number, to: ContainerState::Starting, why: None });
        out.push(Action::Start(number));
        true
    }

    fn warm(&mut self, wanted: usize, run: Option<RunId>, out: &mut Vec<Action>) {
        if self.is_closed {
            return;
        }
        let stays = |container: &&Container| container.doom.is_none() && container.phase != Phase::Ending;
        let lacking = wanted.saturating_sub(self.containers.values().filter(stays).count());
        if self.needs_ports {
            let count = lacking.min(self.max.saturating_sub(self.containers.len()));
            out.extend((0..count).map(|_| Action::AskSparePort(run)));
            return;
        }
        for _ in 0..lacking {
            if !self.start(run, out) {
                break;
            }
        }
    }

    /// A start that failed takes one of those with it who have nothing else to hope for; the next one tries anew.
    /// Else a pool whose image is broken would start for ever, and its tasks wait.
    fn refuse_one_too_many(&mut self, fault: Fault, out: &mut Vec<Action>) {
        if self.line.len() > self.coming()
            && let Some(waiter) = self.line.first()
        {
            out.push(Action::Refuse { ticket: waiter.ticket, fault });
        }
        self.serve(Found::Idle, out);
    }

    /// It ends: now if nobody has it, else as soon as that is so.
    fn doom(&mut self, number: ContainerNumber, why: EndReason, out: &mut Vec<Action>) {
        let container = self.containers.get_mut(&number).filter(|container| container.phase != Phase::Ending);
        let Some(container) = container else { return };
        match container.phase {
            Phase::Idle { .. } | Phase::Dormant { .. } => self.end(number, why, out),
            Phase::Starting
            | Phase::Held(_)
            | Phase::Cleaning
            | Phase::Pausing { .. }
            | Phase::Waking
            | Phase::Ending => {
                container.doom.get_or_insert(why);
            }
        }
    }

    fn end(&mut self, number: ContainerNumber, why: EndReason, out: &mut Vec<Action>) {
        let container = self.containers.get_mut(&number).expect("only what is there ends");
        container.doom = Some(why);
        self.enter(number, Phase::Ending, out);
        out.push(Action::Terminate(number));
    }

    fn close(&mut self, out: &mut Vec<Action>) {
        self.is_closed = true;
        let waiting: Vec<Waiter> = self.line.everybody().collect();
        let refuse = |waiter: Waiter| Action::Refuse { ticket: waiter.ticket, fault: Fault::Closed };
        out.extend(waiting.into_iter().map(refuse));
        for number in self.numbers() {
            if self.containers[&number].phase != Phase::Ending {
                self.end(number, EndReason::Closed, out);
            }
        }
    }

    fn new_rest(&mut self) -> u64 {
        self.last_rest += 1;
        self.last_rest
    }

    /// The only way from one phase to another, and past the table.
    fn enter(&mut self, number: ContainerNumber, phase: Phase, out: &mut Vec<Action>) {
        let container = self.containers.get_mut(&number).expect("only what is there moves");
        let (from, to) = (container.phase.state(), phase.state());
        container.phase = phase;
        if from != to {
            let to = from.next(to).expect("phases follow the table of states");
            let why = container.doom.filter(|_| to == ContainerState::Terminated);
            out.push(Action::Moved { container: number, to, why });
        }
    }
}

#[cfg(test)]
mod tests;
