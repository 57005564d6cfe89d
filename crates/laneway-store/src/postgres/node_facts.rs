//! Facts for the keeper about nodes: whether any takes a class, and what it asks about runs that
//! stay on one node.

use laneway_core::class::Class;
use laneway_core::id::SessionId;

use super::classes;
use super::facts::{Known, Missing};
use super::fault::Done;
use super::layers;
use super::link::{Link, sql};
use super::row;
use super::shelf::Head;
use crate::keeper::unreadable;

/// Fetches what is missing of one run that stays on one node. Most runs never do.
pub(super) async fn fetch(link: &Link, head: &Head, missing: &Missing, known: &mut Known) -> Done<()> {
    if !missing.taken_by.is_empty() {
        fetch_takers(link, missing, known).await?;
    }
    if !missing.classes.is_empty() {
        fetch_classes(link, head, missing, known).await?;
    }
    if missing.layers_on_nodes {
        let rows = link.rows(sql!("layers_on_nodes", INT8_ARRAY), &[&vec![head.no]]).await?;
        known.layers_on_nodes = Some(rows.iter().map(layers::on_node).collect::<Done<_>>()?);
    }
    Ok(())
}

async fn fetch_takers(link: &Link, missing: &Missing, known: &mut Known) -> Done<()> {
    let classes: Vec<i64> = missing.taken_by.iter().map(|(_, class)| *class).collect();
    let sessions: Vec<String> = missing.taken_by.iter().map(|(session, _)| session.to_string()).collect();
    known.taken_by.extend(missing.taken_by.iter().map(|pair| (*pair, false)));
    for found in link.rows(sql!("session_takes", INT8_ARRAY, TEXT_ARRAY), &[&classes, &sessions]).await? {
        let session = row::word(&found, 1, "session", SessionId::parse)?;
        known.taken_by.insert((session, found.try_get(0)?), true);
    }
    Ok(())
}

async fn fetch_classes(link: &Link, head: &Head, missing: &Missing, known: &mut Known) -> Done<()> {
    let plan = &head.head.plan;
    let classes: Vec<Class> = missing.classes.iter().map(|position| plan.class_of(*position)).collect();
    let numbers = classes::numbers(link, &classes).await?;
    for (position, class) in missing.classes.iter().zip(&classes) {
        let number = numbers.get(class).ok_or_else(|| unreadable("class", &class.to_string()))?;
        known.classes.insert(*position, *number);
    }
    Ok(())
}

/// Looks again at classes that no session takes, behind the lock of classes: a session may have
/// joined meanwhile.
pub(super) async fn look_for_takers_again(link: &Link, wanted: &[i64], known: &mut [&mut Known]) -> Done<()> {
    let is_nobodys = |class: &&i64| known.iter().any(|known| known.takers.get(class) == Some(&false));
    let nobodys: Vec<i64> = wanted.iter().filter(is_nobodys).copied().collect();
    if nobodys.is_empty() {
        return Ok(());
    }
    for class in classes::taken_after_all(link, &nobodys).await? {
        for known in known.iter_mut() {
            known.takers.insert(class, true);
        }
    }
    Ok(())
}
