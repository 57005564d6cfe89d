//! The path of a task. Each verb is one transaction of the writer, or some for a large submission.
//! The gate keeper (`keeper/`) decides what follows from it.

pub(super) mod children;
pub(super) mod claim;
pub(super) mod finish;
pub(super) mod promote;
pub(super) mod submit;

use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::child::Parent;
use laneway_core::expression::Scope;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use laneway_torture::{Point, pass};
use uuid::Uuid;

use crate::child::{Resumed, WantedPage, Wanting};
use crate::contract::{Sessions, Work};
use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::keeper::{GivenBackBy, Keeper};
use crate::model::{Answer, Ask, Claim, Finished, Submission};
use crate::sqlite::run_work::{Stored, on_held, on_run};
use crate::sqlite::txn::{Done, Txn};
use crate::sqlite::{SqliteStore, read, sessions};

#[async_trait]
impl Work for SqliteStore {
    async fn submit(&self, submission: Submission) -> Result<RunId> {
        let submission = Arc::new(submission);
        if submission.plan.workflow.steps.len() > submit::CHUNK {
            return self.submit_in_chunks(submission).await;
        }
        let run = RunId::new(Uuid::now_v7());
        let submitted = self
            .write(move |txn| {
                if let Some(known) = submit::begin(txn, run, &submission)? {
                    return Ok(known);
                }
                submit::add(txn, run, 0..submission.plan.workflow.steps.len() as Position)?;
                submit::end(txn, run, &submission)?;
                Ok(run)
            })
            .await;
        pass(Point::SubmitAfter);
        submitted
    }

    async fn adopt(&self, run: RunId, session: SessionId) -> Result<()> {
        pass(Point::AdoptBefore);
        let adopted = match self.write(move |txn| sessions::adopt(txn, run, session)).await {
            // An owner that died is in the way until it is reaped, and nobody may have done so yet.
            Err(Error::Owned { .. }) => {
                self.reap().await?;
                self.write(move |txn| sessions::adopt(txn, run, session)).await
            }
            answer => answer,
        };
        pass(Point::AdoptAfter);
        adopted
    }

    async fn promote(&self) -> Result<Option<Millis>> {
        self.write(|txn| promote::promote(txn)).await
    }

    async fn wake_at(&self) -> Result<Option<Millis>> {
        self.look(|connection, _| promote::next(connection))
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>> {
        self.write(move |txn| claim::claim(txn, &ask)).await
    }

    async fn claim_level(&self, first: ClaimRef) -> Result<Vec<Claim>> {
        self.write(move |txn| claim_level(txn, &first)).await
    }

    async fn start(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        self.writer.apply(move |txn| start(txn, &claims)).await
    }

    async fn finish(&self, finished: Vec<Finished>, ask: Option<Ask>) -> Result<Answer> {
        self.write(move |txn| finish::finish(txn, &finished, ask.as_ref())).await
    }

    async fn give_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        self.write(move |txn| give_back(txn, &claims, GivenBackBy::Holder)).await
    }

    async fn take_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        self.write(move |txn| give_back(txn, &claims, GivenBackBy::Other)).await
    }

    async fn fence(&self, claim: ClaimRef) -> Result<Option<Option<u64>>> {
        self.read(move |connection, _| read::fence(connection, &claim)).await
    }

    async fn scope(&self, run: RunId, steps: &[&str]) -> Result<Scope> {
        let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
        self.read(move |connection, shared| {
            let names: Vec<&str> = steps.iter().map(String::as_str).collect();
            read::scope(connection, &shared.head(connection, run)?, &names)
        })
        .await
    }

    async fn wanted_runs(&self, wanting: Wanting) -> Result<WantedPage> {
        self.look(|connection, shared| children::wanted(connection, &shared.plans, &wanting))
    }

    async fn resume_child(
        &self,
        parent: Parent,
        child: RunId,
        session: Option<SessionId>,
    ) -> Result<Resumed> {
        self.write(move |txn| children::resume(txn, &parent, child, session)).await
    }

    async fn family(&self, run: RunId) -> Result<Vec<RunId>> {
        self.read(move |connection, shared| children::family(connection, &shared.plans, run)).await
    }

    async fn child_refused(&self, parent: Parent, why: &str) -> Result<()> {
        let why = why.to_owned();
        self.write(move |txn| children::refused(txn, &parent, &why)).await
    }
}

impl SqliteStore {
    /// A large run, so that nobody waits long for the write lock. It becomes visible with the last
    /// chunk.
    async fn submit_in_chunks(&self, submission: Arc<Submission>) -> Result<RunId> {
        let (run, steps) = (RunId::new(Uuid::now_v7()), submission.plan.workflow.steps.len());
        let first = Arc::clone(&submission);
        let known = self.write(move |txn| submit::begin(txn, run, &first)).await?;
        if let Some(known) = known {
            return Ok(known);
        }
        pass(Point::SubmitBegun);
        for chunk in 0..steps.div_ceil(submit::CHUNK) {
            let positions = chunk * submit::CHUNK..steps.min((chunk + 1) * submit::CHUNK);
            self.write(move |txn| {
                submit::add(txn, run, positions.start as Position..positions.end as Position)
            })
            .await?;
            pass(Point::SubmitChunk);
        }
        let ended = self.write(move |txn| submit::end(txn, run, &submission)).await;
        if ended.is_err() {
            // Others of its workflow came first; nobody has seen it.
            self.write(move |txn| submit::discard(txn, run)).await?;
        }
        pass(Point::SubmitAfter);
        ended.map(|()| run)
    }
}

pub(in crate::sqlite) fn start(txn: &Txn<'_>, claims: &[ClaimRef]) -> Done<Vec<Fate>> {
    by_run(txn, claims, |keeper, claim| keeper.start(claim))
}

pub(in crate::sqlite) fn give_back(txn: &Txn<'_>, claims: &[ClaimRef], by: GivenBackBy) -> Done<Vec<Fate>> {
    by_run(txn, claims, |keeper, claim| keeper.give_back(claim, by))
}

pub(in crate::sqlite) fn claim_level(txn: &Txn<'_>, first: &ClaimRef) -> Done<Vec<Claim>> {
    let held = on_held(txn, first.run, |keeper| keeper.claim_level(first))?.unwrap_or_default();
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let head = Arc::clone(&txn.head(first.run)?.head);
    Ok(held
        .into_iter()
        .map(|at| Claim { at, head: Arc::clone(&head), start_by: None, is_bound: false })
        .collect())
}

pub(in crate::sqlite) fn advance(txn: &Txn<'_>, run: RunId, by: &str) -> Done<u32> {
    on_run(txn, run, |keeper| keeper.advance(by))
}

/// Says something about claims, run by run, and gives their fates in the order in which they came.
/// Claims of a run that is gone are lost, and take nothing of the others with them.
fn by_run(
    txn: &Txn<'_>,
    claims: &[ClaimRef],
    mut say: impl FnMut(&mut Keeper<Stored<'_, '_>>, &ClaimRef) -> Done<Fate>,
) -> Done<Vec<Fate>> {
    let mut fates = Vec::with_capacity(claims.len());
    for of_run in claims.chunk_by(|a, b| a.run == b.run) {
        let said = on_held(txn, of_run[0].run, |keeper| {
            of_run.iter().map(|claim| say(keeper, claim)).collect::<Done<Vec<Fate>>>()
        })?;
        fates.extend(said.unwrap_or_else(|| vec![Fate::ClaimLost; of_run.len()]));
    }
    Ok(fates)
}
