//! The keys of a group: which steps it has, what a failure in it means, where its members work and how their results
//! become one. Owns what can be wrong with a single group, and that isolation keeps a run on one node; names of steps and
//! the graph are looked at by `plan/`.

use std::collections::HashMap;

use super::finding::{Finding, Findings, Span, shown};
use super::housing::PoolMode;
use super::keys;
use super::model::{Action, Group, GroupFailure, Merge, OnConflict, Placement, Workflow, Workspace};
use super::read::{GroupSpans, Spans, argv};
use super::reader::{Field, Reader, clipped};
use super::yaml::Data;
use crate::nearest::nearest;

/// The names of merges.
const MERGES: [&str; 3] = ["concatenate", "workspace", "custom"];

pub(super) fn read(reader: &mut Reader<'_>, field: Field<'_>) -> (Vec<Group>, Vec<GroupSpans>) {
    let mut groups = Vec::new();
    let mut spans = Vec::new();
    for entry in reader.entries(field, "a mapping of names to groups").unwrap_or_default() {
        reader.check_name("group", entry.name, entry.key);
        let mut places = GroupSpans { name: reader.tree.node(entry.key).span, ..GroupSpans::default() };
        let group = group(reader, entry, &mut places);
        groups.push(group);
        spans.push(places);
    }
    (groups, spans)
}

fn group(reader: &mut Reader<'_>, entry: Field<'_>, places: &mut GroupSpans) -> Group {
    let mut group = Group { name: entry.name.to_owned(), ..Group::default() };
    let must_be = "a mapping such as {steps: [lint, test]}";
    let Some(fields) = reader.fields(entry, &keys::GROUP, must_be) else {
        places.is_broken = true;
        return group;
    };
    let (mut members, mut merge, mut on_conflict, mut isolate) = (None, None, None, None);
    for field in fields {
        match field.name {
            "steps" => members = Some(field),
            "failure" => {
                let choices = GroupFailure::ALL.map(|value| (value.as_str(), value));
                group.failure = reader.choice(field, &choices).unwrap_or_default();
            }
            "merge" => merge = Some(field),
            "on_conflict" => on_conflict = Some(field),
            "isolate" => {
                isolate = Some(reader.tree.node(field.key).span);
                group.isolate = reader.boolean(field).unwrap_or_default();
            }
            "max_parallel" => group.max_parallel = reader.at_least_one(field),
            "mode" => {
                let choices: Vec<_> = PoolMode::ALL.iter().map(|mode| (mode.as_str(), *mode)).collect();
                group.mode = reader.choice(field, &choices);
            }
            "dormancy" => group.dormancy = reader.duration(field),
            "description" => {
                reader.string(field, "a string");
            }
            _ => {}
        }
    }
    match members {
        Some(field) => group.steps = names(reader, field, places),
        None => {
            places.is_broken = true;
            let owner = format!("group `{}`", clipped(entry.name));
            reader.missing(owner, "steps", places.name, "list its steps: `steps: [lint, test]`");
        }
    }
    // What depends on a merge that cannot be read is not judged.
    let read = merge.map_or(Some(Merge::default()), |field| merge_of(reader, field));
    let conflict = on_conflict.map(|field| {
        let (found, keep) = reader.on_conflict(field, "the name of a member").unwrap_or_default();
        places.keep = keep;
        (reader.tree.node(field.key).span, found)
    });
    let Some(mut read) = read else { return group };
    match (&mut read, conflict) {
        (Merge::Workspace { on_conflict }, Some((_, found))) => *on_conflict = found,
        (Merge::Concatenate | Merge::Custom { .. }, Some((span, _))) => reader.findings.push(
            Finding::new("`on_conflict` is about files, and this group does not merge any", span)
                .hint("add `merge: workspace` and `isolate: true`, or remove it"),
        ),
        (_, None) => {}
    }
    if let (Merge::Workspace { .. }, false, Some(field)) = (&read, group.isolate, merge) {
        let span = isolate.unwrap_or(reader.place(field));
        reader.findings.push(
            Finding::new("`merge: workspace` brings copies together, and this group makes none", span)
                .hint("add `isolate: true`: each member then works in a copy of its own"),
        );
    }
    places.isolate = isolate;
    group.merge = read;
    group
}

fn names(reader: &mut Reader<'_>, field: Field<'_>, places: &mut GroupSpans) -> Vec<String> {
    let must_be = "a list of names of steps";
    let Some(items) = reader.list(field, must_be) else {
        places.is_broken = true;
        return Vec::new();
    };
    let mut names = Vec::with_capacity(items.len());
    for item in items {
        match reader.string(item, must_be) {
            Some(name) => {
                names.push(name.to_owned());
                places.members.push(reader.tree.node(item.value).span);
            }
            None => places.is_broken = true,
        }
    }
    names
}

