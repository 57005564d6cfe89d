//! `submit`: a run with all of its tasks, in one transaction. Everything of it is known before it is written, so that the
//! gate keeper needs no database, and each row is written once, as it is after the first gates were opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::class::Class;
use laneway_core::definition::Placement;
use laneway_core::event::{Closing, PauseScope};
use laneway_core::gate::{Counts, Gate, Tat};
use laneway_core::id::{RunId, SessionId};
use laneway_core::key;
use laneway_core::limit::Limit;
use laneway_core::max_runs::{self, Admission, Runs};
use laneway_core::plan::{Plan, Position};
use laneway_core::rank::rank;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;

use crate::error::Error;
use crate::fence::ClaimRef;
use crate::keeper::{Changes, Facts, Failures, Keeper, Key, Pause, Rows, RunRow, TaskRow, pauses_text};
use crate::model::{Placed, RunHead, Submission};
use crate::postgres::classes;
use crate::postgres::facts::Missing;
use crate::postgres::fault::{Done, Failure};
use crate::postgres::follow::{job, runs_of, work};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::save::{Columns, signed};
use crate::postgres::shelf::Shelf;

/// Rows in one statement: some tenths of a second.
const CHUNK: usize = 10_000;

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
    let (session, now) = (submission.session.to_string(), terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("submit_begin", TEXT, INT8), vec![&session, &now]);
    flight.ask(sql!("workflow_paused", TEXT), vec![&plan.workflow.name]);
    if let Some(key) = &submission.key {
        flight.ask(sql!("run_by_key", TEXT), vec![key]);
    }
    let answers = flight.land().await?;
    if let Some(known) = answers.get(2).and_then(|rows| rows.first()) {
        link.roll_back().await;
        return row::word(known, 0, "run id", RunId::parse);
    }
    let found = answers.first().and_then(|rows| rows.first());
    let found = found.ok_or(Error::SessionOver { session: submission.session })?;
    let (now, no) = (Millis(found.try_get(1)?), found.try_get(2)?);
    let pause = match answers.get(1).and_then(|rows| rows.first()) {
        Some(found) => {
            let (by, since) = (row::text(found, 0)?, Millis(found.try_get(1)?));
            Some(Pause { scope: PauseScope::Workflow, by, since })
        }
        None => None,
    };
    declare_limits(link, submission, now).await?;
    let admission = admission(link, run, submission).await?;
    if let Admission::Refuse { why } = admission {
        return Err(Error::NotRunnable { why }.into());
    }
    let (placed, classes) = classes_of(link, no, submission).await?;
    let head = RunHead {
        run,
        plan: Arc::clone(plan),
        dir: submission.dir.clone(),
        params: submission.params.clone(),
        max_parallel: submission.max_parallel,
        submitted_from: row::text(found, 0)?,
        keys,
        placed,
        own_class: -no,
    };
    shelf.plans.keep(plan);
    let new = New { no, now, head: Arc::new(head), submission, classes };
    // Of a run that is nobody's but its owner's, everything is known before it is written.
    let is_known = !submission.is_shared && new.head.keys.is_empty();
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
    write(link, &new, &keeper.conclude()?).await?;
    if is_to_begin && !is_known {
        begin(shelf, link, terms, run).await?;
    }
    if let Admission::Replace { which, reason } = admission {
        for other in which {
            replace(shelf, link, terms, other, &reason).await?;
        }
    }
    link.flight().commit().await?;
    Ok(run)
}

