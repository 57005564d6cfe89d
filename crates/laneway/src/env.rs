//! Environment variables that the program itself reads and that are no settings (those are in `settings.rs`), with their
//! meaning. What steps get is the engine's matter.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use laneway_core::nearest::nearest;
use laneway_server::access::Secret;
use laneway_torture::Arms;

use crate::exit::Refusal;

/// `off` holds steps without cgroups, as where there are none.
const CGROUPS: &str = "LANEWAY_CGROUPS";

/// What the program tells of its own doing on stderr: `info`, `laneway_engine=debug`, … Default: `warn`.
const LOG: &str = "LANEWAY_LOG";

/// The token to ask a server with; without it the admin token of the data directory is taken, if it can be read.
const TOKEN: &str = "LANEWAY_TOKEN";

/// Any value but the empty one turns colours off.
const NO_COLOR: &str = "NO_COLOR";

/// `dumb` is a terminal that understands neither colours nor moving lines.
const TERM: &str = "TERM";

/// Which characters the terminal understands, the strongest first.
const LOCALE: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Who a run is submitted, canceled or retried by.
const USER: &str = "USER";

/// Where every other program looks for the container engine, too.
const DOCKER_HOST: &str = "DOCKER_HOST";

/// Where a person's own Podman has its socket, below it.
const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// Inside of a step: where `laneway effect` asks the node (docs/design/effects.md).
const EFFECT_SOCKET: &str = laneway_engine::effect::SOCKET;

/// Inside of a step: what it asks for there, which names the attempt.
const EFFECT_URL: &str = laneway_engine::effect::URL;

/// Inside of an effect: one word for it, the same in every attempt.
pub(crate) const EFFECT_ID: &str = "LANEWAY_EFFECT_ID";

/// Fencing token of a step with a lock.
pub(crate) const FENCE: &str = "LANEWAY_FENCE";

/// Inside of an effect: it, and those around it, so that none waits for itself.
pub(crate) const EFFECTS_AROUND: &str = "LANEWAY_EFFECTS_AROUND";

/// Inside of a step: the file by which it hands something on.
pub(crate) const OUTPUT: &str = "LANEWAY_OUTPUT";

/// Variables that the program knows, beside settings and those above: what steps are given, what other programs of Laneway read,
/// and what a step's own `laneway` inherits.
const OTHERS: &[&str] = &[
    "LANEWAY_CONFIG",
    "LANEWAY_SECRET_KEY",
    "LANEWAY_URL",
    "LANEWAY_RUN",
    "LANEWAY_WORKFLOW",
    "LANEWAY_TASK",
    "LANEWAY_ATTEMPT",
    "LANEWAY_MARK",
    "LANEWAY_EXEC",
    "LANEWAY_PANIC",
];

/// Families of variables: of hooks and of tests.
const FAMILIES: &[&str] = &["LANEWAY_ENDED_", "LANEWAY_TEST_"];

/// Variables of this environment that look like settings and are none, each with the nearest name: a slip of the finger
/// would else change nothing, without a word.
pub(crate) fn unknown<'a>(
    given: impl IntoIterator<Item = &'a str>,
    settings: &[&'static str],
) -> Vec<(&'a str, Option<&'static str>)> {
    let own = [CGROUPS, LOG, TOKEN, EFFECT_SOCKET, EFFECT_URL, EFFECT_ID, FENCE, EFFECTS_AROUND, OUTPUT];
    // The names of the hooks are no part of a program without hooks.
    let hooks: &[&str] = if laneway_torture::ARMED { &[CRASH, BUG, ECHO, PASSED] } else { &[] };
    let known = || settings.iter().chain(&own).chain(hooks).chain(OTHERS).copied();
    let is_unknown = |name: &&str| {
        name.starts_with("LANEWAY_")
            && !FAMILIES.iter().any(|family| name.starts_with(family))
            && !known().any(|known| known == *name)
    };
    given.into_iter().filter(is_unknown).map(|name| (name, nearest_of(name, known()))).collect()
}

fn nearest_of(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let known: Vec<&'static str> = known.collect();
    let found = nearest(name, known.iter().copied())?;
    known.into_iter().find(|known| *known == found)
}

/// What steps see of a worker's own environment; `--pass-env` adds to it.
const PASSED_TO_STEPS: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

/// The variables that steps of a worker see, with those that a deployment adds.
pub(crate) fn passed_to_steps<'a>(more: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    PASSED_TO_STEPS.into_iter().chain(more).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Only in a test build (docs/design/torture.md). `POINT:N`: die at the N-th passing of a point.
const CRASH: &str = "LANEWAY_CRASH";

/// Only in a test build. The seeded bug to have.
const BUG: &str = "LANEWAY_BUG";

/// Only in a test build. `N:MS`: say the N-th finish a second time, so many milliseconds later.
const ECHO: &str = "LANEWAY_ECHO";

/// Only in a test build. A file that is told of every point that is passed.
const PASSED: &str = "LANEWAY_PASSED";

