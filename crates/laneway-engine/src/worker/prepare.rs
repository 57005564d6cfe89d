//! From a claim to a job: evaluates what the step's expressions say, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use laneway_core::definition::{Action, Container, Housing, Input, MAX_INPUT, Merge, Post};
use laneway_core::expression::{Error, Scope, Template};
use laneway_core::id::{InstanceId, SessionId};
use laneway_store::log_path;
use laneway_store::model::Claim;

use crate::container::pool::{self, What};
use crate::container::{self, Containers, HostMounts, labels};
use crate::effect::Effects;
use crate::function;
use crate::log::{Courier, LOG_CAP, SHARED_LOG_CAP, Target};
use crate::process::{InheritEnv, Job, Program};
use crate::secret::Masks;

/// Where an attempt's files go.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) store_dir: PathBuf,
    pub(super) scratch: PathBuf,
    pub(super) ground: Ground,
}

/// Where steps run, and what of this process's environment they see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// As if the caller ran them: in the workflow file's directory, with its environment, or with these variables of it.
    Caller { pass_env: Option<Vec<String>> },
    /// In the workflow file's directory, which is on this host, with these variables.
    Beside { pass_env: Vec<String> },
    /// In a directory for each run, on this node, with these variables.
    Apart { pass_env: Vec<String> },
}

impl Ground {
    fn inherit(&self) -> InheritEnv {
        match self {
            Self::Caller { pass_env: None } => InheritEnv::All,
            Self::Caller { pass_env: Some(pass_env) }
            | Self::Beside { pass_env }
            | Self::Apart { pass_env } => InheritEnv::Only(pass_env.clone()),
        }
    }

    /// What of the host a document may show to a container: all of it where it is the caller's own.
    pub(super) fn host_mounts(&self, allowed: &[PathBuf]) -> HostMounts {
        match self {
            Self::Caller { .. } => HostMounts::All,
            Self::Beside { .. } | Self::Apart { .. } => HostMounts::Below(allowed.to_vec()),
        }
    }
}

/// Steps whose outputs the expressions of this one read.
pub(super) fn steps_read(claim: &Claim) -> Vec<String> {
    let plan = &claim.head.plan;
    let step = plan.step(claim.at.position);
    let own: Vec<&Template> = match &step.action {
        Action::Run { args, .. } | Action::Command { args, .. } => args.iter().collect(),
        Action::Function { with, .. } => with.iter().map(|(_, template)| template).collect(),
        Action::Call { path, body, .. } => body.templates().into_iter().chain([path]).collect(),
        Action::Post { .. } | Action::Queue { .. } | Action::Merge { .. } | Action::Wait(_) => Vec::new(),
    };
    let named = plan.workflow.env.iter().chain(&step.env).map(|(_, template)| template);
    let templates = named.chain(own);
    let templates = templates.chain(step.path_templates());
    let templates = templates.chain(step.cache().and_then(|cache| cache.key.as_ref()));
    let templates: Vec<&Template> = templates.collect();
    let mut read: BTreeSet<String> = templates.iter().flat_map(|template| template.steps_read()).collect();
    read.extend(step.condition.iter().flat_map(|condition| condition.steps_read()));
    // The item of a task is found by its own name.
    let reads_item = templates.into_iter().any(Template::reads_item) || step.condition_reads_item();
    if reads_item && plan.item(claim.at.position).is_some() {
        read.insert(plan.task_name(claim.at.position));
    }
    read.into_iter().collect()
}

/// What an attempt executes, with its engine.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each slot; a box would cost every process an allocation"
)]
pub(super) enum Work {
    Process(Job),
    Container(Box<container::Job>),
    Warm(Box<pool::Job>),
    Function(function::Job),
}

