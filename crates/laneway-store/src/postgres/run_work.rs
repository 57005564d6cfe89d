//! Runs inside one transaction: locked, loaded, handed to the gate keeper one by one, and what it
//! made of them is collected for `save.rs`. Decides nothing.
//!
//! ```text
//!   BEGIN ▸ lock runs, in order ▸ load them ▸ facts that are known to be needed      one flight
//!   keeper, for each run ─── something is missing ──▶ fetch it, for all runs ──┐      (rarely)
//!        ▲────────────────────────────────────────────────────────────────────┘
//!   rows and events
//! ```

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use laneway_core::event::Closing;
use laneway_core::gate::{Counts, Gate, Tat};
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_torture::{Bug, has};
use tokio_postgres::Row;

use super::facts::{Known, Missing};
use super::fault::{Done, Failure};
use super::link::{Begin, Link, sql};
use super::lock_order::Acquisition;
use super::node_facts;
use super::row;
use super::shelf::Head;
use crate::error::Error;
use crate::fence::ClaimRef;
use crate::keeper::{
    Changes, Failures, Keeper, Key, RunRow, TaskRow, read_growth, read_levels, read_pauses, read_wait,
    unreadable,
};

/// A run that a verb works on, with what it will most likely need of it.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) head: Arc<Head>,
    pub(super) seed: Missing,
}

/// How a transaction deals with those who claim meanwhile, for whom a run's lock is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    /// A row that was claimed in between is noticed when it is written, and the verb begins anew.
    Noticed,
    /// Nothing of these runs can be claimed: so that the second try succeeds.
    LockedOut,
}

/// On which terms a verb is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The caller's time, where it has its own.
    pub(super) now: Option<Millis>,
    pub(super) claims: Claims,
    /// Each run by itself: something of one of them was in the way of all, and it has to be seen of
    /// which.
    pub(super) is_apart: bool,
    /// Whether the transaction is open already.
    pub(super) is_begun: bool,
    /// How often a task may be lost with its node before it fails.
    pub(super) max_lost: u32,
}

/// What a verb made of a run.
#[derive(Debug)]
pub(super) struct Made<T> {
    pub(super) no: i64,
    pub(super) now: Millis,
    pub(super) answer: T,
    pub(super) changes: Changes,
    /// Whether runs of its workflow wait for others to end, if that was asked.
    pub(super) queued: Option<bool>,
    /// By key: the records that say that it became free, as of when its holders were counted.
    pub(super) freed: HashMap<Key, Vec<i64>>,
}

struct Loaded {
    job: Job,
    row: RunRow,
    now: Millis,
    known: Known,
}

impl Loaded {
    /// If keys are to be locked, then at once those of all pending tasks that the keeper has read:
    /// it reads what it is about to look at before it looks, and a key that is asked for later may
    /// come before these in the order of locks.
    fn add_keys_of_pending(&self, missing: &mut Missing) {
        if missing.holders.is_empty() {
            return;
        }
        let pending = self.known.tasks.iter().filter(|(_, task)| task.status == TaskStatus::Pending);
        let mut all = Missing::default();
        pending.for_each(|(position, _)| all.add_keys(&self.job.head.head, *position));
        missing.holders.extend(all.holders.into_iter().filter(|key| !self.known.holders.contains_key(key)));
        missing.limits.extend(all.limits.into_iter().filter(|name| !self.known.limits.contains_key(name)));
        missing.tats.extend(all.tats.into_iter().filter(|name| !self.known.tats.contains_key(name)));
    }
}

/// Begins a transaction, unless one is open, and does something to each of these runs, with
/// everything that follows from it. `verb` is told which run it is by its place in `jobs`, and may
/// be asked again.
pub(super) async fn on_runs<T>(
    link: &Link,
    terms: Terms,
    jobs: Vec<Job>,
    mut verb: impl FnMut(usize, &mut Keeper<&mut Known>) -> Done<T>,
) -> Done<Vec<Made<T>>> {
    let mut loaded = load(link, terms, jobs).await?;
    let mut made: Vec<Option<(T, Changes)>> = loaded.iter().map(|_| None).collect();
    loop {
        for (index, (run, made)) in loaded.iter_mut().zip(&mut made).enumerate() {
            if made.is_some() {
                continue;
            }
            match decide(run, |keeper| verb(index, keeper)) {
                Ok(done) => *made = Some(done),
                Err(Failure::Missing) => {}
                Err(failure) => return Err(failure.about(run.job.head.no, run.job.head.head.run)),
            }
        }
        if made.iter().all(Option::is_some) {
            break;
        }
        fetch(link, &mut loaded).await?;
    }
    let made = loaded.into_iter().zip(made.into_iter().flatten());
    Ok(made
        .map(|(run, (answer, changes))| {
            let (queued, freed) = (run.known.queued, run.known.freed);
            Made { no: run.job.head.no, now: run.now, answer, changes, queued, freed }
        })
        .collect())
}

