//! The JSON Schema of the document, for editors: `laneway schema`. Says what the reader says as far
//! as a schema can; a test holds both against the same documents.

use serde_json::{Value, json};

use super::model::{OnFailure, OnLost, ParamType, When};

const NAME: &str = "^[A-Za-z_][A-Za-z0-9_-]{0,99}$";
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// At least one part, the largest unit first, each once.
const DURATION: &str = "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
/// Text that is taken as it is: no expression may stand in it.
const LITERAL: &str = "^(?![\\s\\S]*\\$\\{\\{)[\\s\\S]*\\S";

/// JSON Schema 2020-12.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Laneway workflow",
        "description": "A graph of steps that run in parallel as far as their needs allow.",
        "type": "object",
        "required": ["steps"],
        "additionalProperties": false,
        "patternProperties": {
            "^x-": {"description": "Your own: a place for anchors. Not looked at."}
        },
        "properties": {
            "name": {
                "description": "Name of the workflow. Default: the file's name.",
                "type": "string", "minLength": 1, "maxLength": 100, "pattern": LITERAL,
            },
            "description": described_text("What the workflow is for."),
            "params": {
                "description": "Values that are given when a run starts, read as ${{ params.NAME }}.",
                "type": "object",
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"$ref": "#/$defs/param"},
            },
            "max_parallel": {
                "description": "How many steps of a run may run at once. Default: 4.",
                "type": "integer", "minimum": 1, "maximum": u32::MAX,
            },
            "on_failure": {
                "description": "After a failure: halt starts nothing new and lets running steps finish; abort cancels them as well; continue skips only what depends on the failed step. Default: halt.",
                "enum": OnFailure::ALL.map(OnFailure::as_str),
            },
            "timeout": duration("How long a run may take. 0s is no limit."),
            "env": env("Variables of every step. They can read params and run; a step's own env wins."),
            "execution": {
                "description": "A step starts as soon as what it needs is done.",
                "enum": ["dataflow"],
            },
            "placement": {
                "description": "Which nodes may run the steps of a run.",
                "enum": ["spread", "local"],
            },
            "steps": {
                "description": "The steps by name. Their order breaks ties.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"$ref": "#/$defs/step"},
            },
            "groups": {
                "description": "Sets of steps that run side by side, by name.",
                "type": "object",
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"$ref": "#/$defs/group"},
            },
        },
        "$defs": {
            "step": step(),
            "group": group(),
            "param": param(),
            "retry": retry(),
            "scalar": {"type": ["string", "number", "boolean"]},
        },
    })
}

fn step() -> Value {
    json!({
        "description": "One step: a script or a program.",
        "type": "object",
        "additionalProperties": false,
        "oneOf": [{"required": ["run"]}, {"required": ["command"]}],
        "properties": {
            "run": {
                "description": "A script for `sh -e`, or for the interpreter that its first line names with `#!`. Values reach it through env.",
                "type": "string", "pattern": LITERAL,
            },
            "command": {
                "description": "A program and its arguments, without a shell.",
                "type": "array", "minItems": 1,
                "items": {"$ref": "#/$defs/scalar", "not": {"pattern": "\\$\\{\\{"}},
            },
            "args": {
                "description": "Further arguments of the script or program; ${{ … }} can stand in them.",
                "type": "array", "items": {"$ref": "#/$defs/scalar"},
            },
            "needs": {
                "description": "The steps that come before: a name, or a list of names.",
                "oneOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}},
                ],
            },
            "when": {
                "description": "What must have become of the steps it needs. Default: all_succeeded.",
                "enum": When::ALL.map(When::as_str),
            },
            "if": {
                "description": "A condition, such as params.depth > 1. False skips the step.",
                "type": ["string", "boolean"],
            },
            "env": env("Variables of this step; ${{ … }} can stand in the values."),
            "workdir": {
                "description": "Where it runs, relative to the workflow file's directory.",
                "type": "string", "pattern": LITERAL,
            },
            "timeout": duration("How long an attempt may take. 0s is no limit."),
            "retry": {"$ref": "#/$defs/retry"},
            "on_lost": {
                "description": "When the node that runs it dies: retry it elsewhere, or fail it because it must not run twice. Default: retry.",
                "enum": OnLost::ALL.map(OnLost::as_str),
            },
            "description": described_text("What the step is for."),
        },
    })
}

fn group() -> Value {
    json!({
        "description": "Steps that run side by side.",
        "type": "object",
        "additionalProperties": false,
        "required": ["steps"],
        "properties": {
            "steps": {
                "description": "Names of the steps.",
                "type": "array", "minItems": 1, "uniqueItems": true,
                "items": {"type": "string", "pattern": NAME},
            },
        },
    })
}

fn param() -> Value {
    let of_type = |kind: ParamType| {
        let schema = match kind {
            ParamType::List => json!({"type": "array"}),
            ParamType::String
            | ParamType::Integer
            | ParamType::Number
            | ParamType::Boolean
            | ParamType::Object => json!({"type": kind.as_str()}),
        };
        json!({
            "if": {"properties": {"type": {"const": kind.as_str()}}, "required": ["type"]},
            "then": {"properties": {"default": schema, "enum": {"items": schema}}},
        })
    };
    json!({
        "description": "A typed parameter. One that is neither required nor has a default is null when not given.",
        "type": "object",
        "additionalProperties": false,
        "required": ["type"],
        "properties": {
            "type": {
                "description": "Its type.",
                "enum": ParamType::ALL.map(ParamType::as_str),
            },
            "required": {"description": "Whether a run must give it. Default: false.", "type": "boolean"},
            "default": {"description": "Its value where a run gives none."},
            "enum": {"description": "The values it can have.", "type": "array", "minItems": 1},
            "description": described_text("What it is for."),
        },
        "allOf": ParamType::ALL.map(of_type),
        "not": {"properties": {"required": {"const": true}}, "required": ["required", "default"]},
    })
}

fn retry() -> Value {
    json!({
        "description": "Further attempts after a failed one.",
        "type": "object",
        "additionalProperties": false,
        "required": ["max"],
        "properties": {
            "max": {
                "description": "How many attempts may follow the first.",
                "type": "integer", "minimum": 0, "maximum": 1000,
            },
            "backoff": duration("Delay before the second attempt. Default: 1s."),
            "factor": {
                "description": "What each further delay is multiplied by. Default: 2.",
                "type": "number", "minimum": 1, "maximum": 1000,
            },
            "max_backoff": duration("The longest delay. Default: 1m, or backoff if that is longer."),
            "jitter": {
                "description": "Share of the delay, 0 to 1, that is taken off at random. Default: 0.",
                "type": "number", "minimum": 0, "maximum": 1,
            },
            "on": {
                "description": "Reasons or exit codes after which to try again. Default: every failure.",
                "type": "array", "minItems": 1,
                "items": {"oneOf": [
                    {"enum": super::value::RETRYABLE.map(crate::reason::Reason::as_str)},
                    {"type": "integer", "minimum": 1, "maximum": 255},
                ]},
            },
        },
    })
}

fn duration(description: &str) -> Value {
    json!({
        "description": format!("{description} Such as 500ms, 30s, 5m, 2h, 1d or 1h30m."),
        "type": "string", "pattern": DURATION,
    })
}

fn env(description: &str) -> Value {
    json!({
        "description": description,
        "type": "object",
        "propertyNames": {"pattern": VARIABLE},
        "additionalProperties": {"$ref": "#/$defs/scalar"},
    })
}

fn described_text(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}
