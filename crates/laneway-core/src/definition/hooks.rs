//! The `hooks` of a workflow: steps and callbacks for when its runs are over. Owns their form; when they run, and with what,
//! is `hook.rs`.

use std::time::Duration;

use super::finding::Finding;
use super::keys;
use super::model::{Action, OnLost, Retry, SecretSource, Step, When};
use super::read::step;
use super::reader::{Field, Reader};
use super::yaml::{Data, Tree};
use crate::expression::Template;
use crate::hook::{Hook, On};

const MUST_BE: &str = "a mapping such as {failed: [{run: ./page.sh}]}";
const A_LIST: &str = "a list of steps such as [{run: ./page.sh}]";
const URL: &str = "an address such as https://example.org/told";

/// A callback is given up after about a minute and a half: 1, 2, 4 … 32 s.
const RETRIES: u32 = 6;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Keys of a hook that belong to what is executed, and those that belong to what is sent.
const OF_A_STEP: [&str; 7] = ["run", "command", "args", "shell", "env", "workdir", "runs_on"];

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
        let (mut timeout, mut retry) = (Some(TIMEOUT), Retry { max: RETRIES, ..Retry::default() });
        for field in self.fields(item, &keys::HOOK, MUST_BE).unwrap_or_default() {
            match field.name {
                "post" => url = self.url(field),
                "secret" => secret = self.secret_name(field, secrets),
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
                Some(url) => Action::Post { url, secret },
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
        if !text.starts_with("https://") && !text.starts_with("http://") {
            let finding = self.wrong(field, URL).hint("it begins with https:// or http://");
            self.findings.push(finding);
            return None;
        }
        self.template(field)
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
