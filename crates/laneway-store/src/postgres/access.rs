//! Who may ask the service for what, and what they changed: tokens and the audit log. Nothing here knows a secret.

use laneway_core::role::Role;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use super::fault::Done;
use super::link::{Begin, Link, sql};
use super::row::{self, unreadable};
use super::run_work::Terms;
use crate::error::Error;
use crate::model::{AuditEntry, Deed, NewToken, RevokedToken, Token};

pub(super) async fn make_token(link: &Link, terms: Terms, token: &NewToken) -> Done<Token> {
    let NewToken { id, name, role, hash, tail, by, parent } = token;
    let (role, hash, now) = (role.as_str(), hash.as_slice(), terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    if let Some(parent) = parent {
        flight.ask(sql!("tokens_lock"), vec![]);
        flight.ask(sql!("token", TEXT), vec![parent]);
        let found = flight.land().await?.pop().unwrap_or_default();
        if found.first().map(read).transpose()?.is_none_or(|parent| parent.revoked.is_some()) {
            link.roll_back().await;
            return Err(Error::NoSuchToken { name: parent.clone() }.into());
        }
        flight = link.flight();
    }
    flight.ask(
        sql!("token_make", TEXT, TEXT, TEXT, BYTEA, TEXT, TEXT, INT8, TEXT),
        vec![id, name, &role, &hash, tail, by, &now, parent],
    );
    flight.ask(sql!("token", TEXT), vec![id]);
    let answers = flight.commit().await?;
    match answers.as_slice() {
        [made, kept] if !made.is_empty() => kept.first().map(read).transpose()?.ok_or_else(|| gone(id)),
        [..] => Err(Error::TokenExists { name: name.clone() }.into()),
    }
}

pub(super) async fn revoke_token(link: &Link, terms: Terms, name: &str, by: &str) -> Done<RevokedToken> {
    let now = terms.now.map(|now| now.0);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("tokens_lock"), vec![]);
    flight.ask(sql!("token_revoke", TEXT, TEXT, INT8), vec![&name, &by, &now]);
    let revoked = flight.commit().await?.pop().unwrap_or_default();
    let (mut id, mut along) = (None, Vec::new());
    for found in &revoked {
        match row::text(found, 1)? {
            revoked if revoked == name => id = Some(row::text(found, 0)?),
            revoked => along.push(revoked),
        }
    }
    along.sort_unstable();
    let id = id.ok_or_else(|| Error::NoSuchToken { name: name.to_owned() })?;
    Ok(RevokedToken { token: token(link, &id).await?.ok_or_else(|| gone(&id))?, along })
}

pub(super) async fn record(link: &Link, terms: Terms, deed: &Deed) -> Done<u64> {
    let Deed { by, act, what, origin } = deed;
    let now = terms.now.map(|now| now.0);
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("audit_append", INT8, TEXT, TEXT, TEXT, TEXT), vec![&now, by, act, what, origin]);
    let rows = flight.commit().await?.pop().unwrap_or_default();
    rows.first().map_or(Ok(0), |found| row::number(found, 0))
}

pub(super) async fn token(link: &Link, id: &str) -> Done<Option<Token>> {
    link.row(sql!("token", TEXT), &[&id]).await?.as_ref().map(read).transpose()
}

pub(super) async fn tokens(link: &Link) -> Done<Vec<Token>> {
    link.rows(sql!("tokens"), &[]).await?.iter().map(read).collect()
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
    })
}
