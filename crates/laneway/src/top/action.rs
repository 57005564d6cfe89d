//! What a person may do from here, and what would come of it, in words. Pure: `act.rs` does it.

use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_server::wire;
use laneway_store::model::CancelMode;

use super::model::{Asked, Model, Screen};
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// `mode` is `Now` for one that is being canceled and cleans up.
    Cancel {
        run: RunId,
        mode: CancelMode,
    },
    /// `seen` is the run's last event, where it is shown that closely.
    Retry {
        run: RunId,
        from: Option<String>,
        seen: Option<u64>,
    },
    Skip {
        run: RunId,
        step: String,
    },
    Signal {
        run: RunId,
        step: String,
        signal: String,
        reason: Option<String>,
    },
    Pause {
        run: RunId,
        is_paused: bool,
    },
    Drain {
        node: String,
    },
    DrainPool {
        node: String,
        pool: String,
    },
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Cancel,
    Retry,
    RetryFrom,
    Skip,
    Signal,
    Pause,
    Drain,
}

/// The act that is meant, ready to be agreed to; or why there is none.
pub(super) fn offer(model: &Model, wish: Wish) -> Result<Asked, String> {
    let plain = |action| Ok(Asked { action, reason: None });
    match wish {
        Wish::Cancel => {
            let (run, status) = chosen_run(model)?;
            if status.is_final() {
                return Err(format!("run {} has ended: it is {status}", run.short()));
            }
            let is_cleaning_up = opened(model, run).is_some_and(|opened| opened.clean_up_until.is_some());
            if is_canceling(model, run) && !is_cleaning_up {
                return Err(format!("run {} is being canceled", run.short()));
            }
            let mode = if is_cleaning_up { CancelMode::Now } else { CancelMode::CleanUp };
            plain(Action::Cancel { run, mode })
        }
        Wish::Retry => {
            let (run, status) = chosen_run(model)?;
            match status {
                RunStatus::Failed | RunStatus::Canceled => {
                    goes_on_from_here(model, run)?;
                    plain(Action::Retry { run, from: None, seen: seen(model, run) })
                }
                RunStatus::Succeeded => Err(format!("nothing of it failed; {}", anew(run, "STEP"))),
                RunStatus::Queued | RunStatus::Running => Err(going_on(run)),
            }
        }
        Wish::RetryFrom => {
            let (run, status) = chosen_run(model)?;
            let task = chosen_task(model)?;
            if !status.is_final() {
                return Err(going_on(run));
            }
            let is_open = match task.status {
                TaskStatus::Failed | TaskStatus::Canceled => true,
                // A retry of the run leaves it as it is: this alone undoes a skip.
                TaskStatus::Skipped => task.reason == Some(Reason::SkippedByPerson),
                TaskStatus::Pending
                | TaskStatus::Available
                | TaskStatus::Running
                | TaskStatus::Parked
                | TaskStatus::Succeeded => false,
            };
            if !is_open {
                return Err(format!("{} is {}; {}", task.name(), task.status, anew(run, &task.step)));
            }
            goes_on_from_here(model, run)?;
            plain(Action::Retry { run, from: Some(task.step.clone()), seen: seen(model, run) })
        }
        Wish::Skip => {
            let (run, status) = chosen_run(model)?;
            let task = chosen_task(model)?;
            match (task.status, status) {
                (TaskStatus::Failed, RunStatus::Failed | RunStatus::Succeeded) => {
                    goes_on_from_here(model, run)?;
                    plain(Action::Skip { run, step: task.name() })
                }
                // What somebody canceled is not to go on past anything.
                (TaskStatus::Failed, RunStatus::Canceled) => {
                    Err(format!("run {} was canceled; r brings it back", run.short()))
                }
                (TaskStatus::Failed, RunStatus::Queued | RunStatus::Running) => Err(going_on(run)),
                (other, _) => Err(format!("only a step that failed is skipped; {} is {other}", task.name())),
            }
        }
        Wish::Signal => {
            let (run, _) = chosen_run(model)?;
            let task = chosen_task(model)?;
            let name = model.run.as_ref().and_then(|opened| {
                let picture = opened.picture()?;
                picture.nodes[picture.find(&task.step)?].signal.clone()
            });
            match (name, task.status) {
                (Some(signal), TaskStatus::Parked | TaskStatus::Pending | TaskStatus::Available) => {
                    Ok(Asked {
                        action: Action::Signal { run, step: task.name(), signal, reason: None },
                        reason: Some(String::new()),
                    })
                }
                (Some(_), other) => Err(format!("{} waits no more: it is {other}", task.name())),
                (None, _) => Err(format!("{} waits for no signal that is known here", task.name())),
            }
        }
        Wish::Pause => {
            let (run, status) = chosen_run(model)?;
            if status.is_final() {
                return Err(format!("run {} has ended: it is {status}", run.short()));
            }
            if is_canceling(model, run) {
                return Err(format!("run {} is being canceled", run.short()));
            }
            let opened = model.run.as_ref().filter(|opened| opened.id == run);
            let paused = opened.and_then(|opened| opened.run.as_ref()).map(|run| run.paused.as_slice());
            match paused {
                None => Err("it is still being read; try again".to_owned()),
                Some(paused) if paused.iter().any(|scope| scope == "run") => {
                    plain(Action::Pause { run, is_paused: false })
                }
                Some(paused) if !paused.is_empty() => {
                    Err("its workflow is paused; `laneway resume WORKFLOW` lets it go on".to_owned())
                }
                Some(_) => plain(Action::Pause { run, is_paused: true }),
            }
        }
        Wish::Drain => match model.screen {
            Screen::Nodes => match model.nodes.chosen() {
                Some(node) if node.state == "draining" => Err(format!("{} takes nothing more", node.node)),
                Some(node) if node.labels.is_none() => Err(format!("{} runs only its own run", node.node)),
                Some(node) => plain(Action::Drain { node: node.node.clone() }),
                None => Err("no node is chosen".to_owned()),
            },
            Screen::Pools => match model.pools.chosen() {
                Some(pool) => plain(Action::DrainPool { node: pool.node.clone(), pool: pool.pool.clone() }),
                None => Err("no pool is chosen".to_owned()),
            },
            Screen::Runs | Screen::Run | Screen::Log | Screen::Limits => {
                Err("nodes (2) and pools (3) can be drained".to_owned())
            }
        },
    }
}

