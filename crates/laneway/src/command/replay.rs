//! `laneway replay`: folds a run's events through the same transition functions that made them, and
//! compares the result with what the store holds, byte for byte; with `--at`, shows what they made of it up to one of them.
//! Executes nothing and changes nothing.

use laneway_core::event::Event;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::run_state;
use laneway_store::Store;
use serde_json::{Value, json};

use super::{Context, show};
use crate::exit::Exit;
use crate::text;

const PAGE: usize = 5_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway replay last\n  laneway replay last --at 7\n\n\
    Exit codes: 0 equal, 1 they part.")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// Show the run as it was after the event of this number, instead of comparing (`laneway events` numbers them)
    #[arg(long, value_name = "EVENT")]
    at: Option<u64>,
    /// Print the verdict, or the run, as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if let Some(at) = args.at {
        let run = context.face()?.run_at(&args.run, at).await?;
        if !args.json {
            context.printer.line(&format!("as it was after event {at}\n"))?;
        }
        return show::print(context, &run, args.json, false);
    }
    let (store, run) = context.find(&args.run).await?;
    let Compared { verdict, count, .. } = compare(store.as_ref(), run).await?;
    let exit = if matches!(verdict, Verdict::Equal) { Exit::Succeeded } else { Exit::RunFailed };
    if args.json {
        context.printer.json(&verdict.to_json(run, count))?;
    } else {
        let head = format!("replay of {}: {}", run.short(), text::count(count, "event"));
        context.printer.line(&format!("{head}, {}", verdict.to_text()))?;
    }
    Ok(exit)
}

/// What a replay has shown.
pub(super) struct Compared {
    pub(super) verdict: Verdict,
    count: u64,
    /// Of the events and of the stored state.
    pub(super) fingerprint: ContentHash,
}

pub(super) enum Verdict {
    Equal,
    /// The history itself cannot have happened.
    Broken(run_state::Broken),
    /// The history has an event that cannot be read.
    Unreadable(String),
    Parts {
        path: String,
        replayed: Value,
        stored: Value,
    },
}

impl Verdict {
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Equal => "equal".to_owned(),
            Self::Broken(broken) => format!("broken: {broken}"),
            Self::Unreadable(why) => format!("then {why}"),
            Self::Parts { path, replayed, stored } => {
                format!("parted at {path}\n  replayed: {replayed}\n  stored:   {stored}")
            }
        }
    }

    fn to_json(&self, run: RunId, count: u64) -> Value {
        let mut verdict = json!({ "run": run, "events": count, "equal": matches!(self, Self::Equal) });
        match self {
            Self::Equal => {}
            Self::Broken(broken) => verdict["broken"] = broken.to_string().into(),
            Self::Unreadable(why) => verdict["broken"] = why.as_str().into(),
            Self::Parts { path, replayed, stored } => {
                verdict["path"] = path.as_str().into();
                verdict["replayed"] = replayed.clone();
                verdict["stored"] = stored.clone();
            }
        }
        verdict
    }
}

pub(super) async fn compare(store: &dyn Store, run: RunId) -> anyhow::Result<Compared> {
    // A run that goes on while it is read: the stored side tells how many events belong to it.
    loop {
        let stored = store.run_state(run).await?;
        let events = match events(store, run, stored.last_event).await {
            Err(error @ laneway_store::Error::UnreadableEvent { seq, .. }) => {
                let fingerprint = ContentHash::of(&serde_json::to_vec(&stored)?);
                let (verdict, count) = (Verdict::Unreadable(error.to_string()), seq.saturating_sub(1));
                return Ok(Compared { verdict, count, fingerprint });
            }
            events => events?,
        };
        if store.run_state(run).await?.last_event != stored.last_event {
            continue;
        }
        let count = events.len() as u64;
        let fingerprint =
            ContentHash::of(format!("{events:?} {}", serde_json::to_string(&stored)?).as_bytes());
        let told = |verdict| Ok(Compared { verdict, count, fingerprint });
        let steps = stored.tasks.iter().filter(|task| task.item.is_none()).map(|task| task.step.as_str());
        let replayed = match run_state::replay(steps, &events) {
            Ok(replayed) => replayed,
            Err(broken) => return told(Verdict::Broken(broken)),
        };
        if serde_json::to_string(&replayed)? == serde_json::to_string(&stored)? {
            return told(Verdict::Equal);
        }
        let (replayed, stored) = (serde_json::to_value(&replayed)?, serde_json::to_value(&stored)?);
        let (path, replayed, stored) = part(String::new(), &replayed, &stored)
            .unwrap_or_else(|| ("the order of keys".to_owned(), replayed.clone(), stored.clone()));
        return told(Verdict::Parts { path, replayed, stored });
    }
}

async fn events(store: &dyn Store, run: RunId, upto: u64) -> laneway_store::Result<Vec<Event>> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let page = store.events_since(run, after, PAGE).await?;
        // A short page ends in front of an event that cannot be read, or of the end.
        let is_last = page.is_empty() || page.last().is_some_and(|event| event.seq >= upto);
        all.extend(page.into_iter().filter(|event| event.seq <= upto));
        if is_last {
            return Ok(all);
        }
    }
}

/// The first path at which two values differ, with both sides.
fn part(path: String, left: &Value, right: &Value) -> Option<(String, Value, Value)> {
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let null = &Value::Null;
                part(format!("{path}.{key}"), a.get(key).unwrap_or(null), b.get(key).unwrap_or(null))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(at, (a, b))| part(format!("{path}[{at}]"), a, b))
        }
        (left, right) if left == right => None,
        (left, right) => Some((path.trim_start_matches('.').to_owned(), left.clone(), right.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_by_its_path() {
        let replayed = json!({ "status": "failed", "tasks": [{ "attempt": 1 }, { "attempt": 2 }] });
        let stored = json!({ "status": "failed", "tasks": [{ "attempt": 1 }, { "attempt": 3 }] });
        let found = part(String::new(), &replayed, &stored);
        assert_eq!(found, Some(("tasks[1].attempt".to_owned(), json!(2), json!(3))));
        assert_eq!(part(String::new(), &stored, &stored), None);
    }

    #[test]
    fn a_key_that_only_one_side_has_is_a_difference() {
        let found = part(String::new(), &json!({}), &json!({ "reason": "lost" }));
        assert_eq!(found, Some(("reason".to_owned(), Value::Null, json!("lost"))));
    }
}
