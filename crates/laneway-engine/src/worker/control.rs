//! A person's hand on a running worker: first politely, then at once.

use std::sync::{Arc, OnceLock};

use laneway_core::node_event::Leaving;
use tokio::sync::watch;

/// How urgently a worker is asked to end its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urge {
    None,
    /// Cancel the run; its tasks get TERM and their grace, and its clean-up its time.
    Cancel,
    /// Kill what runs, clean-up included.
    Kill,
}

/// A cheap handle; it can only be raised.
#[derive(Debug, Clone)]
pub struct Control {
    urge: Arc<watch::Sender<Urge>>,
    why: Arc<OnceLock<Leaving>>,
}

impl Control {
    pub fn new() -> Self {
        Self { urge: Arc::new(watch::Sender::new(Urge::None)), why: Arc::default() }
    }

    /// Cancels the run, lets its tasks end in their grace and its clean-up in its time.
    pub fn cancel(&self) {
        self.raise(Urge::Cancel);
    }

    /// Lets a node that takes whatever comes stop in good order. The first reason counts.
    pub fn leave(&self, why: Leaving) {
        let _ = self.why.set(why);
        self.raise(Urge::Cancel);
    }

    /// Why it was told to leave, if it was.
    pub fn why(&self) -> Option<&Leaving> {
        self.why.get()
    }

    /// Whether it was told anything.
    pub(crate) fn is_raised(&self) -> bool {
        *self.urge.borrow() > Urge::None
    }

    /// Waits until it is told something.
    pub(crate) async fn raised(&self) {
        let mut urges = self.urge.subscribe();
        let raised = urges.wait_for(|urge| *urge > Urge::None).await;
        raised.expect("the sender lives in self");
    }

    /// Kills what runs, without any grace, and lets no clean-up start.
    pub fn kill(&self) {
        self.raise(Urge::Kill);
    }

    /// Also what was said before counts as new: a worker may be told while it begins.
    pub(super) fn subscribe(&self) -> watch::Receiver<Urge> {
        let mut urges = self.urge.subscribe();
        urges.mark_changed();
        urges
    }

    fn raise(&self, to: Urge) {
        self.urge.send_if_modified(|urge| {
            let is_raised = *urge < to;
            *urge = to.max(*urge);
            is_raised
        });
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::node_event::LeaveReason;

    use super::*;

    #[tokio::test]
    async fn whoever_subscribes_late_hears_what_was_said_before() {
        let control = Control::new();
        control.leave(Leaving::because(LeaveReason::Signal));
        let mut urges = control.subscribe();
        assert!(urges.has_changed().expect("it lives"));
        assert_eq!(*urges.borrow_and_update(), Urge::Cancel);
        assert!(!urges.has_changed().expect("it lives"), "once");
    }
}
