//! The guardian: the parent of a warden, for where the warden's own death or freeze would leave steps behind.
//!
//! ```text
//! node ─── guardian ─── warden ─── steps         guardian and warden are subreapers
//!   └ record.rs: end of the lease ─▶ guardian
//! ```
//! It exists where a database judges the node by a lease, and where there are no cgroups. Elsewhere the
//! next node on the host ends what is left, and no guardian is started.
//!
//! - The warden ends in disorder: what it leaves becomes a child of the guardian, which kills it.
//! - The lease is over and something still runs: warden and node are frozen, and the guardian kills in their place.
//!
//! It never acts while the node renews and the warden lives. It ends with its warden. It keeps the lock of the
//! warden until nothing is left, and nothing else that others wait for.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use laneway_torture::{Bug, has};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::containers::Containers;
use super::record::{Record, RecordReader};
use super::{GUARDED, Options, boot_time, cgroup, leftovers};

/// Time that the warden has to kill at the end of the lease before the guardian does. It is measured from the
/// moment at which the guardian itself runs: after a sleep of the machine all of them wake up late.
const WARDEN_DELAY: Duration = Duration::from_millis(250);

/// Pause between two reads of the record before the node has named its lease.
const FIRST_RECORD_INTERVAL: Duration = Duration::from_secs(1);

/// Pause between two looks while the lease is over: nothing may be started under it any more.
const OVERDUE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a warden that runs takes to reap what was killed, at most. One that does not is frozen.
const REAP_PATIENCE: Duration = Duration::from_secs(1);

/// How long the end of what was killed is waited for. Longer can only the kernel hold it back.
const KILL_PATIENCE: Duration = Duration::from_secs(30);

const LOOK_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Guardian {
    warden: Child,
    warden_pid: Pid,
    /// Readable when the warden has ended.
    pidfd: OwnedFd,
    /// The node, as long as it lives.
    node: Option<Pid>,
    lease: Option<Lease>,
    /// Where the cgroups of the warden are, if it has some.
    cgroups: Option<PathBuf>,
    /// Containers that were removed at the end of the lease. A frozen node goes on naming them.
    removed: HashSet<OsString>,
}

/// A lease that a database judges.
#[derive(Debug)]
struct Lease {
    record: RecordReader,
    /// Goes on while the machine sleeps, as the lease does.
    timer: OwnedFd,
}

impl Guardian {
    /// Starts the warden proper below this process, with the socket and the lock that this process was given.
    /// `record` is the memory that the node writes, if it has a lease.
    #[expect(clippy::disallowed_methods, reason = "a warden is started by its guardian")]
    pub(super) fn start(options: &Options, record: Option<File>) -> io::Result<Self> {
        let lease = record.map(Lease::new).transpose()?;
        let cgroups = if options.use_cgroups { cgroup::dir_of(&options.mark).ok() } else { None };
        let mut words = std::env::args_os();
        // By its file, as long as that is there: the other name of it looks strange in a list of processes.
        let program = std::env::current_exe().ok().filter(|file| file.exists());
        let mut command = Command::new(program.unwrap_or_else(|| "/proc/self/exe".into()));
        if let Some(name) = words.next() {
            command.arg0(name);
        }
        let warden = command.args(words).arg(GUARDED).stderr(Stdio::null()).process_group(0).spawn()?;
        let warden_pid = Pid::from_child(&warden);
        let pidfd = pidfd_open(warden_pid, PidfdFlags::empty())?;
        // Held here, the socket would look alive to the node when the warden is dead. The lock stays: others must
        // not take what the warden has left for gone.
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        // `killall laneway` ends the node and the warden, and leaves the guardian to end the steps.
        let _ = rustix::thread::set_name(c"lw-guardian");
        let node = rustix::process::getppid();
        Ok(Self { warden, warden_pid, pidfd, node, lease, cgroups, removed: HashSet::new() })
    }

    /// Waits for the end of the warden, and leaves nothing behind.
    pub(super) fn watch(mut self) {
        while !self.has_warden_ended() {
            if let Some(record) = self.overdue() {
                self.end_steps(&record);
                self.wait(OVERDUE_INTERVAL);
            }
        }
        self.end_what_is_left();
    }

