//! `begin_effect`, `commit_effect`, `settle_effect`: the record of an effect and its event, in one
//! transaction. The fence is asked before anything is decided, and again by each statement that
//! writes.

use async_trait::async_trait;
use laneway_core::effect::{EffectId, EffectState, EffectStatus};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::contract::Effects;
use crate::effect::{Begun, Decided, EffectEnd, EffectResult, EffectRow, EffectView, NewEffect, Settlement};
use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::keeper::{no_such_step, unreadable};
use crate::sqlite::SqliteStore;
use crate::sqlite::run_work::{on_held, on_run};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Head, Txn};

#[async_trait]
impl Effects for SqliteStore {
    async fn begin_effect(&self, claim: ClaimRef, new: NewEffect) -> Result<Begun> {
        self.write(move |txn| begin(txn, &claim, &new)).await
    }

    async fn commit_effect(&self, claim: ClaimRef, end: EffectEnd) -> Result<Fate> {
        self.write(move |txn| commit(txn, &claim, &end)).await
    }

    async fn settle_effect(
        &self,
        run: RunId,
        step: &str,
        effect: EffectId,
        how: Settlement,
        by: &str,
    ) -> Result<()> {
        let (step, by) = (step.to_owned(), by.to_owned());
        self.write(move |txn| settle(txn, run, &step, (&effect, how, &by))).await
    }

    async fn effects(&self, run: RunId) -> Result<Vec<EffectView>> {
        self.read(move |connection, shared| views(connection, &shared.head(connection, run)?)).await
    }
}

pub(in crate::sqlite) fn begin(txn: &Txn<'_>, claim: &ClaimRef, new: &NewEffect) -> Done<Begun> {
    let mut alive = txn.connection.prepare_cached(sql!("effect_alive"))?;
    if !alive.exists(params![claim.session.to_string(), txn.now.0])? {
        return Ok(Begun::ClaimLost);
    }
    let decided = on_held(txn, claim.run, |keeper| {
        let row = row(txn, claim.run, claim.position, &new.id)?;
        keeper.begin_effect(claim, row.as_ref(), new)
    })?;
    match decided {
        None => Ok(Begun::ClaimLost),
        Some(Decided::Answer(begun)) => Ok(begun),
        Some(Decided::Read) => result(txn, claim, &new.id).map(Begun::Recorded),
        Some(Decided::Write(begun, token)) => {
            let written = txn.connection.prepare_cached(sql!("effect_begin"))?.execute(params![
                txn.head(claim.run)?.no,
                claim.position,
                claim.generation,
                claim.session.to_string(),
                new.id.name,
                new.id.key,
                new.execution,
                txn.now.0,
                token
            ])?;
            is_written(written)?;
            Ok(begun)
        }
    }
}

pub(in crate::sqlite) fn commit(txn: &Txn<'_>, claim: &ClaimRef, end: &EffectEnd) -> Done<Fate> {
    let fate = on_held(txn, claim.run, |keeper| {
        let row = row(txn, claim.run, claim.position, &end.id)?;
        keeper.commit_effect(claim, row.as_ref(), end)
    })?;
    let fate = fate.unwrap_or(Fate::ClaimLost);
    if fate == Fate::Recorded {
        let is_done = end.status == EffectStatus::Done;
        let is_whole = is_done && end.result.lacks.is_none();
        let written = txn.connection.prepare_cached(sql!("effect_commit"))?.execute(params![
            txn.head(claim.run)?.no,
            claim.position,
            claim.generation,
            claim.session.to_string(),
            end.execution,
            end.status.as_str(),
            txn.now.0,
            end.took_ms,
            end.result.exit_code,
            is_whole.then_some(&end.result.stdout),
            is_whole.then_some(&end.result.output),
            end.result.lacks.as_ref().filter(|_| is_done),
            end.id.name,
            end.id.key
        ])?;
        is_written(written)?;
    }
    Ok(fate)
}

