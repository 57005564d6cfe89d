//! CPU time of a process and of the children that it waited for, as `/proc` has it. Elsewhere than
//! on Linux there is none.

use std::time::Duration;

/// Returns user and system time of a process with its ended children; also of one that has ended
/// and was not waited for.
pub(crate) fn of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks(&stat)?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Returns the same of this process.
pub(crate) fn of_this() -> Duration {
    of(std::process::id()).unwrap_or_default()
}

/// The fields 14 to 17. The name in front of them may hold blanks and brackets.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let times: Vec<u64> = fields.split(' ').skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 8 7 6 10 20 300 4000 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(4330));
        assert_eq!(ticks("7 (a"), None);
    }
}
