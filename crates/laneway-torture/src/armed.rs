//! What the hooks do in a test build. Nothing here is called in any other one.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::{Bug, Point};

/// What the hooks are told, each as its environment variable says it.
#[derive(Debug, Clone, Default)]
pub struct Arms {
    /// `POINT:N`: die at the N-th passing of a point.
    pub crash: Option<String>,
    /// The mistake to make.
    pub bug: Option<String>,
    /// `N:MS`: the N-th finish is said a second time, so many milliseconds later.
    pub echo: Option<String>,
    /// A file that is told of every passing, and of the death.
    pub passed: Option<PathBuf>,
}

/// Why the hooks cannot be armed like that.
#[derive(Debug, thiserror::Error)]
pub enum BadArms {
    #[error("`{0}` is not POINT:N with a known point; laneway-torture/src/points.rs lists them")]
    Crash(String),
    #[error("`{0}` is no seeded bug; laneway-torture/src/bugs.rs lists them")]
    Bug(String),
    #[error("`{0}` is not N:MS, the number of a finish and milliseconds")]
    Echo(String),
    #[error("the file for passings cannot be opened: {0}")]
    Passed(#[from] std::io::Error),
}

#[derive(Debug)]
struct Armed {
    crash: Option<(Point, u32)>,
    bug: Option<Bug>,
    echo: Option<(u32, Duration)>,
    passed: Option<File>,
    /// Of the armed point.
    passings: AtomicU32,
    finishes: AtomicU32,
}

static STATE: OnceLock<Armed> = OnceLock::new();

pub(crate) fn arm(arms: &Arms) -> Result<(), BadArms> {
    let crash = arms.crash.as_ref().map(|text| crash(text).ok_or_else(|| BadArms::Crash(text.clone())));
    let bug = arms.bug.as_ref().map(|text| Bug::named(text).ok_or_else(|| BadArms::Bug(text.clone())));
    let echo = arms.echo.as_ref().map(|text| echo(text).ok_or_else(|| BadArms::Echo(text.clone())));
    let passed = arms.passed.as_ref().map(|path| OpenOptions::new().append(true).create(true).open(path));
    let armed = Armed {
        crash: crash.transpose()?,
        bug: bug.transpose()?,
        echo: echo.transpose()?,
        passed: passed.transpose()?,
        passings: AtomicU32::new(0),
        finishes: AtomicU32::new(0),
    };
    // Armed once, at the start of the program.
    let _ = STATE.set(armed);
    Ok(())
}

fn crash(text: &str) -> Option<(Point, u32)> {
    let (point, at) = text.rsplit_once(':')?;
    Some((Point::named(point)?, at.parse().ok()?))
}

fn echo(text: &str) -> Option<(u32, Duration)> {
    let (number, late) = text.split_once(':')?;
    Some((number.parse().ok()?, Duration::from_millis(late.parse().ok()?)))
}

pub(crate) fn pass(point: Point) {
    let Some(armed) = STATE.get() else { return };
    armed.note(point.name());
    if let Some((at, wanted)) = armed.crash
        && at == point
        && armed.passings.fetch_add(1, Ordering::Relaxed) + 1 == wanted
    {
        armed.note(&format!("died {}", point.name()));
        // As `kill -9` by somebody else: no destructor, no flush, no word.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

pub(crate) fn has(bug: Bug) -> bool {
    STATE.get().is_some_and(|armed| armed.bug == Some(bug))
}

pub(crate) fn echoes() -> Option<Duration> {
    let armed = STATE.get()?;
    let (wanted, late) = armed.echo?;
    (armed.finishes.fetch_add(1, Ordering::Relaxed) + 1 == wanted).then_some(late)
}

impl Armed {
    /// One write, so that lines of several processes do not mix.
    fn note(&self, text: &str) {
        if let Some(mut file) = self.passed.as_ref() {
            let _ = file.write_all(format!("{text}\n").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_a_known_point_and_a_number() {
        assert_eq!(crash("store.commit.before:3"), Some((Point::CommitBefore, 3)));
        assert_eq!(crash("store.commit.before"), None);
        assert_eq!(crash("nowhere:1"), None);
        assert_eq!(crash("store.commit.before:x"), None);
    }

    #[test]
    fn names_are_unique_and_lead_back() {
        for point in Point::ALL {
            assert_eq!(Point::named(point.name()), Some(*point));
        }
        for bug in Bug::ALL {
            assert_eq!(Bug::named(bug.name()), Some(*bug));
        }
        assert_eq!(Bug::ALL.iter().filter(|bug| bug.place() == crate::Place::Shared).count(), 12);
        assert_eq!(Bug::ALL.len(), 22);
    }
}
