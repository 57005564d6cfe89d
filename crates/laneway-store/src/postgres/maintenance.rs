//! Retention, checks and quarantine.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::id::RunId;

use crate::contract::Maintenance;
use crate::error::{Error, Result};
use crate::examine;
use crate::model::{Examination, Horizon};
use crate::postgres::{PostgresStore, doctor, prune};
use crate::prune::{Keep, KeepRecords, Prunable, RECORD_TURNS, RECORDS_AT_ONCE, Swept};

#[async_trait]
impl Maintenance for PostgresStore {
    async fn prune_records(&self, keep: KeepRecords) -> Result<u64> {
        let mut gone = 0;
        for (record, kept) in keep.each() {
            for _ in 0..RECORD_TURNS {
                let said = self.base.write(|link, terms| async move {
                    prune::forget_records(&link, terms, record, kept).await
                });
                let some = said.await?;
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
            while self.base.write(|link, _| async move { prune::measure(&link).await }).await? > 0 {}
        }
        let now = self.base.now();
        self.base.ask(|link| async move { prune::choose(&link, now, keep, limit).await }).await
    }

    async fn prune(&self, run: RunId) -> Result<bool> {
        let pruned =
            self.base.change(|link, terms| async move { prune::prune(&link, terms, run).await }).await?;
        self.base.shelf.forget_run(run);
        Ok(pruned)
    }

    async fn sweep(&self) -> Result<Swept> {
        let (mut swept, mut after) = (Swept::default(), Some(String::new()));
        while let Some(last) = after {
            let last = &last;
            let (next, gone) = self
                .base
                .write(|link, terms| async move {
                    let mut gone = Swept::default();
                    Ok((prune::sweep(&link, terms, last, &mut gone).await?, gone))
                })
                .await?;
            swept.things += gone.things;
            swept.bytes += gone.bytes;
            after = next;
        }
        self.base.write(|link, terms| async move { prune::forget_keys(&link, terms).await }).await?;
        Ok(swept)
    }

    async fn set_aside(&self, run: RunId) -> Result<Option<String>> {
        let set = self
            .base
            .change(|link, terms| async move { doctor::set_aside_if_unfit(&link, terms, run).await })
            .await;
        self.base.shelf.forget_run(run);
        set
    }

    async fn release(&self, run: RunId) -> Result<()> {
        self.base
            .change(|link, terms| async move { doctor::release(&self.base.shelf, &link, terms, run).await })
            .await
    }

    async fn examine(&self, limit: usize) -> Result<Examination> {
        let mut examination = self
            .base
            .ask_at_once(|link| async move { doctor::examine(&link, self.base.now(), limit).await })
            .await?;
        examination.findings.extend(examine::of_no_run(self).await);
        Ok(examination)
    }

    async fn horizon(&self, at_least: Duration) -> Result<Option<Horizon>> {
        self.base.ask(|link| async move { doctor::horizon(&link, at_least).await }).await
    }

    async fn backup(&self, _: &Path) -> Result<()> {
        let why = format!("{} is copied by its own tools: `pg_dump`", self.base.target.address.shown);
        Err(Error::Address { why })
    }
}
