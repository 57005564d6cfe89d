//! `begin_effect`, `commit_effect`, `settle_effect`: the run is locked, then its record of the
//! effect is read, then the gate keeper decides, and record and event are written in one flight
//! with their COMMIT. Three round trips, for what is rare.

use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::effect::{EffectId, EffectState, EffectStatus};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::contract::Effects;
use crate::effect::{Begun, Decided, EffectEnd, EffectResult, EffectRow, EffectView, NewEffect, Settlement};
use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::postgres::base::Base;
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::follow::work;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::{Head, Shelf};
use crate::postgres::{PostgresStore, row};

#[async_trait]
impl Effects for PostgresStore {
    async fn begin_effect(&self, claim: ClaimRef, new: NewEffect) -> Result<Begun> {
        begin(&self.base, claim, &new).await
    }

    async fn commit_effect(&self, claim: ClaimRef, end: EffectEnd) -> Result<Fate> {
        commit(&self.base, claim, &end).await
    }

    async fn settle_effect(
        &self,
        run: RunId,
        step: &str,
        effect: EffectId,
        how: Settlement,
        by: &str,
    ) -> Result<()> {
        let what = (&effect, how, by);
        self.base
            .change(
                |link, terms| async move { settle(&self.base.shelf, &link, terms, (run, step), what).await },
            )
            .await
    }

    async fn effects(&self, run: RunId) -> Result<Vec<EffectView>> {
        self.base
            .ask(|link| async move { views(&link, &*self.base.shelf.head(&link, run).await?).await })
            .await
    }
}

/// A run that is gone or set aside has no holders.
fn lost<T>(said: Result<T>, lost: T) -> Result<T> {
    match said {
        Err(Error::NoSuchRun { .. } | Error::SetAside { .. }) => Ok(lost),
        said => said,
    }
}

pub(in crate::postgres) async fn begin(base: &Base, claim: ClaimRef, new: &NewEffect) -> Result<Begun> {
    let shelf = &base.shelf;
    let said =
        base.change(|link, terms| async move { begin_held(shelf, &link, terms, (&claim, new)).await }).await;
    lost(said, Begun::ClaimLost)
}

pub(in crate::postgres) async fn commit(base: &Base, claim: ClaimRef, end: &EffectEnd) -> Result<Fate> {
    let shelf = &base.shelf;
    let said =
        base.change(|link, terms| async move { commit_held(shelf, &link, terms, (&claim, end)).await }).await;
    lost(said, Fate::ClaimLost)
}

async fn begin_held(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (claim, new): (&ClaimRef, &NewEffect),
) -> Done<Begun> {
    let head = shelf.head(link, claim.run).await?;
    let (record, is_alive) = open(link, terms, &head, (claim.position, &new.id, Some(claim.session))).await?;
    if !is_alive {
        link.roll_back().await;
        return Ok(Begun::ClaimLost);
    }
    let within = Terms { is_begun: true, ..terms };
    let (made, columns) = work(shelf, link, within, vec![job(&head, claim)], |_, keeper| {
        keeper.begin_effect(claim, record.as_ref(), new)
    })
    .await?;
    let made = made.into_iter().next().expect("one run went in");
    let (no, position, generation) = (head.no, i64::from(claim.position), i64::from(claim.generation));
    let (session, at, now) = (claim.session.to_string(), made.now.0, terms.now.map(|now| now.0));
    let EffectId { name, key } = &new.id;
    let mut flight = link.flight();
    columns.say(&mut flight);
    let said = flight.len();
    match &made.answer {
        Decided::Write(_, token) => flight.ask(
            sql!("effect_begin", INT8, INT8, INT8, TEXT, TEXT, TEXT, TEXT, INT8, INT8, TEXT),
            vec![&no, &position, &generation, &session, name, key, &new.execution, &at, &now, token],
        ),
        Decided::Read => {
            flight.ask(sql!("effect_result", INT8, INT8, TEXT, TEXT), vec![&no, &position, name, key]);
        }
        Decided::Answer(_) => {}
    }
    let mut answers = flight.commit().await?.into_iter().skip(said);
    Ok(match made.answer {
        Decided::Answer(begun) | Decided::Write(begun, _) => begun,
        Decided::Read => {
            let found = answers.next().and_then(|rows| rows.into_iter().next());
            let found = found.ok_or_else(|| row::unreadable("result of an effect", "nothing"))?;
            Begun::Recorded(EffectResult {
                exit_code: row::number(&found, 0)?,
                stdout: found.try_get::<_, Option<Vec<u8>>>(1)?.unwrap_or_default(),
                output: row::maybe_text(&found, 2)?.unwrap_or_default(),
                lacks: row::maybe_text(&found, 3)?,
            })
        }
    })
}

