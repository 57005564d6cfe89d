//! What the key of an attempt is made of: the command, the image, the declared files and variables, and the user's own key.
//! Values of secrets are no part of it: in their place stand their names.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use laneway_core::artifact::ArtifactPattern;
use laneway_core::cache::{Cache, MAX_FILE_PARTS, Part, Parts};
use laneway_core::definition::{Action, Container, Housing, is_input};
use laneway_core::expression::{Scope, Template};
use laneway_core::growth::parse_name;
use laneway_core::hash::{ContentHash, Hasher};
use laneway_core::shell::Shell;
use laneway_store::model::Claim;
use serde_json::{Map, Value, json};

use super::Place;
use crate::process::StopSignal;
use crate::worker::artifacts::{self, Found};
use crate::worker::attempt::Setting;

/// Whoever declares more has named the wrong directory.
const MAX_FILES: usize = 50_000;

/// Why there are no parts.
pub(super) enum Error {
    Expression(String),
    /// Something that belongs to the key could not be looked at.
    Unknown(String),
}

pub(super) async fn parts(
    setting: &Setting,
    claim: &Claim,
    cache: &Cache,
    place: Place<'_>,
    stop: &StopSignal,
) -> Result<Parts, Error> {
    let plan = &claim.head.plan;
    let step = plan.step(claim.at.position);
    let scope = without_secrets(place.scope);
    let mut parts = Parts::default();
    let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    parts.add(Part::Platform, platform.as_bytes());
    let command = command(&step.action, &scope)?;
    let workdir = step.workdir(&scope).map_err(Error::Expression)?;
    parts.add(Part::Command, json!([command, workdir]).to_string().as_bytes());
    if let Some(key) = &cache.key {
        let key = key.render(&scope).map_err(|error| Error::Expression(format!("`cache.key`: {error}")))?;
        parts.add(Part::Key, key.as_bytes());
    }
    if matches!(step.action, Action::Function { .. }) {
        return Ok(parts);
    }
    // A variable of the step stands in the place of one of the workflow.
    for (name, template) in plan.workflow.env.iter().chain(&step.env) {
        parts.add(Part::Env(name.clone()), rendered(template, &scope, name)?.as_bytes());
    }
    let declared = step.files().artifacts.iter().map(|path| path.pattern(&scope));
    let declared = declared.collect::<Result<Vec<_>, _>>().map_err(Error::Expression)?;
    let mut declared: Vec<&str> = declared.iter().map(ArtifactPattern::as_str).collect();
    declared.sort_unstable();
    parts.add(Part::Artifacts, json!(declared).to_string().as_bytes());
    match step.housing() {
        None => {}
        Some(Housing::Own(container)) => {
            parts.add(Part::Container, settings(container).to_string().as_bytes());
            image(setting, container, step.timeout, stop, &mut parts).await?;
        }
        Some(Housing::Pool(_)) => {
            let pool = plan.pool_of(claim.at.position);
            let pool = pool.ok_or_else(|| Error::Unknown("its pool is not known".to_owned()))?;
            let settings = json!([settings(&pool.container), pool.command]);
            parts.add(Part::Container, settings.to_string().as_bytes());
            image(setting, &pool.container, step.timeout, stop, &mut parts).await?;
        }
    }
    given(setting, claim, &scope, &mut parts).await?;
    if let Some(dir) = place.workdir.filter(|_| !cache.files.is_empty()) {
        let (dir, patterns) = (dir.to_owned(), cache.files.clone());
        let looked = tokio::task::spawn_blocking(move || files(&dir, &patterns)).await;
        let looked = looked.map_err(|error| Error::Unknown(error.to_string()))?;
        for (part, hash) in looked.map_err(Error::Unknown)? {
            parts.add_hash(part, hash);
        }
    }
    Ok(parts)
}

