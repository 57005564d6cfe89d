//! `submit` of runs that concern nobody else: no lock, no order, no limit, no moment, no bound on
//! the runs of a workflow, no key of the caller's. However many come at the same time, they are one
//! transaction of two round trips, and one sync of the disk.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use laneway_core::class::Class;
use laneway_core::definition::Placement;
use laneway_core::event::PauseScope;
use laneway_core::id::RunId;
use laneway_core::time::Millis;

use crate::error::{Error, Result};
use crate::keeper::{Keeper, Pause};
use crate::model::{Placed, RunHead, Submission};
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::Shelf;
use crate::postgres::work::fresh::{New, NewRows};
use crate::postgres::work::submit::classes_of_steps;
use crate::postgres::{classes, row};

/// Whether a run concerns nobody else, and nothing is wrong with it that would have to be said.
pub(in crate::postgres) fn is_plain(submission: &Submission) -> bool {
    let workflow = &submission.plan.workflow;
    let asks_nothing = || {
        workflow.steps.iter().all(|step| {
            let demands = step.demands();
            demands.lock.is_none()
                && demands.order.is_none()
                && demands.limits.is_empty()
                && demands.not_before.is_none()
        })
    };
    submission.max_parallel > 0
        && submission.key.is_none()
        && submission.parent.is_none()
        && submission.not_before.is_none()
        && submission.placement() != Placement::Pinned
        && workflow.max_runs.is_none()
        && workflow.limits.is_empty()
        && asks_nothing()
        && submission.plan.unsupported().is_none()
}

/// Each gets an answer of its own: one whose session is over does not keep the others from theirs.
pub(in crate::postgres) async fn enroll(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    submissions: &[(RunId, Submission)],
) -> Done<Vec<Result<RunId>>> {
    let begun = Begun::begin(shelf, link, terms, submissions).await?;
    let (mut answers, mut rows) = (Vec::with_capacity(submissions.len()), NewRows::default());
    for ((run, submission), no) in submissions.iter().zip(&begun.numbers) {
        let Some(node) = begun.nodes.get(&submission.session.to_string()) else {
            answers.push(Err(Error::SessionOver { session: submission.session }));
            continue;
        };
        let head = RunHead {
            run: *run,
            plan: Arc::clone(&submission.plan),
            dir: submission.dir.clone(),
            bundle: submission.bundle.clone(),
            params: submission.params.clone(),
            max_parallel: submission.max_parallel,
            submitted_from: node.clone(),
            keys: Default::default(),
            placed: if submission.is_shared { Placed::Spread } else { Placed::Local },
            own_class: -no,
            parent: None,
            no_cache: submission.no_cache,
        };
        let classes = begun.classes_of(*no, submission)?;
        let (head, taken) = (Arc::new(head), Arc::clone(&begun.taken));
        let new = New { no: *no, root_no: None, now: begun.now, head, submission, classes, taken };
        let mut keeper = Keeper::new(new.facts(), Arc::clone(&new.head), new.row(), begun.now);
        keeper.submitted(submission, begun.pauses.get(&submission.plan.workflow.name).cloned());
        keeper.begin()?;
        let changes = keeper.conclude()?;
        link.note_placed(*no, begun.now, &changes.tasks);
        rows.add(shelf, &new, &changes);
        answers.push(Ok(*run));
    }
    let rows = rows.cut();
    let mut flight = link.flight();
    if answers.iter().any(Result::is_ok) {
        rows.say(&mut flight);
    }
    flight.commit().await?;
    for (_, submission) in submissions {
        shelf.plans.keep(&submission.plan);
    }
    shelf.keep_stored(&begun.classes, submissions.iter().map(|(_, submission)| &submission.plan.version));
    Ok(answers)
}

/// What has to be known of the database.
struct Begun {
    now: Millis,
    numbers: Vec<i64>,
    /// By session.
    nodes: HashMap<String, String>,
    /// By workflow.
    pauses: HashMap<String, Pause>,
    classes: HashMap<Class, i64>,
    taken: Arc<HashSet<i64>>,
}