/// Secrets that the variables of this one read.
pub(super) fn secrets_read(claim: &Claim) -> BTreeSet<String> {
    let plan = &claim.head.plan;
    if plan.workflow.secrets.is_empty() {
        return BTreeSet::new();
    }
    let step = plan.step(claim.at.position);
    if let Action::Post(post) = &step.action {
        let sent = post.templates().flat_map(Template::secrets_read).map(str::to_owned);
        return sent.chain(post.secret.clone()).collect();
    }
    let files = match step.housing() {
        Some(Housing::Own(container)) => container.secrets.as_slice(),
        Some(Housing::Pool(_)) | None => &[],
    };
    let env = plan.workflow.env.iter().chain(&step.env);
    let read = env.flat_map(|(_, template)| template.secrets_read()).map(str::to_owned);
    read.chain(files.iter().cloned()).collect()
}

/// Where one attempt runs, and where its output goes.
pub(super) struct Spot<'a> {
    pub(super) places: &'a Places,
    pub(super) dir: &'a Path,
    /// What it reads, if it is to read something.
    pub(super) stdin: Option<&'a Path>,
    pub(super) courier: Option<&'a Courier>,
    pub(super) masks: &'a Masks,
    pub(super) containers: &'a Containers,
    /// Whose containers these are.
    pub(super) instance: InstanceId,
    pub(super) session: SessionId,
    /// How long the log of the attempt is already.
    pub(super) log: u64,
    /// Fencing token of its lock.
    pub(super) fence: Option<u64>,
}

/// Everything that an engine needs. An expression that cannot be evaluated fails the attempt.
pub(super) fn work(
    claim: &Claim,
    scope: &Scope,
    spot: &Spot<'_>,
    kill_grace: std::time::Duration,
) -> Result<Work, String> {
    let Spot { places, dir, stdin, masks, .. } = *spot;
    let plan = &claim.head.plan;
    let step = plan.step(claim.at.position);
    if let Some(condition) = &step.condition {
        // The gate has asked already; it lets through what it could not evaluate, so that it is told here.
        condition.holds(scope).map_err(|error| format!("`if`: {error}"))?;
    }
    let program = match &step.action {
        Action::Function { name, with } => {
            let job = call(claim, name, with, scope)?;
            return Ok(Work::Function(function::Job { fence: spot.fence, ..job }));
        }
        Action::Post(callback) => return post(claim, callback, scope).map(Work::Function),
        // No node that runs steps takes such a class.
        Action::Queue { queue, .. } => {
            return Err(format!("it is for remote workers of the queue `{queue}`"));
        }
        // It is parked, and nobody is offered it.
        Action::Wait(_) => return Err("it waits, and runs nothing".to_owned()),
        Action::Call { method, path, body } => {
            let path = path.render(scope).map_err(|error| format!("`call.path`: {error}"))?;
            let body = match body {
                Input::Literal(serde_json::Value::Null) => None,
                body => Some(body.evaluate(scope).map_err(|error| format!("`call.body`: {error}"))?),
            };
            return warm(claim, spot, What::Call { method: *method, path, body }, kill_grace);
        }
        // Its engine is `merge.rs`, which has this for what is to be piped through a program.
        Action::Merge { group } => match &plan.group(*group).merge {
            Merge::Custom { command } => Program::Command { argv: command.clone() },
            Merge::Concatenate | Merge::Workspace { .. } => {
                return Err("there is no program that merges it".to_owned());
            }
        },
        Action::Run { script, args, shell } => Program::Script {
            text: script.clone(),
            name: step.name.clone(),
            args: arguments(args, scope)?,
            shell: shell.clone(),
        },
        Action::Command { argv, args } => {
            let mut argv = argv.clone();
            argv.extend(arguments(args, scope)?);
            Program::Command { argv }
        }
    };
    let mut env = Vec::new();
    for (name, template) in plan.workflow.env.iter().chain(&step.env) {
        let value = template.render(scope).map_err(|error| format!("`env.{name}`: {error}"))?;
        env.push((name.clone(), value));
    }
    env.extend([
        ("LANEWAY_RUN".to_owned(), claim.head.run.to_string()),
        ("LANEWAY_WORKFLOW".to_owned(), plan.workflow.name.clone()),
        ("LANEWAY_TASK".to_owned(), plan.task_name(claim.at.position)),
        ("LANEWAY_ATTEMPT".to_owned(), claim.at.attempt.to_string()),
    ]);
    env.extend(spot.fence.map(|fence| ("LANEWAY_FENCE".to_owned(), fence.to_string())));
    let workdir = step.workdir(scope)?;
    let (log, log_cap) = spot.log_of(claim);
    match step.housing() {
        None => {}
        Some(Housing::Pool(_)) => {
            return warm(claim, spot, What::Exec { program, env, workdir }, kill_grace);
        }
        Some(Housing::Own(settings)) => {
            let name = plan.task_name(claim.at.position);
            let at = (claim.head.run, name.as_str(), claim.at.attempt);
            let mut labels = labels::of_node(spot.instance, spot.session);
            labels.extend(labels::of_attempt(at.0, at.1, at.2));
            return Ok(Work::Container(Box::new(container::Job {
                name: labels::name(at.0, at.1, &claim.at.suffix()),
                labels,
                secrets: files_of(settings, scope),
                settings: settings.clone(),
                program,
                env,
                dir: dir.to_owned(),
                workdir,
                stage: scratch_file(places, claim, "d"),
                host_mounts: places.ground.host_mounts(&spot.containers.allow_mounts),
                log,
                log_cap,
                masks: masks.clone(),
                timeout: step.timeout,
                kill_grace,
                effects: Effects::default(),
            })));
        }
    }
    Ok(Work::Process(Job {
        program,
        env,
        inherit_env: places.ground.inherit(),
        workdir: workdir.map_or_else(|| dir.to_owned(), |workdir| dir.join(workdir)),
        stdin: stdin.map(Path::to_owned),
        scratch: places.scratch.clone(),
        output: scratch_file(places, claim, "out"),
        log,
        log_cap,
        masks: masks.clone(),
        timeout: step.timeout,
        kill_grace,
    }))
}

