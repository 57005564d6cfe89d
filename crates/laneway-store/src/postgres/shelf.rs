//! What never changes once it is committed: plans, the heads of runs, numbers of classes, which documents are stored.
//! Losing it costs a read, nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::class::Class;
use laneway_core::definition::{OnLost, Step};
use laneway_core::gate::Gate;
use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::RunId;
use laneway_core::key;
use laneway_core::plan::{Plan, Position};
use serde_json::{Map, Value};
use tokio_postgres::Row;

use super::claim_cursor::SessionCursors;
use super::fault::{Done, Failure};
use super::link::{Link, sql};
use super::row;
use crate::child::read_parent;
use crate::error::Error;
use crate::model::{Placed, RunHead};
use crate::plans::Plans;
use crate::tally::GateWaits;

/// The unchanging parts of a run, with its number in this database.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) no: i64,
    pub(super) head: Arc<RunHead>,
}

impl Head {
    /// Refuses a task that stands nowhere in the plan, on behalf of its run: nothing could be said of it.
    pub(super) fn check<'p>(&self, positions: impl IntoIterator<Item = &'p Position>) -> Done<()> {
        match positions.into_iter().find(|position| self.head.plan.base(**position).is_none()) {
            None => Ok(()),
            Some(position) => {
                let unknown = row::unreadable("position of a task", &position.to_string());
                Err(Failure::from(unknown).about(self.no, self.head.run))
            }
        }
    }
}

/// Plans that were asked for in one answer.
pub(super) type Seen = HashMap<Version, Option<Arc<Plan>>>;

#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) plans: Plans,
    heads: Mutex<HashMap<RunId, Arc<Head>>>,
    stored: Mutex<Stored>,
    /// How often a claim got fewer than it wanted because others had the rest in hand.
    pub(super) contentions: AtomicU64,
    waits: Mutex<GateWaits>,
    pub(super) cursors: Arc<SessionCursors>,
}

/// What is known to be in the database. Nothing ever deletes these.
#[derive(Debug, Default)]
struct Stored {
    classes: HashMap<Class, i64>,
    versions: HashSet<Version>,
    /// Whether every step of a version may wait for its place in a worker's hand.
    may_wait: HashMap<Version, bool>,
}

/// Few runs are active at a time; beyond this the shelf is emptied rather than grown.
const HEADS: usize = 1_024;

/// Versions that are told to each request for work.
const MAY_WAIT: usize = 64;

/// The same for classes and documents.
const STORED: usize = 4_096;

impl Shelf {
    /// From the shelf, or from the database.
    pub(super) async fn head(&self, link: &Link, run: RunId) -> Done<Arc<Head>> {
        let kept = self.heads.lock().unwrap_or_else(PoisonError::into_inner).get(&run).cloned();
        if let Some(head) = kept {
            return Ok(head);
        }
        let found = link.row(sql!("run_head", TEXT), &[&run.to_string()]).await?;
        let found = found.ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
        self.keep_head(link, run, &found).await
    }

