//! `submit`: a run with all of its tasks. Small ones are one transaction; large ones come in
//! chunks, so that nobody waits long for the write lock, and become visible with the last.

use std::collections::HashMap;

use laneway_core::class::Class;
use laneway_core::definition::Placement;
use laneway_core::event::PauseScope;
use laneway_core::gate::Gate;
use laneway_core::id::RunId;
use laneway_core::key;
use laneway_core::limit::Limit;
use laneway_core::max_runs::{self, Admission, Runs};
use laneway_core::plan::Position;
use laneway_core::rank::rank;
use laneway_core::time::Millis;
use rusqlite::{OptionalExtension, Row, params};

use crate::child::parent_text;
use crate::error::Error;
use crate::keeper::{Keeper, Pause, unreadable};
use crate::model::{Placed, Submission};
use crate::sqlite::run_work::{Stored, limit, on_run, runs_of};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Head, Txn};
use crate::sqlite::work::children;
use crate::sqlite::{access, classes};
use crate::submission_key::KeyedRun;
use crate::trigger::hooks_text;

/// Tasks per transaction: some milliseconds of work. In a test build every submit is a large one.
pub(in crate::sqlite) const CHUNK: usize = if laneway_torture::ARMED { 6 } else { 2_000 };

/// Makes the run's row, invisible yet. Gives the run that was submitted with the same key before,
/// if one was.
pub(in crate::sqlite) fn begin(txn: &Txn<'_>, run: RunId, submission: &Submission) -> Done<Option<RunId>> {
    if let Some(key) = &submission.key
        && let Some(known) = known(txn, key, submission)?
    {
        return Ok(Some(known));
    }
    let plan = &submission.plan;
    if let Some(why) = plan.unsupported() {
        return Err(Error::NotRunnable { why }.into());
    }
    if submission.max_parallel == 0 {
        return Err(Error::NotRunnable { why: "`max_parallel` must be at least 1".to_owned() }.into());
    }
    key::bind(plan, &submission.params).map_err(|error| Error::NotRunnable { why: error.to_string() })?;
    declare_limits(txn, submission)?;
    if let Admission::Refuse { why } = admission(txn, run, submission)? {
        return Err(Error::NotRunnable { why }.into());
    }
    let placed = placed(txn, submission)?;
    let session = submission.session;
    let node = txn.node(session)?.ok_or(Error::SessionOver { session })?;
    txn.shelf.plans().keep(plan);
    let params = serde_json::Value::Object(submission.params.clone()).to_string();
    let (version, name) = (plan.version.as_str(), &plan.workflow.name);
    txn.connection.prepare_cached(sql!("submit_workflow"))?.execute(params![
        version,
        name,
        submission.document,
        txn.now.0
    ])?;
    txn.connection.prepare_cached(sql!("submit_run"))?.execute(params![
        run.to_string(),
        run.tail(),
        name,
        version,
        submission.dir,
        params,
        submission.max_parallel,
        submission.session.to_string(),
        submission.by,
        txn.now.0,
        plan.workflow.steps.len() as i64,
        &*node,
        submission.key,
        placed.as_str(),
        placed.class(),
        submission.bundle.as_ref().map(ToString::to_string),
        hooks_text(plan),
        parent_text(submission.parent.as_ref()),
        root_of(txn, submission)?,
        submission.no_cache
    ])?;
    let no = txn.connection.last_insert_rowid();
    let mut insert = txn.connection.prepare_cached(sql!("needs_write"))?;
    for (set, needs) in plan.needs_sets.iter().enumerate() {
        insert.execute(params![no, set as i64, needs.needs.len() as i64, 0, 0, 0])?;
    }
    Ok(None)
}

/// The run that the owner of a local run drives, if that is another one.
fn root_of(txn: &Txn<'_>, submission: &Submission) -> Done<Option<i64>> {
    let parent = submission.parent.as_ref().filter(|_| !submission.is_shared);
    parent.map(|parent| Ok(-txn.head(parent.run)?.head.own_class)).transpose()
}

