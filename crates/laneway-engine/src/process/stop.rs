//! The request to end attempts: first politely, then at once.

use std::sync::Arc;

use tokio::sync::watch;

/// A cheap handle that any number of attempts listen to. It can only be raised, never taken back.
#[derive(Debug, Clone)]
pub struct StopSignal {
    level: Arc<watch::Sender<Level>>,
}

/// How urgently an attempt is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Run,
    /// TERM, `kill_grace`, KILL.
    Stop,
    /// KILL.
    Kill,
}

impl StopSignal {
    pub fn new() -> Self {
        Self { level: Arc::new(watch::Sender::new(Level::Run)) }
    }

    /// Asks for TERM, the grace, then KILL. Asking again changes nothing.
    pub fn stop(&self) {
        self.raise(Level::Stop);
    }

    /// Asks for KILL without any grace.
    pub fn kill_now(&self) {
        self.raise(Level::Kill);
    }

    pub fn is_asked(&self) -> bool {
        *self.level.borrow() > Level::Run
    }

    /// Waits until an end is asked for, however urgently.
    pub(crate) async fn asked(&self) {
        self.beyond(Level::Run).await;
    }

    /// Waits until an end without any grace is asked for.
    pub(crate) async fn killed(&self) {
        self.beyond(Level::Stop).await;
    }

    /// Waits until the request is more urgent than `known`, and says how urgent.
    pub(super) async fn beyond(&self, known: Level) -> Level {
        let mut level = self.level.subscribe();
        let level = level.wait_for(|level| *level > known).await;
        *level.expect("the sender lives in self")
    }

    fn raise(&self, to: Level) {
        self.level.send_if_modified(|level| {
            let is_raised = *level < to;
            *level = to.max(*level);
            is_raised
        });
    }
}

impl Default for StopSignal {
    fn default() -> Self {
        Self::new()
    }
}
