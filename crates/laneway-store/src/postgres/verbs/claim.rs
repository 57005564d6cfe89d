//! `claim`: picks and takes in one statement, so that two never get the same task and nobody waits. It checks no gate
//! and appends no event; the holder's `start` does.

use std::sync::Arc;

use laneway_core::definition::OnLost;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use tokio_postgres::Row;

use crate::error::Error;
use crate::fence::ClaimRef;
use crate::model::{Ask, Claim};
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Flight, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::{Head, Shelf};

pub(in crate::postgres) async fn claim(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    ask: &Ask,
) -> Done<Vec<Claim>> {
    let asked = Asked::new(shelf, link, terms, ask).await?;
    let mut flight = link.begin(Begin::Write);
    asked.say(&mut flight);
    let taken = asked.hear(&mut flight.commit().await?.into_iter())?;
    if let (true, Some((head, run))) = (taken.is_empty(), asked.head.as_ref().zip(ask.run)) {
        let numbers = vec![head.no];
        if let Some(found) = link.row(sql!("quarantine_read", INT8_ARRAY), &[&numbers]).await? {
            let (what, why) = (row::text(&found, 1)?, row::text(&found, 2)?);
            return Err(Error::SetAside { run: run.short(), what, why }.into());
        }
    }
    claims(shelf, link, taken).await
}

/// Claims with all that is needed to run them.
pub(super) async fn claims(shelf: &Shelf, link: &Link, taken: Vec<ClaimRef>) -> Done<Vec<Claim>> {
    let mut claims = Vec::with_capacity(taken.len());
    for at in taken {
        claims.push(Claim { at, head: Arc::clone(&shelf.head(link, at.run).await?.head) });
    }
    Ok(claims)
}

/// A request for work, with what the statement is told.
pub(super) struct Asked {
    /// Of the one run that is asked for.
    head: Option<Arc<Head>>,
    ask: Ask,
    number: i64,
    class: i64,
    session: String,
    limit: i64,
    ahead: i64,
    /// Must not wait for a place in a worker's hand: a claim that dies with its node counts as an execution of a step that
    /// must not run twice, and a key that is held unused keeps others waiting.
    never_ahead: Vec<i64>,
    now: Option<i64>,
}

impl Asked {
    pub(super) async fn new(shelf: &Shelf, link: &Link, terms: Terms, ask: &Ask) -> Done<Self> {
        let head = match ask.run {
            Some(run) => Some(shelf.head(link, run).await?),
            None => None,
        };
        let count = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        let number = head.as_ref().map_or(0, |head| head.no);
        Ok(Self {
            number,
            class: -number,
            session: ask.session.to_string(),
            limit: count(ask.limit),
            ahead: count(ask.ahead),
            never_ahead: head
                .as_ref()
                .filter(|_| ask.ahead > 0)
                .map(|head| never_ahead(head))
                .unwrap_or_default(),
            now: terms.now.map(|now| now.0),
            ask: ask.clone(),
            head,
        })
    }

    fn wants_nothing(&self) -> bool {
        self.limit + self.ahead == 0
    }

    pub(super) fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        if self.wants_nothing() {
            return;
        }
        if self.head.is_none() {
            // Nothing ahead of what others could take.
            flight.ask(sql!("claim_shared", TEXT, INT8, INT8), vec![&self.session, &self.limit, &self.now]);
            return;
        }
        flight.ask(
            sql!("claim", INT8, INT8, TEXT, INT8, INT8, INT8_ARRAY, INT8),
            vec![
                &self.number,
                &self.class,
                &self.session,
                &self.limit,
                &self.ahead,
                &self.never_ahead,
                &self.now,
            ],
        );
    }

    /// The answer, in the order of the line.
    pub(super) fn hear(&self, answers: &mut impl Iterator<Item = Vec<Row>>) -> Done<Vec<ClaimRef>> {
        if self.wants_nothing() {
            return Ok(Vec::new());
        }
        let mut rows = answers.next().unwrap_or_default();
        rows.sort_unstable_by_key(|found| found.get::<_, i64>(2));
        rows.iter()
            .map(|found| {
                let run = match self.ask.run {
                    Some(run) => run,
                    None => row::word(found, 3, "run id", RunId::parse)?,
                };
                let (position, attempt) = (row::number(found, 0)?, row::number(found, 1)?);
                Ok(ClaimRef { run, position, attempt, session: self.ask.session })
            })
            .collect()
    }
}

fn never_ahead(head: &Head) -> Vec<i64> {
    let steps = (0..).zip(&head.head.plan.workflow.steps);
    let barred = steps
        .filter(|(position, step)| step.on_lost == OnLost::Fail || head.head.has_keys(*position as Position));
    barred.map(|(position, _): (u32, _)| i64::from(position)).collect()
}
