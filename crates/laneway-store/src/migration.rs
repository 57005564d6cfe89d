//! What a migration is, for both databases: its number is its place in a list, from 1 on, and both lists have the same numbers. They only
//! add, so that a live older node goes on beside them; one with which it could not says so, and waits until none lives
//! (docs/design/store.md).

#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub(crate) sql: &'static str,
    /// Programs that do not know it cannot go on beside it: it is refused while one of their sessions lives, and none of theirs is
    /// registered behind it.
    pub(crate) breaks_older: bool,
}

impl Migration {
    pub(crate) const fn adds(sql: &'static str) -> Self {
        Self { sql, breaks_older: false }
    }

    #[cfg_attr(not(test), expect(dead_code, reason = "no migration does so yet"))]
    pub(crate) const fn breaks(sql: &'static str) -> Self {
        Self { sql, breaks_older: true }
    }
}

/// Of those that a store of this schema has yet to get, the last that older programs cannot go on with: its number is the least that a
/// program must know from then on.
pub(crate) fn breaking(migrations: &[Migration], schema: i64) -> Option<i64> {
    let numbered = (1_i64..).zip(migrations).filter(|(number, _)| *number > schema);
    numbered.filter(|(_, migration)| migration.breaks_older).map(|(number, _)| number).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_must_know_is_the_last_that_breaks_others() {
        let (adds, breaks) = (Migration::adds(""), Migration::breaks(""));
        let list = [adds, breaks, adds, breaks, adds];
        for (schema, expected) in [(0, Some(4)), (1, Some(4)), (3, Some(4)), (4, None), (5, None)] {
            assert_eq!(breaking(&list, schema), expected, "behind {schema}");
        }
    }
}
