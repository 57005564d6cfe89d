//! Results that steps take instead of being executed again. Looks are plain reads: nobody who
//! writes holds them up.

use async_trait::async_trait;
use laneway_core::artifact::ArtifactName;
use laneway_core::cache::{Miss, Parts, Recorded};
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::cache::{
    Behind, COMPARED, FORGOTTEN, Forgotten, Found, Hit, KeepResults, Look, Missed, NewResult, ResultView,
    Unused, Which, beyond, miss_text,
};
use crate::contract::ResultCache;
use crate::error::Result;
use crate::fence::{ClaimRef, Fate};
use crate::keeper::stored;
use crate::layer::NewLayer;
use crate::model::Artifact;
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::{Head, Shelf};
use crate::postgres::{PostgresStore, read, row};

#[async_trait]
impl ResultCache for PostgresStore {
    async fn cached(&self, look: Look) -> Result<Found> {
        let (look, now) = (&look, self.base.now());
        // The files of a result that is being replaced are not those of its output.
        self.base.ask_at_once(|link| async move { find(&link, now, look).await }).await
    }

    async fn remember(&self, result: NewResult) -> Result<()> {
        let result = &result;
        self.base.write(|link, terms| async move { remember(&link, terms, result).await }).await
    }

    async fn note_uses(&self, uses: Vec<(ContentHash, u64)>) -> Result<()> {
        let uses = &uses;
        self.base.write(|link, terms| async move { used(&link, terms, uses).await }).await
    }

    async fn note_miss(&self, claim: ClaimRef, miss: Miss) -> Result<Fate> {
        let (shelf, miss) = (&self.base.shelf, &miss);
        self.base.write(|link, _| async move { note_miss(shelf, &link, claim, miss).await }).await
    }

    async fn missed(&self, run: RunId, step: &str) -> Result<Option<Missed>> {
        self.base
            .ask(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                missed(&link, &head, read::position(&head, step)?).await
            })
            .await
    }

    async fn results(&self, which: Which, behind: Option<Behind>, limit: usize) -> Result<Vec<ResultView>> {
        let (which, behind) = (&which, behind.as_ref());
        self.base.ask(|link| async move { list(&link, which, behind, limit).await }).await
    }

    async fn forget_results(&self, which: Which) -> Result<Forgotten> {
        let (which, mut all) = (&which, Forgotten::default());
        loop {
            let said = self.base.write(|link, _| async move { clear(&link, which).await });
            let (gone, has_more) = said.await?;
            all = Forgotten { results: all.results + gone.results, bytes: all.bytes + gone.bytes };
            if !has_more {
                return Ok(all);
            }
        }
    }

    async fn prune_results(&self, keep: KeepResults) -> Result<Forgotten> {
        let mut all = Forgotten::default();
        loop {
            let said = self.base.write(|link, terms| async move { prune(&link, terms, keep).await });
            let (gone, has_more) = said.await?;
            all = Forgotten { results: all.results + gone.results, bytes: all.bytes + gone.bytes };
            if !has_more {
                return Ok(all);
            }
        }
    }
}

pub(in crate::postgres) async fn find(link: &Link, now: Option<Millis>, look: &Look) -> Done<Found> {
    let (key, now) = (look.key.as_str(), now.map(|now| now.0));
    let Some(found) = link.row(sql!("cache_find", TEXT, INT8), &[&key, &now]).await? else {
        return Ok(Found::Others(others(link, look).await?));
    };
    let (from, recorded_at) = (row::word(&found, 0, "run id", RunId::parse)?, Millis(found.try_get(1)?));
    let now = Millis(found.try_get(4)?);
    if look.ttl.is_some_and(|ttl| recorded_at.after(ttl) <= now) {
        return Ok(Found::Expired { run: from, recorded_at });
    }
    let hit = Hit {
        key: look.key.clone(),
        from,
        recorded_at,
        exit_code: row::maybe_number(&found, 2)?,
        output: row::output(&found, 3)?,
        artifacts: artifacts(link, key).await?,
        layer: layer(link, key).await?.map(Box::new),
    };
    Ok(Found::Hit(Box::new(hit)))
}

async fn others(link: &Link, look: &Look) -> Done<Vec<Recorded>> {
    let asked = sql!("cache_of_step", TEXT, TEXT, INT8);
    let mut found = Vec::new();
    for one in link.rows(asked, &[&look.workflow, &look.step, &COMPARED]).await? {
        // One that another version of this program wrote is nothing to compare with.
        if let Some(parts) = Parts::parse(&row::text(&one, 2)?) {
            let run = row::word(&one, 0, "run id", RunId::parse)?;
            found.push(Recorded { run, at: Millis(one.try_get(1)?), parts });
        }
    }
    Ok(found)
}

