//! Runs of other shapes than the mix: level by level, and with a list that grows batch by batch. The program dies before and after
//! every transaction of one, so between any two batches of items and between any two levels; a person goes on, and then everything was
//! done in its order, and all of it counts. docs/design/torture.md.

use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use laneway_torture::Point;
use serde_json::{Value, json};

use super::WORKERS;
use super::place::{Place, wait};
use super::walk::PATIENCE;
use crate::stage::note;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Levels,
    Items,
}

/// Two levels, with a step that is tried again within its level, and one behind them that reads what they have put out.
const LEVELS: &str = "name: shape
execution: levels
steps:
  a: {run: 'echo a >> done; echo n=1 >> $LANEWAY_OUTPUT'}
  b: {retry: {max: 1, backoff: 0s}, run: 'test -e tried || { touch tried; exit 3; }; echo b >> done; echo n=2 >> $LANEWAY_OUTPUT'}
  c: {needs: [a, b], run: 'echo c >> done; echo n=3 >> $LANEWAY_OUTPUT'}
  d: {needs: [a], run: 'echo d >> done'}
  last: {needs: [c, d], run: 'echo last >> done; echo \"sum=$SUM\" >> $LANEWAY_OUTPUT', env: {SUM: \"${{ steps.a.output.n }}${{ steps.b.output.n }}${{ steps.c.output.n }}\"}}
";

/// A test build adds three items at a time: seven are three batches.
const ITEMS: &str = "name: shape
max_parallel: 2
steps:
  find: {run: 'echo \"{\\\"files\\\": [0, 1, 2, 3, 4, 5, 6]}\" > $LANEWAY_OUTPUT'}
  each: {needs: [find], for_each: \"${{ steps.find.output.files }}\", run: 'echo $ITEM >> done; echo n=$ITEM >> $LANEWAY_OUTPUT', env: {ITEM: \"${{ item }}\"}}
  last: {needs: [each], run: 'echo last >> done; echo \"sum=$SUM\" >> $LANEWAY_OUTPUT', env: {SUM: \"${{ steps.each.output[0].n }}${{ steps.each.output[6].n }} of ${{ steps.each.output | length }}\"}}
";

/// The fewest transactions that there are to die at, and how many are tried to be walked to.
const COMMITS: [(Shape, u32, u32); 2] = [(Shape::Levels, 6, 12), (Shape::Items, 8, 18)];

/// How often a run may have to be taken up again: whoever dies does so once.
const ROUNDS: usize = 10;

#[derive(Debug, Clone, Copy)]
struct Case {
    shape: Shape,
    point: Point,
    passing: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}, {:?}", self.point.name(), self.passing, self.shape)
    }
}

pub(super) fn walk(program: &Path) -> Result<()> {
    let mut cases = Vec::new();
    for (shape, _, most) in COMMITS {
        for point in [Point::CommitBefore, Point::CommitAfter] {
            cases.extend((1..=most).map(|passing| Case { shape, point, passing }));
        }
    }
    let (cases, deaths) = (Mutex::new(cases.into_iter()), [AtomicU32::new(0), AtomicU32::new(0)]);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = cases.lock().expect("nobody panics with it").next();
                let Some(case) = next else { return Ok(()) };
                let died = case.play(program).with_context(|| case.to_string())?;
                deaths[case.shape as usize].fetch_add(u32::from(died), Ordering::Relaxed);
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a case does not panic"))
    })?;
    let deaths = deaths.map(AtomicU32::into_inner);
    for ((shape, least, _), deaths) in COMMITS.into_iter().zip(deaths) {
        ensure!(deaths >= 2 * least, "only {deaths} deaths of {shape:?}: its transactions do not come by");
    }
    note(&format!(
        "shapes: {} deaths of levels and {} of items, and all of them count",
        deaths[0], deaths[1]
    ));
    Ok(())
}

impl Case {
    /// Says whether something died.
    fn play(&self, program: &Path) -> Result<bool> {
        let place = Place::new(program, true, None)?;
        let document = match self.shape {
            Shape::Levels => LEVELS,
            Shape::Items => ITEMS,
        };
        std::fs::write(place.path("shape.yaml"), document)?;
        let passed = place.path("passed").to_string_lossy().into_owned();
        let crash = format!("{}:{}", self.point.name(), self.passing);
        end(&place, &["run", "shape.yaml"], &[("LANEWAY_CRASH", crash), ("LANEWAY_PASSED", passed)])?;
        let died = place.died_at().is_some();
        self.look(&place, &go_on(&place)?)?;
        Ok(died)
    }

    fn look(&self, place: &Place, run: &str) -> Result<()> {
        for args in [["replay", run].as_slice(), &["doctor"]] {
            let said = place.laneway(args, &[]).output()?;
            let words = String::from_utf8_lossy(&said.stdout);
            ensure!(said.status.success(), "`laneway {}`: {words}", args.join(" "));
        }
        let shown = asked(place, &["show", run, "--json"])?;
        let tasks = shown["tasks"].as_array().cloned().unwrap_or_default();
        let is_good = |task: &Value| task["status"] == "succeeded";
        ensure!(tasks.iter().all(is_good), "not everything has succeeded: {shown}");
        let last = tasks.iter().find(|task| task["step"] == "last").context("there is no last step")?;
        let (count, sum) = match self.shape {
            Shape::Levels => (5, json!("123")),
            Shape::Items => (10, json!("06 of 7")),
        };
        ensure!(tasks.len() == count, "there are {} tasks: {shown}", tasks.len());
        ensure!(last["output"]["sum"] == sum, "what was put out is read as {}", last["output"]);
        let done = std::fs::read_to_string(place.path("done")).unwrap_or_default();
        let done: Vec<&str> = done.lines().collect();
        let first = |name: &str| done.iter().position(|line| *line == name);
        let order: &[(&str, &str)] = match self.shape {
            // `d` needs `a` alone, and its level all of the one before it.
            Shape::Levels => &[("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("c", "last"), ("d", "last")],
            Shape::Items => &[("0", "last"), ("6", "last")],
        };
        for (before, behind) in order {
            let is_so = first(before).zip(first(behind)).is_some_and(|(before, behind)| before < behind);
            ensure!(is_so, "{before} was not done before {behind}: {done:?}");
        }
        Ok(())
    }
}

/// As a person would, until the run has ended. Gives its id.
fn go_on(place: &Place) -> Result<String> {
    for _ in 0..ROUNDS {
        let runs = asked(place, &["runs", "--json"])?;
        let text = |key: &str| runs[0][key].as_str().unwrap_or_default();
        match text("status") {
            "" => end(place, &["run", "shape.yaml"], &[])?,
            "queued" | "running" => end(place, &["run", "--resume", "last"], &[])?,
            "succeeded" => return Ok(text("run").to_owned()),
            other => bail!("it is {other}: {}", place.last_words()),
        }
    }
    bail!("it has not ended after {ROUNDS} resumptions: {}", place.last_words())
}

/// However it ends: what is left counts.
fn end(place: &Place, args: &[&str], arms: &[(&str, String)]) -> Result<()> {
    let mut node = place.start(args, arms)?;
    wait(&mut node, PATIENCE)?.with_context(|| format!("it does not end: {}", place.last_words()))?;
    Ok(())
}

fn asked(place: &Place, args: &[&str]) -> Result<Value> {
    let output = place.laneway(args, &[]).output()?;
    Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use laneway_core::definition::{Source, compile};

    #[test]
    fn the_workflows_are_good_ones() {
        for text in [LEVELS, ITEMS] {
            let text = text.to_owned();
            let source = Source { file: "shape.yaml".to_owned(), default_name: "shape".to_owned(), text };
            if let Err(diagnostics) = compile(&source) {
                panic!("{}", diagnostics.render(false));
            }
        }
    }
}
