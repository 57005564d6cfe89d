//! The words of the document's choices: each value's own, and back.

use super::model::{GroupFailure, OnFailure, OnLost, ParamType, Placement, When};

impl When {
    pub const ALL: [Self; 6] = [
        Self::AllSucceeded,
        Self::AllDone,
        Self::AllFailed,
        Self::OneSucceeded,
        Self::OneFailed,
        Self::Always,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllSucceeded => "all_succeeded",
            Self::AllDone => "all_done",
            Self::AllFailed => "all_failed",
            Self::OneSucceeded => "one_succeeded",
            Self::OneFailed => "one_failed",
            Self::Always => "always",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == text)
    }
}

impl OnFailure {
    pub const ALL: [Self; 3] = [Self::Halt, Self::Abort, Self::Continue];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Abort => "abort",
            Self::Continue => "continue",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == text)
    }
}

impl OnLost {
    pub const ALL: [Self; 2] = [Self::Retry, Self::Fail];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Fail => "fail",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == text)
    }
}

impl Placement {
    pub const ALL: [Self; 3] = [Self::Spread, Self::Pinned, Self::Local];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Pinned => "pinned",
            Self::Local => "local",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == text)
    }
}

impl GroupFailure {
    pub const ALL: [Self; 2] = [Self::Strict, Self::Lenient];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Lenient => "lenient",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == text)
    }
}

impl ParamType {
    pub const ALL: [Self; 6] =
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::List, Self::Object];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::List => "list",
            Self::Object => "object",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_reads_back_from_its_own_word() {
        assert!(When::ALL.iter().all(|value| When::parse(value.as_str()) == Some(*value)));
        assert!(OnFailure::ALL.iter().all(|value| OnFailure::parse(value.as_str()) == Some(*value)));
        assert!(OnLost::ALL.iter().all(|value| OnLost::parse(value.as_str()) == Some(*value)));
        assert!(Placement::ALL.iter().all(|value| Placement::parse(value.as_str()) == Some(*value)));
        assert!(GroupFailure::ALL.iter().all(|value| GroupFailure::parse(value.as_str()) == Some(*value)));
        assert!(ParamType::ALL.iter().all(|value| ParamType::parse(value.as_str()) == Some(*value)));
    }
}
