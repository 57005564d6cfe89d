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
use tokio_postgres::Row;

use crate::contract::Triggers;
use crate::error::{Error, Result};
use crate::postgres::fault::{Done, Failure};
use crate::postgres::link::{Begin, Flight, Link, Sql, Value, sql};
use crate::postgres::operator::remove;
use crate::postgres::run_work::Terms;
use crate::postgres::{PostgresStore, row};
use crate::readable::Noted;
use crate::trigger::{
    Armed, DueNow, End, Fired, Firing, HOLD_SIGNATURES, LastFired, Listening, Outbox, Outcome,
    SIGNATURES_FORGOTTEN, TriggerRef, TriggerView, ends_text,
};

#[async_trait]
impl Triggers for PostgresStore {
    async fn due(&self, limit: usize) -> Result<DueNow> {
        self.base.ask(|link| async move { due(&link, self.base.now(), limit).await }).await
    }

    async fn fire(&self, fired: Fired) -> Result<bool> {
        let fired = &fired;
        pass(Point::FireBefore);
        let fired = self.base.write(|link, _| async move { fire(&link, fired).await }).await;
        pass(Point::FireAfter);
        fired
    }

    async fn settle(&self, end: End, last: Option<LastFired>) -> Result<()> {
        let (end, last) = (&end, last.as_ref());
        self.base.write(|link, _| async move { settle(&link, end, last).await }).await
    }

    async fn hooks_owed(&self, run: RunId) -> Result<Option<Firing>> {
        self.base.ask(|link| async move { hooks_owed(&link, run).await }).await
    }

    async fn outbox(&self, session: SessionId) -> Result<Outbox> {
        self.base.ask(|link| async move { outbox(&link, self.base.now(), session).await }).await
    }

    async fn listening(&self, path: &str) -> Result<Option<Listening>> {
        self.base.ask(|link| async move { listening(&link, self.base.now(), path).await }).await
    }

    async fn remember_signature(&self, path: &str, signature: [u8; 32], delivery: &str) -> Result<String> {
        let (signature, signed) = (&signature, (path, delivery));
        self.base
            .write(|link, terms| async move { remember_signature(&link, terms, signature, signed).await })
            .await
    }

    async fn note_fired(&self, of: TriggerRef, last: LastFired) -> Result<()> {
        let (of, last) = (&of, &last);
        self.base.write(|link, _| async move { note_fired(&link, of, last).await }).await
    }

    async fn pause_triggers(&self, workflow: &str, by: &str) -> Result<bool> {
        self.base.change(|link, terms| async move { pause(&link, terms, workflow, by).await }).await
    }

    async fn resume_triggers(&self, workflow: &str) -> Result<bool> {
        self.base.change(|link, terms| async move { resume(&link, terms, workflow).await }).await
    }

    async fn remove_triggers(&self, workflow: &str) -> Result<u64> {
        self.base.change(|link, _| async move { remove::triggers(&link, workflow).await }).await
    }

    async fn triggers(&self) -> Result<Vec<TriggerView>> {
        self.base.ask(|link| async move { all(&link).await }).await
    }
}

/// The triggers of a workflow, as columns.
pub(super) struct Arms {
    keys: Vec<String>,
    sources: Vec<Option<String>>,
    ends: Vec<Option<String>>,
    paths: Vec<Option<String>>,
}

