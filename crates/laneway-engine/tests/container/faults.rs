//! Answers that are lost, and an engine that dies in the middle.

use laneway_engine::container::Docker;
use laneway_engine::process::Outcome;

use crate::engine::Engine;
use crate::proxy::Proxy;
use crate::support::{Bench, IMAGE, docker, until};

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_found_by_its_name() {
    let place = tempfile::tempdir().expect("tempdir");
    let proxy = Proxy::start(place.path(), docker().socket().expect("a socket"));
    let bench = Bench::at(proxy.docker());
    proxy.lose_creates(1);
    let ending = bench.run(bench.script("echo once >> counted")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    assert_eq!(proxy.creates(), 1, "it was not made twice");
    assert_eq!(std::fs::read_to_string(bench.path("work/counted")).expect("made"), "once\n");
}

#[tokio::test]
async fn an_engine_that_dies_and_comes_back_ends_the_attempt_in_words() {
    let mut engine = Engine::start(&docker(), IMAGE).await;
    let bench = Bench::at(engine.docker());
    let job = bench.script(": > begun; sleep 1000");
    let name = job.name.clone();
    let (_, ending) = bench.begin(job);
    bench.made("begun").await;
    // The step is quicker than its engine, which has to have written down that it runs.
    let docker = engine.docker();
    until("the engine knows of it", async || {
        docker.find(&name).await.is_ok_and(|found| found.is_some_and(|found| found.state == "running"))
    })
    .await;
    engine.kill();
    engine.start_again().await;
    let Outcome::EngineLost(told) = ending.await.outcome else { panic!("nobody knows how it ended") };
    assert!(told.contains("went away while the step ran"), "{told}");
    until("nothing of it is left", async || {
        engine.docker().find(&name).await.is_ok_and(|found| found.is_none())
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_stays_away_fails_the_attempt_and_is_cleared_up_when_it_is_back() {
    let mut engine = Engine::start(&docker(), IMAGE).await;
    let bench = Bench::at(engine.docker());
    let job = bench.script(": > begun; sleep 1000");
    let name = job.name.clone();
    let (_, ending) = bench.begin(job);
    bench.made("begun").await;
    // The step is quicker than its engine, which has to have written down that it runs.
    let docker = engine.docker();
    until("the engine knows of it", async || {
        docker.find(&name).await.is_ok_and(|found| found.is_some_and(|found| found.state == "running"))
    })
    .await;
    engine.kill();
    let Outcome::EngineLost(told) = ending.await.outcome else { panic!("nobody knows how it ended") };
    assert!(told.contains("no container engine answers") && told.contains("not known"), "{told}");
    engine.start_again().await;
    until("nothing of it is left", async || {
        engine.docker().find(&name).await.is_ok_and(|found| found.is_none())
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_is_away_is_not_waited_for_longer_than_a_step_may_take() {
    let mut engine = Engine::start(&docker(), IMAGE).await;
    let bench = Bench::at(engine.docker());
    let mut job = bench.script(": > begun; sleep 1000");
    // Shorter than an engine may be away, and long enough for a start on a machine under load.
    job.timeout = Some(std::time::Duration::from_secs(10));
    let name = job.name.clone();
    let (_, ending) = bench.begin(job);
    bench.made("begun").await;
    engine.kill();
    assert_eq!(ending.await.outcome, Outcome::TimedOut);
    engine.start_again().await;
    until("nothing of it is left", async || {
        engine.docker().find(&name).await.is_ok_and(|found| found.is_none())
    })
    .await;
}

#[tokio::test]
async fn an_engine_behind_an_address_is_spoken_to_like_one_behind_a_socket() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("tcp://{}", free.local_addr().expect("an address"));
    drop(free);
    let engine = Engine::start_at(&docker(), IMAGE, Some(&at)).await;
    let bench = Bench::at(Docker::at(&at));
    let ending = bench.run(bench.script("echo there; echo a=1 > \"$LANEWAY_OUTPUT\"; exit 3")).await;
    assert_eq!(ending.outcome, Outcome::Exited(3));
    assert_eq!((bench.stdout().as_str(), &ending.output.expect("values")["a"]), ("there\n", &"1".into()));
    // Nobody waits for this one any more.
    let job = bench.script(": > begun; sleep 1000");
    let name = job.name.clone();
    let (docker, warden) = (bench.docker.clone(), crate::warden::warden());
    let task = tokio::spawn(async move {
        laneway_engine::container::execute(&docker, &warden, job, Default::default()).await
    });
    bench.made("begun").await;
    task.abort();
    let own = engine.docker();
    until("nothing of it is left", async || own.find(&name).await.is_ok_and(|found| found.is_none())).await;
}
