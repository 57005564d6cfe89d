//! Tokens, secrets and the audit log. The store holds hashes of tokens, and no key to the secrets.

use std::time::Duration;

use async_trait::async_trait;
use laneway_core::role::Role;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::contract::Access;
use crate::error::{Error, Result};
use crate::model::{
    AuditEntry, Deed, NewToken, RevokedToken, RotatedToken, SecretView, TOKEN_USE_GRAIN, Token, TokenRotation,
};
use crate::postgres::PostgresStore;
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Flight, Link, sql};
use crate::postgres::row::{self, unreadable};
use crate::postgres::run_work::Terms;

#[async_trait]
impl Access for PostgresStore {
    async fn make_token(&self, token: NewToken) -> Result<Token> {
        let token = &token;
        self.base.write(|link, terms| async move { make_token(&link, terms, token).await }).await
    }

    async fn revoke_token(&self, name: &str, by: &str) -> Result<RevokedToken> {
        self.base.write(|link, terms| async move { revoke_token(&link, terms, name, by).await }).await
    }

    async fn rotate_token(&self, rotation: TokenRotation) -> Result<RotatedToken> {
        let rotation = &rotation;
        self.base.write(|link, terms| async move { rotate_token(&link, terms, rotation).await }).await
    }

    async fn note_token_use(&self, id: &str) -> Result<()> {
        self.base.write(|link, terms| async move { note_token_use(&link, terms, id).await }).await
    }

    async fn token(&self, id: &str) -> Result<Option<Token>> {
        self.base.ask(|link| async move { token(&link, self.base.now(), id).await }).await
    }

    async fn tokens(&self) -> Result<Vec<Token>> {
        self.base.ask(|link| async move { tokens(&link, self.base.now()).await }).await
    }

    async fn set_secret(&self, name: &str, sealed: Vec<u8>, by: &str) -> Result<()> {
        let sealed = &sealed;
        self.base.write(|link, terms| async move { set(&link, terms, (name, sealed), by).await }).await
    }

    async fn secret(&self, name: &str) -> Result<Vec<u8>> {
        self.base.ask(|link| async move { sealed(&link, name).await }).await
    }

    async fn secrets(&self) -> Result<Vec<SecretView>> {
        self.base.ask(|link| async move { list(&link).await }).await
    }

    async fn remove_secret(&self, name: &str) -> Result<()> {
        self.base.write(|link, _| async move { remove(&link, name).await }).await
    }

    async fn record(&self, deed: Deed) -> Result<u64> {
        let deed = &deed;
        self.base.write(|link, terms| async move { record(&link, terms, deed).await }).await
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.base.ask(|link| async move { audit(&link, before, limit).await }).await
    }
}

pub(super) async fn make_token(link: &Link, terms: Terms, token: &NewToken) -> Done<Token> {
    let now = terms.now.map(|now| now.0);
    let (mut flight, mut latest) = (link.begin(Begin::Write), None);
    if let Some(parent) = &token.parent {
        flight.ask(sql!("tokens_lock"), vec![]);
        flight.ask(sql!("token", TEXT, INT8), vec![parent, &now]);
        let found = flight.land().await?.pop().unwrap_or_default();
        let found = found.first().map(read).transpose()?.filter(|parent| parent.is_live(Duration::ZERO));
        let Some(found) = found else {
            link.roll_back().await;
            return Err(Error::NoSuchToken { name: parent.clone() }.into());
        };
        (flight, latest) = (link.flight(), found.expires_at.map(|at| at.0));
    }
    flight.ask(sql!("token_clear_expired", TEXT, INT8), vec![&token.name, &now]);
    let values = Inserted::of(token, now, latest);
    values.ask(&mut flight);
    let answers = flight.commit().await?;
    values.made(&answers)
}

/// What a new row is made of.
struct Inserted<'a> {
    token: &'a NewToken,
    role: &'static str,
    hash: &'a [u8],
    now: Option<i64>,
    /// It expires no later than this.
    latest: Option<i64>,
    lasts: Option<i64>,
}

