//! Keys of the document that start runs by themselves: `schedule`, `after` and `webhook`. Owns their form; what they do is
//! `schedule/` and `trigger.rs`.

use super::finding::{Finding, shown};
use super::keys;
use super::model::{Param, SecretSource};
use super::read::is_workflow_name;
use super::reader::{Field, Reader};
use super::yaml::Data;
use crate::nearest::nearest;
use crate::schedule::{CatchUp, Cron, Schedule, Zone};
use crate::state::RunStatus;
use crate::trigger::{After, ENDED, Given, PAYLOAD, Scheme, Start, TICK, Trigger, Webhook};

const SCHEDULE: &str = "a mapping such as {cron: \"0 2 * * *\", timezone: Europe/Berlin}, or a list of these";
const AFTER: &str = "a mapping such as {workflow: nightly}, or a list of these";
const WEBHOOK: &str = "a mapping such as {path: deploy, secret: NAME}, or a list of these";
const CRON: &str = "a pattern such as \"0 2 * * *\"";

/// Ends of a run, as `after.when` names them.
const ENDS: [(&str, &[RunStatus]); 4] = [
    ("succeeded", &[RunStatus::Succeeded]),
    ("failed", &[RunStatus::Failed]),
    ("canceled", &[RunStatus::Canceled]),
    ("finished", &[RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled]),
];

/// What triggers need to know of the workflow that they start.
#[derive(Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) name: &'a str,
    /// `None` if not all of them are known.
    pub(super) params: Option<&'a [Param]>,
    pub(super) secrets: &'a [(String, SecretSource)],
}

