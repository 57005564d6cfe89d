//! Mistakes that a test build makes on demand, each at the place where the right code stands. They test the checker:
//! one that does not find every one of them would not find an honest mistake either.

macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $bug:ident = $name:literal;)+) => {
        /// A seeded mistake.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Bug {
            $($(#[doc = $doc])+ $bug,)+
        }

        impl Bug {
            pub const ALL: &[Self] = &[$(Self::$bug),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)+
                }
            }

            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

bugs! {
    /// a finish is taken from whoever says it
    NoFence = "no-fence";
    /// a finish is taken from the holder of any attempt of the same session
    NoAttempt = "no-attempt";
    /// events are written after the transaction, not in it
    LateEvents = "late-events";
    /// the gate `max_parallel` counts nobody
    OverGrant = "over-grant";
    /// a session counts as dead although its process holds the lock
    ReapLive = "reap-live";
    /// callers are answered before the commit
    EarlyAnswer = "early-answer";
    /// a finish that is said again counts down again
    FinishTwice = "finish-twice";
    /// a claim takes the number of the attempt before it
    OldAttempt = "old-attempt";
    /// the tasks of a dead session are not returned
    LostDropped = "lost-dropped";
    /// the warden leaves the steps alone when its node dies
    Leftovers = "leftovers";
}

impl Bug {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }
}
