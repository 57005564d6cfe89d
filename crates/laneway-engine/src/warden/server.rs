//! The warden's own side: one thread, one loop over the node's requests and its children's exits.
//!
//! ```text
//! spawn ─▶ running ──exit──▶ ending ──nobody is left──▶ gone
//!             │ term, kill     │ kill what is left: at once, or after `term` when `kill` is said
//!             │ the same by itself, where a frozen node leaves a timeout or a grace to pass
//!             └────────────────┴── the socket ends: kill everything, remove the cgroups, exit
//! ```
//! Every child is reaped as soon as it is seen. A process group is therefore signaled only while its leader is
//! known to be unreaped; everybody else is signaled through cgroups or pidfds.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use laneway_store::monotonic_time;
use laneway_torture::{Bug, Point, has, pass};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open};
use tokio::signal::unix::SignalKind;

use super::cgroup::Cgroups;
use super::containers::Containers;
use super::guardian::Guardian;
use super::hearing::Hearing;
use super::protocol::{Answer, Exit, Frames, Limits, Request, Spawn};
use super::{GUARDED, LEASED, MARK, NO_CGROUPS, boot_time, leftovers, stuck};

/// After so long without anything to do, the warden moves ahead to where the next task will be started.
const SETTLE: Duration = Duration::from_millis(20);

/// How often orphans that died are reaped while tasks run and nothing else happens. The death of a child interrupts
/// the wait, unless it comes in the moment before: then a zombie is in nobody's way for so long.
const TIDY: Duration = Duration::from_secs(60);

/// Between looks whether what was killed is gone: quick at first, since it usually is.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const SLOWEST_LOOK: Duration = Duration::from_millis(16);

/// Time that the node has for a timeout or a KILL before the warden acts in its place. Short, because it
/// adds to the step's time, and longer than a busy node takes: acting twice would be harmless.
const NODE_DELAY: Duration = Duration::from_millis(500);

/// A killed process can only be held back by the kernel. Nobody waits for that for ever.
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// How a warden is started.
#[derive(Debug)]
pub struct Options {
    /// Names this warden in the markers of its tasks and among cgroups: letters, digits and dashes.
    pub(super) mark: String,
    pub(super) use_cgroups: bool,
    is_leased: bool,
    is_guarded: bool,
}

