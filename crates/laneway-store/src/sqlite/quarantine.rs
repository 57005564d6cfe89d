//! The quarantine: a run of which something stored cannot be read is set aside, with the reason, so
//! that it stops nobody else and nobody tries it again and again. Nothing of it is changed or
//! deleted; `release` brings it back once it can be read. See docs/design/faults.md.

use std::panic::{AssertUnwindSafe, catch_unwind};

use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use crate::error::Error;
use crate::fence::ClaimRef;
use crate::keeper::unreadable;
use crate::model::SetAside;
use crate::sqlite::run_work::on_run;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Failure, Plans, Subject, Txn};
use crate::sqlite::work::children;
use crate::sqlite::{doctor, fault};

/// Runs a verb; a panic is one of its failures, not the end of the writer.
pub(super) fn guard<T>(verb: impl FnOnce() -> Done<T>) -> Done<T> {
    match catch_unwind(AssertUnwindSafe(verb)) {
        Ok(answer) => answer,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Err(Failure::Panicked(text.to_owned()))
        }
    }
}

/// Sets the run aside on which a verb failed, if what it found there is to blame. Says whether it
/// is new there.
pub(super) fn set_aside(txn: &Txn<'_>, failure: &Failure) -> rusqlite::Result<bool> {
    let (Some((what, why)), Some(subject)) = (blame(failure), txn.subject.get()) else { return Ok(false) };
    let number = match subject {
        Subject::No(no) => Some(no),
        Subject::Id(run) => txn
            .connection
            .prepare_cached(sql!("quarantine_subject"))?
            .query_row([run.to_string()], |row| row.get(0))
            .optional()?,
    };
    let Some(no) = number else { return Ok(false) };
    txn.shelf.forget();
    let added =
        txn.connection.prepare_cached(sql!("quarantine_add"))?.execute(params![no, what, why, txn.now.0])?;
    if added == 1 {
        let run = match subject {
            Subject::Id(run) => run.short(),
            Subject::No(no) => format!("number {no}"),
        };
        tracing::warn!(
            "run {run} is set aside: a stored {what} cannot be read: {why}; `laneway doctor` says more"
        );
    }
    Ok(added == 1)
}

/// Whether what was found in a row is to blame for a failure.
pub(super) fn is_about_a_value(failure: &Failure) -> bool {
    blame(failure).is_some()
}

/// What of a run is to blame for a failure, if something is: neither the disk, nor what somebody
/// asked for.
pub(super) fn blame(failure: &Failure) -> Option<(String, String)> {
    match failure {
        Failure::Refused(Error::Unreadable { what, why }) => Some((what.clone(), why.clone())),
        Failure::Refused(Error::Illegal(illegal)) => Some(("state".to_owned(), illegal.to_string())),
        Failure::Refused(_) => None,
        Failure::Sqlite(error) => {
            let is_refused = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
            (is_refused || fault::is_about_a_value(error)).then(|| ("row".to_owned(), error.to_string()))
        }
        Failure::Panicked(why) => Some(("state".to_owned(), why.clone())),
    }
}

/// What is said of a panic that is about no run.
pub(super) fn panicked(why: String) -> Error {
    Error::Unreadable { what: "state".to_owned(), why }
}

/// Refuses a run that is set aside.
pub(super) fn check(connection: &Connection, no: i64, run: RunId) -> Done<()> {
    match read(connection, no)? {
        Some(found) => Err(refused(run, found).into()),
        None => Ok(()),
    }
}

/// Whether a run is set aside, for who could not read as much of it as to know its number.
pub(super) fn has(connection: &Connection, run: RunId) -> Done<bool> {
    let no: Option<i64> = connection
        .prepare_cached(sql!("quarantine_subject"))?
        .query_row([run.to_string()], |row| row.get(0))
        .optional()?;
    no.map_or(Ok(false), |no| Ok(read(connection, no)?.is_some()))
}

/// The refusal of a run that is set aside.
pub(super) fn refusal(connection: &Connection, no: i64, run: RunId) -> Done<Error> {
    Ok(read(connection, no)?.map_or_else(|| unreadable("quarantine", ""), |found| refused(run, found)))
}

fn refused(run: RunId, found: SetAside) -> Error {
    Error::SetAside { run: run.short(), what: found.what, why: found.why }
}

/// Why a run is set aside, if it is.
pub(super) fn read(connection: &Connection, no: i64) -> Done<Option<SetAside>> {
    Ok(connection
        .prepare_cached(sql!("quarantine_read"))?
        .query_row([no], |row| {
            Ok(SetAside { what: row.get(0)?, why: row.get(1)?, since: Millis(row.get(2)?) })
        })
        .optional()?)
}

/// Sets a run aside of which something does not fit, though nobody has stumbled over it: a history
/// that does not tell the state.
pub(super) fn set_aside_if_unfit(txn: &Txn<'_>, run: RunId) -> Done<Option<String>> {
    let no = super::read::run_no(txn.connection, run)?;
    let troubles = doctor::examine_run(txn.connection, &Plans::default(), run)?;
    let Some(trouble) = troubles.into_iter().next() else { return Ok(None) };
    let (what, why) = trouble.in_two();
    txn.shelf.forget();
    txn.connection.prepare_cached(sql!("quarantine_add"))?.execute(params![no, what, why, txn.now.0])?;
    Ok(Some(trouble.to_string()))
}

/// Takes a run out of the quarantine, if everything of it can be read. What was running when its
/// node died comes back as lost, as it would have then.
pub(super) fn release(txn: &Txn<'_>, run: RunId, max_lost: u32) -> Done<()> {
    let no = super::read::run_no(txn.connection, run)?;
    if read(txn.connection, no)?.is_none() {
        return Err(Error::NotSetAside { run }.into());
    }
    // A plan from the shelf may be older than the fault.
    if let Some(trouble) = doctor::examine_run(txn.connection, &Plans::default(), run)?.into_iter().next() {
        return Err(trouble.into());
    }
    txn.connection.prepare_cached(sql!("quarantine_remove"))?.execute([no])?;
    txn.shelf.forget();
    let held: Vec<(Position, u32, String, String, u32)> = txn
        .connection
        .prepare_cached(sql!("tasks_orphaned"))?
        .query_map([no], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?
        .collect::<rusqlite::Result<_>>()?;
    on_run(txn, run, |keeper| {
        for (position, attempt, session, node, generation) in held {
            let session =
                SessionId::parse(&session).ok_or_else(|| unreadable("session of a task", &session))?;
            let claim = ClaimRef { run, position, attempt, generation, session };
            keeper.lose(&claim, &node, max_lost)?;
        }
        Ok(())
    })?;
    children::released(txn, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_of_its_verb_and_is_blamed_on_the_run() {
        let empty: Vec<u32> = Vec::new();
        let failure = guard(|| Ok(empty[7])).expect_err("there is no seventh");
        let (what, why) = blame(&failure).expect("somebody is to blame");
        assert_eq!(what, "state");
        assert!(why.contains("out of bounds"), "{why}");
    }

    #[test]
    fn neither_the_disk_nor_a_refusal_is_blamed_on_the_run() {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        assert!(blame(&Failure::Sqlite(rusqlite::Error::SqliteFailure(full, None))).is_none());
        let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        assert!(blame(&Failure::Sqlite(rusqlite::Error::SqliteFailure(corrupt, None))).is_none());
        assert!(blame(&Failure::Refused(Error::NoSuchRun { name: "x".to_owned() })).is_none());
    }
}
