//! Evaluation by minijinja, with what it can do cut down to pure functions of bounded cost.
//! Owns the list of filters and tests, and strictness: a path that is read and not set is an error
//! even where minijinja would compare it, unless the expression asks for it with `is defined` or
//! `default`.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Environment, ErrorKind, UndefinedBehavior, filters, tests};
use serde_json::Value;

use super::reads::{KEYWORDS, Read, reads_of};
use super::template::MAX_RENDERED;
use super::{Error, Expression, Scope};
use crate::definition::shown;

/// Instructions of one evaluation. There are no loops, so only a hostile expression comes near.
const FUEL: u64 = 50_000;

/// Pieces that `split` may make.
const MAX_ITEMS: usize = 10_000;

/// Numbers that `range` may make.
const MAX_RANGE: i64 = 100_000;

/// Filters that cannot grow a value, and those wrapped below that check how far they do.
/// `format`, `indent`, `map` and the like are left out: they loop, or grow without bound.
pub(super) const FILTERS: &[&str] = &[
    "upper", "lower", "trim", "replace", "split", "join", "length", "count", "first", "last", "min", "max",
    "sum", "sort", "unique", "reverse", "abs", "round", "int", "float", "string", "bool", "list", "items",
    "default", "d", "tojson", "range",
];

pub(super) const TESTS: &[&str] = &[
    "defined",
    "undefined",
    "none",
    "boolean",
    "number",
    "integer",
    "float",
    "string",
    "sequence",
    "mapping",
    "true",
    "false",
    "odd",
    "even",
    "divisibleby",
    "startingwith",
    "endingwith",
    "in",
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(FUEL));
    env.add_filter("upper", filters::upper);
    env.add_filter("lower", filters::lower);
    env.add_filter("trim", filters::trim);
    env.add_filter("replace", replace);
    env.add_filter("split", split);
    env.add_filter("join", join);
    env.add_filter("length", filters::length);
    env.add_filter("count", filters::length);
    env.add_filter("first", filters::first);
    env.add_filter("last", filters::last);
    env.add_filter("min", filters::min);
    env.add_filter("max", filters::max);
    env.add_filter("sum", filters::sum);
    env.add_filter("sort", filters::sort);
    env.add_filter("unique", filters::unique);
    env.add_filter("reverse", filters::reverse);
    env.add_filter("abs", filters::abs);
    env.add_filter("round", filters::round);
    env.add_filter("int", filters::int);
    env.add_filter("float", filters::float);
    env.add_filter("string", string);
    env.add_filter("bool", filters::bool);
    env.add_filter("list", list);
    env.add_filter("items", filters::items);
    env.add_filter("default", filters::default);
    env.add_filter("d", filters::default);
    env.add_filter("tojson", tojson);
    env.add_filter("range", range);
    env.add_test("defined", tests::is_defined);
    env.add_test("undefined", tests::is_undefined);
    env.add_test("none", tests::is_none);
    env.add_test("boolean", tests::is_boolean);
    env.add_test("number", tests::is_number);
    env.add_test("integer", tests::is_integer);
    env.add_test("float", tests::is_float);
    env.add_test("string", tests::is_string);
    env.add_test("sequence", tests::is_sequence);
    env.add_test("mapping", tests::is_mapping);
    env.add_test("true", tests::is_true);
    env.add_test("false", tests::is_false);
    env.add_test("odd", tests::is_odd);
    env.add_test("even", tests::is_even);
    env.add_test("divisibleby", tests::is_divisibleby);
    env.add_test("startingwith", tests::is_startingwith);
    env.add_test("endingwith", tests::is_endingwith);
    env.add_test("in", tests::is_in);
    env
});

/// Proves that the expression has no error of grammar.
pub(super) fn compile(source: &str) -> Result<(), Error> {
    let unreadable = |why: String| Error::new(format!("the expression cannot be read: {why}"));
    let compiled = ENVIRONMENT
        .compile_expression_owned(source.to_owned())
        .map_err(|error| unreadable(detail(&error)))?;
    // minijinja takes `in` where a value should stand for a variable of that name.
    match compiled.undeclared_variables(false).iter().find(|root| KEYWORDS.contains(&root.as_str())) {
        Some(keyword) => Err(unreadable(format!("unexpected `{keyword}`"))),
        None => Ok(()),
    }
}

