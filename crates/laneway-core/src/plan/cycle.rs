//! Cycles: which there are, and one short way round each.
//! Works on any graph of numbered nodes, so that lanes are checked by the same functions as steps.

use std::collections::VecDeque;

use super::{Fault, Place, Position};
use crate::definition::Workflow;

/// How many cycles are reported. Independent cycles are rare; a file with more is shown its first.
pub(super) const MOST_REPORTED: usize = 5;

/// A path of more steps is shown without its middle.
const LONGEST_SHOWN: usize = 1_000;

/// Reports each independent cycle once, at the `needs` entry of its first step.
///
/// An arrow `a -> b` leads from a step to one that needs it, in the direction of time, as arrows do in
/// every drawing of the graph: `a -> b -> c -> a` says that b needs a, c needs b, and a needs c. The
/// cycle starts at its member that comes first in the document, and is a shortest one through it.
pub(super) fn report(workflow: &Workflow, successors: &[Vec<Position>], faults: &mut Vec<Fault>) {
    let components = Components::of(successors);
    let mut seen = vec![false; components.sizes.len()];
    let mut found = 0;
    for start in (0..).take(successors.len()) {
        let component = components.of[start as usize] as usize;
        if components.sizes[component] < 2 || std::mem::replace(&mut seen[component], true) {
            continue;
        }
        found += 1;
        if found > MOST_REPORTED {
            continue;
        }
        let cycle = shortest(start, successors, &components);
        let closing = cycle.last().copied().unwrap_or(start);
        let step = &workflow.steps[start as usize];
        let before = &workflow.steps[closing as usize].name;
        let names = cycle.iter().chain([&start]);
        let names = names.map(|position| workflow.steps[*position as usize].name.as_str());
        faults.push(Fault {
            message: format!("steps wait for each other in a cycle: {}", show(names)),
            at: match step.needs.iter().position(|need| need == before) {
                Some(index) => Place::Need { step: start, index },
                None => Place::Step(start),
            },
            hint: Some(format!(
                "each step waits for the one before the arrow; `{}` needs `{before}` closes the cycle",
                step.name
            )),
        });
    }
    if found > MOST_REPORTED
        && let Some(hint) = faults.last_mut().and_then(|fault| fault.hint.as_mut())
    {
        hint.push_str(&format!("; {} more cycles follow", found - MOST_REPORTED));
    }
}

/// Names joined by arrows; the middle of a very long path is left out.
pub(super) fn show<S: AsRef<str>>(names: impl Iterator<Item = S>) -> String {
    let names: Vec<S> = names.collect();
    let mut text = String::new();
    let hidden = names.len().saturating_sub(LONGEST_SHOWN);
    let middle = LONGEST_SHOWN / 2;
    for (index, name) in names.iter().enumerate() {
        if hidden > 0 && (middle..middle + hidden).contains(&index) {
            if index == middle {
                text.push_str(&format!(" -> … {hidden} more …"));
            }
            continue;
        }
        if index > 0 {
            text.push_str(" -> ");
        }
        text.push_str(name.as_ref());
    }
    text
}

/// A shortest cycle through `start`, which must lie on one; its last node leads back to `start`.
pub(super) fn shortest(start: u32, successors: &[Vec<u32>], components: &Components) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let component = components.of[start as usize];
    let mut reached_from = vec![UNSEEN; successors.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for successor in &successors[node as usize] {
            if *successor == start {
                let mut cycle = vec![node];
                while let Some(last) = cycle.last().filter(|last| **last != start) {
                    cycle.push(reached_from[*last as usize]);
                }
                cycle.reverse();
                return cycle;
            }
            let from = &mut reached_from[*successor as usize];
            if components.of[*successor as usize] == component && *from == UNSEEN {
                *from = node;
                queue.push_back(*successor);
            }
        }
    }
    Vec::new()
}

/// Sets of nodes that reach one another. Every cycle lies within one.
pub(super) struct Components {
    /// By node.
    pub(super) of: Vec<u32>,
    pub(super) sizes: Vec<u32>,
}

impl Components {
    /// Tarjan's algorithm with a stack of its own: a chain of 100,000 steps must not overflow the thread's.
    pub(super) fn of(successors: &[Vec<u32>]) -> Self {
        const UNSEEN: u32 = u32::MAX;
        let count = successors.len();
        let mut of = vec![UNSEEN; count];
        let mut sizes = Vec::new();
        let mut index = vec![UNSEEN; count];
        let mut low = vec![0; count];
        let mut next_index = 0;
        let mut members: Vec<u32> = Vec::new();
        // A node and how many of its successors were visited.
        let mut path: Vec<(u32, usize)> = Vec::new();
        for root in (0..).take(count) {
            if index[root as usize] != UNSEEN {
                continue;
            }
            path.push((root, 0));
            while let Some((node, visited)) = path.last_mut() {
                let at = *node as usize;
                if *visited == 0 {
                    index[at] = next_index;
                    low[at] = next_index;
                    next_index += 1;
                    members.push(*node);
                }
                if let Some(successor) = successors[at].get(*visited) {
                    *visited += 1;
                    let to = *successor as usize;
                    if index[to] == UNSEEN {
                        path.push((*successor, 0));
                    } else if of[to] == UNSEEN {
                        low[at] = low[at].min(index[to]);
                    }
                    continue;
                }
                if low[at] == index[at] {
                    let component = u32::try_from(sizes.len()).expect("as many as nodes at most");
                    let mut size = 0;
                    while let Some(member) = members.pop() {
                        of[member as usize] = component;
                        size += 1;
                        if member as usize == at {
                            break;
                        }
                    }
                    sizes.push(size);
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    let parent = *parent as usize;
                    low[parent] = low[parent].min(low[at]);
                }
            }
        }
        Self { of, sizes }
    }
}
