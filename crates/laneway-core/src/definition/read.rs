//! From the tree to a workflow. A step that is broken in some key is kept with what could be read,
//! under its name, so that what is said about other steps is still right.

use super::caches;
use super::children;
use super::containers::{self, Housed};
use super::files;
use super::finding::{Finding, Findings, Span};
use super::foreign;
use super::groups;
use super::growth::{self, Growing};
use super::keys;
use super::levels;
use super::model::{
    Action, Demands, Execution, Files, OnFailure, OnLost, Placement, Retry, Step, When, Workflow, Workspace,
};
use super::reader::{Field, Keys, Reader, Site};
use super::triggers::Whose;
use super::waits;
use super::yaml::{Data, NodeId, Tree};
use crate::class::is_label;
use crate::nearest::nearest;
use crate::shell::Shell;

/// A document after reading.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What could be read; `None` if there are no steps to speak of.
    pub(super) workflow: Option<Workflow>,
    pub(super) spans: Spans,
    pub(super) findings: Findings,
    pub(super) sites: Vec<Site>,
}

/// Where the parts of a workflow stand, by their indices in it.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pub(super) steps: Span,
    pub(super) step: Vec<StepSpans>,
    pub(super) group: Vec<GroupSpans>,
    /// Whether all of `params` could be read.
    pub(super) has_broken_params: bool,
}

#[derive(Debug, Default)]
pub(super) struct StepSpans {
    pub(super) name: Span,
    pub(super) needs: Vec<Span>,
    /// Of keys that few steps have. Boxed, because a document may have hundreds of thousands of steps.
    rare: Option<Box<RareSpans>>,
    /// An entry of `needs` could not be read, so what is behind it is not known.
    pub(super) has_broken_needs: bool,
    has_timeout: bool,
    has_retry: bool,
}

#[derive(Debug, Default)]
pub(super) struct RareSpans {
    inputs: Vec<Span>,
    order: Option<Span>,
    cache: Option<Span>,
    isolate: Option<Span>,
    keep: Option<Span>,
}

impl StepSpans {
    pub(super) fn inputs(&self) -> &[Span] {
        self.rare.as_ref().map_or(&[], |rare| &rare.inputs)
    }

    /// The key `order`.
    pub(super) fn order(&self) -> Option<Span> {
        self.rare.as_ref().and_then(|rare| rare.order)
    }

    /// The key `isolate`.
    pub(super) fn isolate(&self) -> Option<Span> {
        self.rare.as_ref().and_then(|rare| rare.isolate)
    }

    /// The step that `on_conflict` keeps.
    pub(super) fn keep(&self) -> Option<Span> {
        self.rare.as_ref().and_then(|rare| rare.keep)
    }

    /// The key `cache`.
    pub(super) fn cache(&self) -> Option<Span> {
        self.rare.as_ref().and_then(|rare| rare.cache)
    }

    fn rare(&mut self) -> &mut RareSpans {
        self.rare.get_or_insert_default()
    }
}

#[derive(Debug, Default)]
pub(super) struct GroupSpans {
    pub(super) name: Span,
    pub(super) members: Vec<Span>,
    /// Its steps could not all be read.
    pub(super) is_broken: bool,
    /// The key `isolate`, and who is kept in a conflict.
    pub(super) isolate: Option<Span>,
    pub(super) keep: Option<Span>,
}

const RUN_ADVICE: &str =
    "a value must not become code: pass it through `env: {X: \"${{ … }}\"}` and use \"$X\" in the script";

pub(super) fn workflow<'t>(text: &'t str, tree: &'t Tree<'t>, default_name: &str) -> Outcome {
    let mut reader = Reader {
        text,
        tree,
        findings: Findings::default(),
        sites: Vec::new(),
        named: Vec::new(),
        step: None,
        is_env: false,
        is_hook: false,
        is_callback: false,
        shell: Shell::default(),
    };
    let mut spans = Spans::default();
    let workflow = document(&mut reader, &mut spans, default_name);
    Outcome { workflow, spans, findings: reader.findings, sites: reader.sites }
}

