//! What stands behind the gates of tasks that wait, for whoever asks why: holders, lines, nodes.
//! Counted as the gate keeper counts; a line is read once for all tasks of a run that stand in it.
//! Inside a transaction that reads.

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
use tokio_postgres::Row;

use super::fault::Done;
use super::layers;
use super::link::{Link, sql};
use super::read::{self, is_blamed};
use super::row::{self, unreadable};
use super::shelf::{Head, Shelf};
use crate::keeper::{Key, read_pauses};
use crate::layer;
use crate::model::{Part, Placed};
use crate::offer;

/// Holders that are read of a key; a cause names fewer.
const HOLDERS: i64 = 20;

/// By position: what each task of a run, or of a part of it, waits for.
pub(super) async fn of_run(
    link: &Link,
    shelf: &Shelf,
    head: &Head,
    part: Option<&Part>,
) -> Done<Vec<Option<Waits>>> {
    let (of_the_run, owner) = of_the_run(link, head).await?;
    let is_queued = matches!(of_the_run, Some(Waits::MaxRuns(_) | Waits::NotBefore(_)));
    let is_paused = matches!(of_the_run, Some(Waits::Paused(_)));
    let mut look = Look { link, shelf, head, of_the_run, owner, bound: None, lines: HashMap::new() };
    let mut waits = Vec::new();
    // A pinned run that nobody has begun is anybody's as well.
    let is_anybodys = head.head.placed == Placed::Spread || look.is_unbound();
    let rows = match part.map(read::bounds) {
        None => link.rows(sql!("task_gates", INT8, BOOL), &[&head.no, &is_anybodys]).await?,
        Some((first, behind)) => {
            let sql = sql!("task_gates_part", INT8, BOOL, INT8_ARRAY, INT8_ARRAY);
            link.rows(sql, &[&head.no, &is_anybodys, &first, &behind]).await?
        }
    };
    for found in rows {
        let gate = row::maybe_text(&found, 0)?.as_deref().and_then(Gate::parse);
        // Nobody writes into every row that a run is queued or paused: it holds for all that would
        // be next.
        let gate = gate.map(|gate| match gate {
            _ if is_queued => Gate::MaxRuns,
            Gate::MaxParallel if is_paused => Gate::Paused,
            gate => gate,
        });
        let position = row::number(&found, 4)?;
        let item = row::maybe_text(&found, 5)?;
        let stand = Stand {
            keys: head.head.keys_of(position, item.as_deref()).unwrap_or_default(),
            position,
            class: found.try_get(1)?,
            wake_at: row::moment(&found, 2)?,
            gate_key: row::maybe_text(&found, 3)?,
        };
        waits.push(match gate {
            None => look.bound(stand.class).await?,
            Some(gate) => look.behind(gate, &stand).await?,
        });
    }
    Ok(waits)
}

/// Where a task stands.
struct Stand {
    keys: TaskKeys,
    position: Position,
    class: i64,
    wake_at: Option<Millis>,
    gate_key: Option<String>,
}

/// Why nothing of a run starts: it is for later, it is queued, or a person paused it. And the node
/// that owns it.
async fn of_the_run(link: &Link, head: &Head) -> Done<(Option<Waits>, Option<String>)> {
    let Some(found) = link.row(sql!("run_held_up", INT8), &[&head.no]).await? else {
        return Ok((None, None));
    };
    let owner = row::maybe_text(&found, 2)?;
    if let Some(at) = row::moment(&found, 3)? {
        return Ok((Some(Waits::NotBefore(at)), owner));
    }
    if row::text(&found, 0)? == RunStatus::Queued.as_str() {
        return Ok((Some(queued(link, head).await?), owner));
    }
    let pauses = row::maybe_text(&found, 1)?.as_deref().and_then(read_pauses).unwrap_or_default();
    let first = pauses.into_iter().next();
    let paused =
        first.map(|pause| Waits::Paused(PausedWait { scope: pause.scope, by: pause.by, since: pause.since }));
    Ok((paused, owner))
}

