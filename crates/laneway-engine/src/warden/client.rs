//! The node's side: starts the warden, hands it what is to be run, and tells each attempt what became of it.
//!
//! One future per warden owns the reading end. Requests are written by whoever has one; only what does not fit
//! into the socket waits for that future. When the socket ends although nobody closed it, the warden has died:
//! everything that carries its mark is killed, every attempt is told, and the next one gets a new warden.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use laneway_store::private;
use laneway_torture::{Point, pass};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc};

use super::protocol::{Answer, Exit, Frames, Limits, MAX_FRAME, Request, Spawn, millis};
use super::record::{Record, RecordWriter};
use super::{LEASED, NO_CGROUPS, cgroup, leftovers};
use crate::process::Launch;

/// So many wardens in the life of a node: one that keeps dying is a fault to be seen, not to be repaired.
const MAX_STARTS: u32 = 4;

/// How the warden is started.
#[derive(Debug, Clone)]
pub struct WardenCommand {
    /// A program that calls [`super::serve`] with what follows `args`, as [`super::Options::read`] reads it.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Held by the warden for its life: whoever obtains this lock knows that it is gone, and all steps with it.
    pub lock: Option<PathBuf>,
    /// The lease of the node's session, where that is a file: no warden is started for a session that is condemned.
    pub lease: Option<PathBuf>,
    pub use_cgroups: bool,
    /// Whether a database judges the node by a lease (`Store::takes_lease`). Then the warden has a guardian.
    pub is_leased: bool,
}

/// A handle on this node's warden. When the last one is dropped, the warden kills what still runs, and ends.
#[derive(Debug, Clone)]
pub struct Warden {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    command: WardenCommand,
    link: Mutex<(Option<Arc<Link>>, u32)>,
    /// As the living warden was told, for the next one.
    lease: Mutex<Option<LeaseTerm>>,
    /// Containers that are not to outlive this node, by name, with the address of their engine: for the next one as well.
    held: Mutex<BTreeMap<String, String>>,
}

/// Until when the warden lets things run.
#[derive(Debug, Clone)]
enum LeaseTerm {
    /// A moment on the clock of [`super::boot_time`].
    Until(Duration),
    /// As long as the node is heard at least this often; the lease is a file.
    Heard(Duration, PathBuf),
}

/// How the leader of a group ended, if it did.
#[derive(Debug)]
pub(crate) enum Ended {
    Exited(Exit),
    /// It never ran.
    Failed(io::Error),
    /// It is killed, and nobody knows how it ended.
    WardenDied,
}

/// A started program and everything that came of it. Dropped before it is gone, it is killed.
#[derive(Debug)]
pub(crate) struct Group {
    id: u64,
    link: Arc<Link>,
    answers: mpsc::UnboundedReceiver<Answer>,
    is_gone: bool,
    has_timed_out: bool,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

impl Warden {
    /// A handle on a warden that is started when somebody needs it first.
    pub(crate) fn idle(command: WardenCommand) -> Self {
        Self {
            shared: Arc::new(Shared {
                command,
                link: Mutex::default(),
                lease: Mutex::default(),
                held: Mutex::default(),
            }),
        }
    }

    /// Starts the warden; to be called within a tokio runtime. It gets ready while the caller goes on.
    pub fn start(command: WardenCommand) -> io::Result<Self> {
        let warden = Self::idle(command);
        warden.link()?;
        Ok(warden)
    }