    /// Waits until the lease is over, and returns what the node said last. `None` if the warden has ended, or if
    /// the node has renewed meanwhile.
    fn overdue(&self) -> Option<Record> {
        let Some(lease) = &self.lease else {
            self.wait_for(&[], None);
            return None;
        };
        let Some(until) = lease.until() else {
            self.wait(FIRST_RECORD_INTERVAL);
            return None;
        };
        if boot_time() < until {
            // A timer that cannot be set is one second away.
            let is_set = lease.set_timer(until).is_ok();
            self.wait_for(&[&lease.timer], (!is_set).then_some(FIRST_RECORD_INTERVAL));
            return None;
        }
        self.wait(WARDEN_DELAY);
        let record = lease.record.read()?;
        let is_over = record.until.is_some_and(|until| boot_time() >= until);
        (is_over && !self.has_warden_ended()).then_some(record)
    }

    /// Kills what runs below the warden although the lease is over, and the warden itself if it does not run.
    fn end_steps(&mut self, record: &Record) {
        let mut containers = Containers::default();
        for (host, name) in &record.containers {
            if self.removed.insert(name.clone()) {
                containers.hold(host, name);
            }
        }
        let warden = self.warden_pid;
        let alive = || leftovers::alive_below(warden);
        if alive().is_empty() && containers.is_empty() {
            return;
        }
        containers.remove_all();
        let until = Instant::now() + KILL_PATIENCE;
        while !alive().is_empty() && Instant::now() < until {
            leftovers::signal(alive, &[Signal::KILL]);
            std::thread::sleep(LOOK_INTERVAL);
        }
        let until = Instant::now() + REAP_PATIENCE;
        while !leftovers::children(warden).is_empty() {
            if Instant::now() >= until {
                let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        containers.wait(Instant::now() + KILL_PATIENCE);
    }

    /// The warden has ended. What it has not killed are children of this process now.
    fn end_what_is_left(&mut self) {
        let own = rustix::process::getpid();
        let is_in_order = self.warden.wait().is_ok_and(|status| status.success());
        if has(Bug::Leftovers) || (is_in_order && leftovers::children(own).is_empty()) {
            return;
        }
        let until = Instant::now() + KILL_PATIENCE;
        let mut containers = Containers::default();
        // A node that lives keeps its containers, and tells the next warden of them.
        let record = self.lease.as_ref().and_then(|lease| lease.record.read());
        if rustix::process::getppid() != self.node {
            for (host, name) in record.unwrap_or_default().containers {
                containers.hold(&host, &name);
            }
        }
        containers.remove_all();
        loop {
            leftovers::signal(|| leftovers::descendants(own), &[Signal::KILL]);
            while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
            if leftovers::children(own).is_empty() || Instant::now() >= until {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        if let Some(dir) = &self.cgroups {
            cgroup::clear_away(dir);
        }
        containers.wait(until);
    }

    fn has_warden_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1..))
    }

    /// Waits for the warden's end, for `span` at most.
    fn wait(&self, span: Duration) {
        self.wait_for(&[], Some(span));
    }

    fn wait_for(&self, timers: &[&OwnedFd], span: Option<Duration>) {
        let mut fds = vec![PollFd::new(&self.pidfd, PollFlags::IN)];
        fds.extend(timers.iter().map(|timer| PollFd::from_borrowed_fd(timer.as_fd(), PollFlags::IN)));
        let span = span.and_then(|span| Timespec::try_from(span).ok());
        // An interruption is a reason to look again.
        let _ = poll(&mut fds, span.as_ref());
    }
}

impl Lease {
    fn new(record: File) -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
        Ok(Self { record: RecordReader::new(record), timer })
    }

    fn until(&self) -> Option<Duration> {
        self.record.read()?.until
    }

    /// Makes the timer readable from this moment on. Setting it anew makes it unreadable until then.
    fn set_timer(&self, until: Duration) -> io::Result<()> {
        let it_value = Timespec::try_from(until).map_err(io::Error::other)?;
        let spec = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
        Ok(())
    }
}
