//! What both databases make of the facts of pools. Pure; the statements are theirs.

use laneway_core::id::RunId;
use laneway_core::pool::{ContainerTaken, PoolFact};

/// What comes of a wish that cannot be read.
pub(crate) const UNGRANTED: &str = "a wish for a pool is not granted";

/// The fact, if it is about an attempt of that task. One that cannot be read hides none of the others.
pub(crate) fn taken(name: &str, version: u32, body: &str, run: RunId, step: &str) -> Option<ContainerTaken> {
    match PoolFact::read(name, version, body).ok()? {
        PoolFact::ContainerTaken(taken) if taken.run == run && taken.step == step => Some(taken),
        PoolFact::ContainerTaken(_)
        | PoolFact::ContainerStarting(_)
        | PoolFact::ContainerIdle(_)
        | PoolFact::ContainerRunning(_)
        | PoolFact::ContainerDormant(_)
        | PoolFact::ContainerTerminated(_)
        | PoolFact::ImagePullProgress(_) => None,
    }
}
