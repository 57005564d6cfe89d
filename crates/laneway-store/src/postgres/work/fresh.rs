//! Runs of which nothing is stored yet: everything about one follows from its plan, so that the
//! gate keeper is answered without a database, and all that it made of them is written as columns,
//! however many there are.

use std::collections::HashSet;
use std::sync::Arc;

use laneway_core::event::Closing;
use laneway_core::gate::{Counts, Gate, Tat};
use laneway_core::id::SessionId;
use laneway_core::limit::Limit;
use laneway_core::plan::{Plan, Position};
use laneway_core::rank::rank;
use laneway_core::reason::Reason;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;

use crate::child::parent_text;
use crate::fence::ClaimRef;
use crate::keeper::{
    Changes, Facts, Failures, Key, LayerOnNode, Outputs, Rows, RunRow, TaskRow, Touch, growth_text,
    levels_text, pauses_text, unreadable, wait_text,
};
use crate::model::{Deed, RunHead, Submission};
use crate::postgres::fault::{Done, Failure};
use crate::postgres::link::{Flight, Value, sql};
use crate::postgres::save::{Columns, signed};
use crate::postgres::shelf::Shelf;
use crate::trigger::hooks_text;

/// Rows in one statement: some tenths of a second.
const CHUNK: usize = 10_000;

/// A run that is not there yet.
pub(super) struct New<'s> {
    pub(super) no: i64,
    /// The run that its owner drives, if it is local and another one.
    pub(super) root_no: Option<i64>,
    pub(super) now: Millis,
    pub(super) head: Arc<RunHead>,
    pub(super) submission: &'s Submission,
    pub(super) classes: Vec<i64>,
    /// Classes that somebody takes, as far as that is known.
    pub(super) taken: Arc<HashSet<i64>>,
}

