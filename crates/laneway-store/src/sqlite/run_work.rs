//! One run inside one transaction: its rows are handed to the gate keeper as it asks for them, and
//! what it made of them is written in the end. Decides nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use laneway_core::event::Closing;
use laneway_core::gate::{Counts, Gate, Tat};
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::max_runs::{self, Running};
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use rusqlite::{OptionalExtension, Params, Row, params};

use crate::child::ToStop;
use crate::error::Error;
use crate::fence::ClaimRef;
use crate::keeper::{
    Changed, Changes, Facts, Failures, Keeper, Key, KeyChanges, LayerOnNode, Outputs, Record, Rows, RunRow,
    TaskRow, Touch, growth_text, levels_text, pauses_text, read_growth, read_levels, read_pauses, read_wait,
    unreadable, wait_text,
};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Failure, Head, Txn};
use crate::sqlite::work::children;
use crate::sqlite::{classes, layers, quarantine, read};

/// Does something to a run, with everything that follows from it, also for other runs.
pub(super) fn on_run<T>(
    txn: &Txn<'_>,
    run: RunId,
    verb: impl FnOnce(&mut Keeper<Stored<'_, '_>>) -> Done<T>,
) -> Done<T> {
    let (answer, follows) = change(txn, run, verb)?;
    follow(txn, follows)?;
    Ok(answer)
}

/// Does something to a run of which somebody says to hold tasks. `None` if it is gone, or set
/// aside: then nothing of it is held by anybody, and the other runs of the same call go on.
pub(super) fn on_held<T>(
    txn: &Txn<'_>,
    run: RunId,
    verb: impl FnOnce(&mut Keeper<Stored<'_, '_>>) -> Done<T>,
) -> Done<Option<T>> {
    let found = txn.head(run).and_then(|head| Ok((load(txn, &head)?, head)));
    let (row, head) = match found {
        Err(Failure::Refused(Error::NoSuchRun { .. } | Error::SetAside { .. })) => return Ok(None),
        // What cannot be read may be its document, without which nobody comes as far as to look.
        Err(Failure::Refused(Error::Unreadable { .. })) if quarantine::has(txn.connection, run)? => {
            return Ok(None);
        }
        found => found?,
    };
    let (answer, follows) = change_loaded(txn, &head, row, verb)?;
    follow(txn, follows)?;
    Ok(Some(answer))
}

/// Does the same to several runs; what that means for others shows when all of them are done with.
/// What one lets go of would else be taken by another that is about to be changed as well.
pub(super) fn on_each(
    txn: &Txn<'_>,
    runs: Vec<RunId>,
    mut verb: impl FnMut(&mut Keeper<Stored<'_, '_>>) -> Done<bool>,
) -> Done<bool> {
    let (mut follows, mut is_changed) = (Follows::default(), false);
    for run in runs {
        is_changed |= follows.change(txn, run, &mut verb)?;
    }
    follow(txn, follows)?;
    Ok(is_changed)
}

/// What the change of one run means for others.
#[derive(Debug, Default)]
pub(super) struct Follows {
    freed: BTreeSet<Key>,
    /// Workflows of which a run has ended: another one may start.
    ended: BTreeSet<String>,
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
        Self { ended: BTreeSet::from([name]), ..Self::default() }
    }

    pub(super) fn of_child(child: RunId) -> Self {
        Self { over: BTreeSet::from([child]), ..Self::default() }
    }

    /// A child has ended.
    pub(super) fn tell_of(&mut self, child: RunId) {
        self.over.insert(child);
    }

    /// Does something to one more run; what that means for others is kept until all of them are
    /// done with.
    pub(super) fn change<T>(
        &mut self,
        txn: &Txn<'_>,
        run: RunId,
        verb: impl FnOnce(&mut Keeper<Stored<'_, '_>>) -> Done<T>,
    ) -> Done<T> {
        let (answer, more) = change(txn, run, verb)?;
        self.extend(more);
        Ok(answer)
    }

    fn extend(&mut self, more: Self) {
        self.freed.extend(more.freed);
        self.ended.extend(more.ended);
        self.to_stop.extend(more.to_stop);
        self.over.extend(more.over);
    }
}

