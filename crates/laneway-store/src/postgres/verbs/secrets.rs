//! Secrets, sealed: the store has no key to them.

use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::error::Error;
use crate::model::SecretView;
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;

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
