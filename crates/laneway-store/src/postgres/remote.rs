//! Workers that are elsewhere: what is known of their sessions. They begin, are renewed and end as every session here
//! does (`verbs/lives.rs`).

use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_core::time::Millis;

use super::fault::Done;
use super::link::{Link, sql};
use super::{read, row};
use crate::fence::ClaimRef;
use crate::model::RemoteView;
use crate::readable::Readable;

pub(super) async fn view(link: &Link, now: Option<Millis>, session: SessionId) -> Done<Option<RemoteView>> {
    let (id, now) = (session.to_string(), now.map(|now| now.0));
    let mut flight = link.flight();
    flight.ask(sql!("remote", TEXT, INT8), vec![&id, &now]);
    flight.ask(sql!("remote_claims", TEXT), vec![&id]);
    flight.ask(sql!("stops", TEXT), vec![&id]);
    let answers = flight.land().await?;
    let [known, held, stops] = answers.as_slice() else { return Ok(None) };
    let Some(found) = known.first() else { return Ok(None) };
    let claim = |of: &tokio_postgres::Row| -> Done<(ClaimRef, Option<Millis>)> {
        Ok((read::claim_of(of, session)?.1, row::moment(of, 5)?))
    };
    let mut claims = Readable::new();
    for found in held {
        claims.add(claim(found), false, read::is_blamed)?;
    }
    Ok(Some(RemoteView {
        session,
        node: row::text(found, 0)?,
        token: row::text(found, 1)?,
        slots: row::number(found, 2)?,
        lease: Duration::from_millis(row::number(found, 5)?),
        is_draining: found.try_get(3)?,
        held: claims.list,
        stops: read::stops(stops, session)?.list,
        observed_at: Millis(found.try_get(4)?),
    }))
}

pub(super) async fn all(link: &Link) -> Done<Vec<SessionId>> {
    let rows = link.rows(sql!("remotes"), &[]).await?;
    rows.iter().map(|found| row::word(found, 0, "session", SessionId::parse)).collect()
}
