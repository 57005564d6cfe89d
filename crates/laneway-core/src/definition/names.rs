//! Whether what expressions read exists, and exists by then: a step may read only what comes before
//! it. Owns the check over the whole graph; what an expression reads is found by `expression/`.

use std::collections::HashMap;
use std::ops::Range;

use super::finding::{Finding, Span, shown};
use super::model::{OnConflict, Step, Workflow};
use super::read::Spans;
use super::reader::{Site, locate};
use super::yaml::Tree;
use crate::expression::{Read, reads_of};
use crate::hook::ENDED;
use crate::nearest::nearest;

/// A read of a step by another that does not need it directly.
#[derive(Debug)]
struct Pending {
    reader: usize,
    target: usize,
    finding: Finding,
}

/// All that is wrong with the names in the expressions.
pub(super) fn check(
    text: &str,
    tree: &Tree<'_>,
    workflow: &Workflow,
    spans: &Spans,
    sites: &[Site],
) -> Vec<Finding> {
    let keeps = |step: &Step| matches!(step.files().on_conflict, OnConflict::Keep(_));
    if sites.is_empty() && !workflow.steps.iter().any(keeps) {
        return Vec::new();
    }
    let by_name: HashMap<&str, usize> =
        workflow.steps.iter().enumerate().map(|(index, step)| (step.name.as_str(), index)).collect();
    let groups = workflow.groups.iter().enumerate();
    let groups = groups.map(|(index, group)| (group.name.as_str(), workflow.steps.len() + index)).collect();
    let mut check = Check { workflow, spans, by_name, groups, found: Vec::new(), pending: Vec::new() };
    for site in sites {
        check.site(text, tree, site);
    }
    for (index, step) in workflow.steps.iter().enumerate() {
        if let (OnConflict::Keep(kept), Some(span)) = (&step.files().on_conflict, spans.step[index].keep()) {
            check.kept(index, kept, span);
        }
    }
    let Check { by_name, groups, mut found, pending, .. } = check;
    found.extend(not_ancestors(Graph::new(workflow, spans, &by_name, &groups), pending));
    found
}

#[derive(Debug)]
struct Check<'w> {
    workflow: &'w Workflow,
    spans: &'w Spans,
    by_name: HashMap<&'w str, usize>,
    /// Their merges, numbered behind the steps of the document.
    groups: HashMap<&'w str, usize>,
    found: Vec<Finding>,
    pending: Vec<Pending>,
}

