//! An event as a sentence, the same in the progress of a run and in `laneway events`.

use std::time::Duration;

use laneway_core::effect::EffectStatus;
use laneway_core::event::{Closing, Event, Fact, Reopening, TaskParked};
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};

use crate::text;

/// What happened, without the time. `None` for what goes without saying: a task that became available is
/// about to start.
pub(crate) fn sentence(event: &Event) -> Option<String> {
    Some(match &event.fact {
        Fact::RunSubmitted(f) => {
            let later = f.not_before.map(|at| format!(", to begin at {}", text::date(at)));
            let later = later.unwrap_or_default();
            format!("run {} of {} submitted{later}", event.run.short(), f.workflow)
        }
        Fact::RunDue(_) => format!("run {} is due", event.run.short()),
        // What they tell is seen by the tasks.
        Fact::LevelCommitted(f) => {
            format!("level {} of run {} counts: {}", f.level, event.run.short(), listed(&f.steps))
        }
        Fact::RunStarted(_) | Fact::TaskAvailable(_) | Fact::LaneStarted(_) | Fact::LaneFinished(_) => {
            return None;
        }
        Fact::MergeFinished(f) if f.files == 0 => return None,
        Fact::MergeFinished(f) => {
            let conflicts = match f.conflicts.len() {
                0 => String::new(),
                _ => format!(", decided for one member: {}", listed(&f.conflicts)),
            };
            format!("group {} merged: {} changed{conflicts}", f.group, text::count(f.files, "file"))
        }
        Fact::RunAdopted(f) => format!("run {} taken over by {}", event.run.short(), f.node),
        Fact::RunBound(f) => match &f.files {
            None => format!("run {} stays on {}", event.run.short(), f.node),
            Some(files) => format!(
                "run {} stays on {}: its files are {} with what {} left, more than workspace_max_bytes ({})",
                event.run.short(),
                f.node,
                text::bytes(files.bytes),
                files.step,
                text::bytes(files.limit)
            ),
        },
        Fact::RunReleased(f) => format!("run {} leaves {}: any node may take it", event.run.short(), f.node),
        Fact::RunHalted(f) => match f.closing {
            Closing::Aborted => format!("run aborts because {} failed: stopping what runs", f.step),
            Closing::Halted | Closing::Canceled | Closing::RunTimeout => {
                format!("run halts because {} failed: nothing new starts", f.step)
            }
        },
        Fact::RunCanceling(f) if f.ends_clean_up => match f.by.as_str() {
            "timeout" => "clean-up took too long: stopping it".to_owned(),
            by => format!("clean-up ended by {by}: stopping it"),
        },
        Fact::RunCanceling(f) => {
            let what = match f.closing {
                Closing::RunTimeout => "run reached its timeout".to_owned(),
                Closing::Canceled | Closing::Halted | Closing::Aborted => {
                    format!("run canceled by {}", f.by)
                }
            };
            let until = f.clean_up_until.map(|until| format!("; clean-up has until {}", text::clock(until)));
            format!("{what}: stopping what runs{}", until.unwrap_or_default())
        }
        Fact::RunPaused(f) => format!("{} paused by {}: nothing new starts", f.scope, f.by),
        Fact::RunResumed(f) => format!("{} resumed by {}", f.scope, f.by),
        Fact::RunReopened(f) => {
            let verb = match f.why {
                Reopening::Retry => "retried",
                Reopening::Skip => "let go on",
            };
            format!("run {verb} by {}: {}", f.by, listed(&f.tasks))
        }
        Fact::RunFinished(f) => {
            let why = f.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            match f.status {
                RunStatus::Failed => format!("run failed{why}"),
                RunStatus::Succeeded | RunStatus::Canceled | RunStatus::Queued | RunStatus::Running => {
                    format!("run {}{why}", f.status)
                }
            }
        }
        Fact::TaskStarted(f) if f.attempt == 1 => format!("{} started", f.step),
        Fact::TaskStarted(f) => format!("{} started, attempt {}", f.step, f.attempt),
        Fact::TaskRetrying(f) => {
            let why = why(f.reason, f.detail.as_deref());
            let delay = text::duration(f.run_at.since(event.at));
            format!("{} failed{}: {why}; retry in {delay}", f.step, took(Some(f.took_ms)))
        }
        Fact::TaskLost(f) => format!("{} lost: {} died", f.step, f.node),
        Fact::TaskReturned(f) => format!("{} given back unstarted", f.step),
        Fact::TaskParked(f) => parked(event, f),
        // How many there are was told when their step was reached.
        Fact::TasksAdded(f) if f.first + f.items.len() as u32 == f.total => return None,
        Fact::TasksAdded(f) => {
            format!("{}: {} of {} items", f.step, f.first + f.items.len() as u32, f.total)
        }
        Fact::TasksRemoved(f) => format!("{}: its items are made anew", f.step),
        Fact::ChildRunStarted(f) => format!("{} waits for run {} of {}", f.step, f.child.short(), f.workflow),
        Fact::TaskSignaled(f) => {
            let why = f.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("{} signaled by {}{why}", f.step, f.by)
        }
        Fact::TaskCached(f) => {
            format!(
                "{} is cached: run {} recorded its result {}",
                f.step,
                f.from.short(),
                text::date(f.recorded_at)
            )
        }
        Fact::EffectStarted(f) => format!("{} begins its effect {}", f.step, effect(&f.name, &f.key)),
        Fact::EffectCommitted(f) => {
            let by = f.by.as_deref().map(|by| format!(", says {by}")).unwrap_or_default();
            let effect = effect(&f.name, &f.key);
            match (f.status, f.exit_code) {
                (EffectStatus::Failed, Some(code)) => {
                    format!("{} did not do its effect {effect}: exit code {code}{by}", f.step)
                }
                (EffectStatus::Failed, None) => format!("{} is to do its effect {effect} again{by}", f.step),
                (EffectStatus::Done | EffectStatus::Started, _) => {
                    format!("{} has done its effect {effect}{}{by}", f.step, took(f.took_ms))
                }
            }
        }
        Fact::TaskSkipped(f) => format!("{} skipped: {}", f.step, why(f.why, f.detail.as_deref())),
        Fact::TaskFinished(f) => {
            let took = took(f.took_ms);
            match (f.status, f.reason) {
                (TaskStatus::Failed | TaskStatus::Canceled, Some(reason)) => {
                    format!("{} {}{took}: {}", f.step, f.status, why(reason, f.detail.as_deref()))
                }
                (_, Some(Reason::Cached)) => format!("{} {} from cache", f.step, f.status),
                (_, _) => format!("{} {}{took}", f.step, f.status),
            }
        }
    })
}

