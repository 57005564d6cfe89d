//! `laneway doctor`: what is wrong with a store, and what to do. It changes nothing unless it is asked to set a run aside, or to
//! release one from the quarantine.

use std::num::NonZeroU32;
use std::path::Path;

use laneway_core::node_event::{NodeEvent, NodeFact};
use laneway_engine::container::answers;
use laneway_store::model::{About, Examination, Finding, Severity};
use laneway_store::{Error, Store};
use serde_json::{Value, json};

use super::Context;
use crate::exit::Exit;
use crate::settings::{DOCKER_HOST, Source};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway doctor\n\n\
    Looks at the file, at its rows, at the newest runs and their histories, at sessions and at\n\
    files beside the store, and at container engines that should answer. It changes nothing but what --set-aside and --release say.\n\n\
    Exit codes: 0 healthy (there may be notes), 1 problems, 3 the store cannot be opened.")]
pub(crate) struct Args {
    /// How many runs to look at in detail, the newest ones
    #[arg(short = 'n', long, value_name = "N", default_value = "100", value_parser = crate::settings::count)]
    limit: NonZeroU32,
    /// Look at all runs
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Put a run into the quarantine of which something does not fit: nothing of it goes on until it is released
    #[arg(long, value_name = "RUN", conflicts_with_all = ["limit", "all", "release"])]
    set_aside: Option<String>,
    /// Take a run out of the quarantine, once everything of it can be read
    #[arg(long, value_name = "RUN", conflicts_with_all = ["limit", "all"])]
    release: Option<String>,
    /// Print what was found as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if let Some(name) = &args.release {
        return release(context, name, args.json).await;
    }
    if let Some(name) = &args.set_aside {
        return set_aside(context, name, args.json).await;
    }
    let limit = if args.all { usize::MAX } else { args.limit.get() as usize };
    let store = context.open()?;
    let mut examination = store.examine(limit).await?;
    examination.findings.extend(engines(context, store.as_ref()).await?);
    examination.findings.extend(open_files(context));
    let problems = count(&examination, Severity::Problem);
    if args.json {
        context.printer.json(&wire(&laneway_store::shown(&context.store), &examination))?;
    } else {
        report(context, &examination)?;
    }
    Ok(if problems == 0 { Exit::Succeeded } else { Exit::RunFailed })
}

/// Files of the store, or of this node, that other users of the host can read: those of a version that made them as the umask said.
fn open_files(context: &Context) -> Vec<Finding> {
    let path = context.store.strip_prefix("sqlite://").unwrap_or(&context.store);
    let Ok(dir) = context.dir() else { return Vec::new() };
    let mut open = Vec::new();
    if !path.contains("://") {
        let (path, file) =
            (Path::new(path), Path::new(path).file_name().unwrap_or_default().to_string_lossy());
        let files = ["", "-wal", "-shm"].map(|end| format!("{file}{end}"));
        open = laneway_store::private::open_to_others(path.parent().unwrap_or(Path::new("")), &files);
    }
    let names: Vec<String> =
        laneway_store::OWN_DIRS.into_iter().chain(laneway_store::OWN_FILES).map(str::to_owned).collect();
    open.extend(laneway_store::private::open_to_others(&dir, &names));
    if open.is_empty() {
        return Vec::new();
    }
    let shown: Vec<String> =
        open.iter().map(|(path, mode)| format!("{} ({mode:o})", path.display())).collect();
    let paths: Vec<String> = open.iter().map(|(path, _)| path.display().to_string()).collect();
    vec![Finding {
        severity: Severity::Note,
        about: About::File,
        subject: "files of the store".to_owned(),
        what: format!("other users of this host can read them: {}", shown.join(", ")),
        advice: format!("`chmod -R go-rwx {}` closes them", paths.join(" ")),
    }]
}

/// Container engines that do not answer: those of nodes that had one, and this host's where somebody has said where it is.
async fn engines(context: &Context, store: &dyn Store) -> anyhow::Result<Vec<Finding>> {
    let note = |subject: String, what: String, advice: &str| Finding {
        severity: Severity::Note,
        about: About::Engine,
        subject,
        what,
        advice: advice.to_owned(),
    };
    let mut findings = Vec::new();
    // What cannot be read is told by the examination itself.
    for node in store.nodes(0).await.unwrap_or_default() {
        if node.offer.as_ref().is_none_or(|offer| offer.has_container) {
            continue;
        }
        let history = history(store, &node.node).await;
        let mut of_session = history.iter().rev().filter(|event| event.session == node.session);
        let gone = of_session.find(|event| matches!(event.fact, NodeFact::NodeEngine(_)));
        if let Some(gone) = gone {
            findings.push(note(
                format!("node {}", node.node),
                format!("its container engine has not answered since {}", text::date(gone.at)),
                "start the engine; steps in containers wait for one, and are taken as soon as it answers",
            ));
        }
    }
    let is_meant = context.settings.all().any(|(setting, value, source)| {
        setting.name == DOCKER_HOST.name && value.is_some() && source != Source::Default
    });
    if is_meant && let Err(why) = answers(&context.settings.containers()?.docker).await {
        findings.push(note(
            "container engine".to_owned(),
            why,
            "start it, or mend the setting `docker_host`; workers take steps in containers while theirs answers",
        ));
    }
    Ok(findings)
}

