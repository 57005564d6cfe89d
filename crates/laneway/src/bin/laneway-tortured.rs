//! The program `laneway` with its hooks armed, for `cargo xtask torture` alone. docs/design/torture.md.

use std::process::ExitCode;

/// Returns free memory to the system. The allocator of the C library keeps what lies below a block in
/// use, so thousands of slow clients would leave hundreds of megabytes behind.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    laneway::run()
}
