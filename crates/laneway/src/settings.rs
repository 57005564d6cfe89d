//! Every setting, one entry each: its name in `laneway.toml`, its variable, its default and what it means. From here come
//! the flags' texts and defaults, `laneway settings`, the reference and what a worker tells when it starts.
//!
//! A flag wins over the environment, that over `laneway.toml`, that over the default. What a document says of its own
//! workflow (`max_parallel`) wins over all but the flag: it is the deployment's default that stands here.

mod file;

use std::num::NonZeroU32;
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use laneway_core::definition::{DocumentDefaults, MAX_RETRIES, OnFailure};
use laneway_engine::container::{Containers, Docker};
use laneway_server::callback::Reach;
use laneway_store::cache::KeepResults;
use laneway_store::model::Lease;
use laneway_store::prune::{Keep, KeepRecords};

pub(crate) use file::File;

use crate::drive::duration;
use crate::env;
use crate::exit::Refusal;

/// One thing that a deployment may set.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) env: &'static str,
    /// As it would be written; empty for none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number of at least 1.
    Count,
    Duration,
    /// A number of bytes, with its unit.
    Bytes,
    Text,
    /// Several, in a list.
    Names,
    /// Several, each with a value.
    Labels,
    /// Yes or no.
    Switch,
}

macro_rules! settings {
    ($($(#[$meta:meta])* $constant:ident = $name:literal, $env:literal, $kind:ident, $default:literal, $about:literal;)+) => {
        $($(#[$meta])* pub(crate) const $constant: Setting =
            Setting { name: $name, env: $env, default: $default, about: $about, kind: Kind::$kind };)+

        /// In the order in which they are listed.
        pub(crate) const ALL: &[&Setting] = &[$(&$constant,)+];
    };
}

settings! {
    STORE = "store", "LANEWAY_STORE", Text, ".laneway/laneway.db",
        "The store: a file, or a URL";
    DATA_DIR = "data_dir", "LANEWAY_DATA_DIR", Text, ".laneway",
        "Where a node keeps logs, scratch files and workspaces of a store that is no file; those of `laneway.db` are beside it, and those of any other file in `NAME.d`";
    SERVER = "server", "LANEWAY_SERVER", Text, "",
        "A server to ask instead of opening the store, such as http://127.0.0.1:7878; its token is LANEWAY_TOKEN, or the admin token of this host";
    MAX_PARALLEL = "max_parallel", "LANEWAY_MAX_PARALLEL", Count, "4",
        "How many tasks of a run may run at once, where neither a flag nor the document says so";
    ON_FAILURE = "on_failure", "LANEWAY_ON_FAILURE", Text, "",
        "What a failed step does to the rest of its run (halt, abort or continue), where the document does not say so; none is halt";
    STEP_TIMEOUT = "step_timeout", "LANEWAY_STEP_TIMEOUT", Duration, "",
        "How long an attempt of a step may take, where the document does not say so; none is no limit";
    STEP_RETRY = "step_retry", "LANEWAY_STEP_RETRY", Count, "",
        "How many attempts may follow a failed one, where the document does not say so; none is none";
    SLOTS = "slots", "LANEWAY_SLOTS", Count, "4",
        "How many tasks a worker runs at once";
    LABELS = "labels", "LANEWAY_LABELS", Labels, "",
        "Labels of a worker that steps may ask for with `runs_on`";
    NODE_ADDRESS = "node_address", "LANEWAY_NODE_ADDRESS", Text, "",
        "The name of a worker on screens; none is host name and pid";
    PASS_ENV = "pass_env", "LANEWAY_PASS_ENV", Names, "",
        "Variables of a worker that its steps see, beside PATH, HOME, LANG, TZ and TMPDIR";
    KILL_GRACE = "kill_grace", "LANEWAY_KILL_GRACE", Duration, "5s",
        "How long a step may take to end after it was asked to, before it is killed";
    SHUTDOWN_GRACE = "shutdown_grace", "LANEWAY_SHUTDOWN_GRACE", Duration, "10s",
        "How long what runs may go on after a worker was told to stop";
    LEASE_TTL = "lease_ttl", "LANEWAY_LEASE_TTL", Duration, "60s",
        "After how long without a sign of life a node is taken for frozen, or one of another host for dead";
    HEARTBEAT_INTERVAL = "heartbeat_interval", "LANEWAY_HEARTBEAT_INTERVAL", Duration, "5s",
        "How often a node gives that sign; at most a third of lease_ttl, to which the default is lowered";
    MAX_LOST = "max_lost", "LANEWAY_MAX_LOST", Count, "3",
        "How often a task may be lost with its node before it fails";
    MAX_POLL_INTERVAL = "max_poll_interval", "LANEWAY_MAX_POLL_INTERVAL", Duration, "15s",
        "How rarely an idle node looks for work by itself; never more rarely than 1s where it is not woken by others";
    EXIT_WITH_PARENT = "exit_with_parent", "LANEWAY_EXIT_WITH_PARENT", Switch, "false",
        "Whether a worker stops when the process that started it dies, as under a supervisor or in a test";
    WORKSPACE_MAX_BYTES = "workspace_max_bytes", "LANEWAY_WORKSPACE_MAX_BYTES", Bytes, "256MiB",
        "How much a step of a submitted run may see and leave together for its files to follow the run; above that the run is bound to the node of that step";
    LISTEN = "listen", "LANEWAY_LISTEN", Text, "127.0.0.1:7878",
        "Where `laneway serve` listens; beyond this host only with a certificate or behind a proxy";
    WORKER_ENABLED = "worker_enabled", "LANEWAY_WORKER_ENABLED", Switch, "true",
        "Whether `laneway serve` takes work as well";
    BEHIND_PROXY = "behind_proxy", "LANEWAY_BEHIND_PROXY", Switch, "false",
        "Whether something in front of `laneway serve` encrypts the line, so that it may listen without a certificate";
    ALLOWED_HOSTS = "allowed_hosts", "LANEWAY_ALLOWED_HOSTS", Names, "",
        "Names by which `laneway serve` may be asked, beside localhost and the address it listens at";
    DOCKER_HOST = "docker_host", "LANEWAY_DOCKER_HOST", Text, "unix:///var/run/docker.sock",
        "Where the container engine is, Docker's or Podman's, for steps with `image`; DOCKER_HOST is taken where nothing else says so";
    ALLOW_MOUNTS = "allow_mounts", "LANEWAY_ALLOW_MOUNTS", Names, "",
        "Directories of a worker's host that containers may mount, beside the directory of their run; none is none";
    PORTS = "ports", "LANEWAY_PORTS", Text, "49200-49300",
        "Ports of this host, the first and the last, for the endpoints of warm containers; tasks wait while none is free";
    START_CONCURRENCY = "start_concurrency", "LANEWAY_START_CONCURRENCY", Count, "10",
        "How many warm containers a node starts at once";
    CALLBACK_HOSTS = "callback_hosts", "LANEWAY_CALLBACK_HOSTS", Names, "",
        "Hosts and networks that callbacks may reach although they are not on the public network, such as 10.0.0.0/8";
    TLS_CERT = "tls_cert", "LANEWAY_TLS_CERT", Text, "",
        "The certificate of `laneway serve`, with those that vouch for it: a file in PEM";
    TLS_KEY = "tls_key", "LANEWAY_TLS_KEY", Text, "",
        "The key of that certificate: a file in PEM";
    KEEP_RUNS_FOR = "keep_runs_for", "LANEWAY_KEEP_RUNS_FOR", Duration, "",
        "How long runs are kept after their end; none is for ever";
    KEEP_RUNS = "keep_runs", "LANEWAY_KEEP_RUNS", Count, "",
        "How many runs of each workflow are kept, the newest; none is all";
    KEEP_BYTES = "keep_bytes", "LANEWAY_KEEP_BYTES", Bytes, "",
        "How much runs that are over may take up, such as 20GiB, before the oldest go; none is any";
    KEEP_CACHE_FOR = "keep_cache_for", "LANEWAY_KEEP_CACHE_FOR", Duration, "30d",
        "How long results of steps with `cache` are kept after they were recorded or last taken";
    KEEP_CACHE_BYTES = "keep_cache_bytes", "LANEWAY_KEEP_CACHE_BYTES", Bytes, "10GiB",
        "How much those results may take up, with their files, before those that were used longest ago go";
    KEEP_AUDIT_FOR = "keep_audit_for", "LANEWAY_KEEP_AUDIT_FOR", Duration, "400d",
        "How long entries of the audit log are kept; 0s is for ever";
    KEEP_NODE_EVENTS_FOR = "keep_node_events_for", "LANEWAY_KEEP_NODE_EVENTS_FOR", Duration, "90d",
        "How long it is known what nodes told of themselves; 0s is for ever";
    PRUNE_INTERVAL = "prune_interval", "LANEWAY_PRUNE_INTERVAL", Duration, "10m",
        "How often a node looks for what is kept no longer, about";
}

/// Where a value comes from, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Flag,
    Environment,
    File,
    Default,
}

impl Source {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "laneway.toml",
            Self::Default => "default",
        }
    }
}

