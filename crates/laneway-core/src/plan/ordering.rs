//! `order` against `needs`: steps that would wait for each other for ever. A step waits for every smaller version on its
//! key, so each pair of neighbours on a key is an edge like one of `needs`; a cycle over both is refused.
//! Because every run of the document has the same edges, this also keeps several runs of it from blocking each other.

use std::collections::BTreeMap;

use super::cycle::{self, Components};
use super::{Fault, Place, Plan, Position, order};
use crate::definition::Workflow;
use crate::expression::{Part, Template};
use crate::version::OrderVersion;

/// A step with its place on a key.
type Ordered<'a> = (Position, &'a str, &'a OrderVersion);

impl Plan {
    /// The first cycle that these orders make together with `needs`, for when all keys are known.
    pub fn deadlock(&self, orders: &[Ordered<'_>]) -> Option<Fault> {
        let mut faults = Vec::new();
        find(&self.workflow, &self.successors, orders, &mut faults);
        faults.into_iter().next()
    }
}

/// Reports what can be known from the document alone: versions that are constant, on keys that are written the same.
pub(super) fn report(workflow: &Workflow, successors: &[Vec<Position>], faults: &mut Vec<Fault>) {
    let known: Vec<(Position, String, OrderVersion)> = (0..)
        .zip(&workflow.steps)
        .filter_map(|(position, step)| {
            let order = step.demands().order.as_ref()?;
            let version = match order.version.parts.as_slice() {
                [Part::Text(text)] => OrderVersion::parse(text).ok()?,
                [..] => return None,
            };
            Some((position, written(&order.key), version))
        })
        .collect();
    let orders: Vec<Ordered<'_>> =
        known.iter().map(|(position, key, version)| (*position, key.as_str(), version)).collect();
    find(workflow, successors, &orders, faults);
}

/// Equal texts give equal keys, whatever the parameters are.
fn written(template: &Template) -> String {
    let mut text = String::new();
    for part in &template.parts {
        match part {
            Part::Text(part) => text.push_str(part),
            Part::Expression(expression) => text.push_str(&format!("${{{{ {} }}}}", expression.source)),
        }
    }
    text
}

/// Between two neighbouring versions on a key.
struct Border<'a> {
    key: &'a str,
    before: &'a OrderVersion,
    after: &'a OrderVersion,
}

fn find<'a>(
    workflow: &Workflow,
    successors: &[Vec<Position>],
    orders: &[Ordered<'a>],
    faults: &mut Vec<Fault>,
) {
    let mut keys: BTreeMap<&str, BTreeMap<&OrderVersion, Vec<Position>>> = BTreeMap::new();
    for (position, key, version) in orders {
        keys.entry(key).or_default().entry(version).or_default().push(*position);
    }
    keys.retain(|_, versions| versions.len() > 1);
    if keys.is_empty() {
        return;
    }
    // A node of its own stands between two versions, so that n steps before m cost n + m edges and not n x m.
    let steps = successors.len();
    let mut graph = successors.to_vec();
    let mut borders: Vec<Border<'a>> = Vec::new();
    for (key, versions) in keys {
        let versions: Vec<(&OrderVersion, Vec<Position>)> = versions.into_iter().collect();
        for pair in versions.windows(2) {
            let border = u32::try_from(graph.len()).expect("there are no more borders than steps");
            graph.push(pair[1].1.clone());
            for before in &pair[0].1 {
                graph[*before as usize].push(border);
            }
            borders.push(Border { key, before: pair[0].0, after: pair[1].0 });
        }
    }
    if order::kahn(&graph).len() == graph.len() {
        return;
    }
    let components = Components::of(&graph);
    let mut seen = vec![false; components.sizes.len()];
    let mut found = 0;
    for start in (0..).take(steps) {
        let component = components.of[start as usize] as usize;
        if components.sizes[component] < 2 || std::mem::replace(&mut seen[component], true) {
            continue;
        }
        if found == cycle::MOST_REPORTED {
            break;
        }
        found += 1;
        faults.push(explain(workflow, &cycle::shortest(start, &graph, &components), &borders));
    }
}

/// Names the whole cycle, and one of the waits in it that `order` makes.
fn explain(workflow: &Workflow, round: &[u32], borders: &[Border<'_>]) -> Fault {
    let steps = workflow.steps.len();
    let name = |node: u32| workflow.steps.get(node as usize).map(|step| step.name.as_str());
    let names: Vec<&str> = round.iter().chain(round.first()).filter_map(|node| name(*node)).collect();
    let mut at = Place::Steps;
    let mut hint = "each step waits for the one before the arrow".to_owned();
    for (index, node) in round.iter().enumerate() {
        let Some(border) = (*node as usize).checked_sub(steps).and_then(|number| borders.get(number)) else {
            continue;
        };
        let before = round[(index + round.len() - 1) % round.len()];
        let after = round[(index + 1) % round.len()];
        at = Place::Order(after);
        hint.push_str(&format!(
            "; `{}` waits for `{}` by `order`: on the key `{}` version {} goes before {}",
            name(after).unwrap_or_default(),
            name(before).unwrap_or_default(),
            border.key,
            border.before,
            border.after
        ));
        break;
    }
    Fault {
        message: format!("steps wait for each other in a cycle: {}", cycle::show(names.iter())),
        at,
        hint: Some(hint),
    }
}