fn change<T>(
    txn: &Txn<'_>,
    run: RunId,
    verb: impl FnOnce(&mut Keeper<Stored<'_, '_>>) -> Done<T>,
) -> Done<(T, Follows)> {
    let head = txn.head(run)?;
    let row = load(txn, &head)?;
    change_loaded(txn, &head, row, verb)
}

fn change_loaded<T>(
    txn: &Txn<'_>,
    head: &Head,
    row: RunRow,
    verb: impl FnOnce(&mut Keeper<Stored<'_, '_>>) -> Done<T>,
) -> Done<(T, Follows)> {
    let stored = Stored { txn, no: head.no, plan: &head.head.plan };
    let mut keeper = Keeper::new(stored, Arc::clone(&head.head), row, txn.now);
    let answer = verb(&mut keeper)?;
    let changes = keeper.conclude()?;
    save(txn, head.no, &changes)?;
    txn.shelf.note_waits(&changes.waits);
    let mut follows = Follows { freed: changes.keys.freed, ..Follows::default() };
    if changes.run.status.is_final() && !changes.was.status.is_final() {
        follows.ended.insert(head.head.plan.workflow.name.clone());
        follows.over.extend(head.head.parent.as_ref().map(|_| head.head.run));
        // Hardly anybody writes to it again, and its plan may be large.
        txn.shelf.forget_run(head.head.run, head.no);
    }
    follows.to_stop.extend(changes.to_stop);
    Ok((answer, follows))
}

/// Others go on in the same transaction, so that nobody has to look for what became free.
pub(super) fn follow(txn: &Txn<'_>, mut follows: Follows) -> Done<()> {
    loop {
        if let Some(key) = follows.freed.pop_first() {
            hand_on(txn, &key, &mut follows)?;
        } else if let Some(workflow) = follows.ended.pop_first() {
            start_next(txn, &workflow, &mut follows)?;
        } else if let Some(child) = follows.to_stop.pop_first() {
            children::stop(txn, &child, &mut follows)?;
        } else if let Some(child) = follows.over.pop_first() {
            children::tell(txn, child, &mut follows)?;
        } else {
            return Ok(());
        }
    }
}

/// A key that somebody let go of goes to who waits longest.
fn hand_on(txn: &Txn<'_>, key: &Key, follows: &mut Follows) -> Done<()> {
    while let Some((no, position)) = next_at(txn, key)? {
        let promised = follows.freed.clone();
        let (still_waits, more) = change(txn, txn.run_id(no)?, |keeper| {
            keeper.promise(promised);
            keeper.examine(position)?;
            Ok(keeper.task(position)?.gate_key.as_deref() == Some(&key.text()))
        })?;
        follows.extend(more);
        // Whom it does not let through, it does not let through anybody behind.
        if still_waits {
            break;
        }
    }
    Ok(())
}

/// A run of a workflow has ended: those that wait for that start, oldest first, as many as may.
fn start_next(txn: &Txn<'_>, workflow: &str, follows: &mut Follows) -> Done<()> {
    loop {
        let runs = runs_of(txn, workflow)?;
        let Some(next) = runs.queued.first() else { return Ok(()) };
        let max = txn.head(*next)?.head.plan.workflow.max_runs;
        if !max_runs::may_start(max, u32::try_from(runs.running.len()).unwrap_or(u32::MAX)) {
            return Ok(());
        }
        let promised = follows.freed.clone();
        let begin = |keeper: &mut Keeper<Stored<'_, '_>>| {
            keeper.promise(promised);
            keeper.begin()
        };
        follows.extend(change(txn, *next, begin)?.1);
    }
}

/// The runs of a workflow that have not ended.
#[derive(Debug)]
pub(super) struct RunsOf {
    pub(super) running: Vec<Running>,
    pub(super) queued: Vec<RunId>,
}