/// What a node told, as far as it can be read. The rest is told by the examination itself.
async fn history(store: &dyn Store, node: &str) -> Vec<NodeEvent> {
    let (mut all, mut after): (Vec<NodeEvent>, u64) = (Vec::new(), 0);
    loop {
        match store.node_events(Some(node), after, usize::MAX).await {
            Ok(page) => {
                // In a damaged file events may stand out of order, and lead back to where this began.
                let Some(last) = page.last().filter(|last| last.seq > after) else { return all };
                after = last.seq;
                all.extend(page);
            }
            Err(Error::UnreadableEvent { seq, .. }) if seq > after => after = seq,
            Err(_) => return all,
        }
    }
}

async fn set_aside(context: &Context, name: &str, is_json: bool) -> anyhow::Result<Exit> {
    let (store, run) = context.find(name).await?;
    let found = store.set_aside(run).await?;
    if is_json {
        context.printer.json(&json!({ "run": run, "set_aside": found.is_some(), "why": found }))?;
        return Ok(Exit::Succeeded);
    }
    let short = run.short();
    let line = match found {
        Some(why) => format!(
            "run {short} is set aside: {why}\nnothing of it goes on until `laneway doctor --release {short}`, which asks for it to be mended"
        ),
        None => format!(
            "run {short} is not set aside: all of it can be read, and its history tells what is stored"
        ),
    };
    context.printer.line(&line)?;
    Ok(Exit::Succeeded)
}

async fn release(context: &Context, name: &str, is_json: bool) -> anyhow::Result<Exit> {
    let (store, run) = context.find(name).await?;
    store.release(run).await?;
    let status = store.status(run).await?;
    if is_json {
        context.printer.json(&json!({ "run": run, "released": true, "status": status }))?;
        return Ok(Exit::Succeeded);
    }
    let next = if status.is_final() {
        format!("`laneway show {}` shows it", run.short())
    } else {
        format!("`laneway resume {}` goes on with it", run.short())
    };
    context.printer.line(&format!("run {} is out of the quarantine; {next}", run.short()))?;
    Ok(Exit::Succeeded)
}

fn count(examination: &Examination, severity: Severity) -> u64 {
    examination.findings.iter().filter(|finding| finding.severity == severity).count() as u64
}

fn report(context: &Context, examination: &Examination) -> anyhow::Result<()> {
    let palette = context.printer.out_palette();
    let mut findings: Vec<&Finding> = examination.findings.iter().collect();
    findings.sort_by_key(|finding| finding.severity);
    for finding in findings {
        let word = match finding.severity {
            Severity::Problem => palette.red("problem:"),
            Severity::Note => palette.yellow("note:"),
        };
        let what = finding.what.trim_end().replace('\n', "\n    ");
        context.printer.line(&format!("{word} {}: {what}", finding.subject))?;
        context.printer.line(&format!("    what to do: {}", finding.advice))?;
    }
    let problems = count(examination, Severity::Problem);
    let notes = match count(examination, Severity::Note) {
        0 => String::new(),
        notes => format!(", {}", text::count(notes, "note")),
    };
    let verdict = match problems {
        0 => format!("healthy{notes}"),
        problems => format!("{}{notes}", text::count(problems, "problem")),
    };
    let (runs, total) = (examination.runs as u64, examination.total as u64);
    let scope = if runs == total {
        format!("looked at {}", text::count(total, "run"))
    } else {
        format!("looked at the newest {runs} of {}; --all looks at all", text::count(total, "run"))
    };
    context.printer.line(&format!("{}: {verdict} ({scope})", laneway_store::shown(&context.store)))
}

fn wire(store: &str, examination: &Examination) -> Value {
    let findings: Vec<Value> = examination
        .findings
        .iter()
        .map(|finding| {
            json!({
                "severity": finding.severity.as_str(),
                "about": finding.about.as_str(),
                "subject": finding.subject,
                "what": finding.what,
                "advice": finding.advice,
            })
        })
        .collect();
    json!({
        "store": store,
        "healthy": count(examination, Severity::Problem) == 0,
        "runs_looked_at": examination.runs,
        "runs": examination.total,
        "findings": findings,
    })
}
