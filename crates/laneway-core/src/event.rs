//! The facts of a run, one struct each. Progress, logs of events, streams and replay are all fed by these.
//! Each type has a version (`Fact::version`), one place in the fold (`run_state.rs`) and one golden example
//! (the tests below). A field is never renamed or re-used: a new meaning is a new version.

use serde_json::{Map, Value};

use crate::child::Parent;
use crate::definition::When;
use crate::effect::EffectStatus;
pub use crate::facts::Unreadable;
use crate::facts::{self, facts};
use crate::hash::Version;
use crate::id::RunId;
use crate::reason::Reason;
use crate::state::{RunStatus, TaskStatus};
use crate::time::Millis;
use crate::words::words;

/// A numbered fact. Numbers start at 1 and have no gaps; their order is the order of commits.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub run: RunId,
    pub seq: u64,
    pub at: Millis,
    pub fact: Fact,
}

impl Event {
    /// One line of `--json`: name, run, number and time first, then the fact's own fields.
    pub fn to_json(&self) -> Value {
        let mut line = Map::new();
        line.insert("event".into(), self.fact.name().into());
        line.insert("run".into(), self.run.to_string().into());
        line.insert("seq".into(), self.seq.into());
        line.insert("at".into(), self.at.to_string().into());
        if let Value::Object(fields) = self.fact.body() {
            line.extend(fields);
        }
        Value::Object(line)
    }

    /// Reads such a line back.
    pub fn from_json(line: &Value) -> Result<Self, Unreadable> {
        let (name, version, body) = facts::from_line(line, &["event", "run", "seq", "at"], Fact::version_of)?;
        let bad = |why: &str| Unreadable { name: name.clone(), version, why: why.to_owned() };
        let run = line["run"].as_str().and_then(RunId::parse).ok_or_else(|| bad("it names no run"))?;
        let seq = line["seq"].as_u64().ok_or_else(|| bad("it has no number"))?;
        let at = facts::moment(line).ok_or_else(|| bad("it has no time"))?;
        Ok(Self { run, seq, at, fact: Fact::read(&name, version, &body)? })
    }
}

words! {
    /// Why nothing new may start in a run that has not ended yet.
    pub enum Closing {
        /// A step failed under `on_failure: halt`; what runs may finish, clean-up may start.
        Halted = "halted",
        /// A step failed under `on_failure: abort`; what runs is canceled, clean-up may start.
        Aborted = "aborted",
        /// A person canceled it; nothing but steps with `when: always` starts, as long as there is
        /// time for clean-up.
        Canceled = "canceled",
        /// The run's `timeout` passed; the same holds.
        RunTimeout = "run_timeout",
    }
}

impl Closing {
    /// Whether the run as a whole is being ended, by a person or by its own `timeout`.
    pub fn is_canceling(self) -> bool {
        match self {
            Self::Canceled | Self::RunTimeout => true,
            Self::Halted | Self::Aborted => false,
        }
    }

    /// Whether a step with this `when` may still start. A run that is being canceled starts
    /// `always` alone, and only until its `cleanup_timeout` has passed (`is_cleaning_up`).
    pub fn lets_start(self, when: When, is_cleaning_up: bool) -> bool {
        match self {
            Self::Halted | Self::Aborted => when.accepts_failure(),
            Self::Canceled | Self::RunTimeout => is_cleaning_up && when == When::Always,
        }
    }

    /// What a task that never started, or was stopped, is told.
    pub fn reason(self) -> Reason {
        match self {
            Self::Halted => Reason::Halted,
            Self::Aborted => Reason::Aborted,
            Self::Canceled => Reason::Canceled,
            Self::RunTimeout => Reason::RunTimeout,
        }
    }
}

words! {
    /// Why a run that had ended goes on.
    pub enum Reopening {
        Retry = "retry",
        Skip = "skip",
    }
}

words! {
    /// What a person paused.
    pub enum PauseScope {
        /// This run alone.
        Run = "run",
        /// Every run of its workflow, also later ones.
        Workflow = "workflow",
    }
}

