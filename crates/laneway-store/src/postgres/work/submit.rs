//! `submit`: a run with all of its tasks, in one transaction. Everything of it is known before it
//! is written, so that the gate keeper needs no database, and each row is written once, as it is
//! after the first gates were opened. Here alone; those that concern nobody else share a
//! transaction (`enroll.rs`), and write the same rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::class::Class;
use laneway_core::definition::Placement;
use laneway_core::id::RunId;
use laneway_core::key::{self, TaskKeys};
use laneway_core::limit::Limit;
use laneway_core::max_runs::{self, Admission, Runs};
use laneway_core::plan::{Plan, Position};
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::error::Error;
use crate::keeper::{Keeper, Key};
use crate::model::{Placed, RunHead, Submission};
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::follow::{KEYS_TO_BEGIN, job, keys_to_begin, runs_of, work};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::lock_order::lock_runs;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::save::Columns;
use crate::postgres::shelf::Shelf;
use crate::postgres::work::children;
use crate::postgres::work::fresh::{New, NewRows};
use crate::postgres::{classes, operator, row};
use crate::submission_key::KeyedRun;

pub(in crate::postgres) async fn submit(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    submission: &Submission,
) -> Done<RunId> {
    let plan = &submission.plan;
    if let Some(why) = plan.unsupported() {
        return Err(Error::NotRunnable { why }.into());
    }
    if submission.max_parallel == 0 {
        return Err(Error::NotRunnable { why: "`max_parallel` must be at least 1".to_owned() }.into());
    }
    let keys =
        key::bind(plan, &submission.params).map_err(|error| Error::NotRunnable { why: error.to_string() })?;
    let placing = Placing::find(link, submission).await?;
    let (session, now) = (submission.session.to_string(), terms.now.map(|now| now.0));
    let names = vec![plan.workflow.name.as_str()];
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("submit_begin", TEXT, INT8), vec![&session, &now]);
    flight.ask(sql!("workflows_hold", TEXT_ARRAY), vec![&names]);
    flight.ask(sql!("workflow_paused", TEXT), vec![&plan.workflow.name]);
    if let Some(key) = &submission.key {
        flight.ask(sql!("run_by_key", TEXT), vec![key]);
    }
    let answers = flight.land().await?;
    if let Some(found) = answers.get(3).and_then(|rows| rows.first()) {
        link.roll_back().await;
        return known(found, submission);
    }
    let found = answers.first().and_then(|rows| rows.first());
    let found = found.ok_or(Error::SessionOver { session: submission.session })?;
    let (now, no) = (Millis(found.try_get(1)?), found.try_get(2)?);
    let pause = answers.get(2).and_then(|rows| rows.first()).map(operator::pause_of).transpose()?;
    link.locks.add_new_run(no);
    if let Some(parent) = &submission.parent {
        // It is told of the run in the end, and runs are locked before keys.
        lock_runs(link, &[shelf.head(link, parent.run).await?.no]).await?;
    }
    declare_limits(link, submission, now).await?;
    let admission = match submission.waits_until(now) {
        // One for later is admitted when its moment has come.
        Some(_) => Admission::Queue { ahead: 0 },
        None => admission(link, run, submission, &keys).await?,
    };
    if let Admission::Refuse { why } = admission {
        // Whoever came first with the same key may be what is in the way, and is seen behind the
        // lock.
        if let Some(key) = &submission.key
            && let Some(found) = link.row(sql!("run_by_key", TEXT), &[key]).await?
        {
            link.roll_back().await;
            return known(&found, submission);
        }
        return Err(Error::NotRunnable { why }.into());
    }
    let root_no = match submission.parent.as_ref().filter(|_| !submission.is_shared) {
        Some(parent) => Some(-shelf.head(link, parent.run).await?.head.own_class),
        None => None,
    };
    let own_class = -root_no.unwrap_or(no);
    let (placed, classes) = placing.of(own_class, plan.workflow.steps.len());
    let head = RunHead {
        run,
        plan: shelf.plans.keep(plan),
        dir: submission.dir.clone(),
        bundle: submission.bundle.clone(),
        params: submission.params.clone(),
        max_parallel: submission.max_parallel,
        submitted_from: row::text(found, 0)?,
        keys,
        placed,
        own_class,
        parent: submission.parent.clone(),
        no_cache: submission.no_cache,
    };
    let new = New { no, root_no, now, head: Arc::new(head), submission, classes, taken: Arc::default() };
    // Of a run that is nobody's but its owner's, everything is known before it is written.
    let is_known = !submission.is_shared && new.head.keys.is_empty() && !has_moments(plan);
    let facts = new.facts();
    let mut keeper = Keeper::new(facts, Arc::clone(&new.head), new.row(), now);
    keeper.submitted(submission, pause);
    let is_to_begin = match &admission {
        Admission::Start => true,
        Admission::Skip { reason } => {
            keeper.cancel_because("max_runs", reason.clone())?;
            false
        }
        Admission::Queue { .. } | Admission::Replace { .. } | Admission::Refuse { .. } => false,
    };
    if is_to_begin && is_known {
        keeper.begin()?;
    }
    let mut rows = NewRows::default();
    let changes = keeper.conclude()?;
    link.note_placed(no, now, &changes.tasks);
    rows.add(shelf, &new, &changes);
    let rows = rows.cut();
    let mut flight = link.flight();
    rows.say(&mut flight);
    flight.land().await?;
    let mut unsent = Columns::default();
    if is_to_begin && !is_known {
        unsent = begin(shelf, link, terms, run).await?;
    }
    replace_all(shelf, link, terms, admission).await?;
    if let Some(parent) = &submission.parent {
        let begun = std::mem::take(&mut unsent);
        let mut flight = link.flight();
        begun.say(&mut flight);
        flight.land().await?;
        children::began(shelf, link, Terms { is_begun: true, ..terms }, parent, run).await?;
    }
    // Locks of keys are held for one round trip less.
    let mut flight = link.flight();
    unsent.say(&mut flight);
    flight.commit().await?;
    Ok(run)
}

