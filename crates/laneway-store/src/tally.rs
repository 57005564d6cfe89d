//! How a session's own count of what it has done is stored: as JSON, so that a later program may count more, and how often
//! it asked beside it.

use crate::model::Tally;

pub(crate) fn to_text(tally: Tally) -> String {
    serde_json::to_string(&tally).expect("numbers can be written")
}

/// What cannot be read counts for nothing: it is told, and decides nothing.
pub(crate) fn read(text: Option<&str>, asks: u64, contentions: u64) -> Tally {
    let done: Tally = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Tally { asks, contentions, ..done }
}
