//! The nearest step name for one that was mistyped.
//! Costs nothing while there is no fault, and a bounded amount when a large file is wrong everywhere.

use crate::definition::Step;

/// Comparisons for one document. Beyond it faults come without a hint: a file with thousands of wrong
/// names has another problem than a slip of the finger.
const COMPARISONS: usize = 20_000;

/// Longer names are not compared, because a comparison costs the product of both lengths.
const LONGEST: usize = 64;

pub(super) struct Nearest<'a> {
    steps: &'a [Step],
    left: usize,
}

impl<'a> Nearest<'a> {
    pub(super) fn among(steps: &'a [Step]) -> Self {
        Self { steps, left: COMPARISONS }
    }

    /// "did you mean …", if a step's name is near enough.
    pub(super) fn hint(&mut self, wrong: &str) -> Option<String> {
        if wrong.len() > LONGEST {
            return None;
        }
        // A third of the letters may be wrong, and at least one: `tset` is near `test`, `a` near `b` is not.
        let mut reach = (wrong.len() / 3).max(1);
        let mut best = None;
        for step in self.steps {
            if step.name.len().abs_diff(wrong.len()) > reach || step.name.len() > LONGEST {
                continue;
            }
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let distance = strsim::osa_distance(&step.name, wrong);
            if distance <= reach && distance < wrong.len() {
                best = Some(step.name.as_str());
                // Only a strictly nearer name may replace it, so ties go to the earlier step.
                match distance.checked_sub(1) {
                    Some(nearer) => reach = nearer,
                    None => break,
                }
            }
        }
        best.map(|name| format!("did you mean `{name}`?"))
    }
}
