//! Hints from other nodes, and to them: one connection outside the pool that listens, and says that
//! something was committed. Nothing needs it to be right.
//!
//! ```text
//!   verb ──committed, and NOTIFY behind it──────────────────▶ Postgres ──▶ other nodes
//!     └─── the next within 5 ms ─▶ ┌ listener task ┐ ──NOTIFY──▶ Postgres ──▶ other nodes
//!   whoever waits ◀── changes ◀─── └───────────────┘ ◀─LISTEN── Postgres ◀── other nodes
//! ```
//! A commit takes its notification along, behind it on the same flight, unless there was one a moment ago: then the
//! listener says it, once for all that come meanwhile. A process that does not listen, and may end in the next moment,
//! always takes it along.
//!
//! At its start it sends itself something by another connection. If that does not come back there
//! is a pooler in between: it says so, and from then on hints by the clock.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use laneway_core::id::InstanceId;
use laneway_torture::{Point, pass};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Notification};
use uuid::Uuid;

use super::claim_cursor::SessionCursors;
use super::connect::{self, Line, Target};
use super::fault::{self, Done};
use super::link::{Link, sql};
use super::placed_tasks::PlacedTasks;
use crate::postgres::statements::statement;

/// How long the first message to itself may take. A notification takes a millisecond; a busy server
/// some more.
const SELF_TEST: Duration = Duration::from_secs(2);

/// Between two notifications of ours, in the long run: each takes a lock that the whole database
/// shares.
const COALESCE: Duration = Duration::from_millis(5);

/// So much of that may be spent beforehand: a few commits in a row, as in a chain, wait for
/// nothing.
const BURST: Duration = Duration::from_millis(20);

/// How often whoever waits is told to look, where notifications do not arrive.
const DEAF: Duration = Duration::from_millis(250);

/// Between two tries to connect: from, to.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Whether hints arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// Not known yet, or the line is broken.
    Unconnected,
    Listening,
    /// The message to itself did not come back.
    Deaf,
}

/// Who is told of commits, and hears of others'.
#[derive(Debug)]
pub(super) struct Ears {
    changes: watch::Sender<u64>,
    listener: Mutex<Option<Listener>>,
    /// What our notifications say: which store of this database has changed, and that it was us.
    words: Words,
    pace: Arc<Pace>,
    cursors: Arc<SessionCursors>,
    /// Tasks that the listener has yet to tell of.
    untold: Arc<Mutex<PlacedTasks>>,
    /// Whether those who wait will be woken by the clock.
    is_hint_due: Arc<AtomicBool>,
}

/// When notifications may be sent.
#[derive(Debug, Default)]
struct Pace {
    /// When the next one would be due, were none sent beforehand.
    due: Mutex<Option<Instant>>,
}

impl Pace {
    /// When the next may be sent.
    fn next(&self, now: Instant) -> Instant {
        let due = *self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.and_then(|due| due.checked_sub(BURST)).map_or(now, |at| at.max(now))
    }

    fn spend(&self, now: Instant) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        *due = Some(due.map_or(now, |due| due.max(now)) + COALESCE);
    }
}

/// How others are told of a commit.
#[derive(Debug)]
pub(super) enum Tell {
    /// Along with it.
    Along(String),
    /// By the listener, soon.
    Soon,
}

impl Tell {
    pub(super) fn hint(&self) -> Option<&str> {
        match self {
            Self::Along(words) => Some(words),
            Self::Soon => None,
        }
    }
}

impl Ears {
    pub(super) fn new(instance: InstanceId, cursors: Arc<SessionCursors>) -> Self {
        let (changes, _) = watch::channel(0);
        let words = Words { store: instance.to_string(), own: Uuid::now_v7().to_string() };
        Self {
            changes,
            listener: Mutex::default(),
            words,
            pace: Arc::default(),
            cursors,
            untold: Arc::default(),
            is_hint_due: Arc::default(),
        }
    }

