//! The JSON Schema of the document, for editors: `laneway schema`. Says what the reader says as far
//! as a schema can; a test holds both against the same documents.

mod containers;

use serde_json::{Value, json};

use super::housing::PoolMode;
use super::keys::STEP;
use super::model::{GroupFailure, OnFailure, OnLost, ParamType, Placement, When};
use super::waits;
use crate::limit::MAX_LIMIT;
use crate::max_runs::Strategy;
use crate::rank::{HIGHEST_PRIORITY, LEAST_PRIORITY};
use crate::schedule::CatchUp;
use crate::trigger::Scheme;
use containers::{call, container, endpoint, health, image, pool};

const NAME: &str = "^[A-Za-z_][A-Za-z0-9_-]{0,99}$";
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// At least one part, the largest unit first, each once.
const DURATION: &str = "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
/// A duration that is not zero.
const SOME_TIME: &str = "^(?=.*[1-9])([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
/// A count above zero and a duration.
const RATE: &str = "^0*[1-9][0-9]*/(?=.*[1-9])(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
/// A moment, or anything with an expression in it.
const MOMENT: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}|\\$\\{\\{";
/// A duration, or anything with an expression in it.
const SPAN: &str = "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$|\\$\\{\\{";
const LABEL: &str = "^[A-Za-z0-9_./:-]{1,100}$";
/// Seen, and without blanks around it.
const KEY: &str = "^\\S([\\s\\S]*\\S)?$";
/// Numbers between dots, or anything with an expression in it.
const VERSION: &str = "^v?[0-9]{1,18}(\\.[0-9]{1,18}){0,31}$|\\$\\{\\{";
/// A relative path that stays where it is, with `*`, `?` and `**`.
const ARTIFACT: &str = "^(?!/)(?!.*//)(?!.*/$)(?!(.*/)?\\.\\.?(/|$))[^\\[\\]{}!\\u0000-\\u001f]+$";
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
            "max_parallel_steps": {
                "description": "How many steps of a level run at once; 0 is one after the other. For execution: levels. Default: 4.",
                "type": "integer", "minimum": 0, "maximum": u32::MAX,
            },
            "execution": {
                "description": "dataflow: a step starts as soon as what it needs is done. levels: the steps of a level start together, and count together when all of them have succeeded; a failure cancels its level, and nothing of that counts. Default: dataflow.",
                "enum": ["dataflow", "levels"],
            },
            "placement": {
                "description": "Which nodes may run the steps of a run: spread, any; pinned, the one that took the first; local, the one it was submitted to. Default: spread.",
                "enum": Placement::ALL.map(Placement::as_str),
            },
            "max_runs": {"$ref": "#/$defs/max_runs"},
            "secrets": {
                "description": "Names for values that are found where a step runs, read as ${{ secrets.NAME }} in env: a variable of the node, a file on it, or a secret of the store.",
                "type": "object",
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {
                    "type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
                    "properties": {
                        "env": {"description": "A variable of the node's own environment.", "type": "string", "pattern": "^[A-Za-z0-9_]+$"},
                        "file": {"description": "A file on the node.", "type": "string", "pattern": LITERAL},
                        "store": {"description": "A secret that `laneway secret set` has made.", "type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
                    },
                },
            },
            "limits": {
                "description": "Named limits, shared by all runs on the store: so many tasks at once, such as 3, or a rate, such as 100/1m.",
                "type": "object",
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"oneOf": [
                    {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
                    {"type": "string", "pattern": "^0*[1-9][0-9]*$"},
                    {"type": "string", "pattern": RATE},
                ]},
            },
            "schedule": {"$ref": "#/$defs/schedule"},
            "after": {"$ref": "#/$defs/after"},
            "webhook": {"$ref": "#/$defs/webhook"},
            "hooks": {"$ref": "#/$defs/hooks"},
            "steps": {
                "description": "The steps by name. Their order breaks ties.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"$ref": "#/$defs/step"},
            },
            "pools": {
                "description": "Warm containers by name, for steps with pool.",
                "type": "object",
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"$ref": "#/$defs/pool"},
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
            "wait": wait(),
            "cache": cache(),
            "hook": hook(),
            "group": group(),
            "container": container(),
            "pool": pool(),
            "call": call(),
            "endpoint": endpoint(),
            "health": health(),
            "param": param(),
            "retry": retry(),
            "order": order(),
            "max_runs": max_runs(),
            "schedule": one_or_more("When it starts by itself, once it is applied.", &schedule()),
            "after": one_or_more("Workflows whose ends start it, once it is applied.", &after()),
            "webhook": one_or_more("Addresses at which others start it, once it is applied.", &webhook()),
            "hooks": hooks(),
            "scalar": {"type": ["string", "number", "boolean"]},
        },
    })
}

