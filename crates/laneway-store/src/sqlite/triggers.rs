//! Triggers: `arm`, `fire`, `settle`, and their pauses. What is to be done about them is asked with
//! `due`.

use async_trait::async_trait;
use laneway_core::class::Class;
use laneway_core::hash::Version;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Plan;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_core::trigger::{Ended, circle};
use laneway_torture::{Point, pass};
use rusqlite::{Connection, Row, Rows, params};

use crate::contract::Triggers;
use crate::error::{Error, Result};
use crate::keeper::unreadable;
use crate::readable::Noted;
use crate::sqlite::operator::remove;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Txn};
use crate::sqlite::{SqliteStore, quarantine};
use crate::trigger::{
    Armed, DueNow, End, Fired, Firing, HOLD_SIGNATURES, LastFired, Listening, Outbox, Outcome,
    SIGNATURES_FORGOTTEN, TriggerRef, TriggerView, ends_text,
};

#[async_trait]
impl Triggers for SqliteStore {
    async fn due(&self, limit: usize) -> Result<DueNow> {
        self.read(move |connection, shared| due(connection, shared.moment(connection)?, limit)).await
    }

    async fn fire(&self, fired: Fired) -> Result<bool> {
        pass(Point::FireBefore);
        let fired = self.write(move |txn| fire(txn, &fired)).await;
        pass(Point::FireAfter);
        fired
    }

    async fn settle(&self, end: End, last: Option<LastFired>) -> Result<()> {
        self.write(move |txn| settle(txn, &end, last.as_ref())).await
    }

    async fn hooks_owed(&self, run: RunId) -> Result<Option<Firing>> {
        self.look(|connection, _| hooks_owed(connection, run))
    }

    async fn outbox(&self, session: SessionId) -> Result<Outbox> {
        self.look(|connection, shared| outbox(connection, session, shared.moment(connection)?))
    }

    async fn listening(&self, path: &str) -> Result<Option<Listening>> {
        self.look(|connection, shared| {
            let now = shared.moment(connection)?;
            Ok(listening(connection, path)?.map(|trigger| Listening { trigger, now }))
        })
    }

    async fn remember_signature(&self, path: &str, signature: [u8; 32], delivery: &str) -> Result<String> {
        let (path, delivery) = (path.to_owned(), delivery.to_owned());
        self.write(move |txn| remember_signature(txn, &path, signature, &delivery)).await
    }

    async fn note_fired(&self, of: TriggerRef, last: LastFired) -> Result<()> {
        self.write(move |txn| note_fired(txn, &of, &last)).await
    }

    async fn pause_triggers(&self, workflow: &str, by: &str) -> Result<bool> {
        let (workflow, by) = (workflow.to_owned(), by.to_owned());
        self.write(move |txn| pause(txn, &workflow, &by)).await
    }

    async fn resume_triggers(&self, workflow: &str) -> Result<bool> {
        let workflow = workflow.to_owned();
        self.write(move |txn| resume(txn, &workflow)).await
    }

    async fn remove_triggers(&self, workflow: &str) -> Result<u64> {
        let workflow = workflow.to_owned();
        self.write(move |txn| remove::triggers(txn, &workflow)).await
    }

    async fn triggers(&self) -> Result<Vec<TriggerView>> {
        self.read(|connection, _| all(connection)).await
    }
}

/// The triggers of the workflow are those of this version from here on, and no others.
pub(super) fn arm(txn: &Txn<'_>, plan: &Plan) -> Done<()> {
    let (workflow, version) = (&plan.workflow.name, &plan.version);
    let armed: Vec<Armed> = plan.workflow.triggers.iter().map(Armed::of).collect();
    let keys: Vec<&str> = armed.iter().map(|armed| armed.key.as_str()).collect();
    let keys = serde_json::Value::from(keys).to_string();
    leads_on(txn, workflow, &armed)?;
    for Armed { key, after, path } in &armed {
        if let Some(path) = path
            && let Some(other) = listening(txn.connection, path)?
            && other.at.workflow != *workflow
        {
            return Err(Error::PathTaken { path: path.clone(), workflow: other.at.workflow }.into());
        }
        let source = after.as_ref().map(|after| after.workflow.as_str());
        let ends = after.as_ref().map(|after| ends_text(&after.ends));
        let kept = params![workflow, key, version.as_str(), source, ends, path, txn.now.0];
        txn.connection.prepare_cached(sql!("trigger_arm"))?.execute(kept)?;
    }
    // Behind them: a new one asks those that were there whether they are paused.
    txn.connection.prepare_cached(sql!("triggers_disarm"))?.execute(params![workflow, keys])?;
    Ok(())
}

