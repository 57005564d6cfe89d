//! Bytes of an embedded store: blobs are rows, in chunks; logs are files beside it, which the
//! attempts of this host write themselves. What is said here of logs is for whoever reads them, and
//! for workers that are elsewhere.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::artifact::ArtifactName;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use crate::bytes::{BLOB_BATCH, BLOB_CHUNK, MAX_LOG_PART, admit, log_path, verify};
use crate::contract::Blobs;
use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::keeper::{no_such_step, unreadable};
use crate::layer::Layer;
use crate::model::{Artifact, ArtifactView, LogName, LogPart, LogPiece, Opened};
use crate::private;
use crate::prune::TOUCH_AFTER;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Failure, Head, Plans, Txn};
use crate::sqlite::{SqliteStore, files, layers, maintenance, read_head};

#[async_trait]
impl Blobs for SqliteStore {
    async fn keep_blob(&self, bytes: Vec<u8>) -> Result<ContentHash> {
        let (hash, bytes) = (admit(&bytes)?, Arc::new(bytes));
        while !self.bring(&hash, &bytes).await? {}
        Ok(hash)
    }

    async fn blob(&self, hash: &ContentHash) -> Result<Vec<u8>> {
        let hash = hash.clone();
        self.read(move |connection, _| blob(connection, &hash)).await
    }

    async fn keep_file(&self, path: &Path, _shared_cap: u64) -> Result<(ContentHash, u64)> {
        let (dir, path) = (self.dir.clone(), path.to_owned());
        let kept = tokio::task::spawn_blocking(move || files::keep(&dir, &path));
        kept.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }

    async fn fetch_file(&self, hash: &ContentHash, to: &Path) -> Result<()> {
        let (dir, hash, to) = (self.dir.clone(), hash.clone(), to.to_owned());
        let fetched = tokio::task::spawn_blocking(move || files::fetch(&dir, &hash, &to));
        fetched.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }

    async fn open_file(&self, hash: &ContentHash) -> Result<Opened> {
        let (dir, hash) = (self.dir.clone(), hash.clone());
        Ok(Opened::File(maintenance::blocking(move || files::open(&dir, &hash)).await??))
    }

    async fn keep_artifacts(&self, claim: ClaimRef, artifacts: Vec<Artifact>) -> Result<Fate> {
        // Until they are named: whoever sweeps waits, and finds them named.
        let dir = self.dir.clone();
        let held = maintenance::blocking(move || files::hold(&dir)).await??;
        let fate = self.write(move |txn| keep_artifacts(txn, &claim, &artifacts)).await;
        drop(held);
        fate
    }

    async fn artifacts(&self, run: RunId) -> Result<Vec<ArtifactView>> {
        self.read(move |connection, shared| artifacts(connection, &shared.head(connection, run)?)).await
    }

    async fn layers(&self, run: RunId) -> Result<Vec<Layer>> {
        self.read(move |connection, shared| layers::layers(connection, shared.head(connection, run)?.no))
            .await
    }