/// A word, or `{custom: [program, …]}`.
fn merge_of(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Merge> {
    match &reader.tree.node(field.value).data {
        Data::Map(_) => {
            let must_be = "one of concatenate, workspace, custom, or {custom: [./join.sh]}";
            let fields = reader.fields(field, &keys::MERGE, must_be)?;
            let Some(command) = fields.first() else {
                let span = reader.place(field);
                reader.missing(
                    "`merge`".to_owned(),
                    "custom",
                    span,
                    "name a program: `{custom: [./join.sh]}`",
                );
                return None;
            };
            argv(reader, *command).map(|command| Merge::Custom { command })
        }
        Data::Scalar { .. } | Data::List(_) => {
            let choices: [(&str, usize); 3] = [(MERGES[0], 0), (MERGES[1], 1), (MERGES[2], 2)];
            Some(match reader.choice(field, &choices)? {
                0 => Merge::Concatenate,
                1 => Merge::Workspace { on_conflict: OnConflict::default() },
                _ => Merge::Custom { command: Vec::new() },
            })
        }
    }
}

impl Reader<'_> {
    /// `fail`, or `{keep: NAME}` with the place of the name.
    pub(super) fn on_conflict(
        &mut self,
        field: Field<'_>,
        must_be: &str,
    ) -> Option<(OnConflict, Option<Span>)> {
        match &self.tree.node(field.value).data {
            Data::Map(_) => {
                let fields = self.fields(field, &keys::ON_CONFLICT, "fail, or {keep: STEP}")?;
                let Some(keep) = fields.first() else {
                    let span = self.place(field);
                    let hint = format!("give {must_be}: `{{keep: lint}}`");
                    self.missing("`on_conflict`".to_owned(), "keep", span, &hint);
                    return None;
                };
                let name = self.string(*keep, must_be)?;
                Some((OnConflict::Keep(name.to_owned()), Some(self.place(*keep))))
            }
            Data::Scalar { .. } | Data::List(_) => {
                let found = self.choice(field, &[("fail", ())]);
                found.map(|()| (OnConflict::Fail, None))
            }
        }
    }
}

/// What one group says against others: a member that is kept and is none, a copy for whom has no directory, and copies
/// that lie on one node for a run that does not stay on one.
pub(super) fn check(
    workflow: &mut Workflow,
    spans: &Spans,
    placement: Option<Span>,
    findings: &mut Findings,
) {
    let isolates = workflow.groups.iter().any(|group| group.isolate);
    let actions: HashMap<&str, &Action> = match isolates {
        true => workflow.steps.iter().map(|step| (step.name.as_str(), &step.action)).collect(),
        false => HashMap::new(),
    };
    for (group, spans) in workflow.groups.iter().zip(&spans.group) {
        if let (Merge::Workspace { on_conflict: OnConflict::Keep(kept) }, Some(span)) =
            (&group.merge, spans.keep)
            && !spans.is_broken
            && !group.steps.contains(kept)
        {
            let near = nearest(kept, group.steps.iter().map(String::as_str));
            let message = format!("{} is no member of group `{}`", shown(kept), group.name);
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its members are: {}", group.steps.join(", ")),
            };
            findings.push(Finding::new(message, span).hint(hint));
        }
        for (member, span) in group.steps.iter().zip(&spans.members) {
            let action = actions.get(member.as_str()).filter(|_| group.isolate);
            let Some(why) = action.and_then(|action| without_directory(action)) else { continue };
            let message = format!("step `{member}` {why}, so there is no copy for it");
            findings.push(Finding::new(message, *span).hint("take it out of the group, or `isolate` off it"));
        }
    }
    let Some(index) = workflow.groups.iter().position(|group| group.isolate) else { return };
    // Files follow a run on any node, unless it works in a directory that is there already.
    if workflow.workspace == Workspace::Follow {
        return;
    }
    match (workflow.placement, placement) {
        (Placement::Spread, Some(span)) => {
            let name = &workflow.groups[index].name;
            let message = format!(
                "group `{name}` isolates its members, and `workspace` keeps their copies on one node"
            );
            let finding = Finding::new(message, span)
                .hint("write `placement: pinned`, or leave it out: `isolate` implies it");
            findings.push(match spans.group.get(index).and_then(|spans| spans.isolate) {
                Some(isolate) => finding.note("the copies lie on that node", isolate),
                None => finding,
            });
        }
        (Placement::Spread, None) => workflow.placement = Placement::Pinned,
        (Placement::Pinned | Placement::Local, _) => {}
    }
}

fn without_directory(action: &Action) -> Option<&'static str> {
    match action {
        Action::Run { .. }
        | Action::Command { .. }
        | Action::Call { .. }
        | Action::Post { .. }
        | Action::Merge { .. } => None,
        Action::Function { .. } => Some("calls a function, which has no directory"),
        Action::Queue { .. } => Some("is done by a remote worker, which has no directory here"),
        Action::Wait(_) => Some("has no directory: it waits for something else"),
    }
}
