//! Reads of what runs share.

use async_trait::async_trait;
use laneway_core::gate::Gate;
use laneway_core::node_event::NodeEvent;
use laneway_core::pool::PoolEvent;
use laneway_core::time::Millis;
use rusqlite::Connection;

use crate::contract::StoreQueries;
use crate::error::Result;
use crate::line::{Line, OrderLine};
use crate::model::{Definition, Known, LimitView, Losses, NodeView, PoolView, RunOutcome, WorkflowView};
use crate::overview::Overview;
use crate::sqlite::operator::apply;
use crate::sqlite::{SMALL, Shared, SqliteStore, lines, overview, pools, read, view};

#[async_trait]
impl StoreQueries for SqliteStore {
    async fn workflows(&self) -> Result<Vec<WorkflowView>> {
        self.read(|connection, _| apply::workflows(connection)).await
    }

    async fn outcomes(&self, workflows: Vec<String>, limit: usize) -> Result<Vec<RunOutcome>> {
        self.read(move |connection, _| view::outcomes(connection, &workflows, limit)).await
    }

    async fn versions(&self, workflow: &str, below: Option<u32>, limit: usize) -> Result<Vec<Definition>> {
        let name = workflow.to_owned();
        self.read(move |connection, _| apply::versions(connection, &name, below, limit)).await
    }

    async fn latest(&self, workflow: &str) -> Result<Known> {
        self.look(|connection, _| read::latest(connection, workflow))
    }

    async fn paused(&self, workflow: &str) -> Result<Option<(String, Millis)>> {
        self.look(|connection, _| read::workflow_paused(connection, workflow))
    }

    async fn overview(&self) -> Result<Overview> {
        self.read(overview::overview).await
    }

    async fn limits(&self) -> Result<Vec<LimitView>> {
        self.read(|connection, _| view::limits(connection)).await
    }

    async fn line(&self, of: crate::line::Shared, limit: usize) -> Result<Line> {
        self.read(move |connection, shared| lines::line(connection, &shared.plans, &of, limit)).await
    }

    async fn locks(&self, limit: usize) -> Result<Vec<String>> {
        self.read(move |connection, _| lines::locks(connection, limit)).await
    }

    async fn order_lines(&self, limit: usize, each: usize) -> Result<Vec<OrderLine>> {
        self.read(move |connection, shared| lines::orders(connection, &shared.plans, limit, each)).await
    }

    async fn backlog(&self) -> Result<Vec<(Option<Gate>, u64)>> {
        self.read(|connection, _| view::backlog(connection)).await
    }

    async fn parked(&self) -> Result<u64> {
        self.read(|connection, _| view::parked(connection)).await
    }

    async fn nodes(&self, claims: usize) -> Result<Vec<NodeView>> {
        self.read(move |connection, shared| view::nodes(connection, shared, claims)).await
    }

    async fn losses(&self) -> Result<Losses> {
        self.read(|connection, _| view::losses(connection)).await
    }

    async fn node_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<NodeEvent>> {
        let node = node.map(str::to_owned);
        let question = move |connection: &Connection, _: &Shared| {
            view::node_events(connection, node.as_deref(), after, limit)
        };
        if limit <= SMALL { self.look(question) } else { self.read(question).await }
    }

    async fn pool_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<PoolEvent>> {
        let node = node.map(str::to_owned);
        let question = move |connection: &Connection, _: &Shared| {
            pools::events(connection, node.as_deref(), after, limit)
        };
        if limit <= SMALL { self.look(question) } else { self.read(question).await }
    }

    async fn pool_containers(&self) -> Result<Vec<PoolEvent>> {
        self.read(|connection, _| pools::containers(connection)).await
    }

    async fn pools(&self) -> Result<Vec<PoolView>> {
        self.read(|connection, _| pools::all(connection)).await
    }
}