fn document(reader: &mut Reader<'_>, spans: &mut Spans, default_name: &str) -> Option<Workflow> {
    let tree = reader.tree;
    let root = tree.node(tree.root);
    let Data::Map(flat) = &root.data else {
        let found = match &root.data {
            Data::List(_) => "a list",
            Data::Scalar { .. } | Data::Map(_) => "a single value",
        };
        reader.findings.push(
            Finding::new(format!("a workflow is a mapping of keys to values, not {found}"), root.span)
                .hint("start with `steps:` and one step below it"),
        );
        return None;
    };
    // Keys for anchors are the author's own and are not looked at.
    let all = reader.pairs(flat);
    let fields: Vec<_> = all.into_iter().filter(|field| !field.name.starts_with("x-")).collect();
    let fields = reader.known(fields, &keys::WORKFLOW);
    let mut workflow = Workflow {
        name: default_name.to_owned(),
        params: Vec::new(),
        max_parallel: None,
        on_failure: OnFailure::default(),
        execution: Execution::default(),
        timeout: None,
        cleanup_timeout: Workflow::CLEANUP_TIMEOUT,
        env: Vec::new(),
        steps: Vec::new(),
        groups: Vec::new(),
        pools: Vec::new(),
        limits: Vec::new(),
        max_runs: None,
        secrets: Vec::new(),
        placement: Placement::default(),
        workspace: Workspace::default(),
        triggers: Vec::new(),
        hooks: Vec::new(),
    };
    let mut steps = None;
    let mut triggers = Vec::new();
    let mut hooks = None;
    let mut placement = None;
    let (mut step_timeout, mut step_retry) = (None, Retry::default());
    let mut leveled = levels::Keys::default();
    for field in fields {
        match field.name {
            "name" => {
                if let Some(name) = workflow_name(reader, field) {
                    workflow.name = name;
                }
            }
            "description" => {
                reader.string(field, "a string");
            }
            "params" => {
                (workflow.params, spans.has_broken_params) = reader.params(field);
            }
            "max_parallel" => {
                workflow.max_parallel = reader.at_least_one(field);
                leveled.max_parallel = Some(reader.tree.node(field.key).span);
            }
            "max_parallel_steps" => leveled.max_parallel_steps = Some(field),
            "on_failure" => {
                leveled.on_failure = Some(reader.place(field));
                let choices = OnFailure::ALL.map(|value| (value.as_str(), value));
                workflow.on_failure = reader.choice(field, &choices).unwrap_or_default();
            }
            "timeout" => workflow.timeout = reader.timeout(field),
            "cleanup_timeout" => {
                workflow.cleanup_timeout = reader.duration(field).unwrap_or(workflow.cleanup_timeout);
            }
            "step_timeout" => step_timeout = reader.timeout(field),
            "step_retry" => step_retry = reader.retry(field).unwrap_or_default(),
            "env" => workflow.env = reader.variables(field),
            "shell" => reader.shell = reader.shell(field).unwrap_or_default(),
            "secrets" => workflow.secrets = reader.secrets(field),
            "execution" => leveled.execution = Some(field),
            "placement" => {
                let choices = Placement::ALL.map(|value| (value.as_str(), value));
                workflow.placement = reader.choice(field, &choices).unwrap_or_default();
                placement = Some(reader.place(field));
            }
            "workspace" => workflow.workspace = reader.workspace(field).unwrap_or_default(),
            "max_runs" => workflow.max_runs = reader.max_runs(field),
            "limits" => workflow.limits = reader.limits(field),
            "groups" => {
                leveled.groups = Some(reader.tree.node(field.key).span);
                (workflow.groups, spans.group) = groups::read(reader, field);
            }
            "pools" => workflow.pools = reader.pools(field),
            "schedule" | "after" | "webhook" => triggers.push(field),
            "hooks" => hooks = Some(field),
            "steps" => steps = Some(field),
            _ => {}
        }
    }
    for field in triggers {
        let params = (!spans.has_broken_params).then_some(&workflow.params[..]);
        let whose = Whose { name: &workflow.name, params, secrets: &workflow.secrets };
        let read = reader.triggers(field, whose);
        workflow.triggers.extend(read);
    }
    if let Some(field) = hooks {
        workflow.hooks = reader.hooks(field, &workflow.secrets);
    }
    let Some(field) = steps else {
        let span = Span::new(root.span.start as usize, root.span.start as usize);
        let hint = "add at least one: `steps: {hello: {run: echo hello}}`";
        reader.missing("the workflow".to_owned(), "steps", span, hint);
        return None;
    };
    spans.steps = tree.node(field.key).span;
    if let Data::List(items) = &tree.node(field.value).data {
        let hint = named_steps(tree, items);
        let finding = reader.wrong(field, "a mapping of names to steps").hint(hint);
        reader.findings.push(finding);
        return None;
    }
    for entry in reader.entries(field, "a mapping of names to steps")? {
        reader.step = Some(workflow.steps.len());
        let (mut step, places) = step(reader, entry, &keys::STEP);
        // What a step waits for may take as long as it likes.
        if !matches!(step.action, Action::Wait(_)) {
            step.timeout = if places.has_timeout { step.timeout } else { step_timeout };
            step.retry = if places.has_retry { step.retry } else { step_retry.clone() };
        }
        workflow.steps.push(step);
        spans.step.push(places);
    }
    reader.step = None;
    files::check(&workflow, spans, &mut reader.findings);
    caches::check(&workflow, spans, &mut reader.findings);
    containers::check(&workflow, std::mem::take(&mut reader.named), &mut reader.findings);
    groups::check(&mut workflow, spans, placement, &mut reader.findings);
    levels::read(reader, &mut workflow, spans, levels::Keys { placement, ..leveled });
    growth::check(&workflow, spans, &mut reader.findings);
    Some(workflow)
}

