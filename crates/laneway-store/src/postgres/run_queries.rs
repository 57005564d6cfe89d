//! Reads of runs.

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

use crate::contract::RunQueries;
use crate::error::Result;
use crate::model::{Attempt, ItemsAsked, RunFilter, RunHead, RunSummary, RunView, TaskView};
use crate::postgres::{PostgresStore, pools, read, view};

#[async_trait]
impl RunQueries for PostgresStore {
    async fn find_run(&self, name: &str) -> Result<RunId> {
        self.base.ask(|link| async move { read::find_run(&link, name).await }).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunSummary>> {
        let filter = &filter;
        self.base.ask_at_once(|link| async move { view::runs(&link, self.base.now(), filter).await }).await
    }

    async fn run_behind(
        &self,
        of: Option<String>,
        before: Option<RunId>,
        count: usize,
    ) -> Result<Option<(RunId, Millis)>> {
        let of = of.as_deref();
        self.base.ask(|link| async move { view::run_behind(&link, of, before, count).await }).await
    }

    async fn run(&self, run: RunId) -> Result<RunView> {
        self.base
            .ask_at_once(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                view::run(&link, &self.base.shelf, self.base.now(), &head, None).await
            })
            .await
    }

    async fn items(&self, run: RunId, asked: ItemsAsked) -> Result<Vec<TaskView>> {
        let asked = &asked;
        self.base
            .ask_at_once(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                view::items(&link, &self.base.shelf, self.base.now(), &head, asked).await
            })
            .await
    }

    async fn head(&self, run: RunId) -> Result<Arc<RunHead>> {
        self.base
            .ask(|link| async move { Ok(Arc::clone(&self.base.shelf.head(&link, run).await?.head)) })
            .await
    }

    async fn status(&self, run: RunId) -> Result<RunStatus> {
        self.base.ask(|link| async move { read::status(&link, run).await }).await
    }

    async fn run_state(&self, run: RunId) -> Result<RunState> {
        self.base
            .ask_at_once(|link| async move {
                read::run_state(&link, &*self.base.shelf.head(&link, run).await?).await
            })
            .await
    }

    async fn events_since(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>> {
        self.base.ask(|link| async move { read::events_since(&link, run, after, limit).await }).await
    }

    async fn attempts(&self, run: RunId, step: &str) -> Result<Vec<Attempt>> {
        self.base
            .ask_at_once(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                read::attempts(&link, &head, read::position(&head, step)?).await
            })
            .await
    }

    async fn taken(&self, run: RunId, step: &str) -> Result<Vec<ContainerTaken>> {
        self.base.ask(|link| async move { pools::taken(&link, run, step).await }).await
    }

    async fn plan(&self, version: &Version) -> Result<Arc<Plan>> {
        self.base.ask(|link| async move { self.base.shelf.plan(&link, version).await }).await
    }

    async fn document(&self, version: &Version) -> Result<String> {
        self.base.ask(|link| async move { read::document(&link, version).await }).await
    }
}
