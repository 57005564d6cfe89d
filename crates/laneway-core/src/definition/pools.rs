//! The keys of warm containers: the workflow's `pools`, and `pool` and `call` of a step. Owns their form; the settings that
//! they share with a container of a step's own are read in `containers.rs`.

use std::time::Duration;

use super::containers::{Named, NamedKind};
use super::finding::Finding;
use super::housing::{Container, Endpoint, Method, Pool, PoolMode};
use super::input::Input;
use super::keys;
use super::model::Action;
use super::read::argv;
use super::reader::{Field, Reader, clipped};

const PATH: &str = "a path such as /resize";

impl Reader<'_> {
    /// The `pool` of a step.
    pub(super) fn pool_name(&mut self, field: Field<'_>, is_called: bool) -> Option<String> {
        let must_be = "the name of a pool";
        let name = self.string(field, must_be)?;
        if !self.literal(field, name, "a pool is named, not computed") {
            return None;
        }
        let kind = if is_called { NamedKind::PoolToCall } else { NamedKind::Pool };
        let span = self.place(field);
        self.named.push(Named { kind, name: name.to_owned(), span });
        Some(name.to_owned())
    }

    /// The `call` of a step.
    pub(super) fn call(&mut self, field: Field<'_>) -> Option<Action> {
        let must_be = "a mapping such as {path: /resize, body: {width: 5}}";
        let fields = self.fields(field, &keys::CALL, must_be)?;
        let (mut method, mut path, mut body) = (Method::default(), None, None);
        let (mut has_path, mut body_field) = (false, None);
        for field in fields {
            match field.name {
                "method" => {
                    let choices: Vec<_> = Method::ALL.iter().map(|word| (word.as_str(), *word)).collect();
                    method = self.choice(field, &choices).unwrap_or_default();
                }
                "path" => {
                    has_path = true;
                    path = self.path(field).and_then(|_| self.template(field));
                }
                "body" => {
                    body_field = Some(field);
                    body = self.input_value(field);
                }
                _ => {}
            }
        }
        if !has_path {
            let span = self.tree.node(field.key).span;
            self.missing("`call`".to_owned(), "path", span, "say what is asked for: `call: {path: /resize}`");
        }
        if let (Method::Get, Some(field)) = (method, body_field) {
            let span = self.tree.node(field.key).span;
            let finding = Finding::new("a GET has no `body`", span);
            self.findings.push(finding.hint("leave it out, or use `method: POST`"));
        }
        Some(Action::Call {
            method,
            path: path?,
            body: body.unwrap_or(Input::Literal(serde_json::Value::Null)),
        })
    }

    fn path(&mut self, field: Field<'_>) -> Option<String> {
        let path = self.string(field, PATH)?;
        let is_path = path.starts_with('/') && !path.chars().any(char::is_control);
        if !is_path {
            let finding = self.wrong(field, PATH);
            self.findings.push(finding);
            return None;
        }
        Some(path.to_owned())
    }

    pub(super) fn pools(&mut self, field: Field<'_>) -> Vec<Pool> {
        let entries = self.entries(field, "a mapping of names to pools").unwrap_or_default();
        entries.into_iter().map(|entry| self.pool(entry)).collect()
    }

    fn pool(&mut self, entry: Field<'_>) -> Pool {
        self.check_name("pool", entry.name, entry.key);
        let mut pool = Pool {
            name: entry.name.to_owned(),
            container: Container::default(),
            max: Pool::MAX,
            mode: PoolMode::default(),
            dormancy: Pool::DORMANCY,
            acquire_timeout: Some(Pool::ACQUIRE_TIMEOUT),
            command: Vec::new(),
            endpoint: None,
            health: None,
            health_interval: Pool::HEALTH_INTERVAL,
            health_timeout: Pool::HEALTH_TIMEOUT,
        };
        let must_be = "a mapping such as {image: \"busybox:1\", max: 4}";
        let Some(fields) = self.fields(entry, &keys::POOL, must_be) else { return pool };
        let mut has_image = false;
        for field in fields {
            match field.name {
                "image" => {
                    has_image = true;
                    pool.container.image = self.image(field).unwrap_or_default();
                }
                "max" => pool.max = self.at_least_one(field).unwrap_or(pool.max),
                "mode" => {
                    let choices: Vec<_> = PoolMode::ALL.iter().map(|mode| (mode.as_str(), *mode)).collect();
                    pool.mode = self.choice(field, &choices).unwrap_or_default();
                }
                "dormancy" => pool.dormancy = self.duration(field).unwrap_or(pool.dormancy),
                "acquire_timeout" => pool.acquire_timeout = self.timeout(field),
                "command" => pool.command = argv(self, field).unwrap_or_default(),
                "endpoint" => pool.endpoint = self.endpoint(field),
                "health" => pool.health = self.health(field),
                "health_interval" => {
                    pool.health_interval = self.positive(field).unwrap_or(pool.health_interval);
                }
                "health_timeout" => {
                    pool.health_timeout = self.positive(field).unwrap_or(pool.health_timeout);
                }
                // Every task is to find the image as it is.
                "read_only" => {
                    if self.boolean(field) == Some(false) {
                        let hint = "leave it out: a task writes to the run's directory and to /tmp";
                        self.not_of_pools(field, "the root of a warm container is always read-only", hint);
                    }
                }
                "secrets" => {
                    let hint = "give them to its steps: `env: {X: \"${{ secrets.NAME }}\"}`";
                    self.not_of_pools(
                        field,
                        "a warm container has no `secrets`: tasks of others use it too",
                        hint,
                    );
                }
                _ => self.setting(field, &mut pool.container),
            }
        }
        if !has_image {
            let span = self.tree.node(entry.key).span;
            let owner = format!("pool `{}`", clipped(entry.name));
            self.missing(owner, "image", span, "say what its containers are made of: `image: \"busybox:1\"`");
        }
        pool
    }

    /// A key that a container of a step's own has.
    fn not_of_pools(&mut self, field: Field<'_>, why: &str, hint: &str) {
        let span = self.tree.node(field.key).span;
        self.findings.push(Finding::new(why, span).hint(hint));
    }

    fn positive(&mut self, field: Field<'_>) -> Option<Duration> {
        let duration = self.duration(field)?;
        if duration.is_zero() {
            let finding = self.wrong(field, "longer than nothing");
            self.findings.push(finding);
            return None;
        }
        Some(duration)
    }

    fn endpoint(&mut self, field: Field<'_>) -> Option<Endpoint> {
        let must_be = "a mapping such as {port: 8080}";
        let (mut port, mut has_port, mut health) = (None, false, Endpoint::HEALTH.to_owned());
        for field in self.fields(field, &keys::ENDPOINT, must_be)? {
            match field.name {
                "port" => {
                    has_port = true;
                    let must_be = "a port from 1 to 65535";
                    let number = self.number(field, must_be).map(|number| number.as_u64());
                    port = number.flatten().and_then(|number| u16::try_from(number).ok());
                    port = port.filter(|port| *port > 0);
                    if number.is_some() && port.is_none() {
                        let finding = self.wrong(field, must_be);
                        self.findings.push(finding);
                    }
                }
                "health" => {
                    if let Some(path) = self.path(field)
                        && self.literal(field, &path, "it is fixed; leave the expression out")
                    {
                        health = path;
                    }
                }
                _ => {}
            }
        }
        if !has_port {
            let span = self.tree.node(field.key).span;
            self.missing(
                "`endpoint`".to_owned(),
                "port",
                span,
                "say where it listens: `endpoint: {port: 8080}`",
            );
        }
        Some(Endpoint { port: port?, health })
    }

    fn health(&mut self, field: Field<'_>) -> Option<Vec<String>> {
        let must_be = "a mapping such as {command: [./is-ready.sh]}";
        let fields = self.fields(field, &keys::HEALTH, must_be)?;
        match fields[..] {
            [command, ..] => argv(self, command),
            [] => {
                let span = self.tree.node(field.key).span;
                self.missing(
                    "`health`".to_owned(),
                    "command",
                    span,
                    "name a program inside: `health: {command: [true]}`",
                );
                None
            }
        }
    }
}