fn placed(txn: &Txn<'_>, submission: &Submission) -> Done<Placed> {
    let workflow = &submission.plan.workflow;
    Ok(match (submission.is_shared, submission.placement()) {
        (false, _) => Placed::Local,
        (true, Placement::Spread | Placement::Local) => Placed::Spread,
        (true, Placement::Pinned) => {
            let class = Class::of_all(&workflow.steps);
            let class = class.map_err(|error| Error::NotRunnable { why: error.to_string() })?;
            Placed::Pinned { class: classes::number(txn, &class)? }
        }
    })
}

/// Limits are objects of the store. A document may declare one, and then it says the same as
/// everybody; what a step names must be there.
fn declare_limits(txn: &Txn<'_>, submission: &Submission) -> Done<()> {
    let workflow = &submission.plan.workflow;
    for (name, declared) in &workflow.limits {
        match limit(txn, name)? {
            Some(stored) => Limit::agree(name, *declared, stored)
                .map_err(|error| Error::NotRunnable { why: error.to_string() })?,
            None => {
                let made = params![name, declared.to_string(), submission.by, txn.now.0];
                txn.connection.prepare_cached(sql!("limit_set"))?.execute(made)?;
            }
        }
    }
    let mut named: Vec<&str> =
        workflow.steps.iter().flat_map(|step| &step.demands().limits).map(String::as_str).collect();
    named.sort_unstable();
    named.dedup();
    for name in named {
        if limit(txn, name)?.is_none() {
            return Err(Error::NoSuchLimit { name: name.to_owned() }.into());
        }
    }
    Ok(())
}

/// Adds the tasks of some positions.
pub(in crate::sqlite) fn add(txn: &Txn<'_>, run: RunId, positions: std::ops::Range<Position>) -> Done<()> {
    let head = txn.head(run)?;
    let mut insert = txn.connection.prepare_cached(sql!("submit_task"))?;
    let mut classes = Classes::new(&head);
    for position in positions {
        // What waits for nothing goes straight into the line for a place; `end` opens it from
        // there.
        let is_ready = head.head.plan.is_ready(position);
        let priority = head.head.plan.step(position).demands().priority;
        let (gate, rank) =
            if is_ready { (Gate::MaxParallel, Some(rank(txn.now, priority))) } else { (Gate::Needs, None) };
        let class = classes.of(txn, &head, position)?;
        insert.execute(params![head.no, position, class, gate.as_str(), rank])?;
    }
    Ok(())
}

/// The classes of a run's tasks. Most of its steps are of the same.
enum Classes {
    /// It belongs to one node, whatever its steps ask for: its owner, or one that can run all of
    /// it.
    One(i64),
    Several(HashMap<Class, i64>),
}

impl Classes {
    fn new(head: &Head) -> Self {
        match head.head.placed {
            Placed::Local => Self::One(head.head.own_class),
            Placed::Pinned { class } => Self::One(class),
            Placed::Spread => Self::Several(HashMap::new()),
        }
    }

    fn of(&mut self, txn: &Txn<'_>, head: &Head, position: Position) -> Done<i64> {
        match self {
            Self::One(class) => Ok(*class),
            Self::Several(known) => {
                let class = head.head.plan.class_of(position);
                if let Some(no) = known.get(&class) {
                    return Ok(*no);
                }
                let no = classes::number(txn, &class)?;
                known.insert(class, no);
                Ok(no)
            }
        }
    }
}

/// Makes the run visible, and starts it, unless it has to wait for others of its workflow.
pub(in crate::sqlite) fn end(txn: &Txn<'_>, run: RunId, submission: &Submission) -> Done<()> {
    let name = &submission.plan.workflow.name;
    let admission = admission(txn, run, submission)?;
    if let Admission::Refuse { why } = admission {
        return Err(Error::NotRunnable { why }.into());
    }
    txn.connection.prepare_cached(sql!("submit_end"))?.execute(params![run.to_string(), txn.now.0])?;
    let pause = paused(txn, name)?;
    on_run(txn, run, |keeper| {
        if submission.is_shared {
            keeper.run.owner = None;
        }
        keeper.submitted(submission, pause);
        admit(keeper, &admission)
    })?;
    if let Some(parent) = &submission.parent {
        children::began(txn, parent, run)?;
    }
    if let Some(deed) = submission.deed(run) {
        access::record(txn, &deed)?;
    }
    replace(txn, admission)
}

