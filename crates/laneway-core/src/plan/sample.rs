//! Workflows for tests, from names alone.

use proptest::prelude::*;

use super::{Fault, Plan};
use crate::definition::{
    Action, Execution, Group, OnFailure, OnLost, Placement, Retry, Step, When, Workflow, Workspace,
};
use crate::hash::Version;

/// Steps as `(name, needs)`.
pub(crate) fn workflow<N: AsRef<str>>(steps: &[(&str, &[N])]) -> Workflow {
    let steps = steps.iter().map(|(name, needs)| {
        let needs = needs.iter().map(|need| need.as_ref().to_owned());
        step((*name).to_owned(), needs.collect())
    });
    of_steps(steps.collect())
}

/// The same with groups as `(name, members)`.
pub(crate) fn grouped(steps: &[(&str, &[&str])], groups: &[(&str, &[&str])]) -> Workflow {
    let mut workflow = workflow(steps);
    workflow.groups = groups
        .iter()
        .map(|(name, steps)| Group {
            name: (*name).to_owned(),
            steps: steps.iter().map(|step| (*step).to_owned()).collect(),
            ..Group::default()
        })
        .collect();
    workflow
}

/// Steps named `s0`, `s1` … with their needs by number.
pub(crate) fn numbered(needs: &[Vec<usize>]) -> Workflow {
    let steps = needs.iter().enumerate().map(|(number, needs)| {
        let needs = needs.iter().map(|need| format!("s{need}"));
        step(format!("s{number}"), needs.collect())
    });
    of_steps(steps.collect())
}

pub(crate) fn build(workflow: Workflow) -> Result<Plan, Vec<Fault>> {
    let version = Version::of(&workflow.name, "");
    Plan::build(workflow, version)
}

/// Needs by number of a random graph without cycles, whose order in the document is no order of the graph.
pub(crate) fn acyclic(most: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1..=most)
        .prop_flat_map(|count| {
            let edges = prop::collection::vec((0..count, 0..count), 0..count * 3);
            (Just((0..count).collect::<Vec<_>>()).prop_shuffle(), edges)
        })
        .prop_map(|(rank, edges)| {
            let mut needs = vec![Vec::new(); rank.len()];
            for (a, b) in edges {
                let (before, after) = if rank[a] < rank[b] { (a, b) } else { (b, a) };
                if before != after && !needs[after].contains(&before) {
                    needs[after].push(before);
                }
            }
            needs
        })
}

fn of_steps(steps: Vec<Step>) -> Workflow {
    Workflow {
        name: "sample".to_owned(),
        params: Vec::new(),
        max_parallel: None,
        on_failure: OnFailure::default(),
        execution: Execution::default(),
        timeout: None,
        cleanup_timeout: Workflow::CLEANUP_TIMEOUT,
        env: Vec::new(),
        steps,
        groups: Vec::new(),
        pools: Vec::new(),
        limits: Vec::new(),
        max_runs: None,
        secrets: Vec::new(),
        placement: Placement::default(),
        workspace: Workspace::default(),
        triggers: Vec::new(),
        hooks: Vec::new(),
    }
}

fn step(name: String, needs: Vec<String>) -> Step {
    Step {
        name,
        action: Action::Command { argv: vec!["true".to_owned()], args: Vec::new() },
        needs,
        when: When::default(),
        condition: None,
        env: Vec::new(),
        workdir: None,
        timeout: None,
        retry: Retry::default(),
        on_lost: OnLost::default(),
        demands: None,
        files: None,
        housing: None,
        cache: None,
        for_each: None,
    }
}