impl New<'_> {
    pub(super) fn facts(&self) -> Fresh {
        let owner = (self.submission.session, Arc::from(self.head.submitted_from.as_str()));
        Fresh {
            plan: Arc::clone(&self.head.plan),
            owner,
            now: self.now,
            classes: self.classes.clone(),
            taken: Arc::clone(&self.taken),
        }
    }

    pub(super) fn row(&self) -> RunRow {
        RunRow {
            status: RunStatus::Queued,
            reason: None,
            closing: None,
            owner: (!self.submission.is_shared).then_some(self.submission.session),
            not_before: None,
            started_at: None,
            finished_at: None,
            deadline_at: None,
            pauses: Vec::new(),
            levels: None,
            last_event: 0,
            unsettled: u32::try_from(self.classes.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Everything of new runs, as columns: each kind of row is one statement, however many runs there
/// are.
#[derive(Debug, Default)]
pub(super) struct NewRows {
    documents: Documents,
    runs: NewRuns,
    tasks: Vec<Tasks>,
    columns: Columns,
    deeds: Deeds,
}

/// What the audit log says of them.
#[derive(Debug, Default)]
struct Deeds {
    at: Vec<i64>,
    by: Vec<String>,
    act: Vec<String>,
    what: Vec<String>,
    origin: Vec<String>,
}

#[derive(Debug, Default)]
struct Documents {
    version: Vec<String>,
    name: Vec<String>,
    text: Vec<String>,
    at: Vec<i64>,
}

#[derive(Debug, Default)]
struct NewRuns {
    no: Vec<i64>,
    id: Vec<String>,
    tail: Vec<String>,
    workflow: Vec<String>,
    version: Vec<String>,
    dir: Vec<String>,
    params: Vec<String>,
    max_parallel: Vec<i64>,
    status: Vec<&'static str>,
    reason: Vec<Option<String>>,
    owner: Vec<Option<String>>,
    by: Vec<String>,
    at: Vec<i64>,
    started_at: Vec<Option<i64>>,
    finished_at: Vec<Option<i64>>,
    deadline_at: Vec<Option<i64>>,
    last_event: Vec<i64>,
    unsettled: Vec<i64>,
    closing: Vec<Option<&'static str>>,
    placement: Vec<&'static str>,
    submitted_from: Vec<String>,
    key: Vec<Option<String>>,
    pauses: Vec<Option<String>>,
    class: Vec<Option<i64>>,
    bundle: Vec<Option<String>>,
    hooks: Vec<Option<String>>,
    levels: Vec<Option<String>>,
    parent: Vec<Option<String>>,
    root_no: Vec<Option<i64>>,
    no_cache: Vec<bool>,
    not_before: Vec<Option<i64>>,
}

impl NewRows {
    pub(super) fn add(&mut self, shelf: &Shelf, new: &New<'_>, changes: &Changes) {
        let (no, now, submission) = (new.no, new.now, new.submission);
        let plan = &submission.plan;
        let is_there = |version: &str| self.documents.version.iter().any(|added| added == version);
        if !shelf.is_stored(&plan.version) && !is_there(plan.version.as_str()) {
            self.documents.version.push(plan.version.as_str().to_owned());
            self.documents.name.push(plan.workflow.name.clone());
            self.documents.text.push(submission.document.clone());
            self.documents.at.push(now.0);
        }
        self.runs.add(new, &changes.run);
        let facts = new.facts();
        let place = match self.tasks.last() {
            Some(tasks) if tasks.position.len() < CHUNK => tasks.position.len(),
            Some(_) | None => {
                self.tasks.push(Tasks::default());
                0
            }
        };
        if let Some(tasks) = self.tasks.last_mut() {
            facts.rows().for_each(|(position, row)| tasks.add(no, position, &row));
            tasks.lay_over(place, changes);
        }
        for set in 0..plan.needs_sets.len() as u32 {
            let counted = changes.sets.iter().find(|(changed, _)| *changed == set);
            self.columns.add_set(no, set, counted.map_or_else(|| facts.counts(set), |(_, counts)| *counts));
        }
        // Those of items: lists that were known at once.
        for (set, counts) in changes.sets.iter().filter(|(set, _)| *set as usize >= plan.needs_sets.len()) {
            self.columns.add_set(no, *set, *counts);
        }
        self.columns.add_growth(no, changes);
        self.columns.add_wanted(no, changes);
        self.columns.add_events(no, now, changes);
        self.columns.add_keys(no, changes);
        self.columns.add_end(no, changes);
        if let Some(Deed { by, act, what, origin }) = submission.deed(new.head.run) {
            let deeds = &mut self.deeds;
            deeds.at.push(now.0);
            deeds.by.push(by);
            deeds.act.push(act);
            deeds.what.push(what);
            deeds.origin.push(origin);
        }
    }

    /// No chunk is too large for one statement.
    pub(super) fn cut(mut self) -> Self {
        self.tasks = self.tasks.into_iter().flat_map(Tasks::in_chunks).collect();
        self
    }

    pub(super) fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        let (documents, runs) = (&self.documents, &self.runs);
        if !documents.version.is_empty() {
            flight.ask(
                sql!("submit_workflow", TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY),
                vec![&documents.version, &documents.name, &documents.text, &documents.at],
            );
        }
        flight.ask(
            sql!(
                "submit_run",
                INT8_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                INT8_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                INT8_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY,
                INT8_ARRAY,
                BOOL_ARRAY,
                INT8_ARRAY
            ),
            runs.values(),
        );
        for tasks in &self.tasks {
            flight.ask(
                sql!(
                    "submit_task",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY
                ),
                tasks.values(),
            );
        }
        self.columns.say(flight);
        let Deeds { at, by, act, what, origin } = &self.deeds;
        if !at.is_empty() {
            flight.ask(
                sql!("submit_audit", INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY),
                vec![at, by, act, what, origin],
            );
        }
    }
}

impl NewRuns {
    fn add(&mut self, new: &New<'_>, made: &RunRow) {
        let (head, submission) = (&new.head, new.submission);
        let millis = |at: Option<Millis>| at.map(|at| at.0);
        self.no.push(new.no);
        self.id.push(head.run.to_string());
        self.tail.push(head.run.tail());
        self.workflow.push(head.plan.workflow.name.clone());
        self.version.push(head.plan.version.as_str().to_owned());
        self.dir.push(submission.dir.clone());
        self.params.push(serde_json::Value::Object(submission.params.clone()).to_string());
        self.max_parallel.push(i64::from(submission.max_parallel));
        self.status.push(made.status.as_str());
        self.reason.push(made.reason.clone());
        self.owner.push(made.owner.map(|owner| owner.to_string()));
        self.by.push(submission.by.clone());
        self.at.push(new.now.0);
        self.started_at.push(millis(made.started_at));
        self.finished_at.push(millis(made.finished_at));
        self.deadline_at.push(millis(made.deadline_at));
        self.last_event.push(signed(made.last_event));
        self.unsettled.push(i64::from(made.unsettled));
        self.closing.push(made.closing.map(Closing::as_str));
        self.placement.push(head.placed.as_str());
        self.class.push(head.placed.class());
        self.submitted_from.push(head.submitted_from.clone());
        self.key.push(submission.key.clone());
        self.pauses.push(pauses_text(&made.pauses));
        self.bundle.push(head.bundle.as_ref().map(ToString::to_string));
        self.hooks.push(hooks_text(&head.plan));
        self.levels.push(levels_text(made.levels.as_ref()));
        self.parent.push(parent_text(head.parent.as_ref()));
        self.root_no.push(new.root_no);
        self.no_cache.push(head.no_cache);
        self.not_before.push(millis(made.not_before));
    }

    fn values(&self) -> Vec<&Value<'_>> {
        vec![
            &self.no,
            &self.id,
            &self.tail,
            &self.workflow,
            &self.version,
            &self.dir,
            &self.params,
            &self.max_parallel,
            &self.status,
            &self.reason,
            &self.owner,
            &self.by,
            &self.at,
            &self.started_at,
            &self.finished_at,
            &self.deadline_at,
            &self.last_event,
            &self.unsettled,
            &self.closing,
            &self.placement,
            &self.submitted_from,
            &self.key,
            &self.pauses,
            &self.class,
            &self.bundle,
            &self.hooks,
            &self.levels,
            &self.parent,
            &self.root_no,
            &self.no_cache,
            &self.not_before,
        ]
    }
}

/// The tasks of new runs, as columns: what can differ between them.
#[derive(Debug, Default)]
struct Tasks {
    run: Vec<i64>,
    position: Vec<i64>,
    class: Vec<i64>,
    status: Vec<&'static str>,
    gate: Vec<Option<&'static str>>,
    rank: Vec<Option<i64>>,
    reason: Vec<Option<&'static str>>,
    detail: Vec<Option<String>>,
    finished_at: Vec<Option<i64>>,
    started_at: Vec<Option<i64>>,
    took_ms: Vec<Option<i64>>,
    wait: Vec<Option<String>>,
    due_at: Vec<Option<i64>>,
    growth: Vec<Option<String>>,
}

impl Tasks {
    fn add(&mut self, no: i64, position: Position, row: &TaskRow) {
        self.run.push(no);
        self.position.push(i64::from(position));
        self.class.push(row.class);
        self.status.push(row.status.as_str());
        self.gate.push(row.gate.map(Gate::as_str));
        self.rank.push(row.rank);
        self.reason.push(row.reason.map(Reason::as_str));
        self.detail.push(row.detail.clone());
        self.finished_at.push(row.finished_at.map(|at| at.0));
        self.started_at.push(None);
        self.took_ms.push(None);
        self.wait.push(None);
        self.due_at.push(None);
        self.growth.push(None);
    }

    /// What the gate keeper made of some of a run, whose tasks begin at a place.
    fn lay_over(&mut self, first: usize, changes: &Changes) {
        for task in changes.tasks.iter().filter(|task| task.touch != Touch::New) {
            let (place, row) = (first + task.position as usize, &task.row);
            self.status[place] = row.status.as_str();
            self.gate[place] = row.gate.map(Gate::as_str);
            self.rank[place] = row.rank;
            self.reason[place] = row.reason.map(Reason::as_str);
            self.detail[place].clone_from(&row.detail);
            self.finished_at[place] = row.finished_at.map(|at| at.0);
            // What waits is parked in the moment in which its run begins, and may be over then.
            self.started_at[place] = row.started_at.map(|at| at.0);
            self.took_ms[place] = row.took_ms.map(signed);
            self.wait[place] = wait_text(row.wait.as_deref());
            self.due_at[place] = row.due_at().map(|at| at.0);
            self.growth[place] = growth_text(row.growth.as_deref());
        }
    }

    fn in_chunks(mut self) -> Vec<Self> {
        let mut chunks = Vec::new();
        while self.position.len() > CHUNK {
            let rest = Self {
                run: self.run.split_off(CHUNK),
                position: self.position.split_off(CHUNK),
                class: self.class.split_off(CHUNK),
                status: self.status.split_off(CHUNK),
                gate: self.gate.split_off(CHUNK),
                rank: self.rank.split_off(CHUNK),
                reason: self.reason.split_off(CHUNK),
                detail: self.detail.split_off(CHUNK),
                finished_at: self.finished_at.split_off(CHUNK),
                started_at: self.started_at.split_off(CHUNK),
                took_ms: self.took_ms.split_off(CHUNK),
                wait: self.wait.split_off(CHUNK),
                due_at: self.due_at.split_off(CHUNK),
                growth: self.growth.split_off(CHUNK),
            };
            chunks.push(std::mem::replace(&mut self, rest));
        }
        chunks.push(self);
        chunks
    }

    fn values(&self) -> Vec<&Value<'_>> {
        vec![
            &self.run,
            &self.position,
            &self.class,
            &self.status,
            &self.gate,
            &self.rank,
            &self.reason,
            &self.detail,
            &self.finished_at,
            &self.started_at,
            &self.took_ms,
            &self.wait,
            &self.due_at,
            &self.growth,
        ]
    }
}