/// What to write in place of a list of steps, with the names of the first two.
fn named_steps(tree: &Tree<'_>, items: &[NodeId]) -> String {
    let named = |item: &NodeId| {
        let Data::Map(flat) = &tree.node(*item).data else { return None };
        let mut pairs = Tree::pairs(flat);
        let (_, value) = pairs.find(|(key, _)| matches!(tree.key(*key), "name" | "id"))?;
        let name: String = tree.key(value).to_lowercase().replace(' ', "-");
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        (is_name && !name.is_empty() && name.len() <= 40 && !name.starts_with(|c: char| c.is_ascii_digit()))
            .then_some(name)
    };
    let name = |index: usize, other: &str| items.get(index).and_then(named).unwrap_or(other.to_owned());
    let (first, second) = (name(0, "build"), name(1, "test"));
    format!(
        "give each step a name: `steps: {{{first}: {{run: …}}, {second}: {{needs: [{first}], run: …}}}}`; steps without `needs` start at once"
    )
}

/// 1 to 100 characters that can be seen, on one line.
pub fn is_workflow_name(name: &str) -> bool {
    !name.trim().is_empty()
        && name.trim() == name
        && name.chars().count() <= 100
        && !name.chars().any(|c| c.is_control() || super::finding::is_invisible(c))
}

fn workflow_name(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let must_be = "a name of 1 to 100 characters without line breaks";
    let name = reader.string(field, must_be)?;
    if !is_workflow_name(name) {
        let finding = reader.wrong(field, must_be);
        reader.findings.push(finding);
        return None;
    }
    reader.literal(field, name, "a name is fixed; leave the expression out").then(|| name.to_owned())
}

