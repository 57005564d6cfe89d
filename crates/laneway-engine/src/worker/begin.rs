//! What comes before a loop: what sessions that died have left behind goes back to everybody.

use laneway_store::{Result, Store};

/// Returns what sessions that died have left behind. What of it cannot be read keeps no node from beginning: nothing else would begin
/// either, as often as it is tried. It is told, and looked at again by whoever looks for dead nodes.
pub async fn return_what_is_left(store: &dyn Store) -> Result<()> {
    match store.reap().await {
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
