//! The engine of merges: reads how the members of a group ended, and makes one result of it. What is decided is core's
//! (`laneway_core::merge`), what is done to files `isolate/`'s; a program that merges is started like any step.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use laneway_core::definition::{Merge, OnConflict};
use laneway_core::merge::{self, Ended, Member};
use laneway_core::output;
use laneway_core::reason::Reason;
use laneway_core::run_state::RunState;
use laneway_core::state::TaskStatus;
use laneway_store::model::{Claim, Outcome};
use serde_json::{Map, Value};

use super::attempt::{ASK_AGAIN, Setting, failed};
use super::prepare;
use super::run_files;
use crate::isolate::{self, CellName, Source};
use crate::process::StopSignal;

/// How far a merge has come.
pub(super) enum Merged {
    Ended(Outcome),
    /// All results, in a file that a program is to read.
    Pipe(PathBuf),
}

/// Merges the group of a claimed merge; `None` for any other step. `base` is the run's directory.
pub(super) async fn merge(
    setting: &Setting,
    claim: &Claim,
    (base, has_view): (&Path, bool),
    stop: &StopSignal,
) -> Option<Result<Merged, String>> {
    let plan = &claim.head.plan;
    let number = plan.step(claim.at.position).merges()?;
    let group = plan.group(number);
    let state = loop {
        match setting.store.run_state(claim.head.run).await {
            Ok(state) => break state,
            Err(error) if error.is_passing() && !stop.is_asked() => tokio::time::sleep(ASK_AGAIN).await,
            Err(error) => {
                return Some(Err(format!("the results of `{}` could not be read: {error}", group.name)));
            }
        }
    };
    let members = ended(claim, number, &state);
    let result = merge::concatenate(&members);
    Some(match &group.merge {
        Merge::Concatenate => Ok(Merged::Ended(succeeded(result))),
        Merge::Custom { command } if command.is_empty() => Ok(Merged::Ended(succeeded(result))),
        Merge::Custom { .. } => pipe(setting, claim, &group.name, result),
        Merge::Workspace { on_conflict } => {
            let work =
                Work { group: group.name.clone(), base: base.to_owned(), on_conflict: on_conflict.clone() };
            loop {
                let sources = sources(claim, number, &state, &members);
                if has_view {
                    match of_layers(setting, claim, (number, &work), sources, result.clone()).await {
                        Err(error) if error.is_passing() && !stop.is_asked() => {
                            tokio::time::sleep(ASK_AGAIN).await;
                            continue;
                        }
                        Err(error) => break Ok(Merged::Ended(failed(error.reason(), error.to_string()))),
                        Ok(outcome) => break Ok(Merged::Ended(outcome)),
                    }
                }
                match files(setting, claim, &work, sources, result.clone()).await {
                    Err(error) if error.is_passing() && !stop.is_asked() => {
                        tokio::time::sleep(ASK_AGAIN).await
                    }
                    Err(error) => break Ok(Merged::Ended(failed(Reason::Conflict, error.to_string()))),
                    Ok(outcome) => break Ok(Merged::Ended(outcome)),
                }
            }
        }
    })
}

fn ended(claim: &Claim, group: u32, state: &RunState) -> Vec<Ended> {
    let tasks = claim.head.plan.members(group).iter().filter_map(|member| state.tasks.get(*member as usize));
    tasks
        .map(|task| Ended { step: task.step.clone(), status: task.status, output: task.output.clone() })
        .collect()
}

/// The copies of those who succeeded: what a failed one left behind is nobody's result.
fn sources(claim: &Claim, group: u32, state: &RunState, members: &[Ended]) -> Vec<Source> {
    let positions = claim.head.plan.members(group).iter();
    let tasks = positions.filter_map(|member| state.tasks.get(*member as usize));
    tasks
        .zip(members)
        .enumerate()
        .filter(|(_, (task, _))| task.status == TaskStatus::Succeeded)
        .map(|(index, (task, member))| Source {
            index,
            cell: CellName { step: task.step.clone(), attempt: task.attempt },
            output: member.output.clone(),
        })
        .collect()
}

/// An output has its bounds, also that of many.
fn succeeded(result: Map<String, Value>) -> Outcome {
    let size = serde_json::to_string(&result).map_or(0, |text| text.len());
    if size > output::LIMIT {
        let why = format!(
            "the outputs of its members have {} KiB together, and a result has room for {}; let them write files",
            size / 1024,
            output::LIMIT / 1024
        );
        return failed(Reason::BadOutput, why);
    }
    Outcome::Succeeded { output: result }
}

fn pipe(setting: &Setting, claim: &Claim, group: &str, result: Map<String, Value>) -> Result<Merged, String> {
    let mut input = Map::new();
    input.insert("group".into(), group.into());
    input.extend(result);
    let path = prepare::scratch_file(&setting.places, claim, "in");
    laneway_store::private::write(&path, Value::Object(input).to_string().as_bytes())
        .map_err(|error| format!("the results of `{group}` could not be written: {error}"))?;
    Ok(Merged::Pipe(path))
}

/// The result of a merge whose members worked in views. The view of the merge shows their layers
/// already; what `on_conflict` decided is its own layer.
async fn of_layers(
    setting: &Setting,
    claim: &Claim,
    (group, work): (u32, &Work),
    sources: Vec<Source>,
    mut result: Map<String, Value>,
) -> Result<Outcome, run_files::Error> {
    let positions = claim.head.plan.members(group);
    let mut changes = setting.workspaces.files().changes_of(claim).await?;
    let mut members = Vec::with_capacity(sources.len());
    for source in sources {
        let changes = changes.remove(&positions[source.index]).unwrap_or_default();
        let paths: BTreeSet<PathBuf> = changes.keys().cloned().collect();
        let step = source.cell.step;
        if let Some(wrong) = merge::against_said(&step, &source.output, &paths) {
            return Ok(failed(Reason::Conflict, wrong));
        }
        members.push(Member { index: source.index, step, changes });
    }
    let combined = merge::combine(&members, &work.on_conflict);
    Ok(match combined.undecided() {
        Some(why) => failed(Reason::Conflict, why),
        None => {
            combined.tell(&mut result);
            succeeded(result)
        }
    })
}

struct Work {
    group: String,
    base: PathBuf,
    on_conflict: OnConflict,
}

async fn files(
    setting: &Setting,
    claim: &Claim,
    work: &Work,
    sources: Vec<Source>,
    mut result: Map<String, Value>,
) -> Result<Outcome, isolate::Error> {
    let (isolates, run) = (setting.workspaces.isolates().clone(), claim.head.run);
    let (group, base, on_conflict) = (work.group.clone(), work.base.clone(), work.on_conflict.clone());
    let merged =
        tokio::task::spawn_blocking(move || isolates.merge(run, &group, &base, &sources, &on_conflict));
    let failed_to_join = |error: tokio::task::JoinError| isolate::Error::Files {
        what: "merge into",
        path: work.base.clone(),
        source: std::io::Error::other(error.to_string()),
    };
    Ok(match merged.await.map_err(failed_to_join)?? {
        isolate::Merged::Refused(why) => failed(Reason::Conflict, why),
        isolate::Merged::Applied(combined) => {
            combined.tell(&mut result);
            succeeded(result)
        }
    })
}