fn going_on(run: RunId) -> String {
    format!("run {} goes on; that is for runs that have ended", run.short())
}

/// How what is done is done once more: rarely meant, so no key does it.
fn anew(run: RunId, step: &str) -> String {
    format!("`laneway retry {} --from {step}` runs a step and everything behind it again", run.short())
}

fn chosen_run(model: &Model) -> Result<(RunId, RunStatus), String> {
    let of_list = || {
        let run = model.runs.chosen()?;
        Some((run.run, run.status?))
    };
    let opened = || {
        let run = model.run.as_ref()?.run.as_ref()?;
        Some((run.run, run.status))
    };
    let chosen = match model.screen {
        Screen::Runs => of_list(),
        Screen::Run | Screen::Log => opened(),
        Screen::Nodes | Screen::Pools | Screen::Limits => None,
    };
    chosen.ok_or_else(|| "no run is chosen".to_owned())
}

/// What is known of a run beside its line in the list.
fn opened(model: &Model, run: RunId) -> Option<&wire::Run> {
    model.run.as_ref()?.run.as_deref().filter(|opened| opened.run == run)
}

/// Why it cannot be opened again from here: a server refuses a run of `laneway run`, since no node would take its tasks.
fn goes_on_from_here(model: &Model, run: RunId) -> Result<(), String> {
    if !model.is_remote || !opened(model, run).is_some_and(|opened| opened.local) {
        return Ok(());
    }
    let short = run.short();
    Err(format!(
        "run {short} is one of `laneway run`; `laneway retry {short}` beside its store goes on with it"
    ))
}

/// As the run on the screen tells it, or else the list.
fn is_canceling(model: &Model, run: RunId) -> bool {
    let listed = || model.runs.all.iter().flatten().find(|listed| listed.run == run);
    match opened(model, run) {
        Some(opened) => opened.is_canceling(),
        None => listed().is_some_and(wire::RunSummary::is_canceling),
    }
}

/// How far the run had come that stands on the screen: one that went on behind the question is not opened once more.
fn seen(model: &Model, run: RunId) -> Option<u64> {
    let opened = model.run.as_ref()?.run.as_ref()?;
    (opened.run == run).then_some(opened.last_event)
}

fn chosen_task(model: &Model) -> Result<&wire::Task, String> {
    match model.screen {
        Screen::Run | Screen::Log => {
            model.run.as_ref().and_then(|opened| opened.task()).ok_or_else(|| "no step is chosen".to_owned())
        }
        Screen::Runs | Screen::Nodes | Screen::Pools | Screen::Limits => {
            Err("open a run with Enter and choose a step first".to_owned())
        }
    }
}

