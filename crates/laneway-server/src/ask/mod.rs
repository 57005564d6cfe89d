//! Questions and changes as functions of a store: what the routes answer, and what the command line shows of a store of its
//! own. One path for both, so that they cannot part.

mod apply;
mod change;
mod container;
mod documents;
mod explain;
mod files;
mod forms;
mod past;
mod pool;
mod runs;
mod secret;
mod submit;
mod validate;

use std::collections::HashMap;

use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::RunId;
use laneway_core::time::Millis;
use laneway_store::cache::{Behind, ResultView, Which};
use laneway_store::line::Shared;
use laneway_store::model::{NodeView, Token};
use laneway_store::{Error, Result, Store, Teller};
use serde_json::Value;

use crate::problem::{Answer, Code, Problem};
use crate::wire;

pub use apply::{apply, apply_plan, bring};
pub use change::{
    Author, advance, cancel, clear_results, create_token, drain, pause, pause_triggers, remove_limit,
    remove_triggers, remove_workflow, retry, revoke_token, rotate_token, set_limit, settle_cancel,
    settle_effect, signal, skip,
};
pub use documents::Documents;
pub use explain::{explain_run, explain_step};
pub use files::{changed_file, changed_files};
pub use forms::Forms;
pub use past::run_at;
pub use pool::{drain_pool, warm_pool};
pub use runs::{runs, runs_within};
pub use secret::{check_secret_name, remove_secret, secrets, set_secret};
pub use submit::{Terms, submit};
pub use validate::validate;

/// Claims that are listed of a node.
pub const CLAIMS: usize = 50;

/// By id, by the beginning of one, or `last`. A whole id is taken as it is: whoever reads the run finds out.
pub async fn find(store: &dyn Store, name: &str) -> Result<RunId> {
    match RunId::parse(name) {
        Some(run) => Ok(run),
        None => store.find_run(name).await,
    }
}

/// Runs of a workflow of which a list says how they went.
const OUTCOMES: usize = 20;

/// Workflows that were applied, by name, each with how it went of late and when it starts next; with forms also with what it asks for,
/// for which documents are read.
pub async fn workflows(store: &dyn Store, forms: Option<&Forms>) -> Result<wire::WorkflowList> {
    let views = store.workflows().await?;
    let names = views.iter().map(|view| view.definition.name.clone()).collect();
    let outcomes = store.outcomes(names, OUTCOMES).await?;
    let mut outcomes_of: HashMap<&str, Vec<wire::Outcome>> = HashMap::new();
    for outcome in &outcomes {
        outcomes_of.entry(&outcome.workflow).or_default().push(wire::Outcome::from(outcome));
    }
    let triggers = store.triggers().await?;
    let mut next_of: HashMap<&str, Millis> = HashMap::new();
    for (workflow, at) in triggers.iter().filter_map(|one| Some((&one.at.workflow, one.next()?))) {
        next_of.entry(workflow).and_modify(|next| *next = at.min(*next)).or_insert(at);
    }
    let mut workflows = Vec::with_capacity(views.len());
    for view in &views {
        let name = view.definition.name.as_str();
        let mut summary = wire::WorkflowSummary::from(view);
        summary.outcomes = outcomes_of.remove(name).unwrap_or_default();
        summary.next_at = next_of.get(name).copied().map(wire::Moment);
        if let Some(forms) = forms {
            summary.params = forms.of(store, &view.definition).await.to_vec();
        }
        workflows.push(summary);
    }
    Ok(wire::WorkflowList { workflows })
}

/// What was applied under a name, newest first, below a number; nothing of one that only ran.
pub async fn versions(
    store: &dyn Store,
    name: &str,
    below: Option<u32>,
    limit: usize,
) -> Result<wire::VersionList> {
    let mut versions = store.versions(name, below, limit.saturating_add(1)).await?;
    if versions.is_empty() {
        // Says that it is not known at all.
        store.latest(name).await?;
    }
    let next_cursor = cut(&mut versions, limit).map(|last| last.no.to_string());
    Ok(wire::VersionList { versions: versions.iter().map(wire::Definition::from).collect(), next_cursor })
}

