//! What `laneway plan FILE` prints for people. Long lists are cut, so that 10,000 steps fit a screen or
//! two; `--json` (see `wire.rs`) has everything.

use std::fmt::Write;

use super::{Lane, Plan, Position};
use crate::definition::{Input, Step};

/// Names on one line.
const MOST_NAMES: usize = 8;
/// Levels, and lanes.
const MOST_LINES: usize = 24;
/// Steps that see files of others.
const MOST_FILE_LINES: usize = 8;

/// Levels, lanes, width, critical path and pre-warm point, as lines that end in a newline.
pub fn describe(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, so the results carry nothing.
    let _ = writeln!(
        out,
        "{}: {} in {}, width {}",
        plan.workflow.name,
        count(plan.workflow.steps.len(), "step"),
        count(plan.levels.len(), "level"),
        plan.width()
    );

    out.push_str("\nlevels\n");
    let levels = plan.levels.iter().map(|level| names(plan, level, ", "));
    numbered(&mut out, levels);

    out.push_str("\nlanes\n");
    if plan.lanes.iter().any(|lane| matches!(lane, Lane::Group { .. })) {
        let lanes = plan.lanes.iter().map(|lane| match lane {
            Lane::Step(position) => plan.step(*position).name.clone(),
            Lane::Group { name, steps } => format!("{name}: {}", names(plan, steps, " | ")),
        });
        numbered(&mut out, lanes);
    } else {
        // One line says as much as one for each step would.
        let _ = writeln!(
            out,
            "  {}, each a step of its own: {}",
            plan.lanes.len(),
            names(plan, &plan.order, ", ")
        );
    }

    let waits: Vec<String> = (0..)
        .zip(&plan.workflow.steps)
        .filter_map(|(position, step): (Position, _)| Some((position, step.wait()?)))
        .map(|(position, wait)| format!("{}: {wait}", plan.step(position).name))
        .collect();
    if !waits.is_empty() {
        out.push_str("\nwaits\n");
        numbered(&mut out, waits.into_iter());
    }

    let growing: Vec<String> = plan.growing.iter().map(|step| items(plan.step(*step))).collect();
    if !growing.is_empty() {
        out.push_str("\nitems\n");
        numbered(&mut out, growing.into_iter());
    }

    let seen = files(plan);
    if !seen.is_empty() {
        out.push_str("\nfiles, in a submitted run: the steps whose changes a step sees\n");
        for line in seen {
            let _ = writeln!(out, "  {line}");
        }
    }

    let _ = writeln!(
        out,
        "\ncritical path: {}: {}",
        count(plan.critical_path.len(), "step"),
        names(plan, &plan.critical_path, " -> ")
    );
    let _ = match (plan.prewarm.lane, plan.prewarm.width) {
        (None, 0) => writeln!(out, "pre-warm: nothing, no lane is parallel"),
        (None, width) => writeln!(out, "pre-warm: at once, width {width}"),
        (Some(lane), width) => writeln!(out, "pre-warm: at lane {lane}, width {width}"),
    };
    out
}

/// Whose files each step sees. To look at each of 10,000 steps would take long, and a screen has no
/// room for them.
fn files(plan: &Plan) -> Vec<String> {
    let needing: Vec<Position> = plan.steps_that_see_files().collect();
    let shown = if needing.len() <= MOST_FILE_LINES + 1 { needing.len() } else { MOST_FILE_LINES };
    let line = |step: &Position| {
        let sources = plan.file_sources(*step).steps();
        (!sources.is_empty()).then(|| format!("{}: {}", plan.step(*step).name, names(plan, &sources, ", ")))
    };
    let mut lines: Vec<String> = needing[..shown].iter().filter_map(line).collect();
    if shown < needing.len() {
        lines.push(format!("… and {} more", needing.len() - shown));
    }
    lines
}

/// What a step with `for_each` becomes, as far as that is known now.
fn items(step: &Step) -> String {
    let Some(for_each) = &step.for_each else { return step.name.clone() };
    let list = match &for_each.items {
        Input::Text(template) => format!("of {}", template.source()),
        Input::List(items) => format!("of a list of {}", items.len()),
        Input::Literal(_) | Input::Map(_) => "of a list".to_owned(),
    };
    let most = for_each.max_parallel.map(|max| format!(", {max} at once")).unwrap_or_default();
    format!("{}: a task for each item {list}{most}", step.name)
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn names(plan: &Plan, positions: &[Position], separator: &str) -> String {
    // Cutting a single name would only make the line longer.
    let shown = if positions.len() <= MOST_NAMES + 1 { positions.len() } else { MOST_NAMES };
    let mut text = String::new();
    for (index, position) in positions[..shown].iter().enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&plan.step(*position).name);
    }
    if shown < positions.len() {
        let _ = write!(text, " … and {} more", positions.len() - shown);
    }
    text
}

fn numbered(out: &mut String, lines: impl ExactSizeIterator<Item = String>) {
    let total = lines.len();
    let shown = if total <= MOST_LINES + 1 { total } else { MOST_LINES };
    let digits = shown.saturating_sub(1).to_string().len();
    for (index, line) in lines.take(shown).enumerate() {
        let _ = writeln!(out, "  {index:>digits$}  {line}");
    }
    if shown < total {
        let _ = writeln!(out, "  … and {} more", total - shown);
    }
}

#[cfg(test)]
mod tests {
    use super::describe;
    use crate::plan::sample::{build, grouped, numbered};

    #[test]
    fn a_small_plan_is_shown_whole() {
        let plan = build(grouped(
            &[("fetch", &[]), ("lint", &["fetch"]), ("test", &["fetch"]), ("ship", &["lint", "test"])],
            &[("quality", &["lint", "test"])],
        ))
        .expect("a plan");
        insta::assert_snapshot!(describe(&plan), @"
        sample: 5 steps in 3 levels, width 2

        levels
          0  fetch
          1  lint, test
          2  ship, quality/merge

        lanes
          0  fetch
          1  quality: lint | test
          2  ship
          3  quality/merge

        files, in a submitted run: the steps whose changes a step sees
          lint: fetch
          test: fetch
          ship: fetch, lint, test

        critical path: 3 steps: fetch -> lint -> ship
        pre-warm: at lane 0, width 2
        ");
    }

    #[test]
    fn wide_levels_are_cut() {
        let wide: Vec<Vec<usize>> = vec![Vec::new(); 10_000];
        let plan = build(numbered(&wide)).expect("a plan");
        insta::assert_snapshot!(describe(&plan), @"
        sample: 10000 steps in 1 level, width 10000

        levels
          0  s0, s1, s2, s3, s4, s5, s6, s7 … and 9992 more

        lanes
          10000, each a step of its own: s0, s1, s2, s3, s4, s5, s6, s7 … and 9992 more

        critical path: 1 step: s0
        pre-warm: nothing, no lane is parallel
        ");
    }

    #[test]
    fn long_chains_are_cut() {
        let chain = (0..10_000_usize).map(|n| n.checked_sub(1).into_iter().collect());
        let plan = build(numbered(&chain.collect::<Vec<_>>())).expect("a plan");
        let text = describe(&plan);
        assert!(text.lines().count() < 50, "{text}");
        assert!(text.contains("  … and 9976 more\n"), "{text}");
        assert!(text.contains("\n  s2: s0, s1\n") && text.contains("\n  … and 9991 more\n"), "{text}");
        assert!(text.contains("critical path: 10000 steps: s0 -> s1"), "{text}");
    }
}