/// A run of which nothing is stored yet: everything about it follows from its plan.
pub(super) struct Fresh {
    plan: Arc<Plan>,
    owner: (SessionId, Arc<str>),
    now: Millis,
    /// By position.
    classes: Vec<i64>,
    /// Of these, those that somebody takes.
    taken: Arc<HashSet<i64>>,
}

impl Fresh {
    /// A task of which nobody has said anything. What waits for nothing goes straight into the line
    /// for a place.
    fn row(&self, position: Position) -> TaskRow {
        let (plan, place) = (&self.plan, position as usize);
        let priority = plan.step(position).demands().priority;
        let (gate, rank) = if plan.is_ready(position) {
            (Gate::MaxParallel, Some(rank(self.now, priority)))
        } else {
            (Gate::Needs, None)
        };
        TaskRow { gate: Some(gate), rank, ..TaskRow::new(self.classes[place]) }
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

    fn fence(&mut self, _: &Key) -> Done<Option<Tat>> {
        Ok(None)
    }

    fn is_awaited(&mut self, _: &str, _: Position) -> Done<bool> {
        Ok(false)
    }

    fn has_before(&mut self, _: &str, _: i64, _: Position) -> Done<bool> {
        Ok(false)
    }

    fn has_node(&mut self, class: i64) -> Done<bool> {
        Ok(self.taken.contains(&class))
    }

    // Nothing of a new run has been executed.
    fn takes(&mut self, _: SessionId, _: i64) -> Done<bool> {
        Ok(false)
    }

    fn class_of(&mut self, position: Position) -> Done<i64> {
        Ok(self.row(position).class)
    }

    fn layers_on_nodes(&mut self) -> Done<Vec<LayerOnNode>> {
        Ok(Vec::new())
    }

    fn outcome_of(&mut self, _: &ClaimRef) -> Done<Option<String>> {
        Ok(None)
    }

    // Nothing of it has been stored, so that there are no items but those that the keeper has just
    // made.
    fn batch(&mut self, _: Position, no: u32) -> Done<String> {
        Err(unreadable("batch of items", &no.to_string()).into())
    }

    fn items_live(&mut self, _: Position) -> Done<u32> {
        Ok(0)
    }

    fn items_line(&mut self, _: Position, _: usize) -> Done<Rows> {
        Ok(Vec::new())
    }

    fn outputs(&mut self, _: Position) -> Done<Outputs> {
        Ok(Vec::new())
    }
}