fn decide<T>(run: &mut Loaded, verb: impl FnOnce(&mut Keeper<&mut Known>) -> Done<T>) -> Done<(T, Changes)> {
    let head = Arc::clone(&run.job.head.head);
    let (row, now, known) = (run.row.clone(), run.now, &mut run.known);
    // A mistake of ours is one of this run, not the end of the node.
    let decided = catch_unwind(AssertUnwindSafe(move || {
        let freed = known.freed.keys().cloned().collect();
        let mut keeper = Keeper::new(known, head, row, now);
        keeper.promise(freed);
        let answer = verb(&mut keeper)?;
        Ok((answer, keeper.conclude()?))
    }));
    decided.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Failure::Panicked(text.to_owned()))
    })
}

async fn load(link: &Link, terms: Terms, mut jobs: Vec<Job>) -> Done<Vec<Loaded>> {
    let numbers: Vec<i64> = jobs.iter().map(|job| job.head.no).collect();
    let (now, claims) = (terms.now.map(|now| now.0), terms.claims);
    let mut wanted = Wanted::of(jobs.iter().map(|job| (job.head.no, &*job.head, &job.seed)));
    let mut flight = if terms.is_begun { link.flight() } else { link.begin(Begin::Write) };
    let runs = link.locks.acquire_runs(&numbers)?;
    wanted.key_locks = link.locks.acquire_keys(&wanted.key_names)?;
    runs.send(&mut flight);
    if claims == Claims::LockedOut {
        flight.ask(sql!("tasks_lock", INT8_ARRAY), vec![&numbers]);
    }
    flight.ask(sql!("run_load", INT8_ARRAY, INT8), vec![&numbers, &now]);
    wanted.ask(&mut flight);
    let mut answers = flight.land().await?.into_iter();
    let _ = (claims == Claims::LockedOut).then(|| answers.next());
    let rows = answers.next().unwrap_or_default();
    let mut rows: BTreeMap<i64, &Row> =
        rows.iter().map(|found| Ok((found.try_get(0)?, found))).collect::<Done<_>>()?;
    let mut loaded = Vec::with_capacity(jobs.len());
    for job in jobs.drain(..) {
        let (no, run) = (job.head.no, job.head.head.run);
        let found = rows.remove(&no).ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
        if found.try_get(10)? {
            let (what, why) = (row::text(found, 12)?, row::text(found, 13)?);
            return Err(Error::SetAside { run: run.short(), what, why }.into());
        }
        let row = run_row(found).map_err(|failure| failure.about(no, run))?;
        let steps = job.head.head.plan.workflow.steps.len() as Position;
        let known = Known { steps, no, ..Known::default() };
        loaded.push(Loaded { job, row, now: Millis(found.try_get(11)?), known });
    }
    wanted.take(answers, &mut loaded)?;
    look_for_takers_again(link, &wanted, &mut loaded).await?;
    Ok(loaded)
}

async fn look_for_takers_again(link: &Link, wanted: &Wanted, loaded: &mut [Loaded]) -> Done<()> {
    let mut known: Vec<&mut Known> = loaded.iter_mut().map(|run| &mut run.known).collect();
    node_facts::look_for_takers_again(link, &wanted.takers, &mut known).await
}

