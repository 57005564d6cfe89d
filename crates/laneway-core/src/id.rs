//! Identities. They are made by the store (core has neither a clock nor dice) and only read here.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            pub fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            pub fn parse(text: &str) -> Option<Self> {
                Uuid::try_parse(text).ok().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// One execution of a workflow.
    RunId;
    /// One life of a node.
    SessionId;
    /// One store, from its creation on; containers and backups are told apart by it.
    InstanceId;
}

impl RunId {
    /// The part that people type: random from its first digit on, unlike the head of a time-ordered id.
    pub fn short(&self) -> String {
        self.tail()[..8].to_owned()
    }

    /// The last twelve hexadecimal digits, of which any unique beginning names the run.
    pub fn tail(&self) -> String {
        let mut text = self.0.simple().to_string();
        text.split_off(20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_id_is_taken_from_the_random_end() {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("a well-formed id");
        assert_eq!(run.short(), "1a2b3c4d");
        assert_eq!(run.tail(), "1a2b3c4d5e6f");
    }
}