impl Arms {
    pub(super) fn of(plan: &Plan) -> Self {
        let (mut keys, mut sources, mut ends, mut paths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for Armed { key, after, path } in plan.workflow.triggers.iter().map(Armed::of) {
            paths.push(path);
            keys.push(key);
            ends.push(after.as_ref().map(|after| ends_text(&after.ends)));
            sources.push(after.map(|after| after.workflow));
        }
        Self { keys, sources, ends, paths }
    }

    /// An error if another workflow listens where this one is to.
    pub(super) async fn are_free(&self, link: &Link, workflow: &str) -> Done<()> {
        for path in self.paths.iter().flatten() {
            let found = link.row(sql!("trigger_at_path", TEXT), &[path]).await?;
            if let Some(other) = found.as_ref().map(view).transpose()?
                && other.at.workflow != workflow
            {
                return Err(Error::PathTaken { path: path.clone(), workflow: other.at.workflow }.into());
            }
        }
        Ok(())
    }

    /// An error if the end of the workflow leads back to it.
    pub(super) async fn lead_on(&self, link: &Link, workflow: &str) -> Done<()> {
        let after: Vec<&str> = self.sources.iter().flatten().map(String::as_str).collect();
        if after.is_empty() {
            return Ok(());
        }
        let mut flight = link.flight();
        flight.ask(sql!("triggers_lock"), vec![]);
        flight.ask(sql!("triggers_after"), vec![]);
        let rows = flight.land().await?.pop().unwrap_or_default();
        let stored = rows.iter().map(|found| Ok((row::text(found, 0)?, row::text(found, 1)?)));
        match circle(workflow, &after, &stored.collect::<Done<Vec<_>>>()?) {
            Some(way) => Err(Error::LeadsBack { way }.into()),
            None => Ok(()),
        }
    }

    /// They are the triggers of the workflow from here on, and no others.
    pub(super) fn say<'a>(
        &'a self,
        flight: &mut Flight<'a>,
        of: (&'a String, &'a &'a str),
        now: &'a Option<i64>,
    ) {
        let (workflow, version) = of;
        flight.ask(
            sql!("trigger_arm", TEXT, TEXT_ARRAY, TEXT, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8),
            vec![workflow, &self.keys, version, &self.sources, &self.ends, &self.paths, now],
        );
        // Behind them: a new one asks those that were there whether they are paused.
        flight.ask(sql!("triggers_disarm", TEXT, TEXT_ARRAY), vec![workflow, &self.keys]);
    }
}

pub(in crate::postgres) async fn fire(link: &Link, fired: &Fired) -> Done<bool> {
    let (at, run, fault) = columns(fired.last.as_ref());
    let (seen, dealt_with, next) = (fired.seen.0, fired.dealt_with.0, fired.next.map(|next| next.0));
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("trigger_fired", TEXT, TEXT, INT8, INT8, INT8, INT8, TEXT, TEXT),
        vec![&fired.workflow, &fired.key, &seen, &dealt_with, &next, &at, &run, &fault],
    );
    pass(Point::FireMade);
    let answers = flight.commit().await?;
    Ok(answers.first().is_some_and(|rows| !rows.is_empty()))
}

pub(in crate::postgres) async fn settle(link: &Link, end: &End, last: Option<&LastFired>) -> Done<()> {
    let End { run, seq, workflow, key } = end;
    let (run, seq) = (run.to_string(), i64::try_from(*seq).unwrap_or(i64::MAX));
    let (at, started, fault) = columns(last);
    let mut flight = link.begin(Begin::Write);
    if end.is_of_hooks() {
        flight.ask(sql!("firing_settled", TEXT), vec![&run]);
    }
    flight.ask(sql!("firing_done", TEXT, INT8, TEXT, TEXT), vec![&run, &seq, workflow, key]);
    if last.is_some() {
        flight.ask(
            sql!("trigger_last", TEXT, TEXT, INT8, TEXT, TEXT),
            vec![workflow, key, &at, &started, &fault],
        );
    }
    flight.commit().await?;
    Ok(())
}

fn columns(last: Option<&LastFired>) -> (Option<i64>, Option<String>, Option<&str>) {
    match last {
        None => (None, None, None),
        Some(LastFired { at, outcome: Outcome::Started(run) }) => (Some(at.0), Some(run.to_string()), None),
        Some(LastFired { at, outcome: Outcome::Refused(why) }) => (Some(at.0), None, Some(why)),
    }
}

pub(in crate::postgres) async fn pause(link: &Link, terms: Terms, workflow: &str, by: &str) -> Done<bool> {
    let now = terms.now.map(|now| now.0);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("triggers_known", TEXT), vec![&workflow]);
    flight.ask(sql!("triggers_pause", TEXT, TEXT, INT8), vec![&workflow, &by, &now]);
    let answers = flight.commit().await?;
    is_known(&answers, workflow)?;
    Ok(answers.get(1).is_some_and(|changed| !changed.is_empty()))
}