    /// The same of a run of which somebody says to hold tasks: `None` if it is gone.
    pub(super) async fn held(&self, link: &Link, run: RunId) -> Done<Option<Arc<Head>>> {
        match self.head(link, run).await {
            Ok(head) => Ok(Some(head)),
            Err(Failure::Refused(Error::NoSuchRun { .. })) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Tasks became available.
    pub(super) fn note_waits(&self, waits: &[(Gate, Duration)]) {
        if !waits.is_empty() {
            let mut kept = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
            waits.iter().for_each(|(gate, waited)| kept.add(*gate, *waited));
        }
    }

    pub(super) fn waits(&self) -> GateWaits {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that goes is asked for no more.
    pub(super) fn forget_run(&self, run: RunId) {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    /// From the shelf, or from a row that has it.
    pub(super) async fn head_of_row(&self, link: &Link, run: RunId, found: &Row) -> Done<Arc<Head>> {
        let kept = self.heads.lock().unwrap_or_else(PoisonError::into_inner).get(&run).cloned();
        match kept {
            Some(head) => Ok(head),
            None => self.keep_head(link, run, found).await,
        }
    }

    async fn keep_head(&self, link: &Link, run: RunId, found: &Row) -> Done<Arc<Head>> {
        let no = found.try_get(0)?;
        let head = self.read_head(link, run, found).await.map_err(|failure| failure.about(no, run))?;
        let head = Arc::new(head);
        self.keep_may_wait(&head.head.plan);
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if heads.len() >= HEADS {
            heads.clear();
        }
        heads.insert(run, Arc::clone(&head));
        Ok(head)
    }

    async fn read_head(&self, link: &Link, run: RunId, found: &Row) -> Done<Head> {
        let plan = self.plan(link, &Version::from_stored(row::text(found, 1)?)).await?;
        let params: Map<String, Value> = serde_json::from_str(&row::text(found, 3)?).map_err(|error| {
            Error::Unreadable { what: format!("params of run {}", run.short()), why: error.to_string() }
        })?;
        let (dir, max_parallel) = (row::text(found, 2)?, row::number(found, 4)?);
        let keys = key::bind(&plan, &params).map_err(|error| Error::Unreadable {
            what: format!("keys of run {}", run.short()),
            why: error.to_string(),
        })?;
        let (placement, submitted_from) = (row::text(found, 5)?, row::text(found, 6)?);
        let placed = Placed::parse(&placement, found.try_get(7)?);
        let placed = placed.ok_or_else(|| row::unreadable("placement", &placement))?;
        let no: i64 = found.try_get(0)?;
        let bundle = row::maybe_word(found, 8, "bundle of a run", ContentHash::parse)?;
        let parent = row::maybe_word(found, 9, "parent of a run", read_parent)?;
        let own_class = -found.try_get::<_, Option<i64>>(10)?.unwrap_or(no);
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
            own_class,
            parent,
            no_cache: found.try_get(11)?,
        };
        Ok(Head { no, head: Arc::new(head) })
    }

    pub(super) async fn plan(&self, link: &Link, version: &Version) -> Done<Arc<Plan>> {
        if let Some(plan) = self.plans.kept(version) {
            return Ok(plan);
        }
        let found = link.row(sql!("workflow", TEXT), &[&version.as_str()]).await?;
        let found = found.ok_or_else(|| row::unreadable("workflow", version.as_str()))?;
        Ok(self.plans.make(version, row::text(&found, 0)?, row::text(&found, 1)?)?)
    }

    /// One of those of which one answer tells; nothing of one that cannot be read, which hides none of the others.
    pub(super) async fn seen(
        &self,
        link: &Link,
        seen: &mut Seen,
        version: &Version,
    ) -> Done<Option<Arc<Plan>>> {
        if let Some(known) = seen.get(version) {
            return Ok(known.clone());
        }
        let read = match self.plan(link, version).await {
            Ok(plan) => Some(plan),
            Err(Failure::Refused(_)) => None,
            Err(failure) => return Err(failure),
        };
        seen.insert(version.clone(), read.clone());
        Ok(read)
    }

    /// Versions whose every step may wait for its place in a worker's hand, as far as they are known: it must not be lost
    /// to a death unstarted, and holds no key that others wait for.
    pub(super) fn may_wait(&self) -> Vec<String> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let of_version = stored.may_wait.iter().filter(|(_, may_wait)| **may_wait);
        of_version.map(|(version, _)| version.as_str().to_owned()).collect()
    }

    fn keep_may_wait(&self, plan: &Plan) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.may_wait.contains_key(&plan.version) {
            return;
        }
        let has_keys = |step: &Step| {
            let demands = step.demands();
            demands.lock.is_some() || demands.order.is_some() || !demands.limits.is_empty()
        };
        let is_bounded_step =
            |step: &Step| step.for_each.as_ref().is_some_and(|for_each| for_each.max_parallel.is_some());
        let bars = |step: &Step| step.on_lost == OnLost::Fail || has_keys(step) || is_bounded_step(step);
        let is_bounded = plan.workflow.groups.iter().any(|group| group.max_parallel.is_some());
        let may_wait = !is_bounded && !plan.workflow.steps.iter().any(bars);
        if stored.may_wait.len() >= MAY_WAIT {
            stored.may_wait.clear();
        }
        stored.may_wait.insert(plan.version.clone(), may_wait);
    }

    /// The number of a class, if it is known.
    pub(super) fn class(&self, class: &Class) -> Option<i64> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).classes.get(class).copied()
    }

    pub(super) fn is_stored(&self, version: &Version) -> bool {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).versions.contains(version)
    }

    /// These are committed.
    pub(super) fn keep_stored<'v>(
        &self,
        classes: &HashMap<Class, i64>,
        versions: impl Iterator<Item = &'v Version>,
    ) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.classes.len() + stored.versions.len() >= STORED {
            *stored = Stored::default();
        }
        stored.classes.extend(classes.iter().map(|(class, no)| (class.clone(), *no)));
        stored.versions.extend(versions.cloned());
    }
}
