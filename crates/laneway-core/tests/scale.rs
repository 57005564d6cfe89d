//! A hundred thousand steps are read and planned in time, in every style of writing them, and the
//! time grows no faster than the document. Time is that which this thread had a processor: others use the machine too.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use laneway_core::definition::{Source, compile};

const STEPS: usize = 100_000;

fn compile_in(text: String) -> Duration {
    let source = Source { file: "large.yaml".into(), default_name: "large".into(), text };
    let started = processor_time();
    let plan = compile(&source).map_err(|refusal| refusal.render(false)).expect("it is valid");
    let took = processor_time() - started;
    assert!(!plan.order.is_empty());
    took
}

/// Of this thread, in the kernel's books; where it keeps none, the time that has passed.
fn processor_time() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let books = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = books.split_whitespace().next().and_then(|ran| ran.parse().ok());
    ran.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

fn flow(steps: usize) -> String {
    let mut text = String::from("steps:\n  s0: {command: [/bin/true]}\n");
    for step in 1..steps {
        let before = step - 1;
        let _ = writeln!(text, "  s{step}: {{needs: [s{before}, s{}], command: [/bin/true]}}", before / 2);
    }
    text
}

fn block(steps: usize) -> String {
    let mut text = String::from("steps:\n  s0:\n    run: make\n");
    for step in 1..steps {
        let before = step - 1;
        let _ = writeln!(text, "  s{step}:\n    needs:\n      - s{before}\n    command:\n      - /bin/true");
    }
    text
}

fn json(steps: usize) -> String {
    let mut text = String::from("{\"steps\": {\"s0\": {\"command\": [\"/bin/true\"]}");
    for step in 1..steps {
        let before = step - 1;
        let _ =
            write!(text, ",\n\t\"s{step}\": {{\"needs\": [\"s{before}\"], \"command\": [\"/bin/true\"]}}");
    }
    text.push_str("}}");
    text
}

/// Every step reads the first one and the one two before it, neither of which it needs directly.
fn reading(steps: usize) -> String {
    let mut text = String::from("steps:\n  s0: {run: make}\n  s1: {run: make, needs: s0}\n");
    for step in 2..steps {
        let (before, second) = (step - 1, step - 2);
        let _ = writeln!(
            text,
            "  s{step}: {{needs: s{before}, run: make, if: steps.s0.output.x == steps.s{second}.output.x}}"
        );
    }
    text
}

/// Every second step shares its version with the one before it, on one key for all.
fn ordered(steps: usize) -> String {
    let mut text = String::from("steps:\n");
    for step in 0..steps {
        let version = step / 2;
        let _ = writeln!(text, "  s{step}: {{run: make, order: {{key: db, version: \"1.{version}\"}}}}");
    }
    text
}

/// Tests are built with little optimisation; D10's bound is for the product.
const PATIENCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 2 });

#[test]
fn a_hundred_thousand_steps_are_read_and_planned_in_time() {
    for (style, text) in [("flow", flow(STEPS)), ("block", block(STEPS)), ("json", json(STEPS))] {
        let took = compile_in(text);
        assert!(took < PATIENCE, "{style} took {took:?}");
    }
}

#[test]
fn reads_of_far_and_near_ancestors_are_checked_in_time() {
    let took = compile_in(reading(STEPS));
    assert!(took < PATIENCE, "took {took:?}");
}

#[test]
fn four_times_the_steps_take_about_four_times_as_long() {
    // The best of three: others use the caches as well. Sixteen would be quadratic.
    let best = |write: fn(usize) -> String, steps: usize| {
        (0..3).map(|_| compile_in(write(steps))).min().expect("three")
    };
    for (style, write) in [("flow", flow as fn(usize) -> String), ("reading", reading), ("ordered", ordered)]
    {
        let small = best(write, STEPS / 20);
        let large = best(write, STEPS / 5);
        assert!(large < small * 10, "{style}: {small:?} became {large:?}");
    }
}