pub(super) fn evaluate(expression: &Expression, scope: &Scope) -> Result<Value, Error> {
    let rewritten = item_index(expression, scope);
    let source = rewritten.as_ref().unwrap_or(&expression.source);
    let failed = |what: String| Error::new(format!("`{source}` {what}"));
    let compiled = ENVIRONMENT
        .compile_expression_owned(source.clone())
        .map_err(|error| failed(format!("cannot be read: {}", detail(&error))))?;
    let missing = Arc::new(Mutex::new(Vec::new()));
    let root = Record { path: String::new(), fields: Arc::new(scope.clone()), missing: Arc::clone(&missing) };
    let result = compiled.eval(minijinja::Value::from_object(root));
    let missing = std::mem::take(&mut *missing.lock().unwrap_or_else(PoisonError::into_inner));
    let not_set = |path: &str| Error::new(format!("`{path}` is not set{}", what_is_there(path, scope)));

    if let Some(path) = missing.iter().find(|path| is_read_unguarded(source, path)) {
        return Err(not_set(path));
    }
    let value = match result {
        Ok(value) => value,
        Err(error) if error.kind() == ErrorKind::UndefinedError => {
            return Err(match missing.last() {
                Some(path) => not_set(path),
                None => failed("reads something that is not set".to_owned()),
            });
        }
        Err(error) if error.kind() == ErrorKind::OutOfFuel => {
            return Err(failed("takes too long to compute".to_owned()));
        }
        Err(error) => return Err(failed(format!("fails: {}", detail(&error)))),
    };
    if value.is_undefined() {
        return Err(match missing.last() {
            Some(path) => not_set(path),
            None => failed("is not set".to_owned()),
        });
    }
    if f64::try_from(value.clone()).is_ok_and(|number| !number.is_finite()) {
        return Err(failed("is not a finite number".to_owned()));
    }
    serde_json::to_value(&value).map_err(|error| failed(format!("is not a JSON value: {error}")))
}

/// The source of an expression that reads `item.index`, which is the place of the item unless the item has an `index` itself.
fn item_index(expression: &Expression, scope: &Scope) -> Option<String> {
    let reads_it = expression.reads.iter().any(|path| path == "item.index");
    let has_own = || scope.get("item").and_then(|item| item.get("index")).is_some();
    if !reads_it || !scope.contains_key("index") || has_own() {
        return None;
    }
    let mut source = expression.source.clone();
    for read in reads_of(&source).ok()?.into_iter().rev() {
        if read.segments == ["item", "index"] {
            source.replace_range(read.range, "index");
        }
    }
    Some(source)
}

/// What stands beside a path that is not set: of an output the keys that the step put out.
fn what_is_there(path: &str, scope: &Scope) -> String {
    const MAX_KEYS: usize = 12;
    let Some((above, key)) = path.rsplit_once('.') else { return String::new() };
    // Names of parameters are checked with the document.
    if above == "params" {
        return String::new();
    }
    let mut parts = above.split('.');
    let Some(mut found) = parts.next().and_then(|root| scope.get(root)) else { return String::new() };
    for part in parts {
        let Some(below) = found.get(part) else { return String::new() };
        found = below;
    }
    let Value::Object(fields) = found else { return String::new() };
    let of_step = above.strip_prefix("steps.").and_then(|rest| rest.strip_suffix(".output"));
    if fields.is_empty() {
        return match of_step {
            Some(step) => format!(
                ": step `{step}` put out nothing; its script can write `{key}=…` to the file \"$LANEWAY_OUTPUT\""
            ),
            None => String::new(),
        };
    }
    let owner = of_step.map_or_else(|| format!("`{above}` has"), |step| format!("step `{step}` put out"));
    let mut names: Vec<String> = fields.keys().take(MAX_KEYS).map(|name| shown(name)).collect();
    if fields.len() > MAX_KEYS {
        names.push(format!("and {} more", fields.len() - MAX_KEYS));
    }
    let near = crate::nearest::nearest(key, fields.keys().map(String::as_str));
    let advice = match near {
        Some(near) => format!("did you mean {}?", shown(near)),
        None => format!("read one of these, or write `{path} | default(…)`"),
    };
    format!(": {owner} {}; {advice}", names.join(", "))
}

