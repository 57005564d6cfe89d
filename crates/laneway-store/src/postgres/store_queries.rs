//! Reads of what runs share.

use async_trait::async_trait;
use laneway_core::gate::Gate;
use laneway_core::node_event::NodeEvent;
use laneway_core::pool::PoolEvent;
use laneway_core::time::Millis;

use crate::contract::StoreQueries;
use crate::error::Result;
use crate::line::{Line, OrderLine};
use crate::model::{Definition, Known, LimitView, Losses, NodeView, PoolView, RunOutcome, WorkflowView};
use crate::overview::Overview;
use crate::postgres::operator::apply;
use crate::postgres::{PostgresStore, lines, overview, pools, read, view};

#[async_trait]
impl StoreQueries for PostgresStore {
    async fn workflows(&self) -> Result<Vec<WorkflowView>> {
        self.base.ask(|link| async move { apply::workflows(&link).await }).await
    }

    async fn outcomes(&self, workflows: Vec<String>, limit: usize) -> Result<Vec<RunOutcome>> {
        let workflows = &workflows;
        self.base.ask(|link| async move { view::outcomes(&link, workflows, limit).await }).await
    }

    async fn versions(&self, workflow: &str, below: Option<u32>, limit: usize) -> Result<Vec<Definition>> {
        self.base.ask(|link| async move { apply::versions(&link, workflow, below, limit).await }).await
    }

    async fn latest(&self, workflow: &str) -> Result<Known> {
        self.base.ask(|link| async move { read::latest(&link, workflow).await }).await
    }

    async fn paused(&self, workflow: &str) -> Result<Option<(String, Millis)>> {
        self.base.ask(|link| async move { view::workflow_paused(&link, workflow).await }).await
    }

    async fn overview(&self) -> Result<Overview> {
        let (shelf, now) = (&self.base.shelf, self.base.now());
        self.base.ask_at_once(|link| async move { overview::overview(&link, shelf, now).await }).await
    }

    async fn limits(&self) -> Result<Vec<LimitView>> {
        self.base.ask(|link| async move { view::limits(&link).await }).await
    }

    async fn line(&self, of: crate::line::Shared, limit: usize) -> Result<Line> {
        let (of, shelf) = (&of, &self.base.shelf);
        self.base.ask_at_once(|link| async move { lines::line(&link, shelf, of, limit).await }).await
    }

    async fn locks(&self, limit: usize) -> Result<Vec<String>> {
        self.base.ask(|link| async move { lines::locks(&link, limit).await }).await
    }

    async fn order_lines(&self, limit: usize, each: usize) -> Result<Vec<OrderLine>> {
        let shelf = &self.base.shelf;
        self.base.ask_at_once(|link| async move { lines::orders(&link, shelf, limit, each).await }).await
    }

    async fn backlog(&self) -> Result<Vec<(Option<Gate>, u64)>> {
        self.base.ask(|link| async move { view::backlog(&link).await }).await
    }

    async fn parked(&self) -> Result<u64> {
        self.base.ask(|link| async move { view::parked(&link).await }).await
    }

    async fn nodes(&self, claims: usize) -> Result<Vec<NodeView>> {
        self.base
            .ask_at_once(
                |link| async move { view::nodes(&link, &self.base.shelf, self.base.now(), claims).await },
            )
            .await
    }

    async fn losses(&self) -> Result<Losses> {
        self.base.ask(|link| async move { view::losses(&link).await }).await
    }

    async fn node_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<NodeEvent>> {
        self.base.ask(|link| async move { view::node_events(&link, node, after, limit).await }).await
    }

    async fn pool_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<PoolEvent>> {
        self.base.ask(|link| async move { pools::events(&link, node, after, limit).await }).await
    }

    async fn pool_containers(&self) -> Result<Vec<PoolEvent>> {
        self.base.ask(|link| async move { pools::containers(&link).await }).await
    }

    async fn pools(&self) -> Result<Vec<PoolView>> {
        self.base.ask(|link| async move { pools::all(&link).await }).await
    }
}
