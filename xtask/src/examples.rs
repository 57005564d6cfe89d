//! Every example keeps the promise of its first lines: it is a valid document for the schema and for the
//! program, it runs, ends as it says, its history replays, and it leaves no file behind.
//!
//! ```text
//! # expect: failed                      how the run ends
//! # expect: load failed timeout         how a step ends, and for which reason
//! # expect: fetch succeeded attempt 3   … and with which attempt
//! # needs: docker                       only its document is looked at here; a test of `laneway/tests/pool.rs` runs it
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::program::{Program, said};
use crate::shell::Shell;
use crate::stage;

pub(crate) fn run_all(shell: &Shell, program: &Program) -> Result<()> {
    let dir = shell.root().join("examples");
    let before = listing(&dir)?;
    let files: Vec<&PathBuf> = before.iter().filter(|path| is_document(path)).collect();
    ensure!(!files.is_empty(), "there is no example in {}", dir.display());
    let schema: Value =
        serde_json::from_str(&program.stdout(shell, &["schema"])?).context("laneway schema")?;
    let schema =
        jsonschema::validator_for(&schema).map_err(|error| anyhow!("the schema is none: {error}"))?;

    let mut broken = Vec::new();
    for file in files {
        let name = file.strip_prefix(shell.root()).unwrap_or(file).display().to_string();
        match one(shell, program, &schema, file, &name) {
            Ok(kept) => stage::note(&format!("{name}: {kept}")),
            Err(error) => broken.push(format!("{name}: {error:#}")),
        }
    }
    let left: Vec<String> =
        listing(&dir)?.difference(&before).map(|path| path.display().to_string()).collect();
    if !left.is_empty() {
        broken.push(format!("files were left behind: {}", left.join(", ")));
    }
    ensure!(broken.is_empty(), "{} did not keep their promise\n  {}", broken.len(), broken.join("\n  "));
    Ok(())
}

/// Checks one example and says what it did.
fn one(
    shell: &Shell,
    program: &Program,
    schema: &jsonschema::Validator,
    file: &Path,
    name: &str,
) -> Result<String> {
    let text = fs::read_to_string(file)?;
    let promise = Promise::read(&text)?;
    validate(schema, &text)?;
    program.stdout(shell, &["validate", name])?;
    if needs_docker(&text) {
        return Ok("valid; run by the tests that have a container engine".to_owned());
    }

    let scratch = program.scratch.join(file.file_stem().context("a file has a name")?);
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    }
    let temporary = scratch.join("tmp");
    fs::create_dir_all(&temporary).with_context(|| temporary.display().to_string())?;
    let store = scratch.join("store/laneway.db");
    let store = store.to_str().context("the target directory's path is text")?;

    let output = shell.output({
        let mut command = program.command(&["run", name, "--store", store]);
        command.env("TMPDIR", &temporary);
        command
    })?;
    let code = if promise.status == "succeeded" { 0 } else { 1 };
    if output.status.code() != Some(code) {
        let found = output.status;
        bail!(
            "promises `{}`, which is exit code {code}, and ended with {found}:\n{}",
            promise.status,
            said(&output)
        );
    }
    let shown = program.stdout(shell, &["show", "last", "--json", "--store", store])?;
    promise.check(&serde_json::from_str(&shown).context("laneway show --json")?)?;
    program.stdout(shell, &["replay", "last", "--store", store])?;
    let left = listing(&temporary)?;
    ensure!(left.is_empty(), "left {} files in $TMPDIR, the first {:?}", left.len(), left.first());
    fs::remove_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    Ok(format!("{} as promised", promise.status))
}

fn needs_docker(text: &str) -> bool {
    text.lines().map_while(|line| line.strip_prefix('#')).any(|line| line.trim() == "needs: docker")
}

