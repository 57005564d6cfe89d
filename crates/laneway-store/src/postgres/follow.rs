//! What the change of one run means for others: a key that became free, a run that has ended, a node
//! that has joined. The transaction of the change records it as a [`FollowUp`]; `settle.rs` does it
//! in transactions of its own. Here: how a verb works on its runs, and what it records.
//!
//! To go on with another run in the same transaction would lock runs and keys behind those that are
//! held, in any order: concurrent submits collapsed in deadlocks that way (`lock_order.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use laneway_core::id::{RunId, SessionId};
use laneway_core::max_runs::Running;
use laneway_core::plan::Position;

use super::facts::{Known, Missing};
use super::fault::{Done, Failure};
use super::link::{Begin, Flight, Link, sql};
use super::read::run_of;
use super::run_work::{Job, Made, Terms, on_runs};
use super::save::Columns;
use super::shelf::Shelf;
use crate::child::ToStop;
use crate::keeper::{Changes, Keeper, Key};
use crate::model::RunHead;

/// What a committed change makes possible or necessary elsewhere. In the order in which several are
/// done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FollowUp {
    /// A key may have room for the next task in line.
    Key(Key),
    /// A run of this workflow has ended, so that a queued one may start.
    Workflow(String),
    /// A child run is to end, because the task that waits for it does.
    Stop(ToStop),
    /// A child run has ended, and its parent is to be told.
    Ended(RunId),
    /// A session takes work: tasks that waited for a node like it may go on.
    Node(SessionId),
}

impl FollowUp {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Key(_) => "key",
            Self::Workflow(_) => "workflow",
            Self::Stop(_) => "stop",
            Self::Ended(_) => "ended",
            Self::Node(_) => "node",
        }
    }

    pub(super) fn subject(&self) -> String {
        match self {
            Self::Key(key) => key.text(),
            Self::Workflow(name) => name.clone(),
            Self::Stop(to_stop) => to_stop.child.to_string(),
            Self::Ended(child) => child.to_string(),
            Self::Node(session) => session.to_string(),
        }
    }

    /// As it is stored. `None` for what no program of this version has written.
    pub(super) fn parse(kind: &str, subject: &str, of: Option<(&str, Position)>) -> Option<Self> {
        match kind {
            "key" => Key::parse(subject).map(Self::Key),
            "workflow" => Some(Self::Workflow(subject.to_owned())),
            "stop" => {
                let (parent, position) = of?;
                let (child, parent) = (RunId::parse(subject)?, RunId::parse(parent)?);
                Some(Self::Stop(ToStop { child, parent, position }))
            }
            "ended" => RunId::parse(subject).map(Self::Ended),
            "node" => SessionId::parse(subject).map(Self::Node),
            _ => None,
        }
    }
}

/// Rows of `follow_ups`, as columns.
#[derive(Debug, Default)]
pub(super) struct Records {
    kind: Vec<&'static str>,
    subject: Vec<String>,
    parent: Vec<Option<String>>,
    position: Vec<Option<i64>>,
}

impl Records {
    pub(super) fn extend<'f>(&mut self, follow_ups: impl IntoIterator<Item = &'f FollowUp>) {
        for follow_up in follow_ups {
            self.kind.push(follow_up.kind());
            self.subject.push(follow_up.subject());
            let of = match follow_up {
                FollowUp::Stop(to_stop) => Some((to_stop.parent.to_string(), i64::from(to_stop.position))),
                FollowUp::Key(_) | FollowUp::Workflow(_) | FollowUp::Ended(_) | FollowUp::Node(_) => None,
            };
            let (parent, position) = of.unzip();
            self.parent.push(parent);
            self.position.push(position);
        }
    }

    pub(super) fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        if !self.kind.is_empty() {
            flight.ask(
                sql!("follow_ups_add", TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY),
                vec![&self.kind, &self.subject, &self.parent, &self.position],
            );
        }
    }
}

/// Records a follow-up that comes of no change of a run. The transaction is open.
pub(super) async fn record(link: &Link, follow_up: FollowUp) -> Done<()> {
    let mut records = Records::default();
    records.extend([&follow_up]);
    let mut flight = link.flight();
    records.say(&mut flight);
    flight.land().await?;
    link.note_follow_ups([follow_up]);
    Ok(())
}

