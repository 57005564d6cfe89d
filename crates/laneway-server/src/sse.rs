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
use laneway_core::time::Millis;
use laneway_store::{Error, Result};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;

use crate::access::{self, Caller};
use crate::extract::Query;
use crate::metrics::Open;
use crate::problem::{Answer, Code, Problem};
use crate::pulse::{self, Beat, Line, PAGE, Source, page};
use crate::service::App;
use crate::wire::Moment;

/// Runs of one stream. More are another connection, or a list that is asked for again.
const MAX_RUNS: usize = 200;

/// A comment now and then, so that neither end, nor what is between them, takes silence for death.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Whoever is told of a change asks for lists again: not more often than a person can look.
const BETWEEN_CHANGES: Duration = Duration::from_secs(1);

/// After how long a client that lost us comes back.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamQuery {
    /// Runs by id, each with the number of the event behind which to begin: `ID:SEQ,ID:SEQ`; an id alone begins with the first.
    /// At most 200 runs, each once.
    #[param(
        pattern = "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[0-9]{1,20})?(,[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[0-9]{1,20})?)*)?$"
    )]
    runs: Option<String>,
    /// Also what nodes tell of themselves, behind this number
    nodes: Option<u64>,
    /// Also what warm containers do, behind this number
    pools: Option<u64>,
    /// With 1, also `changed` whenever something in the store has changed, at most once a second; the first comes at once
    #[param(minimum = 0, maximum = 1)]
    changes: Option<u8>,
}

pub(crate) async fn events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Answer<Sse<impl Stream<Item = std::result::Result<Event, Infallible>> + use<>>> {
    let mut cursors = Cursors::parse(query.runs.as_deref().unwrap_or_default(), query.nodes, query.pools)?;
    let wants_changes = match query.changes {
        None | Some(0) => false,
        Some(1) => true,
        Some(_) => return Err(Problem::new(Code::BadRequest, "`changes` is 1, or left out")),
    };
    cursors.check(wants_changes)?;
    let last = headers.get("last-event-id").map(|id| id.to_str().map_err(|_| foreign_place())).transpose()?;
    let last = last.filter(|id| !id.is_empty());
    if let Some(id) = last {
        cursors.resume(id)?;
    }
    for (run, _) in &cursors.runs {
        match app.store.status(*run).await {
            // It was there, and was removed since: nothing comes of it any more, and the others go on, as on a stream that did not break.
            Err(Error::NoSuchRun { .. }) if last.is_some() => {}
            found => drop(found?),
        }
    }
    // Before the first read, so that nothing comes in between.
    let beats = pulse::listen(&app);
    let open = app.metrics.stream();
    let hello = Event::default().retry(RETRY).comment("events");
    let (ready, next_read) = (VecDeque::from([hello]), Instant::now());
    let last = Beat { no: beats.borrow().no, stamp: app.store.stamp() };
    let changes = wants_changes.then(|| Changes::begin(last));
    let feed = Feed { app, caller, cursors, changes, beats, ready, turn: 0, next_read, _open: open };
    let stream = unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Whether it has 1 to 20 digits, and nothing else.
fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str) -> Option<u64> {
    if is_number(text) { text.parse().ok() } else { None }
}

fn foreign_place() -> Problem {
    Problem::new(Code::Unprocessable, "the Last-Event-ID does not belong to this query")
        .hint("ask for the same runs in the same order, or leave it out")
}

/// How far a client is, in every subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursors {
    runs: Vec<(RunId, u64)>,
    nodes: Option<u64>,
    pools: Option<u64>,
}

