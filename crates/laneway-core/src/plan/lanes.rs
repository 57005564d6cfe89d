//! Lanes: the plan's entries once every group is collapsed into one.
//! Owns the proof that a group can be collapsed; with several groups that fails also where no member
//! depends on another, because two groups can wait for each other.

use super::cycle::{self, Components};
use super::groups::Grouping;
use super::{Fault, Lane, Place, Position, order};
use crate::definition::Workflow;

/// The lanes in Kahn's order; among those that are ready the one with the earliest step comes first.
/// Groups that cannot be one lane are reported, each independent trouble once.
pub(super) fn arrange(
    workflow: &Workflow,
    grouping: &Grouping,
    order: &[Position],
    successors: &[Vec<Position>],
    faults: &mut Vec<Fault>,
) -> Vec<Lane> {
    if grouping.members.is_empty() {
        return order.iter().copied().map(Lane::Step).collect();
    }
    let collapsed = Collapsed::new(grouping, successors);
    let mut reported = vec![false; grouping.members.len()];
    refuse_direct(workflow, grouping, successors, &mut reported, faults);
    let lane_order = order::kahn(&collapsed.successors);
    if lane_order.len() < collapsed.lanes.len() {
        let view = View { workflow, grouping, successors, collapsed: &collapsed };
        view.refuse_loops(&mut reported, faults);
    }
    lane_order
        .into_iter()
        .map(|number| match collapsed.lanes[number as usize] {
            Content::Step(position) => Lane::Step(position),
            Content::Group(group) => Lane::Group {
                name: workflow.groups[group as usize].name.clone(),
                steps: grouping.members[group as usize].clone(),
            },
        })
        .collect()
}

#[derive(Clone, Copy)]
enum Content {
    Step(Position),
    Group(u32),
}

/// The graph of lanes. They are numbered by their earliest step, so that Kahn's ties need nothing more.
struct Collapsed {
    lanes: Vec<Content>,
    /// By position.
    lane_of: Vec<u32>,
    successors: Vec<Vec<u32>>,
}

impl Collapsed {
    fn new(grouping: &Grouping, successors: &[Vec<Position>]) -> Self {
        let mut lanes = Vec::new();
        let mut lane_of = Vec::with_capacity(successors.len());
        let mut lane_of_group = vec![None; grouping.members.len()];
        for (position, group) in (0..).zip(&grouping.of) {
            let next = u32::try_from(lanes.len()).expect("there are no more lanes than positions");
            match group {
                None => {
                    lanes.push(Content::Step(position));
                    lane_of.push(next);
                }
                Some(group) => {
                    let lane = *lane_of_group[*group as usize].get_or_insert_with(|| {
                        lanes.push(Content::Group(*group));
                        next
                    });
                    lane_of.push(lane);
                }
            }
        }
        let mut between = vec![Vec::new(); lanes.len()];
        for (from, list) in lane_of.iter().zip(successors) {
            let to = list.iter().map(|successor| lane_of[*successor as usize]);
            between[*from as usize].extend(to.filter(|to| to != from));
        }
        Self { lanes, lane_of, successors: between }
    }
}

/// Members with an edge between them. One for each group: the first is enough to see what is meant.
fn refuse_direct(
    workflow: &Workflow,
    grouping: &Grouping,
    successors: &[Vec<Position>],
    reported: &mut [bool],
    faults: &mut Vec<Fault>,
) {
    for (group, members) in grouping.members.iter().enumerate() {
        let edge = members.iter().find_map(|from| {
            let of = grouping.of[*from as usize];
            let inside = |to: &&Position| grouping.of[**to as usize] == of;
            let to = successors[*from as usize].iter().find(inside)?;
            Some((*from, *to))
        });
        if let Some((from, to)) = edge {
            reported[group] = true;
            faults.push(depend_on_one_another(
                workflow,
                group,
                &[from, to].map(|p| workflow.steps[p as usize].name.clone()),
            ));
        }
    }
}

