//! Results that steps take instead of being executed again. Looks are reads, on connections of
//! their own.

use async_trait::async_trait;
use laneway_core::artifact::ArtifactName;
use laneway_core::cache::{Miss, Parts, Recorded};
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};

use crate::cache::{
    Behind, COMPARED, FORGOTTEN, Forgotten, Found, Hit, KeepResults, Look, Missed, NewResult, ResultView,
    Unused, Which, beyond, miss_text,
};
use crate::contract::ResultCache;
use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::keeper::{stored, unreadable};
use crate::layer::NewLayer;
use crate::model::Artifact;
use crate::sqlite::SqliteStore;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{self, Done, Failure, Txn};

#[async_trait]
impl ResultCache for SqliteStore {
    async fn cached(&self, look: Look) -> Result<Found> {
        self.read(move |connection, shared| find(connection, shared.moment(connection)?, &look)).await
    }

    async fn remember(&self, result: NewResult) -> Result<()> {
        self.write(move |txn| remember(txn, &result)).await
    }

    async fn note_uses(&self, uses: Vec<(ContentHash, u64)>) -> Result<()> {
        self.write(move |txn| used(txn, &uses)).await
    }

    async fn note_miss(&self, claim: ClaimRef, miss: Miss) -> Result<Fate> {
        self.write(move |txn| note_miss(txn, &claim, &miss)).await
    }

    async fn missed(&self, run: RunId, step: &str) -> Result<Option<Missed>> {
        let step = step.to_owned();
        self.read(move |connection, shared| {
            let head = shared.head(connection, run)?;
            missed(connection, head.no, shared.position(&head, &step)?)
        })
        .await
    }

    async fn results(&self, which: Which, behind: Option<Behind>, limit: usize) -> Result<Vec<ResultView>> {
        self.read(move |connection, _| list(connection, &which, behind.as_ref(), limit)).await
    }

    async fn forget_results(&self, which: Which) -> Result<Forgotten> {
        let mut gone = Forgotten::default();
        loop {
            let (which, before) = (which.clone(), gone);
            let verb = move |txn: &mut txn::Txn<'_>| {
                let mut gone = before;
                let has_more = clear(txn, &which, &mut gone)?;
                Ok((gone, has_more))
            };
            let has_more;
            (gone, has_more) = self.write(verb).await?;
            if !has_more {
                return Ok(gone);
            }
        }
    }

    async fn prune_results(&self, keep: KeepResults) -> Result<Forgotten> {
        let mut gone = Forgotten::default();
        loop {
            let before = gone;
            let verb = move |txn: &mut txn::Txn<'_>| {
                let mut gone = before;
                let has_more = prune(txn, keep, &mut gone)?;
                Ok((gone, has_more))
            };
            let has_more;
            (gone, has_more) = self.write(verb).await?;
            if !has_more {
                return Ok(gone);
            }
        }
    }
}

pub(in crate::sqlite) fn find(connection: &Connection, now: Millis, look: &Look) -> Done<Found> {
    let mut find = connection.prepare_cached(sql!("cache_find"))?;
    let mut rows = find.query([look.key.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(Found::Others(others(connection, look)?)) };
    let (from, recorded_at) = (run(row, 0)?, Millis(row.get(1)?));
    if look.ttl.is_some_and(|ttl| recorded_at.after(ttl) <= now) {
        return Ok(Found::Expired { run: from, recorded_at });
    }
    let output: Option<String> = row.get(3)?;
    let hit = Hit {
        key: look.key.clone(),
        from,
        recorded_at,
        exit_code: row.get(2)?,
        output: output.map_or(Ok(Map::new()), |text| read_output(&text))?,
        artifacts: artifacts(connection, look.key.as_str())?,
        layer: layer(connection, look.key.as_str())?.map(Box::new),
    };
    Ok(Found::Hit(Box::new(hit)))
}

fn others(connection: &Connection, look: &Look) -> Done<Vec<Recorded>> {
    let mut statement = connection.prepare_cached(sql!("cache_of_step"))?;
    let mut rows = statement.query(params![look.workflow, look.step, COMPARED])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let parts: String = row.get(2)?;
        // One that another version of this program wrote is nothing to compare with.
        if let Some(parts) = Parts::parse(&parts) {
            found.push(Recorded { run: run(row, 0)?, at: Millis(row.get(1)?), parts });
        }
    }
    Ok(found)
}