/// Everything that is missing, of all runs, in one flight.
async fn fetch(link: &Link, loaded: &mut [Loaded]) -> Done<()> {
    let missing: Vec<(Arc<Head>, Missing)> = loaded
        .iter_mut()
        .map(|run| {
            let mut missing = std::mem::take(&mut run.known.missing);
            run.add_keys_of_pending(&mut missing);
            (Arc::clone(&run.job.head), missing)
        })
        .collect();
    if missing.iter().all(|(_, missing)| missing.is_empty()) {
        // The keeper asked for something that is here, and was not given it: it would ask for ever.
        return Err(Failure::Panicked("the gate keeper asks for nothing that could be fetched".to_owned()));
    }
    for (run, (head, missing)) in loaded.iter_mut().zip(&missing) {
        node_facts::fetch(link, head, missing, &mut run.known).await?;
    }
    let mut wanted = Wanted::of(missing.iter().map(|(head, missing)| (head.no, &**head, missing)));
    wanted.key_locks = link.locks.acquire_keys(&wanted.key_names)?;
    let mut flight = link.flight();
    wanted.ask(&mut flight);
    let answers = flight.land().await?.into_iter();
    wanted.take(answers, loaded)?;
    look_for_takers_again(link, &wanted, loaded).await
}

/// Runs, positions, attempts, sessions and claims that were given back.
type ClaimColumns = (Vec<i64>, Vec<i64>, Vec<i64>, Vec<String>, Vec<i64>);

/// Questions about several runs at once, as columns.
#[derive(Default)]
struct Wanted {
    tasks: (Vec<i64>, Vec<i64>),
    sets: (Vec<i64>, Vec<i64>),
    live: Vec<i64>,
    line: (Vec<i64>, Vec<i64>),
    unstarted: Vec<i64>,
    running: Vec<i64>,
    all: Vec<i64>,
    failures: Vec<i64>,
    nodes: Vec<String>,
    sessions: Vec<SessionId>,
    outcomes: Vec<(i64, ClaimRef)>,
    claims: ClaimColumns,
    keys: Vec<Key>,
    key_names: Vec<String>,
    key_locks: Acquisition,
    smaller: (Vec<String>, Vec<String>, Vec<i64>),
    limits: Vec<String>,
    tats: Vec<String>,
    awaited: (Vec<String>, Vec<i64>, Vec<i64>),
    takers: Vec<i64>,
    queued: Vec<i64>,
    batches: (Vec<i64>, Vec<i64>, Vec<i64>),
    /// Runs, steps, and where their items begin and end.
    items_live: [Vec<i64>; 4],
    /// The same, and how many of each.
    items_line: [Vec<i64>; 5],
    outputs: [Vec<i64>; 4],
}