pub(in crate::postgres) async fn resume(link: &Link, terms: Terms, workflow: &str) -> Done<bool> {
    let now = terms.now.map(|now| now.0);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("triggers_known", TEXT), vec![&workflow]);
    flight.ask(sql!("triggers_resume", TEXT, INT8), vec![&workflow, &now]);
    let answers = flight.commit().await?;
    is_known(&answers, workflow)?;
    Ok(answers.get(1).is_some_and(|changed| !changed.is_empty()))
}

fn is_known(answers: &[Vec<Row>], workflow: &str) -> Done<()> {
    let known = answers.first().and_then(|rows| rows.first()).map(|found| found.try_get::<_, i64>(0));
    match known.transpose()? {
        Some(1..) => Ok(()),
        Some(_) | None => Err(Error::NoTriggers { workflow: workflow.to_owned() }.into()),
    }
}

pub(in crate::postgres) async fn due(link: &Link, now: Option<Millis>, limit: usize) -> Done<DueNow> {
    let now = now.map(|now| now.0);
    let found = link.row(sql!("moment", INT8), &[&now]).await?;
    let now: i64 = found.map(|found| found.try_get(0)).transpose()?.unwrap_or_default();
    let schedules = sql!("triggers_due", INT8, INT8);
    let schedules = noted(link, (schedules, &[&now]), limit, view, |name| {
        format!("a schedule of `{name}` does not fire")
    })
    .await?;
    let firings = sql!("firings", INT8);
    let firings =
        noted(link, (firings, &[]), limit, firing, |name| format!("an end of run {name} fires nothing"))
            .await?;
    let next = link.row(sql!("trigger_next", INT8), &[&now]).await?;
    let next: Option<i64> = next.map(|found| found.try_get(0)).transpose()?.flatten();
    Ok(DueNow {
        now: Millis(now),
        schedules: schedules.list,
        firings: firings.list,
        unreadable: [schedules.unreadable, firings.unreadable].concat(),
        next: next.map(Millis),
    })
}

/// So many as can be read. One that cannot takes nobody's place: as many more are asked for.
async fn noted<T>(
    link: &Link,
    (statement, values): (&Sql, &[&Value<'_>]),
    limit: usize,
    read: impl Fn(&Row) -> Done<T>,
    comes_of_it: impl Fn(&str) -> String,
) -> Done<Noted<T>> {
    let mut wanted = limit;
    loop {
        let bound = i64::try_from(wanted).unwrap_or(i64::MAX);
        let values: Vec<&Value<'_>> = values.iter().copied().chain([&bound as &Value<'_>]).collect();
        let rows = link.rows(statement, &values).await?;
        let mut noted = Noted::new();
        for found in &rows {
            noted
                .add(read(found), Failure::to_blame, || comes_of_it(found.try_get(0).unwrap_or_default()))?;
        }
        if noted.list.len() >= limit || rows.len() < wanted {
            noted.list.truncate(limit);
            return Ok(noted);
        }
        wanted = limit.saturating_add(noted.unreadable.len());
    }
}

/// Who listens at a path.
pub(in crate::postgres) async fn listening(
    link: &Link,
    now: Option<Millis>,
    path: &str,
) -> Done<Option<Listening>> {
    let Some(found) = link.row(sql!("trigger_at_path", TEXT), &[&path]).await? else { return Ok(None) };
    let now = now.map(|now| now.0);
    let moment = link.row(sql!("moment", INT8), &[&now]).await?;
    let now: i64 = moment.map(|found| found.try_get(0)).transpose()?.unwrap_or_default();
    Ok(Some(Listening { trigger: view(&found)?, now: Millis(now) }))
}