fn depend_on_one_another(workflow: &Workflow, group: usize, path: &[String]) -> Fault {
    let declared = &workflow.groups[group];
    let last = path.last().map_or("", String::as_str);
    Fault {
        message: format!(
            "the steps of group `{}` depend on one another: {}",
            declared.name,
            cycle::show(path.iter())
        ),
        at: match declared.steps.iter().position(|member| member == last) {
            Some(index) => Place::Member { group, index },
            None => Place::Group(group),
        },
        hint: Some(format!("the steps of a group run side by side: take `{last}` out of it")),
    }
}

struct View<'a> {
    workflow: &'a Workflow,
    grouping: &'a Grouping,
    successors: &'a [Vec<Position>],
    collapsed: &'a Collapsed,
}

impl View<'_> {
    /// Every loop of lanes goes through a group, as the steps themselves have none.
    fn refuse_loops(&self, reported: &mut [bool], faults: &mut Vec<Fault>) {
        let lanes = &self.collapsed.lanes;
        let components = Components::of(&self.collapsed.successors);
        let mut found = 0;
        for (number, lane) in (0..).zip(lanes) {
            let Content::Group(group) = *lane else {
                continue;
            };
            let component = components.of[number as usize] as usize;
            if components.sizes[component] < 2 || reported[group as usize] || found == cycle::MOST_REPORTED {
                continue;
            }
            let round = cycle::shortest(number, &self.collapsed.successors, &components);
            if round.is_empty() {
                continue;
            }
            for lane in &round {
                if let Content::Group(group) = lanes[*lane as usize] {
                    reported[group as usize] = true;
                }
            }
            found += 1;
            faults.push(self.explain(group as usize, &round));
        }
    }

    /// Names the way from a member of the group out and back into it.
    fn explain(&self, group: usize, round: &[u32]) -> Fault {
        let edges: Vec<(Position, Position)> =
            round.iter().zip(round.iter().cycle().skip(1)).map(|(from, to)| self.edge(*from, *to)).collect();
        let name = |position: Position| self.workflow.steps[position as usize].name.clone();
        let mut path = Vec::with_capacity(edges.len() + 1);
        let mut is_path_of_steps = true;
        let mut entered = None;
        for (from, to) in &edges {
            path.push(match entered {
                Some(entered) if entered != *from => {
                    is_path_of_steps = false;
                    let through = self.grouping.of[*from as usize]
                        .map_or("", |g| &self.workflow.groups[g as usize].name);
                    format!("{through}({}, {})", name(entered), name(*from))
                }
                Some(_) | None => name(*from),
            });
            entered = Some(*to);
        }
        path.extend(entered.map(name));
        if is_path_of_steps {
            return depend_on_one_another(self.workflow, group, &path);
        }
        Fault {
            message: format!(
                "group `{}` cannot be one lane, because a step would come before what it needs: {}",
                self.workflow.groups[group].name,
                cycle::show(path.iter())
            ),
            at: Place::Group(group),
            hint: Some(
                "`g(a, b)` is group g, entered at its step a and left at its step b: \
                 groups that wait for each other must be split"
                    .to_owned(),
            ),
        }
    }

    /// The first edge of steps that makes the edge between two lanes.
    fn edge(&self, from: u32, to: u32) -> (Position, Position) {
        let step;
        let members = match self.collapsed.lanes[from as usize] {
            Content::Step(position) => {
                step = [position];
                step.as_slice()
            }
            Content::Group(group) => &self.grouping.members[group as usize],
        };
        members
            .iter()
            .find_map(|member| {
                let leads = |next: &&Position| self.collapsed.lane_of[**next as usize] == to;
                let next = self.successors[*member as usize].iter().find(leads)?;
                Some((*member, *next))
            })
            .expect("lanes are joined only by edges of their steps")
    }
}