async fn queued(link: &Link, head: &Head) -> Done<Waits> {
    let workflow = head.head.plan.workflow.name.clone();
    let mut running = Vec::new();
    for found in link.rows(sql!("runs_running_since", TEXT), &[&workflow]).await? {
        running.push((row::word(&found, 0, "run id", RunId::parse)?, row::moment(&found, 1)?));
    }
    let place = link.row(sql!("run_place", TEXT, INT8), &[&workflow, &head.no]).await?;
    let place = place.ok_or_else(|| unreadable("place of a run", ""))?;
    let (before, of): (u32, u32) = (row::number(&place, 0)?, row::number(&place, 1)?);
    let limit = head.head.plan.workflow.max_runs.map_or(0, |max| max.limit.get());
    Ok(Waits::MaxRuns(MaxRunsWait { workflow, limit, running, place: Place { at: before + 1, of } }))
}

struct Look<'l> {
    link: &'l Link,
    shelf: &'l Shelf,
    head: &'l Head,
    /// What holds up the run as a whole.
    of_the_run: Option<Waits>,
    /// The node that owns the run.
    owner: Option<String>,
    /// Which files bind the run to that node, once that was asked.
    bound: Option<Option<BoundWait>>,
    lines: HashMap<String, Line>,
}

/// Everybody who waits at a key.
#[derive(Default)]
struct Line {
    /// Places of this run's tasks, from 1 on.
    places: HashMap<Position, u32>,
    length: u32,
}