/// A run that others are concerned with: its keys may be held, and a node has to be there.
async fn begin(shelf: &Shelf, link: &Link, terms: Terms, run: RunId) -> Done<()> {
    let head = shelf.head(link, run).await?;
    let room = head.head.max_parallel as usize;
    let mut seed = Missing { live: true, line: room.saturating_add(8), ..Missing::default() };
    head.head.keys.keys().take(64).for_each(|position| seed.add_keys(&head.head, *position));
    let within = Terms { is_begun: true, ..terms };
    let (_, columns) =
        work(shelf, link, within, vec![Job { head, seed }], |_, keeper| keeper.begin()).await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
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

/// Limits are objects of the store. A document may declare one, and then it says the same as everybody; what a step
/// names must be there.
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
    for found in link.rows(sql!("limit", TEXT_ARRAY), &[&names]).await? {
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

/// Whether there is room for the run beside others of its workflow.
async fn admission(link: &Link, run: RunId, submission: &Submission) -> Done<Admission> {
    let workflow = &submission.plan.workflow;
    if workflow.max_runs.is_none() {
        return Ok(Admission::Start);
    }
    let runs = runs_of(link, &workflow.name).await?;
    let runs = Runs { running: &runs.running, queued: &runs.queued };
    Ok(max_runs::admit(&workflow.name, run, workflow.max_runs, runs))
}

/// Who may run the tasks, and the class of each, by position. A run that is local to its owner is a class of its own.
async fn classes_of(link: &Link, no: i64, submission: &Submission) -> Done<(Placed, Vec<i64>)> {
    let steps = &submission.plan.workflow.steps;
    match (submission.is_shared, submission.plan.workflow.placement) {
        (false, _) => return Ok((Placed::Local, vec![-no; steps.len()])),
        (true, Placement::Pinned) => {
            let class =
                Class::of_all(steps).map_err(|error| Error::NotRunnable { why: error.to_string() })?;
            let numbers = classes::numbers(link, std::slice::from_ref(&class)).await?;
            let number = numbers.get(&class).copied();
            let class = number.ok_or_else(|| row::unreadable("class", &class.to_string()))?;
            return Ok((Placed::Pinned { class }, vec![class; steps.len()]));
        }
        (true, Placement::Spread | Placement::Local) => {}
    }
    let of_steps: Vec<Class> = steps.iter().map(|step| Class::of(step)).collect();
    let mut distinct: Vec<Class> = Vec::new();
    for class in &of_steps {
        if !distinct.contains(class) {
            distinct.push(class.clone());
        }
    }
    let numbers = classes::numbers(link, &distinct).await?;
    let number = |class: &Class| {
        let number = numbers.get(class).copied();
        number.ok_or_else(|| row::unreadable("class", &class.to_string()).into())
    };
    Ok((Placed::Spread, of_steps.iter().map(number).collect::<Done<_>>()?))
}

/// A run that is not there yet.
struct New<'s> {
    no: i64,
    now: Millis,
    head: Arc<RunHead>,
    submission: &'s Submission,
    classes: Vec<i64>,
}

impl New<'_> {
    fn facts(&self) -> Fresh {
        let owner = (self.submission.session, Arc::from(self.head.submitted_from.as_str()));
        Fresh { plan: Arc::clone(&self.head.plan), owner, now: self.now, classes: self.classes.clone() }
    }

    fn row(&self) -> RunRow {
        RunRow {
            status: RunStatus::Queued,
            reason: None,
            closing: None,
            owner: (!self.submission.is_shared).then_some(self.submission.session),
            started_at: None,
            finished_at: None,
            deadline_at: None,
            pauses: Vec::new(),
            last_event: 0,
            unsettled: u32::try_from(self.classes.len()).unwrap_or(u32::MAX),
        }
    }
}

