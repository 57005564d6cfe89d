//! The states of a pooled container, and the only function that says which may follow which.
//!
//! ```text
//! starting ──▶ idle ◀──▶ running ──▶ dormant
//!                ▲ │                    ▲ │
//!                │ └────────────────────┘ │
//!                └────────────────────────┘      from each of them: terminated
//! ```

use crate::state::Illegal;
use crate::words::words;

words! {
    /// Where a pooled container is. Each transition is an event of the same name.
    pub enum ContainerState {
        /// Made, and not known to be healthy yet.
        Starting = "starting",
        /// Healthy, and nobody's.
        Idle = "idle",
        /// Held by a task, or being cleaned after it.
        Running = "running",
        /// Clean and paused: it costs memory and nothing else.
        Dormant = "dormant",
        /// To be removed, or removed.
        Terminated = "terminated",
    }
}

words! {
    /// Why a container was terminated.
    pub enum EndReason {
        StartFailed = "start_failed",
        /// It could not be woken, or was not healthy then.
        WakeFailed = "wake_failed",
        /// Something of a task was left in it.
        Dirty = "dirty",
        /// It lay dormant for as long as it may.
        Expired = "expired",
        /// It was dormant, and its port was needed for a task of another container.
        Evicted = "evicted",
        /// The run that used it was aborted.
        Aborted = "aborted",
        /// Somebody asked for it.
        Drained = "drained",
        /// It was gone, and not by us.
        Died = "died",
        /// The node stops.
        Closed = "closed",
        /// Its node is gone and has not ended it.
        NodeLost = "node_lost",
    }
}

impl ContainerState {
    /// Whether a container may go from this state to that one. One that is terminated may be terminated again, which
    /// changes nothing: tear-down twice is once.
    pub fn next(self, to: Self) -> Result<Self, Illegal> {
        use ContainerState as S;
        match (self, to) {
            (S::Starting, S::Idle)
            | (S::Idle, S::Running | S::Dormant)
            // Cleaned, and wanted at once: it is not put to sleep to be woken.
            | (S::Running, S::Idle | S::Dormant)
            // Awake and healthy. Only what is idle is given out.
            | (S::Dormant, S::Idle)
            | (S::Starting | S::Idle | S::Running | S::Dormant | S::Terminated, S::Terminated) => Ok(to),
            (S::Starting, S::Starting | S::Running | S::Dormant)
            | (S::Idle, S::Starting | S::Idle)
            | (S::Running, S::Starting | S::Running)
            | (S::Dormant, S::Starting | S::Running | S::Dormant)
            | (S::Terminated, S::Starting | S::Idle | S::Running | S::Dormant) => {
                Err(Illegal { entity: "container", from: self.as_str(), to: to.becoming() })
            }
        }
    }

    /// For refusals.
    fn becoming(self) -> &'static str {
        match self {
            Self::Starting => "be started again",
            Self::Idle => "become idle",
            Self::Running => "become running",
            Self::Dormant => "become dormant",
            Self::Terminated => "become terminated",
        }
    }
}

#[cfg(test)]
mod tests {
    use ContainerState as S;

    use super::*;

    /// Every pair, by hand: the table of docs/design/pools.md.
    const TABLE: [(ContainerState, ContainerState, bool); 25] = [
        (S::Starting, S::Starting, false),
        (S::Starting, S::Idle, true),
        (S::Starting, S::Running, false),
        (S::Starting, S::Dormant, false),
        (S::Starting, S::Terminated, true),
        (S::Idle, S::Starting, false),
        (S::Idle, S::Idle, false),
        (S::Idle, S::Running, true),
        (S::Idle, S::Dormant, true),
        (S::Idle, S::Terminated, true),
        (S::Running, S::Starting, false),
        (S::Running, S::Idle, true),
        (S::Running, S::Running, false),
        (S::Running, S::Dormant, true),
        (S::Running, S::Terminated, true),
        (S::Dormant, S::Starting, false),
        (S::Dormant, S::Idle, true),
        (S::Dormant, S::Running, false),
        (S::Dormant, S::Dormant, false),
        (S::Dormant, S::Terminated, true),
        (S::Terminated, S::Starting, false),
        (S::Terminated, S::Idle, false),
        (S::Terminated, S::Running, false),
        (S::Terminated, S::Dormant, false),
        (S::Terminated, S::Terminated, true),
    ];

    #[test]
    fn every_pair_of_states_is_as_the_table_says() {
        let pairs = S::ALL.iter().flat_map(|from| S::ALL.iter().map(|to| (*from, *to)));
        let listed: Vec<_> = TABLE.iter().map(|(from, to, _)| (*from, *to)).collect();
        assert_eq!(pairs.collect::<Vec<_>>(), listed, "all 25, each once");
        for (from, to, is_allowed) in TABLE {
            assert_eq!(from.next(to).is_ok(), is_allowed, "{from} -> {to}");
            if is_allowed {
                assert_eq!(from.next(to), Ok(to));
            }
        }
    }

    #[test]
    fn a_refusal_names_both_states() {
        let refusal = S::Terminated.next(S::Running).expect_err("nothing comes back");
        assert_eq!(refusal.to_string(), "a container that is terminated cannot become running");
    }
}