impl Check<'_> {
    fn site(&mut self, text: &str, tree: &Tree<'_>, site: &Site) {
        let Ok(reads) = reads_of(&site.source) else {
            return;
        };
        // What lies before this is part of a mistake that has been reported.
        let mut reported = 0;
        for read in reads {
            if read.range.start < reported {
                continue;
            }
            let place = |range: Range<usize>| {
                let part = site.offset + range.start..site.offset + range.end;
                locate(text, tree, site.node, part).unwrap_or(tree.node(site.node).span)
            };
            let span = place(read.range.clone());
            let wrong = |message: String| Finding::new(message, span);
            if let Some((root, parts)) = site.only {
                self.found.extend(only(&read, root, parts, wrong));
                continue;
            }
            if let Some(key) = site.at_submit
                && let root @ ("steps" | "groups" | "run") = read.segments[0].as_str()
            {
                let message = format!("`{key}` cannot read `{root}`: it is fixed when the run is submitted");
                self.found.push(wrong(message).hint("pass it as a parameter: `${{ params.NAME }}`"));
                continue;
            }
            if site.is_hook
                && let Some(finding) = of_hook(&read, wrong)
            {
                self.found.extend(finding);
                continue;
            }
            match read.segments[0].as_str() {
                root @ ("params" | "steps" | "groups") if self.is_subtraction(root, &read) => {
                    if let Some((name, end)) = &read.hyphened {
                        let message = format!("`{root}.{name}` reads as a subtraction");
                        let span = place(read.range.start..*end);
                        let hint = format!("write `{root}[\"{name}\"]`");
                        self.found.push(Finding::new(message, span).hint(hint));
                        reported = *end;
                    }
                }
                "params" => self.found.extend(self.param(&read, wrong)),
                "steps" => {
                    let finding = self.step(site, &read, wrong);
                    self.found.extend(finding);
                }
                "run" => match read.segments.get(1).map(String::as_str) {
                    Some("id" | "workflow") => {}
                    Some(other) => self.found.push(
                        wrong(format!("`run` has no {}", shown(other)))
                            .hint("there are `run.id` and `run.workflow`"),
                    ),
                    None => {}
                },
                "secrets" => self.found.extend(self.secret(site, &read, wrong)),
                "groups" => {
                    let finding = self.group(site, &read, wrong);
                    self.found.extend(finding);
                }
                root @ ("item" | "index") => self.found.extend(self.item(site, root, wrong)),
                root => {
                    let hint = match nearest(root, ["params", "steps", "groups", "run", "secrets", "item"]) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!(
                            "an expression can read `params`, `steps` and `run`; a string needs quotes: \"{root}\""
                        ),
                    };
                    self.found.push(wrong(format!("there is no {}", shown(root))).hint(hint));
                }
            }
        }
    }

    /// The step whose files win is one that comes before.
    fn kept(&mut self, reader: usize, kept: &str, span: Span) {
        let name = &self.workflow.steps[reader].name;
        let target = self.by_name.get(kept).or_else(|| self.groups.get(kept)).copied();
        let Some(target) = target.filter(|target| *target != reader) else {
            let names = self.by_name.keys().chain(self.groups.keys()).copied();
            let near = nearest(kept, names.filter(|other| other != name));
            let message = match target {
                Some(_) => format!("step `{name}` cannot keep its own files: it has none before it starts"),
                None => format!("there is no step {}", shown(kept)),
            };
            let near = near.map(|near| format!("did you mean `{near}`?"));
            let hint = "name a step that it needs: `on_conflict: {keep: STEP}`".to_owned();
            self.found.push(Finding::new(message, span).hint(near.unwrap_or(hint)));
            return;
        };
        let message = format!("step `{name}` keeps the files of `{kept}` and does not come behind it");
        let finding = Finding::new(message, span);
        let finding = finding.hint(format!("add `{kept}` to the `needs` of `{name}`"));
        self.pending.push(Pending { reader, target, finding });
    }

    /// `steps.my-step`, where `my-step` exists and `my` does not.
    fn is_subtraction(&self, root: &str, read: &Read) -> bool {
        let exists = |name: &str| match root {
            "steps" => self.by_name.contains_key(name),
            "groups" => self.groups.contains_key(name),
            _ => self.workflow.params.iter().any(|param| param.name == name),
        };
        match (read.segments.get(1), &read.hyphened) {
            (Some(name), Some((joined, _))) => !exists(name) && exists(joined),
            (Some(_) | None, _) => false,
        }
    }

    /// The item of a task is known where the task is, and not before.
    fn item(&self, site: &Site, root: &str, wrong: impl Fn(String) -> Finding) -> Option<Finding> {
        let step = site.step.map(|step| &self.workflow.steps[step]);
        if site.is_list {
            let finding = wrong(format!("`for_each` cannot read `{root}`: it says what the items are"));
            return Some(finding.hint("it can read `params` and the outputs of steps that it needs"));
        }
        match (step, site.at_submit) {
            (Some(step), None | Some("lock")) if step.for_each.is_some() => None,
            (Some(_), Some(key)) if key != "lock" => {
                let message = format!("`{key}` cannot read `{root}`: it is fixed when the run is submitted");
                Some(wrong(message).hint("pass it as a parameter: `${{ params.NAME }}`"))
            }
            (Some(step), _) => {
                let message = format!("step `{}` has no `for_each`, so there is no `{root}`", step.name);
                Some(
                    wrong(message)
                        .hint("add `for_each: ${{ … }}`, which makes a task for each item of a list"),
                )
            }
            (None, _) => {
                let finding = wrong(format!("the workflow's `env` cannot read `{root}`"));
                Some(finding.hint("put it into the `env` of the step with `for_each`"))
            }
        }
    }

    fn param(&self, read: &Read, wrong: impl Fn(String) -> Finding) -> Option<Finding> {
        let name = read.segments.get(1)?;
        let mut names = self.workflow.params.iter().map(|param| param.name.as_str());
        if self.spans.has_broken_params || names.any(|other| other == name) {
            return None;
        }
        let names = self.workflow.params.iter().map(|param| param.name.as_str());
        let hint = match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it: `params: {{{name}: {{type: string, required: true}}}}`"),
        };
        Some(wrong(format!("there is no parameter {}", shown(name))).hint(hint))
    }

    /// A secret is read as it is, by name, in `env` and in what a callback sends: there it is in no list of processes, and
    /// no error tells a part of it.
    fn secret(&self, site: &Site, read: &Read, wrong: impl Fn(String) -> Finding) -> Option<Finding> {
        if !site.is_env && !site.is_callback {
            let callback =
                if site.is_hook { ", and in the `post`, `headers` and `body` of a callback" } else { "" };
            let finding = wrong(format!("`secrets` can only be read in `env`{callback}"));
            return Some(finding.hint("pass it through `env: {X: \"${{ secrets.NAME }}\"}` and use \"$X\""));
        }
        let (Some(name), 2) = (read.segments.get(1), read.segments.len()) else {
            let finding = wrong("a secret is read by its name".to_owned());
            return Some(finding.hint("write `${{ secrets.NAME }}`"));
        };
        let secrets = &self.workflow.secrets;
        if !secrets.iter().any(|(known, _)| known == name) {
            let hint = match nearest(name, secrets.iter().map(|(known, _)| known.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("say where it comes from: `secrets: {{{name}: {{env: VARIABLE}}}}`"),
            };
            return Some(wrong(format!("there is no secret {}", shown(name))).hint(hint));
        }
        let source = site.source.trim();
        let is_alone = source == format!("secrets.{name}")
            || source == format!("secrets[\"{name}\"]")
            || source == format!("secrets['{name}']");
        (!is_alone).then(|| {
            wrong("a secret is taken as it is: nothing can be done to it in an expression".to_owned())
                .hint(format!("write `${{{{ secrets.{name} }}}}`, with other text around it if need be"))
        })
    }

    fn step(&mut self, site: &Site, read: &Read, wrong: impl Fn(String) -> Finding) -> Option<Finding> {
        let Some(reader) = site.step else {
            let finding = wrong("the workflow's `env` cannot read `steps`".to_owned());
            return Some(finding.hint("put it into the `env` of the step that uses it"));
        };
        let Some(name) = read.segments.get(1) else {
            let finding = wrong("`steps` can only be read by a step's name".to_owned());
            return Some(finding.hint("write `steps.NAME.output.KEY`"));
        };
        let Some(target) = self.by_name.get(name.as_str()).copied() else {
            if self.groups.contains_key(name.as_str()) {
                let finding = wrong(format!("`{name}` is a group, not a step"));
                return Some(finding.hint(format!("its result is `groups.{name}.result`")));
            }
            let near = nearest(name, self.workflow.steps.iter().map(|step| step.name.as_str()));
            let finding = wrong(format!("there is no step {}", shown(name)));
            return Some(finding.maybe_hint(near.map(|near| format!("did you mean `{near}`?"))));
        };
        if let Some(part) = read.segments.get(2)
            && !matches!(part.as_str(), "status" | "output")
        {
            let finding = wrong(format!("a step has no {}", shown(part)));
            let hint = format!("there are `steps.{name}.status` and `steps.{name}.output.KEY`");
            return Some(finding.hint(hint));
        }
        let step = &self.workflow.steps[reader];
        if target == reader {
            let finding = wrong(format!("step `{name}` reads itself"));
            return Some(finding.hint("a step can read only steps that it needs"));
        }
        if !step.needs.contains(name) {
            let finding = wrong(format!(
                "step `{}` reads step `{name}` without needing it, so it may not be done by then",
                step.name
            ))
            .hint(format!("add `{name}` to the `needs` of `{}`", step.name));
            self.pending.push(Pending { reader, target, finding });
        }
        None
    }

    /// The result of a group is that of its merge, which has to be done by then.
    fn group(&mut self, site: &Site, read: &Read, wrong: impl Fn(String) -> Finding) -> Option<Finding> {
        let Some(reader) = site.step else {
            let finding = wrong("the workflow's `env` cannot read `groups`".to_owned());
            return Some(finding.hint("put it into the `env` of the step that uses it"));
        };
        let Some(name) = read.segments.get(1) else {
            let finding = wrong("`groups` can only be read by a group's name".to_owned());
            return Some(finding.hint("write `groups.NAME.result`"));
        };
        let Some(target) = self.groups.get(name.as_str()).copied() else {
            let near = nearest(name, self.workflow.groups.iter().map(|group| group.name.as_str()));
            let finding = wrong(format!("there is no group {}", shown(name)));
            return Some(finding.maybe_hint(near.map(|near| format!("did you mean `{near}`?"))));
        };
        if let Some(part) = read.segments.get(2)
            && !matches!(part.as_str(), "status" | "result")
        {
            let finding = wrong(format!("a group has no {}", shown(part)));
            return Some(
                finding.hint(format!("there are `groups.{name}.status` and `groups.{name}.result.KEY`")),
            );
        }
        let step = &self.workflow.steps[reader];
        if !step.needs.contains(name) {
            let finding = wrong(format!(
                "step `{}` reads group `{name}` without needing it, so it may not be merged by then",
                step.name
            ))
            .hint(format!("add `{name}` to the `needs` of `{}`", step.name));
            self.pending.push(Pending { reader, target, finding });
        }
        None
    }
}

