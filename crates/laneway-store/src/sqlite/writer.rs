//! The one writer: a thread that owns the write connection and commits verbs in groups.
//!
//! ```text
//!   async callers ──verb──▶ channel ──▶ BEGIN IMMEDIATE
//!        ▲                              ├─ verb          (one failure fails alone: see `Undo`)
//!        │                              ├─ … as long as verbs wait, for at most BATCH
//!        └──────────answer───────────── COMMIT, one fsync for all of them
//! ```
//! Nothing is answered before its commit is on disk. PROTOCOL: "Group commit".

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use laneway_core::time::Millis;
use laneway_torture::{ARMED, Bug, Point, has, pass};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::clock::Clock;
use super::connect;
use super::counts::Counts;
use super::fault::{self, Reach};
use super::quarantine;
use super::txn::{Failure, Shelf, Txn};
use crate::error::{Error, Result};
use crate::model::Commits;
use crate::sqlite::statements::sql;

/// How long a batch may grow: bounded in time, so that the first caller's wait is bounded too.
const BATCH: Duration = Duration::from_millis(5);

/// Pages of WAL after which a checkpoint is due: 4 MB. After it the WAL is written from its head
/// again, in place, and a sync in place costs half of one that makes the file longer; few pages
/// differ, so that it is cheap. A test build comes by more often.
const CHECKPOINT_PAGES: i32 = if ARMED { 50 } else { 1_000 };

/// A handle on the thread. Dropping the last one ends it after what was sent.
#[derive(Debug)]
pub(super) struct Writer {
    // Unbounded: every sender waits for its answer, so callers bound the queue themselves.
    sender: Option<mpsc::Sender<Box<dyn Verb>>>,
    thread: Option<JoinHandle<()>>,
    counts: Counts,
}