impl Look<'_> {
    async fn behind(&mut self, gate: Gate, stand: &Stand) -> Done<Option<Waits>> {
        let keys = stand.keys.clone();
        Ok(match gate {
            Gate::MaxParallel if self.is_unbound() => Some(Waits::FirstTask),
            Gate::Needs | Gate::Group | Gate::Level | Gate::MaxParallel => Waits::of_run(gate),
            Gate::RunAt => Some(Waits::RunAt { until: stand.wake_at }),
            // Of a run as a whole, and told by it.
            Gate::MaxRuns | Gate::Paused => self.of_the_run.clone(),
            Gate::Node => self.nodes(stand).await?,
            Gate::Lock => match keys.lock {
                Some(name) => {
                    let key = Key::Lock(name.clone());
                    let (holders, place) =
                        (self.holders(&key).await?, self.place(&key, stand.position).await?);
                    Some(Waits::Lock(LockWait { key: name, holders, place }))
                }
                None => None,
            },
            Gate::Order => match keys.order {
                Some((key, version)) => {
                    let smaller = self.smaller(&key, &version).await?;
                    Some(Waits::Order(OrderWait { key, version, smaller }))
                }
                None => None,
            },
            Gate::Limit | Gate::Rate => self.limit(&keys.limits, stand).await?,
        })
    }

    /// The limit at which a task waits.
    async fn limit(&mut self, names: &[String], stand: &Stand) -> Done<Option<Waits>> {
        let is_here = |name: &&String| Some(Key::Limit((*name).clone()).text()) == stand.gate_key;
        let Some(name) = names.iter().find(is_here).cloned() else { return Ok(None) };
        let key = Key::Limit(name.clone());
        let asked = vec![name.clone()];
        let found = self.link.row(sql!("limit", TEXT_ARRAY), &[&asked]).await?;
        let text = found.map(|found| row::text(&found, 1)).transpose()?;
        let place = self.place(&key, stand.position).await?;
        Ok(match text.as_deref().and_then(|text| Limit::parse(text).ok()) {
            None => None,
            Some(Limit::Capacity(limit)) => {
                let holders = self.holders(&key).await?;
                Some(Waits::Limit(LimitWait { name, limit: limit.get(), holders, place }))
            }
            Some(Limit::Rate(rate)) => {
                let first = match stand.wake_at {
                    Some(at) => Some(at),
                    None => self.first_wake(&key).await?,
                };
                first.map(|until| Waits::Rate(RateWait { name, rate, until, place }))
            }
        })
    }

    async fn first_wake(&self, key: &Key) -> Done<Option<Millis>> {
        let found = self.link.row(sql!("key_wake", TEXT), &[&key.text()]).await?;
        Ok(found.map(|found| row::moment(&found, 0)).transpose()?.flatten())
    }

    async fn holders(&self, key: &Key) -> Done<Vec<Holder>> {
        let rows = self.link.rows(sql!("key_held_by", TEXT, INT8), &[&key.text(), &HOLDERS]).await?;
        let mut holders = Vec::with_capacity(rows.len());
        for found in &rows {
            holders.push(self.holder(found).await?);
        }
        Ok(holders)
    }

    async fn smaller(&self, key: &str, version: &OrderVersion) -> Done<Vec<(OrderVersion, Holder)>> {
        let before = sql!("order_before", TEXT, TEXT, INT8);
        let rows = self.link.rows(before, &[&key, &version.stored(), &HOLDERS]).await?;
        let mut smaller = Vec::with_capacity(rows.len());
        for found in &rows {
            smaller.push((
                row::word(found, 5, "version", OrderVersion::from_stored)?,
                self.holder(found).await?,
            ));
        }
        Ok(smaller)
    }

    /// A task of whatever run: its id, position, status, node and start.
    async fn holder(&self, found: &Row) -> Done<Holder> {
        let run = row::word(found, 0, "run id", RunId::parse)?;
        let position: Position = row::number(found, 1)?;
        let step = match self.shelf.head(self.link, run).await {
            Ok(head) => head.head.plan.task_name(position),
            // What cannot be read of another run is that one's trouble: this one waits for it all
            // the same.
            Err(failure) if failure.is_about_a_value() || is_blamed(&failure) => {
                format!("position {position}")
            }
            Err(failure) => return Err(failure),
        };
        Ok(Holder {
            run,
            step,
            status: row::word(found, 2, "status of a task", TaskStatus::parse)?,
            node: row::maybe_text(found, 3)?,
            since: row::moment(found, 4)?,
        })
    }

    async fn place(&mut self, key: &Key, position: Position) -> Done<Place> {
        let text = key.text();
        if !self.lines.contains_key(&text) {
            let mut line = Line::default();
            for found in self.link.rows(sql!("key_line", TEXT), &[&text]).await? {
                line.length += 1;
                if found.try_get::<_, i64>(0)? == self.head.no {
                    line.places.insert(row::number(&found, 1)?, line.length);
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
    async fn bound(&mut self, class: i64) -> Done<Option<Waits>> {
        if !self.is_bound(class) {
            return Ok(None);
        }
        if self.bound.is_none() {
            let layers = layers::layers(self.link, self.head.no).await?;
            self.bound = Some(layer::bound_to(&self.head.head.plan, &layers, self.owner.as_deref()));
        }
        Ok(self.bound.clone().flatten().map(Waits::Bound))
    }

    async fn nodes(&self, stand: &Stand) -> Done<Option<Waits>> {
        let head = &self.head.head;
        let wait = if self.is_bound(stand.class) {
            let class = Class { pin: self.owner.clone(), ..head.plan.class_of(stand.position) };
            Some(for_class(self.link, class).await?)
        } else {
            let pin = self.owner.clone().filter(|_| head.placed != Placed::Spread);
            for_node(self.link, head.placed.class().unwrap_or(stand.class), pin).await?
        };
        Ok(wait.map(Waits::Node))
    }
}

/// What a task of a class waits for that no node takes, of a run that may be bound to one.
pub(super) async fn for_node(link: &Link, class: i64, pin: Option<String>) -> Done<Option<NodeWait>> {
    let text = link.row(sql!("class_text", INT8), &[&class]).await?;
    let text = text.map(|found| row::text(&found, 0)).transpose()?;
    let Some(class) = text.as_deref().and_then(Class::parse) else { return Ok(None) };
    for_class(link, Class { pin, ..class }).await.map(Some)
}

async fn for_class(link: &Link, class: Class) -> Done<NodeWait> {
    let mut nodes = Vec::new();
    for found in link.rows(sql!("sessions_offering"), &[]).await? {
        let Some(offer) = offer::from_text(&row::text(&found, 1)?) else { continue };
        nodes.push((row::text(&found, 0)?, class::lacks(&offer, &class)));
    }
    Ok(NodeWait { class, nodes })
}
