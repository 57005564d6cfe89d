//! Graphs that were drawn: the same plan always gives the same one, and its version is made of content, so what is kept here is never
//! out of date. A large graph takes a good part of a second to lay out, and whoever looks at a run asks for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use laneway_core::hash::Version;
use laneway_core::plan::Plan;

use crate::problem::{Answer, Code, Problem};
use crate::wire::Graph;

/// Of all graphs together; with more, the oldest go.
const BYTES: usize = 16 << 20;

/// Steps of a plan that is drawn where it is asked for: that takes less than to hand it to another thread.
const SMALL: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Graphs(Mutex<VecDeque<(Version, Bytes)>>);

impl Graphs {
    /// As JSON.
    pub(crate) async fn draw(&self, plan: Arc<Plan>) -> Answer<Bytes> {
        if let Some(known) = self.known(&plan.version) {
            return Ok(known);
        }
        let (version, steps) = (plan.version.clone(), plan.workflow.steps.len());
        let draw = move || serde_json::to_vec(&Graph::of(&plan)).map(Bytes::from);
        let drawn = if steps <= SMALL {
            draw()
        } else {
            tokio::task::spawn_blocking(draw)
                .await
                .unwrap_or_else(|error| Err(serde::ser::Error::custom(error)))
        };
        let drawn = drawn.map_err(|error| {
            tracing::error!(%version, %error, "a graph cannot be drawn");
            Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
        })?;
        self.keep(version, &drawn);
        Ok(drawn)
    }

    fn known(&self, version: &Version) -> Option<Bytes> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == version).map(|(_, drawn)| drawn.clone())
    }

    fn keep(&self, version: Version, drawn: &Bytes) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != version);
        kept.push_back((version, drawn.clone()));
        while kept.iter().map(|(_, drawn)| drawn.len()).sum::<usize>() > BYTES {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_the_oldest_go_first() {
        let graphs = Graphs::default();
        let version = |name: &str| Version::from_stored(name.to_owned());
        let half = Bytes::from(vec![b'x'; BYTES / 2]);
        for name in ["a", "b", "c"] {
            graphs.keep(version(name), &half);
        }
        assert!(graphs.known(&version("a")).is_none());
        assert!(graphs.known(&version("b")).is_some() && graphs.known(&version("c")).is_some());
        graphs.keep(version("d"), &Bytes::from(vec![b'x'; BYTES + 1]));
        assert!(graphs.known(&version("d")).is_none(), "larger than all of them may be");
    }
}
