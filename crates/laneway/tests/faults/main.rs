//! Faults of disks and files, met by the program as a user runs it: full, read-only, failing to sync, torn, damaged.
//! What is promised for each stands in docs/design/faults.md.

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]
#![expect(clippy::print_stdout, reason = "a long test says how far it is")]

mod damaged;
mod disk;
mod full;
mod place;
mod refused;
mod torn;