impl Options {
    /// Reads the arguments that a node starts its warden with: a mark, and what follows it. `None` if there is no
    /// mark, or an argument that no node gives.
    pub fn read(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let mark = args.next()?;
        let mut options = Self { mark, use_cgroups: true, is_leased: false, is_guarded: false };
        for arg in args {
            match arg.as_str() {
                NO_CGROUPS => options.use_cgroups = false,
                LEASED => options.is_leased = true,
                GUARDED => options.is_guarded = true,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Why this process cannot be a warden.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("a warden is started by laneway itself: its standard input must be a socket to a node")]
    NoNode,
    #[error("the warden cannot work: {0}")]
    System(#[from] io::Error),
}

/// Serves the node at the other end of standard input until that is gone, and leaves nothing behind.
pub fn serve(options: Options) -> Result<(), Refused> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::net::sockopt::socket_type(&socket).map_err(|_| Refused::NoNode)?;
    let record = match options.is_leased && !options.is_guarded {
        true => Some(File::from(io::stderr().as_fd().try_clone_to_owned()?)),
        false => None,
    };
    outlive_signals()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(io::Error::from)?;
    if record.is_some() {
        return guard(socket, &options, record);
    }
    let cgroups = match options.use_cgroups {
        true => Cgroups::new(&options.mark).map_err(|error| error.to_string()),
        false => Err("not wanted".to_owned()),
    };
    if cgroups.is_err() && !options.is_guarded {
        return guard(socket, &options, None);
    }
    let ready = cgroups.as_ref().map(|cgroups| cgroups.dir().into()).map_err(Clone::clone);
    stuck::leave_note(&options.mark, cgroups.as_ref().ok().map(Cgroups::dir));
    pass(Point::WardenReady);
    let mut server = Server {
        socket,
        mark: options.mark,
        cgroups: cgroups.ok(),
        buffer: vec![0; 64 * 1024],
        frames: Frames::default(),
        pipes: VecDeque::new(),
        out: Answer::Ready(ready).encode(),
        tasks: BTreeMap::new(),
        children: leftovers::OwnChildren::new(),
        look: FIRST_LOOK,
        lease: None,
        hearing: None,
        containers: Containers::default(),
    };
    // However the conversation ends, the node is lost to us.
    while server.turn().is_ok() {}
    pass(Point::WardenAlone);
    if !has(Bug::Leftovers) {
        server.end_everything();
    }
    Ok(())
}

/// Becomes the guardian of a warden that this process starts.
fn guard(socket: OwnedFd, options: &Options, record: Option<File>) -> Result<(), Refused> {
    drop(socket);
    Guardian::start(options, record)?.watch();
    Ok(())
}

/// Who stops a service signals all of its processes. The warden's work ends when the node's has, so it only
/// ever listens to the node. A signal that is handled, other than one that is ignored, is as usual again in
/// the steps; and a handler for children undoes a parent who started us with their statuses thrown away.
fn outlive_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _guard = runtime.enter();
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    for kind in kinds.into_iter().chain([SignalKind::child()]) {
        // The handler stays when its stream goes.
        drop(tokio::signal::unix::signal(kind)?);
    }
    Ok(())
}

struct Server {
    socket: OwnedFd,
    mark: String,
    cgroups: Option<Cgroups>,
    /// For what comes next from the node.
    buffer: Vec<u8>,
    frames: Frames,
    /// Write ends for the spawns that follow, two each.
    pipes: VecDeque<OwnedFd>,
    /// Answers that are not sent yet.
    out: Vec<u8>,
    tasks: BTreeMap<u64, Task>,
    children: leftovers::OwnChildren,
    /// The pause before the next look at what was killed.
    look: Duration,
    /// When the node may be taken for dead by others, on the clock of `boot_time`.
    lease: Option<Duration>,
    /// How long the node may be silent, where its lease is a file.
    hearing: Option<Hearing>,
    containers: Containers,
}

/// Something that was started and is not gone.
struct Task {
    /// None once it is reaped.
    leader: Option<Leader>,
    leader_pid: Pid,
    leaf: Option<usize>,
    /// Its end was asked for: what outlives the leader has its grace until `kill`.
    has_grace: bool,
    /// When the warden sends TERM, if the node does not: the step's timeout is over then.
    term_at: Option<Duration>,
    /// When the warden sends KILL, if the node does not: `grace` after TERM.
    kill_at: Option<Duration>,
    grace: Duration,
}

impl Task {
    /// When the warden has to act in the node's place.
    fn next_limit(&self) -> Option<Duration> {
        // Of a task whose leader has exited only the grace of what is left is bounded.
        let term_at = self.term_at.filter(|_| self.leader.is_some());
        term_at.into_iter().chain(self.kill_at).min()
    }
}

struct Leader {
    /// Becomes readable when it exits.
    pidfd: OwnedFd,
}

/// The node is gone.
struct Lost;

impl Server {
    fn turn(&mut self) -> Result<(), Lost> {
        self.flush()?;
        let is_news = self.wait();
        if is_news {
            self.look = FIRST_LOOK;
        } else {
            self.look = (self.look * 2).min(SLOWEST_LOOK);
        }
        let received = self.receive();
        self.keep_to_the_lease();
        self.reap();
        self.keep_to_the_limits();
        self.see_to_ending();
        // What follows is the same as after the node's death.
        if self.hearing.as_mut().is_some_and(Hearing::is_over) {
            return Err(Lost);
        }
        received
    }

