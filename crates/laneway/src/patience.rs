//! Patience of whoever follows a run: a server that restarts, or a database that is away for a moment, comes back, and the run does not
//! wait for that. It is said once that nobody answers, and asked again.

use laneway_server::client;

use crate::print::Printer;

#[derive(Debug)]
pub(crate) struct Patience<'a> {
    printer: &'a Printer,
    /// Who wants to know once is told at once that there is no answer.
    follows: bool,
    is_lost: bool,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(printer: &'a Printer, follows: bool) -> Self {
        Self { printer, follows, is_lost: false }
    }

    /// Takes an error that may be over in a moment; gives back any other.
    pub(crate) fn bear(&mut self, error: anyhow::Error) -> anyhow::Result<()> {
        if !self.follows || !is_passing(&error) {
            return Err(error);
        }
        if !self.is_lost {
            self.printer.note(&format!("{error}; trying again"));
        }
        self.is_lost = true;
        Ok(())
    }

    /// Whoever was asked answers: the next trouble is said anew.
    pub(crate) fn answered(&mut self) {
        self.is_lost = false;
    }
}

/// Whether it may be over in a moment.
pub(crate) fn is_passing(error: &anyhow::Error) -> bool {
    let of_store = error.downcast_ref::<laneway_store::Error>().is_some_and(laneway_store::Error::is_passing);
    let of_server = error.downcast_ref::<client::Error>().is_some_and(client::Error::is_about_the_server);
    of_store || of_server
}
