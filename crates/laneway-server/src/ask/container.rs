//! In which containers the attempts of a step ran. One of an attempt's own has a name before it exists, so that nothing need be kept of
//! it; which warm one an attempt was given is told by the events of its pool, as long as these are kept.

use laneway_core::definition::Housing;
use laneway_core::growth::parse_name;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::reason::Reason;
use laneway_engine::container::labels;
use laneway_store::{Result, Store, claim_suffix};

use crate::wire;

/// Fills in those of the attempts. Gives in what the step runs, without the name of any container; nothing for one that needs none.
pub(super) async fn housed(
    store: &dyn Store,
    (run, plan): (RunId, &Plan),
    step: &str,
    attempts: &mut [wire::Attempt],
) -> Result<Option<wire::TaskContainer>> {
    let Some(position) = plan.position(parse_name(step).0) else { return Ok(None) };
    let (image, pool) = match plan.step(position).housing() {
        None => return Ok(None),
        Some(Housing::Own(container)) => (container.image.clone(), None),
        Some(Housing::Pool(name)) => match plan.pool_of(position) {
            Some(pool) => (pool.container.image, Some(name.clone())),
            None => return Ok(None),
        },
    };
    let taken = if pool.is_some() { store.taken(run, step).await? } else { Vec::new() };
    for attempt in attempts.iter_mut() {
        let container = match pool {
            None => has_run(attempt)
                .then(|| labels::name(run, step, &claim_suffix(attempt.attempt, attempt.generation))),
            // Behind one that was found dead comes another.
            Some(_) => {
                let last = taken.iter().rfind(|taken| taken.attempt == attempt.attempt);
                last.map(|taken| taken.container.clone())
            }
        };
        attempt.container = Some(wire::TaskContainer { image: image.clone(), pool: pool.clone(), container });
    }
    Ok(Some(wire::TaskContainer { image, pool, container: None }))
}

/// One that never started made no container, and neither did one that took a result that was there.
fn has_run(attempt: &wire::Attempt) -> bool {
    attempt.started_at.is_some() && attempt.reason != Some(Reason::Cached)
}

#[cfg(test)]
mod tests {
    use laneway_core::time::Millis;

    use super::*;

    #[test]
    fn attempt_that_did_nothing_had_no_container() {
        let of = |started_at: Option<i64>, reason| wire::Attempt {
            attempt: 1,
            generation: 1,
            node: None,
            outcome: "succeeded".to_owned(),
            reason,
            detail: None,
            exit_code: None,
            started_at: started_at.map(|at| wire::Moment(Millis(at))),
            took_ms: None,
            finished_at: None,
            container: None,
        };
        assert!(has_run(&of(Some(1), None)));
        assert!(has_run(&of(Some(1), Some(Reason::Exit))));
        assert!(!has_run(&of(None, None)), "it was claimed and never started");
        assert!(!has_run(&of(Some(1), Some(Reason::Cached))));
    }
}