async fn write(link: &Link, new: &New<'_>, changes: &Changes) -> Done<()> {
    let (no, now, head, submission) = (new.no, new.now, &new.head, new.submission);
    let (plan, made) = (&submission.plan, &changes.run);
    let (id, tail) = (head.run.to_string(), head.run.tail());
    let params = serde_json::Value::Object(submission.params.clone()).to_string();
    let (name, version) = (&plan.workflow.name, plan.version.as_str());
    let (status, max_parallel) = (made.status.as_str(), i64::from(submission.max_parallel));
    let owner = made.owner.map(|owner| owner.to_string());
    let millis = |at: Option<Millis>| at.map(|at| at.0);
    let times = (millis(made.started_at), millis(made.finished_at), millis(made.deadline_at));
    let (last_event, unsettled) = (signed(made.last_event), i64::from(made.unsettled));
    let (placement, class) = (head.placed.as_str(), head.placed.class());
    let (closing, pauses) = (made.closing.map(Closing::as_str), pauses_text(&made.pauses));
    let facts = new.facts();
    let mut tasks = Tasks::fresh(&facts);
    tasks.lay_over(changes);
    let tasks = tasks.in_chunks();
    let mut columns = Columns::default();
    for set in 0..plan.needs_sets.len() as u32 {
        let counted = changes.sets.iter().find(|(changed, _)| *changed == set);
        columns.add_set(no, set, counted.map_or_else(|| facts.counts(set), |(_, counts)| *counts));
    }
    columns.add_events(no, now, changes);
    columns.add_keys(no, changes);
    let mut flight = link.flight();
    flight.ask(
        sql!("submit_workflow", TEXT, TEXT, TEXT, INT8),
        vec![&version, name, &submission.document, &now.0],
    );
    flight.ask(
        sql!(
            "submit_run",
            INT8,
            TEXT,
            TEXT,
            TEXT,
            TEXT,
            TEXT,
            TEXT,
            INT8,
            TEXT,
            TEXT,
            TEXT,
            TEXT,
            INT8,
            INT8,
            INT8,
            INT8,
            INT8,
            INT8,
            TEXT,
            TEXT,
            TEXT,
            TEXT,
            TEXT,
            INT8
        ),
        vec![
            &no,
            &id,
            &tail,
            name,
            &version,
            &submission.dir,
            &params,
            &max_parallel,
            &status,
            &made.reason,
            &owner,
            &submission.by,
            &now.0,
            &times.0,
            &times.1,
            &times.2,
            &last_event,
            &unsettled,
            &closing,
            &placement,
            &head.submitted_from,
            &submission.key,
            &pauses,
            &class,
        ],
    );
    for tasks in &tasks {
        flight.ask(
            sql!(
                "submit_task",
                INT8,
                INT8_ARRAY,
                INT8_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                INT8_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                INT8_ARRAY
            ),
            vec![
                &no,
                &tasks.position,
                &tasks.class,
                &tasks.status,
                &tasks.gate,
                &tasks.rank,
                &tasks.reason,
                &tasks.detail,
                &tasks.finished_at,
            ],
        );
    }
    columns.say(&mut flight);
    flight.land().await?;
    Ok(())
}

/// The tasks of a new run, as columns: what can differ between them.
#[derive(Debug, Default)]
struct Tasks {
    position: Vec<i64>,
    class: Vec<i64>,
    status: Vec<&'static str>,
    gate: Vec<Option<&'static str>>,
    rank: Vec<Option<i64>>,
    reason: Vec<Option<&'static str>>,
    detail: Vec<Option<String>>,
    finished_at: Vec<Option<i64>>,
}

impl Tasks {
    fn fresh(facts: &Fresh) -> Self {
        let mut tasks = Self::default();
        facts.rows().for_each(|(position, row)| tasks.add(position, &row));
        tasks
    }

    fn add(&mut self, position: Position, row: &TaskRow) {
        self.position.push(i64::from(position));
        self.class.push(row.class);
        self.status.push(row.status.as_str());
        self.gate.push(row.gate.map(Gate::as_str));
        self.rank.push(row.rank);
        self.reason.push(row.reason.map(Reason::as_str));
        self.detail.push(row.detail.clone());
        self.finished_at.push(row.finished_at.map(|at| at.0));
    }

    /// What the gate keeper made of some of them.
    fn lay_over(&mut self, changes: &Changes) {
        for task in &changes.tasks {
            let (place, row) = (task.position as usize, &task.row);
            self.status[place] = row.status.as_str();
            self.gate[place] = row.gate.map(Gate::as_str);
            self.rank[place] = row.rank;
            self.reason[place] = row.reason.map(Reason::as_str);
            self.detail[place].clone_from(&row.detail);
            self.finished_at[place] = row.finished_at.map(|at| at.0);
        }
    }

    fn in_chunks(mut self) -> Vec<Self> {
        let mut chunks = Vec::new();
        while self.position.len() > CHUNK {
            let rest = Self {
                position: self.position.split_off(CHUNK),
                class: self.class.split_off(CHUNK),
                status: self.status.split_off(CHUNK),
                gate: self.gate.split_off(CHUNK),
                rank: self.rank.split_off(CHUNK),
                reason: self.reason.split_off(CHUNK),
                detail: self.detail.split_off(CHUNK),
                finished_at: self.finished_at.split_off(CHUNK),
            };
            chunks.push(std::mem::replace(&mut self, rest));
        }
        chunks.push(self);
        chunks
    }
}

