//! A node on the store of many, as the program makes one: a session with something to offer, its heartbeat, a warden. The
//! store is named by the environment, as for the drivers of the peers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use laneway_core::class::Offer;
use laneway_core::definition::{Source, compile};
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::plan::Plan;
use laneway_engine::container::Containers;
use laneway_engine::function::Functions;
use laneway_engine::warden::{Warden, WardenCommand};
use laneway_engine::worker::{Control, Counts, Ground, Heartbeat, Means, Worker};
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Open, Store};
use serde_json::{Map, Value};

pub(super) struct Node {
    pub(super) store: Arc<dyn Store>,
    pub(super) session: SessionId,
    counts: Counts,
    heartbeat: Heartbeat,
}

/// Where the store is.
pub(super) fn address() -> Result<String> {
    std::env::var("DATABASE_URL").context("DATABASE_URL names the store")
}

impl Node {
    /// `side` is a label, for a workflow whose steps are to run apart.
    pub(super) async fn begin(functions: &[&str], side: Option<&str>, slots: u32) -> Result<Self> {
        let address = address()?;
        let store = laneway_store::open(&address, Open::Create)?;
        let name = format!("bench:{}", std::process::id());
        let offer = Offer {
            node: name.clone(),
            labels: side.map(|side| ("side".to_owned(), side.to_owned())).into_iter().collect(),
            has_process: false,
            functions: functions.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
            ..Offer::default()
        };
        let node = NewSession { offer: Some(offer), ..NewSession::ephemeral(name, slots) };
        let (lease, counts) = (node.lease, Counts::default());
        let session = store.register(node).await?;
        let open = move || laneway_store::open(&address, Open::Existing);
        let heartbeat =
            Heartbeat::start(open, session, lease, counts.clone(), None).context("no heartbeat")?;
        Ok(Self { store, session, counts, heartbeat })
    }

    /// Works until it is told to stop.
    pub(super) async fn work(&self, slots: usize, functions: Functions, control: Control) -> Result<()> {
        let program = std::env::var_os("WARDEN").context("WARDEN names Laneway's program")?;
        let command = WardenCommand {
            program: PathBuf::from(program),
            args: vec!["warden".into()],
            lock: Some(laneway_store::warden_lock(self.store.dir(), self.session)),
            lease: None,
            use_cgroups: false,
            is_leased: false,
        };
        let worker = Worker {
            means: Means {
                store: Arc::clone(&self.store),
                session: self.session,
                slots,
                kill_grace: Duration::from_secs(5),
                warden: Warden::start(command).context("no warden")?,
                functions,
                containers: Containers::default(),
                pulse: Some(self.heartbeat.pulse()),
                counts: self.counts.clone(),
                max_poll_interval: Duration::from_secs(15),
                takes_results: true,
                workspace_max_bytes: laneway_engine::WORKSPACE_MAX_BYTES,
            },
            ground: Ground::Caller { pass_env: None },
            watches_engine: false,
            shutdown_grace: Duration::from_secs(10),
        };
        worker.until_stopped(control).await?;
        Ok(())
    }

    pub(super) fn submission(
        &self,
        plan: &Arc<Plan>,
        document: &str,
        params: Map<String, Value>,
    ) -> Submission {
        Submission {
            dir: "/".to_owned(),
            params,
            max_parallel: u32::try_from(plan.workflow.steps.len()).unwrap_or(u32::MAX),
            is_shared: true,
            by: "bench".to_owned(),
            ..Submission::new(Arc::clone(plan), document.to_owned(), self.session)
        }
    }

    pub(super) async fn submit(&self, plan: &Arc<Plan>, document: &str) -> Result<RunId> {
        Ok(self.store.submit(self.submission(plan, document, Map::new())).await?)
    }

    pub(super) async fn end(self) -> Result<()> {
        Ok(self.store.retire(self.session, Leaving::because(LeaveReason::Done)).await?)
    }
}

pub(super) fn plan(yaml: &str) -> Result<Arc<Plan>> {
    let (file, default_name) = ("bench.yaml".to_owned(), "bench".to_owned());
    let source = Source { file, default_name, text: yaml.to_owned() };
    Ok(Arc::new(compile(&source).map_err(|faults| anyhow::anyhow!("{}", faults.render(false)))?))
}