pub(super) fn runs_of(txn: &Txn<'_>, workflow: &str) -> Done<RunsOf> {
    let mut running = Vec::new();
    let mut statement = txn.connection.prepare_cached(sql!("runs_running"))?;
    let mut rows = statement.query([workflow])?;
    while let Some(row) = rows.next()? {
        txn.about(row.get(0)?);
        let is_canceling: Option<bool> = row.get(2)?;
        let run = match run_id(row) {
            Ok(run) => Some(run),
            // It has been set aside for that, and has its place all the same.
            Err(failure) if row.get(3)? && quarantine::is_about_a_value(&failure) => None,
            Err(failure) => return Err(failure),
        };
        running.push(Running { run, is_canceling: is_canceling == Some(true) });
    }
    let mut queued = Vec::new();
    let mut statement = txn.connection.prepare_cached(sql!("runs_queued"))?;
    let mut rows = statement.query([workflow])?;
    while let Some(row) = rows.next()? {
        txn.about(row.get(0)?);
        queued.push(run_id(row)?);
    }
    Ok(RunsOf { running, queued })
}

/// The second column of both.
fn run_id(row: &Row<'_>) -> Done<RunId> {
    let text: String = row.get(1)?;
    Ok(RunId::parse(&text).ok_or_else(|| unreadable("run id", &text))?)
}

/// Who is next at a key.
fn next_at(txn: &Txn<'_>, key: &Key) -> Done<Option<(i64, Position)>> {
    let (sql, name) = match key {
        Key::Limit(_) | Key::Lock(_) => (sql!("key_next"), key.text()),
        Key::Order(name) => (sql!("order_next"), name.clone()),
    };
    let mut statement = txn.connection.prepare_cached(sql)?;
    Ok(statement.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

fn load(txn: &Txn<'_>, head: &Head) -> Done<RunRow> {
    let found = txn
        .connection
        .prepare_cached(sql!("run_load"))?
        .query_row([head.no], |row| {
            let is_set_aside: bool = row.get(12)?;
            Ok((run_row(row), is_set_aside))
        })
        .optional()?;
    // Another process may have removed it, or begun to, since its head was read.
    let (row, is_set_aside) = found.ok_or_else(|| Error::NoSuchRun { name: head.head.run.to_string() })?;
    if is_set_aside {
        return Err(quarantine::refusal(txn.connection, head.no, head.head.run)?.into());
    }
    row
}

fn run_row(row: &Row<'_>) -> Done<RunRow> {
    let status: String = row.get(0)?;
    Ok(RunRow {
        status: RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?,
        reason: row.get(1)?,
        closing: word(row, 2, "closing of a run", Closing::parse)?,
        owner: word(row, 3, "owner of a run", SessionId::parse)?,
        not_before: millis(row, 11)?,
        started_at: millis(row, 4)?,
        finished_at: millis(row, 5)?,
        deadline_at: millis(row, 6)?,
        last_event: row.get(7)?,
        unsettled: row.get(8)?,
        pauses: word(row, 9, "pauses of a run", read_pauses)?.unwrap_or_default(),
        levels: word(row, 10, "levels of a run", read_levels)?,
    })
}

fn task_row(row: &Row<'_>) -> Done<(Position, TaskRow)> {
    let status: String = row.get(1)?;
    let node: Option<String> = row.get(10)?;
    let task = TaskRow {
        status: TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?,
        gate: word(row, 2, "gate of a task", Gate::parse)?,
        rank: row.get(3)?,
        run_at: millis(row, 4)?,
        attempt: row.get(5)?,
        retries: row.get(6)?,
        lost: row.get(7)?,
        session: word(row, 8, "session of a task", SessionId::parse)?,
        is_ahead: row.get(9)?,
        node: node.map(Arc::from),
        stop: word(row, 11, "request to stop", Reason::parse)?,
        reason: word(row, 12, "reason of a task", Reason::parse)?,
        detail: row.get(13)?,
        exit_code: row.get(14)?,
        output: row.get(15)?,
        started_at: millis(row, 16)?,
        took_ms: row.get(17)?,
        finished_at: millis(row, 18)?,
        gate_key: row.get(19)?,
        wake_at: millis(row, 20)?,
        class: row.get(21)?,
        wait: word(row, 22, "wait of a task", read_wait)?,
        growth: word(row, 23, "items of a task", read_growth)?,
        item: row.get_ref(24)?.as_str_or_null().map_err(rusqlite::Error::from)?.map(Arc::from),
        given_back: row.get(25)?,
        start_by: millis(row, 26)?,
        fence: row.get(27)?,
    };
    Ok((row.get(0)?, task))
}

fn word<T>(row: &Row<'_>, column: usize, what: &str, parse: impl Fn(&str) -> Option<T>) -> Done<Option<T>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)? else {
        return Ok(None);
    };
    Ok(Some(parse(text).ok_or_else(|| unreadable(what, text))?))
}

fn millis(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Millis>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Millis))
}