/// Leaves so many of a list that was read with one more. Gives the last of them, if there is another page behind it.
fn cut<T>(found: &mut Vec<T>, limit: usize) -> Option<&T> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    found.last().filter(|_| has_more)
}

/// What starts under a name, or what was applied under it with a number.
pub async fn version(store: &dyn Store, name: &str, number: Option<u32>) -> Answer<Version> {
    let known = store.latest(name).await?;
    let Some(number) = number else { return Ok(known.version) };
    let newest = known.no.unwrap_or(0);
    let found = match number.checked_add(1) {
        Some(above) => store.versions(name, Some(above), 1).await?.pop(),
        None => None,
    };
    found.filter(|one| one.no == number).map(|one| one.version).ok_or_else(|| {
        let problem = Problem::new(Code::NoSuchVersion, format!("workflow `{name}` has no version {number}"));
        match newest {
            0 => problem.hint("it was never applied; it only ran"),
            newest => problem.hint(format!("its newest is {newest}")),
        }
    })
}

/// What starts by itself, by workflow.
pub async fn triggers(store: &dyn Store) -> Result<wire::TriggerList> {
    let triggers = store.triggers().await?;
    // Whether there is a node changes nothing where nothing waits for one.
    let has_node = !triggers.is_empty() && !firing_nodes(store).await?.is_empty();
    Ok(wire::TriggerList {
        triggers: triggers.iter().map(|view| wire::Trigger::new(view, has_node)).collect(),
    })
}

