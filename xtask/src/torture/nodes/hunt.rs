//! The seeded bugs of nodes, and where to look for each first, so that the hunt is short. What finds it is the same checker.

use std::time::Duration;

use anyhow::Result;
use laneway_torture::{Bug, Place, Point};

use super::super::dice::Dice;
use super::case::{Case, Load};
use super::contention;
use super::fault::Fault;
use super::network::Cut;
use super::proxy::Moment;
use super::tally::Tally;
use super::{Ground, LEASE};

/// How often a bug may go by before it counts as missed.
const TRIES: usize = 5;

/// Only what is broken waits that long.
const PATIENCE: Duration = Duration::from_secs(25);

pub(super) fn bugs() -> Vec<Bug> {
    Bug::ALL.iter().copied().filter(|bug| bug.place() == Place::Shared).collect()
}

/// Those that only nodes on Postgres come past, and some of every node that matter most there.
pub(super) fn points() -> impl Iterator<Item = Point> {
    let of_all = [Point::Claimed, Point::Begun, Point::SpawnAsked, Point::AttemptEnded, Point::Recorded];
    Point::ALL.iter().copied().filter(move |point| point.place() == Place::Shared || of_all.contains(point))
}

pub(super) fn all(ground: &mut Ground, bugs: &[Bug], dice: &mut Dice, tally: &mut Tally) -> Result<()> {
    for bug in bugs {
        let mut caught = None;
        for tried in 1..=TRIES {
            if *bug == Bug::ClaimStalled {
                if let Some(finding) = contention::hunt(ground, dice, *bug)? {
                    caught = Some((tried, finding));
                    break;
                }
                continue;
            }
            let (load, faults) = haunt(*bug);
            let seed = (dice.fraction() * f64::from(u32::MAX)) as u64;
            let case = Case { seed, load, faults, bug: Some(*bug), patience: PATIENCE };
            let report = case.play(ground)?;
            if let Some(kept) = report.kept {
                // What a seeded bug left is of no interest.
                let _ = std::fs::remove_dir_all(kept);
            }
            if let Some(finding) = report.findings.into_iter().last() {
                caught = Some((tried, finding));
                break;
            }
        }
        tally.add_bug(*bug, caught);
    }
    Ok(())
}

/// What is run, and what goes wrong.
fn haunt(bug: Bug) -> (Load, Vec<Fault>) {
    let lease = LEASE.as_millis() as u64;
    let rest = |for_ms| Fault::Rest { for_ms };
    match bug {
        Bug::CountBeforeLock | Bug::RateUnlocked => (Load::Crowd(30), vec![]),
        Bug::KeyKept => (Load::Crowd(6), vec![]),
        Bug::KeyBeforeRun => (Load::Contended { runs: 40, submitters: 6 }, vec![]),
        // Nothing is wrong with it but how long it takes (`contention::hunt`).
        Bug::ClaimStalled => (Load::Contended { runs: 40, submitters: 6 }, vec![]),
        Bug::OrderAsText => (Load::Random(10), vec![]),
        // Its lease ends while the others cannot renew, and have not given up yet.
        Bug::ReapUnrenewed => {
            let kill = Fault::Kill { node: 2, rest_ms: lease * 3 };
            (Load::Long(3), vec![kill, rest(lease * 3 / 8), Fault::Renewals { for_ms: lease }])
        }
        Bug::ReapTooSoon => (Load::Long(3), vec![Fault::Outage { for_ms: lease * 2 }]),
        Bug::ClaimForgotten => {
            (Load::Chain(8), (0..3).map(|node| Fault::Claims { node, times: 3 }).collect())
        }
        Bug::FinishForgotten => {
            let cut = |node| Fault::Answers { node, moment: Moment::Before, times: 6 };
            (Load::Chain(12), (0..3).map(cut).collect())
        }
        Bug::HintNeeded => (Load::Chain(10), vec![Fault::Deaf { for_ms: lease * 2 }]),
        Bug::FenceLate => {
            let cut = |node| Fault::Cut { node, cut: Cut::Full, for_ms: lease * 2 };
            (Load::Long(5), vec![cut(0), Fault::Freeze { node: 1 }, cut(2)])
        }
        // `walk.rs` hunts these.
        Bug::NoFence
        | Bug::NoAttempt
        | Bug::LateEvents
        | Bug::OverGrant
        | Bug::ReapLive
        | Bug::EarlyAnswer
        | Bug::FinishTwice
        | Bug::OldAttempt
        | Bug::LostDropped
        | Bug::Leftovers => (Load::Random(6), vec![Fault::Kill { node: 0, rest_ms: 0 }]),
    }
}
