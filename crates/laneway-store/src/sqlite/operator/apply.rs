//! `apply`: a workflow becomes known by its name, and so do its versions.

use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use rusqlite::{Connection, Row, params};

use crate::error::Error;
use crate::keeper::unreadable;
use crate::model::{Application, Applied, Definition, LastRun, WorkflowView};
use crate::sqlite::blobs::has_blob;
use crate::sqlite::statements::sql;
use crate::sqlite::triggers;
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn apply(txn: &Txn<'_>, application: &Application) -> Done<Applied> {
    let plan = &application.plan;
    if let Some(why) = plan.unsupported() {
        return Err(Error::NotRunnable { why }.into());
    }
    if let Some(hash) = &application.bundle
        && !has_blob(txn.connection, hash)?
    {
        return Err(Error::NoSuchBlob { hash: hash.to_string() }.into());
    }
    let (version, name) = (plan.version.as_str(), &plan.workflow.name);
    let newest = versions(txn.connection, name, None, 1)?.pop();
    if let Some(newest) = &newest
        && newest.version == plan.version
        && newest.bundle == application.bundle
        // Without files of their own, its steps run there.
        && (application.bundle.is_some() || newest.dir == application.dir)
    {
        // Its triggers may have been removed since.
        if !plan.workflow.triggers.is_empty() && !triggers::has_some(txn, name)? {
            triggers::arm(txn, plan)?;
        }
        return Ok(Applied { no: newest.no, was_there: true });
    }
    txn.shelf.plans().keep(plan);
    let mut keep = txn.connection.prepare_cached(sql!("submit_workflow"))?;
    keep.execute(params![version, name, application.document, txn.now.0])?;
    let no = newest.map_or(1, |newest| newest.no + 1);
    let bundle = application.bundle.as_ref().map(ContentHash::as_str);
    txn.connection.prepare_cached(sql!("definition_add"))?.execute(params![
        name,
        no,
        version,
        application.dir,
        bundle,
        txn.now.0,
        application.by
    ])?;
    triggers::arm(txn, plan)?;
    Ok(Applied { no, was_there: false })
}

/// The newest of each name, by name.
pub(in crate::sqlite) fn workflows(connection: &Connection) -> Done<Vec<WorkflowView>> {
    let mut statement = connection.prepare_cached(sql!("definitions"))?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let pause = match row.get::<_, Option<String>>(10)? {
            Some(by) => Some((by, Millis(row.get(11)?))),
            None => None,
        };
        found.push(WorkflowView { definition: definition(row)?, last_run: last_run(row)?, pause });
    }
    Ok(found)
}

fn last_run(row: &Row<'_>) -> Done<Option<LastRun>> {
    let id: Option<String> = row.get(7)?;
    let Some(run) = id.as_deref().and_then(RunId::parse) else { return Ok(None) };
    let status = row.get::<_, String>(8).ok().and_then(|word| RunStatus::parse(&word));
    Ok(Some(LastRun { run, status, submitted_at: Millis(row.get(9)?) }))
}

/// Of one name, newest first.
pub(in crate::sqlite) fn versions(
    connection: &Connection,
    name: &str,
    below: Option<u32>,
    limit: usize,
) -> Done<Vec<Definition>> {
    let below = below.map_or(i64::MAX, i64::from);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql!("definition_versions"))?;
    let mut rows = statement.query(params![name, below, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(definition(row)?);
    }
    Ok(found)
}

/// As it is stored.
pub(in crate::sqlite) fn bundle_of(text: Option<String>) -> Done<Option<ContentHash>> {
    let parse = |text: String| ContentHash::parse(&text).ok_or_else(|| unreadable("bundle", &text));
    Ok(text.map(parse).transpose()?)
}

fn definition(row: &Row<'_>) -> Done<Definition> {
    Ok(Definition {
        name: row.get(0)?,
        no: row.get(1)?,
        version: Version::from_stored(row.get(2)?),
        dir: row.get(3)?,
        bundle: bundle_of(row.get(4)?)?,
        applied_at: Millis(row.get(5)?),
        applied_by: row.get(6)?,
    })
}
