//! Bytes on Postgres: blobs in chunks, and logs as compressed chunks by claim, since no node can
//! read another's files.
//!
//! LZ4, because a node compresses what all of its steps print while they run: it costs a few
//! milliseconds a megabyte, halves text or better, and is pure Rust.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::Path;

use async_trait::async_trait;
use laneway_core::artifact::ArtifactName;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use lz4_flex::block::{compress, decompress};
use tokio_postgres::Row;

use crate::bytes::{BLOB_BATCH, BLOB_CHUNK, MAX_LOG_PART, admit, verify};
use crate::contract::Blobs;
use crate::error::{Error, Result};
use crate::fence::{ClaimRef, Fate};
use crate::layer::Layer;
use crate::model::{Artifact, ArtifactView, LogName, LogPart, LogPiece, Opened};
use crate::postgres::base::Base;
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row::{self, unreadable};
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::{Head, Shelf};
use crate::postgres::{PostgresStore, layers, read};
use crate::prune::TOUCH_AFTER;

#[async_trait]
impl Blobs for PostgresStore {
    async fn keep_blob(&self, bytes: Vec<u8>) -> Result<ContentHash> {
        let hash = admit(&bytes)?;
        keep_blob(&self.base, &hash, &bytes).await?;
        Ok(hash)
    }

    async fn blob(&self, hash: &ContentHash) -> Result<Vec<u8>> {
        self.base.ask(|link| async move { blob(&link, hash).await }).await
    }

    async fn keep_file(&self, path: &Path, shared_cap: u64) -> Result<(ContentHash, u64)> {
        let bytes = read_file(path, shared_cap)?;
        let hash = ContentHash::of(&bytes);
        keep_blob(&self.base, &hash, &bytes).await?;
        Ok((hash, bytes.len() as u64))
    }

    async fn fetch_file(&self, hash: &ContentHash, to: &Path) -> Result<()> {
        let bytes = self.blob(hash).await?;
        std::fs::write(to, bytes).map_err(|error| Error::Io { path: to.to_owned(), why: error.to_string() })
    }

    async fn open_file(&self, hash: &ContentHash) -> Result<Opened> {
        Ok(Opened::Bytes(self.blob(hash).await?))
    }

    async fn keep_artifacts(&self, claim: ClaimRef, artifacts: Vec<Artifact>) -> Result<Fate> {
        let artifacts = &artifacts;
        self.base
            .write(|link, _| async move { keep_artifacts(&self.base.shelf, &link, claim, artifacts).await })
            .await
    }

    async fn artifacts(&self, run: RunId) -> Result<Vec<ArtifactView>> {
        self.base
            .ask(|link| async move { artifacts(&link, &*self.base.shelf.head(&link, run).await?).await })
            .await
    }

    async fn layers(&self, run: RunId) -> Result<Vec<Layer>> {
        self.base
            .ask(
                |link| async move { layers::layers(&link, self.base.shelf.head(&link, run).await?.no).await },
            )
            .await
    }

