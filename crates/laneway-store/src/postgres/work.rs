//! The path of a task. Each verb is one transaction, and settles afterwards what it recorded for
//! other runs. The gate keeper (`keeper/`) decides what follows from it.

pub(super) mod children;
pub(super) mod claim;
pub(super) mod enroll;
pub(super) mod finish;
pub(super) mod fresh;
pub(super) mod levels;
pub(super) mod promote;
pub(super) mod submit;
pub(super) mod together;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::child::Parent;
use laneway_core::expression::Scope;
use laneway_core::id::{RunId, SessionId};
use laneway_core::time::Millis;

use crate::child::{Resumed, WantedPage, Wanting};
use crate::contract::{Sessions, Work};
use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::keeper::{GivenBackBy, Keeper};
use crate::model::{Answer, Ask, Claim, Finished, Submission};
use crate::postgres::facts::Known;
use crate::postgres::fault::Done;
use crate::postgres::follow::work;
use crate::postgres::link::Link;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::{Head, Shelf};
use crate::postgres::{PostgresStore, read, sessions, settle};

#[async_trait]
impl Work for PostgresStore {
    async fn submit(&self, submission: Submission) -> Result<RunId> {
        together::submit(&self.base, submission).await
    }

    async fn adopt(&self, run: RunId, session: SessionId) -> Result<()> {
        match self.adopt_once(run, session).await {
            // An owner that died is in the way until it is reaped, and nobody may have done so yet.
            Err(Error::Owned { .. }) => {
                self.reap().await?;
                self.adopt_once(run, session).await?;
            }
            answer => answer?,
        }
        // What the former owner had committed, and not followed up when it died.
        settle::settle_all(&self.base).await
    }

    async fn promote(&self) -> Result<Option<Millis>> {
        // Every node asks this every few seconds, and usually nothing is due: one statement then.
        let look = self.base.ask(|link| async move { promote::look(&link, self.base.now()).await }).await?;
        if !look.is_due {
            return Ok(look.next);
        }
        let due = self.base.write(|link, terms| async move { promote::due(&link, terms.now).await }).await?;
        for due in &due {
            match self
                .base
                .change(
                    |link, terms| async move { promote::promote(&self.base.shelf, &link, terms, due).await },
                )
                .await
            {
                // Set aside meanwhile, or over and let go: others go on.
                Ok(()) | Err(Error::SetAside { .. } | Error::NoSuchRun { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        settle::sweep(&self.base).await?;
        self.base.ask(|link| async move { promote::next(&link).await }).await
    }

    async fn wake_at(&self) -> Result<Option<Millis>> {
        self.base.ask(|link| async move { promote::next(&link).await }).await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>> {
        if ask.limit + ask.ahead == 0 {
            return Ok(Vec::new());
        }
        claim::claim(&self.base, &ask).await
    }

    async fn claim_level(&self, first: ClaimRef) -> Result<Vec<Claim>> {
        levels::claim_level(&self.base, first).await
    }

    async fn start(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        finish::say(&self.base, &claims, |keeper, claim| keeper.start(claim)).await
    }

    async fn finish(&self, finished: Vec<Finished>, ask: Option<Ask>) -> Result<Answer> {
        finish::finish(&self.base, &finished, ask.as_ref()).await
    }

    async fn give_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        finish::say(&self.base, &claims, |keeper, claim| keeper.give_back(claim, GivenBackBy::Holder)).await
    }

    async fn take_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        finish::say(&self.base, &claims, |keeper, claim| keeper.give_back(claim, GivenBackBy::Other)).await
    }

    async fn fence(&self, claim: ClaimRef) -> Result<Option<Option<u64>>> {
        let shelf = &self.base.shelf;
        self.base.ask(|link| async move { read::fence(shelf, &link, &claim).await }).await
    }

    async fn scope(&self, run: RunId, steps: &[&str]) -> Result<Scope> {
        self.base.ask(|link| async move { read::scope(&link, &*self.base.shelf.head(&link, run).await?, steps).await })
            .await
    }

    async fn wanted_runs(&self, wanting: Wanting) -> Result<WantedPage> {
        let shelf = &self.base.shelf;
        self.base.ask(|link| async move { children::wanted(shelf, &link, &wanting).await }).await
    }

    async fn resume_child(
        &self,
        parent: Parent,
        child: RunId,
        session: Option<SessionId>,
    ) -> Result<Resumed> {
        let (shelf, parent) = (&self.base.shelf, &parent);
        self.base
            .change(|link, terms| async move {
                children::resume(shelf, &link, terms, (parent, child), session).await
            })
            .await
    }

    async fn family(&self, run: RunId) -> Result<Vec<RunId>> {
        let shelf = &self.base.shelf;
        self.base.ask(|link| async move { children::family(shelf, &link, run).await }).await
    }

    async fn child_refused(&self, parent: Parent, why: &str) -> Result<()> {
        let (shelf, parent) = (&self.base.shelf, &parent);
        self.base
            .change(|link, terms| async move { children::refused(shelf, &link, terms, parent, why).await })
            .await
    }
}

impl PostgresStore {
    async fn adopt_once(&self, run: RunId, session: SessionId) -> Result<()> {
        self.base
            .change(|link, terms| async move {
                sessions::adopt(&self.base.shelf, &link, terms, run, session).await
            })
            .await
    }
}

/// The runs that a call is about, in the order of locks, each with the places of its items in that
/// call.
pub(super) async fn sorted(
    shelf: &Shelf,
    link: &Link,
    runs: impl Iterator<Item = (usize, RunId)>,
) -> Done<Vec<(Arc<Head>, Vec<usize>)>> {
    let mut places: BTreeMap<RunId, Vec<usize>> = BTreeMap::new();
    for (place, run) in runs {
        places.entry(run).or_default().push(place);
    }
    let mut sorted = Vec::with_capacity(places.len());
    for (run, places) in places {
        sorted.push((shelf.head(link, run).await?, places));
    }
    sorted.sort_unstable_by_key(|(head, _)| head.no);
    Ok(sorted)
}

/// Does something to one run, with everything that follows, and commits.
pub(super) async fn on_run<T>(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    job: Job,
    mut verb: impl FnMut(&mut Keeper<&mut Known>) -> Done<T>,
) -> Done<(T, crate::keeper::RunRow)> {
    let (made, columns) = work(shelf, link, terms, vec![job], |_, keeper| verb(keeper)).await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.commit().await?;
    let made = made.into_iter().next().expect("one run went in");
    Ok((made.answer, made.changes.run))
}