/// Where the log of an attempt goes, and how long it may be.
pub(super) fn log_of(claim: &Claim, places: &Places, courier: Option<&Courier>) -> (Target, u64) {
    let (run, attempt) = (claim.head.run, claim.at.attempt);
    let step = claim.head.plan.task_name(claim.at.position);
    match courier {
        None => (Target::File(log_path(&places.store_dir, run, &step, attempt)), LOG_CAP),
        Some(courier) => (Target::Store(courier.sending(claim.at)), SHARED_LOG_CAP),
    }
}

impl Spot<'_> {
    /// The same, behind what is there.
    fn log_of(&self, claim: &Claim) -> (Target, u64) {
        let (target, cap) = log_of(claim, self.places, self.courier);
        (if self.log > 0 { Target::Behind(Box::new(target), self.log) } else { target }, cap)
    }
}

/// In a container of the step's pool.
fn warm(claim: &Claim, spot: &Spot<'_>, what: What, kill_grace: std::time::Duration) -> Result<Work, String> {
    let plan = &claim.head.plan;
    let step = plan.step(claim.at.position);
    let pool = plan.pool_of(claim.at.position);
    let pool = pool.ok_or_else(|| format!("the workflow has no pool for the step `{}`", step.name))?;
    // A group has the last word on how long what its members used is kept.
    let group = plan.group_of(claim.at.position).map(|group| plan.group(group));
    let (log, log_cap) = spot.log_of(claim);
    Ok(Work::Warm(Box::new(pool::Job {
        pool,
        dormancy: group.and_then(|group| group.dormancy),
        run: claim.head.run,
        step: plan.task_name(claim.at.position),
        attempt: claim.at.attempt,
        dir: spot.dir.to_owned(),
        what,
        log,
        log_cap,
        masks: spot.masks.clone(),
        timeout: step.timeout,
        kill_grace,
        effects: Effects::default(),
    })))
}

