//! Hints that something may have changed, from a store or from a server: whoever follows something waits here, then looks.
//! Correctness never needs a hint: without one it is looked at now and then.
//!
//! ```text
//!   store:   changes() ─────────────────────────┐
//!   server:  GET /v1/events, opened again ──────┴──▶ next()
//! ```

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_server::client::Client;
use laneway_server::listening::{Listening, Subscription};
use laneway_store::Store;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::face::Face;

/// Events of a busy run come in thousands a second. One look is for all that come within this.
const TOGETHER: Duration = Duration::from_millis(50);

/// How often lists are looked at while the server does not tell that they changed.
const LOOK: Duration = Duration::from_secs(1);

/// How long a stream that tells all is trusted without a word: that nothing changes is one, too.
const TRUST: Duration = Duration::from_secs(15);

/// Before a server is asked again that could not be reached.
const AGAIN: Duration = Duration::from_secs(1);

/// What was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Look again.
    Look,
    /// The server cannot be listened to, and why. It is tried again.
    Lost(String),
}

#[derive(Debug)]
pub(crate) struct Hints {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Store { store: std::sync::Arc<dyn Store>, changes: watch::Receiver<u64> },
    Server(Box<Server>),
}

#[derive(Debug)]
struct Server {
    client: Client,
    /// The run that is looked at, and how far.
    run: Option<(RunId, u64)>,
    /// Whether it tells of all changes; an older server does not.
    tells_all: bool,
    open: Option<Listening>,
    was_lost: bool,
}

impl Hints {
    pub(crate) fn new(face: &Face) -> Self {
        let source = match face {
            Face::Store(store) => Source::Store { changes: store.changes(), store: store.clone() },
            Face::Server(client) => Source::Server(Box::new(Server {
                client: client.clone(),
                run: None,
                tells_all: true,
                open: None,
                was_lost: false,
            })),
        };
        Self { source }
    }

    /// One run is looked at, which has been read up to this event.
    pub(crate) fn look_at(&mut self, run: Option<(RunId, u64)>) {
        if let Source::Server(server) = &mut self.source
            && server.run.map(|(run, _)| run) != run.map(|(run, _)| run)
        {
            server.run = run;
            server.open = None;
        }
    }

    /// The next one. May be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Hint {
        match &mut self.source {
            Source::Store { store, changes } => {
                let patience = store.max_poll_interval();
                if let Ok(Err(_)) = timeout(patience, changes.changed()).await {
                    // Nobody hints any more.
                    sleep(patience).await;
                }
                changes.mark_unchanged();
                Hint::Look
            }
            Source::Server(server) => server.next().await,
        }
    }
}

impl Server {
    async fn next(&mut self) -> Hint {
        if self.was_lost {
            sleep(AGAIN).await;
        }
        let to = Subscription { runs: self.run.into_iter().collect(), changes: self.tells_all };
        if to == Subscription::default() {
            sleep(LOOK).await;
            self.was_lost = false;
            return Hint::Look;
        }
        let Some(open) = &mut self.open else {
            return match self.client.listen(&to).await {
                Ok(open) => {
                    (self.open, self.was_lost) = (Some(open), false);
                    // What happened before it was open is looked at.
                    Hint::Look
                }
                Err(error) if self.tells_all && error.is_not_understood() => {
                    self.tells_all = false;
                    Hint::Look
                }
                Err(error) => {
                    self.was_lost = true;
                    Hint::Lost(error.to_string())
                }
            };
        };
        let patience = if self.tells_all { TRUST } else { LOOK };
        let mut is_open = true;
        let mut last = None;
        match timeout(patience, open.next()).await {
            Err(_) => return Hint::Look,
            Ok(None) => is_open = false,
            Ok(Some(said)) => {
                last = said.data["seq"].as_u64();
                sleep(TOGETHER).await;
                while let Ok(said) = timeout(Duration::ZERO, open.next()).await {
                    let Some(said) = said else {
                        is_open = false;
                        break;
                    };
                    last = said.data["seq"].as_u64().or(last);
                }
            }
        }
        if let (Some((_, at)), Some(last)) = (&mut self.run, last) {
            *at = last;
        }
        if !is_open {
            self.open = None;
        }
        Hint::Look
    }
}
