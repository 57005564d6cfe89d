//! What every drawing must keep, over random graphs with and without groups, fine and coarse.

use proptest::prelude::*;

use super::*;
use crate::definition::Group;
use crate::graph::{dot, mermaid, svg};
use crate::plan::sample::{acyclic, build, grouped, numbered};

/// A plan of random needs in which the steps of a level that draw the same number form a group.
fn drawn(needs: &[Vec<usize>], picks: &[usize]) -> Plan {
    let plain = build(numbered(needs)).expect("no cycle");
    let mut workflow = plain.workflow.clone();
    for (level, members) in plain.levels.iter().enumerate() {
        for pick in 0..2 {
            let picked = members.iter().filter(|m| picks[**m as usize] == pick);
            let steps: Vec<String> = picked.map(|m| format!("s{m}")).collect();
            if !steps.is_empty() {
                let name = format!("g{level}-{pick}");
                workflow.groups.push(Group { name, steps, ..Group::default() });
            }
        }
    }
    build(workflow).expect("steps of one level do not depend on one another")
}

fn example() -> Plan {
    build(grouped(
        &[("fetch", &[]), ("lint", &["fetch"]), ("test", &["fetch"]), ("ship", &["lint", "test", "fetch"])],
        &[("quality", &["lint", "test"])],
    ))
    .expect("a plan")
}