impl Wanted {
    fn of<'m>(runs: impl Iterator<Item = (i64, &'m Head, &'m Missing)>) -> Self {
        let mut wanted = Self::default();
        for (no, head, missing) in runs {
            wanted.add_items(no, head, missing);
            for position in &missing.tasks {
                wanted.tasks.0.push(no);
                wanted.tasks.1.push(i64::from(*position));
            }
            for set in &missing.sets {
                wanted.sets.0.push(no);
                wanted.sets.1.push(i64::from(*set));
            }
            if missing.line > 0 {
                wanted.line.0.push(no);
                wanted.line.1.push(i64::try_from(missing.line).unwrap_or(i64::MAX));
            }
            for (is_missing, runs) in [
                (missing.live, &mut wanted.live),
                (missing.unstarted, &mut wanted.unstarted),
                (missing.running, &mut wanted.running),
                (missing.all, &mut wanted.all),
                (missing.failures, &mut wanted.failures),
                (missing.queued, &mut wanted.queued),
            ] {
                runs.extend(is_missing.then_some(no));
            }
            wanted.sessions.extend(&missing.nodes);
            wanted.keys.extend(missing.holders.iter().cloned());
            for (key, version, up_to) in &missing.smaller {
                wanted.smaller.0.push(key.clone());
                wanted.smaller.1.push(version.clone());
                wanted.smaller.2.push(i64::from(*up_to));
            }
            wanted.limits.extend(missing.limits.iter().cloned());
            wanted.tats.extend(missing.tats.iter().cloned());
            for (key, position) in &missing.awaited {
                wanted.awaited.0.push(key.clone());
                wanted.awaited.1.push(no);
                wanted.awaited.2.push(i64::from(*position));
            }
            wanted.takers.extend(&missing.takers);
            for claim in &missing.outcomes {
                wanted.outcomes.push((no, *claim));
                wanted.claims.0.push(no);
                wanted.claims.1.push(i64::from(claim.position));
                wanted.claims.2.push(i64::from(claim.attempt));
                wanted.claims.3.push(claim.session.to_string());
                wanted.claims.4.push(i64::from(claim.generation));
            }
        }
        wanted.keys.sort_unstable();
        wanted.keys.dedup();
        wanted.key_names = wanted.keys.iter().map(Key::text).collect();
        wanted.nodes = wanted.sessions.iter().map(ToString::to_string).collect();
        wanted
    }

    /// What is missing of the items of steps.
    fn add_items(&mut self, no: i64, head: &Head, missing: &Missing) {
        let plan = &head.head.plan;
        let of = |step: Position| {
            let items = plan.items_of(step);
            [no, i64::from(step), i64::from(items.start), i64::from(items.end)]
        };
        for (step, batch) in &missing.batches {
            self.batches.0.push(no);
            self.batches.1.push(i64::from(*step));
            self.batches.2.push(i64::from(*batch));
        }
        for step in &missing.items_live {
            self.items_live.iter_mut().zip(of(*step)).for_each(|(column, value)| column.push(value));
        }
        for step in &missing.outputs {
            self.outputs.iter_mut().zip(of(*step)).for_each(|(column, value)| column.push(value));
        }
        for (step, limit) in &missing.items_line {
            let values = of(*step).into_iter().chain([i64::try_from(*limit).unwrap_or(i64::MAX)]);
            self.items_line.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
    }

    fn ask_items<'a>(&'a self, flight: &mut super::link::Flight<'a>) {
        if !self.batches.0.is_empty() {
            let (runs, steps, numbers) = &self.batches;
            flight.ask(sql!("batch", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY), vec![runs, steps, numbers]);
        }
        if let [runs, steps, first, behind] = &self.items_live
            && !runs.is_empty()
        {
            let live = sql!("items_live", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY);
            flight.ask(live, vec![runs, steps, first, behind]);
        }
        if let [runs, steps, first, behind, numbers] = &self.items_line
            && !runs.is_empty()
        {
            let line = sql!("items_line", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY);
            flight.ask(line, vec![runs, steps, first, behind, numbers]);
        }
        if let [runs, steps, first, behind] = &self.outputs
            && !runs.is_empty()
        {
            let outputs = sql!("outputs", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY);
            flight.ask(outputs, vec![runs, steps, first, behind]);
        }
    }

    fn take_items(
        &self,
        answer: &mut impl FnMut(bool) -> Vec<Row>,
        runs: &mut BTreeMap<i64, (RunId, &mut Known)>,
    ) -> Done<()> {
        let batches = answer(!self.batches.0.is_empty());
        for ((no, step), batch) in self.batches.0.iter().zip(&self.batches.1).zip(&self.batches.2) {
            let is_it = |found: &&Row| {
                found.get::<_, i64>(0) == *no
                    && found.get::<_, i64>(1) == *step
                    && found.get::<_, i64>(2) == *batch
            };
            let (run, known) =
                runs.get_mut(no).ok_or_else(|| unreadable("number of a run", &no.to_string()))?;
            let found =
                batches.iter().find(is_it).ok_or_else(|| no_row("batch of items", *no, *run, *batch))?;
            let read = || Ok(((row::number(found, 1)?, row::number(found, 2)?), row::text(found, 3)?));
            let (batch, items) = read().map_err(|failure: Failure| failure.about(*no, *run))?;
            known.batches.insert(batch, items);
        }
        for found in answer(!self.items_live[0].is_empty()) {
            let (no, (run, known)) = (found.try_get(0)?, of(runs, &found)?);
            let read = || Ok((row::number(&found, 1)?, row::number(&found, 2)?));
            let (step, live) = read().map_err(|failure: Failure| failure.about(no, *run))?;
            known.items_live.insert(step, live);
        }
        let line = answer(!self.items_line[0].is_empty());
        for ((no, step), asked) in self.items_line[0].iter().zip(&self.items_line[1]).zip(&self.items_line[4])
        {
            if let (Some(run), Ok(step)) = (runs.get_mut(no), Position::try_from(*step)) {
                let asked = usize::try_from(*asked).unwrap_or(usize::MAX);
                run.1.items_line.insert(step, (asked, Vec::new()));
            }
        }
        for found in line {
            let step: Position = row::number(&found, 30)?;
            let known = of(runs, &found)?;
            let row = task_row(&found).map_err(|failure| failure.about(found.get(0), known.0))?;
            note_taker(known.1, &row.1, &found)?;
            if let Some((_, rows)) = known.1.items_line.get_mut(&step) {
                rows.push(row);
            }
        }
        let outputs = answer(!self.outputs[0].is_empty());
        for (no, step) in self.outputs[0].iter().zip(&self.outputs[1]) {
            if let (Some(run), Ok(step)) = (runs.get_mut(no), Position::try_from(*step)) {
                run.1.outputs.insert(step, Vec::new());
            }
        }
        for found in outputs {
            let (no, (run, known)) = (found.try_get(0)?, of(runs, &found)?);
            let read = || {
                let status = row::word(&found, 3, "status of a task", TaskStatus::parse)?;
                Ok((row::number(&found, 1)?, (row::number(&found, 2)?, status, row::maybe_text(&found, 4)?)))
            };
            let (step, item) = read().map_err(|failure: Failure| failure.about(no, *run))?;
            known.outputs.entry(step).or_default().push(item);
        }
        Ok(())
    }

    /// Each question that has somebody to ask about, in one order that `take` knows.
    fn ask<'a>(&'a self, flight: &mut super::link::Flight<'a>) {
        if has(Bug::RateUnlocked) && !self.tats.is_empty() {
            flight.ask(sql!("rate", TEXT_ARRAY), vec![&self.tats]);
        }
        if !self.keys.is_empty() {
            if !has(Bug::CountBeforeLock) {
                self.key_locks.send(flight);
            }
            flight.ask(sql!("key_state", TEXT_ARRAY), vec![&self.key_names]);
            if has(Bug::CountBeforeLock) {
                self.key_locks.send(flight);
            }
        }
        if !self.smaller.0.is_empty() {
            let (keys, versions, numbers) = &self.smaller;
            flight.ask(
                sql!("order_smaller", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY),
                vec![keys, versions, numbers],
            );
        }
        if !self.limits.is_empty() {
            flight.ask(sql!("limit", TEXT_ARRAY), vec![&self.limits]);
        }
        if !has(Bug::RateUnlocked) && !self.tats.is_empty() {
            flight.ask(sql!("rate", TEXT_ARRAY), vec![&self.tats]);
        }
        if !self.awaited.0.is_empty() {
            let (keys, runs, positions) = &self.awaited;
            flight.ask(sql!("key_awaited", TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY), vec![keys, runs, positions]);
        }
        if !self.takers.is_empty() {
            flight.ask(sql!("has_taker", INT8_ARRAY), vec![&self.takers]);
        }
        if !self.queued.is_empty() {
            flight.ask(sql!("runs_held_up", INT8_ARRAY), vec![&self.queued]);
        }
        if !self.tasks.0.is_empty() {
            flight.ask(sql!("task", INT8_ARRAY, INT8_ARRAY), vec![&self.tasks.0, &self.tasks.1]);
        }
        if !self.sets.0.is_empty() {
            flight.ask(sql!("needs_read", INT8_ARRAY, INT8_ARRAY), vec![&self.sets.0, &self.sets.1]);
        }
        if !self.live.is_empty() {
            flight.ask(sql!("live", INT8_ARRAY), vec![&self.live]);
        }
        if !self.line.0.is_empty() {
            flight.ask(sql!("tasks_waiting", INT8_ARRAY, INT8_ARRAY), vec![&self.line.0, &self.line.1]);
        }
        if !self.unstarted.is_empty() {
            flight.ask(sql!("tasks_unstarted", INT8_ARRAY), vec![&self.unstarted]);
        }
        if !self.running.is_empty() {
            flight.ask(sql!("tasks_running", INT8_ARRAY), vec![&self.running]);
        }
        if !self.all.is_empty() {
            flight.ask(sql!("tasks_all", INT8_ARRAY), vec![&self.all]);
        }
        if !self.failures.is_empty() {
            flight.ask(sql!("run_failures", INT8_ARRAY), vec![&self.failures]);
        }
        if !self.nodes.is_empty() {
            flight.ask(sql!("session_nodes", TEXT_ARRAY), vec![&self.nodes]);
        }
        if !self.outcomes.is_empty() {
            let (runs, positions, attempts, sessions, generations) = &self.claims;
            flight.ask(
                sql!("attempt_known", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY),
                vec![runs, positions, attempts, sessions, generations],
            );
        }
        self.ask_items(flight);
    }

    /// Keys are of no run: whoever asked is told, and the others as well.
    fn take_keys(
        &self,
        answer: &mut impl FnMut(bool) -> Vec<Row>,
        runs: &mut BTreeMap<i64, (RunId, &mut Known)>,
    ) -> Done<()> {
        let unlocked = has(Bug::RateUnlocked).then(|| answer(!self.tats.is_empty()));
        let states = answer(!self.keys.is_empty());
        let smaller = answer(!self.smaller.0.is_empty());
        let limits = answer(!self.limits.is_empty());
        let tats = unlocked.unwrap_or_else(|| answer(!self.tats.is_empty()));
        let awaited = answer(!self.awaited.0.is_empty());
        let takers = answer(!self.takers.is_empty());
        for no in &self.queued {
            if let Some((_, known)) = runs.get_mut(no) {
                known.queued = Some(false);
            }
        }
        for found in answer(!self.queued.is_empty()) {
            of(runs, &found)?.1.queued = Some(true);
        }
        // Where there are keys there is one run, which cannot go on without what cannot be read of
        // them.
        for (run_no, (run, known)) in runs.iter_mut() {
            for found in &states {
                let text = row::text(found, 0)?;
                let Some(key) = self.keys.iter().find(|key| key.text() == text) else { continue };
                known.holders.insert(key.clone(), row::number(found, 1)?);
                let records: Vec<i64> = found.try_get(2)?;
                if !records.is_empty() {
                    known.freed.insert(key.clone(), records);
                }
                let first = match (found.try_get(3)?, found.try_get(4)?, found.try_get(5)?) {
                    (Some(rank), Some(run), Some(position)) => Some((rank, run, position)),
                    (_, _, _) => None,
                };
                known.first_in_line.insert(text, first);
            }
            for found in &smaller {
                let asked = (row::text(found, 0)?, row::text(found, 1)?, row::number(found, 2)?);
                known.smaller.insert(asked, row::number(found, 3)?);
            }
            for name in &self.limits {
                known.limits.insert(name.clone(), None);
            }
            for found in &limits {
                let limit = row::word(found, 1, "limit", |text| Limit::parse(text).ok());
                let limit = limit.map_err(|failure| failure.about(*run_no, *run))?;
                known.limits.insert(row::text(found, 0)?, Some(limit));
            }
            for name in &self.tats {
                known.tats.insert(name.clone(), None);
            }
            for found in &tats {
                known.tats.insert(row::text(found, 0)?, Some(Tat(found.try_get(1)?)));
            }
            for found in &awaited {
                if found.try_get::<_, i64>(1)? == *run_no {
                    known.awaited.insert((row::text(found, 0)?, row::number(found, 2)?), found.try_get(3)?);
                }
            }
            for class in &self.takers {
                known.takers.insert(*class, false);
            }
            for found in &takers {
                known.takers.insert(found.try_get(0)?, true);
            }
        }
        Ok(())
    }

    /// A row that is not there would be asked for again and again.
    fn has_all(&self, runs: &mut BTreeMap<i64, (RunId, &mut Known)>) -> Done<()> {
        for (no, position) in self.tasks.0.iter().zip(&self.tasks.1) {
            let Some((run, known)) = runs.get_mut(no) else { continue };
            let Ok(place) = Position::try_from(*position) else {
                return Err(no_row("task", *no, *run, *position));
            };
            if known.tasks.contains_key(&place) {
                continue;
            }
            // An item may be gone with its list.
            if place < known.steps {
                return Err(no_row("task", *no, *run, *position));
            }
            known.tasks.insert(place, TaskRow::absent());
        }
        for (no, set) in self.sets.0.iter().zip(&self.sets.1) {
            if let Some((run, known)) = runs.get(no)
                && !u32::try_from(*set).is_ok_and(|set| known.sets.contains_key(&set))
            {
                return Err(no_row("needs set", *no, *run, *set));
            }
        }
        Ok(())
    }

    fn take(&self, mut answers: impl Iterator<Item = Vec<Row>>, loaded: &mut [Loaded]) -> Done<()> {
        let mut runs: BTreeMap<i64, (RunId, &mut Known)> =
            loaded.iter_mut().map(|run| (run.job.head.no, (run.job.head.head.run, &mut run.known))).collect();
        let mut answer =
            |is_asked: bool| if is_asked { answers.next().unwrap_or_default() } else { Vec::new() };
        self.take_keys(&mut answer, &mut runs)?;
        for found in answer(!self.tasks.0.is_empty()) {
            let known = of(&mut runs, &found)?;
            let (position, row) = task_row(&found).map_err(|failure| failure.about(found.get(0), known.0))?;
            note_taker(known.1, &row, &found)?;
            known.1.tasks.insert(position, row);
        }
        for found in answer(!self.sets.0.is_empty()) {
            let (no, (run, known)) = (found.try_get(0)?, of(&mut runs, &found)?);
            let read = || Ok((row::number(&found, 1)?, counts(&found)?));
            let (set, counts) = read().map_err(|failure: Failure| failure.about(no, *run))?;
            known.sets.insert(set, counts);
        }
        self.has_all(&mut runs)?;
        let live = answer(!self.live.is_empty());
        self.live.iter().for_each(|no| {
            if let Some(run) = runs.get_mut(no) {
                run.1.live = Some(0)
            }
        });
        for found in live {
            of(&mut runs, &found)?.1.live = Some(row::number(&found, 1)?);
        }
        let line = answer(!self.line.0.is_empty());
        for (no, asked) in self.line.0.iter().zip(&self.line.1) {
            if let Some(run) = runs.get_mut(no) {
                run.1.line = Some((usize::try_from(*asked).unwrap_or(usize::MAX), Vec::new()));
            }
        }
        for found in line {
            let known = of(&mut runs, &found)?;
            let row = task_row(&found).map_err(|failure| failure.about(found.get(0), known.0))?;
            note_taker(known.1, &row.1, &found)?;
            if let Some((_, rows)) = &mut known.1.line {
                rows.push(row);
            }
        }
        type Part = fn(&mut Known) -> &mut Option<Vec<(Position, TaskRow)>>;
        let parts: [(&Vec<i64>, Part); 3] = [
            (&self.unstarted, |known| &mut known.unstarted),
            (&self.running, |known| &mut known.running),
            (&self.all, |known| &mut known.all),
        ];
        for (asked, part) in parts {
            let rows = answer(!asked.is_empty());
            for no in asked {
                if let Some(run) = runs.get_mut(no) {
                    *part(run.1) = Some(Vec::new());
                }
            }
            for found in rows {
                let known = of(&mut runs, &found)?;
                let row = task_row(&found).map_err(|failure| failure.about(found.get(0), known.0))?;
                part(known.1).get_or_insert_default().push(row);
            }
        }
        let failures = answer(!self.failures.is_empty());
        self.failures.iter().for_each(|no| {
            if let Some(run) = runs.get_mut(no) {
                run.1.failures = Some(None)
            }
        });
        for found in failures {
            let (no, (run, known)) = (found.try_get(0)?, of(&mut runs, &found)?);
            let read = || {
                Ok(Failures {
                    position: row::number(&found, 1)?,
                    reason: row::reason(&found, 2)?,
                    detail: row::maybe_text(&found, 3)?,
                    finished_at: row::moment(&found, 4)?,
                    count: row::number(&found, 5)?,
                })
            };
            known.failures = Some(Some(read().map_err(|failure: Failure| failure.about(no, *run))?));
        }
        let nodes = answer(!self.nodes.is_empty());
        for run in runs.values_mut() {
            for session in &self.sessions {
                run.1.nodes.insert(*session, None);
            }
            for found in &nodes {
                let session = row::word(found, 0, "session", SessionId::parse)?;
                run.1.nodes.insert(session, Some(row::text(found, 1)?.into()));
            }
        }
        let outcomes = answer(!self.outcomes.is_empty());
        for (no, claim) in &self.outcomes {
            if let Some(run) = runs.get_mut(no) {
                run.1.outcomes.insert(*claim, None);
            }
        }
        for found in outcomes {
            let (no, (run, known)) = (found.try_get(0)?, of(&mut runs, &found)?);
            let read = || {
                let session = row::word(&found, 3, "session", SessionId::parse)?;
                let (position, attempt) = (row::number(&found, 1)?, row::number(&found, 2)?);
                let generation = row::number(&found, 5)?;
                let claim = ClaimRef { run: *run, position, attempt, generation, session };
                Ok((claim, row::text(&found, 4)?))
            };
            let (claim, outcome) = read().map_err(|failure: Failure| failure.about(no, *run))?;
            known.outcomes.insert(claim, Some(outcome));
        }
        self.take_items(&mut answer, &mut runs)
    }
}