async fn artifacts(link: &Link, key: &str) -> Done<Vec<Artifact>> {
    let read = |found: &Row| {
        Ok(Artifact {
            name: row::word(found, 0, "name of an artifact", |text| ArtifactName::parse(text).ok())?,
            hash: row::word(found, 1, "hash of an artifact", ContentHash::parse)?,
            size: row::number(found, 2)?,
            is_executable: found.try_get(3)?,
        })
    };
    link.rows(sql!("cache_artifacts", TEXT), &[&key]).await?.iter().map(read).collect()
}

async fn layer(link: &Link, key: &str) -> Done<Option<NewLayer>> {
    let Some(found) = link.row(sql!("cache_layer", TEXT), &[&key]).await? else { return Ok(None) };
    let size = (row::number(&found, 0)?, row::number(&found, 1)?);
    let layer = NewLayer::stored(size, &row::text(&found, 2)?, found.try_get(3)?, found.try_get(4)?)?;
    Ok(Some(layer))
}

pub(in crate::postgres) async fn remember(link: &Link, terms: Terms, result: &NewResult) -> Done<()> {
    let (output, parts) = (stored(result.output.clone()), result.parts.to_text());
    let (key, run, now) = (result.key.as_str(), result.run.to_string(), terms.now.map(|now| now.0));
    let took = i64::try_from(result.took.as_millis()).unwrap_or(i64::MAX);
    let (exit_code, bytes) = (result.exit_code.map(i64::from), result.bytes(output.as_deref(), &parts));
    let names: Vec<&str> = result.artifacts.iter().map(|one| one.name.as_str()).collect();
    let hashes: Vec<&str> = result.artifacts.iter().map(|one| one.hash.as_str()).collect();
    let size = |one: &Artifact| i64::try_from(one.size).unwrap_or(i64::MAX);
    let sizes: Vec<i64> = result.artifacts.iter().map(size).collect();
    let executable: Vec<bool> = result.artifacts.iter().map(|one| one.is_executable).collect();
    let layer = result.layer.as_deref().map(|layer| {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let files: Vec<&str> = layer.files.iter().map(ContentHash::as_str).collect();
        (signed(layer.paths), signed(layer.bytes), layer.hash.as_str(), layer.content.inline(), files)
    });
    let keys = [key];
    let keys = keys.as_slice();
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("cache_remember", TEXT, TEXT, TEXT, TEXT, TEXT, INT8, INT8, INT8, TEXT, INT8),
        vec![&key, &result.workflow, &result.step, &parts, &run, &now, &took, &exit_code, &output, &bytes],
    );
    flight.ask(sql!("cache_artifacts_clear", TEXT_ARRAY), vec![&keys]);
    flight.ask(sql!("cache_layer_clear", TEXT_ARRAY), vec![&keys]);
    if let Some((paths, bytes, hash, packed, files)) = &layer {
        flight.ask(
            sql!("cache_layer_set", TEXT, INT8, INT8, TEXT, BYTEA),
            vec![&key, paths, bytes, hash, packed],
        );
        if !files.is_empty() {
            flight.ask(sql!("cache_layer_file_add", TEXT, TEXT_ARRAY), vec![&key, files]);
        }
    }
    if !names.is_empty() {
        flight.ask(
            sql!("cache_artifact_add", TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, BOOL_ARRAY),
            vec![&key, &names, &hashes, &sizes, &executable],
        );
    }
    flight.commit().await?;
    Ok(())
}

pub(in crate::postgres) async fn note_miss(
    shelf: &Shelf,
    link: &Link,
    claim: ClaimRef,
    miss: &Miss,
) -> Done<Fate> {
    let Some(head) = shelf.held(link, claim.run).await? else { return Ok(Fate::ClaimLost) };
    let (position, generation) = (i64::from(claim.position), i64::from(claim.generation));
    let (session, body) = (claim.session.to_string(), miss_text(miss));
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("cache_miss_note", INT8, INT8, INT8, TEXT, TEXT),
        vec![&head.no, &position, &generation, &session, &body],
    );
    let noted = flight.commit().await?.first().is_some_and(|rows| !rows.is_empty());
    Ok(if noted { Fate::Recorded } else { Fate::ClaimLost })
}

