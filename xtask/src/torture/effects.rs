//! The recovery table of docs/design/effects.md, row by row: the program dies between every two writes of an effect, a person goes on,
//! and what happened to the world is counted. A file in the directory is the world.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use laneway_torture::Point;
use serde_json::Value;

use super::place::{Place, wait};
use super::walk::PATIENCE;
use crate::stage::note;

/// A death, and what is to come of it: how often the effect happens, and how its run ends.
struct Row {
    point: Point,
    /// With `--on-unknown fail`.
    fail: (usize, &'static str),
    /// With `--on-unknown retry`.
    retry: (usize, &'static str),
}

const ROWS: [Row; 8] = [
    Row { point: Point::EffectAsked, fail: (1, "succeeded"), retry: (1, "succeeded") },
    Row { point: Point::EffectBegun, fail: (0, "failed"), retry: (1, "succeeded") },
    Row { point: Point::EffectBefore, fail: (0, "failed"), retry: (1, "succeeded") },
    Row { point: Point::EffectAfter, fail: (1, "failed"), retry: (2, "succeeded") },
    Row { point: Point::EffectTold, fail: (1, "failed"), retry: (2, "succeeded") },
    Row { point: Point::EffectCommitted, fail: (1, "succeeded"), retry: (1, "succeeded") },
    Row { point: Point::EffectAnswered, fail: (1, "succeeded"), retry: (1, "succeeded") },
    Row { point: Point::AttemptEnded, fail: (1, "succeeded"), retry: (1, "succeeded") },
];

/// How many transactions of a run are walked to one by one: more than it has.
const COMMITS: u32 = 14;

/// All rows, and then every transaction of the run, before and after its commit.
pub(super) fn walk(program: &Path) -> Result<()> {
    for row in &ROWS {
        for (on_unknown, expected) in [("fail", row.fail), ("retry", row.retry)] {
            let arms = format!("{}:1", row.point.name());
            let found = play(program, &arms, on_unknown).with_context(|| format!("{arms}, {on_unknown}"))?;
            ensure!(found.died, "nothing died at {arms}: the effect does not come by there");
            let expected = (expected.0, expected.1.to_owned());
            ensure!(
                (found.ran, found.status.clone()) == expected,
                "after a death at {arms} with --on-unknown {on_unknown} it is {found:?}, not {expected:?}"
            );
        }
    }
    let mut deaths = 0;
    for point in [Point::CommitBefore, Point::CommitAfter] {
        for passing in 1..=COMMITS {
            let arms = format!("{}:{passing}", point.name());
            let found = play(program, &arms, "fail").with_context(|| arms.clone())?;
            deaths += u32::from(found.died);
            let is_known = match (found.status.as_str(), found.ran) {
                // Its run was never submitted.
                ("", 0) => true,
                ("succeeded", 1) => true,
                // Begun, and nobody knows whether it happened.
                ("failed", 0 | 1) => found.is_unknown,
                _ => false,
            };
            ensure!(is_known, "after a death at {arms} it is {found:?}");
        }
    }
    note(&format!("effects: all {} rows hold, and so do {deaths} deaths around transactions", ROWS.len()));
    Ok(())
}

#[derive(Debug)]
struct Found {
    died: bool,
    /// How often the effect happened.
    ran: usize,
    /// Of the run; empty if there is none.
    status: String,
    is_unknown: bool,
}

fn document(program: &Path, on_unknown: &str) -> String {
    let program = program.display();
    // What dies is the first attempt; whoever goes on has nothing to die of.
    format!(
        "name: pay\nsteps:\n  pay:\n    retry: {{max: 1, backoff: 0s}}\n    run: |\n      \
         test $LANEWAY_ATTEMPT = 1 || unset LANEWAY_CRASH\n      \
         {program} effect charge --on-unknown {on_unknown} -- sh -c 'echo x >> ran; echo receipt; echo n=7 >> $LANEWAY_OUTPUT' > got\n      \
         test \"$(cat got)\" = receipt\n"
    )
}

fn play(program: &Path, arms: &str, on_unknown: &str) -> Result<Found> {
    let place = Place::new(program, true, None)?;
    fs::write(place.path("pay.yaml"), document(program, on_unknown))?;
    let passed = place.path("passed").to_string_lossy().into_owned();
    let armed = [("LANEWAY_CRASH", arms.to_owned()), ("LANEWAY_PASSED", passed)];
    let mut node = place.start(&["run", "pay.yaml"], &armed)?;
    wait(&mut node, PATIENCE)?.context("the run does not end")?;
    let mut found =
        Found { died: place.died_at().is_some(), ran: 0, status: String::new(), is_unknown: false };
    // A death of `laneway effect` is the step's alone, and its node goes on.
    loop {
        let Some(run) = of_run(&place)? else { break };
        found.status = run["status"].as_str().unwrap_or_default().to_owned();
        if found.status != "running" && found.status != "queued" {
            break;
        }
        let mut node = place.start(&["run", "--resume", "last"], &[])?;
        let ended = wait(&mut node, PATIENCE)?.context("the run does not end when it is resumed")?;
        ensure!(
            matches!(ended.code(), Some(0 | 1)),
            "`laneway run --resume` ended with {ended}: {}",
            place.last_words()
        );
    }
    found.ran = fs::read_to_string(place.path("ran")).unwrap_or_default().lines().count();
    if found.status.is_empty() {
        return Ok(found);
    }
    let told = place.laneway(&["effects", "last", "--json"], &[]).output()?;
    let effects: Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
    found.is_unknown = effects[0]["unknown"] == true;
    for look in [["replay", "last"].as_slice(), &["doctor"]] {
        let said = place.laneway(look, &[]).output()?;
        if !said.status.success() {
            bail!("`laneway {}`: {}", look.join(" "), String::from_utf8_lossy(&said.stdout));
        }
    }
    if found.status == "succeeded" {
        let run = of_run(&place)?.unwrap_or_default();
        let shown =
            place.laneway(&["show", run["run"].as_str().unwrap_or("last"), "--json"], &[]).output()?;
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        let output = &shown["tasks"][0]["output"]["n"];
        ensure!(*output == "7", "what the effect handed on is {output}");
    }
    Ok(found)
}

fn of_run(place: &Place) -> Result<Option<Value>> {
    let output = place.laneway(&["runs", "--json"], &[]).output()?;
    let runs: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok(runs.as_array().and_then(|runs| runs.first().cloned()))
}