/// Whether a step waits for a moment when its run begins: new rows of tasks have no place for that.
fn has_moments(plan: &Plan) -> bool {
    plan.workflow.steps.iter().any(|step| step.demands().not_before.is_some())
}

/// The moment has come for which a run was submitted.
pub(in crate::postgres) async fn come_due(shelf: &Shelf, link: &Link, terms: Terms, run: RunId) -> Done<()> {
    let head = shelf.head(link, run).await?;
    let workflow = &head.head.plan.workflow;
    let seed = keys_to_begin(&head.head);
    link.begin(Begin::Write).land().await?;
    lock_runs(link, &[head.no]).await?;
    let runs = runs_of(link, &workflow.name, seed.holders.iter().map(Key::text).collect()).await?;
    let runs = Runs { running: &runs.running, queued: &runs.queued };
    let admission = max_runs::admit_due(&workflow.name, run, workflow.max_runs, runs);
    let within = Terms { is_begun: true, ..terms };
    let job = Job { head: Arc::clone(&head), seed };
    let (made, columns) = work(shelf, link, within, vec![job], |_, keeper| {
        if !keeper.come_due() {
            return Ok(false);
        }
        match &admission {
            Admission::Start => keeper.begin()?,
            Admission::Skip { reason } => keeper.cancel_because("max_runs", reason.clone())?,
            Admission::Queue { .. } | Admission::Replace { .. } | Admission::Refuse { .. } => {}
        }
        Ok(true)
    })
    .await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    if made.iter().all(|made| made.answer) {
        replace_all(shelf, link, terms, admission).await?;
    }
    link.flight().commit().await?;
    Ok(())
}

/// What was submitted with the key before.
fn known(found: &Row, submission: &Submission) -> Done<RunId> {
    let run = row::word(found, 0, "run id", RunId::parse)?;
    if let Some(workflow) = row::maybe_text(found, 1)? {
        let (version, params) = (row::text(found, 2)?, row::text(found, 3)?);
        submission.check_known(&KeyedRun::new(run, workflow, version, &params)?)?;
    }
    Ok(run)
}

/// Begins a run whose keys other runs may hold, or that a node has to take. Returns what is not
/// written yet.
async fn begin(shelf: &Shelf, link: &Link, terms: Terms, run: RunId) -> Done<Columns> {
    let head = shelf.head(link, run).await?;
    let seed = keys_to_begin(&head.head);
    let within = Terms { is_begun: true, ..terms };
    let begun = work(shelf, link, within, vec![Job { head, seed }], |_, keeper| keeper.begin());
    Ok(begun.await?.1)
}

/// Cancels the runs in whose place another one is to start.
async fn replace_all(shelf: &Shelf, link: &Link, terms: Terms, admission: Admission) -> Done<()> {
    if let Admission::Replace { which, reason } = admission {
        // Those that wait come first: they would start in the place of one that ends, to be
        // canceled then.
        for other in which.into_iter().rev() {
            replace(shelf, link, terms, other, &reason).await?;
        }
    }
    Ok(())
}

async fn replace(shelf: &Shelf, link: &Link, terms: Terms, other: RunId, reason: &str) -> Done<()> {
    let seed = Missing { unstarted: true, running: true, live: true, line: 1, ..Missing::default() };
    let job = job(shelf, link, other, seed).await?;
    let within = Terms { is_begun: true, ..terms };
    let (_, columns) = work(shelf, link, within, vec![job], |_, keeper| {
        if keeper.run.status.is_final() {
            Ok(())
        } else {
            keeper.cancel_because("max_runs", reason.to_owned())
        }
    })
    .await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    Ok(())
}

