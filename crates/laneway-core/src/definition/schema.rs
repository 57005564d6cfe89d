//! The JSON Schema of the document, for editors: `laneway schema`. Says what the reader says as far
//! as a schema can; a test holds both against the same documents.

mod containers;

use serde_json::{Value, json};

use super::housing::PoolMode;
use super::keys::STEP;
use super::model::{GroupFailure, OnFailure, OnLost, ParamType, Placement, When};
use super::{children, waits};
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
/// A path from the root on, without `..`.
const ABSOLUTE: &str = "^/(?!(.*/)?\\.\\.(/|$))(?![\\s\\S]*\\$\\{\\{)";
/// The same, or anything with an expression in it.
const ARTIFACT_OF_ITEM: &str =
    "^(?!/)(?!.*//)(?!.*/$)(?!(.*/)?\\.\\.?(/|$))[^\\[\\]{}!\\u0000-\\u001f]+$|\\$\\{\\{";
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
            "cleanup_timeout": duration("How long steps with `when: always` and hooks may take after a cancel or after the run's timeout, counted from that moment. 0s starts none of them. Default: 60s."),
            "step_timeout": duration("How long an attempt of a step may take that names no timeout of its own. 0s is no limit. Steps that wait and hooks have none. Default: no limit."),
            "step_retry": step_retry(),
            "env": env("Variables of every step. They can read params and run; a step's own env wins."),
            "shell": shell("What interprets the scripts that name no shell of their own. Default: sh."),
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
            "workspace": {
                "description": "Where the files of a submitted run lie. Default: each step sees what the steps that it needs have left, on every node. none: files stay on the node that wrote them. path: steps work in this directory, on nodes that have it.",
                "oneOf": [
                    {"const": "none"},
                    {
                        "type": "object", "additionalProperties": false, "required": ["path"],
                        "properties": {"path": {
                            "description": "A path from the root on, the same on every node.",
                            "type": "string", "pattern": ABSOLUTE,
                        }},
                    },
                ],
            },
            "max_runs": {"$ref": "#/$defs/max_runs"},
            "secrets": {
                "description": "Names for values that are found where a step runs, read as ${{ secrets.NAME }} in env and in callbacks: a variable of the node, a file on it, or a secret of the store.",
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
        "description": "One step: a script, a program, a function, work of a queue, a wait, or another workflow; a script or program may run in a container.",
        "type": "object",
        "additionalProperties": false,
        "dependentRequired": {
            "container": ["image"], "call": ["pool"], "shell": ["run"], "max_parallel": ["for_each"], "fail_fast": ["for_each"],
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
            {"required": ["wait"], "not": {"anyOf": without(waits::advice)}},
            {"required": ["workflow"], "not": {"anyOf": without(children::advice)}},
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
            "shell": shell("What interprets the script. Default: that of the workflow."),
            "function": {
                "description": "A function of the program that embeds Laneway, by name.",
                "type": "string", "pattern": LITERAL,
            },
            "queue": {
                "description": "Remote workers that take this queue do it, over HTTP.",
                "type": "string", "pattern": LABEL,
            },
            "wait": {"$ref": "#/$defs/wait"},
            "workflow": {
                "description": "Another workflow, which runs as a run of its own: the name of one that was applied, or a file such as ./deploy.yaml. The step ends as that run does, and its output is what the steps of that run put out, by name.",
                "type": "string", "minLength": 1, "pattern": LITERAL,
            },
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
                "description": "The input of the function, by name; or that of a queue's worker or the parameters of a workflow, which may be any JSON; a value that is one ${{ … }} keeps its type.",
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
                "description": "Where it runs, relative to the workflow file's directory; ${{ … }} can stand in it.",
                "type": "string", "minLength": 1,
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
            "not_before": {
                "description": "Holds it back until a moment with its offset, such as 2026-12-24T18:00:00Z, or for a delay such as 5m, counted from the end of what it needs, and without needs from the start of the run. ${{ params.NAME }} can stand in it.",
                "anyOf": [{"type": "string", "pattern": MOMENT}, {"type": "string", "pattern": SPAN}],
            },
            "runs_on": labels("Labels that a node must have to run it."),
            "prefers": labels("Labels that a node had better have; they only order."),
            "artifacts": {
                "description": "Files that it leaves behind, relative to its directory: paths with *, ? and **, in which ${{ item }} and ${{ index }} can stand. Kept if it succeeds.",
                "type": "array", "uniqueItems": true,
                "items": {"type": "string", "minLength": 1, "pattern": ARTIFACT_OF_ITEM},
            },
            "inputs": {
                "description": "Steps it needs, or items of them such as parse[0], whose artifacts are put into its directory before it starts. ${{ … }} can stand in a name.",
                "oneOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}},
                ],
            },
            "isolate": {
                "description": "Whether each attempt works in a copy of the directory of its own. What it changes there and does not declare under artifacts is removed with the copy. Default: false.",
                "type": "boolean",
            },
            "on_conflict": conflict("When steps that it needs changed one file in different ways: fail before it starts, or keep the file of one of them. Default: fail."),
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

fn conflict(description: &str) -> Value {
    json!({
        "description": description,
        "oneOf": [
            {"enum": ["fail"]},
            {
                "type": "object",
                "additionalProperties": false,
                "required": ["keep"],
                "properties": {"keep": {"description": "The member whose files are taken.", "type": "string", "pattern": NAME}},
            },
        ],
    })
}

fn shell(description: &str) -> Value {
    json!({
        "description": format!("{description} sh is `sh -e`, bash is `bash -eo pipefail`. A list is a program and its words: the path of the script follows them, or its text behind -c."),
        "oneOf": [
            {"enum": ["sh", "bash"]},
            {
                "type": "array", "minItems": 1,
                "prefixItems": [{"$ref": "#/$defs/scalar", "not": {"type": "string", "pattern": "^$|\\$\\{\\{"}}],
                "items": {"$ref": "#/$defs/scalar", "not": {"type": "string", "pattern": "\\$\\{\\{"}},
            },
        ],
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

/// Keys of a step that mean nothing to one that waits, or that runs a workflow.
fn without(advice: fn(&str) -> Option<&'static str>) -> Vec<Value> {
    let keys = STEP.known.iter().filter(|key| advice(key).is_some());
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
            "description": "A callback: the outcome is sent there, until it is taken. ${{ … }} can stand in it, also ${{ secrets.NAME }}.",
            "type": "string", "pattern": "^(https?://|\\$\\{\\{)",
        },
        "secret": {"description": "Which of the workflow's secrets a callback is signed with.", "type": "string", "pattern": NAME},
        "headers": {
            "description": "Headers of a callback, by name. ${{ … }} can stand in their values, also ${{ secrets.NAME }}.",
            "type": "object",
            "propertyNames": {"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        "content_type": {
            "description": "The media type of a callback's body. Default: application/json.",
            "type": "string", "pattern": "/",
        },
        "body": {
            "description": "What a callback sends in place of the outcome: a text as it is, a mapping or a list as JSON. ${{ … }} can stand in it, also ${{ secrets.NAME }}.",
            "type": ["string", "object", "array"],
        },
    });
    for key in [
        "run",
        "command",
        "args",
        "shell",
        "if",
        "env",
        "workdir",
        "timeout",
        "retry",
        "runs_on",
        "description",
    ] {
        properties[key] = of_a_step["properties"][key].clone();
    }
    json!({
        "description": "A step that runs when a run is over, or a callback.",
        "type": "object",
        "additionalProperties": false,
        "dependentRequired": {"shell": ["run"]},
        "oneOf": [
            {"required": ["run"], "not": not(&["secret", "post", "headers", "content_type", "body"])},
            {"required": ["command"], "not": not(&["secret", "post", "headers", "content_type", "body"])},
            {"required": ["post"], "not": not(&["run", "command", "args", "shell", "env", "workdir", "runs_on"])},
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
            "on_conflict": conflict("With merge: workspace, what becomes of files that members changed in different ways. Default: fail."),
            "isolate": {
                "description": "Each member works in a copy of the run's directory of its own, in a submitted run in a view of its files. Where files do not follow the run it implies placement: pinned. Default: false.",
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

/// The same for steps that do not say it themselves.
fn step_retry() -> Value {
    let mut all = retry();
    all["description"] = json!("Further attempts of a step that names no retry of its own. Default: none.");
    all
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
mod tests;
