//! `submit`: a run with all of its tasks, in one transaction. Everything of it is known before it is written, so that the
//! gate keeper needs no database, and each row is written once, as it is after the first gates were opened.

use std::sync::Arc;

use laneway_core::gate::{Counts, Gate};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;

use crate::error::Error;
use crate::fence::ClaimRef;
use crate::keeper::{Changes, Facts, Failures, Keeper, Rows, RunRow, TaskRow};
use crate::model::{RunHead, Submission};
use crate::postgres::fault::{Done, Failure};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;
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
) -> Done<()> {
    let plan = &submission.plan;
    if let Some(group) = plan.workflow.groups.first() {
        let why = format!("`groups` can be planned but not run yet (group `{}`)", group.name);
        return Err(Error::NotRunnable { why }.into());
    }
    if submission.max_parallel == 0 {
        return Err(Error::NotRunnable { why: "`max_parallel` must be at least 1".to_owned() }.into());
    }
    let (owner, now) = (submission.owner.to_string(), terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("submit_begin", TEXT, INT8), vec![&owner, &now]);
    let answers = flight.land().await?;
    let found = answers.first().and_then(|rows| rows.first());
    let found = found.ok_or(Error::SessionOver { session: submission.owner })?;
    let (node, now, no) = (row::text(found, 0)?, Millis(found.try_get(1)?), found.try_get(2)?);
    let changes = begin(run, submission, node.into(), now)?;
    write(link, no, now, (run, submission), &changes).await?;
    shelf.plans.keep(plan);
    Ok(())
}

/// The run as it is after its first gates were opened.
fn begin(run: RunId, submission: &Submission, node: Arc<str>, now: Millis) -> Done<Changes> {
    let plan = Arc::clone(&submission.plan);
    let head = RunHead {
        run,
        plan: Arc::clone(&plan),
        dir: submission.dir.clone(),
        params: submission.params.clone(),
        max_parallel: submission.max_parallel,
    };
    let row = RunRow {
        status: RunStatus::Queued,
        reason: None,
        closing: None,
        owner: Some(submission.owner),
        started_at: None,
        finished_at: None,
        deadline_at: None,
        last_event: 0,
        unsettled: u32::try_from(plan.workflow.steps.len()).unwrap_or(u32::MAX),
    };
    let facts = Fresh { plan, owner: (submission.owner, node), now };
    let mut keeper = Keeper::new(facts, Arc::new(head), row, now);
    keeper.begin(submission)?;
    keeper.conclude()
}

async fn write(
    link: &Link,
    no: i64,
    now: Millis,
    submitted: (RunId, &Submission),
    changes: &Changes,
) -> Done<()> {
    let (run, submission) = submitted;
    let (plan, made) = (&submission.plan, &changes.run);
    let (id, tail, params) =
        (run.to_string(), run.tail(), serde_json::Value::Object(submission.params.clone()).to_string());
    let (name, version) = (&plan.workflow.name, plan.version.as_str());
    let (status, max_parallel) = (made.status.as_str(), i64::from(submission.max_parallel));
    let owner = made.owner.map(|owner| owner.to_string());
    let millis = |at: Option<Millis>| at.map(|at| at.0);
    let times = (millis(made.started_at), millis(made.finished_at), millis(made.deadline_at));
    let (last_event, unsettled) = (signed(made.last_event), i64::from(made.unsettled));
    let mut tasks = Tasks::fresh(plan, now);
    tasks.lay_over(changes);
    let tasks = tasks.in_chunks();
    let mut columns = Columns::default();
    let facts = Fresh { plan: Arc::clone(plan), owner: (submission.owner, Arc::from("")), now };
    for set in 0..plan.needs_sets.len() as u32 {
        let counted = changes.sets.iter().find(|(changed, _)| *changed == set);
        columns.add_set(no, set, counted.map_or_else(|| facts.counts(set), |(_, counts)| *counts));
    }
    columns.add_events(no, now, changes);
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
        ],
    );
    for tasks in &tasks {
        flight.ask(
            sql!(
                "submit_task",
                INT8,
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
    flight.commit().await?;
    Ok(())
}

/// The tasks of a new run, as columns: what can differ between them.
#[derive(Debug, Default)]
struct Tasks {
    position: Vec<i64>,
    status: Vec<&'static str>,
    gate: Vec<Option<&'static str>>,
    rank: Vec<Option<i64>>,
    reason: Vec<Option<&'static str>>,
    detail: Vec<Option<String>>,
    finished_at: Vec<Option<i64>>,
}

impl Tasks {
    fn fresh(plan: &Plan, now: Millis) -> Self {
        let mut tasks = Self::default();
        for position in 0..plan.workflow.steps.len() as Position {
            tasks.add(position, &fresh(plan, position, now));
        }
        tasks
    }

    fn add(&mut self, position: Position, row: &TaskRow) {
        self.position.push(i64::from(position));
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
}

/// A task of which nobody has said anything. What waits for nothing goes straight into the line for a place.
fn fresh(plan: &Plan, position: Position, now: Millis) -> TaskRow {
    let is_ready = plan.needs_set_of[position as usize].is_none() && plan.step(position).condition.is_none();
    let (gate, rank) = if is_ready { (Gate::MaxParallel, Some(now.0)) } else { (Gate::Needs, None) };
    TaskRow {
        status: TaskStatus::Pending,
        gate: Some(gate),
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

impl Fresh {
    fn rows(&self) -> impl Iterator<Item = (Position, TaskRow)> {
        let positions = 0..self.plan.workflow.steps.len() as Position;
        positions.map(|position| (position, fresh(&self.plan, position, self.now)))
    }

    fn counts(&self, set: u32) -> Counts {
        let needs = self.plan.needs_sets[set as usize].needs.len();
        Counts { unsettled: u32::try_from(needs).unwrap_or(u32::MAX), ..Counts::default() }
    }
}

impl Facts for Fresh {
    type Error = Failure;

    fn task(&mut self, position: Position) -> Done<TaskRow> {
        Ok(fresh(&self.plan, position, self.now))
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
        Ok(self.rows().filter(|(_, row)| row.is_in_line()).take(limit).collect())
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

    fn outcome_of(&mut self, _: &ClaimRef) -> Done<Option<String>> {
        Ok(None)
    }
}