async fn commit_held(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (claim, end): (&ClaimRef, &EffectEnd),
) -> Done<Fate> {
    let head = shelf.head(link, claim.run).await?;
    let (record, _) = open(link, terms, &head, (claim.position, &end.id, None)).await?;
    let within = Terms { is_begun: true, ..terms };
    let (made, columns) = work(shelf, link, within, vec![job(&head, claim)], |_, keeper| {
        keeper.commit_effect(claim, record.as_ref(), end)
    })
    .await?;
    let made = made.into_iter().next().expect("one run went in");
    let (no, position, generation) = (head.no, i64::from(claim.position), i64::from(claim.generation));
    let (session, status, at) = (claim.session.to_string(), end.status.as_str(), made.now.0);
    let is_done = end.status == EffectStatus::Done;
    let whole = is_done && end.result.lacks.is_none();
    let (stdout, output) =
        (whole.then_some(end.result.stdout.as_slice()), whole.then_some(end.result.output.as_str()));
    let lacks = end.result.lacks.as_deref().filter(|_| is_done);
    let took_ms = end.took_ms.map(|took| i64::try_from(took).unwrap_or(i64::MAX));
    let (exit_code, EffectId { name, key }) = (i64::from(end.result.exit_code), &end.id);
    let mut flight = link.flight();
    columns.say(&mut flight);
    if made.answer == Fate::Recorded {
        flight.ask(
            sql!(
                "effect_commit",
                INT8,
                INT8,
                INT8,
                TEXT,
                TEXT,
                TEXT,
                INT8,
                INT8,
                INT8,
                BYTEA,
                TEXT,
                TEXT,
                TEXT,
                TEXT
            ),
            vec![
                &no,
                &position,
                &generation,
                &session,
                &end.execution,
                &status,
                &at,
                &took_ms,
                &exit_code,
                &stdout,
                &output,
                &lacks,
                name,
                key,
            ],
        );
    }
    flight.commit().await?;
    Ok(made.answer)
}

pub(in crate::postgres) async fn settle(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (run, step): (RunId, &str),
    (id, how, by): (&EffectId, Settlement, &str),
) -> Done<()> {
    let head = shelf.head(link, run).await?;
    let position = crate::postgres::read::position(&head, step)?;
    let (record, _) = open(link, terms, &head, (position, id, None)).await?;
    let within = Terms { is_begun: true, ..terms };
    let seed = Missing { tasks: [position].into(), ..Missing::default() };
    let jobs = vec![Job { seed, head: Arc::clone(&head) }];
    let (made, columns) = work(shelf, link, within, jobs, |_, keeper| {
        keeper.settle_effect(step, record.as_ref(), (id, how, by))
    })
    .await?;
    let made = made.into_iter().next().expect("one run went in");
    let mut flight = link.flight();
    columns.say(&mut flight);
    let (no, position, at) = (head.no, i64::from(position), made.now.0);
    let written = made.answer.zip(record);
    let written = written.as_ref().map(|(status, record)| {
        let exit_code = (*status == EffectStatus::Done).then_some(0_i64);
        (status.as_str(), exit_code, &record.execution, record.status.as_str())
    });
    if let Some((status, exit_code, execution, was)) = &written {
        flight.ask(
            sql!("effect_settle", INT8, INT8, TEXT, TEXT, TEXT, INT8, TEXT, INT8, TEXT, TEXT),
            vec![&no, &position, &id.name, &id.key, status, &at, &by, exit_code, *execution, was],
        );
    }
    flight.commit().await?;
    Ok(())
}

