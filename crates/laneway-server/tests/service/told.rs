//! E7: what a node says by itself of a history that cannot be read.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use laneway_core::id::RunId;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::Place;

const FLOW: &str = "steps: {a: {run: 'true'}, b: {needs: [a], run: 'true'}}\n";

/// Hears what is told to people who look after a node.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn about(&self, run: RunId) -> Vec<String> {
        let all = self.0.lock().expect("no panic");
        all.iter().filter(|told| told.contains(&run.short())).cloned().collect()
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message(self));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Message<'a>(&'a Heard);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.0.lock().expect("no panic").push(format!("{value:?}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_that_cannot_be_read_is_told_once_for_each_run() {
    let heard = Heard::default();
    tracing::subscriber::set_global_default(heard.clone()).expect("nobody else listens");
    let place = Place::sqlite();
    let server = place.serve().await;
    let runs = [server.submit(FLOW).await, server.submit(FLOW).await];
    place.harm("UPDATE events SET version = 99").await;
    for _ in 0..3 {
        for run in runs {
            let page = server.get(&format!("/v1/runs/{run}/events")).await.json();
            assert!(page["unreadable"].as_array().is_some_and(|gaps| gaps.len() > 1), "{page}");
            let behind = server.get(&format!("/v1/runs/{run}/events?after=1")).await.json();
            assert_eq!(behind["unreadable"].as_array().map(Vec::len), Some(1), "{behind}");
        }
    }
    for run in runs {
        let told = heard.about(run);
        assert!(told.len() == 1 && told[0].starts_with("event 1 of run"), "{told:?}");
    }
    server.stop().await;
}
