//! Which cases there are: every point at several passings, random kills, and what else can be
//! injected.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use laneway_torture::{Bug, Place, Point};

use super::act::{Act, Scene};
use super::case::Case;
use super::dice::Dice;
use super::place::{self, wait};

/// Before a run counts as stuck. Long, for a crowded machine: only what is broken waits that long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What all cases stand on.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) program: PathBuf,
    /// Whether the machine lets a warden have them.
    pub(super) has_cgroups: bool,
    /// How often every point comes by in a run that nobody disturbs.
    passings: HashMap<String, u32>,
}

/// Looks at a run that nobody disturbs.
pub(super) fn survey(program: &Path) -> Result<Ground> {
    let place = place::Place::new(program, true, None)?;
    let passed = place.path("passed");
    let arms = [
        ("LANEWAY_PASSED", passed.to_string_lossy().into_owned()),
        ("LANEWAY_LOG", "laneway_engine=debug".to_owned()),
    ];
    let mut node = place.start(&["run", "mix.yaml"], &arms)?;
    wait(&mut node, PATIENCE)?.context("a run that nobody disturbs does not end")?;
    let mut passings = HashMap::new();
    for line in std::fs::read_to_string(passed)?.lines() {
        *passings.entry(line.to_owned()).or_default() += 1;
    }
    let has_cgroups = std::fs::read_to_string(place.path("said"))?.contains("ready, with cgroups");
    Ok(Ground { program: program.to_owned(), has_cgroups, passings })
}

/// The points that can be walked to on this ground.
pub(super) fn points(ground: &Ground) -> impl Iterator<Item = Point> {
    let needs_cgroups = |point: &Point| scenes(*point) == [Scene::Orphan];
    let is_here = |point: &Point| is_walked(*point);
    Point::ALL
        .iter()
        .copied()
        .filter(is_here)
        .filter(move |point| ground.has_cgroups || !needs_cgroups(point))
}

/// Every point, `times` each. The first time is its first passing, so that it is sure to be
/// reached.
pub(super) fn every_point(ground: &Ground, times: u32, dice: &mut Dice) -> Vec<Case> {
    let mut cases = Vec::new();
    for time in 0..times {
        for point in Point::ALL.iter().filter(|point| is_walked(**point)) {
            let scenes = scenes(*point);
            let scene = scenes[time as usize % scenes.len()];
            if scene == Scene::Orphan && !ground.has_cgroups {
                continue;
            }
            let most = match scene {
                Scene::Run | Scene::Resume => ground.passings.get(point.name()).copied().unwrap_or(1),
                Scene::Interrupt | Scene::Cancel | Scene::Orphan => 1,
            };
            let passing = if time == 0 { 1 } else { dice.up_to(most) };
            cases.push(case(Act::Crash { point: *point, passing, scene }, dice));
        }
    }
    cases
}

/// Random kills, up to three in a run: a task that is lost more often fails, as it should.
pub(super) fn random_kills(kills: u32, dice: &mut Dice) -> Vec<Case> {
    let mut left = kills;
    let mut cases = Vec::new();
    while left > 0 {
        let count = dice.up_to(3).min(left);
        left -= count;
        cases.push(case(Act::Kills(count), dice));
    }
    cases
}

/// A message that comes twice, a neighbour in the store, and nothing at all.
pub(super) fn others(times: u32, dice: &mut Dice) -> Vec<Case> {
    let mut cases = vec![case(Act::Nothing, dice)];
    for _ in 0..times {
        let echo = Act::Echo { number: dice.up_to(12), late_ms: dice.up_to(500) };
        cases.push(case(echo, dice));
        cases.push(case(Act::Neighbour, dice));
    }
    cases
}

/// Where to look for a bug first, so that the hunt is short; what finds it is the same checker.
pub(super) fn haunts(bug: Bug, dice: &mut Dice) -> Vec<Case> {
    let crash = |point, passing| Act::Crash { point, passing, scene: Scene::Run };
    let mut acts = Vec::new();
    for round in 0..12 {
        acts.push(match bug {
            Bug::NoFence | Bug::NoAttempt => {
                // The second attempt of `flaky` has to be under way by then, which depends on the
                // machine.
                Act::Echo { number: 1, late_ms: 250 + 25 * round * (round + 1) }
            }
            Bug::FinishTwice => Act::Echo { number: 4 + round % 6, late_ms: 80 },
            Bug::LateEvents => crash(Point::CommitAfter, 12 + round % 6),
            Bug::EarlyAnswer => crash(Point::CommitBefore, 12 + round % 6),
            Bug::OverGrant => Act::Nothing,
            Bug::ReapLive => Act::Neighbour,
            Bug::OldAttempt | Bug::LostDropped => crash(Point::Begun, 3 + round % 6),
            Bug::Leftovers => crash(Point::Begun, 2 + round % 6),
            // `nodes/hunt.rs` hunts these.
            Bug::CountBeforeLock
            | Bug::RateUnlocked
            | Bug::KeyKept
            | Bug::KeyBeforeRun
            | Bug::OrderAsText
            | Bug::ReapUnrenewed
            | Bug::ReapTooSoon
            | Bug::ClaimForgotten
            | Bug::FinishForgotten
            | Bug::HintNeeded
            | Bug::FenceLate
            | Bug::ClaimStalled => Act::Nothing,
        });
    }
    acts.into_iter()
        .map(|act| Case { bug: Some(bug), patience: Duration::from_secs(8), ..case(act, dice) })
        .collect()
}

