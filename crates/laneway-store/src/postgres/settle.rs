//! Does follow-ups, each in a transaction of its own that acquires its locks in order, right behind
//! the commit that recorded it.
//!
//! ```text
//!   verb: … ▸ record follow-ups ▸ COMMIT          the change, and what it makes possible
//!   settle: read the next in line (no lock)
//!           BEGIN ▸ its run ▸ its keys, in order ▸ look again ▸ let it through ▸ COMMIT
//!           … until the next in line has to wait; then the records go
//! ```
//! If a process dies in between, its records stay, and the sweep of any node does them (`sweep`).
//! Until then no newcomer takes a key that is recorded as free before a task that waits longer: it
//! sees the record behind the lock of the key, and waits in line (`keeper/keys.rs`).
//!
//! A record is removed only by a transaction that read it before it counted: one that was committed
//! in between tells of a change that the count may not have seen. It goes only if the task that has
//! to wait is still the first in line. Else a task that began to wait meanwhile would wait for
//! ever.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::max_runs;
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use laneway_torture::{Bug, Point, has, pass};

use crate::error::Result;
use crate::keeper::Key;
use crate::postgres::base::Base;
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::follow::{self, FollowUp, admission_key, keys_to_begin, runs_of};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::read::run_of;
use crate::postgres::run_work::{Job, Terms, on_runs};
use crate::postgres::save::Columns;
use crate::postgres::shelf::Shelf;
use crate::postgres::work::children;
use crate::postgres::{row, sessions};

/// Follow-ups that this process is doing. A second one of the same kind and subject is left to the
/// first, which goes round once more.
#[derive(Debug, Default)]
pub(super) struct Settling {
    under_way: Mutex<HashMap<FollowUp, bool>>,
    /// Those that failed, or whose commit was not answered: done behind the next verb.
    left: Mutex<BTreeSet<FollowUp>>,
    /// The largest record that the last sweep saw.
    swept_to: AtomicI64,
}

/// Marks a follow-up as being done, until it is dropped.
struct UnderWay<'s> {
    settling: &'s Settling,
    follow_up: &'s FollowUp,
}

impl Settling {
    /// Leaves follow-ups to the next verb of this process.
    pub(super) fn leave(&self, follow_ups: impl IntoIterator<Item = FollowUp>) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(follow_ups);
    }

    fn take_left(&self) -> BTreeSet<FollowUp> {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `None`: it is being done, and will be once more.
    fn enter<'s>(&'s self, follow_up: &'s FollowUp) -> Option<UnderWay<'s>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(again) = under_way.get_mut(follow_up) {
            *again = true;
            return None;
        }
        under_way.insert(follow_up.clone(), false);
        Some(UnderWay { settling: self, follow_up })
    }
}

impl UnderWay<'_> {
    /// Whether it was asked for again meanwhile. If not, it is over.
    fn is_wanted_again(&self) -> bool {
        let mut under_way = self.settling.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        match under_way.get_mut(self.follow_up) {
            Some(again) if *again => {
                *again = false;
                true
            }
            Some(_) | None => {
                under_way.remove(self.follow_up);
                false
            }
        }
    }
}

impl Drop for UnderWay<'_> {
    /// A caller that went away leaves the record to the sweep, and the follow-up to the next
    /// caller.
    fn drop(&mut self) {
        let mut under_way = self.settling.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.remove(self.follow_up);
    }
}

/// Does follow-ups, those that come of them, and those that were left. An error is none of the
/// verb's, which is committed: the records stay, and the next verb or the sweep of any node does
/// what is left.
pub(super) async fn settle(base: &Base, mut follow_ups: BTreeSet<FollowUp>) {
    follow_ups.extend(base.settling.take_left());
    while let Some(next) = follow_ups.pop_first() {
        pass(Point::FollowUp);
        let Some(under_way) = base.settling.enter(&next) else { continue };
        loop {
            match settle_one(base, &next).await {
                Ok(more) => follow_ups.extend(more),
                Err(error) => {
                    tracing::debug!(%error, subject = next.subject(), "a follow-up is left for later");
                    if error.is_passing() {
                        base.settling.leave([next.clone()]);
                    }
                    break;
                }
            }
            if !under_way.is_wanted_again() {
                break;
            }
        }
    }
}

/// Does what a process recorded that died before it was done. Safety net: called every few seconds.
pub(super) async fn sweep(base: &Base) -> Result<()> {
    let seen = base.settling.swept_to.load(Ordering::Relaxed);
    let (left, last) = base.ask(|link| async move { left(&link, seen).await }).await?;
    base.settling.swept_to.store(last.unwrap_or_default(), Ordering::Relaxed);
    settle(base, left).await;
    Ok(())
}

