//! Does what a person has agreed to, through the face that every command uses, and says what came of it.

use laneway_server::wire::{self, SignalResult};
use laneway_store::model::{CancelMode, Reopen};

use super::action::Action;
use super::load::told;
use super::message::Answer;
use crate::face::Face;
use crate::progress::listed;
use crate::text;

pub(super) async fn act(face: &Face, action: Action) -> Answer {
    match done(face, action).await {
        Ok(what) => Answer::Done(what),
        Err(error) => Answer::Refused(told(&error)),
    }
}

async fn done(face: &Face, action: Action) -> anyhow::Result<String> {
    Ok(match action {
        Action::Cancel { run, mode } => {
            let canceled = face.cancel(run, mode).await?;
            let short = run.short();
            match (canceled.was.is_final(), mode, canceled.clean_up_until) {
                (true, _, _) => format!("run {short} had ended before: it is {}", canceled.status),
                (false, CancelMode::Now, _) => format!("run {short}: its clean-up is stopped"),
                (false, CancelMode::CleanUp, None) => {
                    format!("run {short} is canceled: what runs is stopped")
                }
                (false, CancelMode::CleanUp, Some(until)) => {
                    let until = text::clock(until.0);
                    format!("run {short} is canceled: what runs is stopped, clean-up has until {until}")
                }
            }
        }
        Action::Retry { run, from, seen } => {
            let what = Reopen { from: from.as_deref(), seen };
            format!("run {} goes on: {}", run.short(), listed(&face.retry(run, what).await?))
        }
        Action::Skip { run, step } => {
            format!("run {} goes on past {step}: {}", run.short(), listed(&face.skip(run, &step).await?))
        }
        Action::Signal { run, step, signal, reason } => {
            let sent = wire::Signal { signal, reason, payload: serde_json::Map::new() };
            match face.signal(run, &step, sent).await?.result {
                SignalResult::Woken => format!("{step} has got its signal and is over"),
                SignalResult::Kept => format!("{step} does not wait yet; the signal is kept for it"),
                SignalResult::Before => format!("{step} was signaled before; nothing was changed"),
            }
        }
        Action::Pause { run, is_paused } => {
            let what = match (is_paused, face.pause_run(run, is_paused).await?.changed) {
                (true, true) => "is paused: nothing new starts",
                (true, false) => "was already paused",
                (false, true) => "goes on",
                (false, false) => "was not paused",
            };
            format!("run {} {what}", run.short())
        }
        Action::Drain { node } => {
            face.drain(&node).await?;
            format!("{node} takes nothing more; what it runs may end")
        }
        Action::DrainPool { node, pool } => {
            let asked = face.drain_pool(&pool, &wire::DrainPool { node: Some(node.clone()) }).await?;
            match asked.nodes.len() {
                0 => format!("nobody keeps containers of {pool} any more"),
                _ => format!("the containers of {pool} on {node} are removed"),
            }
        }
    })
}
