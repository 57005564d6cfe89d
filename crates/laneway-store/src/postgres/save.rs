//! Writes what the gate keeper made of runs: every kind of row as one statement over columns, however many runs and
//! tasks it is about. The fence is in the statement itself: a row that is not as the keeper saw it fails the whole
//! transaction, in the same flight as its COMMIT.

use laneway_core::event::Closing;
use laneway_core::gate::{Counts, Gate};
use laneway_core::reason::Reason;
use laneway_core::time::Millis;

use super::follow::Records;
use super::layers::Layers;
use super::link::{Flight, Value, sql};
use crate::keeper::{
    Changed, Changes, Record, RunRow, Touch, growth_text, levels_text, pauses_text, wait_text,
};

type Numbers = Vec<i64>;
type MaybeNumbers = Vec<Option<i64>>;
type Texts = Vec<String>;
type MaybeTexts = Vec<Option<String>>;
type Words = Vec<&'static str>;
type MaybeWords = Vec<Option<&'static str>>;

/// Everything to be written, as columns.
#[derive(Debug, Default)]
pub(super) struct Columns {
    tasks: Tasks,
    starts: Starts,
    sets: [Numbers; 6],
    events: Events,
    attempts: Attempts,
    layers: Layers,
    counts: [Numbers; 3],
    runs: Runs,
    keys: Keys,
    owners: Owners,
    /// Runs that have ended.
    ended: Numbers,
    growth: Growths,
    wanted: WantedRuns,
    /// What all of it makes possible for other runs.
    pub(super) follow_ups: Records,
}

/// Items: those that are new tasks, those that are yet to be, and those that are no more.
#[derive(Debug, Default)]
struct Growths {
    new: NewItems,
    batches: (Numbers, Numbers, Numbers, Texts),
    added: [Numbers; 3],
    /// Runs, steps, and where their items begin and end.
    gone: [Numbers; 4],
    /// The same of those that have others in their places.
    again: [Numbers; 4],
}

#[derive(Debug, Default)]
struct NewItems {
    run: Numbers,
    position: Numbers,
    class: Numbers,
    status: Words,
    gate: MaybeWords,
    gate_key: MaybeTexts,
    wake_at: MaybeNumbers,
    rank: MaybeNumbers,
    attempt: Numbers,
    reason: MaybeWords,
    detail: MaybeTexts,
    finished_at: MaybeNumbers,
    item: MaybeTexts,
    started_at: MaybeNumbers,
    took_ms: MaybeNumbers,
    wait: MaybeTexts,
    due_at: MaybeNumbers,
    given_back: Numbers,
    start_by: MaybeNumbers,
    lock_fence: MaybeNumbers,
}

/// Runs that are to be started, by the task that waits for them; and those that are so no more.
#[derive(Debug, Default)]
struct WantedRuns {
    run: Numbers,
    position: Numbers,
    life: Numbers,
    workflow: Texts,
    params: Texts,
    again: MaybeTexts,
    gone: (Numbers, Numbers),
}

/// Who owns pinned runs from here on: classes that nobody else takes.
#[derive(Debug, Default)]
struct Owners {
    classes: Numbers,
    /// Classes, sessions, and neither reluctance nor places in a pool.
    taken: (Numbers, Texts, Numbers, MaybeNumbers, MaybeTexts),
}

/// Which keys tasks hold, or hold no more; where they stand in orders; when rates may be passed next.
#[derive(Debug, Default)]
struct Keys {
    hold: (Texts, Numbers, Numbers),
    free: (Texts, Numbers, Numbers),
    stand: (Texts, Texts, Numbers, Numbers),
    leave: (Texts, Texts, Numbers, Numbers),
    tats: (Texts, Numbers),
}