    pub(super) fn hearing(&self) -> Option<watch::Receiver<Hearing>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Listener::hearing)
    }

    /// From the first who wants to hear on there is a listener.
    pub(super) fn listen(&self, target: &Target, pool: &Pool) -> watch::Receiver<u64> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            let ear = Ear {
                target: target.clone(),
                pool: pool.clone(),
                words: self.words.clone(),
                changes: self.changes.clone(),
                told: Arc::new(Notify::new()),
                pace: Arc::clone(&self.pace),
                cursors: Arc::clone(&self.cursors),
                untold: Arc::clone(&self.untold),
                state: watch::channel(Hearing::Unconnected).0,
            };
            *listener = Listener::start(ear);
        }
        self.changes.subscribe()
    }

    /// How to tell of a commit that is about to be made.
    pub(super) fn tell(&self) -> Tell {
        let is_heard = self.listener.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let now = Instant::now();
        if is_heard && self.pace.next(now) > now {
            return Tell::Soon;
        }
        self.pace.spend(now);
        Tell::Along(self.words.said())
    }

    /// It was made, and has placed these tasks.
    pub(super) fn told(&self, tell: &Tell, placed: &PlacedTasks) {
        self.changes.send_modify(|count| *count += 1);
        match tell {
            Tell::Along(_) => pass(Point::NotifyAfter),
            Tell::Soon => {
                self.untold.lock().unwrap_or_else(PoisonError::into_inner).announce_too(placed);
                if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
                {
                    listener.told.notify_one();
                }
            }
        }
    }
}

impl Ears {
    /// Wakes those who wait in this process, later. Nothing outside of a runtime: polls have to do.
    pub(super) fn hint_after(&self, delay: Duration) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.is_hint_due.swap(true, Ordering::Relaxed) {
            return;
        }
        let (changes, is_hint_due) = (self.changes.clone(), Arc::clone(&self.is_hint_due));
        runtime.spawn(async move {
            sleep(delay).await;
            is_hint_due.store(false, Ordering::Relaxed);
            changes.send_modify(|count| *count += 1);
        });
    }
}

/// What a notification says.
#[derive(Debug, Clone)]
struct Words {
    store: String,
    /// By which a process knows its own.
    own: String,
}

impl Words {
    fn said(&self) -> String {
        format!("{} {}", self.store, self.own)
    }

    /// Returns the tasks that another process has placed early, or `None` where a payload says
    /// nothing new: our own commits were told of at once.
    fn news(&self, payload: &str) -> Option<PlacedTasks> {
        let mut words = payload.split(' ');
        let (store, by, placed) = (words.next(), words.next(), words.next());
        let is_news = store == Some(self.store.as_str()) && by != Some(self.own.as_str());
        is_news.then(|| placed.map(PlacedTasks::parse).unwrap_or_default())
    }
}

/// A handle on the task, which ends with it.
#[derive(Debug)]
struct Listener {
    told: Arc<Notify>,
    hearing: watch::Receiver<Hearing>,
    task: AbortHandle,
}

impl Listener {
    /// `None` outside of a runtime: then there are no hints, and polls have to do.
    fn start(ear: Ear) -> Option<Self> {
        let (told, hearing) = (Arc::clone(&ear.told), ear.state.subscribe());
        let task = Handle::try_current().ok()?.spawn(ear.run()).abort_handle();
        Some(Self { told, hearing, task })
    }

