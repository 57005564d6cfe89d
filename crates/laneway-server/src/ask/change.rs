//! Changes, each with who made it: a change is made, and written down before it is told. The routes and the command line go this one
//! way, so that the audit log says the same of the same deed, whoever does it and from wherever.

use std::time::Duration;

use laneway_core::effect::EffectId;
use laneway_core::id::RunId;
use laneway_core::limit::Limit;
use laneway_core::node_event::Leaving;
use laneway_core::role::Role;
use laneway_core::state::RunStatus;
use laneway_engine::worker::return_what_is_left;
use laneway_store::cache::Which;
use laneway_store::effect::Settlement;
use laneway_store::model::{CancelMode, Deed, NewSignal, Pausable, Reopen, Whom};
use laneway_store::{Error, Result, Store};

use super::CLAIMS;
use crate::access;
use crate::wire;

/// Who changes something, as the audit log names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub name: String,
    /// The address from which they ask.
    pub origin: String,
}

impl Author {
    /// Writes down what was changed. Awaited between the change and its answer, so that whatever was acknowledged is in the log: a change
    /// whose entry cannot be written is not acknowledged.
    pub async fn record(&self, store: &dyn Store, act: &str, what: impl Into<String>) -> Result<()> {
        let Self { name, origin } = self.clone();
        store.record(Deed { by: name, act: act.to_owned(), what: what.into(), origin }).await?;
        Ok(())
    }
}

/// Ends a run. Tasks of a dead process are returned first, so that the run ends now: no process
/// would stop them, and none could clean up.
pub async fn cancel(
    store: &dyn Store,
    run: RunId,
    mode: CancelMode,
    author: &Author,
) -> Result<wire::Canceled> {
    let was = store.status(run).await?;
    if !was.is_final() {
        return_what_is_left(store).await?;
    }
    store.cancel(run, &author.name, mode).await?;
    settle_cancel(store, run).await?;
    let status: RunStatus = store.status(run).await?;
    let clean_up_until = match status.is_final() {
        true => None,
        false => store.run_state(run).await?.clean_up_until.map(wire::Moment),
    };
    let how = match mode {
        CancelMode::CleanUp => "",
        CancelMode::Now => " now, without clean-up",
    };
    author.record(store, "cancel", format!("run {run}{how}")).await?;
    Ok(wire::Canceled { run, status, was, clean_up_until })
}

/// Lets a canceled run end whatever state its holder is in: returns the tasks of sessions that are over, and kills a
/// stopped process that owns the run, which nobody else may end.
pub async fn settle_cancel(store: &dyn Store, run: RunId) -> Result<()> {
    for node in store.nodes(CLAIMS).await? {
        let owns_it = node.offer.is_none() && node.claims.iter().any(|claim| claim.run == run);
        if owns_it && node.silent_for.is_some() && store.end_stopped(node.session).await? {
            tracing::warn!("process {} was stopped and did not cancel its run; it was killed", node.pid);
        }
    }
    // The time for its clean-up may be over, and no node be there that would notice.
    store.promote().await?;
    return_what_is_left(store).await
}

/// A run has not ended, and the process that ran it is gone: then it has to go on before it can end. Other errors stay as they are.
async fn of_a_dead_owner(store: &dyn Store, run: RunId, error: Error) -> Error {
    match error {
        Error::NotEnded { .. } => match store.run(run).await {
            Ok(view) if view.is_interrupted => Error::Interrupted { run },
            Ok(_) | Err(_) => error,
        },
        error => error,
    }
}

/// Opens an ended run again.
pub async fn retry(
    store: &dyn Store,
    run: RunId,
    what: Reopen<'_>,
    author: &Author,
) -> Result<wire::Reopened> {
    let steps = match store.retry(run, what, &author.name).await {
        Err(error) => return Err(of_a_dead_owner(store, run, error).await),
        Ok(steps) => steps,
    };
    let from = what.from.map(|step| format!(" from {step}")).unwrap_or_default();
    author.record(store, "retry", format!("run {run}{from}")).await?;
    Ok(wire::Reopened { run, steps })
}

