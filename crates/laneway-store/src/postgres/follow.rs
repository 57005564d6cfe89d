//! What the change of one run means for others: a key that was let go of, a run that has ended. They go on in the same
//! transaction, so that nobody has to look for what became free.
//!
//! Here runs are locked that the verb did not begin with, and so not in the one order of locks. Two who meet on that way
//! are parted by the database, and one of them is said again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use laneway_core::id::RunId;
use laneway_core::max_runs::{self, Running};
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use laneway_torture::{Bug, has};

use super::facts::{Known, Missing};
use super::fault::{Done, Failure};
use super::link::{Link, sql};
use super::read::run_of;
use super::row;
use super::run_work::{Job, Made, Terms, on_runs};
use super::save::Columns;
use super::shelf::Shelf;
use super::verbs::children;
use crate::child::ToStop;
use crate::keeper::{Changes, Keeper, Key};
use crate::model::RunHead;

/// What is still to be done for others.
#[derive(Debug, Default)]
pub(super) struct Follows {
    freed: BTreeSet<Key>,
    /// Workflows of which a run has ended, so that another one may start; and whether that one bounded them.
    ended: BTreeMap<String, bool>,
    /// Runs that are to end, because who waits for them does.
    to_stop: BTreeSet<ToStop>,
    /// Runs that a step waits for, and that have ended.
    over: BTreeSet<RunId>,
}

impl Follows {
    pub(super) fn of_key(key: Key) -> Self {
        Self { freed: BTreeSet::from([key]), ..Self::default() }
    }

    pub(super) fn of_workflow(name: String) -> Self {
        Self { ended: BTreeMap::from([(name, true)]), ..Self::default() }
    }

    pub(super) fn of_child(child: RunId) -> Self {
        Self { over: BTreeSet::from([child]), ..Self::default() }
    }

    /// A child has ended.
    pub(super) fn tell_of(&mut self, child: RunId) {
        self.over.insert(child);
    }

    /// `queued`: whether runs of the workflow wait, if that was asked. Nobody counts a run of a workflow without a bound, and
    /// so nobody is about to wait for one.
    fn add(&mut self, head: &RunHead, changes: &Changes, queued: Option<bool>) {
        let workflow = &head.plan.workflow;
        self.freed.extend(changes.keys.freed.iter().cloned());
        let is_over = changes.run.status.is_final() && !changes.was.status.is_final();
        if is_over && (workflow.max_runs.is_some() || queued != Some(false)) {
            *self.ended.entry(workflow.name.clone()).or_default() |= workflow.max_runs.is_some();
        }
        self.to_stop.extend(changes.to_stop.iter().copied());
        self.over.extend(head.parent.as_ref().filter(|_| is_over).map(|_| head.run));
    }

    fn is_empty(&self) -> bool {
        self.freed.is_empty() && self.ended.is_empty() && self.to_stop.is_empty() && self.over.is_empty()
    }
}

/// Does something to runs, with everything that follows, also for others. What is not written yet comes back, to be
/// said along with the commit: all of it where nobody else is concerned, which is the rule.
pub(super) async fn work<T>(
    shelf: &Shelf,
    link: &Link,
    mut terms: Terms,
    jobs: Vec<Job>,
    mut verb: impl FnMut(usize, &mut Keeper<&mut Known>) -> Done<T>,
) -> Done<(Vec<Made<T>>, Columns)> {
    // Runs that share keys must see what became of each other's: one after the other.
    let has_keys = jobs.len() > 1 && jobs.iter().any(|job| !job.head.head.keys.is_empty());
    let heads: Vec<Arc<RunHead>> = jobs.iter().map(|job| Arc::clone(&job.head.head)).collect();
    let mut made = Vec::with_capacity(jobs.len());
    let mut columns = Columns::default();
    if has_keys || terms.is_apart {
        for (index, job) in jobs.into_iter().enumerate() {
            let (no, run) = (job.head.no, job.head.head.run);
            let one = on_runs(link, terms, vec![job], |_, keeper| verb(index, keeper)).await?;
            terms.is_begun = true;
            save(shelf, link, &one).await.map_err(|failure| failure.about(no, run))?;
            made.extend(one);
        }
    } else {
        made = on_runs(link, terms, jobs, verb).await?;
        terms.is_begun = true;
        made.iter().for_each(|made| add(shelf, &mut columns, made));
    }
    let mut follows = Follows::default();
    for (made, head) in made.iter().zip(&heads) {
        follows.add(head, &made.changes, made.queued);
    }
    if !follows.is_empty() {
        let written = std::mem::take(&mut columns);
        let mut flight = link.flight();
        written.say(&mut flight);
        flight.land().await?;
        follow(shelf, link, terms, follows).await?;
    }
    Ok((made, columns))
}

