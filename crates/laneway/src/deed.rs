//! Who changes a store from the command line, as its audit log names them. Whoever has the store has all of it; what they do is in the log like
//! what others do through a server, and on the same path (`ask/change.rs`).

use laneway_server::ask::Author;

use crate::env;

/// From where, in the place of an address.
pub(crate) const ORIGIN: &str = "command line";

pub(crate) fn author() -> Author {
    Author { name: env::person(), origin: ORIGIN.to_owned() }
}