    async fn packed_layer(
        &self,
        run: RunId,
        position: Position,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>> {
        self.base
            .ask(|link| async move {
                layers::packed(&link, self.base.shelf.head(&link, run).await?.no, position, hash).await
            })
            .await
    }

    async fn keep_logs(&self, pieces: Vec<LogPiece>) -> Result<Vec<Fate>> {
        let pieces = &pieces;
        self.base
            .write(|link, terms| async move { keep_logs(&self.base.shelf, &link, terms, pieces).await })
            .await
    }

    async fn log(&self, of: &LogName, offset: u64, limit: usize) -> Result<LogPart> {
        let range = (offset, limit);
        self.base.ask(|link| async move { read_log(&self.base.shelf, &link, of, range).await }).await
    }
}

/// The most of a log that is one row, before it is compressed; `log_read` counts on it.
pub(super) const LOG_CHUNK: usize = 256 << 10;

/// Brings what is not there.
pub(super) async fn keep_blob(base: &Base, hash: &ContentHash, bytes: &[u8]) -> Result<()> {
    while !bring(base, hash, bytes).await? {}
    Ok(())
}

/// Some chunks with each transaction, and last the word that it is whole. `false` if it was swept
/// meanwhile, for which it must have taken a day.
async fn bring(base: &Base, hash: &ContentHash, bytes: &[u8]) -> Result<bool> {
    let hash = hash.as_str();
    let lately = i64::try_from(TOUCH_AFTER.as_millis()).unwrap_or(i64::MAX);
    let is_there = base.write(|link, terms| async move {
        let now = terms.now.map(|now| now.0);
        let mut flight = link.begin(Begin::Write);
        flight.ask(sql!("blob_touch", TEXT, INT8, INT8), vec![&hash, &now, &lately]);
        flight.ask(sql!("blob_size", TEXT), vec![&hash]);
        Ok(flight.commit().await?.get(1).is_some_and(|rows| !rows.is_empty()))
    });
    if is_there.await? {
        return Ok(true);
    }
    let size = bytes.len() as i64;
    base.write(|link, terms| async move {
        let now = terms.now.map(|now| now.0);
        let mut flight = link.begin(Begin::Write);
        flight.ask(sql!("blob_begin", TEXT, INT8, INT8), vec![&hash, &size, &now]);
        flight.commit().await
    })
    .await?;
    let chunks: Vec<&[u8]> = bytes.chunks(BLOB_CHUNK).collect();
    for (batch, chunks) in chunks.chunks(BLOB_BATCH).enumerate() {
        let first = (batch * BLOB_BATCH) as i64;
        base.write(|link, _| async move {
            let numbers: Vec<i64> = (first..).take(chunks.len()).collect();
            let mut flight = link.begin(Begin::Write);
            flight.ask(sql!("blob_chunk_add", TEXT, INT8_ARRAY, BYTEA_ARRAY), vec![&hash, &numbers, &chunks]);
            flight.commit().await
        })
        .await?;
    }
    let count = chunks.len() as i64;
    base.write(|link, terms| async move {
        let now = terms.now.map(|now| now.0);
        let mut flight = link.begin(Begin::Write);
        flight.ask(sql!("blob_complete", TEXT, INT8, INT8), vec![&hash, &count, &now]);
        Ok(flight.commit().await?.first().is_some_and(|rows| !rows.is_empty()))
    })
    .await
}

pub(super) async fn has_blob(link: &Link, hash: &ContentHash) -> Done<bool> {
    Ok(link.row(sql!("blob_size", TEXT), &[&hash.as_str()]).await?.is_some())
}

/// In batches, so that no answer is large.
pub(super) async fn blob(link: &Link, hash: &ContentHash) -> Done<Vec<u8>> {
    if !has_blob(link, hash).await? {
        return Err(Error::NoSuchBlob { hash: hash.to_string() }.into());
    }
    let (mut bytes, mut next, limit) = (Vec::new(), 0_i64, BLOB_BATCH as i64);
    loop {
        let asked = sql!("blob_chunks", TEXT, INT8, INT8);
        let rows = link.rows(asked, &[&hash.as_str(), &next, &limit]).await?;
        for found in &rows {
            bytes.extend_from_slice(found.try_get(0)?);
        }
        next += rows.len() as i64;
        if rows.len() < BLOB_BATCH {
            return Ok(verify(hash, bytes)?);
        }
    }
}

/// What is in a file that is to be a blob, if it is small enough.
pub(super) fn read_file(path: &Path, cap: u64) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| Error::Io { path: path.to_owned(), why: error.to_string() };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    file.take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > cap {
        return Err(Error::TooLarge { size, limit: cap });
    }
    Ok(bytes)
}

/// All of them, or none: the claim is the same for all.
pub(super) async fn keep_artifacts(
    shelf: &Shelf,
    link: &Link,
    claim: ClaimRef,
    artifacts: &[Artifact],
) -> Done<Fate> {
    let Some(head) = shelf.held(link, claim.run).await? else { return Ok(Fate::ClaimLost) };
    let no = head.no;
    let (position, generation) = (i64::from(claim.position), i64::from(claim.generation));
    let session = claim.session.to_string();
    let names: Vec<&str> = artifacts.iter().map(|one| one.name.as_str()).collect();
    let hashes: Vec<&str> = artifacts.iter().map(|one| one.hash.as_str()).collect();
    let sizes: Vec<i64> = artifacts.iter().map(|one| i64::try_from(one.size).unwrap_or(i64::MAX)).collect();
    let executable: Vec<bool> = artifacts.iter().map(|one| one.is_executable).collect();
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("artifact_add", INT8, INT8, INT8, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, BOOL_ARRAY),
        vec![&no, &position, &generation, &session, &names, &hashes, &sizes, &executable],
    );
    let answers = flight.commit().await?;
    let added = answers.first().map_or(0, Vec::len);
    Ok(if added == artifacts.len() { Fate::Recorded } else { Fate::ClaimLost })
}

pub(super) async fn artifacts(link: &Link, head: &Head) -> Done<Vec<ArtifactView>> {
    let rows = link.rows(sql!("artifacts", INT8), &[&head.no]).await?;
    let view = |found: &Row| {
        let position: Position = row::number(found, 0)?;
        let artifact = Artifact {
            name: row::word(found, 2, "name of an artifact", |text| ArtifactName::parse(text).ok())?,
            hash: row::word(found, 3, "hash of an artifact", ContentHash::parse)?,
            size: row::number(found, 4)?,
            is_executable: found.try_get(5)?,
        };
        let step = head.head.plan.task_name(position);
        Ok(ArtifactView { step, attempt: row::number(found, 1)?, artifact })
    };
    rows.iter().map(view).collect()
}

