//! R15: files that steps left behind, listed and fetched through the service, from whichever node.

use std::time::Duration;

use laneway_core::artifact::ArtifactName;
use laneway_core::role::Role;
use laneway_server::access::Secret;
use laneway_server::client::Client;
use laneway_store::model::Artifact;

use tokio::io::AsyncWriteExt as _;

use crate::support::{Actor, Place, SOON};

const FLOW: &str = "steps: {build: {run: x, artifacts: ['dist/*']}}\n";

/// A run whose step left a file behind that is larger than anything that is sent at once.
async fn left_behind(place: &Place, server: &crate::support::Server) -> (laneway_core::id::RunId, Vec<u8>) {
    let run = server.submit(FLOW).await;
    let actor = Actor::join(place, "actor:1").await;
    let claim = actor.take(1).await.remove(0);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|no| (no % 251) as u8).collect();
    let path = place.dir.path().join("made");
    std::fs::write(&path, &bytes).expect("a file");
    let (hash, size) = server.store.keep_file(&path).await.expect("a file that is kept");
    let name = ArtifactName::parse("dist/app tar.gz").expect("a name");
    let artifact = Artifact { name, hash, size, is_executable: true };
    server.store.keep_artifacts(claim.at, vec![artifact]).await.expect("artifacts");
    actor.end(&claim, true).await;
    (run, bytes)
}

async fn artifacts_are_listed_and_fetched(place: Place) {
    let server = place.serve().await;
    let (run, bytes) = left_behind(&place, &server).await;
    let listed = server.get(&format!("/v1/runs/{run}/artifacts")).await.json();
    let found = &listed["artifacts"][0];
    assert_eq!((&found["step"], &found["name"]), (&"build".into(), &"dist/app tar.gz".into()));
    assert_eq!((&found["bytes"], &found["executable"]), (&3_000_000.into(), &true.into()));
    // Another server, which has seen nothing of it.
    let other = place.serve().await;
    let reply = other.get(&format!("/v1/runs/{run}/tasks/build/artifact?name=dist/app%20tar.gz")).await;
    assert_eq!((reply.status.as_u16(), reply.header("content-disposition")), (200, "attachment"));
    assert!(reply.body == bytes);
    let path = place.dir.path().join("fetched");
    let mut file = tokio::fs::File::create_new(&path).await.expect("a file");
    let client = Client::new(&format!("http://{}", other.address), Secret::parse(other.token(Role::Viewer)))
        .expect("a client");
    let list = client.artifacts(&run.to_string()).await.expect("artifacts");
    client.fetch(run, &list.artifacts[0], &mut file).await.expect("what is in it");
    assert!(std::fs::read(&path).expect("a file") == bytes);
    for (path, code) in [
        (format!("/v1/runs/{run}/tasks/build/artifact?name=dist/other"), "no_such_artifact"),
        (format!("/v1/runs/{run}/tasks/test/artifact?name=dist/app%20tar.gz"), "no_such_artifact"),
        (format!("/v1/runs/{run}/tasks/build/artifact?name=../laneway.db"), "no_such_artifact"),
        ("/v1/runs/0199f2a0/artifacts".to_owned(), "no_such_run"),
    ] {
        assert_eq!(other.get(&path).await.refusal(), (404, code.to_owned()), "{path}");
    }
    let scratch = std::fs::read_dir(other.store.dir().join("scratch")).expect("a directory");
    let left: Vec<_> = scratch.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    assert!(!left.iter().any(|name| name.starts_with("fetched-")), "{left:?}");
    other.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_of_an_embedded_store_are_listed_and_fetched() {
    artifacts_are_listed_and_fetched(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_of_postgres_are_listed_and_fetched() {
    artifacts_are_listed_and_fetched(Place::postgres().await).await;
}

fn copies(server: &crate::support::Server) -> Vec<String> {
    let scratch = std::fs::read_dir(server.store.dir().join("scratch")).into_iter().flatten();
    let names = scratch.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with("fetched-")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn download_that_is_broken_off_leaves_no_copy() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let (run, _) = left_behind(&place, &server).await;
    for wait in 0..60_u64 {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.expect("a connection");
        let asked = format!(
            "GET /v1/runs/{run}/tasks/build/artifact?name=dist/app%20tar.gz HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            server.address,
            server.token(Role::Viewer)
        );
        stream.write_all(asked.as_bytes()).await.expect("asked");
        // At some moment between the request and the answer.
        tokio::time::sleep(Duration::from_micros(wait * 100)).await;
    }
    let until = tokio::time::Instant::now() + SOON;
    while !copies(&server).is_empty() {
        assert!(tokio::time::Instant::now() < until, "{:?}", copies(&server));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop().await;
}
