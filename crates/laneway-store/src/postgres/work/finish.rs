//! `finish`: the heart. Checks the fence, keeps the attempt, appends events, decides on a retry,
//! counts down successors, opens gates, ends the run if it is done, and claims the next tasks, all
//! in one transaction of two round trips. If it frees something for other runs, the next tasks are
//! claimed behind that. `start` and `give_back` are said in the same way.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::time::Millis;
use laneway_torture::{Bug, has};

use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::keeper::Keeper;
use crate::model::{Answer, Ask, Claim, Finished};
use crate::postgres::base::Base;
use crate::postgres::claim_cursor::WalkStart;
use crate::postgres::facts::{Known, Missing};
use crate::postgres::fault::Done;
use crate::postgres::follow::work;
use crate::postgres::link::{Link, sql};
use crate::postgres::read;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::Shelf;
use crate::postgres::work::claim::Asked;
use crate::postgres::work::sorted;

pub(in crate::postgres) async fn finish(
    base: &Base,
    finished: &[Finished],
    ask: Option<&Ask>,
) -> Result<Answer> {
    let mut lost = Lost::default();
    loop {
        let (shelf, without) = (&base.shelf, &lost);
        let said = base
            .change(
                |link, terms| async move { finish_held(shelf, &link, terms, (finished, without), ask).await },
            )
            .await;
        match said {
            Err(error) if lost.learn(shelf, &error, finished.iter().map(|one| one.claim.run)) => {}
            Ok((mut answer, next)) => {
                answer.claims = claim_next(base, answer.claims, next).await;
                return Ok(answer);
            }
            Err(error) => return Err(error),
        }
    }
}

/// What is left to claim behind the commit of a finish.
enum NextClaim {
    Nothing,
    /// The finish made something possible for other runs, which may come first.
    BehindFollowUps(Ask),
    /// The claim in the same transaction began at the cursors and found too little.
    FromHead(Ask),
}

