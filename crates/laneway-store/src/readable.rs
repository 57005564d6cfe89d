//! Lists of rows of which some may be unreadable: this program cannot have written them. The
//! readable ones are returned, so that one row hides no other from the readers of all. Nothing here
//! quarantines a run: the verb that meets the row does. Unreadable rows that belong to no run are
//! described in words. See `docs/design/faults.md`.

use crate::error::{Error, Teller};

/// The readable rows of a list.
#[derive(Debug)]
pub(crate) struct Readable<T> {
    pub(crate) list: Vec<T>,
    /// Some row was unreadable, and its run is not in quarantine yet.
    pub(crate) has_trouble: bool,
}

impl<T> Readable<T> {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), has_trouble: false }
    }

    /// Adds a row of a run that is in quarantine or not.
    ///
    /// # Errors
    /// Returns a failure that is not about the row.
    pub(crate) fn add<F>(
        &mut self,
        read: Result<T, F>,
        is_set_aside: bool,
        is_about_a_value: impl FnOnce(&F) -> bool,
    ) -> Result<(), F> {
        match read {
            Ok(read) => self.list.push(read),
            Err(failure) if is_about_a_value(&failure) => self.has_trouble |= !is_set_aside,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

/// The readable rows of a list that belongs to no run. No run can be quarantined for the others, so
/// they are described.
#[derive(Debug)]
pub(crate) struct Noted<T> {
    pub(crate) list: Vec<T>,
    pub(crate) unreadable: Vec<String>,
}

impl<T> Noted<T> {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), unreadable: Vec::new() }
    }

    /// Adds a row. `blame` returns the unreadable part of the row and why it is unreadable.
    /// `comes_of_it` describes briefly what no longer works because of the row.
    ///
    /// # Errors
    /// Returns a failure that is not about the row.
    pub(crate) fn add<F>(
        &mut self,
        read: Result<T, F>,
        blame: impl FnOnce(&F) -> Option<(String, String)>,
        comes_of_it: impl FnOnce() -> String,
    ) -> Result<(), F> {
        match read {
            Ok(read) => self.list.push(read),
            Err(failure) => match blame(&failure) {
                Some((what, why)) => {
                    self.unreadable.push(format!("{}: {}", comes_of_it(), Error::Unreadable { what, why }));
                }
                None => return Err(failure),
            },
        }
        Ok(())
    }
}

/// Adds the next of a series of events, and returns whether to continue. At an unreadable event the
/// caller gets those before it.
///
/// # Errors
/// `UnreadableEvent` if the unreadable one is the first. The next request of the caller therefore
/// reports it.
pub(crate) fn add_event<T, F: From<Error>>(
    events: &mut Vec<T>,
    read: Result<T, F>,
    (of, seq): (Teller, u64),
    blame: impl FnOnce(&F) -> Option<(String, String)>,
) -> Result<bool, F> {
    match read {
        Ok(event) => {
            events.push(event);
            Ok(true)
        }
        Err(failure) => match blame(&failure) {
            None => Err(failure),
            Some(_) if !events.is_empty() => Ok(false),
            Some((_, why)) => Err(Error::UnreadableEvent { of, seq, why }.into()),
        },
    }
}