/// Addresses of the live nodes that start what schedules and other triggers are due.
pub(crate) async fn firing_nodes(store: &dyn Store) -> Result<Vec<String>> {
    let nodes = store.nodes(0).await?.into_iter();
    let mut names: Vec<String> = nodes.filter(|node| node.fires).map(|node| node.node).collect();
    // A node whose earlier session is not reaped yet is there twice.
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

pub async fn run(store: &dyn Store, run: RunId) -> Result<wire::Run> {
    Ok(wire::Run::from(&store.run(run).await?))
}

/// The tasks of a run in the order of its plan, items behind all steps as they came, so that what grows moves no page.
pub async fn tasks(
    store: &dyn Store,
    of: RunId,
    after: Option<u32>,
    limit: Option<usize>,
) -> Result<wire::TaskList> {
    let mut tasks = run(store, of).await?.tasks;
    let all = tasks.len();
    let start = after.map_or(0, |after| after as usize + 1).min(all);
    let end = limit.map_or(all, |limit| start.saturating_add(limit).min(all));
    tasks.truncate(end);
    tasks.drain(..start);
    let next_after = (end < all).then(|| u32::try_from(end - 1).ok()).flatten();
    Ok(wire::TaskList { tasks, next_after })
}

/// Files that the steps of a run left behind.
pub async fn artifacts(store: &dyn Store, run: RunId) -> Result<wire::ArtifactList> {
    let artifacts = store.artifacts(run).await?;
    Ok(wire::ArtifactList { artifacts: artifacts.iter().map(wire::Artifact::from).collect() })
}

pub async fn attempts(store: &dyn Store, run: RunId, step: &str) -> Result<wire::AttemptList> {
    let attempts = store.attempts(run, step).await?;
    let mut attempts: Vec<wire::Attempt> = attempts.iter().map(wire::Attempt::from).collect();
    let head = store.head(run).await?;
    container::housed(store, (run, &head.plan), step, &mut attempts).await?;
    Ok(wire::AttemptList { attempts })
}

/// Events behind a number.
pub async fn events(store: &dyn Store, run: RunId, after: u64, limit: usize) -> Result<wire::EventList> {
    let Told { events, next_after, unreadable } = told(store, Teller::Run(run), None, (after, limit)).await?;
    Ok(wire::EventList { events, next_after, unreadable })
}

/// A page of what somebody told.
struct Told {
    events: Vec<Value>,
    next_after: u64,
    unreadable: Vec<String>,
}

/// Events behind a number, of one node where that is asked for. One that cannot be read does not hide those behind it.
async fn told(
    store: &dyn Store,
    of: Teller,
    node: Option<&str>,
    (after, limit): (u64, usize),
) -> Result<Told> {
    let (mut next_after, mut unreadable) = (after, Vec::new());
    loop {
        let page: Result<Vec<(u64, Value)>> = match of {
            Teller::Run(run) => store
                .events_since(run, next_after, limit)
                .await
                .map(|page| page.iter().map(|event| (event.seq, event.to_json())).collect()),
            Teller::Nodes => store
                .node_events(node, next_after, limit)
                .await
                .map(|page| page.iter().map(|event| (event.seq, event.to_json())).collect()),
            Teller::Pools => store
                .pool_events(node, next_after, limit)
                .await
                .map(|page| page.iter().map(|event| (event.seq, event.to_json())).collect()),
        };
        match page {
            Err(error @ Error::UnreadableEvent { seq, .. }) => {
                unreadable.push(error.to_string());
                next_after = seq;
            }
            Err(error) => return Err(error),
            Ok(page) => {
                next_after = page.last().map_or(next_after, |(seq, _)| *seq);
                let events = page.into_iter().map(|(_, event)| event).collect();
                return Ok(Told { events, next_after, unreadable });
            }
        }
    }
}

pub async fn effects(store: &dyn Store, run: RunId) -> Result<wire::EffectList> {
    let effects = store.effects(run).await?;
    Ok(wire::EffectList { effects: effects.iter().map(wire::Effect::from).collect() })
}

pub async fn nodes(store: &dyn Store) -> Result<wire::NodeList> {
    let nodes = store.nodes(CLAIMS).await?;
    Ok(wire::NodeList { nodes: nodes.iter().map(wire::Node::from).collect() })
}

/// What works at one address.
pub async fn workers(store: &dyn Store, address: &str) -> Result<wire::Workers> {
    let nodes = store.nodes(CLAIMS).await?;
    let here: Vec<NodeView> = nodes.into_iter().filter(|node| node.node == address).collect();
    wire::Workers::of(&here, CLAIMS).ok_or_else(|| Error::NoSuchNode { node: address.to_owned() })
}

pub async fn node_events(
    store: &dyn Store,
    node: Option<&str>,
    after: u64,
    limit: usize,
) -> Result<wire::NodeEventList> {
    let Told { events, next_after, unreadable } = told(store, Teller::Nodes, node, (after, limit)).await?;
    Ok(wire::NodeEventList { events, next_after, unreadable })
}

pub async fn pools(store: &dyn Store) -> Result<wire::PoolList> {
    Ok(wire::PoolList::of(&store.pool_containers().await?, &store.pools().await?))
}

pub async fn pool_events(
    store: &dyn Store,
    node: Option<&str>,
    after: u64,
    limit: usize,
) -> Result<wire::PoolEventList> {
    let Told { events, next_after, unreadable } = told(store, Teller::Pools, node, (after, limit)).await?;
    Ok(wire::PoolEventList { events, next_after, unreadable })
}

pub async fn limits(store: &dyn Store) -> Result<wire::LimitList> {
    let limits = store.limits().await?;
    Ok(wire::LimitList { limits: limits.iter().map(wire::Limit::from).collect() })
}

/// Tasks that are named of a line.
const IN_LINE: usize = 100;

/// The same of each in a list of locks, and how many of those are listed.
const IN_A_LOCK: usize = 10;
const LOCKS: usize = 100;

/// A limit, who holds it and who waits for it.
pub async fn limit(store: &dyn Store, name: &str) -> Result<wire::LimitLine> {
    let limits = store.limits().await?;
    let limit = limits.iter().find(|limit| limit.name == name);
    let limit = limit.ok_or_else(|| Error::NoSuchLimit { name: name.to_owned() })?;
    let line = store.line(Shared::Limit(name.to_owned()), IN_LINE).await?;
    Ok(wire::LimitLine::new(wire::Limit::from(limit), &line))
}

/// Locks that somebody holds or waits for, and keys of `order` on which somebody stands, by name.
pub async fn locks(store: &dyn Store) -> Result<wire::LockList> {
    let mut names = store.locks(LOCKS + 1).await?;
    let has_more = names.len() > LOCKS;
    names.truncate(LOCKS);
    let mut locks = Vec::with_capacity(names.len());
    for name in names {
        let line = store.line(Shared::Lock(name.clone()), IN_A_LOCK).await?;
        // It was let go between the two looks.
        if line.held + line.waiting > 0 {
            locks.push(wire::Lock::new(name, &line));
        }
    }
    let mut lines = store.order_lines(LOCKS + 1, IN_A_LOCK).await?;
    let has_more_orders = lines.len() > LOCKS;
    lines.truncate(LOCKS);
    let orders = lines.iter().map(wire::OrderLine::from).collect();
    Ok(wire::LockList { locks, has_more, orders, has_more_orders })
}

/// What runs, ended, failed and waits of late.
pub async fn overview(store: &dyn Store) -> Result<wire::Overview> {
    Ok(wire::Overview::from(&store.overview().await?))
}

/// Results that are kept, those that were used last first.
pub async fn results(
    store: &dyn Store,
    which: Which,
    cursor: Option<&str>,
    limit: usize,
) -> Answer<wire::CacheList> {
    // The moment in which the last one was used, and its key.
    let read = |cursor: &str| {
        let (at, key) = cursor.split_once('-')?;
        Some(Behind { last_used_at: Millis(at.parse().ok()?), key: ContentHash::parse(key)? })
    };
    let behind = cursor.map(|cursor| read(cursor).ok_or_else(bad_cursor)).transpose()?;
    let mut results = store.results(which, behind, limit.saturating_add(1)).await?;
    let place = |last: &ResultView| format!("{}-{}", last.last_used_at.0, last.key);
    let next_cursor = cut(&mut results, limit).map(place);
    Ok(wire::CacheList { entries: results.iter().map(wire::CacheEntry::from).collect(), next_cursor })
}

pub(crate) fn bad_cursor() -> Problem {
    Problem::new(Code::Unprocessable, "`cursor` is none that an answer gave")
}

pub async fn workflow(store: &dyn Store, name: &str) -> Result<wire::Workflow> {
    let known = store.latest(name).await?;
    let document = store.document(&known.version).await?;
    let pause = store.paused(name).await?;
    Ok(wire::Workflow::new(name, known, document, pause))
}

/// Those in use first, by name.
pub async fn tokens(store: &dyn Store, cursor: Option<&str>, limit: usize) -> Answer<wire::TokenList> {
    // There are few, so all are read. What a page ends with is a place among them, also if it was revoked meanwhile.
    let place = |token: &Token| (token.revoked.is_some(), token.name.clone(), token.id.clone());
    let read = |cursor: &str| {
        let (is_revoked, rest) = cursor.split_once(':')?;
        let (name, id) = rest.rsplit_once(':')?;
        Some((is_revoked.parse::<bool>().ok()?, name.to_owned(), id.to_owned()))
    };
    let behind = cursor.map(|cursor| read(cursor).ok_or_else(bad_cursor)).transpose()?;
    let mut tokens = store.tokens().await?;
    tokens.sort_by_cached_key(place);
    tokens.retain(|token| behind.as_ref().is_none_or(|behind| place(token) > *behind));
    let next_cursor = cut(&mut tokens, limit).map(place);
    let next_cursor = next_cursor.map(|(is_revoked, name, id)| format!("{is_revoked}:{name}:{id}"));
    Ok(wire::TokenList { tokens: tokens.iter().map(wire::Token::from).collect(), next_cursor })
}

pub async fn audit(store: &dyn Store, before: Option<u64>, limit: usize) -> Result<wire::AuditLog> {
    let mut entries = store.audit(before, limit.saturating_add(1)).await?;
    let next_cursor = cut(&mut entries, limit).map(|entry| entry.seq.to_string());
    Ok(wire::AuditLog { entries: entries.iter().map(wire::AuditEntry::from).collect(), next_cursor })
}
