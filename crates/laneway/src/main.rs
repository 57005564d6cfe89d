//! The program `laneway`. Everything is in `lib.rs`.

use std::process::ExitCode;

/// Returns free memory to the system. The allocator of the C library keeps what lies below a block in
/// use, so thousands of slow clients would leave hundreds of megabytes behind.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    laneway::run()
}
