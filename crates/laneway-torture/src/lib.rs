//! Hooks by which a test build dies, errs and repeats itself where it is told to: [`Point`] lists the places at
//! which it can die, [`Bug`] the mistakes that it can make. docs/design/torture.md says what is done with them.
//!
//! The hooks stand in the product's own code. Unless the feature `armed` is on they are empty and constant, so
//! that nothing of them is in the program. They are told what to do by [`arm`], and do nothing before that.

mod armed;
mod bugs;
mod points;

pub use armed::{Arms, BadArms};
pub use bugs::Bug;
pub use points::{Place, Point};

/// Whether this is a test build.
pub const ARMED: bool = cfg!(feature = "armed");

/// Tells the hooks what to do. Nothing in any other build.
#[inline(always)]
pub fn arm(arms: &Arms) -> Result<(), BadArms> {
    if ARMED { armed::arm(arms) } else { Ok(()) }
}

/// The program comes past a place at which it could die. If it was told to die here, it does.
#[inline(always)]
pub fn pass(point: Point) {
    if ARMED {
        armed::pass(point);
    }
}

/// Whether this program was told to make a mistake.
#[inline(always)]
pub fn has(bug: Bug) -> bool {
    ARMED && armed::has(bug)
}

/// How much later this message is to be delivered a second time, if it is.
#[inline(always)]
pub fn echoes() -> Option<std::time::Duration> {
    if ARMED { armed::echoes() } else { None }
}
