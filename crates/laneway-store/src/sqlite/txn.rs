//! What a verb sees: the open transaction, its moment, and a shelf of things that never change.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::gate::Gate;
use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::{RunId, SessionId};
use laneway_core::key;
use laneway_core::plan::Plan;
use laneway_core::state::Illegal;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension};

use crate::child::read_parent;
use crate::error::Error;
use crate::keeper::unreadable;
use crate::model::{Placed, RunHead};
pub(super) use crate::plans::Plans;
use crate::sqlite::statements::sql;
use crate::tally::GateWaits;

/// How a verb can fail: by its own judgement, by the database's, or by a mistake of ours.
#[derive(Debug)]
pub(super) enum Failure {
    Refused(Error),
    Sqlite(rusqlite::Error),
    /// It met something that nobody thought of; in the words of the panic.
    Panicked(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<Illegal> for Failure {
    fn from(illegal: Illegal) -> Self {
        Self::Refused(illegal.into())
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) type Done<T> = Result<T, Failure>;

/// One transaction, as a verb sees it.
pub(super) struct Txn<'c> {
    pub(super) connection: &'c Connection,
    /// The store's time, the same for all of the batch.
    pub(super) now: Millis,
    pub(super) shelf: &'c Shelf,
    /// The run that the verb works on, to know whose row it is when one cannot be read.
    pub(super) subject: Cell<Option<Subject>>,
}

/// A run, by whichever of its names is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Id(RunId),
    No(i64),
}

/// The unchanging parts of a run, with its number in this file.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) no: i64,
    pub(super) head: Arc<RunHead>,
}

/// Caches of what never changes once it is committed. Losing one costs a read, nothing else.
#[derive(Debug)]
pub(super) struct Shelf {
    plans: Arc<Plans>,
    heads: RefCell<HashMap<RunId, Arc<Head>>>,
    runs: RefCell<HashMap<i64, RunId>>,
    nodes: RefCell<HashMap<SessionId, Arc<str>>>,
    waits: Arc<Mutex<GateWaits>>,
}

/// Few runs are active at a time; beyond this the shelf is emptied rather than grown.
const SHELF: usize = 256;

impl Shelf {
    pub(super) fn new(plans: Arc<Plans>, waits: Arc<Mutex<GateWaits>>) -> Self {
        let (heads, runs, nodes) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { plans, heads, runs, nodes, waits }
    }

    /// Tasks became available.
    pub(super) fn note_waits(&self, waits: &[(Gate, Duration)]) {
        if !waits.is_empty() {
            let mut kept = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
            waits.iter().for_each(|(gate, waited)| kept.add(*gate, *waited));
        }
    }

    /// After a transaction of unknown outcome nothing that was seen in it counts.
    pub(super) fn forget(&self) {
        self.heads.borrow_mut().clear();
        self.runs.borrow_mut().clear();
        self.nodes.borrow_mut().clear();
    }

    /// One that goes is asked for no more.
    pub(super) fn forget_run(&self, run: RunId, no: i64) {
        self.heads.borrow_mut().remove(&run);
        self.runs.borrow_mut().remove(&no);
    }

    pub(super) fn plans(&self) -> &Plans {
        &self.plans
    }
}

