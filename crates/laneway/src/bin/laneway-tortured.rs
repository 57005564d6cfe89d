//! The program `laneway` with its hooks armed, for `cargo xtask torture` alone. docs/design/torture.md.

use std::process::ExitCode;

fn main() -> ExitCode {
    laneway::run()
}
