//! Contention and load at once: many runs that want the same keys, submitted by several callers at the
//! same time, first undisturbed, then with every kind of fault. The verdict is about progress as well
//! as safety: throughput against that of one caller, and deadlocks that the server counted.

use anyhow::Result;
use laneway_torture::Bug;

use super::case::{Case, Load, Report};
use super::fault::Fault;
use super::tally::Tally;
use super::{Ground, PATIENCE};
use crate::stage::note;
use crate::torture::dice::Dice;

/// Runs of each case.
const RUNS: u32 = 40;

/// Callers that submit at the same time, without a pause.
const SUBMITTERS: u32 = 6;

/// The least throughput beside concurrent callers, as a share of that with one, and of that of an
/// undisturbed run once faults are over. Far below what is measured (`bench nodes --parts contention` tells
/// that): a collapse is a share of a hundredth.
const LEAST_SHARE: f64 = 0.3;

/// Plays the same load three times and adds what was found to the tally. With faults the callers go on until
/// these are over, so that a stall shows as throughput that does not come back.
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
    let disturbed = one(ground, dice, (SUBMITTERS, faults), tally)?;
    let recovered = disturbed.recovered.unwrap_or_default();
    let (share, undisturbed) = (recovered / together.throughput(), together.throughput());
    note(&format!(
        "behind faults: {recovered:.1} tasks/s, {share:.2} of the undisturbed {undisturbed:.1}; {} runs in {:.1} s",
        disturbed.runs,
        disturbed.took.as_secs_f64()
    ));
    if share < LEAST_SHARE {
        tally.find(format!("once the faults were over the throughput was {share:.2} of the undisturbed"));
    }
    Ok(())
}

/// Plays the load without a seeded bug and with it. Returns what the verdict about progress says of it.
pub(super) fn hunt(ground: &mut Ground, dice: &mut Dice, bug: Bug) -> Result<Option<String>> {
    let undisturbed = case(dice, (SUBMITTERS, Vec::new()), None).play(ground)?.throughput();
    let seeded = case(dice, (SUBMITTERS, Vec::new()), Some(bug)).play(ground)?;
    if let Some(kept) = seeded.kept.as_ref() {
        // What a seeded bug left is of no interest.
        let _ = std::fs::remove_dir_all(kept);
    }
    let share = seeded.throughput() / undisturbed;
    Ok((share < LEAST_SHARE).then(|| format!("the throughput is {share:.2} of the undisturbed")))
}

fn one(ground: &mut Ground, dice: &mut Dice, load: (u32, Vec<Fault>), tally: &mut Tally) -> Result<Report> {
    let case = case(dice, load, None);
    let report = case.play(ground)?;
    tally.add(&case, &report);
    Ok(report)
}

fn case(dice: &mut Dice, (submitters, faults): (u32, Vec<Fault>), bug: Option<Bug>) -> Case {
    let seed = (dice.fraction() * f64::from(u32::MAX)) as u64;
    Case { seed, load: Load::Contended { runs: RUNS, submitters }, faults, bug, patience: PATIENCE }
}
