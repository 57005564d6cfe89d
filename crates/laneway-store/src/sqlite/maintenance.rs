//! Retention, checks, quarantine and backup of an embedded store. Rows go first: the next sweep
//! finds the files that a crash leaves behind.

use std::fs;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::id::RunId;
use laneway_core::time::Millis;

use crate::bytes::workspaces_dir;
use crate::contract::Maintenance;
use crate::error::{Error, Result};
use crate::examine;
use crate::model::{Examination, Horizon};
use crate::prune::{
    HOLD_BYTES, HOLD_KEYS, Keep, KeepRecords, Prunable, RECORD_TURNS, RECORDS_AT_ONCE, SWEEP_ROWS, Swept,
};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::Done;
use crate::sqlite::{SqliteStore, backup, blobs, data_dir, doctor, files, prune, quarantine};

#[async_trait]
impl Maintenance for SqliteStore {
    async fn prune_records(&self, keep: KeepRecords) -> Result<u64> {
        let mut gone = 0;
        for (record, kept) in keep.each() {
            for _ in 0..RECORD_TURNS {
                let some = self.write(move |txn| prune::forget_records(txn, record, kept)).await?;
                gone += some as u64;
                if (some as i64) < RECORDS_AT_ONCE {
                    break;
                }
            }
        }
        Ok(gone)
    }

    async fn prunable(&self, keep: Keep, limit: usize) -> Result<Vec<Prunable>> {
        if keep.bytes.is_some() {
            self.measure().await?;
        }
        let dir = self.dir.clone();
        self.read(move |connection, shared| {
            let mut chosen = prune::choose(connection, keep, shared.moment(connection)?, limit)?;
            for (no, choice) in &mut chosen {
                choice.bytes = prune::size(connection, *no)? + size_of(&logs_of(&dir, choice.run));
            }
            // As long as there are more that go in any case, nobody knows what will be left.
            if let Some(keep) = keep.bytes.filter(|_| chosen.len() < limit) {
                let oldest = prune::choose_oldest(connection, keep, &chosen, limit)?;
                chosen.extend(oldest);
                chosen.sort_unstable_by_key(|(no, _)| *no);
                chosen.truncate(limit);
            }
            Ok(chosen.into_iter().map(|(_, choice)| choice).collect())
        })
        .await
    }

    async fn prune(&self, run: RunId) -> Result<bool> {
        let begun = self
            .write(move |txn| {
                let Some(going) = prune::begin(txn, run)? else { return Ok(None) };
                if going.chunks() <= 1 {
                    prune::remove(txn, going, 1)?;
                    prune::end(txn, going)?;
                }
                Ok(Some(going))
            })
            .await?;
        let Some(going) = begun else { return Ok(false) };
        if going.chunks() > 1 {
            for chunk in 1..=going.chunks() {
                self.write(move |txn| prune::remove(txn, going, chunk)).await?;
            }
            self.write(move |txn| prune::end(txn, going)).await?;
        }
        let (dir, logs) = (self.dir.clone(), logs_of(&self.dir, run));
        let workspace = workspaces_dir(&self.dir, self.instance).join(run.to_string());
        blocking(move || {
            // Whoever copies the store has copied the run.
            let _alone = files::hold_alone(&dir)?;
            remove_all(&logs);
            remove_all(&workspace);
            Ok(true)
        })
        .await?
    }

    async fn sweep(&self) -> Result<Swept> {
        let mut swept = Swept::default();
        let now = self.read(|connection, shared| shared.moment(connection)).await?;
        let before = now.before(HOLD_BYTES);
        let mut after = String::new();
        loop {
            let from = std::mem::take(&mut after);
            let found: Vec<String> = self
                .read(move |connection, _| {
                    let mut choose = connection.prepare_cached(sql!("sweep_choose"))?;
                    let hashes = choose
                        .query_map(rusqlite::params![from, before.0, SWEEP_ROWS], |row| row.get(0))?
                        .collect::<rusqlite::Result<_>>()?;
                    Ok(hashes)
                })
                .await?;
            let Some(last) = found.last() else { break };
            last.clone_into(&mut after);
            for hash in found {
                if let Some(size) = self.write(move |txn| blobs::sweep(txn, &hash, before)).await? {
                    swept.add(size);
                }
            }
        }
        self.write(move |txn| {
            let mut forget = txn.connection.prepare_cached(sql!("used_keys_forget"))?;
            Ok(forget.execute([txn.now.before(HOLD_KEYS).0, 1_000])?)
        })
        .await?;
        // Files in a directory that two stores share may belong to either.
        let (path, dir) = (self.path.clone(), self.dir.clone());
        if !blocking(move || data_dir::has_neighbor(&path, &dir)).await? {
            self.sweep_files(before, &mut swept).await?;
            self.sweep_logs(before, &mut swept).await?;
        }
        Ok(swept)
    }

