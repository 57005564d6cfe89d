//! Classes of tasks and who takes them: written when a session begins and when a class is new, so that neither a claim nor
//! a gate has to compare labels. Both happen under one lock, inside the open transaction.

use std::collections::HashMap;

use laneway_core::class::{self, Class, Offer};
use laneway_core::id::SessionId;

use super::fault::Done;
use super::link::{Begin, Link, sql};
use super::row;
use crate::offer;

/// A session takes every class that it can run. Gives their numbers.
pub(super) async fn offer_to_all(link: &Link, session: SessionId, offer: &Offer) -> Done<Vec<i64>> {
    let lock = link.locks.acquire_classes()?;
    let mut flight = link.flight();
    lock.send(&mut flight);
    flight.ask(sql!("classes"), Vec::new());
    let rows = flight.land().await?.pop().unwrap_or_default();
    let (mut taken, mut delays, mut places, mut pools) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for found in &rows {
        // One that a newer program wrote is none that this one could run.
        let class = Class::parse(&row::text(found, 1)?).filter(|class| class::can_run(offer, class));
        if let Some(class) = class {
            taken.push(found.try_get(0)?);
            delays.push(class::reluctance(offer, &class));
            places.push(places_of(&class, offer));
            pools.push(pool_of(&class));
        }
    }
    let sessions = vec![session.to_string(); taken.len()];
    let takers = sql!("taker_add", INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY);
    link.rows(takers, &[&taken, &sessions, &delays, &places, &pools]).await?;
    Ok(taken)
}

fn places_of(class: &Class, offer: &Offer) -> Option<i64> {
    class.room.as_ref().map(|room| i64::from(room.places_with(offer.ports)))
}

fn pool_of(class: &Class) -> Option<String> {
    class.room.as_ref().map(|room| room.pool.clone())
}

/// The numbers of classes. New ones are offered to every session that takes work.
pub(super) async fn numbers(link: &Link, classes: &[Class]) -> Done<HashMap<Class, i64>> {
    let texts: Vec<String> = classes.iter().map(ToString::to_string).collect();
    let mut known: HashMap<String, i64> = HashMap::new();
    for found in link.rows(sql!("class", TEXT_ARRAY), &[&texts]).await? {
        known.insert(row::text(&found, 1)?, found.try_get(0)?);
    }
    let new: Vec<String> = texts.iter().filter(|text| !known.contains_key(*text)).cloned().collect();
    if !new.is_empty() {
        let lock = link.locks.acquire_classes()?;
        let mut flight = link.flight();
        lock.send(&mut flight);
        flight.ask(sql!("class_add", TEXT_ARRAY), vec![&new]);
        flight.ask(sql!("class", TEXT_ARRAY), vec![&new]);
        flight.ask(sql!("offers"), Vec::new());
        let answers = flight.land().await?;
        for found in answers.get(1).into_iter().flatten() {
            known.insert(row::text(found, 1)?, found.try_get(0)?);
        }
        let (mut numbers, mut sessions, mut delays): (Vec<i64>, Vec<String>, Vec<i64>) = Default::default();
        let (mut places, mut pools) = (Vec::new(), Vec::new());
        for found in answers.get(2).into_iter().flatten() {
            let Some(offer) = offer::from_text(&row::text(found, 1)?) else { continue };
            for class in classes.iter().filter(|class| new.contains(&class.to_string())) {
                if class::can_run(&offer, class)
                    && let Some(no) = known.get(&class.to_string())
                {
                    numbers.push(*no);
                    sessions.push(row::text(found, 0)?);
                    delays.push(class::reluctance(&offer, class));
                    places.push(places_of(class, &offer));
                    pools.push(pool_of(class));
                }
            }
        }
        let takers = sql!("taker_add", INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY);
        link.rows(takers, &[&numbers, &sessions, &delays, &places, &pools]).await?;
    }
    let numbered = classes.iter().filter_map(|class| Some((class.clone(), *known.get(&class.to_string())?)));
    Ok(numbered.collect())
}

/// The same in a transaction of its own, before the caller's begins. Classes are locked behind keys, and
/// a run that is submitted has locked none yet. A class that no run comes to use does no harm.
pub(super) async fn numbers_beforehand(link: &Link, classes: &[Class]) -> Done<HashMap<Class, i64>> {
    let texts: Vec<String> = classes.iter().map(ToString::to_string).collect();
    let mut known = HashMap::new();
    for found in link.rows(sql!("class", TEXT_ARRAY), &[&texts]).await? {
        known.insert(row::text(&found, 1)?, found.try_get(0)?);
    }
    let number = |class: &Class| Some((class.clone(), *known.get(&class.to_string())?));
    let numbered: HashMap<Class, i64> = classes.iter().filter_map(number).collect();
    if numbered.len() == classes.len() {
        return Ok(numbered);
    }
    link.begin(Begin::Write).land().await?;
    let numbered = numbers(link, classes).await?;
    link.flight().commit().await?;
    Ok(numbered)
}

/// Of classes that nobody seems to take, those that somebody does. Who is joining at this moment has looked for tasks that wait
/// before ours were there: behind the lock it is seen here, and who joins later sees ours.
pub(super) async fn taken_after_all(link: &Link, classes: &[i64]) -> Done<Vec<i64>> {
    let (classes, lock) = (classes.to_vec(), link.locks.acquire_classes()?);
    let mut flight = link.flight();
    lock.send(&mut flight);
    flight.ask(sql!("has_taker", INT8_ARRAY), vec![&classes]);
    let rows = flight.land().await?.pop().unwrap_or_default();
    rows.iter().map(|found| Ok(found.try_get(0)?)).collect()
}