words! {
    /// What runs in a lane of which events tell.
    pub enum LaneKind {
        /// The members of a group. A lane that is one step has nothing to tell that its task does not.
        Group = "group",
    }
}

/// How a member of a lane ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneResult {
    pub step: String,
    pub status: TaskStatus,
    pub success: bool,
}

/// What a step left that is too large to follow its run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptFiles {
    pub step: String,
    /// Size of what the step saw of others and of what it changed.
    pub bytes: u64,
    /// `workspace_max_bytes` of the node.
    pub limit: u64,
}

facts! {
    /// The closed set of facts of a run.
    pub enum Fact;
    RunSubmitted = "run_submitted" v 1 {
        workflow: String,
        version: Version,
        params: Map<String, Value>,
        max_parallel: u32,
        by: String,
        /// The step that started it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Parent>,
        /// Its steps are executed also where a result of before would do.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_cache: bool,
        /// It is for later: until then it waits, and counts for nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Millis>,
    }
    /// The moment has come for which the run was submitted.
    RunDue = "run_due" v 1 {}
    RunStarted = "run_started" v 1 {
        node: String,
    }
    /// Another node took the run over as a whole, after the former owner was gone.
    RunAdopted = "run_adopted" v 1 {
        node: String,
    }
    /// The run is kept on this node: it is pinned and the node took its first task, or `files` of
    /// it are on this node alone.
    RunBound = "run_bound" v 1 {
        node: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<KeptFiles>,
    }
    /// The node of a bound run is gone: other nodes may take its tasks, those of a pinned run one
    /// node as a whole.
    RunReleased = "run_released" v 1 {
        node: String,
        /// What was available there and is pending again.
        tasks: Vec<String>,
    }
    /// A step failed and `on_failure` lets nothing but clean-up start.
    RunHalted = "run_halted" v 1 {
        closing: Closing,
        step: String,
    }
    /// Everything that runs is stopped but clean-up. Recorded once more when that is ended early or
    /// its time is over.
    RunCanceling = "run_canceling" v 1 {
        closing: Closing,
        by: String,
        /// Until when steps with `when: always` and hooks may run, if the run has any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clean_up_until: Option<Millis>,
        /// Whether this is the end of clean-up that had begun.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ends_clean_up: bool,
    }
    /// Nothing new starts until it is resumed; what runs goes on. A run may be paused by both scopes at once.
    RunPaused = "run_paused" v 1 {
        scope: PauseScope,
        by: String,
        /// What was available and is pending again. Those that were claimed by then are not among it.
        tasks: Vec<String>,
    }
    RunResumed = "run_resumed" v 1 {
        scope: PauseScope,
        by: String,
    }
    RunReopened = "run_reopened" v 1 {
        why: Reopening,
        by: String,
        /// What is pending again.
        tasks: Vec<String>,
        /// From which level on it is done anew, of a run that goes level by level.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<u32>,
        /// Of these, the ones that go on with the run that they had started.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        children: Vec<String>,
    }
    RunFinished = "run_finished" v 1 {
        status: RunStatus,
        reason: Option<String>,
    }
    TaskAvailable = "task_available" v 1 {
        step: String,
    }
    TaskStarted = "task_started" v 1 {
        step: String,
        attempt: u32,
        node: String,
    }
    /// The attempt failed and another one will follow, not before `run_at`.
    TaskRetrying = "task_retrying" v 1 {
        step: String,
        attempt: u32,
        reason: Reason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// As its holder measured it.
        took_ms: u64,
        run_at: Millis,
    }
    /// The node that held it died; it is pending again.
    TaskLost = "task_lost" v 1 {
        step: String,
        attempt: u32,
        node: String,
    }
    /// A claim was returned before its start. Recorded without an attempt if the task waits again:
    /// its run is paused, or the passages of its rates expired. Recorded with one if the service
    /// took the claim back from a remote worker.
    TaskReturned = "task_returned" v 1 {
        step: String,
        /// None if it was no attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    }
    /// The gates of a step that waits, or of one with `for_each`, have opened. It holds nothing from here on.
    TaskParked = "task_parked" v 1 {
        step: String,
        /// The signal that it waits for, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        /// When it is over by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Millis>,
        /// When it fails, if it is not over by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_at: Option<Millis>,
        /// How many items of its `for_each` it waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        items: Option<u32>,
        /// The workflow that it runs. The number of this event names this life of the step to its child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow: Option<String>,
    }
    /// A run has been started that the step waits for.
    ChildRunStarted = "child_run_started" v 1 {
        step: String,
        child: RunId,
        workflow: String,
    }
    /// Somebody has said what a step waits for, or will wait for. A second time is no event.
    TaskSignaled = "task_signaled" v 1 {
        step: String,
        signal: String,
        by: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The output of the step, once it is over.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        payload: Map<String, Value>,
    }
    /// Its result was recorded before, and is taken: nothing is executed. What it is follows, as its end.
    TaskCached = "task_cached" v 1 {
        step: String,
        attempt: u32,
        key: String,
        /// The run that recorded it.
        from: RunId,
        recorded_at: Millis,
    }
    /// A list has become tasks, one for each of these items, behind those that it had. Their step is parked.
    TasksAdded = "tasks_added" v 1 {
        step: String,
        /// How many items there are, of which these are some.
        total: u32,
        /// The index of the first of these.
        first: u32,
        items: Vec<Value>,
        /// The highest attempt of those that stood in their place before.
        #[serde(default, skip_serializing_if = "is_zero")]
        attempts: u32,
    }
    /// The list of a step is to be made anew: the tasks of its items are gone.
    TasksRemoved = "tasks_removed" v 1 {
        step: String,
    }
    TaskSkipped = "task_skipped" v 1 {
        step: String,
        why: Reason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    }
    TaskFinished = "task_finished" v 1 {
        step: String,
        /// 0 when it never had one: a pending task of a canceled run.
        attempt: u32,
        status: TaskStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// As its holder measured it, or how long it was parked; none for what never ran, or was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        output: Map<String, Value>,
    }
    /// A step is about to do something to the world. Recorded before it does.
    EffectStarted = "effect_started" v 1 {
        step: String,
        attempt: u32,
        name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
    }
    /// What became of it: it has happened, or has said that it did not. What it printed is not told.
    EffectCommitted = "effect_committed" v 1 {
        step: String,
        attempt: u32,
        name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        key: String,
        status: EffectStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
        /// A person said so, of one of which nobody knew, or that is to run again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
    /// The first member of a group starts.
    LaneStarted = "lane_started" v 1 {
        lane: String,
        kind: LaneKind,
        /// Its members, as they are listed.
        steps: Vec<String>,
    }
    /// The last member of a group has ended.
    LaneFinished = "lane_finished" v 1 {
        lane: String,
        kind: LaneKind,
        /// Of its members, as they are listed.
        results: Vec<LaneResult>,
    }
    /// All of a level has ended, and counts: of a run that goes level by level.
    LevelCommitted = "level_committed" v 1 {
        level: u32,
        /// Address of what it and all before it have put out.
        checkpoint: String,
        /// In the order of names.
        steps: Vec<String>,
    }
    /// The results of a group are one.
    MergeFinished = "merge_finished" v 1 {
        group: String,
        /// How many files of the run's directory it changed.
        files: u64,
        /// Those that members had changed in different ways, and that were decided by `on_conflict`.
        conflicts: Vec<String>,
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Fact {
    /// The step it speaks of, if it speaks of one task.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::TaskAvailable(f) => Some(&f.step),
            Self::TaskStarted(f) => Some(&f.step),
            Self::TaskRetrying(f) => Some(&f.step),
            Self::TaskLost(f) => Some(&f.step),
            Self::TaskReturned(f) => Some(&f.step),
            Self::TaskParked(f) => Some(&f.step),
            Self::ChildRunStarted(f) => Some(&f.step),
            Self::TaskSignaled(f) => Some(&f.step),
            Self::TaskCached(f) => Some(&f.step),
            Self::TasksAdded(f) => Some(&f.step),
            Self::TasksRemoved(f) => Some(&f.step),
            Self::TaskSkipped(f) => Some(&f.step),
            Self::TaskFinished(f) => Some(&f.step),
            Self::EffectStarted(f) => Some(&f.step),
            Self::EffectCommitted(f) => Some(&f.step),
            Self::RunSubmitted(_)
            | Self::RunStarted(_)
            | Self::RunAdopted(_)
            | Self::RunBound(_)
            | Self::RunReleased(_)
            | Self::RunHalted(_)
            | Self::RunCanceling(_)
            | Self::RunPaused(_)
            | Self::RunResumed(_)
            | Self::RunDue(_)
            | Self::RunReopened(_)
            | Self::RunFinished(_)
            | Self::LaneStarted(_)
            | Self::LaneFinished(_)
            | Self::LevelCommitted(_)
            | Self::MergeFinished(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One stored example of every event, as the first release wrote it. Never edit a line: add one.
    const GOLDEN: &[(&str, u32, &str)] = &[
        (
            "run_submitted",
            1,
            r#"{"workflow":"nightly","version":"ab12","params":{"depth":2},"max_parallel":4,"by":"ada"}"#,
        ),
        ("run_started", 1, r#"{"node":"host:1"}"#),
        ("run_adopted", 1, r#"{"node":"host:2"}"#),
        ("run_bound", 1, r#"{"node":"host:1"}"#),
        ("run_bound", 1, r#"{"node":"host:1","files":{"step":"large","bytes":3000000,"limit":1000000}}"#),
        ("run_released", 1, r#"{"node":"host:1","tasks":["test"]}"#),
        ("run_halted", 1, r#"{"closing":"halted","step":"test"}"#),
        ("run_canceling", 1, r#"{"closing":"canceled","by":"ada"}"#),
        ("run_canceling", 1, r#"{"closing":"canceled","by":"ada","clean_up_until":1700000060000}"#),
        ("run_canceling", 1, r#"{"closing":"run_timeout","by":"timeout","ends_clean_up":true}"#),
        ("run_paused", 1, r#"{"scope":"run","by":"ada","tasks":["test"]}"#),
        ("run_resumed", 1, r#"{"scope":"workflow","by":"ada"}"#),
        ("run_reopened", 1, r#"{"why":"retry","by":"ada","tasks":["test","package"]}"#),
        ("run_reopened", 1, r#"{"why":"retry","by":"ada","tasks":["test"],"level":1}"#),
        ("run_finished", 1, r#"{"status":"failed","reason":"test failed: exit code 1"}"#),
        ("task_available", 1, r#"{"step":"test"}"#),
        ("task_started", 1, r#"{"step":"test","attempt":1,"node":"host:1"}"#),
        (
            "task_retrying",
            1,
            r#"{"step":"test","attempt":1,"reason":"exit","detail":"exit code 75","exit_code":75,"took_ms":12,"run_at":1700000000123}"#,
        ),
        ("task_lost", 1, r#"{"step":"test","attempt":1,"node":"host:1"}"#),
        ("task_returned", 1, r#"{"step":"test","attempt":1}"#),
        ("task_returned", 1, r#"{"step":"test"}"#),
        ("task_parked", 1, r#"{"step":"approve","signal":"approved","timeout_at":1700000000123}"#),
        ("task_parked", 1, r#"{"step":"pause","until":1700000000123}"#),
        ("task_parked", 1, r#"{"step":"parse","items":3}"#),
        (
            "task_signaled",
            1,
            r#"{"step":"approve","signal":"approved","by":"ada","reason":"looks good","payload":{"tag":"v2"}}"#,
        ),
        ("task_signaled", 1, r#"{"step":"approve","signal":"approved","by":"ada"}"#),
        ("task_parked", 1, r#"{"step":"deploy","timeout_at":1700000000000,"workflow":"./deploy.yaml"}"#),
        (
            "child_run_started",
            1,
            r#"{"step":"deploy","child":"0199f2a0-0000-7000-8000-1a2b3c4d5e6f","workflow":"./deploy.yaml"}"#,
        ),
        (
            "run_submitted",
            1,
            r#"{"workflow":"deploy","version":"ab12","params":{},"max_parallel":4,"by":"run 3c4d5e6f","parent":{"run":"0199f2a0-0000-7000-8000-1a2b3c4d5e6f","step":"deploy","life":7,"depth":1}}"#,
        ),
        (
            "run_submitted",
            1,
            r#"{"workflow":"nightly","version":"ab12","params":{},"max_parallel":4,"by":"ada","no_cache":true}"#,
        ),
        (
            "run_submitted",
            1,
            r#"{"workflow":"nightly","version":"ab12","params":{},"max_parallel":4,"by":"ada","not_before":1700000000000}"#,
        ),
        ("run_due", 1, "{}"),
        (
            "task_cached",
            1,
            r#"{"step":"build","attempt":1,"key":"ab12","from":"0199f2a0-0000-7000-8000-1a2b3c4d5e6f","recorded_at":1700000000123}"#,
        ),
        ("tasks_added", 1, r#"{"step":"parse","total":3,"first":0,"items":["a.csv",{"name":"b.csv"},7]}"#),
        ("tasks_added", 1, r#"{"step":"parse","total":900,"first":500,"items":[1,2],"attempts":4}"#),
        ("tasks_removed", 1, r#"{"step":"parse"}"#),
        ("task_skipped", 1, r#"{"step":"package","why":"upstream","detail":"test failed"}"#),
        (
            "task_finished",
            1,
            r#"{"step":"test","attempt":2,"status":"succeeded","took_ms":1200,"output":{"files":["a"]}}"#,
        ),
        ("effect_started", 1, r#"{"step":"pay","attempt":2,"name":"charge","key":"order-17"}"#),
        ("effect_started", 1, r#"{"step":"pay","attempt":1,"name":"charge"}"#),
        (
            "effect_committed",
            1,
            r#"{"step":"pay","attempt":2,"name":"charge","key":"order-17","status":"done","exit_code":0,"took_ms":40}"#,
        ),
        ("effect_committed", 1, r#"{"step":"pay","attempt":1,"name":"charge","status":"failed","by":"ada"}"#),
        ("lane_started", 1, r#"{"lane":"quality","kind":"group","steps":["lint","test"]}"#),
        (
            "lane_finished",
            1,
            r#"{"lane":"quality","kind":"group","results":[{"step":"lint","status":"failed","success":false}]}"#,
        ),
        ("level_committed", 1, r#"{"level":0,"checkpoint":"ab12","steps":["lint","test"]}"#),
        ("merge_finished", 1, r#"{"group":"quality","files":3,"conflicts":["src/a.rs"]}"#),
    ];

    #[test]
    fn every_stored_event_still_reads_and_writes_back_to_the_same_bytes() {
        for (name, version, body) in GOLDEN {
            let fact = Fact::read(name, *version, body).expect("a golden event");
            assert_eq!(fact.name(), *name);
            assert_eq!(fact.body_text(), *body);
        }
    }

    #[test]
    fn line_of_json_reads_back_as_the_event_it_was_made_of() {
        let run = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
        for (seq, (name, version, body)) in (1..).zip(GOLDEN) {
            let fact = Fact::read(name, *version, body).expect("a golden event");
            let event = Event { run, seq, at: Millis(1_700_000_000_123), fact };
            assert_eq!(Event::from_json(&event.to_json()), Ok(event));
        }
        assert!(Event::from_json(&serde_json::json!({ "event": "task_teleported" })).is_err());
        assert!(Event::from_json(&serde_json::json!({ "event": "run_started", "node": "a" })).is_err());
    }

    #[test]
    fn every_kind_of_event_has_a_golden_example() {
        for name in Fact::NAMES {
            assert!(GOLDEN.iter().any(|(golden, _, _)| golden == name), "{name} has no example");
        }
    }

    #[test]
    fn unknown_kinds_versions_and_fields_are_refused() {
        assert!(Fact::read("task_teleported", 1, "{}").is_err());
        assert!(Fact::read("run_started", 9, r#"{"node":"a"}"#).is_err());
        assert!(Fact::read("run_started", 1, r#"{"node":"a","more":1}"#).is_err());
    }
}