/// Claims behind a finish. The ends are recorded, so that an error is none of theirs; the worker
/// asks for work again.
async fn claim_next(base: &Base, taken: Vec<Claim>, next: NextClaim) -> Vec<Claim> {
    let claimed = match next {
        NextClaim::Nothing => return taken,
        NextClaim::BehindFollowUps(ask) if ask.limit + ask.ahead == 0 => return taken,
        NextClaim::BehindFollowUps(ask) => {
            if has(Bug::ClaimStalled) {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            super::claim::claim(base, &ask).await
        }
        NextClaim::FromHead(rest) => super::claim::claim_rest(base, taken, &rest).await,
    };
    claimed.unwrap_or_else(|error| {
        tracing::debug!(%error, "nothing was claimed behind a finish");
        Vec::new()
    })
}

/// Says something about claims, and gives their fates in the order in which they came.
pub(in crate::postgres) async fn say(
    base: &Base,
    claims: &[ClaimRef],
    word: impl Fn(&mut Keeper<&mut Known>, &ClaimRef) -> Done<Fate> + Copy + Send + Sync,
) -> Result<Vec<Fate>> {
    let mut lost = Lost::default();
    loop {
        let (shelf, without) = (&base.shelf, &lost);
        let said = base
            .change(|link, terms| async move { say_held(shelf, &link, terms, (claims, without), word).await })
            .await;
        match said {
            Err(error) if lost.learn(shelf, &error, claims.iter().map(|claim| claim.run)) => {}
            said => return said,
        }
    }
}

/// Runs of a call that are gone, or set aside: nothing of them is held by anybody, what is said of
/// them is lost, and the call is said again for the others. That is rare, and costs nothing where
/// it does not happen.
#[derive(Debug, Default)]
struct Lost(Vec<RunId>);

impl Lost {
    /// Whether a call failed for one run of it, which is left out from here on.
    fn learn(&mut self, shelf: &Shelf, error: &Error, mut runs: impl Iterator<Item = RunId>) -> bool {
        let is_it = |run: &RunId| {
            matches!(error, Error::NoSuchRun { name } if *name == run.to_string())
                || matches!(error, Error::SetAside { run: short, .. } if *short == run.short())
        };
        // Who is left out already is not to blame: it is what the same call asks work of.
        let Some(run) = runs.find(is_it).filter(|run| !self.0.contains(run)) else { return false };
        shelf.forget_run(run);
        self.0.push(run);
        true
    }

    fn keeps(&self, run: RunId) -> bool {
        !self.0.contains(&run)
    }
}

async fn finish_held(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (finished, lost): (&[Finished], &Lost),
    ask: Option<&Ask>,
) -> Done<(Answer, NextClaim)> {
    let held = finished.iter().map(|one| one.claim.run).enumerate().filter(|(_, run)| lost.keeps(*run));
    let runs = sorted(shelf, link, held).await?;
    let mut asked = match ask {
        Some(ask) => Some(Asked::new(shelf, link, terms, ask).await?),
        None => None,
    };
    let job = |(head, places): &(Arc<_>, Vec<usize>)| {
        let head: &Arc<crate::postgres::shelf::Head> = head;
        let claims = places.iter().map(|place| &finished[*place].claim);
        Job { seed: Missing::for_ends_of(&head.head, claims), head: Arc::clone(head) }
    };
    let jobs = runs.iter().map(job).collect();
    let (made, columns) = work(shelf, link, terms, jobs, |index, keeper| {
        let fates = keeper.finish_all(runs[index].1.iter().map(|place| &finished[*place]))?;
        Ok((fates, keeper.is_closing()))
    })
    .await?;
    let session = ask.map(|ask| ask.session.to_string());
    let claims_later = link.has_follow_ups();
    // Only a claim that is sent chooses its walk.
    if let Some(asked) = asked.as_mut().filter(|_| !claims_later) {
        asked.choose_walk(shelf, WalkStart::Cursors);
    }
    let mut flight = link.flight();
    columns.say(&mut flight);
    let said = flight.len();
    if let (Some(asked), Some(session)) = (&asked, &session) {
        if !claims_later {
            asked.say(&mut flight);
        }
        flight.ask(sql!("stops", TEXT), vec![session]);
    }
    flight.ask(sql!("promote_next"), Vec::new());
    let mut answers = flight.commit().await?.into_iter().skip(said);
    let mut answer = Answer { fates: vec![Fate::ClaimLost; finished.len()], ..Answer::default() };
    for ((_, places), made) in runs.iter().zip(&made) {
        let (fates, is_closing) = &made.answer;
        places.iter().zip(fates).for_each(|(place, fate)| answer.fates[*place] = *fate);
        answer.is_closing |= is_closing;
    }
    let mut next = NextClaim::Nothing;
    if let (Some(asked), Some(ask)) = (&asked, ask) {
        if claims_later {
            next = NextClaim::BehindFollowUps(ask.clone());
        } else {
            let taken = asked.hear(shelf, link, &mut answers).await?;
            answer.claims = taken.claims;
            next = taken.rest.map_or(NextClaim::Nothing, NextClaim::FromHead);
        }
        let stops = answers.next().unwrap_or_default();
        // Those that cannot be read are dealt with by who looks for orders.
        answer.stops = read::stops(&stops, ask.session)?.list;
    }
    if let Some(found) = answers.next().and_then(|rows| rows.into_iter().next()) {
        answer.wake_at = found.try_get::<_, Option<i64>>(0)?.map(Millis);
    }
    Ok((answer, next))
}

async fn say_held(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (claims, lost): (&[ClaimRef], &Lost),
    word: impl Fn(&mut Keeper<&mut Known>, &ClaimRef) -> Done<Fate>,
) -> Done<Vec<Fate>> {
    let held = claims.iter().map(|claim| claim.run).enumerate().filter(|(_, run)| lost.keeps(*run));
    let runs = sorted(shelf, link, held).await?;
    let jobs = runs
        .iter()
        .map(|(head, places)| {
            let of_run = places.iter().map(|place| &claims[*place]);
            Job { seed: Missing::for_claims(&head.head.plan, of_run), head: Arc::clone(head) }
        })
        .collect();
    let (made, columns) = work(shelf, link, terms, jobs, |index, keeper| {
        runs[index].1.iter().map(|place| word(keeper, &claims[*place])).collect::<Done<Vec<Fate>>>()
    })
    .await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.commit().await?;
    let mut fates = vec![Fate::ClaimLost; claims.len()];
    for ((_, places), made) in runs.iter().zip(&made) {
        places.iter().zip(&made.answer).for_each(|(place, fate)| fates[*place] = *fate);
    }
    Ok(fates)
}
