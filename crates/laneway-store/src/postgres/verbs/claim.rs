//! `claim`: picks and takes in one statement, so that two never get the same task and nobody waits. It checks no gate
//! and appends no event; the holder's `start` does.

use std::sync::Arc;

use laneway_core::definition::OnLost;
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
    let claims = asked.hear(&mut flight.commit().await?.into_iter())?;
    if claims.is_empty() {
        let numbers = vec![asked.head.no];
        if let Some(found) = link.row(sql!("quarantine_read", INT8_ARRAY), &[&numbers]).await? {
            let (what, why) = (row::text(&found, 1)?, row::text(&found, 2)?);
            return Err(Error::SetAside { run: ask.run.short(), what, why }.into());
        }
    }
    Ok(claims)
}

/// A request for work, with what the statement is told.
pub(super) struct Asked {
    head: Arc<Head>,
    ask: Ask,
    class: i64,
    session: String,
    limit: i64,
    ahead: i64,
    /// Must not wait for a place in a worker's hand: a claim that dies with its node counts as an execution of a step that
    /// must not run twice.
    never_ahead: Vec<i64>,
    now: Option<i64>,
}

impl Asked {
    pub(super) async fn new(shelf: &Shelf, link: &Link, terms: Terms, ask: &Ask) -> Done<Self> {
        let head = shelf.head(link, ask.run).await?;
        let steps = head.head.plan.workflow.steps.iter().zip(0_i64..);
        let never_ahead = if ask.ahead == 0 {
            Vec::new()
        } else {
            steps.filter(|(step, _)| step.on_lost == OnLost::Fail).map(|(_, position)| position).collect()
        };
        let count = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        Ok(Self {
            class: -head.no,
            session: ask.session.to_string(),
            limit: count(ask.limit),
            ahead: count(ask.ahead),
            never_ahead,
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
        flight.ask(
            sql!("claim", INT8, INT8, TEXT, INT8, INT8, INT8_ARRAY, INT8),
            vec![
                &self.head.no,
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
    pub(super) fn hear(&self, answers: &mut impl Iterator<Item = Vec<Row>>) -> Done<Vec<Claim>> {
        if self.wants_nothing() {
            return Ok(Vec::new());
        }
        let mut rows = answers.next().unwrap_or_default();
        rows.sort_unstable_by_key(|found| found.get::<_, i64>(2));
        rows.iter()
            .map(|found| {
                let at = ClaimRef {
                    run: self.ask.run,
                    position: row::number(found, 0)?,
                    attempt: row::number(found, 1)?,
                    session: self.ask.session,
                };
                Ok(Claim { at, head: Arc::clone(&self.head.head) })
            })
            .collect()
    }
}
