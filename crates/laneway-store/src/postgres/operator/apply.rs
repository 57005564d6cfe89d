//! `apply`: a workflow becomes known by its name, and so do its versions.

use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::error::Error;
use crate::model::{Application, Applied, Definition, LastRun, WorkflowView};
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::Shelf;
use crate::postgres::triggers::Arms;

pub(in crate::postgres) async fn apply(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    application: &Application,
) -> Done<Applied> {
    let plan = &application.plan;
    if let Some(why) = plan.unsupported() {
        return Err(Error::NotRunnable { why }.into());
    }
    let (version, name) = (plan.version.as_str(), &plan.workflow.name);
    let (key, now) = (vec![format!("applied:{name}")], terms.now.map(|now| now.0));
    let bundle = application.bundle.as_ref().map(ContentHash::as_str);
    let mut flight = link.begin(Begin::Write);
    // Two who apply the same name come one behind the other: what is the newest is read behind the
    // lock.
    let locks = link.locks.acquire_keys(&key)?;
    locks.send(&mut flight);
    flight.ask(sql!("definition_versions", TEXT, INT8, INT8), vec![name, &i64::MAX, &1_i64]);
    flight.ask(sql!("blob_hold", TEXT), vec![&bundle]);
    flight.ask(sql!("triggers_known", TEXT), vec![name]);
    let answers = flight.land().await?;
    if let (Some(hash), Some([])) = (bundle, answers.get(1).map(Vec::as_slice)) {
        return Err(Error::NoSuchBlob { hash: hash.to_owned() }.into());
    }
    let newest = answers.first().and_then(|rows| rows.first()).map(definition).transpose()?;
    let known = answers.get(2).and_then(|rows| rows.first()).map(|found| found.try_get::<_, i64>(0));
    // Its triggers may have been removed since it was applied.
    let is_disarmed = known.transpose()?.unwrap_or(0) == 0 && !plan.workflow.triggers.is_empty();
    let mut was_there = None;
    if let Some(newest) = &newest
        && newest.version == plan.version
        && newest.bundle == application.bundle
        // Without files of their own, its steps run there.
        && (application.bundle.is_some() || newest.dir == application.dir)
    {
        if !is_disarmed {
            link.roll_back().await;
            return Ok(Applied { no: newest.no, was_there: true });
        }
        was_there = Some(newest.no);
    }
    let no = newest.map_or(1, |newest| newest.no + 1);
    let (number, arms) = (i64::from(no), Arms::of(plan));
    let fits = async {
        arms.are_free(link, name).await?;
        arms.lead_on(link, name).await
    };
    if let Err(error) = fits.await {
        link.roll_back().await;
        return Err(error);
    }
    let mut flight = link.flight();
    if was_there.is_none() {
        flight.ask(
            sql!("document_add", TEXT, TEXT, TEXT, INT8),
            vec![&version, name, &application.document, &now],
        );
        flight.ask(
            sql!("definition_add", TEXT, INT8, TEXT, TEXT, TEXT, INT8, TEXT),
            vec![name, &number, &version, &application.dir, &bundle, &now, &application.by],
        );
    }
    arms.say(&mut flight, (name, &version), &now);
    flight.commit().await?;
    shelf.plans.keep(plan);
    Ok(Applied { no: was_there.unwrap_or(no), was_there: was_there.is_some() })
}

/// The newest of each name, by name.
pub(in crate::postgres) async fn workflows(link: &Link) -> Done<Vec<WorkflowView>> {
    let rows = link.rows(sql!("definitions"), &[]).await?;
    let view = |found: &Row| {
        let pause = row::maybe_text(found, 10)?.zip(row::moment(found, 11)?);
        Ok(WorkflowView { definition: definition(found)?, last_run: last_run(found)?, pause })
    };
    rows.iter().map(view).collect()
}

fn last_run(found: &Row) -> Done<Option<LastRun>> {
    let Some(run) = row::maybe_text(found, 7)?.as_deref().and_then(RunId::parse) else { return Ok(None) };
    let status = row::maybe_text(found, 8)?.as_deref().and_then(RunStatus::parse);
    Ok(Some(LastRun { run, status, submitted_at: Millis(found.try_get(9)?) }))
}

/// Of one name, newest first.
pub(in crate::postgres) async fn versions(
    link: &Link,
    name: &str,
    below: Option<u32>,
    limit: usize,
) -> Done<Vec<Definition>> {
    let below = below.map_or(i64::MAX, i64::from);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = link.rows(sql!("definition_versions", TEXT, INT8, INT8), &[&name, &below, &limit]).await?;
    rows.iter().map(definition).collect()
}

fn definition(found: &Row) -> Done<Definition> {
    Ok(Definition {
        name: row::text(found, 0)?,
        no: row::number(found, 1)?,
        version: Version::from_stored(row::text(found, 2)?),
        dir: row::text(found, 3)?,
        bundle: row::maybe_word(found, 4, "bundle", ContentHash::parse)?,
        applied_at: Millis(found.try_get(5)?),
        applied_by: row::text(found, 6)?,
    })
}