    /// Hands the program over. That it could not be started is told by [`Group::ended`].
    pub(crate) fn spawn(&self, launch: &Launch, limits: Limits) -> io::Result<Group> {
        let link = self.link()?;
        let (stdout, their_stdout) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let id = link.next.fetch_add(1, Ordering::Relaxed);
        let inherited = launch.inherited.iter().flatten();
        let request = Request::Spawn(Spawn {
            id,
            program: launch.program.clone().into(),
            arg0: launch.arg0.clone().into(),
            args: launch.args.iter().map(Into::into).collect(),
            inherits: launch.inherited.is_none(),
            env: inherited.chain(&launch.env).cloned().collect(),
            workdir: launch.workdir.clone().into(),
            stdin: launch.stdin.clone().unwrap_or_default().into(),
            limits,
        });
        let frame = request.encode();
        if frame.len() > MAX_FRAME {
            return Err(Errno::TOOBIG.into());
        }
        let (sender, answers) = mpsc::unbounded_channel();
        // Under the same lock under which the death of the warden is told, so that nobody waits in vain.
        lock(&link.tasks).as_mut().ok_or(io::ErrorKind::BrokenPipe)?.insert(id, sender);
        link.send(Outgoing { frame, sent: 0, pipes: vec![their_stdout, their_stderr] });
        pass(Point::SpawnAsked);
        Ok(Group {
            id,
            link,
            answers,
            is_gone: false,
            has_timed_out: false,
            stdout: Some(stdout),
            stderr: Some(stderr),
        })
    }

    /// Until when others take this node for alive, on the clock of [`super::boot_time`]: then what runs is killed, whatever
    /// the node does. Can be said on any thread.
    pub(crate) fn keep_until(&self, until: Duration) {
        self.keep(LeaseTerm::Until(until));
    }

    /// Says that the node runs. If that is not said again within `span`, the warden condemns the session whose lease is this
    /// file, kills what runs, and ends. Can be said on any thread.
    pub(crate) fn hear(&self, span: Duration, lease: &Path) {
        self.keep(LeaseTerm::Heard(span, lease.to_owned()));
    }

    fn keep(&self, term: LeaseTerm) {
        let request = lease_request(&term);
        *lock(&self.shared.lease) = Some(term);
        let link = lock(&self.shared.link).0.clone();
        if let Some(link) = link {
            self.shared.tell_guardian(&link);
            link.send(Outgoing::plain(&request));
        }
    }

    /// From here on this container does not outlive the node: when that dies, or its lease ends, the warden removes it.
    pub(crate) fn hold(&self, host: &str, name: &str) {
        let is_new = lock(&self.shared.held).insert(name.to_owned(), host.to_owned()).is_none();
        // A new warden is told of all of them.
        if is_new && let Ok(link) = self.link() {
            self.shared.tell_guardian(&link);
            link.send(Outgoing::plain(&hold_request(host, name)));
        }
    }

    /// The container is gone.
    pub(crate) fn release(&self, name: &str) {
        lock(&self.shared.held).remove(name);
        let link = lock(&self.shared.link).0.clone();
        if let Some(link) = link {
            self.shared.tell_guardian(&link);
            link.send(Outgoing::plain(&Request::Release(name.into())));
        }
    }

