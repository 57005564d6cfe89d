//! What a document may say and its author should know: warnings, and what only a run in the caller's own directory refuses. A
//! document that is stored already is read without this, so that no stored run becomes unreadable by a new advice.

use super::diagnostic::Diagnostics;
use super::finding::{Finding, Findings, Span};
use super::model::{Action, Workflow};
use super::paths::ArtifactPath;
use super::reader::locate;
use super::yaml::{Data, NodeId, Tree};
use crate::plan::Plan;
use crate::shell::{Shell, scan};

/// A plan with the advice for its author.
#[derive(Debug, Clone)]
pub struct Examined {
    pub plan: Plan,
    /// The document is accepted all the same.
    pub warnings: Diagnostics,
    /// Errors of a run whose steps share one directory, as those of `laneway run` do.
    pub shared_directory: Diagnostics,
}

#[derive(Debug, Default)]
pub(super) struct Advice {
    pub(super) warnings: Findings,
    pub(super) shared_directory: Findings,
}

/// Looks at a workflow that was read from this tree.
pub(super) fn of(text: &str, tree: &Tree<'_>, workflow: &Workflow) -> Advice {
    let mut advice = Advice::default();
    let root = tree.root;
    // A shell that is named was chosen.
    let is_chosen = field(tree, root, "shell").is_some();
    let steps = field(tree, root, "steps");
    for ((_, node), step) in steps.into_iter().flat_map(|steps| pairs(tree, steps)).zip(&workflow.steps) {
        if !is_chosen && matches!(&step.action, Action::Run { shell: Shell::Sh, .. }) {
            advice.warnings.extend(pipe(text, tree, node));
        }
        let files = step.files();
        if step.for_each.is_some() && !files.isolate {
            let paths = field(tree, node, "artifacts").into_iter().flat_map(|list| items(tree, list));
            for (path, node) in files.artifacts.iter().zip(paths) {
                if !path.template().is_some_and(|template| template.reads_item()) {
                    advice.shared_directory.push(same_for_all(&step.name, path, tree.node(node).span));
                }
            }
        }
    }
    if !is_chosen {
        let hooks = field(tree, root, "hooks").into_iter().flat_map(|hooks| pairs(tree, hooks));
        for node in hooks.flat_map(|(_, list)| items(tree, list)) {
            advice.warnings.extend(pipe(text, tree, node));
        }
    }
    advice
}

fn same_for_all(step: &str, path: &ArtifactPath, span: Span) -> Finding {
    let path = path.source();
    let message = format!(
        "every item of `{step}` would take `{path}` for its own: the items share one directory under `laneway run`"
    );
    let example = match path.rsplit_once('.') {
        Some((stem, end)) if !end.contains('/') => {
            format!("{}-${{{{ index }}}}.{end}", stem.replace('*', "part"))
        }
        Some(_) | None => format!("{}-${{{{ index }}}}", path.replace('*', "part")),
    };
    Finding::new(message, span).hint(format!(
        "name the files after the item, such as `{example}`, or give each item a copy of the directory with `isolate: true`"
    ))
}

/// The first pipe in the script of a step, under a shell that the author did not choose.
fn pipe(text: &str, tree: &Tree<'_>, step: NodeId) -> Option<Finding> {
    let run = field(tree, step, "run").filter(|_| field(tree, step, "shell").is_none())?;
    let Data::Scalar { text: script, .. } = &tree.node(run).data else { return None };
    if script.starts_with("#!") {
        return None;
    }
    let found = scan(script);
    let at = found.pipe.filter(|_| !found.sets_pipefail)?;
    // A line stands in the document as it does in the script, whatever style the script is written in.
    let start = script[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = script[at..].find('\n').map_or(script.len(), |length| at + length);
    let start = start + (script[start..end].len() - script[start..end].trim_start().len());
    let line = locate(text, tree, run, start..end);
    let span = match line {
        Some(line) => Span::new(line.start as usize + at - start, line.start as usize + at - start + 1),
        None => tree.node(run).span,
    };
    let message = "under `sh` a pipe succeeds if its last command does, whatever became of the others";
    let hint = "add `shell: bash`, under which the step fails if any of them does, or `shell: sh` to keep it as it is";
    Some(Finding::new(message, span).hint(hint))
}

pub(super) fn field(tree: &Tree<'_>, node: NodeId, key: &str) -> Option<NodeId> {
    pairs(tree, node).find(|(name, _)| tree.key(*name) == key).map(|(_, value)| value)
}

pub(super) fn pairs<'t>(
    tree: &'t Tree<'_>,
    node: NodeId,
) -> impl Iterator<Item = (NodeId, NodeId)> + use<'t> {
    let flat = match &tree.node(node).data {
        Data::Map(flat) => flat.as_ref(),
        Data::Scalar { .. } | Data::List(_) => &[],
    };
    Tree::pairs(flat)
}

pub(super) fn items<'t>(tree: &'t Tree<'_>, node: NodeId) -> impl Iterator<Item = NodeId> + use<'t> {
    let items = match &tree.node(node).data {
        Data::List(items) => items.as_ref(),
        Data::Scalar { .. } | Data::Map(_) => &[],
    };
    items.iter().copied()
}
