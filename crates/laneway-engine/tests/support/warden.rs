//! Wardens for tests: the program that this package builds.

use std::cell::RefCell;

use laneway_engine::warden::{Warden, WardenCommand};
use tokio::runtime::{Handle, Id};

thread_local! {
    /// A warden belongs to a runtime, and a test has one of its own.
    static CURRENT: RefCell<Option<(Id, Warden)>> = const { RefCell::new(None) };
}

/// The warden of this test. `LANEWAY_CGROUPS=off` runs the whole suite without cgroups.
pub(crate) fn warden() -> Warden {
    let runtime = Handle::current().id();
    CURRENT.with_borrow_mut(|current| match current {
        Some((id, warden)) if *id == runtime => warden.clone(),
        Some(_) | None => {
            let use_cgroups = std::env::var("LANEWAY_CGROUPS").as_deref() != Ok("off");
            let warden = new_warden(use_cgroups);
            *current = Some((runtime, warden.clone()));
            warden
        }
    })
}

pub(crate) fn new_warden(use_cgroups: bool) -> Warden {
    Warden::start(command(use_cgroups)).expect("a warden starts")
}

pub(crate) fn command(use_cgroups: bool) -> WardenCommand {
    WardenCommand {
        program: env!("CARGO_BIN_EXE_laneway-warden").into(),
        args: Vec::new(),
        lock: None,
        lease: None,
        use_cgroups,
        is_leased: false,
    }
}
