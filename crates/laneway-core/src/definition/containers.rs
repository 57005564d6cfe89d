//! The keys of containers: `image` and `container` of a step, and the settings that pools have as well. Owns their form,
//! and that what they name exists: that is checked when all of the document is known.

use std::num::NonZeroU32;
use std::path::{Component, Path};

use super::finding::{Finding, Findings, Span, shown};
use super::housing::{ATTEMPT_DIR, Container, Housing, Mount, Pull, SECRETS_DIR, WORKSPACE};
use super::keys;
use super::model::Workflow;
use super::read::does_not_belong;
use super::reader::{Field, Reader};
use crate::nearest::nearest;

const IMAGE: &str = "the name of an image, such as busybox:1";
const MOUNT: &str = "a mount such as ./data:/data or ./data:/data:ro";
const MEMORY: &str = "an amount of memory such as 512m or 2g";
const USER: &str = "a user such as 1000, 1000:1000 or nobody";
const NETWORK: &str = "the name of a network, such as none";
const CPUS: &str = "a number of processors from 0.01 to 1024, such as 0.5";

/// The least with which Docker starts a container.
const LEAST_MEMORY: u64 = 6 << 20;

/// A name that stands for something declared elsewhere in the document.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) kind: NamedKind,
    pub(super) name: String,
    pub(super) span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedKind {
    Pool,
    /// One that has to serve something.
    PoolToCall,
    Secret,
}

/// The keys of a step that say where it runs.
#[derive(Debug, Default)]
pub(super) struct Housed<'t> {
    pub(super) image: Option<Field<'t>>,
    pub(super) container: Option<Field<'t>>,
    pub(super) pool: Option<Field<'t>>,
    pub(super) call: Option<Field<'t>>,
}

impl Housed<'_> {
    /// `elsewhere` is what already says that it is executed by others.
    pub(super) fn read(&self, reader: &mut Reader<'_>, elsewhere: Option<Field<'_>>) -> Option<Box<Housing>> {
        let Self { image, container, pool, call } = *self;
        if elsewhere.is_some() {
            let advice =
                "a container is for `run` and `command`; functions and queues are executed by others";
            for field in [image, container, pool].into_iter().flatten() {
                does_not_belong(reader, field, advice);
            }
            return None;
        }
        if let (Some(field), None) = (call, pool) {
            does_not_belong(reader, field, "it asks a container of a pool: name that by `pool`");
        }
        if let (Some(image), Some(pool)) = (image, pool) {
            let (first, second) = (reader.tree.node(image.key).span, reader.tree.node(pool.key).span);
            reader.findings.push(
                Finding::new("a step has either an `image` or a `pool`", first.max(second))
                    .note("the other one", first.min(second))
                    .hint("keep `image` for a container of its own, or `pool` for a warm one"),
            );
        }
        let settings = container.map(|field| reader.container(field));
        if let (Some(field), None) = (container, image) {
            let advice = match pool {
                Some(_) => "a pool has these settings itself",
                None => "it refines a container of the step's own: name its `image`",
            };
            does_not_belong(reader, field, advice);
        }
        match (image, pool) {
            (Some(image), _) => {
                let image = reader.image(image)?;
                Some(Box::new(Housing::Own(Container { image, ..settings.unwrap_or_default() })))
            }
            (None, Some(pool)) => {
                reader.pool_name(pool, call.is_some()).map(|name| Box::new(Housing::Pool(name)))
            }
            (None, None) => None,
        }
    }
}