/// A run of which nothing is stored yet: everything about it follows from its plan.
struct Fresh {
    plan: Arc<Plan>,
    owner: (SessionId, Arc<str>),
    now: Millis,
    /// By position.
    classes: Vec<i64>,
}

impl Fresh {
    /// A task of which nobody has said anything. What waits for nothing goes straight into the line for a place.
    fn row(&self, position: Position) -> TaskRow {
        let (plan, place) = (&self.plan, position as usize);
        let is_ready = plan.needs_set_of[place].is_none() && plan.step(position).condition.is_none();
        let priority = plan.step(position).demands().priority;
        let (gate, rank) =
            if is_ready { (Gate::MaxParallel, Some(rank(self.now, priority))) } else { (Gate::Needs, None) };
        TaskRow {
            class: self.classes[place],
            status: TaskStatus::Pending,
            gate: Some(gate),
            gate_key: None,
            wake_at: None,
            rank,
            run_at: None,
            attempt: 0,
            retries: 0,
            lost: 0,
            session: None,
            is_ahead: false,
            node: None,
            stop: None,
            reason: None,
            detail: None,
            exit_code: None,
            output: None,
            started_at: None,
            took_ms: None,
            finished_at: None,
        }
    }

    fn rows(&self) -> impl Iterator<Item = (Position, TaskRow)> {
        (0..self.classes.len() as Position).map(|position| (position, self.row(position)))
    }

    fn counts(&self, set: u32) -> Counts {
        let needs = self.plan.needs_sets[set as usize].needs.len();
        Counts { unsettled: u32::try_from(needs).unwrap_or(u32::MAX), ..Counts::default() }
    }
}

impl Facts for Fresh {
    type Error = Failure;

    fn task(&mut self, position: Position) -> Done<TaskRow> {
        Ok(self.row(position))
    }

    fn needs_set(&mut self, set: u32) -> Done<Counts> {
        Ok(self.counts(set))
    }

    fn prepare(&mut self, _: &[Position], _: &[u32]) -> Done<()> {
        Ok(())
    }

    fn live(&mut self) -> Done<u32> {
        Ok(0)
    }

    fn waiting(&mut self, limit: usize) -> Done<Rows> {
        let mut line: Rows = self.rows().filter(|(_, row)| row.is_in_line()).collect();
        line.sort_unstable_by_key(|(position, row)| (row.rank, *position));
        line.truncate(limit);
        Ok(line)
    }

    fn unstarted(&mut self) -> Done<Rows> {
        Ok(self.rows().collect())
    }

    fn running(&mut self) -> Done<Rows> {
        Ok(Vec::new())
    }

    fn all(&mut self) -> Done<Rows> {
        Ok(self.rows().collect())
    }

    fn failures(&mut self) -> Done<Option<Failures>> {
        Ok(None)
    }

    fn node(&mut self, session: SessionId) -> Done<Option<Arc<str>>> {
        Ok((session == self.owner.0).then(|| Arc::clone(&self.owner.1)))
    }

    // A run with keys is not asked here.
    fn holders(&mut self, _: &Key) -> Done<u32> {
        Ok(0)
    }

    fn smaller(&mut self, _: &str, _: &str, _: u32) -> Done<u32> {
        Ok(0)
    }

    fn limit(&mut self, _: &str) -> Done<Option<Limit>> {
        Ok(None)
    }

    fn tat(&mut self, _: &str) -> Done<Option<Tat>> {
        Ok(None)
    }

    fn is_awaited(&mut self, _: &str, _: Position) -> Done<bool> {
        Ok(false)
    }

    fn has_node(&mut self, class: i64) -> Done<bool> {
        Ok(class < 0)
    }

    fn outcome_of(&mut self, _: &ClaimRef) -> Done<Option<String>> {
        Ok(None)
    }
}