/// `keys` are those that it may have: a hook is a step as well.
pub(super) fn step(reader: &mut Reader<'_>, entry: Field<'_>, keys: &Keys) -> (Step, StepSpans) {
    reader.check_name("step", entry.name, entry.key);
    let mut spans = StepSpans { name: reader.tree.node(entry.key).span, ..StepSpans::default() };
    let mut step = Step {
        name: entry.name.to_owned(),
        action: Action::Command { argv: Vec::new(), args: Vec::new() },
        needs: Vec::new(),
        when: When::default(),
        condition: None,
        env: Vec::new(),
        workdir: None,
        timeout: None,
        retry: Default::default(),
        on_lost: OnLost::default(),
        demands: None,
        files: None,
        housing: None,
        cache: None,
        for_each: None,
    };
    let (mut demands, mut files) = (Demands::default(), Files::default());
    let must_be = "a mapping such as {run: ./build.sh}";
    let Some(fields) = reader.fields(entry, keys, must_be) else {
        spans.has_broken_needs = true;
        return (step, spans);
    };
    let (fields, wait) = waits::sorted(reader, fields, ("wait", waits::advice));
    let (fields, workflow) = waits::sorted(reader, fields, ("workflow", children::advice));
    let (mut run, mut command, mut function, mut queue) = (None, None, None, None);
    let (mut args, mut with, mut shell) = (None, None, None);
    let mut housed = Housed::default();
    let mut of_processes = Vec::new();
    let mut growing = Growing::default();
    for field in fields {
        match field.name {
            "run" => run = Some(field),
            "command" => command = Some(field),
            "function" => function = Some(field),
            "queue" => queue = Some(field),
            "args" => args = Some(field),
            "shell" => shell = Some(field),
            "with" => with = Some(field),
            "needs" => needs(reader, field, &mut step, &mut spans),
            "when" => {
                let choices = When::ALL.map(|value| (value.as_str(), value));
                step.when = reader.choice(field, &choices).unwrap_or_default();
            }
            "if" => step.condition = reader.condition(field),
            "env" => {
                of_processes.push(field);
                step.env = reader.variables(field);
            }
            "workdir" => {
                of_processes.push(field);
                step.workdir = reader.workdir(field);
            }
            "timeout" => {
                spans.has_timeout = true;
                step.timeout = reader.timeout(field);
            }
            "retry" => {
                spans.has_retry = true;
                step.retry = reader.retry(field).unwrap_or_default();
            }
            "on_lost" => {
                let choices = OnLost::ALL.map(|value| (value.as_str(), value));
                step.on_lost = reader.choice(field, &choices).unwrap_or_default();
            }
            "lock" => demands.lock = reader.key(field, "lock"),
            "order" => {
                spans.rare().order = Some(reader.tree.node(field.key).span);
                growing.order = Some(field);
                demands.order = reader.order(field);
            }
            "limits" => demands.limits = reader.limits_of_step(field),
            "not_before" => demands.not_before = reader.not_before(field),
            "runs_on" => demands.runs_on = reader.labels(field),
            "prefers" => demands.prefers = reader.labels(field),
            "artifacts" => files.artifacts = reader.artifacts(field),
            "inputs" => (files.inputs, spans.rare().inputs) = reader.inputs(field).into_iter().unzip(),
            "isolate" => {
                spans.rare().isolate = Some(reader.tree.node(field.key).span);
                files.isolate = reader.boolean(field).unwrap_or_default();
            }
            "on_conflict" => {
                let (kept, span) = reader.on_conflict(field, "the name of a step").unwrap_or_default();
                (files.on_conflict, spans.rare().keep) = (kept, span);
            }
            "cache" => {
                spans.rare().cache = Some(reader.tree.node(field.key).span);
                step.cache = reader.cache(field).map(Box::new);
            }
            "image" => housed.image = Some(field),
            "container" => housed.container = Some(field),
            "pool" => housed.pool = Some(field),
            "call" => housed.call = Some(field),
            "for_each" => growing.items = Some(field),
            "max_parallel" => growing.max_parallel = Some(field),
            "fail_fast" => growing.fail_fast = Some(field),
            "priority" => demands.priority = reader.priority(field).unwrap_or_default(),
            "description" => {
                reader.string(field, "a string");
            }
            _ => {}
        }
    }
    step.for_each = growing.read(reader);
    step.files = (files != Files::default()).then(|| Box::new(files));
    step.demands = (demands != Demands::default()).then(|| Box::new(demands));
    let (input, misplaced, advice) = match (function, queue.or(workflow)) {
        (Some(_), _) => (with, args, "a function takes its input by name: `with: {NAME: VALUE}`"),
        (None, Some(_)) => (with, args, "it takes its input by name: `with: {NAME: VALUE}`"),
        (None, None) => (
            args,
            with,
            "`with` is the input of a `function`, a `queue` or a `workflow`; a script or program takes `args` or `env`",
        ),
    };
    if let Some(field) = misplaced {
        does_not_belong(reader, field, advice);
    }
    if run.is_none() {
        reader.misplaced_shell(shell);
    }
    if queue.is_some() {
        let advice = "a remote worker has its own; pass values by `with: {NAME: VALUE}`";
        of_processes.drain(..).for_each(|field| does_not_belong(reader, field, advice));
    }
    if let Some(call) =
        housed.call.filter(|_| run.or(command).or(function).or(queue).or(wait).or(workflow).is_none())
    {
        let advice = "what is called has its own; pass values by `body`";
        of_processes.drain(..).for_each(|field| does_not_belong(reader, field, advice));
        if let Some(field) = args {
            does_not_belong(reader, field, "what is called takes its input by `call: {body: …}`");
        }
        step.housing = housed.read(reader, None);
        if let Some(action) = reader.call(call) {
            step.action = action;
        }
        return (step, spans);
    }
    step.housing = housed.read(reader, function.or(queue));
    let actions: Vec<Field<'_>> =
        [run, command, function, queue, housed.call, wait, workflow].into_iter().flatten().collect();
    if let [first, second, ..] = actions.as_slice() {
        both(reader, entry.name, *first, *second);
        return (step, spans);
    }
    if let Some(wait) = wait {
        if let Some(wait) = reader.wait(wait) {
            step.action = Action::Wait(Box::new(wait));
        }
        return (step, spans);
    }
    if let Some(workflow) = workflow {
        let with = input.map(|field| reader.input(field)).unwrap_or_default();
        let timeout = step.timeout.take();
        if let Some(wait) = reader.sub_workflow(workflow, with, timeout) {
            step.action = Action::Wait(Box::new(wait));
        }
        return (step, spans);
    }
    if let Some(queue) = queue {
        let with = input.map(|field| reader.input(field)).unwrap_or_default();
        if let Some(queue) = queue_name(reader, queue) {
            step.action = Action::Queue { queue, with };
        }
        return (step, spans);
    }
    match (run, command, function) {
        (Some(run), _, _) => {
            let args = input.map(|field| arguments(reader, field)).unwrap_or_default();
            if let Some(script) = script(reader, run) {
                let shell = reader.shell_of(shell, run, &script);
                step.action = Action::Run { script, args, shell };
            }
        }
        (None, Some(command), _) => {
            let args = input.map(|field| arguments(reader, field)).unwrap_or_default();
            if let Some(argv) = argv(reader, command) {
                step.action = Action::Command { argv, args };
            }
        }
        (None, None, Some(function)) => {
            let with = input.map(|field| reader.env(field)).unwrap_or_default();
            if let Some(name) = function_name(reader, function) {
                step.action = Action::Function { name, with };
            }
        }
        (None, None, None) if has_later_action(reader, entry) => {}
        (None, None, None) => {
            let owner = format!("step `{}`", super::reader::clipped(entry.name));
            let hint = "give it a script, `run: ./build.sh`, or `command: [./build.sh, --fast]`";
            let missing = if housed.pool.is_some() { "run`, `command` or `call" } else { "run` or `command" };
            reader.missing(owner, missing, spans.name, hint);
        }
    }
    (step, spans)
}

