//! Events as they happen, of many runs, of nodes and of pools, on one connection.
//!
//! ```text
//!   beat of pulse.rs ──▶ feed ──▶ a page behind each cursor ──▶ client
//!                         ▲
//!                         └─ stop: the stream ends
//! ```
//! Nothing is queued for a client but the page that it is being sent: a slow one reads later, from the store. The id of an
//! event is the place of every subscription behind it (`12.0.7~3^5`: of the runs in the order of the query, then of nodes, then of pools), so
//! whoever comes back with `Last-Event-ID` and the same query, to whichever node, goes on without a gap or a repeat.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, unfold};
use laneway_core::id::RunId;
use laneway_store::Result;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;

use crate::access::{self, Caller};
use crate::extract::Query;
use crate::metrics::OpenStream;
use crate::problem::{Answer, Code, Problem};
use crate::pulse::{self, Line, PAGE, Source, page};
use crate::service::App;

/// Runs of one stream. More are another connection, or a list that is asked for again.
const MAX_RUNS: usize = 200;

/// A comment now and then, so that neither end, nor what is between them, takes silence for death.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// After how long a client that lost us comes back.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamQuery {
    /// Runs by id, each with the number of the event behind which to begin: `ID:SEQ,ID:SEQ`; an id alone begins with the first
    runs: Option<String>,
    /// Also what nodes tell of themselves, behind this number
    nodes: Option<u64>,
    /// Also what warm containers do, behind this number
    pools: Option<u64>,
}

pub(crate) async fn events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Answer<Sse<impl Stream<Item = std::result::Result<Event, Infallible>> + use<>>> {
    let mut cursors = Cursors::parse(query.runs.as_deref().unwrap_or_default(), query.nodes, query.pools)?;
    if let Some(id) = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty())
    {
        cursors.resume(id)?;
    }
    for (run, _) in &cursors.runs {
        app.store.status(*run).await?;
    }
    // Before the first read, so that nothing comes in between.
    let beats = pulse::listen(&app);
    let open = app.metrics.stream();
    let hello = Event::default().retry(RETRY).comment("events");
    let (ready, next_read) = (VecDeque::from([hello]), Instant::now());
    let feed = Feed { app, caller, cursors, beats, ready, turn: 0, next_read, _open: open };
    let stream = unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// How far a client is, in every subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursors {
    runs: Vec<(RunId, u64)>,
    nodes: Option<u64>,
    pools: Option<u64>,
}

impl Cursors {
    fn parse(runs: &str, nodes: Option<u64>, pools: Option<u64>) -> Answer<Self> {
        let bad = |detail: String| Problem::new(Code::BadRequest, detail).hint("write `runs=ID:SEQ,ID:SEQ`");
        let mut parsed = Vec::new();
        for part in runs.split(',').filter(|part| !part.is_empty()) {
            let (id, seq) = part.split_once(':').unwrap_or((part, "0"));
            let run = RunId::parse(id).ok_or_else(|| bad("a run is not named by its whole id".to_owned()))?;
            let seq = seq.parse().map_err(|_| bad(format!("the number behind run {run} cannot be read")))?;
            if parsed.iter().any(|(known, _)| *known == run) {
                return Err(bad(format!("run {run} stands twice")));
            }
            parsed.push((run, seq));
        }
        if parsed.len() > MAX_RUNS {
            return Err(bad(format!("more than {MAX_RUNS} runs on one stream")));
        }
        if parsed.is_empty() && nodes.is_none() && pools.is_none() {
            return Err(bad(
                "nothing is subscribed to: neither `runs`, `nodes` nor `pools` is given".to_owned()
            ));
        }
        Ok(Self { runs: parsed, nodes, pools })
    }

    /// Takes the place of an event's id, which is further than what the query says.
    fn resume(&mut self, id: &str) -> Answer<()> {
        let bad = || {
            Problem::new(Code::BadRequest, "the Last-Event-ID does not belong to this query")
                .hint("ask for the same runs in the same order, or leave it out")
        };
        let split = |text: &str, sign: char| -> Answer<(String, Option<u64>)> {
            match text.split_once(sign) {
                Some((before, behind)) => Ok((before.to_owned(), Some(behind.parse().map_err(|_| bad())?))),
                None => Ok((text.to_owned(), None)),
            }
        };
        let (rest, pools) = split(id, '^')?;
        let (runs, nodes) = split(&rest, '~')?;
        let numbers: Vec<u64> = runs
            .split('.')
            .filter(|part| !part.is_empty())
            .map(|part| part.parse().map_err(|_| bad()))
            .collect::<Answer<_>>()?;
        let is_other = nodes.is_some() != self.nodes.is_some() || pools.is_some() != self.pools.is_some();
        if numbers.len() != self.runs.len() || is_other {
            return Err(bad());
        }
        for ((_, at), number) in self.runs.iter_mut().zip(numbers) {
            *at = number;
        }
        (self.nodes, self.pools) = (nodes, pools);
        Ok(())
    }

