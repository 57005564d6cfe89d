//! `laneway move`: brings an idle embedded store to Postgres, checks that both replay equal, and
//! closes the one it came from.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_store::transfer::{self, Begun, Move};
use laneway_store::{OWN_FILES, Store, private};
use serde_json::json;

use super::{Context, replay};
use crate::exit::{Exit, Refusal};
use crate::text;

/// Pause between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["to", "undo"]),
    after_help = "Example:\n  laneway move --to postgres://laneway@db/laneway\n\n\
    Moves the store that --store names while no process uses it: runs with their events, files, logs and artifacts,\n\
    workflows, schedules, limits, tokens and secrets. The target must be empty. Each run is replayed on both sides\n\
    before the old store is closed; it stays as it is if anything differs, or if the move is interrupted.\n\
    Exit codes: 0 moved, 1 a run differs, 2 refused, 3 a store cannot be used.\n\
    To another file: `laneway backup copy.tar` and `laneway restore copy.tar --store FILE`."
)]
pub(crate) struct Args {
    /// The database to move the store to; its password belongs in ~/.pgpass or PGPASSWORD
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Open a moved store again, when the one it went to is given up
    #[arg(long)]
    undo: bool,
    /// Print what was moved as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let shown = laneway_store::shown(&context.store);
    let path = context.store.strip_prefix("sqlite://").unwrap_or(&context.store);
    if path.contains("://") {
        return Err(Refusal::new(format!("{shown} is no file, and only a file can be moved"))
            .hint("name the file with --store; a database is copied with `pg_dump`")
            .into());
    }
    let Some(to) = args.to else {
        transfer::undo(Path::new(path))?;
        return done(context, args.json, &json!({ "store": path }), &format!("{path} can be used again"));
    };
    let target = laneway_store::shown(&to);
    check_target(&to)?;
    let data_dir = context.options()?.data_dir;
    let files = NodeFiles::find(&context.dir()?, &data_dir)?;
    let progress = Progress { context, last: Cell::new(Instant::now()) };
    let report = |table: &str, rows: u64| progress.report(table, rows);
    let begun = transfer::begin(Path::new(path), &to, &context.options()?, &report).await?;
    let Begun::Copied(copied) = begun else {
        files.copy()?;
        let line = format!("{path} was moved to {target} before; what was left of that is done");
        return done(context, args.json, &json!({ "from": path, "to": target }), &line);
    };
    let different = compare(&copied, &progress).await?;
    if !different.is_empty() {
        let shown: Vec<String> = different.iter().map(RunId::short).collect();
        return Err(Refusal::new(format!(
            "the copy of {path} in {target} differs in runs: {}",
            shown.join(", ")
        ))
        .hint("nothing was changed in the store; `laneway doctor` may say what is wrong with those runs")
        .exit(Exit::RunFailed)
        .into());
    }
    files.copy()?;
    let (runs, counts) = (copied.runs.len() as u64, copied.copied.clone());
    copied.end().await?;
    if counts.missing > 0 {
        let missing = text::count(counts.missing, "artifact");
        context.printer.warning(&format!("{missing} named in the store were not there"));
    }
    if files.is_elsewhere() && files.from.join("workspaces").exists() {
        context.printer.note(&format!(
            "workspaces of unfinished runs stay in {}: start workers of this host with --data-dir {}",
            files.from.display(),
            files.from.display()
        ));
    }
    let rows = |table: &str| counts.rows.get(table).copied().unwrap_or_default();
    let listed = [
        text::count(runs, "run"),
        text::count(rows("events"), "event"),
        text::count(counts.logs, "log"),
        text::count(counts.artifacts, "artifact"),
    ];
    let line =
        format!("moved {path} to {target}: {}; every run replays equal on both sides", listed.join(", "));
    let value = json!({ "from": path, "to": target, "runs": runs, "copied": counts });
    done(context, args.json, &value, &line)
}

fn done(context: &Context, is_json: bool, value: &serde_json::Value, line: &str) -> anyhow::Result<Exit> {
    if is_json {
        context.printer.json(value)?;
    } else {
        context.printer.line(line)?;
    }
    Ok(Exit::Succeeded)
}

fn check_target(to: &str) -> Result<(), Refusal> {
    let is_postgres = matches!(to.split_once("://"), Some(("postgres" | "postgresql", _)));
    if !is_postgres {
        return Err(Refusal::new(format!("a store cannot be moved to {}", laneway_store::shown(to))).hint(
            "give postgres://USER@HOST/DATABASE; to another file it goes with `laneway backup` and `laneway restore`",
        ));
    }
    if laneway_store::without_password(to).is_some() {
        return Err(Refusal::new("every user of this host can read the password in --to")
            .hint("leave it out, and give it in ~/.pgpass or in PGPASSWORD"));
    }
    Ok(())
}

/// Returns the runs that differ.
async fn compare(copied: &Move, progress: &Progress<'_>) -> anyhow::Result<Vec<RunId>> {
    let mut different = Vec::new();
    for (run, number) in copied.runs.iter().zip(1..) {
        let ours = fingerprint(copied.from.as_ref(), *run).await?;
        if ours != fingerprint(copied.to.as_ref(), *run).await? {
            different.push(*run);
        }
        progress.report("runs checked", number);
    }
    Ok(different)
}

/// Returns what a replay of a run says, and a hash of its history and its state. A run that cannot
/// be read must be as unreadable on the other side.
async fn fingerprint(store: &dyn Store, run: RunId) -> anyhow::Result<(String, Option<ContentHash>)> {
    match replay::compare(store, run).await {
        Ok(compared) => Ok((compared.verdict.to_text(), Some(compared.fingerprint))),
        Err(error) => match error.downcast_ref::<laneway_store::Error>() {
            Some(unreadable) if unreadable.is_about_what_is_stored() => Ok((unreadable.to_string(), None)),
            Some(_) | None => Err(error),
        },
    }
}

struct Progress<'a> {
    context: &'a Context,
    last: Cell<Instant>,
}

impl Progress<'_> {
    fn report(&self, what: &str, count: u64) {
        if self.last.get().elapsed() >= PROGRESS_INTERVAL {
            self.last.set(Instant::now());
            self.context.printer.note(&format!("moving: {what}, {count}"));
        }
    }
}

/// Files of a node that belong to a store and not to its database: the key to its secrets and the
/// admin token. With a database they are in the data directory of the node.
struct NodeFiles {
    from: PathBuf,
    to: PathBuf,
}

impl NodeFiles {
    /// Rejects a data directory that has other ones.
    fn find(from: &Path, to: &Path) -> anyhow::Result<Self> {
        let files = Self { from: from.to_owned(), to: to.to_owned() };
        for name in OWN_FILES {
            let (ours, theirs) = (read(&from.join(name))?, read(&to.join(name))?);
            if ours.is_some() && theirs.is_some() && ours != theirs {
                let theirs = to.join(name);
                return Err(Refusal::new(format!("{} is of another store", theirs.display()))
                    .hint(
                        "name another directory with --data-dir, or move that file away; nothing was changed",
                    )
                    .into());
            }
        }
        Ok(files)
    }

    fn is_elsewhere(&self) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        real(&self.from) != real(&self.to)
    }

    fn copy(&self) -> anyhow::Result<()> {
        for name in OWN_FILES {
            let to = self.to.join(name);
            if let Some(content) = read(&self.from.join(name))?.filter(|_| !to.exists()) {
                private::create_dir_all(&self.to)
                    .and_then(|()| private::write(&to, &content))
                    .with_context(|| format!("{} cannot be written", to.display()))?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}
