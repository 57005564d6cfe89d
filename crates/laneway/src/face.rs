//! Where a command looks and what it changes: a store of its own, or a server with one. Commands know one path; which of the
//! two it is stands here. Both answer with the types of the wire.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use laneway_core::effect::EffectId;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::limit::Limit;
use laneway_core::state::RunStatus;
use laneway_engine::log::{Frame, Part, Stream, read_part};
use laneway_server::client::Client;
use laneway_server::{ask, wire};
use laneway_store::Store;
use laneway_store::cache::Which;
use laneway_store::model::{CancelMode, LogName, Pausable, Placed, Reopen, RunFilter};
use tokio::sync::watch;

use crate::deed::author;
use crate::exit::Refusal;

/// How often a server is asked for something that may have changed: it tells nobody who does not ask.
const LOOK: Duration = Duration::from_millis(300);

/// The most that a server gives at once.
const PAGE: usize = 1_000;

/// The most of a log that is held in memory.
const LOG_PART: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(crate) enum Face {
    Store(Arc<dyn Store>),
    Server(Client),
}

impl Face {
    /// Whether it asks a server.
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Server(_) => true,
            Self::Store(_) => false,
        }
    }

    pub(crate) async fn runs(
        &self,
        status: Option<RunStatus>,
        workflow: Option<String>,
        limit: usize,
    ) -> anyhow::Result<Vec<wire::RunSummary>> {
        let mut runs: Vec<wire::RunSummary> = Vec::new();
        let mut cursor: Option<String> = None;
        // A page is looked for among so many runs: where few are like that, there may be more behind it.
        loop {
            let left = limit - runs.len();
            let page = match self {
                Self::Store(store) => {
                    let filter = RunFilter {
                        statuses: status.into_iter().collect(),
                        workflow: workflow.clone(),
                        before: cursor.as_deref().and_then(RunId::parse),
                        limit: left,
                        ..RunFilter::default()
                    };
                    ask::runs(store.as_ref(), filter).await?
                }
                Self::Server(client) => {
                    let status = status.map(RunStatus::as_str);
                    client.runs(status, workflow.as_deref(), (left.min(PAGE), cursor.as_deref())).await?
                }
            };
            runs.extend(page.runs);
            cursor = page.next_cursor;
            if cursor.is_none() || runs.len() >= limit {
                return Ok(runs);
            }
        }
    }

    /// By id, by the beginning of one, or `last`.
    pub(crate) async fn run(&self, name: &str) -> anyhow::Result<wire::Run> {
        Ok(match self {
            Self::Store(store) => ask::run(store.as_ref(), store.find_run(name).await?).await?,
            Self::Server(client) => client.run(name).await?,
        })
    }

    /// One for whose end somebody waits: refused if it is set aside, since nothing comes of it until it is brought back.
    pub(crate) async fn going_on(&self, run: RunId) -> anyhow::Result<wire::Run> {
        let seen = self.run(&run.to_string()).await?;
        match seen.set_aside {
            Some(wire::SetAside { what, why, .. }) => {
                Err(laneway_store::Error::SetAside { run: run.short(), what, why }.into())
            }
            None => Ok(seen),
        }
    }

    /// As it was after an event.
    pub(crate) async fn run_at(&self, name: &str, at: u64) -> anyhow::Result<wire::Run> {
        Ok(match self {
            Self::Store(store) => ask::run_at(store.as_ref(), store.find_run(name).await?, at).await?,
            Self::Server(client) => client.run_at(name, at).await?,
        })
    }

    pub(crate) async fn status(&self, run: RunId) -> anyhow::Result<RunStatus> {
        Ok(match self {
            Self::Store(store) => store.status(run).await?,
            Self::Server(client) => client.run_in_short(&run.to_string()).await?.status,
        })
    }

    /// The graph of the version with which it runs.
    pub(crate) async fn graph(&self, run: RunId) -> anyhow::Result<wire::Graph> {
        match self {
            Self::Store(store) => {
                let head = store.head(run).await?;
                // Ten thousand steps take a moment, in which others have things to do.
                Ok(tokio::task::spawn_blocking(move || wire::Graph::of(&head.plan)).await?)
            }
            Self::Server(client) => Ok(client.graph(run).await?),
        }
    }

    pub(crate) async fn explain_run(&self, name: &str) -> anyhow::Result<wire::ExplainedRun> {
        Ok(match self {
            Self::Store(store) => ask::explain_run(store.as_ref(), store.find_run(name).await?).await?,
            Self::Server(client) => client.explain_run(name).await?,
        })
    }

    pub(crate) async fn explain_step(&self, name: &str, step: &str) -> anyhow::Result<wire::ExplainedStep> {
        Ok(match self {
            Self::Store(store) => {
                ask::explain_step(store.as_ref(), store.find_run(name).await?, step).await?
            }
            Self::Server(client) => client.explain_step(name, step).await?,
        })
    }

    pub(crate) async fn events(&self, run: RunId, after: u64) -> anyhow::Result<wire::EventList> {
        Ok(match self {
            Self::Store(store) => ask::events(store.as_ref(), run, after, PAGE).await?,
            Self::Server(client) => client.events(run, after, PAGE).await?,
        })
    }

    /// What an attempt printed from an offset on, and where to go on.
    pub(crate) async fn log(&self, of: &LogName, offset: u64) -> anyhow::Result<Part> {
        match self {
            Self::Store(store) => Ok(read_part(store.as_ref(), of, offset, LOG_PART).await?),
            Self::Server(client) => {
                let page = client.log(of.run, &of.step, of.attempt, offset).await?;
                Ok(Part {
                    frames: page.pieces.iter().map(frame).collect(),
                    next_offset: page.next_offset,
                    size: page.size,
                    is_end: page.is_over,
                    may_lack_end: page.may_lack_end,
                })
            }
        }
    }

    /// Files that the steps of a run left behind.
    pub(crate) async fn artifacts(&self, run: RunId) -> anyhow::Result<Vec<wire::Artifact>> {
        Ok(match self {
            Self::Store(store) => ask::artifacts(store.as_ref(), run).await?.artifacts,
            Self::Server(client) => client.artifacts(&run.to_string()).await?.artifacts,
        })
    }

    /// Writes one of them to a file that is not there yet.
    pub(crate) async fn fetch(&self, run: RunId, of: &wire::Artifact, to: &Path) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => {
                let hash = ContentHash::parse(&of.hash).context("an artifact has no hash")?;
                store.fetch_file(&hash, to).await?;
            }
            Self::Server(client) => {
                let mut file = tokio::fs::File::create_new(to).await?;
                if let Err(error) = client.fetch(run, of, &mut file).await {
                    let _ = std::fs::remove_file(to);
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// What a task changed in the files of its run.
    pub(crate) async fn changed_files(&self, run: RunId, step: &str) -> anyhow::Result<wire::ChangedFiles> {
        Ok(match self {
            Self::Store(store) => ask::changed_files(store.as_ref(), run, step).await?,
            Self::Server(client) => client.changed_files(run, step).await?,
        })
    }

    /// Writes one of these files to a file that does not exist yet.
    pub(crate) async fn fetch_changed(
        &self,
        run: RunId,
        step: &str,
        path: &str,
        to: &Path,
    ) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => {
                let bytes = ask::changed_file(store.as_ref(), run, step, path).await?;
                std::fs::write(to, bytes)?;
            }
            Self::Server(client) => {
                let mut file = tokio::fs::File::create_new(to).await?;
                if let Err(error) = client.fetch_changed(run, step, path, &mut file).await {
                    let _ = std::fs::remove_file(to);
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    pub(crate) async fn cancel(&self, run: RunId, mode: CancelMode) -> anyhow::Result<wire::Canceled> {
        Ok(match self {
            Self::Store(store) => ask::cancel(store.as_ref(), run, mode, &author()).await?,
            Self::Server(client) => client.cancel(&run.to_string(), mode).await?,
        })
    }

    /// What the steps of a run did to the world.
    pub(crate) async fn effects(&self, run: RunId) -> anyhow::Result<Vec<wire::Effect>> {
        Ok(match self {
            Self::Store(store) => ask::effects(store.as_ref(), run).await?.effects,
            Self::Server(client) => client.effects(&run.to_string()).await?.effects,
        })
    }

    /// Says what became of an effect that nobody runs any more.
    pub(crate) async fn settle_effect(
        &self,
        run: RunId,
        step: &str,
        settle: wire::SettleEffect,
    ) -> anyhow::Result<wire::SettledEffect> {
        Ok(match self {
            Self::Store(store) => {
                let id = EffectId::new(&settle.name, &settle.key)
                    .map_err(|error| Refusal::new(error.to_string()))?;
                ask::settle_effect(store.as_ref(), run, step, (id, settle.settle), &author()).await?
            }
            Self::Server(client) => client.settle_effect(&run.to_string(), step, &settle).await?,
        })
    }

    /// Says what a step waits for.
    pub(crate) async fn signal(
        &self,
        run: RunId,
        step: &str,
        signal: wire::Signal,
    ) -> anyhow::Result<wire::Signaled> {
        Ok(match self {
            Self::Store(store) => ask::signal(store.as_ref(), run, step, signal, &author()).await?,
            Self::Server(client) => client.signal(&run.to_string(), step, &signal).await?,
        })
    }

    /// Holds a run up, or lets it go on.
    pub(crate) async fn pause_run(&self, run: RunId, is_paused: bool) -> anyhow::Result<wire::Paused> {
        Ok(match self {
            Self::Store(store) => {
                ask::pause(store.as_ref(), Pausable::Run(run), is_paused, &author()).await?
            }
            Self::Server(client) => client.pause_run(&run.to_string(), is_paused).await?,
        })
    }

    /// Whether a run is one of `laneway run` on a store of its own: nobody takes its tasks but a process that goes on with it.
    pub(crate) async fn is_local(&self, run: RunId) -> anyhow::Result<bool> {
        match self {
            Self::Store(store) => Ok(store.head(run).await?.placed == Placed::Local),
            Self::Server(_) => Ok(false),
        }
    }

    /// Opens an ended run again, for whoever takes its tasks.
    pub(crate) async fn retry(&self, run: RunId, what: Reopen<'_>) -> anyhow::Result<Vec<String>> {
        Ok(match self {
            Self::Store(store) => ask::retry(store.as_ref(), run, what, &author()).await?.steps,
            Self::Server(client) => client.retry(&run.to_string(), what).await?.steps,
        })
    }

    /// Lets an ended run go on past a failed step.
    pub(crate) async fn skip(&self, run: RunId, step: &str) -> anyhow::Result<Vec<String>> {
        Ok(match self {
            Self::Store(store) => ask::skip(store.as_ref(), run, step, &author()).await?.steps,
            Self::Server(client) => client.skip(&run.to_string(), step).await?.steps,
        })
    }

    /// Gives the level that is under way now.
    pub(crate) async fn advance(&self, run: RunId) -> anyhow::Result<u32> {
        match self {
            Self::Store(store) => Ok(ask::advance(store.as_ref(), run, &author()).await?.level),
            Self::Server(client) => Ok(client.advance(&run.to_string()).await?.level),
        }
    }

    pub(crate) async fn pause_workflow(&self, name: &str, is_paused: bool) -> anyhow::Result<wire::Paused> {
        Ok(match self {
            Self::Store(store) => {
                let workflow = Pausable::Workflow(name.to_owned());
                ask::pause(store.as_ref(), workflow, is_paused, &author()).await?
            }
            Self::Server(client) => client.pause_workflow(name, is_paused).await?,
        })
    }

    /// What they ask for is read from their documents, which takes its time: for who wants to know it.
    pub(crate) async fn workflows(&self, with_params: bool) -> anyhow::Result<Vec<wire::WorkflowSummary>> {
        Ok(match self {
            Self::Store(store) => {
                let forms = with_params.then(ask::Forms::default);
                ask::workflows(store.as_ref(), forms.as_ref()).await?.workflows
            }
            Self::Server(client) => client.workflows().await?.workflows,
        })
    }

    pub(crate) async fn versions(&self, name: &str, limit: usize) -> anyhow::Result<Vec<wire::Definition>> {
        let client = match self {
            Self::Store(store) => {
                return Ok(ask::versions(store.as_ref(), name, None, limit).await?.versions);
            }
            Self::Server(client) => client,
        };
        let (mut versions, mut cursor) = (Vec::new(), None);
        loop {
            let page = (limit - versions.len()).min(PAGE);
            let page = client.versions(name, (page, cursor.as_deref())).await?;
            versions.extend(page.versions);
            cursor = page.next_cursor;
            if cursor.is_none() || versions.len() >= limit {
                return Ok(versions);
            }
        }
    }

    pub(crate) async fn triggers(&self) -> anyhow::Result<Vec<wire::Trigger>> {
        Ok(match self {
            Self::Store(store) => ask::triggers(store.as_ref()).await?.triggers,
            Self::Server(client) => client.triggers().await?.triggers,
        })
    }

    /// Lets a workflow start by itself no more, or again.
    pub(crate) async fn pause_triggers(
        &self,
        workflow: &str,
        is_paused: bool,
    ) -> anyhow::Result<wire::TriggersPaused> {
        Ok(match self {
            Self::Store(store) => ask::pause_triggers(store.as_ref(), workflow, is_paused, &author()).await?,
            Self::Server(client) => client.pause_triggers(workflow, is_paused).await?,
        })
    }

    /// Lets a canceled run end although its holder is frozen. A server does that by itself after a
    /// cancel (`laneway-server`, `canceling.rs`).
    pub(crate) async fn settle_cancel(&self, run: RunId) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => Ok(ask::settle_cancel(store.as_ref(), run).await?),
            Self::Server(_) => Ok(()),
        }
    }

    pub(crate) async fn nodes(&self) -> anyhow::Result<Vec<wire::Node>> {
        Ok(match self {
            Self::Store(store) => ask::nodes(store.as_ref()).await?.nodes,
            Self::Server(client) => client.nodes().await?.nodes,
        })
    }

    pub(crate) async fn node_events(
        &self,
        node: Option<&str>,
        after: u64,
    ) -> anyhow::Result<wire::NodeEventList> {
        Ok(match self {
            Self::Store(store) => ask::node_events(store.as_ref(), node, after, PAGE).await?,
            Self::Server(client) => client.node_events(node, after, PAGE).await?,
        })
    }

    pub(crate) async fn pools(&self) -> anyhow::Result<Vec<wire::Pool>> {
        Ok(match self {
            Self::Store(store) => ask::pools(store.as_ref()).await?.pools,
            Self::Server(client) => client.pools().await?.pools,
        })
    }

    pub(crate) async fn pool_events(
        &self,
        node: Option<&str>,
        after: u64,
    ) -> anyhow::Result<wire::PoolEventList> {
        Ok(match self {
            Self::Store(store) => ask::pool_events(store.as_ref(), node, after, PAGE).await?,
            Self::Server(client) => client.pool_events(node, after, PAGE).await?,
        })
    }

    pub(crate) async fn warm_pool(
        &self,
        pool: &str,
        asked: &wire::WarmPool,
    ) -> anyhow::Result<wire::AskedPool> {
        Ok(match self {
            Self::Store(store) => ask::warm_pool(store.as_ref(), pool, asked, &author()).await?,
            Self::Server(client) => client.warm_pool(pool, asked).await?,
        })
    }

    pub(crate) async fn drain_pool(
        &self,
        pool: &str,
        asked: &wire::DrainPool,
    ) -> anyhow::Result<wire::AskedPool> {
        Ok(match self {
            Self::Store(store) => ask::drain_pool(store.as_ref(), pool, asked, &author()).await?,
            Self::Server(client) => client.drain_pool(pool, asked).await?,
        })
    }

    pub(crate) async fn drain(&self, node: &str) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => {
                ask::drain(store.as_ref(), node, &author()).await?;
            }
            Self::Server(client) => {
                client.drain(node).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn limits(&self) -> anyhow::Result<Vec<wire::Limit>> {
        Ok(match self {
            Self::Store(store) => ask::limits(store.as_ref()).await?.limits,
            Self::Server(client) => client.limits().await?.limits,
        })
    }

    /// Results that steps may take, those that were used last first.
    pub(crate) async fn results(&self, which: Which, limit: usize) -> anyhow::Result<Vec<wire::CacheEntry>> {
        let client = match self {
            Self::Store(store) => return Ok(ask::results(store.as_ref(), which, None, limit).await?.entries),
            Self::Server(client) => client,
        };
        let (mut entries, mut cursor) = (Vec::new(), None);
        loop {
            let page = (limit - entries.len()).min(PAGE);
            let page = client.results(&which, (page, cursor.as_deref())).await?;
            entries.extend(page.entries);
            cursor = page.next_cursor;
            if cursor.is_none() || entries.len() >= limit {
                return Ok(entries);
            }
        }
    }

    pub(crate) async fn clear_results(&self, which: Which) -> anyhow::Result<wire::CacheCleared> {
        Ok(match self {
            Self::Store(store) => ask::clear_results(store.as_ref(), which, &author()).await?,
            Self::Server(client) => client.clear_results(&which).await?,
        })
    }

    pub(crate) async fn set_limit(&self, name: &str, limit: Limit) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => {
                ask::set_limit(store.as_ref(), name, limit, &author()).await?;
            }
            Self::Server(client) => {
                client.set_limit(name, &limit.to_string()).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn remove_limit(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => ask::remove_limit(store.as_ref(), name, &author()).await?,
            Self::Server(client) => client.remove_limit(name).await?,
        };
        Ok(())
    }

    pub(crate) async fn remove_triggers(&self, workflow: &str) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => ask::remove_triggers(store.as_ref(), workflow, &author()).await?,
            Self::Server(client) => client.remove_triggers(workflow).await?,
        };
        Ok(())
    }

    pub(crate) async fn remove_workflow(&self, name: &str, is_forced: bool) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => ask::remove_workflow(store.as_ref(), name, is_forced, &author()).await?,
            Self::Server(client) => client.remove_workflow(name, is_forced).await?,
        };
        Ok(())
    }

    pub(crate) async fn tokens(&self) -> anyhow::Result<Vec<wire::Token>> {
        let client = match self {
            Self::Store(store) => return Ok(ask::tokens(store.as_ref(), None, usize::MAX).await?.tokens),
            Self::Server(client) => client,
        };
        let (mut tokens, mut cursor) = (Vec::new(), None);
        loop {
            let page = client.tokens((PAGE, cursor.as_deref())).await?;
            tokens.extend(page.tokens);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tokens);
            }
        }
    }

    /// By name, without their values.
    pub(crate) async fn secrets(&self) -> anyhow::Result<Vec<wire::StoredSecret>> {
        Ok(match self {
            Self::Store(store) => ask::secrets(store.as_ref()).await?.secrets,
            Self::Server(client) => client.secrets().await?.secrets,
        })
    }

    pub(crate) async fn set_secret(&self, name: &str, value: String) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => ask::set_secret(store.as_ref(), name, &value, &author()).await?,
            Self::Server(client) => client.set_secret(name, &wire::SetSecret { value }).await?,
        };
        Ok(())
    }

    pub(crate) async fn remove_secret(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => ask::remove_secret(store.as_ref(), name, &author()).await?,
            Self::Server(client) => client.remove_secret(name).await?,
        };
        Ok(())
    }

    /// Whether everything is on this host, so that to look costs little.
    pub(crate) fn is_embedded(&self) -> bool {
        match self {
            Self::Store(store) => store.is_embedded(),
            Self::Server(_) => false,
        }
    }

    /// Hints that something changed.
    pub(crate) fn watch(&self) -> Watch {
        Watch(match self {
            Self::Store(store) => Some(store.changes()),
            Self::Server(_) => None,
        })
    }
}

/// Waits for a hint, and no longer than one is patient.
#[derive(Debug)]
pub(crate) struct Watch(Option<watch::Receiver<u64>>);

impl Watch {
    /// Whether there was a hint since the last time. Of a server nobody knows.
    pub(crate) fn has_hint(&mut self) -> bool {
        match &mut self.0 {
            Some(changes) => {
                let has_hint = changes.has_changed().unwrap_or(false);
                changes.mark_unchanged();
                has_hint
            }
            None => false,
        }
    }

    pub(crate) async fn next(&mut self, patience: Duration) {
        match &mut self.0 {
            Some(changes) => drop(tokio::time::timeout(patience, changes.changed()).await),
            None => tokio::time::sleep(patience.max(LOOK)).await,
        }
    }
}

fn frame(piece: &wire::LogPiece) -> Frame {
    let stream = Stream::ALL.into_iter().find(|stream| stream.as_str() == piece.stream);
    Frame {
        stream: stream.unwrap_or(Stream::Note),
        unix_ms: u64::try_from(piece.time.0.0).unwrap_or_default(),
        bytes: piece.bytes(),
    }
}