/// Whether the expression reads `path`, or something below it, without asking whether it is there.
fn is_read_unguarded(source: &str, path: &str) -> bool {
    let Ok(reads) = reads_of(source) else {
        return false;
    };
    let concerns = |read: &Read| {
        let dotted = read.dotted();
        dotted == path || dotted.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    };
    let mut about = reads.iter().filter(|read| concerns(read)).peekable();
    about.peek().is_some() && !about.any(|read| read.is_guarded)
}

/// An object of the scope that remembers which of its absent fields were asked for.
#[derive(Debug)]
struct Record {
    path: String,
    fields: Arc<Scope>,
    missing: Arc<Mutex<Vec<String>>>,
}

impl Object for Record {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &minijinja::Value) -> Option<minijinja::Value> {
        let key = key.as_str()?;
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        match self.fields.get(key) {
            Some(Value::Object(fields)) => Some(minijinja::Value::from_object(Self {
                path,
                fields: Arc::new(fields.clone()),
                missing: Arc::clone(&self.missing),
            })),
            Some(other) => Some(lift(other)),
            None => {
                self.missing.lock().unwrap_or_else(PoisonError::into_inner).push(path);
                None
            }
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.fields.keys().map(minijinja::Value::from).collect())
    }
}

/// A JSON value as minijinja knows it.
fn lift(value: &Value) -> minijinja::Value {
    match value {
        Value::Null => minijinja::Value::from(()),
        Value::Bool(value) => minijinja::Value::from(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), _, _) => minijinja::Value::from(value),
            (None, Some(value), _) => minijinja::Value::from(value),
            (None, None, Some(value)) => minijinja::Value::from(value),
            (None, None, None) => minijinja::Value::from(number.to_string()),
        },
        Value::String(text) => minijinja::Value::from(text.as_str()),
        Value::Array(items) => items.iter().map(lift).collect(),
        Value::Object(fields) => {
            minijinja::Value::from_pairs(fields.iter().map(|(key, value)| (key.as_str(), lift(value))))
        }
    }
}

fn detail(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    }
}

fn too_large() -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, format!("the value grows beyond {MAX_RENDERED} bytes"))
}

fn replace(value: &str, from: &str, to: &str) -> Result<String, minijinja::Error> {
    let found = value.matches(from).count();
    if value.len() + found * to.len() > MAX_RENDERED {
        return Err(too_large());
    }
    Ok(value.replace(from, to))
}

fn join(value: &minijinja::Value, separator: Option<&str>) -> Result<String, minijinja::Error> {
    let mut out = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        if index > 0 {
            out.push_str(separator.unwrap_or_default());
        }
        match item.as_str() {
            Some(text) => out.push_str(text),
            None => out.push_str(&item.to_string()),
        }
        if out.len() > MAX_RENDERED {
            return Err(too_large());
        }
    }
    Ok(out)
}

fn split(value: &str, separator: Option<&str>) -> Result<Vec<String>, minijinja::Error> {
    let parts: Vec<String> = match separator {
        Some(separator) => value.split(separator).take(MAX_ITEMS + 1).map(str::to_owned).collect(),
        None => value.split_whitespace().take(MAX_ITEMS + 1).map(str::to_owned).collect(),
    };
    if parts.len() > MAX_ITEMS {
        return Err(too_large());
    }
    Ok(parts)
}

/// The numbers from 0 on, so many of them.
fn range(count: i64) -> Result<Vec<i64>, minijinja::Error> {
    if !(0..=MAX_RANGE).contains(&count) {
        let why = format!("`range` makes 0 to {MAX_RANGE} numbers, not {count}");
        return Err(minijinja::Error::new(ErrorKind::InvalidOperation, why));
    }
    Ok((0..count).collect())
}

/// Only what is a list, or an object's keys: a string of letters would grow when joined again.
fn list(value: &minijinja::Value) -> Result<Vec<minijinja::Value>, minijinja::Error> {
    if value.as_str().is_some() {
        return Err(minijinja::Error::new(
            ErrorKind::InvalidOperation,
            "a string is no list; use `| split(\"…\")`",
        ));
    }
    Ok(value.try_iter()?.collect())
}

fn string(value: &minijinja::Value) -> Result<String, minijinja::Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if matches!(value.kind(), ValueKind::Number | ValueKind::Bool) => Ok(value.to_string()),
        None => tojson(value),
    }
}

fn tojson(value: &minijinja::Value) -> Result<String, minijinja::Error> {
    let text = serde_json::to_string(value)
        .map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))?;
    if text.len() > MAX_RENDERED {
        return Err(too_large());
    }
    Ok(text)
}
