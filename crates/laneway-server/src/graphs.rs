//! Graphs that were drawn: the same plan always gives the same one, and its version is made of content, so what is kept here is never
//! out of date. A large graph takes a good part of a second to lay out, and whoever looks at a run asks for it: each is laid out once
//! for all who ask meanwhile, and few at a time, so that pictures do not take the processors from the work. It is compressed once as well: that
//! takes longer than to read it.

use std::collections::{HashMap, VecDeque};
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use laneway_core::hash::Version;
use laneway_core::plan::Plan;
use tokio::sync::{OnceCell, Semaphore};

use crate::page::takes_gzip;
use crate::problem::{Answer, Code, Problem};
use crate::wire::Graph;

/// Of all graphs together; with more, the oldest go. One that is larger is not kept at all.
const BYTES: usize = 64 << 20;

/// Steps of a plan that is drawn where it is asked for: that takes less than to hand it to another thread.
const SMALL: usize = 64;

/// Large ones that are laid out at once.
const AT_ONCE: usize = 2;

#[derive(Debug, Clone)]
pub(crate) struct Graphs {
    kept: Arc<Mutex<VecDeque<(Version, Drawn)>>>,
    drawing: Arc<Mutex<Drawing>>,
    places: Arc<Semaphore>,
}

/// Those that are being drawn, each until it is.
type Drawing = HashMap<Version, Weak<OnceCell<Drawn>>>;

/// A graph as JSON.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    plain: Bytes,
    /// Of a large one.
    gzip: Option<Bytes>,
}

impl Drawn {
    /// For whoever asked with these headers. What is not compressed here is compressed on its way.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> Response {
        let is_json = (header::CONTENT_TYPE, "application/json");
        match &self.gzip {
            Some(gzip) if takes_gzip(headers) => {
                let mut response =
                    ([is_json, (header::CONTENT_ENCODING, "gzip")], gzip.clone()).into_response();
                response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
                response
            }
            Some(_) | None => ([is_json], self.plain.clone()).into_response(),
        }
    }

    fn size(&self) -> usize {
        self.plain.len() + self.gzip.as_ref().map_or(0, Bytes::len)
    }
}

impl Default for Graphs {
    fn default() -> Self {
        let (kept, drawing) = (Arc::default(), Arc::default());
        Self { kept, drawing, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Graphs {
    pub(crate) async fn draw(&self, plan: Arc<Plan>) -> Answer<Drawn> {
        if let Some(known) = self.known(&plan.version) {
            return Ok(known);
        }
        let version = plan.version.clone();
        if plan.workflow.steps.len() <= SMALL {
            let drawn = Drawn { plain: drawn(&plan)?, gzip: None };
            self.keep(version, &drawn);
            return Ok(drawn);
        }
        let (graphs, cell) = (self.clone(), self.drawing(&version));
        // Apart from who asks: one who leaves takes nothing from those who wait for the same.
        let draw = async move {
            let draw = || async { graphs.lay_out(plan).await.inspect(|drawn| graphs.keep(version, drawn)) };
            cell.get_or_try_init(draw).await.cloned()
        };
        tokio::spawn(draw).await.unwrap_or_else(|error| Err(wrong(&error)))
    }

    /// What everybody waits on who asks for a version while it is being drawn.
    fn drawing(&self, version: &Version) -> Arc<OnceCell<Drawn>> {
        let mut drawing = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        drawing.retain(|_, cell| cell.strong_count() > 0);
        let known = drawing.get(version).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let cell = Arc::new(OnceCell::new());
            drawing.insert(version.clone(), Arc::downgrade(&cell));
            cell
        })
    }

    async fn lay_out(&self, plan: Arc<Plan>) -> Answer<Drawn> {
        let _place = self.places.acquire().await;
        let draw = move || {
            let plain = drawn(&plan)?;
            let gzip = Some(packed(&plain)?);
            Ok(Drawn { plain, gzip })
        };
        tokio::task::spawn_blocking(draw).await.unwrap_or_else(|error| Err(wrong(&error)))
    }

    fn known(&self, version: &Version) -> Option<Drawn> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == version).map(|(_, drawn)| drawn.clone())
    }

    fn keep(&self, version: Version, drawn: &Drawn) {
        if drawn.size() > BYTES {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != version);
        kept.push_back((version, drawn.clone()));
        while kept.iter().map(|(_, drawn)| drawn.size()).sum::<usize>() > BYTES {
            kept.pop_front();
        }
    }
}

fn drawn(plan: &Plan) -> Answer<Bytes> {
    serde_json::to_vec(&Graph::of(plan)).map(Bytes::from).map_err(|error| wrong(&error))
}

/// Fast: the rest of what the best compression saves is little, and somebody waits.
fn packed(plain: &Bytes) -> Answer<Bytes> {
    let mut packed = GzEncoder::new(Vec::with_capacity(plain.len() / 8), Compression::new(3));
    packed.write_all(plain).and_then(|()| packed.finish()).map(Bytes::from).map_err(|error| wrong(&error))
}

fn wrong(error: &dyn std::error::Error) -> Problem {
    tracing::error!(%error, "a graph cannot be drawn");
    Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_the_oldest_go_first() {
        let graphs = Graphs::default();
        let version = |name: &str| Version::from_stored(name.to_owned());
        let of = |size| Drawn { plain: Bytes::from(vec![b'x'; size]), gzip: None };
        let half = of(BYTES / 2);
        for name in ["a", "b", "c"] {
            graphs.keep(version(name), &half);
        }
        assert!(graphs.known(&version("a")).is_none());
        assert!(graphs.known(&version("b")).is_some() && graphs.known(&version("c")).is_some());
        graphs.keep(version("d"), &of(BYTES + 1));
        assert!(graphs.known(&version("d")).is_none(), "larger than all of them may be");
        assert!(graphs.known(&version("c")).is_some(), "and it drives nobody out");
    }

    #[test]
    fn who_asks_for_the_same_waits_for_the_same() {
        let graphs = Graphs::default();
        let version = |name: &str| Version::from_stored(name.to_owned());
        let first = graphs.drawing(&version("a"));
        assert!(Arc::ptr_eq(&first, &graphs.drawing(&version("a"))));
        assert!(!Arc::ptr_eq(&first, &graphs.drawing(&version("b"))));
        drop(first);
        graphs.drawing(&version("c"));
        let drawing = graphs.drawing.lock().expect("nobody panicked");
        assert!(!drawing.contains_key(&version("a")), "nobody waits for it any more");
    }
}