fn validate(schema: &jsonschema::Validator, text: &str) -> Result<()> {
    let document: Value = serde_saphyr::from_str(text).context("it is no YAML")?;
    let errors: Vec<String> = schema
        .iter_errors(&document)
        .map(|error| format!("{error} (at {})", error.instance_path()))
        .collect();
    ensure!(errors.is_empty(), "the schema refuses it: {}", errors.join("; "));
    Ok(())
}

/// What the first lines of an example say about its end.
#[derive(Debug, PartialEq, Eq)]
struct Promise {
    status: String,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    name: String,
    status: String,
    reason: Option<String>,
    attempt: Option<u64>,
}

impl Promise {
    fn read(text: &str) -> Result<Self> {
        let comments = text.lines().map_while(|line| line.strip_prefix('#'));
        let mut lines = comments.filter_map(|line| line.trim().strip_prefix("expect:")).map(str::trim);
        let status = match lines.next() {
            Some(status @ ("succeeded" | "failed")) => status.to_owned(),
            Some(other) => bail!("promises `{other}`; the first promise is `succeeded` or `failed`"),
            None => {
                bail!("promises nothing; begin it with a line `# expect: succeeded` or `# expect: failed`")
            }
        };
        Ok(Self { status, steps: lines.map(Step::read).collect::<Result<_>>()? })
    }

    fn check(&self, shown: &Value) -> Result<()> {
        ensure!(
            shown["status"] == self.status.as_str(),
            "promises `{}`, and is {}",
            self.status,
            shown["status"]
        );
        let tasks = shown["tasks"].as_array().context("`show --json` has no tasks")?;
        for step in &self.steps {
            let task = tasks.iter().find(|task| task["step"] == step.name.as_str());
            let task =
                task.with_context(|| format!("promises something of `{}`, which is no step", step.name))?;
            let is_kept = task["status"] == step.status.as_str()
                && step.reason.as_ref().is_none_or(|reason| task["reason"] == reason.as_str())
                && step.attempt.is_none_or(|attempt| task["attempt"] == attempt);
            ensure!(is_kept, "promises {step:?}, and has {task}");
        }
        Ok(())
    }
}

impl Step {
    fn read(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = || anyhow!("`expect: {line}` is not of the form `STEP STATUS [REASON] [attempt N]`");
        let (words, attempt) = match words.as_slice() {
            [rest @ .., "attempt", number] => (rest, Some(number.parse().map_err(|_| wrong())?)),
            rest => (rest, None),
        };
        let (name, status, reason) = match words {
            [name, status] => (name, status, None),
            [name, status, reason] => (name, status, Some((*reason).to_owned())),
            _ => return Err(wrong()),
        };
        Ok(Self { name: (*name).to_owned(), status: (*status).to_owned(), reason, attempt })
    }
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "json")
}

/// All files below a directory.
fn listing(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(listing(&entry.path())?);
        }
        found.insert(entry.path());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_stands_in_the_first_lines() {
        let promise =
            Promise::read("# About\n# expect: failed\n# expect: a failed timeout\n\nsteps: {}\n# expect: x");
        let step =
            Step { name: "a".into(), status: "failed".into(), reason: Some("timeout".into()), attempt: None };
        assert_eq!(promise.expect("a promise"), Promise { status: "failed".into(), steps: vec![step] });
        assert!(Promise::read("steps: {}").is_err());
        assert!(Promise::read("# expect: perhaps").is_err());
    }

    #[test]
    fn a_broken_promise_is_noticed() {
        let promise =
            Promise::read("# expect: succeeded\n# expect: a succeeded attempt 3").expect("a promise");
        let shown = |status: &str, attempt: u64| serde_json::json!({"status": status, "tasks": [{"step": "a", "status": "succeeded", "attempt": attempt}]});
        assert!(promise.check(&shown("succeeded", 3)).is_ok());
        assert!(promise.check(&shown("succeeded", 2)).is_err());
        assert!(promise.check(&shown("failed", 3)).is_err());
    }
}