#[test]
fn a_small_layout_is_as_expected() {
    let layout = layout(&example());
    let edge = layout.edges.iter().find(|edge| edge.points.len() > 2);
    let parts = [
        serde_json::to_string(&layout.nodes[3]),
        serde_json::to_string(&edge),
        serde_json::to_string(&layout.groups),
    ];
    let lines = parts.map(|part| part.expect("plain data")).join("\n");
    insta::assert_snapshot!(lines, @r#"
    {"position":3,"x":280,"y":110,"width":128,"height":32,"layer":2}
    {"from":0,"to":3,"points":[[88,113],[150,154],[214,154],[280,126]]}
    [{"name":"quality","x":140,"y":24,"width":84,"height":118}]
    "#);
}

#[test]
fn a_small_drawing_is_as_expected() {
    let plan = example();
    let drawing = svg(&plan, &layout(&plan));
    let body = drawing.split("</defs>\n").last().expect("a body");
    insta::assert_snapshot!(body, @r#"
    <rect class="paper" width="432" height="178"/>
    <rect class="group" x="140" y="24" width="84" height="118" rx="12"/><text class="title" x="152" y="42">quality</text>
    <path class="needs" marker-end="url(#laneway-tip)" d="M88 113C115 113 115 68 143 68"/>
    <path class="needs" marker-end="url(#laneway-tip)" d="M88 113C115 113 115 116 143 116"/>
    <path class="needs" marker-end="url(#laneway-tip)" d="M88 113C119 113 119 154 150 154H214C243 154 243 126 273 126"/>
    <path class="needs" marker-end="url(#laneway-tip)" d="M214 68C243 68 243 126 273 126"/>
    <path class="needs" marker-end="url(#laneway-tip)" d="M214 116C243 116 243 126 273 126"/>
    <path class="needs" marker-end="url(#laneway-tip)" d="M214 68C243 68 243 78 273 78"/>
    <path class="needs" marker-end="url(#laneway-tip)" d="M214 116C243 116 243 78 273 78"/>
    <rect class="step" x="24" y="97" width="64" height="32" rx="7"/><text class="name" x="56" y="118">fetch</text>
    <rect class="step" x="150" y="52" width="64" height="32" rx="7"/><text class="name" x="182" y="73">lint</text>
    <rect class="step" x="150" y="100" width="64" height="32" rx="7"/><text class="name" x="182" y="121">test</text>
    <rect class="step" x="280" y="110" width="128" height="32" rx="7"/><text class="name" x="344" y="131">ship</text>
    <rect class="step" x="280" y="62" width="128" height="32" rx="7"/><text class="name" x="344" y="83">quality/merge</text>
    </svg>
    "#);
}

#[test]
fn dot_writes_groups_as_clusters() {
    insta::assert_snapshot!(dot(&example()), @r#"
    digraph "sample" {
      rankdir=LR;
      node [shape=box, style=rounded];
      "fetch";
      subgraph cluster_1 {
        label="quality";
        "lint";
        "test";
      }
      "ship";
      "quality/merge";
      "fetch" -> "lint";
      "fetch" -> "test";
      "fetch" -> "ship";
      "lint" -> "ship";
      "test" -> "ship";
      "lint" -> "quality/merge";
      "test" -> "quality/merge";
    }
    "#);
}

#[test]
fn mermaid_writes_groups_as_subgraphs() {
    insta::assert_snapshot!(mermaid(&example()), @r#"
    flowchart LR
      s0["fetch"]
      subgraph g1["quality"]
        s1["lint"]
        s2["test"]
      end
      s3["ship"]
      s4["quality/merge"]
      s0 --> s1
      s0 --> s2
      s0 --> s3
      s1 --> s3
      s2 --> s3
      s1 --> s4
      s2 --> s4
    "#);
}

#[test]
fn names_are_escaped_in_every_language() {
    let plan = build(grouped(&[("<a&\"b\\;>", &[])], &[])).expect("a plan");
    assert!(svg(&plan, &layout(&plan)).contains(">&lt;a&amp;&quot;b\\;&gt;</text>"));
    assert!(dot(&plan).contains(r#"  "<a&\"b\\;>";"#));
    assert!(mermaid(&plan).contains(r##"["#60;a#38;#34;b#92;#59;#62;"]"##));
}

#[test]
fn ten_thousand_steps_with_long_edges_are_laid_out() {
    // Every third step also needs one that is ninety levels back, which makes 300,000 bends: coarse.
    let needs = |n: usize| {
        let near = n.checked_sub(100).into_iter();
        near.chain(n.checked_sub(9_000).filter(|_| n.is_multiple_of(3))).collect()
    };
    let needs: Vec<Vec<usize>> = (0..10_000).map(needs).collect();
    let layout = layout(&build(numbered(&needs)).expect("no cycle"));
    assert_eq!(layout.nodes.len(), 10_000);
    assert_eq!(layout.edges.len(), needs.iter().map(Vec::len).sum::<usize>());
}

proptest! {
    #[test]
    fn nodes_lie_apart_on_the_canvas_and_edges_lead_to_the_right(
        needs in acyclic(20),
        picks in prop::collection::vec(0..5_usize, 20),
        fine in prop::sample::select(vec![0, FINE]),
    ) {
        let plan = drawn(&needs, &picks);
        let layout = within(&plan, fine);
        prop_assert_eq!(&layout, &within(&plan, fine));
        prop_assert_eq!(layout.nodes.len(), plan.workflow.steps.len());
        prop_assert_eq!(layout.edges.len(), plan.needs.iter().map(Vec::len).sum::<usize>());
        for (index, node) in layout.nodes.iter().enumerate() {
            prop_assert_eq!(node.position as usize, index);
            prop_assert!(node.x >= MARGIN && node.x + node.width <= layout.width - MARGIN);
            prop_assert!(node.y >= MARGIN && node.y + node.height <= layout.height - MARGIN);
            for other in &layout.nodes[..index] {
                let apart_x = node.x + node.width < other.x || other.x + other.width < node.x;
                let apart_y = node.y + node.height < other.y || other.y + other.height < node.y;
                prop_assert!(apart_x || apart_y, "{:?} {:?}", node, other);
            }
        }
        for edge in &layout.edges {
            let (from, to) = (&layout.nodes[edge.from as usize], &layout.nodes[edge.to as usize]);
            prop_assert!(from.layer < to.layer);
            prop_assert_eq!(edge.points[0], (from.x + from.width, from.y + from.height / 2));
            prop_assert_eq!(edge.points.last(), Some(&(to.x, to.y + to.height / 2)));
            prop_assert!(edge.points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn a_frame_holds_its_steps_and_nobody_elses(
        needs in acyclic(20),
        picks in prop::collection::vec(0..4_usize, 20),
    ) {
        let plan = drawn(&needs, &picks);
        let layout = layout(&plan);
        let groups = &plan.workflow.groups;
        prop_assert_eq!(layout.groups.len(), groups.len());
        for frame in &layout.groups {
            prop_assert!(frame.x > 0 && frame.x + frame.width < layout.width);
            prop_assert!(frame.y > 0 && frame.y + frame.height < layout.height);
            let group = groups.iter().find(|g| g.name == frame.name).expect("declared");
            for node in &layout.nodes {
                let inside = node.x > frame.x
                    && node.x + node.width < frame.x + frame.width
                    && node.y > frame.y
                    && node.y + node.height < frame.y + frame.height;
                let outside = node.x > frame.x + frame.width
                    || node.x + node.width < frame.x
                    || node.y > frame.y + frame.height
                    || node.y + node.height < frame.y;
                let is_member = group.steps.contains(&plan.step(node.position).name);
                prop_assert!(if is_member { inside } else { outside }, "{:?} {:?}", frame, node);
            }
        }
    }

    #[test]
    fn no_edge_runs_through_a_box_when_the_layout_is_fine(needs in acyclic(20)) {
        let plan = build(numbered(&needs)).expect("no cycle");
        let layout = layout(&plan);
        for edge in &layout.edges {
            for pair in edge.points.windows(2) {
                for node in &layout.nodes {
                    // Slants lie between columns, so only level pieces can meet a box.
                    let beside = pair[1].0 <= node.x || pair[0].0 >= node.x + node.width;
                    let above = pair[0].1 < node.y && pair[1].1 < node.y;
                    let below = pair[0].1.min(pair[1].1) > node.y + node.height;
                    prop_assert!(beside || above || below, "{:?} {:?}", edge, node);
                }
            }
        }
    }

    #[test]
    fn every_step_appears_once_in_every_rendering(
        needs in acyclic(20),
        picks in prop::collection::vec(0..5_usize, 20),
    ) {
        let plan = drawn(&needs, &picks);
        let (svg, dot, mermaid) = (svg(&plan, &layout(&plan)), dot(&plan), mermaid(&plan));
        let edges: usize = plan.needs.iter().map(Vec::len).sum();
        for step in 0..needs.len() {
            let label = format!(">s{step}</text>");
            prop_assert_eq!(svg.matches(&label).count(), 1);
            let node = format!("  \"s{step}\";\n");
            prop_assert_eq!(dot.matches(&node).count(), 1);
            let node = format!("  s{step}[\"s{step}\"]\n");
            prop_assert_eq!(mermaid.matches(&node).count(), 1);
        }
        prop_assert_eq!(svg.matches("class=\"needs\"").count(), edges);
        prop_assert_eq!(dot.matches(" -> ").count(), edges);
        prop_assert_eq!(mermaid.matches(" --> ").count(), edges);
    }
}