/// Every setting as it is in effect.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// In the order of `ALL`: what is set, and by whom; nothing for what has no default.
    values: Vec<(Option<String>, Source)>,
}

impl Settings {
    /// `matches` are those of the command that was typed; it has flags for some of them.
    pub(crate) fn of(matches: &ArgMatches, file: &File) -> Self {
        let typed: Vec<&ArgMatches> =
            std::iter::successors(Some(matches), |m| Some(m.subcommand()?.1)).collect();
        let value = |setting: &&Setting| {
            let flag = typed.iter().rev().find(|m| m.try_contains_id(setting.name).unwrap_or(false));
            if let Some(flag) = flag
                && let Some(source @ (ValueSource::CommandLine | ValueSource::EnvVariable)) =
                    flag.value_source(setting.name)
            {
                let values = flag.get_raw(setting.name).into_iter().flatten();
                let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
                let is_typed = source == ValueSource::CommandLine;
                return (Some(values.join(",")), if is_typed { Source::Flag } else { Source::Environment });
            }
            if let Some(value) = std::env::var(setting.env).ok().filter(|value| !value.is_empty()) {
                return (Some(value), Source::Environment);
            }
            match file.get(setting) {
                Some(values) => (Some(values.join(",")), Source::File),
                None => {
                    let default = (!setting.default.is_empty()).then(|| setting.default.to_owned());
                    (default, Source::Default)
                }
            }
        };
        let mut all = Self { values: ALL.iter().map(value).collect() };
        all.derive_heartbeat();
        all.find_container_engine();
        all
    }

