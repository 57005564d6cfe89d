//! Layers of attempts, on SQLite: written with the end of a task, read by who makes a view of what
//! came before. docs/design/files.md.

use laneway_core::hash::ContentHash;
use laneway_core::id::SessionId;
use laneway_core::plan::Position;
use laneway_core::state::TaskStatus;
use rusqlite::{Connection, OptionalExtension, params};

use super::txn::{Done, Txn};
use crate::bytes::verify;
use crate::error::Error;
use crate::keeper::{KeptLayer, LayerOnNode, unreadable};
use crate::layer::{Layer, Oversize};
use crate::sqlite::statements::sql;

/// Stores the layer of a task, in the place of one of an earlier attempt.
pub(super) fn save(txn: &Txn<'_>, no: i64, kept: &KeptLayer) -> Done<()> {
    let (position, layer) = (kept.position, &kept.layer);
    txn.connection.prepare_cached(sql!("layer_add"))?.execute(params![
        no,
        position,
        kept.attempt,
        signed(layer.paths),
        signed(layer.bytes),
        layer.hash.as_str(),
        layer.content.inline(),
        kept.node,
        layer.content.oversize().map(Oversize::text),
    ])?;
    txn.connection.prepare_cached(sql!("layer_files_remove"))?.execute(params![no, position])?;
    let mut add = txn.connection.prepare_cached(sql!("layer_file_add"))?;
    for hash in &layer.files {
        add.execute(params![no, position, hash.as_str()])?;
    }
    Ok(())
}

pub(super) fn layers(connection: &Connection, no: i64) -> Done<Vec<Layer>> {
    let mut statement = connection.prepare_cached(sql!("layers"))?;
    let mut rows = statement.query([no])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (status, hash): (String, String) = (row.get(2)?, row.get(5)?);
        found.push(Layer {
            position: row.get(0)?,
            attempt: row.get(1)?,
            status: TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?,
            paths: row.get(3)?,
            bytes: row.get(4)?,
            hash: ContentHash::parse(&hash).ok_or_else(|| unreadable("hash of a layer", &hash))?,
            node: row.get(6)?,
            oversize: row.get::<_, Option<String>>(7)?.as_deref().and_then(Oversize::read),
        });
    }
    Ok(found)
}

/// Returns the layers that count and that one node alone has.
pub(super) fn on_nodes(connection: &Connection, no: i64) -> Done<Vec<LayerOnNode>> {
    let mut statement = connection.prepare_cached(sql!("layers_on_nodes"))?;
    let mut rows = statement.query([no])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (node, session): (String, Option<String>) = (row.get(2)?, row.get(4)?);
        let session = session.map(|id| SessionId::parse(&id).ok_or_else(|| unreadable("session", &id)));
        found.push(LayerOnNode {
            position: row.get(0)?,
            attempt: row.get(1)?,
            node: node.into(),
            session: session.transpose()?,
            oversize: row.get::<_, Option<String>>(3)?.as_deref().and_then(Oversize::read),
        });
    }
    Ok(found)
}

/// Returns the packed layer if it is small, and verifies it.
pub(super) fn packed(
    connection: &Connection,
    no: i64,
    position: Position,
    hash: &ContentHash,
) -> Done<Option<Vec<u8>>> {
    let mut statement = connection.prepare_cached(sql!("layer_packed"))?;
    let found: Option<Option<Vec<u8>>> =
        statement.query_row(params![no, position, hash.as_str()], |row| row.get(0)).optional()?;
    let packed = found.ok_or_else(|| Error::NoSuchBlob { hash: hash.to_string() })?;
    Ok(packed.map(|packed| verify(hash, packed)).transpose()?)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
