//! Whether this node's container engine answers, all along: one that starts later, goes or comes back changes what the node takes.
//! Owns when that is believed; what follows from it is the store's (`Store::offer_containers`).

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_store::Store;

use super::docker::Docker;
use super::orphans::Sweeper;

/// Between two looks. They cost a question on a socket.
const EVERY: Duration = Duration::from_secs(2);

/// One that does not answer soon would not be of much use.
const SOON: Duration = Duration::from_secs(3);

/// Looks in vain before it is taken to be away: one may be lost under load, and a restart is over in a moment.
const IN_VAIN: u32 = 2;

/// What is known of an engine. Pure.
#[derive(Debug)]
struct Known {
    answers: bool,
    in_vain: u32,
}

impl Known {
    /// Gives what to say, if that differs from what was said.
    fn see(&mut self, answers: bool) -> Option<bool> {
        self.in_vain = if answers { 0 } else { self.in_vain.saturating_add(1) };
        let is_news = match (self.answers, answers) {
            (false, true) => true,
            (true, false) => self.in_vain >= IN_VAIN,
            (true, true) | (false, false) => false,
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

/// Tells the store whenever the engine has come or gone. Ends with the session.
pub(crate) async fn keep_told(docker: Docker, store: Arc<dyn Store>, session: SessionId, sweeper: Sweeper) {
    let Some(offered) = offered(store.as_ref(), session).await else { return };
    let mut known = Known { answers: offered, in_vain: 0 };
    loop {
        tokio::time::sleep(EVERY).await;
        let found = answers(&docker).await;
        let Some(now) = known.see(found.is_ok()) else { continue };
        match store.offer_containers(session, now).await {
            Ok(()) => known.answers = now,
            Err(error) if error.is_passing() => continue,
            Err(error) => {
                tracing::debug!(%error, "the store was not told whether the container engine answers");
                return;
            }
        }
        match found {
            Ok(()) => {
                tracing::info!("the container engine answers; steps in containers are taken");
                // What it has left from before.
                sweeper.soon();
            }
            Err(why) => tracing::warn!("steps in containers are not taken until there is an engine: {why}"),
        }
    }
}

/// What the session has said when it began. `None`: it is over.
async fn offered(store: &dyn Store, session: SessionId) -> Option<bool> {
    loop {
        match store.nodes(0).await {
            Ok(nodes) => {
                let own = nodes.into_iter().find(|node| node.session == session)?;
                return Some(own.offer?.has_container);
            }
            Err(error) if error.is_passing() => tokio::time::sleep(EVERY).await,
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_believed_at_once_and_given_up_after_two_looks_in_vain() {
        let mut known = Known { answers: false, in_vain: 0 };
        let mut see = |answers| {
            let news = known.see(answers);
            if let Some(news) = news {
                known.answers = news;
            }
            news
        };
        assert_eq!([see(false), see(true), see(true)], [None, Some(true), None]);
        assert_eq!([see(false), see(true), see(false)], [None, None, None], "one look in vain is none");
        assert_eq!([see(false), see(false), see(true)], [Some(false), None, Some(true)]);
    }
}