fn save(txn: &Txn<'_>, no: i64, changes: &Changes) -> Done<()> {
    save_growth(txn, no, changes)?;
    for task in &changes.tasks {
        save_task(txn, no, task)?;
    }
    for (step, items) in &changes.regrown {
        let list = params![no, step, items.start, items.end];
        txn.connection.prepare_cached(sql!("effects_take_up"))?.execute(list)?;
        txn.connection.prepare_cached(sql!("laid_by_remove"))?.execute(list)?;
    }
    for (set, counts) in &changes.sets {
        txn.connection.prepare_cached(sql!("needs_write"))?.execute(params![
            no,
            set,
            counts.unsettled,
            counts.succeeded,
            counts.failed,
            counts.passed_over
        ])?;
    }
    for (seq, fact) in changes.numbered() {
        let (name, version, body) = (fact.name(), fact.version(), fact.body_text());
        let event = params![no, seq, txn.now.0, name, version, body];
        txn.connection.prepare_cached(sql!("event_append"))?.execute(event)?;
    }
    for record in &changes.attempts {
        save_attempt(txn, no, record)?;
    }
    for kept in &changes.layers {
        layers::save(txn, no, kept)?;
    }
    save_keys(txn, no, &changes.keys)?;
    children::save(txn, no, changes)?;
    save_run(txn, no, changes)
}

fn save_task(txn: &Txn<'_>, no: i64, task: &Changed) -> Done<()> {
    let Changed { position, was, row, touch } = task;
    let session = was.session.map(|session| session.to_string());
    let started_at = row.started_at.map(|at| at.0);
    let written = match touch {
        Touch::Nothing => return Ok(()),
        Touch::Start => txn.connection.prepare_cached(sql!("start"))?.execute(params![
            no,
            position,
            was.status.as_str(),
            was.generation,
            session,
            started_at,
            row.node
        ])?,
        Touch::Whole => txn.connection.prepare_cached(sql!("task_save"))?.execute(params![
            no,
            position,
            was.status.as_str(),
            was.generation,
            session,
            row.status.as_str(),
            row.gate.map(Gate::as_str),
            row.rank,
            row.run_at.map(|at| at.0),
            row.attempt,
            row.retries,
            row.lost,
            row.session.map(|session| session.to_string()),
            row.is_ahead,
            row.node,
            row.stop.map(Reason::as_str),
            row.reason.map(Reason::as_str),
            row.detail,
            row.exit_code,
            row.output,
            started_at,
            row.took_ms,
            row.finished_at.map(|at| at.0),
            row.gate_key,
            row.wake_at.map(|at| at.0),
            row.class,
            wait_text(row.wait.as_deref()),
            row.due_at().map(|at| at.0),
            growth_text(row.growth.as_deref()),
            row.given_back,
            row.start_by.map(|at| at.0),
            row.fence
        ])?,
        Touch::New => txn.connection.prepare_cached(sql!("task_add"))?.execute(params![
            no,
            position,
            row.class,
            row.status.as_str(),
            row.gate.map(Gate::as_str),
            row.gate_key,
            row.wake_at.map(|at| at.0),
            row.rank,
            row.attempt,
            row.reason.map(Reason::as_str),
            row.detail,
            row.finished_at.map(|at| at.0),
            row.item,
            started_at,
            row.took_ms,
            wait_text(row.wait.as_deref()),
            row.due_at().map(|at| at.0),
            row.given_back,
            row.start_by.map(|at| at.0),
            row.fence
        ])?,
    };
    if written == 0 {
        let why = "its row changed while it was being worked on".to_owned();
        return Err(Error::Unreadable { what: "task".to_owned(), why }.into());
    }
    Ok(())
}