/// Does something to runs, with everything that follows within them. What is not written yet comes
/// back, to be sent along with the commit.
pub(super) async fn work<T>(
    shelf: &Shelf,
    link: &Link,
    mut terms: Terms,
    jobs: Vec<Job>,
    mut verb: impl FnMut(usize, &mut Keeper<&mut Known>) -> Done<T>,
) -> Done<(Vec<Made<T>>, Columns)> {
    // Runs that share keys must see what became of each other's: one after the other.
    let has_keys = jobs.len() > 1 && jobs.iter().any(|job| !job.head.head.keys.is_empty());
    let mut made = Vec::with_capacity(jobs.len());
    let mut columns = Columns::default();
    if has_keys || terms.is_apart {
        lock_all(link, terms, &jobs).await?;
        terms.is_begun = true;
        let last = jobs.len().saturating_sub(1);
        for (index, job) in jobs.into_iter().enumerate() {
            let (no, head) = (job.head.no, Arc::clone(&job.head.head));
            let one = on_runs(link, terms, vec![job], |_, keeper| verb(index, keeper)).await?;
            if index == last && !terms.is_apart {
                // Sent along with the commit: locks are held for one round trip less.
                for made in &one {
                    add(shelf, link, &mut columns, &head, made).await?;
                }
            } else {
                let saved = save(shelf, link, &head, &one).await;
                saved.map_err(|failure| failure.about(no, head.run))?;
            }
            made.extend(one);
        }
    } else {
        let heads: Vec<Arc<RunHead>> = jobs.iter().map(|job| Arc::clone(&job.head.head)).collect();
        made = on_runs(link, terms, jobs, verb).await?;
        for (made, head) in made.iter().zip(&heads) {
            add(shelf, link, &mut columns, head, made).await?;
        }
    }
    Ok((made, columns))
}

/// Locks all runs, and the keys that they are known to need, before the first of them changes.
async fn lock_all(link: &Link, terms: Terms, jobs: &[Job]) -> Done<()> {
    let numbers: Vec<i64> = jobs.iter().map(|job| job.head.no).collect();
    let keys: BTreeSet<String> = jobs.iter().flat_map(|job| &job.seed.holders).map(Key::text).collect();
    let keys: Vec<String> = keys.into_iter().collect();
    let mut flight = if terms.is_begun { link.flight() } else { link.begin(Begin::Write) };
    let (runs, keys) = (link.locks.acquire_runs(&numbers)?, link.locks.acquire_keys(&keys)?);
    runs.send(&mut flight);
    keys.send(&mut flight);
    flight.land().await?;
    Ok(())
}

/// Does the same to several runs, one after the other. The transaction is open.
pub(super) async fn on_each(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    runs: Vec<RunId>,
    mut verb: impl FnMut(&mut Keeper<&mut Known>) -> Done<bool>,
) -> Done<bool> {
    let mut jobs = Vec::with_capacity(runs.len());
    for run in runs {
        let seed = Missing { unstarted: true, live: true, line: 8, ..Missing::default() };
        jobs.push(job(shelf, link, run, seed).await?);
    }
    let within = Terms { is_begun: true, ..terms };
    lock_all(link, within, &jobs).await?;
    let mut is_changed = false;
    for job in jobs {
        let (no, head) = (job.head.no, Arc::clone(&job.head.head));
        let made = on_runs(link, within, vec![job], |_, keeper| verb(keeper)).await?;
        is_changed |= made.iter().any(|made| made.answer);
        save(shelf, link, &head, &made).await.map_err(|failure| failure.about(no, head.run))?;
    }
    Ok(is_changed)
}

/// Adds what became of a run to what is to be written, with what it means for others.
pub(super) async fn add<T>(
    shelf: &Shelf,
    link: &Link,
    columns: &mut Columns,
    head: &RunHead,
    made: &Made<T>,
) -> Done<()> {
    columns.add(made.no, made.now, &made.changes);
    shelf.note_waits(&made.changes.waits);
    link.note_placed(made.no, made.now, &made.changes.tasks);
    let follow_ups = follow_ups_of(link, head, &made.changes, (made.no, made.queued)).await?;
    columns.follow_ups.extend(&follow_ups);
    link.note_follow_ups(follow_ups);
    Ok(())
}