    /// Replaces the default of `docker_host` by the address that is used: DOCKER_HOST, or Podman
    /// where only that is there.
    fn find_container_engine(&mut self) {
        let at = ALL.iter().position(|known| known.name == DOCKER_HOST.name);
        if let Some((value, source @ Source::Default)) = at.and_then(|at| self.values.get_mut(at)) {
            let (host, is_environment) = env::docker_host(DOCKER_HOST.default);
            *value = Some(host);
            *source = if is_environment { Source::Environment } else { Source::Default };
        }
    }

    /// Whoever lowers `lease_ttl` alone means a shorter lease, and no riddle about signs of life.
    fn derive_heartbeat(&mut self) {
        let is_default = self.get(&HEARTBEAT_INTERVAL).is_some_and(|(_, source)| source == Source::Default);
        let (Ok(ttl), Ok(every)) = (self.duration(&LEASE_TTL), self.duration(&HEARTBEAT_INTERVAL)) else {
            return;
        };
        let third = ttl / 3;
        let at = ALL.iter().position(|known| known.name == HEARTBEAT_INTERVAL.name);
        if let Some(at) = at.filter(|_| is_default && third < every && third.as_millis() > 0) {
            self.values[at].0 = Some(format!("{}ms", third.as_millis()));
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static Setting, Option<String>, Source)> {
        ALL.iter().zip(&self.values).map(|(setting, (value, source))| {
            // The address of a store may hold a password.
            let value = value.as_deref().map(|value| {
                if setting.name == STORE.name { laneway_store::shown(value) } else { value.to_owned() }
            });
            (*setting, value, *source)
        })
    }

    pub(crate) fn get(&self, setting: &Setting) -> Option<(&str, Source)> {
        let at = ALL.iter().position(|known| known.name == setting.name)?;
        let (value, source) = self.values.get(at)?;
        Some((value.as_deref()?, *source))
    }

    /// Whether a flag of the command line gave it.
    pub(crate) fn is_typed(&self, setting: &Setting) -> bool {
        self.get(setting).is_some_and(|(_, source)| source == Source::Flag)
    }

    pub(crate) fn duration(&self, setting: &Setting) -> Result<Duration, Refusal> {
        self.read(setting, duration)
    }

    pub(crate) fn count(&self, setting: &Setting) -> Result<NonZeroU32, Refusal> {
        self.read(setting, count)
    }

    fn read<T>(
        &self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Refusal> {
        let (value, source) = self.get(setting).unwrap_or((setting.default, Source::Default));
        parse(value).map_err(|how| {
            let whose = match source {
                Source::Environment => setting.env.to_owned(),
                Source::Flag | Source::File | Source::Default => {
                    format!("the setting {} ({})", setting.name, source.as_str())
                }
            };
            Refusal::new(format!("{whose} is `{value}`")).hint(how)
        })
    }

    /// Where callbacks may go.
    pub(crate) fn reach(&self) -> Result<Reach, Refusal> {
        self.read(&CALLBACK_HOSTS, |value| Reach::new(value.split(',')))
    }

    /// What steps in containers are given.
    pub(crate) fn containers(&self) -> Result<Containers, Refusal> {
        let host = self.get(&DOCKER_HOST).map_or(DOCKER_HOST.default, |(host, _)| host);
        let allowed = self.get(&ALLOW_MOUNTS).map_or("", |(value, _)| value);
        Ok(Containers {
            docker: Docker::at(host),
            allow_mounts: allowed.split(',').filter(|dir| !dir.is_empty()).map(Into::into).collect(),
            ports: self.read(&PORTS, ports)?,
            start_concurrency: self.count(&START_CONCURRENCY)?.get() as usize,
        })
    }

    /// How much of the past is kept.
    pub(crate) fn keep(&self) -> Result<Keep, Refusal> {
        let is_set = |setting: &Setting| self.get(setting).is_some();
        Ok(Keep {
            for_: is_set(&KEEP_RUNS_FOR).then(|| self.read(&KEEP_RUNS_FOR, span)).transpose()?,
            runs: is_set(&KEEP_RUNS).then(|| self.count(&KEEP_RUNS)).transpose()?.map(NonZeroU32::get),
            bytes: is_set(&KEEP_BYTES).then(|| self.read(&KEEP_BYTES, bytes)).transpose()?,
        })
    }

    /// What documents that come in get where they are silent.
    pub(crate) fn document_defaults(&self) -> Result<DocumentDefaults, Refusal> {
        let is_set = |setting: &Setting| self.get(setting).is_some();
        let timeout = || {
            self.read(&STEP_TIMEOUT, span_of_step)?;
            Ok(self.get(&STEP_TIMEOUT).map(|(value, _)| value.to_owned()))
        };
        Ok(DocumentDefaults {
            on_failure: is_set(&ON_FAILURE).then(|| self.read(&ON_FAILURE, on_failure)).transpose()?,
            step_timeout: if is_set(&STEP_TIMEOUT) { timeout()? } else { None },
            step_retry: is_set(&STEP_RETRY).then(|| self.read(&STEP_RETRY, retries)).transpose()?,
        })
    }

    /// How much the layers of a view may have together to be stored.
    pub(crate) fn workspace_max_bytes(&self) -> Result<u64, Refusal> {
        self.read(&WORKSPACE_MAX_BYTES, bytes)
    }

    /// How many recorded results are kept.
    pub(crate) fn keep_results(&self) -> Result<KeepResults, Refusal> {
        Ok(KeepResults {
            for_: Some(self.read(&KEEP_CACHE_FOR, span)?),
            bytes: Some(self.read(&KEEP_CACHE_BYTES, bytes)?),
        })
    }

    /// How long it is known what people did and what nodes told.
    pub(crate) fn keep_records(&self) -> Result<KeepRecords, Refusal> {
        let kept = |setting: &Setting| Ok(Some(self.duration(setting)?).filter(|kept| !kept.is_zero()));
        Ok(KeepRecords { audit: kept(&KEEP_AUDIT_FOR)?, node_events: kept(&KEEP_NODE_EVENTS_FOR)? })
    }

    /// How sessions of this process are kept alive.
    pub(crate) fn lease(&self) -> Result<Lease, Refusal> {
        let (ttl, every) = (self.duration(&LEASE_TTL)?, self.duration(&HEARTBEAT_INTERVAL)?);
        if every.is_zero() || every * 3 > ttl {
            let message = format!("heartbeat_interval is {every:?} and lease_ttl {ttl:?}");
            return Err(Refusal::new(message)
                .hint("give at least three signs of life in a lease: heartbeat_interval at most a third of lease_ttl"));
        }
        Ok(Lease { ttl, every })
    }
}

fn on_failure(text: &str) -> Result<OnFailure, String> {
    let found = OnFailure::ALL.into_iter().find(|value| value.as_str() == text);
    found.ok_or_else(|| "use halt, abort or continue".to_owned())
}

fn span_of_step(text: &str) -> Result<Duration, String> {
    duration(text).ok().filter(|span| !span.is_zero()).ok_or_else(|| {
        "write how long an attempt may take, such as 30m or 2h; leave it out for no limit".to_owned()
    })
}

fn retries(text: &str) -> Result<u32, String> {
    let retries = count(text).ok().map(NonZeroU32::get).filter(|retries| *retries <= MAX_RETRIES);
    retries.ok_or_else(|| format!("use a whole number from 1 to {MAX_RETRIES}; leave it out for none"))
}

/// How long something is kept. None at all would be a slip.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    duration(text).ok().filter(|span| !span.is_zero()).ok_or_else(|| {
        "write how long runs are kept, such as 12h or 30d; leave it out to keep them for ever".to_owned()
    })
}

/// A number of bytes as it was written: `500MB`, `20GiB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let how = || "write a number with its unit, such as 500MB or 20GiB; leave it out to keep any".to_owned();
    let at = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(how)?;
    let (number, unit) = text.split_at(at);
    let factor: u64 = match unit.trim() {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(how()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(how)
}

/// `FIRST-LAST`, or a single one.
pub(crate) fn ports(text: &str) -> Result<std::ops::RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err("write the first and the last one, such as 49200-49300".to_owned()),
    }
}

/// A number as it was written.
pub(crate) fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("use a whole number from 1 to {}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(bytes("500MB"), Ok(500_000_000));
        assert_eq!(bytes("20 GiB"), Ok(20 << 30));
        for wrong in ["", "20", "0MB", "GiB", "20G", "-1MB", "99999999999TiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert!(span("0s").is_err() && span("30d").is_ok());
    }

    #[test]
    fn ports_are_a_range_or_one() {
        assert_eq!(ports("49200-49300"), Ok(49200..=49300));
        assert_eq!(ports("8080"), Ok(8080..=8080));
        for wrong in ["", "0", "10-", "20-10", "1-99999", "a-b"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }
}