impl Txn<'_> {
    pub(super) fn head(&self, run: RunId) -> Done<Arc<Head>> {
        self.subject.set(Some(Subject::Id(run)));
        if let Some(head) = self.shelf.heads.borrow().get(&run) {
            return Ok(Arc::clone(head));
        }
        let head = Arc::new(read_head(self.connection, &self.shelf.plans, run)?);
        let mut heads = self.shelf.heads.borrow_mut();
        if heads.len() >= SHELF {
            heads.clear();
        }
        heads.insert(run, Arc::clone(&head));
        Ok(head)
    }

    /// Remembers whose row is being read.
    pub(super) fn about(&self, no: i64) -> i64 {
        self.subject.set(Some(Subject::No(no)));
        no
    }

    /// What is read from here on is of no run: none is to blame for it.
    pub(super) fn about_none(&self) {
        self.subject.set(None);
    }

    /// The id of a run by its number.
    pub(super) fn run_id(&self, no: i64) -> Done<RunId> {
        self.about(no);
        if let Some(run) = self.shelf.runs.borrow().get(&no) {
            return Ok(*run);
        }
        let text: String =
            self.connection.prepare_cached(sql!("run_id"))?.query_row([no], |row| row.get(0))?;
        let run = RunId::parse(&text).ok_or_else(|| unreadable("run id", &text))?;
        let mut runs = self.shelf.runs.borrow_mut();
        if runs.len() >= SHELF {
            runs.clear();
        }
        runs.insert(no, run);
        Ok(run)
    }

    /// The address of a session's node; `None` when that session is over.
    pub(super) fn node(&self, session: SessionId) -> Done<Option<Arc<str>>> {
        if let Some(node) = self.shelf.nodes.borrow().get(&session) {
            return Ok(Some(Arc::clone(node)));
        }
        let node: Option<String> = self
            .connection
            .prepare_cached(sql!("session_node"))?
            .query_row([session.to_string()], |row| row.get(0))
            .optional()?;
        let node: Option<Arc<str>> = node.map(Into::into);
        if let Some(node) = &node {
            self.shelf.nodes.borrow_mut().insert(session, Arc::clone(node));
        }
        Ok(node)
    }
}

