//! Mistakes that a test build makes on demand, each at the place where the right code stands. They test the checker:
//! one that does not find every one of them would not find an honest mistake either.

use crate::Place;

macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $bug:ident = $name:literal in $place:ident;)+) => {
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

            /// Where it shows: in a single node, or only among several.
            pub fn place(self) -> Place {
                match self {
                    $(Self::$bug => Place::$place,)+
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
    NoFence = "no-fence" in Node;
    /// a finish is taken from the holder of any attempt of the same session
    NoAttempt = "no-attempt" in Node;
    /// events are written after the transaction, not in it
    LateEvents = "late-events" in Node;
    /// the gate `max_parallel` counts nobody
    OverGrant = "over-grant" in Node;
    /// a session counts as dead although its process holds the lock
    ReapLive = "reap-live" in Node;
    /// callers are answered before the commit
    EarlyAnswer = "early-answer" in Node;
    /// a finish that is said again counts down again
    FinishTwice = "finish-twice" in Node;
    /// a claim takes the number of the attempt before it
    OldAttempt = "old-attempt" in Node;
    /// the tasks of a dead session are not returned
    LostDropped = "lost-dropped" in Node;
    /// the warden leaves the steps alone when its node dies
    Leftovers = "leftovers" in Warden;
    /// holders of a key are counted before its lock is there
    CountBeforeLock = "count-before-lock" in Shared;
    /// a rate's moment is read before its lock is there
    RateUnlocked = "rate-unlocked" in Shared;
    /// a key that is let go of is not handed on
    KeyKept = "key-kept" in Shared;
    /// a key is handed on by a transaction that locks it before the run of the next in line
    KeyBeforeRun = "key-before-run" in Shared;
    /// versions of an order are compared as text
    OrderAsText = "order-as-text" in Shared;
    /// who returns a session need not have renewed its own
    ReapUnrenewed = "reap-unrenewed" in Shared;
    /// sessions are returned although the database has just started
    ReapTooSoon = "reap-too-soon" in Shared;
    /// what was claimed and never heard of is not given back
    ClaimForgotten = "claim-forgotten" in Shared;
    /// an end whose answer was lost is not said again
    FinishForgotten = "finish-forgotten" in Shared;
    /// work is asked for only when somebody notifies
    HintNeeded = "hint-needed" in Shared;
    /// what runs is killed long after the lease is over
    FenceLate = "fence-late" in Shared;
    /// who claims behind a finish that freed a key waits for seconds
    ClaimStalled = "claim-stalled" in Shared;
}

impl Bug {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }
}