pub(super) fn does_not_belong(reader: &mut Reader<'_>, field: Field<'_>, advice: &str) {
    let span = reader.tree.node(field.key).span;
    let message = format!("`{}` does not belong to this step", field.name);
    reader.findings.push(Finding::new(message, span).hint(advice));
}

/// A step says twice what to execute.
fn both(reader: &mut Reader<'_>, step: &str, one: Field<'_>, other: Field<'_>) {
    let (first, second) = (reader.tree.node(one.key).span, reader.tree.node(other.key).span);
    reader.findings.push(
        Finding::new(
            format!("step `{step}` has both `{}` and `{}`", one.name, other.name),
            first.max(second),
        )
        .note("the other one", first.min(second))
        .hint(
            "keep `run` for a script, `command` for a program and its arguments, `function` for a function, `queue` for remote workers, `call` for a container's endpoint, `wait` for a signal or a moment, or `workflow` for a run of another workflow",
        ),
    );
}

fn function_name(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let must_be = "the name of a function";
    let name = reader.string(field, must_be)?;
    if name.trim().is_empty() || name.trim() != name {
        let finding = reader.wrong(field, must_be);
        reader.findings.push(finding);
        return None;
    }
    reader
        .literal(field, name, "a function is named, not computed; pass values by `with`")
        .then(|| name.to_owned())
}

