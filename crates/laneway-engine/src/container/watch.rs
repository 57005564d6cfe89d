//! Whether this node's container engine answers, all along: one that starts later, goes or comes back changes what the node takes.
//! Owns when that is believed; what follows from it is the store's (`Store::offer_containers`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_store::Store;

use super::docker::Docker;
use super::orphans::Sweeper;
use super::pool::Pools;

/// Between two looks. They cost a question on a socket.
const EVERY: Duration = Duration::from_secs(2);

/// One that does not answer soon would not be of much use.
const SOON: Duration = Duration::from_secs(3);

/// Looks in vain before it is taken to be away: one may be lost under load, and a restart is over in a moment.
const IN_VAIN: u32 = 2;

/// What is known of an engine. Pure.
#[derive(Debug)]
struct Known {
    /// As it was said last. `None`: nothing yet; what the session has said when it began is the store's to compare.
    answers: Option<bool>,
    in_vain: u32,
}

impl Known {
    /// Gives what to say, if that differs from what was said.
    fn see(&mut self, answers: bool) -> Option<bool> {
        self.in_vain = if answers { 0 } else { self.in_vain.saturating_add(1) };
        let is_news = match (self.answers, answers) {
            (Some(false) | None, true) => true,
            (Some(true) | None, false) => self.in_vain >= IN_VAIN,
            (Some(true), true) | (Some(false), false) => false,
        };
        is_news.then_some(answers)
    }
}

/// Whether it answers now. The error says what keeps it from doing so.
pub async fn answers(docker: &Docker) -> Result<(), String> {
    match tokio::time::timeout(SOON, docker.ping()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("{} does not answer", docker.host())),
    }
}

/// Tells the store whenever the engine has come or gone. Ends with the session, and for no other reason.
pub(crate) async fn keep_told(
    docker: Docker,
    store: Arc<dyn Store>,
    session: SessionId,
    (sweeper, pools): (Sweeper, Arc<OnceLock<Pools>>),
) {
    let mut known = Known { answers: None, in_vain: 0 };
    loop {
        tokio::time::sleep(EVERY).await;
        let found = answers(&docker).await;
        let Some(now) = known.see(found.is_ok()) else { continue };
        // Before anything is taken: what dead sessions have left there would compete with it.
        if now && !sweeper.sweep().await {
            continue;
        }
        match store.offer_containers(session, now).await {
            Ok(()) => {}
            Err(laneway_store::Error::SessionOver { .. }) => return,
            Err(error) => {
                tracing::warn!(%error, "the store was not told whether the container engine answers; it is told again");
                continue;
            }
        }
        let is_change = known.answers.replace(now).is_some();
        match found {
            Ok(()) if is_change => {
                if let Some(pools) = pools.get() {
                    pools.look_after();
                }
                tracing::info!("the container engine answers; steps in containers are taken");
            }
            Err(why) if is_change => {
                tracing::warn!("steps in containers are not taken until there is an engine: {why}");
            }
            // How it began was told by who began it.
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_believed_at_once_and_given_up_after_two_looks_in_vain() {
        let mut known = Known { answers: Some(false), in_vain: 0 };
        let mut see = |answers| {
            let news = known.see(answers);
            known.answers = news.or(known.answers);
            news
        };
        assert_eq!([see(false), see(true), see(true)], [None, Some(true), None]);
        assert_eq!([see(false), see(true), see(false)], [None, None, None], "one look in vain is none");
        assert_eq!([see(false), see(false), see(true)], [Some(false), None, Some(true)]);
    }

    #[test]
    fn what_was_not_said_is_said_again() {
        let mut known = Known { answers: None, in_vain: 0 };
        assert_eq!([known.see(true), known.see(true)], [Some(true), Some(true)]);
        assert_eq!([known.see(false), known.see(false), known.see(false)], [None, Some(false), Some(false)]);
    }
}
