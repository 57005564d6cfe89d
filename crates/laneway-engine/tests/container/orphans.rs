//! What dead nodes left is removed; what belongs to somebody who lives, or to another store, never is.

use std::time::Duration;

use laneway_core::definition::Container;
use laneway_core::id::{InstanceId, SessionId};
use laneway_engine::container::{Spec, labels, orphans};
use laneway_store::model::NewSession;
use laneway_store::{Open, open};

use crate::proxy::Proxy;
use crate::support::{IMAGE, docker, unique};

#[tokio::test]
async fn containers_of_dead_sessions_are_removed_and_no_others() {
    let docker = docker();
    let dir = tempfile::tempdir().expect("tempdir");
    let store = open(dir.path().join("laneway.db").to_str().expect("UTF-8"), Open::Create).expect("a store");
    let alive = store.register(NewSession::ephemeral("test:1", 1)).await.expect("a session");
    let dead = SessionId::parse("0190f000-0000-7000-8000-000000000001").expect("an id");
    let other = InstanceId::parse("0190f000-0000-7000-8000-000000000002").expect("an id");
    let make = async |instance, session, is_started| {
        let spec = Spec {
            settings: Container { image: IMAGE.to_owned(), ..Container::default() },
            argv: vec!["sleep".to_owned(), "1000".to_owned()],
            labels: labels::of_node(instance, session),
            ..Spec::default()
        };
        let name = unique();
        let id = docker.create(&name, spec.body()).await.expect("made");
        if is_started {
            docker.start(&id).await.expect("started");
        }
        name
    };
    let of_dead = [
        make(store.instance(), dead, true).await,
        make(store.instance(), dead, false).await,
        make(store.instance(), dead, true).await,
    ];
    docker.pause(&of_dead[2]).await.expect("paused");
    let of_living = make(store.instance(), alive, true).await;
    let of_other = make(other, dead, true).await;

    let swept = orphans::sweep(&docker, store.as_ref()).await.expect("swept");
    let mut removed = swept.removed.clone();
    removed.sort();
    assert_eq!((removed, swept.left), (of_dead.to_vec(), Vec::new()));
    for name in &of_dead {
        assert_eq!(docker.find(name).await.expect("an answer"), None);
    }
    for name in [&of_living, &of_other] {
        let found = docker.find(name).await.expect("an answer").expect("it is not ours to remove");
        assert_eq!(found.state, "running");
        docker.remove(name).await.expect("removed");
    }
    assert_eq!(orphans::sweep(&docker, store.as_ref()).await.expect("swept"), orphans::Swept::default());

    // One that its engine does not let go of keeps none of the others.
    let place = tempfile::tempdir().expect("tempdir");
    let proxy = Proxy::start(place.path(), docker.socket().expect("a socket"));
    let stuck = make(store.instance(), dead, true).await;
    let others = [make(store.instance(), dead, true).await, make(store.instance(), dead, true).await];
    let id = docker.find(&stuck).await.expect("an answer").expect("it is there").id;
    proxy.stick_at(&format!("/containers/{id}?"));
    let patience = Duration::from_secs(5);
    let swept = orphans::sweep_within(&proxy.docker(), store.as_ref(), patience).await.expect("swept");
    let mut removed = swept.removed;
    removed.sort();
    assert_eq!(removed, others);
    assert_eq!(swept.left, [(stuck.clone(), "it was not removed within 5 s".to_owned())]);
    assert_eq!(
        orphans::sweep(&docker, store.as_ref()).await.expect("swept").removed,
        [stuck],
        "the next time"
    );
}