/// The moment has come for which a run was submitted.
pub(in crate::sqlite) fn come_due(txn: &Txn<'_>, run: RunId) -> Done<()> {
    let head = txn.head(run)?;
    let workflow = &head.head.plan.workflow;
    let runs = runs_of(txn, &workflow.name)?;
    let runs = Runs { running: &runs.running, queued: &runs.queued };
    let admission = max_runs::admit_due(&workflow.name, run, workflow.max_runs, runs);
    let is_new = on_run(txn, run, |keeper| {
        let is_new = keeper.come_due();
        if is_new {
            admit(keeper, &admission)?;
        }
        Ok(is_new)
    })?;
    if is_new { replace(txn, admission) } else { Ok(()) }
}

fn admit(keeper: &mut Keeper<Stored<'_, '_>>, admission: &Admission) -> Done<()> {
    match admission {
        Admission::Start => keeper.begin(),
        Admission::Skip { reason } => keeper.cancel_because("max_runs", reason.clone()),
        Admission::Queue { .. } | Admission::Replace { .. } | Admission::Refuse { .. } => Ok(()),
    }
}

/// Cancels the runs in whose place another one is to start.
fn replace(txn: &Txn<'_>, admission: Admission) -> Done<()> {
    if let Admission::Replace { which, reason } = admission {
        // Those that wait come first: they would start in the place of one that ends, to be
        // canceled then.
        for other in which.into_iter().rev() {
            on_run(txn, other, |keeper| keeper.cancel_because("max_runs", reason.clone()))?;
        }
    }
    Ok(())
}

/// Whether there is room for the run beside others of its workflow.
pub(in crate::sqlite) fn admission(txn: &Txn<'_>, run: RunId, submission: &Submission) -> Done<Admission> {
    let workflow = &submission.plan.workflow;
    // One for later is admitted when its moment has come.
    if submission.waits_until(txn.now).is_some() {
        return Ok(Admission::Queue { ahead: 0 });
    }
    if workflow.max_runs.is_none() {
        return Ok(Admission::Start);
    }
    let runs = runs_of(txn, &workflow.name)?;
    let runs = Runs { running: &runs.running, queued: &runs.queued };
    Ok(max_runs::admit(&workflow.name, run, workflow.max_runs, runs))
}

/// The pause of a workflow, which holds for new runs too.
pub(in crate::sqlite) fn paused(txn: &Txn<'_>, workflow: &str) -> Done<Option<Pause>> {
    let mut statement = txn.connection.prepare_cached(sql!("workflow_paused"))?;
    let pause = statement.query_row([workflow], |row| {
        Ok(Pause { scope: PauseScope::Workflow, by: row.get(0)?, since: Millis(row.get(1)?) })
    });
    Ok(pause.optional()?)
}

/// What was submitted with a key before. Of a large one that is under way nobody knows yet whether
/// it will be there.
fn known(txn: &Txn<'_>, key: &str, submission: &Submission) -> Done<Option<RunId>> {
    let mut statement = txn.connection.prepare_cached(sql!("run_by_key"))?;
    let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    let known: Option<(String, bool, String, String, String)> =
        statement.query_row([key], columns).optional()?;
    match known {
        None => gone(txn, key),
        Some((id, true, workflow, version, params)) => {
            let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
            submission.check_known(&KeyedRun::new(run, workflow, version, &params)?)?;
            Ok(Some(run))
        }
        Some((_, false, ..)) => Err(Error::UnderWay { key: key.to_owned() }.into()),
    }
}

/// One that was removed since. Nothing is started in its place.
fn gone(txn: &Txn<'_>, key: &str) -> Done<Option<RunId>> {
    let mut statement = txn.connection.prepare_cached(sql!("used_key"))?;
    let id: Option<String> = statement.query_row([key], |row| row.get(0)).optional()?;
    id.map(|id| RunId::parse(&id).ok_or_else(|| unreadable("run id", &id).into())).transpose()
}

/// Removes a run that nobody has seen.
pub(in crate::sqlite) fn discard(txn: &Txn<'_>, run: RunId) -> Done<()> {
    let no = txn.head(run)?.no;
    for delete in [sql!("discard_run_tasks"), sql!("discard_run_needs_sets"), sql!("discard_run")] {
        txn.connection.prepare_cached(delete)?.execute([no])?;
    }
    txn.shelf.forget();
    Ok(())
}
