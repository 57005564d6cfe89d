//! What stands behind the gates of tasks that wait, for whoever asks why: holders, lines, nodes.
//! Counted as the gate keeper counts; a line is read once for all tasks of a run that stand in it.

use std::collections::HashMap;

use laneway_core::cause::{
    BoundWait, Holder, LimitWait, LockWait, MaxRunsWait, NodeWait, OrderWait, PausedWait, Place, RateWait,
    Waits,
};
use laneway_core::class::{self, Class};
use laneway_core::gate::Gate;
use laneway_core::id::RunId;
use laneway_core::key::TaskKeys;
use laneway_core::limit::Limit;
use laneway_core::plan::Position;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_core::version::OrderVersion;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::layers;
use super::quarantine;
use super::txn::{Done, Head, Plans, read_head};
use crate::keeper::{Key, read_pauses, unreadable};
use crate::layer;
use crate::model::{Part, Placed};
use crate::offer;
use crate::sqlite::statements::sql;

/// Holders that are read of a key; a cause names fewer.
const HOLDERS: i64 = 20;

/// By position: what each task of a run, or of a part of it, waits for.
pub(super) fn of_run(
    connection: &Connection,
    plans: &Plans,
    head: &Head,
    part: Option<&Part>,
) -> Done<Vec<Option<Waits>>> {
    let (of_the_run, owner) = of_the_run(connection, head)?;
    let is_queued = matches!(of_the_run, Some(Waits::MaxRuns(_) | Waits::NotBefore(_)));
    let is_paused = matches!(of_the_run, Some(Waits::Paused(_)));
    let mut look = Look { connection, plans, head, of_the_run, owner, bound: None, lines: HashMap::new() };
    // A pinned run that nobody has begun is anybody's as well.
    let is_anybodys = head.head.placed == Placed::Spread || look.is_unbound();
    let mut waits = Vec::new();
    let mut read = |row: &Row<'_>| -> Done<()> {
        let gate: Option<String> = row.get(0)?;
        let mut gate = gate.as_deref().and_then(Gate::parse);
        // Nobody writes into every row that a run is queued or paused: it holds for all that would
        // be next.
        if is_queued && gate.is_some() {
            gate = Some(Gate::MaxRuns);
        } else if is_paused && gate == Some(Gate::MaxParallel) {
            gate = Some(Gate::Paused);
        }
        let (class, wake_at): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
        let (position, item): (Position, Option<String>) = (row.get(3)?, row.get(4)?);
        waits.push(match gate {
            None => look.bound(class)?,
            Some(gate) => {
                let keys = head.head.keys_of(position, item.as_deref()).unwrap_or_default();
                look.behind(gate, (position, keys), class, wake_at.map(Millis))?
            }
        });
        Ok(())
    };
    match part {
        None => {
            let mut statement = connection.prepare_cached(sql!("task_gates"))?;
            let mut rows = statement.query(params![head.no, is_anybodys])?;
            while let Some(row) = rows.next()? {
                read(row)?;
            }
        }
        Some(Part(ranges)) => {
            let mut statement = connection.prepare_cached(sql!("task_gates_part"))?;
            for range in ranges {
                let mut rows = statement.query(params![head.no, is_anybodys, range.start, range.end])?;
                while let Some(row) = rows.next()? {
                    read(row)?;
                }
            }
        }
    }
    Ok(waits)
}

/// Why nothing of a run starts: it is for later, it is queued, or a person paused it. And the node
/// that owns it.
fn of_the_run(connection: &Connection, head: &Head) -> Done<(Option<Waits>, Option<String>)> {
    let (status, pauses, owner, not_before): (String, Option<String>, Option<String>, Option<i64>) =
        connection
            .prepare_cached(sql!("run_held_up"))?
            .query_row([head.no], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let owner: Option<String> =
        connection.prepare_cached(sql!("session_node"))?.query_row([owner], |row| row.get(0)).optional()?;
    if let Some(at) = not_before {
        return Ok((Some(Waits::NotBefore(Millis(at))), owner));
    }
    if status == RunStatus::Queued.as_str() {
        return Ok((Some(queued(connection, head)?), owner));
    }
    let pauses = pauses.as_deref().and_then(read_pauses).unwrap_or_default();
    let pause = pauses.into_iter().next();
    let paused =
        pause.map(|pause| Waits::Paused(PausedWait { scope: pause.scope, by: pause.by, since: pause.since }));
    Ok((paused, owner))
}

fn queued(connection: &Connection, head: &Head) -> Done<Waits> {
    let workflow = head.head.plan.workflow.name.clone();
    let mut statement = connection.prepare_cached(sql!("runs_running_since"))?;
    let mut rows = statement.query([&workflow])?;
    let mut running = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
        running.push((run, row.get::<_, Option<i64>>(1)?.map(Millis)));
    }
    let (before, of): (u32, u32) = connection
        .prepare_cached(sql!("run_place"))?
        .query_row(params![workflow, head.no], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let limit = head.head.plan.workflow.max_runs.map_or(0, |max| max.limit.get());
    Ok(Waits::MaxRuns(MaxRunsWait { workflow, limit, running, place: Place { at: before + 1, of } }))
}

struct Look<'c> {
    connection: &'c Connection,
    plans: &'c Plans,
    head: &'c Head,
    /// What holds up the run as a whole.
    of_the_run: Option<Waits>,
    /// The node that owns the run.
    owner: Option<String>,
    /// Which files bind the run to that node, once that was asked.
    bound: Option<Option<BoundWait>>,
    lines: HashMap<String, Line>,
}

