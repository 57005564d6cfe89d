//! Contention and load at once: many runs that want the same keys, submitted by several callers at the
//! same time, first undisturbed, then with every kind of fault. The verdict is about progress as well
//! as safety: throughput against that of one caller, and deadlocks that the server counted.

use std::time::Duration;

use anyhow::Result;

use super::case::{Case, Load, Report};
use super::fault::Fault;
use super::tally::Tally;
use super::{Ground, LEASE, PATIENCE};
use crate::stage::note;
use crate::torture::dice::Dice;

/// Runs of each case.
const RUNS: u32 = 40;

/// Callers that submit at the same time, without a pause.
const SUBMITTERS: u32 = 6;

/// The least throughput beside concurrent callers, as a share of that with one. Far below what is
/// measured (`bench nodes --parts contention` tells that): a collapse is a share of a hundredth.
const LEAST_SHARE: f64 = 0.3;

/// What each fault may cost beyond the undisturbed time: a lease until the loss is noticed, and the
/// time in which the database or a node is away.
const COST_OF_A_FAULT: Duration = Duration::from_secs(3 * LEASE.as_secs());

/// Plays the same load three times and adds what was found to the tally.
pub(super) fn play(ground: &mut Ground, dice: &mut Dice, faults: usize, tally: &mut Tally) -> Result<()> {
    let alone = one(ground, dice, (1, Vec::new()), tally)?;
    let together = one(ground, dice, (SUBMITTERS, Vec::new()), tally)?;
    let share = together.throughput() / alone.throughput();
    note(&format!("{SUBMITTERS} callers: {share:.2} of the throughput with one"));
    if share < LEAST_SHARE {
        tally.find(format!("with {SUBMITTERS} callers the throughput is {share:.2} of that with one"));
    }
    let mut faults: Vec<Fault> = Fault::all_kinds(dice).into_iter().take(faults).collect();
    faults.retain(|fault| !matches!(fault, Fault::Rest { .. }));
    let allowed = together.took.mul_f64(1.0 / LEAST_SHARE) + COST_OF_A_FAULT * faults.len() as u32;
    let disturbed = one(ground, dice, (SUBMITTERS, faults), tally)?;
    note(&format!("with faults: {:.1} s of {:.1} s", disturbed.took.as_secs_f64(), allowed.as_secs_f64()));
    if disturbed.took > allowed {
        let took = disturbed.took.as_secs_f64();
        tally.find(format!("with faults it took {took:.1} s, and {:.1} s are enough", allowed.as_secs_f64()));
    }
    Ok(())
}

fn one(
    ground: &mut Ground,
    dice: &mut Dice,
    (submitters, faults): (u32, Vec<Fault>),
    tally: &mut Tally,
) -> Result<Report> {
    let seed = (dice.fraction() * f64::from(u32::MAX)) as u64;
    let load = Load::Contended { runs: RUNS, submitters };
    let case = Case { seed, load, faults, bug: None, patience: PATIENCE };
    let report = case.play(ground)?;
    tally.add(&case, &report);
    Ok(report)
}