/// `queued`: whether runs of the workflow wait, if that was asked. No run counts those of a workflow
/// without a bound, and so none is about to wait for one.
async fn follow_ups_of(
    link: &Link,
    head: &RunHead,
    changes: &Changes,
    (no, queued): (i64, Option<bool>),
) -> Done<BTreeSet<FollowUp>> {
    let mut follow_ups: BTreeSet<FollowUp> = changes.keys.freed.iter().cloned().map(FollowUp::Key).collect();
    follow_ups.extend(changes.to_stop.iter().copied().map(FollowUp::Stop));
    let is_over = changes.run.status.is_final() && !changes.was.status.is_final();
    if !is_over {
        return Ok(follow_ups);
    }
    let workflow = &head.plan.workflow;
    let is_awaited = match (workflow.max_runs, queued) {
        (Some(_), _) => true,
        (None, Some(queued)) => queued,
        (None, None) => link.row(sql!("runs_held_up", INT8_ARRAY), &[&vec![no]]).await?.is_some(),
    };
    if is_awaited {
        follow_ups.insert(FollowUp::Workflow(workflow.name.clone()));
    }
    if head.parent.is_some() {
        follow_ups.insert(FollowUp::Ended(head.run));
    }
    Ok(follow_ups)
}

async fn save<T>(shelf: &Shelf, link: &Link, head: &RunHead, made: &[Made<T>]) -> Done<()> {
    let mut columns = Columns::default();
    for made in made {
        add(shelf, link, &mut columns, head, made).await?;
    }
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    Ok(())
}

/// Does something to one run inside the open transaction, and writes it.
pub(super) async fn change<T>(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (run, positions): (RunId, &[Position]),
    mut verb: impl FnMut(&mut Keeper<&mut Known>) -> Done<T>,
) -> Done<T> {
    let head = shelf.head(link, run).await?;
    head.check(positions)?;
    let mut seed = Missing::for_examining(&head.head.plan, positions);
    positions.iter().for_each(|position| seed.add_keys(&head.head, *position));
    let (no, of) = (head.no, Arc::clone(&head.head));
    let within = Terms { is_begun: true, ..terms };
    let made = on_runs(link, within, vec![Job { head, seed }], |_, keeper| verb(keeper)).await?;
    save(shelf, link, &of, &made).await.map_err(|failure| failure.about(no, run))?;
    Ok(made.into_iter().next().expect("one run went in").answer)
}

/// The runs of a workflow that have not ended.
#[derive(Debug, Default)]
pub(super) struct RunsOf {
    pub(super) running: Vec<Running>,
    pub(super) queued: Vec<RunId>,
}

/// The key under whose lock runs of a workflow are counted and started.
pub(super) fn admission_key(workflow: &str) -> String {
    format!("workflow:{workflow}")
}

/// Counted under the lock of the workflow: two transactions that start a run at the same time count
/// each other's. `keys` are locked along with it, because they come before it.
pub(super) async fn runs_of(link: &Link, workflow: &str, mut keys: Vec<String>) -> Done<RunsOf> {
    keys.push(admission_key(workflow));
    let locks = link.locks.acquire_keys(&keys)?;
    let mut flight = link.flight();
    locks.send(&mut flight);
    flight.ask(sql!("runs_running", TEXT), vec![&workflow]);
    flight.ask(sql!("runs_queued", TEXT), vec![&workflow]);
    let answers = flight.land().await?;
    let mut runs = RunsOf::default();
    for found in answers.first().into_iter().flatten() {
        let run = match run_of(found) {
            Ok((_, run)) => Some(run),
            // It has been set aside for that, and has its place all the same.
            Err(Failure::Blamed { .. }) if found.try_get(3)? => None,
            Err(failure) => return Err(failure),
        };
        runs.running.push(Running { run, is_canceling: found.try_get(2)? });
    }
    for found in answers.get(1).into_iter().flatten() {
        runs.queued.push(run_of(found)?.1);
    }
    Ok(runs)
}

/// A job that is about nothing in particular.
pub(super) async fn job(shelf: &Shelf, link: &Link, run: RunId, seed: Missing) -> Done<Job> {
    Ok(Job { head: Arc::clone(&shelf.head(link, run).await?), seed })
}

/// Tasks whose keys are locked when a run begins, before it is known which of them start: so many is
/// nearly always all.
pub(super) const KEYS_TO_BEGIN: usize = 64;

/// The keys that the first tasks of a run may need when it begins.
pub(super) fn keys_to_begin(head: &RunHead) -> Missing {
    let room = head.max_parallel as usize;
    let mut seed = Missing { live: true, line: room.saturating_add(8), ..Missing::default() };
    head.keys.keys().take(KEYS_TO_BEGIN).for_each(|position| seed.add_keys(head, *position));
    seed
}