/// What a step's expressions see, with the name of each secret in the place of its value.
fn without_secrets(scope: &Scope) -> Scope {
    let mut scope = scope.clone();
    if let Some(Value::Object(secrets)) = scope.get("secrets") {
        let named = |name: &String| (name.clone(), Value::from(format!("${{{{ secrets.{name} }}}}")));
        let names: Map<String, Value> = secrets.keys().map(named).collect();
        scope.insert("secrets".into(), names.into());
    }
    scope
}

fn command(action: &Action, scope: &Scope) -> Result<Value, Error> {
    let all = |args: &[Template]| {
        args.iter().map(|arg| rendered(arg, scope, "args")).collect::<Result<Vec<String>, Error>>()
    };
    Ok(match action {
        // The key of a step under the default shell is what it was before there was another.
        Action::Run { script, args, shell: Shell::Sh } => json!(["run", script, all(args)?]),
        Action::Run { script, args, shell } => {
            json!(["run", script, all(args)?, shell.words(shell.form(script, false))])
        }
        Action::Command { argv, args } => json!(["command", argv, all(args)?]),
        Action::Function { name, with } => {
            let mut input = Map::new();
            for (name, template) in with {
                let value = template.evaluate(scope);
                let value = value.map_err(|error| Error::Expression(format!("`with.{name}`: {error}")))?;
                input.insert(name.clone(), value);
            }
            json!(["function", name, input])
        }
        // Documents that let these be cached are refused.
        Action::Queue { .. }
        | Action::Call { .. }
        | Action::Wait(_)
        | Action::Merge { .. }
        | Action::Post { .. } => return Err(Error::Unknown("it is nothing that can be cached".to_owned())),
    })
}

fn rendered(template: &Template, scope: &Scope, name: &str) -> Result<String, Error> {
    template.render(scope).map_err(|error| Error::Expression(format!("`{name}`: {error}")))
}

/// What decides on what a program sees inside. How much it may take up does not.
fn settings(container: &Container) -> Value {
    let Container { mounts, user, network, is_read_only, secrets, .. } = container;
    let mounts: Vec<_> =
        mounts.iter().map(|mount| json!([mount.source, mount.target, mount.is_read_only])).collect();
    json!({ "mounts": mounts, "user": user, "network": network, "read_only": is_read_only, "secrets": secrets })
}

/// The digest by which the engine knows the image, never its tag. It is pulled if it has to be, which counts as time of the step.
async fn image(
    setting: &Setting,
    container: &Container,
    timeout: Option<std::time::Duration>,
    stop: &StopSignal,
    parts: &mut Parts,
) -> Result<(), Error> {
    let docker = &setting.containers.docker;
    let found = docker.ensure_image(&container.image, container.pull, |_| {});
    let within = timeout.unwrap_or(std::time::Duration::MAX);
    let found = tokio::select! {
        () = stop.asked() => return Err(Error::Unknown("it is to be stopped".to_owned())),
        found = tokio::time::timeout(within, found) => found,
    };
    let digest = match found {
        Ok(Ok(digest)) => digest,
        Ok(Err(error)) => return Err(Error::Unknown(error.to_string())),
        Err(_) => return Err(Error::Unknown(format!("image `{}` was not there in time", container.image))),
    };
    parts.add(Part::Image, digest.as_bytes());
    Ok(())
}

/// What other steps left for it.
async fn given(setting: &Setting, claim: &Claim, scope: &Scope, parts: &mut Parts) -> Result<(), Error> {
    let inputs = claim.head.plan.step(claim.at.position).inputs(scope).map_err(Error::Expression)?;
    if inputs.is_empty() {
        return Ok(());
    }
    let left = setting.store.artifacts(claim.head.run).await;
    for view in left.map_err(|error| Error::Unknown(error.to_string()))? {
        // Those of items are given under the name of their step.
        let (_, item) = parse_name(&view.step);
        if inputs.iter().any(|input| is_input(input, &view.step)) {
            let artifact = view.artifact;
            let hash = marked(&artifact.hash, artifact.is_executable);
            let name = match item {
                None => artifact.name.to_string(),
                Some(_) => format!("{}/{}", view.step, artifact.name),
            };
            parts.add_hash(Part::File(name), hash);
        }
    }
    Ok(())
}