fn step() -> Value {
    json!({
        "description": "One step: a script, a program, a function, work of a queue, or a wait; a script or program may run in a container.",
        "type": "object",
        "additionalProperties": false,
        "dependentRequired": {
            "container": ["image"], "call": ["pool"], "max_parallel": ["for_each"], "fail_fast": ["for_each"],
        },
        "not": {"anyOf": [
            {"required": ["image", "pool"]},
            {"required": ["for_each", "order"]},
            {"allOf": [cached(), {"required": ["on_lost"], "properties": {"on_lost": {"const": "fail"}}}]},
        ]},
        "oneOf": [
            {"required": ["run"], "not": {"required": ["with"]}},
            {"required": ["command"], "not": {"required": ["with"]}},
            {"required": ["function"],
             "not": {"anyOf": [{"required": ["args"]}, {"required": ["image"]}, {"required": ["pool"]},
                               {"required": ["cache"], "properties": {"cache": {"required": ["files"], "type": "object"}}}]},
             "properties": {"with": {"additionalProperties": {"$ref": "#/$defs/scalar"}}}},
            {"required": ["queue"],
             "not": {"anyOf": [{"required": ["args"]}, {"required": ["env"]}, {"required": ["workdir"]},
                               {"required": ["artifacts"]}, {"required": ["inputs"]}, cached(),
                               {"required": ["image"]}, {"required": ["pool"]}]}},
            {"required": ["call"],
             "not": {"anyOf": [{"required": ["args"]}, {"required": ["with"]}, {"required": ["env"]},
                               {"required": ["workdir"]}, {"required": ["artifacts"]}, {"required": ["inputs"]},
                               cached()]}},
            {"required": ["wait"], "not": {"anyOf": not_of_waits()}},
        ],
        "properties": {
            "run": {
                "description": "A script for `sh -e`, or for the interpreter that its first line names with `#!`. Values reach it through env.",
                "type": "string", "pattern": LITERAL,
            },
            "command": {
                "description": "A program and its arguments, without a shell.",
                "type": "array", "minItems": 1,
                "items": {"$ref": "#/$defs/scalar", "not": {"type": "string", "pattern": "\\$\\{\\{"}},
            },
            "args": {
                "description": "Further arguments of the script or program; ${{ … }} can stand in them.",
                "type": "array", "items": {"$ref": "#/$defs/scalar"},
            },
            "function": {
                "description": "A function of the program that embeds Laneway, by name.",
                "type": "string", "pattern": LITERAL,
            },
            "queue": {
                "description": "Remote workers that take this queue do it, over HTTP.",
                "type": "string", "pattern": LABEL,
            },
            "wait": {"$ref": "#/$defs/wait"},
            "for_each": {
                "description": "A list, or an expression that gives one: the step becomes one task for each item, read as ${{ item }}, and as ${{ index }} its place from 0 on. steps.NAME.output is the list of their outputs.",
                "oneOf": [{"type": "array"}, {"type": "string", "pattern": "^\\s*\\$\\{\\{[\\s\\S]*\\}\\}\\s*$"}],
            },
            "max_parallel": {
                "description": "How many items of for_each may run at once. Default: as many as the run allows.",
                "type": "integer", "minimum": 1, "maximum": u32::MAX,
            },
            "fail_fast": {
                "description": "Whether the first item that fails ends the others. Default: false; all of them run.",
                "type": "boolean",
            },
            "with": {
                "description": "The input of the function, by name, or that of a queue's worker, which may be any JSON; a value that is one ${{ … }} keeps its type.",
                "type": "object",
                "propertyNames": {"pattern": VARIABLE},
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
            "lock": key("No two tasks on this key at once, of whatever run. ${{ params.NAME }} can stand in it, and ${{ item }} where there is for_each."),
            "order": {"$ref": "#/$defs/order"},
            "limits": {
                "description": "Names of limits in which each of its tasks takes a place.",
                "type": "array", "uniqueItems": true,
                "items": {"type": "string", "pattern": NAME},
            },
            "runs_on": labels("Labels that a node must have to run it."),
            "prefers": labels("Labels that a node had better have; they only order."),
            "artifacts": {
                "description": "Files that it leaves behind, relative to its directory: paths with *, ? and **. Kept if it succeeds.",
                "type": "array", "uniqueItems": true,
                "items": {"type": "string", "minLength": 1, "pattern": ARTIFACT},
            },
            "inputs": {
                "description": "Steps it needs, whose artifacts are put into its directory before it starts.",
                "oneOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}},
                ],
            },
            "cache": {"$ref": "#/$defs/cache"},
            "image": image("Runs in a container of its own, made of this image."),
            "container": {"$ref": "#/$defs/container"},
            "pool": {
                "description": "Runs in a warm container of this pool.",
                "type": "string", "pattern": NAME,
            },
            "call": {"$ref": "#/$defs/call"},
            "priority": {
                "description": "Higher goes first; each step is worth a minute of waiting. Default: 0.",
                "type": "integer", "minimum": LEAST_PRIORITY, "maximum": HIGHEST_PRIORITY,
            },
            "description": described_text("What the step is for."),
        },
    })
}

