//! `--dry-run`: what a run would do, in order, with every value that can be known before it starts.
//! What reads the output of a step is shown as written. Writes nothing and makes no store.

use laneway_core::definition::{Action, Housing, Merge, Step, When};
use laneway_core::expression::{Scope, Template};
use laneway_core::plan::Plan;
use serde_json::{Map, Value, json};

use crate::print::Printer;
use crate::text;

pub(crate) fn show(
    printer: &Printer,
    plan: &Plan,
    params: &Map<String, Value>,
    max_parallel: u32,
    is_json: bool,
) -> anyhow::Result<()> {
    // `run` has no id yet, so that what reads it is shown as written too.
    let scope: Scope = Map::from_iter([("params".to_owned(), Value::Object(params.clone()))]);
    let steps: Vec<Foreseen> = plan.order.iter().map(|at| Foreseen::new(plan, *at, &scope)).collect();
    if is_json {
        let steps: Vec<Value> = steps.iter().map(Foreseen::to_json).collect();
        return printer.json(&json!({
            "workflow": plan.workflow.name,
            "params": params,
            "max_parallel": max_parallel,
            "steps": steps,
        }));
    }
    let palette = printer.out_palette();
    let mut out = format!(
        "{} would run {}, at most {max_parallel} at once:\n",
        palette.bold(&plan.workflow.name),
        text::count(steps.len() as u64, "step"),
    );
    for (name, value) in params {
        out.push_str(&palette.dim(&format!("  with {name} = {value}\n")));
    }
    for step in &steps {
        out.push_str(&step.to_text(palette));
    }
    printer.text(&out)
}

/// A step as far as it can be foreseen.
struct Foreseen<'a> {
    step: &'a Step,
    level: u32,
    /// The program and its arguments, or the script's arguments.
    argv: Vec<Known>,
    env: Vec<(&'a str, Known)>,
    /// What `if` gives, where that can be known.
    condition: Option<bool>,
}

/// A value that is known, or the text of one that is not yet.
enum Known {
    Now(String),
    Later(String),
}

impl Known {
    fn of(template: &Template, scope: &Scope) -> Self {
        match template.render(scope) {
            Ok(value) => Self::Now(value),
            Err(_) => Self::Later(template.source()),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Now(text) | Self::Later(text) => text,
        }
    }
}

impl<'a> Foreseen<'a> {
    fn new(plan: &'a Plan, at: laneway_core::plan::Position, scope: &Scope) -> Self {
        let step = plan.step(at);
        let mut env: Vec<(&str, Known)> = Vec::new();
        for (name, template) in plan.workflow.env.iter().chain(&step.env) {
            env.retain(|(known, _)| known != name);
            env.push((name, Known::of(template, scope)));
        }
        const NO_ARGS: &[Template] = &[];
        let (head, args): (&[String], &[Template]) = match &step.action {
            Action::Run { args, .. } => (&[], args.as_slice()),
            Action::Command { argv, args } => (argv, args.as_slice()),
            Action::Merge { group } => match &plan.group(*group).merge {
                Merge::Custom { command } => (command, NO_ARGS),
                Merge::Concatenate | Merge::Workspace { .. } => (&[], NO_ARGS),
            },
            Action::Function { .. }
            | Action::Post { .. }
            | Action::Queue { .. }
            | Action::Wait(_)
            | Action::Call { .. } => (&[], NO_ARGS),
        };
        let argv = head.iter().cloned().map(Known::Now).chain(args.iter().map(|arg| Known::of(arg, scope)));
        let condition = step.condition.as_ref().and_then(|condition| condition.holds(scope).ok());
        Self { step, level: plan.level_of[at as usize], argv: argv.collect(), env, condition }
    }