    /// Waits for the node, an exit or the time to look again. Says whether somebody has something for us.
    fn wait(&mut self) -> bool {
        let is_ready = self.cgroups.as_ref().is_none_or(Cgroups::is_ready);
        let timeout = if self.tasks.values().any(|task| task.leader.is_none()) {
            Some(self.look)
        } else if !is_ready {
            Some(SETTLE)
        } else {
            (!self.tasks.is_empty()).then_some(TIDY)
        };
        let left = self.lease.map(|lease| lease.saturating_sub(boot_time()));
        let has_any = !self.tasks.is_empty() || !self.containers.is_empty();
        let left = left.filter(|left| !left.is_zero() && has_any);
        let tick = self.hearing.as_ref().map(Hearing::tick);
        let limit = self.tasks.values().filter_map(Task::next_limit).min();
        let limit = limit.map(|limit| limit.saturating_sub(monotonic_time()));
        let timeout = [timeout, left, tick, limit].into_iter().flatten().min();
        let wanted = if self.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut fds = vec![PollFd::new(&self.socket, wanted)];
        let leaders = self.tasks.values().filter_map(|task| task.leader.as_ref());
        fds.extend(leaders.map(|leader| PollFd::new(&leader.pidfd, PollFlags::IN)));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let is_news = !matches!(poll(&mut fds, timeout.as_ref()), Ok(0));
        if !is_news
            && !is_ready
            && let Some(cgroups) = &mut self.cgroups
        {
            // If it cannot, the next spawn says why.
            let _ = cgroups.enter_free();
        }
        is_news
    }