fn order() -> Value {
    json!({
        "description": "On one key smaller versions go first: it waits until no smaller one is left.",
        "type": "object",
        "additionalProperties": false,
        "required": ["key", "version"],
        "properties": {
            "key": key("What is ordered. ${{ params.NAME }} can stand in it."),
            "version": {
                "description": "Numbers between dots, in quotes: 2.9 goes before 2.10. ${{ params.NAME }} can stand in it.",
                "type": "string", "pattern": VERSION,
            },
        },
    })
}

/// A step with `cache`, unless that is off.
fn cached() -> Value {
    json!({"required": ["cache"], "properties": {"cache": {"not": {"const": false}}}})
}

/// Keys of a step that mean nothing to one that waits.
fn not_of_waits() -> Vec<Value> {
    let keys = STEP.known.iter().filter(|key| waits::advice(key).is_some());
    keys.map(|key| json!({"required": [key]})).collect()
}

fn wait() -> Value {
    json!({
        "description": "What the step waits for: a signal, a moment, or a while. It is parked meanwhile, and takes up no slot.",
        "type": "object",
        "additionalProperties": false,
        "oneOf": [{"required": ["signal"]}, {"required": ["until"]}, {"required": ["for"]}],
        "properties": {
            "signal": {
                "description": "The name of a signal. It comes by `laneway signal RUN STEP NAME`, or over HTTP; what it brings is the output of the step.",
                "type": "string", "pattern": LABEL,
            },
            "until": {
                "description": "A moment with its offset, such as 2026-12-24T18:00:00Z; ${{ … }} can stand in it. One that is past is over at once.",
                "type": "string", "pattern": MOMENT,
            },
            "for": {
                "description": "A duration, from the moment on at which what it needs is done; ${{ … }} can stand in it.",
                "type": "string", "pattern": SPAN,
            },
            "timeout": duration("After how long the step fails, if what it waits for has not come. 0s is never."),
        },
    })
}

fn cache() -> Value {
    json!({
        "description": "Takes a result of this step that was recorded before, if the command, the image, the variables of the document and what is said here are the same. true is with nothing more.",
        "oneOf": [
            {"type": "boolean"},
            {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "key": {
                        "description": "What else the result depends on; ${{ … }} can stand in it.",
                        "$ref": "#/$defs/scalar",
                    },
                    "ttl": {
                        "description": "For how long a result is good. Default: as long as it is kept.",
                        "type": "string", "pattern": SOME_TIME,
                    },
                    "files": {
                        "description": "Files whose contents belong to the key, relative to its directory: paths with *, ? and **.",
                        "type": "array", "uniqueItems": true,
                        "items": {"type": "string", "minLength": 1, "pattern": ARTIFACT},
                    },
                },
            },
        ],
    })
}

fn max_runs() -> Value {
    json!({
        "description": "How many runs of the workflow there may be at once. A number alone queues the others.",
        "oneOf": [
            {"type": "integer", "minimum": 1, "maximum": u32::MAX},
            {
                "type": "object",
                "additionalProperties": false,
                "required": ["limit"],
                "properties": {
                    "limit": {
                        "description": "The number of runs.",
                        "type": "integer", "minimum": 1, "maximum": u32::MAX,
                    },
                    "strategy": {
                        "description": "One too many: queue waits; skip ends as canceled at once; replace cancels the oldest; fail is refused. Default: queue.",
                        "enum": Strategy::ALL.iter().map(|strategy| strategy.as_str()).collect::<Vec<_>>(),
                    },
                },
            },
        ],
    })
}

fn one_or_more(description: &str, one: &Value) -> Value {
    json!({"description": description, "oneOf": [one, {"type": "array", "items": one}]})
}

fn given(reads: &str) -> Value {
    json!({
        "description": format!("Parameters of the runs it starts. {reads} can stand in them."),
        "type": "object",
    })
}

fn schedule() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["cron"],
        "properties": {
            "cron": {
                "description": "Minute, hour, day, month, weekday; or six fields with seconds in front.",
                "type": "string", "minLength": 1,
            },
            "timezone": {
                "description": "Whose clock on the wall it means, such as Europe/Berlin. Default: UTC.",
                "type": "string", "minLength": 1,
            },
            "catch_up": {
                "description": "Ticks at which no node was there: none leaves them out, latest makes up for the last, all for each. Default: none.",
                "enum": CatchUp::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>(),
            },
            "params": given("${{ tick.at }} and ${{ tick.date }}"),
        },
    })
}