/// An error if the end of the workflow leads back to it.
fn leads_on(txn: &Txn<'_>, workflow: &str, armed: &[Armed]) -> Done<()> {
    let after: Vec<&str> =
        armed.iter().filter_map(|armed| armed.after.as_ref()).map(|after| after.workflow.as_str()).collect();
    if after.is_empty() {
        return Ok(());
    }
    let mut statement = txn.connection.prepare_cached(sql!("triggers_after"))?;
    let stored = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let stored = stored.collect::<Result<Vec<(String, String)>, _>>()?;
    match circle(workflow, &after, &stored) {
        Some(way) => Err(Error::LeadsBack { way }.into()),
        None => Ok(()),
    }
}

pub(in crate::sqlite) fn fire(txn: &Txn<'_>, fired: &Fired) -> Done<bool> {
    let (at, run, fault) = columns(fired.last.as_ref());
    let values = params![
        fired.workflow,
        fired.key,
        fired.seen.0,
        fired.dealt_with.0,
        fired.next.map(|next| next.0),
        at,
        run,
        fault
    ];
    let is_first = txn.connection.prepare_cached(sql!("trigger_fired"))?.execute(values)? == 1;
    pass(Point::FireMade);
    Ok(is_first)
}

pub(in crate::sqlite) fn settle(txn: &Txn<'_>, end: &End, last: Option<&LastFired>) -> Done<()> {
    let End { run, seq, workflow, key } = end;
    let done = params![run.to_string(), seq, workflow, key];
    txn.connection.prepare_cached(sql!("firing_done"))?.execute(done)?;
    if end.is_of_hooks() {
        txn.connection.prepare_cached(sql!("firing_settled"))?.execute([run.to_string()])?;
    }
    if last.is_some() {
        let (at, run, fault) = columns(last);
        txn.connection
            .prepare_cached(sql!("trigger_last"))?
            .execute(params![workflow, key, at, run, fault])?;
    }
    Ok(())
}

fn columns(last: Option<&LastFired>) -> (Option<i64>, Option<String>, Option<&str>) {
    match last {
        None => (None, None, None),
        Some(LastFired { at, outcome: Outcome::Started(run) }) => (Some(at.0), Some(run.to_string()), None),
        Some(LastFired { at, outcome: Outcome::Refused(why) }) => (Some(at.0), None, Some(why)),
    }
}

pub(in crate::sqlite) fn pause(txn: &Txn<'_>, workflow: &str, by: &str) -> Done<bool> {
    is_known(txn, workflow)?;
    let paused = params![workflow, by, txn.now.0];
    Ok(txn.connection.prepare_cached(sql!("triggers_pause"))?.execute(paused)? > 0)
}

pub(in crate::sqlite) fn resume(txn: &Txn<'_>, workflow: &str) -> Done<bool> {
    is_known(txn, workflow)?;
    let resumed = params![workflow, txn.now.0];
    Ok(txn.connection.prepare_cached(sql!("triggers_resume"))?.execute(resumed)? > 0)
}

fn is_known(txn: &Txn<'_>, workflow: &str) -> Done<()> {
    if has_some(txn, workflow)? {
        Ok(())
    } else {
        Err(Error::NoTriggers { workflow: workflow.to_owned() }.into())
    }
}

pub(super) fn has_some(txn: &Txn<'_>, workflow: &str) -> Done<bool> {
    let known: u32 =
        txn.connection.prepare_cached(sql!("triggers_known"))?.query_row([workflow], |row| row.get(0))?;
    Ok(known > 0)
}

pub(in crate::sqlite) fn due(connection: &Connection, now: Millis, limit: usize) -> Done<DueNow> {
    // They are bounded as they are read: a row that cannot be read takes nobody's place.
    let unbounded = -1;
    let mut statement = connection.prepare_cached(sql!("triggers_due"))?;
    let rows = statement.query(params![now.0, unbounded])?;
    let schedules =
        noted(rows, limit, view, |row| format!("a schedule of `{}` does not fire", lossy(row, 0)))?;
    let mut statement = connection.prepare_cached(sql!("firings"))?;
    let rows = statement.query([unbounded])?;
    let firings = noted(rows, limit, firing, |row| format!("an end of run {} fires nothing", lossy(row, 0)))?;
    let next: Option<i64> =
        connection.prepare_cached(sql!("trigger_next"))?.query_row([now.0], |row| row.get(0))?;
    let unreadable = [schedules.unreadable, firings.unreadable].concat();
    Ok(DueNow { now, schedules: schedules.list, firings: firings.list, unreadable, next: next.map(Millis) })
}

