//! One beat for all who listen. However many streams are open, the store's hints are heard once, and what follows an event is read once:
//! whoever is at the same place is handed the same page.
//!
//! ```text
//!   changes() ──hint──▶ beat ──▶ feeds ──▶ page(source, after) ──▶ the store, or the page that another feed has read in this beat
//!               the clock, as the store asks for it
//! ```
//! A page that was read before a beat is not handed out after it, so nothing that was committed before a beat is missed in it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_store::model::Stamp;
use laneway_store::{Error, Result, Store};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::service::App;

/// Events that are read at once, and so the most that is held for a client.
pub(crate) const PAGE: usize = 64;

/// The store is read at most this often: a run of short steps makes thousands of events a second.
pub(crate) const INTERVAL: Duration = Duration::from_millis(25);

/// More than a few who listen are told a moment later, so that the work that a commit makes possible is begun first.
const FEW: usize = 16;
const MOMENT: Duration = Duration::from_millis(5);

/// Bytes of pages that are kept for a beat: those of many who look at the same. Who looks at something else reads it himself.
const BYTES: usize = 4 << 20;

/// What an entry takes beside what it says.
const OF_A_PAGE: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    beats: watch::Sender<Beat>,
    is_beating: AtomicBool,
    pages: Mutex<Pages>,
}

/// That there may be something new.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) no: u64,
    /// Of the store as it was then, read once for all who listen; none before the first beat, and where the store has none.
    pub(crate) stamp: Option<Stamp>,
}

#[derive(Debug, Default)]
struct Pages {
    beat: u64,
    kept: HashMap<(Source, u64), Arc<[Line]>>,
    /// Of those pages, about.
    bytes: usize,
}

/// Whose events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Run(RunId),
    Nodes,
    Pools,
}

/// An event as it is sent.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Line {
    fn new(seq: u64, name: &str, data: &Value) -> Self {
        Self { seq, name: name.to_owned(), data: data.to_string() }
    }

    fn unreadable(source: Source, seq: u64) -> Self {
        let mut data = json!({ "event": "unreadable", "seq": seq });
        match source {
            Source::Run(run) => data["run"] = json!(run),
            Source::Nodes | Source::Pools => {}
        }
        Self::new(seq, "unreadable", &data)
    }
}

/// Changes whenever there may be something new. Whoever reads after having asked for this misses nothing.
pub(crate) fn listen(app: &App) -> watch::Receiver<Beat> {
    let beats = app.pulse.beats.subscribe();
    if !app.pulse.is_beating.swap(true, Ordering::AcqRel) {
        tokio::spawn(beat(app.clone(), app.store.changes()));
    }
    beats
}

async fn beat(app: App, mut changes: watch::Receiver<u64>) {
    let beat = async {
        loop {
            let patience = app.store.max_poll_interval();
            if let Ok(Err(_)) = timeout(patience, changes.changed()).await {
                // Nobody hints any more.
                sleep(patience).await;
            }
            if app.pulse.beats.receiver_count() > FEW {
                sleep(MOMENT).await;
            }
            changes.mark_unchanged();
            app.pulse.turn(app.store.stamp());
            sleep(INTERVAL).await;
        }
    };
    tokio::select! {
        () = app.stop.cancelled() => {}
        () = beat => {}
    }
}

/// What follows an event, a page at most.
pub(crate) async fn page(app: &App, source: Source, after: u64) -> Result<Arc<[Line]>> {
    let (beat, kept) = app.pulse.kept(source, after);
    if let Some(page) = kept {
        return Ok(page);
    }
    let page: Arc<[Line]> = match read(app.store.as_ref(), source, after).await {
        Ok(lines) => lines.into(),
        // One that cannot be read is told as such, and does not hide those behind it.
        Err(error @ Error::UnreadableEvent { of, seq, .. }) => {
            app.tell_of_gap(of, &error.to_string());
            [Line::unreadable(source, seq)].into()
        }
        Err(error) => return Err(error),
    };
    app.pulse.keep(beat, source, after, &page);
    Ok(page)
}

impl Pulse {
    fn turn(&self, stamp: Option<Stamp>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.beat += 1;
        pages.kept.clear();
        pages.bytes = 0;
        drop(pages);
        self.beats.send_modify(|beat| *beat = Beat { no: beat.no + 1, stamp });
    }

    fn kept(&self, source: Source, after: u64) -> (u64, Option<Arc<[Line]>>) {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        (pages.beat, pages.kept.get(&(source, after)).cloned())
    }

    /// Unless a beat has come since its reader asked: it may lack what that one is about.
    fn keep(&self, beat: u64, source: Source, after: u64, page: &Arc<[Line]>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = OF_A_PAGE + page.iter().map(|line| OF_A_PAGE + line.data.len()).sum::<usize>();
        if pages.beat == beat && pages.bytes + bytes <= BYTES {
            pages.bytes += bytes;
            pages.kept.insert((source, after), Arc::clone(page));
        }
    }
}

async fn read(store: &dyn Store, source: Source, after: u64) -> Result<Vec<Line>> {
    Ok(match source {
        Source::Nodes => {
            let events = store.node_events(None, after, PAGE).await?;
            events.iter().map(|event| Line::new(event.seq, event.fact.name(), &event.to_json())).collect()
        }
        Source::Pools => {
            let events = store.pool_events(None, after, PAGE).await?;
            events.iter().map(|event| Line::new(event.seq, event.fact.name(), &event.to_json())).collect()
        }
        Source::Run(run) => match store.events_since(run, after, PAGE).await {
            Ok(events) => {
                events.iter().map(|event| Line::new(event.seq, event.fact.name(), &event.to_json())).collect()
            }
            // It was removed: nothing comes of it any more, and the others go on.
            Err(Error::NoSuchRun { .. }) => Vec::new(),
            Err(error) => return Err(error),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_handed_on_within_a_beat_and_not_beyond_it() {
        let pulse = Pulse::default();
        let page: Arc<[Line]> = vec![Line::new(1, "x", &json!({}))].into();
        let (beat, none) = pulse.kept(Source::Nodes, 0);
        assert!(none.is_none());
        pulse.keep(beat, Source::Nodes, 0, &page);
        assert!(pulse.kept(Source::Nodes, 0).1.is_some_and(|kept| Arc::ptr_eq(&kept, &page)));
        assert!(pulse.kept(Source::Nodes, 1).1.is_none() && pulse.kept(Source::Pools, 0).1.is_none());
        pulse.turn(None);
        assert!(pulse.kept(Source::Nodes, 0).1.is_none(), "what was committed since is not in it");
        pulse.keep(beat, Source::Nodes, 0, &page);
        assert!(pulse.kept(Source::Nodes, 0).1.is_none(), "its reader asked before the beat");
    }

    #[test]
    fn pages_of_a_beat_are_bounded() {
        let pulse = Pulse::default();
        let page: Arc<[Line]> = Vec::new().into();
        let empty = BYTES / OF_A_PAGE;
        (0..2 * empty as u64).for_each(|after| pulse.keep(0, Source::Nodes, after, &page));
        let kept = (0..2 * empty as u64).filter(|after| pulse.kept(Source::Nodes, *after).1.is_some());
        assert_eq!(kept.count(), empty);
        pulse.turn(None);
        let large: Arc<[Line]> = vec![Line::new(1, "x", &json!("x".repeat(BYTES)))].into();
        pulse.keep(1, Source::Nodes, 0, &large);
        assert!(pulse.kept(Source::Nodes, 0).1.is_none(), "larger than all of them may be");
    }
}