/// What must be there, and is not.
fn no_row(what: &str, no: i64, run: RunId, number: i64) -> Failure {
    let why = format!("{number} is not there");
    Failure::from(Error::Unreadable { what: what.to_owned(), why }).about(no, run)
}

/// Whose row it is: the first column says so.
fn of<'r, 'k>(
    runs: &'r mut BTreeMap<i64, (RunId, &'k mut Known)>,
    found: &Row,
) -> Done<&'r mut (RunId, &'k mut Known)> {
    let no: i64 = found.try_get(0)?;
    Ok(runs.get_mut(&no).ok_or_else(|| row::unreadable("number of a run", &no.to_string()))?)
}

fn run_row(found: &Row) -> Done<RunRow> {
    Ok(RunRow {
        status: row::word(found, 1, "status of a run", RunStatus::parse)?,
        reason: row::maybe_text(found, 2)?,
        closing: row::maybe_word(found, 3, "closing of a run", Closing::parse)?,
        owner: row::maybe_word(found, 4, "owner of a run", SessionId::parse)?,
        not_before: row::moment(found, 16)?,
        started_at: row::moment(found, 5)?,
        finished_at: row::moment(found, 6)?,
        deadline_at: row::moment(found, 7)?,
        pauses: row::maybe_word(found, 14, "pauses of a run", read_pauses)?.unwrap_or_default(),
        levels: row::maybe_word(found, 15, "levels of a run", read_levels)?,
        last_event: row::number(found, 8)?,
        unsettled: row::number(found, 9)?,
    })
}

