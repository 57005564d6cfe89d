//! The program `laneway`. Everything is in `lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    laneway::run()
}
