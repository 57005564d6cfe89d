//! R15: files that steps left behind, listed and fetched through the service, from whichever node.

use http_body_util::BodyExt as _;
use hyper::Method;
use laneway_core::artifact::ArtifactName;
use laneway_core::role::Role;
use laneway_server::access::Secret;
use laneway_server::client::Client;
use laneway_store::model::Artifact;
use tokio::time::timeout;

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
    let (hash, size) =
        server.store.keep_file(&path, laneway_store::MAX_SHARED_FILE).await.expect("a file that is kept");
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
    // A copy would have to be whole before the answer begins, which a large one would not be in time.
    assert!(!other.store.dir().join("scratch").exists(), "nothing is copied");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn download_that_has_begun_goes_on_when_the_file_is_let_go() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let (run, bytes) = left_behind(&place, &server).await;
    let path = format!("/v1/runs/{run}/tasks/build/artifact?name=dist/app%20tar.gz");
    let answer = server.ask(Method::GET, &path).by(Role::Viewer).begin().await;
    std::fs::remove_dir_all(server.store.dir().join("artifacts")).expect("they are there");
    let body = timeout(SOON, answer.into_body().collect()).await.expect("in time").expect("all of it");
    assert!(body.to_bytes() == bytes);
    assert_eq!(server.get(&path).await.refusal().1, "no_such_bytes");
    server.stop().await;
}