/// Items that are yet to be tasks, and those that are no more.
fn save_growth(txn: &Txn<'_>, no: i64, changes: &Changes) -> Done<()> {
    for (step, items) in &changes.removed {
        txn.connection.prepare_cached(sql!("batches_remove"))?.execute(params![no, step])?;
        let list = params![no, step, items.start, items.end];
        txn.connection.prepare_cached(sql!("effects_lay_by"))?.execute(list)?;
        let gone = params![no, items.start, items.end];
        txn.connection.prepare_cached(sql!("items_remove"))?.execute(gone)?;
        txn.connection.prepare_cached(sql!("items_effects_remove"))?.execute(gone)?;
        txn.connection.prepare_cached(sql!("layers_of_items_remove"))?.execute(gone)?;
        txn.connection.prepare_cached(sql!("layer_files_of_items_remove"))?.execute(gone)?;
    }
    for ((step, batch), items) in &changes.batches {
        match items {
            Some(items) => {
                let kept = params![no, step, batch, items];
                txn.connection.prepare_cached(sql!("batch_add"))?.execute(kept)?;
            }
            None => {
                txn.connection.prepare_cached(sql!("batch_remove"))?.execute(params![no, step, batch])?;
            }
        }
    }
    Ok(())
}

fn save_attempt(txn: &Txn<'_>, no: i64, record: &Record) -> Done<()> {
    txn.connection.prepare_cached(sql!("attempt_ended"))?.execute(params![
        no,
        record.claim.position,
        record.claim.attempt,
        record.claim.session.to_string(),
        record.node,
        record.outcome,
        record.reason.map(Reason::as_str),
        record.detail,
        record.exit_code,
        record.started_at.map(|at| at.0),
        txn.now.0,
        record.took_ms,
        record.claim.given_back()
    ])?;
    Ok(())
}

fn save_keys(txn: &Txn<'_>, no: i64, keys: &KeyChanges) -> Done<()> {
    for ((key, position), holds) in &keys.holds {
        let sql = if *holds { sql!("key_hold") } else { sql!("key_free") };
        txn.connection.prepare_cached(sql)?.execute(params![key.text(), no, position])?;
    }
    for ((key, version, position), stands) in &keys.orders {
        let sql = if *stands { sql!("order_stand") } else { sql!("order_leave") };
        txn.connection.prepare_cached(sql)?.execute(params![key, version, no, position])?;
    }
    for (name, tat) in &keys.tats {
        txn.connection.prepare_cached(sql!("rate_pass"))?.execute(params![name, tat.0])?;
    }
    Ok(())
}

fn save_run(txn: &Txn<'_>, no: i64, changes: &Changes) -> Done<()> {
    let run = &changes.run;
    if !run.is_in_another_phase(&changes.was) {
        let counts = params![no, run.last_event, run.unsettled];
        txn.connection.prepare_cached(sql!("run_count"))?.execute(counts)?;
        return Ok(());
    }
    txn.connection.prepare_cached(sql!("run_save"))?.execute(params![
        no,
        run.status.as_str(),
        run.reason,
        run.closing.map(Closing::as_str),
        run.owner.map(|owner| owner.to_string()),
        run.started_at.map(|at| at.0),
        run.finished_at.map(|at| at.0),
        run.deadline_at.map(|at| at.0),
        run.last_event,
        run.unsettled,
        pauses_text(&run.pauses),
        levels_text(run.levels.as_ref()),
        run.not_before.map(|at| at.0)
    ])?;
    if run.status.is_final() && !changes.was.status.is_final() {
        txn.connection.prepare_cached(sql!("firings_add"))?.execute([no])?;
    }
    save_owner(txn, no, changes)
}

