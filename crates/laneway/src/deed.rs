//! What is done to a store from the command line, in its audit log. Whoever has the store has all of it; what they do is in the log like what
//! others do through a server, in the words of its routes. As there, an entry is written behind its change and before it is told.

use laneway_store::Store;
use laneway_store::model::Deed;

use crate::env;

/// From where, in the place of an address.
const ORIGIN: &str = "command line";

pub(crate) async fn record(store: &dyn Store, act: &str, what: impl Into<String>) -> anyhow::Result<()> {
    let (by, act, origin) = (env::person(), act.to_owned(), ORIGIN.to_owned());
    store.record(Deed { by, act, what: what.into(), origin }).await?;
    Ok(())
}
