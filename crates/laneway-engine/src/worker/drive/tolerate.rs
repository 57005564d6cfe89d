//! Which errors of the store a loop goes on after, and what it has told people of them. Decides and tells; whoever met the error asks
//! again when it sees fit.

use super::super::Error;
use super::super::control::Urge;
use super::{Aim, Loop};
use crate::faults::Faults;

/// What people were told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// That the store cannot be written; until it can.
    pub(super) of_trouble: bool,
    /// What cannot be read.
    pub(super) of_faults: Faults,
}

impl Loop {
    /// A full or busy disk passes: nothing new is claimed meanwhile, and nothing that ended is forgotten. Whoever
    /// interrupts a second time does not want to wait for that; the run can be resumed when there is space.
    ///
    /// What is stored and cannot be read does not pass, and ends no node that takes whatever comes: there is other work. Whoever drives one
    /// run is told, and can resume it once that is mended.
    pub(super) fn tolerate(&mut self, error: laneway_store::Error) -> Result<(), Error> {
        match self.aim {
            Aim::Any { .. } => self.tolerate_of_all(error),
            Aim::Run { .. } if error.is_about_what_is_stored() => Err(error.into()),
            Aim::Run { .. } => self.tolerate_of_all(error),
        }
    }

    /// The same where the question was about all runs, or none: what is wrong with another one ends no loop.
    pub(super) fn tolerate_of_all(&mut self, error: laneway_store::Error) -> Result<(), Error> {
        let is_stored = error.is_about_what_is_stored();
        if !(is_stored || error.is_passing()) || self.urge == Urge::Kill {
            return Err(error.into());
        }
        if is_stored {
            self.tell_of_fault(&error.to_string());
        } else if !std::mem::replace(&mut self.told.of_trouble, true) {
            tracing::warn!("{error}; waiting for it to pass, nothing that was recorded is lost");
        }
        Ok(())
    }

    /// Once for each: it is met again with every question.
    pub(super) fn tell_of_fault(&self, fault: &str) {
        if self.told.of_faults.is_new(fault) {
            tracing::warn!("{fault}; going on with what can be read, `laneway doctor` says more");
        }
    }

    /// What a node that leaves cannot say, because of what is stored, it does not wait to say: those tasks are returned with its session.
    pub(super) fn is_hopeless(&self, error: &laneway_store::Error) -> bool {
        self.is_leaving() && error.is_about_what_is_stored()
    }
}