fn job(head: &Arc<Head>, claim: &ClaimRef) -> Job {
    let seed = Missing::for_claims(&head.head.plan, std::iter::once(claim));
    Job { seed, head: Arc::clone(head) }
}

/// Begins the transaction and locks the run; behind the lock, the record as it is, and whether a
/// session is alive.
async fn open(
    link: &Link,
    terms: Terms,
    head: &Head,
    (position, id, session): (Position, &EffectId, Option<SessionId>),
) -> Done<(Option<EffectRow>, bool)> {
    let (numbers, position, now) = (vec![head.no], i64::from(position), terms.now.map(|now| now.0));
    let session = session.map(|session| session.to_string());
    let mut flight = link.begin(Begin::Write);
    let runs = link.locks.acquire_runs(&numbers)?;
    runs.send(&mut flight);
    flight.ask(sql!("effect", INT8, INT8, TEXT, TEXT), vec![&head.no, &position, &id.name, &id.key]);
    flight.ask(sql!("effect_alive", TEXT, INT8), vec![&session, &now]);
    let answers = flight.land().await?;
    let record = answers.first().and_then(|rows| rows.first()).map(record).transpose();
    let record = record.map_err(|failure| failure.about(head.no, head.head.run))?;
    Ok((record, answers.get(1).is_some_and(|rows| !rows.is_empty())))
}

fn record(found: &Row) -> Done<EffectRow> {
    Ok(EffectRow {
        status: row::word(found, 0, "status of an effect", EffectStatus::parse)?,
        attempt: row::number(found, 1)?,
        session: row::word(found, 2, "session of an effect", SessionId::parse)?,
        execution: row::text(found, 3)?,
        started_at: Millis(found.try_get(4)?),
        token: row::maybe_text(found, 5)?,
    })
}

/// For the stored side of a replay: by position.
pub(in crate::postgres) fn state(found: &Row) -> Done<(Position, EffectState)> {
    let effect = EffectState {
        name: row::text(found, 1)?,
        key: row::text(found, 2)?,
        status: row::word(found, 3, "status of an effect", EffectStatus::parse)?,
        attempt: row::number(found, 4)?,
        exit_code: row::maybe_number(found, 5)?,
        by: row::maybe_text(found, 6)?,
    };
    Ok((row::number(found, 0)?, effect))
}

pub(in crate::postgres) async fn views(link: &Link, head: &Head) -> Done<Vec<EffectView>> {
    let rows = link.rows(sql!("effects", INT8), &[&head.no]).await?;
    let view = |found: &Row| {
        let position: Position = row::number(found, 0)?;
        Ok(EffectView {
            step: head.head.plan.task_name(position),
            id: EffectId { name: row::text(found, 1)?, key: row::text(found, 2)? },
            status: row::word(found, 3, "status of an effect", EffectStatus::parse)?,
            attempt: row::number(found, 4)?,
            started_at: Millis(found.try_get(5)?),
            finished_at: row::moment(found, 6)?,
            took_ms: row::maybe_number(found, 7)?,
            exit_code: row::maybe_number(found, 8)?,
            stdout_bytes: row::number(found, 9)?,
            output_bytes: row::number(found, 10)?,
            lacks: row::maybe_text(found, 11)?,
            settled_by: row::maybe_text(found, 12)?,
            is_unknown: found.try_get(13)?,
        })
    };
    rows.iter().map(view).collect()
}
