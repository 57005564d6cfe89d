//! `remove_limit`, `remove_triggers`, `remove_workflow`: objects that people made by hand and need
//! no more. Runs and their history stay.

use laneway_core::id::RunId;
use rusqlite::params;

use crate::error::Error;
use crate::keeper::{Key, unreadable};
use crate::plans::names_limit;
use crate::sqlite::operator::apply::versions;
use crate::sqlite::operator::unended;
use crate::sqlite::run_work;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn limit(txn: &Txn<'_>, name: &str) -> Done<()> {
    if run_work::limit(txn, name)?.is_none() {
        return Err(Error::NoSuchLimit { name: name.to_owned() }.into());
    }
    let key = Key::Limit(name.to_owned()).text();
    let (held, waiting): (u32, u32) = txn
        .connection
        .prepare_cached(sql!("key_counts"))?
        .query_row([&key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let run = unended_naming(txn, name)?;
    if held + waiting > 0 || run.is_some() {
        return Err(Error::LimitInUse { name: name.to_owned(), held, waiting, run }.into());
    }
    txn.connection.prepare_cached(sql!("limit_remove"))?.execute([name])?;
    Ok(())
}

/// A run that has not ended and of which a step may still come to the limit.
fn unended_naming(txn: &Txn<'_>, name: &str) -> Done<Option<RunId>> {
    let ids: Vec<String> = txn
        .connection
        .prepare_cached(sql!("versions_unended"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in ids {
        let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
        // A run that is set aside may come back; one that cannot be read says nothing.
        let Ok(head) = txn.head(run) else { continue };
        if names_limit(&head.head.plan, name) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

pub(in crate::sqlite) fn triggers(txn: &Txn<'_>, workflow: &str) -> Done<u64> {
    match txn.connection.prepare_cached(sql!("triggers_remove"))?.execute([workflow])? {
        0 => Err(Error::NoTriggers { workflow: workflow.to_owned() }.into()),
        count => Ok(count as u64),
    }
}

pub(in crate::sqlite) fn workflow(txn: &Txn<'_>, name: &str, is_forced: bool) -> Done<()> {
    if versions(txn.connection, name, None, 1)?.is_empty() {
        return Err(Error::NoSuchWorkflow { name: name.to_owned() }.into());
    }
    let runs = unended(txn, name)?.len() as u64;
    let triggers: u64 =
        txn.connection.prepare_cached(sql!("triggers_live"))?.query_row([name], |row| row.get(0))?;
    if !is_forced && runs + triggers > 0 {
        return Err(Error::WorkflowInUse { workflow: name.to_owned(), runs, triggers }.into());
    }
    txn.connection.prepare_cached(sql!("triggers_remove"))?.execute([name])?;
    txn.connection.prepare_cached(sql!("definitions_remove"))?.execute([name])?;
    txn.connection.prepare_cached(sql!("workflow_removed"))?.execute(params![name, txn.now.0])?;
    Ok(())
}