fn case(act: Act, dice: &mut Dice) -> Case {
    let seed = (dice.fraction() * f64::from(u32::MAX)) as u64;
    Case { act, seed, bug: None, patience: PATIENCE }
}

/// Whether a point comes by in the workflow that is tortured. Those of many nodes, of effects, of
/// children, of ticks and of callbacks have walks of their own.
pub(super) fn is_walked(point: Point) -> bool {
    match point.place() {
        Place::Node | Place::Warden => true,
        Place::Shared | Place::Effect | Place::Telling | Place::Firing | Place::Calling => false,
    }
}

/// Where a point comes by.
fn scenes(point: Point) -> &'static [Scene] {
    match point {
        Point::ReapBefore | Point::ReapAfter | Point::AdoptBefore | Point::AdoptAfter => &[Scene::Resume],
        Point::CancelBefore | Point::CancelAfter => &[Scene::Interrupt, Scene::Cancel],
        Point::StopAsked => &[Scene::Interrupt],
        Point::WardenAlone | Point::WardenCleared => &[Scene::Orphan],
        Point::WardenKill => &[Scene::Run, Scene::Orphan],
        Point::StoreMade
        | Point::StoreMigrated
        | Point::SubmitBegun
        | Point::SubmitChunk
        | Point::SubmitAfter => &[Scene::Run],
        Point::BatchBefore
        | Point::VerbAfter
        | Point::CommitBefore
        | Point::CommitAfter
        | Point::Answered
        | Point::AttemptEnded
        | Point::Recorded => &[Scene::Run, Scene::Resume, Scene::Interrupt],
        Point::CheckpointBefore
        | Point::CheckpointAfter
        | Point::RegisterLocked
        | Point::RegisterAfter
        | Point::RetireBefore
        | Point::RetireAfter
        | Point::ScratchBefore
        | Point::ScratchAfter
        | Point::Claimed
        | Point::Begun
        | Point::Promoted
        | Point::RunOver
        | Point::WardenStarted
        | Point::SendBefore
        | Point::Received
        | Point::LaunchPrepared
        | Point::SpawnAsked
        | Point::Exited
        | Point::Gone
        | Point::OutputBefore
        | Point::OutputAfter
        | Point::LogMake
        | Point::LogBegun
        | Point::LogWritten
        | Point::WardenReady
        | Point::WardenAsked
        | Point::WardenSpawned
        | Point::WardenReaped
        | Point::WardenTerm
        | Point::WardenGone
        | Point::WardenTold => &[Scene::Run, Scene::Resume],
        // `effects.rs` walks to these.
        Point::EffectAsked
        | Point::EffectBegun
        | Point::EffectBefore
        | Point::EffectAfter
        | Point::EffectTold
        | Point::EffectCommitted
        | Point::EffectAnswered => &[],
        // `children.rs` walks to these.
        Point::SignalBefore
        | Point::SignalAfter
        | Point::ChildWanted
        | Point::ChildMade
        | Point::ChildTold
        | Point::ChildStarted
        | Point::ChildResumed
        | Point::ChildOver
        | Point::ChildOverTold
        | Point::ChildStop
        | Point::ChildStopTold => &[],
        // `nodes/hunt.rs` walks to these.
        Point::SharedCommitBefore
        | Point::SharedCommitAfter
        | Point::NotifyAfter
        | Point::ExpiredFound
        | Point::ExpiredReaped
        | Point::FollowUp
        | Point::RenewBefore
        | Point::RenewAfter => &[],
        // `ticks.rs` walks to these.
        Point::FireDue | Point::FireBefore | Point::FireMade | Point::FireAfter => &[],
        // `callbacks.rs` walks to these.
        Point::CallbacksOwed | Point::CallbacksMade => &[],
    }
}