pub(in crate::postgres) async fn missed(
    link: &Link,
    head: &Head,
    position: Position,
) -> Done<Option<Missed>> {
    let asked = sql!("cache_miss", INT8, INT8);
    let Some(found) = link.row(asked, &[&head.no, &i64::from(position)]).await? else { return Ok(None) };
    let miss = |text: &str| serde_json::from_str(text).ok();
    Ok(Some(Missed {
        attempt: row::number(&found, 0)?,
        miss: row::word(&found, 1, "miss of the cache", miss)?,
    }))
}

pub(in crate::postgres) async fn used(link: &Link, terms: Terms, uses: &[(ContentHash, u64)]) -> Done<()> {
    let now = terms.now.map(|now| now.0);
    let keys: Vec<&str> = uses.iter().map(|(key, _)| key.as_str()).collect();
    let times: Vec<i64> = uses.iter().map(|(_, times)| i64::try_from(*times).unwrap_or(i64::MAX)).collect();
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("cache_used", TEXT_ARRAY, INT8_ARRAY, INT8), vec![&keys, &times, &now]);
    flight.commit().await?;
    Ok(())
}

pub(in crate::postgres) async fn list(
    link: &Link,
    which: &Which,
    behind: Option<&Behind>,
    limit: usize,
) -> Done<Vec<ResultView>> {
    let (at, key) = behind.map_or((i64::MAX, ""), |behind| (behind.last_used_at.0, behind.key.as_str()));
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let asked = sql!("cache_list", TEXT, TEXT, INT8, TEXT, INT8);
    let read = |found: &Row| {
        Ok(ResultView {
            key: row::word(found, 0, "key of the cache", ContentHash::parse)?,
            workflow: row::text(found, 1)?,
            step: row::text(found, 2)?,
            run: row::word(found, 3, "run id", RunId::parse)?,
            recorded_at: Millis(found.try_get(4)?),
            took_ms: row::number(found, 5)?,
            bytes: row::number(found, 6)?,
            hits: row::number(found, 7)?,
            last_used_at: Millis(found.try_get(8)?),
        })
    };
    link.rows(asked, &[&which.workflow, &which.step, &at, &key, &most]).await?.iter().map(read).collect()
}

/// Some of those that are meant go. Gives what went, and whether there may be more.
pub(in crate::postgres) async fn clear(link: &Link, which: &Which) -> Done<(Forgotten, bool)> {
    let some = list(link, which, None, FORGOTTEN).await?;
    let keys: Vec<&str> = some.iter().map(|result| result.key.as_str()).collect();
    let gone = forget(link, &keys, &vec![i64::MAX; keys.len()]).await?;
    Ok((gone, some.len() == FORGOTTEN))
}

/// Some of those that are kept no longer go. Gives what went, and whether there may be more.
pub(in crate::postgres) async fn prune(
    link: &Link,
    terms: Terms,
    keep: KeepResults,
) -> Done<(Forgotten, bool)> {
    let now = terms.now.map(|now| now.0);
    let Some(sum) = link.row(sql!("cache_total", INT8), &[&now]).await? else {
        return Ok((Forgotten::default(), false));
    };
    let (total, now): (u64, _) = (row::number(&sum, 0)?, Millis(sum.try_get(1)?));
    let rows = link.rows(sql!("cache_unused", INT8), &[&(FORGOTTEN as i64)]).await?;
    let read = |found: &Row| Ok((row::text(found, 0)?, row::number(found, 1)?, found.try_get(2)?));
    let unused = rows.iter().map(read).collect::<Done<Vec<Unused>>>()?;
    let going = beyond(keep, now, total, &unused);
    let keys: Vec<&str> = going.iter().map(|(key, _, _)| key.as_str()).collect();
    let used_at: Vec<i64> = going.iter().map(|(_, _, used_at)| *used_at).collect();
    let gone = forget(link, &keys, &used_at).await?;
    Ok((gone, going.len() == FORGOTTEN))
}

async fn forget(link: &Link, keys: &[&str], used_at: &[i64]) -> Done<Forgotten> {
    let mut gone = Forgotten::default();
    if keys.is_empty() {
        return Ok(gone);
    }
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("cache_forget", TEXT_ARRAY, INT8_ARRAY), vec![&keys, &used_at]);
    for found in flight.commit().await?.first().into_iter().flatten() {
        gone.add(row::number(found, 0)?);
    }
    Ok(gone)
}
