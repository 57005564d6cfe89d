//! What every verb stands on: connections, the clock, what is kept on the shelf, and hints. Owns
//! how a verb is said: in one transaction, again where two got in each other's way, and without a
//! run of which something cannot be read.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use laneway_core::id::{InstanceId, RunId};
use laneway_core::time::Millis;
use tokio::sync::watch;

use crate::MAX_LOST;
use crate::error::{Error, Result};
use crate::postgres::connect::{self, Target};
use crate::postgres::fault::{Done, Failure, Reach};
use crate::postgres::follow::FollowUp;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::listen::{Ears, Hearing};
use crate::postgres::lock_order::{HeldLocks, LockSet};
use crate::postgres::placed_tasks::PlacedTasks;
use crate::postgres::run_work::{Claims, Terms};
use crate::postgres::settle::{self, Settling};
use crate::postgres::shelf::Shelf;
use crate::postgres::work::together::Together;
use crate::sqlite::Clock;

/// How often a transaction runs again that collided with another one. The second try locks out
/// claims; the later ones wait a little, so that those which collide do not meet again. Together
/// they take about ten seconds: a collision is no caller's concern.
const MAX_TRIES: u32 = 40;

/// The longest wait between two tries.
const MAX_COLLISION_DELAY: Duration = Duration::from_millis(500);

/// How often a transaction runs again because it needed one more lock than the last time.
const MAX_LOCK_ROUNDS: u32 = 64;

#[derive(Debug)]
pub(super) struct Base {
    pub(super) target: Target,
    pub(super) pool: Pool,
    pub(super) instance: InstanceId,
    pub(super) shelf: Shelf,
    pub(super) clock: Arc<Clock>,
    pub(super) together: Together,
    pub(super) settling: Settling,
    ears: Ears,
    /// How often a task may be lost with its node before it fails.
    max_lost: AtomicU32,
}

/// What became of a verb.
#[derive(Debug)]
struct Said<T> {
    answer: T,
    follow_ups: BTreeSet<FollowUp>,
    placed: PlacedTasks,
}

impl Base {
    pub(super) fn new(target: Target, pool: Pool, instance: InstanceId, clock: Arc<Clock>) -> Self {
        let (shelf, together) = (Shelf::default(), Together::default());
        let ears = Ears::new(instance, Arc::clone(&shelf.cursors));
        let max_lost = AtomicU32::new(MAX_LOST);
        let settling = Settling::default();
        Self { target, pool, instance, shelf, clock, together, settling, ears, max_lost }
    }

    pub(super) fn set_max_lost(&self, max_lost: u32) {
        self.max_lost.store(max_lost, Ordering::Relaxed);
    }

    /// Whether notifications arrive.
    pub(super) fn hearing(&self) -> Option<watch::Receiver<Hearing>> {
        self.ears.hearing()
    }

