//! A run that is not on the server that was asked, but in the store here: `laneway run` is always local, also where
//! LANEWAY_SERVER names a server for the other commands. Says where such a run is; never goes there by itself.

use std::path::Path;
use std::sync::Arc;

use laneway_server::{Code, client};
use laneway_store::{Open, Store};

use super::Context;
use crate::exit::Refusal;
use crate::face::Face;

/// The newest run, as people name it.
const LAST: &str = "last";

/// Which run a command was asked about.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) command: String,
    pub(crate) run: String,
}

/// Notes that `last` is the server's, where a newer run is in the store here.
pub(super) async fn note_newer(context: &Context, asked: &Asked) {
    if asked.run != LAST {
        return;
    }
    let Some(here) = run_here(context, LAST).await else { return };
    let Ok(Some(client)) = context.client() else { return };
    // Whatever is wrong with the server, the command itself reports.
    let Ok(there) = client.run_in_short(LAST).await else { return };
    if there.run != here.run && there.submitted_at.0 < here.submitted_at.0 {
        let (short, command) = (here.run.short(), command_here(context, asked, &here.run.short()));
        context.printer.note(&format!(
            "`last` is that of {}; run {short} of {} is newer and in the store here: `{command}`",
            client.server(),
            here.workflow
        ));
    }
}

/// Adds to the error of a server that does not know a run that the store here does.
pub(super) async fn point_here(context: &Context, asked: &Asked, error: anyhow::Error) -> anyhow::Error {
    let is_unknown = matches!(
        error.downcast_ref(),
        Some(client::Error::Refused(problem)) if problem.code == Code::NoSuchRun
    );
    if !is_unknown {
        return error;
    }
    let Some(here) = run_here(context, &asked.run).await else { return error };
    let command = command_here(context, asked, &here.run.short());
    Refusal::new(format!("{error} on the server"))
        .hint(format!("it is in the store here: `{command}`"))
        .into()
}

fn command_here(context: &Context, asked: &Asked, run: &str) -> String {
    format!("laneway {} {run} --store {}", asked.command, laneway_store::shown(&context.store))
}

/// A run of the store here, if there is a file with one. A database is not asked: it may be far away, and is hardly made by accident.
async fn run_here(context: &Context, name: &str) -> Option<laneway_server::wire::Run> {
    let path = context.store.strip_prefix("sqlite://").unwrap_or(&context.store);
    if path.contains("://") || !Path::new(path).exists() || !matches!(context.asked_server(), Ok(Some(_))) {
        return None;
    }
    let options = context.options().ok()?;
    let store: Arc<dyn Store> = laneway_store::open_with(&context.store, Open::Existing, &options).ok()?;
    Face::Store(store).run(name).await.ok()
}
