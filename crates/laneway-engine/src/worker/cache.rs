//! Whether an attempt takes a result that was recorded before, and what is recorded of one that does not. Asked after the claim, by
//! whoever has the files and the image. Nothing here fails a step: without a key, or without an answer, it is executed.
//! docs/design/cache.md.

mod key;
mod uses;

use std::path::Path;
use std::time::Duration;

use laneway_core::cache::{Cache, Miss, Parts, miss};
use laneway_core::expression::Scope;
use laneway_core::group;
use laneway_core::hash::ContentHash;
use laneway_store::cache::{Found, Hit, Look, NewResult};
use laneway_store::layer::NewLayer;
use laneway_store::model::{Artifact, Claim, Outcome};
use tokio::task::JoinHandle;

use super::artifacts;
use super::attempt::Setting;
use crate::process::StopSignal;

pub(super) use uses::Uses;

/// What came of a look.
#[derive(Debug)]
pub(super) enum Looked {
    /// Its result is this, and its files are where they belong.
    Taken(Box<Hit>),
    /// It is executed.
    Executed(Owed),
}

/// What is yet to be said of an attempt that is executed. Nothing for the many steps without `cache`.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// Under what its result is recorded.
    key: Option<(Parts, ContentHash)>,
    /// Why it is executed is being said meanwhile.
    noting: Option<JoinHandle<()>>,
}

/// Where an attempt finds what its key is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) scope: &'a Scope,
    /// The step's own directory; a function has none.
    pub(super) workdir: Option<&'a Path>,
    /// Whether that is a view: then a result brings its layer, or is none.
    pub(super) is_view: bool,
}

/// The files that an attempt left.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) artifacts: Vec<Artifact>,
    /// What it changed in its view; an empty one if it changed nothing.
    pub(super) layer: Option<Box<NewLayer>>,
}

/// An error is an expression that cannot be evaluated, which fails the step as every other one does.
pub(super) async fn look(
    setting: &Setting,
    claim: &Claim,
    place: Place<'_>,
    stop: &StopSignal,
) -> Result<Looked, String> {
    let Some(cache) = claim.head.plan.step(claim.at.position).cache() else {
        return Ok(Looked::Executed(Owed::default()));
    };
    let parts = match key::parts(setting, claim, cache, place, stop).await {
        Ok(parts) => parts,
        Err(key::Error::Expression(why)) => return Err(why),
        Err(key::Error::Unknown(detail)) => {
            return Ok(Looked::Executed(missed(setting, claim, None, Miss::NoKey { detail })));
        }
    };
    let key = parts.key(&claim.head.plan.workflow.name, &claim.head.plan.step(claim.at.position).name);
    let why = match seek(setting, claim, cache, (&parts, &key), place).await {
        Ok(hit) => {
            setting.uses.note(setting, &hit.key);
            setting.counts.add(|tally| tally.cache.hits += 1);
            return Ok(Looked::Taken(hit));
        }
        Err(why) => why,
    };
    Ok(Looked::Executed(missed(setting, claim, Some((parts, key)), why)))
}

/// The result of a key, brought to where it belongs, or why there is none.
async fn seek(
    setting: &Setting,
    claim: &Claim,
    cache: &Cache,
    (parts, key): (&Parts, &ContentHash),
    place: Place<'_>,
) -> Result<Box<Hit>, Miss> {
    if !setting.takes_results || claim.head.no_cache {
        return Err(Miss::NotWanted);
    }
    let (plan, step) = (&claim.head.plan, claim.head.plan.step(claim.at.position));
    if claim.at.attempt > 1 && has_succeeded(setting, claim, &plan.task_name(claim.at.position)).await {
        return Err(Miss::Again);
    }
    let (workflow, name) = (plan.workflow.name.clone(), step.name.clone());
    let asked = Look { workflow, step: name, key: key.clone(), ttl: cache.ttl };
    match setting.store.cached(asked).await {
        Ok(Found::Hit(hit)) if place.is_view && hit.layer.is_none() => {
            Err(Miss::Gone { run: hit.from, recorded_at: hit.recorded_at })
        }
        Ok(Found::Hit(hit)) => match bring(setting, claim, &hit, place).await {
            Ok(()) => Ok(hit),
            Err(error) => {
                tracing::debug!(%error, "a recorded result is not taken");
                Err(Miss::Gone { run: hit.from, recorded_at: hit.recorded_at })
            }
        },
        Ok(Found::Expired { run, recorded_at }) => {
            let ttl_ms = cache.ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
            Err(Miss::Expired { run, recorded_at, ttl_ms })
        }
        Ok(Found::Others(kept)) => Err(miss(parts, &kept)),
        Err(error) => Err(Miss::NoKey { detail: format!("the store did not answer: {error}") }),
    }
}