/// Pieces of however many logs, as one statement. It is not waited for the disk: the end of an
/// attempt, which is, comes behind it and brings it along.
pub(super) async fn keep_logs(shelf: &Shelf, link: &Link, _: Terms, pieces: &[LogPiece]) -> Done<Vec<Fate>> {
    let mut numbers = HashMap::new();
    for piece in pieces {
        if let std::collections::hash_map::Entry::Vacant(entry) = numbers.entry(piece.claim.run) {
            // No run has this number: of one that is gone nothing is held.
            entry.insert(shelf.held(link, piece.claim.run).await?.map_or(0, |head| head.no));
        }
    }
    let rows = Rows::of(pieces, &numbers);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("commit_lazily"), Vec::new());
    flight.ask(
        sql!("log_add", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY),
        vec![
            &rows.run,
            &rows.position,
            &rows.generation,
            &rows.session,
            &rows.start,
            &rows.length,
            &rows.bytes,
        ],
    );
    let answers = flight.commit().await?;
    let mut good: HashSet<(i64, i64, i64, String)> = HashSet::new();
    for found in answers.get(1).into_iter().flatten() {
        good.insert((found.try_get(0)?, found.try_get(1)?, found.try_get(2)?, row::text(found, 3)?));
    }
    let fate = |claim: &ClaimRef| {
        let (no, position) = (numbers[&claim.run], i64::from(claim.position));
        let key = (no, position, i64::from(claim.generation), claim.session.to_string());
        if good.contains(&key) { Fate::Recorded } else { Fate::ClaimLost }
    };
    Ok(pieces.iter().map(|piece| fate(&piece.claim)).collect())
}

/// The columns of `log_chunks`, and the fence.
#[derive(Debug, Default)]
struct Rows {
    run: Vec<i64>,
    position: Vec<i64>,
    generation: Vec<i64>,
    session: Vec<String>,
    start: Vec<i64>,
    length: Vec<i64>,
    bytes: Vec<Vec<u8>>,
}

impl Rows {
    fn of(pieces: &[LogPiece], numbers: &HashMap<laneway_core::id::RunId, i64>) -> Self {
        let mut rows = Self::default();
        for piece in pieces {
            let mut start = piece.start;
            for chunk in piece.bytes.chunks(LOG_CHUNK) {
                rows.run.push(numbers[&piece.claim.run]);
                rows.position.push(i64::from(piece.claim.position));
                rows.generation.push(i64::from(piece.claim.generation));
                rows.session.push(piece.claim.session.to_string());
                rows.start.push(i64::try_from(start).unwrap_or(i64::MAX));
                rows.length.push(chunk.len() as i64);
                rows.bytes.push(compress(chunk));
                start += chunk.len() as u64;
            }
        }
        rows
    }
}

/// A range of a log, up to the first gap: a piece that is missing would shift what stands behind
/// it.
pub(super) async fn read_log(
    shelf: &Shelf,
    link: &Link,
    of: &LogName,
    (offset, limit): (u64, usize),
) -> Done<LogPart> {
    let head = shelf.head(link, of.run).await?;
    let (position, attempt) = (i64::from(read::position(&head, &of.step)?), i64::from(of.attempt));
    let from = i64::try_from(offset).unwrap_or(i64::MAX);
    let to = from.saturating_add(limit.min(MAX_LOG_PART) as i64);
    let mut flight = link.flight();
    flight.ask(sql!("log_size", INT8, INT8, INT8), vec![&head.no, &position, &attempt]);
    flight
        .ask(sql!("log_read", INT8, INT8, INT8, INT8, INT8), vec![&head.no, &position, &attempt, &from, &to]);
    let answers = flight.land().await?;
    let [size, chunks] = answers.as_slice() else { return Ok(LogPart::default()) };
    let mut part = LogPart::default();
    if let Some(found) = size.first() {
        part.size = row::number(found, 0)?;
        part.may_lack_end = found.try_get(1)?;
    }
    let mut next = from;
    for found in chunks {
        let (start, length): (i64, i64) = (found.try_get(0)?, found.try_get(1)?);
        if start + length <= next {
            continue;
        }
        if start > next {
            break;
        }
        // Whoever wrote the row, no more than a chunk is made of it.
        let size = usize::try_from(length).ok().filter(|size| *size <= LOG_CHUNK);
        let size = size.ok_or_else(|| unreadable("chunk of a log", &length.to_string()))?;
        let chunk = decompress(found.try_get(2)?, size)
            .map_err(|error| unreadable("chunk of a log", &error.to_string()))?;
        let skip = usize::try_from(next - start).unwrap_or(usize::MAX);
        let end = usize::try_from((to - start).min(length)).unwrap_or(0).min(chunk.len());
        part.bytes.extend_from_slice(chunk.get(skip..end).unwrap_or_default());
        next = start + end as i64;
    }
    Ok(part)
}
