//! S5: every route of the table with no token, a bogus one, a revoked one and each role; and that the description of the
//! service speaks of exactly these routes.

use std::collections::BTreeSet;

use hyper::Method;
use laneway_core::role::Role;
use laneway_server::access::{Who, make};
use laneway_server::{Code, openapi, rules};
use serde_json::Value;

use crate::support::{Asking, Place, Reply, SOON, Server};

/// An address of the pattern. Nothing is found there, which only those learn who may ask.
fn example(path: &str) -> String {
    let filled = path
        .replace("{run}", "0199f2a0-0000-7000-8000-1a2b3c4d5e6f")
        .replace("{session}", "0199f2a0-0000-7000-8000-1a2b3c4d5e6f")
        .replace("{step}", "a")
        .replace("{attempt}", "1")
        .replace("{address}", "nobody:1")
        .replace("{hash}", &"0".repeat(64))
        .replace("{path}", "nowhere")
        .replace("{file}", "nothing.js")
        .replace("{name}", "nothing");
    if filled == "/v1/events" { "/v1/events?nodes=0".to_owned() } else { filled }
}

/// The status and, of a refusal, its code. Streams are not read to their end: they have none.
async fn outcome(asking: Asking<'_>) -> (u16, String) {
    let response = tokio::time::timeout(SOON, asking.begin()).await.expect("an answer in time");
    let (head, body) = response.into_parts();
    let status = head.status.as_u16();
    if status < 400 {
        return (status, String::new());
    }
    let body = http_body_util::BodyExt::collect(body).await.expect("a body").to_bytes();
    let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, problem["code"].as_str().unwrap_or_default().to_owned())
}

fn method(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).expect("a method")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_is_open_to_those_whom_its_rule_names_and_to_nobody_else() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let (revoked, _) =
        make(server.store.as_ref(), "gone", Role::Admin, ("test", None)).await.expect("a token");
    server.store.revoke_token("gone", "test").await.expect("a token in use");
    let bogus = format!("laneway_{}_{}", "0".repeat(12), "0".repeat(64));
    // The id of a token that is good, with another secret.
    let good = server.token(Role::Admin);
    let forged = format!("{}{}", &good[..good.len() - 64], "0".repeat(64));
    for rule in rules() {
        let path = example(rule.path);
        let ask = || server.ask(method(rule.method), &path);
        let cell = |who: &str| format!("{} {} by {who}", rule.method, rule.path);
        let is_refused = |(status, _): &(u16, String)| matches!(status, 401 | 403);
        let role = match rule.who {
            Who::Anybody => {
                assert!(!is_refused(&outcome(ask()).await), "{}", cell("nobody"));
                continue;
            }
            Who::Signed => {
                let unsigned = (401, "bad_signature".to_owned());
                assert_eq!(outcome(ask()).await, unsigned, "{}", cell("nobody"));
                assert_eq!(outcome(ask().by(Role::Admin)).await, unsigned, "{}", cell("an admin"));
                continue;
            }
            Who::AtLeast(role) => role,
        };
        assert_eq!(outcome(ask()).await, (401, "no_token".to_owned()), "{}", cell("nobody"));
        let basic = ask().with("authorization", "Basic YWRhOnNlY3JldA==");
        assert_eq!(outcome(basic).await, (401, "no_token".to_owned()), "{}", cell("another scheme"));
        for (who, token) in
            [("rubbish", "rubbish"), ("bogus", &bogus), ("forged", &forged), ("revoked", revoked.reveal())]
        {
            let refused = outcome(ask().bearing(token)).await;
            assert_eq!(refused, (401, "bad_token".to_owned()), "{}", cell(who));
        }
        for given in Role::ALL {
            let answer = outcome(ask().by(*given)).await;
            if given.may(role) {
                assert!(!is_refused(&answer), "{}: {answer:?}", cell(given.as_str()));
            } else {
                assert_eq!(answer, (403, "forbidden".to_owned()), "{}", cell(given.as_str()));
            }
        }
    }
    server.stop().await;
}