/// What a step waits for, and what would end that.
fn parked(event: &Event, parked: &TaskParked) -> String {
    let step = &parked.step;
    if let Some(items) = parked.items {
        return format!("{step}: {}", text::count(items.into(), "item"));
    }
    let limit = parked.timeout_at.map(|at| format!(", until {}", text::date(at))).unwrap_or_default();
    match (&parked.signal, parked.until) {
        (Some(signal), _) => {
            let run = event.run.short();
            format!("{step} waits for the signal {signal}{limit}: laneway signal {run} {step} {signal}")
        }
        (None, Some(until)) => format!("{step} waits until {}", text::date(until)),
        (None, None) => match &parked.workflow {
            Some(workflow) => format!("{step} runs {workflow}{limit}"),
            None => format!("{step} waits"),
        },
    }
}

fn effect(name: &str, key: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{name} ({key})") }
}

fn took(took_ms: Option<u64>) -> String {
    took_ms.map(|ms| format!(" in {}", text::duration(Duration::from_millis(ms)))).unwrap_or_default()
}

/// A reason for people: its detail where there is one, which says more than the word.
pub(crate) fn why(reason: Reason, detail: Option<&str>) -> String {
    match detail {
        Some(detail) if !detail.is_empty() => detail.to_owned(),
        Some(_) | None => match reason {
            Reason::Exit => "its exit code was not 0",
            Reason::Error => "its function failed",
            Reason::Signal => "ended by a signal",
            Reason::Oom => "it ran out of memory",
            Reason::Timeout => "its timeout passed",
            Reason::StartFailed => "it could not be started",
            Reason::EngineLost => "the container engine was gone",
            Reason::Expression => "an expression could not be evaluated",
            Reason::BadOutput => "its output could not be read",
            Reason::Conflict => "what its members left cannot be brought together",
            Reason::Items => "some of its items failed",
            Reason::Child => "the run that it started did not succeed",
            Reason::Lost => "the node that ran it died",
            Reason::Canceled => "the run was canceled",
            Reason::Aborted => "another step failed",
            Reason::RunTimeout => "the run's timeout passed",
            Reason::Halted => "another step failed",
            Reason::Upstream => "what it needs did not end as its `when` asks",
            Reason::Condition => "its `if` is false",
            Reason::SkippedByPerson => "skipped by a person",
            Reason::Cached => "its result was recorded before",
        }
        .to_owned(),
    }
}

/// Names, but not thousands of them.
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} and {more} more", names[..SHOWN].join(", ")),
        Some(0) | None => names.join(", "),
    }
}