/// Lets an ended run go on past a failed step.
pub async fn skip(store: &dyn Store, run: RunId, step: &str, author: &Author) -> Result<wire::Reopened> {
    let steps = match store.skip(run, step, &author.name).await {
        Err(error) => return Err(of_a_dead_owner(store, run, error).await),
        Ok(steps) => steps,
    };
    author.record(store, "skip", format!("step {step} of run {run}")).await?;
    Ok(wire::Reopened { run, steps })
}

/// Lets a paused run go on by one level.
pub async fn advance(store: &dyn Store, run: RunId, author: &Author) -> Result<wire::Advanced> {
    let level = store.advance(run, &author.name).await?;
    author.record(store, "advance", format!("run {run}")).await?;
    Ok(wire::Advanced { run, level })
}

/// Holds a run or all of a workflow up, or lets it go on.
pub async fn pause(
    store: &dyn Store,
    what: Pausable,
    is_paused: bool,
    author: &Author,
) -> Result<wire::Paused> {
    let (named, run, workflow) = match &what {
        Pausable::Run(run) => (format!("run {run}"), Some(*run), None),
        Pausable::Workflow(name) => {
            // A name that nobody has used is a slip of the finger.
            store.latest(name).await?;
            (format!("workflow {name}"), None, Some(name.clone()))
        }
    };
    let (changed, deed) = if is_paused {
        (store.pause(what, &author.name).await?, "pause")
    } else {
        (store.resume(what, &author.name).await?, "resume")
    };
    if changed {
        author.record(store, deed, named).await?;
    }
    Ok(wire::Paused { run, workflow, paused: is_paused, changed })
}

/// Lets a workflow start by itself no more, or again.
pub async fn pause_triggers(
    store: &dyn Store,
    workflow: &str,
    is_paused: bool,
    author: &Author,
) -> Result<wire::TriggersPaused> {
    let named = format!("workflow {workflow}");
    let (changed, deed) = if is_paused {
        (store.pause_triggers(workflow, &author.name).await?, "pause_triggers")
    } else {
        (store.resume_triggers(workflow).await?, "resume_triggers")
    };
    if changed {
        author.record(store, deed, named).await?;
    }
    Ok(wire::TriggersPaused { workflow: workflow.to_owned(), paused: is_paused, changed })
}

/// Says what a step waits for.
pub async fn signal(
    store: &dyn Store,
    run: RunId,
    step: &str,
    signal: wire::Signal,
    author: &Author,
) -> Result<wire::Signaled> {
    let wire::Signal { signal: name, reason, payload } = signal;
    let why = reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let deed = format!("{name} to step {step} of run {run}{why}");
    let signal = NewSignal { name: name.clone(), by: author.name.clone(), reason, payload };
    let signaled = wire::Signaled::new(run, step, name, store.signal(run, step, signal).await?);
    // One that came second has changed nothing.
    if signaled.result != wire::SignalResult::Before {
        author.record(store, "signal", deed).await?;
    }
    Ok(signaled)
}

/// Says what became of an effect that nobody runs any more.
pub async fn settle_effect(
    store: &dyn Store,
    run: RunId,
    step: &str,
    (id, settle): (EffectId, wire::Settle),
    author: &Author,
) -> Result<wire::SettledEffect> {
    let (settlement, how) = match settle {
        wire::Settle::Done => (Settlement::Done, "has happened"),
        wire::Settle::Again => (Settlement::Again, "is to run again"),
    };
    store.settle_effect(run, step, id.clone(), settlement, &author.name).await?;
    let EffectId { name, key } = id;
    let with_key = if key.is_empty() { String::new() } else { format!(" ({key})") };
    let deed = format!("effect {name}{with_key} of step {step} of run {run} {how}");
    author.record(store, "settle_effect", deed).await?;
    Ok(wire::SettledEffect { run, step: step.to_owned(), name, key, settle })
}

/// Lets a node take nothing more.
pub async fn drain(store: &dyn Store, node: &str, author: &Author) -> Result<wire::Drained> {
    let why = Leaving::drained_by(author.name.clone());
    let sessions = store.drain(Whom::Node(node.to_owned()), why).await?;
    author.record(store, "drain", format!("node {node}")).await?;
    Ok(wire::Drained { node: node.to_owned(), sessions })
}

