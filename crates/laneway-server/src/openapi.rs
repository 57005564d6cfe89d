//! The description of the service for programs: OpenAPI 3.1, made from the table of routes and the types of the wire. It is
//! served, and committed as `docs/reference/openapi.json`, which `cargo xtask check` compares.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{
    OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayItems, ComponentsBuilder, KnownFormat, ObjectBuilder, SchemaFormat,
    SchemaType, Type,
};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Content, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder, Schema,
};

use crate::access::Who;
use crate::problem::Problem;
use crate::refusals::by_status;
use crate::sign;
use crate::table::{Answers, Route, Shape, table};

/// Parts of an address, what they are, and one of them.
const PARTS: [(&str, &str, &str); 9] = [
    (
        "hash",
        "Hash of content: 64 hexadecimal digits",
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    ),
    ("run", "Id of a run, a unique beginning of it or of its end, or `last`", "last"),
    ("step", "Name of a step", "build"),
    ("attempt", "Number of an attempt, from 1 on", "1"),
    ("address", "A node, as the list of nodes names it", "localhost:7878"),
    ("path", "Where a workflow's `webhook` listens", "deploy"),
    ("name", "A name", "nightly"),
    ("file", "A file of the web page, as its `index.html` names it", "index.js"),
    (
        "session",
        "Session of a remote worker, as it was answered when it registered",
        "0199f2a0-0000-7000-8000-1a2b3c4d5e6f",
    ),
];

/// A text of an address, as `extract.rs` accepts it.
const WITHOUT_NUL: &str = "^[^\\u0000]*$";

pub fn openapi() -> OpenApi {
    let problem = Shape::of::<Problem>();
    let mut schemas: BTreeMap<String, RefOr<Schema>> = problem.schemas.iter().cloned().collect();
    let mut paths = PathsBuilder::new();
    for route in table() {
        for shape in route.body.iter().chain(&route.answer.shape) {
            schemas.extend(shape().schemas);
        }
        paths = paths.path(route.rule.path, PathItem::new(route.method.clone(), operation(&route, &problem)));
    }
    let mut components = ComponentsBuilder::new();
    for (name, mut schema) in schemas {
        bound_integers(&mut schema);
        components = components.schema(name, schema);
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = components.security_scheme("token", SecurityScheme::Http(bearer));
    let info = InfoBuilder::new()
        .title("Laneway")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Runs graphs of steps in parallel, and remembers."));
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build()
}

fn operation(route: &Route, problem: &Shape) -> OperationBuilder {
    let Route { rule, summary, query, body, answer, .. } = route;
    let mut operation = OperationBuilder::new()
        .summary(Some(*summary))
        .operation_id(Some(id(rule.method, rule.path)))
        .tag(rule.path.trim_start_matches("/v1").split('/').nth(1).unwrap_or_default());
    for part in rule.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        operation = operation.parameter(path_part(rule.path, part));
    }
    for mut parameter in query.iter().flat_map(|query| query()) {
        parameter.schema.iter_mut().for_each(|schema| {
            bound_integers(schema);
            exclude_nul(schema);
        });
        operation = operation.parameter(parameter);
    }
    if rule.method == "POST" && rule.path == "/v1/runs" {
        operation = operation.parameter(idempotency_key());
    }
    if rule.path == "/v1/events" {
        operation = operation.parameter(last_event_id());
    }
    if let Some(shape) = body {
        let required = if route.is_body_optional { Required::False } else { Required::True };
        let body = RequestBodyBuilder::new().content("application/json", content(Some(&shape())));
        operation = operation.request_body(Some(body.required(Some(required)).build()));
    }
    if let Some(kind) = route.bytes {
        let body = RequestBodyBuilder::new().content(kind, content(None));
        operation = operation.request_body(Some(body.required(Some(Required::True)).build()));
    }
    let Answers { status, kind, shape, also, is_ranged, is_tagged, or_status } = answer;
    let shape = shape.map(|shape| shape());
    let mut done = ResponseBuilder::new().description("Done").content(*kind, content(shape.as_ref()));
    if let Some(also) = also {
        done = done.content(*also, content(None));
    }
    operation = operation.response(status.to_string(), done.build());
    if let Some(status) = or_status {
        let not = ResponseBuilder::new().description("Not now").content(*kind, content(shape.as_ref()));
        operation = operation.response(status.to_string(), not.build());
    }
    operation = match rule.who {
        Who::Anybody => operation.securities(Some([SecurityRequirement::default()])),
        Who::Signed => {
            operation.description(Some(sign::ABOUT)).securities(Some([SecurityRequirement::default()]))
        }
        Who::AtLeast(role) => operation
            .description(Some(format!("Role: {role}")))
            .securities(Some([SecurityRequirement::new("token", [role.as_str()])])),
    };
    if let Some(also) = also.filter(|_| *is_ranged) {
        let some = ResponseBuilder::new()
            .description("The bytes that `Range` names, as far as they are there")
            .content(also, content(None));
        operation = operation.parameter(range()).response("206", some.build());
    }
    if *is_tagged {
        let same = ResponseBuilder::new().description("Still the version that `If-None-Match` names").build();
        operation = operation.response("304", same);
    }
    for (status, codes) in by_status(route) {
        // What comes with the same status and is no problem was said above.
        if Some(status) == *or_status {
            continue;
        }
        let words: Vec<String> = codes.iter().map(|code| format!("`{}`", code.as_str())).collect();
        let refused = ResponseBuilder::new()
            .description(format!("It was not done. `code`: {}", words.join(", ")))
            .content("application/problem+json", content(Some(problem)));
        operation = operation.response(status.to_string(), refused.build());
    }
    operation
}