impl<'a> Inserted<'a> {
    fn of(token: &'a NewToken, now: Option<i64>, latest: Option<i64>) -> Self {
        let lasts = token.lasts.map(millis);
        Self { token, role: token.role.as_str(), hash: token.hash.as_slice(), now, latest, lasts }
    }

    fn ask<'b>(&'b self, flight: &mut Flight<'b>) {
        let NewToken { id, name, tail, by, parent, role: _, hash: _, lasts: _ } = self.token;
        flight.ask(
            sql!("token_make", TEXT, TEXT, TEXT, BYTEA, TEXT, TEXT, INT8, TEXT, INT8, INT8),
            vec![id, name, &self.role, &self.hash, tail, by, &self.now, parent, &self.latest, &self.lasts],
        );
        flight.ask(sql!("token", TEXT, INT8), vec![id, &self.now]);
    }

    /// The row, out of what was answered last.
    fn made(&self, answers: &[Vec<Row>]) -> Done<Token> {
        match answers {
            [.., made, kept] if !made.is_empty() => {
                kept.first().map(read).transpose()?.ok_or_else(|| gone(&self.token.id))
            }
            [..] => Err(Error::TokenExists { name: self.token.name.clone() }.into()),
        }
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

pub(super) async fn revoke_token(link: &Link, terms: Terms, name: &str, by: &str) -> Done<RevokedToken> {
    let (now, grace) = (terms.now.map(|now| now.0), 0_i64);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("tokens_lock"), vec![]);
    flight.ask(sql!("token_revoke", TEXT, TEXT, INT8, INT8), vec![&name, &by, &now, &grace]);
    let revoked = flight.commit().await?.pop().unwrap_or_default();
    let (mut id, mut along) = (None, Vec::new());
    for found in &revoked {
        match row::text(found, 1)? {
            revoked if revoked == name => id = Some(row::text(found, 0)?),
            revoked => along.push(revoked),
        }
    }
    along.sort_unstable();
    along.dedup();
    let id = id.ok_or_else(|| Error::NoSuchToken { name: name.to_owned() })?;
    Ok(RevokedToken { token: token(link, terms.now, &id).await?.ok_or_else(|| gone(&id))?, along })
}

pub(super) async fn rotate_token(link: &Link, terms: Terms, rotation: &TokenRotation) -> Done<RotatedToken> {
    let TokenRotation { name, id, hash, tail, by, lasts, grace } = rotation;
    let (now, grace) = (terms.now.map(|now| now.0), millis(*grace));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("tokens_lock"), vec![]);
    flight.ask(sql!("token_live", TEXT), vec![name]);
    let found = flight.land().await?.pop().unwrap_or_default();
    let Some(found) = found.first() else {
        link.roll_back().await;
        return Err(Error::NoSuchToken { name: name.clone() }.into());
    };
    let replaced = row::text(found, 0)?;
    let lasted: Option<i64> = found.try_get(4)?;
    let lasted = lasted.and_then(|lasted| u64::try_from(lasted).ok()).map(Duration::from_millis);
    let token = NewToken {
        id: id.clone(),
        name: name.clone(),
        role: row::word(found, 1, "role", Role::parse)?,
        hash: *hash,
        tail: tail.clone(),
        by: by.clone(),
        parent: row::maybe_text(found, 2)?,
        lasts: lasts.or(lasted),
    };
    let values = Inserted::of(&token, now, found.try_get(3)?);
    let mut flight = link.flight();
    flight.ask(sql!("token_revoke", TEXT, TEXT, INT8, INT8), vec![name, by, &now, &grace]);
    flight.ask(sql!("token", TEXT, INT8), vec![&replaced, &now]);
    values.ask(&mut flight);
    let answers = flight.commit().await?;
    let old = answers.get(1).and_then(|rows| rows.first()).map(read).transpose()?;
    Ok(RotatedToken { token: values.made(&answers)?, replaced: old.ok_or_else(|| gone(&replaced))? })
}

pub(super) async fn note_token_use(link: &Link, terms: Terms, id: &str) -> Done<()> {
    let (now, grain) = (terms.now.map(|now| now.0), millis(TOKEN_USE_GRAIN));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("token_used", TEXT, INT8, INT8), vec![&id, &now, &grain]);
    flight.commit().await?;
    Ok(())
}

