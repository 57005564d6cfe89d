//! In which containers the attempts of a step ran. One of an attempt's own has a name before it exists, so that nothing need be kept of
//! it; which warm one an attempt was given is told by the events of its pool, as long as these are kept.

use laneway_core::definition::Housing;
use laneway_core::growth::parse_name;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_engine::container::labels;
use laneway_store::{Result, Store};

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
            None => Some(labels::name(run, step, attempt.attempt)),
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