    fn id(&self) -> String {
        let runs: Vec<String> = self.runs.iter().map(|(_, at)| at.to_string()).collect();
        let mut id = runs.join(".");
        for (sign, at) in [('~', self.nodes), ('^', self.pools)] {
            if let Some(at) = at {
                id.push_str(&format!("{sign}{at}"));
            }
        }
        id
    }
}

/// One client.
struct Feed {
    app: App,
    caller: Caller,
    cursors: Cursors,
    beats: watch::Receiver<u64>,
    /// What was read and not yet sent.
    ready: VecDeque<Event>,
    /// Whose turn it is to be read first, so that one busy run does not hide the others.
    turn: usize,
    next_read: Instant,
    _open: OpenStream,
}

impl Feed {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let stop = self.app.stop.clone();
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                is_on = self.fill() => if !is_on { return None },
            }
        }
    }

    /// Waits until there is something to send. `false` ends the stream: its client comes back, here or to another node.
    async fn fill(&mut self) -> bool {
        loop {
            sleep_until(self.next_read).await;
            self.beats.mark_unchanged();
            let read = self.read().await;
            self.next_read = Instant::now() + pulse::INTERVAL;
            match read {
                Err(error) => {
                    tracing::debug!(%error, "a stream of events ends");
                    return false;
                }
                // A token that was revoked meanwhile gets nothing of what happened since.
                Ok(()) if !self.ready.is_empty() => return self.is_admitted().await,
                // The service that beats goes after its streams.
                Ok(()) if self.beats.changed().await.is_err() => return false,
                Ok(()) => {}
            }
        }
    }

    async fn is_admitted(&self) -> bool {
        let token = access::token(&self.app, self.app.store.stamp(), &self.caller.token).await;
        matches!(token, Ok(Some(token)) if token.revoked.is_none())
    }

    /// A page at most, of whoever has something.
    async fn read(&mut self) -> Result<()> {
        let runs = self.cursors.runs.len();
        for step in 0..runs {
            let index = (self.turn + step) % runs;
            let (run, after) = self.cursors.runs[index];
            for line in page(&self.app, Source::Run(run), after).await?.iter() {
                self.cursors.runs[index].1 = line.seq;
                self.push(line);
            }
            if self.ready.len() >= PAGE {
                self.turn = (index + 1) % runs;
                return Ok(());
            }
        }
        if let Some(after) = self.cursors.nodes {
            for line in page(&self.app, Source::Nodes, after).await?.iter() {
                self.cursors.nodes = Some(line.seq);
                self.push(line);
            }
        }
        if let Some(after) = self.cursors.pools {
            for line in page(&self.app, Source::Pools, after).await?.iter() {
                self.cursors.pools = Some(line.seq);
                self.push(line);
            }
        }
        Ok(())
    }

    fn push(&mut self, line: &Line) {
        let event = Event::default().id(self.cursors.id()).event(&line.name).data(&line.data);
        self.ready.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0199f2a0-0000-7000-8000-1a2b3c4d5e6f";
    const TWO: &str = "0199f2a0-0000-7000-8000-1a2b3c4d5e70";

    #[test]
    fn id_of_an_event_is_the_place_of_every_subscription() {
        let mut cursors = Cursors::parse(&format!("{ONE}:3,{TWO}"), Some(9), Some(4)).expect("cursors");
        assert_eq!(cursors.id(), "3.0~9^4");
        cursors.resume("7.2~11^5").expect("an id of this query");
        assert_eq!(cursors.id(), "7.2~11^5");
        assert_eq!(Cursors::parse(ONE, None, None).expect("cursors").id(), "0");
        assert_eq!(Cursors::parse("", None, Some(3)).expect("cursors").id(), "^3");
    }

    #[test]
    fn id_of_another_query_is_refused() {
        for id in ["1", "1.2.3~4", "1.2", "1.x~3", "1.2~", "~1", "1.2~3^4"] {
            let mut cursors = Cursors::parse(&format!("{ONE},{TWO}"), Some(0), None).expect("cursors");
            assert_eq!(cursors.resume(id).expect_err(id).code, Code::BadRequest);
        }
    }

    #[test]
    fn what_cannot_be_subscribed_to_is_refused() {
        let many = vec![ONE; MAX_RUNS + 1].join(",");
        for runs in ["", "last", "1a2b3c4d", &format!("{ONE}:x"), &format!("{ONE},{ONE}"), &many] {
            assert_eq!(Cursors::parse(runs, None, None).expect_err(runs).code, Code::BadRequest);
        }
    }
}