impl Cursors {
    /// Reads `ID:SEQ,ID:SEQ`. What is not written so is a bad request; what no stream can follow is unprocessable.
    fn parse(runs: &str, nodes: Option<u64>, pools: Option<u64>) -> Answer<Self> {
        let refused = |code, detail: String| Problem::new(code, detail).hint("write `runs=ID:SEQ,ID:SEQ`");
        let bad = |detail| refused(Code::BadRequest, detail);
        let mut parsed: Vec<(RunId, u64)> = Vec::new();
        for part in runs.split(',').filter(|_| !runs.is_empty()) {
            let (id, seq) = part.split_once(':').unwrap_or((part, "0"));
            let run = RunId::parse(id).filter(|run| run.to_string() == id);
            let run = run.ok_or_else(|| bad("a run is not named by its whole id".to_owned()))?;
            if !is_number(seq) {
                return Err(bad(format!("the number behind run {run} cannot be read")));
            }
            let unprocessable = |detail| refused(Code::Unprocessable, detail);
            let seq = seq.parse();
            let seq = seq.map_err(|_| unprocessable(format!("the number behind run {run} is too large")))?;
            if parsed.iter().any(|(known, _)| *known == run) {
                return Err(unprocessable(format!("run {run} stands twice")));
            }
            if parsed.len() == MAX_RUNS {
                return Err(unprocessable(format!("more than {MAX_RUNS} runs on one stream")));
            }
            parsed.push((run, seq));
        }
        Ok(Self { runs: parsed, nodes, pools })
    }