fn artifacts(connection: &Connection, key: &str) -> Done<Vec<Artifact>> {
    let mut statement = connection.prepare_cached(sql!("cache_artifacts"))?;
    let mut rows = statement.query([key])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, hash): (String, String) = (row.get(0)?, row.get(1)?);
        found.push(Artifact {
            name: ArtifactName::parse(&name).map_err(|_| unreadable("name of an artifact", &name))?,
            hash: ContentHash::parse(&hash).ok_or_else(|| unreadable("hash of an artifact", &hash))?,
            size: row.get(2)?,
            is_executable: row.get(3)?,
        });
    }
    Ok(found)
}

fn layer(connection: &Connection, key: &str) -> Done<Option<NewLayer>> {
    let mut statement = connection.prepare_cached(sql!("cache_layer"))?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let found: Option<(u64, u64, String, Option<Vec<u8>>)> = statement.query_row([key], read).optional()?;
    let Some((paths, bytes, hash, packed)) = found else { return Ok(None) };
    let mut files = connection.prepare_cached(sql!("cache_layer_files"))?;
    let files: Vec<String> = files.query_map([key], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(Some(NewLayer::stored((paths, bytes), &hash, packed, files)?))
}

pub(in crate::sqlite) fn remember(txn: &Txn<'_>, result: &NewResult) -> Done<()> {
    let (output, parts) = (stored(result.output.clone()), result.parts.to_text());
    let key = result.key.as_str();
    txn.connection.prepare_cached(sql!("cache_remember"))?.execute(params![
        key,
        result.workflow,
        result.step,
        parts,
        result.run.to_string(),
        txn.now.0,
        i64::try_from(result.took.as_millis()).unwrap_or(i64::MAX),
        result.exit_code,
        output,
        result.bytes(output.as_deref(), &parts),
    ])?;
    clear_files(txn, key)?;
    if let Some(layer) = &result.layer {
        let (paths, bytes) = (i64::try_from(layer.paths), i64::try_from(layer.bytes));
        let (paths, bytes) = (paths.unwrap_or(i64::MAX), bytes.unwrap_or(i64::MAX));
        let row = params![key, paths, bytes, layer.hash.as_str(), layer.content.inline()];
        txn.connection.prepare_cached(sql!("cache_layer_set"))?.execute(row)?;
        let mut add = txn.connection.prepare_cached(sql!("cache_layer_file_add"))?;
        for hash in &layer.files {
            add.execute(params![key, hash.as_str()])?;
        }
    }
    let mut add = txn.connection.prepare_cached(sql!("cache_artifact_add"))?;
    for one in &result.artifacts {
        let size = i64::try_from(one.size).unwrap_or(i64::MAX);
        add.execute(params![key, one.name.as_str(), one.hash.as_str(), size, one.is_executable])?;
    }
    Ok(())
}

pub(in crate::sqlite) fn note_miss(
    txn: &Txn<'_>,
    claim: &ClaimRef,
    miss: &laneway_core::cache::Miss,
) -> Done<Fate> {
    let no = match txn.head(claim.run) {
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(Fate::ClaimLost),
        head => head?.no,
    };
    let noted = txn.connection.prepare_cached(sql!("cache_miss_note"))?.execute(params![
        no,
        claim.position,
        claim.generation,
        claim.session.to_string(),
        miss_text(miss)
    ])?;
    Ok(if noted == 0 { Fate::ClaimLost } else { Fate::Recorded })
}

pub(in crate::sqlite) fn missed(
    connection: &Connection,
    no: i64,
    position: Position,
) -> Done<Option<Missed>> {
    let mut statement = connection.prepare_cached(sql!("cache_miss"))?;
    let found: Option<(u32, String)> =
        statement.query_row(params![no, position], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let read = |(attempt, body): (u32, String)| {
        let miss = serde_json::from_str(&body).map_err(|_| unreadable("miss of the cache", &body))?;
        Ok(Missed { attempt, miss })
    };
    found.map(read).transpose()
}

pub(in crate::sqlite) fn used(txn: &Txn<'_>, uses: &[(ContentHash, u64)]) -> Done<()> {
    let mut update = txn.connection.prepare_cached(sql!("cache_used"))?;
    for (key, times) in uses {
        update.execute(params![key.as_str(), i64::try_from(*times).unwrap_or(i64::MAX), txn.now.0])?;
    }
    Ok(())
}

pub(in crate::sqlite) fn list(
    connection: &Connection,
    which: &Which,
    behind: Option<&Behind>,
    limit: usize,
) -> Done<Vec<ResultView>> {
    let mut statement = connection.prepare_cached(sql!("cache_list"))?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let (at, key) = behind.map_or((i64::MAX, ""), |behind| (behind.last_used_at.0, behind.key.as_str()));
    let mut rows = statement.query(params![which.workflow, which.step, at, key, most])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        found.push(ResultView {
            key: ContentHash::parse(&key).ok_or_else(|| unreadable("key of the cache", &key))?,
            workflow: row.get(1)?,
            step: row.get(2)?,
            run: run(row, 3)?,
            recorded_at: Millis(row.get(4)?),
            took_ms: row.get(5)?,
            bytes: row.get(6)?,
            hits: row.get(7)?,
            last_used_at: Millis(row.get(8)?),
        });
    }
    Ok(found)
}

/// Some of those that are meant go. Says whether there may be more.
pub(in crate::sqlite) fn clear(txn: &Txn<'_>, which: &Which, gone: &mut Forgotten) -> Done<bool> {
    let some = list(txn.connection, which, None, FORGOTTEN)?;
    for result in &some {
        forget(txn, (result.key.as_str(), result.bytes, i64::MAX), gone)?;
    }
    Ok(some.len() == FORGOTTEN)
}

/// Some of those that are kept no longer go. Says whether there may be more.
pub(in crate::sqlite) fn prune(txn: &Txn<'_>, keep: KeepResults, gone: &mut Forgotten) -> Done<bool> {
    let total = txn.connection.prepare_cached(sql!("cache_total"))?.query_row([], |row| row.get(0))?;
    let mut statement = txn.connection.prepare_cached(sql!("cache_unused"))?;
    let unused: Vec<Unused> = statement
        .query_map([FORGOTTEN as i64], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let going = beyond(keep, txn.now, total, &unused);
    for (key, bytes, used_at) in &going {
        forget(txn, (key, *bytes, *used_at), gone)?;
    }
    Ok(going.len() == FORGOTTEN)
}

fn forget(txn: &Txn<'_>, (key, bytes, used_at): (&str, u64, i64), gone: &mut Forgotten) -> Done<()> {
    if txn.connection.prepare_cached(sql!("cache_forget"))?.execute(params![key, used_at])? > 0 {
        clear_files(txn, key)?;
        gone.add(bytes);
    }
    Ok(())
}

/// Removes what belongs to a result beside its row.
fn clear_files(txn: &Txn<'_>, key: &str) -> Done<()> {
    let clear = [sql!("cache_artifacts_clear"), sql!("cache_layer_clear"), sql!("cache_layer_files_clear")];
    for clear in clear {
        txn.connection.prepare_cached(clear)?.execute([key])?;
    }
    Ok(())
}

fn run(row: &Row<'_>, column: usize) -> Done<RunId> {
    let text: String = row.get(column)?;
    Ok(RunId::parse(&text).ok_or_else(|| unreadable("run id", &text))?)
}

fn read_output(text: &str) -> Done<Map<String, Value>> {
    Ok(serde_json::from_str(text).map_err(|_| unreadable("output of a result", text))?)
}