/// So many as can be read.
fn noted<T>(
    mut rows: Rows<'_>,
    limit: usize,
    read: impl Fn(&Row<'_>) -> Done<T>,
    comes_of_it: impl Fn(&Row<'_>) -> String,
) -> Done<Noted<T>> {
    let mut noted = Noted::new();
    while noted.list.len() < limit
        && let Some(row) = rows.next()?
    {
        noted.add(read(row), quarantine::blame, || comes_of_it(row))?;
    }
    Ok(noted)
}

/// The name of a row of which something cannot be read: perhaps this.
fn lossy(row: &Row<'_>, column: usize) -> String {
    let bytes = row.get_ref(column).ok().and_then(|found| found.as_bytes().ok());
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// Who listens at a path.
pub(in crate::sqlite) fn listening(connection: &Connection, path: &str) -> Done<Option<TriggerView>> {
    Ok(views(connection.prepare_cached(sql!("trigger_at_path"))?.query([path])?)?.pop())
}

/// The delivery that first carried a signature.
pub(in crate::sqlite) fn remember_signature(
    txn: &Txn<'_>,
    path: &str,
    signature: [u8; 32],
    delivery: &str,
) -> Done<String> {
    let before = txn.now.before(HOLD_SIGNATURES).0;
    let mut forget = txn.connection.prepare_cached(sql!("signatures_forget"))?;
    forget.execute(params![before, SIGNATURES_FORGOTTEN])?;
    let mut remember = txn.connection.prepare_cached(sql!("signature_remember"))?;
    let values = params![path, signature.as_slice(), delivery, txn.now.0, before];
    Ok(remember.query_row(values, |row| row.get(0))?)
}

/// The end of a run whose hooks have yet to run.
pub(in crate::sqlite) fn hooks_owed(connection: &Connection, run: RunId) -> Done<Option<Firing>> {
    let mut statement = connection.prepare_cached(sql!("hooks_owed"))?;
    let mut rows = statement.query([run.to_string()])?;
    rows.next()?.map(firing).transpose()
}

/// What a session can do about callbacks.
pub(in crate::sqlite) fn outbox(connection: &Connection, session: SessionId, now: Millis) -> Done<Outbox> {
    let mut statement = connection.prepare_cached(sql!("outbox"))?;
    let values = params![Class::of_callbacks().to_string(), session.to_string(), now.0];
    let outbox = |row: &Row<'_>| Ok(Outbox { has_callbacks: row.get(0)?, owes_hooks: row.get(1)? });
    Ok(statement.query_row(values, outbox)?)
}

/// What came of a trigger that somebody else fired.
pub(in crate::sqlite) fn note_fired(txn: &Txn<'_>, of: &TriggerRef, last: &LastFired) -> Done<()> {
    let (at, run, fault) = columns(Some(last));
    let values = params![of.workflow, of.key, at, run, fault];
    txn.connection.prepare_cached(sql!("trigger_last"))?.execute(values)?;
    Ok(())
}

pub(in crate::sqlite) fn all(connection: &Connection) -> Done<Vec<TriggerView>> {
    views(connection.prepare_cached(sql!("triggers"))?.query([])?)
}

fn views(mut rows: Rows<'_>) -> Done<Vec<TriggerView>> {
    let mut views = Vec::new();
    while let Some(row) = rows.next()? {
        views.push(view(row)?);
    }
    Ok(views)
}

fn view(row: &Row<'_>) -> Done<TriggerView> {
    let pause = match (row.get(5)?, row.get::<_, Option<i64>>(6)?) {
        (Some(by), Some(since)) => Some((by, Millis(since))),
        (_, _) => None,
    };
    Ok(TriggerView {
        at: TriggerRef {
            workflow: row.get(0)?,
            key: row.get(1)?,
            version: Version::from_stored(row.get(2)?),
        },
        dealt_with: Millis(row.get(3)?),
        due_at: row.get::<_, Option<i64>>(4)?.map(Millis),
        pause,
        last: last(row)?,
    })
}

fn last(row: &Row<'_>) -> Done<Option<LastFired>> {
    let Some(at) = row.get::<_, Option<i64>>(7)? else { return Ok(None) };
    let outcome = match row.get::<_, Option<String>>(8)? {
        Some(run) => Outcome::of_run(&run),
        None => Outcome::Refused(row.get::<_, Option<String>>(9)?.unwrap_or_default()),
    };
    Ok(Some(LastFired { at: Millis(at), outcome }))
}

fn firing(row: &Row<'_>) -> Done<Firing> {
    let (run, status): (String, String) = (row.get(0)?, row.get(3)?);
    let run = RunId::parse(&run).ok_or_else(|| unreadable("run id", &run))?;
    let end = End { run, seq: row.get(1)?, workflow: row.get(4)?, key: row.get(5)? };
    let trigger = match row.get::<_, Option<String>>(6)? {
        Some(text) => {
            let version = Version::from_stored(text);
            Some(TriggerRef { workflow: end.workflow.clone(), key: end.key.clone(), version })
        }
        None => None,
    };
    let status = RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?;
    Ok(Firing { trigger, ended: Ended { run, workflow: row.get(2)?, status }, end })
}