impl Begun {
    async fn begin(
        shelf: &Shelf,
        link: &Link,
        terms: Terms,
        submissions: &[(RunId, Submission)],
    ) -> Done<Self> {
        let each = || submissions.iter().map(|(_, submission)| submission);
        let distinct = |texts: BTreeSet<String>| texts.into_iter().collect::<Vec<String>>();
        let sessions = distinct(each().map(|submission| submission.session.to_string()).collect());
        let names = distinct(each().map(|submission| submission.plan.workflow.name.clone()).collect());
        let (count, now) = (i64::try_from(submissions.len()).unwrap_or(i64::MAX), terms.now.map(|now| now.0));
        let (mut classes, mut new) = (HashMap::new(), Vec::new());
        for class in distinct_classes(submissions) {
            match shelf.class(&class) {
                Some(no) => drop(classes.insert(class, no)),
                None => new.push(class),
            }
        }
        let mut known: Vec<i64> = classes.values().copied().collect();
        let mut flight = link.begin(Begin::Write);
        flight.ask(sql!("submit_sessions", TEXT_ARRAY), vec![&sessions]);
        flight.ask(sql!("submit_numbers", INT8, INT8), vec![&count, &now]);
        flight.ask(sql!("workflows_hold", TEXT_ARRAY), vec![&names]);
        flight.ask(sql!("workflows_paused", TEXT_ARRAY), vec![&names]);
        flight.ask(sql!("has_taker", INT8_ARRAY), vec![&known]);
        let mut answers = flight.land().await?;
        if !new.is_empty() {
            // Of a new class it is known only now who takes it.
            classes.extend(classes::numbers(link, &new).await?);
            known = classes.values().copied().collect();
            answers[4] = link.rows(sql!("has_taker", INT8_ARRAY), &[&known]).await?;
        }
        let [nodes, numbers, _, pauses, takers] = &answers[..] else {
            return Err(row::unreadable("answer", "to five questions").into());
        };
        let mut taken: HashSet<i64> =
            takers.iter().map(|found| Ok(found.try_get(0)?)).collect::<Done<_>>()?;
        known.retain(|class| !taken.contains(class));
        if !known.is_empty() {
            taken.extend(classes::taken_after_all(link, &known).await?);
        }
        let first = numbers.first().map(|found| found.try_get(0)).transpose()?.unwrap_or_default();
        let pause = |found: &tokio_postgres::Row| -> Done<(String, Pause)> {
            let (by, since) = (row::text(found, 1)?, Millis(found.try_get(2)?));
            Ok((row::text(found, 0)?, Pause { scope: PauseScope::Workflow, by, since }))
        };
        let node = |found: &tokio_postgres::Row| Ok((row::text(found, 0)?, row::text(found, 1)?));
        Ok(Self {
            now: Millis(first),
            numbers: numbers.iter().map(|found| Ok(found.try_get(1)?)).collect::<Done<_>>()?,
            nodes: nodes.iter().map(node).collect::<Done<_>>()?,
            pauses: pauses.iter().map(pause).collect::<Done<_>>()?,
            classes,
            taken: Arc::new(taken),
        })
    }

    /// By position. A run that is local to its owner is a class of its own.
    fn classes_of(&self, no: i64, submission: &Submission) -> Done<Vec<i64>> {
        let steps = &submission.plan.workflow.steps;
        if !submission.is_shared {
            return Ok(vec![-no; steps.len()]);
        }
        let number = |class: Class| {
            let number = self.classes.get(&class).copied();
            number.ok_or_else(|| row::unreadable("class", &class.to_string()).into())
        };
        classes_of_steps(&submission.plan).map(number).collect()
    }
}

fn distinct_classes(submissions: &[(RunId, Submission)]) -> BTreeSet<Class> {
    let shared = submissions.iter().filter(|(_, submission)| submission.is_shared);
    let mut plans = HashSet::new();
    // Many are of one workflow.
    let plans =
        shared.map(|(_, submission)| &submission.plan).filter(|plan| plans.insert(plan.version.clone()));
    plans.flat_map(|plan| classes_of_steps(plan)).collect()
}