/// What a hook reads otherwise than a step: how the run ended, and not its steps. `None` for what it reads as a step does.
fn of_hook(read: &Read, wrong: impl Fn(String) -> Finding) -> Option<Option<Finding>> {
    let all = || ENDED.iter().map(|part| format!("`ended.{part}`")).collect::<Vec<_>>().join(", ");
    match (read.segments[0].as_str(), read.segments.get(1)) {
        (root @ ("steps" | "groups"), _) => {
            let finding =
                wrong(format!("a hook cannot read `{root}`: they belong to the run that has ended"));
            Some(Some(finding.hint(format!("it can read {}", all()))))
        }
        ("ended", Some(part)) if !ENDED.contains(&part.as_str()) => {
            Some(Some(wrong(format!("`ended` has no {}", shown(part))).hint(format!("there are {}", all()))))
        }
        ("ended", _) => Some(None),
        _ => None,
    }
}

/// A trigger's parameters read what happened; there is no run yet.
fn only(read: &Read, root: &str, parts: &[&str], wrong: impl Fn(String) -> Finding) -> Option<Finding> {
    let all = || match parts {
        [] => format!("`{root}`"),
        parts => parts.iter().map(|part| format!("`{root}.{part}`")).collect::<Vec<_>>().join(", "),
    };
    let first = read.segments[0].as_str();
    if first != root {
        let finding = wrong(format!("what a trigger gives cannot read {}", shown(first)));
        return Some(finding.hint(format!("it can read {}", all())));
    }
    match read.segments.get(1) {
        Some(part) if parts.is_empty() || parts.contains(&part.as_str()) => None,
        Some(part) => {
            Some(wrong(format!("`{root}` has no {}", shown(part))).hint(format!("there are {}", all())))
        }
        None => None,
    }
}