    async fn packed_layer(
        &self,
        run: RunId,
        position: Position,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>> {
        let hash = hash.clone();
        self.read(move |connection, shared| {
            layers::packed(connection, shared.head(connection, run)?.no, position, &hash)
        })
        .await
    }

    async fn keep_logs(&self, pieces: Vec<LogPiece>) -> Result<Vec<Fate>> {
        let dir = self.dir.clone();
        self.read(move |connection, shared| {
            let each = pieces.iter().map(|piece| {
                Ok(match holder(connection, &shared.plans, piece)? {
                    Some(step) => write_piece(&dir, &step, piece)?,
                    None => Fate::ClaimLost,
                })
            });
            each.collect()
        })
        .await
    }

    async fn log(&self, of: &LogName, offset: u64, limit: usize) -> Result<LogPart> {
        let (of, dir) = (of.clone(), self.dir.clone());
        self.read(move |connection, shared| {
            position(connection, &shared.plans, &of)?;
            Ok(read_log(&dir, &of, offset, limit)?)
        })
        .await
    }
}

impl SqliteStore {
    /// Brings what is not there: some chunks with each transaction, and last the word that it is
    /// whole. `false` if it was swept meanwhile, for which it must have taken a day.
    async fn bring(&self, hash: &ContentHash, bytes: &Arc<Vec<u8>>) -> Result<bool> {
        let asked = hash.clone();
        let is_fresh = self
            .read(move |connection, shared| {
                let lately = shared.moment(connection)?.before(TOUCH_AFTER);
                Ok(touched_at(connection, &asked)?.map(|at| at > lately))
            })
            .await?;
        match is_fresh {
            Some(true) => return Ok(true),
            Some(false) => {
                let hash = hash.clone();
                if self.write(move |txn| touch(txn, &hash)).await? {
                    return Ok(true);
                }
            }
            None => {}
        }
        let (begun, size) = (hash.clone(), bytes.len());
        self.write(move |txn| begin(txn, &begun, size)).await?;
        for batch in 0..size.div_ceil(BLOB_CHUNK).div_ceil(BLOB_BATCH) {
            let (hash, bytes) = (hash.clone(), Arc::clone(bytes));
            self.write(move |txn| add_chunks(txn, &hash, &bytes, batch)).await?;
        }
        let hash = hash.clone();
        self.write(move |txn| complete(txn, &hash, size)).await
    }
}

pub(super) fn has_blob(connection: &Connection, hash: &ContentHash) -> Done<bool> {
    let mut statement = connection.prepare_cached(sql!("blob_size"))?;
    let size: Option<i64> = statement.query_row([hash.as_str()], |row| row.get(0)).optional()?;
    Ok(size.is_some())
}

/// Whether all of a blob is there, and when somebody last brought it.
pub(super) fn touched_at(connection: &Connection, hash: &ContentHash) -> Done<Option<Millis>> {
    let mut statement = connection.prepare_cached(sql!("blob_touched"))?;
    Ok(statement.query_row([hash.as_str()], |row| Ok(Millis(row.get(0)?))).optional()?)
}

/// It is brought again. Says whether all of it is there.
pub(super) fn touch(txn: &Txn<'_>, hash: &ContentHash) -> Done<bool> {
    let mut update = txn.connection.prepare_cached(sql!("blob_touch"))?;
    Ok(update.execute(params![hash.as_str(), txn.now.0])? > 0)
}

/// Before the first chunk.
pub(super) fn begin(txn: &Txn<'_>, hash: &ContentHash, size: usize) -> Done<()> {
    let mut insert = txn.connection.prepare_cached(sql!("blob_begin"))?;
    insert.execute(params![hash.as_str(), size as i64, txn.now.0])?;
    Ok(())
}

/// Some chunks of a blob, from a batch on.
pub(super) fn add_chunks(txn: &Txn<'_>, hash: &ContentHash, bytes: &[u8], batch: usize) -> Done<()> {
    let mut insert = txn.connection.prepare_cached(sql!("blob_chunk_add"))?;
    let chunks = bytes.chunks(BLOB_CHUNK).enumerate().skip(batch * BLOB_BATCH).take(BLOB_BATCH);
    for (no, chunk) in chunks {
        insert.execute(params![hash.as_str(), no as i64, chunk])?;
    }
    Ok(())
}

/// Behind the last chunk. Says whether all of them are there.
pub(super) fn complete(txn: &Txn<'_>, hash: &ContentHash, size: usize) -> Done<bool> {
    let mut update = txn.connection.prepare_cached(sql!("blob_complete"))?;
    let chunks = size.div_ceil(BLOB_CHUNK) as i64;
    Ok(update.execute(params![hash.as_str(), chunks, txn.now.0])? > 0)
}

/// Removes a blob, if nobody brought it since and nothing refers to it. Gives its size.
pub(super) fn sweep(txn: &Txn<'_>, hash: &str, before: Millis) -> Done<Option<u64>> {
    let mut delete = txn.connection.prepare_cached(sql!("sweep_blob"))?;
    let size: Option<u64> = delete.query_row(params![hash, before.0], |row| row.get(0)).optional()?;
    if size.is_some() {
        txn.connection.prepare_cached(sql!("sweep_chunks"))?.execute([hash])?;
    }
    Ok(size)
}

pub(super) fn blob(connection: &Connection, hash: &ContentHash) -> Done<Vec<u8>> {
    if !has_blob(connection, hash)? {
        return Err(Error::NoSuchBlob { hash: hash.to_string() }.into());
    }
    let mut bytes = Vec::new();
    let mut statement = connection.prepare_cached(sql!("blob_chunks"))?;
    let mut rows = statement.query(params![hash.as_str(), 0, i64::MAX])?;
    while let Some(row) = rows.next()? {
        bytes.extend_from_slice(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?);
    }
    Ok(verify(hash, bytes)?)
}

/// All of them, or none: the claim is the same for all.
pub(super) fn keep_artifacts(txn: &Txn<'_>, claim: &ClaimRef, artifacts: &[Artifact]) -> Done<Fate> {
    let no = match txn.head(claim.run) {
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(Fate::ClaimLost),
        head => head?.no,
    };
    let mut insert = txn.connection.prepare_cached(sql!("artifact_add"))?;
    for one in artifacts {
        let added = insert.execute(params![
            no,
            claim.position,
            claim.generation,
            claim.session.to_string(),
            one.name.as_str(),
            one.hash.as_str(),
            i64::try_from(one.size).unwrap_or(i64::MAX),
            one.is_executable
        ])?;
        if added == 0 {
            return Ok(Fate::ClaimLost);
        }
    }
    Ok(Fate::Recorded)
}

pub(super) fn artifacts(connection: &Connection, head: &Head) -> Done<Vec<ArtifactView>> {
    let mut statement = connection.prepare_cached(sql!("artifacts"))?;
    let mut rows = statement.query([head.no])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (position, name, hash): (Position, String, String) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let artifact = Artifact {
            name: ArtifactName::parse(&name).map_err(|_| unreadable("name of an artifact", &name))?,
            hash: ContentHash::parse(&hash).ok_or_else(|| unreadable("hash of an artifact", &hash))?,
            size: row.get(4)?,
            is_executable: row.get(5)?,
        };
        let step = head.head.plan.task_name(position);
        found.push(ArtifactView { step, attempt: row.get(1)?, artifact });
    }
    Ok(found)
}