/// The owner of a run takes the tasks that are offered to it alone.
fn save_owner(txn: &Txn<'_>, no: i64, changes: &Changes) -> Done<()> {
    let Some(owner) = changes.bound else { return Ok(()) };
    txn.connection.prepare_cached(sql!("takers_of_class_remove"))?.execute([-no])?;
    match owner {
        Some(session) => classes::add_taker(txn, -no, session, 0, None),
        None => Ok(()),
    }
}

/// What is stored of a run. A question costs microseconds here, so each is asked when it comes up.
pub(super) struct Stored<'t, 'c> {
    txn: &'t Txn<'c>,
    no: i64,
    plan: &'t Plan,
}

impl Stored<'_, '_> {
    fn rows(&self, sql: &str, params: impl Params) -> Done<Rows> {
        let mut statement = self.txn.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(task_row(row)?);
        }
        Ok(found)
    }
}

impl Facts for Stored<'_, '_> {
    type Error = Failure;

    fn task(&mut self, position: Position) -> Done<TaskRow> {
        let mut statement = self.txn.connection.prepare_cached(sql!("task"))?;
        let found = statement.query_row(params![self.no, position], |row| Ok(task_row(row))).optional()?;
        match found {
            Some(found) => Ok(found?.1),
            None if self.plan.item(position).is_some() => Ok(TaskRow::absent()),
            None => Err(rusqlite::Error::QueryReturnedNoRows.into()),
        }
    }

    fn needs_set(&mut self, set: u32) -> Done<Counts> {
        let mut statement = self.txn.connection.prepare_cached(sql!("needs_read"))?;
        Ok(statement.query_row(params![self.no, set], |row| {
            Ok(Counts {
                unsettled: row.get(0)?,
                succeeded: row.get(1)?,
                failed: row.get(2)?,
                passed_over: row.get(3)?,
            })
        })?)
    }

    fn prepare(&mut self, _: &[Position], _: &[u32]) -> Done<()> {
        Ok(())
    }

    fn live(&mut self) -> Done<u32> {
        Ok(self.txn.connection.prepare_cached(sql!("live"))?.query_row([self.no], |row| row.get(0))?)
    }

    fn waiting(&mut self, limit: usize) -> Done<Rows> {
        self.rows(sql!("tasks_waiting"), params![self.no, i64::try_from(limit).unwrap_or(i64::MAX)])
    }

    fn unstarted(&mut self) -> Done<Rows> {
        self.rows(sql!("tasks_unstarted"), [self.no])
    }

    fn running(&mut self) -> Done<Rows> {
        self.rows(sql!("tasks_running"), [self.no])
    }

    fn all(&mut self) -> Done<Rows> {
        self.rows(sql!("tasks_all"), [self.no])
    }

    fn failures(&mut self) -> Done<Option<Failures>> {
        let mut statement = self.txn.connection.prepare_cached(sql!("run_failures"))?;
        let found = statement.query_row([self.no], |row| {
            let failures = || -> Done<Failures> {
                Ok(Failures {
                    position: row.get(0)?,
                    reason: word(row, 1, "reason of a task", Reason::parse)?,
                    detail: row.get(2)?,
                    finished_at: millis(row, 4)?,
                    count: row.get(3)?,
                })
            };
            Ok(failures())
        });
        found.optional()?.transpose()
    }

    fn holders(&mut self, key: &Key) -> Done<u32> {
        let mut statement = self.txn.connection.prepare_cached(sql!("key_holders"))?;
        Ok(statement.query_row([key.text()], |row| row.get(0))?)
    }

    fn smaller(&mut self, key: &str, version: &str, up_to: u32) -> Done<u32> {
        let mut statement = self.txn.connection.prepare_cached(sql!("order_smaller"))?;
        Ok(statement.query_row(params![key, version, up_to], |row| row.get(0))?)
    }

