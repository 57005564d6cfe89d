//! S5: tokens, names and pages, limits, and that every change is in the audit log.

use std::time::Duration;

use hyper::Method;
use laneway_core::role::Role;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Actor, Place, SOON};

const FLOW: &str = "steps: {a: {run: 'true'}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_is_shown_once_and_is_good_until_it_is_revoked() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let made = server.post("/v1/tokens", json!({ "name": "ci", "role": "viewer" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let secret = made.json()["token"].as_str().expect("a secret").to_owned();
    let ask = || server.ask(Method::GET, "/v1/runs").bearing(&secret).send();
    assert_eq!(ask().await.status, 200);
    let listed = server.get("/v1/tokens").await;
    let text = String::from_utf8(listed.body.to_vec()).expect("text");
    assert!(!text.contains(&secret[20..]), "{text}");
    assert!(text.contains(&format!("\"tail\":\"{}\"", &secret[secret.len() - 4..])), "{text}");
    let again = server.post("/v1/tokens", json!({ "name": "ci", "role": "viewer" })).await;
    assert_eq!(again.refusal(), (409, "token_exists".to_owned()));
    // Ended by another process, which this server hears nothing of.
    place.open().revoke_token("ci", "bob").await.expect("a token in use");
    assert_eq!(ask().await.refusal(), (401, "bad_token".to_owned()));
    let gone = server.ask(Method::DELETE, "/v1/tokens/ci").by(Role::Admin).send().await;
    assert_eq!(gone.refusal(), (404, "no_such_token".to_owned()));
    let bad = server.post("/v1/tokens", json!({ "name": "a b/c", "role": "viewer" })).await;
    assert_eq!(bad.refusal(), (400, "bad_body".to_owned()));
    let unknown = server.post("/v1/tokens", json!({ "name": "x", "role": "king" })).await;
    assert_eq!(unknown.refusal(), (400, "bad_body".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_reaches_whoever_is_still_sending() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let body = vec![b'x'; 4 << 20];
    for (token, status) in [("none", "401"), (server.token(Role::Admin), "413")] {
        let mut line = TcpStream::connect(server.address).await.expect("a connection");
        let head = format!(
            "POST /v1/limits/x HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
            server.address,
            body.len()
        );
        line.write_all(head.replace("POST", "PUT").as_bytes()).await.expect("it listens");
        for part in body.chunks(256 << 10) {
            tokio::time::sleep(Duration::from_millis(5)).await;
            line.write_all(part).await.expect("it listens on");
        }
        let mut answer = Vec::new();
        tokio::time::timeout(SOON, line.read_to_end(&mut answer)).await.expect("in time").expect("an answer");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_is_in_the_audit_log_before_it_is_answered() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit(FLOW).await;
    let by = format!("admin-{}", server.address.port());
    let last = || async {
        let entry = server.store.audit(None, 1).await.expect("entries").remove(0);
        assert_eq!((entry.deed.by.as_str(), entry.deed.origin.as_str()), (by.as_str(), "127.0.0.1"));
        format!("{} {}", entry.deed.act, entry.deed.what)
    };
    assert_eq!(last().await, format!("submit run {run} of flow"));
    let changes = [
        (format!("/v1/runs/{run}/pause"), format!("pause run {run}")),
        (format!("/v1/runs/{run}/resume"), format!("resume run {run}")),
        (format!("/v1/runs/{run}/cancel"), format!("cancel run {run}")),
        (format!("/v1/runs/{run}/retry"), format!("retry run {run}")),
        ("/v1/workflows/flow/pause".to_owned(), "pause workflow flow".to_owned()),
        ("/v1/workflows/flow/resume".to_owned(), "resume workflow flow".to_owned()),
    ];
    for (path, told) in changes {
        let reply = server.post(&path, json!({})).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(last().await, told);
    }
    actor.work(false).await;
    server.post(&format!("/v1/runs/{run}/tasks/a/skip"), json!({})).await;
    assert_eq!(last().await, format!("skip step a of run {run}"));
    let set =
        server.ask(Method::PUT, "/v1/limits/api").by(Role::Admin).json(&json!({ "value": "3" })).send().await;
    assert_eq!((set.status.as_u16(), set.json()["value"].as_str()), (200, Some("3")), "{set:?}");
    assert_eq!(last().await, "set_limit limit api to 3");
    server.post("/v1/nodes/actor:1/drain", json!({})).await;
    assert_eq!(last().await, "drain node actor:1");
    server.post("/v1/tokens", json!({ "name": "ci", "role": "worker" })).await;
    assert_eq!(last().await, "create_token token ci with the role worker");
    server.ask(Method::DELETE, "/v1/tokens/ci").by(Role::Admin).send().await;
    assert_eq!(last().await, "revoke_token token ci");
    // What is refused changes nothing, and is not in it.
    let refused = server.post("/v1/runs/last/tasks/nothing/skip", json!({})).await;
    assert_eq!(refused.refusal(), (404, "no_such_step".to_owned()));
    assert_eq!(last().await, "revoke_token token ci");
    let page = server.get("/v1/audit?limit=2").await.json();
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(2));
    let cursor = page["next_cursor"].as_str().expect("more").to_owned();
    let next = server.get(&format!("/v1/audit?limit=1&cursor={cursor}")).await.json();
    assert_eq!(next["entries"][0]["act"], "drain");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limit_has_a_name_that_a_document_could_give_it() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let set = |name: String| {
        let asking = server.ask(Method::PUT, &format!("/v1/limits/{name}")).by(Role::Admin);
        asking.json(&json!({ "value": "3" })).send()
    };
    for bad in ["%1b%5b31m", "a%0ab", "a%20b", "3", &"x".repeat(5_000)] {
        let refused = set(bad.to_owned()).await;
        assert_eq!(refused.refusal(), (422, "unprocessable".to_owned()), "{bad}");
        let told = refused.json()["detail"].as_str().expect("a detail").to_owned();
        assert!(told.len() < 300 && !told.contains('\u{1b}'), "{told}");
    }
    assert_eq!(set("ware-house_2".to_owned()).await.status, 200);
    assert_eq!(server.store.limits().await.expect("limits").len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_is_in_the_audit_log_also_if_nobody_waits_for_its_answer() {
    let place = Place::sqlite();
    let server = place.serve().await;
    // As long as somebody else writes every change is under way.
    let writing = place.hold();
    let mut lines = Vec::new();
    for number in 0..20 {
        let mut line = TcpStream::connect(server.address).await.expect("a connection");
        let (address, token, body) = (server.address, server.token(Role::Admin), r#"{"value":"3"}"#);
        let request = format!(
            "PUT /v1/limits/l{number} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        line.write_all(request.as_bytes()).await.expect("it listens");
        lines.push(line);
    }
    // A client that hangs up before the server knows its token is not heard, so these wait for the answer to a
    // request that came behind theirs.
    assert_eq!(server.get("/v1/limits").await.status, 200);
    drop(lines);
    // It ends only when what it has begun is done.
    tokio::join!(server.stop(), async { drop(writing) });
    let store = place.open();
    let set = store.limits().await.expect("limits").len();
    let entries = store.audit(None, 99).await.expect("entries");
    let told = entries.iter().filter(|entry| entry.deed.act == "set_limit").count();
    assert!(set > 0, "none was heard");
    assert_eq!(told, set);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_by_a_foreign_name_or_from_a_foreign_page_is_refused() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let ask = |name: &str, value: &str| {
        server.ask(Method::GET, "/v1/runs").by(Role::Admin).with(name, value).send()
    };
    assert_eq!(ask("host", "evil.example").await.refusal(), (421, "host_refused".to_owned()));
    assert_eq!(ask("host", "evil.example:7878").await.refusal(), (421, "host_refused".to_owned()));
    assert_eq!(ask("host", "lane.example").await.status, 200);
    assert_eq!(ask("host", "localhost:1").await.status, 200);
    assert_eq!(ask("origin", "https://evil.example").await.refusal(), (403, "origin_refused".to_owned()));
    assert_eq!(ask("origin", "null").await.refusal(), (403, "origin_refused".to_owned()));
    assert_eq!(ask("sec-fetch-site", "cross-site").await.refusal(), (403, "origin_refused".to_owned()));
    assert_eq!(ask("origin", &format!("http://{}", server.address)).await.status, 200);
    let probe = server.ask(Method::GET, "/healthz").with("host", "10.1.2.3:7878").send().await;
    assert_eq!(probe.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_carry_the_headers_that_keep_browsers_from_harm() {
    let place = Place::sqlite();
    let server = place.serve().await;
    for path in ["/healthz", "/v1/runs", "/nothing"] {
        let reply = server.get(path).await;
        assert!(reply.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("x-frame-options"), "DENY");
        assert_eq!(reply.header("cache-control"), "no-store");
        assert_eq!(reply.header("access-control-allow-origin"), "");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_that_is_too_long_or_no_json_is_refused_before_it_is_read() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let ask = |path: &str| server.ask(Method::POST, path).by(Role::Admin);
    let long = vec![b' '; 70_000];
    let told = ask("/v1/tokens").with("content-type", "application/json").raw(long).send().await;
    assert_eq!(told.refusal(), (413, "body_too_large".to_owned()));
    let claims =
        ask("/v1/runs").with("content-type", "application/json").with("content-length", "99999999999");
    let refused =
        tokio::time::timeout(crate::support::SOON, claims.begin()).await.expect("nobody waits for it");
    assert_eq!(refused.status(), 413);
    let form = ask("/v1/runs").with("content-type", "text/plain").raw(b"{}".to_vec()).send().await;
    assert_eq!(form.refusal(), (415, "not_json".to_owned()));
    let broken = ask("/v1/runs").with("content-type", "application/json").raw(b"{".to_vec()).send().await;
    assert_eq!(broken.refusal(), (400, "bad_body".to_owned()));
    let unknown = server.post("/v1/runs", json!({ "documnet": "x" })).await;
    assert_eq!(unknown.refusal(), (400, "bad_body".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_proxy_is_believed_who_it_asks_for() {
    let place = Place::sqlite();
    let (plain, behind) = (place.serve().await, place.serve_behind_proxy().await);
    for (server, origin) in [(&plain, "127.0.0.1"), (&behind, "192.0.2.9")] {
        let set = server.ask(Method::PUT, "/v1/limits/api").by(Role::Admin).json(&json!({ "value": "3" }));
        let set = set.with("x-forwarded-for", "198.51.100.1, 192.0.2.9").send().await;
        assert_eq!(set.status, 200, "{set:?}");
        assert_eq!(server.store.audit(None, 1).await.expect("entries")[0].deed.origin, origin);
    }
    plain.stop().await;
    behind.stop().await;
}

async fn expired_token_is_refused(place: Place) {
    let server = place.serve().await;
    let made = server.post("/v1/tokens", json!({ "name": "ci", "role": "viewer", "expires_in_s": 2 })).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert!(made.json()["expires_at"].is_string(), "{made:?}");
    let token = made.json()["token"].as_str().expect("a token").to_owned();
    let ask = async || server.ask(Method::GET, "/v1/me").bearing(&token).send().await;
    assert_eq!(ask().await.status, 200);
    // No commit comes in between: what the server remembers of a token expires as well.
    let refused = tokio::time::timeout(SOON, async {
        loop {
            let answer = ask().await;
            if answer.status != 200 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let refused = refused.await.expect("it expires");
    assert_eq!(refused.refusal(), (401, "bad_token".to_owned()));
    assert!(refused.json()["detail"].as_str().is_some_and(|said| said.contains("expired at")), "{refused:?}");
    let listed = server.get("/v1/tokens").await.json();
    let listed =
        listed["tokens"].as_array().expect("tokens").iter().find(|token| token["name"] == "ci").cloned();
    assert_eq!(listed.expect("it is listed")["is_live"], false);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_token_is_refused_on_an_embedded_store() {
    expired_token_is_refused(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_token_is_refused_on_postgres() {
    expired_token_is_refused(Place::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotated_token_goes_on_under_its_name_with_another_secret() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let made = server.post("/v1/tokens", json!({ "name": "ci", "role": "operator" })).await.json();
    let rotate = async |body: serde_json::Value| {
        let asked = server.ask(Method::POST, "/v1/tokens/ci/rotate").by(Role::Admin);
        asked.json(&body).send().await
    };
    let status = async |made: &serde_json::Value| -> u16 {
        let token = made["token"].as_str().expect("a token");
        server.ask(Method::GET, "/v1/me").bearing(token).send().await.status.as_u16()
    };
    let graceful = rotate(json!({ "grace_s": 3600, "expires_in_s": 86400 })).await.json();
    assert_eq!((graceful["name"].as_str(), graceful["role"].as_str()), (Some("ci"), Some("operator")));
    assert!(graceful["expires_at"].is_string() && graceful["old_ends_at"].is_string(), "{graceful}");
    assert_eq!((status(&made).await, status(&graceful).await), (200, 200), "both within the grace");
    let at_once = rotate(json!({})).await.json();
    assert_eq!((status(&graceful).await, status(&at_once).await), (401, 200));
    assert_eq!(status(&made).await, 401, "the grace of one before ends too");
    let unknown = server.ask(Method::POST, "/v1/tokens/nobody/rotate").by(Role::Admin).send().await;
    assert_eq!(unknown.refusal(), (404, "no_such_token".to_owned()));
    let forever = rotate(json!({ "grace_s": 2_592_001 })).await;
    assert_eq!(forever.refusal(), (400, "bad_body".to_owned()));
    let audit = server.ask(Method::GET, "/v1/audit").by(Role::Admin).send().await.json();
    assert_eq!(
        (&audit["entries"][0]["act"], &audit["entries"][0]["what"]),
        (&json!("rotate_token"), &json!("token ci"))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_use_of_a_token_is_listed_and_costs_one_write_a_minute() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let made = server.post("/v1/tokens", json!({ "name": "ci", "role": "viewer" })).await.json();
    let token = made["token"].as_str().expect("a token").to_owned();
    let listed = async || {
        let listed = server.get("/v1/tokens").await.json();
        let tokens = listed["tokens"].as_array().expect("tokens").clone();
        tokens.into_iter().find(|token| token["name"] == "ci").expect("it is listed")["last_used_at"].clone()
    };
    assert_eq!(listed().await, json!(null));
    let ask = async || assert_eq!(server.ask(Method::GET, "/v1/me").bearing(&token).send().await.status, 200);
    ask().await;
    let used = tokio::time::timeout(SOON, async {
        loop {
            let used = listed().await;
            if used.is_string() {
                return used;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let used = used.await.expect("it is recorded");
    let commits = server.store.stamp();
    for _ in 0..20 {
        ask().await;
    }
    assert_eq!((listed().await, server.store.stamp()), (used, commits), "no request costs a write");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_signs_in_at_the_web_page_is_signed_out_again() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let asked = server.ask(Method::POST, "/v1/sign-in/codes").by(Role::Viewer).json(&json!({})).send().await;
    let code = asked.json()["code"].clone();
    let signed = server.ask(Method::POST, "/v1/sign-in").json(&json!({ "code": code })).send().await.json();
    let expires: jiff::Timestamp =
        signed["expires_at"].as_str().expect("a moment").parse().expect("a moment");
    let lasts = expires.duration_since(jiff::Timestamp::now());
    let web = jiff::SignedDuration::try_from(laneway_server::access::WEB_SESSION_LASTS).expect("a duration");
    assert!(lasts <= web && lasts > web - jiff::SignedDuration::from_mins(5), "{lasts:?}");
    server.stop().await;
}
