//! A plan as a Mermaid flowchart, for Markdown pages. Groups become subgraphs.

use std::fmt::Write;

use crate::plan::{Lane, Plan, Position};

/// Writes the flowchart. Ids are made from positions, because names may be words of the language (`end`).
pub fn mermaid(plan: &Plan) -> String {
    let mut out = String::from("flowchart LR\n");
    let node = |out: &mut String, indent: &str, position: Position| {
        let label = quote(&plan.step(position).name);
        // What waits runs nothing, and what has items is several: both have another shape.
        let step = plan.step(position);
        let (open, close) = match (step.wait(), &step.for_each) {
            (Some(_), _) => ("([", "])"),
            (None, Some(_)) => ("[[", "]]"),
            (None, None) => ("[", "]"),
        };
        // Writing to a string cannot fail, so the results carry nothing.
        let _ = writeln!(out, "{indent}s{position}{open}{label}{close}");
    };
    for (number, lane) in plan.lanes.iter().enumerate() {
        match lane {
            Lane::Step(position) => node(&mut out, "  ", *position),
            Lane::Group { name, steps } => {
                let _ = writeln!(out, "  subgraph g{number}[{}]", quote(name));
                steps.iter().for_each(|step| node(&mut out, "    ", *step));
                out.push_str("  end\n");
            }
        }
    }
    for (to, needs) in plan.needs.iter().enumerate() {
        for from in needs {
            let _ = writeln!(out, "  s{from} --> s{to}");
        }
    }
    out
}

/// A quoted label; Mermaid has its own kind of entities, and reads Markdown and HTML in labels.
fn quote(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    for letter in name.chars() {
        match letter {
            '"' | '#' | '&' | '<' | '>' | '`' | '*' | '\\' | ';' => {
                let _ = write!(out, "#{};", u32::from(letter));
            }
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
