//! Nodes and their sessions. A session is the lease on everything that a node holds.

use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::id::SessionId;
use laneway_core::node_event::Leaving;
use laneway_core::pool::PoolFact;

use crate::error::Result;
use crate::lease::LeaseFile;
use crate::model::{KeptPool, NewSession, Orders, Reaped, RemoteView, Renewed, Tally};

#[async_trait]
pub trait Sessions {
    /// Registers a session for a node. A local session stays alive until `retire` or until its
    /// process dies. A remote session (`token`) stays alive only while it is renewed, on every
    /// database.
    async fn register(&self, node: NewSession) -> Result<SessionId>;

    /// Renews the session's lease where it has one (`takes_lease`), records its counters, and
    /// returns the claims it holds, so that the worker can recover a claim whose response was lost.
    ///
    /// # Errors
    /// `SessionOver` if its tasks were already reclaimed.
    async fn renew(&self, session: SessionId, tally: Tally) -> Result<Renewed>;

    /// Returns what the session must do: claims to stop, and requests for its pools.
    ///
    /// # Errors
    /// `SessionOver` if its tasks were already reclaimed. Nothing that it writes counts any more.
    async fn orders(&self, session: SessionId) -> Result<Orders>;

    /// Records whether the container engine of the session's node answers. From then on the node
    /// claims container steps, or none. It keeps what it holds. Idempotent.
    ///
    /// # Errors
    /// `SessionOver` if the session is over.
    async fn offer_containers(&self, session: SessionId, answers: bool) -> Result<()>;

    /// Records what the warm containers of a session did, in this order. Ignored for a session that
    /// is over.
    async fn tell_pools(&self, session: SessionId, facts: Vec<PoolFact>) -> Result<()>;

    /// Records which pools a session keeps, so that operators can send them requests. Ignored for a
    /// session that is over.
    async fn keep_pools(&self, session: SessionId, pools: Vec<KeptPool>) -> Result<()>;

    /// Ends a session in good order. What it still holds is returned as lost, at once.
    async fn retire(&self, session: SessionId, why: Leaving) -> Result<()>;

    /// Returns the tasks of every session that is proven dead. Never touches a live one.
    async fn reap(&self) -> Result<Reaped>;

    /// Kills the stopped process of a session that owns a canceled run, where processes share a
    /// host: that process cannot act on the cancel itself. Returns whether it killed one. `reap`
    /// then returns what the session held.
    async fn end_stopped(&self, _session: SessionId) -> Result<bool> {
        Ok(false)
    }

    /// Returns the session of a remote worker, or `None` if it is unknown or over.
    async fn remote(&self, session: SessionId) -> Result<Option<RemoteView>>;

    /// Returns the sessions of all remote workers, oldest first.
    async fn remotes(&self) -> Result<Vec<SessionId>>;

    /// Returns whether a session must be renewed in the store to stay alive. `false` where other
    /// processes can see whether its process lives.
    fn takes_lease(&self) -> bool;

    /// Returns the file by which a session of this process renews its lease, where processes share
    /// a host. A session whose file names an expiry loses its tasks if it is not renewed.
    fn lease_file(&self, _session: SessionId) -> Option<Arc<LeaseFile>> {
        None
    }
}