#[derive(Debug, Default)]
struct Tasks {
    fence: Fences,
    status: Words,
    gate: MaybeWords,
    rank: MaybeNumbers,
    run_at: MaybeNumbers,
    attempt: Numbers,
    retries: Numbers,
    lost: Numbers,
    session: MaybeTexts,
    is_ahead: Vec<bool>,
    node: MaybeTexts,
    stop: MaybeWords,
    reason: MaybeWords,
    detail: MaybeTexts,
    exit_code: MaybeNumbers,
    output: MaybeTexts,
    started_at: MaybeNumbers,
    took_ms: MaybeNumbers,
    finished_at: MaybeNumbers,
    gate_key: MaybeTexts,
    wake_at: MaybeNumbers,
    class: Numbers,
    wait: MaybeTexts,
    due_at: MaybeNumbers,
    growth: MaybeTexts,
    given_back: Numbers,
    start_by: MaybeNumbers,
    lock_fence: MaybeNumbers,
}

/// Which row, and what it must still say.
#[derive(Debug, Default)]
struct Fences {
    run: Numbers,
    position: Numbers,
    status: Words,
    generation: Numbers,
    session: MaybeTexts,
}

#[derive(Debug, Default)]
struct Starts {
    fence: Fences,
    started_at: MaybeNumbers,
    node: MaybeTexts,
}

#[derive(Debug, Default)]
struct Events {
    run: Numbers,
    seq: Numbers,
    at: Numbers,
    name: Words,
    version: Numbers,
    body: Texts,
}

#[derive(Debug, Default)]
struct Attempts {
    run: Numbers,
    position: Numbers,
    attempt: Numbers,
    session: Texts,
    node: Texts,
    outcome: Words,
    reason: MaybeWords,
    detail: MaybeTexts,
    exit_code: MaybeNumbers,
    started_at: MaybeNumbers,
    finished_at: Numbers,
    took_ms: MaybeNumbers,
    given_back: Numbers,
}

#[derive(Debug, Default)]
struct Runs {
    no: Numbers,
    status: Words,
    reason: MaybeTexts,
    closing: MaybeWords,
    owner: MaybeTexts,
    started_at: MaybeNumbers,
    finished_at: MaybeNumbers,
    deadline_at: MaybeNumbers,
    last_event: Numbers,
    unsettled: Numbers,
    pauses: MaybeTexts,
    levels: MaybeTexts,
    not_before: MaybeNumbers,
}

impl Columns {
    pub(super) fn add(&mut self, no: i64, now: Millis, changes: &Changes) {
        for task in &changes.tasks {
            match task.touch {
                Touch::Nothing => {}
                Touch::Start => self.starts.add(no, task),
                Touch::Whole => self.tasks.add(no, task),
                Touch::New => {}
            }
        }
        self.add_growth(no, changes);
        self.add_wanted(no, changes);
        for (set, counts) in &changes.sets {
            self.add_set(no, *set, *counts);
        }
        self.add_events(no, now, changes);
        self.add_keys(no, changes);
        for record in &changes.attempts {
            self.attempts.add(no, now, record);
        }
        for kept in &changes.layers {
            self.layers.add(no, kept);
        }
        if let Some(owner) = changes.bound {
            self.owners.classes.push(-no);
            if let Some(session) = owner {
                self.owners.taken.0.push(-no);
                self.owners.taken.1.push(session.to_string());
                self.owners.taken.2.push(0);
                self.owners.taken.3.push(None);
                self.owners.taken.4.push(None);
            }
        }
        self.add_end(no, changes);
        if changes.run.is_in_another_phase(&changes.was) {
            self.runs.add(no, &changes.run);
        } else if changes.run != changes.was {
            let counts = [no, signed(changes.run.last_event), i64::from(changes.run.unsettled)];
            self.counts.iter_mut().zip(counts).for_each(|(column, value)| column.push(value));
        }
    }

