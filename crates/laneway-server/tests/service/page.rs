//! U1: the web page and its files, who is sent them and with what, and how a person signs in at it.

use hyper::Method;
use laneway_core::role::Role;
use serde_json::json;

use crate::support::{Place, Reply, Server};

const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

async fn visit(server: &Server, path: &str) -> Reply {
    server.ask(Method::GET, path).with("accept", HTML).send().await
}

/// The files that the page names.
fn named(page: &str) -> Vec<String> {
    let quoted = page.split('"').filter(|part| part.starts_with("/assets/"));
    quoted.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_is_sent_without_a_token_with_a_strict_policy_and_nothing_inline() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let page = server.ask(Method::GET, "/").send().await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert_eq!(page.header("cache-control"), "no-cache");
    let text = String::from_utf8(page.body.to_vec()).expect("text");
    assert!(!text.contains("<style") && !text.contains("style="), "{text}");
    assert!(
        text.split("<script")
            .skip(1)
            .all(|script| script.split('>').next().is_some_and(|tag| tag.contains("src="))),
        "{text}"
    );
    assert!(!named(&text).is_empty(), "{text}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_the_page_are_kept_for_ever_and_sent_compressed_to_who_takes_that() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let page = server.ask(Method::GET, "/").send().await;
    for path in named(std::str::from_utf8(&page.body).expect("text")) {
        let plain = server.ask(Method::GET, &path).send().await;
        assert_eq!((plain.status.as_u16(), plain.header("content-encoding")), (200, ""), "{path}");
        assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable", "{path}");
        let packed = server.ask(Method::GET, &path).with("accept-encoding", "br, gzip").send().await;
        assert_eq!(packed.header("content-encoding"), "gzip", "{path}");
        assert_eq!(packed.header("vary"), "accept-encoding", "{path}");
        assert!(packed.body.starts_with(&[0x1f, 0x8b]) && packed.body.len() < plain.body.len(), "{path}");
    }
    let none = visit(&server, "/assets/nothing.js").await;
    assert_eq!(
        none.refusal(),
        (404, "no_such_route".to_owned()),
        "a page instead of a script would only puzzle"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_is_the_page_and_no_path_of_the_api_is_one() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let page = server.ask(Method::GET, "/").send().await;
    for path in ["/runs", "/runs/0199f2a0", "/workflows/a%20b?tab=graph", "/v2", "/v12/x"] {
        let view = visit(&server, path).await;
        assert_eq!((view.status.as_u16(), &view.body), (200, &page.body), "{path}");
    }
    for path in ["/v1", "/v1/nothing", "/healthz/x", "/metrics/x"] {
        assert_eq!(visit(&server, path).await.refusal(), (404, "no_such_route".to_owned()), "{path}");
    }
    assert_eq!(visit(&server, "/v1/runs").await.refusal(), (401, "no_token".to_owned()));
    let program = server.ask(Method::GET, "/runs").with("accept", "application/json").send().await;
    assert_eq!(program.refusal(), (404, "no_such_route".to_owned()));
    let posted = server.ask(Method::POST, "/runs").with("accept", HTML).send().await;
    assert_eq!(posted.refusal(), (404, "no_such_route".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn link_on_another_site_leads_to_a_view_and_to_nothing_else() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let ask = |path: &str, mode: &str, dest: &str| {
        let asking = server.ask(Method::GET, path).by(Role::Admin).with("accept", HTML);
        asking
            .with("sec-fetch-site", "cross-site")
            .with("sec-fetch-mode", mode)
            .with("sec-fetch-dest", dest)
            .send()
    };
    assert_eq!(ask("/runs/x", "navigate", "document").await.status, 200);
    let refused = (403, "origin_refused".to_owned());
    assert_eq!(ask("/runs/x", "navigate", "iframe").await.refusal(), refused);
    assert_eq!(ask("/", "cors", "empty").await.refusal(), refused);
    assert_eq!(ask("/v1/runs", "navigate", "document").await.refusal(), refused);
    let foreign = server.ask(Method::GET, "/").with("host", "evil.example").send().await;
    assert_eq!(foreign.refusal(), (421, "host_refused".to_owned()));
    let signing = server.ask(Method::POST, "/v1/sign-in").with("host", "evil.example").send().await;
    assert_eq!(signing.refusal(), (421, "host_refused".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_is_exchanged_for_a_token_once() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let made = server.post("/v1/sign-in/codes", json!({ "role": "operator" })).await;
    assert_eq!((made.status.as_u16(), &made.json()["role"]), (201, &json!("operator")), "{made:?}");
    let code = made.json()["code"].clone();
    let sign_in = || server.ask(Method::POST, "/v1/sign-in").json(&json!({ "code": code })).send();
    let signed = sign_in().await;
    assert_eq!(signed.status, 201, "{signed:?}");
    let (token, name) = (signed.json()["token"].clone(), signed.json()["name"].clone());
    let me = server.ask(Method::GET, "/v1/me").bearing(token.as_str().expect("a token")).send().await.json();
    assert_eq!((&me["name"], &me["role"]), (&name, &json!("operator")));
    assert_eq!(me["server_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(sign_in().await.refusal(), (403, "bad_code".to_owned()));
    let deeds = server.store.audit(None, 2).await.expect("entries");
    let told: Vec<&str> = deeds.iter().map(|entry| entry.deed.act.as_str()).collect();
    assert_eq!(told, ["sign_in", "make_code"]);
    assert_eq!(
        (deeds[0].deed.by.as_str(), deeds[0].deed.origin.as_str()),
        (name.as_str().expect("a name"), "127.0.0.1")
    );
    let guessed =
        server.ask(Method::POST, "/v1/sign-in").json(&json!({ "code": "0".repeat(64) })).send().await;
    assert_eq!(guessed.refusal(), (403, "bad_code".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_lets_others_do_more_than_he_may() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let ask = |by: Role, role: &str| {
        server.ask(Method::POST, "/v1/sign-in/codes").by(by).json(&json!({ "role": role })).send()
    };
    assert_eq!(ask(Role::Viewer, "viewer").await.status, 201);
    assert_eq!(ask(Role::Viewer, "operator").await.refusal(), (403, "forbidden".to_owned()));
    assert_eq!(ask(Role::Operator, "admin").await.refusal(), (403, "forbidden".to_owned()));
    assert_eq!(ask(Role::Admin, "worker").await.refusal(), (403, "forbidden".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_of_a_revoked_token_lets_nobody_in() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let made = server.post("/v1/tokens", json!({ "name": "guest", "role": "viewer" })).await.json();
    let token = made["token"].as_str().expect("a token").to_owned();
    let asked = server.ask(Method::POST, "/v1/sign-in/codes").bearing(&token).json(&json!({})).send().await;
    let code = asked.json()["code"].clone();
    let revoked = server.ask(Method::DELETE, "/v1/tokens/guest").by(Role::Admin).send().await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    let signed = server.ask(Method::POST, "/v1/sign-in").json(&json!({ "code": code })).send().await;
    assert_eq!(signed.refusal(), (403, "bad_code".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_of_a_token_is_revoked_with_it() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let made = server.post("/v1/tokens", json!({ "name": "guest", "role": "viewer" })).await.json();
    let mut tokens = vec![("guest".to_owned(), made["token"].as_str().expect("a token").to_owned())];
    // Each lets the next one in.
    for _ in 0..2 {
        let (_, token) = tokens.last().expect("one");
        let asked =
            server.ask(Method::POST, "/v1/sign-in/codes").bearing(token).json(&json!({})).send().await;
        let code = asked.json()["code"].clone();
        let signed =
            server.ask(Method::POST, "/v1/sign-in").json(&json!({ "code": code })).send().await.json();
        let word = |key: &str| signed[key].as_str().expect("a word").to_owned();
        tokens.push((word("name"), word("token")));
    }
    let listed = server.get("/v1/tokens").await.json();
    let came_of = |name: &str| {
        let tokens = listed["tokens"].as_array().expect("tokens");
        tokens.iter().find(|token| token["name"] == name).expect("it is listed")["came_of"].clone()
    };
    assert_eq!(came_of(&tokens[0].0), json!(null));
    assert_eq!((came_of(&tokens[1].0), came_of(&tokens[2].0)), (json!("guest"), json!(tokens[1].0)));
    let revoked = server.ask(Method::DELETE, "/v1/tokens/guest").by(Role::Admin).send().await.json();
    let mut along = vec![tokens[1].0.clone(), tokens[2].0.clone()];
    along.sort();
    assert_eq!(revoked["along"], json!(along));
    for (name, token) in &tokens {
        let refused = server.ask(Method::GET, "/v1/me").bearing(token).send().await;
        assert_eq!(refused.refusal(), (401, "bad_token".to_owned()), "{name}");
    }
    let entry = server.store.audit(None, 1).await.expect("entries").remove(0);
    assert_eq!(entry.deed.what, format!("token guest, with what came of it: {}", along.join(", ")));
    server.stop().await;
}