    /// Refuses a stream on which nothing would ever come.
    fn check(&self, wants_changes: bool) -> Answer<()> {
        if self.is_empty() && !wants_changes {
            let detail = "nothing is subscribed to: neither `runs`, `nodes`, `pools` nor `changes` is given";
            return Err(Problem::new(Code::Unprocessable, detail).hint("write `runs=ID:SEQ,ID:SEQ`"));
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.nodes.is_none() && self.pools.is_none()
    }

    /// Takes the place of an event's id, which is further than what the query says.
    fn resume(&mut self, id: &str) -> Answer<()> {
        let read = |text: &str| number(text).ok_or_else(foreign_place);
        let split = |text: &str, sign: char| -> Answer<(String, Option<u64>)> {
            match text.split_once(sign) {
                Some((before, behind)) => Ok((before.to_owned(), Some(read(behind)?))),
                None => Ok((text.to_owned(), None)),
            }
        };
        let (rest, pools) = split(id, '^')?;
        let (runs, nodes) = split(&rest, '~')?;
        let numbers: Vec<u64> =
            runs.split('.').filter(|part| !part.is_empty()).map(read).collect::<Answer<_>>()?;
        let is_other = nodes.is_some() != self.nodes.is_some() || pools.is_some() != self.pools.is_some();
        if numbers.len() != self.runs.len() || is_other {
            return Err(foreign_place());
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

/// What a client knows of changes of any kind. Pure: it is told of beats and the time.
#[derive(Debug)]
struct Changes {
    /// The newest that it was told of, with the stamp of the store then or later.
    last: Beat,
    /// Something has changed since it was told of something.
    is_owed: bool,
    /// Not before.
    next: Instant,
}

impl Changes {
    /// With the beat that was the newest, and the stamp as it was read after that.
    fn begin(last: Beat) -> Self {
        // Between a list and this stream something may have happened: the first is owed from the beginning.
        Self { last, is_owed: true, next: Instant::now() }
    }

    /// A beat says that there may be something new; where the store has a stamp, that says whether there is.
    fn look(&mut self, beat: Beat) {
        self.is_owed |= beat.no != self.last.no && (beat.stamp.is_none() || beat.stamp != self.last.stamp);
        if beat.no != self.last.no {
            self.last = beat;
        }
    }

    fn tell(&mut self, now: Instant) -> bool {
        let is_told = self.is_owed && now >= self.next;
        if is_told {
            (self.is_owed, self.next) = (false, now + BETWEEN_CHANGES);
        }
        is_told
    }

    fn owed(&self) -> Option<Instant> {
        self.is_owed.then_some(self.next)
    }
}

/// One client.
struct Feed {
    app: App,
    caller: Caller,
    cursors: Cursors,
    /// Of a client that wants to be told of changes of any kind.
    changes: Option<Changes>,
    beats: watch::Receiver<Beat>,
    /// What was read and not yet sent.
    ready: VecDeque<Event>,
    /// Whose turn it is to be read first, so that one busy run does not hide the others.
    turn: usize,
    next_read: Instant,
    _open: Open,
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
            let beat = *self.beats.borrow_and_update();
            let read = self.read().await;
            self.tell_change(beat);
            self.next_read = Instant::now() + pulse::INTERVAL;
            match read {
                Err(error) => {
                    tracing::debug!(%error, "a stream of events ends");
                    return false;
                }
                // A token that was revoked meanwhile gets nothing of what happened since.
                Ok(()) if !self.ready.is_empty() => return self.is_admitted().await,
                // The service that beats goes after its streams.
                Ok(()) if !self.rest().await => return false,
                Ok(()) => {}
            }
        }
    }

    /// Until the next beat, or until a change may be told that came too soon behind another one.
    async fn rest(&mut self) -> bool {
        let owed = self.changes.as_ref().and_then(Changes::owed);
        // Whoever waits for that alone learns nothing of a beat: what it is owed says the same.
        if let (Some(at), true) = (owed, self.cursors.is_empty()) {
            sleep_until(at).await;
            return true;
        }
        tokio::select! {
            beat = self.beats.changed() => beat.is_ok(),
            () = sleep_until(owed.unwrap_or_else(Instant::now)), if owed.is_some() => true,
        }
    }

    /// It has no place of its own: lists are state, and whoever is told of a change asks for them again.
    fn tell_change(&mut self, beat: Beat) {
        let Some(changes) = &mut self.changes else { return };
        changes.look(beat);
        if changes.tell(Instant::now()) {
            let at = Moment(Millis(jiff::Timestamp::now().as_millisecond()));
            let data = serde_json::json!({ "at": at }).to_string();
            self.ready.push_back(Event::default().event("changed").data(data));
        }
    }

    async fn is_admitted(&self) -> bool {
        let token = access::token(&self.app, self.app.store.stamp(), &self.caller.token).await;
        matches!(token, Ok(Some(token)) if token.check().is_ok())
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
    use laneway_store::model::Stamp;

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
            assert_eq!(cursors.resume(id).expect_err(id).code, Code::Unprocessable);
        }
    }

    #[test]
    fn what_cannot_be_subscribed_to_is_refused() {
        let upper = ONE.to_uppercase();
        for runs in
            ["last", "1a2b3c4d", &upper, ",", &format!("{ONE},"), &format!("{ONE}:x"), &format!("{ONE}:+1")]
        {
            assert_eq!(Cursors::parse(runs, None, None).expect_err(runs).code, Code::BadRequest);
        }
        let many: Vec<String> =
            (0..=MAX_RUNS).map(|at| format!("0199f2a0-0000-7000-8000-{at:012}")).collect();
        for runs in [format!("{ONE},{ONE}"), format!("{ONE}:99999999999999999999"), many.join(",")] {
            assert_eq!(Cursors::parse(&runs, None, None).expect_err(&runs).code, Code::Unprocessable);
        }
        let nothing = Cursors::parse("", None, None).expect("cursors");
        assert_eq!(nothing.check(false).expect_err("nothing would come").code, Code::Unprocessable);
        assert!(nothing.check(true).is_ok());
    }

    fn beat(no: u64, stamp: Option<u64>) -> Beat {
        Beat { no, stamp: stamp.map(Stamp) }
    }

    #[test]
    fn changes_are_told_once_a_second_and_none_is_left_out() {
        let (mut changes, second) = (Changes::begin(beat(1, Some(1))), BETWEEN_CHANGES);
        let start = Instant::now();
        // The stamp of that beat is older than what was read since.
        changes.look(beat(1, Some(0)));
        assert!(changes.tell(start), "the first at once");
        changes.look(beat(2, Some(1)));
        assert!(!changes.tell(start + second) && changes.owed().is_none(), "a beat by the clock alone");
        changes.look(beat(3, Some(2)));
        assert!(!changes.tell(start + second / 2), "too soon");
        changes.look(beat(3, Some(2)));
        assert_eq!(changes.owed(), Some(start + second), "and told later, though nothing happens any more");
        assert!(changes.tell(start + second));
    }

    #[test]
    fn without_a_stamp_every_beat_is_a_change() {
        let mut changes = Changes::begin(beat(1, None));
        let now = Instant::now();
        assert!(changes.tell(now));
        changes.look(beat(1, None));
        assert!(!changes.tell(now + BETWEEN_CHANGES));
        changes.look(beat(2, None));
        assert!(changes.tell(now + BETWEEN_CHANGES));
    }
}