/// Only in a build with assertions, as the tests have it: any value lets `laneway top` panic with the next key, so that a test
/// sees what becomes of the terminal.
#[cfg(debug_assertions)]
const PANIC: &str = "LANEWAY_PANIC";

/// See [`PANIC`].
pub(crate) fn panic_if_told() {
    #[cfg(debug_assertions)]
    if std::env::var_os(PANIC).is_some() {
        panic!("told to panic");
    }
}

/// Tells the hooks of a test build what to do. There are none in any other.
pub(crate) fn arm_hooks() -> anyhow::Result<()> {
    if !laneway_torture::ARMED {
        return Ok(());
    }
    let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let arms =
        Arms { crash: text(CRASH), bug: text(BUG), echo: text(ECHO), passed: text(PASSED).map(Into::into) };
    laneway_torture::arm(&arms)
        .map_err(|error| Refusal::new(error.to_string()).hint("see docs/design/torture.md").into())
}

pub(crate) fn effect_socket() -> Option<PathBuf> {
    std::env::var_os(EFFECT_SOCKET).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The path of it: the host is the socket.
pub(crate) fn effect_path() -> String {
    let url = std::env::var(EFFECT_URL).unwrap_or_default();
    let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].to_owned()));
    path.unwrap_or_else(|| "/effects".to_owned())
}

/// The effects inside of which this process runs.
pub(crate) fn effects_around() -> String {
    std::env::var(EFFECTS_AROUND).unwrap_or_default()
}

pub(crate) fn output() -> Option<PathBuf> {
    std::env::var_os(OUTPUT).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns where the container engine is, if no setting says so, and whether DOCKER_HOST says it.
/// Without that it is Docker's usual place, or Podman's where that is the only one.
pub(crate) fn docker_host(usual: &str) -> (String, bool) {
    if let Some(host) = std::env::var(DOCKER_HOST).ok().filter(|host| !host.is_empty()) {
        return (host, true);
    }
    let exists = |path: &str| std::path::Path::new(path).exists();
    let own = std::env::var(XDG_RUNTIME_DIR).ok().map(|dir| format!("{dir}/podman/podman.sock"));
    let mut podmans = own.into_iter().chain(["/run/podman/podman.sock".to_owned()]);
    let host = match usual.strip_prefix("unix://") {
        Some(path) if !exists(path) => podmans
            .find(|path| exists(path))
            .map_or_else(|| usual.to_owned(), |path| format!("unix://{path}")),
        Some(_) | None => usual.to_owned(),
    };
    (host, false)
}

/// The token to ask a server with, as somebody gave it.
pub(crate) fn token() -> Result<Option<Secret>, Refusal> {
    let Some(given) = std::env::var(TOKEN).ok().filter(|given| !given.is_empty()) else { return Ok(None) };
    let bad = || Refusal::new(format!("{TOKEN} is no token")).hint("tokens begin with `laneway_`");
    Secret::parse(given.trim()).map(Some).ok_or_else(bad)
}

pub(crate) fn wants_color() -> bool {
    std::env::var_os(NO_COLOR).is_none_or(|value| value.is_empty())
}

pub(crate) fn is_dumb_terminal() -> bool {
    std::env::var_os(TERM).is_some_and(|term| term == "dumb")
}

/// Whether the terminal is told to read UTF-8: the first of these that is set says so, and none of them means no.
pub(crate) fn is_utf8() -> bool {
    let set = LOCALE.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

pub(crate) fn use_cgroups() -> Result<bool, Refusal> {
    match std::env::var(CGROUPS).as_deref() {
        Ok("off") => Ok(false),
        Ok("on" | "") | Err(_) => Ok(true),
        Ok(other) => {
            Err(Refusal::new(format!("{CGROUPS} is `{other}`")).hint("set it to on or off, or leave it out"))
        }
    }
}

/// The person at the keyboard, for the record.
pub(crate) fn person() -> String {
    match std::env::var(USER) {
        Ok(user) if !user.is_empty() => user,
        Ok(_) | Err(_) => format!("uid {}", rustix::process::getuid().as_raw()),
    }
}

/// The address of this process as a node: no listener, so host name and pid.
pub(crate) fn node() -> String {
    format!("{}:{}", host(), std::process::id())
}

/// The name of this host.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn init_tracing() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_env_var(LOG)
        .with_default_directive(tracing_subscriber::filter::LevelFilter::WARN.into())
        .from_env_lossy();
    let has_color = io::stderr().is_terminal() && wants_color() && !is_dumb_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(crate::print::diagnostics)
        .with_ansi(has_color)
        .with_target(false)
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_misspelt_is_told_with_the_nearest_name() {
        let given =
            ["PATH", "LANEWAY_SLOT", "LANEWAY_SLOTS", "LANEWAY_TOKEN", "LANEWAY_ENDED_RUN", "LANEWAY_QQQQQQ"];
        let told = unknown(given, &["LANEWAY_SLOTS", "LANEWAY_STORE"]);
        assert_eq!(told, [("LANEWAY_SLOT", Some("LANEWAY_SLOTS")), ("LANEWAY_QQQQQQ", None)]);
    }
}