    async fn set_aside(&self, run: RunId) -> Result<Option<String>> {
        self.write(move |txn| quarantine::set_aside_if_unfit(txn, run)).await
    }

    async fn release(&self, run: RunId) -> Result<()> {
        let max_lost = self.max_lost;
        self.write(move |txn| quarantine::release(txn, run, max_lost)).await
    }

    async fn examine(&self, limit: usize) -> Result<Examination> {
        let examined = self.read(move |connection, shared| doctor::examine(connection, shared, limit)).await;
        let mut examination = examined?;
        examination.findings.extend(examine::of_no_run(self).await);
        Ok(examination)
    }

    // Readers are short, and the write-ahead log is cut behind them.
    async fn horizon(&self, _: Duration) -> Result<Option<Horizon>> {
        Ok(None)
    }

    async fn backup(&self, to: &Path) -> Result<()> {
        let (from, to) = (self.path.clone(), to.to_owned());
        let made = tokio::task::spawn_blocking(move || backup::backup(&from, &to));
        made.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }
}

/// Runs that are measured with one transaction.
const MEASURED: i64 = 200;

impl SqliteStore {
    /// What all runs that are over take up, as far as that is not known.
    async fn measure(&self) -> Result<()> {
        loop {
            let dir = self.dir.clone();
            let sizes: Vec<(i64, i64, u64)> = self
                .read(move |connection, _| {
                    let each = prune::unmeasured(connection, MEASURED)?.into_iter();
                    each.map(|(no, run, last_event)| {
                        Ok((no, last_event, prune::size(connection, no)? + size_of(&logs_of(&dir, run))))
                    })
                    .collect::<Done<_>>()
                })
                .await?;
            if sizes.is_empty() {
                return Ok(());
            }
            self.write(move |txn| prune::measured(txn, &sizes)).await?;
        }
    }

    /// Artifacts that nothing names any more. One at a time, under a lock for which those who keep
    /// some wait: what is put in the place of an old file, or named, cannot come in between.
    async fn sweep_files(&self, before: Millis, swept: &mut Swept) -> Result<()> {
        let dir = self.dir.clone();
        for old in blocking(move || files::older(&dir, before)).await? {
            let dir = self.dir.clone();
            let gone = self
                .read(move |connection, _| {
                    let _alone = files::hold_alone(&dir)?;
                    let mut named = connection.prepare_cached(sql!("sweep_is_named"))?;
                    // The transaction of this question begins with its first statement, behind the
                    // lock.
                    if named.exists([&old])? { Ok(None) } else { Ok(files::remove(&dir, &old, before)?) }
                })
                .await?;
            if let Some(size) = gone {
                swept.add(size);
            }
        }
        Ok(())
    }

    /// Logs of runs that are gone: whoever removed the rows died before it removed them.
    async fn sweep_logs(&self, before: Millis, swept: &mut Swept) -> Result<()> {
        let logs = self.dir.join("logs");
        for (run, path) in blocking(move || files::runs_within(&logs, before)).await? {
            let is_known = self
                .read(move |connection, _| {
                    Ok(connection.prepare_cached(sql!("examine_known"))?.exists([run.to_string()])?)
                })
                .await?;
            if !is_known {
                swept.add(blocking(move || remove_all(&path)).await?);
            }
        }
        Ok(())
    }
}

fn logs_of(dir: &Path, run: RunId) -> std::path::PathBuf {
    dir.join("logs").join(run.to_string())
}

/// What the files of a directory take up.
fn size_of(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

/// Gives what it took up. What cannot be removed stays until the next sweep.
fn remove_all(dir: &Path) -> u64 {
    let size = size_of(dir);
    match fs::remove_dir_all(dir) {
        Ok(()) => size,
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!("{} cannot be removed: {error}", dir.display());
            }
            0
        }
    }
}

pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Closed { why: error.to_string() })
}