    fn hearing(&self) -> watch::Receiver<Hearing> {
        self.hearing.clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Ear {
    target: Target,
    pool: Pool,
    words: Words,
    changes: watch::Sender<u64>,
    told: Arc<Notify>,
    pace: Arc<Pace>,
    cursors: Arc<SessionCursors>,
    untold: Arc<Mutex<PlacedTasks>>,
    state: watch::Sender<Hearing>,
}

impl Ear {
    async fn run(self) {
        let mut pause = BACK_OFF.0;
        loop {
            let begun = Instant::now();
            let lost = self.listen().await;
            self.state.send_replace(Hearing::Unconnected);
            // Changes are not heard from here on: waiters that rest for long poll now, and then
            // more often.
            self.hint();
            let why = lost.err().map(|failure| failure.explain(&self.target.address).to_string());
            tracing::debug!(why, "the connection that listens has ended; it is made again");
            // One that lasted was a good one.
            if begun.elapsed() > BACK_OFF.1 {
                pause = BACK_OFF.0;
            }
            sleep(pause).await;
            pause = (pause * 2).min(BACK_OFF.1);
        }
    }

    /// For as long as the connection lasts.
    async fn listen(&self) -> Done<()> {
        let (client, line) = self.target.dial_to_listen(&self.words.store).await?;
        let (sender, mut heard) = mpsc::unbounded_channel();
        // Ends with this set, and so with this connection.
        let mut driver = JoinSet::new();
        driver.spawn(drive(line, sender));
        client.batch_execute(statement!("listen")).await?;
        let hears = self.test(&mut heard).await?;
        self.state.send_replace(if hears { Hearing::Listening } else { Hearing::Deaf });
        if !hears {
            tracing::warn!(
                "notifications of {} do not arrive, as behind a pooler that hands out connections by the \
                 transaction: this node looks four times a second instead; a direct connection is better",
                self.target.address.shown
            );
        }
        // What happened before it listened was not heard.
        self.hint();
        loop {
            tokio::select! {
                note = heard.recv() => match note {
                    None => return Ok(()),
                    Some(note) => if let Some(placed) = self.words.news(note.payload()) {
                        self.cursors.move_back(&placed);
                        self.hint();
                    },
                },
                () = self.told.notified() => {
                    sleep_until(self.pace.next(Instant::now())).await;
                    self.notify(&client).await?;
                }
                () = sleep(DEAF), if !hears => self.hint(),
            }
        }
    }

    /// Sends itself something, by another connection: on its own one it would arrive behind a
    /// pooler as well.
    async fn test(&self, heard: &mut mpsc::UnboundedReceiver<Notification>) -> Done<bool> {
        let sent = format!("{} {}", self.words.store, Uuid::now_v7());
        let link = Link::new(connect::take(&self.pool, &self.target.address).await?, self.target.session);
        link.rows(sql!("notify", TEXT), &[&sent]).await?;
        let arrives = async {
            while let Some(note) = heard.recv().await {
                if note.payload() == sent {
                    return true;
                }
            }
            false
        };
        Ok(timeout(SELF_TEST, arrives).await.unwrap_or(false))
    }

    async fn notify(&self, client: &Client) -> Done<()> {
        self.pace.spend(Instant::now());
        let untold = std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner));
        let mut words = self.words.said();
        if let Some(placed) = untold.words() {
            words = format!("{words} {placed}");
        }
        client.query_typed(statement!("notify"), &[(&words, Type::TEXT)]).await?;
        pass(Point::NotifyAfter);
        Ok(())
    }

    fn hint(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Moves what arrives, until the line breaks or nobody listens.
async fn drive(mut line: Line, heard: mpsc::UnboundedSender<Notification>) {
    while let Some(message) = poll_fn(|context| line.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notification(note)) => {
                if heard.send(note).is_err() {
                    return;
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(why = fault::words(&error), "the connection that listens was lost");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_commits_in_a_row_are_told_at_once_and_many_only_every_so_often() {
        let (pace, begun) = (Pace::default(), Instant::now());
        let mut told = 0;
        for millisecond in 0..1_000 {
            let now = begun + Duration::from_millis(millisecond);
            if pace.next(now) <= now {
                pace.spend(now);
                told += 1;
                assert!(millisecond > 4 || told == millisecond + 1, "the first wait for nothing");
            }
        }
        assert!((200..=206).contains(&told), "{told} in a second");
    }

    #[test]
    fn a_process_does_not_hear_itself() {
        let words = Words { store: "s".to_owned(), own: "me".to_owned() };
        let is_news = |payload: &str| words.news(payload).is_some();
        assert!(is_news("s you") && is_news("s") && is_news("s you 1:2:3:4"));
        assert!(!is_news(&words.said()) && !is_news("t you") && !is_news("t") && !is_news("s me 1:2:3:4"));
        assert_eq!(words.news("s you 1:2:3:4").expect("news").iter().count(), 1);
    }
}