/// The delivery that first carried a signature.
pub(in crate::postgres) async fn remember_signature(
    link: &Link,
    terms: Terms,
    signature: &[u8; 32],
    (path, delivery): (&str, &str),
) -> Done<String> {
    let (now, signature) = (terms.now.map(|now| now.0), signature.as_slice());
    let hold = i64::try_from(HOLD_SIGNATURES.as_millis()).unwrap_or(i64::MAX);
    let mut flight = link.begin(Begin::Write);
    let most = SIGNATURES_FORGOTTEN;
    flight.ask(sql!("signatures_forget", INT8, INT8, INT8), vec![&now, &hold, &most]);
    flight.ask(
        sql!("signature_remember", TEXT, BYTEA, TEXT, INT8, INT8),
        vec![&path, &signature, &delivery, &now, &hold],
    );
    let rows = flight.commit().await?.pop().unwrap_or_default();
    rows.first().map_or_else(|| Ok(delivery.to_owned()), |found| row::text(found, 0))
}

/// What a session can do about callbacks.
pub(in crate::postgres) async fn outbox(
    link: &Link,
    now: Option<Millis>,
    session: SessionId,
) -> Done<Outbox> {
    let (class, session) = (Class::of_callbacks().to_string(), session.to_string());
    let now = now.map(|now| now.0);
    let found = link.row(sql!("outbox", TEXT, TEXT, INT8), &[&class, &session, &now]).await?;
    let found = found.ok_or_else(|| row::unreadable("answer", "about callbacks"))?;
    Ok(Outbox { has_callbacks: found.try_get(0)?, owes_hooks: found.try_get(1)? })
}

/// The end of a run whose hooks have yet to run.
pub(in crate::postgres) async fn hooks_owed(link: &Link, run: RunId) -> Done<Option<Firing>> {
    link.row(sql!("hooks_owed", TEXT), &[&run.to_string()]).await?.as_ref().map(firing).transpose()
}

/// What came of a trigger that somebody else fired.
pub(in crate::postgres) async fn note_fired(link: &Link, of: &TriggerRef, last: &LastFired) -> Done<()> {
    let (at, started, fault) = columns(Some(last));
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("trigger_last", TEXT, TEXT, INT8, TEXT, TEXT),
        vec![&of.workflow, &of.key, &at, &started, &fault],
    );
    flight.commit().await?;
    Ok(())
}

pub(in crate::postgres) async fn all(link: &Link) -> Done<Vec<TriggerView>> {
    link.rows(sql!("triggers"), &[]).await?.iter().map(view).collect()
}

fn view(found: &Row) -> Done<TriggerView> {
    let pause = match (found.try_get(5)?, found.try_get::<_, Option<i64>>(6)?) {
        (Some(by), Some(since)) => Some((by, Millis(since))),
        (_, _) => None,
    };
    let version = Version::from_stored(row::text(found, 2)?);
    Ok(TriggerView {
        at: TriggerRef { workflow: row::text(found, 0)?, key: row::text(found, 1)?, version },
        dealt_with: Millis(found.try_get(3)?),
        due_at: found.try_get::<_, Option<i64>>(4)?.map(Millis),
        pause,
        last: last(found)?,
    })
}

fn last(found: &Row) -> Done<Option<LastFired>> {
    let Some(at) = found.try_get::<_, Option<i64>>(7)? else { return Ok(None) };
    let outcome = match found.try_get::<_, Option<&str>>(8)? {
        Some(run) => Outcome::of_run(run),
        None => Outcome::Refused(found.try_get::<_, Option<String>>(9)?.unwrap_or_default()),
    };
    Ok(Some(LastFired { at: Millis(at), outcome }))
}

fn firing(found: &Row) -> Done<Firing> {
    let run = row::word(found, 0, "run id", RunId::parse)?;
    let end =
        End { run, seq: row::number(found, 1)?, workflow: row::text(found, 4)?, key: row::text(found, 5)? };
    let trigger = match found.try_get::<_, Option<&str>>(6)? {
        Some(_) => {
            let version = Version::from_stored(row::text(found, 6)?);
            Some(TriggerRef { workflow: end.workflow.clone(), key: end.key.clone(), version })
        }
        None => None,
    };
    let status = row::word(found, 3, "status of a run", RunStatus::parse)?;
    Ok(Firing { trigger, ended: Ended { run, workflow: row::text(found, 2)?, status }, end })
}