/// The findings of those reads whose target is no ancestor. Targets are looked up 64 at a time, as
/// bits carried along the order from the first target on; sorted by order, so that reads of what
/// comes shortly before stay cheap in a graph of any size. The last bit stands for "not sure": what
/// is behind a `needs` that is itself wrong is not reported.
fn not_ancestors(graph: Graph, mut pending: Vec<Pending>) -> Vec<Finding> {
    const UNSURE: u64 = 1 << 63;
    if pending.is_empty() {
        return Vec::new();
    }
    pending.sort_by_key(|read| (graph.rank[read.target], read.target));
    let mut found = Vec::new();
    let mut bits: Vec<u64> = vec![0; graph.needs.len()];
    let mut rest = pending.into_iter().peekable();
    while rest.peek().is_some() {
        let mut targets: Vec<usize> = Vec::new();
        let mut batch = Vec::new();
        while let Some(read) = rest.next_if(|read| targets.len() < 63 || targets.contains(&read.target)) {
            if targets.last() != Some(&read.target) {
                targets.push(read.target);
            }
            batch.push((targets.len() - 1, read));
        }
        let from = graph.rank[targets[0]];
        let to = batch.iter().map(|(_, read)| graph.rank[read.reader]).max().unwrap_or(0);
        for rank in from..=to.min(graph.order.len().saturating_sub(1)) {
            let step = graph.order[rank];
            let mut seen = if graph.is_unsure[step] { UNSURE } else { 0 };
            for need in &graph.needs[step] {
                if graph.rank[*need] >= from {
                    seen |= bits[*need];
                    if let Ok(index) = targets.binary_search_by_key(&(graph.rank[*need], *need), |target| {
                        (graph.rank[*target], *target)
                    }) {
                        seen |= 1 << index;
                    }
                }
            }
            bits[step] = seen;
        }
        for (index, read) in batch {
            let seen = if graph.is_unsure[read.reader] { UNSURE } else { bits[read.reader] };
            if seen & (UNSURE | 1 << index) == 0
                || graph.rank[read.reader] < from && !graph.is_unsure[read.reader]
            {
                found.push(read.finding);
            }
        }
    }
    found
}

