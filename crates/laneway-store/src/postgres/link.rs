//! One connection for the length of a verb or a question: statements by their names, and flights of
//! them.
//!
//! ```text
//!   flight: BEGIN ▸ lock ▸ read ▸ read ▸ …   one round trip, answered in order
//!   decide                                    (pure)
//!   flight: write ▸ write ▸ … ▸ COMMIT ▸ hint  one round trip
//! ```
//! Statements are prepared once per connection. Behind a pooler that hands out connections by the transaction nothing
//! that is prepared or set can be relied on: there they go unnamed, and what is to hold is set inside each transaction.

use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Poll;

use deadpool_postgres::Object;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_torture::{Point, pass};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use super::claim_cursor::LinePlace;
use super::connect::Session;
use super::fault::{Done, Failure};
use super::follow::FollowUp;
use super::lock_order::HeldLocks;
use super::placed_tasks::PlacedTasks;
use crate::keeper::Changed;
use crate::postgres::statements::statement;

/// A statement of ours, with the types of its parameters.
#[derive(Debug)]
pub(super) struct Sql {
    pub(super) text: &'static str,
    pub(super) types: &'static [Type],
}

/// A statement by its name, with the types of its parameters.
macro_rules! sql {
    ($name:tt $(, $type:ident)*) => {{
        const SQL: $crate::postgres::link::Sql = $crate::postgres::link::Sql {
            text: $crate::postgres::statements::statement!($name),
            types: &[$(tokio_postgres::types::Type::$type),*],
        };
        &SQL
    }};
}
pub(super) use sql;

/// What a parameter can be.
pub(super) type Value<'a> = dyn ToSql + Sync + 'a;

/// A connection out of the pool.
pub(super) struct Link {
    /// `None` once it was thrown away.
    object: Option<Object>,
    session: Session,
    phase: AtomicU8,
    /// What other nodes are told behind a commit.
    hint: Option<String>,
    /// The same, with the tasks that the transaction has placed.
    words: OnceLock<String>,
    /// What the open transaction has locked.
    pub(super) locks: HeldLocks,
    /// What the open transaction makes possible for other runs, as it has recorded it.
    follow_ups: Mutex<BTreeSet<FollowUp>>,
    /// Tasks that the open transaction makes available.
    placed: Mutex<PlacedTasks>,
}

/// Nothing is open.
const IDLE: u8 = 0;
/// A transaction is open, or may be.
const OPEN: u8 = 1;

/// How a transaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// Every statement sees what was committed before it began: what is read after a lock is read
    /// as of the lock.
    Write,
    /// All statements see one moment.
    Read,
}

impl Link {
    pub(super) fn new(object: Object, session: Session) -> Self {
        Self {
            object: Some(object),
            session,
            phase: AtomicU8::new(IDLE),
            hint: None,
            words: OnceLock::new(),
            locks: HeldLocks::default(),
            follow_ups: Mutex::default(),
            placed: Mutex::default(),
        }
    }

    /// For a try that follows one which failed out of order.
    pub(super) fn with_locks(mut self, locks: HeldLocks) -> Self {
        self.locks = locks;
        self
    }

    /// Remembers what is to be done behind the commit.
    pub(super) fn note_follow_ups(&self, new: impl IntoIterator<Item = FollowUp>) {
        self.follow_ups.lock().unwrap_or_else(PoisonError::into_inner).extend(new);
    }