/// Somebody opened the step again that had a result: whoever does that wants another one.
async fn has_succeeded(setting: &Setting, claim: &Claim, step: &str) -> bool {
    let attempts = setting.store.attempts(claim.head.run, step).await;
    attempts.is_ok_and(|attempts| attempts.iter().any(|attempt| attempt.outcome == "succeeded"))
}

/// Puts the files of a result where the step would have left them, and names them as its own. They are kept as if they were
/// new: whoever sweeps meanwhile cannot take them.
async fn bring(
    setting: &Setting,
    claim: &Claim,
    hit: &Hit,
    place: Place<'_>,
) -> Result<(), artifacts::Error> {
    if let Some(layer) = hit.layer.as_ref().filter(|_| place.is_view) {
        setting.workspaces.files().renew(layer).await?;
    }
    let Some(dir) = place.workdir.filter(|_| !hit.artifacts.is_empty()) else { return Ok(()) };
    let root = dir.canonicalize().map_err(|source| artifacts::files(dir, source))?;
    let mut named: Vec<Artifact> = Vec::with_capacity(hit.artifacts.len());
    for artifact in &hit.artifacts {
        let path = artifacts::place(setting.store.as_ref(), claim, &root, artifact).await?;
        let (hash, size) = setting.store.keep_file(&path, laneway_store::MAX_SHARED_FILE).await?;
        named.push(Artifact { hash, size, ..artifact.clone() });
    }
    // A claim that is lost is noticed by the end that follows.
    setting.store.keep_artifacts(claim.at, named).await?;
    Ok(())
}

/// Says why beside the work, so that no task waits for it.
fn missed(setting: &Setting, claim: &Claim, key: Option<(Parts, ContentHash)>, why: Miss) -> Owed {
    setting.counts.add(|tally| tally.cache.misses += 1);
    let (store, at) = (std::sync::Arc::clone(&setting.store), claim.at);
    let noting = tokio::spawn(async move {
        if let Err(error) = store.note_miss(at, why).await {
            tracing::debug!(%error, "why a step is executed is not noted");
        }
    });
    Owed { key, noting: Some(noting) }
}

impl Owed {
    /// The attempt is over. What succeeded is recorded, and nothing else ever: not what says by itself that it failed.
    pub(super) async fn settle(
        self,
        setting: &Setting,
        claim: &Claim,
        outcome: Option<&Outcome>,
        took: Duration,
        left: Left,
    ) {
        let Self { key, noting } = self;
        if let (Some((parts, key)), Some(Outcome::Succeeded { output })) = (key, outcome)
            && !group::says_it_failed(output)
            // What is on this node alone is nothing that others could take.
            && left.layer.as_ref().is_none_or(|layer| layer.content.oversize().is_none())
        {
            let plan = &claim.head.plan;
            let result = NewResult {
                workflow: plan.workflow.name.clone(),
                step: plan.step(claim.at.position).name.clone(),
                key,
                parts,
                run: claim.head.run,
                took,
                exit_code: Some(0),
                output: output.clone(),
                artifacts: left.artifacts,
                layer: left.layer,
            };
            if let Err(error) = setting.store.remember(result).await {
                tracing::warn!("the result of a step is not recorded: {error}");
            }
        }
        if let Some(noting) = noting {
            drop(noting.await);
        }
    }
}
