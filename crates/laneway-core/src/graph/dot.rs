//! A plan in the DOT language of Graphviz. Groups become clusters.

use std::fmt::Write;

use crate::definition::Step;
use crate::plan::{Lane, Plan};

/// Writes the graph; layout is left to Graphviz.
pub fn dot(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, so the results carry nothing.
    let _ = writeln!(out, "digraph {} {{", quote(&plan.workflow.name));
    out.push_str("  rankdir=LR;\n  node [shape=box, style=rounded];\n");
    for (number, lane) in plan.lanes.iter().enumerate() {
        let _ = match lane {
            Lane::Step(position) => writeln!(out, "  {};", node(plan.step(*position))),
            Lane::Group { name, steps } => {
                // Graphviz takes a subgraph for a cluster by this prefix.
                let _ = writeln!(out, "  subgraph cluster_{number} {{");
                let _ = writeln!(out, "    label={};", quote(name));
                for step in steps {
                    let _ = writeln!(out, "    {};", node(plan.step(*step)));
                }
                writeln!(out, "  }}")
            }
        };
    }
    for (step, needs) in plan.workflow.steps.iter().zip(&plan.needs) {
        for need in needs {
            let need = quote(&plan.step(*need).name);
            let _ = writeln!(out, "  {need} -> {};", quote(&step.name));
        }
    }
    out.push_str("}\n");
    out
}

/// What waits runs nothing, and is drawn so; what has items is drawn as several.
fn node(step: &Step) -> String {
    let name = quote(&step.name);
    if step.for_each.is_some() {
        return format!("{name} [peripheries=2, tooltip=\"one task for each item\"]");
    }
    match step.wait() {
        Some(wait) => {
            let tip = quote(&format!("waits for {wait}"));
            format!("{name} [style=\"rounded,dashed\", tooltip={tip}]")
        }
        None => name,
    }
}

/// Always quoted: a step may be called `node` or `graph`, which are words of the language.
fn quote(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    for letter in name.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
