//! A step that writes the moment at which it runs to the file that is its argument, and nothing else: as small as a
//! program can be, so that what is measured is the way to it.

use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};

fn main() -> ExitCode {
    // By the clock that all processes of a machine share, in nanoseconds; before anything else is done.
    let now = clock_gettime(ClockId::Monotonic);
    let moment = now.tv_sec * 1_000_000_000 + now.tv_nsec;
    match std::env::args_os().nth(1).map(|file| std::fs::write(file, moment.to_string())) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) | None => ExitCode::FAILURE,
    }
}