/// From the shelf, or made from the stored document again.
pub(super) fn plan(connection: &Connection, plans: &Plans, version: &Version) -> Done<Arc<Plan>> {
    if let Some(plan) = plans.kept(version) {
        return Ok(plan);
    }
    let (name, document): (String, String) = connection
        .prepare_cached(sql!("workflow"))?
        .query_row([version.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or_else(|| unreadable("workflow", version.as_str()))?;
    Ok(plans.make(version, name, document)?)
}

/// Those that were asked for in one answer; nothing of one that cannot be read, which hides none of
/// the others.
pub(super) type Seen = HashMap<Version, Option<Arc<Plan>>>;

pub(super) fn seen(
    connection: &Connection,
    plans: &Plans,
    seen: &mut Seen,
    version: &Version,
) -> Option<Arc<Plan>> {
    if let Some(known) = seen.get(version) {
        return known.clone();
    }
    let read = plan(connection, plans, version).ok();
    seen.insert(version.clone(), read.clone());
    read
}

/// As the statement `run_head` returns it: what a head is made of, but for the plan.
pub(super) struct HeadRow {
    no: i64,
    run: RunId,
    pub(super) version: Version,
    dir: String,
    params: String,
    max_parallel: u32,
    placement: String,
    submitted_from: String,
    class: Option<i64>,
    bundle: Option<String>,
    parent: Option<String>,
    root_no: Option<i64>,
    no_cache: bool,
}

pub(super) fn read_head(connection: &Connection, plans: &Plans, run: RunId) -> Done<Head> {
    let row = HeadRow::read(connection, run)?;
    let plan = plan(connection, plans, &row.version)?;
    row.with(plan)
}

impl HeadRow {
    pub(super) fn read(connection: &Connection, run: RunId) -> Done<Self> {
        let row = connection
            .prepare_cached(sql!("run_head"))?
            .query_row([run.to_string()], |row| {
                Ok(Self {
                    no: row.get(0)?,
                    run,
                    version: Version::from_stored(row.get(1)?),
                    dir: row.get(2)?,
                    params: row.get(3)?,
                    max_parallel: row.get(4)?,
                    placement: row.get(5)?,
                    submitted_from: row.get(6)?,
                    class: row.get(7)?,
                    bundle: row.get(8)?,
                    parent: row.get(9)?,
                    root_no: row.get(10)?,
                    no_cache: row.get(11)?,
                })
            })
            .optional()?;
        row.ok_or_else(|| Error::NoSuchRun { name: run.to_string() }.into())
    }

    pub(super) fn with(self, plan: Arc<Plan>) -> Done<Head> {
        let Self { no, run, dir, params, max_parallel, placement, submitted_from, class, bundle, .. } = self;
        let (parent, root_no, no_cache) = (self.parent, self.root_no, self.no_cache);
        let params: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&params).map_err(|error| Error::Unreadable {
                what: format!("params of run {}", run.short()),
                why: error.to_string(),
            })?;
        let keys = key::bind(&plan, &params).map_err(|error| Error::Unreadable {
            what: format!("keys of run {}", run.short()),
            why: error.to_string(),
        })?;
        let placed = Placed::parse(&placement, class).ok_or_else(|| unreadable("placement", &placement))?;
        let parse = |bundle: String| {
            ContentHash::parse(&bundle).ok_or_else(|| unreadable("bundle of a run", &bundle))
        };
        let bundle = bundle.map(parse).transpose()?;
        let parent =
            parent.map(|text| read_parent(&text).ok_or_else(|| unreadable("parent of a run", &text)));
        let head = RunHead {
            run,
            plan,
            dir,
            bundle,
            params,
            max_parallel,
            submitted_from,
            keys,
            placed,
            own_class: -root_no.unwrap_or(no),
            parent: parent.transpose()?,
            no_cache,
        };
        Ok(Head { no, head: Arc::new(head) })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use crate::sqlite::statements::sql;

    /// Name, index and text of each statement whose head names an index.
    const INDEXED: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/sqlite_indexes.rs"));

    /// A statement's head names its index. A planner that prefers another one makes a run
    /// quadratic, unseen.
    #[test]
    fn every_statement_uses_the_index_that_its_head_names() {
        let mut connection = Connection::open_in_memory().expect("a database");
        let migrations = crate::sqlite::migrate::MIGRATIONS;
        crate::sqlite::migrate::migrate(&mut connection, Path::new(""), migrations, "test")
            .expect("a schema");
        let mut checked = 0;
        for (name, index, sql) in INDEXED {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
            let nulls = vec![rusqlite::types::Null; plan.parameter_count()];
            let steps: Vec<String> = plan
                .query_map(rusqlite::params_from_iter(nulls), |row| row.get(3))
                .and_then(Iterator::collect)
                .expect("the steps of the plan");
            assert!(steps.iter().any(|step| step.contains(&format!("INDEX {index}"))), "{name}: {steps:?}");
            checked += 1;
        }
        assert!(checked > 5, "only {checked} statements name an index");
    }

    /// A table that lives as long as a statement costs more than most of what is written, and a
    /// CHECK with a list of words is enough to make one.
    #[test]
    fn nothing_that_is_said_for_every_task_makes_a_table_of_its_own() {
        let mut connection = Connection::open_in_memory().expect("a database");
        crate::sqlite::migrate::migrate(
            &mut connection,
            Path::new(""),
            crate::sqlite::migrate::MIGRATIONS,
            "test",
        )
        .expect("a schema");
        let said = [
            ("attempt_ended", sql!("attempt_ended")),
            ("audit_append", sql!("audit_append")),
            ("claim", sql!("claim")),
            ("event_append", sql!("event_append")),
            ("key_free", sql!("key_free")),
            ("key_hold", sql!("key_hold")),
            ("run_load", sql!("run_load")),
            ("run_save", sql!("run_save")),
            ("start", sql!("start")),
            ("submit_run", sql!("submit_run")),
            ("submit_task", sql!("submit_task")),
            ("task_add", sql!("task_add")),
            ("task_save", sql!("task_save")),
        ];
        for (name, sql) in said {
            let mut program = connection.prepare(&format!("EXPLAIN {sql}")).expect("a program");
            let nulls = vec![rusqlite::types::Null; program.parameter_count()];
            let steps: Vec<String> = program
                .query_map(rusqlite::params_from_iter(nulls), |row| row.get(1))
                .and_then(Iterator::collect)
                .expect("its steps");
            let made = steps.iter().filter(|step| *step == "OpenEphemeral").count();
            assert_eq!(made, 0, "{name} makes tables");
        }
    }
}
