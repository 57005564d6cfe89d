//! Decides whether a claim whose rates have expired is given back. Pure; `drive/say.rs` acts on it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_store::model::Claim;

/// How often one task takes new passages in a row before it starts late.
const MAX_PASSAGES: u32 = 8;

/// A task that was not late for this long is counted anew.
const LATE_MEMORY: Duration = Duration::from_secs(10);

/// Tasks that came too late of late: how often, and when last.
///
/// A worker whose requests take longer than a passage lasts would give its task back for ever.
#[derive(Debug, Default)]
pub(super) struct Passages {
    late: HashMap<(RunId, Position), (u32, Instant)>,
}

impl Passages {
    /// Returns whether a claim may start, and counts it if it is late.
    pub(super) fn may_start(&mut self, claim: &Claim, now: Instant) -> bool {
        let Some(start_by) = claim.start_by else { return true };
        let task = (claim.at.run, claim.at.position);
        if now < start_by {
            self.late.remove(&task);
            return true;
        }
        self.late.retain(|_, (_, last)| now.duration_since(*last) < LATE_MEMORY);
        let (count, last) = self.late.entry(task).or_insert((0, now));
        (*count, *last) = (*count + 1, now);
        let is_worn_out = *count > MAX_PASSAGES;
        if is_worn_out {
            self.late.remove(&task);
        }
        is_worn_out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use laneway_core::definition::{Source, compile};
    use laneway_core::id::SessionId;
    use laneway_store::ClaimRef;
    use laneway_store::model::{Placed, RunHead};

    use super::*;

    fn claim(start_by: Option<Instant>) -> Claim {
        let text = "steps:\n  a: {run: x}\n".to_owned();
        let plan = compile(&Source { file: "t".into(), default_name: "t".into(), text }).expect("a plan");
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let (run, session) = (RunId::parse(id).expect("an id"), SessionId::parse(id).expect("an id"));
        let head = RunHead {
            bundle: None,
            run,
            plan: Arc::new(plan),
            dir: "/".into(),
            params: serde_json::Map::new(),
            max_parallel: 1,
            submitted_from: String::new(),
            keys: Default::default(),
            placed: Placed::Local,
            own_class: -1,
            parent: None,
            no_cache: false,
        };
        let at = ClaimRef { run, position: 0, attempt: 1, generation: 1, session };
        Claim { at, head: Arc::new(head), start_by }
    }

    #[test]
    fn claim_in_time_and_claim_without_rates_start() {
        let (now, mut passages) = (Instant::now(), Passages::default());
        assert!(passages.may_start(&claim(None), now));
        assert!(passages.may_start(&claim(Some(now + Duration::from_millis(1))), now));
        assert!(!passages.may_start(&claim(Some(now)), now));
    }

    #[test]
    fn task_that_is_late_again_and_again_starts_at_last() {
        let (now, mut passages) = (Instant::now(), Passages::default());
        let late = claim(Some(now));
        for _ in 0..8 {
            assert!(!passages.may_start(&late, now));
        }
        assert!(passages.may_start(&late, now));
        assert!(!passages.may_start(&late, now), "and is counted anew");
    }

    #[test]
    fn lateness_of_long_ago_does_not_count() {
        let (now, mut passages) = (Instant::now(), Passages::default());
        let late = claim(Some(now));
        for time in 0..100 {
            assert!(!passages.may_start(&late, now + Duration::from_secs(11 * time)));
        }
    }
}