    /// Ticks when something was committed, here or elsewhere.
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.ears.listen(&self.target, &self.pool)
    }

    /// The caller's time, where it has its own; otherwise statements take the database's.
    pub(super) fn now(&self) -> Option<Millis> {
        self.clock.hand()
    }

    pub(super) async fn link(&self) -> Done<Arc<Link>> {
        self.link_telling(None, LockSet::default()).await
    }

    async fn link_telling(&self, hint: Option<&str>, foreseen: LockSet) -> Done<Arc<Link>> {
        let object = connect::take(&self.pool, &self.target.address).await?;
        let link = Link::new(object, self.target.session).telling(hint.map(str::to_owned));
        Ok(Arc::new(link.with_locks(HeldLocks::foreseeing(foreseen))))
    }

    /// A verb: one transaction, with what follows from it for other runs. It runs again where two
    /// collided, and without a run of which something cannot be read.
    pub(super) async fn write<T, W>(&self, verb: impl Fn(Arc<Link>, Terms) -> W) -> Result<T>
    where
        W: Future<Output = Done<T>> + Send,
    {
        let Said { answer, follow_ups, .. } = self.say(None, verb).await?;
        settle::settle(self, follow_ups).await;
        Ok(answer)
    }

    /// The same, and every node hears of it, after the commit.
    pub(super) async fn change<T, W>(&self, verb: impl Fn(Arc<Link>, Terms) -> W) -> Result<T>
    where
        W: Future<Output = Done<T>> + Send,
    {
        let (answer, follow_ups) = self.follow(verb).await?;
        settle::settle(self, follow_ups).await;
        Ok(answer)
    }

    /// One transaction of which every node hears. What follows from it is the caller's to do.
    pub(super) async fn follow<T, W>(
        &self,
        verb: impl Fn(Arc<Link>, Terms) -> W,
    ) -> Result<(T, BTreeSet<FollowUp>)>
    where
        W: Future<Output = Done<T>> + Send,
    {
        let tell = self.ears.tell();
        let Said { answer, follow_ups, placed } = self.say(tell.hint(), verb).await?;
        self.ears.told(&tell, &placed);
        Ok((answer, follow_ups))
    }

    /// Wakes those who wait in this process, later and once: a claim may then walk from the head.
    pub(super) fn hint_after(&self, delay: Duration) {
        self.ears.hint_after(delay);
    }

    async fn say<T, W>(&self, hint: Option<&str>, verb: impl Fn(Arc<Link>, Terms) -> W) -> Result<Said<T>>
    where
        W: Future<Output = Done<T>> + Send,
    {
        let (mut claims, mut is_apart) = (Claims::Noticed, false);
        let (mut tries, mut lock_rounds, mut foreseen) = (0, 0, LockSet::default());
        loop {
            let terms = Terms {
                now: self.now(),
                claims,
                is_apart,
                is_begun: false,
                max_lost: self.max_lost.load(Ordering::Relaxed),
            };
            let failure = match self.link_telling(hint, foreseen.clone()).await {
                Err(failure) => failure,
                Ok(link) => match verb(Arc::clone(&link), terms).await {
                    Ok(answer) => {
                        let placed = link.take_placed();
                        self.shelf.cursors.move_back(&placed);
                        return Ok(Said { answer, follow_ups: link.take_follow_ups(), placed });
                    }
                    Err(failure) => {
                        if failure.reach() == Reach::Unknown {
                            // It may have been committed, and a repeated verb does not tell.
                            self.settling.leave(link.take_follow_ups());
                        }
                        link.roll_back().await;
                        failure
                    }
                },
            };
            if let Failure::Blamed { no, run, .. } = &failure {
                if self.set_aside(*no, *run, &failure).await? {
                    continue;
                }
                // It is there already, and the verb is about it.
                let (what, why) = failure.blame();
                return Err(Error::SetAside { run: name_of(*no, *run), what, why });
            }
            // A row of one run is in the way of what was written for many: run by run it shows
            // whose.
            if failure.is_about_a_value() && !is_apart {
                is_apart = true;
                continue;
            }
            match failure {
                Failure::OutOfOrder(needed) if lock_rounds < MAX_LOCK_ROUNDS => {
                    lock_rounds += 1;
                    foreseen.extend(*needed);
                }
                failure if failure.reach() == Reach::Again && tries < MAX_TRIES => {
                    claims = Claims::LockedOut;
                    tries += 1;
                    if tries > 1 {
                        tokio::time::sleep(collision_delay(tries)).await;
                    }
                }
                failure => return Err(failure.explain(&self.target.address)),
            }
        }
    }

    /// Sets a run aside of which something cannot be read. Says whether it is new there.
    async fn set_aside(&self, no: i64, run: Option<RunId>, failure: &Failure) -> Result<bool> {
        let now = self.now().map(|now| now.0);
        let added = async { set_aside(&*self.link().await?, now, (no, run), failure).await };
        let added: Done<bool> = added.await;
        added.map_err(|failure| failure.explain(&self.target.address))
    }

    /// A question whose statements each stand for themselves.
    pub(super) async fn ask<T, W>(&self, question: impl FnOnce(Arc<Link>) -> W) -> Result<T>
    where
        W: Future<Output = Done<T>> + Send,
    {
        let answer = async { question(self.link().await?).await }.await;
        answer.map_err(|failure| failure.explain(&self.target.address))
    }

    /// A question whose statements see one moment.
    pub(super) async fn ask_at_once<T, W>(&self, question: impl FnOnce(Arc<Link>) -> W) -> Result<T>
    where
        W: Future<Output = Done<T>> + Send,
    {
        let answer = async {
            let link = self.link().await?;
            link.begin(Begin::Read).land().await?;
            let answer = question(Arc::clone(&link)).await;
            link.roll_back().await;
            answer
        };
        answer.await.map_err(|failure| failure.explain(&self.target.address))
    }
}

/// Grows with every try up to a bound, and is random, so that two which collided part.
fn collision_delay(tries: u32) -> Duration {
    let most = Duration::from_millis(2).saturating_mul(1 << tries.min(10)).min(MAX_COLLISION_DELAY);
    // The last bytes of a new id are random.
    let part = u32::from(uuid::Uuid::now_v7().as_bytes()[15]);
    most.mul_f64(f64::from(part + 1) / 256.0)
}

/// Sets a run aside of which something cannot be read, in a transaction of its own. Says whether it
/// is new there.
pub(super) async fn set_aside(
    link: &Link,
    now: Option<i64>,
    (no, run): (i64, Option<RunId>),
    failure: &Failure,
) -> Done<bool> {
    let (what, why) = failure.blame();
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("quarantine_add", INT8, TEXT, TEXT, INT8), vec![&no, &what, &why, &now]);
    let answers = flight.commit().await?;
    let is_new = answers.first().is_some_and(|rows| !rows.is_empty());
    if is_new {
        let run = name_of(no, run);
        tracing::warn!(
            "run {run} is set aside: a stored {what} cannot be read: {why}; `laneway doctor` says more"
        );
    }
    Ok(is_new)
}

/// How people are told of a run.
fn name_of(no: i64, run: Option<RunId>) -> String {
    run.map_or_else(|| format!("number {no}"), |run| run.short())
}
