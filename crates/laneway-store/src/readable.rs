//! A list of rows of which some may not be what the program can have written there. It is read as far as it can be, so that one row
//! hides no other from who depends on all of them. Sets nobody aside: a verb that meets the row does.

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