impl Reader<'_> {
    pub(super) fn image(&mut self, field: Field<'_>) -> Option<String> {
        let image = self.string(field, IMAGE)?;
        if !self.literal(field, image, "an image is fixed: a value must not choose what is executed") {
            return None;
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte);
        let is_name = (1..=400).contains(&image.len())
            && image.bytes().all(allowed)
            && image.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !is_name {
            let finding = self.wrong(field, IMAGE);
            self.findings.push(finding);
            return None;
        }
        Some(image.to_owned())
    }

    /// The `container` of a step.
    pub(super) fn container(&mut self, field: Field<'_>) -> Container {
        let must_be = "a mapping such as {memory: 512m, network: none}";
        let mut container = Container::default();
        for field in self.fields(field, &keys::CONTAINER, must_be).unwrap_or_default() {
            self.setting(field, &mut container);
        }
        container
    }

    /// A key that `container` and a pool have both; anything else is left alone.
    pub(super) fn setting(&mut self, field: Field<'_>, container: &mut Container) {
        match field.name {
            "mounts" => container.mounts = self.mounts(field),
            "user" => {
                let part = |part: &str| {
                    !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
                };
                container.user = self.fixed_word(field, USER, |text| match text.split_once(':') {
                    Some((user, group)) => part(user) && part(group),
                    None => part(text),
                });
            }
            "network" => {
                container.network = self.fixed_word(field, NETWORK, |text| {
                    text.starts_with(|first: char| first.is_ascii_alphanumeric())
                        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
                });
            }
            "cpus" => container.cpus_milli = self.cpus(field),
            "memory" => container.memory = self.memory(field),
            "pids" => container.pids = self.at_least_one(field),
            "read_only" => container.is_read_only = self.boolean(field).unwrap_or_default(),
            "pull" => {
                let choices: Vec<_> = Pull::ALL.iter().map(|pull| (pull.as_str(), *pull)).collect();
                container.pull = self.choice(field, &choices).unwrap_or_default();
            }
            "secrets" => container.secrets = self.secret_names(field),
            _ => {}
        }
    }

    fn fixed_word(
        &mut self,
        field: Field<'_>,
        must_be: &str,
        is_fine: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let text = self.word(field, must_be)?;
        if !self.literal(field, text, "it is fixed; leave the expression out") {
            return None;
        }
        if !is_fine(text) {
            let finding = self.wrong(field, must_be);
            self.findings.push(finding);
            return None;
        }
        Some(text.to_owned())
    }

    fn cpus(&mut self, field: Field<'_>) -> Option<NonZeroU32> {
        let number = self.number(field, CPUS)?.as_f64();
        let milli = number.filter(|number| (0.01..=1024.0).contains(number));
        let milli = milli.and_then(|number| NonZeroU32::new((number * 1000.0).round() as u32));
        if milli.is_none() {
            let finding = self.wrong(field, CPUS);
            self.findings.push(finding);
        }
        milli
    }

    fn memory(&mut self, field: Field<'_>) -> Option<u64> {
        let text = self.word(field, MEMORY)?;
        match parse_memory(text) {
            Ok(bytes) => Some(bytes),
            Err(hint) => {
                let finding = self.wrong(field, MEMORY).maybe_hint(hint);
                self.findings.push(finding);
                None
            }
        }
    }

    fn mounts(&mut self, field: Field<'_>) -> Vec<Mount> {
        let mut mounts: Vec<Mount> = Vec::new();
        for item in self.list(field, "a list of mounts such as [./data:/data:ro]").unwrap_or_default() {
            let Some(text) = self.string(item, MOUNT) else { continue };
            if !self.literal(item, text, "a mount is fixed: a value must not choose what is seen inside") {
                continue;
            }
            let refused = match parse_mount(text) {
                Ok(mount) if mounts.iter().any(|other| other.target == mount.target) => {
                    Err(format!("something is mounted at {} already", shown(&mount.target)))
                }
                read => read,
            };
            match refused {
                Ok(mount) => mounts.push(mount),
                Err(why) => {
                    let finding = self.wrong(item, MOUNT).hint(why);
                    self.findings.push(finding);
                }
            }
        }
        mounts
    }

    fn secret_names(&mut self, field: Field<'_>) -> Vec<String> {
        let must_be = "a list of names of secrets, such as [db]";
        let mut names: Vec<String> = Vec::new();
        for item in self.list(field, must_be).unwrap_or_default() {
            let Some(name) = self.string(item, must_be) else { continue };
            if !self.literal(item, name, "a secret is named: write its name alone") {
                continue;
            }
            let span = self.place(item);
            self.named.push(Named { kind: NamedKind::Secret, name: name.to_owned(), span });
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// Whether all that containers name exists.
pub(super) fn check(workflow: &Workflow, named: Vec<Named>, findings: &mut Findings) {
    for Named { kind, name, span } in named {
        let wrong = |message: String, hint: String| Finding::new(message, span).hint(hint);
        let pools = || workflow.pools.iter().map(|pool| pool.name.as_str());
        let secrets = || workflow.secrets.iter().map(|(name, _)| name.as_str());
        let pool = workflow.pools.iter().find(|pool| pool.name == name);
        let near = |near: Option<&str>, otherwise: String| match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => otherwise,
        };
        match (kind, pool) {
            (NamedKind::Secret, _) if secrets().any(|known| known == name) => {}
            (NamedKind::Secret, _) => findings.push(wrong(
                format!("there is no secret {}", shown(&name)),
                near(
                    nearest(&name, secrets()),
                    format!("say where it comes from: `secrets: {{{name}: {{env: VARIABLE}}}}`"),
                ),
            )),
            (NamedKind::Pool | NamedKind::PoolToCall, None) => findings.push(wrong(
                format!("there is no pool {}", shown(&name)),
                near(
                    nearest(&name, pools()),
                    format!("declare it: `pools: {{{name}: {{image: \"busybox:1\"}}}}`"),
                ),
            )),
            (NamedKind::PoolToCall, Some(pool)) if pool.endpoint.is_none() => findings.push(wrong(
                format!("the pool `{name}` serves nothing that could be called"),
                format!("say where it listens: `pools: {{{name}: {{endpoint: {{port: 8080}}}}}}`"),
            )),
            (NamedKind::Pool | NamedKind::PoolToCall, Some(_)) => {}
        }
    }
}

/// The error is advice, where there is some.
fn parse_memory(text: &str) -> Result<u64, Option<String>> {
    const UNITS: [(char, u64); 4] = [('b', 1), ('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)];
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Some(format!("add a unit: `{text}m` is {text} MiB, `{text}g` GiB")));
    }
    let lower = text.to_ascii_lowercase();
    let unit = UNITS.iter().find(|(unit, _)| lower.ends_with(*unit));
    let (unit, factor) = unit.ok_or_else(|| Some("the units are b, k, m and g".to_owned()))?;
    let digits = lower.strip_suffix(*unit).unwrap_or(&lower);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(digits
            .contains('.')
            .then(|| "use a smaller unit instead of a fraction: `1536m`".to_owned()));
    }
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
    match bytes.filter(|bytes| i64::try_from(*bytes).is_ok()) {
        Some(bytes) if bytes >= LEAST_MEMORY => Ok(bytes),
        Some(_) => Err(Some("a container does not start with less than 6m".to_owned())),
        None => Err(Some("it is more than any machine has".to_owned())),
    }
}