pub async fn set_limit(store: &dyn Store, name: &str, limit: Limit, author: &Author) -> Result<wire::Limit> {
    store.set_limit(name, limit, &author.name).await?;
    author.record(store, "set_limit", format!("limit {name} to {limit}")).await?;
    let set = super::limits(store).await?.limits.into_iter().find(|limit| limit.name == name);
    set.ok_or_else(|| Error::NoSuchLimit { name: name.to_owned() })
}

pub async fn remove_limit(store: &dyn Store, name: &str, author: &Author) -> Result<wire::Removed> {
    store.remove_limit(name).await?;
    author.record(store, "remove_limit", format!("limit {name}")).await?;
    Ok(wire::Removed { name: name.to_owned() })
}

/// Forgets what starts a workflow by itself, until it is applied again.
pub async fn remove_triggers(store: &dyn Store, workflow: &str, author: &Author) -> Result<wire::Removed> {
    store.remove_triggers(workflow).await?;
    author.record(store, "remove_triggers", format!("workflow {workflow}")).await?;
    Ok(wire::Removed { name: workflow.to_owned() })
}

/// Forgets what was applied under a name, with its triggers. Runs stay.
pub async fn remove_workflow(
    store: &dyn Store,
    name: &str,
    is_forced: bool,
    author: &Author,
) -> Result<wire::Removed> {
    store.remove_workflow(name, is_forced).await?;
    let how = if is_forced { " with force" } else { "" };
    author.record(store, "remove_workflow", format!("workflow {name}{how}")).await?;
    Ok(wire::Removed { name: name.to_owned() })
}

/// Forgets results, so that the steps are executed again.
pub async fn clear_results(store: &dyn Store, which: Which, author: &Author) -> Result<wire::CacheCleared> {
    let of = match (&which.workflow, &which.step) {
        (Some(workflow), Some(step)) => format!("results of {step} of {workflow}"),
        (Some(workflow), None) => format!("results of {workflow}"),
        (None, _) => "all results".to_owned(),
    };
    let gone = store.forget_results(which).await?;
    author.record(store, "clear_cache", of).await?;
    Ok(wire::CacheCleared { entries: gone.results, bytes: gone.bytes })
}

/// Makes a token, of which the secret is told this once. The name was checked (`access::check_name`).
pub async fn create_token(
    store: &dyn Store,
    name: &str,
    (role, lasts): (Role, Option<Duration>),
    author: &Author,
) -> Result<wire::CreatedToken> {
    let (secret, token) = access::make(store, name, role, (&author.name, lasts)).await?;
    let until = token.expires_at.map_or_else(String::new, |at| format!(" until {at}"));
    author.record(store, "create_token", format!("token {name} with the role {role}{until}")).await?;
    let (token, expires_at) = (secret.reveal().to_owned(), token.expires_at.map(wire::Moment));
    Ok(wire::CreatedToken { token, name: name.to_owned(), role, expires_at })
}

/// Gives a token a new secret, which is told this once. The old one ends after the grace.
pub async fn rotate_token(
    store: &dyn Store,
    name: &str,
    how: access::Rotate,
    author: &Author,
) -> Result<wire::RotatedToken> {
    let (secret, rotated) = access::rotate(store, name, &author.name, how).await?;
    let (token, old_ends_at) = (rotated.token, rotated.replaced.revoked.map(|(_, at)| at));
    let until = old_ends_at.filter(|_| !how.grace.is_zero());
    let until = until.map_or_else(String::new, |at| format!(", the old secret until {at}"));
    author.record(store, "rotate_token", format!("token {name}{until}")).await?;
    Ok(wire::RotatedToken {
        token: secret.reveal().to_owned(),
        name: token.name,
        role: token.role,
        expires_at: token.expires_at.map(wire::Moment),
        old_ends_at: old_ends_at.map(wire::Moment),
    })
}

/// Ends a token, and those that came of it, at once.
pub async fn revoke_token(store: &dyn Store, name: &str, author: &Author) -> Result<wire::Revoked> {
    let revoked = wire::Revoked::from(store.revoke_token(name, &author.name).await?);
    author.record(store, "revoke_token", format!("token {name}{}", revoked.others())).await?;
    Ok(revoked)
}