    fn limit(&mut self, name: &str) -> Done<Option<Limit>> {
        limit(self.txn, name)
    }

    fn tat(&mut self, name: &str) -> Done<Option<Tat>> {
        let mut statement = self.txn.connection.prepare_cached(sql!("rate"))?;
        let tat: Option<Option<i64>> = statement.query_row([name], |row| row.get(0)).optional()?;
        Ok(tat.flatten().map(Tat))
    }

    fn fence(&mut self, lock: &Key) -> Done<Option<Tat>> {
        self.tat(&lock.text())
    }

    fn is_awaited(&mut self, key: &str, by_other_than: Position) -> Done<bool> {
        let mut statement = self.txn.connection.prepare_cached(sql!("key_awaited"))?;
        Ok(statement.exists(params![key, self.no, by_other_than])?)
    }

    fn has_before(&mut self, key: &str, rank: i64, position: Position) -> Done<bool> {
        let mut statement = self.txn.connection.prepare_cached(sql!("key_before"))?;
        Ok(statement.exists(params![key, rank, self.no, position])?)
    }

    fn has_node(&mut self, class: i64) -> Done<bool> {
        Ok(self.txn.connection.prepare_cached(sql!("has_taker"))?.exists([class])?)
    }

    fn takes(&mut self, session: SessionId, class: i64) -> Done<bool> {
        let mut statement = self.txn.connection.prepare_cached(sql!("session_takes"))?;
        Ok(statement.exists(params![class, session.to_string()])?)
    }

    fn class_of(&mut self, position: Position) -> Done<i64> {
        classes::number(self.txn, &self.plan.class_of(position))
    }

    fn layers_on_nodes(&mut self) -> Done<Vec<LayerOnNode>> {
        layers::on_nodes(self.txn.connection, self.no)
    }

    fn node(&mut self, session: SessionId) -> Done<Option<Arc<str>>> {
        self.txn.node(session)
    }

    fn batch(&mut self, step: Position, no: u32) -> Done<String> {
        let mut statement = self.txn.connection.prepare_cached(sql!("batch"))?;
        let items: Option<String> =
            statement.query_row(params![self.no, step, no], |row| row.get(0)).optional()?;
        Ok(items.ok_or_else(|| unreadable("batch of items", &no.to_string()))?)
    }

    fn items_live(&mut self, step: Position) -> Done<u32> {
        let items = self.plan.items_of(step);
        let mut statement = self.txn.connection.prepare_cached(sql!("items_live"))?;
        Ok(statement.query_row(params![self.no, items.start, items.end], |row| row.get(0))?)
    }

    fn items_line(&mut self, step: Position, limit: usize) -> Done<Rows> {
        let (items, limit) = (self.plan.items_of(step), i64::try_from(limit).unwrap_or(i64::MAX));
        self.rows(sql!("items_line"), params![self.no, items.start, items.end, limit])
    }

    fn outputs(&mut self, step: Position) -> Done<Outputs> {
        read::outputs(self.txn.connection, self.no, self.plan, step)
    }

    fn outcome_of(&mut self, claim: &ClaimRef) -> Done<Option<String>> {
        let session = claim.session.to_string();
        let of = params![self.no, claim.position, claim.attempt, session, claim.generation];
        let mut statement = self.txn.connection.prepare_cached(sql!("attempt_known"))?;
        Ok(statement.query_row(of, |row| row.get(0)).optional()?)
    }
}

/// A named limit, if there is one.
pub(super) fn limit(txn: &Txn<'_>, name: &str) -> Done<Option<Limit>> {
    let mut statement = txn.connection.prepare_cached(sql!("limit"))?;
    let text: Option<String> = statement.query_row([name], |row| row.get(0)).optional()?;
    let Some(text) = text else { return Ok(None) };
    Ok(Some(Limit::parse(&text).map_err(|_| unreadable("limit", &text))?))
}