pub(super) async fn record(link: &Link, terms: Terms, deed: &Deed) -> Done<u64> {
    let Deed { by, act, what, origin } = deed;
    let now = terms.now.map(|now| now.0);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("audit_append", INT8, TEXT, TEXT, TEXT, TEXT), vec![&now, by, act, what, origin]);
    let rows = flight.commit().await?.pop().unwrap_or_default();
    rows.first().map_or(Ok(0), |found| row::number(found, 0))
}

pub(super) async fn token(link: &Link, now: Option<Millis>, id: &str) -> Done<Option<Token>> {
    let now = now.map(|now| now.0);
    link.row(sql!("token", TEXT, INT8), &[&id, &now]).await?.as_ref().map(read).transpose()
}

pub(super) async fn tokens(link: &Link, now: Option<Millis>) -> Done<Vec<Token>> {
    let now = now.map(|now| now.0);
    link.rows(sql!("tokens", INT8), &[&now]).await?.iter().map(read).collect()
}

pub(super) async fn audit(link: &Link, before: Option<u64>, limit: usize) -> Done<Vec<AuditEntry>> {
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = link.rows(sql!("audit", INT8, INT8), &[&before, &limit]).await?;
    rows.iter()
        .map(|found| {
            let deed = Deed {
                by: row::text(found, 2)?,
                act: row::text(found, 3)?,
                what: row::text(found, 4)?,
                origin: row::text(found, 5)?,
            };
            Ok(AuditEntry { seq: row::number(found, 0)?, at: Millis(found.try_get(1)?), deed })
        })
        .collect()
}

fn gone(id: &str) -> super::fault::Failure {
    unreadable("token", id).into()
}

fn read(found: &Row) -> Done<Token> {
    let hash: Vec<u8> = found.try_get(3)?;
    Ok(Token {
        id: row::text(found, 0)?,
        name: row::text(found, 1)?,
        role: row::word(found, 2, "role", Role::parse)?,
        hash: hash.try_into().map_err(|_| unreadable("hash of a token", "its length"))?,
        tail: row::text(found, 4)?,
        created_by: row::text(found, 5)?,
        created_at: Millis(found.try_get(6)?),
        parent: row::maybe_text(found, 9)?,
        revoked: row::maybe_text(found, 7)?.zip(row::moment(found, 8)?),
        expires_at: row::moment(found, 10)?,
        used_at: row::moment(found, 11)?,
        read_at: Millis(found.try_get(12)?),
    })
}

pub(in crate::postgres) async fn set(
    link: &Link,
    terms: Terms,
    (name, sealed): (&str, &Vec<u8>),
    by: &str,
) -> Done<()> {
    let now = terms.now.map(|now| now.0);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("secret_set", TEXT, BYTEA, INT8, TEXT), vec![&name, sealed, &now, &by]);
    flight.commit().await?;
    Ok(())
}

pub(in crate::postgres) async fn sealed(link: &Link, name: &str) -> Done<Vec<u8>> {
    let found = link.row(sql!("secret", TEXT), &[&name]).await?;
    let found = found.ok_or_else(|| Error::NoSuchSecret { name: name.to_owned() })?;
    Ok(found.try_get(0)?)
}

pub(in crate::postgres) async fn list(link: &Link) -> Done<Vec<SecretView>> {
    let view = |found: &Row| {
        let (name, set_by) = (row::text(found, 0)?, row::text(found, 2)?);
        Ok(SecretView { name, set_at: Millis(found.try_get(1)?), set_by })
    };
    link.rows(sql!("secrets"), &[]).await?.iter().map(view).collect()
}

pub(in crate::postgres) async fn remove(link: &Link, name: &str) -> Done<()> {
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("secret_remove", TEXT), vec![&name]);
    let answers = flight.commit().await?;
    if answers.first().is_none_or(Vec::is_empty) {
        return Err(Error::NoSuchSecret { name: name.to_owned() }.into());
    }
    Ok(())
}