    /// The living warden, or a new one.
    fn link(&self) -> io::Result<Arc<Link>> {
        let mut current = lock(&self.shared.link);
        if let Some(link) = &current.0
            && !link.is_dead.load(Ordering::Acquire)
        {
            return Ok(Arc::clone(link));
        }
        if current.1 == MAX_STARTS {
            return Err(io::Error::other(format!(
                "the warden died {MAX_STARTS} times; something kills it (out of memory?), see the log of the system"
            )));
        }
        current.1 += 1;
        let link = Link::start(&self.shared.command)?;
        self.shared.tell_guardian(&link);
        if let Some(term) = lock(&self.shared.lease).as_ref() {
            link.send(Outgoing::plain(&lease_request(term)));
        }
        for (name, host) in lock(&self.shared.held).iter() {
            link.send(Outgoing::plain(&hold_request(host, name)));
        }
        current.0 = Some(Arc::clone(&link));
        Ok(link)
    }
}

impl Shared {
    /// Writes down what the guardian of this warden has to know, if there is one.
    fn tell_guardian(&self, link: &Link) {
        let Some(record) = &link.record else { return };
        // Read under the lock of the writer, so that the last record is the newest.
        let mut record = lock(record);
        let until = match &*lock(&self.lease) {
            Some(LeaseTerm::Until(until)) => Some(*until),
            Some(LeaseTerm::Heard(..)) | None => None,
        };
        let held = lock(&self.held);
        let containers = held.iter().map(|(name, host)| (host.into(), name.into())).collect();
        if let Err(error) = record.write(&Record { until, containers }) {
            tracing::error!(%error, "the guardian of the warden does not know of the lease");
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let (Some(link), _) = lock(&self.link).clone() {
            link.close();
        }
    }
}

impl Group {
    /// Waits until the leader has exited, or could not be started.
    pub(crate) async fn ended(&mut self) -> Ended {
        loop {
            match self.answers.recv().await {
                Some(Answer::Exited(_, exit)) => return Ended::Exited(exit),
                Some(Answer::Failed(_, errno)) => {
                    self.is_gone = true;
                    return Ended::Failed(io::Error::from_raw_os_error(errno));
                }
                Some(Answer::TimedOut(_)) => self.has_timed_out = true,
                Some(Answer::Ready(_) | Answer::Gone(_)) | None => {
                    self.is_gone = true;
                    return Ended::WardenDied;
                }
            }
        }
    }

    /// Whether the warden ended it for its timeout, because this process did not run.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.has_timed_out
    }

    /// Waits until nothing of it is left.
    pub(crate) async fn gone(&mut self) {
        while !self.is_gone {
            self.is_gone = matches!(self.answers.recv().await, Some(Answer::Gone(_)) | None);
        }
    }

    /// TERM to every process of it. What outlives the leader stays until [`Group::kill`].
    pub(crate) fn term(&self) {
        self.link.send(Outgoing::plain(&Request::Term(self.id)));
    }

    pub(crate) fn kill(&self) {
        self.link.send(Outgoing::plain(&Request::Kill(self.id)));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_gone {
            self.kill();
        }
        if let Some(tasks) = lock(&self.link.tasks).as_mut() {
            tasks.remove(&self.id);
        }
    }
}

fn lease_request(term: &LeaseTerm) -> Request {
    match term {
        LeaseTerm::Until(until) => Request::Lease(millis(*until)),
        LeaseTerm::Heard(span, lease) => Request::Heard { span: millis(*span), lease: lease.into() },
    }
}

fn hold_request(host: &str, name: &str) -> Request {
    Request::Hold { host: host.into(), name: name.into() }
}

/// The life of one warden.
#[derive(Debug)]
struct Link {
    mark: String,
    socket: UnixStream,
    next: AtomicU64,
    /// What did not fit into the socket, in order.
    waiting: Mutex<VecDeque<Outgoing>>,
    has_waiting: Notify,
    /// Who waits for answers; none once the warden is dead.
    tasks: Mutex<Option<HashMap<u64, mpsc::UnboundedSender<Answer>>>>,
    /// None once it is waited for.
    process: Mutex<Option<Child>>,
    cgroups: OnceLock<PathBuf>,
    /// We closed it: its end is no death.
    is_closed: AtomicBool,
    is_dead: AtomicBool,
    lease: Option<PathBuf>,
    /// What its guardian reads, where the lease is a database's.
    record: Option<Mutex<RecordWriter>>,
}

#[derive(Debug)]
struct Outgoing {
    frame: Vec<u8>,
    sent: usize,
    /// Sent with the first byte, and closed then.
    pipes: Vec<OwnedFd>,
}

impl Outgoing {
    fn plain(request: &Request) -> Self {
        Self { frame: request.encode(), sent: 0, pipes: Vec::new() }
    }
}

impl Link {
    /// The warden gets its end of the socket as standard input and the lock as standard output: whatever else
    /// this process has open is closed on exec. A group of its own keeps the terminal's Ctrl-C away.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts wardens")]
    fn start(command: &WardenCommand) -> io::Result<Arc<Self>> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let mark = new_mark();
        let mut process = Command::new(std::path::absolute(&command.program)?);
        process.args(&command.args).arg(&mark);
        hide_store_password(&mut process);
        if !command.use_cgroups {
            process.arg(NO_CGROUPS);
        }
        let record = if command.is_leased { Some(RecordWriter::new()?) } else { None };
        process.stderr(Stdio::null());
        if let Some(record) = &record {
            process.arg(LEASED).stderr(record.reader()?);
        }
        let lease = command.lease.as_deref();
        let lock =
            command.lock.as_deref().map_or_else(|| Ok(Stdio::null()), |path| take_lock(path, lease))?;
        process.stdin(OwnedFd::from(theirs)).stdout(lock);
        let child = process.current_dir("/").process_group(0).spawn().map_err(|error| {
            let program = command.program.display();
            io::Error::new(error.kind(), format!("the warden cannot be started ({program}): {error}"))
        })?;
        let link = Arc::new(Self {
            mark,
            socket,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            has_waiting: Notify::new(),
            tasks: Mutex::new(Some(HashMap::new())),
            process: Mutex::new(Some(child)),
            cgroups: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            is_dead: AtomicBool::new(false),
            lease: command.lease.clone(),
            record: record.map(Mutex::new),
        });
        pass(Point::WardenStarted);
        tokio::spawn(Arc::clone(&link).serve());
        Ok(link)
    }

