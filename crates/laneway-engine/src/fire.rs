//! Fires triggers: starts the runs of ticks that have come and of other runs' ends. Any number of nodes do so at once.
//!
//! ```text
//!   due ──▶ which ticks (core) ──▶ submit, under a key made of the tick ──▶ fire: how far it has come
//! ```
//! Whoever dies in between leaves a tick that is still due, and the next one's submission under the same key gives the run
//! that is there: each tick starts one run (`docs/design/triggers.md`).

use std::sync::Arc;
use std::time::Duration;

use laneway_core::definition::Workflow;
use laneway_core::id::{RunId, SessionId};
use laneway_core::params;
use laneway_core::plan::Plan;
use laneway_core::schedule::Tick;
use laneway_core::time::Millis;
use laneway_core::trigger::{Start, Trigger};
use laneway_store::model::{Known, Submission};
use laneway_store::trigger::{Fired, Firing, LastFired, Outcome, TriggerRef, TriggerView};
use laneway_store::{Error, Store};
use laneway_torture::{Point, pass};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, sleep_until};

use crate::faults::Faults;
use crate::hooks;

/// How many triggers are dealt with at a time.
const AT_ONCE: usize = 32;

/// Other processes change the store all the time, and few of those changes concern triggers: it is looked at this often at
/// most, and so the end of a run fires within this.
const LOOK_AFTER: Duration = Duration::from_millis(500);

/// The hint that something was applied may get lost, and a node may have slept through a tick.
const LOOK_AT_LEAST: Duration = Duration::from_secs(30);

/// How long a schedule of which something cannot be read is left alone.
const PUT_OFF: Duration = Duration::from_secs(60);

/// A store that cannot be reached may be there again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Firer {
    pub store: Arc<dyn Store>,
    /// Who submits.
    pub session: SessionId,
    /// For workflows that say nothing about it.
    pub max_parallel: u32,
}

impl Firer {
    /// Until the session is over. Dropping it at any moment loses nothing.
    pub async fn until_over(self) {
        let (mut changes, faults) = (self.store.changes(), Faults::default());
        loop {
            let begun = Instant::now();
            let next = match self.look(&faults).await {
                Ok(next) => next,
                Err(Error::SessionOver { .. }) => return,
                Err(error) => {
                    tracing::warn!("triggers wait: {error}");
                    sleep(TRY_AGAIN).await;
                    continue;
                }
            };
            let rest = next.map_or(LOOK_AT_LEAST, |next| next.min(LOOK_AT_LEAST));
            let latest = Instant::now() + rest;
            tokio::select! {
                () = sleep_until(latest) => {}
                told = changes.changed() => match told {
                    Ok(()) => sleep_until(latest.min(begun + LOOK_AFTER)).await,
                    // The store is closing.
                    Err(_) => return,
                },
            }
        }
    }

    /// Deals with all that is due. Gives how long nothing will be.
    async fn look(&self, faults: &Faults) -> Result<Option<Duration>, Error> {
        loop {
            let due = self.store.due(AT_ONCE).await?;
            for fault in due.unreadable.iter().filter(|fault| faults.is_new(fault)) {
                tracing::warn!("{fault}; other triggers go on, `laneway doctor` says more");
            }
            if due.schedules.is_empty() && due.firings.is_empty() {
                return Ok(due.next.map(|next| next.since(due.now)));
            }
            for view in &due.schedules {
                if let Err(error) = self.fire_schedule(view, due.now).await {
                    self.store.fire(put_off(view, due.now, broken(error)?)).await?;
                }
            }
            for firing in &due.firings {
                if let Err(error) = self.fire_end(firing, due.now).await {
                    let last = LastFired { at: due.now, outcome: Outcome::Refused(broken(error)?) };
                    self.store.settle(firing.end.clone(), Some(last)).await?;
                }
            }
        }
    }

    async fn fire_schedule(&self, view: &TriggerView, now: Millis) -> Result<(), Error> {
        let armed = self.armed(&view.at).await?;
        let mut fired = Fired {
            workflow: view.at.workflow.clone(),
            key: view.at.key.clone(),
            seen: view.dealt_with,
            dealt_with: now.max(view.dealt_with),
            next: None,
            last: None,
        };
        if let Some(armed) = &armed
            && let Start::Schedule(schedule) = &armed.trigger.start
        {
            let due = schedule.due(view.dealt_with, now);
            for tick in &due.fire {
                pass(Point::FireDue);
                let params = armed.trigger.params_at(tick).map_err(|error| error.message);
                let outcome = self.start(armed, params, key_of_tick(&fired, tick), "schedule").await?;
                fired.last = Some(LastFired { at: now, outcome });
            }
            (fired.dealt_with, fired.next) = (due.dealt_with, due.next);
        }
        self.store.fire(fired).await?;
        Ok(())
    }

