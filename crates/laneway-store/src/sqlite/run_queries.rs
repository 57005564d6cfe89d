//! Reads of runs. A small run is read on the caller's thread: another thread would cost more than
//! the read.

use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::event::Event;
use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::pool::ContainerTaken;
use laneway_core::run_state::RunState;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use rusqlite::Connection;

use crate::contract::RunQueries;
use crate::error::Result;
use crate::model::{Attempt, ItemsAsked, RunFilter, RunHead, RunSummary, RunView, TaskView};
use crate::sqlite::txn::{Head, plan};
use crate::sqlite::{SMALL, Shared, SqliteStore, pools, read, view};

#[async_trait]
impl RunQueries for SqliteStore {
    async fn find_run(&self, name: &str) -> Result<RunId> {
        let name = name.to_owned();
        self.read(move |connection, _| read::find_run(connection, &name)).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunSummary>> {
        self.read(move |connection, shared| view::runs(connection, &shared.locks, &filter)).await
    }

    async fn run_behind(
        &self,
        of: Option<String>,
        before: Option<RunId>,
        count: usize,
    ) -> Result<Option<(RunId, Millis)>> {
        self.read(move |connection, _| view::run_behind(connection, of.as_deref(), before, count)).await
    }

    async fn run(&self, run: RunId) -> Result<RunView> {
        let view = |connection: &Connection, shared: &Shared, head: Head| {
            view::run(connection, &shared.locks, &shared.plans, &head, None)
        };
        let small = self.look(|connection, shared| {
            let head = shared.small_head(connection, run)?;
            head.map(|head| view(connection, shared, head)).transpose()
        })?;
        match small {
            Some(view) => Ok(view),
            None => {
                self.read(move |connection, shared| view(connection, shared, shared.head(connection, run)?))
                    .await
            }
        }
    }

    async fn items(&self, run: RunId, asked: ItemsAsked) -> Result<Vec<TaskView>> {
        self.read(move |connection, shared| {
            let head = shared.head(connection, run)?;
            let step = shared.position(&head, &asked.step)?;
            view::items(connection, &shared.locks, &shared.plans, (&head, step), &asked)
        })
        .await
    }

    async fn head(&self, run: RunId) -> Result<Arc<RunHead>> {
        self.read(move |connection, shared| Ok(Arc::clone(&shared.head(connection, run)?.head))).await
    }

    async fn status(&self, run: RunId) -> Result<RunStatus> {
        self.look(|connection, _| read::status(connection, run))
    }

    async fn run_state(&self, run: RunId) -> Result<RunState> {
        self.read(move |connection, shared| read::run_state(connection, &shared.head(connection, run)?)).await
    }

    async fn events_since(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>> {
        let question =
            move |connection: &Connection, _: &Shared| read::events_since(connection, run, after, limit);
        if limit <= SMALL { self.look(question) } else { self.read(question).await }
    }

    async fn attempts(&self, run: RunId, step: &str) -> Result<Vec<Attempt>> {
        let step = step.to_owned();
        self.read(move |connection, shared| {
            let head = shared.head(connection, run)?;
            read::attempts(connection, &head, shared.position(&head, &step)?)
        })
        .await
    }

    async fn taken(&self, run: RunId, step: &str) -> Result<Vec<ContainerTaken>> {
        let step = step.to_owned();
        self.read(move |connection, _| pools::taken(connection, run, &step)).await
    }

    async fn plan(&self, version: &Version) -> Result<Arc<Plan>> {
        let version = version.clone();
        self.read(move |connection, shared| plan(connection, &shared.plans, &version)).await
    }

    async fn document(&self, version: &Version) -> Result<String> {
        let version = version.clone();
        self.read(move |connection, _| read::document(connection, &version)).await
    }
}
