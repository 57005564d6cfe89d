//! Triggers: what starts a run of a workflow without anybody asking for it. Owns what they are and with which parameters
//! they start one; when a tick comes is `schedule/`'s, and that each fires once is the store's (`docs/design/triggers.md`).

use std::collections::{BTreeMap, VecDeque};
use std::iter::successors;

use serde_json::{Map, Value, json};

use crate::expression::{Error, Scope, Template};
use crate::hook::whose_hooks;
use crate::id::RunId;
use crate::schedule::{CatchUp, Cron, Schedule, Tick, Zone};
use crate::state::RunStatus;
use crate::time::Millis;
use crate::words::words;

/// Something that starts a workflow, as its document says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    pub start: Start,
    /// Parameters that its runs get, by name; the others have their defaults.
    pub params: Vec<(String, Given)>,
}

#[expect(clippy::large_enum_variant, reason = "a workflow has a few of them, and they are held for a moment")]
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    Schedule(Schedule),
    After(After),
    Webhook(Webhook),
}

/// The `after` key: a run of another workflow has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    pub workflow: String,
    /// The ends that count, each once.
    pub ends: Vec<RunStatus>,
}

/// The `webhook` key: somebody else's program says so over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// `POST /v1/hooks/PATH`.
    pub path: String,
    /// Which of the workflow's secrets senders sign with.
    pub secret: String,
    pub scheme: Scheme,
}

words! {
    /// How a sender proves who it is.
    pub enum Scheme {
        /// HMAC over moment, delivery and body: what our own callbacks do.
        Laneway = "laneway",
        /// HMAC over the body, as GitHub and Gitea do. Says nothing of when.
        Github = "github",
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    Fixed(Value),
    /// Reads what happened: `tick`, or `ended`.
    Read(Template),
}

/// The run whose end fires a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub run: RunId,
    pub workflow: String,
    pub status: RunStatus,
}

impl Trigger {
    /// What tells it from others of its workflow, also when the document is applied anew: its words, without what they
    /// start with.
    pub fn key(&self) -> String {
        match &self.start {
            Start::Schedule(schedule) => format!("schedule {} {}", schedule.cron, schedule.zone.name()),
            Start::After(after) => format!("after {}", after.workflow),
            Start::Webhook(webhook) => key_of_path(&webhook.path),
        }
    }

    pub fn params_at(&self, tick: &Tick) -> Result<Map<String, Value>, Error> {
        self.params_by("tick", tick_scope(tick))
    }

    pub fn params_after(&self, ended: &Ended) -> Result<Map<String, Value>, Error> {
        let Ended { run, workflow, status } = ended;
        self.params_by(
            "ended",
            json!({"run": run.to_string(), "workflow": workflow, "status": status.as_str()}),
        )
    }

    pub fn params_of(&self, payload: Value) -> Result<Map<String, Value>, Error> {
        self.params_by("payload", payload)
    }

    fn params_by(&self, root: &str, happened: Value) -> Result<Map<String, Value>, Error> {
        let scope: Scope = [(root.to_owned(), happened)].into_iter().collect();
        let value = |given: &Given| match given {
            Given::Fixed(value) => Ok(value.clone()),
            Given::Read(template) => template.evaluate(&scope),
        };
        self.params.iter().map(|(name, given)| Ok((name.clone(), value(given)?))).collect()
    }
}

/// The way on which the end of a workflow that comes after others (`after`) leads back to it, from its name to its name: each of its runs
/// would start another one, for ever. `stored` are the other workflows, each with one that it comes after.
pub fn circle(workflow: &str, after: &[&str], stored: &[(String, String)]) -> Option<Vec<String>> {
    // From each that was found on the way back to the one that it starts.
    let mut starts: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found: VecDeque<(&str, &str)> = after.iter().map(|before| (*before, workflow)).collect();
    while let Some((before, next)) = found.pop_front() {
        if before == workflow {
            let rest = successors(Some(next), |next| starts.get(next).copied());
            return Some(std::iter::once(workflow).chain(rest).map(str::to_owned).collect());
        }
        if starts.contains_key(before) {
            continue;
        }
        starts.insert(before, next);
        let others = stored.iter().filter(|(name, _)| name == before).map(|(_, source)| source.as_str());
        // The hooks of a workflow are a run of their own, which its end starts.
        found.extend(others.chain(whose_hooks(before)).map(|source| (source, before)));
    }
    None
}

/// What the expressions of a schedule read: the moment, as the clock on the wall of its zone shows it.
fn tick_scope(tick: &Tick) -> Value {
    let offset = jiff::tz::Offset::from_seconds(tick.offset).unwrap_or(jiff::tz::Offset::UTC);
    json!({"at": format!("{}{offset}", tick.wall), "date": tick.wall.date().to_string()})
}

/// Returns the first tick after a moment of the schedule whose trigger has this key.
pub fn tick_of_key(key: &str, after: Millis) -> Option<Millis> {
    let (cron, zone) = key.strip_prefix("schedule ")?.rsplit_once(' ')?;
    let (cron, zone) = (Cron::parse(cron).ok()?, Zone::parse(zone).ok()?);
    let schedule = Schedule { cron, zone, catch_up: CatchUp::None };
    schedule.ticks(after).next().map(|tick| tick.at)
}

