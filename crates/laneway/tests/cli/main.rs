//! The program as a person meets it: real commands, a real store, real processes. Every test shows the
//! command, its exit code, stdout and stderr. One binary, because linking takes longer than the tests.

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

mod advice;
mod bytes;
mod cache;
mod children;
mod data_dir;
mod definition;
mod doctor;
mod effects;
mod errors;
mod file_oracle;
mod files;
mod first;
mod frozen;
mod groups;
mod growth;
mod hooks;
mod interrupt;
mod levels;
mod looking_back;
mod migrate;
mod move_store;
mod not_before;
mod place;
mod postgres;
mod private;
mod repair;
mod retention;
mod run;
mod screen;
mod serve;
mod settings;
mod terminal;
mod top;
mod triggers;
mod waits;
mod workers;