/// The graph by indices, merges of groups behind the steps, without what is wrong in it, in an order in which needs come first.
#[derive(Debug)]
struct Graph {
    needs: Vec<Vec<usize>>,
    order: Vec<usize>,
    /// Inverse of `order`.
    rank: Vec<usize>,
    /// Steps that need something unknown or themselves, and what comes behind them.
    is_unsure: Vec<bool>,
}

impl Graph {
    fn new(
        workflow: &Workflow,
        spans: &Spans,
        by_name: &HashMap<&str, usize>,
        groups: &HashMap<&str, usize>,
    ) -> Self {
        let count = workflow.steps.len() + workflow.groups.len();
        let mut needs = Vec::with_capacity(count);
        let mut successors: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut is_unsure = vec![false; count];
        let of_steps = workflow.steps.iter().zip(&spans.step);
        let of_steps = of_steps.map(|(step, spans)| (&step.needs, spans.has_broken_needs));
        let of_groups = workflow.groups.iter().zip(&spans.group);
        let of_groups = of_groups.map(|(group, spans)| (&group.steps, spans.is_broken));
        for (index, (names, is_broken)) in of_steps.chain(of_groups).enumerate() {
            let find =
                |name: &String| by_name.get(name.as_str()).or_else(|| groups.get(name.as_str())).copied();
            let known: Vec<usize> = names.iter().filter_map(find).collect();
            is_unsure[index] = known.len() < names.len() || is_broken;
            for need in &known {
                successors[*need].push(index);
            }
            needs.push(known);
        }
        let mut left: Vec<usize> = needs.iter().map(Vec::len).collect();
        let mut order: Vec<usize> = (0..count).filter(|index| left[*index] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            let step = order[next];
            next += 1;
            for successor in &successors[step] {
                is_unsure[*successor] |= is_unsure[step];
                left[*successor] -= 1;
                if left[*successor] == 0 {
                    order.push(*successor);
                }
            }
        }
        // What is left lies on or behind a cycle, which the plan reports.
        for index in 0..count {
            if left[index] > 0 {
                is_unsure[index] = true;
                order.push(index);
            }
        }
        let mut rank = vec![0; count];
        for (position, step) in order.iter().enumerate() {
            rank[*step] = position;
        }
        Self { needs, order, rank, is_unsure }
    }
}