fn after() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["workflow"],
        "properties": {
            "workflow": {"description": "The name of the other workflow.", "type": "string", "minLength": 1},
            "when": {
                "description": "How a run of it has to end. Default: succeeded.",
                "enum": ["succeeded", "failed", "canceled", "finished"],
            },
            "params": given("${{ ended.run }}, ${{ ended.workflow }} and ${{ ended.status }}"),
        },
    })
}

fn webhook() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["path", "secret"],
        "properties": {
            "path": {
                "description": "Where it listens: POST /v1/hooks/PATH.",
                "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$",
            },
            "secret": {
                "description": "Which of the workflow's secrets senders sign with.",
                "type": "string", "pattern": NAME,
            },
            "scheme": {
                "description": "How they sign: laneway signs moment, delivery and body, github the body alone. Default: laneway.",
                "enum": Scheme::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>(),
            },
            "params": given("${{ payload.… }}, which is what was sent,"),
        },
    })
}

fn hooks() -> Value {
    let on = |when: &str| json!({"description": when, "type": "array", "items": {"$ref": "#/$defs/hook"}});
    json!({
        "description": "What runs when a run is over, as a run of its own; LANEWAY_ENDED_STATUS and ${{ ended.status }} say how it ended.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "succeeded": on("When it succeeded."),
            "failed": on("When it failed."),
            "finished": on("However it ended."),
        },
    })
}

fn hook() -> Value {
    let of_a_step = step();
    let not = |names: &[&str]| {
        let any: Vec<Value> = names.iter().map(|name| json!({"required": [name]})).collect();
        json!({"anyOf": any})
    };
    let mut properties = json!({
        "post": {
            "description": "A callback: the outcome is sent there as JSON, until it is taken. ${{ … }} can stand in it.",
            "type": "string", "pattern": "^https?://",
        },
        "secret": {"description": "Which of the workflow's secrets a callback is signed with.", "type": "string", "pattern": NAME},
    });
    for key in
        ["run", "command", "args", "if", "env", "workdir", "timeout", "retry", "runs_on", "description"]
    {
        properties[key] = of_a_step["properties"][key].clone();
    }
    json!({
        "description": "A step that runs when a run is over, or a callback.",
        "type": "object",
        "additionalProperties": false,
        "oneOf": [
            {"required": ["run"], "not": not(&["secret", "post"])},
            {"required": ["command"], "not": not(&["secret", "post"])},
            {"required": ["post"], "not": not(&["run", "command", "args", "env", "workdir", "runs_on"])},
        ],
        "properties": properties,
    })
}

