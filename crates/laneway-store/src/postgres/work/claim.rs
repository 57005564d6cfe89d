//! `claim`: picks and takes in one statement, so that two never get the same task and nobody waits.
//! It checks no gate and appends no event; the holder's `start` does.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use laneway_core::definition::OnLost;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use tokio_postgres::Row;

use crate::error::{Error, Result};
use crate::fence::ClaimRef;
use crate::keeper::unreadable;
use crate::model::{Ask, Claim};
use crate::postgres::base::{Base, set_aside};
use crate::postgres::claim_cursor::{ClaimWalk, LineCursors, LinePlace, WalkCost, WalkStart, WalkedLines};
use crate::postgres::fault::{Done, Failure};
use crate::postgres::link::{Begin, Flight, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::{Head, Shelf};

/// Claims in a transaction of its own. A claim that began at the cursors and got less than it
/// wanted goes on at the heads of the lines before it returns. If the last walk from there was a
/// moment ago, the next claim does, and this process is woken for it.
pub(in crate::postgres) async fn claim(base: &Base, ask: &Ask) -> Result<Vec<Claim>> {
    let taken = claim_from(base, ask, WalkStart::Cursors).await?;
    let Some(rest) = taken.rest else { return Ok(taken.claims) };
    match base.shelf.cursors.of(ask.session).pause(Instant::now()) {
        Some(pause) => {
            base.hint_after(pause);
            Ok(taken.claims)
        }
        None => claim_rest(base, taken.claims, &rest).await,
    }
}

/// Claims what a claim from the cursors did not get: from the heads of the lines, if it is time for
/// that, and else from the cursors as they are by now. The commit of a finish may have moved them
/// back.
pub(super) async fn claim_rest(base: &Base, taken: Vec<Claim>, rest: &Ask) -> Result<Vec<Claim>> {
    match claim_from(base, rest, WalkStart::Head).await {
        // They stand before those in the line.
        Ok(before) => {
            if before.rest.is_some() {
                let pause = base.shelf.cursors.of(rest.session).pause(Instant::now());
                base.hint_after(pause.unwrap_or_default());
            }
            Ok(before.claims.into_iter().chain(taken).collect())
        }
        Err(error) if taken.is_empty() => Err(error),
        Err(error) => {
            tracing::debug!(%error, "nothing more was claimed from the head of the line");
            Ok(taken)
        }
    }
}

async fn claim_from(base: &Base, ask: &Ask, start: WalkStart) -> Result<Taken> {
    base.write(|link, terms| async move { claim_once(&base.shelf, &link, terms, ask, start).await }).await
}

async fn claim_once(shelf: &Shelf, link: &Link, terms: Terms, ask: &Ask, start: WalkStart) -> Done<Taken> {
    let mut asked = Asked::new(shelf, link, terms, ask).await?;
    asked.choose_walk(shelf, start);
    let mut flight = link.begin(Begin::Write);
    asked.say(&mut flight);
    let taken = asked.hear(shelf, link, &mut flight.commit().await?.into_iter()).await?;
    if let (true, Some((head, run))) = (taken.claims.is_empty(), asked.head.as_ref().zip(ask.run)) {
        let numbers = vec![head.no];
        if let Some(found) = link.row(sql!("quarantine_read", INT8_ARRAY), &[&numbers]).await? {
            let (what, why) = (row::text(&found, 1)?, row::text(&found, 2)?);
            return Err(Error::SetAside { run: run.short(), what, why }.into());
        }
    }
    Ok(taken)
}

/// What a request for work got.
#[derive(Debug)]
pub(super) struct Taken {
    /// In the order of the line, with all that is needed to run them.
    pub(super) claims: Vec<Claim>,
    /// What is to be asked of the heads of the lines: the walk began at the cursors and found too
    /// little.
    pub(super) rest: Option<Ask>,
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
    /// Must not wait for a place in a worker's hand: a claim that dies with its node counts as an
    /// execution of a step that must not run twice, and a key that is held unused keeps others
    /// waiting.
    never_ahead: Vec<i64>,
    /// The same for a request to all runs: versions of which every step may wait so.
    may_wait: Vec<String>,
    now: Option<i64>,
    walk: ClaimWalk,
    /// Where the walk begins.
    starts: LineStarts,
    /// The same for the look at what is left, which a full walk does not repeat.
    left: LineStarts,
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
        let class = head.as_ref().map_or(0, |head| head.head.own_class);
        let since = Instant::now();
        let heads = LineStarts::of(&LineCursors::HEADS, class);
        Ok(Self {
            number,
            class,
            walk: ClaimWalk::NONE,
            starts: heads.clone(),
            left: heads,
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
            since,
        })
    }

    /// For a request that is sent at once.
    pub(super) fn choose_walk(&mut self, shelf: &Shelf, start: WalkStart) {
        if self.wants_nothing() {
            return;
        }
        self.walk = shelf.cursors.of(self.ask.session).next(start, Instant::now());
        self.left = LineStarts::of(&self.walk.cursors, self.class);
        if !self.walk.is_full {
            self.starts = self.left.clone();
        }
    }

    fn wants_nothing(&self) -> bool {
        self.limit + self.ahead == 0
    }

    pub(super) fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        if self.wants_nothing() {
            return;
        }
        if self.walk.is_measured {
            flight.ask(sql!("claim_walk"), Vec::new());
        }
        let starts = &self.starts;
        if self.head.is_none() {
            flight.ask(
                sql!(
                    "claim_shared",
                    TEXT,
                    INT8,
                    INT8,
                    INT8,
                    TEXT_ARRAY,
                    INT8,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY
                ),
                vec![
                    &self.session,
                    &self.limit,
                    &self.now,
                    &self.ahead,
                    &self.may_wait,
                    &starts.default.rank,
                    &starts.classes,
                    &starts.ranks,
                    &starts.runs,
                    &starts.positions,
                ],
            );
        } else {
            flight.ask(
                sql!("claim", INT8, INT8, TEXT, INT8, INT8, INT8_ARRAY, INT8, INT8, INT8, INT8),
                vec![
                    &self.number,
                    &self.class,
                    &self.session,
                    &self.limit,
                    &self.ahead,
                    &self.never_ahead,
                    &self.now,
                    &starts.own.rank,
                    &starts.own.run_no,
                    &starts.own.position,
                ],
            );
        }
        if self.walk.is_measured {
            flight.ask(sql!("claim_walk"), Vec::new());
        }
        if self.head.is_none() {
            flight.ask(
                sql!("claim_left", TEXT, INT8, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY),
                vec![
                    &self.session,
                    &self.left.default.rank,
                    &self.left.classes,
                    &self.left.ranks,
                    &self.left.runs,
                    &self.left.positions,
                ],
            );
        }
    }

    pub(super) async fn hear(
        &self,
        shelf: &Shelf,
        link: &Link,
        answers: &mut impl Iterator<Item = Vec<Row>>,
    ) -> Done<Taken> {
        if self.wants_nothing() {
            return Ok(Taken { claims: Vec::new(), rest: None });
        }
        let before = if self.walk.is_measured { answers.next() } else { None };
        let rows = answers.next().unwrap_or_default();
        let after = if self.walk.is_measured { answers.next() } else { None };
        let missing = self.ask.limit.saturating_sub(rows.len());
        self.learn(shelf, (&rows, missing > 0), before.zip(after))?;
        let is_rest = !self.walk.is_full && missing > 0;
        let rest = is_rest.then(|| Ask { limit: missing, ..self.ask.clone() });
        let claims = match &self.head {
            Some(head) => self.hear_of_one(shelf, link, head, rows).await?,
            None => {
                let left = answers.next().unwrap_or_default();
                let is_left = left.first().is_some_and(|found| found.get(0));
                if is_left && rows.len() < usize::try_from(self.limit).unwrap_or(usize::MAX) {
                    shelf.contentions.fetch_add(1, Ordering::Relaxed);
                }
                self.hear_of_all(shelf, link, rows).await?
            }
        };
        Ok(Taken { claims, rest })
    }

    /// Notes where the walk ended, and what it cost.
    fn learn(
        &self,
        shelf: &Shelf,
        (rows, is_short): (&[Row], bool),
        measured: Option<(Vec<Row>, Vec<Row>)>,
    ) -> Done<()> {
        let place = |found: &Row| -> Done<Option<(i64, LinePlace)>> {
            let (class, rank, run_no, position): (i64, Option<i64>, i64, i64) = match &self.head {
                Some(_) => (self.class, found.try_get(7)?, found.try_get(4)?, found.try_get(0)?),
                None => (found.try_get(18)?, found.try_get(19)?, found.try_get(0)?, found.try_get(13)?),
            };
            // What was taken from the line of `max_parallel` has no place in that of its class.
            Ok(rank.map(|rank| (class, LinePlace { rank, run_no, position })))
        };
        let taken = rows.iter().filter_map(|found| place(found).transpose()).collect::<Done<Vec<_>>>()?;
        let cost = match measured.as_ref().map(|(before, after)| (before.first(), after.first())) {
            Some((Some(before), Some(after))) => {
                let (first, begun): (i64, i64) = (before.try_get(0)?, before.try_get(1)?);
                let (last, ended): (i64, i64) = (after.try_get(0)?, after.try_get(1)?);
                Some(WalkCost {
                    entries: last - first,
                    took: Duration::from_micros(u64::try_from(ended - begun).unwrap_or_default()),
                    rank_now: self.now.unwrap_or(ended / 1_000),
                })
            }
            _ => None,
        };
        let lines = self.head.as_ref().map_or(WalkedLines::All, |_| WalkedLines::Of(self.class));
        shelf.cursors.of(self.ask.session).note(&self.walk, lines, (taken, is_short), cost, Instant::now());
        Ok(())
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
        let is_bound = found.try_get::<_, i64>(18)? < 0;
        Ok(Claim { is_bound, ..self.read(&head, found, (13, 14, 16, 17))? })
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
        let start_by = left.map(|left| self.since + left);
        Ok(Claim { at, head: Arc::clone(&head.head), start_by, is_bound: false })
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

/// Where the lines begin, as the statements take it.
#[derive(Clone)]
struct LineStarts {
    /// For a claim of one run.
    own: LinePlace,
    /// For a claim of all runs: classes that the lists do not name.
    default: LinePlace,
    classes: Vec<i64>,
    ranks: Vec<i64>,
    runs: Vec<i64>,
    positions: Vec<i64>,
}

impl LineStarts {
    fn of(cursors: &LineCursors, own_class: i64) -> Self {
        let places = || cursors.classes.values();
        Self {
            own: cursors.of_class(own_class),
            default: cursors.default,
            classes: cursors.classes.keys().copied().collect(),
            ranks: places().map(|place| place.rank).collect(),
            runs: places().map(|place| place.run_no).collect(),
            positions: places().map(|place| place.position).collect(),
        }
    }
}

/// Whether items of some step must not be held ahead. They have no place in a list of positions, so
/// that nothing of such a run is.
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