/// The question, and what a yes would bring about.
pub(super) fn consequence(model: &Model, action: &Action) -> (String, String) {
    let of = |run: RunId| {
        let opened = model.run.as_ref().and_then(|opened| opened.run.as_ref());
        let known = opened.filter(|known| known.run == run).map(|known| known.workflow.clone());
        let listed = || model.runs.all.iter().flatten().find(|known| known.run == run);
        let workflow = known.or_else(|| listed().map(|known| known.workflow.clone())).unwrap_or_default();
        format!("run {} of {workflow}", run.short())
    };
    let goes_on = |run: RunId| match (model.is_remote, opened(model, run).map(|opened| opened.local)) {
        (true, _) | (false, Some(false)) => "Nodes take it.",
        (false, Some(true)) => "It goes on in this terminal, which comes back when it has ended.",
        (false, None) => {
            "A run of `laneway run` goes on in this terminal, which comes back when it has ended; any other is \
            taken by the nodes."
        }
    };
    match action {
        Action::Cancel { run, mode: CancelMode::Now } => (
            format!("End the clean-up of {}?", of(*run)),
            "Steps that clean up are stopped, those that have not started do not, and no hooks run.".to_owned(),
        ),
        Action::Cancel { run, mode: CancelMode::CleanUp } => {
            let running = count(model, *run, TaskStatus::Running);
            let stops = match running {
                Some(0) | None => "Nothing of it starts any more but clean-up.".to_owned(),
                Some(running) => format!("{} stopped, and nothing new starts but clean-up.", are(running, "task")),
            };
            (format!("Cancel {}?", of(*run)), format!("{stops} What has ended stays as it is. r brings the rest back."))
        }
        Action::Retry { run, from: None, .. } => (
            format!("Retry {}?", of(*run)),
            format!("What failed, was canceled or skipped runs again, with everything behind it. {}", goes_on(*run)),
        ),
        Action::Retry { run, from: Some(step), .. } => (
            format!("Run {step} of {} again?", of(*run)),
            format!(
                "It and {} behind it run again, whatever became of them; their outputs are replaced. {}",
                text::count(behind(model, step) as u64, "step"),
                goes_on(*run)
            ),
        ),
        Action::Skip { run, step } => (
            format!("Skip {step} and let {} go on?", of(*run)),
            format!("What needs it sees it as succeeded, without an output. It stays marked as skipped. {}", goes_on(*run)),
        ),
        Action::Signal { run, step, signal, .. } => (
            format!("Send {signal} to {step} of {}?", of(*run)),
            "The step is over, and what needs it starts. It is recorded that it was you. The first signal counts: there \
             is no way back."
                .to_owned(),
        ),
        Action::Pause { run, is_paused: true } => (
            format!("Pause {}?", of(*run)),
            "What runs goes on to its end; nothing new starts until p lets it go on.".to_owned(),
        ),
        Action::Pause { run, is_paused: false } => {
            (format!("Let {} go on?", of(*run)), "Whatever is ready starts at once.".to_owned())
        }
        Action::Drain { node } => (
            format!("Drain {node}?", ),
            "It takes no more tasks. What it runs may end, and it stays until somebody stops it. A new `laneway worker` is the way back."
                .to_owned(),
        ),
        Action::DrainPool { node, pool } => (
            format!("Drain the pool {pool} on {node}?"),
            "Its warm containers are removed, those in use after their task. The next step that wants one starts it \
             anew, which takes longer."
                .to_owned(),
        ),
    }
}

fn are(count: u64, one: &str) -> String {
    format!("{} {}", text::count(count, one), if count == 1 { "is" } else { "are" })
}

fn count(model: &Model, run: RunId, status: TaskStatus) -> Option<u64> {
    let opened = model.run.as_ref().and_then(|opened| opened.run.as_ref()).filter(|known| known.run == run);
    if let Some(run) = opened {
        return Some(run.tasks.iter().filter(|task| task.status == status).count() as u64);
    }
    let listed = model.runs.all.iter().flatten().find(|known| known.run == run)?;
    listed.tasks.get(status.as_str()).and_then(serde_json::Value::as_u64).or(Some(0))
}

/// How many steps come behind one.
fn behind(model: &Model, step: &str) -> usize {
    let Some(picture) = model.run.as_ref().and_then(|opened| opened.picture()) else { return 0 };
    let Some(start) = picture.find(step) else { return 0 };
    let (mut seen, mut open) = (std::collections::HashSet::new(), vec![start]);
    while let Some(at) = open.pop() {
        for next in &picture.nodes[at].successors {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen.len()
}