    /// Runs that are to be started.
    pub(super) fn add_wanted(&mut self, no: i64, changes: &Changes) {
        for (position, wanted) in &changes.wanted {
            let columns = &mut self.wanted;
            match wanted {
                Some(wanted) => {
                    columns.run.push(no);
                    columns.position.push(i64::from(*position));
                    columns.life.push(signed(wanted.life));
                    columns.workflow.push(wanted.workflow.clone());
                    columns.params.push(serde_json::Value::Object(wanted.params.clone()).to_string());
                    columns.again.push(wanted.again.map(|run| run.to_string()));
                }
                None => {
                    columns.gone.0.push(no);
                    columns.gone.1.push(i64::from(*position));
                }
            }
        }
    }

    /// Items that are new tasks, that are yet to be, and that are no more.
    pub(super) fn add_growth(&mut self, no: i64, changes: &Changes) {
        let growth = &mut self.growth;
        for task in changes.tasks.iter().filter(|task| task.touch == Touch::New) {
            growth.new.add(no, task);
        }
        for ((step, batch), items) in &changes.batches {
            let key = [no, i64::from(*step), i64::from(*batch)];
            match items {
                Some(items) => {
                    growth.batches.0.push(key[0]);
                    growth.batches.1.push(key[1]);
                    growth.batches.2.push(key[2]);
                    growth.batches.3.push(items.clone());
                }
                None => growth.added.iter_mut().zip(key).for_each(|(column, value)| column.push(value)),
            }
        }
        for (lists, columns) in [(&changes.removed, &mut growth.gone), (&changes.regrown, &mut growth.again)]
        {
            for (step, items) in lists {
                let values = [no, i64::from(*step), i64::from(items.start), i64::from(items.end)];
                columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            }
        }
    }

    /// Somebody may wait for the end of a run.
    pub(super) fn add_end(&mut self, no: i64, changes: &Changes) {
        if changes.run.status.is_final() && !changes.was.status.is_final() {
            self.ended.push(no);
        }
    }

    pub(super) fn add_keys(&mut self, no: i64, changes: &Changes) {
        for ((key, position), holds) in &changes.keys.holds {
            let column = if *holds { &mut self.keys.hold } else { &mut self.keys.free };
            column.0.push(key.text());
            column.1.push(no);
            column.2.push(i64::from(*position));
        }
        for ((key, version, position), stands) in &changes.keys.orders {
            let column = if *stands { &mut self.keys.stand } else { &mut self.keys.leave };
            column.0.push(key.clone());
            column.1.push(version.clone());
            column.2.push(no);
            column.3.push(i64::from(*position));
        }
        for (name, tat) in &changes.keys.tats {
            self.keys.tats.0.push(name.clone());
            self.keys.tats.1.push(tat.0);
        }
    }

    pub(super) fn add_set(&mut self, no: i64, set: u32, counts: Counts) {
        let values = [
            no,
            i64::from(set),
            i64::from(counts.unsettled),
            i64::from(counts.succeeded),
            i64::from(counts.failed),
            i64::from(counts.passed_over),
        ];
        self.sets.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }

    pub(super) fn add_events(&mut self, no: i64, now: Millis, changes: &Changes) {
        for (seq, fact) in changes.numbered() {
            self.events.run.push(no);
            self.events.seq.push(signed(seq));
            self.events.at.push(now.0);
            self.events.name.push(fact.name());
            self.events.version.push(i64::from(fact.version()));
            self.events.body.push(fact.body_text());
        }
    }

