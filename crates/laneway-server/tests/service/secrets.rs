//! S6 over HTTP: values go in, and never out.

use hyper::Method;
use laneway_core::role::Role;
use laneway_engine::secret::Key;
use serde_json::{Value, json};

use crate::support::{Place, Reply, Server};

const VALUE: &str = "a value that is long enough";

async fn set(server: &Server, name: &str, body: &Value) -> Reply {
    server.ask(Method::PUT, &format!("/v1/secrets/{name}")).by(Role::Admin).json(body).send().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_is_set_listed_without_its_value_and_removed() {
    let place = Place::sqlite();
    let server = place.serve().await;
    assert_eq!(
        set(&server, "db", &json!({ "value": VALUE })).await.json(),
        json!({ "name": "db", "set": true })
    );
    let listed = server.get("/v1/secrets").await;
    let secrets = listed.json();
    assert_eq!(secrets["secrets"].as_array().map(Vec::len), Some(1), "{secrets}");
    assert_eq!(secrets["secrets"][0]["name"], "db");
    assert!(secrets["secrets"][0]["set_by"].as_str().is_some_and(|by| by.starts_with("admin-")), "{secrets}");
    // A step of this store can use it, and nobody reads it anywhere else.
    let sealed = server.store.secret("db").await.expect("it is kept");
    let key = Key::load(server.store.dir()).expect("a key");
    assert_eq!(key.open("db", &sealed).expect("it opens"), VALUE);
    let audit = server.get("/v1/audit").await;
    for said in [&listed, &audit] {
        assert!(!String::from_utf8_lossy(&said.body).contains("long enough"), "{said:?}");
    }
    let removed = server.ask(Method::DELETE, "/v1/secrets/db").by(Role::Admin).send().await;
    assert_eq!(removed.json(), json!({ "name": "db", "set": false }));
    assert_eq!(server.get("/v1/secrets").await.json(), json!({ "secrets": [] }));
    let acts: Vec<Value> =
        server.get("/v1/audit?limit=2").await.json()["entries"].as_array().expect("entries").clone();
    let acts: Vec<(&Value, &Value)> = acts.iter().map(|entry| (&entry["act"], &entry["what"])).collect();
    assert_eq!(
        acts,
        [(&json!("remove_secret"), &json!("secret db")), (&json!("set_secret"), &json!("secret db"))]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_that_cannot_be_kept_is_refused_and_nothing_is_recorded() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let long = "x".repeat(64 << 10).to_owned() + "y";
    for (name, value, code) in [
        ("db", "q9z", "unprocessable"),
        ("db", "with a \u{0} in the midst of it", "unprocessable"),
        ("db", &long, "unprocessable"),
        ("a%20b", VALUE, "unprocessable"),
        (&"n".repeat(101), VALUE, "unprocessable"),
    ] {
        let refused = set(&server, name, &json!({ "value": value })).await;
        assert_eq!(refused.refusal(), (422, code.to_owned()), "{name}");
        assert!(!String::from_utf8_lossy(&refused.body).contains(value), "{refused:?}");
    }
    let gone = server.ask(Method::DELETE, "/v1/secrets/db").by(Role::Admin).send().await;
    assert_eq!(gone.refusal(), (404, "no_such_secret".to_owned()));
    assert_eq!(server.get("/v1/secrets").await.json(), json!({ "secrets": [] }));
    let audit = server.get("/v1/audit").await.json();
    assert_eq!(audit["entries"], json!([]), "{audit}");
    server.stop().await;
}