    async fn fire_end(&self, firing: &Firing, now: Millis) -> Result<(), Error> {
        if firing.is_of_hooks() {
            hooks::submit(self.store.as_ref(), firing, self.session, hooks::Whose::Anybodys).await?;
            return self.store.settle(firing.end.clone(), None).await;
        }
        let mut last = None;
        if let Some(of) = &firing.trigger
            && let Some(armed) = self.armed(of).await?
        {
            let params = armed.trigger.params_after(&firing.ended).map_err(|error| error.message);
            let (run, seq) = (firing.end.run, firing.end.seq);
            let key = format!("{} of {} at the end of {run} ({seq})", of.key, of.workflow);
            let outcome = self.start(&armed, params, key, "trigger").await?;
            last = Some(LastFired { at: now, outcome });
        }
        self.store.settle(firing.end.clone(), last).await
    }

    /// A trigger with what it starts; `None` if it is no more.
    pub async fn armed(&self, of: &TriggerRef) -> Result<Option<Armed>, Error> {
        let known = match self.store.latest(&of.workflow).await {
            Ok(known) => known,
            Err(Error::NoSuchWorkflow { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let plan = self.store.plan(&known.version).await?;
        let trigger = plan.workflow.triggers.iter().find(|trigger| trigger.key() == of.key).cloned();
        let Some(trigger) = trigger else { return Ok(None) };
        let document = self.store.document(&known.version).await?;
        Ok(Some(Armed { known, plan, document, trigger }))
    }

    /// Starts a run. What is wrong with this one is told; an error is one of the store, and all of it is tried again.
    pub async fn start(
        &self,
        armed: &Armed,
        given: Result<Map<String, Value>, String>,
        key: String,
        by: &str,
    ) -> Result<Outcome, Error> {
        let workflow = &armed.plan.workflow;
        let bound = given.and_then(|given| {
            params::bind(workflow, given)
                .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        });
        let params = match bound {
            Ok(params) => params,
            Err(why) => return Ok(refused(workflow, why)),
        };
        let submission = Submission {
            dir: armed.known.dir.clone(),
            bundle: armed.known.bundle.clone(),
            params,
            max_parallel: workflow.max_parallel.map_or(self.max_parallel, std::num::NonZeroU32::get),
            is_shared: true,
            key: Some(key),
            by: by.to_owned(),
            ..Submission::new(Arc::clone(&armed.plan), armed.document.clone(), self.session)
        };
        match self.store.submit(submission).await {
            Ok(run) => Ok(started(workflow, run)),
            Err(error @ Error::SessionOver { .. }) => Err(error),
            Err(error) if error.is_passing() => Err(error),
            Err(error) => Ok(refused(workflow, error.to_string())),
        }
    }
}

/// What cannot be read stops only itself. An error of the store is given back: all of it is tried again.
fn broken(error: Error) -> Result<String, Error> {
    if error.is_passing() || matches!(error, Error::SessionOver { .. } | Error::Closed { .. }) {
        return Err(error);
    }
    tracing::warn!("a trigger cannot fire: {error}");
    Ok(error.to_string())
}

/// A schedule that cannot be read is looked at again later; what comes meanwhile is left out.
fn put_off(view: &TriggerView, now: Millis, why: String) -> Fired {
    Fired {
        workflow: view.at.workflow.clone(),
        key: view.at.key.clone(),
        seen: view.dealt_with,
        dealt_with: now.max(view.dealt_with),
        next: Some(now.after(PUT_OFF)),
        last: Some(LastFired { at: now, outcome: Outcome::Refused(why) }),
    }
}

fn started(workflow: &Workflow, run: RunId) -> Outcome {
    tracing::info!("{} starts by itself: run {}", workflow.name, run.short());
    Outcome::Started(run)
}

fn refused(workflow: &Workflow, why: String) -> Outcome {
    tracing::warn!("{} cannot start by itself: {why}", workflow.name);
    Outcome::Refused(why)
}

/// Whoever fires the same tick gets the same run.
fn key_of_tick(of: &Fired, tick: &Tick) -> String {
    format!("{} of {} at {}", of.key, of.workflow, tick.at)
}

/// A trigger, and the workflow that it starts, as it starts by its name.
#[derive(Debug)]
pub struct Armed {
    pub known: Known,
    pub plan: Arc<Plan>,
    pub trigger: Trigger,
    document: String,
}