/// `get_v1_runs_run_tasks`.
fn id(method: &str, path: &str) -> String {
    let words = path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    format!("{}_{}", method.to_ascii_lowercase(), words.join("_"))
}

fn content(shape: Option<&Shape>) -> Content {
    match shape {
        Some(shape) => ContentBuilder::new().schema(Some(Ref::from_schema_name(&shape.name))).build(),
        None => ContentBuilder::new().build(),
    }
}

fn path_part(path: &str, name: &str) -> Parameter {
    let part = PARTS.iter().find(|(known, ..)| *known == name);
    let example = part.map(|(.., example)| match example.parse::<u32>() {
        Ok(number) => Value::from(number),
        Err(_) => Value::from(*example),
    });
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(part.map(|(_, about, _)| *about))
        .example(example)
        .schema(Some(part_schema(path, name)))
        .build()
}

fn part_schema(path: &str, name: &str) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    match name {
        "attempt" => {
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(u32::MAX as usize))
        }
        "name" if path.starts_with("/v1/limits/") => text.pattern(Some("^[A-Za-z_][A-Za-z0-9_-]{0,99}$")),
        "name" if path.starts_with("/v1/secrets/") => text.pattern(Some("^[A-Za-z0-9_-]{1,100}$")),
        "hash" => text.pattern(Some("^[0-9a-f]{64}$")),
        _ => text.pattern(Some(WITHOUT_NUL)),
    }
}

/// Says of unsigned integers how large they may be. What is derived says `int32` and `int64`, which end at half of that.
fn bound_integers(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            if is_integer(&object.schema_type) && object.minimum.is_some() && object.maximum.is_none() {
                let is_small = matches!(&object.format, Some(SchemaFormat::KnownFormat(KnownFormat::Int32)));
                let most = if is_small { u32::MAX as usize } else { usize::MAX };
                object.maximum = Some(most.into());
            }
            if object.maximum.is_some() {
                object.format = None;
            }
            object.properties.values_mut().for_each(bound_integers);
            if let Some(AdditionalProperties::RefOr(more)) = object.additional_properties.as_deref_mut() {
                bound_integers(more);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                bound_integers(items);
            }
        }
        Schema::AllOf(all) => all.items.iter_mut().for_each(bound_integers),
        Schema::OneOf(one) => one.items.iter_mut().for_each(bound_integers),
        Schema::AnyOf(any) => any.items.iter_mut().for_each(bound_integers),
        _ => {}
    }
}

/// Excludes the NUL character from a text of an address, as `extract.rs` does.
fn exclude_nul(schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    let is_text = match &object.schema_type {
        SchemaType::Type(kind) => *kind == Type::String,
        SchemaType::Array(kinds) => kinds.contains(&Type::String),
        SchemaType::AnyValue => false,
    };
    if is_text && object.enum_values.is_none() && object.format.is_none() && object.pattern.is_none() {
        object.pattern = Some(WITHOUT_NUL.to_owned());
    }
}

fn is_integer(kind: &SchemaType) -> bool {
    match kind {
        SchemaType::Type(kind) => *kind == Type::Integer,
        SchemaType::Array(kinds) => kinds.contains(&Type::Integer),
        SchemaType::AnyValue => false,
    }
}

fn range() -> Parameter {
    ParameterBuilder::new()
        .name("Range")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("Some of the bytes, such as `bytes=100-199`, or the last ones: `bytes=-1000`"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn last_event_id() -> Parameter {
    let id = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name("Last-Event-ID")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "The id of the last event that was received of the same query: the stream continues behind it",
        ))
        .schema(Some(id.pattern(Some("^[0-9.]*(~[0-9]{1,20})?(\\^[0-9]{1,20})?$"))))
        .build()
}

fn idempotency_key() -> Parameter {
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("A repeated request with the same key gets the same run; with another workflow, version or parameters it is refused",
        ))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}