    fn to_json(&self) -> Value {
        let script = match &self.step.action {
            Action::Run { script, .. } => Some(script),
            Action::Command { .. }
            | Action::Function { .. }
            | Action::Queue { .. }
            | Action::Call { .. }
            | Action::Post { .. }
            | Action::Wait(_)
            | Action::Merge { .. } => None,
        };
        let function = match &self.step.action {
            Action::Function { name, .. } => Some(name),
            Action::Run { .. }
            | Action::Command { .. }
            | Action::Queue { .. }
            | Action::Call { .. }
            | Action::Post { .. }
            | Action::Wait(_)
            | Action::Merge { .. } => None,
        };
        let queue = match &self.step.action {
            Action::Queue { queue, .. } => Some(queue),
            Action::Run { .. }
            | Action::Command { .. }
            | Action::Function { .. }
            | Action::Call { .. }
            | Action::Post { .. }
            | Action::Wait(_)
            | Action::Merge { .. } => None,
        };
        let (image, pool) = match self.step.housing() {
            Some(Housing::Own(container)) => (Some(&container.image), None),
            Some(Housing::Pool(name)) => (None, Some(name)),
            None => (None, None),
        };
        let env: Map<String, Value> =
            self.env.iter().map(|(name, value)| ((*name).to_owned(), value.text().into())).collect();
        json!({
            "step": self.step.name,
            "level": self.level,
            "needs": self.step.needs,
            "script": script,
            "function": function,
            "queue": queue,
            "image": image,
            "pool": pool,
            "call": self.called(),
            "wait": self.step.wait().map(ToString::to_string),
            "argv": self.argv.iter().map(Known::text).collect::<Vec<_>>(),
            "env": env,
            "if": self.step.condition.as_ref().map(|condition| &condition.source),
            "condition": self.condition,
        })
    }

    /// `POST /resize`, with what is not known yet as it is written.
    fn called(&self) -> Option<String> {
        match &self.step.action {
            Action::Call { method, path, .. } => Some(format!("{method} {}", path.source())),
            Action::Run { .. }
            | Action::Command { .. }
            | Action::Function { .. }
            | Action::Queue { .. }
            | Action::Post { .. }
            | Action::Wait(_)
            | Action::Merge { .. } => None,
        }
    }

    fn to_text(&self, palette: text::Palette) -> String {
        let mut out = format!("\n{}", palette.bold(&self.step.name));
        if !self.step.needs.is_empty() {
            out.push_str(&palette.dim(&format!("  after {}", self.step.needs.join(", "))));
        }
        match (&self.step.condition, self.condition) {
            (None, _) => {}
            (Some(_), Some(true)) => {}
            (Some(condition), Some(false)) => {
                out.push_str(&palette.yellow(&format!("  skipped: `{}` is false", condition.source)));
            }
            (Some(condition), None) => out.push_str(&palette.dim(&format!("  if {}", condition.source))),
        }
        if self.step.when != When::AllSucceeded && self.step.merges().is_none() {
            out.push_str(&palette.dim(&format!("  when {}", self.step.when.as_str())));
        }
        match self.step.housing() {
            Some(Housing::Own(container)) => {
                out.push_str(&palette.dim(&format!("  in a container of {}", container.image)));
            }
            Some(Housing::Pool(pool)) => out.push_str(&palette.dim(&format!("  in the pool {pool}"))),
            None => {}
        }
        out.push('\n');
        if let Some(call) = self.called() {
            out.push_str(&format!("  {call}\n"));
        }
        if let Some(wait) = self.step.wait() {
            out.push_str(&format!("  waits for {wait}\n"));
        }
        if let Action::Run { script, .. } = &self.step.action {
            for line in script.trim_end().lines() {
                out.push_str(&format!("  {line}\n"));
            }
        }
        if let Action::Function { name, .. } = &self.step.action {
            out.push_str(&format!("  function {name}\n"));
        }
        if let Action::Queue { queue, .. } = &self.step.action {
            out.push_str(&format!("  queue {queue}\n"));
        }
        if !self.argv.is_empty() {
            let words: Vec<String> = self.argv.iter().map(|word| quoted(word.text())).collect();
            let label = match &self.step.action {
                Action::Run { .. } => "with ",
                Action::Command { .. }
                | Action::Function { .. }
                | Action::Post { .. }
                | Action::Wait(_)
                | Action::Call { .. }
                | Action::Queue { .. }
                | Action::Merge { .. } => "",
            };
            out.push_str(&format!("  {label}{}\n", words.join(" ")));
        }
        for (name, value) in &self.env {
            let line = match value {
                Known::Now(value) => format!("  {name}={}\n", quoted(value)),
                Known::Later(source) => format!("  {name}={source}   (known once it runs)\n"),
            };
            out.push_str(&palette.dim(&line));
        }
        out
    }
}

/// As a shell would read it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
