//! Lists of rows of which some may not be what the program can have written there. They are read as far as they can be, so that one row
//! hides no other from who depends on all of them. Sets nobody aside: a verb that meets the row does, and what is no run's is told in words.

use crate::error::{Error, Teller};

/// What could be read.
#[derive(Debug)]
pub(crate) struct Readable<T> {
    pub(crate) list: Vec<T>,
    /// Whether there was more, of a run that is not set aside for it yet.
    pub(crate) has_trouble: bool,
}

impl<T> Readable<T> {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), has_trouble: false }
    }

    /// One more row, of a run that is set aside or not. A failure that is not about the row is given back.
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

/// What could be read of rows that are no run's. Nobody is set aside for the others, and so they are told of.
#[derive(Debug)]
pub(crate) struct Noted<T> {
    pub(crate) list: Vec<T>,
    pub(crate) unreadable: Vec<String>,
}

impl<T> Noted<T> {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), unreadable: Vec::new() }
    }

    /// One more row. `blame` says what of it is to blame for a failure, and why; a failure that is not about the row is given back.
    /// `comes_of_it` says in a few words what the row cannot do any more.
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

/// Takes one more of events in their order, and says whether to go on. At one that cannot be read whoever asks gets what stands before it, and
/// hears of it with the next question.
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
