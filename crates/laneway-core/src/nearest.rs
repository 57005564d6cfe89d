//! The nearest valid name for a misspelt one, for "did you mean …?".

/// Compares at most this many names, so that a mistake in a huge document stays cheap.
const MAX_COMPARED: usize = 10_000;

/// The candidate closest to `name`, if one is close enough to be meant.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let length = name.chars().count();
    // Nobody mistypes a name this long in one place and expects a suggestion.
    if length > 100 {
        return None;
    }
    let allowed = match length {
        0..=3 => 1,
        4..=6 => 2,
        _ => 3,
    };
    let folded = name.to_lowercase();
    candidates
        .into_iter()
        .take(MAX_COMPARED)
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            // An abbreviation such as `int` is nearer than any slip.
            if length >= 3 && other.starts_with(&folded) {
                return Some((0, candidate));
            }
            if other.len().abs_diff(folded.len()) > 3 * allowed {
                return None;
            }
            let distance = strsim::osa_distance(&folded, &other);
            (distance <= allowed && distance < other.chars().count()).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_that_was_meant_and_nonsense_finds_none() {
        let names = ["needs", "run", "command", "timeout"];
        assert_eq!(nearest("need", names), Some("needs"));
        assert_eq!(nearest("Timeout", names), Some("timeout"));
        assert_eq!(nearest("comand", names), Some("command"));
        assert_eq!(nearest("rnu", names), Some("run"));
        assert_eq!(nearest("int", ["list", "integer"]), Some("integer"));
        assert_eq!(nearest("zzzzzzzz", names), None);
    }
}