/// Does everything that is recorded, whether its process lives or not. For a caller that takes over
/// from a process that died, and must not wait for two sweeps.
pub(super) async fn settle_all(base: &Base) -> Result<()> {
    let (left, _) = base.ask(|link| async move { left(&link, i64::MAX).await }).await?;
    settle(base, left).await;
    Ok(())
}

async fn left(link: &Link, seen: i64) -> Done<(BTreeSet<FollowUp>, Option<i64>)> {
    let (mut left, mut last) = (BTreeSet::new(), None);
    for found in link.rows(sql!("follow_ups_left", INT8), &[&seen]).await? {
        let Some(kind) = row::maybe_text(&found, 1)? else {
            last = found.try_get(0)?;
            continue;
        };
        let (subject, parent) = (row::text(&found, 2)?, row::maybe_text(&found, 3)?);
        let position: Option<Position> = row::maybe_number(&found, 4)?;
        left.extend(FollowUp::parse(&kind, &subject, parent.as_deref().zip(position)));
    }
    Ok((left, last))
}

/// How far one transaction has come with a follow-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// There may be more to do.
    More,
}

async fn settle_one(base: &Base, follow_up: &FollowUp) -> Result<BTreeSet<FollowUp>> {
    let shelf = &base.shelf;
    let mut more = BTreeSet::new();
    loop {
        let (progress, new) = base
            .follow(|link, terms| async move {
                match follow_up {
                    FollowUp::Key(key) => hand_on(shelf, &link, terms, key).await,
                    FollowUp::Workflow(name) => start_next(shelf, &link, terms, name).await,
                    FollowUp::Stop(to_stop) => {
                        let seen = begin(&link, follow_up).await?;
                        children::stop(shelf, &link, terms, to_stop).await?;
                        end(&link, &seen).await
                    }
                    FollowUp::Ended(child) => {
                        let seen = begin(&link, follow_up).await?;
                        children::tell(shelf, &link, terms, *child).await?;
                        end(&link, &seen).await
                    }
                    FollowUp::Node(session) => sessions::take_what_waits(shelf, &link, terms, *session).await,
                }
            })
            .await?;
        more.extend(new);
        if progress == Progress::Done {
            return Ok(more);
        }
    }
}

/// Begins a transaction, and reads the records that it will have done.
async fn begin(link: &Link, follow_up: &FollowUp) -> Done<Vec<i64>> {
    let (kind, subject) = (follow_up.kind(), follow_up.subject());
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("follow_ups_of", TEXT, TEXT), vec![&kind, &subject]);
    numbers(&flight.land().await?.pop().unwrap_or_default())
}

fn numbers(rows: &[tokio_postgres::Row]) -> Done<Vec<i64>> {
    rows.iter().map(|found| Ok(found.try_get(0)?)).collect()
}

/// Removes the records that a transaction has seen and done, and commits.
pub(super) async fn end(link: &Link, seen: &Vec<i64>) -> Done<Progress> {
    let mut flight = link.flight();
    flight.ask(sql!("follow_ups_done", INT8_ARRAY), vec![seen]);
    flight.commit().await?;
    Ok(Progress::Done)
}

/// Lets the next task in line at a key through, if there is room.
async fn hand_on(shelf: &Shelf, link: &Link, terms: Terms, key: &Key) -> Done<Progress> {
    if has(Bug::KeyKept) {
        return Ok(Progress::Done);
    }
    let text = key.text();
    let (next, name) = match key {
        Key::Limit(_) | Key::Lock(_) => (sql!("key_next", TEXT), &text),
        Key::Order(name) => (sql!("order_next", TEXT), name),
    };
    let Some(found) = link.row(next, &[name]).await? else {
        return close(link, &text, (next, name)).await;
    };
    if has(Bug::KeyBeforeRun) {
        let keys = vec![text.clone()];
        let mut flight = link.begin(Begin::Write);
        flight.tell(sql!("keys_lock", TEXT_ARRAY), vec![&keys]);
        flight.land().await?;
    }
    let (no, run) = run_of(&found)?;
    let position: Position = row::number(&found, 2).map_err(|failure| failure.about(no, run))?;
    let head = shelf.head(link, run).await?;
    head.check(&[position])?;
    let mut seed = Missing::for_examining(&head.head.plan, &[position]);
    seed.add_keys(&head.head, position);
    seed.holders.insert(key.clone());
    let of = Arc::clone(&head.head);
    let mut made = on_runs(link, terms, vec![Job { head, seed }], |_, keeper| {
        keeper.examine(position)?;
        let still_waits = keeper.task(position)?.gate_key.as_deref() == Some(&text);
        // If the first task in line has to wait, so do all behind it.
        Ok(if still_waits { Progress::Done } else { Progress::More })
    })
    .await?;
    let mut columns = Columns::default();
    for made in &mut made {
        // This key is what is being handed on: its records say whether there is more to do.
        made.changes.keys.freed.remove(key);
        follow::add(shelf, link, &mut columns, &of, made).await?;
    }
    let made = made.into_iter().next().expect("one run went in");
    let seen: Vec<i64> = made.freed.get(key).cloned().unwrap_or_default();
    let mut progress = made.answer;
    let mut flight = link.flight();
    columns.say(&mut flight);
    if progress == Progress::Done {
        // A task that began to wait while this transaction waited for the lock may stand before it.
        flight.ask(next, vec![name]);
        let answers = flight.land().await.map_err(|failure| failure.about(no, run))?;
        let first = answers.last().and_then(|rows| rows.first());
        let is_first = first.map_or(Ok(false), |found| is_task(found, (no, position)));
        if !is_first.map_err(|failure| failure.about(no, run))? {
            progress = Progress::More;
        }
        flight = link.flight();
        if progress == Progress::Done {
            flight.ask(sql!("follow_ups_done", INT8_ARRAY), vec![&seen]);
        }
    }
    flight.commit().await.map_err(|failure| failure.about(no, run))?;
    Ok(progress)
}