fn group() -> Value {
    json!({
        "description": "Steps that run side by side. Their results come together in the step NAME/merge, which is what `needs: [NAME]` means.",
        "type": "object",
        "additionalProperties": false,
        "required": ["steps"],
        "properties": {
            "steps": {
                "description": "Names of the steps.",
                "type": "array", "minItems": 1, "uniqueItems": true,
                "items": {"type": "string", "pattern": NAME},
            },
            "failure": {
                "description": "strict: the first failure cancels the other members, and nothing is merged; lenient: all run, and what failed is listed with success: false. Default: strict.",
                "enum": GroupFailure::ALL.map(GroupFailure::as_str),
            },
            "merge": {
                "description": "How results come together, read as ${{ groups.NAME.result }}: concatenate lists outputs in member order; workspace applies what members changed in their copies; custom pipes all results as JSON through a program, whose output is the result. Default: concatenate.",
                "oneOf": [
                    {"enum": ["concatenate", "workspace", "custom"]},
                    {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["custom"],
                        "properties": {"custom": {
                            "description": "A program and its arguments.",
                            "type": "array", "minItems": 1,
                            "items": {"type": ["string", "number", "boolean"]},
                        }},
                    },
                ],
            },
            "on_conflict": {
                "description": "With merge: workspace, what becomes of files that members changed in different ways. Default: fail.",
                "oneOf": [
                    {"enum": ["fail"]},
                    {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["keep"],
                        "properties": {"keep": {"description": "The member whose files are taken.", "type": "string", "pattern": NAME}},
                    },
                ],
            },
            "isolate": {
                "description": "Each member works in a copy of the run's directory of its own. Implies placement: pinned. Default: false.",
                "type": "boolean",
            },
            "max_parallel": {
                "description": "How many members may run at once. Default: as many as the run allows.",
                "type": "integer", "minimum": 1, "maximum": u32::MAX,
            },
            "mode": {
                "description": "How members that use a pool share its containers: multi gives each its own, single all of them one. Default: the pool's.",
                "enum": PoolMode::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>(),
            },
            "dormancy": {
                "description": "How long containers that members used are kept. Default: the pool's.",
                "type": "string", "pattern": DURATION,
            },
            "description": described_text("What the group is for."),
        },
        "allOf": [
            {
                "if": {"properties": {"merge": {"const": "workspace"}}, "required": ["merge"]},
                "then": {"properties": {"isolate": {"const": true}}, "required": ["isolate"]},
                "else": {"not": {"required": ["on_conflict"]}},
            },
        ],
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

fn key(description: &str) -> Value {
    json!({"description": description, "type": "string", "pattern": KEY, "maxLength": 4096})
}

fn labels(description: &str) -> Value {
    json!({
        "description": description,
        "type": "object",
        "propertyNames": {"pattern": LABEL},
        "additionalProperties": {
            "$ref": "#/$defs/scalar",
            "not": {"type": "string", "not": {"pattern": LABEL}},
        },
    })
}

fn described_text(description: &str) -> Value {
    json!({"description": description, "type": "string"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Source, compile, keys};

    /// Documents with the verdict of both, as JSON, which is YAML.
    const AGREED: &[(bool, &str)] = &[
        (true, r#"{"steps": {"a": {"run": "make"}}}"#),
        (
            true,
            r#"{"name": "x", "description": "d", "max_parallel": 2, "on_failure": "abort", "timeout": "1h30m",
                   "env": {"A": 1, "B": true, "C": "x"}, "execution": "dataflow", "placement": "local", "x-mine": [1],
                   "params": {"p": {"type": "integer", "default": 2, "enum": [1, 2], "description": "d"}},
                   "steps": {"a": {"run": "make"}, "b": {"command": ["x", 1], "args": ["${{ params.p }}"], "needs": "a",
                     "when": "all_done", "if": "params.p > 1", "env": {"A": "${{ steps.a.output.x }}"}, "workdir": "w",
                     "timeout": "0s", "on_lost": "fail", "description": "d",
                     "retry": {"max": 3, "backoff": "500ms", "factor": 1.5, "max_backoff": "1m", "jitter": 0.1, "on": ["exit", 75]}}},
                   "groups": {"g": {"steps": ["a"]}}}"#,
        ),
        (true, r#"{"steps": {"a": {"run": "make", "if": true, "needs": []}}}"#),
        (true, r#"{"steps": {"a": {"function": "resize", "with": {"width": 5, "name": "x"}}}}"#),
        (false, r#"{"steps": {"a": {"function": "resize", "args": ["x"]}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "with": {"width": 5}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "function": "resize"}}}"#),
        (false, r#"{"steps": {"a": {"function": "${{ run.id }}"}}}"#),
        (true, r#"{"steps": {"a": {"queue": "mail/send", "with": {"to": ["x", {"y": null}], "n": 5}}}}"#),
        (false, r#"{"steps": {"a": {"queue": "mail", "run": "x"}}}"#),
        (false, r#"{"steps": {"a": {"queue": "mail", "function": "x"}}}"#),
        (false, r#"{"steps": {"a": {"queue": "mail", "args": ["x"]}}}"#),
        (false, r#"{"steps": {"a": {"queue": "mail", "env": {"X": "x"}}}}"#),
        (false, r#"{"steps": {"a": {"queue": "mail", "workdir": "x"}}}"#),
        (false, r#"{"steps": {"a": {"queue": "mail", "artifacts": ["x"]}}}"#),
        (false, r#"{"steps": {"a": {"queue": "two words"}}}"#),
        (false, r#"{"steps": {"a": {"queue": "${{ run.id }}"}}}"#),
        (false, r#"{"steps": {"a": {"function": "resize", "with": {"list": ["x"]}}}}"#),
        (
            true,
            r#"{"steps": {"a": {"run": "x", "for_each": [1, {"a": null}, "${{ run.id }}"], "lock": "f/${{ item }}"}}}"#,
        ),
        (
            true,
            r#"{"params": {"l": {"type": "list"}}, "steps": {"a": {"command": ["x"], "for_each": "${{ params.l }}", "max_parallel": 2, "fail_fast": true}}}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x", "for_each": "files"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "for_each": 3}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "for_each": {"a": 1}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "max_parallel": 2}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "fail_fast": true}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "for_each": [1], "max_parallel": 0}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "for_each": [1], "order": {"key": "k", "version": "1"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "5m"}, "for_each": [1]}}}"#),
        (true, r#"{"steps": {"a": {"wait": {"signal": "release/approved", "timeout": "24h"}}}}"#),
        (true, r#"{"steps": {"a": {"wait": {"until": "2020-01-01T00:00:00Z"}, "when": "always"}}}"#),
        (
            true,
            r#"{"params": {"p": {"type": "string", "required": true}}, "steps": {"a": {"wait": {"until": "${{ params.p }}"}}}}"#,
        ),
        (true, r#"{"steps": {"a": {"wait": {"for": "1h30m"}, "order": {"key": "k", "version": "1"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"timeout": "5m"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": "5m"}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"signal": "x", "for": "5m"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"signal": "two words"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"signal": "${{ run.id }}"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"until": "tomorrow"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "a while"}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "5m"}, "run": "x"}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "5m"}, "timeout": "5m"}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "5m"}, "retry": {"max": 1}}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "5m"}, "lock": "k"}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "5m"}, "env": {"A": "x"}}}}"#),
        (
            true,
            r#"{"steps": {"a": {"run": "x", "cache": true}, "b": {"run": "x", "cache": false, "on_lost": "fail"}}}"#,
        ),
        (
            true,
            r#"{"steps": {"a": {"run": "x", "cache": {"key": "${{ run.workflow }}", "ttl": "24h", "files": ["src/**"]}}}}"#,
        ),
        (true, r#"{"steps": {"a": {"function": "f", "cache": {"key": 3}}}}"#),
        (true, r#"{"steps": {"a": {"run": "x", "cache": {}, "on_lost": "retry"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "cache": "24h"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "cache": ["src/**"]}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "cache": {"ttl": "0s"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "cache": {"inputs": ["src/**"]}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "cache": {"files": ["/etc/passwd"]}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "cache": true, "on_lost": "fail"}}}"#),
        (false, r#"{"steps": {"a": {"function": "f", "cache": {"files": ["src/**"]}}}}"#),
        (false, r#"{"steps": {"a": {"queue": "q", "cache": true}}}"#),
        (false, r#"{"steps": {"a": {"wait": {"for": "5m"}, "cache": true}}}"#),
        (true, r#"{"steps": {"a": {"run": "make"}}, "params": {"p": {"type": "list", "default": []}}}"#),
        (false, r#"{}"#),
        (false, r#"[]"#),
        (false, r#"{"steps": {}}"#),
        (false, r#"{"steps": []}"#),
        (false, r#"{"steps": {"a": {}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "command": ["x"]}}}"#),
        (false, r#"{"steps": {"a": {"run": ""}}}"#),
        (false, r#"{"steps": {"a": {"run": 5}}}"#),
        (false, r#"{"steps": {"a": {"run": "echo ${{ run.id }}"}}}"#),
        (false, r#"{"steps": {"a": {"command": []}}}"#),
        (false, r#"{"steps": {"a": {"command": ["x", "${{ run.id }}"]}}}"#),
        (false, r#"{"steps": {"a": {"command": "x"}}}"#),
        (false, r#"{"steps": {"1a": {"run": "x"}}}"#),
        (false, r#"{"steps": {"a b": {"run": "x"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "needs": [1]}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "timeout": 30}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "timeout": ""}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "timeout": "1m1h"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "timeout": "1.5s"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "when": "never"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "on_lost": "ignore"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "env": {"1A": "x"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "env": {"A": null}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "args": "x"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": 3}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": {}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": {"max": 1001}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": {"max": 1, "factor": 0.5}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": {"max": 1, "jitter": 2}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": {"max": 1, "on": []}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": {"max": 1, "on": [256]}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "retry": {"max": 1, "on": ["halted"]}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "workdir": ""}}}"#),
        (
            true,
            r#"{"secrets": {"db": {"env": "DB"}},
                "steps": {"a": {"run": "x", "image": "busybox:1", "container": {"mounts": ["./d:/d:ro", "/srv/x:/x", ".:/src"],
                  "user": 1000, "network": "none", "cpus": 0.5, "memory": "512m", "pids": 64, "read_only": true, "pull": "never",
                  "secrets": ["db"]}}, "b": {"command": ["x"], "pool": "p", "env": {"A": "x"}},
                  "c": {"pool": "q", "call": {"method": "PUT", "path": "/x/${{ run.id }}", "body": {"a": ["${{ steps.a.output.x }}"]}}, "needs": "a"}},
                "pools": {"p": {"image": "busybox", "mode": "single", "dormancy": "0s", "acquire_timeout": "0s", "memory": "64m"},
                  "q": {"image": "busybox", "max": 2, "command": ["httpd", "-f"], "endpoint": {"port": 80, "health": "/ok"},
                    "health": {"command": ["true"]}, "health_interval": "100ms", "health_timeout": "5s"}, "idle": {"image": "x"}}}"#,
        ),
        (false, r#"{"steps": {"a": {"image": "busybox"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "two words"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "${{ run.id }}"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "container": {"memory": "64m"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"memory": 64}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"memory": "64x"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"cpus": 0}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"pids": 0}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"mounts": ["d:/d"]}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"mounts": ["./d:d"]}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"pull": "often"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"network": "container:x"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "image": "b", "container": {"privileged": true}}}}"#),
        (
            false,
            r#"{"steps": {"a": {"run": "x", "image": "b", "pool": "p"}}, "pools": {"p": {"image": "b"}}}"#,
        ),
        (false, r#"{"steps": {"a": {"function": "x", "image": "b"}}}"#),
        (false, r#"{"steps": {"a": {"queue": "x", "image": "b"}}}"#),
        (false, r#"{"steps": {"a": {"pool": "p"}}, "pools": {"p": {"image": "b"}}}"#),
        (false, r#"{"steps": {"a": {"call": {"path": "/x"}}}}"#),
        (
            false,
            r#"{"steps": {"a": {"pool": "p", "call": {}}}, "pools": {"p": {"image": "b", "endpoint": {"port": 80}}}}"#,
        ),
        (
            false,
            r#"{"steps": {"a": {"pool": "p", "call": {"path": "x"}}}, "pools": {"p": {"image": "b", "endpoint": {"port": 80}}}}"#,
        ),
        (
            false,
            r#"{"steps": {"a": {"pool": "p", "call": {"path": "/x", "method": "GET", "body": 1}}}, "pools": {"p": {"image": "b", "endpoint": {"port": 80}}}}"#,
        ),
        (
            false,
            r#"{"steps": {"a": {"pool": "p", "run": "x", "call": {"path": "/x"}}}, "pools": {"p": {"image": "b", "endpoint": {"port": 80}}}}"#,
        ),
        (
            false,
            r#"{"steps": {"a": {"pool": "p", "env": {"A": "x"}, "call": {"path": "/x"}}}, "pools": {"p": {"image": "b", "endpoint": {"port": 80}}}}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x"}}, "pools": {"p": {}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "pools": {"p": {"image": "b", "max": 0}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "pools": {"p": {"image": "b", "mode": "shared"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "pools": {"p": {"image": "b", "dormancy": 5}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "pools": {"p": {"image": "b", "endpoint": {"port": 0}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "pools": {"p": {"image": "b", "health": {}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "stepz": 1}"#),
        (true, r#"{"steps": {"a": {"run": "x"}}, "schedule": {"cron": "* * * * *"}}"#),
        (
            true,
            r#"{"steps": {"a": {"run": "x"}}, "schedule": [{"cron": "0 2 * * *", "timezone": "UTC", "catch_up": "all"}]}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x"}}, "schedule": {"timezone": "UTC"}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "schedule": {"cron": "* * * * *", "catch_up": "some"}}"#),
        (true, r#"{"steps": {"a": {"run": "x"}}, "after": {"workflow": "b", "when": "finished"}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "after": {"when": "failed"}}"#),
        (
            true,
            r#"{"steps": {"a": {"run": "x"}}, "secrets": {"k": {"env": "K"}}, "webhook": {"path": "a.b", "secret": "k"}}"#,
        ),
        (
            false,
            r#"{"steps": {"a": {"run": "x"}}, "secrets": {"k": {"env": "K"}}, "webhook": {"path": "a/b", "secret": "k"}}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x"}}, "webhook": {"path": "a"}}"#),
        (
            true,
            r#"{"steps": {"a": {"run": "x"}}, "secrets": {"k": {"env": "K"}},
                "hooks": {"failed": [{"run": "x", "env": {"A": "${{ ended.reason }}"}}, {"post": "https://a.example/${{ ended.run }}", "secret": "k"}]}}"#,
        ),
        (
            false,
            r#"{"steps": {"a": {"run": "x"}}, "hooks": {"failed": [{"run": "x", "post": "https://a.example"}]}}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x"}}, "hooks": {"failed": [{"run": "x", "secret": "k"}]}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "hooks": {"failed": [{"post": "ftp://a.example"}]}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "hooks": {"ended": [{"run": "x"}]}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "hooks": {"failed": {"run": "x"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "max_parallel": 0}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "max_parallel": 1.5}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "on_failure": "stop"}"#),
        (true, r#"{"steps": {"a": {"run": "x"}}, "execution": "levels", "max_parallel_steps": 0}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "execution": "level"}"#),
        (true, r#"{"steps": {"a": {"run": "x"}}, "placement": "pinned"}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "placement": "anywhere"}"#),
        (
            true,
            r#"{"params": {"p": {"type": "string"}}, "max_runs": {"limit": 1, "strategy": "skip"},
                "limits": {"w": 3, "r": "100/1m", "t": "5"},
                "steps": {"a": {"run": "x", "lock": "db/${{ params.p }}", "order": {"key": "k", "version": "v2.10"},
                  "limits": ["w", "z"], "runs_on": {"zone": "eu", "cores": 8}, "prefers": {"gpu": true}, "priority": -100}}}"#,
        ),
        (true, r#"{"steps": {"a": {"run": "x"}}, "max_runs": 3}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "max_runs": 0}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "max_runs": {"strategy": "queue"}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "max_runs": {"limit": 1, "strategy": "wait"}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "limits": {"w": 0}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "limits": {"w": 1.5}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "limits": {"w": "0/1m"}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "limits": {"w": "5/0s"}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "limits": {"w": "5/m"}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "limits": {"1w": 1}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "lock": ""}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "lock": 5}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "lock": "a "}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "order": {"key": "k"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "order": {"key": "k", "version": 2.1}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "order": {"key": "k", "version": "2.x"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "order": {"version": "2"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "limits": "w"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "limits": ["w", "w"]}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "limits": ["a b"]}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "runs_on": {"a b": "c"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "runs_on": {"zone": "e u"}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "prefers": {"zone": null}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "priority": 101}}}"#),
        (false, r#"{"steps": {"a": {"run": "x", "priority": "5"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "name": ""}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "params": {"p": {}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "params": {"p": {"type": "int"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "params": {"p": {"type": "string", "default": 1}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "params": {"p": {"type": "list", "default": {}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "params": {"p": {"type": "number", "enum": ["x"]}}}"#),
        (
            false,
            r#"{"steps": {"a": {"run": "x"}}, "params": {"p": {"type": "string", "required": true, "default": "x"}}}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x"}}, "params": {"p": {"type": "string", "required": "yes"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": []}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a", "a"]}}}"#),
        (true, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "failure": "lenient"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "failure": "soft"}}}"#),
        (
            true,
            r#"{"steps": {"a": {"run": "x"}, "b": {"run": "x", "needs": ["g"], "env": {"R": "${{ groups.g.result.files }}"}}},
                "groups": {"g": {"steps": ["a"], "merge": "workspace", "isolate": true, "on_conflict": {"keep": "a"},
                  "max_parallel": 2, "mode": "single", "dormancy": "2m"}}}"#,
        ),
        (
            true,
            r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "merge": {"custom": ["./join", "-x"]}}}}"#,
        ),
        (true, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "merge": "custom"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "merge": "union"}}}"#),
        (
            false,
            r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "merge": {"custom": []}}}}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "merge": {}}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "merge": "workspace"}}}"#),
        (
            false,
            r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "on_conflict": "fail"}}}"#,
        ),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "mode": "shared"}}}"#),
        (false, r#"{"steps": {"a": {"run": "x"}}, "groups": {"g": {"steps": ["a"], "max_parallel": 0}}}"#),
    ];

    #[test]
    fn schema_and_reader_agree() {
        let validator = jsonschema::draft202012::new(&schema()).expect("the schema is valid");
        for (is_valid, text) in AGREED {
            let document: Value = serde_json::from_str(text).expect("it is JSON");
            let by_schema = validator.is_valid(&document);
            let source = Source { file: "f.json".into(), default_name: "f".into(), text: (*text).into() };
            let by_reader = compile(&source);
            assert_eq!(by_schema, *is_valid, "the schema on {text}");
            assert_eq!(by_reader.is_ok(), *is_valid, "the reader on {text}: {:?}", by_reader.err());
        }
    }

    #[test]
    fn every_key_that_is_built_is_described_and_no_other() {
        let schema = schema();
        for (keys, properties) in [
            (&keys::WORKFLOW, &schema["properties"]),
            (&keys::STEP, &schema["$defs"]["step"]["properties"]),
            (&keys::GROUP, &schema["$defs"]["group"]["properties"]),
            (&keys::PARAM, &schema["$defs"]["param"]["properties"]),
            (&keys::RETRY, &schema["$defs"]["retry"]["properties"]),
            (&keys::ORDER, &schema["$defs"]["order"]["properties"]),
            (&keys::MAX_RUNS, &schema["$defs"]["max_runs"]["oneOf"][1]["properties"]),
            (&keys::SCHEDULE, &schema["$defs"]["schedule"]["oneOf"][0]["properties"]),
            (&keys::AFTER, &schema["$defs"]["after"]["oneOf"][0]["properties"]),
            (&keys::WEBHOOK, &schema["$defs"]["webhook"]["oneOf"][0]["properties"]),
            (&keys::HOOKS, &schema["$defs"]["hooks"]["properties"]),
            (&keys::HOOK, &schema["$defs"]["hook"]["properties"]),
            (&keys::CONTAINER, &schema["$defs"]["container"]["properties"]),
            (&keys::POOL, &schema["$defs"]["pool"]["properties"]),
            (&keys::ENDPOINT, &schema["$defs"]["endpoint"]["properties"]),
            (&keys::HEALTH, &schema["$defs"]["health"]["properties"]),
            (&keys::CALL, &schema["$defs"]["call"]["properties"]),
        ] {
            let described = properties.as_object().expect("an object of keys");
            let mut known = keys.known.to_vec();
            let mut named: Vec<&str> = described.keys().map(String::as_str).collect();
            known.sort_unstable();
            named.sort_unstable();
            assert_eq!(known, named, "{}", keys.owner);
            for (key, value) in described {
                let target = match value.get("$ref") {
                    Some(_) => &schema["$defs"][key],
                    None => value,
                };
                assert!(target["description"].is_string(), "{} lacks words for {key}", keys.owner);
            }
        }
    }
}