/// Each file that is like a pattern, or each pattern where there are many.
fn files(dir: &Path, patterns: &[ArtifactPattern]) -> Result<Vec<(Part, ContentHash)>, String> {
    let found = artifacts::find(dir, patterns, MAX_FILES).map_err(|error| error.of_cache())?;
    let mut hashed = Vec::with_capacity(found.len());
    for file in &found {
        let hash = content(&file.path).map_err(|error| format!("{}: {error}", file.path.display()))?;
        hashed.push((file, marked(&hash, file.is_executable)));
    }
    if hashed.len() <= MAX_FILE_PARTS {
        return Ok(hashed
            .into_iter()
            .map(|(file, hash)| (Part::File(file.name.to_string()), hash))
            .collect());
    }
    Ok(patterns
        .iter()
        .map(|pattern| (Part::Files(pattern.to_string()), together(pattern, &hashed)))
        .collect())
}

fn together(pattern: &ArtifactPattern, files: &[(&Found, ContentHash)]) -> ContentHash {
    let mut hasher = Hasher::new();
    for (file, hash) in files.iter().filter(|(file, _)| pattern.matches(&file.name)) {
        hasher.update(file.name.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(hash.as_str().as_bytes());
    }
    hasher.finish()
}

fn content(path: &Path) -> io::Result<ContentHash> {
    let (mut file, mut hasher) = (fs::File::open(path)?, Hasher::new());
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// A file that may be executed is another one.
fn marked(hash: &ContentHash, is_executable: bool) -> ContentHash {
    ContentHash::of(format!("{hash} {is_executable}").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn looked(dir: &Path, patterns: &[&str]) -> Result<BTreeMap<Part, ContentHash>, String> {
        let patterns: Vec<_> =
            patterns.iter().map(|text| ArtifactPattern::parse(text).expect(text)).collect();
        Ok(files(dir, &patterns)?.into_iter().collect())
    }

    #[test]
    fn content_name_and_mode_of_a_file_belong_to_a_key() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("a.txt");
        fs::write(&path, "one").expect("written");
        let one = looked(dir.path(), &["*.txt"]).expect("found");
        assert_eq!(one.keys().collect::<Vec<_>>(), [&Part::File("a.txt".to_owned())]);
        fs::write(&path, "two").expect("written");
        let two = looked(dir.path(), &["*.txt"]).expect("found");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        let run = looked(dir.path(), &["*.txt"]).expect("found");
        assert!(one != two && two != run && one != run);
        let none = looked(dir.path(), &["*.md"]).expect_err("none");
        assert_eq!(none, "no file is like `*.md` of `cache.files`");
    }

    #[test]
    fn of_many_files_each_pattern_is_a_part() {
        let dir = tempfile::tempdir().expect("dir");
        fs::create_dir_all(dir.path().join("src")).expect("made");
        fs::write(dir.path().join("Makefile"), "all:").expect("written");
        for number in 0..=MAX_FILE_PARTS {
            fs::write(dir.path().join(format!("src/{number}")), "x").expect("written");
        }
        let before = looked(dir.path(), &["src/**", "Makefile"]).expect("found");
        fs::write(dir.path().join("src/7"), "y").expect("written");
        let after = looked(dir.path(), &["src/**", "Makefile"]).expect("found");
        let part = |name: &str| Part::Files(name.to_owned());
        assert_eq!(before.len(), 2);
        assert_ne!(before[&part("src/**")], after[&part("src/**")]);
        assert_eq!(before[&part("Makefile")], after[&part("Makefile")]);
    }

    #[test]
    fn no_value_of_a_secret_gets_into_a_key() {
        let mut scope = Scope::new();
        scope.insert("secrets".into(), json!({ "token": "hunter2" }));
        let template = Template::parse("Bearer ${{ secrets.token }}").expect("a template");
        let text = template.render(&without_secrets(&scope)).expect("rendered");
        assert_eq!(text, "Bearer ${{ secrets.token }}");
    }
}
