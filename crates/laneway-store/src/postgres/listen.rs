//! Hints from other nodes, and to them: one connection outside the pool that listens, and says that something was
//! committed. Nothing needs it to be right.
//!
//! ```text
//!   verb ──committed──▶ tell ──▶ ┌ listener task ┐ ──NOTIFY──▶ Postgres ──▶ other nodes
//!   whoever waits ◀── changes ◀─ └───────────────┘ ◀─LISTEN── Postgres ◀── other nodes
//! ```
//! At its start it sends itself something by another connection. If that does not come back there is a pooler in
//! between: it says so, and from then on hints by the clock.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use laneway_core::id::InstanceId;
use laneway_torture::{Point, pass};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Notification};
use uuid::Uuid;

use super::connect::{self, Line, Target};
use super::fault::{self, Done};
use super::link::{Link, sql};

/// How long the first message to itself may take. A notification takes a millisecond; a busy server some more.
const SELF_TEST: Duration = Duration::from_secs(2);

/// Between two notifications of ours: each takes a lock that the whole database shares.
const COALESCE: Duration = Duration::from_millis(5);

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

/// A handle on the task, which ends with it.
#[derive(Debug)]
pub(super) struct Listener {
    told: Arc<Notify>,
    hearing: watch::Receiver<Hearing>,
    task: AbortHandle,
}

impl Listener {
    /// `None` outside of a runtime: then there are no hints, and polls have to do.
    pub(super) fn start(
        target: Target,
        pool: Pool,
        instance: InstanceId,
        changes: watch::Sender<u64>,
    ) -> Option<Self> {
        let told = Arc::new(Notify::new());
        let (state, hearing) = watch::channel(Hearing::Unconnected);
        let ear = Ear { target, pool, store: instance.to_string(), changes, told: Arc::clone(&told), state };
        let task = Handle::try_current().ok()?.spawn(ear.run()).abort_handle();
        Some(Self { told, hearing, task })
    }

    /// Something was committed. Several within milliseconds are one notification.
    pub(super) fn tell(&self) {
        self.told.notify_one();
    }

    pub(super) fn hearing(&self) -> watch::Receiver<Hearing> {
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
    /// What our notifications say: which store of this database has changed.
    store: String,
    changes: watch::Sender<u64>,
    told: Arc<Notify>,
    state: watch::Sender<Hearing>,
}

impl Ear {
    async fn run(self) {
        let mut pause = BACK_OFF.0;
        loop {
            let begun = Instant::now();
            let lost = self.listen().await;
            self.state.send_replace(Hearing::Unconnected);
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
        let (client, line) = self.target.dial_to_listen(&self.store).await?;
        let (sender, mut heard) = mpsc::unbounded_channel();
        // Ends with this set, and so with this connection.
        let mut driver = JoinSet::new();
        driver.spawn(drive(line, sender));
        client.batch_execute(include_str!("sql/listen.sql")).await?;
        let own: i32 = client.query_typed_one(include_str!("sql/backend.sql"), &[]).await?.try_get(0)?;
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
                    // Our own commits were told of at once.
                    Some(note) if note.process_id() == own => {}
                    Some(note) if note.payload() == self.store => self.hint(),
                    Some(_) => {}
                },
                () = self.told.notified() => {
                    self.notify(&client).await?;
                    sleep(COALESCE).await;
                }
                () = sleep(DEAF), if !hears => self.hint(),
            }
        }
    }

    /// Sends itself something, by another connection: on its own one it would arrive behind a pooler as well.
    async fn test(&self, heard: &mut mpsc::UnboundedReceiver<Notification>) -> Done<bool> {
        let sent = format!("{} {}", self.store, Uuid::now_v7());
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
        client.query_typed(include_str!("sql/notify.sql"), &[(&self.store, Type::TEXT)]).await?;
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
