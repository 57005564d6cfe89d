//! Layers of attempts, on Postgres: written with the end of a task, read by who makes a view of
//! what came before. docs/design/files.md.

use laneway_core::hash::ContentHash;
use laneway_core::id::SessionId;
use laneway_core::plan::Position;
use laneway_core::state::TaskStatus;
use tokio_postgres::Row;

use super::fault::Done;
use super::link::{Flight, Link, sql};
use super::row;
use crate::bytes::verify;
use crate::error::Error;
use crate::keeper::{KeptLayer, LayerOnNode};
use crate::layer::{Layer, Oversize};

/// Layers to be written, as columns.
#[derive(Debug, Default)]
pub(super) struct Layers {
    run: Vec<i64>,
    position: Vec<i64>,
    attempt: Vec<i64>,
    paths: Vec<i64>,
    bytes: Vec<i64>,
    hash: Vec<String>,
    packed: Vec<Option<Vec<u8>>>,
    node: Vec<Option<String>>,
    oversize: Vec<Option<String>>,
    files: (Vec<i64>, Vec<i64>, Vec<String>),
}

impl Layers {
    pub(super) fn add(&mut self, no: i64, kept: &KeptLayer) {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (position, layer) = (i64::from(kept.position), &kept.layer);
        self.run.push(no);
        self.position.push(position);
        self.attempt.push(i64::from(kept.attempt));
        self.paths.push(signed(layer.paths));
        self.bytes.push(signed(layer.bytes));
        self.hash.push(layer.hash.to_string());
        self.packed.push(layer.content.inline().map(<[u8]>::to_vec));
        self.node.push(kept.node.as_deref().map(str::to_owned));
        self.oversize.push(layer.content.oversize().map(Oversize::text));
        for hash in &layer.files {
            self.files.0.push(no);
            self.files.1.push(position);
            self.files.2.push(hash.to_string());
        }
    }

    pub(super) fn say<'a>(&'a self, flight: &mut Flight<'a>) {
        if self.run.is_empty() {
            return;
        }
        let Self { run, position, attempt, paths, bytes, hash, packed, node, oversize, files } = self;
        flight.ask(
            sql!(
                "layer_add",
                INT8_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                INT8_ARRAY,
                TEXT_ARRAY,
                BYTEA_ARRAY,
                TEXT_ARRAY,
                TEXT_ARRAY
            ),
            vec![run, position, attempt, paths, bytes, hash, packed, node, oversize],
        );
        flight.ask(sql!("layer_files_remove", INT8_ARRAY, INT8_ARRAY), vec![run, position]);
        if !files.0.is_empty() {
            flight.ask(
                sql!("layer_file_add", INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY),
                vec![&files.0, &files.1, &files.2],
            );
        }
    }
}

pub(super) async fn layers(link: &Link, no: i64) -> Done<Vec<Layer>> {
    let read = |found: &Row| {
        Ok(Layer {
            position: row::number(found, 0)?,
            attempt: row::number(found, 1)?,
            status: row::word(found, 2, "status of a task", TaskStatus::parse)?,
            paths: row::number(found, 3)?,
            bytes: row::number(found, 4)?,
            hash: row::word(found, 5, "hash of a layer", ContentHash::parse)?,
            node: row::maybe_text(found, 6)?,
            oversize: row::maybe_text(found, 7)?.as_deref().and_then(Oversize::read),
        })
    };
    link.rows(sql!("layers", INT8), &[&no]).await?.iter().map(read).collect()
}

/// Reads a layer that one node alone has, behind the number of its run.
pub(super) fn on_node(found: &Row) -> Done<LayerOnNode> {
    Ok(LayerOnNode {
        position: row::number(found, 1)?,
        attempt: row::number(found, 2)?,
        node: row::text(found, 3)?.into(),
        session: row::maybe_word(found, 5, "session", SessionId::parse)?,
        oversize: row::maybe_text(found, 4)?.as_deref().and_then(Oversize::read),
    })
}

/// Returns the packed layer if it is small, and verifies it.
pub(super) async fn packed(
    link: &Link,
    no: i64,
    position: Position,
    hash: &ContentHash,
) -> Done<Option<Vec<u8>>> {
    let asked = sql!("layer_packed", INT8, INT8, TEXT);
    let found = link.row(asked, &[&no, &i64::from(position), &hash.as_str()]).await?;
    let found = found.ok_or_else(|| Error::NoSuchBlob { hash: hash.to_string() })?;
    let packed: Option<Vec<u8>> = found.try_get(0)?;
    Ok(packed.map(|packed| verify(hash, packed)).transpose()?)
}