impl Reader<'_> {
    /// Called when all that they need of the workflow is read.
    pub(super) fn triggers(&mut self, field: Field<'_>, whose: Whose<'_>) -> Vec<Trigger> {
        let must_be = match field.name {
            "schedule" => SCHEDULE,
            "after" => AFTER,
            _ => WEBHOOK,
        };
        let items = match &self.tree.node(field.value).data {
            Data::List(_) => self.list(field, must_be).unwrap_or_default(),
            Data::Map(_) | Data::Scalar { .. } => vec![field],
        };
        let mut triggers: Vec<Trigger> = Vec::with_capacity(items.len());
        for item in items {
            let Some(trigger) = self.trigger(item, must_be, whose) else { continue };
            if triggers.iter().any(|other| other.key() == trigger.key()) {
                let finding = Finding::new(format!("`{}` is there twice", trigger.key()), self.place(item));
                self.findings.push(finding.hint("keep one of them; a run starts once"));
            } else {
                triggers.push(trigger);
            }
        }
        triggers
    }

    fn trigger(&mut self, item: Field<'_>, must_be: &str, whose: Whose<'_>) -> Option<Trigger> {
        let (keys, reads) = match item.name {
            "schedule" => (&keys::SCHEDULE, TICK),
            "after" => (&keys::AFTER, ENDED),
            _ => (&keys::WEBHOOK, PAYLOAD),
        };
        let fields = self.fields(item, keys, must_be)?;
        let given = self.given(item, &fields, whose.params, reads);
        let start = match item.name {
            "schedule" => Start::Schedule(self.schedule(item, &fields)?),
            "after" => Start::After(self.after(item, &fields, whose.name)?),
            _ => Start::Webhook(self.webhook(item, &fields, whose.secrets)?),
        };
        Some(Trigger { start, params: given })
    }

    fn schedule(&mut self, item: Field<'_>, fields: &[Field<'_>]) -> Option<Schedule> {
        let (mut cron, mut zone, mut catch_up) = (None, Some(Zone::utc()), CatchUp::None);
        for field in fields {
            match field.name {
                "cron" => cron = self.cron(*field),
                "timezone" => zone = self.zone(*field),
                "catch_up" => {
                    let choices: Vec<(&str, CatchUp)> =
                        CatchUp::ALL.iter().map(|word| (word.as_str(), *word)).collect();
                    catch_up = self.choice(*field, &choices).unwrap_or(catch_up);
                }
                _ => {}
            }
        }
        if !fields.iter().any(|field| field.name == "cron") {
            let hint = "say when: `schedule: {cron: \"0 2 * * *\"}` is every night at two";
            self.missing("`schedule`".to_owned(), "cron", self.place(item), hint);
        }
        Some(Schedule { cron: cron?, zone: zone?, catch_up })
    }

    fn cron(&mut self, field: Field<'_>) -> Option<Cron> {
        let text = self.string(field, CRON)?;
        if !self.literal(field, text, "a schedule is fixed; leave the expression out") {
            return None;
        }
        match Cron::parse(text) {
            Ok(cron) => Some(cron),
            Err(why) => {
                let finding = self.wrong(field, CRON).hint(why.to_string());
                self.findings.push(finding);
                None
            }
        }
    }

    fn zone(&mut self, field: Field<'_>) -> Option<Zone> {
        let must_be = "a time zone such as Europe/Berlin";
        let name = self.string(field, must_be)?;
        match Zone::parse(name) {
            Ok(zone) => Some(zone),
            Err(why) => {
                let finding = self.wrong(field, must_be).hint(why.hint);
                self.findings.push(finding);
                None
            }
        }
    }

    fn after(&mut self, item: Field<'_>, fields: &[Field<'_>], own: &str) -> Option<After> {
        let (mut workflow, mut ends) = (None, ENDS[0].1);
        for field in fields {
            match field.name {
                "workflow" => workflow = self.another_workflow(*field, own),
                "when" => ends = self.choice(*field, &ENDS).unwrap_or(ends),
                _ => {}
            }
        }
        if !fields.iter().any(|field| field.name == "workflow") {
            let hint = "say whose end starts it: `after: {workflow: nightly}`";
            self.missing("`after`".to_owned(), "workflow", self.place(item), hint);
        }
        Some(After { workflow: workflow?, ends: ends.to_vec() })
    }

    /// The name of one that is not the workflow itself: each of its runs would start the next.
    fn another_workflow(&mut self, field: Field<'_>, own: &str) -> Option<String> {
        let name = self.workflow_named(field)?;
        if name == own {
            let finding = Finding::new(format!("{} comes after itself", shown(own)), self.place(field));
            let hint = "each run would start the next one, for ever; `schedule` starts it again and again";
            self.findings.push(finding.hint(hint));
            return None;
        }
        Some(name)
    }

    fn workflow_named(&mut self, field: Field<'_>) -> Option<String> {
        let must_be = "the name of a workflow";
        let name = self.string(field, must_be)?;
        if !is_workflow_name(name) {
            let finding = self.wrong(field, must_be).hint("1 to 100 characters without line breaks");
            self.findings.push(finding);
            return None;
        }
        Some(name.to_owned())
    }

    fn webhook(
        &mut self,
        item: Field<'_>,
        fields: &[Field<'_>],
        secrets: &[(String, SecretSource)],
    ) -> Option<Webhook> {
        let (mut path, mut secret, mut scheme) = (None, None, Scheme::Laneway);
        for field in fields {
            match field.name {
                "path" => path = self.webhook_path(*field),
                "secret" => secret = self.secret_name(*field, secrets),
                "scheme" => {
                    let choices: Vec<(&str, Scheme)> =
                        Scheme::ALL.iter().map(|word| (word.as_str(), *word)).collect();
                    scheme = self.choice(*field, &choices).unwrap_or(scheme);
                }
                _ => {}
            }
        }
        let has = |name: &str| fields.iter().any(|field| field.name == name);
        if !has("path") {
            let hint = "say where it listens: `webhook: {path: deploy, …}` is `POST /v1/hooks/deploy`";
            self.missing("`webhook`".to_owned(), "path", self.place(item), hint);
        }
        if !has("secret") {
            let hint = "name what senders sign with: `secret: NAME`, and `secrets: {NAME: {store: NAME}}`";
            self.missing("`webhook`".to_owned(), "secret", self.place(item), hint);
        }
        Some(Webhook { path: path?, secret: secret?, scheme })
    }

    fn webhook_path(&mut self, field: Field<'_>) -> Option<String> {
        let must_be = "a word of letters, digits, `-`, `_` and `.`, such as deploy";
        let path = self.string(field, must_be)?;
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if path.is_empty() || path.len() > 100 || path.starts_with('.') || !path.bytes().all(is_fine) {
            let finding = self.wrong(field, must_be).hint("it is the end of an address: /v1/hooks/PATH");
            self.findings.push(finding);
            return None;
        }
        Some(path.to_owned())
    }

    /// The name of one of the workflow's secrets.
    pub(super) fn secret_name(
        &mut self,
        field: Field<'_>,
        secrets: &[(String, SecretSource)],
    ) -> Option<String> {
        let name = self.string(field, "the name of a secret")?;
        if !secrets.iter().any(|(known, _)| known == name) {
            let hint = match nearest(name, secrets.iter().map(|(known, _)| known.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("say where it comes from: `secrets: {{{name}: {{store: {name}}}}}`"),
            };
            let finding = Finding::new(format!("there is no secret {}", shown(name)), self.place(field));
            self.findings.push(finding.hint(hint));
            return None;
        }
        Some(name.to_owned())
    }

    /// The parameters that a trigger gives. All that the workflow requires have to be among them: nobody is there to ask.
    fn given(
        &mut self,
        item: Field<'_>,
        fields: &[Field<'_>],
        params: Option<&[Param]>,
        reads: (&'static str, &'static [&'static str]),
    ) -> Vec<(String, Given)> {
        let mut given = Vec::new();
        let field = fields.iter().find(|field| field.name == "params");
        let entries = field.and_then(|field| self.entries(*field, "a mapping of parameters to values"));
        for entry in entries.unwrap_or_default() {
            let param = params.and_then(|params| params.iter().find(|param| param.name == entry.name));
            if let (Some(params), None) = (params, param) {
                self.no_such_param(entry, params);
            }
            if let Some(value) = self.given_value(entry, param, reads) {
                given.push((entry.name.to_owned(), value));
            }
        }
        for param in params.unwrap_or_default() {
            if param.required && !given.iter().any(|(name, _)| *name == param.name) {
                let message = format!(
                    "`{}` does not give the parameter `{}`, which is required",
                    item.name, param.name
                );
                let hint =
                    format!("add `params: {{{}: …}}` to it, or give the parameter a default", param.name);
                self.findings.push(Finding::new(message, self.place(item)).hint(hint));
            }
        }
        given
    }

    fn no_such_param(&mut self, entry: Field<'_>, params: &[Param]) {
        let near = nearest(entry.name, params.iter().map(|param| param.name.as_str()));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        let span = self.tree.node(entry.key).span;
        let message = format!("the workflow has no parameter {}", shown(entry.name));
        self.findings.push(Finding::new(message, span).maybe_hint(hint));
    }

    fn given_value(
        &mut self,
        entry: Field<'_>,
        param: Option<&Param>,
        reads: (&'static str, &'static [&'static str]),
    ) -> Option<Given> {
        let is_read =
            matches!(&self.tree.node(entry.value).data, Data::Scalar { text, .. } if text.contains("${{"));
        if is_read {
            let before = self.sites.len();
            let template = self.template(entry)?;
            self.sites[before..].iter_mut().for_each(|site| site.only = Some(reads));
            return Some(Given::Read(template));
        }
        let value = self.typed(entry, param.map(|param| param.kind))?;
        Some(Given::Fixed(value))
    }
}