/// The values of those secrets that are files inside.
fn files_of(settings: &Container, scope: &Scope) -> Vec<(String, String)> {
    let values = scope.get("secrets");
    let value = |name: &String| Some(values?.get(name)?.as_str()?.to_owned());
    settings.secrets.iter().filter_map(|name| Some((name.clone(), value(name)?))).collect()
}

/// A file of an attempt. A worker has tasks of many runs, and one scratch directory.
pub(super) fn scratch_file(places: &Places, claim: &Claim, what: &str) -> PathBuf {
    let step = laneway_store::file_name(&claim.head.plan.task_name(claim.at.position));
    places.scratch.join(format!("{}.{step}.{}.{what}", claim.head.run, claim.at.suffix()))
}

fn arguments(args: &[Template], scope: &Scope) -> Result<Vec<String>, String> {
    let rendered: Result<_, Error> = args.iter().map(|arg| arg.render(scope)).collect();
    rendered.map_err(|error| format!("`args`: {error}"))
}

/// A callback is a call of the function that sends it, which whoever starts a worker brings along.
fn post(claim: &Claim, post: &Post, scope: &Scope) -> Result<function::Job, String> {
    let url = post.url.render(scope).map_err(|error| format!("`post`: {error}"))?;
    let body = match &post.body {
        None => scope.get("ended").cloned().unwrap_or_default(),
        Some(body) => body.evaluate(scope).map_err(|error| format!("`body`: {error}"))?,
    };
    let body = match body {
        serde_json::Value::String(text) => text,
        body => body.to_string(),
    };
    if body.len() > MAX_INPUT {
        return Err(format!("`body` is {} bytes long, and {MAX_INPUT} are sent at most", body.len()));
    }
    let mut headers = serde_json::Map::new();
    for (name, value) in &post.headers {
        let value = value.render(scope).map_err(|error| format!("`headers.{name}`: {error}"))?;
        headers.insert(name.clone(), value.into());
    }
    let step = claim.head.plan.step(claim.at.position);
    let mut input = serde_json::Map::new();
    // An answer may repeat the path that was asked for, and an error names the host.
    let authority = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
    let secrets = |name: &str| scope.get("secrets")?.get(name)?.as_str();
    let has_host = |secret: &str| authority.is_some_and(|authority| secret.contains(authority));
    let is_host_secret = post.url.secrets_read().filter_map(secrets).any(has_host);
    input.insert("is_host_secret".to_owned(), is_host_secret.into());
    input.insert("is_path_secret".to_owned(), post.url.secrets_read().next().is_some().into());
    input.insert("url".to_owned(), url.into());
    input.insert("headers".to_owned(), headers.into());
    input.insert("content_type".to_owned(), post.content_type.clone().into());
    input.insert("body".to_owned(), body.into());
    // The same for every attempt, so that a receiver that has it already recognises it. A webhook refuses names with a dot.
    input.insert("delivery".to_owned(), format!("{}:{}", claim.head.run, step.name).into());
    if let Some(name) = &post.secret {
        let value = scope.get("secrets").and_then(|secrets| secrets.get(name)).cloned();
        input.insert("secret".to_owned(), value.ok_or_else(|| format!("the secret `{name}` has no value"))?);
    }
    Ok(job(claim, function::POST, input))
}

fn call(
    claim: &Claim,
    name: &str,
    with: &[(String, Template)],
    scope: &Scope,
) -> Result<function::Job, String> {
    let mut input = serde_json::Map::new();
    for (name, template) in with {
        let value = template.evaluate(scope).map_err(|error| format!("`with.{name}`: {error}"))?;
        input.insert(name.clone(), value);
    }
    Ok(job(claim, name, input))
}

fn job(claim: &Claim, name: &str, input: serde_json::Map<String, serde_json::Value>) -> function::Job {
    let step = claim.head.plan.step(claim.at.position);
    function::Job {
        name: name.to_owned(),
        input,
        run: claim.head.run,
        step: claim.head.plan.task_name(claim.at.position),
        attempt: claim.at.attempt,
        fence: None,
        effects: Effects::default(),
        timeout: step.timeout,
    }
}
