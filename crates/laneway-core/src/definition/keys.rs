//! Every key of the document, in one place: what is built, and what is known and refused for now.
//! An issue that builds one moves it from `later` to `known`; `schema.rs` describes the known ones.

use super::reader::Keys;

pub(super) const WORKFLOW: Keys = Keys {
    owner: "a workflow",
    known: &[
        "name",
        "description",
        "params",
        "max_parallel",
        "max_parallel_steps",
        "on_failure",
        "timeout",
        "cleanup_timeout",
        "step_timeout",
        "step_retry",
        "env",
        "shell",
        "steps",
        "groups",
        "execution",
        "placement",
        "workspace",
        "max_runs",
        "limits",
        "schedule",
        "after",
        "secrets",
        "webhook",
        "hooks",
        "pools",
    ],
    later: &[],
};

pub(super) const STEP: Keys = Keys {
    owner: "a step",
    known: &[
        "run",
        "command",
        "args",
        "shell",
        "function",
        "queue",
        "with",
        "needs",
        "when",
        "if",
        "env",
        "workdir",
        "timeout",
        "retry",
        "on_lost",
        "lock",
        "order",
        "limits",
        "not_before",
        "runs_on",
        "prefers",
        "priority",
        "artifacts",
        "inputs",
        "isolate",
        "on_conflict",
        "cache",
        "image",
        "container",
        "pool",
        "call",
        "wait",
        "workflow",
        "for_each",
        "max_parallel",
        "fail_fast",
        "description",
    ],
    later: &["matrix", "key"],
};

pub(super) const GROUP: Keys = Keys {
    owner: "a group",
    known: &[
        "steps",
        "failure",
        "merge",
        "on_conflict",
        "isolate",
        "max_parallel",
        "mode",
        "dormancy",
        "description",
    ],
    later: &[],
};

/// The settings that a step's `container` and a pool share.
macro_rules! settings {
    ($($more:literal),*) => {
        &[
            $($more,)*
            "mounts",
            "user",
            "network",
            "cpus",
            "memory",
            "pids",
            "read_only",
            "pull",
            "secrets",
        ]
    };
}

pub(super) const CONTAINER: Keys = Keys { owner: "`container`", known: settings![], later: &[] };

pub(super) const POOL: Keys = Keys {
    owner: "a pool",
    known: settings![
        "image",
        "max",
        "mode",
        "dormancy",
        "acquire_timeout",
        "command",
        "endpoint",
        "health",
        "health_interval",
        "health_timeout"
    ],
    later: &[],
};

pub(super) const ENDPOINT: Keys = Keys { owner: "`endpoint`", known: &["port", "health"], later: &[] };

pub(super) const HEALTH: Keys = Keys { owner: "`health`", known: &["command"], later: &[] };

pub(super) const CALL: Keys = Keys { owner: "`call`", known: &["method", "path", "body"], later: &[] };

pub(super) const WAIT: Keys =
    Keys { owner: "`wait`", known: &["signal", "until", "for", "timeout"], later: &[] };

pub(super) const CACHE: Keys = Keys { owner: "`cache`", known: &["key", "ttl", "files"], later: &[] };

pub(super) const MERGE: Keys = Keys { owner: "`merge`", known: &["custom"], later: &[] };

pub(super) const ON_CONFLICT: Keys = Keys { owner: "`on_conflict`", known: &["keep"], later: &[] };

pub(super) const WORKSPACE: Keys = Keys { owner: "`workspace`", known: &["path"], later: &[] };

pub(super) const PARAM: Keys =
    Keys { owner: "a parameter", known: &["type", "required", "default", "enum", "description"], later: &[] };

pub(super) const RETRY: Keys = Keys {
    owner: "`retry`",
    known: &["max", "backoff", "factor", "max_backoff", "jitter", "on"],
    later: &[],
};

pub(super) const SECRET: Keys = Keys { owner: "a secret", known: &["env", "file", "store"], later: &[] };

pub(super) const ORDER: Keys = Keys { owner: "`order`", known: &["key", "version"], later: &[] };

pub(super) const MAX_RUNS: Keys = Keys { owner: "`max_runs`", known: &["limit", "strategy"], later: &[] };

pub(super) const SCHEDULE: Keys =
    Keys { owner: "`schedule`", known: &["cron", "timezone", "catch_up", "params"], later: &[] };

pub(super) const AFTER: Keys = Keys { owner: "`after`", known: &["workflow", "when", "params"], later: &[] };

pub(super) const WEBHOOK: Keys =
    Keys { owner: "`webhook`", known: &["path", "secret", "scheme", "params"], later: &[] };

pub(super) const HOOKS: Keys =
    Keys { owner: "`hooks`", known: &["succeeded", "failed", "finished"], later: &[] };

pub(super) const HOOK: Keys = Keys {
    owner: "a hook",
    known: &[
        "run",
        "command",
        "args",
        "shell",
        "post",
        "secret",
        "headers",
        "content_type",
        "body",
        "if",
        "env",
        "workdir",
        "timeout",
        "retry",
        "runs_on",
        "description",
    ],
    later: &[],
};