    /// Whether the open transaction makes something possible for other runs.
    pub(super) fn has_follow_ups(&self) -> bool {
        !self.follow_ups.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// What is to be done now that the transaction has committed.
    pub(super) fn take_follow_ups(&self) -> BTreeSet<FollowUp> {
        std::mem::take(&mut *self.follow_ups.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers tasks that become available with the commit.
    pub(super) fn note_placed(&self, no: i64, now: Millis, tasks: &[Changed]) {
        let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        for task in tasks.iter().filter(|task| task.row.status == TaskStatus::Available) {
            if let Some(rank) = task.row.rank {
                let place = LinePlace { rank, run_no: no, position: i64::from(task.position) };
                placed.add(task.row.class, place, now.0);
            }
        }
    }

    /// Tasks that the committed transaction has made available.
    pub(super) fn take_placed(&self) -> PlacedTasks {
        std::mem::take(&mut *self.placed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What other nodes are told behind the commit.
    fn words(&self) -> Option<&String> {
        let hint = self.hint.as_ref()?;
        let compose = || match self.placed.lock().unwrap_or_else(PoisonError::into_inner).words() {
            Some(placed) => format!("{hint} {placed}"),
            None => hint.clone(),
        };
        Some(self.words.get_or_init(compose))
    }

    /// Behind its commits it tells others, in the same flight: a statement of its own, and so never
    /// inside the transaction.
    pub(super) fn telling(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    fn client(&self) -> &Object {
        self.object.as_ref().expect("it is taken only when the link is dropped")
    }

    /// One statement, by itself or inside the open transaction.
    pub(super) async fn rows(&self, sql: &Sql, values: &[&Value<'_>]) -> Done<Vec<Row>> {
        if self.session == Session::Shared && self.phase.load(Ordering::Relaxed) == IDLE {
            let mut flight = self.begin(Begin::Read);
            flight.ask(sql, values.to_vec());
            let mut answers = flight.commit().await?;
            return Ok(answers.pop().unwrap_or_default());
        }
        let mut flight = self.flight();
        flight.ask(sql, values.to_vec());
        Ok(flight.land().await?.pop().unwrap_or_default())
    }

    pub(super) async fn row(&self, sql: &Sql, values: &[&Value<'_>]) -> Done<Option<Row>> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// A flight that begins a transaction.
    pub(super) fn begin(&self, begin: Begin) -> Flight<'_> {
        self.phase.store(OPEN, Ordering::Relaxed);
        self.locks.clear();
        let words = match (begin, self.session) {
            (Begin::Write, Session::Ours) => statement!("begin_write"),
            (Begin::Read, Session::Ours) => statement!("begin_read"),
            (Begin::Write, Session::Shared) => statement!("begin_write_shared"),
            (Begin::Read, Session::Shared) => statement!("begin_read_shared"),
        };
        let mut flight = self.flight();
        flight.parts.push(Part::Words(words));
        flight
    }

    /// A flight inside the open transaction, or of statements that each stand for themselves.
    pub(super) fn flight(&self) -> Flight<'_> {
        Flight { link: self, parts: Vec::new() }
    }

    /// Takes back what was done. A line that cannot even do that is thrown away.
    pub(super) async fn roll_back(&self) {
        if self.phase.load(Ordering::Relaxed) == OPEN && self.client().batch_execute("ROLLBACK").await.is_ok()
        {
            self.phase.store(IDLE, Ordering::Relaxed);
        }
    }
}

impl Drop for Link {
    /// A verb that nobody waits for any more, or whose line broke, leaves nothing half-open in the
    /// pool: the connection is closed, and the server takes back what was not committed.
    fn drop(&mut self) {
        if let Some(object) = self.object.take()
            && (*self.phase.get_mut() == OPEN || object.is_closed())
        {
            drop(Object::take(object));
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("session", &self.session).finish_non_exhaustive()
    }
}

enum Part<'a> {
    Words(&'static str),
    Asked(&'a Sql, Vec<&'a Value<'a>>),
    /// Its rows are of no interest; its error is the transaction's.
    Told(&'a Sql, Vec<&'a Value<'a>>),
    /// Nobody needs the answer, and an error is none of the transaction's: that is over.
    Hint(&'a Sql, Vec<&'a Value<'a>>),
}

/// Statements that are sent one behind the other without waiting: the database works on them in
/// this order, and those behind one that fails inside a transaction fail as well.
pub(super) struct Flight<'a> {
    link: &'a Link,
    parts: Vec<Part<'a>>,
}

type Asked<'f> = Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'f>>;

impl<'a> Flight<'a> {
    pub(super) fn ask(&mut self, sql: &'a Sql, values: Vec<&'a Value<'a>>) {
        self.parts.push(Part::Asked(sql, values));
    }

    /// A statement whose rows are of no interest.
    pub(super) fn tell(&mut self, sql: &'a Sql, values: Vec<&'a Value<'a>>) {
        self.parts.push(Part::Told(sql, values));
    }

    /// How many answers there will be.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Asked(..))).count()
    }

    /// The rows of each statement that was asked, in order.
    pub(super) async fn land(self) -> Done<Vec<Vec<Row>>> {
        let prepared = self.prepare().await?;
        let (mut answers, mut failure) = (Vec::new(), None);
        for (part, answer) in self.parts.iter().zip(in_order(self.send(&prepared)).await) {
            match (part, answer) {
                (Part::Words(_) | Part::Told(..), Ok(_)) | (Part::Hint(..), _) => {}
                (Part::Asked(..), Ok(rows)) => answers.push(rows),
                // Those behind it say only that the transaction has failed.
                (Part::Words(_) | Part::Asked(..) | Part::Told(..), Err(error)) => {
                    failure = failure.or(Some(error));
                }
            }
        }
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(answers),
        }
    }

    /// The last flight of a transaction: what is behind it is on disk. An error of a statement is
    /// that statement's; one of the line is unknown, since the commit was sent along.
    pub(super) async fn commit(mut self) -> Done<Vec<Vec<Row>>> {
        let link = self.link;
        self.parts.push(Part::Words("COMMIT"));
        pass(Point::SharedCommitBefore);
        if let Some(words) = link.words() {
            self.parts.push(Part::Hint(sql!("hint", TEXT), vec![words]));
        }
        match self.land().await {
            Ok(answers) => {
                pass(Point::SharedCommitAfter);
                link.phase.store(IDLE, Ordering::Relaxed);
                Ok(answers)
            }
            Err(Failure::Postgres(error)) if error.as_db_error().is_none() => Err(Failure::Unanswered(error)),
            Err(failure) => {
                // COMMIT of a failed transaction has rolled it back; ROLLBACK says so again, and
                // harms nothing.
                link.roll_back().await;
                Err(failure)
            }
        }
    }

    /// Before anything is sent: a statement that had to be prepared in between would come behind
    /// those that follow it.
    async fn prepare(&self) -> Result<Vec<Option<Statement>>, tokio_postgres::Error> {
        let mut prepared = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            prepared.push(match (part, self.link.session) {
                (Part::Asked(sql, _) | Part::Told(sql, _) | Part::Hint(sql, _), Session::Ours) => {
                    Some(self.link.client().prepare_typed_cached(sql.text, sql.types).await?)
                }
                (Part::Words(_), _) => None,
                (Part::Asked(..) | Part::Told(..) | Part::Hint(..), Session::Shared) => None,
            });
        }
        Ok(prepared)
    }

    fn send<'f>(&'f self, prepared: &'f [Option<Statement>]) -> Vec<Asked<'f>> {
        let client = self.link.client();
        let each = self.parts.iter().zip(prepared).map(|(part, statement)| -> Asked<'f> {
            match (part, statement) {
                (Part::Words(words), _) => {
                    Box::pin(async move { client.batch_execute(words).await.map(|()| Vec::new()) })
                }
                (Part::Asked(_, values) | Part::Told(_, values) | Part::Hint(_, values), Some(statement)) => {
                    Box::pin(async move { client.query(statement, values).await })
                }
                (Part::Asked(sql, values) | Part::Told(sql, values) | Part::Hint(sql, values), None) => {
                    Box::pin(async move {
                        let typed: Vec<(&(dyn ToSql + Sync), Type)> =
                            values.iter().copied().zip(sql.types.iter().cloned()).collect();
                        client.query_typed(sql.text, &typed).await
                    })
                }
            }
        });
        each.collect()
    }
}

/// All of them at once, each polled behind the one before: the driver sends what it is given with
/// the first poll, so they arrive in this order.
async fn in_order<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    let mut first = 0;
    poll_fn(|context| {
        // Answers come in order too: those behind the first that is missing are only looked at when
        // they are sent.
        for (future, answer) in &mut waiting[first..] {
            if answer.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *answer = Some(value);
            }
        }
        first += waiting[first..].iter().take_while(|(_, answer)| answer.is_some()).count();
        if first == waiting.len() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, answer)| answer).collect()
}
