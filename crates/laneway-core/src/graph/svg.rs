//! A drawing as SVG that stands alone: no script, no font file, light or dark as the viewer prefers.

use std::fmt::Write;

use super::{Edge, Layout};
use crate::plan::Plan;

/// Plain rules with plain colours: many viewers of SVG know neither variables nor colours with alpha,
/// and would paint everything black.
const STYLE: &str = "
.paper{fill:#ffffff}
.step{fill:#f4f6f9;stroke:#b9c4d0}
.wait{stroke-dasharray:5 3}
.each{stroke-width:3}
.group{fill:#2f6fde;fill-opacity:.06;stroke:#2f6fde;stroke-opacity:.4}
.needs{fill:none;stroke:#8a97a6;stroke-width:1.5}
.tip{fill:#8a97a6}
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:13px}
.name{fill:#1f2933;text-anchor:middle}
.title{fill:#2258b8;font-size:12px;font-weight:bold}
@media(prefers-color-scheme:dark){
.paper{fill:#14181d}
.step{fill:#222a33;stroke:#4a5765}
.group{fill:#7fb0ff;stroke:#7fb0ff}
.needs{stroke:#75818f}
.tip{fill:#75818f}
.name{fill:#e4e9ef}
.title{fill:#8fbaff}
}
";

/// Length of an arrow's tip, at whose base the line ends.
const TIP: i32 = 7;

/// Draws a plan with its layout.
pub fn svg(plan: &Plan, layout: &Layout) -> String {
    // About what a node and an edge take, to save growing in steps.
    let mut out = String::with_capacity(2_048 + 160 * (layout.nodes.len() + layout.edges.len()));
    let Layout { width, height, .. } = layout;
    // Writing to a string cannot fail, so the results carry nothing.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"laneway-title laneway-desc\">\n\
         <title id=\"laneway-title\">Workflow {}</title>\n\
         <desc id=\"laneway-desc\">steps: {}; levels: {}; arrows lead from a step to those that need it</desc>\n\
         <style>{STYLE}</style>\n\
         <defs><marker id=\"laneway-tip\" markerWidth=\"{TIP}\" markerHeight=\"8\" refX=\"0\" refY=\"4\" \
         orient=\"auto\" markerUnits=\"userSpaceOnUse\"><path class=\"tip\" d=\"M0 0L{TIP} 4L0 8z\"/></marker></defs>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
        escape(&plan.workflow.name),
        plan.workflow.steps.len(),
        plan.levels.len(),
    );
    for group in &layout.groups {
        let _ = writeln!(
            out,
            "<rect class=\"group\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"12\"/>\
             <text class=\"title\" x=\"{}\" y=\"{}\">{}</text>",
            group.x,
            group.y,
            group.width,
            group.height,
            group.x + 12,
            group.y + 18,
            escape(&group.name)
        );
    }
    for edge in &layout.edges {
        let _ =
            writeln!(out, "<path class=\"needs\" marker-end=\"url(#laneway-tip)\" d=\"{}\"/>", path(edge));
    }
    for node in &layout.nodes {
        // What waits runs nothing, and is drawn so; what has items is drawn as more than one.
        let step = plan.step(node.position);
        let wait = match (step.wait(), &step.for_each) {
            (Some(_), _) => " wait",
            (None, Some(_)) => " each",
            (None, None) => "",
        };
        let _ = writeln!(
            out,
            "<rect class=\"step{wait}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"7\"/>\
             <text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
            node.x,
            node.y,
            node.width,
            node.height,
            node.x + node.width / 2,
            node.y + node.height / 2 + 5,
            escape(&plan.step(node.position).name)
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Level pieces are lines, slanted ones curves that start and end level, so that an edge has no corners.
fn path(edge: &Edge) -> String {
    let mut d = String::new();
    let mut last: Option<(i32, i32)> = None;
    let end = edge.points.len().saturating_sub(1);
    for (index, (x, y)) in edge.points.iter().copied().enumerate() {
        let x = if index == end { x - TIP } else { x };
        let _ = match last {
            None => write!(d, "M{x} {y}"),
            Some((_, before_y)) if before_y == y => write!(d, "H{x}"),
            Some((before_x, before_y)) => {
                let middle = before_x.midpoint(x);
                write!(d, "C{middle} {before_y} {middle} {y} {x} {y}")
            }
        };
        last = Some((x, y));
    }
    d
}

/// For text and for attribute values. Control characters are not allowed in XML and become a space.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