impl Writer {
    pub(super) fn start(
        path: PathBuf,
        shelf: Shelf,
        clock: Arc<Clock>,
        changes: watch::Sender<u64>,
    ) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let failed = path.clone();
        let counts = Counts::default();
        let counted = counts.clone();
        let mut work =
            Work { path, connection: None, file: None, counts, shelf, clock, changes, broken: None };
        work.connection = Some(work.connect()?);
        work.file = identity(&work.path);
        let thread = std::thread::Builder::new()
            .name("laneway-writer".to_owned())
            .spawn(move || work.run(&receiver))
            .map_err(|error| Error::Io { path: failed, why: error.to_string() })?;
        Ok(Self { sender: Some(sender), thread: Some(thread), counts: counted })
    }

    pub(super) fn commits(&self) -> Commits {
        self.counts.commits()
    }

    /// Runs a verb in a transaction and returns what it says once that is on disk. `verb` may run
    /// more than once, if its batch had to be taken back.
    pub(super) async fn apply<T, F>(&self, verb: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Txn<'_>) -> Result<T, Failure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let pending = Pending { verb, result: None, reply: Some(reply) };
        let gone = || Error::Closed { why: "its writer has ended".to_owned() };
        let sender = self.sender.as_ref().ok_or_else(gone)?;
        sender.send(Box::new(pending)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by the panic hook; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// A verb with its caller, the types forgotten.
trait Verb: Send {
    fn apply(&mut self, txn: &mut Txn<'_>) -> Result<(), Failure>;
    fn answer(&mut self, committed: Result<()>);
}

struct Pending<T, F> {
    verb: F,
    result: Option<Result<T>>,
    reply: Option<oneshot::Sender<Result<T>>>,
}

impl<T: Send, F: FnMut(&mut Txn<'_>) -> Result<T, Failure> + Send> Verb for Pending<T, F> {
    fn apply(&mut self, txn: &mut Txn<'_>) -> Result<(), Failure> {
        match (self.verb)(txn) {
            Ok(value) => {
                self.result = Some(Ok(value));
                Ok(())
            }
            Err(Failure::Refused(error)) => {
                self.result = Some(Err(error.clone()));
                Err(Failure::Refused(error))
            }
            Err(failure @ (Failure::Sqlite(_) | Failure::Panicked(_))) => Err(failure),
        }
    }

    fn answer(&mut self, committed: Result<()>) {
        let result = match committed {
            Ok(()) => {
                self.result.take().unwrap_or_else(|| Err(Error::Closed { why: "no answer".to_owned() }))
            }
            Err(error) => Err(error),
        };
        if let Some(reply) = self.reply.take() {
            // A caller that went away does not undo what was committed.
            let _ = reply.send(result);
        }
    }
}

/// How a verb that fails is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undo {
    /// With the whole transaction, if it has written anything. Its batch is then done again, each
    /// verb behind a savepoint. Few fail, most of those before they write, and a savepoint keeps a
    /// copy of every page that is changed.
    Batch,
    /// Alone: it runs behind a savepoint.
    Verb,
}

/// What became of a verb.
enum Turn {
    /// It waits for the commit, with what it said or with its refusal.
    Done,
    /// It has failed, and its caller knows.
    Told,
    /// The whole batch has to be done again.
    Again,
}

/// The transaction of a batch.
struct Open {
    now: Millis,
    /// Changes of the connection when it began.
    before: u64,
    undo: Undo,
}

struct Work {
    path: PathBuf,
    /// `None` after an error at COMMIT, until it could be opened again.
    connection: Option<Connection>,
    /// Which file it is, whatever its name leads to later.
    file: Option<(u64, u64)>,
    counts: Counts,
    shelf: Shelf,
    clock: Arc<Clock>,
    changes: watch::Sender<u64>,
    /// Set by an fsync error, when the disk did not keep what it was given, and when the file is
    /// gone: nothing is written any more.
    broken: Option<Error>,
}

impl Work {
    fn run(mut self, receiver: &mpsc::Receiver<Box<dyn Verb>>) {
        let mut waiting: VecDeque<Box<dyn Verb>> = VecDeque::new();
        // A batch that ran out of time leaves some for the next.
        while let Some(next) = waiting.pop_front().or_else(|| receiver.recv().ok()) {
            waiting.push_front(next);
            self.batch(receiver, &mut waiting);
            if let Err(error) = self.checkpoint_if_due() {
                self.on_checkpoint_failed(&error);
            }
        }
        self.counts.tell();
    }

    fn batch(&mut self, receiver: &mpsc::Receiver<Box<dyn Verb>>, waiting: &mut VecDeque<Box<dyn Verb>>) {
        let mut done: Vec<Box<dyn Verb>> = Vec::new();
        let committed = self.try_batch(receiver, waiting, &mut done);
        let has_changed = committed.clone().unwrap_or(false);
        if has_changed {
            self.counts.add_verbs(done.len());
        }
        let committed = committed.map(|_| ());
        for mut verb in done {
            verb.answer(committed.clone());
            pass(Point::Answered);
        }
        if has_changed {
            self.changes.send_modify(|count| *count += 1);
        }
        if committed.is_err() {
            // What has not been tried fails with the rest: its caller decides whether to ask again.
            for mut verb in waiting.drain(..) {
                verb.answer(committed.clone());
            }
        }
    }

    fn try_batch(
        &mut self,
        receiver: &mpsc::Receiver<Box<dyn Verb>>,
        waiting: &mut VecDeque<Box<dyn Verb>>,
        done: &mut Vec<Box<dyn Verb>>,
    ) -> Result<bool> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        // SQLite goes on writing into a file that somebody removed, and nothing of that could be
        // found again.
        if identity(&self.path) != self.file {
            let why = format!("{} was removed or replaced while it was in use", self.path.display());
            let error = Error::Closed { why };
            self.broken = Some(error.clone());
            return Err(error);
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let result = self.transact(&connection, receiver, waiting, done);
        match result {
            Ok(has_changed) => {
                self.connection = Some(connection);
                Ok(has_changed)
            }
            Err(error) => {
                let told = fault::explain(&error, &self.path);
                if fault::reach(&error) == Reach::Store {
                    let error = fault::not_kept(&error);
                    self.broken = Some(error.clone());
                    return Err(error);
                }
                // At COMMIT it is unknown what happened: the connection is dropped, which takes
                // back what was not committed, and the next batch looks at the file as it is. Every
                // verb may be repeated.
                self.shelf.forget();
                Err(told)
            }
        }
    }

    /// Says whether anything was changed.
    fn transact(
        &self,
        connection: &Connection,
        receiver: &mpsc::Receiver<Box<dyn Verb>>,
        waiting: &mut VecDeque<Box<dyn Verb>>,
        done: &mut Vec<Box<dyn Verb>>,
    ) -> rusqlite::Result<bool> {
        pass(Point::BatchBefore);
        let mut open = self.begin(connection)?;
        let mut begun = Instant::now();
        while let Some(mut verb) = waiting.pop_front() {
            match self.one(connection, &mut open, verb.as_mut()) {
                Ok(Turn::Done) => done.push(verb),
                Ok(Turn::Told) => {}
                Ok(Turn::Again) => {
                    waiting.push_front(verb);
                    done.drain(..).rev().for_each(|verb| waiting.push_front(verb));
                    open = Open { undo: Undo::Verb, ..self.begin_again(connection)? };
                    begun = Instant::now();
                    continue;
                }
                Err(error) => {
                    done.push(verb);
                    return Err(error);
                }
            }
            pass(Point::VerbAfter);
            if begun.elapsed() > BATCH {
                break;
            }
            match receiver.try_recv() {
                Ok(verb) => waiting.push_back(verb),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
            }
        }
        let Open { now, before, .. } = open;
        // A batch that changed nothing (a claim that found nothing) writes nothing and costs no
        // fsync.
        let has_changed = connection.total_changes() != before;
        if has_changed {
            connection.prepare_cached(sql!("clock_write"))?.execute([now.0.to_string()])?;
        }
        if has(Bug::EarlyAnswer) {
            done.iter_mut().for_each(|verb| verb.answer(Ok(())));
            // A slow disk.
            std::thread::sleep(Duration::from_millis(50));
        }
        if has(Bug::LateEvents) {
            connection.execute_batch(&format!(
                "CREATE TEMP TABLE IF NOT EXISTS late AS SELECT * FROM events WHERE 0;
                 INSERT INTO late SELECT * FROM events WHERE at = {0}; DELETE FROM events WHERE at = {0}",
                now.0
            ))?;
        }
        pass(Point::CommitBefore);
        connection.prepare_cached("COMMIT")?.execute([])?;
        pass(Point::CommitAfter);
        if has(Bug::LateEvents) {
            connection.execute_batch("INSERT INTO events SELECT * FROM late; DELETE FROM late")?;
        }
        Ok(has_changed)
    }

    /// One verb. An error that reaches further than the verb ends the batch. A run of which
    /// something cannot be read is set aside in the same transaction, and the verb is asked again:
    /// it goes on with other runs, or says what became of this one.
    fn one(&self, connection: &Connection, open: &mut Open, verb: &mut dyn Verb) -> rusqlite::Result<Turn> {
        let before = connection.total_changes();
        loop {
            if open.undo == Undo::Verb {
                connection.prepare_cached("SAVEPOINT verb")?.execute([])?;
            }
            let mut txn = Txn { connection, now: open.now, shelf: &self.shelf, subject: Cell::new(None) };
            let Err(failure) = quarantine::guard(|| verb.apply(&mut txn)) else { break };
            if let Failure::Sqlite(error) = &failure
                && (fault::reach(error) != Reach::Verb || connection.is_autocommit())
            {
                let Failure::Sqlite(error) = failure else { break };
                return Err(error);
            }
            match open.undo {
                Undo::Verb => {
                    connection.execute_batch("ROLLBACK TO verb; RELEASE verb")?;
                    self.shelf.forget();
                }
                Undo::Batch if connection.total_changes() == before => {}
                Undo::Batch if before == open.before => *open = self.begin_again(connection)?,
                Undo::Batch => return Ok(Turn::Again),
            }
            txn.now = open.now;
            if quarantine::set_aside(&txn, &failure)? {
                // That stays, whatever becomes of this verb and of those behind it.
                open.undo = Undo::Verb;
                continue;
            }
            match failure {
                // What a verb refuses by its own judgement it has kept as its answer.
                Failure::Refused(_) => return Ok(Turn::Done),
                Failure::Sqlite(error) => verb.answer(Err(fault::explain(&error, &self.path))),
                Failure::Panicked(why) => verb.answer(Err(quarantine::panicked(why))),
            }
            return Ok(Turn::Told);
        }
        if open.undo == Undo::Verb {
            connection.prepare_cached("RELEASE verb")?.execute([])?;
        }
        Ok(Turn::Done)
    }

    /// Takes the write lock. From here on nobody else can write, so the clock can be read.
    fn begin(&self, connection: &Connection) -> rusqlite::Result<Open> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let floor: i64 = connection.prepare_cached(sql!("clock_read"))?.query_row([], |row| row.get(0))?;
        let now = self.clock.now(Millis(floor));
        Ok(Open { now, before: connection.total_changes(), undo: Undo::Batch })
    }

    /// Takes back all that was written, and begins anew.
    fn begin_again(&self, connection: &Connection) -> rusqlite::Result<Open> {
        connection.prepare_cached("ROLLBACK")?.execute([])?;
        self.shelf.forget();
        self.begin(connection)
    }

    fn connect(&self) -> Result<Connection> {
        let mut connection = connect::writer(&self.path)?;
        self.counts.watch(&mut connection).map_err(|error| fault::explain(&error, &self.path))?;
        Ok(connection)
    }

    /// Between batches, never inside one: a checkpoint writes and syncs what the WAL holds. PASSIVE
    /// waits for nobody; once it has moved everything, the next commit begins at the head of the
    /// WAL again.
    fn checkpoint_if_due(&self) -> rusqlite::Result<()> {
        let Some(connection) = &self.connection else { return Ok(()) };
        if self.counts.wal_pages() < CHECKPOINT_PAGES {
            return Ok(());
        }
        pass(Point::CheckpointBefore);
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        pass(Point::CheckpointAfter);
        Ok(())
    }

    /// A full disk passes. A disk that did not keep what it was given does not: pages that the
    /// system has dropped would be taken for written by the next checkpoint, so there must be none.
    fn on_checkpoint_failed(&mut self, error: &rusqlite::Error) {
        if fault::reach(error) == Reach::Store {
            self.broken = Some(fault::not_kept(error));
        } else {
            tracing::debug!(%error, "a checkpoint of the store failed; it is tried again after the next commit");
        }
    }
}

/// Device and inode: the same for a file as long as it is that file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
