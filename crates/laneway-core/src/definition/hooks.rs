//! The `hooks` of a workflow: steps and callbacks for when its runs are over. Owns their form; when they run, and with what,
//! is `hook.rs`.

use std::time::Duration;

use super::finding::{Finding, shown};
use super::input::Input;
use super::keys;
use super::model::{Action, OnLost, Post, Retry, SecretSource, Step, When};
use super::read::step;
use super::reader::{Field, Reader};
use super::yaml::{Data, Tree};
use crate::expression::Template;
use crate::hook::{Hook, On};

const MUST_BE: &str = "a mapping such as {failed: [{run: ./page.sh}]}";
const A_LIST: &str = "a list of steps such as [{run: ./page.sh}]";
const CONTENT_TYPE: &str = "a media type such as application/json";
const URL: &str = "an address such as https://example.org/told";

/// A callback is given up after about a minute and a half: 1, 2, 4 … 32 s.
const RETRIES: u32 = 6;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Headers that Laneway writes itself, beside those that begin with `laneway-`.
const OWN_HEADERS: [&str; 8] =
    ["connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"];

/// Keys of a hook that belong to what is executed, and those that belong to what is sent.
const OF_A_STEP: [&str; 7] = ["run", "command", "args", "shell", "env", "workdir", "runs_on"];

/// Keys of a callback that a script has no use for, beside `secret`.
const OF_A_CALLBACK: [&str; 3] = ["headers", "content_type", "body"];

impl Reader<'_> {
    pub(super) fn hooks(&mut self, field: Field<'_>, secrets: &[(String, SecretSource)]) -> Vec<Hook> {
        self.is_hook = true;
        let mut hooks = Vec::new();
        for list in self.fields(field, &keys::HOOKS, MUST_BE).unwrap_or_default() {
            let Some(on) = On::parse(list.name) else { continue };
            for (item, no) in self.list(list, A_LIST).unwrap_or_default().into_iter().zip(1_u32..) {
                let mut step = if self.has(item, "post") {
                    self.callback(item, secrets)
                } else {
                    self.refuse(
                        item,
                        &["secret"],
                        "it signs what is sent; a script reads one through its `env`",
                    );
                    self.refuse(item, &OF_A_CALLBACK, "it is what a callback sends: add `post: https://…`");
                    step(self, item, &keys::HOOK).0
                };
                step.name = format!("{on}-{no}");
                hooks.push(Hook { on, step });
            }
        }
        self.is_hook = false;
        hooks
    }

    fn callback(&mut self, item: Field<'_>, secrets: &[(String, SecretSource)]) -> Step {
        self.refuse(item, &OF_A_STEP, "a callback is only sent; what is to be executed is a hook of its own");
        let (mut url, mut secret, mut condition) = (None, None, None);
        let (mut headers, mut content_type, mut body) = (Vec::new(), None, None);
        let (mut timeout, mut retry) = (Some(TIMEOUT), Retry { max: RETRIES, ..Retry::default() });
        for field in self.fields(item, &keys::HOOK, MUST_BE).unwrap_or_default() {
            match field.name {
                "post" => url = self.url(field),
                "secret" => secret = self.secret_name(field, secrets),
                "headers" => headers = self.headers(field),
                "content_type" => content_type = self.content_type(field),
                "body" => body = self.body(field),
                "if" => condition = self.condition(field),
                "timeout" => timeout = self.timeout(field),
                "retry" => retry = self.retry(field).unwrap_or_default(),
                "description" => {
                    self.string(field, "a string");
                }
                _ => {}
            }
        }
        Step {
            name: String::new(),
            action: match url {
                Some(url) => Action::Post(Box::new(Post { url, secret, content_type, headers, body })),
                None => Action::Command { argv: Vec::new(), args: Vec::new() },
            },
            needs: Vec::new(),
            when: When::default(),
            condition,
            env: Vec::new(),
            workdir: None,
            timeout,
            retry,
            on_lost: OnLost::default(),
            demands: None,
            files: None,
            housing: None,
            cache: None,
            for_each: None,
        }
    }

    fn url(&mut self, field: Field<'_>) -> Option<Template> {
        let text = self.string(field, URL)?;
        if !["https://", "http://", "${{"].iter().any(|start| text.starts_with(start)) {
            let finding = self.wrong(field, URL).hint("it begins with https:// or http://");
            self.findings.push(finding);
            return None;
        }
        self.sent(|reader| reader.template(field))
    }

    fn headers(&mut self, field: Field<'_>) -> Vec<(String, Template)> {
        let mut headers: Vec<(String, Template)> = Vec::new();
        for entry in self.entries(field, "a mapping of names to values").unwrap_or_default() {
            let is_known = headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(entry.name));
            if let Some((message, hint)) = wrong_header(entry.name, is_known) {
                let span = self.tree.node(entry.key).span;
                self.findings.push(Finding::new(message, span).hint(hint));
                continue;
            }
            if let Some(value) = self.sent(|reader| reader.template(entry)) {
                headers.push((entry.name.to_owned(), value));
            }
        }
        headers
    }

    fn content_type(&mut self, field: Field<'_>) -> Option<String> {
        let text = self.string(field, CONTENT_TYPE)?;
        if !self.literal(field, text, "write the type itself; `body` is what can differ") {
            return None;
        }
        if !text.contains('/') || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            let finding = self.wrong(field, CONTENT_TYPE);
            self.findings.push(finding);
            return None;
        }
        Some(text.to_owned())
    }

    fn body(&mut self, field: Field<'_>) -> Option<Input> {
        let is_scalar = matches!(self.tree.node(field.value).data, Data::Scalar { .. });
        if is_scalar {
            self.string(field, "a text, or a mapping that is sent as JSON")?;
        }
        self.sent(|reader| reader.input_value(field))
    }

    /// Reads what a callback sends.
    fn sent<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.is_callback = true;
        let value = read(self);
        self.is_callback = false;
        value
    }

    fn has(&self, item: Field<'_>, key: &str) -> bool {
        match &self.tree.node(item.value).data {
            Data::Map(flat) => Tree::pairs(flat).any(|(name, _)| self.tree.key(name) == key),
            Data::Scalar { .. } | Data::List(_) => false,
        }
    }

    fn refuse(&mut self, item: Field<'_>, names: &[&str], why: &str) {
        let Data::Map(flat) = &self.tree.node(item.value).data else { return };
        for field in self.pairs(flat).into_iter().filter(|field| names.contains(&field.name)) {
            let span = self.tree.node(field.key).span;
            let message = format!("`{}` does not belong to this hook", field.name);
            self.findings.push(Finding::new(message, span).hint(why));
        }
    }
}

/// What is wrong with the name of a header, and what to do.
fn wrong_header(name: &str, is_known: bool) -> Option<(String, &'static str)> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || !name.bytes().all(is_token) {
        return Some((
            format!("{} cannot be the name of a header", shown(name)),
            "use letters, digits and `-`, as in Authorization",
        ));
    }
    if lower == "content-type" {
        return Some((format!("`{name}` has a key of its own"), "write `content_type` beside `post`"));
    }
    if lower.starts_with("laneway-") || OWN_HEADERS.contains(&lower.as_str()) {
        return Some((format!("`{name}` is written by Laneway itself"), "leave it out"));
    }
    is_known.then(|| {
        (format!("the header `{name}` is given twice"), "the case of its letters makes no difference")
    })
}