/// Everybody who waits at a key.
struct Line {
    /// Places of this run's tasks, from 1 on.
    places: HashMap<Position, u32>,
    length: u32,
}

impl Look<'_> {
    fn behind(
        &mut self,
        gate: Gate,
        (position, keys): (Position, TaskKeys),
        class: i64,
        wake_at: Option<Millis>,
    ) -> Done<Option<Waits>> {
        Ok(match gate {
            Gate::MaxParallel if self.is_unbound() => Some(Waits::FirstTask),
            Gate::Needs | Gate::Group | Gate::Level | Gate::MaxParallel => Waits::of_run(gate),
            Gate::RunAt => Some(Waits::RunAt { until: wake_at }),
            // Of a run as a whole, and told by it.
            Gate::MaxRuns | Gate::Paused => self.of_the_run.clone(),
            Gate::Node => self.nodes(position, class)?,
            Gate::Lock => match keys.lock {
                Some(name) => {
                    let key = Key::Lock(name.clone());
                    let (holders, place) = (self.holders(&key)?, self.place(&key, position)?);
                    Some(Waits::Lock(LockWait { key: name, holders, place }))
                }
                None => None,
            },
            Gate::Order => match keys.order {
                Some((key, version)) => {
                    let smaller = self.smaller(&key, &version)?;
                    Some(Waits::Order(OrderWait { key, version, smaller }))
                }
                None => None,
            },
            Gate::Limit | Gate::Rate => self.limit(&keys.limits, position, wake_at)?,
        })
    }

    /// The limit at which a task waits.
    fn limit(
        &mut self,
        names: &[String],
        position: Position,
        wake_at: Option<Millis>,
    ) -> Done<Option<Waits>> {
        let at: Option<String> = self
            .connection
            .prepare_cached(sql!("task_gate_key"))?
            .query_row(params![self.head.no, position], |row| row.get(0))?;
        let Some(name) = names.iter().find(|name| Some(Key::Limit((*name).clone()).text()) == at) else {
            return Ok(None);
        };
        let key = Key::Limit(name.clone());
        let text: Option<String> =
            self.connection.prepare_cached(sql!("limit"))?.query_row([name], |row| row.get(0)).optional()?;
        let place = self.place(&key, position)?;
        let (name, limit) = (name.clone(), text.as_deref().and_then(|text| Limit::parse(text).ok()));
        Ok(match limit {
            None => None,
            Some(Limit::Capacity(limit)) => {
                let holders = self.holders(&key)?;
                Some(Waits::Limit(LimitWait { name, limit: limit.get(), holders, place }))
            }
            Some(Limit::Rate(rate)) => {
                let first = wake_at.or(self.first_wake(&key)?);
                first.map(|until| Waits::Rate(RateWait { name, rate, until, place }))
            }
        })
    }

    fn first_wake(&self, key: &Key) -> Done<Option<Millis>> {
        let mut statement = self.connection.prepare_cached(sql!("key_wake"))?;
        let at: Option<i64> = statement.query_row([key.text()], |row| row.get(0))?;
        Ok(at.map(Millis))
    }

    fn holders(&self, key: &Key) -> Done<Vec<Holder>> {
        self.tasks(sql!("key_held_by"), params![key.text(), HOLDERS], |_| Ok(()))
            .map(|found| found.into_iter().map(|(holder, ())| holder).collect())
    }

    fn smaller(&self, key: &str, version: &OrderVersion) -> Done<Vec<(OrderVersion, Holder)>> {
        let found =
            self.tasks(sql!("order_before"), params![key, version.stored(), HOLDERS], |row| row.get(5))?;
        let read = |(holder, stored): (Holder, String)| {
            let version = OrderVersion::from_stored(&stored).ok_or_else(|| unreadable("version", &stored))?;
            Ok((version, holder))
        };
        found.into_iter().map(read).collect()
    }

    /// Tasks of whatever run: its id, position, status, node and start, and what else the question
    /// asks for.
    fn tasks<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        more: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Done<Vec<(Holder, T)>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, status): (String, String) = (row.get(0)?, row.get(2)?);
            let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
            let position: Position = row.get(1)?;
            let since: Option<i64> = row.get(4)?;
            let holder = Holder {
                run,
                step: self.step(run, position)?,
                status: TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?,
                node: row.get(3)?,
                since: since.map(Millis),
            };
            found.push((holder, more(row)?));
        }
        Ok(found)
    }

    fn step(&self, run: RunId, position: Position) -> Done<String> {
        if run == self.head.head.run {
            return Ok(self.head.head.plan.task_name(position));
        }
        match read_head(self.connection, self.plans, run) {
            Ok(other) => Ok(other.head.plan.task_name(position)),
            // What cannot be read of another run is that one's trouble: this one waits for it all
            // the same.
            Err(failure) if quarantine::is_about_a_value(&failure) => Ok(format!("position {position}")),
            Err(failure) => Err(failure),
        }
    }

    fn place(&mut self, key: &Key, position: Position) -> Done<Place> {
        let text = key.text();
        if !self.lines.contains_key(&text) {
            let mut line = Line { places: HashMap::new(), length: 0 };
            let mut statement = self.connection.prepare_cached(sql!("key_line"))?;
            let mut rows = statement.query([&text])?;
            while let Some(row) = rows.next()? {
                line.length += 1;
                if row.get::<_, i64>(0)? == self.head.no {
                    line.places.insert(row.get(1)?, line.length);
                }
            }
            self.lines.insert(text.clone(), line);
        }
        let line = &self.lines[&text];
        Ok(Place { at: line.places.get(&position).copied().unwrap_or(line.length), of: line.length })
    }

    /// Whether the run is to stay on a node that is not known yet.
    fn is_unbound(&self) -> bool {
        matches!(self.head.head.placed, Placed::Pinned { .. }) && self.owner.is_none()
    }

    /// Whether a task of this class is offered to the owner of its run alone, in a run that is not
    /// pinned.
    fn is_bound(&self, class: i64) -> bool {
        let head = &self.head.head;
        head.placed == Placed::Spread && self.owner.is_some() && class == head.own_class
    }

    /// Why such a task waits for one node.
    fn bound(&mut self, class: i64) -> Done<Option<Waits>> {
        if !self.is_bound(class) {
            return Ok(None);
        }
        if self.bound.is_none() {
            let layers = layers::layers(self.connection, self.head.no)?;
            self.bound = Some(layer::bound_to(&self.head.head.plan, &layers, self.owner.as_deref()));
        }
        Ok(self.bound.clone().flatten().map(Waits::Bound))
    }

    fn nodes(&self, position: Position, class: i64) -> Done<Option<Waits>> {
        let head = &self.head.head;
        let wait = if self.is_bound(class) {
            Some(for_class(
                self.connection,
                Class { pin: self.owner.clone(), ..head.plan.class_of(position) },
            )?)
        } else {
            let pin = self.owner.clone().filter(|_| head.placed != Placed::Spread);
            for_node(self.connection, head.placed.class().unwrap_or(class), pin)?
        };
        Ok(wait.map(Waits::Node))
    }
}

/// What a task of a class waits for that no node takes, of a run that may be bound to one.
pub(super) fn for_node(connection: &Connection, class: i64, pin: Option<String>) -> Done<Option<NodeWait>> {
    let text: Option<String> =
        connection.prepare_cached(sql!("class_text"))?.query_row([class], |row| row.get(0)).optional()?;
    let Some(class) = text.as_deref().and_then(Class::parse) else { return Ok(None) };
    for_class(connection, Class { pin, ..class }).map(Some)
}

fn for_class(connection: &Connection, class: Class) -> Done<NodeWait> {
    let mut statement = connection.prepare_cached(sql!("sessions_offering"))?;
    let mut rows = statement.query([])?;
    let mut nodes = Vec::new();
    while let Some(row) = rows.next()? {
        let offer: String = row.get(1)?;
        let Some(offer) = offer::from_text(&offer) else { continue };
        nodes.push((row.get(0)?, class::lacks(&offer, &class)));
    }
    Ok(NodeWait { class, nodes })
}