/// Does the same to several runs, one after the other, in the order of locks; what that means for others shows when all of
/// them are done with. What one lets go of would else be taken by another that is about to be changed as well.
pub(super) async fn on_each(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    runs: Vec<RunId>,
    mut verb: impl FnMut(&mut Keeper<&mut Known>) -> Done<bool>,
) -> Done<()> {
    let within = Terms { is_begun: true, ..terms };
    let mut follows = Follows::default();
    for run in runs {
        let seed = Missing { unstarted: true, live: true, line: 8, ..Missing::default() };
        let job = job(shelf, link, run, seed).await?;
        let head = Arc::clone(&job.head.head);
        let no = job.head.no;
        let made = on_runs(link, within, vec![job], |_, keeper| verb(keeper)).await?;
        save(shelf, link, &made).await.map_err(|failure| failure.about(no, run))?;
        made.iter().for_each(|made| follows.add(&head, &made.changes, made.queued));
    }
    follow(shelf, link, within, follows).await
}

fn add<T>(shelf: &Shelf, columns: &mut Columns, made: &Made<T>) {
    columns.add(made.no, made.now, &made.changes);
    shelf.note_waits(&made.changes.waits);
}

async fn save<T>(shelf: &Shelf, link: &Link, made: &[Made<T>]) -> Done<()> {
    let mut columns = Columns::default();
    made.iter().for_each(|made| add(shelf, &mut columns, made));
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    Ok(())
}

/// Until nothing follows any more. The transaction is open.
pub(super) async fn follow(shelf: &Shelf, link: &Link, terms: Terms, mut follows: Follows) -> Done<()> {
    let terms = Terms { is_begun: true, ..terms };
    loop {
        if let Some(key) = follows.freed.pop_first() {
            hand_on(shelf, link, terms, &key, &mut follows).await?;
        } else if let Some((workflow, is_bounded)) = follows.ended.pop_first() {
            start_next(shelf, link, terms, (&workflow, is_bounded), &mut follows).await?;
        } else if let Some(child) = follows.to_stop.pop_first() {
            children::stop(shelf, link, terms, &child, &mut follows).await?;
        } else if let Some(child) = follows.over.pop_first() {
            children::tell(shelf, link, terms, child, &mut follows).await?;
        } else {
            return Ok(());
        }
    }
}

pub(super) async fn change<T>(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (run, positions): (RunId, &[Position]),
    follows: &mut Follows,
    mut verb: impl FnMut(&mut Keeper<&mut Known>) -> Done<T>,
) -> Done<T> {
    let head = shelf.head(link, run).await?;
    head.check(positions)?;
    let mut seed = Missing::for_examining(&head.head.plan, positions);
    positions.iter().for_each(|position| seed.add_keys(&head.head, *position));
    let (no, of, promised) = (head.no, Arc::clone(&head.head), follows.freed.clone());
    let made = on_runs(link, terms, vec![Job { head, seed }], |_, keeper| {
        keeper.promise(promised.clone());
        verb(keeper)
    })
    .await?;
    save(shelf, link, &made).await.map_err(|failure| failure.about(no, run))?;
    made.iter().for_each(|made| follows.add(&of, &made.changes, made.queued));
    Ok(made.into_iter().next().expect("one run went in").answer)
}