/// Limits are objects of the store. A document may declare one, and then it says the same as
/// everybody; what a step names must be there.
async fn declare_limits(link: &Link, submission: &Submission, now: Millis) -> Done<()> {
    let workflow = &submission.plan.workflow;
    let named = workflow.steps.iter().flat_map(|step| &step.demands().limits).cloned();
    let mut names: Vec<String> = named.chain(workflow.limits.iter().map(|(name, _)| name.clone())).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let mut stored: BTreeMap<String, Limit> = BTreeMap::new();
    for found in link.rows(sql!("limits_named", TEXT_ARRAY), &[&names]).await? {
        let limit = row::word(&found, 1, "limit", |text| Limit::parse(text).ok())?;
        stored.insert(row::text(&found, 0)?, limit);
    }
    let (mut made, mut values) = (Vec::new(), Vec::new());
    for (name, declared) in &workflow.limits {
        match stored.get(name) {
            Some(stored) => Limit::agree(name, *declared, *stored)
                .map_err(|error| Error::NotRunnable { why: error.to_string() })?,
            None => {
                made.push(name.clone());
                values.push(declared.to_string());
            }
        }
    }
    if let Some(name) = names.into_iter().find(|name| !stored.contains_key(name) && !made.contains(name)) {
        return Err(Error::NoSuchLimit { name }.into());
    }
    if !made.is_empty() {
        let declare = sql!("limit_declare", TEXT_ARRAY, TEXT_ARRAY, TEXT, INT8);
        link.rows(declare, &[&made, &values, &submission.by, &now.0]).await?;
    }
    Ok(())
}

/// Whether there is room for the run beside others of its workflow. The keys with which it may
/// begin are locked along with that of the workflow.
async fn admission(
    link: &Link,
    run: RunId,
    submission: &Submission,
    keys: &BTreeMap<Position, TaskKeys>,
) -> Done<Admission> {
    let workflow = &submission.plan.workflow;
    if workflow.max_runs.is_none() {
        return Ok(Admission::Start);
    }
    let mut names: Vec<String> = Vec::new();
    for keys in keys.values().take(KEYS_TO_BEGIN) {
        names.extend(keys.limits.iter().cloned().map(|name| Key::Limit(name).text()));
        names.extend(keys.lock.iter().cloned().map(|key| Key::Lock(key).text()));
        names.extend(keys.order.iter().map(|(key, _)| Key::Order(key.clone()).text()));
    }
    let runs = runs_of(link, &workflow.name, names).await?;
    let runs = Runs { running: &runs.running, queued: &runs.queued };
    Ok(max_runs::admit(&workflow.name, run, workflow.max_runs, runs))
}

/// By position.
pub(super) fn classes_of_steps(plan: &Plan) -> impl Iterator<Item = Class> + '_ {
    (0..).zip(&plan.workflow.steps).map(|(position, _): (Position, _)| plan.class_of(position))
}

/// Which nodes may run the tasks of a run.
enum Placing {
    /// Its owner: a class of its own.
    Local,
    /// The node that takes its first task.
    Pinned(i64),
    /// The class of each step, by position.
    Spread(Vec<i64>),
}

impl Placing {
    async fn find(link: &Link, submission: &Submission) -> Done<Self> {
        let steps = &submission.plan.workflow.steps;
        match (submission.is_shared, submission.placement()) {
            (false, _) => return Ok(Self::Local),
            (true, Placement::Pinned) => {
                let class =
                    Class::of_all(steps).map_err(|error| Error::NotRunnable { why: error.to_string() })?;
                let numbers = classes::numbers_beforehand(link, std::slice::from_ref(&class)).await?;
                let number = numbers.get(&class).copied();
                return Ok(Self::Pinned(number.ok_or_else(|| row::unreadable("class", &class.to_string()))?));
            }
            (true, Placement::Spread | Placement::Local) => {}
        }
        let of_steps: Vec<Class> = classes_of_steps(&submission.plan).collect();
        let mut distinct: Vec<Class> = Vec::new();
        for class in &of_steps {
            if !distinct.contains(class) {
                distinct.push(class.clone());
            }
        }
        let numbers = classes::numbers_beforehand(link, &distinct).await?;
        let number = |class: &Class| {
            let number = numbers.get(class).copied();
            number.ok_or_else(|| row::unreadable("class", &class.to_string()).into())
        };
        Ok(Self::Spread(of_steps.iter().map(number).collect::<Done<_>>()?))
    }

    fn of(self, own_class: i64, steps: usize) -> (Placed, Vec<i64>) {
        match self {
            Self::Local => (Placed::Local, vec![own_class; steps]),
            Self::Pinned(class) => (Placed::Pinned { class }, vec![class; steps]),
            Self::Spread(classes) => (Placed::Spread, classes),
        }
    }
}