    async fn serve(self: Arc<Self>) {
        let error = self.converse().await;
        if self.is_closed.load(Ordering::Acquire) {
            return;
        }
        if self.lease.as_deref().is_some_and(is_over) {
            tracing::warn!("the session was condemned while this process did not run; what it ran is killed");
        } else {
            tracing::error!(%error, "the warden died; what it ran is killed");
        }
        let link = Arc::clone(&self);
        // Blocking, for a moment and very rarely.
        let _ = tokio::task::spawn_blocking(move || link.bury()).await;
        // The receivers see the end of their channels.
        drop(lock(&self.tasks).take());
    }

    /// Reads answers and writes what waits, until the socket ends.
    async fn converse(&self) -> io::Error {
        let mut frames = Frames::default();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                ready = self.socket.readable() => {
                    let read = ready.and_then(|()| self.socket.try_read(&mut buffer));
                    match read {
                        Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
                        Ok(count) => frames.add(&buffer[..count]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                        Err(error) => return error,
                    }
                    loop {
                        match frames.next().map(|body| body.map(Answer::decode)) {
                            Ok(Some(Some(answer))) => self.tell(answer),
                            Ok(None) => break,
                            Ok(Some(None)) | Err(_) => return io::ErrorKind::InvalidData.into(),
                        }
                    }
                }
                () = self.has_waiting.notified() => {
                    while !self.flush(&mut lock(&self.waiting)) {
                        if let Err(error) = self.socket.writable().await {
                            return error;
                        }
                    }
                }
            }
        }
    }

    fn tell(&self, answer: Answer) {
        pass(Point::Received);
        let id = match &answer {
            Answer::Ready(Ok(dir)) => {
                tracing::debug!(mark = self.mark, ?dir, "the warden is ready, with cgroups");
                let _ = self.cgroups.set(dir.into());
                return;
            }
            Answer::Ready(Err(why)) => {
                tracing::debug!(mark = self.mark, why, "the warden is ready, without cgroups");
                return;
            }
            Answer::Failed(id, _) | Answer::Exited(id, _) | Answer::Gone(id) | Answer::TimedOut(id) => *id,
        };
        if let Some(tasks) = lock(&self.tasks).as_ref()
            && let Some(task) = tasks.get(&id)
        {
            // Nobody listens any more: the attempt was abandoned in this moment.
            let _ = task.send(answer);
        }
    }

    /// Sends at once if nothing waits. A dead warden is noticed by whoever reads.
    fn send(&self, outgoing: Outgoing) {
        pass(Point::SendBefore);
        let mut waiting = lock(&self.waiting);
        waiting.push_back(outgoing);
        if waiting.len() > 1 || !self.flush(&mut waiting) {
            self.has_waiting.notify_one();
        }
    }

    /// Whether nothing waits any more.
    fn flush(&self, waiting: &mut VecDeque<Outgoing>) -> bool {
        while let Some(outgoing) = waiting.front_mut() {
            match self.socket.try_io(Interest::WRITABLE, || outgoing.send(&self.socket)) {
                Ok(true) => drop(waiting.pop_front()),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => waiting.clear(),
            }
        }
        true
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        if let Some(mut process) = lock(&self.process).take() {
            // A drop must not block, and a zombie is in the way of nobody until this process ends.
            let _ = std::thread::Builder::new().name("warden".to_owned()).spawn(move || process.wait());
        }
    }

    /// After the warden's death: makes sure of it, and kills everything that was its.
    fn bury(&self) {
        const PATIENCE: Duration = Duration::from_secs(1);
        if let Some(mut process) = lock(&self.process).take() {
            // A guardian kills what its dead warden has left, and ends then. A warden that lives, and does not
            // speak the protocol, does the same when its socket ends.
            let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
            let until = Instant::now() + PATIENCE;
            while matches!(process.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(2));
            }
            let _ = process.kill();
            let _ = process.wait();
        }
        if let Some(dir) = self.cgroups.get() {
            cgroup::clear_away(dir);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            leftovers::signal(|| leftovers::marked(&self.mark), &[Signal::KILL]);
            if leftovers::marked(&self.mark).is_empty() || Instant::now() >= until {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.is_dead.store(true, Ordering::Release);
    }
}

