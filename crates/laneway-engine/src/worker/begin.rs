//! What comes before a loop, and beside it: what sessions that are over have left behind goes back to everybody.

use laneway_store::model::Reaped;
use laneway_store::{Result, Store};

use crate::warden::end_stuck;

/// Returns what sessions that are over have left behind. What of it cannot be read keeps no node from beginning: nothing else would begin
/// either, as often as it is tried. It is told, and looked at again by whoever looks for dead nodes.
pub async fn return_what_is_left(store: &dyn Store) -> Result<()> {
    match reap(store).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_about_what_is_stored() => {
            tracing::warn!(
                "what a node that died has left is not returned: {error}; `laneway doctor` says more"
            );
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Reaps sessions that are over. Where a warden is frozen like its node, ends that first: its steps may run.
pub(super) async fn reap(store: &dyn Store) -> Result<Reaped> {
    let mut reaped = store.reap().await?;
    if reaped.stuck.is_empty() {
        return Ok(reaped);
    }
    let stuck = std::mem::take(&mut reaped.stuck);
    let ended = tokio::task::spawn_blocking(move || stuck.iter().for_each(|one| end_stuck(&one.warden)));
    // A panic there was reported by the panic hook; those sessions stay as they are.
    drop(ended.await);
    let again = store.reap().await?;
    reaped.nodes.extend(again.nodes);
    reaped.tasks += again.tasks;
    reaped.next_in = again.next_in;
    Ok(reaped)
}
