//! `claim`: picks and takes in one statement, so that two never get the same task and nobody waits. It checks no gate
//! and appends no event; the holder's `start` does.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use laneway_core::definition::OnLost;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use tokio_postgres::Row;

use crate::error::Error;
use crate::fence::ClaimRef;
use crate::keeper::unreadable;
use crate::model::{Ask, Claim};
use crate::postgres::base::set_aside;
use crate::postgres::fault::{Done, Failure};
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
    let taken = asked.hear(shelf, link, &mut flight.commit().await?.into_iter()).await?;
    if let (true, Some((head, run))) = (taken.is_empty(), asked.head.as_ref().zip(ask.run)) {
        let numbers = vec![head.no];
        if let Some(found) = link.row(sql!("quarantine_read", INT8_ARRAY), &[&numbers]).await? {
            let (what, why) = (row::text(&found, 1)?, row::text(&found, 2)?);
            return Err(Error::SetAside { run: run.short(), what, why }.into());
        }
    }
    Ok(taken)
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
    /// The same for a request to all runs: versions of which every step may wait so.
    may_wait: Vec<String>,
    now: Option<i64>,
    /// When the request was made. Durations in the answer count from here.
    since: Instant,
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
            class: head.as_ref().map_or(0, |head| head.head.own_class),
            session: ask.session.to_string(),
            limit: count(ask.limit),
            ahead: if head.as_ref().is_some_and(|head| bars_items(head)) { 0 } else { count(ask.ahead) },
            never_ahead: head
                .as_ref()
                .filter(|_| ask.ahead > 0)
                .map(|head| never_ahead(head))
                .unwrap_or_default(),
            may_wait: if head.is_none() && ask.ahead > 0 { shelf.may_wait() } else { Vec::new() },
            now: terms.now.map(|now| now.0),
            ask: ask.clone(),
            head,
            since: Instant::now(),
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
            flight.ask(
                sql!("claim_shared", TEXT, INT8, INT8, INT8, TEXT_ARRAY),
                vec![&self.session, &self.limit, &self.now, &self.ahead, &self.may_wait],
            );
            flight.ask(sql!("claim_left", TEXT), vec![&self.session]);
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

    /// The answer, in the order of the line, with all that is needed to run them.
    pub(super) async fn hear(
        &self,
        shelf: &Shelf,
        link: &Link,
        answers: &mut impl Iterator<Item = Vec<Row>>,
    ) -> Done<Vec<Claim>> {
        if self.wants_nothing() {
            return Ok(Vec::new());
        }
        let rows = answers.next().unwrap_or_default();
        match &self.head {
            Some(head) => self.hear_of_one(shelf, link, head, rows).await,
            None => {
                let left = answers.next().unwrap_or_default();
                let is_left = left.first().is_some_and(|found| found.get(0));
                if is_left && rows.len() < usize::try_from(self.limit).unwrap_or(usize::MAX) {
                    shelf.contentions.fetch_add(1, Ordering::Relaxed);
                }
                self.hear_of_all(shelf, link, rows).await
            }
        }
    }

    async fn hear_of_one(
        &self,
        shelf: &Shelf,
        link: &Link,
        own: &Arc<Head>,
        mut rows: Vec<Row>,
    ) -> Done<Vec<Claim>> {
        rows.sort_unstable_by_key(|found| found.get::<_, i64>(2));
        let mut claims = Vec::with_capacity(rows.len());
        for found in &rows {
            match self.one_of(shelf, link, own, found).await {
                Ok(claim) => claims.push(claim),
                Err(failure) => self.leave(link, failure).await?,
            }
        }
        Ok(claims)
    }

    async fn one_of(&self, shelf: &Shelf, link: &Link, own: &Arc<Head>, found: &Row) -> Done<Claim> {
        let no = found.try_get(4)?;
        let child = row::maybe_word(found, 3, "run id", RunId::parse);
        let head = match child.map_err(|failure| failure.about(no, None))? {
            Some(child) => shelf.head(link, child).await?,
            None => Arc::clone(own),
        };
        self.read(&head, found, (0, 1, 5, 6))
    }

    async fn hear_of_all(&self, shelf: &Shelf, link: &Link, mut rows: Vec<Row>) -> Done<Vec<Claim>> {
        rows.sort_unstable_by_key(|found| found.get::<_, i64>(15));
        let (mut claims, mut heads) = (Vec::with_capacity(rows.len()), HashMap::new());
        for found in &rows {
            match self.one_of_all(shelf, link, &mut heads, found).await {
                Ok(claim) => claims.push(claim),
                Err(failure) => self.leave(link, failure).await?,
            }
        }
        Ok(claims)
    }

    async fn one_of_all(
        &self,
        shelf: &Shelf,
        link: &Link,
        heads: &mut HashMap<i64, Arc<Head>>,
        found: &Row,
    ) -> Done<Claim> {
        let no = found.try_get(0)?;
        let head = match heads.get(&no) {
            Some(head) => Arc::clone(head),
            // The first of a run brings it along.
            None => {
                let run = row::word(found, 12, "run id", RunId::parse);
                let run = run.map_err(|failure| failure.about(no, None))?;
                let head = shelf.head_of_row(link, run, found).await;
                head.map_err(|failure| failure.about(no, run))?
            }
        };
        heads.insert(no, Arc::clone(&head));
        self.read(&head, found, (13, 14, 16, 17))
    }

    /// Reads a claim. The tuple has the columns of position, attempt, generation, and of the
    /// milliseconds left to start.
    fn read(
        &self,
        head: &Head,
        found: &Row,
        (position, attempt, generation, left): (usize, usize, usize, usize),
    ) -> Done<Claim> {
        let run = head.head.run;
        let read = || -> Done<ClaimRef> {
            let position: Position = row::number(found, position)?;
            // Who holds a task that stands nowhere in the plan of its run could not even name it.
            if head.head.plan.base(position).is_none() {
                return Err(unreadable("position of a task", &position.to_string()).into());
            }
            let (attempt, generation) = (row::number(found, attempt)?, row::number(found, generation)?);
            Ok(ClaimRef { run, position, attempt, generation, session: self.ask.session })
        };
        let at = read().map_err(|failure| failure.about(head.no, run))?;
        let left: Option<i64> = found.try_get(left)?;
        let left = left.map(|left| Duration::from_millis(u64::try_from(left).unwrap_or_default()));
        Ok(Claim { at, head: Arc::clone(&head.head), start_by: left.map(|left| self.since + left) })
    }

    /// A run that cannot be read is set aside, with what was taken of it; the others are given.
    async fn leave(&self, link: &Link, failure: Failure) -> Done<()> {
        match &failure {
            Failure::Blamed { no, run, .. } => {
                set_aside(link, self.now, (*no, *run), &failure).await.map(drop)
            }
            Failure::Refused(_)
            | Failure::Postgres(_)
            | Failure::Unanswered(_)
            | Failure::Missing
            | Failure::Panicked(_)
            | Failure::Unconnected(_)
            | Failure::OutOfOrder(_) => Err(failure),
        }
    }
}

/// Whether items of some step must not be held ahead. They have no place in a list of positions, so that nothing of such a run is.
fn bars_items(head: &Head) -> bool {
    let plan = &head.head.plan;
    let growing = plan.workflow.steps.iter().filter(|step| step.for_each.is_some());
    growing
        .filter_map(|step| plan.items_of(plan.position(&step.name)?).next())
        .any(|item| plan.step(item).on_lost == OnLost::Fail || head.head.has_keys(item))
}

fn never_ahead(head: &Head) -> Vec<i64> {
    let steps = (0..).zip(&head.head.plan.workflow.steps);
    let barred = steps
        .filter(|(position, step)| step.on_lost == OnLost::Fail || head.head.has_keys(*position as Position));
    barred.map(|(position, _): (u32, _)| i64::from(position)).collect()
}