    fn receive(&mut self) -> Result<(), Lost> {
        loop {
            // A message carries the pipes of one spawn at most; the room is for what is never sent.
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let count =
                match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut self.buffer)], &mut control, flags) {
                    Ok(message) => message.bytes,
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(Errno::INTR) => continue,
                    Err(_) => return Err(Lost),
                };
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(pipes) = message {
                    self.pipes.extend(pipes);
                }
            }
            if count == 0 {
                return Err(Lost);
            }
            self.frames.add(&self.buffer[..count]);
            while let Some(body) = self.frames.next().map_err(|_| Lost)? {
                let request = Request::decode(body).ok_or(Lost)?;
                pass(Point::WardenAsked);
                match request {
                    Request::Spawn(spawn) => self.spawn(&spawn),
                    Request::Term(id) => self.term(id),
                    Request::Kill(id) => self.kill(id),
                    Request::Lease(until) => self.lease = Some(Duration::from_millis(until)),
                    Request::Heard { span, lease } => {
                        self.hearing = Some(Hearing::new(Duration::from_millis(span), lease.into()));
                    }
                    Request::Hold { host, name } => self.containers.hold(&host, &name),
                    Request::Release(name) => self.containers.release(&name),
                }
            }
        }
    }

    /// A node that is frozen, or too busy to notice, has not killed what runs; others go on with it from here on.
    fn keep_to_the_lease(&mut self) {
        if self.is_past_the_lease() {
            for id in self.tasks.keys().copied().collect::<Vec<_>>() {
                self.kill(id);
            }
            self.containers.remove_all();
        }
    }

    /// A frozen node ends no step whose timeout or grace is over, so the warden does. Called after `reap`:
    /// a step whose exit is known did not time out.
    fn keep_to_the_limits(&mut self) {
        let now = monotonic_time();
        let is_due = |limit: Option<Duration>| limit.is_some_and(|limit| now >= limit);
        let due = self.tasks.iter().filter(|(_, task)| is_due(task.next_limit()));
        for id in due.map(|(id, _)| *id).collect::<Vec<_>>() {
            if self.tasks.get(&id).is_some_and(|task| is_due(task.kill_at)) {
                self.kill(id);
            } else {
                self.say(&Answer::TimedOut(id));
                self.term(id);
                if let Some(task) = self.tasks.get_mut(&id) {
                    task.kill_at = now.checked_add(task.grace);
                }
            }
        }
    }

    fn is_past_the_lease(&self) -> bool {
        self.lease.is_some_and(|lease| boot_time() >= lease)
    }

    fn flush(&mut self) -> Result<(), Lost> {
        while !self.out.is_empty() {
            match send(&self.socket, &self.out, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => {
                    drop(self.out.drain(..count));
                    pass(Point::WardenTold);
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Lost),
            }
        }
        Ok(())
    }

    fn say(&mut self, answer: &Answer) {
        self.out.extend(answer.encode());
    }

    fn spawn(&mut self, spawn: &Spawn) {
        match self.try_spawn(spawn) {
            Ok(task) => drop(self.tasks.insert(spawn.id, task)),
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
                self.say(&Answer::Failed(spawn.id, errno.raw_os_error()));
            }
        }
    }

    /// No `pre_exec` and an absolute program, so std uses `posix_spawn`, which copies no page tables.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts steps")]
    fn try_spawn(&mut self, spawn: &Spawn) -> io::Result<Task> {
        let (Some(stdout), Some(stderr)) = (self.pipes.pop_front(), self.pipes.pop_front()) else {
            return Err(Errno::BADF.into());
        };
        if self.is_past_the_lease() {
            return Err(Errno::TIMEDOUT.into());
        }
        let stdin = match spawn.stdin.is_empty() {
            true => Stdio::null(),
            false => Stdio::from(File::open(&spawn.stdin)?),
        };
        let leaf = self.cgroups.as_mut().map(Cgroups::enter_free).transpose()?;
        let mut command = Command::new(&spawn.program);
        if !spawn.inherits {
            command.env_clear();
        }
        command
            .arg0(&spawn.arg0)
            .args(&spawn.args)
            .envs(spawn.env.iter().map(|(name, value)| (name, value)))
            .env(MARK, format!("{}.{}", self.mark, spawn.id))
            .current_dir(&spawn.workdir)
            .process_group(0)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        let pid = Pid::from_child(&command.spawn()?);
        pass(Point::WardenSpawned);
        if let (Some(cgroups), Some(leaf)) = (&mut self.cgroups, leaf) {
            cgroups.take(leaf);
        }
        let Limits { deadline, grace } = spawn.limits;
        let term_at = deadline.and_then(|deadline| deadline.checked_add(NODE_DELAY));
        let mut task =
            Task { leader: None, leader_pid: pid, leaf, has_grace: false, term_at, kill_at: None, grace };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => {
                task.leader = Some(Leader { pidfd });
                Ok(task)
            }
            Err(error) => {
                // Without it the exit would not be noticed. The task is unreaped, so this is nobody else.
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
                self.tasks.insert(spawn.id, task);
                Err(error.into())
            }
        }
    }

    fn term(&mut self, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        // The node says it once. A second TERM comes from a node that thawed after the warden had acted.
        if task.kill_at.is_some() {
            return;
        }
        task.has_grace = true;
        task.term_at = None;
        // Also after a cancel: a node that freezes during the grace does not send KILL.
        task.kill_at = task.grace.checked_add(NODE_DELAY).and_then(|span| monotonic_time().checked_add(span));
        pass(Point::WardenTerm);
        // A stopped process does not see TERM before it is continued.
        let signals = [Signal::TERM, Signal::CONT];
        let group = task.leader.is_some().then_some(task.leader_pid);
        if let Some(group) = group {
            for signal in signals {
                let _ = rustix::process::kill_process_group(group, signal);
            }
        }
        let group = group.map(|group| group.as_raw_nonzero().get());
        // Who left the group hears of it as well, once.
        let others = self.members(id).into_iter();
        let others: Vec<Pid> =
            others.filter(|pid| leftovers::stat(*pid).map(|stat| stat.group) != group).collect();
        if !others.is_empty() {
            let members = std::cell::RefCell::new(self);
            leftovers::signal(
                || {
                    let mut now = members.borrow_mut().members(id);
                    now.retain(|pid| others.contains(pid));
                    now
                },
                &signals,
            );
        }
    }

    fn kill(&mut self, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.has_grace = false;
        (task.term_at, task.kill_at) = (None, None);
        pass(Point::WardenKill);
        if task.leader.is_some() {
            let _ = rustix::process::kill_process_group(task.leader_pid, Signal::KILL);
        }
        let leaf = task.leaf;
        let is_killed = match (&mut self.cgroups, leaf) {
            (Some(cgroups), Some(leaf)) => cgroups.kill(leaf).is_ok(),
            (Some(_), None) | (None, _) => false,
        };
        // Also with cgroups: a process of the superuser can leave one.
        if !is_killed || !self.orphans_of(id).is_empty() {
            let server = std::cell::RefCell::new(self);
            leftovers::signal(|| server.borrow_mut().members(id), &[Signal::KILL]);
        }
    }

    /// Everybody of a task that can be found.
    fn members(&mut self, id: u64) -> Vec<Pid> {
        let Some(task) = self.tasks.get(&id) else { return Vec::new() };
        let mut found = self.orphans_of(id);
        for orphan in found.clone() {
            found.extend(leftovers::descendants(orphan));
        }
        if task.leader.is_some() {
            found.push(task.leader_pid);
            found.extend(leftovers::descendants(task.leader_pid));
        }
        if let (Some(cgroups), Some(leaf)) = (&mut self.cgroups, task.leaf) {
            found.extend(cgroups.members(leaf).unwrap_or_default());
        }
        found.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        found.dedup();
        found
    }

    /// Our children that nobody started as a leader: their parents died, and they belong to this task, as
    /// far as anybody can tell. Those that a cgroup holds are its matter.
    fn orphans_of(&self, id: u64) -> Vec<Pid> {
        let mut children = self.children.list();
        children
            .retain(|pid| !self.tasks.values().any(|task| task.leader.is_some() && task.leader_pid == *pid));
        children.retain(|pid| {
            let Some(stat) = leftovers::stat(*pid) else { return false };
            if self.cgroups.as_ref().is_some_and(|cgroups| cgroups.holds(*pid)) {
                return false;
            }
            match leftovers::marked_task(*pid, &self.mark).or_else(|| self.task_of(stat)) {
                Some(owner) if self.tasks.contains_key(&owner) => owner == id,
                // Of a task that is gone: a leftover, whoever looks.
                Some(_) => true,
                None => !self.was_any_before(stat),
            }
        });
        children
    }

    fn task_of(&self, stat: leftovers::Stat) -> Option<u64> {
        let is_leader = |pid: Pid| [stat.group, stat.session].contains(&pid.as_raw_nonzero().get());
        self.tasks.iter().find(|(_, task)| is_leader(task.leader_pid)).map(|(id, _)| *id)
    }

    /// Whether a task still runs that may have started this process.
    fn was_any_before(&self, stat: leftovers::Stat) -> bool {
        let running = self.tasks.values().filter(|task| task.leader.is_some());
        running
            .filter_map(|task| leftovers::stat(task.leader_pid))
            .any(|leader| leader.started <= stat.started)
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let leader =
                self.tasks.iter_mut().find(|(_, task)| task.leader.is_some() && task.leader_pid == pid);
            if let (Some((&id, task)), Some(exit)) = (leader, exit_of(status)) {
                task.leader = None;
                pass(Point::WardenReaped);
                self.say(&Answer::Exited(id, exit));
            }
        }
    }

    /// For every task whose leader has exited: says that it is gone, or kills what is left of it.
    fn see_to_ending(&mut self) {
        let ending = self.tasks.iter().filter(|(_, task)| task.leader.is_none());
        let ending: Vec<(u64, Option<usize>, bool)> =
            ending.map(|(id, task)| (*id, task.leaf, task.has_grace)).collect();
        for (id, leaf, has_grace) in ending {
            let is_populated = match (&mut self.cgroups, leaf) {
                (Some(cgroups), Some(leaf)) => cgroups.is_populated(leaf),
                (Some(_), None) | (None, _) => false,
            };
            if is_populated || !self.orphans_of(id).is_empty() {
                if !has_grace {
                    self.kill(id);
                }
                continue;
            }
            self.tasks.remove(&id);
            if let (Some(cgroups), Some(leaf)) = (&mut self.cgroups, leaf) {
                cgroups.free(leaf);
            }
            pass(Point::WardenGone);
            self.say(&Answer::Gone(id));
        }
    }

    fn end_everything(&mut self) {
        let until = Instant::now() + LAST_PATIENCE;
        let own = rustix::process::getpid();
        self.look = FIRST_LOOK;
        self.containers.remove_all();
        loop {
            for id in self.tasks.keys().copied().collect::<Vec<_>>() {
                self.kill(id);
            }
            self.reap();
            self.see_to_ending();
            // Whoever descends from us and is nobody's.
            if self.tasks.is_empty() {
                leftovers::signal(|| leftovers::descendants(own), &[Signal::KILL]);
                self.reap();
            }
            if (self.tasks.is_empty() && leftovers::children(own).is_empty()) || Instant::now() >= until {
                break;
            }
            std::thread::sleep(self.look);
            self.look = (self.look * 2).min(SLOWEST_LOOK);
        }
        self.containers.wait(until);
        pass(Point::WardenCleared);
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.close();
        }
    }
}

/// `None` for a child that was stopped or continued, which is not waited for.
fn exit_of(status: WaitStatus) -> Option<Exit> {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal))
}
