//! The nearest valid name for a misspelt one, for "did you mean …?".

/// The candidate closest to `name`, if one is close enough to be meant.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    Nearest::default().among(name, candidates)
}

/// The same for many names of one document, within one budget: a file with thousands of wrong names has another
/// problem than a slip of the finger, and costs no more than one with a few.
#[derive(Debug)]
pub struct Nearest {
    comparisons_left: usize,
}

impl Default for Nearest {
    fn default() -> Self {
        Self { comparisons_left: 20_000 }
    }
}

impl Nearest {
    /// As a hint of an error.
    pub fn hint<'c>(&mut self, name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
        self.among(name, candidates).map(|found| format!("did you mean `{found}`?"))
    }

    pub fn among<'c>(
        &mut self,
        name: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
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
        let mut best: Option<(usize, &str)> = None;
        for candidate in candidates {
            if self.comparisons_left == 0 {
                break;
            }
            self.comparisons_left -= 1;
            // Wrong itself, and nothing to be shown.
            if candidate.chars().any(char::is_control) {
                continue;
            }
            let Some(distance) = distance(&folded, candidate, allowed) else { continue };
            // Only a strictly nearer name may replace it, so ties go to the earlier one.
            if best.is_none_or(|(nearest, _)| distance < nearest) {
                best = Some((distance, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }
}

/// How many slips lie between the two; `None` if more than are allowed.
fn distance(folded: &str, candidate: &str, allowed: usize) -> Option<usize> {
    // The length in bytes bounds the cost of a comparison before anything is copied.
    if candidate.len() > 100 {
        return None;
    }
    let other = candidate.to_lowercase();
    // An abbreviation such as `int` is nearer than any slip.
    if folded.len() >= 3 && other.starts_with(folded) {
        return Some(0);
    }
    if other.len().abs_diff(folded.len()) > 3 * allowed {
        return None;
    }
    let distance = strsim::osa_distance(folded, &other);
    // `a` is not near `b`: some letter must be left of what was meant.
    let longer = other.chars().count().max(folded.chars().count());
    (distance <= allowed && distance < longer).then_some(distance)
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