async fn anywhere(server: &Server, method: Method, path: &str) -> Reply {
    server.ask(method, path).by(Role::Admin).send().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_rule_is_not_there() {
    let place = Place::sqlite();
    let server = place.serve().await;
    for path in [
        "/nothing",
        "/v1",
        "/v2/runs",
        "/v1/runs/",
        "/v1/../healthz",
        "/V1/runs",
        "/admin",
        "/v1/runs/x/y/z/w/v",
    ] {
        let (status, code) = anywhere(&server, Method::GET, path).await.refusal();
        assert_eq!((status, code.as_str()), (404, "no_such_route"), "{path}");
    }
    for (method, path) in
        [(Method::DELETE, "/v1/runs"), (Method::PATCH, "/v1/tokens"), (Method::OPTIONS, "/v1/runs")]
    {
        let (status, code) = anywhere(&server, method.clone(), path).await.refusal();
        assert_eq!((status, code.as_str()), (405, "method_not_allowed"), "{method} {path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn description_names_every_route_with_its_role_and_no_other() {
    let described = serde_json::to_value(openapi()).expect("a description");
    assert_eq!(described["openapi"], "3.1.0");
    let mut told = BTreeSet::new();
    for (path, methods) in described["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let role = operation["security"][0]["token"][0].as_str().unwrap_or("anybody");
            told.insert(format!("{} {path} {role}", method.to_uppercase()));
        }
    }
    let wanted: BTreeSet<String> = rules()
        .iter()
        .map(|rule| {
            let role = match rule.who {
                Who::Anybody | Who::Signed => "anybody",
                Who::AtLeast(role) => role.as_str(),
            };
            format!("{} {} {role}", rule.method, rule.path)
        })
        .collect();
    assert_eq!(told, wanted);
}

#[tokio::test]
async fn description_names_every_status_with_its_codes() {
    let described = serde_json::to_value(openapi()).expect("a description");
    let mut codes = BTreeSet::new();
    for (path, methods) in described["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let answers = operation["responses"].as_object().expect("answers");
            // What stands for any status would hide those that nobody wrote down.
            assert!(!answers.contains_key("default"), "{method} {path}");
            for (status, answer) in answers.iter().filter(|(status, _)| status.as_str() >= "400") {
                let words = answer["description"].as_str().unwrap_or_default().split('`');
                let known: Vec<&Code> =
                    words.filter_map(|word| Code::ALL.iter().find(|code| code.as_str() == word)).collect();
                assert!(
                    !known.is_empty() || (path == "/readyz" && status == "503"),
                    "{method} {path} {status}"
                );
                for code in known {
                    assert_eq!(code.status().as_u16().to_string(), *status, "{method} {path}");
                    codes.insert(code.as_str());
                }
            }
        }
    }
    // Those of no route: one is there, but not with that method; the others are for commands that ask a store in the same words.
    let nowhere = ["method_not_allowed", "run_shared", "not_set_aside", "exists"];
    let unused: Vec<&str> =
        Code::ALL.iter().map(|code| code.as_str()).filter(|code| !codes.contains(code)).collect();
    assert_eq!(unused, nowhere);
}

#[tokio::test]
async fn committed_description_is_what_the_service_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    let committed = std::fs::read_to_string(path).expect("a committed description");
    let said = openapi().to_pretty_json().expect("a description");
    assert!(committed.trim_end() == said, "run `cargo xtask generate`");
}

#[tokio::test]
async fn every_shape_that_is_named_is_described() {
    let text = openapi().to_json().expect("a description");
    let described: Value = serde_json::from_str(&text).expect("JSON");
    let schemas = described["components"]["schemas"].as_object().expect("schemas");
    for named in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(schemas.contains_key(named), "{named}");
    }
}

#[tokio::test]
async fn codes_of_refusals_are_described_as_they_are_sent() {
    let described = serde_json::to_value(openapi()).expect("a description");
    let words = described["components"]["schemas"]["Code"]["enum"].as_array().expect("words").clone();
    let sent: Vec<Value> = Code::ALL.iter().map(|code| serde_json::to_value(code).expect("a word")).collect();
    assert_eq!(words, sent);
}