/// Whether the next in line is this task.
fn is_task(found: &tokio_postgres::Row, (no, position): (i64, Position)) -> Done<bool> {
    Ok(found.try_get::<_, i64>(0)? == no && row::number::<Position>(found, 2)? == position)
}

/// No task waits at a key, as it seems. One that counted the former holder may be about to: that
/// shows behind the lock of the key.
async fn close(link: &Link, text: &String, (next, name): (&super::link::Sql, &String)) -> Done<Progress> {
    let names = vec![text.clone()];
    let mut flight = link.begin(Begin::Write);
    let locks = link.locks.acquire_keys(&names)?;
    locks.send(&mut flight);
    flight.ask(sql!("follow_ups_of", TEXT, TEXT), vec![&"key", text]);
    flight.ask(next, vec![name]);
    let answers = flight.land().await?;
    if answers.get(1).is_some_and(|rows| !rows.is_empty()) {
        link.roll_back().await;
        return Ok(Progress::More);
    }
    end(link, &numbers(answers.first().map(Vec::as_slice).unwrap_or_default())?).await
}

/// Starts the next queued run of a workflow, if there is room.
async fn start_next(shelf: &Shelf, link: &Link, terms: Terms, workflow: &str) -> Done<Progress> {
    let queued = link.row(sql!("runs_queued", TEXT), &[&workflow]).await?;
    let head = match queued.as_ref().map(run_of).transpose()? {
        Some((_, run)) => Some(shelf.head(link, run).await?),
        None => None,
    };
    let follow_up = FollowUp::Workflow(workflow.to_owned());
    let within = Terms { is_begun: true, ..terms };
    link.begin(Begin::Write).land().await?;
    let seed = head.as_ref().map(|head| keys_to_begin(&head.head)).unwrap_or_default();
    if let Some(head) = &head {
        super::lock_order::lock_runs(link, &[head.no]).await?;
    }
    let mut keys: Vec<String> = seed.holders.iter().map(Key::text).collect();
    keys.push(admission_key(workflow));
    let locks = link.locks.acquire_keys(&keys)?;
    let (kind, subject) = (follow_up.kind(), follow_up.subject());
    let mut flight = link.flight();
    locks.send(&mut flight);
    flight.ask(sql!("follow_ups_of", TEXT, TEXT), vec![&kind, &subject]);
    let seen = numbers(&flight.land().await?.pop().unwrap_or_default())?;
    let runs = runs_of(link, workflow, Vec::new()).await?;
    let next = runs.queued.first().copied();
    if next != head.as_ref().map(|head| head.head.run) {
        // Another process was faster.
        link.roll_back().await;
        return Ok(Progress::More);
    }
    let Some(head) = head else { return end(link, &seen).await };
    let running = u32::try_from(runs.running.len()).unwrap_or(u32::MAX);
    if !max_runs::may_start(head.head.plan.workflow.max_runs, running) {
        return end(link, &seen).await;
    }
    let (made, columns) = follow::work(shelf, link, within, vec![Job { head, seed }], |_, keeper| {
        if keeper.run.status == RunStatus::Queued { keeper.begin() } else { Ok(()) }
    })
    .await?;
    drop(made);
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.commit().await?;
    Ok(Progress::More)
}