/// `SOURCE:TARGET[:ro|rw]`. The error is advice.
fn parse_mount(text: &str) -> Result<Mount, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, is_read_only) = match parts[..] {
        [source, target] | [source, target, "rw"] => (source, target, false),
        [source, target, "ro"] => (source, target, true),
        _ => return Err("write SOURCE:TARGET, with `:ro` behind it for what is only read".to_owned()),
    };
    let has_up = |path: &str| Path::new(path).components().any(|part| part == Component::ParentDir);
    if has_up(source) {
        return Err("`..` leads out of the run's directory: give an absolute path".to_owned());
    }
    if !(source.starts_with('/') || source == "." || source.starts_with("./")) {
        return Err(format!(
            "write `./{source}` for what lies in the run's directory, or an absolute path; volumes by name are not mounted"
        ));
    }
    if leads_to_engine(Path::new(source)) {
        return Err("the socket of the container engine is never mounted: who has it has the host".to_owned());
    }
    if !target.starts_with('/') || has_up(target) {
        return Err("the path inside is absolute, without `..`".to_owned());
    }
    let target = Path::new(target).components().collect::<std::path::PathBuf>();
    let taken = |dir: &str| target.starts_with(dir);
    if target == Path::new("/") || target == Path::new(WORKSPACE) || taken(ATTEMPT_DIR) || taken(SECRETS_DIR)
    {
        return Err(format!("{} is Laneway's own inside; choose another path", target.display()));
    }
    Ok(Mount { source: source.to_owned(), target: target.to_string_lossy().into_owned(), is_read_only })
}

/// Whether this path, by its name alone, is a container engine's socket or a directory in which one usually lies. What a
/// link leads to is looked at again where it is mounted.
pub fn leads_to_engine(path: &Path) -> bool {
    const SOCKETS: [&str; 4] = ["docker.sock", "podman.sock", "containerd.sock", "crio.sock"];
    const DIRS: [&str; 9] = [
        "/",
        "/run",
        "/var",
        "/var/run",
        "/run/podman",
        "/run/containerd",
        "/var/run/podman",
        "/var/run/containerd",
        "/run/crio",
    ];
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let plain: std::path::PathBuf = path.components().collect();
    SOCKETS.contains(&name) || DIRS.iter().any(|dir| plain == Path::new(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_unit_and_is_enough_to_start_with() {
        for (text, bytes) in [("512m", 512 << 20), ("2G", 2 << 30), ("6144k", 6 << 20), ("8388608b", 8 << 20)]
        {
            assert_eq!(parse_memory(text), Ok(bytes), "{text}");
        }
        for text in ["", "512", "m", "1.5g", "5m", "512mb", "x12m", "99999999999999999g", "-6m"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mounts_stay_in_the_runs_directory_unless_they_are_absolute_and_never_reach_the_engine() {
        let mount = |source: &str, target: &str, is_read_only| Mount {
            source: source.into(),
            target: target.into(),
            is_read_only,
        };
        assert_eq!(parse_mount("./data:/data"), Ok(mount("./data", "/data", false)));
        assert_eq!(parse_mount(".:/src/:ro"), Ok(mount(".", "/src", true)));
        assert_eq!(parse_mount("/srv/x:/x:rw"), Ok(mount("/srv/x", "/x", false)));
        for text in [
            "data:/data",
            "./data",
            "./data:data",
            "./data:/data:rx",
            "./a/../../b:/b",
            "../x:/x",
            "./x:/a/../run",
            "./x:/",
            "./x:/workspace",
            "./x:/workspace/",
            "./x:/run/laneway/y",
            "./x:/run/secrets",
            "/var/run/docker.sock:/s",
            "./docker.sock:/s",
            "/run/podman/podman.sock:/s:ro",
            "/run/:/r",
            "/:/host:ro",
        ] {
            assert!(parse_mount(text).is_err(), "{text}");
        }
    }
}
