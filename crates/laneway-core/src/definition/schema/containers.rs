//! The schema of containers and pools: as far as a schema can say it, what `definition/containers.rs` and `definition/pools.rs`
//! read.

use serde_json::{Value, json};

use super::{NAME, duration};
use crate::definition::housing::{Method, PoolMode, Pull};

/// Bytes with a unit; what is too little to start with is left to the reader.
const MEMORY: &str = "^[0-9]+[bkmgBKMG]$";
const IMAGE: &str = "^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,399}$";
const MOUNT: &str = "^(/[^:]*|\\.|\\./[^:]*):/[^:]+(:ro|:rw)?$";
/// An absolute path of a URL.
const PATH: &str = "^/";

pub(super) fn image(description: &str) -> Value {
    json!({"description": description, "type": "string", "pattern": IMAGE})
}

/// What a step's own container and those of a pool have both.
fn settings() -> Value {
    json!({
        "mounts": {
            "description": "What of the node is seen inside: SOURCE:TARGET, or SOURCE:TARGET:ro. A source is ./ below the run's directory, or absolute.",
            "type": "array", "items": {"type": "string", "pattern": MOUNT},
        },
        "user": {
            "description": "Who it runs as: a number or a name, with :GROUP behind it if need be. Default: the image's.",
            "type": ["string", "integer"],
        },
        "network": {
            "description": "none, bridge, host, or a network that exists. Default: the engine's.",
            "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        },
        "cpus": {
            "description": "How many processors it may use, such as 0.5. Default: all.",
            "type": "number", "minimum": 0.01, "maximum": 1024,
        },
        "memory": {
            "description": "How much memory it may use, such as 512m or 2g. Default: all.",
            "type": "string", "pattern": MEMORY,
        },
        "pids": {
            "description": "How many processes and threads it may have. Default: no limit.",
            "type": "integer", "minimum": 1, "maximum": u32::MAX,
        },
        "read_only": {"description": "Whether its own files cannot be changed; /tmp still can. Default: false.", "type": "boolean"},
        "pull": {
            "description": "When the image is fetched: missing, if the node does not have it; always; never. Default: missing.",
            "enum": Pull::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>(),
        },
        "secrets": {
            "description": "Secrets of the workflow that are files inside, /run/secrets/NAME.",
            "type": "array", "items": {"type": "string", "pattern": NAME},
        },
    })
}

pub(super) fn container() -> Value {
    json!({
        "description": "How the container of a step's image is made.",
        "type": "object",
        "additionalProperties": false,
        "properties": settings(),
    })
}

pub(super) fn pool() -> Value {
    let mut properties = json!({
        "image": image("What its containers are made of."),
        "max": {
            "description": "How many of them there may be on a node. Default: 4.",
            "type": "integer", "minimum": 1, "maximum": u32::MAX,
        },
        "mode": {
            "description": "multi gives each task one for itself, single has all tasks share one. Default: multi.",
            "enum": PoolMode::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>(),
        },
        "dormancy": duration("How long an unused one stays paused before it is removed. Default: 5m."),
        "acquire_timeout": duration("How long a task waits for one, or for a host port that it needs. 0s is no limit. Default: 1m."),
        "command": {
            "description": "What a container runs while it is there. Default: it waits, or with an endpoint the image's own.",
            "type": "array", "minItems": 1,
            "items": {"$ref": "#/$defs/scalar", "not": {"type": "string", "pattern": "\\$\\{\\{"}},
        },
        "endpoint": {"$ref": "#/$defs/endpoint"},
        "health": {"$ref": "#/$defs/health"},
        "health_interval": duration("How often it is asked whether it is ready. Default: 500ms."),
        "health_timeout": duration("How long it may take to be ready. Default: 30s."),
    });
    if let (Value::Object(all), Value::Object(settings)) = (&mut properties, settings()) {
        all.extend(settings);
        // Known, so that what is said of them is clear.
        let always = "Always: every task finds the image as it is.";
        all.insert("read_only".into(), json!({"description": always, "const": true}));
        let none = "None: tasks of others use a warm container too. Its steps read secrets in their env.";
        all.insert("secrets".into(), json!({"description": none, "not": {}}));
    }
    json!({
        "description": "Warm containers: one that was used is paused, and wakes for the next task.",
        "type": "object",
        "additionalProperties": false,
        "required": ["image"],
        "properties": properties,
    })
}

pub(super) fn endpoint() -> Value {
    json!({
        "description": "What a container serves over HTTP, for steps with call.",
        "type": "object",
        "additionalProperties": false,
        "required": ["port"],
        "properties": {
            "port": {"description": "Where it listens inside.", "type": "integer", "minimum": 1, "maximum": 65535},
            "health": {
                "description": "What answers with success once it is ready. Default: /health.",
                "type": "string", "pattern": PATH,
            },
        },
    })
}

pub(super) fn health() -> Value {
    json!({
        "description": "A program inside that tells by its exit code whether the container is ready.",
        "type": "object",
        "additionalProperties": false,
        "required": ["command"],
        "properties": {
            "command": {
                "description": "The program and its arguments.",
                "type": "array", "minItems": 1, "items": {"$ref": "#/$defs/scalar"},
            },
        },
    })
}

pub(super) fn call() -> Value {
    json!({
        "description": "A question to the endpoint of a container of the step's pool; a JSON object in the answer is its output.",
        "type": "object",
        "additionalProperties": false,
        "required": ["path"],
        "properties": {
            "method": {
                "description": "How it asks. Default: POST.",
                "enum": Method::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>(),
            },
            "path": {"description": "What it asks for; ${{ … }} can stand in it.", "type": "string", "pattern": PATH},
            "body": {"description": "What it sends, as JSON; ${{ … }} can stand in its strings, and one alone keeps its type."},
        },
        "if": {"properties": {"method": {"const": "GET"}}, "required": ["method"]},
        "then": {"not": {"required": ["body"]}},
    })
}