fn queue_name(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let must_be = "the name of a queue, such as images or mail/send";
    let name = reader.string(field, must_be)?;
    if !reader.literal(field, name, "a queue is named, not computed; pass values by `with`") {
        return None;
    }
    if !is_label(name) {
        let finding = reader.wrong(field, must_be).hint("use letters, digits and `_ - . / :`");
        reader.findings.push(finding);
        return None;
    }
    Some(name.to_owned())
}

/// Whether it says what to execute in a way that has been refused already.
fn has_later_action(reader: &Reader<'_>, entry: Field<'_>) -> bool {
    match &reader.tree.node(entry.value).data {
        Data::Map(flat) => Tree::pairs(flat).any(|(key, _)| {
            let key = reader.tree.key(key);
            !keys::STEP.known.contains(&key)
                && (foreign::is_action(key) || nearest(key, ["run", "command"]).is_some())
        }),
        Data::Scalar { .. } | Data::List(_) => false,
    }
}

fn script(reader: &mut Reader<'_>, field: Field<'_>) -> Option<String> {
    let script = reader.string(field, "a script")?;
    if script.trim().is_empty() {
        let finding = reader.wrong(field, "a script");
        reader.findings.push(finding);
        return None;
    }
    reader.literal(field, script, RUN_ADVICE).then(|| script.to_owned())
}

pub(super) fn argv(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<String>> {
    let must_be = "a list such as [./build.sh, --fast]";
    let items = reader.list(field, must_be)?;
    if items.is_empty() {
        let finding = reader.wrong(field, must_be).hint("name the program first");
        reader.findings.push(finding);
        return None;
    }
    let mut argv = Vec::with_capacity(items.len());
    for item in items {
        let advice = "put values into `args: [\"${{ … }}\"]`, which follow the command";
        if let Some(word) = reader.word(item, "a list of strings")
            && reader.literal(item, word, advice)
        {
            if argv.is_empty() && word.is_empty() {
                let finding = reader.wrong(item, "a list that starts with a program");
                reader.findings.push(finding);
            }
            argv.push(word.to_owned());
        }
    }
    Some(argv)
}

fn arguments(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<crate::expression::Template> {
    let items = reader.list(field, "a list of strings").unwrap_or_default();
    items.into_iter().filter_map(|item| reader.template(item)).collect()
}

/// One name, or a list of names. A repeated name says nothing new and is dropped.
fn needs(reader: &mut Reader<'_>, field: Field<'_>, step: &mut Step, spans: &mut StepSpans) {
    let must_be = "the name of a step, or a list of names";
    let items = match &reader.tree.node(field.value).data {
        Data::Scalar { .. } => vec![field],
        Data::List(_) | Data::Map(_) => match reader.list(field, must_be) {
            Some(items) => items,
            None => {
                spans.has_broken_needs = true;
                return;
            }
        },
    };
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    for item in items {
        let advice = "what a step needs is fixed; use `if` to leave a step out";
        match reader.string(item, must_be) {
            Some(name) if reader.literal(item, name, advice) => {
                if seen.insert(name) {
                    step.needs.push(name.to_owned());
                    spans.needs.push(reader.tree.node(item.value).span);
                }
            }
            Some(_) | None => spans.has_broken_needs = true,
        }
    }
}