/// The fence, and the step's name for its file.
pub(super) fn holder(connection: &Connection, plans: &Plans, piece: &LogPiece) -> Done<Option<String>> {
    let claim = &piece.claim;
    let mut statement = connection.prepare_cached(sql!("log_claim"))?;
    let held: Option<i64> = statement
        .query_row(
            params![claim.run.to_string(), claim.position, claim.generation, claim.session.to_string()],
            |row| row.get(0),
        )
        .optional()?;
    if held.is_none() {
        return Ok(None);
    }
    let head = read_head(connection, plans, claim.run)?;
    Ok(Some(head.head.plan.task_name(claim.position)))
}

/// Puts a piece where it belongs. Twice is as good as once.
pub(super) fn write_piece(dir: &Path, step: &str, piece: &LogPiece) -> Result<Fate, Error> {
    let path = log_path(dir, piece.claim.run, step, piece.claim.attempt);
    let write = || -> io::Result<()> {
        if let Some(parent) = path.parent() {
            private::create_dir_all(parent)?;
        }
        let file = private::options().write(true).create(true).truncate(false).open(&path)?;
        file.write_all_at(&piece.bytes, piece.start)
    };
    write().map(|()| Fate::Recorded).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull => Error::Full { path: path.clone() },
        _ => Error::Io { path: path.clone(), why: error.to_string() },
    })
}

/// Refuses a run or a step that is not there.
pub(super) fn position(connection: &Connection, plans: &Plans, of: &LogName) -> Done<Position> {
    let head = read_head(connection, plans, of.run)?;
    head.head.plan.position(&of.step).ok_or_else(|| no_such_step(&head.head, &of.step).into())
}

/// A range of a file. An attempt that printed nothing has none.
pub(super) fn read_log(dir: &Path, of: &LogName, offset: u64, limit: usize) -> Result<LogPart, Error> {
    let path = log_path(dir, of.run, &of.step, of.attempt);
    let read = || -> io::Result<LogPart> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LogPart::default()),
            Err(error) => return Err(error),
        };
        let size = file.metadata()?.len();
        let wanted = size.saturating_sub(offset).min(limit.min(MAX_LOG_PART) as u64);
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(0)];
        let mut have = 0;
        // A file may become shorter: half a frame is cut off again when the disk is full.
        while have < bytes.len() {
            match file.read_at(&mut bytes[have..], offset + have as u64)? {
                0 => break,
                read => have += read,
            }
        }
        bytes.truncate(have);
        Ok(LogPart { bytes, size, may_lack_end: false })
    };
    read().map_err(|error| Error::Io { path: path.clone(), why: error.to_string() })
}
