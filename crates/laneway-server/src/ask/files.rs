//! What tasks changed in their views of the files of their runs, and one file of it.

use std::path::Path;

use laneway_core::growth::parse_name;
use laneway_core::id::RunId;
use laneway_engine::view::{self, LayerFile};
use laneway_store::layer::Layer;
use laneway_store::{Error, Store};

use crate::problem::{Answer, Code, Problem};
use crate::wire;

/// Returns what a task changed. Of a task that changed nothing the list is empty.
pub async fn changed_files(store: &dyn Store, run: RunId, step: &str) -> Answer<wire::ChangedFiles> {
    let (layer, attempt) = layer(store, run, step).await?;
    let mut list = wire::ChangedFiles {
        step: step.to_owned(),
        attempt,
        node: layer.as_ref().and_then(|layer| layer.node.clone()),
        bytes: layer.as_ref().map_or(0, |layer| layer.bytes),
        files: Vec::new(),
    };
    if let Some(layer) = layer.filter(|layer| layer.node.is_none()) {
        let bytes = packed(store, run, &layer).await?;
        let manifest = view::manifest_of(&bytes).map_err(damaged)?;
        // Directories that only lead to a change are no change that a reader asks for.
        let leads =
            |path: &Path| manifest.entries.keys().any(|other| other != path && other.starts_with(path));
        let shown = manifest.entries.iter().filter(|(path, entry)| !entry.is_directory() || !leads(path));
        list.files = shown.map(|(path, entry)| wire::ChangedFile::of(path, entry)).collect();
    }
    Ok(list)
}

/// Returns the content of a file that a task changed.
pub async fn changed_file(store: &dyn Store, run: RunId, step: &str, path: &str) -> Answer<Vec<u8>> {
    let missing = || {
        Problem::new(Code::NoSuchArtifact, format!("step `{step}` left no file `{path}`"))
            .hint(format!("`laneway files {} {step}` lists what it left", run.short()))
    };
    let layer = layer(store, run, step).await?.0.ok_or_else(missing)?;
    if let Some(node) = &layer.node {
        let detail =
            format!("the files of `{step}` are only on node {node}: they are too large for the store");
        return Err(Problem::new(Code::NoSuchBytes, detail)
            .hint("raise `workspace_max_bytes`, or declare what you need under `artifacts`"));
    }
    let bytes = packed(store, run, &layer).await?;
    match view::file_of(&bytes, Path::new(path)).map_err(damaged)? {
        None => Err(missing()),
        Some(LayerFile::Bytes(bytes)) => Ok(bytes),
        Some(LayerFile::Apart(hash)) => Ok(file(store, &hash).await?),
    }
}

/// The layer of a task that counts, and the task's attempt.
async fn layer(store: &dyn Store, run: RunId, step: &str) -> Answer<(Option<Layer>, u32)> {
    // Rejects a step that the run does not have, with the nearest name.
    let attempts = store.attempts(run, step).await?;
    // Whether a list has an item is known by its tasks, not by the plan.
    if attempts.is_empty() && parse_name(step).1.is_some() {
        let state = store.run_state(run).await?;
        if !state.tasks.iter().any(|task| task.step == step) {
            return Err(Error::NoSuchStep { run, step: step.to_owned(), nearest: None }.into());
        }
    }
    let position = store.head(run).await?.plan.position(step);
    let layer = store.layers(run).await?.into_iter().find(|layer| Some(layer.position) == position);
    Ok((layer, attempts.last().map_or(0, |attempt| attempt.attempt)))
}

async fn packed(store: &dyn Store, run: RunId, layer: &Layer) -> Result<Vec<u8>, Error> {
    match store.packed_layer(run, layer.position, &layer.hash).await? {
        Some(bytes) => Ok(bytes),
        None => file(store, &layer.hash).await,
    }
}

async fn file(store: &dyn Store, hash: &laneway_core::hash::ContentHash) -> Result<Vec<u8>, Error> {
    use laneway_store::model::Opened;
    match store.open_file(hash).await? {
        Opened::Bytes(bytes) => Ok(bytes),
        Opened::File(mut file) => {
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut file, &mut bytes).map(|_| bytes)
            });
            let failed = |why: String| Error::Unreadable { what: "file of a layer".to_owned(), why };
            match read.await {
                Ok(read) => read.map_err(|error| failed(error.to_string())),
                Err(error) => Err(failed(error.to_string())),
            }
        }
    }
}

fn damaged(error: view::Error) -> Problem {
    Error::Unreadable { what: "layer".to_owned(), why: error.to_string() }.into()
}