pub(in crate::sqlite) fn settle(
    txn: &Txn<'_>,
    run: RunId,
    step: &str,
    (id, how, by): (&EffectId, Settlement, &str),
) -> Done<()> {
    let head = txn.head(run)?;
    let position = head.head.plan.position(step).ok_or_else(|| no_such_step(&head.head, step))?;
    let row = row(txn, run, position, id)?;
    let status = on_run(txn, run, |keeper| keeper.settle_effect(step, row.as_ref(), (id, how, by)))?;
    let (Some(status), Some(row)) = (status, row) else { return Ok(()) };
    let written = txn.connection.prepare_cached(sql!("effect_settle"))?.execute(params![
        head.no,
        position,
        id.name,
        id.key,
        status.as_str(),
        txn.now.0,
        by,
        (status == EffectStatus::Done).then_some(0),
        row.execution,
        row.status.as_str()
    ])?;
    is_written(written)
}

/// The events are in the same transaction, and go with it.
fn is_written(rows: usize) -> Done<()> {
    if rows == 1 {
        return Ok(());
    }
    let why = "its row changed while it was being worked on".to_owned();
    Err(Error::Unreadable { what: "effect".to_owned(), why }.into())
}

fn row(txn: &Txn<'_>, run: RunId, position: Position, id: &EffectId) -> Done<Option<EffectRow>> {
    let no = txn.head(run)?.no;
    let mut statement = txn.connection.prepare_cached(sql!("effect"))?;
    let read = |row: &Row<'_>| {
        let (status, session): (String, String) = (row.get(0)?, row.get(2)?);
        Ok((status, row.get(1)?, session, row.get(3)?, row.get(4)?, row.get(5)?))
    };
    let found = statement.query_row(params![no, position, id.name, id.key], read).optional()?;
    let Some((status, attempt, session, execution, started_at, token)) = found else { return Ok(None) };
    Ok(Some(EffectRow {
        status: EffectStatus::parse(&status).ok_or_else(|| unreadable("status of an effect", &status))?,
        attempt,
        session: SessionId::parse(&session).ok_or_else(|| unreadable("session of an effect", &session))?,
        execution,
        started_at: Millis(started_at),
        token,
    }))
}

fn result(txn: &Txn<'_>, claim: &ClaimRef, id: &EffectId) -> Done<EffectResult> {
    let no = txn.head(claim.run)?.no;
    let mut statement = txn.connection.prepare_cached(sql!("effect_result"))?;
    Ok(statement.query_row(params![no, claim.position, id.name, id.key], |row| {
        Ok(EffectResult {
            exit_code: row.get(0)?,
            stdout: row.get::<_, Option<_>>(1)?.unwrap_or_default(),
            output: row.get::<_, Option<_>>(2)?.unwrap_or_default(),
            lacks: row.get(3)?,
        })
    })?)
}

/// For the stored side of a replay: by position.
pub(in crate::sqlite) fn states(connection: &Connection, no: i64) -> Done<Vec<(Position, EffectState)>> {
    let mut statement = connection.prepare_cached(sql!("effect_states"))?;
    let mut rows = statement.query([no])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let effect = EffectState {
            name: row.get(1)?,
            key: row.get(2)?,
            status: status(row, 3)?,
            attempt: row.get(4)?,
            exit_code: row.get(5)?,
            by: row.get(6)?,
        };
        found.push((row.get(0)?, effect));
    }
    Ok(found)
}

pub(in crate::sqlite) fn views(connection: &Connection, head: &Head) -> Done<Vec<EffectView>> {
    let mut statement = connection.prepare_cached(sql!("effects"))?;
    let mut rows = statement.query([head.no])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let position: Position = row.get(0)?;
        found.push(EffectView {
            step: head.head.plan.task_name(position),
            id: EffectId { name: row.get(1)?, key: row.get(2)? },
            status: status(row, 3)?,
            attempt: row.get(4)?,
            started_at: Millis(row.get(5)?),
            finished_at: row.get::<_, Option<i64>>(6)?.map(Millis),
            took_ms: row.get(7)?,
            exit_code: row.get(8)?,
            stdout_bytes: row.get(9)?,
            output_bytes: row.get(10)?,
            lacks: row.get(11)?,
            settled_by: row.get(12)?,
            is_unknown: row.get(13)?,
        });
    }
    Ok(found)
}

fn status(row: &Row<'_>, column: usize) -> Done<EffectStatus> {
    let word: String = row.get(column)?;
    Ok(EffectStatus::parse(&word).ok_or_else(|| unreadable("status of an effect", &word))?)
}