    /// What is empty is not said.
    pub(super) fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        let Owners { classes, taken } = &self.owners;
        if !classes.is_empty() {
            flight.ask(sql!("takers_of_class_remove", INT8_ARRAY), vec![classes]);
        }
        if !taken.0.is_empty() {
            let takers = sql!("taker_add", INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY);
            flight.ask(takers, vec![&taken.0, &taken.1, &taken.2, &taken.3, &taken.4]);
        }
        self.growth.say(flight);
        self.wanted.say(flight);
        if !self.tasks.fence.run.is_empty() {
            flight.ask(
                sql!(
                    "task_save",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    BOOL_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY
                ),
                self.tasks.values(),
            );
        }
        if !self.starts.fence.run.is_empty() {
            let mut values = self.starts.fence.values();
            values.extend([&self.starts.started_at as &Value<'_>, &self.starts.node]);
            flight.ask(
                sql!(
                    "start", INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY,
                    TEXT_ARRAY
                ),
                values,
            );
        }
        if !self.sets[0].is_empty() {
            flight.ask(
                sql!("needs_write", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
                self.sets.iter().map(|column| column as &Value<'_>).collect(),
            );
        }
        if !self.events.run.is_empty() {
            let events = &self.events;
            flight.ask(
                sql!("event_append", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY),
                vec![&events.run, &events.seq, &events.at, &events.name, &events.version, &events.body],
            );
        }
        if !self.attempts.run.is_empty() {
            flight.ask(
                sql!(
                    "attempt_ended",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY
                ),
                self.attempts.values(),
            );
        }
        self.layers.say(flight);
        if !self.counts[0].is_empty() {
            flight.ask(
                sql!("run_count", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
                self.counts.iter().map(|column| column as &Value<'_>).collect(),
            );
        }
        if !self.runs.no.is_empty() {
            flight.ask(
                sql!(
                    "run_save", INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY,
                    INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY
                ),
                self.runs.values(),
            );
        }
        if !self.ended.is_empty() {
            flight.ask(sql!("firings_add", INT8_ARRAY), vec![&self.ended]);
        }
        self.keys.say(flight);
        self.follow_ups.say(flight);
    }
}

impl WantedRuns {
    fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        if !self.gone.0.is_empty() {
            flight.ask(sql!("wanted_remove", INT8_ARRAY, INT8_ARRAY), vec![&self.gone.0, &self.gone.1]);
        }
        if !self.run.is_empty() {
            let Self { run, position, life, workflow, params, again, gone: _ } = self;
            flight.ask(
                sql!("wanted_add", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY),
                vec![run, position, life, workflow, params, again],
            );
        }
    }
}

impl Growths {
    fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        let [runs, steps, first, behind] = &self.gone;
        if !runs.is_empty() {
            flight.ask(sql!("batches_remove", INT8_ARRAY, INT8_ARRAY), vec![runs, steps]);
            flight.ask(
                sql!("effects_lay_by", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
                vec![runs, steps, first, behind],
            );
            flight.ask(sql!("items_remove", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY), vec![runs, first, behind]);
            flight.ask(
                sql!("items_effects_remove", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
                vec![runs, first, behind],
            );
            flight.ask(
                sql!("layers_of_items_remove", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
                vec![runs, first, behind],
            );
        }
        let (runs, steps, numbers, items) = &self.batches;
        if !runs.is_empty() {
            let add = sql!("batch_add", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY);
            flight.ask(add, vec![runs, steps, numbers, items]);
        }
        let [runs, steps, numbers] = &self.added;
        if !runs.is_empty() {
            flight.ask(sql!("batch_remove", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY), vec![runs, steps, numbers]);
        }
        if !self.new.run.is_empty() {
            flight.ask(
                sql!(
                    "task_add", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
                    INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY,
                    INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY
                ),
                self.new.values(),
            );
        }
        let [runs, steps, first, behind] = &self.again;
        if !runs.is_empty() {
            for sql in [
                sql!("effects_take_up", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
                sql!("laid_by_remove", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
            ] {
                flight.ask(sql, vec![runs, steps, first, behind]);
            }
        }
    }
}

impl NewItems {
    fn add(&mut self, no: i64, task: &Changed) {
        let row = &task.row;
        self.run.push(no);
        self.position.push(i64::from(task.position));
        self.class.push(row.class);
        self.status.push(row.status.as_str());
        self.gate.push(row.gate.map(Gate::as_str));
        self.gate_key.push(row.gate_key.clone());
        self.wake_at.push(row.wake_at.map(|at| at.0));
        self.rank.push(row.rank);
        self.attempt.push(i64::from(row.attempt));
        self.reason.push(row.reason.map(Reason::as_str));
        self.detail.push(row.detail.clone());
        self.finished_at.push(row.finished_at.map(|at| at.0));
        self.item.push(row.item.as_deref().map(str::to_owned));
        self.started_at.push(row.started_at.map(|at| at.0));
        self.took_ms.push(row.took_ms.map(signed));
        self.wait.push(wait_text(row.wait.as_deref()));
        self.due_at.push(row.due_at().map(|at| at.0));
        self.given_back.push(i64::from(row.given_back));
        self.start_by.push(row.start_by.map(|at| at.0));
        self.lock_fence.push(row.fence);
    }

    fn values(&self) -> Vec<&Value<'_>> {
        vec![
            &self.run,
            &self.position,
            &self.class,
            &self.status,
            &self.gate,
            &self.gate_key,
            &self.wake_at,
            &self.rank,
            &self.attempt,
            &self.reason,
            &self.detail,
            &self.finished_at,
            &self.item,
            &self.started_at,
            &self.took_ms,
            &self.wait,
            &self.due_at,
            &self.given_back,
            &self.start_by,
            &self.lock_fence,
        ]
    }
}

impl Keys {
    fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        if !self.free.0.is_empty() {
            let (keys, runs, positions) = &self.free;
            flight.ask(sql!("key_free", TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY), vec![keys, runs, positions]);
        }
        if !self.hold.0.is_empty() {
            let (keys, runs, positions) = &self.hold;
            flight.ask(sql!("key_hold", TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY), vec![keys, runs, positions]);
        }
        if !self.leave.0.is_empty() {
            let (keys, versions, runs, positions) = &self.leave;
            flight.ask(
                sql!("order_leave", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY),
                vec![keys, versions, runs, positions],
            );
        }
        if !self.stand.0.is_empty() {
            let (keys, versions, runs, positions) = &self.stand;
            flight.ask(
                sql!("order_stand", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY),
                vec![keys, versions, runs, positions],
            );
        }
        if !self.tats.0.is_empty() {
            flight.ask(sql!("rate_pass", TEXT_ARRAY, INT8_ARRAY), vec![&self.tats.0, &self.tats.1]);
        }
    }
}

impl Fences {
    fn add(&mut self, no: i64, task: &Changed) {
        self.run.push(no);
        self.position.push(i64::from(task.position));
        self.status.push(task.was.status.as_str());
        self.generation.push(i64::from(task.was.generation));
        self.session.push(task.was.session.map(|session| session.to_string()));
    }

    fn values(&self) -> Vec<&Value<'_>> {
        vec![&self.run, &self.position, &self.status, &self.generation, &self.session]
    }
}

impl Tasks {
    fn add(&mut self, no: i64, task: &Changed) {
        let row = &task.row;
        self.fence.add(no, task);
        self.status.push(row.status.as_str());
        self.gate.push(row.gate.map(Gate::as_str));
        self.rank.push(row.rank);
        self.run_at.push(row.run_at.map(|at| at.0));
        self.attempt.push(i64::from(row.attempt));
        self.retries.push(i64::from(row.retries));
        self.lost.push(i64::from(row.lost));
        self.session.push(row.session.map(|session| session.to_string()));
        self.is_ahead.push(row.is_ahead);
        self.node.push(row.node.as_deref().map(str::to_owned));
        self.stop.push(row.stop.map(Reason::as_str));
        self.reason.push(row.reason.map(Reason::as_str));
        self.detail.push(row.detail.clone());
        self.exit_code.push(row.exit_code.map(i64::from));
        self.output.push(row.output.clone());
        self.started_at.push(row.started_at.map(|at| at.0));
        self.took_ms.push(row.took_ms.map(signed));
        self.finished_at.push(row.finished_at.map(|at| at.0));
        self.gate_key.push(row.gate_key.clone());
        self.wake_at.push(row.wake_at.map(|at| at.0));
        self.class.push(row.class);
        self.wait.push(wait_text(row.wait.as_deref()));
        self.due_at.push(row.due_at().map(|at| at.0));
        self.growth.push(growth_text(row.growth.as_deref()));
        self.given_back.push(i64::from(row.given_back));
        self.start_by.push(row.start_by.map(|at| at.0));
        self.lock_fence.push(row.fence);
    }

    fn values(&self) -> Vec<&Value<'_>> {
        let mut values = self.fence.values();
        let row: [&Value<'_>; 27] = [
            &self.status,
            &self.gate,
            &self.rank,
            &self.run_at,
            &self.attempt,
            &self.retries,
            &self.lost,
            &self.session,
            &self.is_ahead,
            &self.node,
            &self.stop,
            &self.reason,
            &self.detail,
            &self.exit_code,
            &self.output,
            &self.started_at,
            &self.took_ms,
            &self.finished_at,
            &self.gate_key,
            &self.wake_at,
            &self.class,
            &self.wait,
            &self.due_at,
            &self.growth,
            &self.given_back,
            &self.start_by,
            &self.lock_fence,
        ];
        values.extend(row);
        values
    }
}

impl Starts {
    fn add(&mut self, no: i64, task: &Changed) {
        self.fence.add(no, task);
        self.started_at.push(task.row.started_at.map(|at| at.0));
        self.node.push(task.row.node.as_deref().map(str::to_owned));
    }
}

impl Attempts {
    fn add(&mut self, no: i64, now: Millis, record: &Record) {
        self.run.push(no);
        self.position.push(i64::from(record.claim.position));
        self.attempt.push(i64::from(record.claim.attempt));
        self.session.push(record.claim.session.to_string());
        self.node.push(record.node.to_string());
        self.outcome.push(record.outcome);
        self.reason.push(record.reason.map(Reason::as_str));
        self.detail.push(record.detail.clone());
        self.exit_code.push(record.exit_code.map(i64::from));
        self.started_at.push(record.started_at.map(|at| at.0));
        self.finished_at.push(now.0);
        self.took_ms.push(record.took_ms.map(signed));
        self.given_back.push(i64::from(record.claim.given_back()));
    }

    fn values(&self) -> Vec<&Value<'_>> {
        vec![
            &self.run,
            &self.position,
            &self.attempt,
            &self.session,
            &self.node,
            &self.outcome,
            &self.reason,
            &self.detail,
            &self.exit_code,
            &self.started_at,
            &self.finished_at,
            &self.took_ms,
            &self.given_back,
        ]
    }
}

impl Runs {
    fn add(&mut self, no: i64, run: &RunRow) {
        self.no.push(no);
        self.status.push(run.status.as_str());
        self.reason.push(run.reason.clone());
        self.closing.push(run.closing.map(Closing::as_str));
        self.owner.push(run.owner.map(|owner| owner.to_string()));
        self.started_at.push(run.started_at.map(|at| at.0));
        self.finished_at.push(run.finished_at.map(|at| at.0));
        self.deadline_at.push(run.deadline_at.map(|at| at.0));
        self.last_event.push(signed(run.last_event));
        self.unsettled.push(i64::from(run.unsettled));
        self.pauses.push(pauses_text(&run.pauses));
        self.levels.push(levels_text(run.levels.as_ref()));
        self.not_before.push(run.not_before.map(|at| at.0));
    }

    fn values(&self) -> Vec<&Value<'_>> {
        vec![
            &self.no,
            &self.status,
            &self.reason,
            &self.closing,
            &self.owner,
            &self.started_at,
            &self.finished_at,
            &self.deadline_at,
            &self.last_event,
            &self.unsettled,
            &self.pauses,
            &self.levels,
            &self.not_before,
        ]
    }
}

/// Nothing that is counted here comes near the largest number of the database.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
