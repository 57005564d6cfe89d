//! What every database must do, as one suite over the verbs of `store.rs`. A second database is
//! named in `harness::Database` and in `for_each_database!`, nowhere else. Only `files.rs` and
//! `disk.rs` are about SQLite alone.
//!
//! After every verb the harness folds the run's events anew and compares with what is stored, so
//! each test proves E1 and E2 along with its own sentence.

mod access;
mod admitting;
mod ahead;
mod audit;
mod bound;
mod bytes;
mod cache;
mod cancel;
mod children;
mod claims;
mod contention;
mod counted;
mod cuts;
mod disk;
mod effects;
mod failure;
mod families;
mod fence;
mod files;
mod gates;
mod glance;
mod groups;
mod growth;
mod harness;
mod hooks;
mod horizon;
mod item_failures;
mod layers;
mod levels;
mod line;
mod lives;
mod looking;
mod model;
mod nodes;
mod not_before;
mod pinned;
mod pools;
mod postgres;
mod prune;
mod quarantine;
mod random;
mod reference;
mod remote;
mod remove;
mod reopening;
mod retries;
mod rooms;
mod rules;
mod server;
mod spread;
mod statements;
mod stores;
mod submit;
mod triggers;
mod waits;
mod writer;