/// The key of the trigger that listens at a path.
pub fn key_of_path(path: &str) -> String {
    format!("webhook {path}")
}

/// What expressions of each may read; nothing named is anything.
pub(crate) const TICK: (&str, &[&str]) = ("tick", &["at", "date"]);
pub(crate) const PAYLOAD: (&str, &[&str]) = ("payload", &[]);
pub(crate) const ENDED: (&str, &[&str]) = ("ended", &["run", "workflow", "status"]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Source, compile};
    use crate::time::Millis;

    fn trigger(document: &str) -> Trigger {
        let text = format!(
            "{document}\nparams: {{day: {{type: string}}, deep: {{type: integer}}}}\nsteps: {{a: {{run: x}}}}"
        );
        let source = Source { file: "f.yaml".into(), default_name: "f".into(), text };
        let plan = compile(&source).unwrap_or_else(|error| panic!("{error}"));
        plan.workflow.triggers.first().expect("a trigger").clone()
    }

    #[test]
    fn way_back_is_found_through_any_number_of_workflows() {
        let stored = |edges: &[(&str, &str)]| -> Vec<(String, String)> {
            edges.iter().map(|(name, after)| ((*name).to_owned(), (*after).to_owned())).collect()
        };
        let way = |after: &[&str], edges: &[(&str, &str)]| {
            circle("a", after, &stored(edges)).map(|way| way.join(" -> "))
        };
        assert_eq!(way(&["a"], &[]).as_deref(), Some("a -> a"));
        assert_eq!(way(&["b"], &[("b", "a")]).as_deref(), Some("a -> b -> a"));
        let long = [("d", "c"), ("c", "b"), ("b", "a"), ("c", "x"), ("x", "c")];
        assert_eq!(way(&["x", "d"], &long).as_deref(), Some("a -> b -> c -> x -> a"));
        assert_eq!(way(&["b"], &[("b", "a (failed)")]).as_deref(), Some("a -> a (failed) -> b -> a"));
        assert_eq!(way(&["a (canceled)"], &[]).as_deref(), Some("a -> a (canceled) -> a"));
        // What it was after before does not count, nor a circle in which it is not.
        assert_eq!(
            way(&["b"], &[("a", "c"), ("c", "a"), ("b", "c"), ("x", "y"), ("y", "x")]).as_deref(),
            Some("a -> c -> b -> a")
        );
        assert_eq!(way(&["b"], &[("a", "c"), ("c", "b"), ("b", "d"), ("d", "b")]), None);
        assert_eq!(way(&[], &[("b", "a")]), None);
    }

    #[test]
    fn schedule_gives_the_day_on_the_wall_of_its_zone() {
        let document = "schedule: {cron: '30 0 * * *', timezone: Asia/Tokyo, params: {day: '${{ tick.date }}', deep: 3}}";
        let trigger = trigger(document);
        assert_eq!(trigger.key(), "schedule 30 0 * * * Asia/Tokyo");
        let Start::Schedule(schedule) = &trigger.start else { panic!("no schedule") };
        let tick = schedule.ticks(Millis(1_767_225_600_000)).next().expect("a tick");
        let params = trigger.params_at(&tick).expect("parameters");
        assert_eq!(Value::Object(params), json!({"day": "2026-01-02", "deep": 3}));
    }

    #[test]
    fn key_of_a_schedule_tells_its_next_tick() {
        let trigger = trigger("schedule: {cron: '30 2 * * *', timezone: Europe/Berlin}");
        let after = Millis(1_800_000_000_000);
        let Start::Schedule(schedule) = &trigger.start else { panic!("it is a schedule") };
        let next = schedule.ticks(after).next().map(|tick| tick.at);
        assert!(next > Some(after));
        assert_eq!(tick_of_key(&trigger.key(), after), next);
        assert_eq!(tick_of_key("after load", after), None);
    }

    #[test]
    fn moments_carry_the_offset_of_their_zone() {
        let trigger =
            trigger("schedule: {cron: '0 3 * * *', timezone: Asia/Kolkata, params: {day: '${{ tick.at }}'}}");
        let Start::Schedule(schedule) = &trigger.start else { panic!("no schedule") };
        let tick = schedule.ticks(Millis(1_767_225_600_000)).next().expect("a tick");
        assert_eq!(trigger.params_at(&tick).expect("parameters")["day"], "2026-01-02T03:00:00+05:30");
    }

    #[test]
    fn end_of_a_run_gives_which_it_was_and_how_it_ended() {
        let trigger = trigger(
            "after: {workflow: nightly, when: failed, params: {day: '${{ ended.status }} ${{ ended.workflow }}'}}",
        );
        assert_eq!(trigger.key(), "after nightly");
        let run = RunId::new(uuid::Uuid::nil());
        let ended = Ended { run, workflow: "nightly".to_owned(), status: RunStatus::Failed };
        assert_eq!(trigger.params_after(&ended).expect("parameters")["day"], "failed nightly");
    }
}