impl Outgoing {
    /// Sends once; says whether all of it is sent.
    fn send(&mut self, socket: &UnixStream) -> io::Result<bool> {
        let pipes: Vec<_> = self.pipes.iter().map(|pipe| pipe.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !pipes.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&pipes)) {
            return Err(io::Error::other("there is no room for the pipes"));
        }
        let rest = [IoSlice::new(&self.frame[self.sent..])];
        self.sent += sendmsg(socket, &rest, &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        self.pipes.clear();
        Ok(self.sent == self.frame.len())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What steps inherit, they inherit from the warden, which needs no store: it does not get the password of one.
fn hide_store_password(warden: &mut Command) {
    warden.env_remove("PGPASSWORD");
    if let Ok(store) = std::env::var("LANEWAY_STORE")
        && let Some(bare) = laneway_store::without_password(&store)
    {
        warden.env("LANEWAY_STORE", bare);
    }
}

/// Takes the lock here, so that there is no moment in which the warden lives without it. It belongs to the
/// open file, which the warden inherits and we let go of.
fn take_lock(path: &Path, lease: Option<&Path>) -> io::Result<Stdio> {
    let told = |error: io::Error| {
        io::Error::new(error.kind(), format!("the warden's lock {} cannot be taken: {error}", path.display()))
    };
    let file = private::options().create(true).truncate(false).write(true).open(path).map_err(told)?;
    file.try_lock().map_err(|error| told(error.into()))?;
    // Behind the lock: whoever condemns the session looks for the lock afterwards, so one of both sees the other.
    if lease.is_some_and(is_over) {
        return Err(io::Error::other("the session is over, and nothing may be started under it"));
    }
    // What a former warden has written of itself.
    file.set_len(0).map_err(told)?;
    Ok(file.into())
}

/// Whether a session is condemned or over, by its lease.
fn is_over(lease: &Path) -> bool {
    matches!(lease.try_exists(), Ok(false))
}

/// Unlike any other of this machine: the pid is ours alone now, the time tells later owners of it apart.
fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{:x}-{count}", std::process::id(), crate::log::unix_ms())
}
