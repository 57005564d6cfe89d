//! Who lives on in a process group whose leader has exited.
//!
//! `kill(-group, 0)` cannot tell: it counts the unreaped leader, and reaping it first would free the
//! group's number. So the process table is read. That happens only while a stopped step is in its grace.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::Pid;

/// A table this young is good enough: the caller asks again until its grace is over.
const FRESH: Duration = Duration::from_millis(10);

/// Groups that have a living process. Shared, so that canceling hundreds of steps does not read the
/// table hundreds of times.
struct Table {
    read_at: Instant,
    groups: HashSet<i32>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// Whether the group has a living member, seen after `since`. Where the table cannot be read it has
/// none, and the caller goes on to kill the group.
pub(super) fn has_any(group: Pid, since: Instant) -> bool {
    let mut table = TABLE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let table = match table.take() {
        Some(known) if known.read_at >= since && known.read_at.elapsed() < FRESH => table.insert(known),
        Some(_) | None => table.insert(Table { read_at: Instant::now(), groups: living_groups() }),
    };
    table.groups.contains(&group.as_raw_nonzero().get())
}

fn living_groups() -> HashSet<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return HashSet::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| std::fs::read(entry.path().join("stat")).ok())
        .filter_map(|stat| living_group(&stat))
        .collect()
}

/// `pid (name) state parent group …`; the name may hold anything, so the last bracket ends it.
fn living_group(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_process_table_is_read_whatever_the_name() {
        assert_eq!(living_group(b"12 (sh) S 1 34 34 0"), Some(34));
        assert_eq!(living_group(b"12 (a) Z 9 (b)) R 1 56 34 0"), Some(56));
        assert_eq!(living_group(b"12 (sh) Z 1 34 34 0"), None);
        assert_eq!(living_group(b""), None);
    }

    #[test]
    fn our_own_group_is_alive() {
        let own = rustix::process::getpgrp();
        assert!(has_any(own, Instant::now()));
    }
}