/// A key that somebody let go of goes to who waits longest.
async fn hand_on(shelf: &Shelf, link: &Link, terms: Terms, key: &Key, follows: &mut Follows) -> Done<()> {
    if has(Bug::KeyKept) {
        return Ok(());
    }
    let text = key.text();
    // Whoever is just about to wait here has this lock, and counted us among the holders: it must have sat down before
    // we look who waits.
    let names = vec![text.clone()];
    let mut flight = link.flight();
    flight.ask(sql!("key_make", TEXT_ARRAY), vec![&names]);
    flight.ask(sql!("key_lock", TEXT_ARRAY), vec![&names]);
    flight.land().await?;
    loop {
        let found = match key {
            Key::Limit(_) | Key::Lock(_) => link.row(sql!("key_next", TEXT), &[&text]).await?,
            Key::Order(name) => link.row(sql!("order_next", TEXT), &[name]).await?,
        };
        let Some(found) = found else { return Ok(()) };
        let (no, run) = run_of(&found)?;
        let position: Position = row::number(&found, 2).map_err(|failure| failure.about(no, run))?;
        let still_waits = change(shelf, link, terms, (run, &[position]), follows, |keeper| {
            keeper.examine(position)?;
            Ok(keeper.task(position)?.gate_key.as_deref() == Some(&text))
        })
        .await?;
        // Whom it does not let through, it does not let through anybody behind.
        if still_waits {
            return Ok(());
        }
    }
}

/// A run of a workflow has ended: those that wait for that start, oldest first, as many as may.
async fn start_next(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (workflow, is_bounded): (&str, bool),
    follows: &mut Follows,
) -> Done<()> {
    // Most workflows have no bound and nobody waiting, and need no lock. Where there is a bound, somebody may be just
    // about to wait, who counted us: that shows behind the lock.
    if !is_bounded && link.row(sql!("runs_queued", TEXT), &[&workflow]).await?.is_none() {
        return Ok(());
    }
    loop {
        let runs = runs_of(link, workflow).await?;
        let Some(next) = runs.queued.first().copied() else { return Ok(()) };
        let max = shelf.head(link, next).await?.head.plan.workflow.max_runs;
        if !max_runs::may_start(max, u32::try_from(runs.running.len()).unwrap_or(u32::MAX)) {
            return Ok(());
        }
        change(shelf, link, terms, (next, &[]), follows, |keeper| {
            // Somebody may have canceled it meanwhile.
            if keeper.run.status == RunStatus::Queued { keeper.begin() } else { Ok(()) }
        })
        .await?;
    }
}

/// The runs of a workflow that have not ended.
#[derive(Debug, Default)]
pub(super) struct RunsOf {
    pub(super) running: Vec<Running>,
    pub(super) queued: Vec<RunId>,
}

/// Under a lock of the workflow, and counted behind it: two who start a run at the same time count each other's.
pub(super) async fn runs_of(link: &Link, workflow: &str) -> Done<RunsOf> {
    let names = vec![format!("workflow:{workflow}")];
    let mut flight = link.flight();
    flight.ask(sql!("key_make", TEXT_ARRAY), vec![&names]);
    flight.ask(sql!("key_lock", TEXT_ARRAY), vec![&names]);
    flight.ask(sql!("runs_running", TEXT), vec![&workflow]);
    flight.ask(sql!("runs_queued", TEXT), vec![&workflow]);
    let answers = flight.land().await?;
    let mut runs = RunsOf::default();
    for found in answers.get(2).into_iter().flatten() {
        let run = match run_of(found) {
            Ok((_, run)) => Some(run),
            // It has been set aside for that, and has its place all the same.
            Err(Failure::Blamed { .. }) if found.try_get(3)? => None,
            Err(failure) => return Err(failure),
        };
        runs.running.push(Running { run, is_canceling: found.try_get(2)? });
    }
    for found in answers.get(3).into_iter().flatten() {
        runs.queued.push(run_of(found)?.1);
    }
    Ok(runs)
}

/// A job that is about nothing in particular.
pub(super) async fn job(shelf: &Shelf, link: &Link, run: RunId, seed: Missing) -> Done<Job> {
    Ok(Job { head: Arc::clone(&shelf.head(link, run).await?), seed })
}
