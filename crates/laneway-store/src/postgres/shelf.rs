//! What never changes once it is committed: plans, and the heads of runs. Losing it costs a read, nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::key;
use laneway_core::plan::Plan;
use serde_json::{Map, Value};

use super::fault::Done;
use super::link::{Link, sql};
use super::row;
use crate::error::Error;
use crate::model::{Placed, RunHead};
use crate::plans::Plans;

/// The unchanging parts of a run, with its number in this database.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) no: i64,
    pub(super) head: Arc<RunHead>,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) plans: Plans,
    heads: Mutex<HashMap<RunId, Arc<Head>>>,
}

/// Few runs are active at a time; beyond this the shelf is emptied rather than grown.
const HEADS: usize = 1_024;

impl Shelf {
    /// From the shelf, or from the database.
    pub(super) async fn head(&self, link: &Link, run: RunId) -> Done<Arc<Head>> {
        let kept = self.heads.lock().unwrap_or_else(PoisonError::into_inner).get(&run).cloned();
        if let Some(head) = kept {
            return Ok(head);
        }
        let head = Arc::new(self.read_head(link, run).await?);
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if heads.len() >= HEADS {
            heads.clear();
        }
        heads.insert(run, Arc::clone(&head));
        Ok(head)
    }

    async fn read_head(&self, link: &Link, run: RunId) -> Done<Head> {
        let found = link.row(sql!("run_head", TEXT), &[&run.to_string()]).await?;
        let found = found.ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
        let plan = self.plan(link, &Version::from_stored(row::text(&found, 1)?)).await?;
        let params: Map<String, Value> = serde_json::from_str(&row::text(&found, 3)?).map_err(|error| {
            Error::Unreadable { what: format!("params of run {}", run.short()), why: error.to_string() }
        })?;
        let (dir, max_parallel) = (row::text(&found, 2)?, row::number(&found, 4)?);
        let keys = key::bind(&plan, &params).map_err(|error| Error::Unreadable {
            what: format!("keys of run {}", run.short()),
            why: error.to_string(),
        })?;
        let (placement, submitted_from) = (row::text(&found, 5)?, row::text(&found, 6)?);
        let placed = Placed::parse(&placement, found.try_get(7)?);
        let placed = placed.ok_or_else(|| row::unreadable("placement", &placement))?;
        let no: i64 = found.try_get(0)?;
        let own_class = -no;
        let head = RunHead { run, plan, dir, params, max_parallel, submitted_from, keys, placed, own_class };
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
}