pub(super) fn task_row(found: &Row) -> Done<(Position, TaskRow)> {
    let task = TaskRow {
        status: row::word(found, 2, "status of a task", TaskStatus::parse)?,
        gate: row::maybe_word(found, 3, "gate of a task", Gate::parse)?,
        rank: found.try_get(4)?,
        run_at: row::moment(found, 5)?,
        attempt: row::number(found, 6)?,
        retries: row::number(found, 7)?,
        lost: row::number(found, 8)?,
        session: row::maybe_word(found, 9, "session of a task", SessionId::parse)?,
        is_ahead: found.try_get(10)?,
        node: row::maybe_text(found, 11)?.map(Arc::from),
        stop: row::maybe_word(found, 12, "request to stop", Reason::parse)?,
        reason: row::reason(found, 13)?,
        detail: row::maybe_text(found, 14)?,
        exit_code: row::maybe_number(found, 15)?,
        output: row::maybe_text(found, 16)?,
        started_at: row::moment(found, 17)?,
        took_ms: row::maybe_number(found, 18)?,
        finished_at: row::moment(found, 19)?,
        gate_key: row::maybe_text(found, 20)?,
        wake_at: row::moment(found, 21)?,
        class: found.try_get(22)?,
        wait: row::maybe_word(found, 23, "wait of a task", read_wait)?,
        growth: row::maybe_word(found, 24, "items of a task", read_growth)?,
        item: row::maybe_text(found, 25)?.map(Arc::from),
        given_back: row::number(found, 26)?,
        start_by: row::moment(found, 27)?,
        fence: found.try_get(28)?,
    };
    Ok((row::number(found, 1)?, task))
}

/// Some statements tell along with a task whether somebody takes its class.
fn note_taker(known: &mut Known, task: &TaskRow, found: &Row) -> Done<()> {
    if let Some(has_taker) = found.try_get(29)? {
        // That nobody takes it is looked at again, behind a lock, if it matters.
        if has_taker {
            known.takers.insert(task.class, true);
        }
    }
    Ok(())
}

fn counts(found: &Row) -> Done<Counts> {
    Ok(Counts {
        unsettled: row::number(found, 2)?,
        succeeded: row::number(found, 3)?,
        failed: row::number(found, 4)?,
        passed_over: row::number(found, 5)?,
    })
}
